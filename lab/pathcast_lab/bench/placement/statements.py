"""What the paper says of Figure 9, and whether a run says the same.

Example:
    >>> verdict = judge("9", [])[0]
    >>> verdict.answer.name, verdict.detail
    ('UNMEASURED', 'not measured')

Source: 001, 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import (
    CLOSE,
    WIDE,
    Answer,
    Found,
    Judgement,
    Statement,
    Verdict,
    judged,
)
from pathcast_lab.bench.placement.pattern_queries import PEP, RANDOM

MATCHED: Final = "partitions matched"
SENT: Final = "partitions sent to"

SMALL: Final = 5.0
"""What counts as a small amount of repetition: five elements more of each pattern."""

PARTITIONS: Final = 200
PATTERNS: Final = 10


def judge(name: str, values: Sequence[Value]) -> list[Verdict]:
    """The statements about a figure.

    Args:
        name: Of the figure.
        values: Of it, in one run.
    """
    first = next((value.variant for value in values), "")
    own = [value for value in values if value.variant == first]
    bare = [Value(v.figure, "", v.series, v.x, v.queries, v.measure, v.unit, v.spread) for v in own]
    return judged(STATEMENTS.get(name, ()), bare)


def _random_matches_almost_all(found: Found) -> Judgement:
    share = found.at(RANDOM, x=SMALL, measure=MATCHED)
    return Answer.of(share >= 90), f"{number(share)} % at {SMALL:g} repetitions"


def _pep_matches_fewer(found: Found) -> Judgement:
    ratios = [
        (x, found.at(RANDOM, x=x, measure=MATCHED) / found.at(PEP, x=x, measure=MATCHED))
        for x in found.places(PEP, measure=MATCHED)
    ]
    few = [ratio for x, ratio in ratios if x <= SMALL]
    told = ", ".join(f"{number(ratio)} times at {x:g}" for x, ratio in ratios)
    return Answer.of(min(few) >= WIDE), f"random : PEP = {told}"


def _power(found: Found) -> Judgement:
    share = found.at(PEP, x=0.0, measure=SENT)
    bound = 100 * PATTERNS / PARTITIONS
    return Answer.of(share <= bound), f"{number(share)} % sent to, M/K is {number(bound)} %"


def _linear(found: Found) -> Judgement:
    start = found.at(PEP, x=0.0, measure=SENT)
    there = found.at(PEP, x=SMALL, measure=SENT)
    ratio = there / start / (1 + SMALL)
    detail = (
        f"{number(there / start)} times at {SMALL:g} repetitions, {1 + SMALL:g} times the values"
    )
    return Answer.of(1 / CLOSE <= ratio <= CLOSE), detail


STATEMENTS: Final[Mapping[str, tuple[Statement, ...]]] = MappingProxyType(
    {
        "9": (
            Statement(
                "random placement ends up matching almost all partitions even with a small amount "
                "of repetition",
                "4.4",
                _random_matches_almost_all,
            ),
            Statement("PEP leads to many fewer partition matches", "4.4", _pep_matches_fewer),
            Statement(
                "where each pattern appears at most once, M/K of the partitions at most",
                "4.4",
                _power,
            ),
            Statement(
                "repetition degrades the filtering power, in many cases linearly", "4.4", _linear
            ),
        )
    }
)
