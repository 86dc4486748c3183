"""Warnings: conditions that never or always hold are told where a query is taken up.

If one of these fails, somebody registers a query that no message can satisfy and is told nothing,
or is warned of a query that is right.
"""

from __future__ import annotations

import operator
import pickle
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from broker_engines import broker_engines
from generators import random_message, random_query
from generators.expression_text import random_expression
from oracles import lxml_tree
from oracles.engines import EngineName, made_by
from oracles.lxml_differences import may_differ
from oracles.lxml_oracle import LxmlQuery
from partitioned_index import PartitionedIndex
from pathcast import Query, RegisterReport, Registry, Subscription
from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.limits import Limits
from pathcast.lint import CODES
from pathcast.model import QueryLanguage, QueryWarning
from pathcast.query import compile_query, query_warnings
from pathcast.query.condition_issues import query_issues
from pathcast.query.notation import Notation
from pathcast.query.query_warnings import is_plain, warnings_of
from pathcast.query.reader import read_query
from pathcast.registry.delimited import TextPlace
from pathcast.registry.subscription_engines import SubscriptionEngines
from pathcast.registry.subscription_rows import SubscriptionRows
from pathcast_lab.bench.placement.hashed import HashPlacement

HOPELESS = (
    "//order[value-date >= '2026-06-01']",
    "//order[@n < 3 and @n > 5]",
    "//order[0]",
    "/order/@id/total",
    "/order/self::line",
    "//a[@x='1'][not(@x)]",
    "//a[@x < 'abc']",
    "//a < 'b'",
)
DOUBTFUL = {
    "//a['@x']": "PL202",
    "//a[@x='1' or 'y']": "PL202",
    "//a[@x!='1' or @x!='2']": "PL202",
    "//a[@x or @n < 'b']": "PL201",
    "//a[not(@day > '2026-06-01')]": "PL202",
    "//order[@day >= '20260601']": "PL204",
    "//a[@n < @m]": "PL204",
    "//a[contains(.//b, 'x')]": "PL204",
    "//a[sum(b) * (b | c) > 3]": "PL204",
    "//a[@x = 'AT&amp;T']": "PL204",
}
FINE = (
    "//order[@day = '2026-06-01']",
    "//order[@day >= 20260601]",
    "//a[b='x' and b='y']",
    "//a[@n > 3 and @n < 5]",
    "//a[@n > 5][@n > 3]",
    "//a[contains(b, 'x') and starts-with(@c, 'y')]",
    "//a[contains((.//b)[1], 'x') and b * 2 > 3]",
    "//a[@x = 'AT&T']",
    "/*",
    "//a[position() > 1][position() = 1]",
)


def codes(report: RegisterReport) -> dict[str, tuple[str, bool]]:
    return {each.query_id: (each.code, each.is_hopeless) for each in report.warnings}


EXPECTED: Mapping[str, tuple[str, bool]] = {
    **dict.fromkeys(HOPELESS, ("PL201", True)),
    **{text: (code, False) for text, code in DOUBTFUL.items()},
}
TEXTS = (*HOPELESS, *DOUBTFUL, *FINE)


@broker_engines
class TestRegistration:
    def test_an_index_warns(self, engine: EngineName) -> None:
        rows = [Query(text, text) for text in TEXTS]
        rows += [Query("bad", "//a["), Query(FINE[0], "//a[0]")]
        assert codes(made_by(engine, Registry).add(rows)) == EXPECTED

    def test_a_partitioned_index_warns(self, engine: EngineName) -> None:
        index = PartitionedIndex(HashPlacement(2), engine=engine)
        assert codes(index.add([Query(text, text) for text in TEXTS])) == EXPECTED

    def test_a_broker_warns_in_xpath(self, engine: EngineName) -> None:
        """XQuery orders text: the same comparison is no fault there."""
        others = [
            Subscription("c", "ann", "//a[@x < 'abc'] (: a note :)", "ids"),
            Subscription("f", "ann", "for $o in //order where $o/day > '2026-06-01' return $o"),
            Subscription("g", "ann", "//order[data(day) > '2026-06-01']"),
        ]
        rows = [Subscription(text, "ann", text, "ids") for text in TEXTS]
        found = codes(made_by(engine, Registry).add([*rows, *others]))
        assert found == {**EXPECTED, "c": ("PL201", True)}

    def test_prefixes_of_the_index_and_of_the_query_are_known(self, engine: EngineName) -> None:
        index = made_by(engine, Registry, namespaces={"n": "urn:n"})
        own = Query("own", "//p:a[n:b < 'x']", {"p": "urn:p"})
        [warning] = index.add([own]).warnings
        assert (warning.offset, "`n:b<'x'`" in warning.reason) == (6, True)


