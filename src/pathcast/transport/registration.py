"""The messages of the registration service over gRPC: who may send which, and how they are called.

| method | who | what |
|---|---|---|
| Ask | by message | a request in, its answer out |

A node of the service offers it to sources, users and brokers; a broker that takes its profiles from
the service offers it to sources, users and the service. Whoever calls is the sender, by the name
that its certificate or token proves; so a profile belongs to the name that registered it.

Source: 001, 3.1 and Figure 3; Figure 10 for the flows (catalog and query packets).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc.aio
import msgspec

from pathcast.errors import PeerRefusedError, UnavailableError
from pathcast.overlay.registration_messages import (
    Answer,
    ChangeInterest,
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
from pathcast.transport.frames import Codec, Flow, Packet, decode
from pathcast.transport.grpc_streams import Address, error_from
from pathcast.transport.request_carrier import RequestCarrier
from pathcast.transport.security import NAME_KEY, Gate, Role, introduction
from pathcast.transport.service import ANSWER_SECONDS, GuardedMethods

METHOD: Final = "/pathcast.Registration/Ask"
CALL_SECONDS: Final = 5.0
"""How long a node waits for an answer; what it asked for is asked again anyway."""

_ROLES: Final[Mapping[type, tuple[Role, ...]]] = {
    RegisterSource: ("publish",),
    UpdateSource: ("publish",),
    RegisterInterest: ("subscribe",),
    ChangeInterest: ("subscribe",),
    DeleteInterest: ("subscribe",),
    Locate: ("publish", "subscribe"),
    TellRoot: ("register",),
    TellHost: ("register",),
}
_ANSWERS: Final = (RootKnows, HostKnows, *Answer.__args__)
_CATALOG: Final = RegisterSource | UpdateSource | TellRoot | RootKnows
_QUERY: Final = RegisterInterest | ChangeInterest | DeleteInterest | TellHost | HostKnows
_ENCODE: Final = msgspec.msgpack.Encoder().encode
_PACKETS: Final = msgspec.msgpack.Decoder(Packet)


def _flow(message: object) -> Flow:
    if isinstance(message, _CATALOG):
        return Flow.CATALOG
    return Flow.QUERY if isinstance(message, _QUERY) else Flow.CONTROL


CODEC: Final = Codec((*_ROLES, *_ANSWERS), _flow)


def is_request(message: object) -> bool:
    """Whether a message asks for something, rather than answers."""
    return type(message) in _ROLES


def key_of(message: object) -> object:
    """What a request and its answer have in common: its name, or what a broker is told of."""
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


class RegistrationMethods(GuardedMethods):
    """What a node of the service, or a broker, offers.

    Args:
        carrier: Of the node.
        gate: Who may call.
        takes: Messages that it understands; others are refused.
    """

    def __init__(self, carrier: RequestCarrier, gate: Gate, takes: Any) -> None:
        super().__init__(gate)
        self._carrier = carrier
        self._takes = takes
        self._offer_answer(METHOD, self._ask)

    async def _ask(self, data: bytes, context: Any) -> bytes:
        called = str(dict(context.invocation_metadata() or ()).get(NAME_KEY, ""))[:256]
        message = CODEC.message(decode(_PACKETS, data, called), called)
        roles = _ROLES.get(type(message), ()) if isinstance(message, self._takes) else ()
        client = self._admitted(context, roles, called, message)
        seconds = min(context.time_remaining() or ANSWER_SECONDS, ANSWER_SECONDS)
        return _ENCODE(CODEC.packet(await self._carrier.ask(client, message, seconds)))

    def _admitted(self, context: Any, roles: tuple[Role, ...], called: str, message: object) -> str:
        """The name of the caller, who has one of the roles."""
        refusal = PeerRefusedError("peer.role", name=called, role=f"send {type(message).__name__}")
        for role in roles:
            try:
                return self._admit(context, role)
            except PeerRefusedError as error:
                refusal = error
        raise refusal


class Callers:
    """Calls of one node to others, over connections that are kept.

    Args:
        name: Who calls.
        address: Of whom a node names by an address.
    """

    def __init__(self, name: str, address: Callable[[str], Address]) -> None:
        self._name = name
        self._address = address
        self._channels: dict[Address, Any] = {}

    async def call(self, to: str, message: object, seconds: float = CALL_SECONDS) -> object:
        """Sends a request, and gives the answer.

        Raises:
            PathcastError: It was refused, or there was no answer.
        """
        address = self._address(to)
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = address.channel()
        call = channel.unary_unary(METHOD)
        data = _ENCODE(CODEC.packet(message))
        metadata = introduction(self._name, address.token)
        try:
            answer = await call(data, metadata=metadata, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                name = address.name
                raise UnavailableError("peer.silent", name=name, seconds=seconds) from error
            raise error_from(address.name, error.details() or "") from error
        return CODEC.message(decode(_PACKETS, answer, address.name), address.name)

    async def close(self) -> None:
        """Ends the connections."""
        channels, self._channels = list(self._channels.values()), {}
        await asyncio.gather(*(channel.close() for channel in channels))
