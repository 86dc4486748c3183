"""A Spark session whose settings are what was measured, each with its reason.

Example:
    >>> spark = local_session("local[2]")                                   # doctest: +SKIP
    >>> spark.stop()                                                        # doctest: +SKIP

What keeps it from starting is said in a sentence: a master that is none or cannot be reached, a
Java that cannot be used, a setting that the JVM refuses.

A session of your own serves as well: every stage takes what it is given. `SETTINGS` lists what is
worth copying into it. Without it the answers are the same. A pipeline needs the context only, which
is there 2 s sooner than the session around it.

Spark that is there already is used as it is: a session of this process keeps its settings and runs
on afterwards, and what `spark-submit` was told goes over the settings of the pipeline.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import py4j
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from pathcast.errors import ConfigError, JavaMissingError, SparkLostError, invalid_setting
from pathcast.spark.java import JAVA_VERSION_MIN, JavaInstall, find_java, quiet_home
from pathcast.spark.shipping import ship
from pathcast.spark.workers import SparkWorkers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SETTINGS: Final[Mapping[str, str]] = {
    # Moving 4 KB messages to Python workers: 994 MB/s, against 892 over TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # Batches of 4-8 MB move fastest; a batch of large messages stays below Arrow's 2 GB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(6 * 1024 * 1024),
    # Bounds the lists of matches of one batch when messages are tiny.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    # Rows of the driver become frames, and frames rows, through Arrow rather than pickle.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A worker keeps its memory-mapped snapshot and compiled label paths between tasks.
    "spark.python.worker.reuse": "true",
    # No port is opened; saves half a second of start-up.
    "spark.ui.enabled": "false",
    # The pipeline shows its own progress.
    "spark.ui.showConsoleProgress": "false",
    # Frames of your own.
    "spark.driver.memory": "2g",
    # Output does not depend on where the pipeline runs.
    "spark.sql.session.timeZone": "UTC",
    # Planning anew costs a small micro-batch a tenth more and finds nothing better.
    "spark.sql.adaptive.enabled": "false",
    # Inboxes of 19 bytes a row against 34 with snappy, in the same time.
    "spark.sql.parquet.compression.codec": "zstd",
}
"""Of every session. Left out on purpose: `spark.python.udf.pipelined.enabled` crashes workers in
Spark 4.3."""

SETTINGS_HERE: Final[Mapping[str, str]] = {
    # A local session need not resolve the name of the host, and listens to this machine only.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Of sessions of this machine: executors elsewhere would look for the driver on their own."""

STANDALONE = "spark://"
CONNECT_SECONDS_MAX = 5.0
"""A master that does not answer in this time is not there; a far one takes a tenth of a second."""

YARN_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables of the environment of which Spark needs one for YARN."""

PYTHON = "spark.pyspark.python"
"""In `spark.conf`: which Python the workers start. PySpark itself reads the environment only."""

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Set to the number of cores, once that is known."""

