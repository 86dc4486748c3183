"""A network of broker processes on this machine: for trying out, demonstrations and tests.

A directory holds `topology.toml`, and for each broker NAME its settings `NAME.toml`, what it keeps
`NAME/`, and what it said `NAME.log`. Processes outlive the command that started them.

It is no way to run a network of machines: there each broker is its own service.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, Field, model_validator

from pathcast.errors import ConfigError, UnavailableError
from pathcast.settings import FROZEN, FileSettings, read_settings
from pathcast.transport.broker import CODEC, Explain, Explained
from pathcast.transport.client import BrokerClient
from pathcast.transport.process import operator_of, read_control
from pathcast.transport.settings import load_settings

START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 10.0


class NetworkSection(BaseModel):
    """Which brokers there are, and which of them are neighbours."""

    model_config = FROZEN

    directory: Path = Field(
        default=Path("network"), description="Directory of all that the brokers keep."
    )
    links: tuple[tuple[str, str], ...] = Field(
        min_length=1, description="Pairs of brokers that are neighbours."
    )
    clients: tuple[str, ...] = Field(
        default=(), description="Clients that may publish and subscribe at each broker."
    )
    projection: bool = Field(
        default=True,
        description="Whether messages are cut down to what is of use behind a link.",
    )

    @property
    def brokers(self) -> list[str]:
        """Names of all, sorted."""
        return sorted({name for link in self.links for name in link})


class Topology(FileSettings):
    """Everything that `pathcast net up` can be told."""

    network: NetworkSection = Field(description="Brokers and who is next to whom.")

    @model_validator(mode="after")
    def _check_names(self) -> Topology:
        for name in self.network.brokers:
            if not name.isidentifier():
                raise ValueError(f"{name!r} cannot name a broker here: letters, digits and _")
        for one, other in self.network.links:
            if one == other:
                raise ValueError(f"{one} cannot be its own neighbour")
        return self


def load_topology(path: str | os.PathLike[str]) -> Topology:
    """Read a file of a network.

    Raises:
        ConfigError: It cannot be read, or what it says cannot be used.
    """
    return read_settings(Topology, path)


class LocalNetwork:
    """The broker processes of a directory.

    Args:
        directory: Made by `write`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def write(cls, topology: Topology) -> LocalNetwork:
        """Writes the settings of all brokers, with ports that are free now.

        Raises:
            ConfigError: There is a network in the directory.
        """
        section = topology.network
        directory = section.directory
        if any(directory.glob("*.toml")):
            reason = f"there is a network in {directory}; pathcast net down, then take it away"
            raise ConfigError("config.invalid", key="network.directory", reason=reason)
        directory.mkdir(parents=True, exist_ok=True)
        ports = dict(zip(section.brokers, _free_ports(len(section.brokers)), strict=True))
        for name in section.brokers:
            (directory / f"{name}.toml").write_text(_settings(name, section, ports))
        return cls(directory)

    @property
    def names(self) -> list[str]:
        """Names of its brokers, sorted.

        Raises:
            ConfigError: There is no network in the directory.
        """
        found = sorted(path.stem for path in self.directory.glob("*.toml"))
        if not found:
            reason = f"there is no network in {self.directory}; pathcast net up TOPOLOGY begins one"
            raise ConfigError("config.invalid", key="--directory", reason=reason)
        return found

    def is_running(self, name: str) -> bool:
        """Whether a broker's process is there."""
        try:
            os.kill(read_control(self.directory / name).process, 0)
        except (UnavailableError, ProcessLookupError):
            return False
        return True

    def start(self, names: Sequence[str]) -> None:
        """Starts those brokers that do not run, and waits until they listen.

        Raises:
            UnavailableError: One ended at once, or took too long; it says what it said.
        """
        started = {name: self._begin(name) for name in names if not self.is_running(name)}
        until = time.monotonic() + START_SECONDS
        for name, process in started.items():
            while not self._listens(name, process):
                if not _is_there(process) or time.monotonic() > until:
                    log = (self.directory / f"{name}.log").read_text(errors="replace")
                    reason = f"it did not start: {log[-400:].strip()}"
                    raise UnavailableError("peer.unreachable", name=name, reason=reason)
                time.sleep(0.02)

    def stop(self, names: Sequence[str]) -> None:
        """Ends brokers gracefully, or by force those that take too long."""
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
        """Ends a broker as a failure of power would.

        Raises:
            UnavailableError: It does not run.
        """
        process = read_control(self.directory / name).process
        _signal(process, signal.SIGKILL)
        while _is_there(process):
            time.sleep(0.01)

    def operator(self, name: str) -> BrokerClient:
        """A client of a broker for its operator.

        Raises:
            UnavailableError: It does not run.
        """
        return operator_of(self.directory / name, CODEC)

    @property
    def links(self) -> list[tuple[str, str]]:
        """Pairs of brokers that are neighbours, the one that calls first."""
        return [
            (name, peer)
            for name in self.names
            for peer in load_settings(self.directory / f"{name}.toml").addresses
        ]

    async def statuses(self) -> dict[str, dict[str, Any] | None]:
        """What each broker says of itself; None where none runs."""
        found = await asyncio.gather(*(self._status(name) for name in self.names))
        return dict(zip(self.names, found, strict=True))

    async def _status(self, name: str) -> dict[str, Any] | None:
        if not self.is_running(name):
            return None
        try:
            async with self.operator(name) as client:
                return await client.status()
        except UnavailableError:
            return None

    def _begin(self, name: str) -> int:
        """Starts a process that outlives this one; its id."""
        log = str((self.directory / f"{name}.log").absolute())
        settings = str((self.directory / f"{name}.toml").absolute())
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "pathcast", "broker", "run", settings],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )

    def _listens(self, name: str, process: int) -> bool:
        try:
            return read_control(self.directory / name).process == process
        except UnavailableError:
            return False

    def _process(self, name: str) -> int | None:
        return read_control(self.directory / name).process if self.is_running(name) else None


