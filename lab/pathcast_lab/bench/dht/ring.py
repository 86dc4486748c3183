"""Which peer has which state, and how far messages go, for a ring of any size.

Example:
    >>> ring = Ring.of(peers=10, virtual=3)
    >>> len(ring.places), sorted(set(ring.peer.tolist()))
    (30, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])

Source: 000, sections 2.3 and 6.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pathcast.dht.identifiers import identifier
from pathcast_lab.sim.hops import Fingers

__all__ = ["Ring"]

_SUCCESSORS = 3
_AT_ONCE = 20_000


@dataclass(frozen=True, eq=False)
class Ring:
    """Peers on the circle.

    Attributes:
        places: Of all virtual nodes, sorted: the first 64 bits of their identifiers.
        peer: Whose each place is.
        peers: How many there are.
    """

    places: NDArray[np.uint64]
    peer: NDArray[np.intp]
    peers: int

    @classmethod
    def of(cls, peers: int, virtual: int = 1, seed: int = 0) -> Ring:
        """A ring with so many peers, each at so many places."""
        numbers = range(peers * virtual)
        places = np.array([identifier(f"{seed} {n}") >> 96 for n in numbers], np.uint64)
        order = np.argsort(places)
        return cls(places[order], order % peers, peers)

    @cached_property
    def _fingers(self) -> Fingers:
        return Fingers(self.places, successors=_SUCCESSORS)

    def at(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The place that each key belongs to."""
        return np.searchsorted(self.places, keys) % len(self.places)

    def owners(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The peer of each key."""
        return self.peer[self.at(keys)]

    def hops(self, start: NDArray[np.intp], keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Messages from places until the owners of keys are reached; see `Fingers.hops`."""
        found = [
            self._fingers.hops(start[at : at + _AT_ONCE], keys[at : at + _AT_ONCE])
            for at in range(0, len(keys), _AT_ONCE)
        ]
        return np.concatenate(found) if found else np.zeros(0, np.intp)
