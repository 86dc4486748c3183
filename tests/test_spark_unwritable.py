"""A place that cannot be written, and a JVM that dies: one line with cause and fix, nothing lost.

If these fail, a full disk is hundreds of lines of a traceback, or a stream stands still for ever.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

import py4j
from py4j.protocol import Py4JNetworkError

from pathcast.cli.exits import ExitCode
from pathcast.errors import JavaMissingError
from pathcast.spark.java import find_java
from pathcast.spark.outputs import read_output
from pathcast.spark.session import hidden_lost_connections
from patience import PATIENCE_SECONDS, SPARK_SECONDS
from test_spark_kill import descendants, prepare, start, wait_for_steps
from test_spark_session import SOURCES, pathcast_run

MESSAGES = 40
# The command, in a process whose files may have so many bytes, with tasks in that process: Java and
# Spark write files of their own.
DRIVER = """
import resource, sys
from pathcast.cli.app import main
from pathcast.spark import pipeline
from pathcast.spark.workers import InProcess
run = pipeline.run
pipeline.run = lambda settings, **given: run(settings, workers=InProcess(), **given)
largest = int(sys.argv.pop(1))
if largest >= 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
main()
"""

# The command, whose JVM is killed when it is asked for a context.
KILLS_STARTING_JVM = """
from pyspark import SparkContext
from pathcast.cli.app import main
ask = SparkContext._initialize_context
def ask_a_dead_jvm(context, conf):
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()
    return ask(context, conf)
SparkContext._initialize_context = ask_a_dead_jvm
main()
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for number in range(MESSAGES):
        # Nothing makes them smaller.
        text = os.urandom(500).hex()
        (tmp_path / "in" / f"{number}.xml").write_text(f"<m><a>{text}</a></m>")
    (tmp_path / "s.tsv").write_text(
        "subscriber\tquery_id\tquery\tdeliver\nann\tq1\t/m\tmessage\nann\tq2\t/m/a\tids\n"
    )
    path = tmp_path / "pipeline.toml"
    path.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
        "[mode]\nfiles_per_batch_max = 10\n"
    )
    return path


def bounded(pipeline: Path, largest: int, *options: str) -> tuple[int, str, str]:
    """A run whose files may have so many bytes; -1 for any."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(largest), "run", str(pipeline), *options],
        capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def check_fault(code: int, err: str, reason: str) -> None:
    assert code == ExitCode.REFUSED, err
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert f"cannot be written: {reason}; " in line
    assert "What was committed stays as it is" in line
    assert "Traceback" not in err
    assert "Exception ignored" not in err


def check_complete(pipeline: Path, messages: int = MESSAGES) -> None:
    rows = read_output(pipeline.parent / "out", "inboxes").column("message_id").to_pylist()
    assert Counter(rows) == Counter({f"{number}.xml": 2 for number in range(messages)})


@pytest.mark.parametrize("format", ["parquet", "jsonl", "delta"])
def test_a_run_that_cannot_write_says_why_and_the_next_goes_on(pipeline: Path, format: str) -> None:
    """From the first file of all to the rows of the last micro-batch."""
    if format == "delta":
        pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    options = ("--set", f"output.format={format}")
    for largest in (10, 600, 2000, 3000):
        code, _, err = bounded(pipeline, largest, *options)
        check_fault(code, err, "File too large")
        left = [path for path in (pipeline.parent / "out").rglob("*") if path.suffix == ".tmp"]
        assert left == [], "what is half written takes room that is missing"
    assert bounded(pipeline, -1, *options)[0] == ExitCode.OK
    check_complete(pipeline)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("place", [".", "out"])
def test_permissions_are_a_sentence(pipeline: Path, place: str) -> None:
    folder = pipeline.parent / place
    folder.mkdir(exist_ok=True)
    folder.chmod(0o555)
    try:
        code, _, err = bounded(pipeline, -1)
    finally:
        folder.chmod(0o755)
    check_fault(code, err, "Permission denied")


def test_an_output_that_is_a_file_is_a_sentence(pipeline: Path) -> None:
    (pipeline.parent / "out").write_text("")
    code, _, err = bounded(pipeline, -1)
    check_fault(code, err, "File exists")


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """A small disk of its own; only root can have one."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("size", [12, 36, 44])
def test_a_full_disk_is_a_sentence_of_spark_too(pipeline: Path, size: int) -> None:
    with mounted(pipeline.parent / "out", "-o", f"size={size}k"):
        code, _, err = pathcast_run(pipeline, "--set", "spark.master=local[2]")
        check_fault(code, err, "No space left on device")
        out = str(pipeline.parent / "out")
        subprocess.run(["mount", "-o", "remount,size=4m", out], check=True)
        assert pathcast_run(pipeline, "--set", "spark.master=local[2]")[0] == ExitCode.OK
        check_complete(pipeline)


