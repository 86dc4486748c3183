"""The same subscriptions in every format: check, lint, match and a run take and reject the same.

If one of these fails, somebody checks a file, is told that it is fine, and loses deliveries.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("fsspec", reason="needs: pip install 'pathcast[spark]'")

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.workers import InProcess
from silent_progress import Silent

Call = Callable[..., Result]

MESSAGES = {
    "1.xml": "<m><a x='1'><b>5</b></a><c/></m>",
    "2.xml": "<m><a x='2'/><n:d xmlns:n='urn:n'>7</n:d></m>",
    "3.xml": "<m><c>5</c></m>",
    "4.xml": "<m><a></m>",
}
GOOD = (
    "//a",
    "/m/a[@x = '1']",
    "//b[. > 4]",
    '//c[. = "5"]',
    "count(//a) > 0",
    "//n:d",
    "//a (: said, in words :)",
    "for $a in //a return <hit>{$a/b}</hit>",
    "for $a in //a where $a/@x = '2' return $a",
    "<all>{//c}</all>",
)
BAD = (
    "//[",
    "/a/b[",
    "//p:unbound",
    "for $a in //a return",
    "$nobody/a",
    "//a[position() = last()",
    "<open>{//a}",
)
MODES = ("ids", "message", "fragment")


class Row(NamedTuple):
    subscriber: str
    query_id: str
    query: str
    deliver: str


def population(seed: int) -> list[Row]:
    """Good rows, broken ones, ids that are taken, shared queries, rows that lack something."""
    chance = random.Random(seed)
    rows: list[Row] = []
    for number in range(24):
        pool = GOOD if chance.random() < 0.7 else BAD
        row = Row(
            f"s{number % 5}", f"q{number}", chance.choice(pool), chance.choice((*MODES, "ids"))
        )
        kind = chance.random()
        if rows and kind < 0.15:  # the query of another, or its id with another query
            row = row._replace(query_id=chance.choice(rows).query_id)
        elif rows and kind < 0.3:
            row = chance.choice(rows)._replace(subscriber=f"t{number}")
        elif kind < 0.35:
            row = row._replace(deliver="pigeon")
        rows.append(row)
    return rows


def write_table(path: Path, rows: Sequence[Row]) -> Path:
    if path.suffix == ".parquet":
        columns = {name: [getattr(row, name) for row in rows] for name in Row._fields}
        pq.write_table(pa.table(columns), path)
        return path
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle, delimiter="," if path.suffix == ".csv" else "\t")
        writer.writerow(Row._fields)
        writer.writerows(rows)
    return path


def write_folder(path: Path, rows: Sequence[Row]) -> Path:
    path.mkdir()
    for number, row in enumerate(rows):
        head = f"(: @id {row.query_id}\n@subscriber {row.subscriber}\n@deliver {row.deliver} :)\n"
        (path / f"{number:03}.xq").write_text(head + row.query)
    return path


FORMATS: dict[str, Callable[[Path, Sequence[Row]], Path]] = {
    "s.tsv": write_table,
    "s.csv": write_table,
    "s.parquet": write_table,
    "folder": write_folder,
}


def number_of(place: str, name: str) -> int:
    """The row that a place names."""
    if name == "folder":
        return int(place.split("/")[-1].split(".")[0])
    return int(place.rpartition(":")[2]) - (1 if name == "s.parquet" else 2)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command in this process."""

    def invoke(*arguments: str | Path) -> Result:
        result = CliRunner().invoke(build_app(), [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for name, text in MESSAGES.items():
        (tmp_path / "in" / name).write_text(text)
    return tmp_path


def pipeline(root: Path, path: Path) -> Path:
    file = root / "pipeline.toml"
    file.write_text(
        f'[source]\npath = "in"\n[subscriptions]\npath = "{path.name}"\n'
        'namespaces = { n = "urn:n" }\n'
        f'[output]\npath = "out-{path.name}"\n'
    )
    return file


class Seen(NamedTuple):
    """What came of a population: rows that were rejected with their codes, matches by message."""

    rejected: dict[int, str]
    matches: dict[str, set[str]]


def of_run(root: Path, file: Path, name: str) -> Seen:
    summary = run(load_settings(file), workers=InProcess(), progress=Silent())
    output = root / f"out-{name}"
    rejected: dict[int, str] = {}
    for path in (output / "rejected_queries").glob("*"):
        for row in pq.read_table(path).to_pylist():
            rejected[number_of(row["place"], name)] = row["code"]
    assert sum(summary.rejected_queries.values()) == len(rejected)
    matches: dict[str, set[str]] = {message: set() for message in MESSAGES}
    for row in read_output(output, "inboxes").to_pylist():
        matches[row["message_id"]].add(row["subscription_id"])
    return Seen(rejected, matches)


def places_of(lines: Sequence[str], path: Path, name: str) -> set[int]:
    """Rows that lines of a report name at their beginnings."""
    found = [line for line in lines if line.startswith(str(path))]
    return {number_of(":".join(line.split(":")[:2]), name) for line in found}


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 12))]
)
def test_all_commands_take_and_reject_what_a_run_does(root: Path, call: Call, seed: int) -> None:
    rows = population(seed)
    runs: list[Seen] = []
    for name, write in FORMATS.items():
        path = write(root / name, rows)
        file = pipeline(root, path)
        seen = of_run(root, file, name)
        runs.append(seen)
        named = ("--namespace", "n=urn:n")
        for queries, options in ((path, named), (file, ())):
            checked = call("check", queries, *options)
            assert places_of(checked.stdout.splitlines(), path, name) == set(seen.rejected)
            told = f"subscriptions: {len(rows)}, rejected: {len(seen.rejected)}"
            assert told in checked.stderr
            found = json.loads(call("lint", queries, *options, "--format", "json").stdout)
            refused = [each for each in found["findings"] if each["code"] == "PL001"]
            if name == "folder":
                places = {number_of(each["file"], name) for each in refused}
            else:
                places = {number_of(f"{each['file']}:{each['line']}", name) for each in refused}
            assert places == set(seen.rejected)
            matched = call("match", root / "in", "--queries", queries, *options)
            said = [line.removeprefix("error: ") for line in matched.stderr.splitlines()]
            assert places_of(said, path, name) == set(seen.rejected)
            answers = [json.loads(line) for line in matched.stdout.splitlines()]
            assert {Path(each["message"]).name: set(each["matches"]) for each in answers} == (
                seen.matches
            )
            assert [each["error"] is not None for each in answers] == [False, False, False, True]
    assert runs[0].rejected, "nothing was rejected: the population tests nothing"
    assert any(runs[0].matches.values()), "nothing was delivered: the population tests nothing"
    codes = [dict(seen.rejected) for seen in runs]
    for number, row in enumerate(rows):
        if row.deliver == "pigeon":  # a file says it in its comment, which is another error
            for each in codes:
                assert each.pop(number) is not None
    assert all(each == codes[0] for each in codes)
    assert all(seen.matches == runs[0].matches for seen in runs)


