"""A broker process that takes its profiles and sources from the registration service.

Several processes with the name of a broker wait for its lease. The one that has it opens the
broker's directory, brings what is kept there up to what the profile database says, and runs; when
it cannot renew the lease it ends its work, closes the directory and waits again. So a broker never
runs twice, and never without the profiles that it is the host of.

With a directory that the processes share (one machine, or a disk that moves with the broker)
nothing is lost when one takes over from another; without, it is as if the broker had lost its disk.
A player that stands still and goes on later finds that its lease is over before it hears or
answers anybody, and that its directory is fenced (`pathcast.transport.fencing`) before it speaks of
anything that it has just kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn

from pathcast.errors import (
    ConfigError,
    DiskError,
    PathcastError,
    RegistrationError,
    StoreError,
    UnavailableError,
)
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.deliveries import InForce
from pathcast.overlay.hosting import Hosting, Served
from pathcast.overlay.sampling import SAMPLE_MESSAGES, SourceSamples
from pathcast.overlay.serving import HandedOver, LeftProfile, Planes, kept_for
from pathcast.protocol import Effect, Node
from pathcast.store import BrokerRecord as Part
from pathcast.store import ChangeRecord, Store
from pathcast.transport.broker import moved_id
from pathcast.transport.broker_requests import (
    LeaveRequest,
    PublishRequest,
    RegisterSourceRequest,
    RequestAccepted,
    Subscribe,
    Unsubscribe,
)
from pathcast.transport.calls import ClientCall, Outcomes
from pathcast.transport.carrier import Carrier, NodeAdapter
from pathcast.transport.disk import Disk
from pathcast.transport.events import log_event, reason_of
from pathcast.transport.fencing import Fence
from pathcast.transport.grpc_streams import Address
from pathcast.transport.monitor import Monitor, monitored
from pathcast.transport.process import Reread, running, until_ended
from pathcast.transport.registration import BROKER_ROLES, CODEC, METHODS, key_of
from pathcast.transport.requests import Requests
from pathcast.transport.security import Authenticator
from pathcast.transport.service import AskMethods
from pathcast.transport.settings import BrokerSettings, RegistrationSection, database_of
from pathcast.transport.starting import Starting

TAKEN_SECONDS: Final = 0.2
"""Pause before a directory is tried again that a former player has not given back yet."""

STUCK_SECONDS: Final = 5.0
"""A former player that has not given the directory back by then stands still: it is copied."""

APPLY_SECONDS: Final = 60.0

MOVE_SECONDS: Final = 0.5
"""How often a broker looks at profiles that come from other hosts or go to them."""

WAITING: Final = "another process plays it, or the profile database does not answer"
"""Why a process of a broker is not ready."""


class ReviewMoves:
    """A request to go on with moves of profiles."""


class HostedKind:
    """A kind of broker whose profiles and sources are told by `Hosting` alone.

    Args:
        kind: The kind of broker.
        served: With what it begins.
        in_force: Called with a profile, when it is, since which version of its record it is served,
            and with the positions that were handed over.
        samples: Takes messages that are published here; None if none are kept.

    Attributes:
        left: Profiles that have gone to other hosts, whose subscribers may not know it yet.
    """

    def __init__(
        self,
        kind: NodeAdapter[Any],
        served: Served,
        in_force: Callable[[str, int, Mapping[str, tuple[int, int]]], None],
        samples: SourceSamples | None,
    ) -> None:
        self._kind = kind
        self._served = served
        self._in_force = in_force
        self._samples = samples
        self._planes: Planes | None = None
        self.left: dict[str, LeftProfile] = {}

    @property
    def kind(self) -> NodeAdapter[Any]:
        """Return the node kind for a carrier."""
        return replace(self._kind, make=self._make, request=self._request, delivery=self._delivery)

    def _make(self, saved: Mapping[str, bytes], life: int) -> Node:
        node = self._kind.make(saved, life)
        assert isinstance(node, BrokerNode)
        self._planes = Planes(node, self._served)
        return node

    def _request(self, node: Node, calls: Sequence[ClientCall], now: float) -> Outcomes:
        effects: list[Effect] = []
        outcomes: list[Sequence[object] | PathcastError] = []
        asked: dict[int, ClientCall] = {}
        for place, (client, messages) in enumerate(calls):
            try:
                answers, others = self._answers(messages, now, effects)
            except PathcastError as error:
                outcomes.append(error)
                continue
            outcomes.append(answers)
            if others:
                asked[place] = client, others
        if asked:
            assert self._kind.request is not None
            found, more = self._kind.request(node, list(asked.values()), now)
            effects += more
            for place, outcome in zip(asked, found, strict=True):
                before = outcomes[place]
                if isinstance(outcome, PathcastError):
                    outcomes[place] = outcome
                elif not isinstance(before, PathcastError):
                    outcomes[place] = [*before, *outcome]
        return outcomes, effects

    def _answers(
        self, messages: Sequence[object], now: float, effects: list[Effect]
    ) -> tuple[list[object], list[object]]:
        """Answers to what the service says, whose effects are added; and all other messages.

        Raises:
            RegistrationError: Something is the service's to do.
            PathcastError: The broker refuses what the service says.
        """
        answers: list[object] = []
        others: list[object] = []
        for message in messages:
            if isinstance(message, Served | ChangeRecord):
                assert self._planes is not None
                effects += self._planes.apply(message, now)
                answers.append(RequestAccepted())
            elif isinstance(message, ReviewMoves):
                effects += self._review(now)
                answers.append(RequestAccepted())
            elif isinstance(
                message, Subscribe | Unsubscribe | RegisterSourceRequest | LeaveRequest
            ):
                raise RegistrationError("registration.service", asked=type(message).__name__)
            else:
                assert self._planes is not None
                self._sample(message)
                others.append(message)
        return answers, others

    def _sample(self, message: object) -> None:
        if self._samples is None or not isinstance(message, PublishRequest):
            return
        assert self._planes is not None
        if self._planes.is_root_of(message.source):
            self._samples.add(message.source, message.body)

    def _review(self, now: float) -> Sequence[Effect]:
        assert self._planes is not None
        moved, effects = self._planes.review(now)
        for each in moved:
            if isinstance(each, HandedOver):
                self._in_force(each.profile, each.since, each.positions)
            else:
                self.left[each.profile] = each
        return effects

    def _delivery(self, what: object) -> tuple[str, bytes]:
        if isinstance(what, InForce):
            assert self._planes is not None
            since = self._planes.served_since(what)
            if since is not None and not self._planes.awaits_move(what.subscription, since):
                self._in_force(what.subscription, since, {})
        return self._kind.delivery(what)


class HostedBroker:
    """One process of a broker. See the module.

    Args:
        settings: What it is told, with a registration service.
        kind: Its node.
        ready: Called with the address where it listens, whenever it begins to.
        reread: Reads the settings again, at SIGHUP.
        is_new: Whether its directory may have no database yet.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        kind: NodeAdapter[Any],
        ready: Callable[[str], None],
        reread: Reread | None,
        *,
        is_new: bool = False,
    ) -> None:
        assert settings.registration is not None
        self._settings = settings
        self._kind = kind
        self._ready = ready
        self._reread = reread
        self._may_begin = is_new
        self._address = _address(settings, settings.registration)
        self._told: asyncio.Queue[Served | ChangeRecord] = asyncio.Queue()
        self._monitor = Monitor()

    async def run(self) -> None:
        """Runs until SIGTERM or Ctrl-C.

        Raises:
            ConfigError: It cannot listen there, or the database is none.
            StoreError: The database cannot be opened.
            DiskError: Its directory cannot be had, or it could not keep what it was told.
        """
        registration = self._settings.registration
        assert registration is not None
        if self._reread is not None:
            # A process that waits reads its settings again when it begins to run.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        name = self._settings.broker.name
        store = Store.open(database_of(registration.store), create=self._may_begin)
        with store:
            bandwidth, most = registration.bandwidth, registration.profiles_max
            part = Part(name, self._address, registration.location, bandwidth, most)
            hosting = Hosting(self._address, part, store, lease_seconds=registration.lease_seconds)
            carrier = Carrier(
                name,
                NodeAdapter(lambda saved, life: hosting, CODEC, roles=BROKER_ROLES, blocks=True),
                Disk(None),
                requests=Requests(name, key_of),
                deliver=self._deliver,
            )
            self._monitor.hold("part", WAITING)
            async with monitored(self._settings.broker.metrics, self._monitor):
                try:
                    await carrier.start()
                    await until_ended(carrier.run, lambda: self._play(carrier, hosting, store))
                finally:
                    await carrier.stop()
            if hosting.leadership.lease is not None:
                store.give_back(hosting.leadership.lease)

    def _deliver(self, to: str, what: object) -> None:
        if isinstance(what, Served | ChangeRecord):
            self._told.put_nowait(what)

    async def _play(self, carrier: Carrier, hosting: Hosting, store: Store) -> None:
        """Plays the part whenever it is this process's."""
        while True:
            told = await self._told.get()
            while isinstance(told, Served) and told.is_played:
                log_event("lease.taken", name=hosting.id, address=self._address)
                self._monitor.release("part")
                try:
                    told = await self._play_once(carrier, hosting, store, told)
                except DiskError as error:
                    if error.code != "disk.fenced":
                        raise
                    log_event("lease.fenced", name=hosting.id, **reason_of(error))
                    carrier.event(hosting.lapsed)
                    told = Served(is_played=False)
                self._monitor.hold("part", WAITING)
                log_event("lease.lost", name=hosting.id, address=self._address)

    async def _play_once(
        self, carrier: Carrier, hosting: Hosting, store: Store, served: Served
    ) -> Served:
        """Runs the broker until the part is lost; returns what was told then."""
        if (lease := hosting.leadership.lease) is None:
            return Served(is_played=False)
        disk = await self._disk(lease.token)
        try:
            disk.commit(kept_for(served, disk.saved()))
        except DiskError:
            disk.close()
            raise

        def check() -> None:
            if hosting.leadership.lease is None or hosting.leadership.until <= carrier.now():
                reason = "its lease is over; ask the registration service where it is now"
                raise UnavailableError("peer.unreachable", name=hosting.id, reason=reason)

        def in_force(profile: str, since: int, at: Mapping[str, tuple[int, int]]) -> None:
            carrier.event(partial(hosting.in_force, positions=at), profile, since)

        async def locate(address: Address) -> Address:
            with contextlib.suppress(StoreError):
                found = await asyncio.to_thread(store.get, Part, address.name)
                if found is not None and found.address:
                    return replace(address, target=found.address)
            return address

        assert self._settings.registration is not None
        sample_seconds = self._settings.registration.sample_seconds
        samples = SourceSamples() if sample_seconds else None
        hosted_kind = HostedKind(self._kind, served, in_force, samples)
        gate = Authenticator(self._settings.peers, with_certificates=self._settings.tls is not None)
        starting = Starting(self._settings.broker.name)
        starting.end(carrier)
        async with running(
            self._settings,
            hosted_kind.kind,
            disk=disk,
            locate=locate,
            beside=[AskMethods(starting, gate, METHODS)],
            reread=self._reread,
            monitor=self._monitor,
            check=check,
        ) as broker:
            self._ready(self._address)
            following = asyncio.ensure_future(follow(self._told, broker))
            beside = [asyncio.ensure_future(_move(broker, hosted_kind, carrier, hosting))]
            if samples is not None:
                sampling = _sample(samples, carrier, hosting, sample_seconds)
                beside.append(asyncio.ensure_future(sampling))
            ended = asyncio.ensure_future(broker.run())
            lapsed = asyncio.ensure_future(_lapsed(carrier, hosting))
            try:
                first = asyncio.FIRST_COMPLETED
                await asyncio.wait([following, ended, lapsed, *beside], return_when=first)
                for done in (*beside, ended):
                    if done.done():
                        await done
                if lapsed.done():
                    carrier.event(hosting.lapsed)
                return await (lapsed if lapsed.done() else following)
            finally:
                for task in (following, ended, lapsed, *beside):
                    task.cancel()

    async def _disk(self, token: int) -> Disk:
        """The broker's directory, as soon as no former player has it, or a copy of it.

        Raises:
            DiskError: It cannot be had, or there is a newer player ("disk.fenced").
        """
        section = self._settings.broker
        fence = Fence(section.directory, token)
        fence.raise_up()
        clock = asyncio.get_running_loop()
        stuck = clock.time() + STUCK_SECONDS
        while True:
            place = fence.place
            try:
                disk = Disk(
                    place,
                    section.inbox_bounds,
                    name=section.name,
                    # Another process of the part may have begun it.
                    is_new=None if self._may_begin else False,
                    check=fence.check,
                )
            except DiskError as error:
                if error.code != "disk.taken":
                    raise
                log_event("disk.awaited", **reason_of(error))
            else:
                try:
                    fence.use(place)
                    await asyncio.to_thread(fence.clear)
                except BaseException:
                    disk.close()
                    raise
                return disk
            await asyncio.sleep(TAKEN_SECONDS)
            if clock.time() > stuck:
                log_event("disk.copied", name=section.name, path=str(place))
                await self._copied(fence)

    async def _copied(self, fence: Fence) -> None:
        """Copies the directory, if it can be read just now: it is tried again."""
        try:
            await asyncio.to_thread(fence.copy)
        except DiskError as error:
            if error.code != "disk.failed":
                raise
            log_event("disk.uncopied", **reason_of(error))


