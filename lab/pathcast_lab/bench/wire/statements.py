"""What the paper on networks of brokers says of wire formats, and whether a run says the same.

Each comparison is of medians. Nothing here is typed from a run.

Example:
    >>> judge("7", [])[0].answer.name
    'UNMEASURED'

Source: 001, 4.3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    NotMeasuredError,
    Statement,
    Verdict,
    judged,
)
from pathcast_lab.bench.wire.experiments import LXML

COMPLEXITIES: Final = ("4-1", "6-1", "4-2", "6-2", "4-3", "6-3")


def judge(name: str, values: Sequence[Value]) -> list[Verdict]:
    """The statements about a figure.

    Args:
        name: Of the figure.
        values: Of it, in one run.
    """
    return judged(STATEMENTS.get(name, ()), values)


def _ratios(found: Found, measure: str, series: str, base: str) -> list[float]:
    """One series by another, at every complexity."""
    ratios = []
    for place, variant in enumerate(COMPLEXITIES):
        above = found.at(series, variant, place, measure)
        ratios.append(above / found.at(base, variant, place, measure))
    return ratios


def _span(ratios: Sequence[float]) -> str:
    return f"{number(100 * min(ratios))} to {number(100 * max(ratios))} %"


def _stream_is_hardly_smaller(found: Found) -> Judgement:
    ratios = _ratios(found, "size", "stream", "text")
    return Answer.of(min(ratios) * CLOSE >= 1), f"{_span(ratios)} of the text"


def _dictionary_promises(found: Found) -> Judgement:
    ratios = _ratios(found, "size", "dictionary", "text")
    return Answer.of(max(ratios) * WIDE <= 1), f"{_span(ratios)} of the text"


def _compression_is_significant(found: Found) -> Judgement:
    ratios = [
        ratio
        for encoding in ("text", "stream", "dictionary")
        for ratio in _ratios(found, "size", f"{encoding}+zlib", encoding)
    ]
    return Answer.of(max(ratios) * WIDE <= 1), f"{_span(ratios)} of the uncompressed"


def _compared(measure: str, series: str, base: str, most: float) -> Callable[[Found], Judgement]:
    def compared(found: Found) -> Judgement:
        ratios = _ratios(found, measure, series, base)
        return Answer.of(max(ratios) <= most), f"{_span(ratios)} of {base}"

    return compared


def _compression_is_slow(found: Found) -> Judgement:
    ratios = [
        ratio
        for encoding in ("text", "stream", "dictionary")
        for ratio in _ratios(found, "delay", f"{encoding}+zlib", encoding)
    ]
    return Answer.of(min(ratios) >= WIDE), f"{number(min(ratios))} to {number(max(ratios))} times"


def _text_is_quickest(found: Found) -> Judgement:
    quickest = []
    for place, variant in enumerate(COMPLEXITIES):
        delays = {
            series: found.at(series, variant, place, "delay")
            for series in ("text", "stream", "dictionary", "text+zlib", "text+zstd")
        }
        quickest.append(min(delays, key=lambda series: delays[series]))
    return Answer.of(set(quickest) == {"text"}), ", ".join(dict.fromkeys(quickest))


def _best_changes(found: Found) -> Judgement:
    slow, fast = found.places("text", "6-3", "time")[0], found.places("text", "6-3", "time")[-1]
    formats = ("text", "dictionary", "dictionary+zlib", "dictionary+zstd", "text+zlib")

    def best(bandwidth: float) -> str:
        return min(formats, key=lambda name: found.at(name, "6-3", bandwidth, "time"))

    detail = f"{best(slow)} at {slow:g} Mb/s, {best(fast)} at {fast:g} Mb/s"
    return Answer.of(best(slow) != "text" and best(fast) == "text"), detail


def _set_up_dominates(found: Found) -> Judgement:
    kept = found.at("kept", "6-3", 0, "time")
    new = found.at("for each message", "6-3", 0, "time")
    if not kept:
        raise NotMeasuredError("kept")
    return Answer.of(new >= WIDE * kept), f"{number(new / kept)} times, over loopback"


STATEMENTS: Final[Mapping[str, tuple[Statement, ...]]] = MappingProxyType(
    {
        "7": (
            Statement(
                "the element stream is not remarkably smaller than text (here: by a fifth at most)",
                "4.3.2",
                _stream_is_hardly_smaller,
            ),
            Statement(
                "dictionary encoding gives promising results (here: at most two thirds of it)",
                "4.3.2",
                _dictionary_promises,
            ),
            Statement(
                "compression reduces the size of all formats significantly",
                "4.3.2",
                _compression_is_significant,
            ),
        ),
        "8": (
            Statement(
                "text, which is parsed, is expensive: the element stream is quicker",
                "4.3.2",
                _compared("delay", "stream", "text", 1.0),
            ),
            Statement(
                "the same for the element stream with a dictionary",
                "4.3.2",
                _compared("delay", "dictionary", "text", 1.0),
            ),
            Statement("zlib has significant costs", "4.3.2", _compression_is_slow),
            Statement("not the paper's: text is quickest of all", "", _text_is_quickest),
            Statement(
                "not the paper's: a stream with a dictionary, written and read, takes less than "
                "lxml takes to parse the text",
                "",
                _compared("delay", "dictionary", LXML, 1.0),
            ),
        ),
        "links": (
            Statement(
                "the choice must weigh both: what is best depends on the link",
                "4.3.2",
                _best_changes,
            ),
        ),
        "connections": (
            Statement(
                "setting up the connection dominates for small messages", "4.3.2", _set_up_dominates
            ),
        ),
    }
)
"""Name of a figure -> what the paper says of it."""
