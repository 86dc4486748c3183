"""`pathcast dlq` over an output as a pipeline leaves it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.spark.outputs import inbox
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.workers import InProcess
from silent_progress import Silent

Call = Callable[..., Any]


@pytest.fixture
def call() -> Call:
    """Runs the command on arguments of any kind."""
    return lambda *args: CliRunner().invoke(build_app(), ["dlq", *map(str, args)])


def go(root: Path, *overrides: str) -> int:
    """Runs the pipeline; how many messages it had."""
    (root / "s.tsv").write_text(
        "subscriber\tquery_id\tquery\nann\tq1\t//a\nann\theavy\tcount(//*[last()]) > 1\n"
    )
    (root / "p.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
        "[engine]\nlimits = { evaluation_steps_max = 3 }\n"
    )
    chosen = load_settings(root / "p.toml", overrides)
    return run(chosen, workers=InProcess(), progress=Silent()).messages


def delivered(root: Path) -> list[str]:
    rows = inbox(root / "out", "ann").to_pylist()
    return sorted(row["message_id"] for row in rows if row["subscription_id"] == "q1")


def test_letters_of_a_directory_are_listed_and_taken_up(call: Call, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a.xml").symlink_to(tmp_path / "later.xml")
    (source / "b.xml").write_text("<m>")
    (source / "c.xml").write_text("<m><a/></m>")
    go(tmp_path)
    shown = call(out)
    assert shown.exit_code == ExitCode.OK
    lines = sorted(line.split(": ")[1:4] for line in shown.stdout.splitlines())
    assert lines == [
        ["a.xml", "unread", "message.unreadable"],
        ["b.xml", "refused", "xml.end"],
        ["c.xml, heavy of ann", "final", "limit.evaluation_steps"],
    ]
    assert shown.stderr == "dead letters: 3, final: 1, refused: 1, unread: 1\n"
    # b has not changed: it would be refused again.
    assert "asked for: 1;" in call(out, "--retry").stderr
    (source / "b.xml").write_text("<m><a/></m>")
    (tmp_path / "later.xml").write_text("<m><a/></m>")
    assert "asked for: 1;" in call(out, "--retry").stderr
    rows = [json.loads(line) for line in call(out, "--json").stdout.splitlines()]
    assert sorted(row["state"] for row in rows) == ["asked for", "asked for", "final"]
    assert go(tmp_path) == 2
    assert delivered(tmp_path) == ["a.xml", "b.xml", "c.xml"]
    assert call(out).stdout.count(": taken up: ") == 2
    assert go(tmp_path) == 0, "what was taken up is taken up again"
    nothing = call(out, "--retry", "a.xml", "c.xml")
    assert nothing.exit_code == ExitCode.REFUSED
    assert "error: c.xml: not among the dead letters" in nothing.stderr


def test_a_row_of_a_parquet_file_cannot_be_taken_up(call: Call, tmp_path: Path) -> None:
    # Its id may be the name of a file; taking that up would deliver its other rows twice.
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    good = {"message_id": ["b.parquet", "x"], "message": [b"<m>", b"<m><a/></m>"]}
    pq.write_table(pa.table(good), source / "b.parquet")
    (source / "a.parquet").write_bytes(b"none")
    go(tmp_path, "source.kind=parquet")
    lines = {line.split(": ")[1]: line.split(": ")[2] for line in call(out).stdout.splitlines()}
    assert lines["a.parquet"] == "unread"
    assert lines["b.parquet"] == "final"
    assert call(out, "--retry", "b.parquet").exit_code == ExitCode.REFUSED
    assert call(out, "--retry", "a.parquet").exit_code == ExitCode.OK


def test_what_is_no_output_is_said(call: Call, tmp_path: Path) -> None:
    result = call(tmp_path)
    assert result.exit_code == ExitCode.USAGE
    assert "is not the output of a pipeline" in result.stderr
