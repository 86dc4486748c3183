"""Rounds that alternate between the engine and the yardstick, and their spread.

A machine is never quiet, so an absolute time says little. What is compared here runs in turns, each
first every other time: a disturbance that lasts longer than a round hits both, and their ratio
stays. The garbage collector is off while a clock runs.

Example:
    >>> rounds = alternate(lambda: None, lambda: None, rounds=3)
    >>> len(rounds), all(first >= 0 and second >= 0 for first, second in rounds)
    (3, True)

It knows nothing of what is timed, and it throws no round away.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from pathcast.cli.console import extra


@dataclass(frozen=True, slots=True)
class Spread:
    """Middle and extremes of repeated measurements."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def scaled(self, factor: float) -> Spread:
        """The same in another unit."""
        return Spread(self.median * factor, self.least * factor, self.most * factor)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Collects garbage, and then not again before the end."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def elapsed_ns(action: Callable[[], object]) -> int:
    """Wall time of one call."""
    started = time.perf_counter_ns()
    action()
    return time.perf_counter_ns() - started


def alternate(
    first: Callable[[], object], second: Callable[[], object], rounds: int
) -> list[tuple[int, int]]:
    """Wall times in ns of both, for each round; they take turns in going first."""
    times: list[tuple[int, int]] = []
    with undisturbed():
        for number in range(rounds):
            if number % 2:
                later = elapsed_ns(second)
                times.append((elapsed_ns(first), later))
            else:
                times.append((elapsed_ns(first), elapsed_ns(second)))
    return times


def yardstick(messages: Sequence[bytes]) -> Callable[[], None]:
    """A call that parses every message with `lxml.etree.fromstring` and drops the tree.

    Raises:
        MissingDependencyError: lxml is not installed.
    """
    with extra("bench", "pathcast-lab bench"):
        from lxml.etree import fromstring

    def parse() -> None:
        for message in messages:
            fromstring(message)

    return parse
