"""A FLWR that delivers nothing is explained by the clause or condition after which nothing is left.

If these fail, a subscriber who asks why a message did not come is sent to the wrong place.
"""

from __future__ import annotations

import random

import pytest

from generators import VOCABULARIES, random_flwr, random_flwr_message
from pathcast import Registry, Subscription

BOOKS = b"""<bib xmlns:p="urn:p"><book isbn="1"><title>Sand</title><price>20</price>\
<sent>2025-01-01</sent></book><book isbn="2"><title>Reed</title><price>90</price></book>\
<review of="3"><p:text>x</p:text></review><review of="1"><year>2001</year></review></bib>"""


def told(query: str, deliver: str = "fragment") -> list[str]:
    asked = Subscription("s", "ann", query, deliver, language="xquery")  # type: ignore[arg-type]
    found = Registry().explain(asked, BOOKS)
    return [line.strip() for line in str(found).split("\n")] if found.is_told else []


@pytest.mark.parametrize(
    ("query", "part", "words"),
    [
        # A binding path; a near name, a forgotten namespace.
        ("for $b in //bok return <r>{$b}</r>", "for $b in //bok", "did you mean book?"),
        (
            "<r>{//text}</r>",
            "//text",
            '`text` is in namespace urn:p: write p:text with namespaces={"p": "urn:p"} '
            "(--namespace p=urn:p)",
        ),
        (
            "for $b in //book for $c in $b/chapter order by $c return <r/>",
            "for $c in $b/chapter",
            "/chapter   no such node; there are: title, price, sent",
        ),
        (
            "//book[price > 100] ! <r>{title}</r>",
            "//book[price>100]",
            "nearest /bib[1]/book[2]: `price` is '90', the query wants more than 100",
        ),
        ("(//bok except //book) ! string(.)", "//bok", "did you mean book?"),
        ("//book ! titel", "titel", "/titel   no such node; there are: title, price, sent"),
        (
            "//book ! (if (price > 100) then <a/> else ())",
            "if price > 100",
            "nearest /bib[1]/book[2]: `price` is '90', the query wants more than 100",
        ),
        (
            "//book ! title ! (for $t in . where $t = 'x' return $t)",
            "where $t = 'x'",
            "nearest /bib[1]/book[1]/title[1]: `.` is 'Sand', the query wants 'x'",
        ),
        (
            "//book intersect //zz",
            "//zz",
            "//zz   no such node; there are: bib, book, title, price, sent",
        ),
        (
            "//book[price > 50]/title intersect //book[price < 50]/title",
            "//book[price>50]/title intersect //book[price<50]/title",
            "`//book[price<50]/title` is 'Sand'",
        ),
        (
            "for $b in //book return $b/title except $b/*",
            "$b/title except $b/*",
            "`$b/*` is 'Sand' or '20' or '2025-01-01' or 'Reed' or '90'",
        ),
        # Conditions, in the order in which they stand.
        (
            "for $b in //book where $b/price > 100 return <r/>",
            "where $b/price > 100",
            "nearest /bib[1]/book[2]: `price` is '90', the query wants more than 100",
        ),
        (
            "for $b in //book where $b/price > 10 and ($b/@isbn = '7') return <r/>",
            "where $b/@isbn = '7'",
            "nearest /bib[1]/book[1]: `@isbn` is '1', the query wants '7'",
        ),
        (
            "for $b in //book return if ($b/price > 100) then <a/> else ()",
            "if $b/price > 100",
            "nearest /bib[1]/book[2]: `price` is '90', the query wants more than 100",
        ),
        (
            "for $b in //book let $p := $b/price where $p > 100 return $b/title",
            "where $p > 100",
            "`//book/price` is '90', the query wants more than 100",
        ),
        (
            "for $b in //book where some $t in $b/* satisfies $t = 'Sandd' return <r/>",
            "satisfies $t = 'Sandd'",
            "nearest /bib[1]/book[1]/title[1]: `.` is 'Sand', the query wants 'Sandd'",
        ),
        # A join: the values of both sides.
        (
            "for $b in //book, $r in //review where $b/title = $r/year return <r/>",
            "where $b/title = $r/year",
            "`//book/title` is 'Sand' or 'Reed' and `//review/year` is '2001'",
        ),
        # Each side has such a value, but no pair has: the values of what is left before.
        (
            "for $b in //book, $r in //review where $b/@isbn = $r/@of and $b/price > 30 return $b",
            "where $b/price > 30",
            "`$b/price` is '20'",
        ),
        # XPath would compare these as numbers, or not say them at all.
        (
            "for $b in //book where $b/sent > '2026-01-01' return <r/>",
            "where $b/sent > '2026-01-01'",
            "`$b/sent` is '2025-01-01'",
        ),
        ("for $b at $i in //book where $i > 2 return <r/>", "where $i > 2", "`$i` is '1' or '2'"),
        (
            "for $b in //book where max($b/price) gt 100 (: dear :) return <r/>",
            "where max($b/price) gt 100",
            "`max($b/price)` is '20' or '90'",
        ),
        # A text that a function asks; what of a path XPath does not say is told by its predicates.
        (
            "for $b in //book where contains(lower-case($b/title), 'x') return <r/>",
            "where contains(lower-case($b/title), 'x')",
            "`lower-case($b/title)` is 'sand' or 'reed'",
        ),
        (
            "//book[price > 30][ends-with(upper-case(title), 'Z')]/title",
            'ends-with(upper-case(title), "Z")',
            "`upper-case(title)` is 'REED'",
        ),
        (
            "for $t in //book[title and matches(title, '^s', 'i')]/title[. = 'Reed'] return $t",
            "for $t in //book[title and matches(title, '^s', 'i')]/title[. = 'Reed']",
            "nothing is left after `for $t in //book[title and matches(title, '^s', 'i')]"
            "/title[. = 'Reed']`",
        ),
        (
            "//bok[lower-case(title) = 'sand']",
            "//bok",
            "did you mean book?",
        ),
        (
            "//book[xs:date(sent) > xs:date('2025-06-01')]",
            'xs:date(sent) > xs:date("2025-06-01")',
            "`xs:date(sent)` is '2025-01-01'",
        ),
        # A position is none of the conditions.
        (
            "//book[lower-case(title) = 'reed'][2]",
            '//book[lower-case(title) = "reed"][2]',
            'nothing is left after `//book[lower-case(title) = "reed"][2]`',
        ),
        # What is returned.
        (
            "for $b in //book return $b/titel",
            "return $b/titel",
            "/titel   no such node; there are: title, price, sent",
        ),
    ],
)
def test_the_first_part_after_which_nothing_is_left_is_told(
    query: str, part: str, words: str
) -> None:
    lines = told(query)
    assert lines[0] == f"nothing is left after `{part}`"
    assert words in lines


