"""Running operators one after the other, and what each kind of them cost.

Example:
    >>> profiler = Profiler(clock=iter((1.0, 1.5)).__next__)
    >>> with profiler.timing(OperatorKind.SELECTION):
    ...     pass
    >>> profiler.seconds[OperatorKind.SELECTION], profiler.runs[OperatorKind.SELECTION]
    (0.5, 1)

Source: Diao and Franklin, VLDB 2003, sections 5.3 (executor), 6.1 (profiler).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pathcast.reference.pathsharing.operators import MessageRun, Operator, OperatorKind


class Profiler:
    """Adds up the cost of each kind of operator, over as many messages as it is given.

    Its own cost is in the numbers, so they are higher than what runs without it take.

    Args:
        clock: Seconds from any start.

    Attributes:
        seconds: Time of each kind.
        runs: How often operators of each kind were run.
        tuples: Path tuples (or groups) that each kind gave.
        executor_seconds: What is left of the time of `process` when the operators' is taken off.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[OperatorKind, float] = {}
        self.runs: Counter[OperatorKind] = Counter()
        self.tuples: Counter[OperatorKind] = Counter()
        self.executor_seconds = 0.0
        self._clock = clock

    @contextmanager
    def timing(self, kind: OperatorKind) -> Iterator[None]:
        """Takes the time of a run of an operator."""
        begin = self._clock()
        try:
            yield
        finally:
            self.seconds[kind] = self.seconds.get(kind, 0.0) + self._clock() - begin
            self.runs[kind] += 1

    @contextmanager
    def timing_all(self) -> Iterator[None]:
        """Takes the time of a message; what no operator has used is the executor's."""
        begin, before = self._clock(), sum(self.seconds.values())
        try:
            yield
        finally:
            used = sum(self.seconds.values()) - before
            self.executor_seconds += self._clock() - begin - used


def execute(operators: Iterable[Operator], message: MessageRun, profiler: Profiler | None) -> None:
    """Runs operators in order; each comes after those it reads from."""
    if profiler is None:
        for operator in operators:
            operator.run(message)
        return
    for operator in operators:
        with profiler.timing(operator.kind):
            operator.run(message)
        profiler.tuples[operator.kind] += operator.size
