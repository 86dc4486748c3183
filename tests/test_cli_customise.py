"""`pathcast transform`, `pathcast test` and `explain` of an XQuery: what they print, what they end
with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import Result

from command_line import run_command
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError
from pathcast.model import Subscription
from pathcast.registry.subscription_files import read_subscriptions, subscription_of

Call = Callable[..., Result]

CHEAP = "for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>"
BOOKS = (
    "<bib><book><title>Sand</title><price>20</price></book>"
    "<book><title>Gold</title><price>90</price></book></bib>"
)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Runs a command in this process, in a directory with a message and a query."""
    monkeypatch.chdir(tmp_path)
    Path("books.xml").write_text(BOOKS)
    Path("cheap.xq").write_text(f"(: @subscriber ann :)\n{CHEAP}\n")

    return run_command


class TestTransform:
    def test_results_are_printed_as_they_are(self, call: Call) -> None:
        result = call("transform", CHEAP, "books.xml")
        assert result.exit_code == ExitCode.OK
        assert result.stdout == "<hit><title>Sand</title></hit>\n"
        assert call("transform", "@cheap.xq", "books.xml").stdout == result.stdout

    def test_several_messages_standard_input_and_a_broken_one(self, call: Call) -> None:
        Path("broken.xml").write_text("<bib>")
        stdin = b"<bib><book><title>Reed</title><price>1</price></book></bib>"
        result = call("transform", CHEAP, "books.xml", "broken.xml", "no.xml", "-", stdin=stdin)
        assert result.exit_code == ExitCode.REFUSED
        assert result.stdout.splitlines() == [
            "<hit><title>Sand</title></hit>",
            "<hit><title>Reed</title></hit>",
        ]
        assert "error: broken.xml: line 1" in result.stderr
        assert "error: no.xml: no.xml cannot be read" in result.stderr

    def test_nothing_asked_for_is_no_failure(self, call: Call) -> None:
        result = call("transform", "for $b in //nothing return $b", "books.xml")
        assert (result.stdout, result.exit_code) == ("", ExitCode.OK)

    def test_json(self, call: Call) -> None:
        result = call("transform", "//title", "books.xml", "--format", "json")
        first, second = (json.loads(line) for line in result.stdout.splitlines())
        assert second == {
            "message": "books.xml",
            "result_number": 1,
            "delivery_id": second["delivery_id"],
            "fragment": "<title>Gold</title>",
        }
        assert first["delivery_id"] != second["delivery_id"]
        assert len(second["delivery_id"]) == 32

    def test_files(self, call: Call) -> None:
        Path("other").mkdir()
        Path("other/books.xml").write_text(BOOKS.replace("Gold", "Salt"))
        result = call("transform", "//title", "books.xml", "other", "--out", "made")
        assert result.stdout == ""
        assert {path.name: path.read_text() for path in Path("made").iterdir()} == {
            "books.0.xml": "<title>Sand</title>",
            "books.1.xml": "<title>Gold</title>",
            "books-2.0.xml": "<title>Sand</title>",
            "books-2.1.xml": "<title>Salt</title>",
        }

    def test_a_query_that_is_refused(self, call: Call) -> None:
        result = call("transform", "for $b in //book retur $b", "books.xml")
        assert (result.stdout, result.exit_code) == ("", ExitCode.REFUSED)
        assert "^" in result.stderr
        assert "XPST0003" in result.stderr

    def test_a_verdict_is_warned_of(self, call: Call) -> None:
        result = call("transform", "//book", "books.xml", "--limit", "result_bytes_max=10")
        assert (result.stdout, result.exit_code) == ("", ExitCode.REFUSED)
        assert "warning: books.xml: result_bytes_max" in result.stderr

    def test_namespaces(self, call: Call) -> None:
        Path("n.xml").write_text("<x xmlns='urn:n'><y>1</y></x>")
        result = call("transform", "string(//n:y)", "n.xml", "--namespace", "n=urn:n")
        assert result.exit_code == ExitCode.REFUSED, "a string is no node"
        result = call("transform", "<v>{//n:y/text()}</v>", "n.xml", "--namespace", "n=urn:n")
        assert result.stdout == "<v>1</v>\n"

    def test_help_teaches_by_an_example(self, call: Call) -> None:
        text = " ".join(call("transform", "--help").stdout.split())
        assert "pathcast transform 'for $b in //book" in text


SUITE = f"""
namespaces = {{ n = "urn:n" }}

[[case]]
name = "cheap books"
query = '''{CHEAP}'''
message_file = "books.xml"
expect = "<hit><title>Sand</title></hit>"

[[case]]
name = "the same, from files, in other words"
query_file = "cheap.xq"
message_file = "books.xml"
expect_file = "expected.xml"

[[case]]
name = "indented"
query = "//book[1]"
message_file = "books.xml"
indented = true
expect = ['''
<book>
  <title>Sand</title>
  <price>20</price>
</book>''']

[[case]]
name = "not for everybody"
query = "//n:book"
message_file = "books.xml"
delivered = false

[[case]]
name = "a notice"
query = "//book"
message = "<bib><book/></bib>"
deliver = "ids"
delivered = true

[[case]]
name = "refused query"
query = "<a/>"
message = "<a/>"
error = "subscription.constant"

[[case]]
name = "refused message"
query = "//a"
message = "<a>"
error = "xml.end"

[[case]]
name = "verdict"
query = "<r>text{{//@x}}</r>"
message = "<a x='1'/>"
error = "XQTY0024"
"""


