"""`Delivery`: any frame, batch or stream, into an output, each micro-batch exactly once."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast import Registry, Subscription
from pathcast.errors import ConfigError
from pathcast.spark import Delivery, files_of, read_output
from pathcast.spark.delta import DeltaTables
from pathcast.spark.ledger import BatchLedger, Commit, committed_batches
from pathcast.spark.micro_batches import MicroBatches
from pathcast.spark.storage import Storage
from patience import SPARK_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SUBSCRIPTIONS = [
    Subscription("books", "ann", "//book", "fragment"),
    Subscription("dear", "ann", "//book[price > 50]", "fragment"),
    Subscription("all", "bob", "/bib", "message"),
    Subscription("notice", "cem", "//book/price", "ids"),
    Subscription("sum", "dan", "<n>{count(//book)}</n>", "fragment"),
]
COLUMNS = "id string, body binary, topic string"


def message(number: int) -> bytes:
    if number % 7 == 6:
        return b"<bib><book>"
    return f"<bib><book><price>{number * 10}</price></book></bib>".encode()


def rows_of(numbers: range) -> list[tuple[str, bytes | None, str]]:
    return [(f"m{n}", None if n % 11 == 10 else message(n), f"t{n % 3}") for n in numbers]


def frame(spark: SparkSession, numbers: range) -> DataFrame:
    return spark.createDataFrame(rows_of(numbers), COLUMNS).repartition(2)


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    path = tmp_path / "subscriptions.tsv"
    lines = [f"{s.subscriber}\t{s.id}\t{s.query}\t{s.deliver}" for s in SUBSCRIPTIONS]
    path.write_text("\n".join(["subscriber\tquery_id\tquery\tdeliver", *lines]) + "\n")
    return path


def delivery_of(
    subscriptions: Path, output: Path, format: str = "parquet", **given: Any
) -> Delivery:
    return Delivery(
        subscriptions,
        {"path": output, "format": format, "matches": "none"},
        message="body",
        id="id",
        columns=["topic"],
        **given,
    )


def found(output: Path) -> Counter[Any]:
    """The inboxes as their readers see them; a row that is there twice counts twice."""
    return Counter(
        (
            *(row[name] for name in ("subscriber", "subscription_id", "message_id", "topic")),
            row["result_number"],
            row["fragment"],
            bytes(row["delivery_id"]),
        )
        for row in read_output(output, "inboxes").to_pylist()
    )


def expected(numbers: range) -> Counter[Any]:
    """The deliveries of one process."""
    rows = rows_of(numbers)
    registry = Registry()
    registry.add(SUBSCRIPTIONS)
    deliveries = registry.deliver([body for _, body, _ in rows], [id for id, _, _ in rows])
    topics = {id: topic for id, _, topic in rows}
    return Counter(
        (
            row["subscriber"],
            row["subscription_id"],
            row["message_id"],
            topics[row["message_id"]],
            row["result_number"],
            None if row["fragment"] is None else row["fragment"].decode(),
            row["delivery_id"],
        )
        for row in deliveries.table.to_pylist()
    )


def refused(output: Path) -> set[str]:
    return {row["message_id"] for row in read_output(output, "dead_letters").to_pylist()}


def files_written(output: Path) -> set[Path]:
    return set((output / "inboxes").glob("*.parquet"))


@pytest.mark.parametrize("format", ["parquet", "jsonl", "delta"])
def test_a_batch_gives_the_deliveries_of_one_process(
    spark: SparkSession, subscriptions: Path, tmp_path: Path, format: str
) -> None:
    out = tmp_path / "out"
    with delivery_of(subscriptions, out, format) as delivery:
        commit = delivery.batch(frame(spark, range(30)))
        again = delivery.batch(frame(spark, range(99)))
        summary = delivery.end()
    assert found(out) == expected(range(30))
    assert refused(out) == {f"m{n}" for n in range(30) if n % 7 == 6 or n % 11 == 10}
    assert again.messages == 30, "a number that is done was answered again"
    assert (commit.messages, summary.messages, summary.batches) == (30, 30, 1)
    assert summary.deliveries == commit.deliveries == expected(range(30)).total()
    with delivery_of(subscriptions, out, format) as delivery:
        delivery.batch(frame(spark, range(30, 40)), 1)
    assert found(out) == expected(range(40))


def a_stream(spark: SparkSession, folder: Path, numbers: range, per_file: int = 5) -> DataFrame:
    for start in range(numbers.start, numbers.stop, per_file):
        step = range(start, min(numbers.stop, start + per_file))
        frame(spark, step).coalesce(1).write.mode("append").parquet(str(folder))
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def run_stream(delivery: Delivery, df: DataFrame, checkpoint: Path | str) -> None:
    query = delivery.stream(df, checkpoint, {"availableNow": True})
    query.awaitTermination()


def test_a_stream_gives_the_deliveries_of_one_process_and_goes_on(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    with delivery_of(subscriptions, out) as delivery:
        run_stream(delivery, a_stream(spark, tmp_path / "in", range(20)), checkpoint)
    assert found(out) == expected(range(20))
    assert committed_batches(Storage(out)) == [1, 2, 3, 4]
    with delivery_of(subscriptions, out) as delivery:
        run_stream(delivery, a_stream(spark, tmp_path / "in", range(20, 40)), checkpoint)
        assert delivery.end().batches == 4
    assert found(out) == expected(range(40))
    assert Commit.read(Storage(out), 8).offsets, "it does not say which messages it holds"


def test_subscriptions_change_between_micro_batches(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    with delivery_of(subscriptions, tmp_path / "out") as delivery:
        delivery.batch(frame(spark, range(5)))
        subscriptions.write_text(subscriptions.read_text() + "eve\tnew\t//price\tfragment\n")
        delivery.batch(frame(spark, range(5, 10)), 1)
    new = {row[2] for row in found(tmp_path / "out") if row[0] == "eve"}
    assert new == {f"m{n}" for n in (5, 7, 8, 9)}


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the product catches it."""


