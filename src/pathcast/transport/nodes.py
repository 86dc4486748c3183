"""The nodes of a network or ring, and how each of them is called.

Commands speak to nodes through `Nodes`, wherever the addresses come from: the directory of
processes on this machine (`local_processes`), or a context and options (`RemoteNodes`).

Example:
    >>> from pathcast.transport.broker_requests import CODEC
    >>> nodes = RemoteNodes({"bern": Address("bern", "10.0.0.7:7400", "hers")}, "ann", CODEC)
    >>> async def subscriptions() -> int:
    ...     async with nodes.operator("bern") as client:
    ...         return (await client.status())["node"]["subscriptions"]
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pathcast.errors import ConfigError, UnavailableError
from pathcast.transport.client import BrokerClient
from pathcast.transport.frames import Codec
from pathcast.transport.grpc_streams import Address


class Nodes(ABC):
    """Nodes that speak one protocol, by name.

    Attributes:
        ABSENT: Says of a node that gives no answer why that may be.
    """

    ABSENT: ClassVar[str] = "cannot be reached, or is starting"

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of the nodes, in the order in which they are listed."""

    @abstractmethod
    def client(self, name: str, client: str) -> BrokerClient:
        """A client of a node, to be entered.

        Args:
            name: Of the node.
            client: Name of the caller.

        Raises:
            ConfigError: There is no node of that name.
            UnavailableError: The node is known not to run.
        """

    @abstractmethod
    def operator(self, name: str) -> BrokerClient:
        """A client of a node whose calls need the role operate; raises as `client`."""

    def check_name(self, name: str) -> None:
        """Refuses a name that no node has.

        Raises:
            ConfigError: It is none.
        """
        if name not in self.names:
            reason = f"no node has this name; there are {', '.join(self.names)}"
            raise ConfigError("config.invalid", key=name, reason=reason)

    def chosen(self, name: str | None) -> str:
        """The node of that name; without a name, the only one.

        Raises:
            ConfigError: There is no such node, or several and no name.
        """
        if name is None:
            if len(self.names) != 1:
                reason = f"say which node is asked; there are {', '.join(self.names)}"
                raise ConfigError("config.invalid", key="--at", reason=reason)
            return self.names[0]
        self.check_name(name)
        return name

    async def statuses(
        self, names: Sequence[str] | None = None
    ) -> dict[str, dict[str, Any] | None]:
        """Name -> what the node says of itself; None: it cannot be reached, or is starting.

        Args:
            names: Of the nodes that are asked; all when not given.

        Raises:
            PeerRefusedError: A node does not let the caller operate.
        """
        asked = self.names if names is None else names
        found = await asyncio.gather(*(self._status(name) for name in asked))
        return dict(zip(asked, found, strict=True))

    async def _status(self, name: str) -> dict[str, Any] | None:
        try:
            async with self.operator(name) as client:
                status = await client.status()
                return None if "starting" in status else status
        except UnavailableError:
            return None


class RemoteNodes(Nodes):
    """Nodes that somebody else started.

    Args:
        addresses: Name of each node -> where and how it is called.
        caller: Name of whoever calls.
        codec: Of the protocol.
    """

    def __init__(self, addresses: Mapping[str, Address], caller: str, codec: Codec) -> None:
        self._addresses = addresses
        self._caller = caller
        self._codec = codec

    @property
    def names(self) -> Sequence[str]:
        """Names of the nodes, as the context lists them."""
        return list(self._addresses)

    def client(self, name: str, client: str) -> BrokerClient:
        """A client of a node; raises ConfigError where no node has the name."""
        self.check_name(name)
        return BrokerClient(client, self._addresses[name], self._codec)

    def operator(self, name: str) -> BrokerClient:
        """A client of a node, of which the node has to say that it may operate."""
        return self.client(name, self._caller)
