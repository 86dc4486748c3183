"""One connection: two ends that send each other frames, whatever the frames go over.

Under load a frame holds whatever has been offered while the frame before it was on its way; when
nothing is under way a single packet leaves at once. Nothing waits for a frame to become full.

The flows CONTROL, QUERY and CATALOG go first and are never held back. Of the flow MESSAGE an end
sends only as many packets as the other has given *credit* for, so that a broker that has no room
for messages still hears acknowledgements, which is what gives it room again.

A queue that is full takes no more, and `offer` says so: sending is best effort, and what must
arrive is sent again by the node, from its disk.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Protocol

from pathcast.errors import FrameError, PathcastError, PeerRefusedError, UnavailableError
from pathcast.transport.frames import (
    FRAME_BYTES,
    FRAME_BYTES_MAX,
    FRAME_PACKETS,
    Codec,
    ConnectionHello,
    Flow,
    Packet,
    PacketFrame,
    decode_frame,
    decode_hello,
    encode_frame,
)

QUEUE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes that wait for one neighbour, in either queue."""

WINDOW: Final = 2048
"""Packets of the flow MESSAGE that a neighbour may send ahead."""

HELLO_SECONDS: Final = 10.0
"""How long the other end may take to say who it is."""

BESIDE_BYTES_MAX: Final = 8 * 1024
"""Control packets never share a frame with a message longer than this."""

FRAMES_ALONE_MAX: Final = 4
"""... in so many frames one after the other: then it has to let such a message go as well."""

_PACKET_OVERHEAD: Final = 64
"""Bytes that a packet takes beside its body, so that empty ones are not free."""


class ByteStream(Protocol):
    """Frames as bytes, in order, both ways; what gRPC and the memory carrier offer."""

    async def send(self, data: bytes) -> None:
        """Hands over one frame; returns when there is room for another."""
        ...

    async def receive(self) -> bytes | None:
        """The next frame; None when the other end has closed."""
        ...

    async def close(self, error: PathcastError | None = None) -> None:
        """Ends both ways, and tells the other end why."""
        ...


def _no_bytes() -> dict[str, int]:
    return {flow.name: 0 for flow in Flow}


@dataclass(slots=True)
class Traffic:
    """Counters of one connection, or of several in succession."""

    frames_sent: int = 0
    packets_sent: int = 0
    bytes_sent: int = 0
    frames_received: int = 0
    packets_received: int = 0
    bytes_received: int = 0
    packets_dropped: int = 0
    sent_by_flow: dict[str, int] = field(default_factory=_no_bytes)
    """Flow -> bytes of the packets that were sent."""
    received_by_flow: dict[str, int] = field(default_factory=_no_bytes)
    """Flow -> bytes of the packets that were received."""
    connections: int = 1
    """How many connections it is about."""

    def __add__(self, other: Traffic) -> Traffic:
        """Over the connections of both."""

        def added(name: str) -> Any:
            mine, others = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                return {flow: count + others[flow] for flow, count in mine.items()}
            return mine + others

        return Traffic(**{each.name: added(each.name) for each in fields(self)})


Take = Callable[[str, Sequence[tuple[Packet, object]]], Awaitable[None]]
"""Called with a peer and what it sent; it returns when there is room for more."""


