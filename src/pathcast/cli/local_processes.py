"""Start, list and stop processes on this machine, whatever node they run."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast.cli.console import say
from pathcast.errors import ConfigError

if TYPE_CHECKING:
    from pathcast.transport.local_processes import LocalProcesses

PATIENCE_SECONDS = 180.0


def clear_demo(out: Path, marker: str) -> None:
    """Takes out an earlier demonstration, which has a file of that name; anything else is left.

    Raises:
        ConfigError: There is something else.
    """
    if not out.exists() or not any(out.iterdir()):
        return
    if not (out / marker).is_file():
        reason = f"{out} is there and is not an earlier demonstration"
        raise ConfigError("config.invalid", key="--out", reason=reason)
    shutil.rmtree(out)


def start_gone(processes: LocalProcesses) -> None:
    """Starts those that do not run."""
    gone = [name for name in processes.names if not processes.is_running(name)]
    processes.start(gone)
    say(f"started: {', '.join(gone) or 'nothing, all run'}")


def end_all(processes: LocalProcesses) -> None:
    """Ends all, gracefully."""
    running = [name for name in processes.names if processes.is_running(name)]
    processes.stop(running)
    say(f"ended: {', '.join(running) or 'nothing, none ran'}")


async def until(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until something holds.

    Raises:
        TimeoutError: It does not.
    """
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)
