"""Kafka: a source, and topics of deliveries; a real server on loopback, started and killed here."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

import pyspark

import leftovers
from kafka_topics import Kafka, kafka_of
from pathcast import Registry, Subscription
from pathcast.errors import ConfigError
from pathcast.spark import Summary, load_settings, read_output, run
from pathcast.spark.connectors import connector_for
from pathcast.spark.topics import TopicPublisher
from patience import SPARK_SECONDS, wait_until
from silent_progress import Silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SUBSCRIPTIONS = [
    Subscription("books", "ann", "//book", "fragment"),
    Subscription("all", "bob", "/bib", "message"),
    Subscription("notice", "cem", "//book/price", "ids"),
    Subscription("sum", "dan", "<n>{count(//book)}</n>", "fragment"),
]
GUIDE = Path(__file__).resolve().parent.parent / "docs" / "pipeline.md"
NAMES = ("orders", "deliveries", "refused")
"""Topics of the guide's pipeline."""


@pytest.fixture(scope="session")
def kafka(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka_of(spark, tmp_path_factory.mktemp("kafka")) as found:
        yield found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lines = [f"{s.subscriber}\t{s.id}\t{s.query}\t{s.deliver}" for s in SUBSCRIPTIONS]
    text = "\n".join(["subscriber\tquery_id\tquery\tdeliver", *lines]) + "\n"
    (tmp_path / "subscriptions.tsv").write_text(text)
    return tmp_path


def message(number: int) -> bytes:
    return f"<bib><book><price>{number}</price></book></bib>".encode()


def go(root: Path, text: str, *overrides: str, **given: Any) -> Summary:
    (root / "pipeline.toml").write_text(text)
    settings = load_settings(root / "pipeline.toml", overrides)
    return run(settings, **{"progress": Silent(), **given})


def pipeline_of(address: str, prefix: str) -> str:
    """The pipeline of the guide, at an address, with a prefix before its topics."""
    if not GUIDE.exists():
        pytest.skip("the documentation is not beside the tests")
    section = GUIDE.read_text(encoding="utf-8").partition("## Kafka\n")[2]
    lines = section.partition("[source]")[2].partition("\nThe version is")[0].splitlines()
    text = "\n".join(["[source]", *(line.removeprefix("    ") for line in lines)]) + "\n"
    for name in NAMES:
        assert f'"{name}"' in text
        text = text.replace(f'"{name}"', f'"{prefix}-{name}"')
    return text.replace("127.0.0.1:9092", address)


def of_files(text: str) -> str:
    """The same of a directory."""
    return '[source]\npath = "in"\n' + text[text.index("[subscriptions]") :]


def ids_of(kafka: Kafka, topic: str) -> dict[str, bytes]:
    """The messages of a topic by the ids that the pipeline gives them."""
    found = {f"{topic}-{r['partition']}-{r['offset']}": r["value"] for r in kafka.consume(topic)}
    return {id: value for id, value in found.items() if value is not None}


def expected(messages: dict[str, bytes]) -> Counter[Any]:
    """Subscriber, value and id of each delivery of one process."""
    registry = Registry()
    registry.add(SUBSCRIPTIONS)
    found = registry.deliver(list(messages.values()), list(messages)).table.to_pylist()
    return Counter(
        (row["subscriber"], row["fragment"] or b"", row["delivery_id"].hex()) for row in found
    )


def delivered(kafka: Kafka, topic: str) -> Counter[Any]:
    return Counter(
        (row["key"], row["value"], row["pathcast-delivery-id"]) for row in kafka.consume(topic)
    )


def test_a_spark_without_the_connector_is_told_its_package(spark: SparkSession, root: Path) -> None:
    text = pipeline_of("127.0.0.1:9", "none")
    if spark.sql("LIST JARS").count():
        pytest.skip("the connector was added to this session before")
    package = r'"spark.jars.packages" = "org.apache.spark:spark-sql-kafka-0-10_2.13:4\.'
    with pytest.raises(ConfigError, match=rf"source.format: kafka: this Spark.*{package}"):
        go(root, text)
    (root / "in").mkdir()
    with pytest.raises(ConfigError, match=rf"topics.options: kafka: this Spark.*{package}"):
        go(root, of_files(text))


def test_kafka_to_kafka_gives_the_deliveries_of_one_process(kafka: Kafka, root: Path) -> None:
    text = pipeline_of(kafka.server.address, "all")
    rows = [(f"m{n}", message(n), f"trace {n}") for n in range(20)]
    kafka.produce("all-orders", [*rows, (None, b"<bib>", "x"), ("m3", None, "x"), (None, None, "")])
    summary = go(root, text)
    assert (summary.messages, summary.tombstones, summary.refused) == (21, 2, {"xml.end": 1})
    messages = ids_of(kafka, "all-orders")
    wanted = expected(messages)
    assert summary.published == wanted.total() + 1
    assert delivered(kafka, "all-deliveries") == wanted
    [letter] = kafka.consume("all-refused")
    assert messages[letter["key"]] == b"<bib>"
    assert json.loads(letter["value"])["code"] == "xml.end"
    rows_in = read_output(root / "out", "inboxes").to_pylist()
    assert len(rows_in) == wanted.total()
    for row in rows_in:
        assert row["message_id"] == f"{row['topic']}-{row['partition']}-{row['offset']}"
        number = int(re.findall(rb"\d+", messages[row["message_id"]])[0])
        assert row["headers"] == [{"key": "trace", "value": f"trace {number}".encode()}]
        assert row["message_time"] == row["timestamp"]
    # A record says which subscription and message it is of; a notice is empty, and no tombstone.
    one = next(row for row in kafka.consume("all-deliveries") if row["key"] == "cem")
    assert one["value"] == b""
    assert one["pathcast-subscription-id"] == "notice"
    assert one["pathcast-message-id"] in messages
    # Nothing is written again, and what comes is added.
    assert go(root, text).published == 0
    kafka.produce("all-orders", [("late", message(99), "x")])
    assert go(root, text).published == 4
    assert delivered(kafka, "all-deliveries") == expected(ids_of(kafka, "all-orders"))


def test_what_a_kill_has_left_is_written_from_the_commit(
    kafka: Kafka, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before the first record, and one between the last and the note that they are there."""
    files = of_files(pipeline_of(kafka.server.address, "killed"))
    messages = {f"{n}.xml": message(n) for n in range(5)}
    (root / "in").mkdir()
    for id, body in messages.items():
        (root / "in" / id).write_bytes(body)

    class Killed(BaseException):
        pass

    def die(*_: object) -> bool:
        raise Killed

    for name in ("publish", "_done"):
        with monkeypatch.context() as patch:
            patch.setattr(TopicPublisher, name, die)
            with pytest.raises(Killed):
                go(root, files)
    # The tasks would not find the messages: the commit is all there is.
    for path in (root / "in").iterdir():
        path.unlink()
    assert go(root, files).messages == 0
    found = delivered(kafka, "killed-deliveries")
    assert found.keys() == expected(messages).keys()
    assert set(found.values()) == {2}, "the second kill came after the records"


@pytest.mark.parametrize("format", ["jsonl", "delta"])
def test_files_are_delivered_to_topics_in_every_format(
    kafka: Kafka, root: Path, format: str
) -> None:
    files = of_files(pipeline_of(kafka.server.address, format))
    (root / "in").mkdir()
    messages = {f"{n}.xml": message(n) for n in range(3)}
    messages["latin.xml"] = "<?xml version='1.0' encoding='iso-8859-1'?><bib>ä</bib>".encode(
        "iso-8859-1"
    )
    for id, body in messages.items():
        (root / "in" / id).write_bytes(body)
    assert go(root, files, f"output.format={format}").messages == 4
    assert delivered(kafka, f"{format}-deliveries") == expected(messages)


def test_offsets_that_are_gone_are_told(kafka: Kafka, root: Path) -> None:
    topic, text = "short-orders", pipeline_of(kafka.server.address, "short")
    kafka.make_topic(topic, partitions=1)
    kafka.produce(topic, [(None, message(n), "x") for n in range(3)])
    assert go(root, text).messages == 3
    kafka.produce(topic, [(None, message(n), "x") for n in range(3, 9)])
    kafka.forget(topic, 0, before=7)
    # The connector was added to the session of the tests, whose driver cannot read its exceptions.
    process = start(root)
    assert process.wait(SPARK_SECONDS) == 1
    told = (root / "log").read_text().partition("error: ")[2]
    assert re.search(r"offset \[3, 9\) .* short-orders-0; .*failOnDataLoss = false", told), told
    lenient = text.replace("includeHeaders", "failOnDataLoss = false, includeHeaders")
    summary = go(root, lenient)
    assert (summary.messages, summary.skipped) == (2, 4)
    offsets = {row["offset"] for row in read_output(root / "out", "inboxes").to_pylist()}
    assert offsets == {0, 1, 2, 7, 8}


def test_a_stream_tells_how_many_offsets_it_is_behind(kafka: Kafka, root: Path) -> None:
    topic, text = "late-orders", pipeline_of(kafka.server.address, "late")
    kafka.make_topic(topic, partitions=1)
    kafka.produce(topic, [(None, message(n), "x") for n in range(6)])
    stop, told = threading.Event(), list[int]()

    class Watched(Silent):
        def lag(self, offsets: int) -> None:
            told.append(offsets)
            if not offsets:
                stop.set()

    slow = text.replace("includeHeaders", "maxOffsetsPerTrigger = 2, includeHeaders")
    summary = go(root, slow, "mode.kind=stream", progress=Watched(), stop=stop)
    assert summary.messages == 6
    assert set(told) <= {4, 2, 0}, "two are read at a time"
    assert told[-1] == 0
    assert len(set(told)) > 1, "it was never behind"


def test_a_killed_pipeline_and_a_killed_kafka_deliver_everything(kafka: Kafka, root: Path) -> None:
    world = World(kafka, root, "kills")
    with world.run("pipeline"):
        for who in ("pipeline", "kafka"):
            world.produce()
            world.wait_for(lambda: commits_of(root) > 0)
            world.kill(who)
        world.produce()
        world.wait_for(world.has_delivered)
        world.stop_pipeline()
    world.compare()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_processes_that_are_killed_at_random(kafka: Kafka, root: Path, seed: int) -> None:
    """Producer, Kafka, pipeline and consumer, each a process of its own."""
    draw = random.Random(seed)
    world = World(kafka, root, f"random-{seed}")
    with world.run("producer", "pipeline", "consumer"):
        world.wait_for(lambda: commits_of(root) > 0)
        for _ in range(6):
            time.sleep(5 * draw.random())
            world.kill(draw.choice(["producer", "kafka", "pipeline", "consumer"]))
        begun = commits_of(root)
        world.wait_for(lambda: commits_of(root) > begun)
        world.end("producer")
        world.wait_for(world.has_delivered)
        world.stop_pipeline()
        # Those that arrive twice arrive at it twice: it takes each record once.
        found = delivered(kafka, world.deliveries)
        world.wait_for(lambda: world.consumed() == found)
    world.compare()


DRIVERS = {
    "producer": """
import itertools, sys
from pathcast.spark import local_session
address, topic, package = sys.argv[1:]
spark = local_session("local[1]", conf={"spark.jars.packages": package})
for start in itertools.count(step=5):
    text = "'<bib><book><price>' || id || '</price></book></bib>' AS value"
    rows = spark.range(start, start + 5, 1, 1).selectExpr(text).write.format("kafka")
    rows.options(**{"kafka.bootstrap.servers": address, "topic": topic}).save()
""",
    "consumer": """
import sys
from pathcast.spark import local_session
address, topic, package = sys.argv[1:]
spark = local_session("local[1]", conf={"spark.jars.packages": package})
options = {"subscribe": topic, "startingOffsets": "earliest", "includeHeaders": "true"}
options["kafka.bootstrap.servers"] = address
records = spark.readStream.format("kafka").options(**options).load()
id = "filter(headers, h -> h.key = 'pathcast-delivery-id')[0].value"
rows = records.selectExpr("string(key) AS key", "value", f"string({id}) AS id")
rows.writeStream.option("checkpointLocation", "seen").start("consumed").awaitTermination()
""",
}
"""Processes beside the pipeline."""


class World:
    """A topic, its pipeline, and who produces and consumes; each may be killed."""

    def __init__(self, kafka: Kafka, root: Path, prefix: str) -> None:
        self.kafka = kafka
        self.root = root
        self.source, self.deliveries = f"{prefix}-orders", f"{prefix}-deliveries"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._count = 0
        text = pipeline_of(kafka.server.address, prefix)
        text += '[mode]\nkind = "stream"\nseconds_between_batches = 0.1\n'
        (root / "pipeline.toml").write_text(text + '[spark]\nmaster = "local[2]"\n')
        for topic in (self.source, self.deliveries):
            kafka.make_topic(topic)

    @contextmanager
    def run(self, *names: str) -> Iterator[None]:
        try:
            for name in names:
                self._start(name)
            yield
        finally:
            for name in names:
                self.end(name)

    def _start(self, name: str) -> None:
        if name == "pipeline":
            self._processes[name] = start(self.root)
            return
        topic = self.source if name == "producer" else self.deliveries
        package = connector_for(pyspark.__version__)
        self._processes[name] = started(
            self.root, "-c", DRIVERS[name], self.kafka.server.address, topic, package
        )

    def end(self, name: str) -> None:
        if name in self._processes:
            process = self._processes.pop(name)
            process.kill()
            process.wait()

    def kill(self, name: str) -> None:
        """SIGKILL; it is started again at once."""
        if name == "kafka":
            self.kafka.server.kill()
            self.kafka.server.start()
            leftovers.keep(self.kafka.server.process)
        else:
            self.end(name)
            self._start(name)

    def produce(self) -> None:
        rows = [(None, message(n), "x") for n in range(self._count, self._count + 5)]
        self.kafka.produce(self.source, rows)
        self._count += 5

    def wait_for(self, holds: Callable[[], bool]) -> None:
        def found() -> bool:
            ended = [
                name for name, process in self._processes.items() if process.poll() is not None
            ]
            assert not ended, (ended, (self.root / "log").read_text())
            return holds()

        wait_until(found, SPARK_SECONDS)

    def wanted(self) -> Counter[Any]:
        return expected(ids_of(self.kafka, self.source))

    def has_delivered(self) -> bool:
        return delivered(self.kafka, self.deliveries).keys() >= self.wanted().keys()

    def consumed(self) -> Counter[Any]:
        rows = self.kafka.spark.read.parquet(str(self.root / "consumed")).collect()
        return Counter((row.key, bytes(row.value), row.id) for row in rows)

    def stop_pipeline(self) -> None:
        process = self._processes.pop("pipeline")
        process.send_signal(signal.SIGTERM)
        assert process.wait(SPARK_SECONDS) == 0, (self.root / "log").read_text()

    def compare(self) -> None:
        """Each delivery is in the inboxes once, and in the topic with no other id."""
        wanted = self.wanted()
        assert len(wanted) >= 4 * self._count
        assert delivered(self.kafka, self.deliveries).keys() == wanted.keys()
        rows = read_output(self.root / "out", "inboxes").to_pylist()
        ids = Counter(row["delivery_id"].hex() for row in rows)
        assert ids == Counter(id for _, _, id in wanted)


def commits_of(root: Path) -> int:
    return len(list((root / "out" / "_commits").glob("[0-9]*")))


def start(root: Path) -> subprocess.Popen[bytes]:
    """`pathcast run` of the folder's pipeline, in a Spark that fetches the connector."""
    return started(root, "-m", "pathcast", "run", str(root / "pipeline.toml"))


def started(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A Python of its own, in the folder."""
    with (root / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdout=log,
            stderr=log,
            cwd=root,
            start_new_session=True,
            env={**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"},
        )
