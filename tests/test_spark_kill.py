"""SIGKILL: a pipeline in a process of its own, killed at seeded moments and started again.

At the end every message has exactly one verdict and every subscriber exactly the rows it asked for.
The steps between which a kill can fall are each tested in one process as well, in
`test_spark_pipeline`; here nothing is simulated.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.errors import JavaMissingError
from pathcast.spark.java import find_java
from pathcast.spark.ledger import committed_batches
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.workers import InProcess
from patience import SPARK_SECONDS, wait_until
from silent_progress import Silent

pytestmark = pytest.mark.spark

SOURCES = Path(__file__).resolve().parent.parent / "src"
DRIVER = """
import sys
from pathcast.spark import load_settings, run
print(run(load_settings(sys.argv[1])).to_json())
"""
KINDS = ("a", "b", "c", "d")
A_VERSION = 5


def prepare(root: Path, messages: int, files_per_batch: int) -> Path:
    """Messages, subscriptions and the file of a pipeline; returns the latter."""
    (root / "in").mkdir()
    for number in range(messages):
        kind = KINDS[number % 4]
        text = f"<m><{kind}/></m>" if number % 7 else f"<m><{kind}></m>"
        (root / "in" / f"{number}.xml").write_text(text)
    lines = ["subscriber\tquery_id\tquery"]
    lines += [f"s{n}\tq{n}\t/m/{KINDS[n % 3]}" for n in range(9)]
    (root / "subscriptions.tsv").write_text("\n".join(lines) + "\n")
    path = root / "pipeline.toml"
    path.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "subscriptions.tsv"\n'
        f"[mode]\nfiles_per_batch_max = {files_per_batch}\n"
        '[output]\npath = "out"\nmatches = "ids"\n[spark]\nmaster = "local[2]"\n'
    )
    return path


def start(pipeline: Path, *options: str) -> subprocess.Popen[bytes]:
    """The pipeline in a process group of its own; the command with options, else the function."""
    command = ["-m", "pathcast", "run"] if options else ["-c", DRIVER]
    paths = [str(SOURCES), os.environ.get("PYTHONPATH", "")]
    with (pipeline.parent / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *command, str(pipeline), *options],
            stdout=log,
            stderr=log,
            start_new_session=True,
            # Short runs: code that is compiled once, quickly, beats code that is compiled well.
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
            },
        )


def steps_done(root: Path) -> int:
    """Steps of micro-batches that can be seen from outside: journal, pin, files, commit."""
    out = root / "out"
    places = ("_checkpoint/journal", "_checkpoint/_pins", "inboxes", "_commits")
    return sum(len(list((out / place).glob("[0-9]*"))) for place in places)


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended in the meantime
        parents.setdefault(parent, []).append(int(status.parent.name))
    found: set[int] = set()
    pending = [pid]
    while pending:
        children = parents.get(pending.pop(), [])
        found.update(children)
        pending += children
    return found


def wait_until_gone(processes: set[int]) -> None:
    """Fails if one of them is still there after a while."""
    wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in processes))


def wait_for_steps(process: subprocess.Popen[bytes], root: Path, steps: int) -> None:
    """Until so many steps are done."""

    def are_done() -> bool:
        assert process.poll() is None, (root / "log").read_text()
        return steps_done(root) >= steps

    wait_until(are_done, SPARK_SECONDS)


def kill_after(process: subprocess.Popen[bytes], root: Path, steps: int, seconds: float) -> bool:
    """SIGKILL once so many steps more are done; whether the process still ran then."""
    begun, deadline = steps_done(root), time.monotonic() + SPARK_SECONDS
    while process.poll() is None and steps_done(root) < begun + steps:
        assert time.monotonic() < deadline, (root / "log").read_text()
        time.sleep(0.005)
    time.sleep(seconds)
    was_running = process.poll() is None
    orphans = descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until_gone(orphans)
    return was_running


def rows(root: Path, name: str, columns: list[str]) -> Counter[Any]:
    """Rows of an output, as its readers see them."""
    table = read_output(root / "out", name).select(columns)  # type: ignore[arg-type]
    return Counter(
        tuple(tuple(value) if isinstance(value, list) else value for value in row.values())
        for row in table.to_pylist()
    )


def check(root: Path, messages: int) -> None:
    """Every message has its one verdict, and every subscriber its rows."""
    fine = [number for number in range(messages) if number % 7]
    wants: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for subscriber in range(9):
        wants[KINDS[subscriber % 3]].append(subscriber)
    assert rows(root, "matches", ["message_id", "query_ids"]) == Counter(
        (f"{n}.xml", tuple(f"q{s}" for s in wants[KINDS[n % 4]])) for n in fine
    )
    assert rows(root, "dead_letters", ["message_id"]) == Counter(
        (f"{number}.xml",) for number in range(messages) if number % 7 == 0
    )
    assert rows(root, "inboxes", ["subscriber", "subscription_id", "message_id"]) == Counter(
        (f"s{s}", f"q{s}", f"{n}.xml") for n in fine for s in wants[KINDS[n % 4]]
    )
    assert len(rows(root, "inboxes", ["delivery_id"])) == sum(
        len(wants[KINDS[n % 4]]) for n in fine
    ), "a delivery id occurs twice"


def put_in_a_table(root: Path, pipeline: Path, per_batch: int) -> None:
    """The messages as rows of a Delta table, a version for every `A_VERSION` of them."""
    import deltalake

    names = sorted(path.name for path in (root / "in").iterdir())
    for start in range(0, len(names), A_VERSION):
        mine = names[start : start + A_VERSION]
        texts = [(root / "in" / name).read_text() for name in mine]
        rows = pa.table({"message_id": mine, "message": texts})
        deltalake.write_deltalake(root / "table", rows, mode="append")
    text = pipeline.read_text().replace('path = "in"', 'kind = "delta"\npath = "table"')
    files = f"files_per_batch_max = {per_batch}"
    pipeline.write_text(text.replace(files, f"files_per_batch_max = {per_batch // A_VERSION}"))


def kill_and_check(
    root: Path, *, messages: int, per_batch: int, kills: int, seed: int, as_table: bool = False
) -> None:
    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    print(f"seed {seed}")  # shown when the test fails: the kills can be repeated
    chance = random.Random(seed)
    pipeline = prepare(root, messages, per_batch)
    if as_table:
        put_in_a_table(root, pipeline, per_batch)
    hits = 0
    for _ in range(kills):
        process = start(pipeline)
        # A micro-batch makes about four steps; a kill falls into one of the first few batches.
        hits += kill_after(process, root, chance.randint(1, 12), chance.uniform(0.0, 0.5))
    assert hits, "no kill found the pipeline at work: nothing was tested"
    process = start(pipeline)
    assert process.wait(SPARK_SECONDS) == 0, (root / "log").read_text()
    assert len(committed_batches(Storage(root / "out"))) == -(-messages // per_batch)
    check(root, messages)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 7))
def test_killed_many_times(tmp_path: Path, seed: int) -> None:
    kill_and_check(tmp_path, messages=1500, per_batch=60, kills=5, seed=seed)


@pytest.mark.nightly
def test_a_table_as_the_source_killed_many_times(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    kill_and_check(tmp_path, messages=600, per_batch=40, kills=5, seed=7, as_table=True)


@pytest.mark.parametrize(
    ("number", "exit_code", "spares"),
    [
        (signal.SIGTERM, 0, ""),
        # A service manager signals every process of the service, workers in their own group too.
        pytest.param(signal.SIGTERM, 0, "none", marks=pytest.mark.nightly),
        pytest.param(signal.SIGINT, 130, "", marks=pytest.mark.nightly),
    ],
)
def test_a_stream_is_killed_goes_on_and_ends_cleanly_when_its_process_group_is_signalled(
    tmp_path: Path, number: signal.Signals, exit_code: int, spares: str
) -> None:
    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    pipeline = prepare(tmp_path, 200, 20)
    stream = ("--json", "--set", "mode.kind=stream")
    assert kill_after(start(pipeline, *stream), tmp_path, 6, 0.1), "it was not at work"
    (tmp_path / "log").unlink()
    process = start(pipeline, *stream)
    wait_for_steps(process, tmp_path, steps_done(tmp_path) + 4)
    started = descendants(process.pid)
    assert started, "no JVM: nothing would be spared"
    os.killpg(process.pid, number)
    if spares == "none":
        for pid in started:
            os.kill(pid, number)
    assert process.wait(SPARK_SECONDS) == exit_code
    wait_until_gone(started)
    log = (tmp_path / "log").read_text()
    assert '"was_stopped": true' in log
    assert f'"stopped_by": "{number.name}"' in log
    # Spark's daemon may report workers that it closed; nothing of ours or of the stream may show.
    for sign in ("StopRequested", "StreamingQueryException", "Py4J", "pathcast/spark"):
        assert sign not in log
    assert committed_batches(Storage(tmp_path / "out"))
    run(load_settings(pipeline), workers=InProcess(), progress=Silent())
    check(tmp_path, 200)


@pytest.mark.nightly
def test_a_jvm_that_dies_is_an_error_not_a_hang(tmp_path: Path) -> None:
    pipeline = prepare(tmp_path, 200, 20)
    process = start(pipeline)
    wait_for_steps(process, tmp_path, 6)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        pytest.skip("the children of a process cannot be listed here")
    for child in children.read_text().split():
        os.kill(int(child), signal.SIGKILL)
    assert process.wait(SPARK_SECONDS) != 0
    assert start(pipeline).wait(SPARK_SECONDS) == 0
    check(tmp_path, 200)
