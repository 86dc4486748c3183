"""Pictures, collations, deep equality, rounding and time zones: kernel = papers = Saxon.

If these fail, an alert says another number or another time than its message, or a comparison
without regard to case misses some.
"""

from __future__ import annotations

import random
from typing import Final

import pytest

from customised_cases import GENEROUS, by_broker, by_reference
from oracles import SaxonOracle, saxon_missing_reason
from pathcast.errors import PathcastError
from pathcast.message.canonical import canonical
from pathcast.model import Subscription
from pathcast.query.xquery import parse
from pathcast.registry import Registry
from pathcast_papers.language.xquery import parse as parse_by_papers
from typed_writer import BORDERS

MESSAGE = (
    b"<m><v k='Ab'>x<!-- c -->y</v><v k='aB'>xy</v><v k='ab'><w a='1' b='2'/>t</v>"
    b"<v k='AB'><w b='2' a='1'><?p i?></w>t</v><v k='b'><w b='2' a='3'/>t</v>"
    b"<n>1.50</n><n>1.5e0</n></m>"
)
CASE_BLIND = "'http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive'"
CODEPOINT = "'http://www.w3.org/2005/xpath-functions/collation/codepoint'"

NUMBERS = (
    *("0", "1", "-1", "12345678", "-0.001", "0.5", "1.5", "2.5", "0.005", "0.015", "1234.5678"),
    *("999999.995", "1e25", "1e-7", "5e-324", "1.7976931348623157e308", "xs:double('INF')"),
    *("xs:double('-INF')", "xs:double('NaN')", "-0e0", "0.57", "123456789012345678", "()"),
)
NUMBER_PICTURES = (
    *("0", "#", "#,##0", "#,##0.00", "0.##", "#.00", "#.##", "000", "#,##,000", "0,0,000", ".00"),
    *(
        "0%",
        "%#.#",
        "0.0\u2030",
        "0;(0)",
        "#,##0.00;-0",
        "USD #,##0.00-;x0y",
        "0.0,0,0",
        ",000",
        "0.",
    ),
    *("price #", "#,###,##", "199", "#,##0,0", "0.000000000000000000000000000000"),
)
MOMENT_PICTURES = {
    "date": (
        *("[Y]-[M]-[D]", "[Y0001]-[M01]-[D01]", "[FNn], [D1o] [MNn] [Y]", "[FNn,3-3] [MNn,*-3]"),
        *(
            "[Y,2-2][Y01][Y,4][Y,*-3]",
            "[d001] [d] [D,3] [M,2-2]",
            "[[[Y]]]",
            "x[ Y ]x",
            "[MN][FN,12]",
        ),
        *("[Mn] [Fn,3-3]", "[Z]|[Z0101]|[Z1]|[Z01:01t]|[z]", "[M1o] [d1o]", ""),
    ),
    "dateTime": (
        *(
            "[Y0001]-[M01]-[D01]T[H01]:[m01]:[s01].[f001][Z01:01t]",
            "[h]:[m]:[s] [PN,*-2]",
            "[f]|[f01]",
        ),
        "[D]/[M]/[Y] [H]:[m] [Z1] [z0101] [Z01] [Z0t]",
    ),
    "time": (
        "[H]:[m]:[s].[f]",
        "[h01]:[m01] [P,2-2]",
        "[H,3][m,1][s,3]",
        "[Z]|[f0001]|[f000000000001]",
    ),
}
COMPARED = (
    *("max(('a', 'B', 'c'), {})", "min(('b', 'A', 'a'), {})", "max((2, 10), {})"),
    *("distinct-values(//v/@k, {})", "distinct-values(('a', 'A', 1, '1'), {})"),
    *("index-of(//v/@k, 'AB', {})", "index-of((1, 'a', 'A'), 'A', {})"),
    *("compare('a', 'B', {})", "contains('xAb', 'aB', {})", "starts-with('Abc', 'aB', {})"),
    *(
        "ends-with('abC', 'Bc', {})",
        "contains-token(//v/@k, 'AB', {})",
        "contains-token('É', 'é', {})",
    ),
    *("deep-equal(//v[1]/@k, //v[2]/@k, {})", "deep-equal(('a', 'É'), ('A', 'é'), {})"),
    "deep-equal(//v[3], //v[4], {})",
    *("substring-before('xİAbß', 'aBß', {})", "substring-after('xİAbßÉ', 'İa', {})"),
    *("substring-before((), 'a', {})", "substring-after('aB', '', {})"),
    "for $k in ('b', 'B', 'a', '_', 'É', 'A', 'é') order by $k collation {} return $k",
    "for $k in ('b', 'B', 'a') order by $k descending collation {}, $k return $k",
    "for $k in (2, 10, 1) order by $k collation {} return $k",
    "for $v in //v order by $v/@k empty greatest collation {} return string($v/@k)",
)
OTHERS = (
    *("codepoint-equal('a', 'A')", "codepoint-equal((), 'a')", "codepoint-equal('', '')"),
    *(
        "contains-token(' a  b ', 'b ')",
        "contains-token(('a b', 'c'), 'c')",
        "contains-token((), 'a')",
    ),
    *("contains-token('a b', 'a b')", "contains-token('a', '')", "sum((), ())", "sum((), 'none')"),
    *("sum((1, 2), 'none')", "sum(//n, 0)", "//v ! data()", "(1, 2)[data() = 2]"),
    *(
        "deep-equal(//v[1], //v[2])",
        "deep-equal(//v[3]/w, //v[4]/w)",
        "deep-equal(//v[4]/w, //v[5]/w)",
    ),
    *("deep-equal(//v[3], //v[4])", "deep-equal((), ())", "deep-equal((1, 'a'), (1.0, 'a'))"),
    *(
        "deep-equal(xs:double('NaN'), xs:double('NaN'))",
        "deep-equal(1, '1')",
        "deep-equal(1, (1, 1))",
    ),
    *("deep-equal(/, /)", "deep-equal(//v[1]/text(), 'x')", "deep-equal(//v/text(), //v/text())"),
    *(
        "deep-equal(//comment(), //comment())",
        "deep-equal(//n[1], //n[2])",
        "deep-equal(//v, //v[1])",
    ),
    *("deep-equal(xs:date('2026-01-01Z'), xs:date('2026-01-01+00:00'))", "deep-equal(true(), 1)"),
    "deep-equal(//v[1]/@k, string(//v[1]/@k))",
    *(
        "round(1.125, 2)",
        "round(-1.125, 2)",
        "round(2.5e0, 0)",
        "round(-2.5, 0)",
        "round(1234, -2)",
    ),
    *(
        "round(1250, -2)",
        "round(-1250, -2)",
        "round(35.425e0, 2)",
        "round(0.375e0, 2)",
        "round(1e30, 5)",
    ),
    *(
        "round(12550.5, -2)",
        "round(7, 3)",
        "round((), 1)",
        "round(xs:double('INF'), 1)",
        "round(0.1, 1)",
    ),
    *("round(5, -1)", "round(-5, -1)", "round(4e0, -1)", "round(123456789, -18)", "round(0.5, 20)"),
)
SHIFTS = (
    *("", ", ()", ", xs:dayTimeDuration('PT5H30M')", ", xs:dayTimeDuration('-PT14H')"),
    ", xs:dayTimeDuration('PT0S')",
)
needs_saxon = pytest.mark.skipif(
    saxon_missing_reason() is not None, reason=str(saxon_missing_reason())
)


