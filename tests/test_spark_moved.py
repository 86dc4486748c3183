"""An output that is moved with its checkpoint goes on where it was; apart, they are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.errors import ConfigError
from pathcast.spark import Summary, load_settings, read_output, run
from pathcast.spark.workers import InProcess, Workers
from silent_progress import Silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIRECTORY = '[source]\npath = "in"\n'
FORMAT = """[source]
format = "text"
path = "in"
options = { wholetext = true }
select = ["value AS message", "_metadata.file_name AS message_id"]
"""
REST = '[subscriptions]\npath = "subscriptions.tsv"\n[output]\npath = "out"\n'


def put(root: Path, *numbers: int) -> None:
    (root / "in").mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (root / "in" / f"{number}.xml").write_text(f"<m><n>{number}</n></m>")


def go(root: Path, source: str, *overrides: str, workers: Workers | None = None) -> Summary:
    (root / "subscriptions.tsv").write_text("subscriber\tquery_id\tquery\nann\tq\t//n\n")
    (root / "pipeline.toml").write_text(source + REST)
    chosen = load_settings(root / "pipeline.toml", overrides)
    return run(chosen, progress=Silent(), workers=workers)


def had(output: Path) -> list[str]:
    return sorted(read_output(output, "inboxes").column("message_id").to_pylist())


@pytest.mark.parametrize("format", ["parquet", "jsonl", "delta"])
def test_output_source_and_checkpoint_move_together(tmp_path: Path, format: str) -> None:
    before, after = tmp_path / "before", tmp_path / "elsewhere" / "after"
    options = (f"output.format={format}", "output.compact_files=2")
    for number in range(3):
        put(before, number)
        go(before, DIRECTORY, *options, workers=InProcess())
    after.parent.mkdir()
    before.rename(after)
    assert had(after / "out") == ["0.xml", "1.xml", "2.xml"]
    put(after, 3)
    assert go(after, DIRECTORY, *options, workers=InProcess()).messages == 1
    assert had(after / "out") == ["0.xml", "1.xml", "2.xml", "3.xml"]


def test_a_checkpoint_moves_out_of_its_output(tmp_path: Path) -> None:
    put(tmp_path, 1)
    go(tmp_path, DIRECTORY, workers=InProcess())
    (tmp_path / "out" / "_checkpoint").rename(tmp_path / "checkpoint")
    put(tmp_path, 2)
    summary = go(tmp_path, DIRECTORY, "mode.checkpoint=checkpoint", workers=InProcess())
    assert summary.messages == 1


def test_one_without_the_other_is_refused(tmp_path: Path) -> None:
    put(tmp_path, 1)
    go(tmp_path, DIRECTORY, workers=InProcess())
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "_checkpoint")
    with pytest.raises(ConfigError, match="was written with another checkpoint; restore that one"):
        go(tmp_path, DIRECTORY, "output.path=copy", workers=InProcess())


@pytest.mark.spark
def test_a_query_of_spark_moves_with_its_output(spark: SparkSession, tmp_path: Path) -> None:
    before = tmp_path / "before"
    put(before, 1)
    assert go(before, FORMAT).messages == 1
    (before / "out").rename(before / "moved")
    put(before, 2)
    assert go(before, FORMAT, "output.path=moved").messages == 1
    assert had(before / "moved") == ["1.xml", "2.xml"]
