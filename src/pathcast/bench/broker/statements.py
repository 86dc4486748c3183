"""What the paper says of its figures, and whether the values of a run say the same.

A statement is checked where the run has what it speaks of; each comparison is of medians, at the
largest place of the axis that was measured. Nothing here is typed from a run.

Example:
    >>> verdict = judge("7", [])[0]
    >>> verdict.holds is None, verdict.detail
    (True, 'not measured')

Source: 002, 6.2 to 6.6.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from pathcast.bench.broker.definition import BrokerAlgorithm
from pathcast.bench.figures.page import time_text
from pathcast.bench.figures.point import Value
from pathcast.bench.report import number

F = BrokerAlgorithm.F.value
FW = BrokerAlgorithm.FW.value
FWR = BrokerAlgorithm.FWR.value
SHARED = BrokerAlgorithm.SHARED.value
NO_OPT, OPT_Q, OPT_DTD = "NoOpt", "Opt(q)", "Opt(q+dtd)"

WIDE: Final = 1.5
"""What counts as a wide margin, and as dramatic: this many times as much."""

CLOSE: Final = 1.25
"""What counts as close: at most this many times as much."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A statement of the paper beside what was measured.

    Attributes:
        statement: In the paper's sense.
        where: Section.
        holds: Whether the values say the same; None if it was not measured.
        detail: The numbers.
    """

    statement: str
    where: str
    holds: bool | None
    detail: str

    @property
    def word(self) -> str:
        """For a table."""
        return {True: "holds", False: "does not hold", None: "–"}[self.holds]


class NotMeasuredError(LookupError):
    """A statement speaks of something that the run does not have."""


class Found:
    """The values of one figure, by what statements ask for."""

    def __init__(self, values: Sequence[Value]) -> None:
        self._values = {
            (value.series, value.variant, value.x, value.measure): value.spread.median
            for value in values
        }

    def places(self, series: str, variant: str, measure: str = "mqpt") -> list[float]:
        """Where a curve was measured, ascending."""
        found = sorted(x for s, v, x, m in self._values if (s, v, m) == (series, variant, measure))
        if not found:
            raise NotMeasuredError(series, variant)
        return found

    def at(self, series: str, variant: str, x: float | None = None, measure: str = "mqpt") -> float:
        """A value; None for the largest place that was measured."""
        if x is None:
            x = self.places(series, variant, measure)[-1]
        try:
            return self._values[series, variant, x, measure]
        except KeyError as error:
            raise NotMeasuredError(series, variant, x, measure) from error

    def sum(self, series: str, variant: str, measures: Sequence[str]) -> float:
        """Costs of several operators together; one that a plan has not costs nothing."""
        known = [m for s, v, _, m in self._values if (s, v) == (series, variant)]
        if not known:
            raise NotMeasuredError(series, variant)
        return sum(
            self.at(series, variant, measure=measure) for measure in measures if measure in known
        )


Judgement: TypeAlias = tuple[bool, str]


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    where: str
    judged: Callable[[Found], Judgement]


def judge(name: str, values: Sequence[Value]) -> list[Verdict]:
    """The statements about a figure.

    Args:
        name: Of the figure.
        values: Of it, in one run.
    """
    found = Found(values)
    verdicts: list[Verdict] = []
    for statement in STATEMENTS.get(name, ()):
        try:
            holds, detail = statement.judged(found)
            verdicts.append(Verdict(statement.text, statement.where, holds, detail))
        except NotMeasuredError:
            verdicts.append(Verdict(statement.text, statement.where, None, "not measured"))
    return verdicts


def _order(found: Found, variant: str, *series: str) -> Judgement:
    """Each is cheaper than the next one."""
    costs = [found.at(one, variant) for one in series]
    names = [one.removeprefix("PathSharing-") for one in series]
    detail = " : ".join(names) + f" = {_ratios(costs)}"
    return all(a < b for a, b in itertools.pairwise(costs)), detail


def _ratios(costs: Sequence[float]) -> str:
    return " : ".join(number(cost / costs[0]) for cost in costs)


def _lowest_and_highest(found: Found) -> Judgement:
    costs = {one: found.at(one, NO_OPT) for one in (FW, F, FWR)}
    holds = min(costs, key=costs.__getitem__) == FW and max(costs, key=costs.__getitem__) == FWR
    return holds, f"FW : F : FWR = {_ratios(list(costs.values()))}"


def _improves_all(found: Found, before: str, after: str) -> Judgement:
    gains = {one: found.at(one, before) / found.at(one, after) for one in (F, FW, FWR)}
    detail = ", ".join(f"{one.removeprefix('PathSharing-')} {number(gains[one])}x" for one in gains)
    return all(gain > 1 for gain in gains.values()), detail


def _wide_margin(found: Found) -> Judgement:
    best = found.at(FWR, OPT_DTD)
    others = [found.at(one, OPT_DTD) / best for one in (F, FW)]
    return min(others) >= WIDE, f"F and FW take {number(others[0])} and {number(others[1])} times"


def _less_pronounced(found: Found) -> Judgement:
    best = found.at(FWR, OPT_DTD)
    others = [found.at(one, OPT_DTD) / best for one in (F, FW)]
    return min(others) > 1, f"F and FW take {number(others[0])} and {number(others[1])} times"


def _predicates_in_engine(found: Found) -> Judgement:
    search = found.sum(F, NO_OPT, ["Where-Filter"])
    shared = found.sum(FW, NO_OPT, ["semijoin", "selection"])
    return shared < search, f"tree search : semijoins and selection = {number(search / shared)}"


def _avoided(measures: Sequence[str], after: str, share: float) -> Callable[[Found], Judgement]:
    """What is left of the cost of some operators of FWR is at most a share."""

    def judged(found: Found) -> Judgement:
        parts, is_less = [], True
        for measure in measures:
            before = found.sum(FWR, NO_OPT, [measure])
            left = found.sum(FWR, after, [measure])
            is_less = is_less and left <= share * before
            parts.append(f"{measure} {number(100 * left / before if before else 0)} % left")
        return is_less, ", ".join(parts)

    return judged


def _engine_is_no_dominant_part(found: Found) -> Judgement:
    all_of_it = found.sum(FWR, OPT_DTD, OPERATORS)
    share = found.sum(FWR, OPT_DTD, ["path matching"]) / all_of_it
    return share < 0.5, f"{number(100 * share)} % of the cost with Opt(q+dtd)"


def _none_left(measures: Sequence[str]) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        left = found.sum(FWR, OPT_DTD, measures)
        return left == 0, f"{number(left)} left"

    return judged


def _differences_shrink(found: Found) -> Judgement:
    spans = []
    places = found.places(FWR, OPT_DTD)
    for x in (places[0], places[-1]):
        costs = [found.at(one, OPT_DTD, x) for one in (F, FW, FWR)]
        spans.append(max(costs) - min(costs))
    detail = f"dearest less cheapest: {time_text(spans[0])} to {time_text(spans[1])}"
    return spans[1] < spans[0], detail


def _falls(found: Found) -> Judgement:
    places = found.places(F, OPT_DTD)
    changes = [
        found.at(one, OPT_DTD, places[-1]) / found.at(one, OPT_DTD, places[0]) for one in (F, FW)
    ]
    detail = f"F {number(changes[0])}, FW {number(changes[1])} times as much"
    return all(change < 1 for change in changes), detail


def _close_at_the_end(found: Found) -> Judgement:
    costs = sorted(found.at(one, OPT_DTD) for one in (FW, FWR))
    return costs[1] / costs[0] <= CLOSE, f"{number(costs[1] / costs[0])} times"


def _grows_linearly(series: Sequence[str]) -> Callable[[Found], Judgement]:
    """The straight line through the ends leaves out no more than a quarter of a value between."""

    def judged(found: Found) -> Judgement:
        worst = 0.0
        for one in series:
            places = found.places(one, OPT_DTD)
            if len(places) < 3:
                raise NotMeasuredError(one)
            first, last = (found.at(one, OPT_DTD, x) for x in (places[0], places[-1]))
            for x in places[1:-1]:
                share = (x - places[0]) / (places[-1] - places[0])
                line = first + share * (last - first)
                worst = max(worst, abs(found.at(one, OPT_DTD, x) / line - 1))
        return worst <= 0.25, f"at most {number(100 * worst)} % off a straight line"

    return judged


def _slopes(found: Found, *series: str) -> list[float]:
    slopes = []
    for one in series:
        places = found.places(one, OPT_DTD)
        if len(places) < 2:
            raise NotMeasuredError(one)
        rise = found.at(one, OPT_DTD, places[-1]) - found.at(one, OPT_DTD, places[0])
        slopes.append(rise / (places[-1] - places[0]))
    return slopes


def _less_sensitive(found: Found) -> Judgement:
    f, fw, fwr = _slopes(found, F, FW, FWR)
    detail = f"a return path more: F {time_text(f)}, FW {time_text(fw)}, FWR {time_text(fwr)}"
    return max(fwr, 0) * WIDE <= min(f, fw), detail


def _steepest_is_f(found: Found) -> Judgement:
    f, fw, fwr = (1000 * slope for slope in _slopes(found, F, FW, FWR))
    detail = f"1,000 queries more: F {time_text(f)}, FW {time_text(fw)}, FWR {time_text(fwr)}"
    return f > max(fw, fwr), detail


def _joins_dominate(found: Found) -> Judgement:
    joins = found.sum(FWR, OPT_DTD, ["semijoin", "OuterJoin-Select"])
    share = joins / found.sum(FWR, OPT_DTD, OPERATORS)
    return share > 0.5, f"{number(100 * share)} % of the cost"


def _sharing_is_dramatic(found: Found) -> Judgement:
    gain = found.at(FWR, OPT_DTD) / found.at(SHARED, OPT_DTD)
    return gain >= WIDE, f"{number(gain)} times"


def _sharing_grows_slower(found: Found) -> Judgement:
    alone, shared = _slopes(found, FWR, SHARED)
    detail = f"1,000 plans more: {time_text(1e3 * alone)} and {time_text(1e3 * shared)}"
    return shared < alone, detail


def _reduced(*measures: str) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        alone = found.sum(FWR, OPT_DTD, measures)
        shared = found.sum(SHARED, OPT_DTD, measures)
        return shared < alone, f"{time_text(alone)} to {time_text(shared)}"

    return judged


def _only_outer_joins_rise(found: Found) -> Judgement:
    places = found.places(SHARED, OPT_DTD, "OuterJoin-Select")
    if len(places) < 2:
        raise NotMeasuredError(SHARED)
    rises = {}
    for measure in OPERATORS:
        if measure in ("executor", "total"):
            continue
        try:
            ends = [found.at(SHARED, OPT_DTD, x, measure) for x in (places[0], places[-1])]
        except NotMeasuredError:
            continue
        rises[measure] = ends[1] - ends[0]
    most = max(rises, key=rises.__getitem__)
    detail = ", ".join(f"{one} +{time_text(rise)}" for one, rise in rises.items())
    return most == "OuterJoin-Select", detail


OPERATORS: Final = (
    "path matching",
    "selection",
    "DupElim",
    "Where-Filter",
    "semijoin",
    "Return-Select",
    "OuterJoin-Select",
    "GroupBy",
    "executor",
)
"""Measures of a profile, in the order in which tables show them."""

HASHED: Final = ("semijoin (hash)", "OuterJoin-Select (hash)", "DupElim (hash)")

_BASIC = (
    _Statement(
        "Opt(q) improves all three alternatives", "6.2", lambda f: _improves_all(f, NO_OPT, OPT_Q)
    ),
    _Statement(
        "Opt(q+dtd) improves all three further",
        "6.2",
        lambda f: _improves_all(f, OPT_Q, OPT_DTD),
    ),
)

STATEMENTS: Final[Mapping[str, tuple[_Statement, ...]]] = MappingProxyType(
    {
        "7": (
            _Statement(
                "without optimisation FW has the lowest cost and FWR the highest",
                "6.2",
                _lowest_and_highest,
            ),
            *_BASIC,
            _Statement(
                "with Opt(q) FWR outperforms the other two",
                "6.2",
                lambda f: _order(f, OPT_Q, FWR, min((F, FW), key=lambda one: f.at(one, OPT_Q))),
            ),
            _Statement(
                "with Opt(q+dtd) FWR outperforms the others by a wide margin", "6.2", _wide_margin
            ),
        ),
        "T2": (
            _Statement(
                "predicates in the engine with semijoins cost less than tree search",
                "6.2",
                _predicates_in_engine,
            ),
            _Statement(
                "Opt(q) avoids most of the DupElim cost", "6.2", _avoided(["DupElim"], OPT_Q, 0.5)
            ),
            _Statement(
                "Opt(q) more than halves semijoin and OuterJoin-Select",
                "6.2",
                _avoided(["semijoin", "OuterJoin-Select"], OPT_Q, 0.5),
            ),
            _Statement("with the DTD DupElim is unnecessary", "6.2", _none_left(["DupElim"])),
            _Statement(
                "the matching engine is no dominant part", "6.2", _engine_is_no_dominant_part
            ),
        ),
        "T3": (
            _Statement(
                "with Opt(q+dtd) Bib needs no DupElim and nothing hash based",
                "6.2, 6.6",
                _none_left(["DupElim (scan)", *HASHED]),
            ),
        ),
        "8": (
            _Statement(
                "more predicates reduce the differences of the three", "6.2", _differences_shrink
            ),
            _Statement("F and FW get cheaper with more predicates", "6.2", _falls),
            _Statement("FW and FWR are close at the end", "6.2", _close_at_the_end),
        ),
        "9": (
            _Statement(
                "F and FW increase linearly with the return paths", "6.2", _grows_linearly([F, FW])
            ),
            _Statement("FWR is much less sensitive to them", "6.2", _less_sensitive),
        ),
        "10": (
            *_BASIC,
            _Statement(
                "with Opt(q) FW outperforms FWR", "6.3", lambda f: _order(f, OPT_Q, FW, FWR)
            ),
            _Statement(
                "with Opt(q+dtd) FWR is best, but by less than on Bib", "6.3", _less_pronounced
            ),
        ),
        "11": (
            _Statement("all three grow linearly with Q", "6.4", _grows_linearly([F, FW, FWR])),
            _Statement("F grows fastest", "6.4", _steepest_is_f),
        ),
        "T4": (
            _Statement(
                "semijoin and OuterJoin-Select dominate as Q increases", "6.4", _joins_dominate
            ),
        ),
        "12": (
            _Statement("plan sharing reduces the cost dramatically", "6.5", _sharing_is_dramatic),
            _Statement("and it grows more slowly with Q", "6.5", _sharing_grows_slower),
        ),
        "T5": (
            _Statement("shared joins reduce the cost of semijoins", "6.5", _reduced("semijoin")),
            _Statement(
                "grouped selections reduce the cost of selection and DupElim",
                "6.5",
                _reduced("selection", "DupElim"),
            ),
            _Statement(
                "GroupBy makes OuterJoin-Selects cheaper",
                "6.5",
                _reduced("OuterJoin-Select", "GroupBy"),
            ),
            _Statement("the executor costs less", "6.5", _reduced("executor")),
            _Statement(
                "OuterJoin-Select is the only operator whose cost rises noticeably",
                "6.5",
                _only_outer_joins_rise,
            ),
        ),
    }
)
"""Figure -> what the paper says of it."""
