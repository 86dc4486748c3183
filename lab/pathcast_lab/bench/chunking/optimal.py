"""The best chunking scheme by dynamic programming over the query tree, beside the greedy one.

What a query costs is taken to be its weight times the size of the chunk that it is evaluated on, as
the paper observes of evaluation query by query. Two goals can be asked for: the least cost of all
queries one after another, or the least cost of the dearest chunk, which is when the last delivery
is made if chunks are evaluated side by side. The potpourri counts in both, at the size of the whole
message.

Example:
    >>> from pathcast.chunking.query_tree import QueryTree
    >>> tree = QueryTree()
    >>> a, b, c = ("", "a"), ("", "b"), ("", "c")
    >>> tree.add((a, b, c), 10); tree.add((a, b), 1)
    >>> sizes = Sizes(1_000, {(a,): 1_000, (a, b): 900, (a, b, c): 10})
    >>> optimal_scheme(tree, sizes, 1) == ((a, b, c),), cost(tree, sizes, ((a, b, c),)).total
    (True, 1100)

Filter nodes and the cutting itself are not counted.

Source: beyond Lehner and Irmert, BTW 2003, whose Figure 6 looks at weights alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import TypeAlias

from pathcast.chunking.query_tree import QueryTree, QueryTreeNode
from pathcast.schema import LabelPath

_Choice: TypeAlias = tuple[int, tuple[LabelPath, ...]]
"""What is to be least, and the prefixes that make it so."""


class Goal(Enum):
    """The quantity that a scheme minimises."""

    TOTAL = "total"
    """The cost of all chunks and the potpourri together."""
    SLOWEST = "slowest"
    """The cost of the dearest of them."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the subtrees at label paths are, in bytes or elements.

    Attributes:
        whole: The message.
        subtrees: Label path -> all subtrees there together; what is missing is not in the message.
    """

    whole: int
    subtrees: Mapping[LabelPath, int]

    def of(self, path: LabelPath) -> int:
        """Of a label path."""
        return self.subtrees.get(path, 0)


@dataclass(frozen=True, slots=True)
class SchemeCost:
    """The cost of a scheme: weight times size.

    Attributes:
        chunks: Of each prefix.
        potpourri: Of what is evaluated on the whole message.
    """

    chunks: Mapping[LabelPath, int]
    potpourri: int

    @property
    def total(self) -> int:
        """All together."""
        return sum(self.chunks.values()) + self.potpourri

    @property
    def slowest(self) -> int:
        """The dearest."""
        return max([*self.chunks.values(), self.potpourri])

    def by(self, goal: Goal) -> int:
        """By a goal."""
        return self.total if goal is Goal.TOTAL else self.slowest


def cost(tree: QueryTree, sizes: Sizes, prefixes: Iterable[LabelPath]) -> SchemeCost:
    """Compute the cost of a scheme."""
    chosen = set(prefixes)
    chunks = dict.fromkeys(sorted(chosen), 0)
    potpourri = tree.document.own * sizes.whole
    for node in tree.nodes():
        lengths = (n for n in range(len(node.path), 0, -1) if node.path[:n] in chosen)
        length = next(lengths, 0)
        if length:
            prefix = node.path[:length]
            chunks[prefix] += node.own * sizes.of(prefix)
        else:
            potpourri += node.own * sizes.whole
    return SchemeCost(chunks, potpourri)


def optimal_scheme(
    tree: QueryTree, sizes: Sizes, chunks: int, goal: Goal = Goal.TOTAL
) -> tuple[LabelPath, ...]:
    """The prefixes of a best scheme of so many chunks or fewer, sorted.

    Args:
        tree: The query tree; it is not changed.
        sizes: Of the messages that are expected.
        chunks: How many at most.
        goal: What it is to be best in.

    Cost: O(N h C²) for the total with N nodes, height h and C chunks; O(N C² log W) for the
    slowest, W its cost without chunks.
    """
    if goal is Goal.TOTAL:
        return tuple(sorted(_least_total(tree, sizes, chunks)))
    low, high = 0, tree.document.weight * sizes.whole
    best: tuple[LabelPath, ...] = ()
    while low < high:
        middle = (low + high) // 2
        found = _within(tree, sizes, chunks, middle)
        if found is None:
            low = middle + 1
        else:
            best, high = found, cost(tree, sizes, found).slowest
    return tuple(sorted(best))


def by_size(sizes: Sizes, goal: Goal) -> Callable[[QueryTree, int], tuple[LabelPath, ...]]:
    """A choice of prefixes for `Chunking` that takes the best for these sizes."""
    return lambda tree, chunks: optimal_scheme(tree, sizes, chunks, goal)


def _bottom_up(tree: QueryTree) -> list[QueryTreeNode]:
    return list(tree.nodes())[::-1]


def _least_total(tree: QueryTree, sizes: Sizes, chunks: int) -> tuple[LabelPath, ...]:
    """For every node, ancestor whose chunk it would fall to, and number of chunks: the least cost.

    Tables are indexed by the length of that ancestor's path (0 is the potpourri), then by how many
    chunks are cut in the subtree.
    """
    tables: dict[LabelPath, list[list[_Choice]]] = {}
    for node in _bottom_up(tree):
        below = [tables.pop(child.path) for child in node.children()]
        rows: list[list[_Choice]] = []
        depth = len(node.path)
        for length in range(depth + 1):
            size = sizes.of(node.path[:length]) if length else sizes.whole
            row: list[_Choice] = [(node.own * size, ())]
            for table in below:
                row = _joined(row, table[length], chunks)
            rows.append(row)
        own = rows.pop()
        if depth > 1:
            cut = [(value, (*paths, node.path)) for value, paths in own[:chunks]]
            rows = [_or_cut(row, cut) for row in rows]
        tables[node.path] = rows
    row = [(tree.document.own * sizes.whole, ())]
    for child in tree.document.children():
        row = _joined(row, tables[child.path][0], chunks)
    return min(row, key=lambda choice: choice[0])[1]


def _joined(left: list[_Choice], right: list[_Choice], chunks: int) -> list[_Choice]:
    """By how many chunks are cut in both together."""
    found: list[_Choice | None] = [None] * (min(len(left) + len(right) - 2, chunks) + 1)
    for (i, (a, p)), (j, (b, q)) in product(enumerate(left), enumerate(right)):
        if i + j < len(found):
            present = found[i + j]
            if present is None or a + b < present[0]:
                found[i + j] = (a + b, p + q)
    return [each for each in found if each is not None]


def _or_cut(row: list[_Choice], cut: list[_Choice]) -> list[_Choice]:
    """The better of leaving a node and of cutting at it, which takes a chunk more."""
    found = [*row]
    for place, choice in enumerate(cut, start=1):
        if place == len(found):
            found.append(choice)
        elif choice[0] < found[place][0]:
            found[place] = choice
    return found


def _within(tree: QueryTree, sizes: Sizes, chunks: int, most: int) -> tuple[LabelPath, ...] | None:
    """Prefixes with which no chunk costs more than so much; None if there are none.

    For every node and number of chunks: the least weight that is left to those above. What is less
    there is better everywhere, so one number is enough.
    """
    tables: dict[LabelPath, list[_Choice]] = {}
    for node in _bottom_up(tree):
        row: list[_Choice] = [(node.own, ())]
        for child in node.children():
            row = _joined(row, tables.pop(child.path), chunks)
        if len(node.path) > 1:
            size = sizes.of(node.path)
            cut = [
                (0, (*paths, node.path)) if weight * size <= most else (weight, paths)
                for weight, paths in row[:chunks]
            ]
            row = _or_cut(row, cut)
        tables[node.path] = row
    row = [(tree.document.own, ())]
    for child in tree.document.children():
        row = _joined(row, tables[child.path], chunks)
    weight, paths = min(row, key=lambda choice: choice[0])
    return paths if weight * sizes.whole <= most else None
