"""What commands do with processes of this machine, whatever node they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from pathcast.cli.console import say

if TYPE_CHECKING:
    from pathcast.transport.local_processes import LocalProcesses

PATIENCE_SECONDS = 120.0


def start_gone(processes: LocalProcesses) -> None:
    """Starts those that do not run."""
    gone = [name for name in processes.names if not processes.is_running(name)]
    processes.start(gone)
    say(f"started: {', '.join(gone) or 'nothing, all run'}")


def end_all(processes: LocalProcesses) -> None:
    """Ends all, gracefully."""
    processes.stop(processes.names)
    say(f"{len(processes.names)} processes have ended")


async def until(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until something holds.

    Raises:
        TimeoutError: It does not.
    """
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)
