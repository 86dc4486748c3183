"""What the paper says of Figures 3 to 7, and whether a run says the same.

Example:
    >>> {verdict.answer.name for verdict in judge("3", [])}
    {'UNMEASURED'}

Source: 000, section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.dht.experiments import (
    BATCHES,
    CHAIN,
    HOPS,
    ITERATIVE,
    LOOKED_UP,
    MESSAGES,
    PIECES,
    RECURSIVE,
    SIBLINGS,
    STATES,
)
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import (
    CLOSE,
    Answer,
    Found,
    Judgement,
    Statement,
    Verdict,
    judged,
    on_a_line,
)

NITF, AGGREGATED = "NITF, random", "aggregated, random"


def judge(name: str, values: Sequence[Value]) -> list[Verdict]:
    """The statements about a figure.

    Args:
        name: Of the figure.
        values: Of it, in one run.
    """
    return judged(STATEMENTS.get(name, ()), values)


def _times(measure: str, low: float, high: float) -> Callable[[Found], Judgement]:
    """Whether the iterative method has so many times as much as the recursive one."""

    def compared(found: Found) -> Judgement:
        ratios = [
            found.at(ITERATIVE, NITF, x, measure) / found.at(RECURSIVE, NITF, x, measure)
            for x in found.places(RECURSIVE, NITF, measure)
        ]
        text = f"{number(min(ratios))} to {number(max(ratios))} times"
        return Answer.of(low <= min(ratios) and max(ratios) <= high), text

    return compared


def _near(
    series: str, variant: str, measure: str, x: float, said: float
) -> Callable[[Found], Judgement]:
    """Whether a number is within a quarter of the paper's."""

    def compared(found: Found) -> Judgement:
        value = found.at(series, variant, x, measure)
        return Answer.of(1 / CLOSE <= value / said <= CLOSE), number(value)

    return compared


def _flat(measure: str) -> Callable[[Found], Judgement]:
    """Whether a curve of both workloads stays within a quarter."""

    def compared(found: Found) -> Judgement:
        texts, answers = [], []
        for series in (NITF, AGGREGATED):
            values = [value for _, value in found.curve(series, "", measure)]
            answers.append(Answer.of(max(values) <= CLOSE * min(values)))
            texts.append(f"{series}: {number(min(values))} to {number(max(values))}")
        return Answer.all_of(answers), "; ".join(texts)

    return compared


def _linear(measure: str) -> Callable[[Found], Judgement]:
    return lambda found: on_a_line(
        found.curve(NITF, "", measure), found.curve(AGGREGATED, "", measure)
    )


def _twice(measure: str, kind: str) -> Callable[[Found], Judgement]:
    """Whether NITF has about twice as much as the aggregated workload."""

    def compared(found: Found) -> Judgement:
        of = [found.at(f"{name}, {kind}", "", None, measure) for name in ("NITF", "aggregated")]
        ratio = of[0] / of[1]
        return Answer.of(2 / CLOSE <= ratio <= 2 * CLOSE), f"{number(ratio)} times"

    return compared


def _fewer(series: str, x: float) -> Callable[[Found], Judgement]:
    """Whether pieces, however many, need a twentieth at most."""

    def compared(found: Found) -> Judgement:
        ratios = [
            found.at(series, f"{name}, random", x, MESSAGES) / messages
            for name in ("NITF", "aggregated")
            for _, messages in found.curve(PIECES, f"{name}, random", MESSAGES)
        ]
        text = f"{number(min(ratios))} to {number(max(ratios))} times fewer"
        return Answer.of(min(ratios) >= 20), text

    return compared


def _less_uneven(found: Found) -> Judgement:
    shares = [
        found.at(f"storage, {virtual} virtual", NITF, None, "first 200, share")
        for virtual in (1, 3)
    ]
    return Answer.of(shares[0] > shares[1] * 1.1), " -> ".join(f"{number(s)} %" for s in shares)


def _share(
    series: str, measure: str, holds: Callable[[float], bool]
) -> Callable[[Found], Judgement]:
    def compared(found: Found) -> Judgement:
        value = found.at(series, NITF, None, measure)
        return Answer.of(holds(value)), f"{number(value)} %"

    return compared


