"""Processes that tests have started and not ended: they are ended, and told.

    with leftovers.ended():
        ...  # tests

Of a test that fails, nothing goes on beside those that follow. Where a system does not list the
children of a process (Linux does, in /proc), nothing is looked for.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of `prctl(2)`: what a child has started and left is a child as well."""

ENDING_SECONDS: Final = 60.0
"""For a JVM whose driver is gone, until it has noticed."""

_OF_PYTHON: Final = "multiprocessing.resource_tracker"
"""Lives as long as its interpreter."""

_KEPT: set[int] = set()


def keep(process: subprocess.Popen[bytes] | None) -> None:
    """It is for all tests of this process."""
    if process is not None:
        _KEPT.add(process.pid)


@contextmanager
def ended(seconds: float = ENDING_SECONDS) -> Iterator[None]:
    """Ends what was started meanwhile and has not ended so long afterwards.

    Raises:
        AssertionError: There was something.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    before = _children()
    yield
    until = time.monotonic() + seconds
    while (left := _running(_children() - before - _kept())) and time.monotonic() < until:
        time.sleep(0.05)
    for child in left:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)
    assert not left, f"tests have left processes behind: {left}"


def _kept() -> set[int]:
    """Beside what fixtures have started: PySpark's JVM lives as long as its interpreter."""
    gateway = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_gateway", None)
    return _KEPT if gateway is None else {*_KEPT, gateway.proc.pid}


def _children() -> set[int]:
    found: set[int] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found.update(map(int, path.read_text().split()))
    return found


def _running(processes: set[int]) -> dict[int, str]:
    """Their command lines, without those that have ended and for whom nobody waits."""
    found = {}
    for process in processes:
        with suppress(OSError):
            command = _command(Path(f"/proc/{process}"))
            if command and _OF_PYTHON not in command:
                found[process] = command
    return found


def _command(process: Path) -> str:
    """Empty for one that has ended.

    Linux closes what a new program does not inherit before the program has a command line, so
    `Popen` can return in between.

    Raises:
        OSError: There is no such process.
    """
    while not (command := (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()):
        if (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
            break
        time.sleep(0.001)
    return command.strip()
