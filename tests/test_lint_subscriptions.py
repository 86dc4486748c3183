"""Lint of subscriptions: XQuery beside XPath, and rows that are known to be refused.

If one of these fails, a FLWR subscription with a misspelt name is registered, and waits for ever.
"""

from __future__ import annotations

import random
import re

import pytest

from generators.flwr_messages import random_flwr_message
from generators.flwr_text import BOOK, random_flwr
from oracles.engines import made_by
from pathcast import Query, Registry, Subscription
from pathcast.errors import DuplicateQueryError, MessageError
from pathcast.lint import Finding, lint
from pathcast.schema import parse_dtd
from pathcast_papers.message import parse_message

SAMPLE = parse_message(
    b"<bib><book year='1999'><title>Sand</title><price>20</price></book>"
    b"<n:note xmlns:n='urn:n'><n:by>ann</n:by></n:note></bib>"
)


def found(*texts: str, deliver: str = "fragment") -> tuple[Finding, ...]:
    rows = [
        Subscription(str(number), "ann", text, deliver)  # type: ignore[arg-type]
        for number, text in enumerate(texts, start=1)
    ]
    return lint(rows, sample=[SAMPLE], namespaces={"n": "urn:n"}).findings


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("for $b in //bok return $b", "PL101", "bok"),
        ("for $b in //book return <hit>{$b/titel}</hit>", "PL101", "titel"),
        ("for $b in //book where $b/@yaer = 1999 return $b", "PL102", "yaer"),
        ("for $b in //book let $t := $b/author return <hit>{$t}</hit>", "PL101", "author"),
        ("for $b in //book return <hit y='{$b/@yaer}'/>", "PL102", "yaer"),
        ("for $b in /book return $b", "PL105", "book"),
        ("for $b in //book[prise > 3] return $b", "PL101", "prise"),
        ("for $b in //book where some $t in $b/titel satisfies $t = 'x' return $b", "PL101",
         "titel"),
        ("for $b in //book order by $b/prise return $b", "PL101", "prise"),
        ("for $b in //book return if ($b/prise) then $b else ()", "PL101", "prise"),
        ("for $n in //note return $n", "PL103", "note"),
        ("for $b in //book return $b/title/price", "PL105", "price"),
        ("//book/titel (: what it is called :)", "PL101", "titel"),
    ],
)  # fmt: skip
def test_names_and_paths_of_a_program_are_looked_up(text: str, code: str, at: str) -> None:
    (finding,) = (each for each in found(text) if each.code.startswith("PL1"))
    assert finding.code == code
    assert finding.offset == text.index(at)


@pytest.mark.parametrize(
    "text",
    [
        "for $b in //book where $b/price < 30 return <hit year='{$b/@year}'>{$b/title}</hit>",
        "for $b at $i in /bib/book let $all := ($b/title | $b/price) return <r n='{$i}'>{$all}</r>",
        "<all>{//n:note/n:by}</all>",
        "for $x in //book/.. return $x/book/title/text()",
        "for $b in (//book, //n:note) return $b/title",
    ],
)
def test_what_is_there_is_left_alone(text: str) -> None:
    assert found(text) == ()


def test_what_a_broker_refuses_cannot_be_registered() -> None:
    codes = [(each.code, each.query_id) for each in found("for $b in", "<a/>", "1 = 1", "//book")]
    assert codes == [("PL001", "1"), ("PL001", "2"), ("PL001", "3")]
    # As a condition it is one.
    assert [each.code for each in found("count(//book) = 1", deliver="ids")] == []


def test_rows_that_are_known_to_be_refused_are_findings_whatever_they_say() -> None:
    rows = [Subscription("x", "ann", "//book"), Subscription("x", "bob", "//title")]
    error = DuplicateQueryError("query.duplicate", id="x")
    (finding,) = lint(rows, refused={1: error}).findings
    assert (finding.code, finding.query, finding.query_id) == ("PL001", 1, "x")
    assert finding.message == error.message


