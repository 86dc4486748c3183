"""What a trace costs on a ring: messages, hops, bytes, loads.

A message goes from the peer that hands a visit over to the peer of the state; if they are one, none
is sent. Where a look-up is counted, the message travels the way of the look-up, so it is as many
messages as there are hops; else the sender is taken to know the owner (a *direct* message).

Example:
    >>> from pathcast_lab.bench.dht.documents import Documents
    >>> from pathcast_lab.bench.dht.state_table import StateTable
    >>> table = StateTable.of(["/a/b", "/a/c"])
    >>> documents = Documents.of([b"<a><b/><b/></a>"], table.labels)
    >>> replay = Replay(Trace.of(table, documents), Ring.of(peers=100))
    >>> traffic = replay.recursive()
    >>> traffic.messages.tolist(), traffic.chain.tolist(), traffic.whole.tolist()
    ([4.0], [3.0], [60.0])

Source: 000, sections 5.2 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pathcast_lab.bench.dht.documents import totals
from pathcast_lab.bench.dht.ring import Ring
from pathcast_lab.bench.dht.trace import Trace

__all__ = ["Floats", "Replay", "Traffic"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Traffic:
    """What each document costs.

    Attributes:
        messages: Direct ones.
        looked_up: Messages with the hops of look-ups.
        chain: Longest chain of direct messages.
        chain_looked_up: The same, in hops of look-ups.
        whole: Bytes, if every message carries what the paper's does: the whole document in the
            recursive method; in the iterative one an element's name and a key, or keys.
        subtree: Bytes, if a message carries what lies in its element only.
    """

    messages: Floats
    looked_up: Floats
    chain: Floats
    chain_looked_up: Floats
    whole: Floats
    subtree: Floats


class Replay:
    """A trace on a ring.

    Args:
        trace: Of documents, one after another published by peers 0, 1, 2 ... of a few.
        ring: With one place a peer where hops are asked for.
        publishers: How many peers publish.
    """

    def __init__(self, trace: Trace, ring: Ring, publishers: int = 10) -> None:
        self._trace, self._ring = trace, ring
        self._documents = trace.documents
        visited = np.unique(trace.state).astype(np.intp)
        self._keys = np.zeros(len(trace.table), np.uint64)
        self._keys[visited] = trace.table.places(visited)
        self._place = ring.at(self._keys)
        self._publisher = np.arange(len(self._documents)) % min(publishers, len(ring.places))
        self._origin = np.where(trace.source >= 0, trace.state[trace.source], -1)

    @cached_property
    def peer(self) -> NDArray[np.intp]:
        """The peer of each visited state."""
        return self._ring.peer[self._place]

    @cached_property
    def is_sent(self) -> NDArray[np.bool_]:
        """Which visits are handed over in a message; that of the start state is, by arithmetic."""
        sent: NDArray[np.bool_] = self.peer[self._trace.state] != self.peer[self._origin]
        sent[0] = True
        return sent

    def recursive(self) -> Traffic:
        """Procedure 4."""
        trace, documents = self._trace, self._documents
        sent = self.is_sent
        hops = self._hops()
        at_start = self._ring.hops(self._publisher, np.full(len(documents), self._keys[0]))
        chain, looked_up = sent.astype(np.int64), hops.copy()
        done = trace.done()
        for rows in trace.levels()[1:]:
            source = trace.source[rows]
            chain[rows] += chain[source]
            looked_up[rows] += looked_up[source]
            # The longest of the ways that lead to a visit counts.
            np.maximum.at(chain, done[rows], chain[rows])
            np.maximum.at(looked_up, done[rows], looked_up[rows])
        # Every document has the message to the start state, by a look-up of its own.
        first = at_start.astype(np.float64)
        is_remote = (at_start > 0).astype(np.float64)
        by_node = self._by_node(sent)
        pairs = by_node[documents.pair_node]
        messages = documents.sums(documents.counts * pairs)
        whole = (messages - 1 + is_remote) * documents.length
        subtree = documents.sums(documents.sizes * pairs) - documents.length * (1 - is_remote)
        weights = self._by_node(hops)[documents.pair_node]
        return Traffic(
            messages=messages - 1 + is_remote,
            looked_up=documents.sums(documents.counts * weights) + first,
            chain=self._longest(chain) - 1 + is_remote,
            chain_looked_up=self._longest(looked_up) + first,
            whole=whole,
            subtree=subtree,
        )

    def iterative(self) -> Traffic:
        """Procedures 2 and 3: a question and an answer for each active state of each element.

        A state is asked once at an element, about all of its children; the states of an element
        are asked at once, one element after another. Publishers know no owner beforehand.
        """
        trace, documents = self._trace, self._documents
        nodes = len(documents.above)
        rows = np.flatnonzero(trace.is_done)
        node, state = trace.node[rows], trace.state[rows]
        lengths = trace.table.key_lengths()
        known = np.unique(state)
        by_node = np.zeros((int(self._publisher.max()) + 1, 5, nodes))
        for publisher, found in enumerate(by_node):
            hops = np.zeros(len(trace.table), np.int64)
            hops[known] = self._ring.hops(np.full(len(known), publisher), self._keys[known])
            far = hops[state] > 0
            found[0] = totals(node, far, nodes)
            found[1] = totals(node, hops[state], nodes)
            np.maximum.at(found[2], node, far)
            np.maximum.at(found[3], node, hops[state] + far)
            found[4] = totals(node, far * lengths[state], nodes)
        pairs = by_node[self._publisher[documents.pair_document], :, documents.pair_node]
        counts = documents.counts
        asked, looked_up, levels, way, keys = (documents.sums(counts * each) for each in pairs.T)
        # A question has a key and the names of the children; an answer the keys of their states.
        above = np.maximum(documents.above[documents.pair_node], 0)
        asked_above = by_node[self._publisher[documents.pair_document], 0, above]
        names = asked_above * documents.name_bytes[documents.pair_node]
        answers = totals(node, lengths[state], nodes)[documents.pair_node]
        is_below = documents.pair_node > 0
        sent = keys + documents.sums(counts * (names + answers) * is_below)
        return Traffic(2 * asked, looked_up + asked, 2 * levels, way, sent, sent)

    def _hops(self) -> NDArray[np.int64]:
        """Hops of each visit's look-up; none for the start state."""
        trace = self._trace
        states = len(trace.table)
        edge = self._origin.astype(np.int64) * states + trace.state
        edge[0] = -1
        edges, back = np.unique(edge, return_inverse=True)
        known = edges >= 0
        hops = np.zeros(len(edges), np.int64)
        start, target = edges[known] // states, edges[known] % states
        hops[known] = self._ring.hops(self._place[start], self._keys[target])
        return hops[back]

    def _by_node(self, values: NDArray[Any]) -> Floats:
        return totals(self._trace.node, values, len(self._documents.above))

    def _longest(self, chain: NDArray[np.int64]) -> Floats:
        documents = self._documents
        by_node = np.zeros(len(documents.above))
        np.maximum.at(by_node, self._trace.node, chain)
        longest = np.zeros(len(documents))
        np.maximum.at(longest, documents.pair_document, by_node[documents.pair_node])
        return longest
