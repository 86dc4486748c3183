"""The language of subscriptions in files, in commands and in pipelines.

If one of these fails, a file says a language and another one is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pathcast import Subscription
from pathcast.cli.app import build_app
from pathcast.model import QueryLanguage
from pathcast.registry.subscription_rows import read_rows

TEXT = "//alert[@sent > '2026-01-01']"
NEW = "<alert sent='2026-02-01'/>"
ROWS = [
    Subscription("old", "ann", TEXT, "ids", language="xpath1"),
    Subscription("new", "ann", TEXT, "ids", language="xquery"),
    Subscription("none", "bob", TEXT, "ids"),
    Subscription("result", "bob", TEXT, "fragment", language="xquery"),
]

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pathcast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(build_app(), [*arguments])
        return result.exit_code, result.stdout, result.stderr

    return call


def write(path: Path, *more: str) -> Path:
    """The rows in the format of the name, and more lines of text."""
    columns = {
        "subscriber": [row.subscriber for row in ROWS],
        "query_id": [row.id for row in ROWS],
        "query": [row.query for row in ROWS],
        "deliver": [row.deliver for row in ROWS],
        "language": [row.language for row in ROWS],
    }
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
        return path
    mark = "," if path.suffix == ".csv" else "\t"
    lines = [mark.join(columns)]
    lines += [mark.join(cell or "" for cell in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([*lines, *more]) + "\n")
    return path


@pytest.mark.parametrize("default", [None, "xpath1", "xquery"])
@pytest.mark.parametrize("name", ["s.tsv", "s.csv", "s.parquet"])
def test_a_table_may_have_a_column_of_languages(
    tmp_path: Path, name: str, default: QueryLanguage | None
) -> None:
    path = write(tmp_path / name)
    wanted = [row._replace(language=row.language or default) for row in ROWS]
    assert read_rows(path, "ids", default).rows == wanted


@pytest.mark.parametrize("suffix", ["tsv", "parquet"])
def test_a_language_that_does_not_exist_costs_one_row(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s.{suffix}"
    cells = [("a", "//a", "xquery"), ("b", "//b", "xpath3"), ("c", "//c", "")]
    if suffix == "parquet":
        names = ("subscriber", "query", "language")
        columns = dict(zip(names, map(list, zip(*cells, strict=True)), strict=True))
        pq.write_table(pa.table({**columns, "query_id": columns["subscriber"]}), path)
    else:
        lines = [f"{name}\t{name}\t{text}\t{language}" for name, text, language in cells]
        path.write_text("\n".join(["subscriber\tquery_id\tquery\tlanguage", *lines]) + "\n")
    rows, _, rejected = read_rows(path, "ids")
    assert [(row.id, row.language) for row in rows] == [("a", "xquery"), ("c", None)]
    assert [(each.row.id, each.code) for each in rejected] == [("b", "query.language")]


def test_a_file_of_a_subscription_says_its_language(tmp_path: Path) -> None:
    (tmp_path / "new.xq").write_text(f"(: @language xquery :) {TEXT}")
    (tmp_path / "none.xq").write_text(TEXT)
    (tmp_path / "wrong.xq").write_text(f"(: @language xpath3 :) {TEXT}")
    rows, _, [rejected] = read_rows(tmp_path, "ids", "xpath1")
    assert [(row.id, row.language) for row in rows] == [("new", "xquery"), ("none", "xpath1")]
    assert "@language xpath3 is not one of xpath1, xquery" in rejected.reason


def test_match_reads_each_query_in_its_language(pathcast: Call, tmp_path: Path) -> None:
    write(tmp_path / "s.tsv")
    (tmp_path / "m.xml").write_text(NEW)

    def matches(*arguments: str) -> list[str]:
        code, out, _ = pathcast("match", "m.xml", *arguments)
        assert code == 0
        found: list[str] = json.loads(out)["matches"]
        return found

    assert matches("--queries", "s.tsv") == ["new", "result"]
    assert matches("--queries", "s.tsv", "--language", "xquery") == ["new", "none", "result"]
    (tmp_path / "q.txt").write_text(f"q\t{TEXT}\n")
    assert matches("--queries", "q.txt") == []
    assert matches("--queries", "q.txt", "--language", "xquery") == ["q"]


def test_check_and_lint_say_what_is_wrong_in_the_language_that_was_chosen(
    pathcast: Call, tmp_path: Path
) -> None:
    write(tmp_path / "s.tsv", "ann\tworse\t//a[b eq 1]\tids\txpath1")
    code, told, warned = pathcast("check", "s.tsv")
    assert code == 1
    assert "s.tsv:6: worse: XPST0003" in told.replace("\n", " ")
    # The order never holds in XPath 1.0, and may hold in XQuery.
    assert sorted(line.split(": ")[2] for line in warned.splitlines() if "PL201" in line) == [
        "none",
        "old",
    ]
    (tmp_path / "q.txt").write_text("//a[@n > '5']\n")
    assert "PL204" in pathcast("lint", "q.txt", "--fail-on", "never")[1]
    for language in ("xpath1", "xquery"):
        assert "PL204" not in pathcast("lint", "q.txt", "--language", language)[1]


def test_transform_and_explain_read_a_query_in_a_language(pathcast: Call, tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(NEW)
    (tmp_path / "q.xq").write_text(f"(: @language xquery :) {TEXT}")
    assert pathcast("transform", TEXT, "m.xml")[:2] == (0, "")
    wanted = (0, NEW + "\n")
    assert pathcast("transform", TEXT, "m.xml", "--language", "xquery")[:2] == wanted
    # What a file says counts more.
    assert pathcast("transform", "@q.xq", "m.xml", "--language", "xpath1")[:2] == wanted
    assert "query: no match" in pathcast("explain", TEXT, "m.xml")[1]
    told = pathcast("explain", TEXT, "m.xml", "--language", "xquery")[1]
    assert "XQuery as chosen" in told
    assert NEW in told


def test_cases_have_a_language(pathcast: Call, tmp_path: Path) -> None:
    (tmp_path / "q.xq").write_text(f"(: @language xquery :) {TEXT}")
    cases = [
        (f'query = "{TEXT}"\nlanguage = "xquery"', True),
        (f'query = "{TEXT}"\nlanguage = "xpath1"', False),
        ("query_file = 'q.xq'", True),
        ("query_file = 'q.xq'\nlanguage = 'xpath1'", False),
    ]
    (tmp_path / "suite.toml").write_text(
        "".join(
            f"[[case]]\nname = '{at}'\nmessage = \"{NEW}\"\n{said}\n"
            + ("expect = '''" + NEW + "'''\n" if is_delivered else "delivered = false\n")
            for at, (said, is_delivered) in enumerate(cases)
        )
    )
    code, told, _ = pathcast("test", "suite.toml")
    assert code == 0, told