def test_each_expression_of_the_frame_is_told() -> None:
    lines = told("<r><a>{//zz}</a>{//yy}</r>")
    assert lines.count("nothing is left after `//zz`") == 1
    assert lines.count("nothing is left after `//yy`") == 1


def test_a_condition_that_decides_on_delivery_is_told() -> None:
    lines = told("count(//book) > 3 and //book", "ids")
    assert "`count(//book)` is 2, the query wants more than 3" in lines


def test_what_is_left_is_told_of_a_match() -> None:
    lines = told("for $b in //book where $b/price > 30 return <r/>")
    assert lines[0] == "something is left after `where $b/price > 30`"
    assert "//book[price>30]   1 node of 2, first /bib[1]/book[2]" in lines
    assert told("<r>{count(//zz)}</r>") == []


def test_where_nothing_is_left_nothing_is_delivered() -> None:
    generator = random.Random(41)
    nothing = delivered = 0
    for number in range(240):
        vocabulary = VOCABULARIES[generator.choice(sorted(VOCABULARIES))]
        flwr = random_flwr(generator, vocabulary)
        message = random_flwr_message(generator, vocabulary)
        asked = Subscription("s", "ann", flwr.text, namespaces=flwr.namespaces, language="xquery")
        registry = Registry(threads=1)
        if registry.add([asked]).rejected:
            continue
        found = registry.deliver(message)
        if found.error is not None or found.verdicts:
            continue
        explanation = registry.explain(asked, message)
        assert explanation.is_match is (len(found) > 0)
        if explanation.parts and not any(part.is_left for part in explanation.parts):
            nothing += 1
            assert not len(found), (number, flwr.text, str(explanation))
        delivered += len(found) > 0
    assert nothing > 10
    assert delivered > 10
