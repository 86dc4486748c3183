"""Random histories of an index: register, remove, compact, freeze, match.

Example:
    >>> import random
    >>> steps = random_history(random.Random(5), queries=["/a", "//b"], length=3)
    >>> [type(step).__name__ for step in steps]
    ['Match', 'Compact', 'Register']

A history never removes what is not registered; what the queries are is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from pathcast.model import Query


@dataclass(frozen=True, slots=True)
class Register:
    """Registers queries; some may be unreadable or have an id that is taken."""

    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes queries that are registered."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """Compacts the index."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """Makes a snapshot, and matches with it now and after everything that follows."""


@dataclass(frozen=True, slots=True)
class Match:
    """Matches with the live matcher."""


HistoryStep: TypeAlias = Register | Remove | Compact | Freeze | Match
"""One thing that is done to an index."""

UNREADABLE = "/a["
"""A query that no engine accepts."""


def random_history(random: Random, queries: Sequence[str], length: int) -> list[HistoryStep]:
    """A history of some length over some query texts. Ids are used again after their removal."""
    steps: list[HistoryStep] = []
    registered: list[str] = []
    for _ in range(length):
        match random.randrange(8):
            case 0 | 1 | 2:
                steps.append(_register(random, queries, registered))
            case 3 | 4 if registered:
                count = min(len(registered), 1 + random.randrange(3))
                ids = random.sample(registered, count)
                registered = [query_id for query_id in registered if query_id not in ids]
                steps.append(Remove(tuple(ids)))
            case 5:
                steps.append(Compact())
            case 6:
                steps.append(Freeze())
            case _:
                steps.append(Match())
    return steps


def _register(random: Random, queries: Sequence[str], registered: list[str]) -> Register:
    chosen = []
    for _ in range(1 + random.randrange(4)):
        query_id = f"q{random.randrange(12)}"
        text = UNREADABLE if random.randrange(10) == 0 else random.choice(queries)
        chosen.append(Query(query_id, text))
        if text != UNREADABLE and query_id not in registered:
            registered.append(query_id)
    return Register(tuple(chosen))
