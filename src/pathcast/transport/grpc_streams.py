"""Frames over gRPC: channels, streams of either end, and errors that keep their type on the way.

gRPC's generic handlers carry bytes, which `frames` reads; there is no generated code. An error of
the catalogue travels as its code and parameters; what a stranger sends as an error is only taken
for one if the catalogue has it, and is cut to a few hundred characters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, cast

import grpc
import grpc.aio
import msgspec

from pathcast.errors import (
    CATALOGUE,
    ConfigError,
    FrameError,
    Param,
    PathcastError,
    PeerRefusedError,
    UnavailableError,
    error_for,
)
from pathcast.transport.frames import FRAME_BYTES_MAX
from pathcast.transport.security import Certificates, check_plain, introduction

SERVICE: Final = "pathcast.Broker"
FRAMES: Final = f"/{SERVICE}/Frames"

CONNECT_SECONDS: Final = 5.0
"""How long a connection may take to come about: hellos of TCP, TLS and HTTP/2, one after the other,
over a link that may be slow or long."""

STREAMS_MAX: Final = 2048
"""Calls that one connection may have; a caller's gRPC lets further ones wait."""

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", FRAME_BYTES_MAX),
    ("grpc.max_send_message_length", FRAME_BYTES_MAX),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
    # A broker that was busy finds several pings at once, which is no attack.
    ("grpc.http2.max_ping_strikes", 0),
    # Two processes on one port would each get half of the connections.
    ("grpc.so_reuseport", 0),
    # A channel that is closed takes its connection along.
    ("grpc.use_local_subchannel_pool", 1),
    # A neighbour that comes back is found within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)

_STATUS: Final = {
    FrameError: grpc.StatusCode.INVALID_ARGUMENT,
    PeerRefusedError: grpc.StatusCode.PERMISSION_DENIED,
    UnavailableError: grpc.StatusCode.UNAVAILABLE,
}

_DETAILS_MAX: Final = 4096

_NO_NAME: Final = "nothing of the name of {target} is known; correct the address"
_WHY_NOT: Final[dict[bool, dict[str, str]]] = {
    True: {
        "Hostname Verification": "the certificate shown at {target} is not made out to {name}; "
        "correct the name or the address",
        "CERTIFICATE_VERIFY_FAILED": "the certificate shown at {target} is not signed by the "
        "authority that is given here, or not valid now",
        "WRONG_VERSION_NUMBER": "plain text is spoken at {target}; leave out the certificates",
        "Socket closed": "{target} closed the connection; its authority has to sign the "
        "certificate that is given here, which has to be valid now",
        "resol": _NO_NAME,
    },
    False: {
        "Socket closed": "{target} closed the connection, as one does that wants certificates; "
        "give certificate, key and authority",
        "resol": _NO_NAME,
    },
}
"""With certificates or without: part of the words of gRPC -> why there is no connection."""

_ENDS: Final = (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE)
"""The states in which an attempt to connect ends."""


class _Details(msgspec.Struct, forbid_unknown_fields=True):
    code: str
    params: dict[str, str | int | float | None]


_DETAILS: Final = msgspec.json.Decoder(_Details)


def status_of(error: PathcastError) -> tuple[Any, str]:
    """GRPC's status code and details for an error."""
    status = _STATUS.get(type(error), grpc.StatusCode.FAILED_PRECONDITION)
    # Details are a header of HTTP, which has to be ASCII.
    params = {key: _plain(value) for key, value in error.params.items()}
    return status, msgspec.json.encode(_Details(error.code, params)).decode()


def _plain(value: Param) -> Param:
    if isinstance(value, str):
        return value[:400].encode("ascii", "backslashreplace").decode()
    return value


def error_from(name: str, details: str) -> PathcastError:
    """The error of a call to `name` that failed with these details."""
    try:
        given = _DETAILS.decode(details[:_DETAILS_MAX])
        if given.code in CATALOGUE:
            return error_for(given.code, given.params)
    except msgspec.DecodeError:
        pass
    return UnavailableError("peer.unreachable", name=name, reason=details[:400])


@dataclass(frozen=True)
class Address:
    """Where somebody is, and how to speak to it.

    Attributes:
        name: Name that its certificate has to show.
        target: HOST:PORT or unix:PATH.
        token: Ours, as it knows it.
        certificates: Ours; None for plain text.
        allow_plain: Whether plain text may leave this machine.
    """

    name: str
    target: str
    token: str | None = None
    certificates: Certificates | None = None
    allow_plain: bool = False

    def channel(self) -> Any:
        """A channel, not yet connected.

        Raises:
            ConfigError: Plain text to where it must not go; a certificate cannot be read.
        """
        if self.certificates is None:
            check_plain(self.target, allow_plain=self.allow_plain)
            return grpc.aio.insecure_channel(self.target, options=_caller_options())
        options = (*_caller_options(), ("grpc.ssl_target_name_override", self.name))
        return grpc.aio.secure_channel(self.target, self.certificates.of_caller(), options=options)


