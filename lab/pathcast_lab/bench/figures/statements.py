"""What the paper on filtering says of its figures, and whether a run says the same.

Of the reference algorithms; each comparison is of medians, at the largest place of the axis that
was measured. What the paper says of sizes beyond those of a run is not judged. Nothing here is
typed from a run.

Example:
    >>> verdict = judge("14", [])[0]
    >>> verdict.answer.name, verdict.detail
    ('UNMEASURED', 'not measured')

Source: 003, 4.3 to 6.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.figures.defined import PaperPoint
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

YFILTER, HYBRID, XFILTER = "yfilter", "hybrid", "xfilter"
INLINE, SORTED = "yfilter-inline", "yfilter-sorted"
STRUCTURE: Final = (YFILTER, HYBRID, XFILTER)


def judge(name: str, values: Sequence[Value], paper: Sequence[PaperPoint] = ()) -> list[Verdict]:
    """The statements about a figure.

    Args:
        name: Of the figure.
        values: Of it, in one run.
        paper: Numbers that the paper's text gives for it.
    """
    return judged(STATEMENTS.get(name, ()), values, paper)


def _cheapest_to_dearest(*series: str) -> Callable[[Found], Judgement]:
    return lambda found: cheapest_first({one: found.at(one) for one in series})


def _dearest(found: Found) -> Judgement:
    costs = [found.at(one) for one in STRUCTURE]
    answer = less(max(costs[:2]), costs[2])
    return answer, f"{' : '.join(STRUCTURE)} = {ratios_text(costs)}"


def _cheapest_everywhere(found: Found) -> Judgement:
    least = min(
        found.at(other, x=x) / found.at(YFILTER, x=x)
        for other in (HYBRID, XFILTER)
        for x in found.places(YFILTER)
    )
    return less(1, least), f"the others take {number(least)} times as much or more"


def _levels_off(found: Found) -> Judgement:
    (x0, before), (x1, after) = found.curve(YFILTER)[-2:]
    detail = f"{number(after / before)} times as much for {number(x1 / x0)} times as many queries"
    return Answer.of(after / before <= CLOSE), detail


def _growth(found: Found, series: str, measure: str = "mqpt", variant: str = "") -> float:
    first, last = found.ends(series, variant, measure)
    return last / first


def _growths_text(growths: Mapping[str, float]) -> str:
    return ", ".join(f"{one} {number(growth)}x" for one, growth in growths.items())


def _grows_least(found: Found) -> Judgement:
    growths = {one: _growth(found, one) for one in STRUCTURE}
    others = min(growths[HYBRID], growths[XFILTER])
    return less(growths[YFILTER], others), _growths_text(growths)


def _all_grow(found: Found) -> Judgement:
    growths = {one: _growth(found, one) for one in STRUCTURE}
    return Answer.all_of(less(1, growth) for growth in growths.values()), _growths_text(growths)


def _least_sensitive(found: Found) -> Judgement:
    spans = {}
    for one in STRUCTURE:
        costs = [cost for _, cost in found.curve(one)]
        spans[one] = max(costs) / min(costs)
    detail = "dearest to cheapest: " + _growths_text(spans)
    return less(spans[YFILTER], min(spans[HYBRID], spans[XFILTER])), detail


def _grows_linearly(found: Found) -> Judgement:
    return on_a_line(found.curve(YFILTER))


def _gap_grows(series: str, variant: str = "") -> Callable[[Found], Judgement]:
    """A series as a multiple of YFilter, from the first to the last place."""

    def judged(found: Found) -> Judgement:
        theirs, ours = found.ends(series, variant), found.ends(YFILTER, variant)
        gaps = [their / our for their, our in zip(theirs, ours, strict=True)]
        return less(*gaps), f"{number(gaps[0])} to {number(gaps[1])} times"

    return judged


def _about_as_many(
    measure: str, paper: float, start: float | None = None, end: float | None = None
) -> Callable[[Found], Judgement]:
    """YFilter's growth between two places is about the paper's factor."""

    def judged(found: Found) -> Judgement:
        places = found.places(YFILTER, measure=measure)
        ends = (places[0] if start is None else start, places[-1] if end is None else end)
        before, after = (found.at(YFILTER, x=x, measure=measure) for x in ends)
        growth = after / before
        is_about = max(growth / paper, paper / growth) <= CLOSE
        return Answer.of(is_about), f"{number(growth)} times"

    return judged


def _transitions_of_xfilter(found: Found) -> Judgement:
    more = found.at(XFILTER, measure="transitions") / found.at(YFILTER, measure="transitions")
    return less(1, more), f"{number(more)} times as many"


def _share_of_matches(found: Found) -> Judgement:
    shares = [100 * count / x for x, count in found.curve(YFILTER, measure="matches")]
    is_about = min(shares) >= 34 / CLOSE and max(shares) <= 34 * CLOSE
    return Answer.of(is_about), f"{number(min(shares))} % to {number(max(shares))} %"


def _collection_passes(found: Found) -> Judgement:
    x = found.places(YFILTER)[-1]
    if x < 300_000:
        raise NotMeasuredError(x)
    return cheapest_first(
        {one: found.at(YFILTER, measure=one) for one in ("navigation", "collection")}
    )


def _bell(series: str, measure: str = "mqpt") -> Callable[[Found], Judgement]:
    """It rises to a top between the ends, and falls again."""

    def judged(found: Found) -> Judgement:
        curve = found.curve(series, measure=measure)
        if len(curve) < 3:
            raise NotMeasuredError(series)
        top, most = max(curve, key=lambda place: place[1])
        sides = [most / curve[0][1], most / curve[-1][1]]
        if top in (curve[0][0], curve[-1][0]):
            return Answer.FAILS, f"top at {top:g}, an end"
        detail = f"top at {top:g}, {number(sides[0])} and {number(sides[1])} times the ends"
        return Answer.all_of(less(1, side) for side in sides), detail

    return judged


def _falls(series: str, measure: str = "mqpt") -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        growth = _growth(found, series, measure)
        return less(growth, 1), f"{number(growth)} times as much at the end"

    return judged


def _meet(found: Found) -> Judgement:
    costs = [found.at(XFILTER), found.at(HYBRID)]
    is_close = max(costs) / min(costs) <= CLOSE
    return Answer.of(is_close), f"xfilter : hybrid = {ratios_text(costs)}"


def _as_in_the_table(series: str) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        worst = found.off_the_paper(series, series)
        return Answer.of(worst <= CLOSE - 1), f"at most {number(100 * worst)} % off"

    return judged


def _inline_is_dearer(found: Found) -> Judgement:
    more = [found.at(INLINE, one) / found.at(YFILTER, one) for one in ("P=1", "P=2")]
    return less(1, min(more)), f"{number(more[0])} and {number(more[1])} times"


def _more_predicates_widen(found: Found) -> Judgement:
    more = [found.at(INLINE, one) / found.at(YFILTER, one) for one in ("P=1", "P=2")]
    return less(*more), f"{number(more[0])} and {number(more[1])} times"


def _grows_much_less(found: Found) -> Judgement:
    growths = {one: found.at(one) / found.at(one, x=1) for one in (INLINE, YFILTER)}
    is_less = WIDE * growths[YFILTER] <= growths[INLINE]
    return Answer.of(is_less), f"from P=1: {_growths_text(growths)}"


def _sorting_helps(found: Found) -> Judgement:
    places = [x for x in found.places(YFILTER) if x >= 2]
    shares = [found.at(SORTED, x=x) / found.at(YFILTER, x=x) for x in places]
    is_falling = all(after <= before for before, after in pairwise(shares))
    detail = f"from P=2: {', '.join(map(number, shares))} of the cost"
    return (less(shares[-1], 1) if is_falling else Answer.FAILS), detail


def _more_paths_cost_little(found: Found) -> Judgement:
    costs = [found.at(YFILTER, f"NP={paths}") for paths in (1, 2, 3)]
    return Answer.of(max(costs) <= CLOSE * costs[0]), f"NP=1 : 2 : 3 = {ratios_text(costs)}"


def _little_more(measure: str) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        growth = _growth(found, YFILTER, measure)
        return Answer.of(growth <= CLOSE), f"{number(growth)} times"

    return judged


def _less_than_paths(found: Found) -> Judgement:
    paths = found.places(YFILTER, measure="machine size")
    growth = _growth(found, YFILTER, "machine size")
    detail = f"{number(growth)} times for {number(paths[-1] / paths[0])} times as many paths"
    return less(growth, paths[-1] / paths[0]), detail


def _predicate_costs_little(found: Found) -> Judgement:
    places = found.places(YFILTER, "P=0")
    more = [found.at(YFILTER, "P=1", x) / found.at(YFILTER, "P=0", x) for x in places]
    detail = f"{number(more[-1])} times; {number(min(more))} to {number(max(more))} over all Q"
    return Answer.of(more[-1] <= CLOSE), detail


_ORDER = Statement(
    "YFilter is cheapest, then Hybrid, then XFilter", "4.3", _cheapest_to_dearest(*STRUCTURE)
)

STATEMENTS: Final[Mapping[str, tuple[Statement, ...]]] = MappingProxyType(
    {
        "11": (
            _ORDER,
            Statement("Hybrid falls behind as Q grows", "4.3.1", _gap_grows(HYBRID)),
            Statement("so does XFilter", "4.3.1", _gap_grows(XFILTER)),
            Statement("YFilter levels off", "4.3.1", _levels_off),
            Statement("XFilter makes more transitions", "4.3.1", _transitions_of_xfilter),
        ),
        "12": (
            _ORDER,
            Statement("XFilter falls behind as Q grows", "4.3.1", _gap_grows(XFILTER)),
        ),
        "13": (
            Statement("a third of the queries match", "4.3.1", _share_of_matches),
            Statement(
                "from 300,000 queries on collecting costs YFilter more than navigating",
                "4.3.1",
                _collection_passes,
            ),
        ),
        "14": (
            _ORDER,
            Statement("XFilter suffers most", "4.3.2", _dearest),
        ),
        "15": (
            _ORDER,
            Statement("XFilter falls behind as Q grows", "4.3.2", _gap_grows(XFILTER)),
        ),
        "16": (
            Statement("all grow with D", "4.4", _all_grow),
            Statement("YFilter grows least", "4.4", _grows_least),
            Statement("it grows linearly", "4.4", _grows_linearly),
            Statement(
                "it makes 5.9 times as many transitions at D = 10 as at D = 6",
                "4.4",
                _about_as_many("transitions", 5.9, 6, 10),
            ),
        ),
        "T4": (
            Statement(
                "depth of documents as in the table", "Table 4", _as_in_the_table("document depth")
            ),
            Statement("length of documents", "Table 4", _as_in_the_table("document length")),
            Statement("depth of queries", "Table 4", _as_in_the_table("query depth")),
        ),
        "T3": (
            Statement("numbers as in the table", "Table 3", _as_in_the_table("distinct queries")),
        ),
        "17": (
            Statement("YFilter is the fastest", "4.5.1", _cheapest_everywhere),
            Statement("it is the least sensitive", "4.5.1", _least_sensitive),
            Statement(
                "its machine grows, and shrinks again", "4.5.1", _bell(YFILTER, "machine size")
            ),
            Statement("XFilter gets faster with W", "4.5.1", _falls(XFILTER)),
            Statement("Hybrid slows down, then gets faster", "4.5.1", _bell(HYBRID)),
        ),
        "18": (
            Statement(
                "YFilter's machine is 2.8 times as large at DS = 0.6 as at DS = 0",
                "4.5.2",
                _about_as_many("machine size", 2.8, 0, 0.6),
            ),
            Statement(
                "its time is 3.2 times as long", "4.5.2", _about_as_many("mqpt", 3.2, 0, 0.6)
            ),
            Statement("then its machine shrinks", "4.5.2", _bell(YFILTER, "machine size")),
            Statement("and its time falls", "4.5.2", _bell(YFILTER)),
            Statement("XFilter is a bell", "4.5.2", _bell(XFILTER)),
            Statement("Hybrid meets XFilter at DS = 1", "4.5.2", _meet),
        ),
        "T5": (
            Statement(
                "inserting gets cheaper with the queries present",
                "4.6",
                _falls(YFILTER, "insertion"),
            ),
        ),
        "22": (
            Statement("Inline costs more than SP", "5.3", _inline_is_dearer),
            Statement("the gap grows with Q at P = 1", "5.3", _gap_grows(INLINE, "P=1")),
            Statement("and at P = 2", "5.3", _gap_grows(INLINE, "P=2")),
            Statement("the gap grows with P", "5.3", _more_predicates_widen),
        ),
        "23": (Statement("Inline grows with P, SP much less", "5.3", _grows_much_less),),
        "24": (Statement("sorting helps, the more the larger P is", "5.3", _sorting_helps),),
        "26": (
            Statement(
                "the second and third nested path cost little more", "6.4", _more_paths_cost_little
            ),
        ),
        "T6": (
            Statement("the machine grows by less than the paths", "6.4", _less_than_paths),
            Statement("the engine costs little more", "6.4", _little_more("engine")),
            Statement("NP-Filter gets cheaper", "6.4", _falls(YFILTER, "NP-Filter")),
            Statement("fewer queries match", "6.4", _falls(YFILTER, "matches")),
        ),
        "27": (Statement("a predicate costs very little more", "6.4", _predicate_costs_little),),
    }
)
"""Figure -> what the paper says of it."""
