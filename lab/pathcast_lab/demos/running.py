"""The course of a demonstration: its processes, waiting, and the comparison with one process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pathcast.cli.console import answers
from pathcast.cli.demo import clear_demo
from pathcast.cli.exits import ExitCode
from pathcast.transport.local_processes import LocalProcesses
from pathcast.transport.network import LocalNetwork, load_topology

PATIENCE_SECONDS = 180.0
TOPOLOGY_FILE = "topology.toml"

T = TypeVar("T")


def demo_network(out: Path, topology: str) -> LocalNetwork:
    """The network of a demonstration, in place of that of an earlier one.

    Raises:
        ConfigError: There is something else.
    """
    clear_demo(out, TOPOLOGY_FILE)
    out.mkdir(parents=True, exist_ok=True)
    file = out / TOPOLOGY_FILE
    file.write_text(topology, encoding="utf-8")
    return LocalNetwork.write(load_topology(file))


@contextmanager
def running_anew(processes: LocalProcesses) -> Iterator[None]:
    """Starts all processes with empty directories; they end with this, and by SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.INTERRUPTED))
    try:
        processes.start(processes.names, are_new=True)
        yield
    finally:
        processes.stop(processes.names)


async def until(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until something holds.

    Raises:
        TimeoutError: It does not.
    """
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)


async def until_ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancels readers; raises what one of them raised before."""
    # Doubled and foreign deliveries would still come.
    await asyncio.sleep(1.0)
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


def is_as_expected(what: str, given: Counter[T], expected: Set[T]) -> bool:
    """Prints how deliveries differ from those of one process; whether they do not.

    Args:
        what: Their name.
        given: How often each came.
        expected: Those of one process.
    """
    doubled = sum(count - 1 for count in given.values())
    lost, foreign = expected - given.keys(), given.keys() - expected
    out = answers()
    out.print(f"{what}: {len(given):,}, as one process gives {len(expected):,}")
    out.print(f"lost: {len(lost)}, doubled: {doubled}, foreign: {len(foreign)}")
    return not (lost or doubled or foreign)
