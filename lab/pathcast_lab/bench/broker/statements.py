"""What the paper on message brokers says of its figures, and whether a run says the same.

A statement is checked where the run has what it speaks of; each comparison is of medians, at the
largest place of the axis that was measured. Nothing here is typed from a run.

Example:
    >>> verdict = judge("7", [])[0]
    >>> verdict.answer.name, verdict.detail
    ('UNMEASURED', 'not measured')

Source: 002, 6.2 to 6.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.broker.definition import BrokerAlgorithm
from pathcast_lab.bench.figures.page import time_text
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import (
    CLOSE,
    WIDE,
    Answer,
    Found,
    Judgement,
    NotMeasuredError,
    Statement,
    Verdict,
    cheapest_first,
    judged,
    less,
    on_a_line,
    ratios_text,
)

F = BrokerAlgorithm.F.value
FW = BrokerAlgorithm.FW.value
FWR = BrokerAlgorithm.FWR.value
SHARED = BrokerAlgorithm.SHARED.value
NO_OPT, OPT_Q, OPT_DTD = "NoOpt", "Opt(q)", "Opt(q+dtd)"


def judge(name: str, values: Sequence[Value]) -> list[Verdict]:
    """The statements about a figure.

    Args:
        name: Of the figure.
        values: Of it, in one run.
    """
    return judged(STATEMENTS.get(name, ()), values)


def _order(found: Found, variant: str, *series: str) -> Judgement:
    """Each is cheaper than the next one."""
    names = (one.removeprefix("PathSharing-") for one in series)
    return cheapest_first(
        {name: found.at(one, variant) for name, one in zip(names, series, strict=True)}
    )


def _lowest_and_highest(found: Found) -> Judgement:
    costs = {one: found.at(one, NO_OPT) for one in (FW, F, FWR)}
    answer = Answer.all_of((less(costs[FW], costs[F]), less(costs[F], costs[FWR])))
    return answer, f"FW : F : FWR = {ratios_text(list(costs.values()))}"


def _improves_all(found: Found, before: str, after: str) -> Judgement:
    gains = {one: found.at(one, before) / found.at(one, after) for one in (F, FW, FWR)}
    detail = ", ".join(f"{one.removeprefix('PathSharing-')} {number(gains[one])}x" for one in gains)
    return Answer.all_of(less(1, gain) for gain in gains.values()), detail


def _multiples_of_the_best(found: Found) -> tuple[float, str]:
    """How many times as much as FWR the others take at least, and what they take."""
    best = found.at(FWR, OPT_DTD)
    f, fw = (found.at(one, OPT_DTD) / best for one in (F, FW))
    return min(f, fw), f"F and FW take {number(f)} and {number(fw)} times"


def _wide_margin(found: Found) -> Judgement:
    least, detail = _multiples_of_the_best(found)
    return Answer.of(least >= WIDE), detail


def _is_best(found: Found) -> Judgement:
    least, detail = _multiples_of_the_best(found)
    return less(1, least), detail


def _predicates_in_engine(found: Found) -> Judgement:
    search = found.sum(F, NO_OPT, ["Where-Filter"])
    shared = found.sum(FW, NO_OPT, ["semijoin", "selection"])
    return less(
        shared, search
    ), f"tree search : semijoins and selection = {number(search / shared)}"


def _avoided(measures: Sequence[str], after: str, share: float) -> Callable[[Found], Judgement]:
    """What is left of the cost of some operators of FWR is at most a share."""

    def judged(found: Found) -> Judgement:
        parts, is_less = [], True
        for measure in measures:
            before = found.sum(FWR, NO_OPT, [measure])
            left = found.sum(FWR, after, [measure])
            is_less = is_less and left <= share * before
            parts.append(f"{measure} {number(100 * left / before if before else 0)} % left")
        return Answer.of(is_less), ", ".join(parts)

    return judged


def _engine_is_no_dominant_part(found: Found) -> Judgement:
    all_of_it = found.sum(FWR, OPT_DTD, OPERATORS)
    share = found.sum(FWR, OPT_DTD, ["path matching"]) / all_of_it
    return Answer.of(share < 0.5), f"{number(100 * share)} % of the cost with Opt(q+dtd)"


def _none_left(measures: Sequence[str]) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        left = found.sum(FWR, OPT_DTD, measures)
        return Answer.of(left == 0), f"{number(left)} left"

    return judged


def _differences_shrink(found: Found) -> Judgement:
    spans = []
    places = found.places(FWR, OPT_DTD)
    for x in (places[0], places[-1]):
        costs = [found.at(one, OPT_DTD, x) for one in (F, FW, FWR)]
        spans.append(max(costs) - min(costs))
    detail = f"dearest less cheapest: {time_text(spans[0])} to {time_text(spans[1])}"
    return less(spans[1], spans[0]), detail


def _falls(found: Found) -> Judgement:
    places = found.places(F, OPT_DTD)
    changes = [
        found.at(one, OPT_DTD, places[-1]) / found.at(one, OPT_DTD, places[0]) for one in (F, FW)
    ]
    detail = f"F {number(changes[0])}, FW {number(changes[1])} times as much"
    return Answer.all_of(less(change, 1) for change in changes), detail


def _close_at_the_end(found: Found) -> Judgement:
    costs = sorted(found.at(one, OPT_DTD) for one in (FW, FWR))
    return Answer.of(costs[1] / costs[0] <= CLOSE), f"{number(costs[1] / costs[0])} times"


def _grows_linearly(series: Sequence[str]) -> Callable[[Found], Judgement]:
    return lambda found: on_a_line(*(found.curve(one, OPT_DTD) for one in series))


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
    return Answer.of(max(fwr, 0) * WIDE <= min(f, fw)), detail


def _steepest_is_f(found: Found) -> Judgement:
    f, fw, fwr = (1000 * slope for slope in _slopes(found, F, FW, FWR))
    detail = f"1,000 queries more: F {time_text(f)}, FW {time_text(fw)}, FWR {time_text(fwr)}"
    return less(max(fw, fwr), f), detail


def _joins_dominate(found: Found) -> Judgement:
    joins = found.sum(FWR, OPT_DTD, ["semijoin", "OuterJoin-Select"])
    share = joins / found.sum(FWR, OPT_DTD, OPERATORS)
    return Answer.of(share > 0.5), f"{number(100 * share)} % of the cost"


def _sharing_is_dramatic(found: Found) -> Judgement:
    gain = found.at(FWR, OPT_DTD) / found.at(SHARED, OPT_DTD)
    return Answer.of(gain >= WIDE), f"{number(gain)} times"


def _sharing_grows_slower(found: Found) -> Judgement:
    alone, shared = _slopes(found, FWR, SHARED)
    detail = f"1,000 plans more: {time_text(1e3 * alone)} and {time_text(1e3 * shared)}"
    return less(shared, alone), detail


def _reduced(*measures: str) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        alone = found.sum(FWR, OPT_DTD, measures)
        shared = found.sum(SHARED, OPT_DTD, measures)
        return less(shared, alone), f"{time_text(alone)} to {time_text(shared)}"

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
    detail = ", ".join(f"{one} {_rise_text(rise)}" for one, rise in rises.items())
    return Answer.of(most == "OuterJoin-Select"), detail


def _rise_text(rise: float) -> str:
    return f"{'-' if rise < 0 else '+'}{time_text(abs(rise))}"


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
    Statement(
        "Opt(q) improves all three alternatives", "6.2", lambda f: _improves_all(f, NO_OPT, OPT_Q)
    ),
    Statement(
        "Opt(q+dtd) improves all three further",
        "6.2",
        lambda f: _improves_all(f, OPT_Q, OPT_DTD),
    ),
)

STATEMENTS: Final[Mapping[str, tuple[Statement, ...]]] = MappingProxyType(
    {
        "7": (
            Statement(
                "without optimisation FW has the lowest cost and FWR the highest",
                "6.2",
                _lowest_and_highest,
            ),
            *_BASIC,
            Statement(
                "with Opt(q) FWR outperforms the other two",
                "6.2",
                lambda f: _order(f, OPT_Q, FWR, min((F, FW), key=lambda one: f.at(one, OPT_Q))),
            ),
            Statement(
                "with Opt(q+dtd) FWR outperforms the others by a wide margin", "6.2", _wide_margin
            ),
        ),
        "T2": (
            Statement(
                "predicates in the engine with semijoins cost less than tree search",
                "6.2",
                _predicates_in_engine,
            ),
            Statement(
                "Opt(q) avoids most of the DupElim cost", "6.2", _avoided(["DupElim"], OPT_Q, 0.5)
            ),
            Statement(
                "Opt(q) more than halves semijoin and OuterJoin-Select",
                "6.2",
                _avoided(["semijoin", "OuterJoin-Select"], OPT_Q, 0.5),
            ),
            Statement("with the DTD DupElim is unnecessary", "6.2", _none_left(["DupElim"])),
            Statement(
                "the matching engine is no dominant part", "6.2", _engine_is_no_dominant_part
            ),
        ),
        "T3": (
            Statement(
                "with Opt(q+dtd) Bib needs no DupElim and nothing hash based",
                "6.2, 6.6",
                _none_left(["DupElim (scan)", *HASHED]),
            ),
        ),
        "8": (
            Statement(
                "more predicates reduce the differences of the three", "6.2", _differences_shrink
            ),
            Statement("F and FW get cheaper with more predicates", "6.2", _falls),
            Statement("FW and FWR are close at the end", "6.2", _close_at_the_end),
        ),
        "9": (
            Statement(
                "F and FW increase linearly with the return paths", "6.2", _grows_linearly([F, FW])
            ),
            Statement("FWR is much less sensitive to them", "6.2", _less_sensitive),
        ),
        "10": (
            *_BASIC,
            Statement("with Opt(q) FW outperforms FWR", "6.3", lambda f: _order(f, OPT_Q, FW, FWR)),
            Statement("with Opt(q+dtd) FWR is best", "6.3", _is_best),
        ),
        "11": (
            Statement("all three grow linearly with Q", "6.4", _grows_linearly([F, FW, FWR])),
            Statement("F grows fastest", "6.4", _steepest_is_f),
        ),
        "T4": (
            Statement(
                "semijoin and OuterJoin-Select dominate as Q increases", "6.4", _joins_dominate
            ),
        ),
        "12": (
            Statement("plan sharing reduces the cost dramatically", "6.5", _sharing_is_dramatic),
            Statement("and it grows more slowly with Q", "6.5", _sharing_grows_slower),
        ),
        "T5": (
            Statement("shared joins reduce the cost of semijoins", "6.5", _reduced("semijoin")),
            Statement(
                "grouped selections reduce the cost of selection and DupElim",
                "6.5",
                _reduced("selection", "DupElim"),
            ),
            Statement(
                "GroupBy makes OuterJoin-Selects cheaper",
                "6.5",
                _reduced("OuterJoin-Select", "GroupBy"),
            ),
            Statement("the executor costs less", "6.5", _reduced("executor")),
            Statement(
                "OuterJoin-Select is the only operator whose cost rises noticeably",
                "6.5",
                _only_outer_joins_rise,
            ),
        ),
    }
)
"""Figure -> what the paper says of it."""
