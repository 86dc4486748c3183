"""`pathcast lint` and `pathcast explain` from outside: what they print where, what exit codes say.

If one of these fails, a build that lints its queries passes or fails for the wrong reason, or a
person is pointed at the wrong line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.cli.query_file import query_lines

Call = Callable[..., Result]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command in this process."""

    def run(*arguments: str | Path) -> Result:
        result = CliRunner().invoke(build_app(), [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.txt"
    path.write_text(
        "# prices\n//qoute[@price > 3]\n  all\t //quote[@price > 5]\n//quote[@price > 4]\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    directory = tmp_path / "sample"
    (directory / "inner").mkdir(parents=True)
    (directory / "inner" / "a.xml").write_bytes(b"<quotes><quote price='3'/></quotes>")
    return directory


@pytest.fixture
def dtd(tmp_path: Path) -> Path:
    path = tmp_path / "quotes.dtd"
    path.write_text(
        "<!ELEMENT quotes (quote*)><!ELEMENT quote EMPTY>"
        "<!ATTLIST quote price CDATA #REQUIRED side (buy|sell) 'buy'>"
    )
    return path


def test_findings_stand_under_their_line_and_column(
    call: Call, queries: Path, sample: Path
) -> None:
    result = call("lint", queries, "--sample", sample)
    assert result.stdout.splitlines() == [
        f"{queries}:2:3: PL101 warning: no element of the sample is called `qoute`",
        "  //qoute[@price > 3]",
        "    ^",
        "  did you mean `quote` or `quotes`? (it occurs once)",
        "  -> //quote[@price > 3]",
        f"{queries}:3:8: PL302 info: covered by query 4 `//quote[@price > 4]`: every message that "
        "satisfies this one satisfies it",
    ]
    assert result.stderr == "queries: 3, error: 0, warning: 1, info: 1\n"
    assert result.exit_code == ExitCode.REFUSED


def test_columns_of_queries() -> None:
    lines = ["/a", "  /a  ", "id\t/a", " id \t  /a ", "\t/a"]
    text = "\n".join(lines)
    found = query_lines(text)
    assert [place.column for place in found.places] == [1, 3, 4, 8, 2]
    for row, place, line in zip(found.rows, found.places, lines, strict=True):
        assert place.column is not None
        assert line[place.column - 1 :].startswith(row.query)


def test_json_is_one_object(call: Call, queries: Path, sample: Path) -> None:
    result = call("lint", queries, "--sample", sample, "--format", "json")
    data: dict[str, Any] = json.loads(result.stdout)
    assert result.stderr == ""
    assert data["queries"] == 3
    assert data["counts"] == {"error": 0, "warning": 1, "info": 1}
    first, second = data["findings"]
    assert (first["code"], first["line"], first["column"], first["offset"]) == ("PL101", 2, 3, 2)
    assert first["replacement"] == {"offset": 2, "length": 5, "text": "quote"}
    assert (second["code"], second["query_id"], second["related_lines"]) == ("PL302", "all", [4])


@pytest.mark.parametrize(
    ("options", "code", "count"),
    [
        ([], 1, 2),
        (["--fail-on", "error"], 0, 2),
        (["--fail-on", "never"], 0, 2),
        (["--fail-on", "info"], 1, 2),
        (["--severity", "warning"], 1, 1),
        (["--severity", "error"], 1, 0),
        (["--ignore", "PL1"], 0, 1),
        (["--ignore", "PL101", "--ignore", "PL302", "--fail-on", "info"], 0, 0),
        (["--comparisons", "0", "--ignore", "PL101"], 0, 1),
    ],
)
def test_what_is_shown_and_what_fails(
    call: Call, queries: Path, sample: Path, options: list[str], code: int, count: int
) -> None:
    result = call("lint", queries, "--sample", sample, "--format", "json", *options)
    assert result.exit_code == code
    assert len(json.loads(result.stdout)["findings"]) == count


def test_a_dtd_and_its_roots(call: Call, tmp_path: Path, dtd: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("/quote[@side='bye']\n")
    found = json.loads(call("lint", queries, "--dtd", dtd, "--format", "json").stdout)
    assert [each["code"] for each in found["findings"]] == ["PL105", "PL106"]
    rooted = call("lint", queries, "--dtd", dtd, "--root", "quote", "--format", "json")
    assert [each["code"] for each in json.loads(rooted.stdout)["findings"]] == ["PL106"]
    refused = call("lint", queries, "--dtd", dtd, "--root", "nothing")
    assert refused.exit_code == ExitCode.REFUSED
    assert "declares no element nothing" in refused.stderr


def test_a_message_that_is_refused_is_left_out_and_said(
    call: Call, queries: Path, sample: Path
) -> None:
    (sample / "b.xml").write_bytes(b"<quotes>")
    result = call("lint", queries, "--sample", sample)
    assert "b.xml is left out of the sample: line 1" in result.stderr
    assert "PL101" in result.stdout


def test_an_empty_sample_is_an_error(call: Call, queries: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    result = call("lint", queries, "--sample", tmp_path / "nothing")
    assert result.exit_code == ExitCode.REFUSED
    assert "holds no message" in result.stderr


def test_a_code_that_does_not_exist_is_refused(call: Call, queries: Path) -> None:
    result = call("lint", queries, "--ignore", "PL9")
    assert result.exit_code == ExitCode.USAGE
    assert "PL9" in result.stderr


def test_namespaces_of_the_command_line_hold(call: Call, tmp_path: Path) -> None:
    queries, message = tmp_path / "queries.txt", tmp_path / "message.xml"
    queries.write_text("/quotes/@n:x\n/n:quotes\n")
    message.write_bytes(b"<quotes xmlns='urn:q' xmlns:n='urn:q' n:x='1'/>")
    options = ["--namespace", "=urn:q", "--namespace", "n=urn:q", "--fail-on", "warning"]
    assert call("lint", queries, "--sample", message, *options).exit_code == ExitCode.OK


def test_help_teaches(call: Call) -> None:
    text = " ".join(call("lint", "--help").stdout.split())
    for words in ("PL201 conditions that cannot hold", "--sample messages/", "--fail-on"):
        assert words in text


def test_explain_as_json(call: Call, tmp_path: Path) -> None:
    message = tmp_path / "message.xml"
    message.write_bytes(b"<a><city code='SFO'/></a>")
    result = call("explain", "//city[@code='SF']", message, "--format", "json")
    assert result.exit_code == ExitCode.OK
    data = json.loads(result.stdout)
    assert data["is_match"] is False
    assert data["failure"]["near_misses"] == ["`@code` is 'SFO', the query wants 'SF'"]
    assert data["plan"]["cost"] == "indexed"


def test_explain_says_how_the_query_is_answered(call: Call, tmp_path: Path) -> None:
    message = tmp_path / "message.xml"
    message.write_bytes(b"<a><b/></a>")
    result = call("explain", "//b[last()]", message)
    assert result.exit_code == ExitCode.OK
    assert "candidate-checked: uses last()" in result.stdout
