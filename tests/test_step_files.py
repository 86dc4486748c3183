"""Steps in files of subscriptions, and what commands make of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from oracles.engines import made_by
from pathcast import Subscription
from pathcast.cli.app import build_app
from pathcast.errors import ConfigError, UnsupportedQueryError
from pathcast.limits import Limits
from pathcast.lint import lint
from pathcast.registry.subscription_engines import SubscriptionEngines
from pathcast.registry.subscription_files import read_subscriptions
from pathcast.registry.subscription_rows import read_rows
from pathcast_papers.message import parse_message

STEPS = ("drop //a[b = ';']", "rename //ol list")
ROWS = [
    Subscription("q1", "ann", "//list", "fragment", None, STEPS),
    Subscription("q2", "ann", "//ol", "ids"),
    Subscription("q3", "bob", "//list", "ids", None, STEPS[1:]),
]

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pathcast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(build_app(), [*arguments])
        return result.exit_code, result.stdout, result.stderr

    return call


def write(path: Path) -> Path:
    """The rows in the format of the name."""
    if path.suffix == ".parquet":
        # Steps as lists, or as texts.
        is_list = path.stem == "lists"
        cells = [list(row.steps) if is_list else "; ".join(row.steps) for row in ROWS]
        columns = {
            "subscriber": [row.subscriber for row in ROWS],
            "query_id": [row.id for row in ROWS],
            "query": [row.query for row in ROWS],
            "deliver": [row.deliver for row in ROWS],
            "steps": cells,
        }
        pq.write_table(pa.table(columns), path)
        return path
    mark = "," if path.suffix == ".csv" else "\t"
    lines = [mark.join(("steps", "subscriber", "query_id", "query", "deliver"))]
    lines += [
        mark.join(("; ".join(row.steps), row.subscriber, row.id, row.query, row.deliver))
        for row in ROWS
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", ["s.tsv", "s.csv", "lists.parquet", "texts.parquet"])
def test_a_table_may_have_a_column_of_steps(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name)
    assert read_rows(path, "fragment").rows == ROWS


def test_a_list_with_a_gap_is_a_row_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    columns = {
        "subscriber": ["ann", "ann", "bob"],
        "query_id": ["a", "b", "c"],
        "query": ["//a", "//b", "//c"],
        "steps": [["drop //x", None], None, []],
    }
    pq.write_table(pa.table(columns), path)
    rows, _, rejected = read_rows(path, "ids")
    assert [row.id for row in rows] == ["b", "c"]
    assert [(each.row.id, each.place.line) for each in rejected] == [("a", 1)]
    assert "one of its steps is missing" in rejected[0].reason


def test_steps_that_are_numbers_make_a_file_unusable(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    columns = {"subscriber": ["a"], "query_id": ["b"], "query": ["//c"], "steps": [{"a": 1}]}
    pq.write_table(pa.table(columns), path)
    with pytest.raises(ConfigError):
        read_rows(path, "ids")


def test_a_file_of_a_subscription_says_its_steps(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann/list.xq").write_text(
        "(: Lists.\n   @step drop //a[@x = '1' and b = ';']\n   @deliver message\n"
        "   @step rename //ol list :)\n//list"
    )
    (tmp_path / "ann/none.xq").write_text("(: @step :) //list")
    found, none = read_subscriptions(tmp_path)
    steps = ("drop //a[@x = '1' and b = ';']", "rename //ol list")
    assert found.subscription == Subscription("ann/list", "ann", "//list", "message", None, steps)
    assert none.error is not None
    assert "@step has no value" in str(none.error)


def test_what_has_steps_goes_to_a_broker_and_is_another_query(tmp_path: Path) -> None:
    engines = made_by("reference", SubscriptionEngines, Limits(), {})
    path = tmp_path / "s.tsv"
    lines = ["subscriber\tquery_id\tquery\tdeliver\tsteps"]
    lines += ["ann\tq\t//list\tids\trename //ol list", "bob\tq\t//list\tids\t"]
    lines += ["cid\tq\t//list\tids\trename //ol list", "ann\tbad\t//list\tids\tmove //ol"]
    path.write_text("\n".join(lines) + "\n")
    taken = engines.take_up(read_rows(path, "ids"))
    assert sorted(taken.takers) == [("ann", "q"), ("cid", "q")]
    assert [each.code for each in taken.rejected] == ["query.duplicate", "XPST0003"]
    assert len(engines.registry) == 1
    assert len(engines.registry.deliver(b"<ol/>")) == 0
    assert len(engines.registry.deliver(b"<n><ol/></n>")) == 1
    path.write_text("\n".join([lines[0], lines[2]]) + "\n")
    assert sorted(engines.take_up(read_rows(path, "ids")).takers) == [("bob", "q")]
    assert len(engines.registry) == 1


MESSAGE = "<n><image/><ol><li>1</li></ol></n>"


def test_transform_does_the_steps_of_a_file_and_its_own(pathcast: Call, tmp_path: Path) -> None:
    (tmp_path / "q.xq").write_text("(: @step rename //ol list :) //list")
    (tmp_path / "m.xml").write_text(MESSAGE)
    found = pathcast("transform", "@q.xq", "m.xml")
    assert found[:2] == (0, "<list><li>1</li></list>\n")
    more = ("--step", "unwrap //li")
    assert pathcast("transform", "@q.xq", "m.xml", *more)[1] == "<list>1</list>\n"
    assert pathcast("transform", "//ol", "m.xml", *more)[1] == "<ol>1</ol>\n"
    code, _, told = pathcast("transform", "//ol", "m.xml", "--step", "move //li")
    assert code != 0
    assert "is none of `drop PATH`, `unwrap PATH`, `rename PATH NAME`" in told.replace("\n", " ")


def test_explain_shows_steps_and_what_is_delivered_after_them(
    pathcast: Call, tmp_path: Path
) -> None:
    (tmp_path / "m.xml").write_text(MESSAGE)
    (tmp_path / "others").mkdir()
    (tmp_path / "others/o.xq").write_text("(: @step drop //image :) //li")
    more = ("--step", "drop //image", "--step", "rename //ol list")
    code, told, _ = pathcast("explain", "//list", "m.xml", "--with", "others", *more)
    assert code == 0
    assert "step 1: drop //image\n" in told
    assert "1  step 1: drop //image" in told
    assert "gate: a message without any of these is passed by\n  /*\n" in told
    assert "<list><li>1</li></list>" in told
    code, told, _ = pathcast("explain", "//list", *more, "--format", "json")
    assert json.loads(told)["steps"] == ["drop //image", "rename //ol list"]


def test_check_and_cases_know_steps(pathcast: Call, tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv")
    assert pathcast("check", str(path))[0] == 0
    path.write_text(path.read_text() + "move //x\tann\tq4\t//a\tids\n")
    code, told, _ = pathcast("check", str(path))
    assert code == 1
    assert "s.tsv:5: q4: XPST0003: 'move //x' is none of" in told.replace("\n", " ")
    (tmp_path / "q.xq").write_text("(: @step rename //ol list :) //list")
    cases = [
        ("query = '//list'\nsteps = ['rename //ol list']", "<list/>"),
        ("query_file = 'q.xq'", "<list/>"),
        ("query_file = 'q.xq'\nsteps = ['rename //ol list', 'rename //list x']", ""),
    ]
    (tmp_path / "suite.toml").write_text(
        "".join(
            f"[[case]]\nname = '{at}'\nmessage = '<n><ol/></n>'\n{said}\n"
            + (f"expect = '{wanted}'\n" if wanted else "delivered = false\n")
            for at, (said, wanted) in enumerate(cases)
        )
    )
    code, told, _ = pathcast("test", "suite.toml")
    assert code == 0, told


def test_lint_compares_what_has_the_same_steps_only() -> None:
    rows = [
        Subscription("plain", "", "//ol/li", "ids"),
        Subscription("one", "", "//ol/li", "ids", steps=("drop //b",)),
        Subscription("two", "", "//ol/li", "ids", steps=("drop //b",)),
        Subscription("wide", "", "//li", "ids"),
        Subscription("made", "", "//list", "ids", steps=("rename //ol list",)),
        Subscription("wrong", "", "//ol", "ids", steps=("move //b",)),
    ]
    report = lint(rows, sample=[parse_message(b"<n><ol><li/></ol></n>")])
    found = {(each.code, each.query_id, each.related) for each in report.findings}
    assert ("PL301", "two", (1,)) in found
    assert ("PL302", "plain", (3,)) in found
    assert ("PL001", "wrong", ()) in found
    # Of elements that only a step names, no sample knows anything.
    assert {each[1] for each in found} == {"two", "plain", "wrong"}


def test_a_row_says_that_steps_are_too_many() -> None:
    engines = made_by("reference", SubscriptionEngines, Limits(), {})
    report = engines.registry.add([Subscription("s", "", "//a", steps=("drop //b",) * 65)])
    error = report.rejected["s"]
    assert isinstance(error, UnsupportedQueryError)
    assert str(error) == "65 steps, where at most 64 are allowed"
