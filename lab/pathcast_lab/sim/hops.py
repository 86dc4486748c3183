"""How many hops look-ups take in a ring whose fingers are all right, by arithmetic.

For rings too large to be simulated; a simulator takes the same ways message by message in small
ones. Places are the first 64 bits of identifiers, which order the members as the whole ones do.

Example:
    >>> places = np.sort(np.array([identifier(str(n)) >> 96 for n in range(64)], np.uint64))
    >>> hops = Fingers(places, successors=3).hops(np.arange(64), places - np.uint64(1))
    >>> int(hops.min()), int(hops.max())
    (0, 0)

Source: 000, section 2.3; Stoica et al. 2001, section 4.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pathcast.dht.identifiers import identifier

__all__ = ["Fingers", "members"]

_BITS = 64
_ONE = np.uint64(1)


def members(count: int, seed: int = 0) -> NDArray[np.uint64]:
    """Places of so many peers, sorted."""
    places = [identifier(f"{seed} {number}") >> 96 for number in range(count)]
    return np.sort(np.array(places, np.uint64))


class Fingers:
    """The fingers and successors of every member of a ring.

    Args:
        places: Of the members, sorted, without two of the same. 2 or more.
        successors: Length of successor lists.
    """

    def __init__(self, places: NDArray[np.uint64], successors: int) -> None:
        self._places = places
        count = len(places)
        powers = _ONE << np.arange(_BITS, dtype=np.uint64)
        fingers = self.owners((places[:, None] + powers).ravel()).reshape(count, _BITS)
        near = (np.arange(count)[:, None] + np.arange(1, successors + 1)) % count
        others = np.hstack([near, fingers])
        far = places[others] - places[:, None]
        order = np.argsort(far, axis=1, kind="stable")
        self._others = np.take_along_axis(others, order, 1)
        self._far = np.take_along_axis(far, order, 1)

    def owners(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The member that each place belongs to, as a position in `places`."""
        return np.searchsorted(self._places, keys) % len(self._places)

    def hops(self, start: NDArray[np.intp], keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Messages until the owner has been spoken to, from members on.

        Args:
            start: Members that look up, as positions in `places`.
            keys: What each looks up.

        Returns:
            0 where the key is the member's own.

        Cost: O(log n) passes over all look-ups.
        """
        at, owner = start.copy(), self.owners(keys)
        before = (owner - 1) % len(self._places)
        hops: NDArray[np.intp] = (at != owner).astype(np.intp)
        going = np.flatnonzero((at != owner) & (at != before))
        while len(going):
            far = keys[going] - self._places[at[going]]
            # The last that comes strictly before the key.
            nearer = (self._far[at[going]] < far[:, None]).sum(1) - 1
            at[going] = self._others[at[going], nearer]
            hops[going] += 1
            going = going[at[going] != before[going]]
        return hops
