"""`make demo-kafka`: a Kafka of its own, from a topic of messages to a topic of deliveries.

It starts a server (`kafka_server`), produces messages, runs the pipeline of docs/pipeline.md, reads
the deliveries as a consumer would, compares them with those of one process, and stops all it began.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession

from pathcast import Registry
from pathcast.errors import PathcastError
from pathcast.registry.subscription_rows import read_rows
from pathcast.spark import load_settings, run
from pathcast.spark.connectors import connector_for
from pathcast.spark.session import JVM_OPTIONS, local_session
from pathcast.workload import write_demo
from pathcast_lab.kafka_server import kafka_server

MESSAGES: Final = 3_000
QUERIES: Final = 2_000
SUBSCRIBERS: Final = 200
SHOWN: Final = 8

PIPELINE: Final = """\
[source]
format = "kafka"
select = ["value AS message", "cast(key AS string) AS message_id", "topic", "partition", "offset"]
columns = ["topic", "partition", "offset"]

[source.options]
subscribe = "messages"
startingOffsets = "earliest"
"kafka.bootstrap.servers" = "{address}"

[subscriptions]
path = "subscriptions.tsv"

[output]
path = "output"

[topics]
options = {{ "kafka.bootstrap.servers" = "{address}" }}
deliveries = "deliveries"
dead_letters = "refused"
"""


def main() -> int:
    """Runs the demo; 1 where deliveries differ from those of one process."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "kafka").mkdir()
        _say("Starting Kafka on this machine (its artefacts are fetched once, in about a minute)")
        with kafka_server(root / "kafka") as server:
            _say(f"Kafka listens on {server.address}; starting Spark with its connector")
            spark = local_session(
                "local[2]",
                conf={"spark.jars.packages": connector_for(pyspark.__version__)},
                # A short run: code that is compiled quickly beats code that is compiled well.
                jvm_options=(*JVM_OPTIONS, "-XX:TieredStopAtLevel=1"),
            )
            try:
                is_same = _deliver(spark, server.address, root)
            finally:
                spark.stop()
    _say(f"{time.monotonic() - started:.0f} s in all")
    return 0 if is_same else 1


def _deliver(spark: SparkSession, address: str, root: Path) -> bool:
    options = {"kafka.bootstrap.servers": address}
    written = write_demo(
        root,
        messages=MESSAGES,
        queries=QUERIES,
        subscribers=SUBSCRIBERS,
        shaped=0.5,
        packing="parquet",
    )
    frame = spark.read.parquet(str(written.messages))
    produced = frame.selectExpr("message_id AS key", "message AS value").write.format("kafka")
    produced.options(**options).option("topic", "messages").save()
    _say(f"Produced {MESSAGES:,} messages to the topic messages")
    path = root / "pipeline.toml"
    path.write_text(PIPELINE.format(address=address), encoding="utf-8")
    summary = run(load_settings(path), spark=spark)
    print(summary.to_text())
    found = _consumed(spark, options)
    print("\nRecords of the topic deliveries by subscriber:")
    by_subscriber = Counter(subscriber for subscriber, *_ in found.elements())
    for name, count in by_subscriber.most_common(SHOWN):
        print(f"  {name:<16}{count:>8,}")
    print(f"  {len(by_subscriber):,} subscribers{found.total():>12,}")
    is_same = found == _of_one_process(root / "subscriptions.tsv", written.messages)
    print(f"Those of one process: {'the same' if is_same else 'OTHERS, this is a bug'}")
    return is_same


def _consumed(spark: SparkSession, options: dict[str, str]) -> Counter[tuple[Any, ...]]:
    """Key, value and delivery id of the records of the topic of deliveries."""
    reader = spark.read.format("kafka").options(**options)
    records = reader.option("subscribe", "deliveries").option("includeHeaders", "true").load()
    rows = records.selectExpr(
        "cast(key AS string) AS key",
        "value",
        "cast(filter(headers, h -> h.key = 'pathcast-delivery-id')[0].value AS string) AS id",
    )
    return Counter((row.key, bytes(row.value), row.id) for row in rows.collect())


def _of_one_process(subscriptions: Path, messages: Path) -> Counter[tuple[Any, ...]]:
    registry = Registry()
    registry.add(read_rows(subscriptions, "ids").rows)
    table = pq.read_table(messages)
    found = registry.deliver(
        table.column("message").to_pylist(), table.column("message_id").to_pylist()
    )
    return Counter(
        (row["subscriber"], row["fragment"] or b"", row["delivery_id"].hex())
        for row in found.table.to_pylist()
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PathcastError as error:
        sys.exit(f"error: {error}")
