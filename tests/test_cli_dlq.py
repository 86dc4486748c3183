"""`pathcast dlq` over an output as a pipeline leaves it, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError
from pathcast.spark.directory import stat_file
from pathcast.spark.journal import Journal, claim_journal
from pathcast.spark.ledger import Commit, Ledger
from pathcast.spark.outputs import Layout, claim

Call = Callable[..., Any]


@pytest.fixture
def call() -> Call:
    """Runs the command on arguments of any kind."""
    return lambda *args: CliRunner().invoke(build_app(), ["dlq", *map(str, args)])


def put_output(root: Path, kind: str, letters: Sequence[tuple[str, str | None, str]]) -> Path:
    """An output with one micro-batch of three files, and these dead letters."""
    source, out = root / "in", root / "out"
    source.mkdir()
    for name in ("a", "b", "c"):
        (source / name).write_text("x")
    claim(out, Layout("parquet", "ids", 1))
    journal = claim_journal(out / "_checkpoint", kind, source)
    journal.write(1, [stat_file(source, name) for name in ("a", "b", "c")])
    codes = {"message.unreadable", "file.unreadable"}
    unread = tuple(message_id for message_id, _, code in letters if code in codes)
    Ledger(out, out / "_checkpoint").write_commit(Commit(0, "s", "v", 3, 3, 0, 0, unread=unread))
    folder = out / "dead_letters/batch_id=0"
    folder.mkdir(parents=True)
    ids, queries, told = zip(*letters, strict=True)
    table = {
        "message_id": pa.array(ids, pa.string()),
        "query_id": pa.array(queries, pa.string()),
        "code": pa.array(told, pa.string()),
        "message": pa.array(["why"] * len(letters)),
    }
    pq.write_table(pa.table(table), folder / "0.parquet")
    return out


def test_letters_of_a_directory_are_listed_and_taken_up(call: Call, tmp_path: Path) -> None:
    letters = [
        ("a", None, "message.unreadable"),
        ("b", None, "xml.end"),
        ("c", "q1", "limit.evaluation_steps"),
    ]
    out = put_output(tmp_path, "directory", letters)
    shown = call(out)
    assert shown.exit_code == ExitCode.OK
    assert shown.stdout.splitlines() == [
        "batch 0: a: unread: message.unreadable: why",
        "batch 0: b: refused: xml.end: why",
        "batch 0: c, query q1: final: limit.evaluation_steps: why",
    ]
    assert shown.stderr == "dead letters: 3, final: 1, refused: 1, unread: 1\n"
    # b has not changed: it would be refused again.
    assert "asked for: 1;" in call(out, "--retry").stderr
    (tmp_path / "in" / "b").write_text("mended")
    assert "asked for: 1;" in call(out, "--retry").stderr
    rows = [json.loads(line) for line in call(out, "--json").stdout.splitlines()]
    assert [row["state"] for row in rows] == ["asked for", "asked for", "final"]
    # As the next run does it.
    journal = Journal(out / "_checkpoint/journal", out / "_commits")
    journal.refresh()
    files = [stat_file(tmp_path / "in", name) for name in ("a", "b", "c")]
    assert [journal.is_wanted(file) for file in files] == [True, True, False]
    journal.write(2, files[:2])
    assert call(out).stdout.count(": taken up: ") == 2
    nothing = call(out, "--retry", "a", "c")
    assert nothing.exit_code == ExitCode.REFUSED
    assert "error: c: not among the dead letters" in nothing.stderr


def test_a_row_of_a_parquet_file_cannot_be_taken_up(call: Call, tmp_path: Path) -> None:
    # Its id may be the name of a file; taking that up would deliver its other rows twice.
    letters = [("a", None, "file.unreadable"), ("b", None, "xml.end")]
    out = put_output(tmp_path, "parquet", letters)
    assert [line.split(": ")[2] for line in call(out).stdout.splitlines()] == ["unread", "final"]
    assert call(out, "--retry", "b").exit_code == ExitCode.REFUSED
    assert call(out, "--retry", "a").exit_code == ExitCode.OK


def test_what_is_no_output_is_said(call: Call, tmp_path: Path) -> None:
    result = call(tmp_path)
    assert result.exit_code == ExitCode.USAGE
    assert "is not the output of a pipeline" in result.stderr


def test_a_checkpoint_of_another_kind_of_source_is_refused(tmp_path: Path) -> None:
    claim_journal(tmp_path / "one", "parquet", tmp_path)
    claim_journal(tmp_path / "one", "parquet", tmp_path)
    with pytest.raises(ConfigError, match=r"mode\.checkpoint.*of kind parquet, not directory"):
        claim_journal(tmp_path / "one", "directory", tmp_path)
    (tmp_path / "old" / "offsets").mkdir(parents=True)
    with pytest.raises(ConfigError, match="of kind unknown"):
        claim_journal(tmp_path / "old", "parquet", tmp_path)
