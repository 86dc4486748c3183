"""The gRPC service of a broker process, for neighbours, publishers, subscribers and operators.

| method | who | what |
|---|---|---|
| Frames | neighbour | frames both ways, for as long as both live |
| Publish | publish | frames of messages in, a receipt for each when it is on disk |
| Ask | by message | one message in, the node's answer out |
| Deliveries | subscribe | an inbox from a cursor on; acknowledgements back |
| DeadLetters | operate | what webhooks did not take: listed, posted again, dropped |
| Status | operate | what the broker knows of itself, as JSON |

A client speaks for itself only: its inbox is the one that is called as the client is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final

import grpc
import grpc.aio
import msgspec

from pathcast.errors import (
    ConfigError,
    FrameError,
    PathcastError,
    PeerRefusedError,
    SourceError,
    UnavailableError,
)
from pathcast.transport.carrier import Carrier
from pathcast.transport.connection_guard import (
    DEFAULT,
    Caller,
    ConnectionBounds,
    ConnectionGuard,
    take_files,
)
from pathcast.transport.dead_letters import (
    Letters,
    LettersSettled,
    ListLetters,
    SettleLetters,
)
from pathcast.transport.disk import InboxCursor, Waiting
from pathcast.transport.events import RareEvents, reason_of
from pathcast.transport.frames import (
    FRAME_PACKETS,
    Codec,
    Count,
    Name,
    Packet,
    decode,
    in_groups,
)
from pathcast.transport.grpc_streams import SERVICE, ServerStream, server_options, status_of
from pathcast.transport.meters import CallMeters
from pathcast.transport.pieces import PIECE_SECONDS, receive_pieces, send_in_pieces
from pathcast.transport.security import (
    NAME_KEY,
    Authenticator,
    Role,
    ServerCertificates,
    check_plain,
)
from pathcast.transport.starting import Starting

ANSWER_SECONDS: Final = 30.0
LOOKED_AT_ONCE_BYTES: Final = 512 * 1024
"""Bytes of what a client sends that are looked at where they come, for a millisecond: the way to
another thread and back takes longer than most of what is sent."""
BATCH: Final = 256
"""Deliveries that are read from the disk at a time."""
BATCH_BYTES: Final = 4 * 1024 * 1024
"""Bytes of their bodies."""


class Publications(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Messages of a publisher, in their order."""

    packets: Annotated[tuple[Packet, ...], msgspec.Meta(max_length=FRAME_PACKETS)]


