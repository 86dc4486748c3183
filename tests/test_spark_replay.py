"""Replays: a range of micro-batches answered into another output, or its records written again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

import object_store  # noqa: F401 - makes objects:// known
from command_line import run_command
from kafka_topics import Kafka, kafka_of
from pathcast.errors import ConfigError, SourceError
from pathcast.spark import (
    OutputWatch,
    backfill,
    batches_between,
    load_settings,
    read_output,
    redeliver,
    run,
)
from pathcast.spark.ledger import BatchLedger, Commit, last_compaction
from pathcast.spark.outputs import layout_of
from pathcast.spark.pipeline import Pipeline
from pathcast.spark.settings import PipelineSettings
from pathcast.spark.topics import RECORDS, RecordTask
from pathcast.spark.workers import InProcess
from silent_progress import Silent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from pathcast.spark import Summary

TEXT = """
[source]
path = "in"
{source}
[subscriptions]
path = "subscriptions.tsv"
deliver = "fragment"
[mode]
files_per_batch_max = 3
[output]
path = "out"
"""
WANTS = (("ann", "even", "//n[. mod 2 = 0]"), ("bob", "all", "//n"))


class Noted(Silent):
    """Keeps notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def subscribe(root: Path, *rows: tuple[str, str, str]) -> None:
    lines = ["subscriber\tquery_id\tquery", *("\t".join(row) for row in rows)]
    (root / "subscriptions.tsv").write_text("\n".join(lines) + "\n")


def settings(root: Path, source: str = "", *overrides: str) -> PipelineSettings:
    (root / "pipeline.toml").write_text(TEXT.format(source=source))
    return load_settings(root / "pipeline.toml", overrides)


def put(root: Path, *numbers: int) -> None:
    (root / "in").mkdir(exist_ok=True)
    for number in numbers:
        text = f"<m><n>{number}</n></m>" if number >= 0 else "<m>"
        (root / "in" / f"{number}.xml").write_text(text)


def go(chosen: PipelineSettings) -> Summary:
    return run(chosen, workers=InProcess(), progress=Silent())


def again(chosen: PipelineSettings, batches: Sequence[int], output: Path, **given: Any) -> Summary:
    told = {"progress": Silent(), "workers": InProcess(), **given}
    return backfill(chosen, batches, str(output), **told)