class TestSuites:
    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path) -> None:
        (tmp_path / "expected.xml").write_text(
            "<hit ><title><![CDATA[Sand]]></title></hit>\n", encoding="utf-8"
        )

    def test_cases_that_pass(self, call: Call) -> None:
        Path("s.toml").write_text(SUITE)
        result = call("test", "s.toml")
        assert result.exit_code == ExitCode.OK, result.stdout
        assert len(result.stdout.splitlines()) == 8
        assert result.stderr.startswith("8 passed, 0 failed")

    def test_every_kind_of_failure_says_why(self, call: Call) -> None:
        Path("s.toml").write_text(
            SUITE.replace('expect = "<hit><title>Sand', 'expect = "<hit><title>Send')
            .replace("delivered = false", "delivered = true")
            .replace('error = "subscription.constant"', 'error = "XPST0003"')
            .replace('error = "xml.end"', "delivered = false")
            .replace('error = "XQTY0024"', "expect = []")
            .replace("//book[1]", "//book")
        )
        result = call("test", "s.toml", "--junit", "report.xml")
        assert result.exit_code == ExitCode.REFUSED
        assert result.stderr.startswith("2 passed, 6 failed")
        for words in (
            "-<title>Send",
            "+<title>Sand",
            "nothing was delivered",
            "XPST0003 had to come, and it was subscription.constant",
            "the message ends inside",
            "XQTY0024",
            "1 had to come, 2 came",
        ):
            assert words in result.stdout
        root = ElementTree.parse("report.xml").getroot()
        assert (root.get("tests"), root.get("failures")) == ("8", "6")

    def test_white_space_counts_unless_told_otherwise(self, call: Call) -> None:
        Path("s.toml").write_text(SUITE.replace("indented = true", ""))
        assert call("test", "s.toml").exit_code == ExitCode.REFUSED

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (("expect =", "expects ="), "did you mean expect?"),
            (("delivered = false", ""), "one of expect, expect_file, delivered and error"),
            (('query = "//n:book"', ""), "query or query_file"),
            (('"books.xml"', '"no.xml"'), "no.xml: No such file"),
            (("[[case]]", "[[cases]]"), "did you mean case?"),
            (("<hit><title>Sand</title></hit>", "<hit>"), "what it expects is not XML"),
            (("namespaces = {", "namespaces = "), "s.toml"),
        ],
    )
    def test_a_suite_that_cannot_be_used(
        self, call: Call, change: tuple[str, str], words: str
    ) -> None:
        Path("s.toml").write_text(SUITE.replace(*change))
        result = call("test", "s.toml")
        assert result.exit_code == ExitCode.USAGE
        assert words in result.stderr
        assert "s.toml" in result.stderr


class TestFailedCases:
    """A case that fails says where the query does: nobody should have to ask again."""

    @staticmethod
    def suite(query: str, wanted: str, more: str = "") -> str:
        return (
            f'[[case]]\nname = "n"\nquery = """{query}"""\nmessage = """{BOOKS}"""\n'
            f"{wanted}\n{more}\n"
        )

    @pytest.mark.parametrize(
        ("query", "wanted", "more", "told"),
        [
            ("//book[price < 10]", "delivered = true", "", "`price` is '20', the query wants less"),
            ("//book[price < 10]/title", 'expect = ["<a/>"]', "", "`price` is '20'"),
            ("//bok", "delivered = true", "", "no such node"),
            # What matches and must not is explained as well.
            ("//book[price < 30]", "delivered = false", "", "case: match"),
            ("//book", 'expect = ["<book/>"]', "", "//book   2 nodes"),
            # On the message as the steps leave it.
            (
                "//book[price]",
                "delivered = true",
                'steps = ["drop //price"]',
                "there is no `price`",
            ),
            (
                "for $b in //book where $b/@isbn = '7' return <r>{$b/title}</r>",
                "delivered = true",
                "",
                "//book[@isbn='7']",
            ),
            ("//p:book", "delivered = true", 'namespaces = { p = "urn:p" }', "no such node"),
        ],
    )
    def test_it_is_explained(
        self, call: Call, query: str, wanted: str, more: str, told: str
    ) -> None:
        Path("s.toml").write_text(self.suite(query, wanted, more))
        result = call("test", "s.toml", "--junit", "report.xml")
        assert result.exit_code == ExitCode.REFUSED
        assert told in result.stdout
        assert told.replace("<", "&lt;") in Path("report.xml").read_text()

    def test_nothing_is_explained_where_the_diff_says_it(self, call: Call) -> None:
        for query, wanted in (
            ("//book[price < 30]/title", 'expect = ["<title>Reed</title>"]'),
            ("//book[", "delivered = true"),
            ("//title[1]", 'error = "xml.end"'),
        ):
            Path("s.toml").write_text(self.suite(query, wanted))
            result = call("test", "s.toml")
            assert result.exit_code == ExitCode.REFUSED
            assert "query: " not in result.stdout
        Path("s.toml").write_text(self.suite("//title", "delivered = true"))
        assert "query: " not in call("test", "s.toml").stdout


