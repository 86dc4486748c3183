"""Running operators one after the other, and what each kind of them cost.

Example:
    >>> profiler = Profiler()
    >>> profiler.add(OperatorKind.SELECTION, 0.5, 3)
    >>> profiler.add(OperatorKind.SELECTION, 0.25, 1)
    >>> profiler.seconds[OperatorKind.SELECTION], profiler.tuples[OperatorKind.SELECTION]
    (0.75, 4)

Source: Diao and Franklin, VLDB 2003, sections 5.3 (executor), 6.1 (profiler).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pathcast_papers.message_broker.pathsharing.operators import MessageRun, Operator, OperatorKind


class Profiler:
    """Adds up the cost of each kind of operator, over as many messages as it is given.

    Its own cost is in the numbers, so they are higher than what runs without it take.

    Attributes:
        clock: Seconds from any start.
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
        self.clock = clock

    def add(self, kind: OperatorKind, seconds: float, tuples: int) -> None:
        """Adds a run of an operator."""
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds
        self.runs[kind] += 1
        self.tuples[kind] += tuples

    @contextmanager
    def timing_all(self) -> Iterator[None]:
        """Takes the time of a message; what no operator has used is the executor's."""
        begin, before = self.clock(), sum(self.seconds.values())
        try:
            yield
        finally:
            used = sum(self.seconds.values()) - before
            self.executor_seconds += self.clock() - begin - used


def execute(operators: Iterable[Operator], message: MessageRun, profiler: Profiler | None) -> None:
    """Runs operators in order; each comes after those it reads from."""
    if profiler is None:
        for operator in operators:
            operator.run(message)
        return
    for operator in operators:
        begin = profiler.clock()
        operator.run(message)
        profiler.add(operator.kind, profiler.clock() - begin, operator.size)