JVM_OPTIONS = (
    # Stopping a query while foreachBatch runs overflowed the default stack of 1 MB.
    "-Xss8m",
    # No collector threads beside cores that are busy matching.
    "-XX:+UseParallelGC",
    # The optimising compiler waits for code that is really hot, ten times longer than by default:
    # a fifth less processor time over the first ten micro-batches, the same speed after them.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Options of the JVM of a local session."""


_STANDARD_ERROR = 2

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""In the environment of what `spark-submit` starts: where the JVM is found."""

_CAUSES_MAX = 16
"""Java's causes of causes that are looked at."""

_SAYS_NOTHING = ("An error has occurred.",)
"""What the client of Kubernetes says of everything; the cause of it says more."""

_UNREACHABLE = re.compile(
    r"connection (?:refused|reset|timed out)|connect timed out|no route to host|"
    r"network is unreachable|unknownhost|name or service not known|failed to resolve|"
    r"nodename nor servname",
    re.IGNORECASE,
)
"""In the causes of a start that failed because nobody answers at the master's address."""


_IS_PASSED_ON: Final = threading.Event()
"""Whether what the JVM says on standard error is: while its context runs. When that ends, Python
workers that wait for a task find the end of their input, and are killed while they write a
traceback of it."""


def _pass_on(read_end: int) -> None:
    while chunk := os.read(read_end, 65_536):
        if _IS_PASSED_ON.is_set():
            os.write(_STANDARD_ERROR, chunk)
    os.close(read_end)


def local_session(
    master: str = "local[*]",
    *,
    conf: Mapping[str, str] | None = None,
    jvm_options: tuple[str, ...] = JVM_OPTIONS,
    is_shipped: bool = True,
) -> SparkSession:
    """Start a session, or return the one that runs already.

    Args:
        master: Spark's master URL, such as "local[2]" or "spark://host:7077".
        conf: Settings that go over `SETTINGS`.
        jvm_options: Options of the JVM.
        is_shipped: Whether workers of a cluster are sent Pathcast's own files (`shipping`).

    Returns:
        The session. `JAVA_HOME` and `PYSPARK_PYTHON` of this process are set, since that is how
        Spark is told which Java and which Python to start.

    Raises:
        JavaMissingError: No Java 17 or newer, or it does not start Spark.
        SparkLostError: The JVM ended while it started the context.
        ConfigError: The master is none or cannot be reached, or Spark refuses a setting.

    Cost:
        About 4 s and 450 MB for the JVM.
    """
    # 0.5 s: it brings pandas.
    from pyspark.sql import SparkSession

    running = running_context()
    context = local_context(master, conf=conf, jvm_options=jvm_options, is_shipped=is_shipped)
    session = SparkSession(context)
    if running is None and SHUFFLE_PARTITIONS not in (conf or {}):
        # The default of 200 tasks costs a micro-batch more than its rows do.
        session.conf.set(SHUFFLE_PARTITIONS, str(context.defaultParallelism))
    return session


def running_context() -> SparkContext | None:
    """Returns the context that runs in this process; None where there is none."""
    running: SparkContext | None = SparkContext._active_spark_context
    return running


def is_submitted() -> bool:
    """Returns whether `spark-submit` has started this process, and its JVM before it."""
    return _SUBMITTED in os.environ


def local_context(
    master: str = "local[*]",
    *,
    conf: Mapping[str, str] | None = None,
    jvm_options: tuple[str, ...] = JVM_OPTIONS,
    is_shipped: bool = True,
) -> SparkContext:
    """Start what runs jobs, without frames and SQL; or return what runs already.

    Arguments and errors are those of `local_session`.
    """
    running = running_context()
    if running is not None:
        return running
    wanted = dict(conf or {})
    if is_submitted():
        context = _submitted({"spark.master": master, "spark.app.name": "pathcast"} | wanted)
        if is_shipped:
            ship(context)
        return context
    check_master(master, os.environ)
    java = find_java()
    os.environ["JAVA_HOME"] = str(quiet_home(java))
    # Workers have to be such an interpreter: another one would lack pyarrow, or be another Python.
    if PYTHON in wanted:
        os.environ["PYSPARK_PYTHON"] = wanted[PYTHON]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = {**SETTINGS, "spark.master": master, "spark.app.name": "pathcast"}
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= SETTINGS_HERE
    # The JVM reads its log configuration at start; the resource is a plain file in every install.
    with as_file(files("pathcast.spark") / "log4j2.properties") as log4j:
        options = (*jvm_options, f"-Dlog4j2.configurationFile=file:{log4j}")
        settings["spark.driver.extraJavaOptions"] = " ".join(options)
        settings |= wanted
        context = _started(settings, java)
    if is_shipped:
        ship(context)
    return context


def end_context(context: SparkContext) -> None:
    """Stop a context."""
    _IS_PASSED_ON.clear()
    try:
        context.stop()
    except (Py4JError, OSError):
        # Its JVM has died: there is nothing to stop, and whoever needed it has been told.
        _forget_jvm()


def _forget_jvm() -> None:
    """Let the next context of this process start a JVM of its own."""
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None


def check_master(master: str, environ: Mapping[str, str]) -> None:
    """Refuse a master that cannot be used, where that is known without Spark.

    Of a standalone master where nobody listens Spark would know in a minute.

    Raises:
        ConfigError: None of the addresses of "spark://..." can be connected to, or there is no
            port; or YARN has no configuration.
    """
    if master == "yarn" and not any(environ.get(name) for name in YARN_FOLDERS):
        needed = f"yarn needs {' or '.join(YARN_FOLDERS)}, the folder of its configuration"
        raise invalid_setting("spark.master", needed)
    if not master.startswith(STANDALONE):
        return
    reasons = []
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise invalid_setting("spark.master", f"{master}: {address} is not HOST:PORT")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS_MAX):
                return
        except (OSError, OverflowError) as error:
            told = error.strerror if isinstance(error, OSError) else None
            reasons.append(f"{address}: {told or error}")
    raise invalid_setting("spark.master", f"{master} cannot be reached ({'; '.join(reasons)})")


