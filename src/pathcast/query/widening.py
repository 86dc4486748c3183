"""Generalisations of one path, each a function from a path to a path that covers it.

Whatever message satisfies the path satisfies what is made of it, and mostly more messages do. Many
paths become one that way: a table that says where a message may be wanted holds thousands of paths
in place of millions.

    drop                all predicates, or all but one       `structure`, `conjuncts`
                        what holds paths together            `linear_paths`
                        of positions and some elements       `conditions_kept`
    widen               set -> range -> prefix -> existence  `hull`, `begun`, `existing`
                        a number within powers of two        `in_powers`
    cut                 the last steps                       `cut`
    name to `*`                                              `any_name`
    `/` to `//`                                              `anywhere`, `last_name`

A step whose conditions change loses its positions: they count what is left by the conditions before
them.

Example:
    >>> from pathcast.query import canonical_text, normalise
    >>> path = normalise("/m/quote[@sym='IBM'][bid > 3]/time")
    >>> [canonical_text(each) for each in conjuncts(path)]
    ["/m/quote[@sym='IBM']", '/m/quote/time', '/m/quote/bid[.>3]']
    >>> canonical_text(hull([normalise("//a[@n = 3]"), normalise("//a[@n = '7']")]))
    '//a[@n<=7][@n>=3]'
    >>> canonical_text(last_name(path))
    '//bid'

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1 (content generalisation: "replacing some
path expressions with more general ones"), which gives examples of methods and no list. Differs: a
range and a prefix of values, and nothing that is not proved by `pathcast.query.containment`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from pathcast.query.canonical import canonical_text
from pathcast.query.conditions import simplified, stage
from pathcast.query.containment import Pattern, pattern_covers
from pathcast.query.normal import (
    AnyName,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Double,
    Name,
    NestedCondition,
    NormalQuery,
    Operator,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
)
from pathcast.query.values import number_of

Leaf: TypeAlias = AttributeCondition | TextCondition | ValueCondition


def conjuncts(query: NormalQuery) -> tuple[NormalQuery, ...]:
    """The linear paths that a path asks for, each with one condition at its end or none.

    A path holds only if all of them do: the paper's conjunction of absolute linear paths, n nested
    paths being n + 1 of them.

    Cost: linear in the length of what it gives.
    """
    found = dict.fromkeys(NormalQuery(simplified(steps, is_main=True)) for steps in _linear(query))
    return tuple(found)


def linear_paths(query: NormalQuery) -> tuple[NormalQuery, ...]:
    """The linear paths that a path asks for, each with all conditions on its steps.

    The main path and every nested path, from the document on: n nested paths are n + 1 linear ones.
    A path holds only if all of them do; that they meet in one element is given up. Where a nested
    path stood before a position, the position goes, for it counts what the nested path has left.

    Returns:
        The paths, sorted by canonical text, without those that another one of them implies.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> path = normalise("/m/quote[@sym='IBM'][bid > 3]/time")
        >>> [canonical_text(each) for each in linear_paths(path)]
        ["/m/quote[@sym='IBM']/bid[.>3]", "/m/quote[@sym='IBM']/time"]

    Cost: linear in the text it gives, and a comparison for each two of the paths.

    Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1 (disjunctive normal form). Differs:
    nested paths keep the predicates of the steps above them; the figures have none there.
    """
    found: list[NormalQuery] = []
    waiting: list[tuple[list[Step], tuple[Step, ...]]] = [([], query.steps)]
    while waiting:
        before, steps = waiting.pop()
        path = list(before)
        for step in steps:
            bare, nested = _without_nested(step)
            if bare.stages or not _is_or_self(bare):
                path.append(bare)
            waiting.extend((list(path), each.steps) for each in nested)
        found.append(_main(path))
    distinct = {canonical_text(each): each for each in found}
    patterns = [Pattern(distinct[text]) for text in sorted(distinct)]
    for pattern in list(patterns) if len(patterns) > 1 else ():
        if any(each is not pattern and pattern_covers(pattern, each) for each in patterns):
            patterns.remove(pattern)
    return tuple(pattern.query for pattern in patterns)


def structure(query: NormalQuery) -> NormalQuery:
    """The main path without predicates.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> canonical_text(structure(normalise("/a[@x][2]//b[c/d]")))
        '/a//b/c/d'
    """
    return _main([replace(step, stages=()) for step in query.steps if not _is_or_self(step)])


def existing(query: NormalQuery) -> NormalQuery:
    """The path with existence in place of every comparison.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> canonical_text(existing(normalise("/a[@x = 3]/b[. = 'y']")))
        '/a[@x]/b'
    """
    return _with_leaves(query, _existing)


def conditions_kept(
    query: NormalQuery, keeps: Callable[[Sequence[Step], Leaf], bool]
) -> tuple[NormalQuery, ...]:
    """The linear paths with some of their conditions, and no positions.

    Args:
        query: The path.
        keeps: Whether a condition stays, by the steps that lead to its element and itself.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> path = normalise("/a[@x = 3][2]/b[. = 'y'][c/@z]")
        >>> only_attributes = lambda steps, leaf: isinstance(leaf, AttributeCondition)
        >>> [canonical_text(each) for each in conditions_kept(path, only_attributes)]
        ['/a[@x=3]/b/c[@z]']
    """
    found = []
    for path in linear_paths(query):
        steps: list[Step] = []
        for at, step in enumerate(path.steps):
            conditions = [each for part in step.stages for each in part.conditions]
            assert not any(isinstance(each, NestedCondition) for each in conditions)
            before = path.steps[: at + 1]
            kept = [each for each in conditions if keeps(before, each)]  # type: ignore[arg-type]
            if kept or not _is_or_self(step):
                steps.append(replace(step, stages=(stage((), kept),) if kept else ()))
        found.append(_main(steps))
    return tuple(found)


def begun(query: NormalQuery, length: int) -> NormalQuery:
    """The path with the beginning of every string that is compared for equality.

    Where `starts-with` cannot stand (text nodes, attributes of any name), existence remains; other
    comparisons stay as they are.

    Args:
        query: The path.
        length: Characters that stay, at least one.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> canonical_text(begun(normalise("/a[@x = 'abcd']"), 2))
        "/a[starts-with(@x,'ab')]"
    """
    return _with_leaves(query, lambda leaf: _begun(leaf, length))


def cut(query: NormalQuery, length: int) -> NormalQuery:
    """The first steps of the main path, at least one.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> canonical_text(cut(normalise("/a[@x]/b/c"), 2))
        '/a[@x]/b'
    """
    return _main(list(query.steps[: max(1, length)]))


def any_name(query: NormalQuery, at: int) -> NormalQuery:
    """The path with `*` in place of a step's name; its positions, which count names, are dropped.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> canonical_text(any_name(normalise("/a/b[2][@x]/c"), 1))
        '/a/*[@x]/c'
    """
    steps = list(query.steps)
    steps[at] = _without_positions(replace(steps[at], test=AnyName()))
    return _main(steps)


def anywhere(query: NormalQuery, at: int) -> NormalQuery:
    """The path with `//` before a step.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> canonical_text(anywhere(normalise("/a/b"), 1))
        '/a//b'
    """
    steps = list(query.steps)
    if steps[at].axis is Axis.CHILD:
        steps[at] = replace(steps[at], axis=Axis.DESCENDANT)
    return _main(steps)


def last_name(query: NormalQuery) -> NormalQuery:
    """The last step of the main path that has a name, anywhere; without predicates.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> canonical_text(last_name(normalise("/a/b[@x]/*")))
        '//b'
    """
    named = [step for step in query.steps if not isinstance(step.test, AnyName)]
    if not named:
        return _main([Step(Axis.CHILD, AnyName())])
    return _main([Step(Axis.DESCENDANT, named[-1].test)])


def leaf_of(query: NormalQuery) -> tuple[NormalQuery, Comparison] | None:
    """A linear path that compares one value at its end: what is compared, and how.

    What is compared is the path with `= 0`; None for any other path.
    """
    *others, last = query.steps
    if any(step.stages for step in others) or len(last.stages) != 1:
        return None
    only = last.stages[0]
    if only.positions or len(only.conditions) != 1:
        return None
    leaf = only.conditions[0]
    if isinstance(leaf, NestedCondition) or leaf.compare is None:
        return None
    any_value = replace(leaf, compare=Comparison(Operator.EQ, 0.0))
    shape = replace(last, stages=(stage((), (any_value,)),))
    return NormalQuery((*others, shape)), leaf.compare


def hull(queries: Sequence[NormalQuery]) -> NormalQuery | None:
    """One path for several that compare the same value with numbers: the range from least to most.

    Args:
        queries: Linear paths, the same but for the comparison at the end (`leaf_of`); one or more.

    Returns:
        The path with a range; with existence where the range has no bound; None where a comparison
        is with what is no number.
    """
    low, high = math.inf, -math.inf
    for query in queries:
        found = leaf_of(query)
        bounds = None if found is None else _bounds(found[1])
        if bounds is None:
            return None
        low, high = min(low, bounds[0]), max(high, bounds[1])
    first = queries[0]
    *others, last = first.steps
    leaf = last.stages[0].conditions[0]
    assert not isinstance(leaf, NestedCondition)
    compares = []
    if low == high:
        compares.append(Comparison(Operator.EQ, low))
    else:
        if math.isfinite(low):
            compares.append(Comparison(Operator.GE, low))
        if math.isfinite(high):
            compares.append(Comparison(Operator.LE, high))
    if not compares:
        return existing(first)
    conditions = [replace(leaf, compare=compare) for compare in compares]
    return _main([*others, replace(last, stages=(stage((), conditions),))])


def in_powers(query: NormalQuery) -> NormalQuery:
    """A linear path that compares one number, with bounds at powers of two; others as they are.

    Example:
        >>> from pathcast.query import canonical_text, normalise
        >>> texts = ["//a[@n = 37]", "//a[@n > 37]", "//a[@n <= -3]", "//a[@n = 'x']"]
        >>> [canonical_text(in_powers(normalise(text))) for text in texts]
        ['//a[@n<=64][@n>=32]', '//a[@n>=32]', '//a[@n<=-2]', "//a[@n='x']"]
    """
    found = leaf_of(query)
    bounds = None if found is None else _bounds(found[1])
    if bounds is None:
        return query
    low, high = _power(bounds[0], math.floor), _power(bounds[1], math.ceil)
    if math.isinf(low):
        compares = [Comparison(Operator.LE, high)]
    elif math.isinf(high):
        compares = [Comparison(Operator.GE, low)]
    else:
        compares = [Comparison(Operator.EQ, low), Comparison(Operator.EQ, high)]
    *others, last = query.steps
    leaf = last.stages[0].conditions[0]
    assert not isinstance(leaf, NestedCondition)
    ends = [stage((), (replace(leaf, compare=each),)) for each in compares]
    return hull([NormalQuery((*others, replace(last, stages=(end,)))) for end in ends]) or query


def _power(bound: float, rounded: Callable[[float], int]) -> float:
    """The power of two (or zero) next to a bound, away from what is inside."""
    if bound == 0 or math.isinf(bound):
        return bound
    exponent, to = math.log2(abs(bound)), rounded
    if bound < 0:
        to = math.ceil if rounded is math.floor else math.floor
    power = math.copysign(2.0 ** to(exponent), bound)
    # The logarithm of a number next to a power is rounded.
    is_outside = power > bound if rounded is math.floor else power < bound
    if not is_outside:
        return power
    return power * 2 if (power > 0) == (rounded is math.ceil) else power / 2


def _bounds(compare: Comparison) -> tuple[float, float] | None:
    """Numbers that a value lies between, bounds included, if it compares as asked."""
    constant = compare.constant
    if isinstance(constant, Double):
        return None
    number = number_of(constant) if isinstance(constant, str) else constant
    if not math.isfinite(number):
        return None
    match compare.operator:
        case Operator.EQ:
            return number, number
        case Operator.GT | Operator.GE:
            return number, math.inf
        case Operator.LT | Operator.LE:
            return -math.inf, number
        case _:
            return None


def _linear(query: NormalQuery) -> Iterator[list[Step]]:
    """The linear paths of a path, in the order of the text."""
    waiting: list[tuple[list[Step], tuple[Step, ...]]] = [([], query.steps)]
    while waiting:
        before, (first, *rest) = waiting.pop()
        later: list[tuple[list[Step], tuple[Step, ...]]] = []
        bare = replace(first, stages=())
        # Without its condition, "itself or below" asks for nothing.
        path = before if _is_or_self(first) else [*before, bare]
        conditions = [condition for part in first.stages for condition in part.conditions]
        for condition in conditions:
            if isinstance(condition, NestedCondition):
                later.append((path, condition.steps))
            else:
                yield [*before, replace(first, stages=(stage((), (condition,)),))]
        if rest:
            later.append((path, tuple(rest)))
        elif not conditions and path:
            yield path
        waiting += reversed(later)


def _without_nested(step: Step) -> tuple[Step, list[NestedCondition]]:
    """A step without its nested paths, and these."""
    nested: list[NestedCondition] = []
    stages: list[Stage] = []
    for part in step.stages:
        # A position counts what the conditions before it have left.
        positions = () if nested else part.positions
        others = [each for each in part.conditions if not isinstance(each, NestedCondition)]
        nested += [each for each in part.conditions if isinstance(each, NestedCondition)]
        if stages and not positions:
            last = stages.pop()
            stages.append(stage(last.positions, (*last.conditions, *others)))
        elif positions or others:
            stages.append(stage(positions, others))
    return (replace(step, stages=tuple(stages)) if nested else step), nested


def _with_leaves(query: NormalQuery, change: Callable[[Leaf], Leaf | None]) -> NormalQuery:
    return _main(_changed(query.steps, change))


def _changed(steps: Sequence[Step], change: Callable[[Leaf], Leaf | None]) -> list[Step]:
    """The steps with every comparison changed, or dropped."""
    found = []
    for step in steps:
        conditions = [condition for part in step.stages for condition in part.conditions]
        made = [each for old in conditions if (each := _change(old, change)) is not None]
        if made == conditions:
            found.append(step)
        elif made or not _is_or_self(step):
            stages = (stage((), made),) if made else ()
            found.append(replace(step, stages=stages))
    return found


def _change(condition: Condition, change: Callable[[Leaf], Leaf | None]) -> Condition | None:
    if not isinstance(condition, NestedCondition):
        return change(condition)
    steps = _changed(condition.steps, change)
    return NestedCondition(simplified(steps, is_main=False)) if steps else None


def _existing(leaf: Leaf) -> Leaf | None:
    return None if isinstance(leaf, ValueCondition) else replace(leaf, compare=None)


def _begun(leaf: Leaf, length: int) -> Leaf | None:
    compare = leaf.compare
    if compare is None or compare.operator not in (Operator.EQ, Operator.STARTS_WITH):
        return leaf
    constant = compare.constant
    if not isinstance(constant, str):
        return leaf
    can_begin = isinstance(leaf, ValueCondition) or (
        isinstance(leaf, AttributeCondition) and isinstance(leaf.test, Name)
    )
    if not can_begin or not constant:
        return _existing(leaf)
    if len(constant) <= length:
        return leaf
    return replace(leaf, compare=Comparison(Operator.STARTS_WITH, constant[:length]))


def _without_positions(step: Step) -> Step:
    if not any(part.positions for part in step.stages):
        return step
    conditions = [condition for part in step.stages for condition in part.conditions]
    return replace(step, stages=(stage((), conditions),) if conditions else ())


def _is_or_self(step: Step) -> bool:
    return step.axis is Axis.DESCENDANT_OR_SELF


def _main(steps: list[Step]) -> NormalQuery:
    """A main path; of any message where no step is left."""
    return NormalQuery(simplified(steps or [Step(Axis.CHILD, AnyName())], is_main=True))
