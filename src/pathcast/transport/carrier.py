"""A carrier: one node with a clock, a disk and connections.

Events go into the node one after another; what it wants done is done in its order. Everything
that came while the disk was being waited for is kept with one wait, together with the deliveries
of the same events: an event is kept as a whole or not at all, and what it sends is sent after it
is kept. So a process that is killed anywhere has spoken of nothing that it does not know when it
starts again, and a delivery is in a subscriber's inbox exactly when the node knows that it made it.

Timers are set and stopped at once: they do not outlive the process, so nobody can tell.

It knows no message of the protocol, and no socket: streams come from `Dial` and `serve`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, ParamSpec, TypeVar

from prometheus_client.core import Metric

from pathcast.errors import FrameError, PathcastError, UnavailableError
from pathcast.protocol import Cancel, Deliver, Effect, Forget, Node, Save, Send, Wake
from pathcast.transport.calls import (
    ClientCall,
    Outcomes,
    WaitingCall,
    end,
    parted_calls,
    parted_effects,
)
from pathcast.transport.connection import ByteStream
from pathcast.transport.disk import Disk, Waiting
from pathcast.transport.events import log_event, reason_of
from pathcast.transport.frames import Codec, Packet
from pathcast.transport.inbox_bounds import Gap
from pathcast.transport.meters import CarrierMeters
from pathcast.transport.neighbours import Dial, Neighbours
from pathcast.transport.requests import Requests
from pathcast.transport.security import Role

P = ParamSpec("P")
T = TypeVar("T")

PENDING_MAX: Final = 8192
"""Effects that may wait for the disk before anything more is taken from the network."""

INBOX_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of deliveries that are held for whoever follows an inbox; with more they are read again."""

ACKNOWLEDGE_SECONDS: Final = 0.05
"""How long an acknowledgement waits for others: each commit would have five statements more."""

END_SECONDS: Final = 3.0
"""How long a node that is to end has for what it says to its neighbours."""

BACKLOG_MAX: Final = 100_000
"""Messages that neighbours have not taken yet, of all of them, before publishers have to wait."""

Improvement = Callable[[], Callable[[float], Sequence[Effect]]]
"""Work for another thread, which gives an event of the node."""

SomeNode = TypeVar("SomeNode", bound=Node)


def _no_delivery(what: object) -> tuple[str, bytes]:
    raise TypeError(f"this kind of node delivers nothing, and was about to deliver {what!r}")


async def _cannot_tell(peer: str) -> bool:
    return False


async def _no_neighbours(peer: str) -> ByteStream:
    raise UnavailableError("peer.unreachable", name=peer, reason="this node has no neighbours")


def _no_gap(gap: Gap) -> bytes:
    raise TypeError(f"this kind of node has no words for {gap}")