def shown(expressions: list[str]) -> str:
    items = [f"<i>{{for $i in ({each}) return concat('[', $i, ']')}}</i>" for each in expressions]
    return f"<r>{{//n}}{''.join(items)}</r>"


def answers(text: str) -> bytes:
    """The one result of a subscription, on which kernel and papers agree."""
    registry = Registry(limits=GENEROUS)
    report = registry.add([Subscription("s", "u", text)])
    assert not report.rejected, report.rejected
    (said,) = by_broker(registry, [MESSAGE])
    expected = by_reference(text, MESSAGE, None)
    assert said == {"s": expected}, text
    assert isinstance(expected, tuple)
    return expected[0]


def check(text: str) -> None:
    (result,) = SaxonOracle.shared().evaluate(text, MESSAGE)
    assert answers(text) == canonical(result), text


LONG: Final = frozenset({"1e25", "1.7976931348623157e308", "123456789012345678"})
"""A hundred times as much as doubles, which Saxon has here, is another number."""


@needs_saxon
@pytest.mark.parametrize("picture", NUMBER_PICTURES)
def test_numbers_are_written_as_by_saxon(picture: str) -> None:
    written = shown([f"format-number({each}, '{picture}')" for each in NUMBERS])
    answers(written)
    is_moved = {"%", "\u2030"} & {*picture}
    known = [each for each in NUMBERS if not (is_moved and each in LONG)]
    if len(picture) < 30:
        check(shown([f"format-number({each}, '{picture}')" for each in known]))


