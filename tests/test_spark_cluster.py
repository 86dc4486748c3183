"""Spark standalone: a master and two workers on loopback, that know nothing of Pathcast.

If these fail, a pipeline works on one machine only, or loses messages with a worker.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

import object_store
from pathcast.errors import JavaMissingError
from pathcast.spark.java import find_java
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.workers import InProcess
from patience import SPARK_SECONDS, wait_until
from silent_progress import Silent
from spark_cluster import QUICK, Cluster, cluster

pytestmark = pytest.mark.spark

SOURCES = Path(__file__).resolve().parent.parent / "src"
# The kernel that is sent, beside the reference in this process.
COLUMNS = [
    "subscriber",
    "subscription_id",
    "message_id",
    "result_number",
    "fragment",
    "delivery_id",
]
# The last micro-batch waits for the kill, so that it never comes too late.
DRIVER = """
import sys, time
from pathlib import Path
import object_store
from silent_progress import Silent
from pathcast.spark import load_settings, run
from pathcast.spark.session import JVM_OPTIONS, local_session
from pathcast.spark.workers import SparkWorkers
settings = load_settings(sys.argv[1])
session = local_session(
    settings.spark.master,
    conf=settings.spark.conf,
    jvm_options=(*JVM_OPTIONS, "-XX:TieredStopAtLevel=1"),
)
def where(units):
    import pathcast
    yield pathcast.__file__
print("where:", *SparkWorkers(session.sparkContext).run(where, [[1], [2]]), flush=True)
class Waiting(Silent):
    left = int(sys.argv[2]) - 1
    def batch(self, commit):
        self.left -= 1
        while not self.left and not Path(sys.argv[3]).exists():
            time.sleep(0.01)
print(run(settings, spark=session, progress=Waiting()).to_json())
session.stop()
"""


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Cluster]:
    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    folder = tmp_path / "cluster"
    folder.mkdir()
    # A file system that workers have installed, as they would s3fs.
    plugins = folder / "plugins"
    (plugins / "objects-1.dist-info").mkdir(parents=True)
    shutil.copy(object_store.__file__, plugins)
    (plugins / "objects-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: objects\n")
    (plugins / "objects-1.dist-info/entry_points.txt").write_text(
        "[fsspec.specs]\nobjects = object_store:ObjectStore\n"
    )
    with cluster(folder, plugins, workers=2) as started:
        yield started


def prepare(root: Path, master: str, *, messages: int, files_per_batch: int) -> Path:
    """Messages, subscriptions of both kinds, and the file of a pipeline."""
    (root / "in").mkdir()
    for number in range(messages):
        kind = "abc"[number % 3]
        text = f"<m><{kind} n='{number}'/></m>" if number % 7 else f"<m><{kind}>"
        (root / "in" / f"{number}.xml").write_text(text)
    rows = [
        ("ann", "told", "/m/a", "ids"),
        ("bob", "told", "/m/a", "ids"),
        ("bob", "whole", "/m/b", "message"),
        ("eve", "shaped", "for $c in //c return <hit n='{$c/@n}'>c</hit>", "fragment"),
    ]
    (root / "subscriptions.tsv").write_text(
        "subscriber\tquery_id\tquery\tdeliver\n" + "".join("\t".join(row) + "\n" for row in rows)
    )
    path = root / "pipeline.toml"
    # Source and output are behind a file system without rename, which driver and workers reach.
    path.write_text(
        f'[source]\npath = "objects://{root}/in"\n[subscriptions]\npath = "subscriptions.tsv"\n'
        f"[mode]\nfiles_per_batch_max = {files_per_batch}\n"
        f'[output]\npath = "objects://{root}/out"\nmatches = "ids"\n'
        f'[spark]\nmaster = "{master}"\n'
        '[spark.conf]\n"spark.driver.host" = "127.0.0.1"\n"spark.executor.memory" = "512m"\n'
        f'"spark.executor.extraJavaOptions" = "{QUICK}"\n'
    )
    return path


def start(pipeline: Path, batches: int, killed: Path) -> subprocess.Popen[bytes]:
    """The pipeline in a process of its own, which waits for a file before its last micro-batch."""
    paths = [str(SOURCES), str(SOURCES.parent / "tests"), os.environ.get("PYTHONPATH", "")]
    with (pipeline.parent / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(pipeline), str(batches), str(killed)],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )


def rows_of(output: str | Storage) -> dict[str, list[dict[str, Any]]]:
    """All rows, in one order; a delivery that comes twice is there twice."""
    wanted: dict[Any, list[str]] = {
        "inboxes": COLUMNS,
        "matches": ["message_id", "query_ids"],
        "dead_letters": ["message_id", "code", "line", "column"],
    }
    return {
        name: sorted(read_output(output, name).select(columns).to_pylist(), key=str)
        for name, columns in wanted.items()
    }


def in_process(pipeline: Path) -> dict[str, list[dict[str, Any]]]:
    output = f"objects://{pipeline.parent}/here"
    settings = load_settings(pipeline, [f"output.path={output}"])
    run(settings, workers=InProcess(), progress=Silent())
    return rows_of(output)


def commits(root: Path) -> int:
    return len(list((root / "out" / "_commits").glob("[0-9]*")))


@pytest.mark.parametrize("files_per_batch", [40, pytest.param(10, marks=pytest.mark.nightly)])
def test_a_worker_that_is_killed_costs_nothing_and_doubles_nothing(
    standalone: Cluster, tmp_path: Path, files_per_batch: int
) -> None:
    pipeline = prepare(tmp_path, standalone.url, messages=400, files_per_batch=files_per_batch)
    batches = 400 // files_per_batch
    process = start(pipeline, batches, tmp_path / "killed")

    def is_at_work() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()
        return commits(tmp_path) >= 2

    wait_until(is_at_work, SPARK_SECONDS)
    killed = standalone.kill_worker(0)
    assert commits(tmp_path) < batches
    (tmp_path / "killed").touch()
    assert len(killed) > 1, "the worker ran nothing"
    assert process.wait(SPARK_SECONDS) == 0, (tmp_path / "log").read_text()
    assert commits(tmp_path) == batches
    assert rows_of(f"objects://{tmp_path}/out") == in_process(pipeline)
    log = (tmp_path / "log").read_text()
    assert '"messages": 400' in log
    # Workers without Pathcast were sent it.
    (where,) = [line for line in log.splitlines() if line.startswith("where: ")]
    for path in where.split()[1:]:
        assert path.startswith(str(tmp_path / "cluster"))
        assert path.endswith("/pathcast/__init__.py")