@pytest.mark.nightly
@pytest.mark.spark
def test_a_disk_that_may_only_be_read_is_a_sentence(pipeline: Path) -> None:
    with mounted(pipeline.parent / "out", "-o", "ro"):
        code, _, err = bounded(pipeline, -1)
        check_fault(code, err, "Read-only file system")


@pytest.mark.spark
def test_a_stream_that_waits_notices_that_its_jvm_has_died(tmp_path: Path) -> None:
    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    pipeline = prepare(tmp_path, 4, 20)
    stream = ("--set", "mode.kind=stream", "--set", "mode.seconds_between_batches=0.1")
    process = start(pipeline, *stream)
    # The journal, the pin, files of inboxes and the commit: nothing is left to do.
    wait_for_steps(process, tmp_path, 4)
    java = [
        pid
        for pid in descendants(process.pid)
        if Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    ]
    assert java, "no JVM: nothing would die"
    for pid in java:
        os.kill(pid, signal.SIGKILL)
    assert process.wait(SPARK_SECONDS) == ExitCode.REFUSED
    log = (tmp_path / "log").read_text()
    (line,) = [line for line in log.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: Spark is gone: ")
    assert "the next run goes on from there" in line
    assert "Traceback" not in log


@pytest.mark.spark
def test_a_jvm_that_dies_while_spark_starts_is_a_sentence(pipeline: Path) -> None:
    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-c", KILLS_STARTING_JVM, "run", str(pipeline)],
        capture_output=True, text=True, check=False, timeout=SPARK_SECONDS,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )  # fmt: skip
    assert done.returncode == ExitCode.REFUSED, done.stderr
    assert "error: Spark is gone: the JVM ended while Spark started " in done.stderr
    assert "Traceback" not in done.stderr


def record_of(
    error: BaseException, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> int:
    """How many records Py4J's handler of an error leaves on a logger."""
    caplog.clear()
    # The path of a record is that of the code which logs it: compiled as a module of Py4J.
    path = str(Path(py4j.__file__).parent / "java_gateway.py")
    source = (
        "try:\n    raise error\nexcept BaseException:\n    log('Exception while sending command.')"
    )
    exec(compile(source, path, "exec"), {"error": error, "log": logger.exception})
    return len(caplog.records)


@pytest.mark.parametrize("name", [None, "py4j.java_gateway", "py4j.clientserver"])
@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionResetError("reset by peer"),
        EOFError(),
        KeyboardInterrupt(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_records_of_a_lost_connection_are_hidden_while_the_command_runs(
    name: str | None, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger(name)
    assert record_of(error, logger, caplog) == 1
    with hidden_lost_connections():
        assert record_of(error, logger, caplog) == 0
        assert record_of(ValueError("another fault"), logger, caplog) == 1
        logger.warning("of somebody else")
        assert "of somebody else" in caplog.text
        with caplog.at_level(logging.DEBUG):
            assert record_of(error, logger, caplog) == 1
    assert record_of(error, logger, caplog) == 1