class ClientStream:
    """The end that called.

    A call that is ended while it is written to has told why by then; gRPC forgets that when the
    write fails (grpc/grpc#36066), and it is kept here.
    """

    def __init__(self, name: str, channel: Any, call: Any) -> None:
        self._name = name
        self._channel = channel
        self._call = call
        self._told: str | None = None
        call.add_done_callback(self._ended)

    def _ended(self, call: Any) -> None:
        self._told = _at_once(call.details())

    async def send(self, data: bytes) -> None:
        """Writes one frame.

        Raises:
            PathcastError: What the other end said that was wrong, or that the connection is lost.
        """
        try:
            await self._call.write(data)
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError) as error:
            raise error_from(self._name, self._told or str(error)) from error

    async def receive(self) -> bytes | None:
        """Reads one frame.

        Raises:
            PathcastError: What the other end said that was wrong, or that the connection is lost.
        """
        try:
            data = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise error_from(self._name, self._told or error.details() or "") from error
        if data is grpc.aio.EOF:
            return None
        assert isinstance(data, bytes)
        return data

    async def close(self, error: PathcastError | None = None) -> None:
        """Ends the call, and the channel with it."""
        self._call.cancel()
        await self._channel.close()


class ServerStream:
    """The end that was called; its handler ends the call."""

    def __init__(self, name: str, context: Any) -> None:
        self._name = name
        self._context = context

    async def send(self, data: bytes) -> None:
        """Writes one frame.

        Raises:
            UnavailableError: The connection is lost.
        """
        try:
            await self._context.write(data)
        except (grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError) as error:
            raise UnavailableError(
                "peer.unreachable", name=self._name, reason=str(error)
            ) from error

    async def receive(self) -> bytes | None:
        """Reads one frame."""
        try:
            data = await self._context.read()
        except (grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError) as error:
            raise UnavailableError(
                "peer.unreachable", name=self._name, reason=str(error)
            ) from error
        if data is grpc.aio.EOF:
            return None
        assert isinstance(data, bytes)
        return data

    async def close(self, error: PathcastError | None = None) -> None:
        """Nothing: the handler returns or aborts."""


def _at_once(told: Coroutine[Any, Any, str | None]) -> str | None:
    """Return the result of a coroutine that never waits."""
    try:
        told.send(None)
    except StopIteration as end:
        return cast("str | None", end.value)
    told.close()
    return None


async def connected(channel: Any, address: Address) -> None:
    """Returns when a channel has its connection; closes it if there is none.

    Raises:
        UnavailableError: Nobody is there, which is said at once, or nobody answers, or one end does
            not take the other's certificate.
    """
    state = channel.get_state(try_to_connect=True)
    reason = ""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            while state not in _ENDS:
                await channel.wait_for_state_change(state)
                state = channel.get_state(try_to_connect=True)
            if state is not grpc.ChannelConnectivity.READY:
                reason = await _why_not(channel, address)
    except BaseException as error:
        await channel.close()
        if not isinstance(error, TimeoutError):
            raise
    if state is not grpc.ChannelConnectivity.READY:
        await channel.close()
        reason = reason or f"nobody answers at {address.target}"
        raise UnavailableError("peer.unreachable", name=address.name, reason=reason)


async def _why_not(channel: Any, address: Address) -> str:
    """Why a channel that has just failed has no connection: only a call is told of it.

    Where there is one meanwhile, the call is refused, since nobody offers such a method.
    """
    try:
        await channel.unary_unary(f"/{SERVICE}/Reach")(b"", timeout=CONNECT_SECONDS)
    except grpc.aio.AioRpcError as error:
        told = error.details() or ""
        for part, reason in _WHY_NOT[address.certificates is not None].items():
            if part in told:
                return reason.format(name=address.name, target=address.target)
    return ""


async def open_stream(name: str, address: Address, method: str = FRAMES) -> ClientStream:
    """Calls a broker.

    Args:
        name: Who calls.
        address: Who is called.
        method: What for.

    Raises:
        UnavailableError: Nobody answers.
        PeerRefusedError: The settings do not let plain text go there.
    """
    try:
        channel = address.channel()
    except ConfigError as error:
        raise PeerRefusedError("peer.refused", name=address.name, reason=str(error)) from error
    await connected(channel, address)
    call = channel.stream_stream(method)(metadata=introduction(name, address.token))
    return ClientStream(address.name, channel, call)


def _caller_options() -> tuple[tuple[str, int], ...]:
    # Not what its name says: after so long an attempt to connect is given up.
    return (*_OPTIONS, ("grpc.min_reconnect_backoff_ms", int(1000 * CONNECT_SECONDS)))


def server_options(connections_max: int) -> tuple[tuple[str, int], ...]:
    """Options of a listener.

    Args:
        connections_max: Connections that it takes; further ones are closed at once.
    """
    return (
        *_OPTIONS,
        ("grpc.max_allowed_incoming_connections", connections_max),
        ("grpc.max_concurrent_streams", STREAMS_MAX),
        # A caller that does not speak TLS and HTTP/2 by then is none.
        ("grpc.server_handshake_timeout_ms", int(1000 * CONNECT_SECONDS)),
        ("grpc.http2.settings_timeout", int(1000 * CONNECT_SECONDS)),
    )