@dataclass(frozen=True)
class NodeAdapter(Generic[SomeNode]):
    """A carrier's interface to one kind of node.

    Attributes:
        make: Makes one from what it saved, and a number that no other life of it has (53 bits).
        codec: Of its messages.
        delivery: Delivery id and bytes of what it delivers.
        backlog: Neighbour -> messages that wait for it, as the node knows it; what is queued for
            the neighbour's connection when not given.
        request: What the node makes of the calls of clients, all that are there: the answers to
            each call, or why it was refused, and the effects of all of them together. When not
            given each message is received by itself.
        prepare: Message type -> what takes long of such a message of a client and changes nothing,
            so that the node finds it done; called in another thread, and must raise nothing.
        roles: Message type -> what a client has to be allowed in order to send it, None if every
            client may; all others are for neighbours alone.
        describe: What it can say of itself to the operator, as JSON.
        set_link: Tells a node of a neighbour that it did not know at the beginning, or of another
            cost of the link; when not given its nodes know all at the beginning.
        ended: Tells a node that the process of a neighbour has ended; when not given nobody looks.
        refusals: Looks at what clients send before the node is given any of it, in a thread of its
            own: place -> answer, of messages that the node is not given.
        looks_long: Whether that takes so long that it is done in a thread, however short they are.
        end: Why the process of a node is to end, if it is; it says what it has to say before.
        gap: What subscribers are told of deliveries that a full inbox did not take.
        fullness: Share of the room for messages that others have not had, which is taken.
        metrics: What monitoring may ask for every few seconds, with these neighbours connected.
        unready: What is missing before a node can do all of its work, with these neighbours
            connected, and what of it.
        improve: Work that takes long and that nothing waits for, if some is due: it is done in
            another thread, and gives the event with which the node takes what was made. Called with
            whether the process ends; no work raises anything.
        reads_later: Whether the node reads some of what it saved when it needs it, and all in its
            own order; it asks then for no record that has changed meanwhile.
        blocks: Whether events wait for a database: they go into the node in a thread of their own,
            one after another, and nothing else in this process waits for them.
    """

    make: Callable[[Mapping[str, bytes], int], SomeNode]
    codec: Codec
    delivery: Callable[[object], tuple[str, bytes]] = _no_delivery
    backlog: Callable[[SomeNode], Mapping[str, int]] | None = None
    request: Callable[[SomeNode, Sequence[ClientCall], float], Outcomes] | None = None
    prepare: Mapping[type, Callable[[SomeNode, object], None]] = field(default_factory=dict)
    roles: Mapping[type, Role | None] = field(default_factory=dict)
    describe: Callable[[SomeNode], Mapping[str, object]] = lambda node: {}
    set_link: Callable[[SomeNode, str, int, float], Sequence[Effect]] | None = None
    ended: Callable[[SomeNode, str, float], Sequence[Effect]] | None = None
    refusals: Callable[[Sequence[object]], Mapping[int, object]] | None = None
    looks_long: Callable[[Sequence[object]], bool] = lambda messages: False
    end: Callable[[SomeNode], PathcastError | None] = lambda node: None
    gap: Callable[[Gap], bytes] = _no_gap
    fullness: Callable[[SomeNode], float] = lambda node: 0.0
    metrics: Callable[[SomeNode, Collection[str]], Iterable[Metric]] = lambda node, connected: ()
    unready: Callable[[SomeNode, Collection[str]], Mapping[str, str]] = lambda node, connected: {}
    improve: Callable[[SomeNode, bool], Improvement | None] = lambda node, is_last: None
    reads_later: bool = False
    blocks: bool = False


@dataclass
class _Group:
    """Records that are saved in one transaction, and the calls that wait for it."""

    effects: list[Effect] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.effects and not self.acknowledged


class Arrivals:
    """Deliveries that arrive in an inbox while it is followed; the disk has them as well."""

    def __init__(self) -> None:
        self._something = asyncio.Event()
        self._came: list[Waiting] = []
        self._bytes = 0

    def put(self, came: Sequence[Waiting]) -> None:
        """These have come, in order; with too many nothing is held."""
        self._came += came
        self._bytes += sum(len(one.body) for one in came)
        if self._bytes > INBOX_BYTES_MAX:
            self._clear()
        self._something.set()

    def take(self, after: int) -> list[Waiting]:
        """All that follows a position, if it is held; else nothing, and the disk has to be asked.

        Cost: linear in what is held, which is held no longer.
        """
        came = [one for one in self._came if one.position > after]
        self._clear()
        # Positions only grow: between so many there is none that is missing.
        return came if came and came[-1].position == after + len(came) else []

    async def wait(self) -> None:
        """Returns when something has come since the last call of `take`."""
        await self._something.wait()

    def _clear(self) -> None:
        self._something.clear()
        self._came, self._bytes = [], 0


