"""Broker processes of the overlay on this machine, whose clients are tests and pipelines."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from pathcast.errors import UnavailableError
from pathcast.transport.process import read_control
from patience import wait_until
from wires import Loopback, Pair, Wires

CLIENTS = ("loader", "archive", "tester")


class BrokerProcesses:
    """Brokers, in a line unless links are given.

    Args:
        directory: Where their files are.
        names: In their order.
        links: Between them.
        wires: What joins them; loopback, without proxies, when not given. The caller closes them.
        joining: Brokers that are not of the network as it was founded.
        monitored: HOST:PORT where each shows itself to monitoring, of those that do.
        are_started: Whether they run at once.

    Attributes:
        COMMAND: Of `pathcast`, that runs one of them.
    """

    COMMAND: ClassVar[tuple[str, ...]] = ("broker", "run")

    def __init__(
        self,
        directory: Path,
        names: Sequence[str],
        links: Iterable[Pair] | None = None,
        wires: Wires | None = None,
        *,
        joining: Sequence[str] = (),
        monitored: Mapping[str, str] = MappingProxyType({}),
        are_started: bool = True,
    ) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._wires = wires or Loopback(names)
        self._founders = [name for name in names if name not in joining]
        links = list(pairwise(names) if links is None else links)
        self._links = links
        self._monitored = monitored
        self.addresses = {name: self._wires.seen_at(name) for name in names}
        for name in names:
            known = [each for each in self._near(name) if name in joining or each not in joining]
            self._write(name, known)
        for name in names if are_started else ():
            self.start(name, is_awaited=name == names[-1])

    def _near(self, name: str) -> list[str]:
        return [b if a == name else a for a, b in self._links if name in (a, b)]

    def _write(self, name: str, near: Iterable[str]) -> None:
        members = [each for each in self._founders if each != name]
        lines = [
            f'[broker]\nname = "{name}"\ndirectory = "{name}"\nmembers = {members}',
            f'listen = "{self._wires.listens(name)}"\nallow_plain = true',
            *(f'metrics = "{each}"' for each in [self._monitored.get(name)] if each),
            *(self._neighbour(name, peer) for peer in near),
        ]
        lines += [f'[[clients]]\nname = "{each}"\ntoken = "{each}!"' for each in CLIENTS]
        lines.append("operate = true")
        (self._directory / f"{name}.toml").write_text("\n".join(lines).replace("'", '"') + "\n")

    def _neighbour(self, name: str, peer: str) -> str:
        address = f'\naddress = "{self._wires.called_at(name, peer)}"' if name < peer else ""
        return f'[[neighbours]]\nname = "{peer}"{address}'

    def start(self, name: str, *, is_awaited: bool = True) -> None:
        """Begins, or goes on from its disk."""
        (self._directory / name / "control").unlink(missing_ok=True)
        is_kept = (self._directory / name / "broker.sqlite").exists()
        options = [] if is_kept else ["--new"]
        command = [*self.command(name), *options]
        with (self._directory / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*self._wires.within(name), *command], stdout=log, stderr=log
            )
        if is_awaited:
            try:
                wait_until(lambda: self.is_up(name))
            except BaseException:
                self.stop()
                raise

    def command(self, name: str) -> list[str]:
        """Runs a broker by its file."""
        path = str(self._directory / f"{name}.toml")
        return [sys.executable, "-m", "pathcast", *self.COMMAND, path]

    def has_ended(self, name: str) -> int | None:
        """How a process has ended that nobody has killed; None while it runs."""
        return self._running[name].poll()

    def join(self, name: str) -> None:
        """Starts one that nobody knew: its neighbours are told by their files, and SIGHUP."""
        for peer in self._near(name):
            with (self._directory / f"{peer}.toml").open("a") as file:
                file.write("\n" + self._neighbour(peer, name) + "\n")
            self._running[peer].send_signal(signal.SIGHUP)
        self.start(name, is_awaited=False)

    @property
    def processes(self) -> dict[str, int]:
        """Ids of the processes of brokers that run."""
        return {name: process.pid for name, process in self._running.items()}

    def is_up(self, name: str) -> bool:
        """Whether it is ready, since it was started."""
        try:
            return not read_control(self._directory / name).is_starting
        except UnavailableError:
            return False

    def kill(self, name: str) -> None:
        """As a failure of power would."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def end(self, name: str) -> int:
        """Gracefully, as whatever runs services ends one; its exit code."""
        process = self._running.pop(name)
        process.terminate()
        return process.wait()

    def back_up(self, name: str, path: Path) -> None:
        """Copies what one keeps to a file, whether it runs or not."""
        self._operate("backup", self._directory / name, path)

    def restore(self, name: str, path: Path) -> None:
        """Puts a copy into the place of what one kept that does not run and has lost its disk."""
        self._operate("restore", path, self._directory / name)

    def _operate(self, command: str, *arguments: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "pathcast", "broker", command, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def lose_disk(self, name: str) -> None:
        """Of one that does not run."""
        shutil.rmtree(self._directory / name)

    def stop(self) -> None:
        """Kills all."""
        for name in list(self._running):
            self.kill(name)
