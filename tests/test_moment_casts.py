"""Dates and times as conditions of the index: a comparison is one condition, exact at its borders.

If these fail, a broker keeps an alert from a subscriber who asked for what is sent since a moment,
or sends messages over links to where nobody wants them. What is expected is computed by the papers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from oracles import ENGINES
from oracles.engines import EngineName, made_by
from pathcast.boundary import native
from pathcast.engine import QueryIndex
from pathcast.errors import QuerySyntaxError
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.query import compile_query, conjunction_of
from pathcast_papers.language.typed_text import Moment, value_of
from test_casts import OPERATORS, delivered, message_of, routed
from typed_writer import BORDERS

pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")

TYPES = ("date", "dateTime", "time")
FINE = {
    "date": (),
    "time": ("12:00:00.000001", "12:00:00.0000010001", "12:00:00.000002"),
    "dateTime": (
        *("9999-12-31T23:59:59.999999999", "9999-12-31T24:00:00", "2399-12-31T23:59:59.999999"),
        *(
            "2026-01-01T00:00:00.1",
            "2026-01-01T00:00:00.100000001",
            "2026-01-01T00:00:00.099999999",
        ),
        *("1969-12-31T23:59:59.999999", "1970-01-01T00:00:00", "999999999-12-31T23:59:59.5"),
    ),
}
"""Values that differ by less than a double can tell."""


def texts_of(to: str) -> tuple[str, ...]:
    return (*BORDERS[to], *FINE[to], *BORDERS["date" if to != "date" else "time"][:3], "x", "")


def instant(text: str, to: str) -> int | None:
    value = value_of(text, to)
    return value.instant if isinstance(value, Moment) else None


def constants_of(to: str) -> list[str]:
    return [text.strip() for text in texts_of(to) if instant(text, to) is not None]


@pytest.mark.parametrize("place", ["$a/@x", "$a/b", "$a/b/@y", "$a/text()"])
@pytest.mark.parametrize("to", TYPES)
def test_a_gate_holds_where_a_comparison_delivers_and_nowhere_else(to: str, place: str) -> None:
    cases = list(itertools.product(OPERATORS, constants_of(to)))
    assert len(cases) > 60
    texts = [
        f"for $a in //a where {place} {sign} xs:{to}('{constant}') return $a"
        for sign, constant in cases
    ]
    entries = [disjuncts_of(text) for text in texts]
    indexed = {number for number, entry in enumerate(entries) if f"{to}(" in entry[0]}
    # What a double has no room for asks for existence.
    assert len(indexed) > 0.7 * len(cases)
    values = texts_of(to)
    messages = [message_of((value, value, [value])) for value in values]
    answers = zip(values, delivered(texts, messages), routed(entries, messages), strict=True)
    for value, given, passed in answers:
        found = instant(value, to)
        expected = {
            number
            for number, (sign, constant) in enumerate(cases)
            if found is not None and OPERATORS[sign](found, instant(constant, to) or 0)
        }
        assert given == expected, (place, value)
        assert passed & indexed == expected & indexed, (place, value)
        assert expected <= passed, (place, value)


def test_positions_count_after_a_date_is_compared() -> None:
    draw = random.Random(3)
    constants, values = constants_of("dateTime"), texts_of("dateTime")
    cases = list(itertools.product(OPERATORS, constants))
    texts = [
        f"for $a in //a[@x {sign} xs:dateTime('{constant}')][2] return $a"
        for sign, constant in cases
    ]
    drawn = [draw.choices(values, k=4) for _ in range(40)]
    messages = [message_of(*((value, "", []) for value in each)) for each in drawn]
    found = delivered(texts, messages)
    for given, each in zip(found, drawn, strict=True):
        moments = [it for value in each if (it := instant(value, "dateTime")) is not None]
        expected = {
            number
            for number, (sign, constant) in enumerate(cases)
            if sum(OPERATORS[sign](it, instant(constant, "dateTime") or 0) for it in moments) > 1
        }
        assert given == expected, each
    assert sum(map(len, found)) > 500


def test_one_comparison_is_one_entry() -> None:
    for sign in ("=", "<", "<=", ">", ">="):
        text = f"//alert[sent {sign} xs:dateTime('2026-11-27T18:00:00-05:00')]"
        (entry,) = disjuncts_of(text)
        assert entry == f"//alert/sent[dateTime(.){sign}'2026-11-27T23:00:00Z']"


def test_a_date_may_stand_in_several_text_nodes_and_has_256_bytes() -> None:
    text = "for $a in //a where $a >= xs:date('2026-01-01') return $a"
    entry = disjuncts_of(text)
    blanks = " " * 246
    pieces = (
        ("2026-01", "-01"), ("2026-01", "-0"), ("2025-12-3", "1"), (" 2026", "-06-01Z\n"), ("", ""),
        (blanks, "2026-06-01"), (blanks + " ", "2026-06-01"), (blanks + "2026-06-01", ""),
        (blanks + "2026-06-01", " "), ("2026-06-01", blanks), ("2026-06-01", blanks + " "),
    )  # fmt: skip
    messages = [f"<a>{one}<b/>{two}</a>".encode() for one, two in pieces]
    wanted: list[set[int]] = []
    for one, two in pieces:
        found = instant(one + two, "date")
        is_since = found is not None and "2025" not in one
        wanted.append({0} if is_since else set())
    assert sum(map(len, wanted)) == 5
    assert delivered([text], messages) == wanted
    assert routed([entry], messages) == wanted


def _conditions() -> Iterator[str]:
    for sign in ("=", "<", "<=", ">", ">="):
        for day in ("2026-01-01Z", "2026-01-02Z", "2026-01-01+14:00", "-0001-12-31Z"):
            yield f"[date(@x){sign}'{day}']"
        yield f"[dateTime(@x){sign}'2026-01-01T00:00:00Z']"
        yield f"[time(@x){sign}'12:00:00Z']"
    for text in ("2026-01-01", "2026-01-02Z", "12:00:00", "x"):
        yield f"[@x='{text}']"
        yield f"[starts-with(@x,'{text}')]"
        yield f"[@x!='{text}']"
    yield "[double(@x)=3]"
    yield "[@x]"


def test_what_covers_another_entry_holds_wherever_that_holds() -> None:
    alone = list(_conditions())
    draw = random.Random(1)
    pairs = ["".join(sorted(draw.sample(alone, 2))) for _ in range(80)]
    texts = [f"//a{condition}" for condition in dict.fromkeys((*alone, *pairs))]
    entries = [conjunction_of(text) for text in texts]
    values = (*BORDERS["date"], *BORDERS["dateTime"], *BORDERS["time"], "2026-01-01", "2026-01-02Z")
    values += ("2026-01-01T00:00:00", "3", "x", "2026-01-01-00:01", "2025-12-31Z")
    messages = [message_of((value, "", [])) for value in values]
    holding: list[set[int]] = [set() for _ in texts]
    for number, found in enumerate(routed([[entry.text] for entry in entries], messages)):
        for at in found:
            holding[at].add(number)
    covered = 0
    for general, special in itertools.permutations(range(len(texts)), 2):
        if entries[general].covers(entries[special]):
            assert holding[special] <= holding[general], (texts[general], texts[special])
            covered += 1
    assert covered > 300
    for one, other in (
        ("[date(@x)>'2026-01-01Z']", "[date(@x)>='2026-01-02Z']"),
        ("[date(@x)>='2026-01-01Z']", "[date(@x)='2026-01-01Z']"),
        ("[date(@x)<='2026-01-02Z']", "[@x='2026-01-01']"),
        ("[@x]", "[time(@x)<='12:00:00Z']"),
    ):
        wide, narrow = conjunction_of(f"//a{one}"), conjunction_of(f"//a{other}")
        assert wide.covers(narrow), (one, other)
        assert not narrow.covers(wide), (one, other)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_index_of_gates_reads_dates_with_other_paths_beside_them(engine: EngineName) -> None:
    index = made_by(engine, QueryIndex)
    gate = (
        "//a[date(@x)>='2026-01-01Z'][time(text())<'12:00:00Z'] and "
        "//b[dateTime(.)='2026-01-01T00:00:00Z']"
    )
    index.register_gates([gate, "//a[@x='2026-01-01']"])
    messages = {
        b"<r><a x='2026-01-01'>10:00:00<c/>0</a><b>2025-12-31T24:00:00</b></r>": {
            gate,
            "//a[@x='2026-01-01']",
        },
        b"<r><a x='2026-01-01+00:01'>10:00:00</a><b>2026-01-01T00:00:00</b></r>": set(),
        b"<r><a x='2026-01-02'>14:00:00+03:00</a><b>2026-01-01T01:00:00+01:00</b></r>": {gate},
        b"<r><a x='2026-01-02'>x</a><b>2026-01-01T00:00:00</b></r>": set(),
        b"<r><a x='2026-01-02'>10:00:00</a><b>2026-01-01</b></r>": set(),
    }
    found = index.matcher().match(list(messages))
    assert [set(each.query_ids) for each in found] == list(messages.values())


@pytest.mark.parametrize(
    "text",
    [
        *("//a[date(@x)='2026-01-01Z']", "//a[time(.) > 3]", "//a[dateTime(.)]"),
        *(
            "//a[date(@x)>'2023-02-29']",
            "//a[date(@x)!='2026-01-01Z']",
            "//a[date(b)='2026-01-01Z']",
        ),
    ],
)
def test_no_query_calls_a_function_of_that_name(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as refused:
        compile_query(text)
    assert refused.value.code == "XPST0017"
    if text != "//a[date(@x)='2026-01-01Z']":
        with pytest.raises(QuerySyntaxError):
            QueryIndex().register_gates([text])


def test_a_date_has_no_bound_at_a_power_of_two() -> None:
    day = native.NormalPath("//alert/sent[date(.)>'2026-11-27Z']")
    assert day.in_powers() == day