def test_findings_of_a_pipeline_name_file_line_and_column(root: Path, call: Call) -> None:
    (root / "sample.xml").write_text("<m><a><b/></a></m>")
    rows = [
        Row("ann", "x", "//a/bb", "ids"),
        Row("ann", "y", "for $a in //a return <r>{$a/bb}</r>", "fragment"),
        Row("ann", "z", "//[", "ids"),
    ]
    path = write_table(root / "s.tsv", rows)
    sampled = ("--sample", root / "sample.xml")
    told = call("lint", pipeline(root, path), *sampled).stdout.splitlines()
    starts = [line.split(" ")[0] + " " + line.split(" ")[1] for line in told if ": PL" in line]
    assert starts == [f"{path}:2:11: PL101", f"{path}:3:35: PL101", f"{path}:4:9: PL001"]
    folder = write_folder(root / "folder", rows)
    told = call("lint", folder, *sampled).stdout.splitlines()
    starts = [line.split(" ")[0] + " " + line.split(" ")[1] for line in told if ": PL" in line]
    assert starts == [
        f"{folder}/000.xq:4:5: PL101",
        f"{folder}/001.xq:4:29: PL101",
        f"{folder}/002.xq:4:3: PL001",
    ]


@pytest.mark.parametrize("command", ["check", "lint"])
def test_a_query_of_several_subscribers_is_looked_at_once(
    root: Path, call: Call, command: str
) -> None:
    path = write_table(root / "s.tsv", [Row(f"s{n}", "q", "//a", "ids") for n in range(3)])
    done = call(command, path)
    assert (done.stdout, done.exit_code) == ("", ExitCode.OK)
    assert ("queries: 1" if command == "lint" else "subscriptions: 3") in done.stderr


