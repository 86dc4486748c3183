"""`pathcast run` of a source that Spark reads itself: a format and its options, as they are."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.errors import ConfigError, SparkLostError
from pathcast.spark import Delivery, Summary, load_settings, query_run, read_output, run
from pathcast.spark.connectors import lost_offsets
from silent_progress import Silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXT = """
[source]
format = "text"
path = "in"
options = { wholetext = true }
select = ["value AS message", "_metadata.file_name AS message_id", "length(value) AS size"]
columns = ["size"]
[subscriptions]
path = "subscriptions.tsv"
[output]
path = "out"
"""
RATE = """
[source]
format = "rate-micro-batch"
options = { rowsPerBatch = 5 }
select = ["concat('<m><a>', value, '</a></m>') AS body", "string(value) AS id", "timestamp AS at"]
message_column = "body"
id_column = "id"
columns = ["at"]
time = "at"
[subscriptions]
path = "subscriptions.tsv"
[output]
path = "out"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "subscriptions.tsv").write_text("subscriber\tquery_id\tquery\nann\ta\t/m/a\n")
    return tmp_path


def go(root: Path, text: str, *overrides: str, **given: Any) -> Summary:
    (root / "pipeline.toml").write_text(text)
    return run(load_settings(root / "pipeline.toml", overrides), progress=Silent(), **given)


def inbox(root: Path, *columns: str) -> list[tuple[Any, ...]]:
    rows = read_output(root / "out", "inboxes").to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in rows)


def test_a_batch_ends_with_what_was_there_and_the_next_goes_on(
    spark: SparkSession, root: Path
) -> None:
    (root / "in" / "1.xml").write_text("<m><a/></m>")
    (root / "in" / "2.xml").write_text("<m><a>")
    first = go(root, TEXT)
    assert (first.messages, first.deliveries, first.refused) == (2, 1, {"xml.end": 1})
    assert inbox(root, "subscriber", "message_id", "size") == [("ann", "1.xml", 11)]
    (root / "in" / "3.xml").write_text("<m> <a/></m>")
    assert go(root, TEXT).messages == 1
    assert go(root, TEXT).messages == 0
    assert inbox(root, "message_id", "size") == [("1.xml", 11), ("3.xml", 12)]


def test_a_stream_runs_until_it_is_stopped(spark: SparkSession, root: Path) -> None:
    stop = threading.Event()

    class StopAfterOne(Silent):
        def batch(self, commit: object) -> None:
            stop.set()

    (root / "pipeline.toml").write_text(RATE)
    chosen = ["mode.kind=stream", "mode.seconds_between_batches=0.1"]
    summary = run(load_settings(root / "pipeline.toml", chosen), progress=StopAfterOne(), stop=stop)
    assert summary.was_stopped
    assert summary.messages == 5
    assert [row[0] for row in inbox(root, "message_id")] == ["0", "1", "2", "3", "4"]
    rows = inbox(root, "message_time", "at")
    assert all(time == at for time, at in rows)
    assert go(root, RATE).earlier_messages == 0
    # A micro-batch that Spark had begun when it was stopped is made up for.
    names = [int(row[0]) for row in inbox(root, "message_id")]
    assert sorted(names) in (list(range(10)), list(range(15)))


class Unhurried:
    """A query whose micro-batch goes on for a while after it is told to stop."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.isActive = True

    @property
    def status(self) -> dict[str, bool]:
        self.looks -= 1
        return {"isTriggerActive": self.looks > 0}

    def stop(self) -> None:
        self.isActive = False

    def exception(self) -> None:
        return None


def test_a_query_that_is_to_stop_is_looked_at_with_pauses(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_run, "LOOK_SECONDS", 0.05)
    stop = threading.Event()
    stop.set()
    query: Any = Unhurried(looks=5)
    delivery, workers = Delivery(root / "subscriptions.tsv", root / "out"), cast("Any", None)
    started = time.monotonic()
    assert query_run._ended(query, delivery, workers, stop, "text", Silent()) is None
    assert time.monotonic() - started >= 4 * 0.05


class Noted(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_query_that_ends_is_started_again_with_a_bound(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_run, "PAUSE_SECONDS", 0.01)
    original, calls, notes = Delivery._micro_batch, 0, Noted()

    def failing(self: Delivery, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls <= 2:
            raise OSError("the broker is away")
        return original(self, *given)

    monkeypatch.setattr(Delivery, "_micro_batch", failing)
    (root / "in" / "1.xml").write_text("<m><a/></m>")
    (root / "pipeline.toml").write_text(TEXT)
    assert run(load_settings(root / "pipeline.toml"), progress=notes).deliveries == 1
    assert [note for note in notes.notes if "2 of 5" in note]
    (root / "in" / "2.xml").write_text("<m><a/></m>")
    calls = -100
    with pytest.raises(SparkLostError, match="the query has ended"):
        go(root, TEXT)
    assert calls == -100 + query_run.RESTARTS_MAX + 1


def test_our_own_errors_end_it_at_once(spark: SparkSession, root: Path) -> None:
    (root / "in" / "1.xml").write_text("<m><a/></m>")
    with pytest.raises(ConfigError, match=r"columns: no column 'nothing'"):
        go(root, TEXT, 'source.columns=["nothing"]')
    (root / "subscriptions.tsv").write_text("subscriber\tquery\n")
    with pytest.raises(ConfigError, match=r"subscriptions.path"):
        go(root, TEXT)


def test_formats_and_settings_that_cannot_be_are_refused(spark: SparkSession, root: Path) -> None:
    with pytest.raises(ConfigError, match=r"source.format: nonsense.*spark.jars.packages"):
        go(root, TEXT.replace('"text"', '"nonsense"'))
    with pytest.raises(ConfigError, match=r"source.format: text: .*UNRESOLVED_COLUMN"):
        go(root, TEXT.replace("value AS", "valeu AS"))
    with pytest.raises(ConfigError, match=r'format is given for kind = "spark"'):
        go(root, TEXT, "source.kind=parquet")


def test_lost_offsets_are_found_in_what_the_connector_says() -> None:
    said = (
        "Some data may have been lost because they are not available in Kafka any more;\n"
        "If you don't want your streaming query to fail on such cases, set the source option "
        "failOnDataLoss to false.\nReason: Could not read records in offset [3, 9) for topic "
        "partition orders-0\nwith consumer group g.\n\tat org.apache.spark"
    )
    found = lost_offsets(RuntimeError(said))
    assert found == "Could not read records in offset [3, 9) for topic partition orders-0"
    assert lost_offsets(RuntimeError("the broker is away")) is None
