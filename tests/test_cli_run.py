"""`pathcast run`: what the exit code says about how a run ended, without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from command_line import run_command

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.spark import pipeline
from pathcast.spark.outputs import inbox, read_output
from pathcast.spark.settings import load_settings
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from silent_progress import Silent


@pytest.mark.parametrize(
    ("mode", "summary", "code"),
    [
        ("batch", Summary("out"), ExitCode.OK),
        ("batch", Summary("out", messages=3, refused={"xml.end": 3}, unread=2), ExitCode.OK),
        ("batch", Summary("out", messages=3, unread=2), ExitCode.OK),
        ("batch", Summary("out", unread=2), ExitCode.REFUSED),
        ("stream", Summary("out", unread=2), ExitCode.OK),
        ("batch", Summary("out", unlisted={"in/a": "Permission denied"}), ExitCode.REFUSED),
        ("batch", Summary("out", was_stopped=True, stopped_by="SIGTERM"), ExitCode.INTERRUPTED),
        ("stream", Summary("out", was_stopped=True, stopped_by="SIGTERM"), ExitCode.OK),
        ("stream", Summary("out", was_stopped=True, stopped_by="SIGINT"), ExitCode.INTERRUPTED),
        ("stream", Summary("out", was_stopped=True, unlisted={"in": "gone"}), ExitCode.INTERRUPTED),
    ],
)
def test_exit_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, summary: Summary, code: ExitCode
) -> None:
    def run(*_: Any, **__: Any) -> Summary:
        return summary

    monkeypatch.setattr(pipeline, "run", run)
    path = tmp_path / "pipeline.toml"
    path.write_text(
        f'[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
        f'[mode]\nkind = "{mode}"\n'
    )
    result = CliRunner().invoke(build_app(), ["run", str(path)])
    assert result.exit_code == code
    # The summary comes whatever the code, and says what waits.
    assert "output:" in result.stdout
    for folder, reason in summary.unlisted.items():
        assert f"{folder}: {reason}" in result.stdout
    assert ("unread files" in result.stdout) == bool(summary.unread)
    # A run that did nothing must not look like one that had nothing to do.
    assert ("nothing was read:" in result.stdout) == summary.has_read_nothing
    assert ("every message is a dead letter" in result.stdout) == summary.has_refused_all
    assert ("stopped:" in result.stdout) == summary.was_stopped


def test_generated_parquet_is_what_a_pipeline_reads(tmp_path: Path) -> None:
    # Each setting has its default: a column of another name makes the file one dead letter.
    packed = tmp_path / "in" / "made.parquet"
    command = ["generate", "documents", "--domain", "alerts", "-n", "7", "--out", str(packed)]
    assert CliRunner().invoke(build_app(), command).exit_code == ExitCode.OK
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tall\t/*\n")
    (tmp_path / "p.toml").write_text(
        '[source]\nkind = "parquet"\npath = "in"\n[subscriptions]\npath = "s.tsv"\n'
        '[output]\npath = "out"\n'
    )
    settings = load_settings(tmp_path / "p.toml")
    summary = pipeline.run(settings, workers=InProcess(), progress=Silent())
    assert (summary.messages, summary.unread) == (7, 0)
    assert inbox(tmp_path / "out", "ann").num_rows == 7


def test_a_file_whose_columns_have_other_names_says_which_and_what_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    pq.write_table(pa.table({"id": ["m1"], "message": [b"<a/>"]}), source / "old.parquet")
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tall\t/*\n")
    (tmp_path / "p.toml").write_text(
        '[source]\nkind = "parquet"\npath = "in"\n[subscriptions]\npath = "s.tsv"\n'
        '[output]\npath = "out"\n'
    )
    notes: list[str] = []
    report = Silent()
    monkeypatch.setattr(report, "note", notes.append)
    settings = load_settings(tmp_path / "p.toml")
    summary = pipeline.run(settings, workers=InProcess(), progress=report)
    assert summary.has_read_nothing
    [letter] = read_output(tmp_path / "out", "dead_letters").to_pylist()
    [note] = [note for note in notes if "could not be read" in note]
    for told in (letter["message"], note):
        assert "source.id_column" in told
        assert "among id, message" in told


@pytest.fixture
def delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline that has run in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.xml").write_text("<m><a/></m>")
    (tmp_path / "s.tsv").write_text(
        "subscriber\tquery_id\tquery\nann\tq1\t//a\nbob\tq2\t//nothing\nbob\tbad\t//a[\n"
    )
    (tmp_path / "pipeline.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
    )
    go()
    return tmp_path


def go() -> None:
    pipeline.run(load_settings("pipeline.toml"), workers=InProcess(), progress=Silent())


def test_an_inbox_that_is_empty_is_told_from_one_that_nobody_has(delivered: Path) -> None:
    assert run_command("inbox", "ann").stdout.count("\n") == 1
    empty = run_command("inbox", "bob")
    assert (empty.exit_code, empty.stdout, empty.stderr) == (ExitCode.OK, "", "")
    typo = run_command("inbox", "amn")
    assert (typo.exit_code, typo.stdout) == (ExitCode.USAGE, "")
    assert "nobody has subscribed as 'amn'; did you mean ann?" in typo.stderr
    assert "; there are ann, bob" in run_command("inbox", "zzzzzz").stderr
    # Of a name that may be mistyped, --after gives nothing either.
    assert run_command("inbox", "amn", "--after", "0").exit_code == ExitCode.USAGE


def test_who_has_left_has_an_inbox_still(delivered: Path) -> None:
    (delivered / "s.tsv").write_text("subscriber\tquery_id\tquery\nbob\tq2\t//nothing\n")
    (delivered / "in" / "2.xml").write_text("<m><a/></m>")
    go()
    assert run_command("inbox", "ann").exit_code == ExitCode.OK
    assert run_command("inbox", "ann", "--after", "99").exit_code == ExitCode.OK


def test_an_inbox_before_the_first_micro_batch(delivered: Path) -> None:
    for each in (delivered / "out" / "_commits").iterdir():
        each.unlink()
    result = run_command("inbox", "anybody")
    assert result.exit_code == ExitCode.OK
    assert "no micro-batch is complete yet" in result.stderr