def _started(settings: Mapping[str, str], java: JavaInstall) -> SparkContext:
    """The context, or why there is none in a sentence.

    Raises:
        JavaMissingError: The JVM ended before it was ready.
        SparkLostError: The JVM ended while it started the context.
        ConfigError: Spark refused the master or a setting.
    """
    try:
        _IS_PASSED_ON.set()
        if SparkContext._gateway is None:
            _start_jvm(settings)
        context = _context(SparkConf(loadDefaults=True).setAll(list(settings.items())))
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        told = f"{java.origin} ({java.home}) does not start Spark, and says why on standard error"
        raise JavaMissingError("java.missing", minimum=JAVA_VERSION_MIN, reason=told) from error
    except (Py4JError, OSError) as error:
        _forget_jvm()
        reached = f"the JVM ended while Spark started ({type(error).__name__})"
        raise SparkLostError("spark.lost", reason=reached) from error
    server = context._accumulatorServer
    # Where the JVM dies, its connection ends in the middle: `SparkWorkers.check` says it once.
    server.handle_error = _unless_lost(server.handle_error)
    return context


def _unless_lost(handle_error: Callable[..., None]) -> Callable[..., None]:
    """Return an error handler of a server that ignores lost connections."""

    def handle(*request: object) -> None:
        if not isinstance(sys.exception(), OSError | EOFError | struct.error):
            handle_error(*request)

    return handle


def _submitted(wanted: Mapping[str, str]) -> SparkContext:
    """The context in the JVM that `spark-submit` has started; what that was told goes first."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    SparkContext._ensure_initialized()  # or the configuration would know nothing of that JVM
    conf = SparkConf(loadDefaults=True)
    for key, value in {**SETTINGS, **wanted}.items():
        conf.setIfMissing(key, value)
    return _context(conf)


def _context(conf: SparkConf) -> SparkContext:
    """A context in the JVM that is there.

    Raises:
        ConfigError: Spark refused the master or a setting, or cannot reach the master.
    """
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        context = SparkContext(conf=conf)
    except Py4JJavaError as error:
        raise refused_start(conf.get("spark.master") or "", causes(error)) from None
    if threading.current_thread() is threading.main_thread():
        # PySpark answers Ctrl-C itself: it cancels all jobs, in the middle of whatever it was told.
        signal.signal(signal.SIGINT, on_interrupt)
    return context


def causes(error: Py4JJavaError) -> list[str]:
    """Returns the first lines of a Java exception and of its causes, the innermost last."""
    found: list[str] = []
    exception = error.java_exception
    while exception is not None and len(found) < _CAUSES_MAX:
        told = str(exception.getMessage() or exception).strip().partition("\n")[0]
        if told and not any(told in each for each in found):
            found.append(told)
        exception = exception.getCause()
    return found


def refused_start(master: str, told: Sequence[str]) -> ConfigError:
    """Returns the error of a context that did not start, with the setting that is to be mended.

    `told` is what Spark says, and its `causes`.

    Example:
        >>> said = ["An error has occurred.", "Connection refused: /10.0.0.9:6443"]
        >>> print(refused_start("k8s://https://10.0.0.9:6443", said))
        spark.master: k8s://https://10.0.0.9:6443 cannot be used: Connection refused: \
