"""Start and stop processes on this machine, whatever node they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathcast.cli.console import say

if TYPE_CHECKING:
    from pathcast.transport.local_processes import LocalProcesses


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
