"""A network of broker processes on this machine: for trying out, demonstrations and tests.

A directory holds `topology.toml` and what `local_processes` describes.

It is no way to run a network of machines: there each broker is its own service.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from pathcast.errors import ConfigError
from pathcast.settings import FileSettings, SettingsSection, read_settings
from pathcast.transport.broker_requests import CODEC, Explain, Explained
from pathcast.transport.local_processes import LocalProcesses, free_ports
from pathcast.transport.nodes import Nodes
from pathcast.transport.settings import BrokerSettings, LinkCost


class NetworkSection(SettingsSection):
    """Which brokers there are, and which of them are neighbours."""

    directory: Path = Path("network")
    """Directory of all that the brokers keep."""
    links: tuple[tuple[str, str] | tuple[str, str, LinkCost], ...] = Field(min_length=1)
    """Pairs of brokers that are neighbours; a third entry is what the link costs: see
    neighbours.cost of a broker."""
    clients: tuple[str, ...] = ()
    """Clients that may publish and subscribe at each broker."""
    projection: bool = True
    """Whether messages are cut down to what is of use behind a link."""

    @property
    def brokers(self) -> list[str]:
        """Names of all, sorted."""
        return sorted({name for link in self.links for name in link[:2]})

    def costs(self, broker: str) -> dict[str, int]:
        """Neighbours of a broker, by name, and what the links cost."""
        found = {}
        for one, other, *cost in self.links:
            if broker in (one, other):
                found[other if one == broker else one] = cost[0] if cost else 1
        return dict(sorted(found.items()))


class Topology(FileSettings):
    """Everything that `pathcast net up` can be told."""

    network: NetworkSection
    """Brokers and who is next to whom."""

    @model_validator(mode="after")
    def _check_names(self) -> Topology:
        for name in self.network.brokers:
            if not name.isidentifier():
                raise ValueError(f"{name!r} cannot name a broker here: letters, digits and _")
        for one, other, *_ in self.network.links:
            if one == other:
                raise ValueError(f"{one} cannot be its own neighbour")
        return self


def load_topology(path: str | os.PathLike[str]) -> Topology:
    """Read a file of a network.

    Raises:
        ConfigError: It cannot be read, or what it says cannot be used.
    """
    return read_settings(Topology, path)


class LocalNetwork(LocalProcesses):
    """The broker processes of a directory, which `write` made."""

    COMMAND = ("broker", "run")
    MODULES = ("pathcast.cli.app", "pathcast.transport.process", "pathcast.transport.settings")
    CODEC = CODEC
    BEGUN_BY = "pathcast net up TOPOLOGY"
    HEALED_BY = "pathcast net heal"

    @classmethod
    def write(cls, topology: Topology) -> LocalNetwork:
        """Writes the settings of all brokers, with ports that are free now.

        Raises:
            ConfigError: There is a network in the directory.
        """
        section = topology.network
        directory = section.directory
        cls.prepared(directory)
        ports = dict(zip(section.brokers, free_ports(len(section.brokers)), strict=True))
        for name in section.brokers:
            (directory / f"{name}.toml").write_text(_settings(name, section, ports))
        return cls(directory)

    def link(self, one: str, other: str) -> None:
        """Makes two brokers neighbours: in their files, and of those that run at once.

        Raises:
            ConfigError: They are neighbours, or one of them is not there.
        """
        first, second = sorted([one, other])
        for name in (first, second):
            self.check_name(name)
        called = read_settings(BrokerSettings, self.directory / f"{second}.toml")
        if first == second or first in [each.name for each in called.neighbours]:
            reason = f"{first} and {second} are neighbours, or one broker"
            raise ConfigError("config.invalid", key="link", reason=reason)
        address = f'address = "{called.broker.listen}"\n'
        for name, peer, how in ((first, second, address), (second, first, "")):
            with (self.directory / f"{name}.toml").open("a") as file:
                file.write(f'\n[[neighbours]]\nname = "{peer}"\n{how}')
        for name in (first, second):
            self.signal(name, signal.SIGHUP)

    @property
    def links(self) -> list[tuple[str, str]]:
        """Pairs of brokers that are neighbours, the one that calls first."""
        return [
            (name, peer)
            for name in self.names
            for peer in read_settings(BrokerSettings, self.directory / f"{name}.toml").addresses
        ]


class BrokerHop(NamedTuple):
    """A broker on the way of a message.

    Attributes:
        broker: Which.
        sender: The broker that it would come from; empty where it is published.
        depth: Hops from there.
        neighbours: Neighbours that it would be sent to.
        subscriptions: Subscriptions here that it satisfies.
        reasons: Entries by which the broker before sends it here, some of them.
        is_asked: Whether the broker was asked; otherwise nobody knows where it is.
    """

    broker: str
    sender: str
    depth: int
    neighbours: tuple[str, ...]
    subscriptions: tuple[str, ...]
    reasons: tuple[str, ...]
    is_asked: bool = True


async def traced(network: Nodes, broker: str, body: bytes) -> list[BrokerHop]:
    """The way that a message would go by the tables as they are, depth first.

    Args:
        network: The brokers; one that is not among them is not asked.
        broker: Where it would be published.
        body: The message.

    Raises:
        UnavailableError: A broker on the way cannot be reached.
        PeerRefusedError: It does not let the caller operate.
    """
    hops: list[BrokerHop] = []
    waiting: list[tuple[str, str, int, tuple[str, ...]]] = [(broker, "", 0, ())]
    while waiting:
        name, sender, depth, reasons = waiting.pop()
        if name not in network.names:
            hops.append(BrokerHop(name, sender, depth, (), (), reasons, is_asked=False))
            continue
        async with network.operator(name) as client:
            told = await client.ask(Explain(body))
        assert isinstance(told, Explained)
        onward = tuple(each for each in told.neighbours if each != sender)
        hops.append(BrokerHop(name, sender, depth, onward, told.subscriptions, reasons))
        # Tables that are being changed may point in a circle; a broker is visited once.
        known = {hop.broker for hop in hops}
        waiting += [
            (each, name, depth + 1, told.reasons.get(each, ()))
            for each in reversed(onward)
            if each not in known
        ]
    return hops


class BrokerVisit(NamedTuple):
    """A broker that a message came to.

    Attributes:
        broker: Which.
        depth: Hops from where it was published.
        size: Bytes that came.
        is_cut: Whether something was cut out of it before.
        steps: Restructuring steps that were done before.
    """

    broker: str
    depth: int
    size: int
    is_cut: bool
    steps: int


def way_of(message: str, statuses: Mapping[str, Mapping[str, Any] | None]) -> list[BrokerVisit]:
    """The way that a message went which was published with `trace`, depth first.

    Args:
        message: Its id; of several messages of that id each broker tells the latest.
        statuses: By broker; None: it does not run, and what came by it is not known.
    """
    came: dict[str, dict[str, Any]] = {}
    for name, status in statuses.items():
        for each in [] if status is None else status["node"]["arrivals"]:
            if each["message"] == message:
                came[name] = each
    waiting = [(name, 0) for name, each in sorted(came.items()) if each["sender"] not in came]
    way: list[BrokerVisit] = []
    while waiting:
        name, depth = waiting.pop(0)
        each = came.pop(name)
        way.append(BrokerVisit(name, depth, each["size"], each["is_cut"], each["steps"]))
        waiting[:0] = sorted(
            (other, depth + 1) for other, its in came.items() if its["sender"] == name
        )
    return way


def _settings(name: str, section: NetworkSection, ports: Mapping[str, int]) -> str:
    """`NAME.toml`: of two neighbours, the one with the smaller name calls."""
    others = [each for each in section.brokers if each != name]
    parts = [
        f'[broker]\nname = "{name}"\ndirectory = "{name}"\nlisten = "127.0.0.1:{ports[name]}"\n'
        f"members = [{', '.join(f'{each!r}' for each in others)}]\n"
        f"projection = {str(section.projection).lower()}\n"
    ]
    for each, cost in section.costs(name).items():
        how = f'address = "127.0.0.1:{ports[each]}"\n' if name < each else ""
        how += f"cost = {cost}\n" if cost != 1 else ""
        parts.append(f'[[neighbours]]\nname = "{each}"\n{how}')
    parts += [f"[[clients]]\nname = {client!r}\n" for client in section.clients]
    return "\n".join(parts)
