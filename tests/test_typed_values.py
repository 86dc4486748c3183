"""Values of types: kernel = papers = Saxon, at the borders of each type.

If these fail, an alert is delivered on the wrong side of a date, or a subscriber is not told of one
whose time zone, leap day or year is unusual.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

import pytest

from customised_cases import GENEROUS, by_broker, by_reference
from oracles import SaxonOracle, saxon_missing_reason
from pathcast.message.canonical import canonical
from pathcast.model import Subscription
from pathcast.registry import Registry
from typed_writer import BORDERS

TEXTS = tuple(dict.fromkeys(text for texts in BORDERS.values() for text in texts))

DIFFERENT = ("2026-12-31+14:01", "9007199254740993")
"""`time-zone-after-fourteen-hours` and `digits-of-decimals` of `oracles.saxon_differences`."""

MOMENTS = ("date", "dateTime", "time", "dayTimeDuration", "yearMonthDuration")

needs_saxon = pytest.mark.skipif(
    saxon_missing_reason() is not None, reason=str(saxon_missing_reason())
)
types = pytest.mark.parametrize("to", sorted(BORDERS))


def message_of(texts: Sequence[str]) -> bytes:
    """A message with an element `v` for each text, which is its attribute `t`."""
    escaped = [quoteattr(text, {"\n": "&#10;"}) for text in texts]
    return f"<m>{''.join(f'<v t={text}/>' for text in escaped)}</m>".encode()


def answers(text: str, message: bytes) -> bytes:
    """The one result of a subscription, on which kernel and papers agree."""
    registry = Registry(limits=GENEROUS)
    registry.add([Subscription("s", "u", text)])
    (said,) = by_broker(registry, [message])
    expected = by_reference(text, message, None)
    assert said == {"s": expected}, text
    assert isinstance(expected, tuple)
    return expected[0]


def by_saxon(text: str, message: bytes) -> bytes:
    (result,) = SaxonOracle.shared().evaluate(text, message)
    return canonical(result)


def casts(to: str) -> str:
    """A subscription that casts everything to a type, and shows what that is."""
    return (
        f"<r>{{for $v in //v/@t return if ($v castable as xs:{to}) "
        f"then <c>{{xs:string(xs:{to}($v))}}</c> else <none/>}}</r>"
    )


@types
def test_each_text_is_of_a_type_or_not(to: str) -> None:
    found = answers(casts(to), message_of(TEXTS))
    assert found.count(b"<c>") > (1 if to != "time" else 3)
    assert found.count(b"<none>") > 3 or to == "string"


@needs_saxon
@types
def test_saxon_says_so_too(to: str) -> None:
    message = message_of([text for text in TEXTS if text not in DIFFERENT])
    assert answers(casts(to), message) == by_saxon(casts(to), message)


@needs_saxon
@types
def test_values_of_a_type_compare_as_they_do_in_saxon(to: str) -> None:
    """All six comparisons, general and of values, of each pair of values at the borders."""
    signs = ("=", "!=", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge")
    compared = ", ".join(f"xs:{to}($a) {sign} xs:{to}($b)" for sign in signs)
    values = f"//v/@t[. castable as xs:{to}]"
    text = f"<r>{{for $a in {values}, $b in {values} return ({compared}, '/')}}</r>"
    message = message_of([text for text in BORDERS[to] if text not in ("NaN", *DIFFERENT)])
    found = answers(text, message)
    assert found.count(b"true") > 50
    assert found == by_saxon(text, message)


@needs_saxon
@pytest.mark.parametrize("to", MOMENTS)
def test_nodes_compare_with_a_constant_as_they_do_in_saxon(to: str) -> None:
    """The form that subscribers write: untyped values are cast to the type of the constant."""
    values = f"//v/@t[. castable as xs:{to}]"
    texts = [text for text in BORDERS[to] if text not in DIFFERENT]
    legal = [it for it in texts if b"<c>" in answers(casts(to), message_of([it]))]
    assert len(legal) > 7
    message = message_of(texts)
    for constant in legal:
        found = ", ".join(
            f"for $v in {values} where $v {sign} xs:{to}('{constant}') return string($v), '{sign}'"
            for sign in ("=", "!=", "<", ">=")
        )
        text = f"<r>{{{found}}}</r>"
        assert answers(text, message) == by_saxon(text, message), text


@needs_saxon
@pytest.mark.parametrize("to", MOMENTS)
def test_dates_are_ordered_and_chosen_as_they_are_in_saxon(to: str) -> None:
    values = f"for $v in //v/@t where $v castable as xs:{to} return xs:{to}($v)"
    message = message_of([text for text in BORDERS[to] if text not in DIFFERENT])
    key = f"for $v in //v/@t[. castable as xs:{to}] order by xs:{to}($v)"
    for text in (
        f"<r>{{{key} return <v>{{$v}}</v>}}</r>",
        f"<r>{{{key} descending return <v>{{$v}}</v>}}</r>",
        f"<r>{{max({values}) = ({values}), min({values}) > ({values}), //m}}</r>",
        f"<r>{{distinct-values({values})}}</r>",
        f"<r>{{count(distinct-values({values}))}}</r>",
    ):
        assert answers(text, message) == by_saxon(text, message), text


@needs_saxon
def test_values_are_cast_to_other_types_as_in_saxon() -> None:
    sources = (
        "xs:dateTime('2024-02-28T23:59:59.5-05:30')",
        "xs:date('-0001-12-31+14:00')",
        "xs:time('01:02:03Z')",
        *("xs:dayTimeDuration('-PT36H')", "xs:yearMonthDuration('P13M')"),
        *("xs:double('-1.5')", "xs:double('NaN')", "xs:double('INF')", "12.75", "7"),
        *("true()", "xs:boolean('0')"),
    )
    cast = ", ".join(
        f"if ($v castable as xs:{to}) then <c>{{xs:string($v cast as xs:{to})}}</c> else <none/>"
        for to in BORDERS
    )
    text = f"<r>{{for $v in ({', '.join(sources)}) return ({cast})}}{{//m}}</r>"
    found = answers(text, b"<m/>")
    assert found.count(b"<c>") >= 40
    assert found == by_saxon(text, b"<m/>")


@needs_saxon
def test_durations_of_two_types_are_equal_if_they_have_no_length() -> None:
    durations = [f"xs:dayTimeDuration('{text}')" for text in ("PT0S", "P1D")]
    durations += [f"xs:yearMonthDuration('{text}')" for text in ("P0M", "P1M")]
    compared = [
        f"{one} {sign} {other}"
        for one in durations
        for other in durations
        for sign in ("=", "!=", "eq", "ne")
    ]
    compared += [f"distinct-values(({', '.join(each)}))" for each in (durations, durations[::-1])]
    text = f"<r>{{{', '.join(compared)}, //m}}</r>"
    found = answers(text, b"<m/>")
    assert found == by_saxon(text, b"<m/>")
    assert b"PT0S P1D P1M P1M P0M P1D" in found


@needs_saxon
def test_none_and_several_are_castable_as_in_saxon() -> None:
    tested = [
        f"{nodes} castable as xs:date{sign}" for nodes in ("//v/@t", "//n") for sign in ("", "?")
    ]
    text = f"<r>{{{', '.join(tested)}, data(//n cast as xs:date?), count(xs:date(//n))}}</r>"
    found = answers(text, message_of(["2026-01-01", "2026-01-02"]))
    assert found == by_saxon(text, message_of(["2026-01-01", "2026-01-02"]))
    assert found == b"<r>false false false true 0</r>"
