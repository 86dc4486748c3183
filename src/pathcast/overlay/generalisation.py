"""Entries made wider, and which of them pays: content generalisation within a budget.

A *level* is a function from an entry to one that covers it. Entries of one *shape*, which differ in
their constants only, become fewer where a level takes the constants away that tell them apart.
A level keeps a pattern whole, or takes its linear paths apart, as the paper does.

`Optimiser` chooses the levels: from exact entries on it takes the step that has fewest bytes of a
sample of messages wrongly forwarded for each byte of the table that it saves, again and again. What
it passes through is the curve of table bytes against bytes wrongly forwarded.

Example:
    >>> entries = [f"/m/q[@sym='A{n}'] and /m/q/bid[.>{n}]" for n in range(40)]
    >>> shape_of(entries[0]) == shape_of(entries[1]), at_level(entries[3], "one path")
    (True, "/m/q[@sym='A3']")

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1 (content generalisation in Collect() and
Aggregate(); methods by example). Differs: the paper says nothing of when to use which; its one
method in full, the paths common to all disjuncts, is a point beside the curve and not made here.
Levels of whole patterns are beyond the paper, whose entries are linear paths.
"""

from __future__ import annotations

import functools
import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from pathcast.boundary import native
from pathcast.engine import gates_that_hold
from pathcast.overlay.pattern_values import without_value
from pathcast.query import conjunction_of

Level: TypeAlias = Callable[[native.Conjunction], native.Conjunction]


def _whole(change: Callable[[native.NormalPath], native.NormalPath]) -> Level:
    return lambda entry: native.Conjunction([change(path) for path in entry.paths])


def _each(change: Callable[[native.NormalPath], native.NormalPath]) -> Level:
    return lambda entry: native.Conjunction([change(path) for path in entry.linear().paths])


def _one(entry: native.Conjunction) -> native.Conjunction:
    """The path that asks most; of several, the first by text."""
    return native.Conjunction([max(entry.linear().paths, key=lambda path: path.weight)])


def _one_then(change: Callable[[native.NormalPath], native.NormalPath]) -> Level:
    return lambda entry: _each(change)(_one(entry))


LEVELS: Final[Mapping[str, Level]] = MappingProxyType(
    {
        "without value 1": lambda entry: without_value(entry, 0),
        "without value 2": lambda entry: without_value(entry, 1),
        "without value 3": lambda entry: without_value(entry, 2),
        "whole, begins 4": _whole(lambda path: path.begun(4)),
        "whole, begins 2": _whole(lambda path: path.begun(2)),
        "whole, existence": _whole(lambda path: path.existing()),
        "linear": lambda entry: entry.linear(),
        "one path": _one,
        "powers": _each(lambda path: path.in_powers()),
        "one path, powers": _one_then(lambda path: path.in_powers()),
        "begins 4": _each(lambda path: path.begun(4)),
        "begins 2": _each(lambda path: path.begun(2)),
        "begins 1": _each(lambda path: path.begun(1)),
        "one path, begins 2": _one_then(lambda path: path.begun(2)),
        "existence": _each(lambda path: path.existing()),
        "one path, existence": _one_then(lambda path: path.existing()),
        "any parent": _each(lambda path: path.any_parent()),
        "no parents": _each(lambda path: path.without_parents()),
        "structure": _each(lambda path: path.structure()),
        "first 3": _one_then(lambda path: path.structure().cut(3)),
        "first 2": _one_then(lambda path: path.structure().cut(2)),
        "last name": _one_then(lambda path: path.last_name()),
        "anything": lambda _: native.Conjunction([]),
    }
)
"""Name -> a function from an entry to an entry that covers it."""

EXACTLY: Final = "exact"
"""The level of entries that stay as they are."""


@functools.lru_cache(maxsize=1 << 16)
def shape_of(entry: str) -> str:
    """An entry with existence in place of every comparison: equal for those that differ in no more.

    Raises:
        QuerySyntaxError: It is no entry.
    """
    return LEVELS["whole, existence"](conjunction_of(entry)).text


@functools.lru_cache(maxsize=1 << 18)
def at_level(entry: str, level: str) -> str:
    """An entry at a level.

    Raises:
        QuerySyntaxError: It is no entry.
    """
    return entry if level == EXACTLY else LEVELS[level](conjunction_of(entry)).text


@dataclass(frozen=True)
class Point:
    """Tables on the curve, of all links together.

    Attributes:
        table_bytes: Bytes of their entries.
        wrong_bytes: Bytes of the sample that are forwarded and nobody behind the link wants.
        entries: How many.
        shape: The shape whose level was changed last; empty at the exact table.
        level: Its level since then.
    """

    table_bytes: int
    wrong_bytes: int
    entries: int
    shape: str = ""
    level: str = EXACTLY