def _shared(found: Found) -> Judgement:
    alone, shared = (
        found.at(series, NITF, None, "most, share")
        for series in ("pieces", "pieces, shared from half of it on")
    )
    return Answer.of(shared < alone / 4), f"{number(alone)} % -> {number(shared)} %"


def _within(low: float, high: float) -> Callable[[float], bool]:
    return lambda value: low <= value <= high


STATEMENTS: Final[Mapping[str, tuple[Statement, ...]]] = MappingProxyType(
    {
        "3": (
            Statement(
                "the iterative method needs about twice the messages (here: 1.5 to 2.5 times)",
                "6.1",
                _times(MESSAGES, 1.5, 2.5),
            ),
            Statement(
                "the same, look-ups counted (here: 1.5 to 2.5 times)",
                "6.1",
                _times(LOOKED_UP, 1.5, 2.5),
            ),
            Statement(
                "more than ten times the latency, messages counted",
                "6.1",
                _times(HOPS, 10, float("inf")),
            ),
            Statement(
                "more than ten times the latency, look-ups counted",
                "6.1",
                _times(CHAIN, 10, float("inf")),
            ),
        ),
        "4": (
            Statement(
                "1,000,000 queries over the auction DTD have 592,199 states",
                "6",
                _near("", "Auction", STATES, 1_000_000, 592_199),
            ),
        ),
        "5": (
            Statement("messages grow linearly with queries", "6.2", _linear(MESSAGES)),
            Statement(
                "NITF has almost twice the messages of the aggregated workload",
                "6.2",
                _twice(MESSAGES, "random"),
            ),
            Statement("the same, if siblings go in one message", "6.2", _twice(SIBLINGS, "random")),
            Statement("latency does not grow with queries", "6.2", _flat(CHAIN)),
            Statement(
                "NITF has 225,000 states",
                "6.2",
                _near(NITF, "", STATES, 1_000_000, 225_000),
            ),
            Statement(
                "the aggregated workload has 125,000 states",
                "6.2",
                _near(AGGREGATED, "", STATES, 1_000_000, 125_000),
            ),
        ),
        "distinct": (
            Statement(
                "NITF has almost twice the messages of the aggregated workload",
                "6.2",
                _twice(MESSAGES, "distinct"),
            ),
        ),
        "6": (
            Statement("messages do not grow with peers", "6.3", _flat(MESSAGES)),
            Statement("latency does not grow, messages counted", "6.3", _flat(HOPS)),
            Statement("latency does not grow, look-ups counted", "6.3", _flat(CHAIN)),
        ),
        "7": (
            Statement("virtual nodes make storage more even", "6.4", _less_uneven),
            Statement(
                "without them 200 peers have 53 % (here: 48 to 58 %)",
                "6.4",
                _share("storage, 1 virtual", "first 200, share", _within(48, 58)),
            ),
            Statement(
                "with three each, 200 peers have 38 % (here: 33 to 43 %)",
                "6.4",
                _share("storage, 3 virtual", "first 200, share", _within(33, 43)),
            ),
            Statement(
                "without replicas 50 peers get almost 20 % of the requests (here: 15 to 25 %)",
                "6.4",
                _share("filtering, 1 virtual", "first 50, share", _within(15, 25)),
            ),
            Statement(
                "with replicas no peer gets more than 0.3 %",
                "6.4",
                _share("filtering, replicas", "most, share", lambda value: value <= 0.3),
            ),
            Statement(
                "not the paper's: in pieces, shared from half of an average peer's work on, no "
                "peer does a quarter of what one does where they are not shared",
                "",
                _shared,
            ),
        ),
        "savings": (
            Statement(
                "not the paper's: pieces need a twentieth of its messages at most",
                "",
                _fewer(RECURSIVE, 0),
            ),
            Statement(
                "not the paper's: pieces need a twentieth at most of what is left if siblings go "
                "in one message",
                "",
                _fewer(BATCHES, 1),
            ),
        ),
        "simulated": (
            Statement(
                "not the paper's: simulated peers of pieces need a twentieth of its messages at "
                "most",
                "",
                _fewer(RECURSIVE, 0),
            ),
        ),
    }
)
"""Name of a figure -> what the paper says of it."""
