"""Containment: does every message that satisfies one query satisfy another?

`covers(p, q)` is sound: if it says True, whatever matches `q` matches `p`. It looks for a mapping
of the steps of `p` to steps of `q` that keeps names, distances, conditions and branches. Bare
wildcards of `p` are no steps to be mapped but distances: `/a/*//b` is an `a` and a `b` two levels
or more below, whichever of the ways to write that was chosen.

The test is complete (False means that some message tells the two apart) for

- linear paths: `/`, `//`, `*` and names of all four kinds, without predicates;
- `/`, `//` and nested paths without `*`; `/`, `*` and nested paths without `//`.

Beyond these it is sound: a comparison is implied by comparisons of the same value
(`pathcast.query.implication`), positions by positions in the same list.

Example:
    >>> from pathcast.query import normalise
    >>> wide, narrow = normalise("//quote[@price > 3]"), normalise("/m/quote[@price > 5][sym]/x")
    >>> covers(wide, narrow), covers(narrow, wide)
    (True, False)
    >>> covers(normalise("/a//*/b"), normalise("/a//c//d/b"))
    True

It speaks of messages, not of a schema: nothing that a DTD excludes is taken into account.

Source: Miklau and Suciu, "Containment and equivalence for a fragment of XPath", JACM 2004, for
homomorphisms of tree patterns and their limits. Differs: distances instead of wildcards, which
makes the test complete for linear paths; docs/lint.md has the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pathcast.query.implication import (
    NOTHING_KNOWN,
    Facts,
    always_holds_for_count,
    can_hold_for_count,
    holds_for_number,
    implies,
)
from pathcast.query.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Name,
    NameTest,
    NestedCondition,
    NormalQuery,
    Operator,
    Position,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
)

COVERED_MAX: Final = 64
"""Paths up to which those that others cover are looked for; each pair is compared."""

_Leaf: TypeAlias = AttributeCondition | TextCondition | ValueCondition


def covers(general: NormalQuery, special: NormalQuery) -> bool:
    """Whether every message that satisfies `special` satisfies `general`.

    Args:
        general: The query that may be satisfied by more messages.
        special: The query that may be satisfied by fewer.

    Returns:
        True if it is proved; False otherwise. See the module for where False is proved, too.

    Cost: steps of the one times steps of the other (times the wildcards between two names).
    """
    return pattern_covers(Pattern(general), Pattern(special))


def can_match(query: NormalQuery) -> bool:
    """Whether some message may satisfy a query; False only if its conditions exclude each other.

    Example:
        >>> from pathcast.query import normalise
        >>> can_match(normalise("/a[@x='1' and @x='2']")), can_match(normalise("/a[b='1'][b='2']"))
        (False, True)
    """
    return Pattern(query).can_match


def is_implied_name(wanted: NameTest, known: NameTest) -> bool:
    """Whether every name that passes one test passes another.

    Example:
        >>> is_implied_name(AnyNamespace("a"), Name("urn:x", "a"))
        True
    """
    if wanted == known or isinstance(wanted, AnyName):
        return True
    if isinstance(known, Name):
        if isinstance(wanted, AnyIn):
            return wanted.uri == known.uri
        return isinstance(wanted, AnyNamespace) and wanted.local == known.local
    return False


@dataclass(eq=False, slots=True)
class _Branch:
    """A demand below an element: an anchor at a distance, or mere depth.

    Attributes:
        distance: Levels down, at least or exactly.
        is_exact: Whether exactly.
        anchor: Number of the anchor; None if any element so far down will do.
    """

    distance: int
    is_exact: bool
    anchor: int | None


@dataclass(eq=False, slots=True)
class _Anchor:
    """A step that is more than a bare wildcard; the document node has none."""

    step: Step | None
    leaves: list[_Leaf] = field(default_factory=list)
    branches: list[_Branch] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Target:
    """A step as something that anchors are mapped to.

    Attributes:
        step: The step; None for the document node.
        parent: Number of the target it leads on from.
        distance: 0 for `//.`, else 1: levels below the parent, at least.
        is_exact: Whether exactly.
        below: Levels that are certainly below.
        by_attribute: Name tests, and what is known of one attribute that passes each.
        value: What is known of the element's value.
        texts: What is known of one text node each.
        can_be: False if the conditions of the step exclude each other; nothing is known then.
    """

    step: Step | None
    parent: int
    distance: int
    is_exact: bool
    below: int = 0
    by_attribute: list[tuple[NameTest, Facts]] = field(default_factory=list)
    value: Facts = NOTHING_KNOWN
    texts: list[Facts] = field(default_factory=list)
    can_be: bool = True


class Pattern:
    """A query made ready to be compared with many others, in both roles.

    Attributes:
        query: The query.
        can_match: False if its conditions exclude each other.
    """

    def __init__(self, query: NormalQuery) -> None:
        self.query = query
        self._anchors = [_Anchor(None)]
        self._targets = [_Target(None, -1, 0, True)]
        self._add(query.steps)
        for target in reversed(self._targets[1:]):
            parent = self._targets[target.parent]
            parent.below = max(parent.below, target.distance + target.below)
        self.can_match = all(target.can_be for target in self._targets)
        self._by_name: dict[NameTest, list[int]] = {}
        for at, target in enumerate(self._targets):
            if target.step is not None:
                self._by_name.setdefault(target.step.test, []).append(at)

    @property
    def anchors(self) -> Sequence[_Anchor]:
        """The document node, then the steps that are more than bare wildcards, parents first."""
        return self._anchors

    @property
    def targets(self) -> Sequence[_Target]:
        """The document node, then all steps, parents first."""
        return self._targets

    @property
    def by_name(self) -> Mapping[NameTest, Sequence[int]]:
        """Node test -> the targets that have it."""
        return self._by_name

    def _add(self, steps: tuple[Step, ...]) -> None:
        waiting: list[tuple[tuple[Step, ...], int, int]] = [(steps, 0, 0)]
        while waiting:
            path, anchor, target = waiting.pop()
            distance, is_exact = 0, True
            for step in path:
                distance += step.axis is not Axis.DESCENDANT_OR_SELF
                is_exact = is_exact and step.axis is Axis.CHILD
                self._targets.append(_new_target(step, target))
                target = len(self._targets) - 1
                if isinstance(step.test, AnyName) and not step.stages:
                    continue
                self._anchors.append(_Anchor(step))
                number = len(self._anchors) - 1
                self._anchors[anchor].branches.append(_Branch(distance, is_exact, number))
                anchor, distance, is_exact = number, 0, True
                for condition in _conditions(step.stages):
                    if isinstance(condition, NestedCondition):
                        waiting.append((condition.steps, anchor, target))
                    else:
                        self._anchors[anchor].leaves.append(condition)
            if distance:
                self._anchors[anchor].branches.append(_Branch(distance, False, None))


def pattern_covers(general: Pattern, special: Pattern) -> bool:
    """`covers` for queries that were made ready."""
    if not special.can_match or general.query == special.query:
        return True
    found: list[set[int]] = [set()] * len(general.anchors)
    # Children stand after their parents: from the last to the first, each is known when asked for.
    for number in range(len(general.anchors) - 1, -1, -1):
        anchor = general.anchors[number]
        fits = _fitting(anchor, special)
        for branch in anchor.branches:
            if not fits:
                return False
            _keep_with_branch(fits, branch, special.targets, found)
        if not fits:
            return False
        found[number] = fits
    return True


def _keep_with_branch(
    fits: set[int], branch: _Branch, targets: Sequence[_Target], found: Sequence[set[int]]
) -> None:
    """Drops the targets below which a branch is not found."""
    if branch.anchor is None:
        fits.difference_update([at for at in fits if targets[at].below < branch.distance])
    elif branch.is_exact:
        fits &= _above_exactly(found[branch.anchor], branch.distance, targets)
    else:
        farthest = _farthest(found[branch.anchor], targets)
        fits.difference_update([at for at in fits if farthest.get(at, -1) < branch.distance])


def _above_exactly(ends: Iterable[int], distance: int, targets: Sequence[_Target]) -> set[int]:
    """The targets that stand exactly so many levels above some of the given ones."""
    here = set(ends)
    for _ in range(distance):
        here = {targets[at].parent for at in here if targets[at].is_exact and at}
    return here


def _farthest(ends: Iterable[int], targets: Sequence[_Target]) -> dict[int, int]:
    """For the targets around some given ones, how far below one of those certainly is."""
    farthest = dict.fromkeys(ends, 0)
    # Parents stand before their children: each is reached before it is asked for its own parent.
    for at in range(max(farthest, default=0), 0, -1):
        far = farthest.get(at)
        if far is not None:
            target = targets[at]
            far += target.distance
            if farthest.get(target.parent, -1) < far:
                farthest[target.parent] = far
    return farthest


def _fitting(anchor: _Anchor, special: Pattern) -> set[int]:
    """The targets whose elements pass a step, its branches aside."""
    step, targets = anchor.step, special.targets
    if step is None:
        return {0}
    if isinstance(step.test, Name):
        # Nothing but the same name makes sure of a name.
        fits = special.by_name.get(step.test, ())
    else:
        fits = [
            at
            for at, target in enumerate(targets)
            if target.step is not None and is_implied_name(step.test, target.step.test)
        ]
    return {
        at
        for at in fits
        if all(_is_implied(leaf, targets[at]) for leaf in anchor.leaves)
        and _positions_are_implied(step, targets[at].step)
    }


def _is_implied(leaf: _Leaf, target: _Target) -> bool:
    match leaf:
        case AttributeCondition(test, compare):
            return any(
                is_implied_name(test, known) and (compare is None or facts.imply(compare))
                for known, facts in target.by_attribute
            )
        case TextCondition(compare):
            return any(compare is None or facts.imply(compare) for facts in target.texts)
        case ValueCondition(compare):
            if target.value.imply(compare):
                return True
            # The value of an element contains what one of its text nodes contains.
            return compare.operator is Operator.CONTAINS and any(
                facts.imply(compare) for facts in target.texts
            )


def _positions_are_implied(wanted: Step, known: Step | None) -> bool:
    """Whether an element at the positions of one step is at those of another.

    Positions count in a list: the two lists must be the same, which equal node tests and equal
    predicates before the position ensure.
    """
    counted = [number for number, stage in enumerate(wanted.stages) if stage.positions]
    if not counted:
        return True
    if known is None:
        return False
    last = counted[-1]
    if wanted.test != known.test or len(known.stages) <= last:
        return False
    if wanted.stages[:last] != known.stages[:last]:
        return False
    given = known.stages[last].positions
    return all(_position_is_implied(given, position) for position in wanted.stages[last].positions)


def _position_is_implied(known: Sequence[Position], wanted: Position) -> bool:
    for position in known:
        if position == wanted:
            return True
        if position.operator is Operator.EQ:
            return holds_for_number(position.number, wanted.operator, wanted.number)
    if always_holds_for_count(wanted.operator, wanted.number, least=1):
        return True
    compares = [Comparison(position.operator, position.number) for position in known]
    return implies(compares, Comparison(wanted.operator, wanted.number))


def _new_target(step: Step, parent: int) -> _Target:
    is_or_self = step.axis is Axis.DESCENDANT_OR_SELF
    target = _Target(step, parent, 0 if is_or_self else 1, step.axis is Axis.CHILD)
    named: dict[NameTest, list[Comparison]] = {}
    values: list[Comparison] = []
    others: list[tuple[NameTest | None, list[Comparison]]] = []
    for condition in _conditions(step.stages):
        match condition:
            case AttributeCondition(test, compare):
                compares = [] if compare is None else [compare]
                if isinstance(test, Name):
                    # An element has one attribute of a name: all is said of the same value.
                    named.setdefault(test, []).extend(compares)
                else:
                    others.append((test, compares))
            case TextCondition(compare):
                others.append((None, [] if compare is None else [compare]))
            case ValueCondition(compare):
                values.append(compare)
            case NestedCondition():
                pass
    target.can_be = all(
        can_hold_for_count([(at.operator, at.number) for at in stage.positions], least=1)
        for stage in step.stages
    )
    value = Facts.of(values)
    target.can_be = target.can_be and value is not None
    target.value = value or NOTHING_KNOWN
    for of, compares in [*named.items(), *others]:
        facts = Facts.of(compares)
        if facts is None:
            target.can_be = False
        elif of is None:
            target.texts.append(facts)
        else:
            target.by_attribute.append((of, facts))
    return target


def _conditions(stages: Iterable[Stage]) -> list[Condition]:
    return [condition for stage in stages for condition in stage.conditions]