/10.0.0.9:6443; check that the address is right and that this machine can reach it
    """
    said = [line for line in told if line not in _SAYS_NOTHING] or ["Spark does not say why"]
    if _UNREACHABLE.search(" ".join(said)):
        fix = "check that the address is right and that this machine can reach it"
        return invalid_setting(
            "spark.master", f"{master} cannot be used: {': '.join(said[:2])}; {fix}"
        )
    if "master" in said[0].lower():
        return invalid_setting("spark.master", said[0])
    return invalid_setting("spark.conf", ": ".join(said[:2]))


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM so that a SIGTERM to all processes of a service ends none of them but ours.

    systemd sends it to everything in the control group, a shell to the process group. The driver
    then ends the micro-batch, for which it needs the JVM and its Python workers. They end
    when the driver has: the JVM at the end of its standard input, whatever ended the driver; the
    workers with the JVM.
    """
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    read_end, write_end = os.pipe()
    # Standard output is the summary's.
    options = _SpareFromSigterm(stdout=write_end, stderr=write_end)
    try:
        gateway = launch_gateway(conf, options)
    finally:
        os.close(write_end)  # the JVM has its own
        threading.Thread(target=_pass_on, args=(read_end,), name="jvm-stderr", daemon=True).start()
    SparkContext._ensure_initialized(gateway=gateway)


class _SpareFromSigterm(dict[str, Any]):
    """Options of `Popen` for PySpark, which puts its own `preexec_fn` in: ours comes after it."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, _then_ignore_sigterm(value) if key == "preexec_fn" else value)


def _then_ignore_sigterm(first: Callable[[], None]) -> Callable[[], None]:
    def prepare() -> None:
        first()
        # A JVM leaves a signal alone that was ignored when it started.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # Python workers set handlers of their own; a signal that is blocked never gets to them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    return prepare


@contextmanager
def spark_workers(
    master: str,
    conf: Mapping[str, str] | None = None,
    *,
    is_shipped: bool = True,
    context: SparkContext | None = None,
) -> Iterator[Future[SparkWorkers]]:
    """Workers of a context that is there, or of one of their own, which is stopped in the end.

    It takes 4 to 6 s to start, most of it in other processes, and is started beside other work.

    Args:
        master: Spark's master URL.
        conf: Settings that go over those of `session.SETTINGS`.
        is_shipped: Whether workers of a cluster are sent Pathcast's own files.
        context: Is used and left running; that of this process when not given.

    Yields:
        The workers, once they are there; `result()` raises what kept them from starting.
    """
    running = context or running_context()
    if running is not None:
        if is_shipped:
            ship(running)
        ready: Future[SparkWorkers] = Future()
        ready.set_result(SparkWorkers(running))
        yield ready
        return
    contexts: list[SparkContext] = []

    def start() -> SparkWorkers:
        started = local_context(master, conf=conf, is_shipped=is_shipped)
        contexts.append(started)
        workers = SparkWorkers(started)
        workers.run(_ready, [[0]] * workers.count)
        return workers

    with ThreadPoolExecutor(1, "spark") as thread:
        starting = thread.submit(start)
        # Whoever gives up early waits until there is something to stop.
        try:
            yield starting
        finally:
            starting.exception()
            for started in contexts:
                end_context(started)


def _ready(units: Iterable[int]) -> Iterator[int]:
    """A task that leaves a worker with the engine and the readers in its memory."""
    import pathcast.spark.sources
    import pathcast.spark.tasks  # noqa: F401

    return iter([sum(units)])


@contextmanager
def hidden_lost_connections() -> Iterator[None]:
    """Hides, while inside, what Py4J logs of a lost connection or Ctrl-C, unless at level DEBUG.

    For commands, which report the loss: a program that imports Pathcast owns its logging.
    """
    # A logger's filter does not apply to records of its descendants.
    loggers = [logging.getLogger(name) for name in (None, "py4j.java_gateway", "py4j.clientserver")]
    for logger in loggers:
        logger.addFilter(_is_shown)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_shown)


def _is_shown(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    is_lost = isinstance(error, Py4JNetworkError | OSError | EOFError | KeyboardInterrupt)
    if not is_lost or Path(record.pathname).parent != Path(py4j.__file__).parent:
        return True
    return logging.getLogger().isEnabledFor(logging.DEBUG)
