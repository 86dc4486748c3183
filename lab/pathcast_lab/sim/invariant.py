"""What must hold of a ring at every moment, and what holds once nothing happens to it any more.

Source: P. Zave, IEEE TSE 2017: OneLiveSuccessor and SufficientPrincipals are the inductive
invariant; one ordered ring, reached by everybody, follows from it and is checked as well.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import pairwise

from pathcast.dht.identifiers import CIRCLE
from pathcast.dht.messages import Member
from pathcast.dht.ring import Ring

__all__ = ["broken", "not_ideal"]


def broken(rings: Iterable[Ring], successors: int, fallback: Collection[Member] = ()) -> str | None:
    """What does not hold of the members among these.

    Args:
        rings: Pointers of all peers that run.
        successors: Length of successor lists (r).
        fallback: Members that stay, with which goes on who loses all successors at once, where
            the network was split; none where that may not happen.

    Returns:
        One sentence, or None if all is well.

    Cost: O(n r log n).
    """
    members = sorted((ring for ring in rings if ring.is_member), key=_place)
    live = {ring.me for ring in members}
    best: dict[Member, Member] = {}
    for ring in members:
        ahead = sorted({*fallback} - {ring.me}, key=partial(_far, ring.me))
        first = next((member for member in (*ring.successors, *ahead) if member in live), None)
        if first is None:
            return f"OneLiveSuccessor: {ring.me} has none"
        best[ring.me] = first
        if sum(_far(a, b) for a, b in _neighbours(ring)) >= CIRCLE:
            return f"order: the successors of {ring.me} go round more than once"
    principals = _principals(members)
    if len(principals) <= successors:
        return f"SufficientPrincipals: {len(principals)} of {successors + 1}"
    return _not_one_ring(best)


def not_ideal(rings: Iterable[Ring], successors: int) -> str | None:
    """What is not yet as it is to become, of peers to which nothing happens.

    Returns:
        One sentence, or None if all are members with the right successors and predecessor.
    """
    everybody = sorted(rings, key=_place)
    ring_of = [ring.me for ring in everybody]
    for at, ring in enumerate(everybody):
        after = tuple((ring_of[at + 1 :] + ring_of[:at])[:successors])
        if ring.successors != after:
            return f"{ring.me} has successors {ring.successors}, not {after}"
        if ring.predecessor != ring_of[at - 1]:
            return f"{ring.me} has predecessor {ring.predecessor}, not {ring_of[at - 1]}"
    return None


def _principals(members: Sequence[Ring]) -> set[Member]:
    """Members that lie between no two neighbours of an extended successor list."""
    places = [_place(ring) for ring in members]
    skipped: set[int] = set()
    for a, b in {pair for ring in members for pair in _neighbours(ring)}:
        low = bisect_right(places, a.identifier)
        high = bisect_left(places, b.identifier)
        if a.identifier < b.identifier:
            skipped.update(range(low, high))
        else:
            skipped.update(range(low, len(places)), range(high))
    return {ring.me for at, ring in enumerate(members) if at not in skipped}


def _not_one_ring(best: dict[Member, Member]) -> str | None:
    """Follow best successors from everybody: all must come into one cycle, once round."""
    cycle: list[Member] = []
    seen: set[Member] = set()
    for start in sorted(best):
        way: list[Member] = []
        at = start
        while at not in seen:
            seen.add(at)
            way.append(at)
            at = best[at]
        if at in way:
            if cycle:
                return f"two rings: one through {cycle[0]}, one through {at}"
            cycle = way[way.index(at) :]
    pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    if sum(_far(a, b) for a, b in pairs) != CIRCLE:
        return f"the ring through {cycle[0]} is not in order"
    return None


def _neighbours(ring: Ring) -> Iterable[tuple[Member, Member]]:
    extended = (ring.me, *ring.successors)
    return pairwise(extended)


def _far(a: Member, b: Member) -> int:
    return (b.identifier - a.identifier) % CIRCLE or CIRCLE


def _place(ring: Ring) -> int:
    return ring.me.identifier
