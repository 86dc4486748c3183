"""Calls with one small message each: what a call costs, whatever is in it.

`door` has it as its last case, by lxml's parse of the same message.

Example:
    >>> result = run_one_call(rounds=1, calls=2)
    >>> sorted(measure.name for measure in result.measures())
    ['deliver', 'deliver by lxml', 'match', 'match by lxml']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_lab.bench.checking import THREADS, wrong_count
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed, yardstick

MESSAGE = b"<quote symbol='ACME'><price>10</price></quote>"
QUERY = Query("acme", "/quote[@symbol='ACME']/price")
CASE = "one small message a call"


@dataclass(frozen=True)
class OneCallResult:
    """Times of one call.

    Attributes:
        case: Its name.
        calls: Calls of a round.
        match_ns: All calls of `Registry.match`, by round.
        deliver_ns: All calls of `Registry.deliver`, their deliveries read, by round.
        yardstick_ns: As many parses by lxml, by round.
    """

    case: str
    calls: int
    match_ns: tuple[int, ...]
    deliver_ns: tuple[int, ...]
    yardstick_ns: tuple[int, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""
        for name, times in (("match", self.match_ns), ("deliver", self.deliver_ns)):
            microseconds = Spread.of(times).scaled(1e-3 / self.calls)
            yield Measure("door", self.case, name, "µs", microseconds)
            pairs = zip(times, self.yardstick_ns, strict=True)
            ratios = Spread.of([mine / theirs for mine, theirs in pairs])
            yield Measure("door", self.case, f"{name} by lxml", "x lxml", ratios)


def run_one_call(rounds: int, calls: int) -> OneCallResult:
    """Some rounds of so many calls of each kind, in turn.

    Raises:
        WrongCountError: The query is not found, or not delivered.
    """
    registry = Registry(threads=THREADS)
    registry.add([QUERY])
    parse = yardstick([MESSAGE])
    actions: tuple[Callable[[], object], ...] = (
        lambda: registry.match(MESSAGE).query_ids,
        lambda: list(registry.deliver(MESSAGE)),
        parse,
    )
    found = len(registry.match(MESSAGE).query_ids)
    delivered = len(list(registry.deliver(MESSAGE)))
    if (found, delivered) != (1, 1):
        raise wrong_count(CASE, min(found, delivered), 1, "the one query there is")

    def repeated(action: Callable[[], object]) -> Callable[[], None]:
        def repeat() -> None:
            for _ in range(calls):
                action()

        return repeat

    times: list[list[int]] = []
    with undisturbed():
        for _ in range(rounds):
            times.append([elapsed_ns(repeated(action)) for action in actions])
    match_ns, deliver_ns, yardstick_ns = (tuple(column) for column in zip(*times, strict=True))
    return OneCallResult(CASE, calls, match_ns, deliver_ns, yardstick_ns)
