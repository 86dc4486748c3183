"""The chunking scheme of the paper: which prefixes a message is cut at, chosen greedily.

Heaviest first. A node that carries no more than one of its children gives way to that child, so
that prefixes are long; what is chosen no longer counts for the nodes above it; and a node that was
chosen before and is now lighter than the new one goes.

Example:
    >>> from pathcast.chunking.query_tree import QueryTree
    >>> tree = QueryTree()
    >>> for path in ("abc", "abd", "abc"):
    ...     tree.add(tuple(("", name) for name in path), 1)
    >>> for pick in picks(tree, 2):
    ...     print("picks", pick.node.text, "drops", [node.text for node in pick.dropped])
    picks /a/b drops []
    picks /a/b/c drops ['/a/b']
    picks /a/b/d drops []

It knows nothing of messages.

Source: Lehner and Irmert, BTW 2003, section 4, Figure 6 (GenerateChunkingScheme), Figures 5 and 7.
Differs, where Figure 6 cannot be meant as it stands (docs/fidelity.md): it goes on while there are
fewer chunks than wanted *and* nodes left, not "or ... all"; the heaviest node is descended from
again and again, and compared itself; "parent" is every ancestor; the node itself keeps its weight,
or the trace of Figure 7 would not come out; the set V, which nothing reads, is left out; and it
ends when nothing with a weight is left.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from pathcast.chunking.query_tree import QueryTree, QueryTreeNode
from pathcast.schema import LabelPath


@dataclass(frozen=True, slots=True)
class Pick:
    """A step of the algorithm.

    Attributes:
        node: What was chosen.
        weight: What it weighed.
        dropped: Chosen before, and lighter now.
    """

    node: QueryTreeNode
    weight: int
    dropped: tuple[QueryTreeNode, ...]


def generate_chunking_scheme(tree: QueryTree, chunks: int) -> tuple[LabelPath, ...]:
    """The prefixes of a chunking scheme.

    Args:
        tree: The query tree; it is not changed.
        chunks: How many are wanted, 1 or more.

    Returns:
        So many or fewer, sorted.

    Cost: O(p (h + log N)) after O(N) with p picks, N nodes and height h: the heaviest node is found
    in a heap, where the paper looks at all.
    """
    chosen: dict[LabelPath, None] = {}
    for pick in picks(tree, chunks):
        for node in pick.dropped:
            del chosen[node.path]
        chosen[pick.node.path] = None
    return tuple(sorted(chosen))


def picks(tree: QueryTree, chunks: int) -> Iterator[Pick]:
    """The steps of the algorithm, as Figure 7 shows them."""
    candidates = tree.candidates()
    weights = {node.path: node.weight for node in tree.nodes()}
    order = {node.path: number for number, node in enumerate(candidates)}
    heap = [(-node.weight, order[node.path], node) for node in candidates]
    heapq.heapify(heap)
    chosen: dict[LabelPath, QueryTreeNode] = {}
    while len(chosen) < min(chunks, len(candidates)):
        heavy = _heaviest(heap, weights, chosen)
        if heavy is None:
            return
        heavy = _descended(heavy, weights, chosen)
        weight = weights[heavy.path]
        for above in heavy.ancestors():
            weights[above.path] = max(weights[above.path] - weight, 0)
            if above.path in order and above.path not in chosen:
                heapq.heappush(heap, (-weights[above.path], order[above.path], above))
        dropped = tuple(node for node in chosen.values() if weights[node.path] < weight)
        for node in dropped:
            del chosen[node.path]
            heapq.heappush(heap, (-weights[node.path], order[node.path], node))
        chosen[heavy.path] = heavy
        yield Pick(heavy, weight, dropped)


def _heaviest(
    heap: list[tuple[int, int, QueryTreeNode]],
    weights: dict[LabelPath, int],
    chosen: dict[LabelPath, QueryTreeNode],
) -> QueryTreeNode | None:
    """The heaviest node that is not chosen; None if none has a weight."""
    while heap:
        negated, _, node = heap[0]
        if node.path in chosen or weights[node.path] != -negated:
            heapq.heappop(heap)
            continue
        return node if negated else None
    return None


def _descended(
    heavy: QueryTreeNode, weights: dict[LabelPath, int], chosen: dict[LabelPath, QueryTreeNode]
) -> QueryTreeNode:
    """The deepest node that carries as much, by way of one child each."""
    while True:
        for child in heavy.children():
            if weights[child.path] == weights[heavy.path] and child.path not in chosen:
                heavy = child
                break
        else:
            return heavy
