"""Computes what a broker must have told each neighbour, by its origins' entries alone.

It is the oracle of the deltas that `Interests` makes, and reads none of the state that it keeps
between changes: only entries, neighbours, and whether there is covering.

Example:
    >>> interests = Interests()
    >>> _ = interests.set_neighbours(["east", "west"])
    >>> _ = interests.update("east", ["/a"], [])
    >>> {name: sorted(entries) for name, entries in from_scratch(interests).items()}
    {'east': [], 'west': ['/a']}
"""

from __future__ import annotations

from collections.abc import Mapping

from pathcast.overlay.content import LOCAL, InterestTables
from pathcast.overlay.covered import RankedEntry
from pathcast.overlay.cutting import ToldCuts
from pathcast.overlay.interest import Interests
from pathcast.overlay.xml_content import XmlInterests
from pathcast_lab.sim.toy_content import ToyInterests

__all__ = ["from_scratch"]


def from_scratch(
    interests: InterestTables | Interests | ToldCuts,
) -> Mapping[str, frozenset[str]]:
    """Neighbour -> what it must have been told.

    Cost: with covering, a comparison for each two entries.
    """
    match interests:
        case ToyInterests():
            return interests.from_scratch()
        case XmlInterests():
            cuts = from_scratch(interests._told_cuts)
            told = from_scratch(interests._interests)
            return {name: entries | cuts[name] for name, entries in told.items()}
        case ToldCuts():
            told = from_scratch(interests._all)
            return {name: interests._told(name, entries) for name, entries in told.items()}
        case Interests():
            return _of_paths(interests)
    raise TypeError(f"{type(interests).__name__} has no oracle")


def _of_paths(interests: Interests) -> dict[str, frozenset[str]]:
    names = interests._neighbours
    origins = {origin: interests.entries(origin) for origin in (LOCAL, *names)}
    told = {
        name: {each for origin in origins if origin != name for each in origins[origin]}
        for name in names
    }
    if interests._covered is None:
        return {name: frozenset(entries) for name, entries in told.items()}
    ranked = {entry: RankedEntry(entry) for entry in set[str]().union(*told.values())}
    return {
        name: frozenset(
            entry
            for entry in entries
            if not any(ranked[general].stands_before(ranked[entry]) for general in entries)
        )
        for name, entries in told.items()
    }