def test_a_row_that_lacks_something_is_named(root: Path, call: Call) -> None:
    path = root / "s.tsv"
    path.write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\nann\tq2\t\nann\tq3\n")
    checked = call("check", pipeline(root, path))
    assert [line.split(": ")[0] for line in checked.stdout.splitlines()] == [
        f"{path}:3",
        f"{path}:4",
    ]
    linted = call("lint", path)
    assert linted.exit_code == ExitCode.REFUSED
    assert f"{path}:4:1: PL001 error: subscription: line 4: 2 columns" in linted.stdout


@pytest.mark.parametrize(
    ("options", "rejected_max", "code"),
    [
        ((), None, ExitCode.OK),
        (("--strict",), None, ExitCode.REFUSED),
        ((), 0.5, ExitCode.OK),
        ((), 0.3, ExitCode.REFUSED),
        (("--strict",), 0.5, ExitCode.REFUSED),
    ],
)
def test_how_many_may_be_rejected(
    root: Path, call: Call, options: tuple[str, ...], rejected_max: float | None, code: ExitCode
) -> None:
    rows = [Row("ann", "x", "//a", "ids"), Row("ann", "y", "//[", "ids")]
    file = pipeline(root, write_table(root / "s.tsv", rows))
    if rejected_max is not None:
        told = file.read_text().replace(
            "[subscriptions]", f"[subscriptions]\nrejected_max = {rejected_max}"
        )
        file.write_text(told)
    assert call("check", file, *options).exit_code == code
    if rejected_max == 0.3:
        with pytest.raises(ConfigError, match=r"1 rows are rejected, more than 30%.*s\.tsv:3"):
            run(load_settings(file), workers=InProcess(), progress=Silent())


def test_no_query_at_all_is_said(root: Path, call: Call) -> None:
    path = write_table(root / "s.tsv", [])
    checked = call("check", path)
    assert (checked.exit_code, f"{path}: no query" in checked.stderr) == (ExitCode.OK, True)
    assert call("check", path, "--strict").exit_code == ExitCode.REFUSED
    matched = call("match", root / "in", "--queries", path)
    assert matched.exit_code == ExitCode.REFUSED
    assert "no query that can be used" in matched.stderr


@pytest.mark.parametrize("command", [("check",), ("lint",), ("match", "in", "--queries")])
def test_what_cannot_be_read_is_a_sentence(
    root: Path, call: Call, command: tuple[str, ...]
) -> None:
    path = root / "s.tsv"
    path.write_text("subscriber\tquery_id\tqurey\nann\tq1\t//a\n")
    told: Any = call(*command, path)
    assert told.exit_code == ExitCode.USAGE
    assert "no column query; it needs the columns subscriber, query_id, query" in told.stderr
    told = call(*command, pipeline(root, root / "gone.tsv"))
    assert (told.exit_code, "gone.tsv: No such file" in told.stderr) == (ExitCode.USAGE, True)


def test_queries_a_line_may_be_xquery_as_rows_may(root: Path, call: Call) -> None:
    path = root / "queries.txt"
    path.write_text("flwr\tfor $a in //a where $a/@x = 2 return $a\npath\t//c\n")
    assert call("check", path).exit_code == ExitCode.OK
    done = call("match", root / "in" / "1.xml", root / "in" / "2.xml", "--queries", path)
    assert [json.loads(line)["matches"] for line in done.stdout.splitlines()] == [
        ["path"],
        ["flwr"],
    ]