def rows(output: Path, name: Any = "inboxes") -> set[tuple[Any, ...]]:
    """Deliveries, or dead letters, without what says when and in which micro-batch."""
    names = ["subscriber", "subscription_id", "message_id"]
    names += ["fragment", "delivery_id"] if name == "inboxes" else ["code"]
    found = read_output(output, name).select(names).to_pylist()
    return {tuple(row.values()) for row in found}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A pipeline that has had nine messages in three micro-batches, one of them refused."""
    subscribe(tmp_path, *WANTS)
    for start in (1, 4, 7):
        put(tmp_path, start, start + 1, start + 2 if start < 7 else -1)
        go(settings(tmp_path))
    return tmp_path


@pytest.mark.parametrize("options", [(), ("output.by_day=true",)], ids=["flat", "by_day"])
def test_a_range_is_answered_with_the_same_deliveries(root: Path, options: tuple[str, ...]) -> None:
    chosen = settings(root, "", *options)
    if options:
        shutil.rmtree(root / "out")
        go(chosen)
        assert list((root / "out").rglob("day=*"))
    assert batches_between(chosen) == [1, 2, 3]
    summary = again(chosen, batches_between(chosen, "2", "3"), root / "again")
    assert (summary.messages, summary.batches, summary.refused) == (6, 2, {"xml.end": 1})
    before = {row for row in rows(root / "out") if int(row[2].partition(".")[0]) > 3}
    assert rows(root / "again") == before
    assert rows(root / "again", "dead_letters") == rows(root / "out", "dead_letters")
    assert bool(list((root / "again").rglob("day=*"))) == bool(options)
    # The pipeline itself has not noticed.
    assert go(chosen).messages == 0


def test_a_new_subscription_gets_what_it_would_have_had(root: Path) -> None:
    subscribe(root, *WANTS, ("cem", "odd", "//n[. mod 2 = 1]"))
    chosen = settings(root)
    again(chosen, [1, 2, 3], root / "again", only=["odd"])
    found = rows(root / "again")
    assert {row[:2] for row in found} == {("cem", "odd")}
    assert {row[2] for row in found} == {"1.xml", "3.xml", "5.xml", "7.xml"}
    # Had it been there from the beginning, it had had the same.
    shutil.rmtree(root / "out")
    go(chosen)
    assert found == {row for row in rows(root / "out") if row[0] == "cem"}
    with pytest.raises(ConfigError, match="has the id nobody"):
        again(chosen, [1], root / "other", only=["odd", "nobody"])


def test_micro_batches_are_found_by_the_time_at_which_they_began(root: Path) -> None:
    chosen = settings(root)
    ledger = BatchLedger(chosen.output.storage, chosen.checkpoint)
    times = []
    for number in (1, 2, 3):
        pin = ledger.pin(number)
        assert pin is not None
        times.append(datetime.fromtimestamp(pin.begun_us / 1e6, UTC).isoformat())
    assert batches_between(chosen, times[1]) == [2, 3]
    assert batches_between(chosen, None, times[1].removesuffix("+00:00")) == [1, 2]
    assert batches_between(chosen, "2", times[1]) == [2]
    for bounds, told in (
        (("yesterday", None), "no number of a micro-batch and no time"),
        (("4", None), "complete are 1 to 3"),
        (("3", "2"), "no complete micro-batch"),
    ):
        with pytest.raises(ConfigError, match=told):
            batches_between(chosen, *bounds)


def test_what_is_gone_or_has_changed_is_refused_by_name(root: Path) -> None:
    chosen = settings(root)
    (root / "in" / "2.xml").unlink()
    (root / "in" / "5.xml").write_text("<m><n>50</n></m>")
    with pytest.raises(SourceError, match=r"2 files .*2.xml \(micro-batch 1\), 5.xml \(micro-b"):
        again(chosen, [1, 2, 3], root / "again")
    assert not (root / "again").exists()
    report = Noted()
    again(chosen, [1, 2, 3], root / "again", skip_missing=True, progress=report)
    assert any("left out" in note and "2.xml" in note for note in report.notes)
    left = {row for row in rows(root / "out") if row[2] not in ("2.xml", "5.xml")}
    assert rows(root / "again") == left


def test_a_message_that_was_mended_is_answered_once(root: Path) -> None:
    """Its earlier state is nowhere any more; the later micro-batch has it."""
    chosen = settings(root)
    (root / "in" / "-1.xml").write_text("<m><n>10</n></m>")
    assert run_command("dlq", root / "pipeline.toml", "--retry").exit_code == 0
    assert go(chosen).messages == 1
    again(chosen, [1, 2, 3, 4], root / "again")
    assert rows(root / "again") == rows(root / "out")
    again(chosen, [3], root / "third")
    assert {row[2] for row in rows(root / "third")} == {"7.xml", "8.xml"}


def test_a_killed_replay_goes_on_where_it_was(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = settings(root)

    class Killed(BaseException):
        pass

    done = 0
    process = Pipeline._process

    def die_after(self: Pipeline, workers: InProcess, batch_id: int) -> None:
        nonlocal done
        if done == 1:
            raise Killed
        process(self, workers, batch_id)
        done += 1

    with monkeypatch.context() as patch:
        patch.setattr(Pipeline, "_process", die_after)
        with pytest.raises(Killed):
            again(chosen, [1, 2, 3], root / "again")
    with pytest.raises(ConfigError, match="is of another replay"):
        again(chosen, [2, 3], root / "again")
    assert again(chosen, [1, 2, 3], root / "again").batches == 2
    assert rows(root / "again") == rows(root / "out")
    assert again(chosen, [1, 2, 3], root / "again").batches == 0
    # The pipeline ran on, and the range that has no end is longer.
    put(root, 12)
    go(chosen)
    assert again(chosen, batches_between(chosen), root / "again").messages == 1
    assert rows(root / "again") == rows(root / "out")


@pytest.mark.parametrize("written", range(4))
def test_a_kill_while_the_plan_is_written_loses_no_message(
    root: Path, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathcast.spark.journal import Journal

    class Killed(BaseException):
        pass

    append = Journal.append

    def die(self: Journal, files: Any) -> int:
        if self.last == written:
            raise Killed
        return append(self, files)

    chosen = settings(root)
    if written < 3:
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", die)
            with pytest.raises(Killed):
                again(chosen, [1, 2, 3], root / "again")
    again(chosen, [1, 2, 3], root / "again")
    assert rows(root / "again") == rows(root / "out")


def test_another_output_is_not_written_over(root: Path) -> None:
    chosen = settings(root)
    with pytest.raises(ConfigError, match="the output of the pipeline itself"):
        again(chosen, [1], root / "out")
    go(settings(root, "", "output.path=other"))
    with pytest.raises(ConfigError, match="is the output of a pipeline"):
        again(chosen, [1], root / "other")


def test_source_and_outputs_may_be_urls(root: Path) -> None:
    place = f"objects://{root}"
    chosen = settings(root, "", f"source.path={place}/in", f"output.path={place}/far")
    go(chosen)
    summary = backfill(chosen, batches_between(chosen, "2"), f"{place}/again", workers=InProcess())
    assert summary.messages == 6
    found = {row[2] for row in rows(root / "again")}
    assert len(found) == 5
    assert rows(root / "again") == {row for row in rows(root / "out") if row[2] in found}
    status = OutputWatch(chosen.output.storage, chosen.checkpoint).look()
    assert (status.batch_id, status.counted.messages) == (3, 9)
    assert status.lag_seconds is not None
    (root / "in" / "7.xml").unlink()
    with pytest.raises(SourceError, match=r"7\.xml"):
        backfill(chosen, [1, 2, 3], f"{place}/more", workers=InProcess())


def test_columns_have_the_types_that_they_had(tmp_path: Path) -> None:
    subscribe(tmp_path, ("ann", "all", "//n"))
    (tmp_path / "in").mkdir()
    source = 'kind = "parquet"\ncolumns = ["at"]'
    for name, kind in (("a", pa.int64()), ("b", pa.int32())):
        columns = {"message": ["<m><n>1</n></m>"], "message_id": [name], "at": pa.array([7], kind)}
        pq.write_table(pa.table(columns), tmp_path / "in" / f"{name}.parquet")
        go(settings(tmp_path, source))
    again(settings(tmp_path, source), [2], tmp_path / "again")
    found = read_output(tmp_path / "again", "inboxes")
    assert found.column("at").type == pa.int64()
    assert found.column("message_id").to_pylist() == ["b"]


def test_the_command_says_what_it_did(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pathcast.spark.replaying

    def in_process(*given: Any, **named: Any) -> Summary:
        return run(*given, **{**named, "workers": InProcess()})

    monkeypatch.setattr(pathcast.spark.replaying, "run", in_process)
    settings(root)
    place = ("replay", root / "pipeline.toml")
    result = run_command(*place, "--from", "2", "--output", root / "again", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1])["messages"] == 6
    assert "micro-batches 2 to 3 of " in result.stderr
    for arguments, told in (
        ((), "and not both"),
        (("--again", "--output", "x"), "and not both"),
        (("--again", "--skip-missing"), "reads files of the source"),
        (("--again",), "pathcast inbox --after"),
        (("--from", "9", "--output", "x"), "complete are 1 to 3"),
    ):
        refused = run_command(*place, *arguments)
        assert refused.exit_code == 2
        assert told in refused.stderr


def test_rows_of_other_micro_batches_and_subscriptions_are_no_records(root: Path) -> None:
    """Files that were merged hold rows of many."""
    go(settings(root, "", "output.compact_files=2"))
    put(root, 10)
    go(settings(root, "", "output.compact_files=2"))
    chosen = settings(root)
    compaction = last_compaction(chosen.output.storage)
    assert compaction is not None
    names = [file.name for file in compaction.files["inboxes"]]
    columns = {"topic": ["t"] * len(names), "output": ["inboxes"] * len(names), "file": names}
    [asked] = pa.table(columns).to_batches()

    def ids(*given: Any) -> list[str]:
        task = RecordTask(chosen.output.storage, layout_of(chosen.output.storage), *given)
        found = pa.Table.from_batches(task([asked]), RECORDS).column("headers").to_pylist()
        return sorted(
            header["value"].decode()
            for headers in found
            for header in headers
            if header["key"] == "pathcast-message-id"
        )

    assert ids(2) == ["4.xml", "4.xml", "5.xml", "6.xml", "6.xml"]
    assert ids(2, ("even",)) == ["4.xml", "6.xml"]
    assert ids(2, ("nobody",)) == []


def test_a_redelivery_without_its_files_is_refused_by_name(root: Path) -> None:
    text = (root / "pipeline.toml").read_text()
    topics = '[topics]\noptions = { "kafka.bootstrap.servers" = "127.0.0.1:9" }\ndeliveries = "x"\n'
    (root / "pipeline.toml").write_text(text + topics)
    chosen = load_settings(root / "pipeline.toml")
    file = Commit.read(chosen.output.storage, 2).files["inboxes"][0]
    (root / "out" / file.name).unlink()
    with pytest.raises(SourceError, match=f"micro-batch 2 has written .* {file.name}"):
        redeliver(chosen, [1, 2], progress=Silent())


@pytest.fixture(scope="session")
def kafka(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka_of(spark, tmp_path_factory.mktemp("kafka")) as found:
        yield found


@pytest.mark.spark
def test_records_are_written_again_as_commits_say(kafka: Kafka, root: Path) -> None:
    """Also those whose files were merged with others meanwhile."""
    text = (root / "pipeline.toml").read_text()
    address = f'options = {{ "kafka.bootstrap.servers" = "{kafka.server.address}" }}'
    topics = f'[topics]\n{address}\ndeliveries = "again"\ndead_letters = "letters"\n'
    (root / "pipeline.toml").write_text(text + topics)
    chosen = load_settings(root / "pipeline.toml")
    told = redeliver(chosen, [2, 3], progress=Silent(), spark=kafka.spark)
    wanted = {row for row in rows(root / "out") if int(row[2].partition(".")[0]) > 3}
    assert told == 2
    first = kafka.consume("again")
    assert {each["pathcast-delivery-id"] for each in first} == {row[4].hex() for row in wanted}
    assert [each["key"] for each in kafka.consume("letters")] == ["-1.xml"]
    put(root, 11)
    run(settings(root, "", "output.compact_files=2"), workers=InProcess(), progress=Silent())
    for file in Commit.read(chosen.output.storage, 2).files["inboxes"]:
        (root / "out" / file.name).unlink()
    redeliver(chosen, [2], only=["even"], progress=Silent(), spark=kafka.spark)
    more = kafka.consume("again")[len(first) :]
    assert sorted(each["pathcast-message-id"] for each in more) == ["4.xml", "6.xml"]


@pytest.mark.spark
def test_messages_of_kafka_are_answered_between_the_offsets_of_commits(
    kafka: Kafka, tmp_path: Path
) -> None:
    subscribe(tmp_path, *WANTS)
    kafka.make_topic("replayed", partitions=2)
    text = (
        '[source]\nformat = "kafka"\nselect = ["value AS message", '
        "\"concat(partition, '-', offset) AS message_id\"]\n"
        'options = { subscribe = "replayed", startingOffsets = "earliest", '
        f'"kafka.bootstrap.servers" = "{kafka.server.address}" }}\n'
    )
    (tmp_path / "pipeline.toml").write_text(text + TEXT.partition("{source}")[2])
    chosen = load_settings(tmp_path / "pipeline.toml")
    for start in (1, 5, 9):
        values = [(str(n), b"<m><n>%d</n></m>" % n, "x") for n in range(start, start + 4)]
        kafka.produce("replayed", values)
        run(chosen, spark=kafka.spark, progress=Silent())
    numbers = batches_between(chosen)
    given: dict[str, Any] = {"progress": Silent(), "spark": kafka.spark}
    summary = backfill(chosen, numbers, str(tmp_path / "again"), **given)
    assert summary.messages == 12
    assert rows(tmp_path / "again") == rows(tmp_path / "out")
    last = backfill(chosen, numbers[-1:], str(tmp_path / "last"), only=["even"], **given)
    assert last.messages == 4
    found = {row for row in rows(tmp_path / "out") if row[1] == "even"}
    assert rows(tmp_path / "last") <= found
    assert len(rows(tmp_path / "last")) == 2
    for partition in (0, 1):
        kafka.forget("replayed", partition, before=1)
    with pytest.raises(SourceError, match="micro-batch 1 cannot be read again"):
        backfill(chosen, numbers, str(tmp_path / "gone"), **given)