class Receipt(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """All messages of one `Publications` are on disk.

    Attributes:
        answers: What the node said to them.
    """

    answers: tuple[Packet, ...]


class FollowInbox(msgspec.Struct, frozen=True, tag="Follow", forbid_unknown_fields=True):
    """Begins to follow an inbox.

    Attributes:
        subscriber: Whose.
        after: Position of the last delivery that the subscriber has; None for the last that it
            acknowledged.
        until_now: Whether no more is wanted than what is there now; an empty `Inbox` is its end.
        life: As the `Inbox` that `after` was read from says; None: it is not checked whether this
            is the inbox that it was read from.
    """

    subscriber: Name
    after: Count | None = None
    until_now: bool = False
    life: Count | None = None


class Acknowledge(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The subscriber has all deliveries up to a position, and wants none of them again."""

    position: Count


class Settle(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Acknowledges without following; the call ends when it is on disk.

    Attributes:
        subscriber: Whose inbox.
        position: As for `Acknowledge`.
        life: As for `FollowInbox`.
    """

    subscriber: Name
    position: Count
    life: Count | None = None


class Inbox(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Deliveries, in the order of their positions.

    Attributes:
        deliveries: They.
        life: Of the broker that put them there; a cursor is a position with its life.
    """

    deliveries: tuple[Waiting, ...]
    life: Count = 0


_ENCODE: Final = msgspec.msgpack.Encoder().encode
_PUBLICATIONS: Final = msgspec.msgpack.Decoder(Publications)
_PACKETS: Final = msgspec.msgpack.Decoder(Packet)
_INBOX_CALLS: Final[msgspec.msgpack.Decoder[FollowInbox | Acknowledge | Settle]] = (
    msgspec.msgpack.Decoder(FollowInbox | Acknowledge | Settle)
)
_LetterCall = ListLetters | SettleLetters
_LETTER_CALLS: Final[msgspec.msgpack.Decoder[_LetterCall]] = msgspec.msgpack.Decoder(_LetterCall)


def not_described(starting: Starting) -> dict[str, object]:
    """Describe a process that has no carrier yet; JSON."""
    return {"name": starting.name, "starting": {"done": starting.done, "total": starting.total}}


def described(carrier: Carrier) -> dict[str, object]:
    """Describe any carrier; JSON."""
    return {
        "name": carrier.name,
        "neighbours": {
            peer: asdict(connection.traffic)
            for peer, connection in carrier.neighbours.connections.items()
        },
        "refusals": {peer: error.to_dict() for peer, error in carrier.neighbours.refusals.items()},
        "backlog": dict(carrier.backlog()),
        "node": carrier.kind.describe(carrier.node),
    }


def _refused_codes(answers: Sequence[object]) -> Iterator[str]:
    """Of what was refused in its own place: a message, or profiles and ids of one call."""
    for answer in answers:
        if isinstance(code := getattr(answer, "code", None), str):
            yield code
        yield from (code for _, code, _ in getattr(answer, "refused", ()))


class GuardedMethods(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Methods of a listener that are for those whom a gate admits; errors keep their type.

    Args:
        gate: Who may call.

    Attributes:
        meters: Of its calls.
    """

    def __init__(self, gate: Authenticator) -> None:
        self.gate = gate
        self.guard = ConnectionGuard(DEFAULT)
        self.meters = CallMeters()
        self._methods: dict[str, Any] = {}
        self._events = RareEvents()
        # Calls under way, by whom; those that were ended from here.
        self._callers: dict[asyncio.Task[Any], str] = {}
        self._ended: set[asyncio.Task[Any]] = set()

    def _offer_stream(self, name: str, method: Callable[[Any], Awaitable[None]]) -> None:
        """Offers a method that takes and gives any number of messages."""

        async def call(_: Caller, context: Any) -> None:
            await method(context)

        guarded = partial(self._guarded, call)
        self._methods[name] = grpc.stream_stream_rpc_method_handler(guarded)

    def _offer_answer(self, name: str, method: Callable[[bytes, Any], Awaitable[bytes]]) -> None:
        """Offers a method that takes one message and gives one.

        The message is read once the caller is admitted; gRPC's own handlers would hold it before.
        """

        async def call(caller: Caller, context: Any) -> bytes:
            async with caller.reading:
                try:
                    async with asyncio.timeout(PIECE_SECONDS):
                        data = await context.read()
                except TimeoutError as error:
                    silent = UnavailableError(
                        "peer.silent", name=caller.name, seconds=PIECE_SECONDS
                    )
                    raise silent from error
            if data is grpc.aio.EOF:
                raise FrameError("frame.unreadable", peer=caller.name, reason="nothing came")
            return await method(data, context)

        guarded = partial(self._guarded, call)
        self._methods[name] = grpc.stream_unary_rpc_method_handler(guarded)

    def service(self, call: Any) -> Any:
        """The handler of a call; gRPC asks."""
        return self._methods.get(call.method)

    async def _guarded(
        self, method: Callable[[Caller, Any], Awaitable[Any]], _: Any, context: Any
    ) -> Any:
        task = asyncio.current_task()
        assert task is not None
        try:
            name = self._admit(context, None)
            is_privileged = self.gate.is_privileged(name)
            with self.guard.call(context.peer(), name, is_privileged=is_privileged) as caller:
                return await method(caller, context)
        except PathcastError as error:
            if isinstance(error, PeerRefusedError):
                self._note(error, context)
            self.meters.ended[error.code] += 1
            await context.abort(*status_of(error))
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()
            ended = PeerRefusedError("peer.unknown", name=self._callers[task])
            await context.abort(*status_of(ended))
        finally:
            self._callers.pop(task, None)
            self._ended.discard(task)

    def end_calls(self, gone: Collection[str]) -> None:
        """Ends the calls of those who may do less than before."""
        for task, name in self._callers.items():
            if name in gone:
                self._ended.add(task)
                task.cancel()

    def _note(self, error: PeerRefusedError, context: Any) -> None:
        caller = dict(context.invocation_metadata() or ()).get(NAME_KEY, "somebody without a name")
        address = str(context.peer())
        # Each connection has a port of its own.
        host = address.rpartition(":")[0] or address
        shown = str(caller)[:256].encode("ascii", "backslashreplace").decode()
        cause = shown, host, error.code
        self._events.log("caller.refused", cause, caller=shown, address=address, **reason_of(error))

    def _admit(self, context: Any, role: Role | None) -> str:
        metadata = dict(context.invocation_metadata() or ())
        identities = context.auth_context().get("x509_subject_alternative_name", ())
        name = self.gate.admit(metadata, identities, role)
        task = asyncio.current_task()
        assert task is not None
        self._callers[task] = name
        return name


class AskMethods(GuardedMethods):
    """The method by which clients ask a node, each message by whoever has its role.

    Args:
        starting: Has the carrier of the node, as soon as there is one; until then callers are told
            how far it is.
        gate: Who may call.
        service: Name of the gRPC service that the method is of.
    """

    def __init__(self, starting: Starting, gate: Authenticator, service: str = SERVICE) -> None:
        super().__init__(gate)
        self._starting = starting
        self._offer_answer(f"/{service}/Ask", self._ask)

    @property
    def _carrier(self) -> Carrier:
        return self._starting.carrier

    async def _refusals(self, messages: Sequence[object], size: int) -> Mapping[int, object]:
        look = self._carrier.kind.refusals
        if look is None:
            return {}
        is_long = size > LOOKED_AT_ONCE_BYTES or self._carrier.kind.looks_long(messages)
        if not is_long:
            return look(messages)
        return await asyncio.to_thread(look, messages)

    async def _ask(self, data: bytes, context: Any) -> bytes:
        client = self._admit(context, None)  # the role is that of the message
        codec = self._carrier.codec
        message = codec.message(decode(_PACKETS, data, client), client)
        self._check_role(client, type(message), context)
        refused = await self._refusals([message], len(data))
        seconds = min(context.time_remaining() or ANSWER_SECONDS, ANSWER_SECONDS)
        answer = refused.get(0) or await self._carrier.ask(client, message, seconds)
        self.meters.refused.update(_refused_codes([answer]))
        return _ENCODE(codec.packet(answer))

    def _check_role(self, client: str, kind: type, context: Any) -> None:
        roles = self._carrier.kind.roles
        if kind not in roles:
            raise PeerRefusedError("peer.role", name=client, role=f"send {kind.__name__}")
        self._admit(context, roles[kind])


class Service(AskMethods):
    """The methods of a broker.

    Args:
        starting: Has the carrier that they are about, as soon as there is one; until then only
            the operator is answered, and others are told how far it is.
        gate: Who may call.
    """

    def __init__(self, starting: Starting, gate: Authenticator) -> None:
        super().__init__(starting, gate)
        self._offer_stream(f"/{SERVICE}/Frames", self._frames)
        self._offer_stream(f"/{SERVICE}/Publish", self._publish)
        self._offer_stream(f"/{SERVICE}/Deliveries", self._deliveries)
        self._offer_stream(f"/{SERVICE}/DeadLetters", self._dead_letters)
        self._offer_answer(f"/{SERVICE}/Status", self._status)

    async def _frames(self, context: Any) -> None:
        peer = self._admit(context, "neighbour")
        await self._carrier.serve(peer, ServerStream(peer, context))

    async def _publish(self, context: Any) -> None:
        client = self._admit(context, "publish")
        stream = ServerStream(client, context)
        codec = self._carrier.codec  # a call is refused at once, and not when it is written to
        with self.guard.pieces.holding(client) as held:
            while (data := await receive_pieces(stream, client, held)) is not None:
                receipt = await self._published(client, codec, data, context)
                held.give_back()
                await stream.send(_ENCODE(receipt))

    async def _published(self, client: str, codec: Codec, data: bytes, context: Any) -> Receipt:
        packets = decode(_PUBLICATIONS, data, client).packets
        messages = [codec.message(packet, client) for packet in packets]
        for kind in {type(message) for message in messages}:
            self._check_role(client, kind, context)
        self.meters.messages += len(messages)
        refused = await self._refusals(messages, len(data))
        taken = [each for place, each in enumerate(messages) if place not in refused]
        answers = [*refused.values(), *await self._carrier.submit(client, taken)]
        self.meters.refused.update(_refused_codes(answers))
        return Receipt(tuple(codec.packet(each) for each in answers))

    async def _deliveries(self, context: Any) -> None:
        client = self._admit(context, "subscribe")
        stream = ServerStream(client, context)
        follow = decode(_INBOX_CALLS, await stream.receive() or b"", client)
        if isinstance(follow, Acknowledge):
            raise FrameError("frame.unreadable", peer=client, reason="`FollowInbox` comes first")
        subscriber = follow.subscriber
        if subscriber != client:
            raise PeerRefusedError("peer.role", name=client, role=f"read what is {subscriber}'s")
        if isinstance(follow, Settle):
            if follow.life is not None:
                cursor = InboxCursor(follow.position, follow.life)
                disk = self._carrier.disk
                await self._carrier.on_disk(disk.check_cursor, subscriber, cursor)
            self._carrier.acknowledge(subscriber, follow.position)
            await self._carrier.kept()
            return
        sending = asyncio.create_task(self._send_inbox(stream, follow))
        receiving = asyncio.create_task(self._take_acknowledgements(stream, subscriber, client))
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
            await receiving
        finally:
            receiving.cancel()
            sending.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    async def _take_acknowledgements(
        self, stream: ServerStream, subscriber: str, client: str
    ) -> None:
        while (data := await stream.receive()) is not None:
            call = decode(_INBOX_CALLS, data, client)
            if isinstance(call, Acknowledge):
                self._carrier.acknowledge(subscriber, call.position)

    async def _send_inbox(self, stream: ServerStream, follow: FollowInbox) -> None:
        carrier, subscriber, sent = self._carrier, follow.subscriber, follow.after
        disk = carrier.disk
        with carrier.listening(subscriber) as arrivals:
            last = await carrier.on_disk(disk.last, subscriber)
            if sent is None:
                await carrier.kept()
                sent = await carrier.on_disk(disk.cursor, subscriber)
            elif sent > last:
                raise SourceError("inbox.ahead", path=subscriber, after=sent, last=last)
            elif follow.life is not None:
                cursor = InboxCursor(sent, follow.life)
                await carrier.on_disk(disk.check_cursor, subscriber, cursor)
            while not follow.until_now or sent < last:
                found = await carrier.inbox(subscriber, sent, arrivals, BATCH, BATCH_BYTES)
                for group in in_groups(found, lambda each: len(each.body)):
                    for life, part in await self._by_life(subscriber, group):
                        await send_in_pieces(stream, _ENCODE(Inbox(tuple(part), life)))
                if found:
                    sent = found[-1].position
                elif follow.until_now:
                    break
                else:
                    await arrivals.wait()
            await send_in_pieces(stream, _ENCODE(Inbox(())))

    async def _by_life(
        self, subscriber: str, group: Sequence[Waiting]
    ) -> list[tuple[int, list[Waiting]]]:
        """Deliveries with the life that put them into the inbox, in their order."""
        carrier, disk = self._carrier, self._carrier.disk
        if life := disk.present_life_at(subscriber, group[0].position):
            return [(life, list(group))]

        def lives() -> list[int]:
            return [disk.life_at(subscriber, each.position) for each in group]

        pairs = zip(await carrier.on_disk(lives), group, strict=True)
        return [
            (life, [each for _, each in part])
            for life, part in groupby(pairs, key=lambda pair: pair[0])
        ]

    async def _dead_letters(self, context: Any) -> None:
        stream = ServerStream(self._admit(context, "operate"), context)
        call = decode(_LETTER_CALLS, await stream.receive() or b"", "operator")
        carrier, after = self._carrier, ("", 0)
        if isinstance(call, SettleLetters):
            count = await carrier.settle_letters(call.what, call.subscriber, call.positions)
            await stream.send(_ENCODE(LettersSettled(count)))
            return
        while found := await carrier.on_disk(carrier.disk.dead_letters, after, BATCH, BATCH_BYTES):
            await send_in_pieces(stream, _ENCODE(Letters(tuple(found))))
            after = found[-1].subscriber, found[-1].position
        await send_in_pieces(stream, _ENCODE(Letters(())))

    async def _status(self, _: bytes, context: Any) -> bytes:
        self._admit(context, "operate")
        if not self._starting.is_over:
            return msgspec.json.encode(not_described(self._starting))
        status = described(self._carrier)
        inboxes = await self._carrier.on_disk(self._carrier.disk.inboxes)
        status["inboxes"] = {
            name: {"waiting": each.waiting, "bytes": each.bytes, "dropped": each.dropped}
            for name, each in inboxes.items()
        }
        counts = self._carrier.disk.dead_letter_counts
        status["dead_letters"] = await self._carrier.on_disk(counts)
        return msgspec.json.encode(status)


class Listener:
    """A port where methods are offered; see `listen`.

    Attributes:
        port: Its number.
    """

    def __init__(self, server: Any, port: int, guard: ConnectionGuard) -> None:
        self.port = port
        self._server = server
        self._guarding = guard.watching(port)

    async def start(self) -> None:
        """Begins to listen."""
        await self._server.start()
        await self._guarding.__aenter__()

    async def stop(self, seconds: float) -> None:
        """Ends all calls, after so many seconds."""
        await self._guarding.__aexit__(None, None, None)
        await self._server.stop(seconds)


async def listen(
    services: Sequence[GuardedMethods],
    address: str,
    certificates: ServerCertificates | None = None,
    *,
    allow_plain: bool = False,
    bounds: ConnectionBounds = DEFAULT,
) -> Listener:
    """Begins to listen.

    Args:
        services: What is offered.
        address: HOST:PORT, port 0 for one that is free, or unix:PATH, which only its owner may
            then open.
        certificates: Of this process, which may change meanwhile; None for plain text.
        allow_plain: Whether plain text may leave this machine.
        bounds: What callers may hold; fewer connections where the system allows fewer files.

    Raises:
        ConfigError: The address cannot be had, or plain text must not be spoken there.
    """
    most = take_files(bounds.connections_max)
    strangers = min(bounds.strangers_max, max(1, most // 2))
    guard = ConnectionGuard(replace(bounds, connections_max=most, strangers_max=strangers))
    for each in services:
        each.guard = guard
    server = grpc.aio.server(options=server_options(most))
    server.add_generic_rpc_handlers(tuple(services))
    try:
        if certificates is None:
            check_plain(address, allow_plain=allow_plain)
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, certificates.credentials())
    except RuntimeError as error:
        reason = f"nothing can listen at {address}: it is taken, or not of this machine"
        raise ConfigError("config.invalid", key="listen", reason=reason) from error
    listener = Listener(server, port, guard)
    await listener.start()
    if address.startswith("unix:"):
        with contextlib.suppress(FileNotFoundError):
            Path(address.removeprefix("unix:")).chmod(0o600)
    return listener
