"""Operators of XQuery 3.1, functions of sequences, dates and characters: kernel = papers = Saxon.

If these fail, a subscription that is written as in a textbook is delivered something else here.
"""

from __future__ import annotations

import pytest

from customised_cases import GENEROUS, by_broker, by_reference
from oracles import SaxonOracle, saxon_missing_reason
from pathcast.message.canonical import canonical
from pathcast.model import Subscription
from pathcast.registry import Registry
from typed_writer import BORDERS

MESSAGE = "<m><v t='1'/><v t='2'/><v t='3'/><v t='a b'/><w t='é%~'>x</w></m>".encode()

PARTS = {
    "date": ("year", "month", "day", "timezone"),
    "dateTime": ("year", "month", "day", "hours", "minutes", "seconds", "timezone"),
    "time": ("hours", "minutes", "seconds", "timezone"),
    "dayTimeDuration": ("years", "months", "days", "hours", "minutes", "seconds"),
    "yearMonthDuration": ("years", "months", "days", "hours", "minutes", "seconds"),
}

TEXT = "\u00e9e\u0301\ufb01\u212b\u1e9b\u0323 a"
"""Letters with marks in both forms, a ligature, a sign that is a letter."""

FORMS = ("", ", 'NFC'", ", 'NFD'", ", ' nfkc '", ", 'NFKD'", ", ''")

EXPRESSIONS = (
    "head(//v/@t)",
    "head(())",
    "tail(//v/@t)",
    "tail(1)",
    "reverse(//v/@t)",
    "reverse(())",
    "subsequence(//v/@t, 2)",
    "subsequence(//v/@t, 1.5, 2)",
    "subsequence(//v/@t, 0, 3)",
    "subsequence(//v/@t, -1, 2.5)",
    "subsequence(//v/@t, xs:double('NaN'))",
    "subsequence(//v/@t, xs:double('-INF'))",
    "subsequence(//v/@t, 2, xs:double('INF'))",
    "subsequence(//v/@t, xs:double('-INF'), xs:double('INF'))",
    "remove(//v/@t, 2)",
    "remove(//v/@t, 0)",
    "remove(//v/@t, 9)",
    "insert-before(//v/@t, 2, ('x', 'y'))",
    "insert-before(//v/@t, 99, 'x')",
    "insert-before(//v/@t, -3, 'x')",
    "insert-before((), 1, //v/@t)",
    "index-of(//v/@t, '3')",
    "index-of((1, 2, 1), 1)",
    "index-of(('a', 1), 1)",
    "string-to-codepoints('é😀')",
    "string-to-codepoints('')",
    "codepoints-to-string((233, 128512))",
    "codepoints-to-string(())",
    "encode-for-uri('é a/~-_.!')",
    "encode-for-uri(//w/@t)",
    *(f"string-to-codepoints(normalize-unicode('{TEXT}'{form}))" for form in FORMS),
    "normalize-unicode(())",
    "round-half-to-even(0.5)",
    "round-half-to-even(1.5)",
    "round-half-to-even(-2.5)",
    "round-half-to-even(3.567812, 2)",
    "round-half-to-even(4.7564e-3, 2)",
    "round-half-to-even(35612.25, -2)",
    "round-half-to-even(12345, -2)",
    "round-half-to-even(12350, -2)",
    "round-half-to-even(-12350, -2)",
    "round-half-to-even(7, 3)",
    "round-half-to-even(12250, -2)",
    "round-half-to-even(xs:double('INF'), 1)",
    "'a' || 1 || ()",
    "'a' || 1 + 1 || 'b' = 'a2b'",
    "//w/@t || '-' || count(//v)",
    "(1 to 3) ! (. * 2)",
    "3 to 1",
    "() to 3",
    "1 + 1 to 2 * 2",
    "count(1 to 1000)",
    "//v[position() = 2 to 3] ! string(@t)",
    "(//v ! position())[last()]",
    "//v ! last()",
    "//v ! @t ! string-length(.)",
    "-(//v)[1]/@t ! (. + 1)",
    "(//v, 1) ! (. instance of node())",
    "'x' => upper-case() => concat('y')",
    "//v => count()",
    "-2 => abs()",
    "count(//v intersect //v[2])",
    "count(//v except //v[1])",
    "(//w | //v except //v) ! name(.)",
    "count(//v[1] intersect //w)",
    "(//v intersect //v[2] | //w) ! string(@t)",
    "1 instance of xs:decimal",
    "1.5 instance of xs:integer",
    "1e0 instance of xs:double",
    "//v instance of element(v)+",
    "//v instance of element()",
    "() instance of element()*",
    "//v/@t instance of attribute(t)*",
    "//w/text() instance of text()",
    "(/) instance of node()",
    "(/) instance of document-node()",
    "/m instance of document-node()",
    "'a' instance of item()",
    "(//v/@t)[1] instance of xs:string",
    "data((//v/@t)[1]) instance of xs:untypedAtomic",
    "() instance of empty-sequence()",
    "1 instance of empty-sequence()",
    "2 instance of item()*",
    "xs:date('2024-02-29') instance of xs:date",
    "true() instance of xs:anyAtomicType?",
    "(//v treat as element()+) ! string(@t)",
    "(1 treat as xs:integer) + 1",
    "dateTime(xs:date('2024-02-29'), xs:time('24:00:00Z'))",
    "dateTime(xs:date('2024-02-29+05:00'), xs:time('12:00:00.5'))",
    "implicit-timezone() instance of xs:dayTimeDuration",
    "current-date() instance of xs:date",
    "current-dateTime() = current-dateTime()",
    "current-time() instance of xs:time",
)

needs_saxon = pytest.mark.skipif(
    saxon_missing_reason() is not None, reason=str(saxon_missing_reason())
)


def part_of(to: str, part: str) -> str:
    """A part of the value of `$v`, which is cast to a type."""
    return f"{part}-from-{'duration' if to.endswith('Duration') else to}(xs:{to}($v))"


def answers(text: str) -> bytes:
    """The one result of a subscription, on which kernel and papers agree."""
    registry = Registry(limits=GENEROUS)
    registry.add([Subscription("s", "u", text)])
    (said,) = by_broker(registry, [MESSAGE])
    expected = by_reference(text, MESSAGE, None)
    assert said == {"s": expected}, text
    assert isinstance(expected, tuple)
    return expected[0]


def check(text: str) -> bytes:
    found = answers(text)
    (result,) = SaxonOracle.shared().evaluate(text, MESSAGE)
    assert found == canonical(result), text
    return found


@needs_saxon
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_is_what_saxon_gives(expression: str) -> None:
    text = f"<r>{{for $i in ({expression}) return <i>{{string($i)}}</i>, count(//m)}}</r>"
    assert check(text).endswith(b"1</r>")


@needs_saxon
@pytest.mark.parametrize("to", PARTS)
def test_parts_of_values_are_those_of_saxon(to: str) -> None:
    legal = [text.strip() for text in BORDERS[to] if "\n" not in text]
    values = ", ".join(f"'{text}'" for text in legal if not text.endswith("+14:01"))
    shown = ", '/', ".join(part_of(to, part) for part in PARTS[to])
    tried = f"for $v in ({values}) return if ($v castable as xs:{to})"
    found = check(f"<r>{{{tried} then <v t='{{$v}}'>{{{shown}}}</v> else (), count(//m)}}</r>")
    assert found.count(b"<v ") > 3