class Sample:
    """Messages of a stream, and which of them entries hold of.

    Args:
        messages: The messages.
    """

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = list(messages)
        self._sizes = [len(message) for message in messages]
        self._rows: dict[str, int] = {}

    def read(self, entries: Iterable[str]) -> None:
        """Finds out which messages entries hold of, all at once."""
        new = [entry for entry in dict.fromkeys(entries) if entry not in self._rows]
        if not new:
            return
        self._rows.update(dict.fromkeys(new, 0))
        for at, result in enumerate(gates_that_hold(new, self._messages)):
            for entry in (*result.query_ids, *result.verdicts):
                self._rows[entry] |= 1 << at

    def rows(self, entry: str) -> int:
        """The messages that an entry that was read holds of, a bit each."""
        return self._rows[entry]

    def union(self, entries: Iterable[str]) -> int:
        """The messages that one of some entries holds of."""
        return functools.reduce(lambda rows, entry: rows | self._rows[entry], entries, 0)

    def size(self, rows: int) -> int:
        """Bytes of some messages."""
        found = 0
        while rows:
            lowest = rows & -rows
            found += self._sizes[lowest.bit_length() - 1]
            rows ^= lowest
        return found


_Tables: TypeAlias = list[frozenset[str]]
"""Entries by link."""


class Optimiser:
    """Finds levels for the entries that stand behind links, the same ones for all.

    Args:
        links: For each link the entries behind it.
        sample: Messages of the stream.
        entry_bytes: Bytes of an entry besides its text: with many, steps that make entries fewer
            are worth more than those that make them shorter.
        levels: The levels that may be chosen.

    Cost: every entry at every level, some microseconds each, and one pass of the sample over all
    of them.
    """

    def __init__(
        self,
        links: Sequence[Iterable[str]],
        sample: Sample,
        entry_bytes: int,
        levels: Sequence[str] = tuple(LEVELS),
    ) -> None:
        self._sample = sample
        self._entry_bytes = entry_bytes
        behind = [set(entries) for entries in links]
        self._options: dict[str, dict[str, _Tables]] = {}
        for shape, own in _by_shape(behind).items():
            self._options[shape] = {
                level: [frozenset(at_level(entry, level) for entry in each) for each in own]
                for level in (EXACTLY, *levels)
            }
        sample.read(
            entry
            for found in self._options.values()
            for tables in found.values()
            for made in tables
            for entry in made
        )
        self._wanted = [sample.union(entries) for entries in behind]

    def curve(self) -> Iterator[Point]:
        """Tables from the exact ones to that of any message, each smaller than the ones before."""
        chosen = dict.fromkeys(self._options, EXACTLY)
        uses = [
            Counter(entry for found in self._options.values() for entry in found[EXACTLY][link])
            for link in range(len(self._wanted))
        ]
        size = sum(sum(map(self._bytes_of, used)) for used in uses)
        forwarded = self._wanted
        yield Point(size, 0, sum(map(len, uses)))
        is_smaller = True
        while is_smaller:
            is_smaller = False
            steps = [
                (0.0, 0, shape, level)
                for shape, found in self._options.items()
                for level in found
                if level != EXACTLY
            ]
            while steps:
                _, _, shape, level = heapq.heappop(steps)
                before, after = (self._options[shape][at] for at in (chosen[shape], level))
                saved = sum(map(self._saved, uses, before, after))
                if saved <= 0:
                    continue
                reached = [
                    rows | self._sample.union(made)
                    for rows, made in zip(forwarded, after, strict=True)
                ]
                price = self._size_beyond(reached, forwarded) / saved
                # Prices are of when they were asked for; the step that is still least is made.
                if steps and (price, -saved, shape, level) > steps[0]:
                    heapq.heappush(steps, (price, -saved, shape, level))
                    continue
                for of_link, old, new in zip(uses, before, after, strict=True):
                    _swap(of_link, old, new)
                chosen[shape], forwarded, size = level, reached, size - saved
                is_smaller = True
                wrong = self._size_beyond(forwarded, self._wanted)
                yield Point(size, wrong, sum(map(len, uses)), shape, level)

    def _bytes_of(self, entry: str) -> int:
        return self._entry_bytes + len(entry.encode())

    def _saved(self, uses: Counter[str], before: frozenset[str], after: frozenset[str]) -> int:
        """Bytes that a table gets smaller by if a shape has other entries."""
        gone = sum(self._bytes_of(entry) for entry in before - after if uses[entry] == 1)
        return gone - sum(self._bytes_of(entry) for entry in after - before if not uses[entry])

    def _size_beyond(self, rows: Sequence[int], known: Sequence[int]) -> int:
        """Bytes of messages on all links that are in the former and not in the latter."""
        pairs = zip(rows, known, strict=True)
        return sum(self._sample.size(more & ~less) for more, less in pairs)


def _by_shape(links: Sequence[set[str]]) -> dict[str, _Tables]:
    """Shape -> for each link its entries of the shape."""
    found: dict[str, set[str]] = defaultdict(set)
    for entry in sorted(set().union(*links)):
        found[shape_of(entry)].add(entry)
    return {shape: [frozenset(own & each) for each in links] for shape, own in found.items()}


def _swap(uses: Counter[str], before: frozenset[str], after: frozenset[str]) -> None:
    for entry in before:
        uses[entry] -= 1
        if not uses[entry]:
            del uses[entry]
    for entry in after:
        uses[entry] += 1
