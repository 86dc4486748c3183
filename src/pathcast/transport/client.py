"""The other end of `service`: what publishers, subscribers and operators call a broker with.

Example:
    >>> async def main() -> None:
    ...     bern = Address("bern", "10.0.0.7:7400", "ann's token", allow_plain=True)
    ...     async for deliveries in followed(lambda: BrokerClient("ann", bern), "ann"):
    ...         for position, delivery_id, body in deliveries:
    ...             print(delivery_id, len(body))
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

import grpc.aio
import msgspec

from pathcast.errors import PathcastError, UnavailableError
from pathcast.overlay.content import DeliveryProfile
from pathcast.transport.broker_requests import CODEC, RequestAccepted, Subscribe
from pathcast.transport.dead_letters import (
    DeadLetter,
    Letters,
    LettersSettled,
    ListLetters,
    SettleLetters,
)
from pathcast.transport.disk import InboxCursor, Waiting
from pathcast.transport.frames import Codec, Packet
from pathcast.transport.grpc_streams import (
    SERVICE,
    Address,
    ClientStream,
    connected,
    error_from,
)
from pathcast.transport.pieces import receive_pieces, send_in_pieces
from pathcast.transport.security import introduction
from pathcast.transport.service import (
    ANSWER_SECONDS,
    Acknowledge,
    FollowInbox,
    Inbox,
    Publications,
    Receipt,
    Settle,
)

T = TypeVar("T")

PROFILES_AT_ONCE: Final = 500
"""Profiles of one call: some tenths of a second in which the broker does nothing else."""

AGAIN_SECONDS: Final = 0.1
AGAIN_SECONDS_MAX: Final = 5.0
"""Pauses before an inbox is followed again: the first, and what doubling ends with."""

_ENCODE: Final = msgspec.msgpack.Encoder().encode
_RECEIPTS: Final = msgspec.msgpack.Decoder(Receipt)
_PACKETS: Final = msgspec.msgpack.Decoder(Packet)
_INBOXES: Final = msgspec.msgpack.Decoder(Inbox)
_LETTERS: Final = msgspec.msgpack.Decoder(Letters)
_SETTLED: Final = msgspec.msgpack.Decoder(LettersSettled)


class BrokerClient:
    """A connection to one broker.

    Args:
        name: Who calls.
        address: The broker.
        codec: Of its protocol; a peer of a ring has another one than a broker.
        service: Name of the gRPC service whose methods are called.
    """

    def __init__(
        self, name: str, address: Address, codec: Codec = CODEC, service: str = SERVICE
    ) -> None:
        self._name = name
        self._address = address
        self._codec = codec
        self._service = service
        self._channel: Any = None
        self._publishing: ClientStream | None = None
        self._following: ClientStream | None = None
        self._cursor: InboxCursor | None = None

    @property
    def cursor(self) -> InboxCursor | None:
        """Where the last deliveries end that were read with this client; None before the first."""
        return self._cursor

    async def __aenter__(self) -> Self:
        self.open()
        await connected(self._channel, self._address)
        return self

    def open(self) -> None:
        """Begins to connect; a call that finds no connection fails."""
        self._channel = self._address.channel()

    async def close(self) -> None:
        """Ends the connection, and the calls that are under way."""
        await self._channel.close()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def publish(self, messages: Sequence[object]) -> list[object]:
        """Publishes messages; returns when all are on the broker's disk.

        Returns:
            What the broker answered to them.

        Raises:
            UnavailableError: The broker is not there, or has no room; publish again. Messages of
                which that is not known are published again with the same ids.
            PathcastError: It refused one.
        """
        if self._publishing is None:
            self._publishing = self._stream("Publish")
        packets = tuple(self._codec.packet(message) for message in messages)
        try:
            await send_in_pieces(self._publishing, _ENCODE(Publications(packets)))
            data = await self._publishing.receive()
            if data is None:
                raise self._hung_up()
        except PathcastError:
            self._publishing = None
            raise
        receipt = _RECEIPTS.decode(data)
        return [self._codec.message(packet, self._address.name) for packet in receipt.answers]

    async def subscribe_many(
        self, profiles: Iterable[tuple[str, DeliveryProfile]], seconds: float = 120.0
    ) -> dict[str, tuple[str, str]]:
        """Registers profiles, thousands with each call of the broker.

        Args:
            profiles: Id and profile of each; a known id gets a new profile.
            seconds: How long the broker may take for a call.

        Returns:
            Id -> code and sentence of those that were refused. All others are on the broker's disk;
            that each is in force comes into the inbox.

        Raises:
            UnavailableError: There was no answer; those of the calls before are registered.
        """
        refused: dict[str, tuple[str, str]] = {}
        rows = iter(profiles)
        while group := tuple(islice(rows, PROFILES_AT_ONCE)):
            answer = await self.ask(Subscribe(group), seconds)
            assert isinstance(answer, RequestAccepted)
            refused |= {id: (code, sentence) for id, code, sentence in answer.refused}
        return refused

    async def ask(self, message: object, seconds: float = 30.0) -> object:
        """Sends a message and waits for the answer.

        Raises:
            PathcastError: It was refused, or there was no answer.
        """
        data = await self.call("Ask", _ENCODE(self._codec.packet(message)), seconds)
        return self._codec.message(_PACKETS.decode(data), self._address.name)

    async def status(self, seconds: float = 10.0) -> dict[str, Any]:
        """Return the broker's own status."""
        found: dict[str, Any] = msgspec.json.decode(await self.call("Status", b"", seconds))
        return found

    async def deliveries(
        self, subscriber: str, after: int | InboxCursor | None = None
    ) -> AsyncIterator[tuple[Waiting, ...]]:
        """Iterate over the deliveries of an inbox, in groups, until the iteration is ended.

        Args:
            subscriber: Whose inbox.
            after: Where deliveries end that are not wanted; what was acknowledged when not given. A
                subscriber that keeps `cursor` together with what it makes of deliveries sees each
                exactly once. Of a position alone it is not known which inbox it was read from.

        Yields:
            Position, delivery id and body of each.

        Raises:
            UnavailableError: The connection is lost; follow again.
            SourceError: This is not the inbox that `after` was read from: the broker's disk is
                older ("inbox.ahead", "inbox.other").
        """
        self._following = self._stream("Deliveries")
        position, life = _place(after)
        await self._following.send(_ENCODE(FollowInbox(subscriber, position, life=life)))
        while (data := await receive_pieces(self._following, self._address.name)) is not None:
            yield self._read(_INBOXES.decode(data))
        raise self._hung_up()

    def _read(self, inbox: Inbox) -> tuple[Waiting, ...]:
        if inbox.deliveries:
            self._cursor = InboxCursor(inbox.deliveries[-1].position, inbox.life)
        return inbox.deliveries

    async def waiting(
        self, subscriber: str, after: int | InboxCursor
    ) -> AsyncIterator[tuple[Waiting, ...]]:
        """Iterate over the deliveries that are in an inbox now; wait for no others.

        Raises:
            SourceError: See there.
            UnavailableError: The connection is lost.
        """
        stream = self._stream("Deliveries")
        position, life = _place(after)
        await stream.send(_ENCODE(FollowInbox(subscriber, position, until_now=True, life=life)))
        name = self._address.name
        while (data := await self._in_time(receive_pieces(stream, name))) is not None:
            if not (deliveries := self._read(_INBOXES.decode(data))):
                return
            yield deliveries
        raise self._hung_up()

    async def settle(self, subscriber: str, upto: int | InboxCursor) -> None:
        """Acknowledge in an inbox that need not be followed; on disk when it returns.

        Raises:
            SourceError: This is not the inbox that was read: see `deliveries`.
        """
        stream = self._stream("Deliveries")
        position, life = _place(upto)
        assert position is not None, "there is a position"
        await stream.send(_ENCODE(Settle(subscriber, position, life)))
        # The broker ends the call when it has done it; a call that is lost ends with an error.
        await self._in_time(stream.receive())

    async def dead_letters(self) -> AsyncIterator[DeadLetter]:
        """Return deliveries that webhooks did not take, by subscriber and position.

        Raises:
            PeerRefusedError: Whoever calls is no operator.
            UnavailableError: The connection is lost.
        """
        stream = self._stream("DeadLetters")
        await stream.send(_ENCODE(ListLetters()))
        name = self._address.name
        while (data := await self._in_time(receive_pieces(stream, name))) is not None:
            if not (letters := _LETTERS.decode(data).letters):
                return
            for letter in letters:
                yield letter
        raise self._hung_up()

    async def settle_letters(
        self, what: Literal["retry", "drop"], subscriber: str, positions: Sequence[int]
    ) -> int:
        """Has dead letters posted again, or drops them.

        Returns:
            How many; less than were asked for if some are not there, or the inbox has no room.

        Raises:
            PeerRefusedError: Whoever calls is no operator.
            UnavailableError: The connection is lost.
        """
        stream = self._stream("DeadLetters")
        await stream.send(_ENCODE(SettleLetters(what, subscriber, tuple(positions))))
        if (data := await self._in_time(stream.receive())) is None:
            raise self._hung_up()
        return _SETTLED.decode(data).count

    async def acknowledge(self, position: int) -> None:
        """Everything up to `position`, of what is followed, need not be kept any more."""
        assert self._following is not None, "follow an inbox first"
        await self._following.send(_ENCODE(Acknowledge(position)))

    def _stream(self, method: str) -> ClientStream:
        methods = self._channel.stream_stream(f"/{self._service}/{method}")
        call = methods(metadata=self._introduction())
        return ClientStream(self._address.name, self._channel, call)

    def _hung_up(self) -> PathcastError:
        name = self._address.name
        return UnavailableError("peer.unreachable", name=name, reason="it hung up")

    async def _in_time(self, receiving: Awaitable[T], seconds: float = ANSWER_SECONDS) -> T:
        """Return the answer of a call that must answer at once."""
        try:
            async with asyncio.timeout(seconds):
                return await receiving
        except TimeoutError as error:
            name = self._address.name
            raise UnavailableError("peer.silent", name=name, seconds=seconds) from error

    async def call(self, method: str, data: bytes, seconds: float) -> bytes:
        """The answer of a method that takes one message and gives one.

        Raises:
            PathcastError: It was refused, or there was no answer.
        """
        call = self._channel.unary_unary(f"/{self._service}/{method}")
        try:
            answer = await call(data, metadata=self._introduction(), timeout=seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                name = self._address.name
                raise UnavailableError("peer.silent", name=name, seconds=seconds) from error
            raise error_from(self._address.name, error.details() or "") from error
        assert isinstance(answer, bytes)
        return answer

    def _introduction(self) -> tuple[tuple[str, str], ...]:
        return introduction(self._name, self._address.token)


def _place(after: int | InboxCursor | None) -> tuple[int | None, int | None]:
    """Position and life, as far as they are given."""
    if isinstance(after, InboxCursor):
        return after.position, after.life
    return after, None


async def followed(
    connect: Callable[[], BrokerClient],
    subscriber: str,
    after: int | InboxCursor | None = None,
) -> AsyncIterator[tuple[Waiting, ...]]:
    """An inbox over lost connections, each delivery once; it goes on until nobody iterates.

    A group is acknowledged when the next one is asked for, so that what was not looked at comes
    again to whoever follows anew. While the node cannot be reached it is called again, after pauses
    that double.

    Args:
        connect: Makes a client, to be entered.
        subscriber: Whose inbox; the client's own name.
        after: Position of the last delivery that is not wanted; what was acknowledged when not
            given.

    Raises:
        PeerRefusedError: The node does not admit the client.
        SourceError: The inbox does not go so far ("inbox.ahead").
    """
    pause = AGAIN_SECONDS
    while True:
        try:
            async with connect() as client:
                async for group in client.deliveries(subscriber, after):
                    pause = AGAIN_SECONDS
                    yield group
                    after = client.cursor
                    await client.acknowledge(group[-1].position)
        except UnavailableError:
            await asyncio.sleep(pause)
            pause = min(pause * 2, AGAIN_SECONDS_MAX)