def borders(of: str) -> list[str]:
    values = [text.strip() for text in BORDERS[of] if "\n" not in text]
    return [text for text in values if not text.endswith("+14:01")]


def of_each(values: list[str], of: str, expressions: str) -> str:
    """What expressions of `$v` give for the texts that are values of a type."""
    tried = f"for $v in ({', '.join(map(repr, values))}) return if ($v castable as xs:{of})"
    return f"<r>{{//n, {tried} then <v>{{{expressions}}}</v> else ()}}</r>"


@needs_saxon
@pytest.mark.parametrize(
    ("of", "picture"), [(of, each) for of in MOMENT_PICTURES for each in MOMENT_PICTURES[of]]
)
def test_moments_are_written_as_by_saxon(of: str, picture: str) -> None:
    written = f"format-{of}(xs:{of}($v), '{picture}')"
    values = borders(of)
    answers(of_each(values, of, written))
    if "F" in picture:
        # Saxon has other days of the week before the year 1, and in the year 123456789.
        values = [text for text in values if not text.startswith(("-", "0000", "123456789"))]
    # And no nanoseconds.
    check(of_each([text for text in values if ".999999999" not in text], of, written))


@needs_saxon
@pytest.mark.parametrize("collation", [CASE_BLIND, CODEPOINT])
def test_collations_are_those_of_saxon(collation: str) -> None:
    check(shown([each.format(collation) for each in COMPARED]))


@needs_saxon
@pytest.mark.parametrize("expression", OTHERS)
def test_it_is_what_saxon_gives(expression: str) -> None:
    check(shown([expression]))


@needs_saxon
@pytest.mark.parametrize("of", ["date", "dateTime", "time"])
def test_time_zones_are_adjusted_as_by_saxon(of: str) -> None:
    moved = ", ' ', ".join(f"adjust-{of}-to-timezone(xs:{of}($v){each})" for each in SHIFTS)
    check(of_each(borders(of), of, moved))


@pytest.mark.parametrize("seed", range(3))
def test_random_pictures_mean_the_same_to_kernel_and_papers(seed: int) -> None:
    """Those that are none are refused by both, with one code."""
    draw = random.Random(f"pictures {seed}")
    read = 0
    for _ in range(150):
        marks = draw.choice(("0#,.", "0#,.;%x", "[YMDHms]1, oNn-3", "[YZf]01:t"))
        picture = "".join(draw.choice(marks) for _ in range(draw.randrange(1, 9)))
        if "[" in marks and draw.random() < 0.8:
            picture = f"[{draw.choice('YMDdFHhPmsfZzWQ')}{picture.strip('[]')}]"
        value, of = draw.choice((("1234.5", "number"), ("current-dateTime()", "dateTime")))
        text = shown([f"format-{of}({value}, '{picture}')"])
        codes = []
        for reader in (parse, parse_by_papers):
            try:
                reader(text)
                codes.append("")
            except PathcastError as error:
                codes.append(error.code + str(error))
        assert codes[0] == codes[1], text
        if not codes[0] and of == "number":
            answers(text)
            read += 1
    assert read > 10