async def follow(changes: asyncio.Queue[Served | ChangeRecord], broker: Carrier) -> Served:
    """Gives the planes what changes, in order, until the part is lost.

    A change does not wait until the one before is on disk: the service says that a source is known
    as soon as this queue has it, and its publisher may come at once.

    Args:
        changes: What the service says.
        broker: Whose planes they are.

    Returns:
        What says that the part is lost.

    Raises:
        PathcastError: The broker refuses a change, or cannot keep it.
    """
    coming = asyncio.ensure_future(changes.get())
    applied: list[asyncio.Future[Any]] = []
    try:
        while True:
            waiting: list[asyncio.Future[Any]] = [coming, *applied]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in [each for each in applied if each.done()]:
                applied.remove(each)
                each.result()
            if coming.done():
                told = coming.result()
                if isinstance(told, Served) and not told.is_played:
                    return told
                applied.append(asyncio.ensure_future(broker.ask("", told, APPLY_SECONDS)))
                coming = asyncio.ensure_future(changes.get())
    finally:
        coming.cancel()
        for each in applied:
            each.cancel()


async def _move(
    broker: Carrier, hosted: HostedKind, carrier: Carrier, hosting: Hosting
) -> NoReturn:
    """Goes on with moves of profiles; says so when a subscriber has had all that was here."""
    while True:
        await asyncio.sleep(MOVE_SECONDS)
        # Without a lease it acts no more, until it has another one.
        with contextlib.suppress(UnavailableError):
            await broker.ask("", ReviewMoves(), APPLY_SECONDS)
            for each in list(hosted.left.values()):
                notice = moved_id(each.profile, each.ticket)
                if await broker.on_disk(broker.disk.has_acknowledged, each.subscriber, notice):
                    carrier.event(hosting.left, each.profile, each.ticket)
                    del hosted.left[each.profile]