def kill_at(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, go: Callable[[], Any]) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Killed):
            go()


@pytest.mark.parametrize(
    ("owner", "name", "is_committed"),
    [
        (BatchLedger, "write_pin", False),
        (MicroBatches, "task", False),
        (BatchLedger, "write_commit", False),
        (MicroBatches, "publish", True),
        (DeltaTables, "_add", True),
    ],
)
def test_killed_at_any_step_a_replay_delivers_once(
    spark: SparkSession,
    subscriptions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    is_committed: bool,
) -> None:
    out = tmp_path / "out"

    def go() -> None:
        with delivery_of(subscriptions, out, "delta") as delivery:
            delivery.micro_batch(frame(spark, range(30)), 0, "q1")

    kill_at(monkeypatch, owner, name, go)
    assert committed_batches(Storage(out)) == ([1] if is_committed else [])
    if is_committed:
        # What the commit says is published; no task runs.
        monkeypatch.setattr(MicroBatches, "task", lambda *_: pytest.fail("a task was made"))
    go()
    assert found(out) == expected(range(30))
    assert len(files_of(out, "inboxes")) == 2


def test_batches_that_are_not_its_own_are_refused(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with delivery_of(subscriptions, out) as delivery:
        delivery.micro_batch(frame(spark, range(3)), 0, "q1")
        with pytest.raises(ConfigError, match="written by q1, not by q2"):
            delivery.micro_batch(frame(spark, range(3)), 1, "q2")
        with pytest.raises(ConfigError, match="no streaming query calls"):
            delivery.micro_batch(frame(spark, range(3)), 1)
        other = delivery_of(subscriptions, out)
        with pytest.raises(ConfigError, match="another pipeline is writing"):
            other.micro_batch(frame(spark, range(3)), 1, "q1")
    with delivery_of(subscriptions, out) as delivery:
        # Its numbers begin at 0 again: batch 0 would be taken for done.
        with pytest.raises(ConfigError, match="counts the batches of q1, not of q2"):
            delivery.micro_batch(frame(spark, range(3)), 0, "q2")
        with pytest.raises(ConfigError, match="counts the batches of q1, not of batches"):
            delivery.batch(frame(spark, range(3)))


def test_numbers_ascend_and_one_that_would_be_lost_is_refused(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with delivery_of(subscriptions, out) as delivery:
        delivery.batch(frame(spark, range(3)), 2)
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"batch_id: 1 is not done.*numbers ascend"):
                delivery.batch(frame(spark, range(3, 6)), 1)
        assert delivery.batch(frame(spark, range(9)), 2).messages == 3
    with delivery_of(subscriptions, out) as delivery:
        with pytest.raises(ConfigError, match=r"batch_id: 0 is not done, and 2 of .* is"):
            delivery.batch(frame(spark, range(3, 6)), 0)
        for number in (-1, 2**31 - 1, 1_764_400_000_000):
            with pytest.raises(ConfigError, match=f"batch_id: {number} is not between"):
                delivery.batch(frame(spark, range(3, 6)), number)
        delivery.batch(frame(spark, range(3, 6)), 2**31 - 2)
    assert found(out) == expected(range(6))


def test_batches_of_several_threads_wait_for_each_other(
    spark: SparkSession, subscriptions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Number 1 ends while number 0 is asked for: it is refused then, and not before.
    begun = threading.Event()
    original = MicroBatches.complete

    def slow(self: MicroBatches, *given: Any) -> Commit:
        begun.set()
        time.sleep(0.5)
        return original(self, *given)

    monkeypatch.setattr(MicroBatches, "complete", slow)

    with delivery_of(subscriptions, tmp_path / "out") as delivery:
        first = threading.Thread(target=delivery.batch, args=(frame(spark, range(3)), 1))
        first.start()
        assert begun.wait(SPARK_SECONDS)
        with pytest.raises(ConfigError, match="numbers ascend"):
            delivery.batch(frame(spark, range(3, 6)), 0)
        first.join()
    assert found(tmp_path / "out") == expected(range(3))


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_checkpoint_of_before_that_was_restored_is_refused(
    spark: SparkSession, subscriptions: Path, tmp_path: Path, prefix: str
) -> None:
    # The same query and the same number, and other messages: they would be taken for done.
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"

    def counted(rows: int) -> DataFrame:
        reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
        return reader.load().selectExpr("'<bib/>' AS body", "string(value) AS id", "'t' AS topic")

    place = f"{prefix}{checkpoint}"
    with delivery_of(subscriptions, out) as delivery:
        run_stream(delivery, counted(10), place)
        run_stream(delivery, counted(10), place)
        for name in ("offsets/1", "offsets/.1.crc", "commits/1", "commits/.1.crc"):
            (checkpoint / name).unlink()
        query = delivery.stream(counted(20), place, {"availableNow": True})
        with pytest.raises(Exception, match="the checkpoint is an older one"):
            query.awaitTermination()
        assert isinstance(delivery.error, ConfigError)
    assert len(found(out)) == 20 * 2


def test_wrong_settings_are_refused_by_name(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="output"):
        Delivery(subscriptions, {"path": tmp_path / "out", "formats": "x"})
    delivery = Delivery(subscriptions, tmp_path / "out", message="body", columns=["nothing"])
    with pytest.raises(ConfigError, match="columns: no column 'nothing'"):
        delivery.batch(frame(spark, range(3)))
    assert not (tmp_path / "out").exists(), "an output was begun for a batch that cannot be"


def test_one_that_is_closed_delivers_nothing(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    with delivery_of(subscriptions, tmp_path / "out") as delivery:
        delivery.batch(frame(spark, range(3)))
    with pytest.raises(ConfigError, match="is closed; make a new one"):
        delivery.batch(frame(spark, range(3, 6)), 1)
    assert found(tmp_path / "out") == expected(range(3))


def test_frames_with_columns_of_their_own_are_counted(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    rows = [("m0", None, "t", None), ("m1", b"<bib/>", "t", 99)]
    df = spark.createDataFrame(rows, f"{COLUMNS}, bytes long")
    told = df.selectExpr("*", "string(null) AS code", "string(null) AS reason")
    with delivery_of(subscriptions, tmp_path / "out") as delivery:
        for number, each in enumerate((df, told)):
            assert delivery.batch(each, number).bytes == len(b"<bib/>")
    assert refused(tmp_path / "out") == {"m0"}


def test_it_is_pickled_for_a_server_that_calls_it(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    with pickle.loads(pickle.dumps(delivery_of(subscriptions, tmp_path / "out"))) as made:
        made.micro_batch(frame(spark, range(3)), 0, "q1")
    assert found(tmp_path / "out") == expected(range(3))


DRIVER = """
import sys
from pathlib import Path
from pathcast.spark import Delivery, local_session
root = Path(sys.argv[1])
spark = local_session("local[2]")
df = spark.readStream.schema("id string, body binary, topic string")
df = df.option("maxFilesPerTrigger", 1).parquet(str(root / "in"))
output = {"path": root / "out", "format": "delta", "matches": "none"}
with Delivery(root / "subscriptions.tsv", output, message="body", id="id", columns=["topic"]) as d:
    d.stream(df, root / "checkpoint", {"availableNow": True}).awaitTermination()
    d.end()
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts a driver with a JVM of its own."""
    processes = []

    def start() -> subprocess.Popen[bytes]:
        sources = Path(__file__).resolve().parent.parent / "src"
        with (tmp_path / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", DRIVER, str(tmp_path)],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": str(sources),
                    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
                },
            )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_killed_processes_deliver_everything_once(
    spark: SparkSession,
    subscriptions: Path,
    tmp_path: Path,
    started: Callable[[], subprocess.Popen[bytes]],
) -> None:
    a_stream(spark, tmp_path / "in", range(40))
    out = tmp_path / "out"
    # After files of the outputs and before their commit, after a commit, and in between.
    for place, count in (("inboxes", 1), ("_commits", 2), ("_checkpoint/_pins", 5)):
        process = started()
        deadline = time.monotonic() + SPARK_SECONDS
        while len(list((out / place).glob("[0-9]*"))) < count and process.poll() is None:
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.002)
        assert process.poll() is None, (tmp_path / "log").read_text()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert len(committed_batches(Storage(out))) < 8
    assert started().wait(SPARK_SECONDS) == 0, (tmp_path / "log").read_text()
    assert found(out) == expected(range(40))
    # A file that Spark had noted, and not planned when it was killed, joins the next micro-batch.
    batches = list(committed_batches(Storage(out)))
    assert batches == list(range(1, len(batches) + 1))
    assert len(batches) in range(6, 9)


def test_a_row_without_a_message_is_a_tombstone_unless_a_code_says_why(
    spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    rows = [
        ("m1", message(1), "t", None, None, 0),
        ("gone", None, "t", None, None, 0),
        ("unread", None, "t", "file.unreadable", "no such file", 7),
    ]
    told = spark.createDataFrame(rows, f"{COLUMNS}, code string, reason string, bytes bigint")
    for name, tombstones, letters in (
        ("counted", True, {"unread"}),
        ("letters", False, {"gone", "unread"}),
    ):
        out = tmp_path / name
        with delivery_of(subscriptions, out, tombstones=tombstones) as delivery:
            commit = delivery.batch(told)
            assert delivery.end().tombstones == commit.tombstones == int(tombstones)
        assert commit.messages == 3 - commit.tombstones
        assert refused(out) == letters