class TestExplain:
    def test_the_plan_and_what_is_shared(self, call: Call) -> None:
        Path("more").mkdir()
        Path("more/same.xq").write_text(CHEAP)
        Path("more/bad.xq").write_text("for $b in")
        result = call("explain", "@cheap.xq", "--with", "more")
        assert result.exit_code == ExitCode.REFUSED, "one of the others is refused"
        assert "more/bad.xq" in result.stderr
        for words in ("XQuery, delivers fragments", "plan", "gate", "shared: with how many others"):
            assert words in result.stdout
        assert call("explain", CHEAP).exit_code == ExitCode.OK

    def test_with_a_message_what_it_delivers(self, call: Call) -> None:
        result = call("explain", CHEAP, "books.xml", "--with", "cheap.xq")
        assert result.stdout.endswith(
            "delivers of this message\n  <hit><title>Sand</title></hit>\n"
        )
        told = json.loads(call("explain", CHEAP, "books.xml", "--format", "json").stdout)
        assert told["kind"] == "xquery"
        assert told["deliveries"] == ["<hit><title>Sand</title></hit>"]
        nothing = call("explain", "for $b in //x return $b", "books.xml")
        assert "delivers nothing of this message" in nothing.stdout

    def test_a_name_that_the_message_does_not_have_is_told(self, call: Call) -> None:
        found = call("explain", "for $b in //bok where $b/price < 30 return $b", "books.xml")
        assert "nothing is left after `for $b in //bok`" in found.stdout
        assert "did you mean book?" in found.stdout
        assert "is left after" not in call("explain", CHEAP, "books.xml").stdout
        query = "for $b in //p:book where $b/price < 30 return $b"
        bound = ("--namespace", "p=urn:p", "--format", "json")
        told = json.loads(call("explain", query, "books.xml", *bound).stdout)["explanation"]
        assert "`book` is in no namespace: write book" in told

    def test_what_is_not_known_is_not_told_as_nothing(self, call: Call) -> None:
        Path("broken.xml").write_text("<bib>")
        refused = call("explain", CHEAP, "broken.xml", "--format", "json")
        assert refused.exit_code == ExitCode.REFUSED
        told = json.loads(refused.stdout)
        assert (told["deliveries"], told["error"]["code"]) == (None, "xml.end")
        few = ("--limit", "evaluation_steps_max=1", "--format", "json")
        undecided = call("explain", "count(//book) > 1", "books.xml", *few)
        assert json.loads(undecided.stdout)["error"]["code"] == "limit.evaluation_steps"
        query = "for $b in //book where count(//book) > 1 return <n>{count($b//*)}</n>"
        undecided = call("explain", query, "books.xml", *few)
        assert undecided.exit_code == ExitCode.REFUSED
        told = json.loads(undecided.stdout)
        assert (told["deliveries"], told["error"]["code"]) == (None, "limit.evaluation_steps")

    def test_an_xpath_needs_a_message(self, call: Call) -> None:
        result = call("explain", "//book")
        assert result.exit_code == ExitCode.USAGE
        assert "MESSAGE" in result.stderr


class TestSubscriptionFiles:
    def test_where_a_file_lies_says_whose_it_is(self, tmp_path: Path) -> None:
        for name in ("ann/deep/a.xq", "ann/b.xq", "top.xq", ".hidden/c.xq", "_old.xq", "d.txt"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("//a")
        found = [file.subscription for file in read_subscriptions(tmp_path)]
        assert [(s.id, s.subscriber) for s in found if s is not None] == [
            ("ann/b", "ann"),
            ("ann/deep/a", "ann"),
            ("top", "top"),
        ]

    def test_the_comment_at_the_beginning(self) -> None:
        text = (
            "\ufeff(: what (: it :) is\n  @deliver message\r\n@id x y :) (: @subscriber bob :)\n//a"
        )
        assert subscription_of(text, Path("f/g.xq")) == Subscription("x y", "bob", "//a", "message")
        late = "//a (: @id no :)"
        assert subscription_of(late, Path("g.xq")) == Subscription("g", "g", late)
        mail = "(: ask ann@example.org :) //a"
        assert subscription_of(mail, Path("g.xq")).query == "//a"
        unended = "(: @id x //a"
        assert subscription_of(unended, Path("g.xq")).query == unended

    @pytest.mark.parametrize(
        "comment", ["@subscribr ann", "@id", "@deliver letter", "@id a\n@id b"]
    )
    def test_a_comment_that_cannot_be_used(self, comment: str) -> None:
        with pytest.raises(ConfigError):
            subscription_of(f"(: {comment} :) //a", Path("g.xq"))
