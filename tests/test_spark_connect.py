"""Frames of a session of Spark Connect, whose driver is a server: as those of any other.

If these fail, a notebook of a service delivers nothing, or a message twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")
pytest.importorskip("grpc_status", reason="needs: pip install 'pyspark[connect]'")

from pathcast.errors import JavaMissingError
from pathcast.spark.java import find_java, quiet_home
from pathcast.spark.outputs import read_output
from patience import SPARK_SECONDS

SOURCES = Path(__file__).resolve().parent.parent / "src"

# A server of its own: the session of the other tests is of another kind, and a process has one.
CLIENT = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from pathcast.errors import ConfigError
from pathcast.spark import Delivery, deliver

root = Path(sys.argv[1])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
rows = [("1", "<m><a/></m>"), ("2", "<m><b/></m>"), ("3", "<m")]
df = spark.createDataFrame(rows, "key string, body string")
told = {"session": type(spark).__module__}
of = {"message": "body", "id": "key"}
with Delivery(root / "s.tsv", root / "batch", **of) as delivery:
    told["messages"] = [delivery.batch(df, 0).messages, delivery.batch(df, 0).messages]
    try:
        delivery.micro_batch(df, 1)
    except ConfigError as error:
        told["unnamed"] = str(error)
for _ in range(2):
    found = deliver(df, root / "s.tsv", **of).collect()
    told["rows"] = sorted([row.message_id, row.error and row.error.code] for row in found)

def stream(checkpoint):
    query = Delivery(root / "s.tsv", root / "stream", **of).stream(
        spark.readStream.schema("body string, key string").json(str(root / "in")),
        root / checkpoint, {"availableNow": True},
    )
    try:
        query.awaitTermination()
    except Exception as error:
        return str(error)

def put(name):
    (root / "in").mkdir(exist_ok=True)
    (root / "in" / name).write_text(json.dumps({"body": "<m><a/></m>", "key": name}))

for name in ("1", "2"):
    put(name)
    told[f"fault {name}"] = stream("checkpoint")
told["other"] = stream("another")
print(json.dumps(told), file=open(root / "told.json", "w"))
spark.stop()
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        java = find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    root = tmp_path_factory.mktemp("connect")
    (root / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\n")
    environ = {
        **os.environ,
        "JAVA_HOME": str(quiet_home(java)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(SOURCES),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(root)],
        capture_output=True, text=True, check=False, timeout=SPARK_SECONDS, env=environ,
    )  # fmt: skip
    assert (root / "told.json").exists(), done.stderr
    return root


@pytest.fixture(scope="module")
def told(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "told.json").read_text())
    assert "connect" in found["session"], "it was a session of the usual kind"
    return found


def test_a_batch_is_delivered_once(root: Path, told: dict[str, Any]) -> None:
    assert told["messages"] == [3, 3]
    assert read_output(root / "batch", "inboxes").column("message_id").to_pylist() == ["1"]
    assert read_output(root / "batch", "dead_letters").column("message_id").to_pylist() == ["3"]


def test_a_query_that_nobody_names_is_asked_for(told: dict[str, Any]) -> None:
    assert told["unnamed"].startswith("query: ")


def test_a_stream_goes_on_where_it_was(root: Path, told: dict[str, Any]) -> None:
    assert (told["fault 1"], told["fault 2"]) == (None, None)
    rows = read_output(root / "stream", "inboxes").to_pylist()
    assert sorted((row["message_id"], row["batch_id"]) for row in rows) == [("1", 1), ("2", 2)]


def test_another_query_is_refused_by_name(told: dict[str, Any]) -> None:
    assert "it counts the batches of" in told["other"]


def test_frames_are_delivered_to_frames(told: dict[str, Any]) -> None:
    assert told["rows"] == [["1", None], ["3", "xml.end"]]
