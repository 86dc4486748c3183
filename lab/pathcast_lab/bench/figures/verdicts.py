"""What a paper says of a figure beside what a run has measured: the same, the opposite, or neither.

Words about a run are made here, from its values; the text around tables is not to say how a
comparison ended (a test holds it to that).

Example:
    >>> ordered([10.0, 10.4, 30.0])
    <Answer.CLOSE: 'within a tenth'>
    >>> ordered([10.0, 20.0, 30.0]), ordered([10.0, 20.0, 5.0])
    (<Answer.HOLDS: 'holds'>, <Answer.FAILS: 'does not hold'>)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final, TypeAlias

from pathcast.cli.columns import number
from pathcast_lab.bench.figures.defined import PaperPoint
from pathcast_lab.bench.figures.point import Value

TOLERANCE: Final = 1.1
"""What is less than this many times as much may be as much: medians of a run on a shared machine
differ by a tenth."""

CLOSE: Final = 1.25
"""What counts as close, as even and as about as many: at most this many times as much."""

WIDE: Final = 1.5
"""What counts as a wide margin, as dramatic and as much less: this many times as much."""


class Answer(Enum):
    """Whether a statement of a paper holds in a run; the values are the words of the page."""

    HOLDS = "holds"
    FAILS = "does not hold"
    CLOSE = "within a tenth"
    UNMEASURED = "–"

    @classmethod
    def of(cls, holds: bool) -> Answer:
        """Of a comparison that names its own tolerance."""
        return cls.HOLDS if holds else cls.FAILS

    @classmethod
    def all_of(cls, answers: Iterable[Answer]) -> Answer:
        """All must hold; one that fails is enough to fail."""
        found = set(answers)
        for answer in (cls.FAILS, cls.CLOSE):
            if answer in found:
                return answer
        return cls.HOLDS


Judgement: TypeAlias = tuple[Answer, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A statement of a paper beside what was measured.

    Attributes:
        statement: In the paper's sense.
        where: Section.
        answer: Whether the values say the same.
        detail: The numbers.
    """

    statement: str
    where: str
    answer: Answer
    detail: str


class NotMeasuredError(LookupError):
    """A statement speaks of something that the run does not have."""


class Found:
    """The values of one figure, by what statements ask for.

    Args:
        values: Of a run.
        paper: Numbers of the paper's text.
    """

    def __init__(self, values: Sequence[Value], paper: Sequence[PaperPoint] = ()) -> None:
        self._paper = paper
        self._values = {
            (value.series, value.variant, value.x, value.measure): value.spread.median
            for value in values
        }

    def places(self, series: str, variant: str = "", measure: str = "mqpt") -> list[float]:
        """Where a curve was measured, ascending."""
        found = sorted(x for s, v, x, m in self._values if (s, v, m) == (series, variant, measure))
        if not found:
            raise NotMeasuredError(series, variant)
        return found

    def at(
        self, series: str, variant: str = "", x: float | None = None, measure: str = "mqpt"
    ) -> float:
        """A value; None for the largest place that was measured."""
        if x is None:
            x = self.places(series, variant, measure)[-1]
        try:
            return self._values[series, variant, x, measure]
        except KeyError as error:
            raise NotMeasuredError(series, variant, x, measure) from error

    def curve(
        self, series: str, variant: str = "", measure: str = "mqpt"
    ) -> list[tuple[float, float]]:
        """Places and values, ascending."""
        return [
            (x, self.at(series, variant, x, measure)) for x in self.places(series, variant, measure)
        ]

    def ends(self, series: str, variant: str = "", measure: str = "mqpt") -> tuple[float, float]:
        """The values at the first and at the last of several places."""
        curve = self.curve(series, variant, measure)
        if len(curve) < 2:
            raise NotMeasuredError(series, variant)
        return curve[0][1], curve[-1][1]

    def off_the_paper(self, series: str, measure: str) -> float:
        """How far a place lies off the paper's number at most, as a share."""
        paper = [point for point in self._paper if point.series == series]
        if not paper:
            raise NotMeasuredError(series)
        return max(
            abs(self.at(series, point.variant, point.x, measure) / point.value - 1)
            for point in paper
        )

    def sum(self, series: str, variant: str, measures: Sequence[str]) -> float:
        """Costs of several operators together; one that a plan has not costs nothing."""
        known = [m for s, v, _, m in self._values if (s, v) == (series, variant)]
        if not known:
            raise NotMeasuredError(series, variant)
        return sum(
            self.at(series, variant, measure=measure) for measure in measures if measure in known
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """What a paper says, and how values are held to it."""

    text: str
    where: str
    judged: Callable[[Found], Judgement]


def judged(
    statements: Iterable[Statement], values: Sequence[Value], paper: Sequence[PaperPoint] = ()
) -> list[Verdict]:
    """Statements beside the values of their figure, in one run, and the paper's own numbers."""
    found = Found(values, paper)
    verdicts: list[Verdict] = []
    for statement in statements:
        try:
            answer, detail = statement.judged(found)
        except NotMeasuredError:
            answer, detail = Answer.UNMEASURED, "not measured"
        verdicts.append(Verdict(statement.text, statement.where, answer, detail))
    return verdicts


def statements_table(verdicts: Sequence[Verdict]) -> str:
    """What the paper says, and whether it holds here, in Markdown."""
    rows = [["the paper says", "", "here", ""]]
    rows += [[one.statement, one.where, one.answer.value, one.detail] for one in verdicts]
    return markdown(rows).replace("  ", " ")


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table; the first one is its heading.

    Example:
        >>> print(markdown([["Q", "time"], ["10", "2 ms"]]))
        | Q | time |
        | --- | --- |
        | 10 | 2 ms |
    """
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def less(smaller: float, larger: float) -> Answer:
    """Whether one is less than the other, by more than the clock is uncertain."""
    if smaller * TOLERANCE <= larger:
        return Answer.HOLDS
    return Answer.FAILS if larger * TOLERANCE <= smaller else Answer.CLOSE


def ordered(values: Sequence[float]) -> Answer:
    """Whether each is less than the next one."""
    return Answer.all_of(less(a, b) for a, b in pairwise(values))


def off_the_line(curve: Sequence[tuple[float, float]]) -> float:
    """How far a place lies off the straight line through the ends at most, as a share.

    Raises:
        NotMeasuredError: There is nothing between the ends.
    """
    if len(curve) < 3:
        raise NotMeasuredError
    (start, first), *between, (end, last) = curve
    return max(
        abs(value / (first + (x - start) / (end - start) * (last - first)) - 1)
        for x, value in between
    )


def ratios_text(costs: Sequence[float]) -> str:
    """Several costs as multiples of the first."""
    return " : ".join(number(cost / costs[0]) for cost in costs)


def cheapest_first(costs: Mapping[str, float]) -> Judgement:
    """Whether each of some costs is less than the next one."""
    found = list(costs.values())
    return ordered(found), f"{' : '.join(costs)} = {ratios_text(found)}"


def on_a_line(*curves: Sequence[tuple[float, float]]) -> Judgement:
    """Whether straight lines through the ends leave out no more than a quarter of a value."""
    worst = max(map(off_the_line, curves))
    return Answer.of(worst <= CLOSE - 1), f"at most {number(100 * worst)} % off a straight line"
