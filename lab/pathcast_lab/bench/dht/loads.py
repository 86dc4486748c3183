"""What peers store and do, by rank.

Source: 000, section 6.4, Figure 7.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pathcast.dht.piece_sharing import CANDIDATES, PUBLICATION, SHARERS_MAX
from pathcast_lab.bench.dht.documents import totals
from pathcast_lab.bench.dht.pieces import Pieces
from pathcast_lab.bench.dht.replay import Floats
from pathcast_lab.bench.dht.ring import Ring
from pathcast_lab.bench.dht.savings import by_piece, load_and_hits
from pathcast_lab.bench.dht.state_table import LOOP, StateTable
from pathcast_lab.bench.dht.trace import Trace
from pathcast_lab.bench.figures.point import Place, Value

__all__ = ["BY_RANK", "RANKS", "filtering", "in_shared_pieces", "states_held", "storage"]

OVERLOADED: Final = 0.1
"""A state that more than this share of all documents visit gets replicas."""

BY_RANK: Final = "load by rank"
"""The measure of a curve; its places are ranks."""

RANKS: Final = 21
"""Points of a curve."""


def storage(table: StateTable, ring: Ring, place: Place) -> list[Value]:
    """Transitions that peers store at l = 0, without those of epsilon's targets that are copies."""
    owner = ring.owners(table.places(np.arange(len(table))))
    transitions = np.bincount(table.parent[1:], minlength=len(table))
    load = totals(owner, transitions, ring.peers)
    return _by_rank(place, load, (200,))


def filtering(trace: Trace, ring: Ring, place: Place, replicas: int, seed: int) -> list[Value]:
    """Visits that peers are asked for.

    Args:
        trace: At l = 0.
        ring: The peers.
        place: Where values belong.
        replicas: Of each state that is visited by too many documents: so many other peers, drawn
            uniformly. Peers of keys that are made of the state's would be drawn by their parts of
            the circle, so those that have much already would get more.
        seed: Of the choice of replicas, and among them.
    """
    documents = len(trace.documents)
    load, hit = load_and_hits(trace, range(documents))
    crowded = np.flatnonzero(hit > OVERLOADED * documents) if replicas else np.zeros(0, np.intp)
    visited = np.flatnonzero(load)
    by_peer = np.zeros(ring.peers)
    alone = np.setdiff1d(visited, crowded)
    np.add.at(by_peer, ring.owners(trace.table.places(alone)), load[alone])
    random = np.random.default_rng(seed)
    owner = ring.owners(trace.table.places(crowded))[:, np.newaxis]
    others = _different(random, len(crowded), replicas, ring.peers - 1)
    holders = np.hstack((owner, others + (others >= owner)))
    equal = np.full(replicas + 1, 1 / (replicas + 1))
    np.add.at(by_peer, holders, random.multinomial(load[crowded].astype(np.int64), equal))
    values = _by_rank(place, by_peer / documents, (50,))
    return [
        *values,
        place.value("states with replicas", "1", len(crowded)),
        # Every peer is told of every state.
        place.value("notices", "1", float(len(crowded) * (ring.peers - 1)) if replicas else 0.0),
    ]


def in_shared_pieces(
    trace: Trace, pieces: Pieces, ring: Ring, place: Place, most: float, seed: int
) -> list[Value]:
    """Visits that peers do where the automaton is in pieces, and others share those that are busy.

    Publishers do the visits of the top, each peer as many as any other. A piece is shared as by
    `pathcast.dht.piece_sharing`: by what is found in it, and at those that do least of three times
    as many peers as are wanted, drawn by their parts of the circle.

    Args:
        trace: At l = 0.
        pieces: The automaton, cut.
        ring: The peers.
        place: Where values belong.
        most: Of the work of one peer on average, so much does one peer for one piece; infinite:
            nothing is shared.
        seed: Of the choice of peers, and among them.
    """
    count, peers = len(trace.documents), ring.peers
    visits = by_piece(trace, pieces, np.ones(len(trace), bool))
    accepting = np.zeros(len(trace.table), bool)
    accepting[trace.table.final] = True
    work = by_piece(trace, pieces, accepting[trace.state] & trace.is_done)
    work += PUBLICATION * (visits > 0)
    does = work.sum(0)
    random = np.random.default_rng(seed)
    owner = ring.owners(trace.table.places(pieces.root))
    busy = totals(owner, does[:-1], peers) + does[-1] / peers
    load = np.full(peers, visits[:, -1].sum() / peers)
    wanted = np.minimum(np.ceil(does[:-1] / (most * does.sum() / peers)) - 1, SHARERS_MAX)
    sharers = np.maximum(wanted, 0).astype(int)
    for piece in random.permutation(len(owner)).tolist():
        more = int(sharers[piece])
        # Where the next keys that are drawn fall.
        drawn = random.integers(2**64, size=CANDIDATES * more, dtype=np.uint64)
        others = np.setdiff1d(ring.owners(drawn), owner[piece])
        least = others[np.argsort(busy[others], kind="stable")[:more]]
        runs = np.append(least, owner[piece])
        busy[owner[piece]] -= does[piece]
        busy[runs] += does[piece] / len(runs)
        np.add.at(load, runs[random.integers(len(runs), size=count)], visits[:, piece])
    values = _by_rank(place, load / count, (50,))
    return [
        *values,
        place.value("pieces", "1", len(owner)),
        place.value("pieces shared", "1", int((sharers > 0).sum())),
        place.value("copies of them", "1", int(sharers.sum())),
    ]


def _different(
    random: np.random.Generator, rows: int, count: int, below: int
) -> NDArray[np.integer]:
    """Rows of different numbers, each set of them as likely as any other."""
    drawn = random.integers(below, size=(rows, count))
    while len(again := np.flatnonzero((np.diff(np.sort(drawn)) == 0).any(axis=1))):
        drawn[again] = random.integers(below, size=(len(again), count))
    return drawn


def _by_rank(place: Place, load: Floats, first: tuple[int, ...]) -> list[Value]:
    ranked = np.sort(load)[::-1]
    total = ranked.sum()
    values = [place.value("total", "1", float(total))]
    for count in first:
        values.append(place.value(f"first {count}", "1", float(ranked[:count].sum())))
        share = 100 * ranked[:count].sum() / total
        values.append(place.value(f"first {count}, share", "%", float(share)))
    last = 100 * ranked[-200:].sum() / total
    values.append(place.value("last 200, share", "%", float(last)))
    values.append(place.value("most, share", "%", float(100 * ranked[0] / total)))
    for rank in np.linspace(0, len(ranked) - 1, RANKS).astype(int).tolist():
        at = Place(place.figure, place.variant, place.series, rank + 1, place.queries)
        values.append(at.value(BY_RANK, "1", float(ranked[rank])))
    return values


def states_held(table: StateTable, length: int) -> int:
    """States that all peers together hold, for fragments of length l."""
    held = len(table)
    # From each state upwards: who is no more than l elements above it holds it.
    state: NDArray[np.integer] = np.arange(1, len(table))
    left = np.full(len(state), length)
    while len(state):
        left -= table.label[state] != LOOP
        state = table.parent[state]
        is_held = (left >= 0) & (state >= 0)
        held += int(is_held.sum())
        state, left = state[is_held], left[is_held]
    return held
