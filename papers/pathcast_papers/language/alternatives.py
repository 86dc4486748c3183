"""From patterns of the whole message to paths in normal form.

A pattern of the document node is a set of paths that must all be there. One of them is a path in
normal form as it is. Several are put together at the root element, of which there is one: `/a/b`
and `/a/c` are `/a[b]/c`. Where a path begins with `//`, the root is its first element or is above
it, so that `//a` and `//b` become `/*[.//b]//a`, `/a//b` and `/b//a`. All of this keeps the answer.

Example:
    >>> from pathcast_papers.language.normaliser import normalise
    >>> nested = [NestedCondition(normalise(text).steps) for text in ("//a", "//b")]
    >>> sorted(canonical_text(NormalQuery(path)) for path in joined_paths(nested) or [])
    ['/*[.//b]//a', '/a//b', '/b//a']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pathcast_papers.language.canonical import canonical_text
from pathcast_papers.language.conditions import simplified, stage
from pathcast_papers.language.containment import Pattern, pattern_covers
from pathcast_papers.language.generalising import generalised
from pathcast_papers.language.moving import WAYS_MAX
from pathcast_papers.language.normal import (
    AnyName,
    Axis,
    Condition,
    NameTest,
    NestedCondition,
    NormalQuery,
    Operator,
    Position,
    Step,
)
from pathcast_papers.language.spine import DOCUMENT, Spine, common_test
from pathcast_papers.language.syntax import BinaryOperator
from pathcast_papers.language.values import COMPARISONS

ANY_MESSAGE: Final = (Step(Axis.CHILD, AnyName()),)
"""The path of any message: `/*`."""

COVERED_MAX: Final = 64
"""Paths up to which those that others cover are looked for; each pair is compared."""

NO_MESSAGE: Final = (Step(Axis.CHILD, AnyName(), (stage((Position(Operator.EQ, 2.0),), ()),)),)
"""A path of no message: `/*[position()=2]`."""


def alternatives_of(spines: Sequence[Spine], maximum: int) -> tuple[list[NormalQuery], bool]:
    """The paths of which one is found if one of the patterns is there.

    Args:
        spines: Patterns of the document node; any number.
        maximum: Paths that may be given.

    Returns:
        One path or more, sorted by canonical text, without duplicates; whether they say all that
        the patterns say.
    """
    paths: list[tuple[Step, ...]] = []
    is_all = True
    for spine in spines:
        conditions = _document_conditions(spine)
        joined = joined_paths(conditions, maximum)
        if joined is None:
            joined, is_all = [_strongest(conditions)], False
        paths += joined
    found = _distinct(paths)
    if len(found) > maximum:
        found = _distinct(_strongest(_document_conditions(spine)) for spine in spines)
        is_all = False
    if len(found) > maximum:
        common = generalised(spines, (DOCUMENT,))
        found = _distinct([_strongest(_document_conditions(common))])
    return found or [NormalQuery(NO_MESSAGE)], is_all


def conjunctions_of(spines: Sequence[Spine]) -> list[tuple[NormalQuery, ...]]:
    """The paths that must all be found if a pattern is there, for each of some patterns.

    Nothing is put together at the root element, so a pattern has one conjunction, however many
    paths it asks for.

    Args:
        spines: Patterns of the document node; any number.

    Returns:
        One conjunction or more, each of one path or more; none if no pattern can be there.
    """
    found = [tuple(each.steps for each in _document_conditions(spine)) for spine in spines]
    return [
        tuple(map(NormalQuery, paths or (ANY_MESSAGE,)))
        for paths in found
        if NO_MESSAGE not in paths
    ]


def joined_paths(
    nested: Sequence[NestedCondition], maximum: int = WAYS_MAX
) -> list[tuple[Step, ...]] | None:
    """The paths of which one is found if some paths from the document are all found.

    Args:
        nested: The paths.
        maximum: Main paths that may be given.

    Returns:
        Main paths; none if the root would need two names, None if there are too many.
    """
    if not nested:
        return [ANY_MESSAGE]
    if len(nested) == 1:
        return [nested[0].steps]
    roots: list[tuple[NameTest, tuple[Condition, ...]]] = [(AnyName(), ())]
    for each in nested:
        options = _root_options(each.steps)
        extended: list[tuple[NameTest, tuple[Condition, ...]]] = []
        for test, conditions in roots:
            for other, added in options:
                both = common_test(test, other)
                if both is not None:
                    extended.append((both, conditions + added))
        if len(extended) > maximum:
            return None
        roots = extended
    return [_root_path(test, conditions) for test, conditions in roots]


def _root_options(steps: tuple[Step, ...]) -> list[tuple[NameTest, tuple[Condition, ...]]]:
    """What the root element is like if a path is found."""
    first, *rest = steps
    options: list[tuple[NameTest, tuple[Condition, ...]]] = []
    # The root is the only element of its list.
    if all(_is_first(position) for each in first.stages for position in each.positions):
        conditions = [condition for each in first.stages for condition in each.conditions]
        if rest:
            conditions.append(NestedCondition(simplified(rest, is_main=False)))
        options.append((first.test, tuple(conditions)))
    if first.axis is not Axis.CHILD:
        below = NestedCondition(simplified(list(steps), is_main=False))
        options.append((AnyName(), (below,)))
    return options


def _is_first(position: Position) -> bool:
    holds = COMPARISONS[BinaryOperator(position.operator.value)]
    return holds(1.0, position.number)


def _root_path(test: NameTest, conditions: tuple[Condition, ...]) -> tuple[Step, ...]:
    stages = (stage((), conditions),) if conditions else ()
    return simplified([Step(Axis.CHILD, test, stages)], is_main=True)


def _document_conditions(spine: Spine) -> list[NestedCondition]:
    (document,) = spine
    found = (each for part in document.stages for each in part.conditions)
    return list(dict.fromkeys(each for each in found if isinstance(each, NestedCondition)))


def _strongest(nested: Sequence[NestedCondition]) -> tuple[Step, ...]:
    """The path that says most, by its length, of paths that must all be found."""
    paths = [each.steps for each in nested]
    lengths = [len(canonical_text(NormalQuery(steps))) for steps in paths]
    return paths[lengths.index(max(lengths))] if paths else ANY_MESSAGE


def _distinct(paths: Iterable[tuple[Step, ...]]) -> list[NormalQuery]:
    """The paths in order, without those that hold only where another does."""
    by_text = {canonical_text(query): query for query in map(NormalQuery, paths)}
    if canonical_text(NormalQuery(ANY_MESSAGE)) in by_text:
        return [NormalQuery(ANY_MESSAGE)]
    left = [by_text[text] for text in sorted(by_text) if by_text[text].steps != NO_MESSAGE]
    if len(left) > COVERED_MAX:
        return left
    patterns = [Pattern(query) for query in left]
    for pattern in list(patterns):
        if any(each is not pattern and pattern_covers(each, pattern) for each in patterns):
            patterns.remove(pattern)
    return [pattern.query for pattern in patterns]
