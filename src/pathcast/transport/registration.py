"""The messages of the registration service over gRPC: who may send which, and how they are called.

| method | who | what |
|---|---|---|
| Ask | by message | a request in, its answer out |

A node of the service offers it to sources, users and brokers; a broker that takes its profiles from
the service offers it to sources, users and the service. The caller is the sender, by the name that
its certificate or token proves; so a profile belongs to the name that registered it.

Source: 001, 3.1 and Figure 3; Figure 10 for the flows (catalog and query packets).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from pathcast.overlay.registration_messages import (
    Answer,
    ChangeInterest,
    Complete,
    DeleteInterest,
    HostKnows,
    Locate,
    RegisterInterest,
    RegisterSource,
    RootKnows,
    TellHost,
    TellRoot,
    UpdateSource,
)
from pathcast.transport.client import BrokerClient
from pathcast.transport.frames import Codec, Flow
from pathcast.transport.grpc_streams import Address
from pathcast.transport.requests import Requests
from pathcast.transport.security import Role

METHODS: Final = "pathcast.Registration"
"""Name of the gRPC service."""

CALL_SECONDS: Final = 5.0
"""How long an answer is waited for; what was asked for is asked again anyway."""

SERVICE_ROLES: Final[Mapping[type, Role | None]] = {
    RegisterSource: "publish",
    RegisterInterest: "subscribe",
    Locate: None,
    Complete: "subscribe",
}
"""Requests that a node of the service takes."""

BROKER_ROLES: Final[Mapping[type, Role | None]] = {
    UpdateSource: "publish",
    ChangeInterest: "subscribe",
    DeleteInterest: "subscribe",
    TellRoot: "register",
    TellHost: "register",
}
"""Requests that a broker takes."""

_ANSWERS: Final = (RootKnows, HostKnows, *Answer.__args__)
_CATALOG: Final = RegisterSource | UpdateSource | TellRoot | RootKnows
_QUERY: Final = RegisterInterest | ChangeInterest | DeleteInterest | TellHost | HostKnows


def _flow(message: object) -> Flow:
    if isinstance(message, _CATALOG):
        return Flow.CATALOG
    return Flow.QUERY if isinstance(message, _QUERY) else Flow.CONTROL


CODEC: Final = Codec((*SERVICE_ROLES, *BROKER_ROLES, *_ANSWERS), _flow)


def key_of(message: object) -> object:
    """The value that a request and its answer share: its name, or the record of a broker."""
    match message:
        case TellRoot(source):
            return "source", source.id
        case TellHost(profile):
            return "profile", profile.id
        case RootKnows(id):
            return "source", id
        case HostKnows(id):
            return "profile", id
    return getattr(message, "request", None)


class Callers:
    """Calls of one node or client to others, over connections that are kept.

    Args:
        name: Name of the caller.
        address: Gives the address of a node by its HOST:PORT.
    """

    def __init__(self, name: str, address: Callable[[str], Address]) -> None:
        self._name = name
        self._address = address
        self._clients: dict[Address, BrokerClient] = {}

    async def call(self, to: str, message: object) -> object:
        """Sends a request, and gives the answer.

        Raises:
            PathcastError: It was refused, or there was no answer.
        """
        address = self._address(to)
        if address not in self._clients:
            self._clients[address] = BrokerClient(self._name, address, CODEC, METHODS)
            self._clients[address].open()
        return await self._clients[address].ask(message, CALL_SECONDS)

    async def close(self) -> None:
        """Ends the connections."""
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(client.close() for client in clients))

    def requests(self) -> Requests:
        """The requests of a node that calls brokers so."""
        return Requests(self._name, key_of, (TellRoot, TellHost), self.call)
