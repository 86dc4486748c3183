"""Hill climbing on time per byte: candidates are changed a little, and the costlier one goes on.

Example:
    >>> def queries(candidate: Candidate) -> float:
    ...     return len(candidate.queries())
    >>> found = climbed(STARTS["joins"], Random(1), queries, steps=50)
    >>> len(found.queries()) > len(STARTS["joins"].queries())
    True

The search is by small messages and few queries, since what runs away does so early; what it finds
is judged by large ones (`is_runaway`), in a process of its own, and measured again if it seems to
run away. Choices follow from the seed and from what was measured, so that another run of the same
seed goes other ways; a candidate is replayed by its genome.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Final, NamedTuple

from cost.candidate import STARTS, Candidate, mutated, random_candidate
from cost.gauge import Cost, Gauge
from cost.queries import QUERIES_MAX

SEARCH_BYTES: Final = 48_000
"""Of messages while searching: large enough that time is proportional to it, or worse."""

SEARCH_QUERIES: Final = 100
"""Queries while searching."""

MESSAGE_BYTES: Final = 1_000_000
"""Of messages that are judged."""

PATIENCE: Final = 30
"""Changes in a row that make nothing worse, after which a climb is over."""

RATIO_MAX: Final = 10.0
"""Times lxml's parse that a message may cost with one query, however hostile."""

QUERY_RATIO_MAX: Final = 0.04
"""What each query may add to that: fifty times lxml's parse with 1,000 hostile queries."""

SECONDS_MAX: Final = 1.0
"""Seconds of processor that a message may cost however fast lxml is: what its budgets allow."""

MEMORY_MAX: Final = 200 << 20
"""Bytes that a message may make a process grow by."""

TRIES: Final = 3
"""How often a candidate must run away, each time in a new process."""


def is_runaway(cost: Cost) -> bool:
    """Whether a message costs more than any message may.

    Example:
        >>> fine = Cost(message_bytes=10**6, queries=1, seconds=0.9, lxml_seconds=0.004)
        >>> is_runaway(fine)
        False
    """
    ratio_max = RATIO_MAX + QUERY_RATIO_MAX * cost.queries
    seconds_max = max(SECONDS_MAX, ratio_max * cost.lxml_seconds)
    return bool(cost.failure) or cost.seconds > seconds_max or cost.memory_bytes > MEMORY_MAX


class Suspect(NamedTuple):
    """A candidate that a climb ended with.

    Attributes:
        start: Where the climb began.
        candidate: The candidate.
        cost: Of it at full size.
    """

    start: str
    candidate: Candidate
    cost: Cost

    def __str__(self) -> str:
        return f"{self.start}: {self.cost}\n    {replay_command(self.candidate)}"


def replay_command(candidate: Candidate) -> str:
    """What measures a candidate again."""
    genome = candidate.model_dump_json(exclude_defaults=True)
    return f"python -m cost --replay '{genome}'"


def climbed(
    start: Candidate,
    random: Random,
    height: Callable[[Candidate], float],
    steps: int,
    patience: int = PATIENCE,
) -> Candidate:
    """The costliest candidate that is found from a start.

    Args:
        start: Where to begin.
        random: Chooses changes.
        height: What is to grow.
        steps: Changes that are tried at most.
        patience: Changes in a row without growth that are tried at most.
    """
    best, highest, tried = start, height(start), 0
    for _ in range(steps):
        changed = mutated(best, random)
        if changed == best:
            continue
        reached = height(changed)
        tried += 1
        # Within a few per cent it is the clock.
        if reached > 1.05 * highest:
            best, highest, tried = changed, reached, 0
        if tried >= patience:
            break
    return best


def starts(seed: int) -> Iterator[tuple[str, Candidate, Random]]:
    """Where climbs begin, without end: what has been costly, what lies near it, and anything.

    Args:
        seed: Of all choices.
    """
    for name, candidate in STARTS.items():
        yield name, candidate, Random(f"{seed}/{name}")
    for number in count():
        random = Random(f"{seed}/{number}")
        if number % 2:
            yield f"random {number}", random_candidate(random), random
        else:
            name = random.choice(list(STARTS))
            candidate = STARTS[name]
            for _ in range(12):
                candidate = mutated(candidate, random)
            yield f"near {name} {number}", candidate, random


def suspects(
    seed: int, seconds: float, steps: int = 80, engine: str = "kernel"
) -> Iterator[Suspect]:
    """What has been costly, as it is, and then the ends of climbs: all of them at full size.

    Args:
        seed: Of all choices.
        seconds: After which no climb begins; what has been costly is measured in any case.
        steps: Of a climb.
        engine: Which one is measured.
    """
    end = time.monotonic() + seconds
    for name, start in STARTS.items():
        yield Suspect(name, start, judged(start, engine))
    with Gauge(engine) as gauge:

        def height(candidate: Candidate) -> float:
            return gauge.measured(candidate, SEARCH_BYTES, 1, SEARCH_QUERIES).ratio

        for name, start, random in starts(seed):
            if time.monotonic() > end:
                return
            found = climbed(start, random, height, steps)
            yield Suspect(name, found, judged(found, engine))


def judged(candidate: Candidate, engine: str = "kernel") -> Cost:
    """The cost of a candidate at full size: the least of several, once it seems to run away."""
    costs: list[Cost] = []
    for _ in range(TRIES):
        with Gauge(engine) as gauge:
            costs.append(gauge.measured(candidate, MESSAGE_BYTES, 2, QUERIES_MAX))
        if not is_runaway(costs[-1]):
            break
    return costs[-1]
