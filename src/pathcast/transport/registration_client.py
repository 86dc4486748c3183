"""The client of sources and users: registers them at the service, and finds their brokers.

Example:
    >>> async def main(service: list[Address], broker: Address) -> None:
    ...     async with RegistrationClient("ann", service, broker) as client:
    ...         made = await client.register_interest("//item[@sku = 'A7']", deliver="ids")
    ...         async for delivery in client.deliveries(made.profile):
    ...             print(delivery.message)
    ...             await client.acknowledge(made.profile)

A request is repeated until it is answered, at one node of the service after the other, under one
name, so that it is done once; a broker that another process plays by now is looked for again. Of a
subscription and a stream only what is behind the last delivery is taken: each delivery comes once,
from whichever process of the broker it comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

from pathcast.engine import carried_mode
from pathcast.errors import PathcastError, RegistrationError, UnavailableError
from pathcast.lint import Completion, Proposal
from pathcast.model import LocalDeliverMode, QueryLanguage
from pathcast.moments import us_of
from pathcast.overlay.content import asked_query
from pathcast.overlay.deliveries import Dropped, InboxDelivery, Moved, Told, Undecided
from pathcast.overlay.registration_messages import (
    ChangeInterest,
    Complete,
    Completed,
    DeleteInterest,
    InterestChanged,
    InterestRegistered,
    Locate,
    Located,
    RegisterInterest,
    RegisterSource,
    RegistrationRefused,
    SourceRegistered,
    SourceUpdated,
    UpdateSource,
)
from pathcast.transport.broker_requests import CODEC as BROKER_CODEC
from pathcast.transport.broker_requests import DELIVERIES, PublishRequest
from pathcast.transport.client import BrokerClient
from pathcast.transport.disk import Waiting
from pathcast.transport.grpc_streams import Address
from pathcast.transport.registration import Callers

Asked = (
    RegisterSource
    | RegisterInterest
    | ChangeInterest
    | DeleteInterest
    | UpdateSource
    | Locate
    | Complete
)
_Answer = TypeVar("_Answer")

REQUEST_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 0.2
"""Pause before a request is repeated, or a broker that is not there is looked for again."""
DROPPED_SECONDS: Final = 1.0
"""How often the host is asked for after an inbox has dropped deliveries, `Moved` perhaps."""
SETTLE_SECONDS: Final = 3.0
"""Pause before a former host is told again that all was read there."""


@dataclass(slots=True)
class _Left:
    """A former host, the position up to which it was read, and when it is told so."""

    place: tuple[str, str]
    position: int
    due: float = float("-inf")


class RegistrationClient:
    """A source or a user.

    Args:
        name: Who calls; profiles and sources belong to this name.
        service: The nodes of the registration service.
        broker: How brokers are spoken to: token, certificates, plain text; name and target are
            those of the broker that the service gives.
    """

    def __init__(self, name: str, service: Sequence[Address], broker: Address) -> None:
        self._name = name
        self._service = {address.target: address for address in service}
        self._broker = broker
        self._callers = Callers(name, self._address)
        self._following: dict[str, tuple[BrokerClient, int]] = {}
        self._acknowledged: dict[str, tuple[BrokerClient, int]] = {}
        # Profile -> the former host that does not know yet that all was read there.
        self._left: dict[str, _Left] = {}
        # Source or profile -> its broker, and HOST:PORT of the process that plays it.
        self._places: dict[str, tuple[str, str]] = {}
        # Profile that was registered here -> where it is read first.
        self._first: dict[str, tuple[str, str]] = {}
        self._incarnation = secrets.randbits(53)
        self._requests = 0
        # The node of the service that is asked, by its place among them.
        self._node = 0
        # Why the latest call had no answer.
        self._failure: UnavailableError | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._callers.close()

    async def register_source(
        self,
        location: str,
        schema: str = "",
        *,
        messages_a_second: float = 1.0,
        message_bytes: float = 4096.0,
        validated: bool = False,
        seconds: float = REQUEST_SECONDS,
    ) -> SourceRegistered:
        """(1) to (3): when it returns, the root broker knows the source.

        Args:
            location: Where it is: names from the widest to the narrowest.
            schema: A DTD or an XML Schema; empty for none.
            messages_a_second: Expected.
            message_bytes: Expected.
            validated: Whether the root takes only messages that are valid by the schema.
            seconds: How long it is asked for.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be registered all the same.
        """
        asked = RegisterSource("-", location, schema, messages_a_second, message_bytes, validated)
        made = await self._ask(asked, SourceRegistered, seconds)
        self._places[made.source] = made.root, made.address
        return made

    async def register_interest(
        self,
        query: str,
        *,
        deliver: LocalDeliverMode = "fragment",
        location: str = "",
        namespaces: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        steps: Sequence[str] = (),
        language: QueryLanguage | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> InterestRegistered:
        """(5) to (7): what is published from when it returns is delivered.

        Args:
            query: XPath or XQuery.
            deliver: As for `Subscription`.
            location: Where the user is.
            namespaces: As for `Subscription`.
            labels: To find the profile by.
            steps: What is done to a message before the query sees it, in order: `drop PATH`,
                `unwrap PATH`, `rename PATH NAME`.
            language: "xpath1" or "xquery"; None leaves it to the text.
            seconds: How long it is asked for.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be registered all the same.
        """
        asked = RegisterInterest(
            "-",
            self._name,
            asked_query(query, language),
            location,
            carried_mode(deliver),
            dict(namespaces or {}),
            dict(labels or {}),
            tuple(steps),
        )
        made = await self._ask(asked, InterestRegistered, seconds)
        self._places[made.profile] = made.host, made.address
        is_moving = bool(made.former and made.former_address)
        self._first[made.profile] = (
            (made.former, made.former_address) if is_moving else self._places[made.profile]
        )
        return made

    async def change_interest(
        self,
        profile: str,
        query: str,
        *,
        deliver: LocalDeliverMode = "fragment",
        namespaces: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        paused: bool = False,
        steps: Sequence[str] = (),
        language: QueryLanguage | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> None:
        """(8): the profile is another one. When that is in force, `InForce` comes to the inbox.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be changed all the same.
        """
        names, marks = dict(namespaces or {}), dict(labels or {})
        text = asked_query(query, language)
        asked = ChangeInterest(
            "-", profile, text, carried_mode(deliver), names, marks, paused, tuple(steps)
        )
        await self._ask(asked, InterestChanged, seconds)

    async def delete_interest(self, profile: str, seconds: float = REQUEST_SECONDS) -> None:
        """(8): the profile goes.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be gone all the same.
        """
        await self._ask(DeleteInterest("-", profile), InterestChanged, seconds)

    async def update_source(
        self,
        source: str,
        *,
        schema: str | None = None,
        messages_a_second: float | None = None,
        message_bytes: float | None = None,
        validated: bool | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> int:
        """Another schema, or other expectations; the number of its catalog from now on.

        What is not given stays, also whether messages are validated.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be changed all the same.
        """
        asked = UpdateSource("-", source, schema, messages_a_second, message_bytes, validated)
        return (await self._ask(asked, SourceUpdated, seconds)).catalog

    async def locate(self, id: str, seconds: float = REQUEST_SECONDS) -> Located:
        """Which broker serves a source or a profile of this name now.

        Args:
            id: Of the source or the profile.
            seconds: How long it is asked for.

        Raises:
            RegistrationError: There is none of that id, or it is somebody else's.
            PeerRefusedError: The service does not admit the caller.
            UnavailableError: There was no answer.
        """
        return await self._ask(Locate("-", id), Located, seconds)

    async def complete(
        self,
        text: str,
        namespaces: Mapping[str, str] | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> Completion:
        """The names and values that can come next in an interest, by what sources publish.

        Args:
            text: XPath, up to where it is written.
            namespaces: Bindings of the interest.
            seconds: How long it is asked for.

        Raises:
            RegistrationError: What is complete of it cannot be read.
            PeerRefusedError: The service does not admit the caller.
            UnavailableError: There was no answer.
        """
        asked = Complete("-", text, dict(namespaces or {}))
        found = await self._ask(asked, Completed, seconds)
        proposals = (Proposal(*each) for each in found.proposals)
        return Completion(found.offset, tuple(proposals))

    async def publish(
        self,
        source: str,
        messages: Sequence[tuple[str, bytes]],
        seconds: float = REQUEST_SECONDS,
        time: datetime | None = None,
    ) -> list[object]:
        """(4): messages, each with an id, to the root of a source; they are on disk then.

        Messages of which that is not known are published again with the same ids.

        Args:
            source: Of which they are.
            messages: Id and body of each.
            seconds: How long the root is looked for.
            time: When the messages were, which is what `current-dateTime()` says at every host;
                without a time zone in UTC. When not given it is when they arrive at the root.

        Returns:
            What the root said to them: refusals of single messages.

        Raises:
            PublicationError: The source is not known, or not this one's.
            RegistrationError: The service does not know the source.
            UnavailableError: The root could not be reached, or had no room, for so long.
        """
        when = None if time is None else us_of(time)
        wanted = [PublishRequest(source, id, body, time=when) for id, body in messages]
        async with self._patience(source, seconds):
            while True:
                try:
                    async with self._client(source) as client:
                        return await client.publish(wanted)
                except UnavailableError:
                    await self._look_for(source)

    async def deliveries(self, profile: str) -> AsyncIterator[Told]:
        """Iterate over deliveries to this name at a profile's host, of its other profiles as well.

        It does not end, and goes on where the host is played by another process, and at another
        host when the profile moves: then `Moved` comes behind all that the former host had. That is
        acknowledged with what comes before it. Deliveries come
        once each; those that were yielded and are not acknowledged come again to whoever follows
        anew. A host that cannot be reached is looked for until it is there.

        Yields:
            Deliveries and verdicts, and `InForce`, `Lapsed` and `Dropped`, which may come twice.

        Raises:
            PeerRefusedError: The host does not let this name follow its inbox.
            RegistrationError: The service does not know the profile.
        """
        last: dict[tuple[str, str, int], int] = {}
        # Where it is read: at the former host, until all is read there.
        place = self._first.get(profile)
        while True:
            moved: Moved | None = None
            try:
                if place is None:
                    place = await self._place_to_read(profile, None)
                async with BrokerClient(
                    self._name, self._address(place[1], place[0]), BROKER_CODEC
                ) as client:
                    async for group in self._groups(client, profile, place):
                        for each in group:
                            told = DELIVERIES.decode(each.body)
                            if isinstance(told, InboxDelivery | Undecided):
                                stream = told.subscription, told.root, told.stream
                                if told.position <= last.get(stream, 0):
                                    continue
                                last[stream] = told.position
                            before = self._following.get(profile)
                            self._following[profile] = client, each.position
                            yield told
                            if isinstance(told, Moved) and told.subscription == profile:
                                moved = told
                                self._left[profile] = _Left(place, each.position)
                                acknowledged = self._acknowledged.get(profile)
                                if before is None or acknowledged in (
                                    before,
                                    self._following[profile],
                                ):
                                    await self._settle_left(profile)
                                break
                        if moved is not None:
                            break
                place = self._first[profile] = await self._place_to_read(profile, moved)
            except UnavailableError:
                await asyncio.sleep(AGAIN_SECONDS)
                place = await self._place_to_read(profile, moved)

    async def _groups(
        self, client: BrokerClient, profile: str, place: tuple[str, str]
    ) -> AsyncIterator[tuple[Waiting, ...]]:
        """Deliveries of one broker; ends if the profile has left it and a full inbox dropped that.

        A former host is over for the service when its subscriber has acknowledged what was dropped.
        """
        groups = client.deliveries(self._name)
        coming = asyncio.ensure_future(anext(groups))
        leaving: asyncio.Task[bool] | None = None
        is_asked_again = False
        try:
            while True:
                awaited = {coming} if leaving is None else {coming, leaving}
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    group = coming.result()
                    if any(isinstance(DELIVERIES.decode(each.body), Dropped) for each in group):
                        is_asked_again = True
                    yield group
                    coming = asyncio.ensure_future(anext(groups))
                if leaving is not None and leaving.done():
                    if leaving.result():
                        return
                    leaving = None
                if leaving is None and is_asked_again:
                    is_asked_again = False
                    leaving = asyncio.create_task(self._has_left(profile, place))
        finally:
            open_tasks = [task for task in (coming, leaving) if task is not None]
            for task in open_tasks:
                task.cancel()
            await asyncio.gather(*open_tasks, return_exceptions=True)

    async def _has_left(self, profile: str, place: tuple[str, str]) -> bool:
        """Whether a profile is read elsewhere now; it is asked while the profile is moving."""
        while True:
            await asyncio.sleep(DROPPED_SECONDS)
            found = await self._located(profile)
            if self._read_first(found) != place:
                return True
            if not found.former:
                return False

    async def acknowledge(self, profile: str) -> None:
        """All that was yielded by `deliveries(profile)` need not be kept any more."""
        client, position = self._following.get(profile, (None, 0))
        if client is not None:
            self._acknowledged[profile] = client, position
            # Where the host is gone, it comes again, and is not yielded again.
            with contextlib.suppress(UnavailableError):
                await client.acknowledge(position)
        await self._settle_left(profile)

    async def _settle_left(self, profile: str) -> None:
        """Has a former host know that all was read there; with its connection it might not."""
        now = asyncio.get_running_loop().time
        left = self._left.get(profile)
        if left is None or now() < left.due:
            return
        left.due = float("inf")
        # It is said again with a later acknowledgement, whatever the former host answers.
        try:
            with contextlib.suppress(PathcastError):
                address = self._address(left.place[1], left.place[0])
                async with BrokerClient(self._name, address, BROKER_CODEC) as client:
                    await client.settle(self._name, left.position)
                if self._left.get(profile) is left:
                    del self._left[profile]
        finally:
            left.due = now() + SETTLE_SECONDS

    async def _place_to_read(self, profile: str, moved: Moved | None) -> tuple[str, str]:
        """Broker and address where deliveries of a profile are read next.

        Args:
            profile: Its id.
            moved: What the former host has just said, if it has: all is read there.
        """
        found = await self._located(profile)
        return self._places[profile] if moved is not None else self._read_first(found)

    def _read_first(self, found: Located) -> tuple[str, str]:
        """Where a profile is read by whoever has not read all that its former host has."""
        if found.former and found.former_address:
            return found.former, found.former_address
        return found.broker, found.address

    def _address(self, target: str, name: str = "") -> Address:
        if target in self._service:
            return self._service[target]
        if name:
            return replace(self._broker, name=name, target=target)
        names = [name for name, place in self._places.values() if place == target]
        return replace(self._broker, name=names[0] if names else target, target=target)

    def _client(self, id: str) -> BrokerClient:
        place = self._places.get(id)
        if place is None:
            raise UnavailableError("peer.unreachable", name=id, reason="nobody knows where it is")
        return BrokerClient(self._name, self._address(place[1]), BROKER_CODEC)

    async def _look_for(self, id: str) -> None:
        """Asks where the broker of a source or a profile is now, until the service says it."""
        await asyncio.sleep(AGAIN_SECONDS)
        await self._located(id)
        await asyncio.sleep(AGAIN_SECONDS)

    async def _located(self, id: str) -> Located:
        """The place of a source or a profile, which is remembered."""
        broker, _ = self._places.get(id, ("", ""))
        # The broker that it was at can say that it was deleted.
        found = await self._asked(Locate("-", id, broker), Located)
        self._places[id] = found.broker, found.address
        return found

    @contextlib.asynccontextmanager
    async def _patience(self, name: str, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            if self._failure is not None and self._failure.code == "peer.unreachable":
                raise self._failure from error
            raise UnavailableError("peer.silent", name=name, seconds=seconds) from error

    async def _ask(self, message: Asked, kind: type[_Answer], seconds: float) -> _Answer:
        async with self._patience("the registration service", seconds):
            return await self._asked(message, kind)

    async def _asked(self, message: Asked, kind: type[_Answer]) -> _Answer:
        """The answer to a request, which is repeated under one name until there is one.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted; asking again is in vain.
        """
        self._requests += 1
        asked = msgspec.structs.replace(message, request=f"{self._incarnation}.{self._requests}")
        is_again = False
        while True:
            try:
                answer = await self._callers.call(await self._target(asked, is_again), asked)
                self._failure = None
            except UnavailableError as error:
                self._failure, answer = error, None
            if isinstance(answer, kind):
                return answer
            if isinstance(answer, RegistrationRefused) and not answer.retry:
                cause, reason = answer.code, answer.reason
                raise RegistrationError("registration.refused", cause=cause, reason=reason)
            is_again = True
            self._node += 1
            await asyncio.sleep(AGAIN_SECONDS)

    async def _target(self, message: Asked, is_again: bool) -> str:
        """HOST:PORT of whoever takes a request: a node of the service, or a broker."""
        if isinstance(message, RegisterSource | RegisterInterest | Locate | Complete):
            return list(self._service)[self._node % len(self._service)]
        id = message.source if isinstance(message, UpdateSource) else message.profile
        if is_again or id not in self._places:
            await self._look_for(id)
        return self._places[id][1]
