"""Which of many queries are covered by another one, without comparing all pairs.

A query can cover another only if the other offers every name, and every constant of an equality,
that it asks for. Each query is filed under the rarest of these; a query is compared with what is
filed under something that it offers. Queries that cover something are tried first from then on, so
that thousands of thresholds on one price (`[@price > 1]`, `[@price > 2]`, ...) take one comparison
each. The number of comparisons is bounded, and what was left out is counted.

Example:
    >>> from pathcast.query import normalise
    >>> texts = ["//a", "/x/a[@n > 5]", "/x/a[@n > 3]", "/b"]
    >>> found = coverings([Alternatives((normalise(text),)) for text in texts])
    >>> sorted(found.covered_by), found.left_out
    ([1, 2], 0)

It finds one query that covers, not all, and does not order them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from pathcast.query.containment import Pattern, pattern_covers
from pathcast.query.normal import (
    NO_MESSAGE,
    AnyIn,
    AnyNamespace,
    AttributeCondition,
    Comparison,
    Condition,
    Constant,
    Double,
    Name,
    NameTest,
    NestedCondition,
    NormalQuery,
    Operator,
    Step,
    TextCondition,
    ValueCondition,
)
from pathcast.query.values import double_of

COMPARISONS_MAX: Final = 300_000
"""Comparisons of two queries in one call; some tens of microseconds each, so some seconds."""

CANDIDATES_MAX: Final = 3_000
"""Queries that one query is compared with; leaves something of the bound to the others."""

PREFIX_MAX: Final = 64
"""Characters of a prefix that queries are filed under."""

Token: TypeAlias = tuple[str, str | float, str]
"""A name or constant: what it is, and two words for it."""


@dataclass(frozen=True)
class Alternatives:
    """A query as what `coverings` compares: satisfied if one of some paths is.

    What comparing needs is made once, when it is first asked for.

    Attributes:
        paths: The paths; one or more.
        is_exact: False if more must hold than one of the paths, as for an expression that is
            evaluated on candidates. Such a query can be covered, but covers nothing.
    """

    paths: tuple[NormalQuery, ...]
    is_exact: bool = True

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """The paths, made ready to be compared."""
        return tuple(Pattern(path) for path in self.paths)

    @property
    def can_match(self) -> bool:
        """False if steps or conditions of every path exclude each other."""
        return any(
            path.steps != NO_MESSAGE and pattern.can_match
            for path, pattern in zip(self.paths, self.patterns, strict=True)
        )

    @cached_property
    def wanted(self) -> tuple[frozenset[Token], ...]:
        """For each path, the names and constants that a query covered by it must have."""
        return tuple(frozenset(_wanted(path)) for path in self.paths)

    @cached_property
    def offered(self) -> tuple[frozenset[Token], ...]:
        """For each path, the names and constants that it has."""
        return tuple(frozenset(_offered(path)) for path in self.paths)

    def may_cover(self, special: Alternatives) -> bool:
        """Whether names and constants leave it open that another query is covered."""
        return all(any(wanted <= offered for wanted in self.wanted) for offered in special.offered)

    def covers(self, special: Alternatives) -> bool:
        """Whether every message that satisfies another query satisfies this one; sound.

        Example:
            >>> from pathcast.query import normalise
            >>> a, b, c = (normalise(text) for text in ("//a", "//b", "/x/b"))
            >>> Alternatives((a, b)).covers(Alternatives((c,)))
            True
        """
        return self.is_exact and all(
            any(pattern_covers(mine, theirs) for mine in self.patterns)
            for theirs in special.patterns
        )


@dataclass(frozen=True, slots=True)
class Coverings:
    """The result of `coverings`.

    Attributes:
        covered_by: Number of a query -> number of one that covers it. Two queries that cover each
            other, which are equal, may both be here.
        comparisons: Comparisons of two queries that were made.
        left_out: Pairs, at most, that were not compared because of the bounds.
    """

    covered_by: Mapping[int, int]
    comparisons: int
    left_out: int


def coverings(
    queries: Sequence[Alternatives],
    *,
    comparisons_max: int = COMPARISONS_MAX,
    candidates_max: int = CANDIDATES_MAX,
) -> Coverings:
    """Finds for each query another one that covers it, if there is one.

    Args:
        queries: The queries; equal ones cover each other, so leave out duplicates.
        comparisons_max: Comparisons in all.
        candidates_max: Comparisons for one query.

    Returns:
        What was found, and how much was left out.

    Cost: about 30 µs a comparison; for 10,000 mixed queries some seconds.
    """
    return _Search(queries, candidates_max).run(comparisons_max)


class _Search:
    def __init__(self, entries: Sequence[Alternatives], candidates_max: int) -> None:
        self.entries = entries
        self.candidates_max = candidates_max
        asked = Counter(token for entry in entries for tokens in entry.wanted for token in tokens)
        self.filed: dict[Token | None, list[int]] = {}
        # The query that asks for the least is the likeliest to cover.
        by_size = sorted(
            range(len(entries)), key=lambda at: sum(len(tokens) for tokens in entries[at].wanted)
        )
        for number in by_size:
            entry = entries[number]
            if entry.is_exact and entry.can_match:
                keys = {
                    min(tokens, key=lambda token: (asked[token], token[0]), default=None)
                    for tokens in entry.wanted
                }
                for key in keys:
                    self.filed.setdefault(key, []).append(number)

    def run(self, comparisons_max: int) -> Coverings:
        covered_by: dict[int, int] = {}
        comparisons = left_out = 0
        for number, entry in enumerate(self.entries):
            if not entry.can_match:
                continue
            drawers = self.drawers(entry)
            bound = min(self.candidates_max, comparisons_max - comparisons)
            found, made = self.cover_of(number, drawers, bound)
            comparisons += made
            if found is not None:
                covered_by[number] = found
            elif made == bound:
                left_out += max(0, sum(len(drawer) for drawer in drawers) - 1 - made)
        return Coverings(covered_by, comparisons, left_out)

    def drawers(self, special: Alternatives) -> list[list[int]]:
        """Where what might cover a query is filed."""
        keys: list[Token | None] = [None, *sorted(special.offered[0], key=repr)]
        return [self.filed[key] for key in keys if key in self.filed]

    def cover_of(
        self, number: int, drawers: Sequence[list[int]], comparisons_max: int
    ) -> tuple[int | None, int]:
        """The query that covers one, None if none was found, and the comparisons made."""
        special = self.entries[number]
        made = 0
        for drawer in drawers:
            for place, general in enumerate(drawer):
                if general == number or not self.entries[general].may_cover(special):
                    continue
                if made >= comparisons_max:
                    return None, made
                made += 1
                if self.entries[general].covers(special):
                    # What has covered one query likely covers the next one, too.
                    drawer.insert(0, drawer.pop(place))
                    return general, made
        return None, made


def _wanted(query: NormalQuery) -> Iterator[Token]:
    """The tokens that a query must offer to be covered."""
    for step in _steps(query.steps):
        yield from _name_tokens("element", step.test)
        for condition in _conditions(step):
            if isinstance(condition, AttributeCondition):
                yield from _name_tokens("attribute", condition.test)
            compare = _compare(condition)
            if compare is not None and compare.operator is Operator.EQ:
                yield ("=", _plain(compare.constant), "")
            elif compare is not None and compare.operator is Operator.STARTS_WITH:
                yield ("begins", str(compare.constant)[:PREFIX_MAX], "")


def _offered(query: NormalQuery) -> Iterator[Token]:
    """The tokens that a query offers to those that may cover it."""
    for step in _steps(query.steps):
        yield from _offered_names("element", step.test)
        for condition in _conditions(step):
            if isinstance(condition, AttributeCondition):
                yield from _offered_names("attribute", condition.test)
            compare = _compare(condition)
            if compare is not None:
                yield from _offered_constants(compare)


def _offered_constants(compare: Comparison) -> Iterator[Token]:
    constant = compare.constant
    if compare.operator in _PINNING:
        yield ("=", _plain(constant), "")
        if isinstance(constant, str) and not math.isnan(number := double_of(constant)):
            yield ("=", number, "")
    if compare.operator in _BEGINNING and isinstance(constant, str):
        for end in range(1, min(len(constant), PREFIX_MAX) + 1):
            yield ("begins", constant[:end], "")


def _plain(constant: Constant | Double) -> Constant:
    """A number that follows from both ways of reading it, or a string."""
    return constant.number if isinstance(constant, Double) else constant


_BEGINNING: Final = (Operator.EQ, Operator.STARTS_WITH)
"""What says how a value begins."""

_PINNING: Final = (Operator.EQ, Operator.LE, Operator.GE)
"""What can say that a value is a constant; two orders can, together."""


def _name_tokens(kind: str, test: NameTest) -> Iterator[Token]:
    match test:
        case Name(uri, local):
            yield (kind, uri, local)
        case AnyIn(uri):
            yield (kind + " in", uri, "")
        case AnyNamespace(local):
            yield (kind + " named", local, "")


def _offered_names(kind: str, test: NameTest) -> Iterator[Token]:
    yield from _name_tokens(kind, test)
    if isinstance(test, Name):
        yield (kind + " in", test.uri, "")
        yield (kind + " named", test.local, "")


def _steps(steps: Iterable[Step]) -> Iterator[Step]:
    """All steps of a path and of its nested paths."""
    waiting = list(steps)
    while waiting:
        step = waiting.pop()
        yield step
        for condition in _conditions(step):
            if isinstance(condition, NestedCondition):
                waiting.extend(condition.steps)


def _conditions(step: Step) -> Iterator[Condition]:
    for stage in step.stages:
        yield from stage.conditions


def _compare(condition: Condition) -> Comparison | None:
    match condition:
        case AttributeCondition(compare=compare) | TextCondition(compare=compare):
            return compare
        case ValueCondition(compare=compare):
            return compare
        case NestedCondition():
            return None
