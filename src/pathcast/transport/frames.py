"""Frames: what travels between two brokers, and how bytes that somebody else sent are read.

A frame holds many packets, a packet one message of the protocol, and says which of the four flows
it belongs to. Everything is MessagePack, decoded into types: bytes that are no frame, a field of
another type, a name that is too long are a `FrameError` that says where, and nothing of them has
reached a node.

Example:
    >>> class Ping(msgspec.Struct, frozen=True, tag=True):
    ...     number: int
    >>> codec = Codec([Ping])
    >>> packet = codec.packet(Ping(7))
    >>> frame = decode_frame(encode_frame(PacketFrame((packet,), credit=1)), "b")
    >>> codec.message(frame.packets[0], "b")
    Ping(number=7)
    >>> decode_frame(b"GET / HTTP/1.1", "b")
    Traceback (most recent call last):
    ...
    pathcast.errors.FrameError: b sent what is no frame: Expected `array`, got `int`

Source: ONYX (VLDB 2004), section 5: the packet listener and its four flows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Annotated, Any, Final, Generic, TypeVar, Union

import msgspec

from pathcast.errors import FrameError, PeerError
from pathcast.protocol import grouped

T = TypeVar("T")

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of one frame that are taken; a message of a node has to fit into one."""

FRAME_BYTES: Final = 256 * 1024
"""Bytes of packets after which a sender begins another frame, so that no frame waits for long."""

FRAME_PACKETS: Final = 1024
"""Packets of one frame."""

CREDIT_MAX: Final = 2**53

Name = Annotated[str, msgspec.Meta(max_length=256)]
Count = Annotated[int, msgspec.Meta(ge=0, le=CREDIT_MAX)]


class Flow(IntEnum):
    """The four flows of a broker. The first three go before messages, and are never held back."""

    CONTROL = 0
    QUERY = 1
    CATALOG = 2
    MESSAGE = 3


class Packet(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message of the protocol, encoded.

    Attributes:
        flow: What it is about, so that a listener can tell without reading the body. What else the
            paper's header has (root, source, message id, format, dictionary version, trace) is in
            the messages that carry messages, which no carrier looks into.
        body: The message.
    """

    flow: Flow
    body: bytes


class PacketFrame(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Packets that travel together.

    Attributes:
        packets: In the order in which they were sent.
        credit: Packets of the flow MESSAGE that whoever sent this frame takes, counted from the
            beginning of the connection.
    """

    packets: Annotated[tuple[Packet, ...], msgspec.Meta(max_length=FRAME_PACKETS)]
    credit: Count


VERSION: Final = 7
"""Of the protocol between neighbours: of frames, and of what nodes say in them. It grows with every
change that the version before would read wrongly, or refuse."""


class ConnectionHello(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The first thing that either end of a connection says.

    Attributes:
        name: Its name.
        credit: As in `PacketFrame`.
        version: See `VERSION`; others are refused. In every version it is the third thing that is
            said, so that each knows another one.
    """

    name: Name
    credit: Count
    version: int = VERSION


class _AnyHello(msgspec.Struct, array_like=True):
    name: object
    credit: object
    version: int = 0  # The first protocol did not say it.


_ENCODER = msgspec.msgpack.Encoder()
_FRAMES = msgspec.msgpack.Decoder(PacketFrame)
_HELLOS = msgspec.msgpack.Decoder(ConnectionHello)
_ANY_HELLOS = msgspec.msgpack.Decoder(_AnyHello)


def in_groups(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Items in groups that fit into frames: `FRAME_BYTES` each, or one that is larger.

    Example:
        >>> [len(group) for group in in_groups([100_000, 100_000, 400_000, 1], lambda n: n)]
        [2, 1, 1]
    """
    return grouped(items, size, FRAME_BYTES, FRAME_PACKETS)


def _control(message: object) -> Flow:
    return Flow.CONTROL


class Codec:
    """Messages of a protocol to packets and back.

    Args:
        kinds: All message types of the protocol: tagged msgspec structs.
        flow: The flow of a message; all are CONTROL when not given.
    """

    def __init__(
        self,
        kinds: Sequence[type[msgspec.Struct]],
        flow: Callable[[object], Flow] = _control,
    ) -> None:
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
            Union[tuple(kinds)]  # noqa: UP007
        )
        self._flow = flow
        self._last: tuple[object, Packet] | None = None

    def packet(self, message: object) -> Packet:
        """The packet of a message; of the same object to several neighbours, once."""
        if self._last is not None and self._last[0] is message:
            return self._last[1]
        packet = Packet(self._flow(message), _ENCODER.encode(message))
        self._last = (message, packet)
        return packet

    def message(self, packet: Packet, sender: str) -> object:
        """The message of a packet.

        Raises:
            FrameError: The body is none, or its flow is not the one that it has.
        """
        message = decode(self._decoder, packet.body, sender)
        # Credit and priority go by the flow: one that lies would take what is not its own.
        if self._flow(message) != packet.flow:
            raise FrameError("frame.flow", peer=sender, flow=packet.flow.name)
        return message


def encode_frame(frame: PacketFrame | ConnectionHello) -> bytes:
    """The bytes of a frame or a hello."""
    return _ENCODER.encode(frame)


def decode(decoder: msgspec.msgpack.Decoder[T], data: bytes, sender: str) -> T:
    """Decode bytes that anybody may have sent.

    Raises:
        FrameError: They are not what the decoder reads; the message says where they stop being it.
    """
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError("frame.unreadable", peer=sender, reason=str(error)) from error


class EntryDecoder(Generic[T]):
    """Reads the entries of an inbox.

    Args:
        decoder: Of what a process of this version puts there.
    """

    def __init__(self, decoder: msgspec.msgpack.Decoder[T]) -> None:
        self._decoder = decoder

    def decode(self, body: bytes) -> T:
        """The entry.

        Raises:
            PeerError: It is none of this version ("inbox.entry").
        """
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PeerError("inbox.entry", reason=str(error)) from error


def decode_frame(data: bytes, sender: str) -> PacketFrame:
    """A frame that `sender` sent.

    Raises:
        FrameError: It is none.
    """
    return decode(_FRAMES, data, sender)


def decode_hello(data: bytes, sender: str, name: str) -> ConnectionHello:
    """The first bytes of a connection.

    Args:
        data: These.
        sender: Who is expected to have sent them.
        name: Who reads them.

    Raises:
        FrameError: They are no hello, or one of another version.

    Example:
        >>> decode_hello(msgspec.msgpack.encode(["b", 10, 8, "what is new"]), "b", "a")
        Traceback (most recent call last):
        ...
        pathcast.errors.FrameError: b speaks version 8 of the protocol between neighbours, and a ...
    """
    found = decode(_ANY_HELLOS, data, sender).version
    if found != VERSION:
        older = sender if found < VERSION else name
        raise FrameError(
            "frame.version", peer=sender, found=found, name=name, expected=VERSION, older=older
        )
    return decode(_HELLOS, data, sender)
