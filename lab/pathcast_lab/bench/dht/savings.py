"""What becomes of a trace's messages if fewer are sent: in pieces, with caches, in batches.

All of it is arithmetic over the visits that the paper's execution hands over at l = 0. Parts and
caches are chosen by some documents (the sample) and counted over others.

Source: none of it is the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathcast_lab.bench.dht.documents import Documents, totals
from pathcast_lab.bench.dht.pieces import TOP, Pieces
from pathcast_lab.bench.dht.replay import Floats
from pathcast_lab.bench.dht.ring import Ring
from pathcast_lab.bench.dht.trace import Trace

__all__ = [
    "ENTRY_BYTES",
    "PieceTraffic",
    "by_piece",
    "in_batches",
    "in_pieces",
    "load_and_hits",
    "with_cache",
]

ENTRY_BYTES = 8
"""Of an entry of a piece in a message: a number of an element and one of a state."""


def load_and_hits(trace: Trace, documents: range) -> tuple[Floats, NDArray[np.int64]]:
    """Visits of each state that are handed over, and documents that visit it, of some documents."""
    pairs = _pairs(trace.documents, documents)
    occurs = totals(
        trace.documents.pair_node[pairs], trace.documents.counts[pairs], len(trace.documents.above)
    )
    load = totals(trace.state, occurs[trace.node], len(trace.table))
    hits = np.zeros(len(trace.table), np.int64)
    rows = np.flatnonzero(trace.is_done)
    for seen in _seen(trace, rows, trace.state[rows], len(hits), documents, 1):
        hits += seen
    return load, hits


def in_batches(trace: Trace, is_sent: NDArray[np.bool_], documents: range, batch: int) -> float:
    """Messages a document, if what goes from one state to another at one level goes in one.

    Args:
        trace: At l = 0.
        is_sent: Which visits go to another peer.
        documents: Which.
        batch: How many documents travel together; with one, only siblings do.
    """
    rows = np.flatnonzero(is_sent)
    origin = np.where(trace.source >= 0, trace.state[trace.source], 0)[rows].astype(np.int64)
    level = trace.documents.level[trace.node[rows]]
    key = (origin * len(trace.table) + trace.state[rows]) * (int(level.max()) + 1) + level
    found, ids = np.unique(key, return_inverse=True)
    total = sum(int(seen.sum()) for seen in _seen(trace, rows, ids, len(found), documents, batch))
    return total / len(documents)


def with_cache(
    trace: Trace, is_sent: NDArray[np.bool_], documents: range, load: Floats, states: int
) -> float:
    """Messages a document, if every peer has copies of the states that are visited most.

    Who comes to a state that it has a copy of does the visit itself.

    Args:
        trace: At l = 0.
        is_sent: Which visits go to another peer without copies.
        documents: Which.
        load: Of states, in the sample.
        states: How many have copies; what leads to them has too.
    """
    is_kept = np.zeros(len(trace.table), bool)
    is_kept[np.argsort(-load, kind="stable")[:states]] = load.max() > 0
    for level in reversed(trace.table.levels()[1:]):
        is_kept[trace.table.parent[level[is_kept[level]]]] = True
    origin = np.where(trace.source >= 0, trace.state[trace.source], 0)
    # A visit that a copy hands over comes from anywhere.
    sent = (is_sent | is_kept[origin]) & ~is_kept[trace.state]
    by_node = totals(trace.node, sent, len(trace.documents.above))
    pairs = _pairs(trace.documents, documents)
    counts = trace.documents.counts[pairs] * by_node[trace.documents.pair_node[pairs]]
    return float(counts.sum() / len(documents))


@dataclass(frozen=True)
class PieceTraffic:
    """Means over documents, if pieces are run by one peer each.

    Attributes:
        messages: One for each peer that has an entered piece, and one with what the top accepts.
        whole: Bytes, if every message has the whole document.
        below: Bytes, if it has what lies below the elements where a piece is entered.
        read: Bytes of the elements that a piece has an active state at: nobody could send less.
        entries: Where pieces are entered, a document.
        top_work: Share of all visits that the publisher does itself.
        peer_work: Largest share of all visits that one peer does.
        peer_states: Largest share of all states that one peer has, without the top.
        peer_messages: Largest share of all messages that one peer gets.
        hops: Mean over documents of the longest look-up.
    """

    messages: float
    whole: float
    below: float
    read: float
    entries: float
    top_work: float
    peer_work: float
    peer_states: float
    peer_messages: float
    hops: float


def in_pieces(trace: Trace, pieces: Pieces, ring: Ring, documents: range) -> PieceTraffic:
    """What documents cost if the automaton is in pieces.

    Args:
        trace: At l = 0.
        pieces: The automaton, cut.
        ring: With one place a peer.
        documents: Which.

    Cost: O(visits), and some milliseconds a document.
    """
    entered = _Entered(trace, pieces, ring)
    found = np.array([entered.document(number) for number in documents])
    means = found.mean(0)
    load, _ = load_and_hits(trace, documents)
    number = pieces.number
    is_top = number == TOP
    owner = entered.owner[number[~is_top]]
    work = totals(owner, load[~is_top], ring.peers)
    return PieceTraffic(
        messages=means[0],
        whole=means[1],
        below=means[2],
        read=means[3],
        entries=means[4],
        top_work=float(load[is_top].sum() / load.sum()),
        peer_work=float(work.max() / load.sum()),
        peer_states=float(np.bincount(owner, minlength=1).max() / len(number)),
        peer_messages=float(entered.received.max() / max(entered.received.sum(), 1)),
        hops=means[5],
    )


def by_piece(trace: Trace, pieces: Pieces, rows: NDArray[np.bool_]) -> Floats:
    """Visits of each document in each piece, those of the top last.

    Args:
        trace: At l = 0.
        pieces: The automaton, cut.
        rows: Which visits count.

    Returns:
        Documents x (pieces + 1).
    """
    documents, count = trace.documents, len(pieces.root) + 1
    number = pieces.number[trace.state[rows]].astype(np.int64) % count
    visits = _By(trace.node[rows], number, count, len(documents.above))
    found = np.zeros((len(documents), count))
    for document, its in enumerate(found):
        pairs = _pairs(documents, range(document, document + 1))
        row, piece, times = visits.of(documents.pair_node[pairs])
        its += totals(piece, times * documents.counts[pairs][row], count)
    return found


class _Entered:
    """Where documents enter pieces."""

    def __init__(self, trace: Trace, pieces: Pieces, ring: Ring) -> None:
        self._documents = documents = trace.documents
        self._count = count = len(pieces.root)
        places = trace.table.places(pieces.root)
        self.owner = ring.owners(places)
        self.received = np.zeros(ring.peers)
        publishers = np.arange(10) % ring.peers
        self._hops = np.stack(
            [ring.hops(np.full(count, publisher), places) for publisher in publishers]
        )
        number = pieces.number[trace.state].astype(np.int64)
        origin = pieces.number[np.where(trace.source >= 0, trace.state[trace.source], 0)]
        is_piece = number != TOP
        is_entry = is_piece & (origin == TOP)
        self._entries = _By(trace.node[is_entry], number[is_entry], count, len(documents.above))
        rows = is_piece & trace.is_done
        self._read = _By(trace.node[rows], number[rows], count, len(documents.above))
        # Visits of the top that may accept.
        accepting = np.zeros(len(trace.table), bool)
        accepting[trace.table.final] = True
        rows = ~is_piece & accepting[trace.state]
        self._accepts = np.bincount(trace.node[rows], minlength=len(documents.above)) > 0
        self._begins = np.searchsorted(documents.document, np.arange(len(documents) + 1))
        self._own = documents.size - _sizes_of_children(documents)

    def document(self, number: int) -> tuple[float, ...]:
        """Messages, bytes whole, below, read, entries, and the longest look-up."""
        documents = self._documents
        elements = np.arange(self._begins[number], self._begins[number + 1])
        node = documents.node[elements]
        row, piece, entries = self._entries.of(node)
        element = elements[row]
        # Pieces of one peer come in one message.
        peer = self.owner[piece]
        order = np.lexsort((element, peer))
        peer, element = peer[order], element[order]
        # What lies in an element that travels to a peer travels with it.
        apart = peer.astype(np.int64) * (len(documents.node) + 1)
        furthest = np.maximum.accumulate(apart + documents.end[element])
        is_outer = np.ones(len(peer), bool)
        is_outer[1:] = (apart + element)[1:] >= furthest[:-1]
        below = documents.size[element[is_outer]].sum()
        row, active, _ = self._read.of(node)
        pairs = np.unique(self.owner[active].astype(np.int64) * len(documents.node) + elements[row])
        read = self._own[pairs % len(documents.node)].sum()
        peers = np.unique(peer)
        self.received[peers] += 1
        messages = len(peers) + bool(self._accepts[node].any())
        hops = self._hops[number % len(self._hops)][np.unique(piece)]
        extra = ENTRY_BYTES * entries.sum()
        return (
            float(messages),
            float(len(peers) * documents.length[number] + extra),
            float(below + extra),
            float(read + extra),
            float(entries.sum()),
            float(hops.max(initial=0)),
        )


class _By:
    """Pieces at each label path, and how many visits each has there."""

    def __init__(
        self, node: NDArray[np.int32], piece: NDArray[np.int64], pieces: int, nodes: int
    ) -> None:
        pairs, self._times = np.unique(node.astype(np.int64) * pieces + piece, return_counts=True)
        self._piece = pairs % max(pieces, 1)
        self._ends = np.searchsorted(pairs // max(pieces, 1), np.arange(nodes + 1))

    def of(
        self, node: NDArray[np.int32]
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.intp]]:
        """For elements at these paths: rows, pieces, visits."""
        counts = self._ends[node + 1] - self._ends[node]
        row = np.repeat(np.arange(len(node)), counts)
        begins = np.repeat(np.cumsum(counts) - counts, counts)
        at = self._ends[node][row] + np.arange(len(row)) - begins
        return row, self._piece[at], self._times[at]


def _sizes_of_children(documents: Documents) -> Floats:
    """For each element the bytes of its children."""
    level = documents.level[documents.node]
    sums = np.zeros(len(level))
    for depth in range(2, int(level.max(initial=1)) + 1):
        children = np.flatnonzero(level == depth)
        above = np.flatnonzero(level == depth - 1)
        # The last element before it that is one level up.
        parent = above[np.searchsorted(above, children) - 1]
        np.add.at(sums, parent, documents.size[children])
    return sums


def _pairs(documents: Documents, chosen: range) -> slice:
    begin, end = np.searchsorted(documents.pair_document, [chosen.start, chosen.stop])
    return slice(int(begin), int(end))


def _seen(
    trace: Trace,
    rows: NDArray[np.intp],
    ids: NDArray[np.integer],
    count: int,
    documents: range,
    batch: int,
) -> Iterator[NDArray[np.bool_]]:
    """Which of the ids of rows occur, for each batch of documents."""
    found = trace.documents
    order = np.argsort(trace.node[rows], kind="stable")
    ids = ids[order]
    ends = np.searchsorted(trace.node[rows][order], np.arange(len(found.above) + 1))
    for begin in range(documents.start, documents.stop, batch):
        seen = np.zeros(count, bool)
        pairs = _pairs(found, range(begin, min(begin + batch, documents.stop)))
        for node in np.unique(found.pair_node[pairs]).tolist():
            seen[ids[ends[node] : ends[node + 1]]] = True
        yield seen