class Connection:
    """One end of a connection that is open.

    Args:
        name: Name of this end.
        peer: Name of the other end, which its hello has to give.
        stream: What frames go over.
        codec: Of the protocol.
        take: Takes packets with their messages, decoded.
        has_room: Whether messages may come from this peer; asked again by `grant`.
    """

    def __init__(
        self,
        name: str,
        peer: str,
        stream: ByteStream,
        codec: Codec,
        take: Take,
        has_room: Callable[[str], bool],
    ) -> None:
        self.name = name
        self.peer = peer
        self.traffic = Traffic()
        self._stream = stream
        self._codec = codec
        self._take = take
        self._has_room = has_room
        self._urgent: deque[Packet] = deque()
        self._messages: deque[Packet] = deque()
        self._bytes = {True: 0, False: 0}
        self._something = asyncio.Event()
        self._closing = asyncio.Event()
        # Packets of the flow MESSAGE, all counted from the beginning of the connection.
        self._sent = 0
        self._allowed = 0
        self._received = 0
        self._granted = WINDOW
        self._told = WINDOW
        # Frames without the message that waited, since one had some.
        self._frames_alone = 0

    @property
    def queued(self) -> int:
        """Packets of the flow MESSAGE that wait to be sent."""
        return len(self._messages)

    async def open(self) -> None:
        """Says hello and waits for the other end's.

        Raises:
            FrameError: Something else came.
            PeerRefusedError: Another broker than `peer` answered.
            UnavailableError: Nothing came in time.
        """
        await self._stream.send(encode_frame(ConnectionHello(self.name, self._granted)))
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                data = await self._stream.receive()
        except TimeoutError as error:
            raise UnavailableError("peer.silent", name=self.peer, seconds=HELLO_SECONDS) from error
        if data is None:
            raise UnavailableError("peer.unreachable", name=self.peer, reason="it hung up")
        hello = decode_hello(data, self.peer, self.name)
        if hello.name != self.peer:
            raise PeerRefusedError("peer.name", name=self.peer, found=hello.name)
        self._allowed = hello.credit

    def offer(self, packet: Packet) -> bool:
        """Queues a packet.

        Returns:
            Whether there was room.

        Raises:
            FrameError: The packet is larger than a frame may be.
        """
        size = len(packet.body) + _PACKET_OVERHEAD
        if size > FRAME_BYTES_MAX // 2:
            raise FrameError(
                "frame.too_large", peer=self.peer, given=size, maximum=FRAME_BYTES_MAX // 2
            )
        is_urgent = packet.flow is not Flow.MESSAGE
        if self._bytes[is_urgent] + size > QUEUE_BYTES_MAX:
            self.traffic.packets_dropped += 1
            return False
        self._bytes[is_urgent] += size
        (self._urgent if is_urgent else self._messages).append(packet)
        self._something.set()
        return True

    def grant(self) -> None:
        """Gives the other end credit, if there is room by now."""
        if self._received + WINDOW > self._granted and self._has_room(self.peer):
            self._granted = self._received + WINDOW
            if self._granted - self._told >= WINDOW // 2:
                self._something.set()

    async def run(self) -> None:
        """Sends and receives until the other end closes.

        Raises:
            FrameError: The other end broke the rules.
            UnavailableError: The connection was lost.
        """
        tasks = [
            asyncio.create_task(each)
            for each in (self._receive_all(), self._send_all(), self._closing.wait())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        # What the receiver found is the reason; that nothing can be sent any more follows from it.
        for result in ended:
            if isinstance(result, Exception):
                raise result

    async def flushed(self) -> None:
        """Returns when nothing urgent is queued any more; for a graceful end."""
        while self._urgent:
            await asyncio.sleep(0.01)

    async def close(self, error: PathcastError | None = None) -> None:
        """Ends the connection; `run` returns."""
        self._closing.set()
        await self._stream.close(error)

    async def _send_all(self) -> None:
        while True:
            await self._something.wait()
            frame = self._next_frame()
            if frame is None:
                self._something.clear()
                continue
            data = encode_frame(frame)
            await self._stream.send(data)
            for packet in frame.packets:
                self.traffic.sent_by_flow[packet.flow.name] += len(packet.body)
            self.traffic.frames_sent += 1
            self.traffic.packets_sent += len(frame.packets)
            self.traffic.bytes_sent += len(data)

    def _next_frame(self) -> PacketFrame | None:
        packets: list[Packet] = []
        size = self._move(self._urgent, packets, 0, len(self._urgent))
        sent = len(packets)
        is_long = self._messages and len(self._messages[0].body) > BESIDE_BYTES_MAX
        if packets and is_long and self._frames_alone < FRAMES_ALONE_MAX:
            # What is urgent may be the word that there will be none for a while.
            self._frames_alone += 1
            self._told = self._granted
            return PacketFrame(tuple(packets), self._granted)
        self._frames_alone = 0
        self._move(self._messages, packets, size, self._allowed - self._sent)
        self._sent += len(packets) - sent
        if not packets and self._granted - self._told < WINDOW // 2:
            return None
        self._told = self._granted
        return PacketFrame(tuple(packets), self._granted)

    def _move(self, queue: deque[Packet], packets: list[Packet], size: int, count: int) -> int:
        count = min(count, FRAME_PACKETS - len(packets))
        while queue and count > 0 and (not packets or size + len(queue[0].body) <= FRAME_BYTES):
            packet = queue.popleft()
            packets.append(packet)
            self._bytes[queue is self._urgent] -= len(packet.body) + _PACKET_OVERHEAD
            size += len(packet.body) + _PACKET_OVERHEAD
            count -= 1
        return size

    async def _receive_all(self) -> None:
        while (data := await self._stream.receive()) is not None:
            frame = decode_frame(data, self.peer)
            taken = [(packet, self._codec.message(packet, self.peer)) for packet in frame.packets]
            self._received += sum(packet.flow is Flow.MESSAGE for packet in frame.packets)
            if self._received > self._granted:
                raise FrameError(
                    "frame.credit", peer=self.peer, given=self._received, maximum=self._granted
                )
            self.traffic.frames_received += 1
            self.traffic.packets_received += len(taken)
            self.traffic.bytes_received += len(data)
            for packet in frame.packets:
                self.traffic.received_by_flow[packet.flow.name] += len(packet.body)
            if frame.credit > self._allowed:
                self._allowed = frame.credit
                self._something.set()
            if taken:
                await self._take(self.peer, taken)
            self.grant()