async def _sample(
    samples: SourceSamples, carrier: Carrier, hosting: Hosting, seconds: float
) -> NoReturn:
    """Keeps samples of the messages that are published here, of sources that published enough."""
    while True:
        await asyncio.sleep(seconds)
        if taken := samples.taken(SAMPLE_MESSAGES):
            carrier.event(hosting.sampled, taken)


async def _lapsed(carrier: Carrier, hosting: Hosting) -> Served:
    """Ends when the lease has: a node that waits for the database for so long cannot tell."""
    while (left := hosting.leadership.until - carrier.now()) > 0:
        await asyncio.sleep(left)
    return Served(is_played=False)


def _address(settings: BrokerSettings, registration: RegistrationSection) -> str:
    """Where others find this process.

    Raises:
        ConfigError: The port is not known before it listens.
    """
    address = registration.address or settings.broker.listen
    if address.endswith(":0"):
        reason = "it is where others find this broker; give it, or a port to broker.listen"
        raise ConfigError("config.invalid", key="registration.address", reason=reason)
    return address


async def run_hosted_broker(
    settings: BrokerSettings,
    kind: NodeAdapter[Any],
    ready: Callable[[str], None] = lambda _: None,
    reread: Reread | None = None,
    *,
    is_new: bool = False,
) -> None:
    """Runs one process of a broker that has a registration service: see `HostedBroker.run`."""
    await HostedBroker(settings, kind, ready, reread, is_new=is_new).run()