class Hop(NamedTuple):
    """A broker on the way of a message.

    Attributes:
        broker: Which.
        sender: The broker that it would come from; empty where it is published.
        depth: Hops from there.
        neighbours: Neighbours that it would be sent to.
        subscriptions: Subscriptions here that it satisfies.
    """

    broker: str
    sender: str
    depth: int
    neighbours: tuple[str, ...]
    subscriptions: tuple[str, ...]


async def traced(network: LocalNetwork, broker: str, body: bytes) -> list[Hop]:
    """The way that a message would go by the tables as they are, depth first.

    Args:
        network: Which.
        broker: Where it would be published.
        body: The message.

    Raises:
        UnavailableError: A broker on the way does not run.
    """
    hops: list[Hop] = []
    waiting = [(broker, "", 0)]
    while waiting:
        name, sender, depth = waiting.pop()
        async with network.operator(name) as client:
            told = await client.ask(Explain(body))
        assert isinstance(told, Explained)
        onward = tuple(each for each in told.neighbours if each != sender)
        hops.append(Hop(name, sender, depth, onward, told.subscriptions))
        # Tables that are being changed may point in a circle; a broker is visited once.
        known = {hop.broker for hop in hops}
        waiting += [(each, name, depth + 1) for each in reversed(onward) if each not in known]
    return hops


def _is_there(process: int) -> bool:
    try:
        # Of a child that has ended, the entry is taken away; of others init does that.
        if os.waitpid(process, os.WNOHANG)[0] == process:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _signal(process: int | None, number: signal.Signals) -> None:
    if process is not None:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return


def _settings(name: str, section: NetworkSection, ports: Mapping[str, int]) -> str:
    """`NAME.toml`: of two neighbours, the one with the smaller name calls."""
    others = [each for each in section.brokers if each != name]
    neighbours = sorted(
        {other for link in section.links if name in link for other in link if other != name}
    )
    parts = [
        f'[broker]\nname = "{name}"\ndirectory = "{name}"\nlisten = "127.0.0.1:{ports[name]}"\n'
        f"members = [{', '.join(f'{each!r}' for each in others)}]\n"
        f"projection = {str(section.projection).lower()}\n"
    ]
    for each in neighbours:
        address = f'address = "127.0.0.1:{ports[each]}"\n' if name < each else ""
        parts.append(f'[[neighbours]]\nname = "{each}"\n{address}')
    parts += [f"[[clients]]\nname = {client!r}\n" for client in section.clients]
    return "\n".join(parts)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
