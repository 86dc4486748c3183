"""Kafka: a source, and topics of deliveries; a real server on loopback, started and killed here."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

import leftovers
from kafka_topics import Kafka, kafka_of
from pathcast import Registry, Subscription
from pathcast.errors import ConfigError
from pathcast.spark import Summary, load_settings, read_output, run
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
    return Counter((row["subscriber"], row["fragment"] or b"", row["delivery_id"]) for row in found)


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
    assert go(root, lenient).messages == 2
    offsets = {row["offset"] for row in read_output(root / "out", "inboxes").to_pylist()}
    assert offsets == {0, 1, 2, 7, 8}


def test_killed_pipelines_and_a_killed_kafka_deliver_everything(kafka: Kafka, root: Path) -> None:
    kill_and_compare(kafka, root, "kills", [("pipeline", 1, 0.0), ("kafka", 1, 0.0)])


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_kills_at_random(kafka: Kafka, root: Path, seed: int) -> None:
    draw = random.Random(seed)
    kills = [
        (draw.choice(["pipeline", "kafka", "both"]), draw.randint(0, 3), draw.random())
        for _ in range(4)
    ]
    kill_and_compare(kafka, root, f"random-{seed}", kills)


def kill_and_compare(
    kafka: Kafka, root: Path, prefix: str, kills: Sequence[tuple[str, int, float]]
) -> None:
    """Kills the pipeline, Kafka or both, so many commits and seconds after messages were produced.

    At the end each delivery is in the inboxes once and in the topic at least once, with one id.
    """
    source, text = f"{prefix}-orders", pipeline_of(kafka.server.address, prefix)
    text += '[mode]\nkind = "stream"\nseconds_between_batches = 0.1\n[spark]\nmaster = "local[2]"\n'
    (root / "pipeline.toml").write_text(text)
    kafka.make_topic(source)
    process, count = start(root), 0

    def produced() -> None:
        nonlocal count
        kafka.produce(source, [(None, message(n), "x") for n in range(count, count + 5)])
        count += 5

    try:
        for who, commits, seconds in kills:
            enough = partial(has_commits, root, commits_of(root) + commits)
            produced()
            wait_for(process, root, enough)
            time.sleep(seconds)
            if who != "kafka":
                process.kill()
                process.wait()
            if who != "pipeline":
                kafka.server.kill()
                kafka.server.start()
                leftovers.keep(kafka.server.process)
            if who != "kafka":
                process = start(root)
        produced()
        wanted = expected(ids_of(kafka, source))
        assert len(ids_of(kafka, source)) == count
        topic = f"{prefix}-deliveries"
        wait_for(process, root, lambda: delivered(kafka, topic).keys() >= wanted.keys())
        process.send_signal(signal.SIGTERM)
        assert process.wait(SPARK_SECONDS) == 0, (root / "log").read_text()
    finally:
        process.kill()
        process.wait()
    assert delivered(kafka, topic).keys() == wanted.keys()
    rows = read_output(root / "out", "inboxes").to_pylist()
    assert Counter(row["delivery_id"].hex() for row in rows) == Counter(id for _, _, id in wanted)


def commits_of(root: Path) -> int:
    return len(list((root / "out" / "_commits").glob("[0-9]*")))


def has_commits(root: Path, count: int) -> bool:
    return commits_of(root) >= count


def wait_for(process: subprocess.Popen[bytes], root: Path, holds: Callable[[], bool]) -> None:
    def found() -> bool:
        assert process.poll() is None, (root / "log").read_text()
        return holds()

    wait_until(found, SPARK_SECONDS)


def start(root: Path) -> subprocess.Popen[bytes]:
    """`pathcast run` of the folder's pipeline, in a Spark that fetches the connector."""
    with (root / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "pathcast", "run", str(root / "pipeline.toml")],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"},
        )
