"""Processes of nodes on this machine, one for each file of settings of a directory.

A directory holds for each node NAME its settings `NAME.toml`, what it keeps `NAME/`, and what it
said `NAME.log`. Processes outlive the command that started them.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from pathcast.errors import ConfigError, UnavailableError
from pathcast.overlay.deliveries import OPERATOR
from pathcast.transport.client import BrokerClient
from pathcast.transport.database_file import make_private
from pathcast.transport.forked_start import start_forked
from pathcast.transport.frames import Codec
from pathcast.transport.grpc_streams import Address
from pathcast.transport.nodes import Nodes
from pathcast.transport.process import Control, operator_of, read_control

START_SECONDS: Final = 30.0
START_EACH_SECONDS: Final = 2.0
STOP_SECONDS: Final = 10.0

PORTS: Final = range(10_000, 32_768)
"""Below those that Linux (from 32768) and others (from 49152) take for outgoing connections."""


class LocalProcesses(Nodes):
    """The processes of a directory.

    Args:
        directory: With the settings of each.

    Attributes:
        COMMAND: Of `pathcast`, that runs one of them.
        MODULES: What that imports, which all have in common.
        CODEC: Of their protocol.
        BEGUN_BY: What makes such a directory, for who names another.
        HEALED_BY: What starts those that do not run.
    """

    ABSENT = "does not run, or is starting"
    COMMAND: ClassVar[tuple[str, ...]]
    MODULES: ClassVar[tuple[str, ...]]
    CODEC: ClassVar[Codec]
    BEGUN_BY: ClassVar[str]
    HEALED_BY: ClassVar[str]

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def prepared(cls, directory: Path) -> None:
        """Makes the directory.

        Raises:
            ConfigError: There are settings in it.
        """
        if any(directory.glob("*.toml")):
            reason = (
                f"{directory} holds one already: {cls.HEALED_BY} starts what does not run of it; "
                "to begin anew, end what runs there and take it away"
            )
            raise ConfigError("config.invalid", key="directory", reason=reason)
        make_private(directory)

    @property
    def names(self) -> list[str]:
        """Names of its nodes, sorted.

        Raises:
            ConfigError: Nothing is in the directory.
        """
        found = sorted(path.stem for path in self.directory.glob("*.toml"))
        if not found:
            reason = f"nothing is in {self.directory}; {self.BEGUN_BY} begins it"
            raise ConfigError("config.invalid", key="--directory", reason=reason)
        return found

    def is_running(self, name: str) -> bool:
        """Whether a node's process is there."""
        try:
            return _is_there(read_control(self.directory / name).process)
        except UnavailableError:
            return False

    def start(self, names: Sequence[str], *, are_new: bool = False) -> None:
        """Starts those that do not run, and waits until they are ready.

        If one does not, those that listen go on, and no other is left behind.

        Args:
            names: Which.
            are_new: Whether they begin for the first time, with nothing that they have kept.

        Raises:
            UnavailableError: One ended at once, or took too long; it says what it said.
        """
        gone = [name for name in names if not self.is_running(name)]
        started = self._begin(gone, ["--new"] if are_new else [])
        until = time.monotonic() + START_SECONDS + len(started) * START_EACH_SECONDS
        try:
            for name, process in started.items():
                self._await(name, process, until)
        except BaseException:
            for name, process in started.items():
                if not self._listens(name, process):
                    _signal(process, signal.SIGKILL)
            raise

    def _await(self, name: str, process: int, until: float) -> None:
        while not self._listens(name, process):
            if not _is_there(process) or time.monotonic() > until:
                log = (self.directory / f"{name}.log").read_text(errors="replace")
                reason = f"it did not start: {log[-400:].strip()}"
                raise UnavailableError("peer.unreachable", name=name, reason=reason)
            time.sleep(0.02)

    def stop(self, names: Sequence[str]) -> None:
        """Ends nodes gracefully, or by force those that take too long."""
        processes = [self._process(name) for name in names]
        for process in processes:
            _signal(process, signal.SIGTERM)
        until = time.monotonic() + STOP_SECONDS
        for process in processes:
            while process is not None and _is_there(process):
                if time.monotonic() > until:
                    _signal(process, signal.SIGKILL)
                time.sleep(0.02)

    def kill(self, name: str) -> None:
        """Ends a node as a failure of power would.

        Raises:
            ConfigError: There is none of that name.
            UnavailableError: It does not run.
        """
        process = self._control(name).process
        _signal(process, signal.SIGKILL)
        while _is_there(process):
            time.sleep(0.01)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to a node, if it runs."""
        _signal(self._process(name), number)

    def operator(self, name: str) -> BrokerClient:
        """A client of a node for its operator.

        Raises:
            ConfigError: There is none of that name.
            UnavailableError: It does not run.
        """
        self._control(name)
        return operator_of(self.directory / name, self.CODEC)

    def client(self, name: str, client: str) -> BrokerClient:
        """A client of a node that its settings name, without a token; or its operator.

        Raises:
            ConfigError: There is no node of that name.
            UnavailableError: It does not run.
        """
        if client == OPERATOR:
            return self.operator(name)
        return BrokerClient(client, Address(name, self._control(name).listen), self.CODEC)

    def _begin(self, names: Sequence[str], options: Sequence[str]) -> dict[str, int]:
        """Starts processes that outlive this one; their ids."""
        command = [*self.COMMAND, *options]
        return start_forked(self.directory, command, self.MODULES, names) if names else {}

    def _listens(self, name: str, process: int) -> bool:
        try:
            control = read_control(self.directory / name)
            return control.process == process and not control.is_starting
        except UnavailableError:
            return False

    def _control(self, name: str) -> Control:
        self.check_name(name)
        if not self.is_running(name):
            reason = f"it does not run; {self.HEALED_BY} starts it"
            raise UnavailableError("peer.unreachable", name=name, reason=reason)
        return read_control(self.directory / name)

    def _process(self, name: str) -> int | None:
        return read_control(self.directory / name).process if self.is_running(name) else None


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody has now, and none that a system gives to who calls somebody.

    Raises:
        UnavailableError: There are not so many.
    """
    found: list[int] = []
    # Others look for some at the same time, so nobody begins at the first.
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            return found
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    reason = f"there are no {count:,} free ports of {PORTS.start:,} to {PORTS.stop - 1:,}"
    raise UnavailableError("peer.unreachable", name="127.0.0.1", reason=reason)


def _is_there(process: int) -> bool:
    """Whether it runs; one that has ended, and that nobody has asked about, is none."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # Where there is no /proc, init asks at once about those whose parent has ended, as theirs has.
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return True


def _signal(process: int | None, number: signal.Signals) -> None:
    if process is not None:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return
