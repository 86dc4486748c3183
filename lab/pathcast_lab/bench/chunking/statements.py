"""What the paper on chunking says of its figures, and whether a run says the same.

Each comparison is of medians. Nothing here is typed from a run.

Example:
    >>> judge("11", [])[0].answer.name
    'UNMEASURED'

Source: 004, 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.chunking.experiments import CLEANED, WHOLE
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import (
    Answer,
    Found,
    Judgement,
    NotMeasuredError,
    Statement,
    Verdict,
    judged,
    less,
)

LXML: Final = "lxml"
KERNEL: Final = "kernel"


def judge(name: str, values: Sequence[Value]) -> list[Verdict]:
    """The statements about a figure.

    Args:
        name: Of the figure.
        values: Of it, in one run.
    """
    by_queries = [
        Value(v.figure, str(v.queries), v.series, v.x, v.queries, v.measure, v.unit, v.spread)
        for v in values
    ]
    return judged(STATEMENTS.get(name, ()), by_queries)


def _against_whole(
    evaluator: str, measure: str, queries: int, chunks: int
) -> Callable[[Found], Judgement]:
    """Whether a way of evaluating chunks is faster than evaluating the whole message."""

    def compared(found: Found) -> Judgement:
        chunked = found.at(evaluator, str(queries), chunks, measure)
        whole = found.at(evaluator, str(queries), chunks, WHOLE)
        return less(chunked, whole), f"{number(100 * chunked / whole)} % of the time"

    return compared


def _slower_in_sequence(found: Found) -> Judgement:
    chunked = found.at(LXML, "100", 5, "sum")
    whole = found.at(LXML, "100", 5, WHOLE)
    return less(whole, chunked), f"{number(100 * chunked / whole)} % of the time"


def _empty_and_full(found: Found) -> Judgement:
    shares = [
        found.at("potpourri", str(queries), chunks, "share")
        for queries in (100, 500, 2_000)
        for chunks in (5, 4, 3)
    ]
    holds = all(shares[place] == 0 for place in (0, 3, 6)) and all(
        0 < shares[place + 1] < shares[place + 2] for place in (0, 3, 6)
    )
    return Answer.of(holds), "potpourri of 5, 4 and 3 chunks: " + ", ".join(
        " : ".join(number(share) for share in shares[place : place + 3]) + " %"
        for place in (0, 3, 6)
    )


def _two_are_best(found: Found) -> Judgement:
    sums = {chunks: found.at(LXML, "100", chunks, "sum") for chunks in range(2, 7)}
    best = min(sums, key=lambda chunks: sums[chunks])
    return Answer.of(best == 2), f"least with {best} chunks"


def _between(found: Found) -> Judgement:
    ratios = [
        found.at(LXML, str(queries), 2, "sum") / found.at(LXML, str(queries), 2, WHOLE)
        for queries in (100, 500, 2_000)
    ]
    holds = all(0.5 <= ratio <= 0.8 for ratio in ratios)
    return Answer.of(holds), ", ".join(f"{number(100 * ratio)} %" for ratio in ratios)


def _first_delivery(found: Found) -> Judgement:
    first = found.at(LXML, "2000", 3, "first") / found.at(LXML, "2000", 3, WHOLE)
    return Answer.of(first <= 0.1), f"after {number(100 * first)} %"


def _shares_of(measure: str, base: str, series: str) -> Callable[[Found], list[float]]:
    """One measure by another, at every place of a series."""

    def shares(found: Found) -> list[float]:
        ratios: list[float] = []
        for queries in ("100", "500", "2000"):
            try:
                places = found.places(series, queries, base)
            except NotMeasuredError:
                continue
            for x in places:
                ratios.append(
                    found.at(series, queries, x, measure) / found.at(series, queries, x, base)
                )
        if not ratios:
            raise NotMeasuredError(series)
        return ratios

    return shares


def _cutting_gains_nothing(found: Found) -> Judgement:
    ratios = _shares_of("sum", CLEANED, KERNEL)(found)
    text = f"{number(100 * min(ratios))} to {number(100 * max(ratios))} % of the time"
    return Answer.of(min(ratios) >= 1), text


def _first_is_early(found: Found) -> Judgement:
    ratios = _shares_of("first", CLEANED, KERNEL)(found)
    text = f"{number(100 * min(ratios))} to {number(100 * max(ratios))} % of the time"
    return Answer.of(max(ratios) < 1), text


STATEMENTS: Final[Mapping[str, tuple[Statement, ...]]] = MappingProxyType(
    {
        "10": (
            Statement(
                "five chunks leave no potpourri, four leave one kind of people, three leave two",
                "5.1",
                _empty_and_full,
            ),
        ),
        "11": (
            Statement(
                "100 queries: one chunk after another takes longer than the whole message",
                "5.1",
                _slower_in_sequence,
            ),
            Statement(
                "100 queries, 5 chunks side by side: faster (24 % gained)",
                "5.1",
                _against_whole(LXML, "last in parallel", 100, 5),
            ),
            Statement(
                "500 queries: one chunk after another is faster already",
                "5.1",
                _against_whole(LXML, "sum", 500, 5),
            ),
            Statement(
                "2,000 queries, 3 chunks and a potpourri side by side: faster (41 % gained)",
                "5.1",
                _against_whole(LXML, "last in parallel", 2_000, 3),
            ),
            Statement(
                "2,000 queries, 5 chunks side by side: faster (71 % gained)",
                "5.1",
                _against_whole(LXML, "last in parallel", 2_000, 5),
            ),
        ),
        "12": (
            Statement("100 queries: two chunks are best", "5.2", _two_are_best),
            Statement(
                "two chunks reduce the time to 60 to 70 % (here: to 50 to 80 %)", "5.2", _between
            ),
            Statement(
                "2,000 queries, 3 chunks: the first answers are there after 2 % of the time "
                "(here: 10 %)",
                "5.2",
                _first_delivery,
            ),
        ),
        "engine": (
            Statement(
                "not the paper's: where queries share their work, to cut gains nothing over the "
                "cleaned queries on the whole message, one chunk after another",
                "",
                _cutting_gains_nothing,
            ),
            Statement(
                "not the paper's: the first answers come before those for the whole message",
                "",
                _first_is_early,
            ),
        ),
    }
)
"""Name of a figure -> what the paper says of it."""