def test_equal_programs_are_told_and_others_are_not() -> None:
    one = "for $b in //book return <hit>{$b/title}</hit>"
    same = "for  $b  in //book\nreturn <hit>{ $b/title }</hit> (: again :)"
    other = "for $b in //book return <hit>{$b/price}</hit>"
    told = [(each.code, each.query, each.related) for each in found(one, same, other, "//book")]
    assert told == [("PL301", 1, (0,))]


def test_a_program_that_every_message_is_asked_is_told() -> None:
    (finding,) = found("<n>{count(//book)}</n>")
    assert finding.code == "PL401"


@pytest.mark.parametrize("row", [Subscription("x", "ann", "//book["), Query("x", "//book[")])
def test_one_is_looked_at_as_many_are(row: Query | Subscription) -> None:
    assert lint(row) == lint([row])
    assert [each.code for each in lint(row).findings] == ["PL001"]


@pytest.mark.parametrize("seed", range(10))
def test_a_path_is_judged_alike_in_either_language(seed: int) -> None:
    chance = random.Random(seed)
    said = [judged(chance) for _ in range(100)]
    assert all(as_path == as_program for as_path, as_program in said)
    assert 10 < sum(bool(as_path) for as_path, _ in said) < 100


def judged(chance: random.Random) -> list[list[tuple[str, int, str]]]:
    """What is said of a path, and of a program that is bound to it."""
    names = ["bib", "book", "title", "price", "n:note", "n:by", "bok", "*", "note"]
    steps = [chance.choice(["/", "//"]) + chance.choice(names) for _ in range(chance.randint(1, 4))]
    if chance.random() < 0.3:
        steps.append("/@" + chance.choice(["year", "yaer"]))
    path, before = "".join(steps), "for $x in "
    as_path = lint([Query("1", path)], sample=[SAMPLE], namespaces={"n": "urn:n"}).findings
    as_program = found(f"{before}{path} return <r>{{$x}}</r>")
    return [
        [(each.code, each.offset - shift, each.message) for each in findings if each.code < "PL2"]
        for findings, shift in ((as_path, 0), (as_program, len(before)))
    ]


@pytest.mark.parametrize("programs", [100, pytest.param(1000, marks=pytest.mark.nightly)])
def test_findings_about_generated_programs_are_true(programs: int) -> None:
    chance = random.Random(41)
    delivered = complaints = 0
    for _ in range(programs):
        message, text = random_flwr_message(chance, BOOK), random_flwr(chance, BOOK).text
        try:
            tree = parse_message(message)
        except MessageError:
            continue
        row = Subscription("x", "ann", text)
        findings = lint([row], sample=[tree]).findings
        registry = made_by("reference", Registry)
        if registry.add([row]).rejected:
            assert [each.code for each in findings] == ["PL001"]
            continue
        for each in findings:
            if each.code in ("PL101", "PL102"):
                complaints += 1
                name = re.split("[}:]", each.message.partition("`")[2].rstrip("`"))[-1]
                # It stands where the finding says, and in no place of the message.
                assert re.match(rf"(Q\{{[^}}]*\}}|[\w.*-]+:)?{name}\b", text[each.offset :]), each
                kind = rb"<%s[\s/>]" if each.code == "PL101" else rb"\s%s\s*="
                assert re.search(kind % name.encode(), message) is None, each
        if len(registry.deliver(message)):
            delivered += 1
            # What is delivered is not "can satisfy nobody".
            assert not [each for each in findings if each.severity == "error"]
    assert complaints > programs / 6
    assert delivered > programs / 15


def test_a_dtd_serves_as_well() -> None:
    graph = parse_dtd("<!ELEMENT a (b)><!ELEMENT b EMPTY>")
    (finding,) = lint([Subscription("x", "ann", "for $x in //a return $x/c")], dtd=graph).findings
    assert (finding.code, finding.offset) == ("PL101", 24)