def test_nothing_is_analysed_before_warnings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registration must not become slower by what nobody reads."""
    asked: list[str] = []

    def recorded(query_id: str, text: str, *_: object) -> tuple[QueryWarning, ...]:
        asked.append(text)
        return warnings_of(query_id, text, {})

    monkeypatch.setattr(query_warnings, "warnings_of", recorded)
    index = made_by("reference", Registry)
    report = index.add([Query("a", "//a[0]"), Query("b", "//a[0]"), Query("c", "//a[")])
    assert str(report) == "RegisterReport(accepted=2, rejected=['c'])"
    assert not asked
    assert [each.query_id for each in report.warnings] == ["a", "b"]
    assert [each.query_id for each in report.warnings] == ["a", "b"]
    assert asked == ["//a[0]"]


def test_a_report_travels_with_its_warnings() -> None:
    report = made_by("reference", Registry).add([Query("a", "//a[0]")])
    other = pickle.loads(pickle.dumps(report))
    assert (other, list(other.warnings)) == (report, list(report.warnings))
    assert type(other.warnings) is tuple


def test_the_repr_of_a_report_is_short() -> None:
    rows = [Query(f"q{n}", "//a[" + "b" * 1000) for n in range(50)]
    report = made_by("reference", Registry).add(rows)
    assert repr(report) == (
        "RegisterReport(accepted=0, rejected=['q0', 'q1', 'q2', 'q3', 'q4'] and 45 more)"
    )


def test_codes_are_those_of_lint() -> None:
    """A code is explained in docs/lint.md; the two must not call one thing by two codes."""
    assert {code for code, _ in EXPECTED.values()} == {"PL201", "PL202", "PL204"}
    assert [CODES[code].title for code in ("PL201", "PL202", "PL204")] == [
        "the condition cannot hold",
        "the condition always holds",
        "the meaning depends on the language",
    ]


# No false alarms.


def a_conjunction(generator: random.Random) -> str:
    """A path with conditions of few names, so that some are about one value."""

    def condition() -> str:
        operand = generator.choice(("@x", "@y", "b", "c/d", ".", "text()", "*", "p:b"))
        match generator.randrange(6):
            case 0:
                return operand
            case 1:
                return f"{generator.choice(('contains', 'starts-with'))}({operand}, 'x')"
            case 2:
                return f"not({operand})"
            case _:
                sign = generator.choice(("=", "!=", "<", ">", "<=", ">="))
                return f"{operand} {sign} {generator.choice(('1', '2.5', chr(39) + 'x' + chr(39)))}"

    def predicate() -> str:
        if generator.randrange(5) == 0:
            return f"[{generator.choice(('1', '2', '0', 'last()', '3'))}]"
        joined = condition()
        for _ in range(generator.randrange(3)):
            joined += f" {generator.choice(('and', 'or'))} {condition()}"
        return f"[{joined}]"

    steps = [
        generator.choice(("/", "//"))
        + generator.choice(("a", "b", "*", "p:b", "@x", "text()"))
        + "".join(predicate() for _ in range(generator.choice((0, 0, 1, 2))))
        for _ in range(generator.randrange(1, 4))
    ]
    return "".join(steps)


NAMESPACES = {"p": "urn:p", "n": "urn:n"}


@pytest.mark.parametrize("write", [random_query, random_expression, a_conjunction])
def test_the_analysis_finds_nothing_in_what_is_taken_for_plain(
    write: Callable[[random.Random], str],
) -> None:
    """The pattern only saves time: what it lets through would have had no warning."""
    generator = random.Random(619)
    plain = 0
    for _ in range(1500):
        text = write(generator)
        if not is_plain(text):
            continue
        plain += 1
        alternatives = compile_query(text, NAMESPACES).alternatives
        expr = read_query(text, NAMESPACES)
        issues = query_issues(expr, alternatives, Notation(NAMESPACES))
        assert [issue for issue in issues if issue.truth != "implied"] == [], text
    assert plain > 15


@pytest.mark.parametrize("seed", range(3))
def test_no_message_satisfies_what_is_called_hopeless(seed: int) -> None:
    """By the default engine and by lxml."""
    pytest.importorskip("lxml")
    generator = random.Random(8200 + seed)
    messages = [random_message(generator) for _ in range(12)]
    texts: list[str] = []
    for _ in range(500):
        write = generator.choice((random_query, random_expression, a_conjunction))
        texts.append(write(generator))
    index = Registry(namespaces=NAMESPACES)
    report = index.add([Query(str(at), text) for at, text in enumerate(texts)])
    hopeless = {each.query_id for each in report.warnings if each.is_hopeless}
    assert len(hopeless) > 10
    for result in index.match(messages):
        assert not hopeless & set(result.query_ids)
    trees = [lxml_tree(message) for message in messages]
    for name in sorted(hopeless):
        text = texts[int(name)]
        if may_differ(text) is None and "namespace::" not in text:
            asked = LxmlQuery(Query(name, text, NAMESPACES))
            assert not any(asked.matches(tree) for tree in trees), text


# Every recommendation works.

COMPARED: Mapping[str, Callable[[str, str], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPERANDS = ("@day", "value-date", ".", "*", "string(@day)", "number(value-date)")


def recommended(text: str) -> list[tuple[str, QueryLanguage]]:
    """The queries that the warning of `//order[...]` says to write: XPath, if any, then XQuery."""
    [warning] = warnings_of("q", text, {})
    assert warning.fix is not None
    condition = text[text.index("[") + 1 : text.rindex("]")]
    found = re.findall(r"`([^`]+)`( with language=\"xquery\")?", warning.fix)
    return [
        (text.replace(condition, written), "xquery" if is_xquery or "xs:" in written else "xpath1")
        for written, is_xquery in found
    ]


def satisfies(
    engine: EngineName, query: str, message: str, language: QueryLanguage | None = None
) -> bool:
    registry = made_by(engine, Registry)
    row = Subscription("q", "ann", query, "ids", language=language)
    assert registry.add([row]).accepted == 1
    return bool(list(registry.deliver(message.encode())))


@broker_engines
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize(
    ("wanted", "values"),
    [
        ("2026-06-01", ("2025-12-31", "2026-06-01", "2026-07-02")),
        ("2026-06-01T08:00:00Z", ("2026-06-01T07:59:59Z", "2026-06-01T08:00:00Z", "2026-07-02")),
        ("2026-06-01T07:59", ("2026-06-01T07:58", "2026-06-01T07:59", "2026-06-01T08:00")),
        ("b", ("a", "b", "c")),
    ],
)
def test_what_is_recommended_for_an_order_of_text_works(
    engine: EngineName, operand: str, wanted: str, values: tuple[str, ...]
) -> None:
    for sign, holds in COMPARED.items():
        queries = recommended(f"//order[{operand} {sign} '{wanted}']")
        assert len(queries) == {"b": 1, "2026-06-01": 3}.get(wanted, 2)
        for query, language in queries:
            assert not warnings_of("q", query, {}, language)
            for value in values:
                if "T" in wanted and "T" not in value and "translate" in query:
                    continue  # the digits of a day are no time of it
                message = f"<order day='{value}'><value-date>{value}</value-date></order>"
                found = satisfies(engine, query, message, language)
                has_type = "xs:" not in query or ("xs:dateTime" in query) == ("T" in value)
                assert found == (has_type and holds(value, wanted)), (query, value)


@broker_engines
def test_each_of_several_dates_is_compared(engine: EngineName) -> None:
    message = "<order><day>2025-01-01</day><day>2026-07-01</day></order>"
    for query, language in recommended("//order[day >= '2026-06-01']"):
        assert satisfies(engine, query, message, language) == ("dateTime" not in query), query
    query, _ = recommended("//order[day >= '2026-06-01']")[2]
    assert satisfies(engine, query, message.replace("</day>", "T12:00:00Z</day>"))


@broker_engines
def test_a_date_is_compared_with_the_days_of_times(engine: EngineName) -> None:
    in_xpath, _ = recommended("//order[day >= '2026-06-01']")[0]
    assert satisfies(engine, in_xpath, "<order><day>2026-06-01T10:30:00.5+02:00</day></order>")
    index = made_by(engine, Registry)
    assert index.add([Query("q", in_xpath)]).accepted == 1


def test_a_number_compared_with_text_has_no_recommendation() -> None:
    [warning] = warnings_of("q", "//a[sum(b) > '2026-06-01']", {})
    assert warning.fix is None


# Commands.


def call(*arguments: object) -> Result:
    return CliRunner().invoke(build_app(), [str(each) for each in arguments])


def test_commands_say_where_a_condition_never_holds(tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("fine\t//a\ndead\t//a[day >= '2026-06-01']\n")
    message = tmp_path / "m.xml"
    message.write_text("<a><day>2026-07-01</day></a>")
    for arguments in (("check", queries), ("match", "--queries", queries, message)):
        result = call(*arguments)
        assert result.exit_code == ExitCode.OK
        assert f"warning: {queries}:2:10: PL201: no message can satisfy" in result.stderr
        assert "translate(substring(.,1,10),'-','')>=20260601" in result.stderr
        assert "PL201" not in result.stdout
    assert "queries: 2, with faults: 0, warnings: 1" in call("check", queries).stderr


def test_warnings_are_kept_while_the_rows_are() -> None:
    """A pipeline takes up what came: what stays is not analysed again, what left is forgotten."""

    def rows(*texts: str) -> SubscriptionRows:
        found = [
            Subscription(f"q{text}", who, text, "ids") for text in texts for who in ("ann", "bob")
        ]
        places = [TextPlace("s.tsv", line) for line in range(2, 2 + len(found))]
        return SubscriptionRows(found, places, [])

    engines = made_by("reference", SubscriptionEngines, Limits(), {})
    told = engines.warnings(engines.take_up(rows("//a[0]", "//b")))
    assert [str(each).splitlines()[0] for each in told] == [
        "s.tsv:2:5: q//a[0]: PL201: no message can satisfy the query: `[0]`: positions are whole "
        "numbers from 1 on"
    ]
    again = engines.warnings(engines.take_up(rows("//b", "//a[0]")))
    assert [(each.place.line, each.warning) for each in again] == [(4, told[0].warning)]
    assert not engines.warnings(engines.take_up(rows("//b")))
