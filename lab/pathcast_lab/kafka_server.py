"""A Kafka of one node (KRaft) on loopback: for tests, a demo, a measurement.

    with kafka_server(folder) as server:
        server.address  # HOST:PORT

The jars are artefacts of Maven, resolved by their coordinates: by Ivy, which PySpark brings, into
its own cache (`~/.ivy2`). A server is ended by its process id.

It is no production set-up: one node, no security, 512 MB.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pathcast.errors import MissingDependencyError, PathcastError, UnavailableError
from pathcast.spark.java import find_java, user_cache

SERVER: Final = ("org.apache.kafka", "kafka_2.13", "4.1.0")
"""Group, artefact and version."""

RESOLVE_SECONDS_MAX: Final = 400.0
"""Ivy fetches 45 artefacts of 50 MB: 70 s, once."""

START_SECONDS_MAX: Final = 120.0
"""It takes 6 s."""

HEAP: Final = "-Xmx512m"

_JAVA_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Short runs: code that is compiled once, quickly, beats code that is compiled well."""

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
"""

_CLUSTER_ID: Final = "cGF0aGNhc3QtdGVzdHMtMQ"


def server_jars(coordinates: tuple[str, str, str] = SERVER) -> str:
    """Returns the class path of an artefact and of all that it needs.

    Raises:
        MissingDependencyError: PySpark is not installed.
        JavaMissingError: There is no Java.
        UnavailableError: The artefacts are not here, and cannot be fetched.
    """
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise MissingDependencyError(
            "dependency.missing", purpose="Kafka", module="pyspark", extra="spark"
        )
    java = find_java().home / "bin" / "java"
    ivy = next((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))
    told = ":".join(coordinates)
    known = user_cache(os.environ) / f"{'-'.join(coordinates)}.classpath"
    if known.is_file() and all(Path(jar).is_file() for jar in known.read_text().split(":")):
        return known.read_text()
    # Two processes that fetch one file would write to it at the same time.
    with tempfile.NamedTemporaryFile("r") as found, alone():
        command = [str(java), "-jar", str(ivy), "-m2compatible", "-warn", "-confs", "default"]
        command += ["-dependency", *coordinates, "-cachepath", found.name]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=RESOLVE_SECONDS_MAX
            )
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                "peer.silent", name=f"Maven ({told})", seconds=RESOLVE_SECONDS_MAX
            ) from error
        jars = found.read().strip()
    if done.returncode or not jars:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        told_why = [line for line in lines if "unresolved" in line.lower()] or lines
        reason = told_why[-1].strip(": \t") if told_why else f"Ivy ended with {done.returncode}"
        raise UnavailableError("peer.unreachable", name=f"Maven ({told})", reason=reason)
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text(jars)
    return jars


@contextmanager
def alone() -> Iterator[None]:
    """Keeps other processes of this machine from resolving artefacts meanwhile."""
    path = Path(tempfile.gettempdir()) / "pathcast-ivy.lock"
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class KafkaServer:
    """A server that is running, or was killed and can be started again where it was.

    Args:
        folder: Its data, configuration and log.
        jars: Class path, of `server_jars`.

    Attributes:
        address: HOST:PORT.
        process: The JVM; None before the first start.
    """

    def __init__(self, folder: Path, jars: str) -> None:
        self._folder = folder
        self._jars = jars
        self._java = str(find_java().home / "bin" / "java")
        port, controller = _free_ports()
        self.address = f"127.0.0.1:{port}"
        self.process: subprocess.Popen[bytes] | None = None
        self._properties = folder / "server.properties"
        self._properties.write_text(
            _PROPERTIES.format(port=port, controller=controller, folder=folder)
        )
        format = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c")
        done = subprocess.run(
            self._command(*format), capture_output=True, text=True, timeout=START_SECONDS_MAX
        )
        if done.returncode:
            raise self._fault(done.stderr.strip() or done.stdout.strip())

    def start(self) -> None:
        """Starts it, and returns when it listens.

        Raises:
            UnavailableError: It has ended, or does not listen in time.
        """
        log = self._folder / "log"
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                self._command("kafka.Kafka"), stdout=file, stderr=file, start_new_session=True
            )
        until = time.monotonic() + START_SECONDS_MAX
        host, _, port = self.address.partition(":")
        while self.process.poll() is None and time.monotonic() < until:
            try:
                socket.create_connection((host, int(port)), 1.0).close()
                return
            except OSError:
                time.sleep(0.05)
        self.kill()
        raise self._fault(log.read_text(errors="replace")[-500:])

    def kill(self) -> None:
        """Ends it at once (SIGKILL); `start` goes on with what is on its disk."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _command(self, *arguments: str) -> list[str]:
        command = [self._java, HEAP, *_JAVA_OPTIONS, "-cp", self._jars]
        return [*command, *arguments, str(self._properties)]

    def _fault(self, reason: str) -> PathcastError:
        return UnavailableError("peer.unreachable", name=f"Kafka at {self.address}", reason=reason)


@contextmanager
def kafka_server(folder: Path) -> Iterator[KafkaServer]:
    """A server that runs, and is killed in the end.

    Args:
        folder: An empty directory.

    Raises:
        PathcastError: As `server_jars` and `KafkaServer.start`.
    """
    server = KafkaServer(folder, server_jars())
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _free_ports() -> tuple[int, int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        return int(one.getsockname()[1]), int(two.getsockname()[1])