class Carrier:
    """A node, run in this event loop.

    Args:
        name: Name of the node.
        kind: What the node is.
        disk: Its disk; closed by `stop`.
        dial: Makes streams to neighbours.
        backlog_max: See `BACKLOG_MAX`.
        has_ended: Whether the process of a neighbour is over whose connection was lost.
        counted: Given what the node saved; gives what the node reads.
        check: Raises UnavailableError when nobody may be heard or answered any more.
        requests: Requests whose answers come in later events; None: answers come at once.
        deliver: Takes what the node delivers, in the loop; None: inboxes on the disk.

    Cost: that of making the node, which reads all it has saved; may be called in another thread.
    """

    def __init__(
        self,
        name: str,
        kind: NodeAdapter[Any],
        disk: Disk,
        dial: Dial = _no_neighbours,
        *,
        backlog_max: int = BACKLOG_MAX,
        has_ended: Callable[[str], Awaitable[bool]] = _cannot_tell,
        counted: Callable[[Mapping[str, bytes]], Mapping[str, bytes]] = lambda saved: saved,
        check: Callable[[], None] = lambda: None,
        requests: Requests | None = None,
        deliver: Callable[[str, object], None] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.disk = disk
        self.codec = kind.codec
        with disk.decoding():
            self.node = kind.make(counted(disk.saved(read_later=kind.reads_later)), disk.life)
        self.neighbours = Neighbours(
            name, kind.codec, self._take, self._changed, self._has_room_from, dial
        )
        self.meters = CarrierMeters()
        self.failure: asyncio.Future[None] | None = None
        self._backlog_max = backlog_max
        self._has_ended = has_ended
        self._check_may_act = check
        self._requests = requests
        self._deliver = deliver
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"node-{name}")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix=f"disk-{name}")
        self._group = _Group()
        self._acknowledged: dict[str, int] = {}
        self._calls: list[WaitingCall] = []
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._is_writing = False
        self._is_closed = False
        self._end_reason: PathcastError | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._listeners: dict[str, list[Arrivals]] = {}
        self._committing: asyncio.Task[None] | None = None
        # A clock that does not jump, and that goes on where it was after a restart.
        self._clock = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds; what the node is told."""
        return self._clock + time.monotonic()

    async def start(self, neighbours: Sequence[str] = ()) -> None:
        """Starts the node, and begins to connect to neighbours that are to be called from here."""
        self.failure = asyncio.get_running_loop().create_future()
        self._committing = asyncio.create_task(self._commit_all())
        if self.kind.blocks:
            await self._wait_for_event(self.node.start)
        else:
            self.event(self.node.start)
        self.neighbours.connect(neighbours)

    async def stop(self) -> None:
        """Ends gracefully: what was begun is kept, what was kept is sent if there is somebody."""
        await self._flushed()
        await self.neighbours.stop()
        await self._flushed()
        await self._end()

    async def run(self) -> None:
        """Returns when the carrier has stopped by itself.

        Raises:
            DiskError: It could not keep what it was told.
            PathcastError: Why the node is to end (`NodeAdapter.end`).
        """
        assert self.failure is not None, "start first"
        # Who does not wait any more has not failed: events go on until `stop`.
        await asyncio.shield(self.failure)

    def set_link(self, peer: str, cost: int) -> None:
        """Tells the node of a neighbour that it did not know, or of another cost of the link."""
        if self.kind.set_link is not None:
            self.event(self.kind.set_link, self.node, peer, cost)

    async def improve(self, *, is_last: bool = False) -> None:
        """Does what the node has due that takes long (`NodeAdapter.improve`), beside all else."""
        due = None if self._has_failed else self.kind.improve(self.node, is_last)
        if due is not None:
            self.event(await asyncio.to_thread(due))

    async def serve(self, peer: str, stream: ByteStream) -> None:
        """Runs a stream that a neighbour has made, whose name is certain."""
        await self.neighbours.serve(peer, stream)

    async def submit(self, client: str, messages: Sequence[object]) -> list[object]:
        """Gives the node a client's messages; returns when what it made of all of them is on disk.

        Any number of calls of one client may be under way. Those that are there together are one
        event of the node, and all calls of a commit wait for the disk together.

        Returns:
            What the node sent to the client because of these messages, in its order.

        Raises:
            UnavailableError: Too many messages wait for neighbours; try again.
            PathcastError: The node refused a message. Those before it are taken, or none is, as
                the kind of the node says.
            DiskError: Nothing was kept.
        """
        self._check_backlog()
        return await self._request(client, messages)

    async def ask(self, client: str, message: object, seconds: float) -> object:
        """Gives the node a client's message; returns its answer when what it did is on disk.

        Raises:
            UnavailableError: The disk, or whom the node asks itself, took longer.
            FrameError: Messages of this kind have no answer.
            PathcastError: The node refused the message.
        """
        try:
            async with asyncio.timeout(seconds):
                if self._requests is not None:
                    with self._requests.awaited(client, message) as answer:
                        self.event(self.node.receive, client, message)
                        return await answer
                answers = await self._request(client, [message])
        except TimeoutError as error:
            raise UnavailableError("peer.silent", name=self.name, seconds=seconds) from error
        if not answers:
            reason = f"{type(message).__name__} was taken, and has no answer: publish it"
            raise FrameError("frame.unreadable", peer=client, reason=reason)
        return answers[0]

    async def _request(self, client: str, messages: Sequence[object]) -> list[object]:
        """The answers to messages that came together, when what was made of them is on disk."""
        self._check_may_act()
        for message in messages:
            if type(message) in self.kind.prepare:
                await asyncio.to_thread(self.kind.prepare[type(message)], self.node, message)
        if self.kind.request is not None:
            await self._room.wait()
            return await self._called(client, messages)
        answers: list[object] = []
        for message in messages:
            await self._room.wait()
            told, others = parted_effects(client, self._told(self.node.receive, client, message))
            answers += told
            self._do(others)
        await self._kept()
        return answers

    async def _called(self, client: str, messages: Sequence[object]) -> list[object]:
        """The answers to a call, which is one event with all others that are there by now."""
        loop = asyncio.get_running_loop()
        call = WaitingCall(client, messages, loop.create_future())
        if not self._calls:
            # Behind whoever is about to call: their messages came while the loop was busy.
            loop.call_soon(self._do_calls)
        self._calls.append(call)
        await call.kept
        return list(call.answers)

    def _do_calls(self) -> None:
        """Does the calls that wait, up to a number of messages; the rest has its turn later."""
        calls, self._calls = parted_calls(self._calls)
        if self._calls:
            asyncio.get_running_loop().call_soon(self._do_calls)
        assert self.kind.request is not None
        try:
            self._check_is_running()
            asked = [(call.client, call.messages) for call in calls]
            outcomes, effects = self._told(self.kind.request, self.node, asked)
            self._do(effects)
        except Exception as error:
            for call in calls:
                end(call.kept, error)
            return
        for call, outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, PathcastError):
                end(call.kept, outcome)
                continue
            call.answers = outcome
            self._when_kept(call.kept)

    @contextlib.contextmanager
    def listening(self, subscriber: str) -> Iterator[Arrivals]:
        """Collect deliveries to the subscriber's inbox while the block runs."""
        arrivals = Arrivals()
        self._listeners.setdefault(subscriber, []).append(arrivals)
        try:
            yield arrivals
        finally:
            self._listeners[subscriber].remove(arrivals)
            if not self._listeners[subscriber]:
                del self._listeners[subscriber]

    async def inbox(
        self,
        subscriber: str,
        after: int,
        arrivals: Arrivals,
        limit: int,
        bytes_max: int = 1 << 62,
    ) -> list[Waiting]:
        """Return the deliveries after a position of an inbox, and the gaps between them.

        Args:
            subscriber: Whose inbox.
            after: Position of the last delivery that is not wanted.
            arrivals: What has come meanwhile: the disk is not asked for it.
            limit: How many at most are read from the disk.
            bytes_max: Bytes of these.
        """
        if held := arrivals.take(after):
            return held
        read = await self.on_disk(self.disk.read, subscriber, after, limit, bytes_max)
        return [self._as_told(each) if isinstance(each, Gap) else each for each in read]

    async def settle_letters(
        self, what: Literal["retry", "drop"], subscriber: str, positions: Sequence[int]
    ) -> int:
        """Has dead letters posted again, or drops them; how many, once it is on disk."""
        settle = self.disk.retry_letters if what == "retry" else self.disk.drop_letters
        count = await self.on_disk(settle, subscriber, positions)
        for arrivals in self._listeners.get(subscriber, ()):
            arrivals.put(())
        return count

    def _as_told(self, gap: Gap) -> Waiting:
        # The same words of a gap have the same id, as those of a delivery have.
        return Waiting(gap.last, f"dropped\t{gap.first}\t{gap.last}", self.kind.gap(gap))

    def acknowledge(self, subscriber: str, position: int) -> None:
        """A subscriber has everything up to `position`; on disk soon, or with `kept`."""
        if not self._acknowledged:
            asyncio.get_running_loop().call_later(ACKNOWLEDGE_SECONDS, self._keep_acknowledged)
        before = self._acknowledged.get(subscriber, 0)
        self._acknowledged[subscriber] = max(position, before)

    def _keep_acknowledged(self) -> None:
        """Save acknowledgements together with the next group."""
        acknowledged, self._acknowledged = self._acknowledged, {}
        for subscriber, position in acknowledged.items():
            before = self._group.acknowledged.get(subscriber, 0)
            self._group.acknowledged[subscriber] = max(position, before)
        if acknowledged:
            self._work.set()

    async def on_disk(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a method of the disk, in its thread.

        Raises:
            UnavailableError: The carrier has stopped.
        """
        if self._is_closed:
            raise UnavailableError("peer.unreachable", name=self.name, reason="it has stopped")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, lambda: call(*args, **kwargs))

    def backlog(self) -> Mapping[str, int]:
        """Neighbour -> messages that it has not taken yet."""
        if self.kind.backlog is not None:
            return self.kind.backlog(self.node)
        return {peer: each.queued for peer, each in self.neighbours.connections.items()}

    def _check_backlog(self) -> None:
        given = sum(self.backlog().values())
        if given >= self._backlog_max:
            raise UnavailableError(
                "broker.full", name=self.name, given=given, maximum=self._backlog_max
            )

    def _has_room_from(self, peer: str) -> bool:
        # What came from a neighbour is not sent back to it. So on a tree brokers that wait for
        # each other form no circle, and whoever waits is waited for by nobody it waits for.
        others = sum(count for name, count in self.backlog().items() if name != peer)
        return others < self._backlog_max

    async def _take(self, peer: str, taken: Sequence[tuple[Packet, object]]) -> None:
        for _, message in taken:
            if not self._room.is_set():
                await self._room.wait()
            self._check_may_act()
            self.event(self.node.receive, peer, message)

    def _changed(self, peer: str, is_up: bool) -> None:
        if not self._has_failed:
            self.event(self.node.neighbour, peer, is_up)
            if not is_up and self.kind.ended is not None:
                self._spawn(self._find_out(peer, self.kind.ended))

    async def _find_out(
        self, peer: str, ended: Callable[[Node, str, float], Sequence[Effect]]
    ) -> None:
        if await self._has_ended(peer) and peer not in self.neighbours.connections:
            log_event("neighbour.ended", name=self.name, neighbour=peer)
            if not self._has_failed:
                self.event(ended, self.node, peer)

    def _wake(self, timer: str) -> None:
        del self._timers[timer]
        if not self._has_failed:
            self.event(self.node.wake, timer)

    @property
    def _has_failed(self) -> bool:
        return self.failure is None or self.failure.done()

    def event(self, handler: Callable[..., Sequence[Effect]], *event: object) -> None:
        """Gives the node an event, and begins what it wants done.

        That is done when it returns, unless events of this kind of node wait for a database.
        """
        if self.kind.blocks:
            self._spawn(self._wait_for_event(handler, *event))
        else:
            self._do(self._told(handler, *event))

    async def _wait_for_event(
        self, handler: Callable[..., Sequence[Effect]], *event: object
    ) -> None:
        """Does an event in the node's thread, after the events before it."""
        async with self._turn:
            loop, now = asyncio.get_running_loop(), self.now()
            try:
                effects = await loop.run_in_executor(self._thread, lambda: handler(*event, now))
            except Exception as error:
                # Such a node answers whom it refuses: what it raises is a bug.
                self._distrust(error)
                raise
            self._do(effects)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and self._has_failed:
            # `run` raises it; the loop logs any other.
            task.exception()

    def _told(self, handler: Callable[..., T], *event: object) -> T:
        """The effects that the node makes of an event."""
        if self._has_failed:
            raise UnavailableError("peer.unreachable", name=self.name, reason="it has stopped")
        try:
            return handler(*event, self.now())
        except PathcastError:
            raise
        except Exception as error:
            self._distrust(error)
            raise

    def _distrust(self, error: Exception) -> None:
        """A bug of the node: what it holds in memory is not to be trusted any more."""
        log_event("process.failed", exc_info=True, name=self.name, reason=repr(error))
        assert self.failure is not None
        if not self.failure.done():
            self.failure.set_exception(error)

    def _fail(self) -> None:
        assert self.failure is not None
        assert self._end_reason is not None
        if not self.failure.done():
            self.failure.set_exception(self._end_reason)

    def _do(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Wake(timer, after):
                    self._stop_timer(timer)
                    loop = asyncio.get_running_loop()
                    self._timers[timer] = loop.call_later(max(after, 0.0), self._wake, timer)
                case Cancel(timer):
                    self._stop_timer(timer)
                case Send() if not self._is_writing and not self._group.effects:
                    self._send(effect)
                case Deliver(to, what) if self._deliver is not None:
                    self._deliver(to, what)
                case _:
                    self._group.effects.append(effect)
        if self._group.effects:
            self._work.set()
            if len(self._group.effects) > PENDING_MAX:
                self._room.clear()
        if self._end_reason is None and (reason := self.kind.end(self.node)) is not None:
            log_event("process.ending", name=self.name, reason=str(reason))
            self._end_reason = reason
            asyncio.get_running_loop().call_later(END_SECONDS, self._fail)

    def _stop_timer(self, timer: str) -> None:
        handle = self._timers.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _send(self, effect: Send) -> None:
        if self._requests is None:
            self.neighbours.offer(effect.to, self.codec.packet(effect.message))
        elif self._requests.is_call(effect.message):
            self._spawn(self._call(self._requests, effect))
        else:
            self._requests.answer(effect.to, effect.message)

    async def _call(self, requests: Requests, effect: Send) -> None:
        answer = await requests.asked(effect.to, effect.message)
        if answer is not None:
            self.event(self.node.receive, effect.to, answer)

    async def kept(self) -> None:
        """Returns when what was done so far is on disk.

        Raises:
            DiskError: It is not.
            UnavailableError: The carrier has stopped.
        """
        self._keep_acknowledged()
        await self._kept()

    async def _kept(self) -> None:
        """Save a group, without acknowledgements (see `kept`)."""
        self._check_is_running()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._when_kept(future)
        await future

    def _check_is_running(self) -> None:
        if self._committing is None or self._committing.done():
            raise UnavailableError("peer.unreachable", name=self.name, reason="it has stopped")

    def _when_kept(self, future: asyncio.Future[None]) -> None:
        """Ends a future when what was done so far is on disk."""
        if self._group.is_empty and not self._is_writing:
            end(future)
            return
        self._group.waiting.append(future)
        self._work.set()

    async def _flushed(self) -> None:
        if self._committing is not None and not self._committing.done():
            await self.kept()

    async def _commit_all(self) -> None:
        assert self.failure is not None
        group = _Group()
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                group, self._group = self._group, _Group()
                self._is_writing = True
                came = await self._commit(group)
                self._is_writing = False
                self._room.set()
                for effect in group.effects:
                    if isinstance(effect, Send):
                        self._send(effect)
                for future in group.waiting:
                    end(future)
                for subscriber, waiting in came.items():
                    for arrivals in self._listeners.get(subscriber, ()):
                        arrivals.put(waiting)
                self.neighbours.grant()
        except PathcastError as error:
            # A broker that cannot keep what it is told must not speak of it: it stops.
            log_event("process.failed", name=self.name, **reason_of(error))
            for future in (*group.waiting, *self._group.waiting, self.failure):
                end(future, error)

    async def _commit(self, group: _Group) -> Mapping[str, Sequence[Waiting]]:
        saved: dict[str, bytes | None] = {}
        deliveries: list[tuple[str, str, bytes]] = []
        for effect in group.effects:
            match effect:
                case Save(key, value):
                    saved[key] = value
                case Forget(key):
                    saved[key] = None
                case Deliver(to, what):
                    deliveries.append((to, *self.kind.delivery(what)))
        if not saved and not deliveries and not group.acknowledged:
            return {}
        with self.meters.commits.time():
            came = await self.on_disk(self.disk.commit, saved, deliveries, group.acknowledged)
        self.meters.delivered.inc(sum(map(len, came.values())))
        return came

    async def _end(self) -> None:
        for timer in list(self._timers):
            self._stop_timer(timer)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._thread.shutdown(wait=True)
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.gather(self._committing, return_exceptions=True)
        self._is_closed = True
        self._writer.shutdown(wait=True)
        self.disk.close()
