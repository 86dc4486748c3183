"""`python -m pathcast_lab.kafka_latency`: time from produce to committed delivery, with real Kafka.

A server, a producer at a steady rate and `pathcast run`, each a process of its own, on loopback.
The time of a message is that of its record (the producer's clock when it was sent), that of its
deliveries when the commit was written which names them. The first seconds are left out.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.compute as pc
import pyspark

from pathcast.spark import read_output
from pathcast.spark.connectors import connector_for
from pathcast_lab.demo_kafka import PIPELINE
from pathcast_lab.kafka_server import kafka_server

MESSAGE: Final = "'<order><id>' || value || '</id><price>' || value % 1000 || '</price></order>'"

PRODUCER: Final = """
import sys
from pathcast.spark import local_session
address, rate, package = sys.argv[1:]
spark = local_session("local[1]", conf={"spark.jars.packages": package})
rows = spark.readStream.format("rate").option("rowsPerSecond", rate).load()
rows = rows.selectExpr("string(value) AS key", MESSAGE + " AS value")
options = {"kafka.bootstrap.servers": address, "topic": "messages", "checkpointLocation": "rate"}
query = rows.writeStream.format("kafka").options(**options)
query.trigger(processingTime="200 milliseconds").start().awaitTermination()
"""

STREAM: Final = """
[mode]
kind = "stream"
seconds_between_batches = 0
[spark]
master = "local[2]"
conf = { "spark.jars.packages" = "PACKAGE" }
"""


def main() -> None:
    """Prints the median and the 99th percentile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1000, help="messages a second")
    parser.add_argument("--seconds", type=int, default=60, help="time that is measured")
    parser.add_argument("--warm-up", type=int, default=10, help="time before that, left out")
    parser.add_argument("--queries", type=int, default=1000, help="subscriptions")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "kafka").mkdir()
        with kafka_server(root / "kafka") as server:
            _write(root, server.address, given.queries)
            pipeline = _started(root, "-m", "pathcast", "run", "pipeline.toml")
            code = f"MESSAGE = {MESSAGE!r}\n{PRODUCER}"
            package = connector_for(pyspark.__version__)
            producer = _started(root, "-c", code, server.address, str(given.rate), package)
            try:
                _wait_for_deliveries(root, pipeline)
                time.sleep(given.warm_up + given.seconds)
            finally:
                producer.kill()
                producer.wait()
                pipeline.send_signal(signal.SIGTERM)
                pipeline.wait()
        _report(root, given.warm_up)


def _write(root: Path, address: str, queries: int) -> None:
    rows = [f"s{n}\tq{n}\t/order[price = {n % 1000}]\n" for n in range(queries)]
    (root / "subscriptions.tsv").write_text("subscriber\tquery_id\tquery\n" + "".join(rows))
    text = PIPELINE.format(address=address).partition("[topics]")[0]
    text = text.replace('"offset"]\n', '"offset", "timestamp"]\n')
    text += STREAM.replace("PACKAGE", connector_for(pyspark.__version__))
    (root / "pipeline.toml").write_text(text)


def _started(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with (root / "log").open("ab") as log:
        return subprocess.Popen([sys.executable, *arguments], cwd=root, stdout=log, stderr=log)


def _wait_for_deliveries(root: Path, pipeline: subprocess.Popen[bytes]) -> None:
    while not list((root / "output" / "inboxes").glob("*.parquet")):
        if pipeline.poll() is not None:
            sys.exit((root / "log").read_text())
        time.sleep(0.1)


def _report(root: Path, warm_up: int) -> None:
    rows = read_output(root / "output", "inboxes")
    commits = {
        int(path.stem): path.stat().st_mtime for path in (root / "output" / "_commits").iterdir()
    }
    sent = pc.cast(rows.column("timestamp"), "int64").to_numpy() / 1e6
    made = np.array([commits[batch] for batch in rows.column("batch_id").to_pylist()])
    first = min(commits[batch] for batch in set(rows.column("batch_id").to_pylist()))
    taken = (made - sent)[sent >= first + warm_up]
    if not len(taken):
        sys.exit("no message was delivered after the warm-up")
    span = sent.max() - first - warm_up
    print(
        f"{len(taken):,} deliveries in {span:.0f} s ({len(taken) / span:,.0f} a second): "
        f"median {np.median(taken):.2f} s, 99 % {np.quantile(taken, 0.99):.2f} s, "
        f"longest {taken.max():.2f} s"
    )


if __name__ == "__main__":
    main()
