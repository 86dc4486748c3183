"""Broker processes of the overlay on loopback, in a line, whose clients are pipelines."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

CLIENTS = ("loader", "archive")


class BrokerProcesses:
    """Brokers, each connected to the next.

    Args:
        directory: Where their files are.
        names: In their order.
        are_started: Whether they run at once.
    """

    def __init__(self, directory: Path, names: str, *, are_started: bool = True) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in names]
        ports = [each.getsockname()[1] for each in listeners]
        for each in listeners:
            each.close()
        self.addresses = {n: f"127.0.0.1:{port}" for n, port in zip(names, ports, strict=True)}
        for place, name in enumerate(names):
            others = [each for each in names if each != name]
            lines = [
                f'[broker]\nname = "{name}"\ndirectory = "{name}"\nmembers = {others}',
                f'listen = "{self.addresses[name]}"',
            ]
            for peer in (*names[max(0, place - 1) : place], *names[place + 1 : place + 2]):
                lines.append(f'[[neighbours]]\nname = "{peer}"')
                if name < peer:
                    lines.append(f'address = "{self.addresses[peer]}"')
            lines += [f'[[clients]]\nname = "{each}"\ntoken = "{each}!"' for each in CLIENTS]
            (directory / f"{name}.toml").write_text("\n".join(lines).replace("'", '"') + "\n")
        for name in names if are_started else "":
            self.start(name, is_awaited=name == names[-1])

    def start(self, name: str, *, is_awaited: bool = True) -> None:
        """Begins, or goes on from its disk."""
        control = self._directory / name / "control"
        control.unlink(missing_ok=True)
        path = str(self._directory / f"{name}.toml")
        command = [sys.executable, "-m", "pathcast", "broker", "run", path]
        with (self._directory / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(command, stdout=log, stderr=log)
        if is_awaited:
            try:
                eventually(control.exists)
            except BaseException:
                self.stop()
                raise

    def kill(self, name: str) -> None:
        """As a failure of power would."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def lose_disk(self, name: str) -> None:
        """Of one that does not run."""
        shutil.rmtree(self._directory / name)

    def stop(self) -> None:
        """Kills all."""
        for name in list(self._running):
            self.kill(name)


def eventually(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Waits until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come about in time"
        time.sleep(0.02)
