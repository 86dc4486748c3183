"""Spark standalone on loopback: a master and workers, processes that are stopped by their ids."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark

from pathcast.spark.java import find_java, quiet_home
from patience import SPARK_SECONDS, wait_until
from test_spark_kill import descendants

QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"


class Cluster:
    """A master and its workers.

    Attributes:
        url: Of the master, "spark://127.0.0.1:PORT".
    """

    def __init__(self, folder: Path, python_path: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "JAVA_HOME": str(quiet_home(find_java())),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            # Short lives: code that is compiled once, quickly, beats code that is compiled well.
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "SPARK_LAUNCHER_OPTS": QUICK,
            # What is installed on the machines of a cluster: nothing of the sources under test.
            "PYTHONPATH": str(python_path),
        }
        # The environment of a driver, or of a session of this process, is none of theirs.
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_ENV_LOADED"):
            self._environment.pop(name, None)
        self.url = ""

    def start(self, workers: int) -> None:
        """Starts a master and workers with one core each; waits until these have registered."""
        self._start("master", _MASTER)
        self.url = self._wait_for("master", r"Starting Spark master at (spark://\S+)")
        names = [f"worker-{number}" for number in range(workers)]
        for name in names:
            self._start(
                name, _WORKER, "--cores", "1", "--memory", "1g",
                "--work-dir", str(self._folder / name), self.url,
            )  # fmt: skip
        for name in names:
            self._wait_for(name, "(Successfully registered) with master")

    def kill_worker(self, number: int) -> set[int]:
        """SIGKILL to a worker and all it has started; the ids of what was killed."""
        process = self._processes[1 + number]
        killed = {process.pid, *descendants(process.pid)}
        for pid in killed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        return killed

    def stop(self) -> None:
        """Ends what was started, and what that has started."""
        for process in reversed(self._processes):
            started = descendants(process.pid)
            for pid in {process.pid, *started}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

    def log(self, name: str) -> str:
        """What a process has said."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, of: str, *arguments: str) -> None:
        script = Path(self._environment["SPARK_HOME"], "bin", "spark-class")
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(script), of, *ports, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env=self._environment,
                )
            )

    def _wait_for(self, name: str, sign: str) -> str:
        def found() -> re.Match[str] | None:
            assert all(process.poll() is None for process in self._processes), self.log(name)
            return re.search(sign, self.log(name))

        said = wait_until(found, SPARK_SECONDS)
        assert said is not None
        return said[1]


@contextmanager
def cluster(folder: Path, python_path: Path, *, workers: int) -> Iterator[Cluster]:
    """A cluster for as long as the block runs.

    Args:
        folder: Where its processes write.
        python_path: A folder of modules that the workers have.
        workers: How many, of one core each.
    """
    started = Cluster(folder, python_path)
    try:
        started.start(workers)
        yield started
    finally:
        started.stop()
