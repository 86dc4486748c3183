"""What sources and users speak to the registration service with, and find their brokers by.

Example:
    >>> async def main(service: list[Address], broker: Address) -> None:
    ...     async with RegistrationClient("ann", service, broker) as client:
    ...         made = await client.register_interest("//item[@sku = 'A7']", deliver="ids")
    ...         async for delivery in client.deliveries(made.profile):
    ...             print(delivery.message)
    ...             await client.acknowledge(made.profile)

Requests are repeated until they are answered, at any node of the service; a broker that another
process plays by now is looked for again. Deliveries come once each, whoever hands them over: of a
subscription and a stream only what is behind the last one is taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final, Self, TypeVar

from pathcast.errors import (
    PathcastError,
    PeerRefusedError,
    RegistrationError,
    UnavailableError,
)
from pathcast.model import DeliverMode
from pathcast.overlay.deliveries import Delivery, Told, Undecided
from pathcast.overlay.registrant import Asked, Registrant
from pathcast.overlay.registration_messages import (
    ChangeInterest,
    DeleteInterest,
    InterestChanged,
    InterestRegistered,
    Locate,
    Located,
    Refused,
    RegisterInterest,
    RegisterSource,
    SourceRegistered,
    SourceUpdated,
    UpdateSource,
)
from pathcast.transport.broker import CODEC as BROKER_CODEC
from pathcast.transport.broker import DELIVERIES, Publish
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from pathcast.transport.registration import Callers, is_request, key_of
from pathcast.transport.request_carrier import RequestCarrier

_Answer = TypeVar("_Answer")

REQUEST_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 0.2
"""Pause before a broker that is not there is looked for again."""


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
        self._registrant = Registrant(list(self._service), secrets.randbits(53))
        self._callers = Callers(name, self._address)
        self._answers: dict[str, asyncio.Future[object]] = {}
        self._following: dict[str, tuple[BrokerClient, int]] = {}
        self._stack = contextlib.AsyncExitStack()
        # Why the latest call had no answer.
        self._failure: UnavailableError | None = None

    async def __aenter__(self) -> Self:
        self._carrier = RequestCarrier(
            self._name, self._registrant, self._call, key_of, is_request, self._answered
        )
        self._stack.push_async_callback(self._callers.close)
        await self._stack.enter_async_context(self._carrier.running())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def register_source(
        self,
        location: str,
        schema: str = "",
        *,
        messages_a_second: float = 1.0,
        message_bytes: float = 4096.0,
        seconds: float = REQUEST_SECONDS,
    ) -> SourceRegistered:
        """(1) to (3): when it returns, the root broker knows the source.

        Args:
            location: Where it is: names from the widest to the narrowest.
            schema: A DTD or an XML Schema; empty for none.
            messages_a_second: Expected.
            message_bytes: Expected.
            seconds: How long it is asked for.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be registered all the same.
        """
        asked = RegisterSource("-", location, schema, messages_a_second, message_bytes)
        return await self._ask(asked, SourceRegistered, seconds)

    async def register_interest(
        self,
        query: str,
        *,
        deliver: DeliverMode = "fragment",
        location: str = "",
        namespaces: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        steps: Sequence[str] = (),
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
            seconds: How long it is asked for.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be registered all the same.
        """
        asked = RegisterInterest(
            "-",
            self._name,
            query,
            location,
            deliver,
            dict(namespaces or {}),
            dict(labels or {}),
            tuple(steps),
        )
        return await self._ask(asked, InterestRegistered, seconds)

    async def change_interest(
        self,
        profile: str,
        query: str,
        *,
        deliver: DeliverMode = "fragment",
        namespaces: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        paused: bool = False,
        steps: Sequence[str] = (),
        seconds: float = REQUEST_SECONDS,
    ) -> None:
        """(8): the profile is another one. When that is in force, `InForce` comes to the inbox.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be changed all the same.
        """
        names, marks = dict(namespaces or {}), dict(labels or {})
        asked = ChangeInterest("-", profile, query, deliver, names, marks, paused, tuple(steps))
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
        seconds: float = REQUEST_SECONDS,
    ) -> int:
        """Another schema, or other expectations; the number of its catalog from now on.

        Raises:
            RegistrationError: It is refused.
            PeerRefusedError: The caller is not admitted.
            UnavailableError: There was no answer; it may be changed all the same.
        """
        asked = UpdateSource("-", source, schema, messages_a_second, message_bytes)
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
        async with self._patience("the registration service", seconds):
            while True:
                for target in self._service:
                    with contextlib.suppress(UnavailableError):
                        answer = await self._call(
                            target, Locate(self._registrant.next_request(), id)
                        )
                        if isinstance(answer, Located):
                            return answer
                        if isinstance(answer, Refused) and not answer.retry:
                            raise _refusal(answer)
                await asyncio.sleep(AGAIN_SECONDS)

    async def publish(
        self,
        source: str,
        messages: Sequence[tuple[str, bytes]],
        seconds: float = REQUEST_SECONDS,
    ) -> list[object]:
        """(4): messages, each with an id, to the root of a source; they are on disk then.

        Messages of which that is not known are published again with the same ids.

        Returns:
            What the root said to them: refusals of single messages.

        Raises:
            PublicationError: The source is not known, or not this one's.
            UnavailableError: The root could not be reached, or had no room, for so long.
        """
        wanted = [Publish(source, id, body) for id, body in messages]
        async with self._patience(source, seconds):
            while True:
                try:
                    async with self._client(source) as client:
                        return await client.publish(wanted)
                except UnavailableError:
                    await self._look_for(source)

    async def deliveries(self, profile: str) -> AsyncIterator[Told]:
        """What comes to this name at the host of a profile, other profiles there included.

        It does not end, and goes on where the host is played by another process. Deliveries come
        once each; those that were yielded and are not acknowledged come again to whoever follows
        anew. A host that cannot be reached is looked for until it is there.

        Yields:
            Deliveries and verdicts, and `InForce`, `Lapsed` and `Dropped`, which may come twice.

        Raises:
            PeerRefusedError: The host does not let this name follow its inbox.
        """
        last: dict[tuple[str, str, int], int] = {}
        while True:
            try:
                async with self._client(profile) as client:
                    async for group in client.deliveries(self._name):
                        for each in group:
                            told = DELIVERIES.decode(each.body)
                            if isinstance(told, Delivery | Undecided):
                                stream = told.subscription, told.root, told.stream
                                if told.position <= last.get(stream, 0):
                                    continue
                                last[stream] = told.position
                            self._following[profile] = client, each.position
                            yield told
            except UnavailableError:
                await self._look_for(profile)

    async def acknowledge(self, profile: str) -> None:
        """All that was yielded by `deliveries(profile)` need not be kept any more."""
        client, position = self._following.get(profile, (None, 0))
        if client is not None:
            # Where the host is gone, it comes again, and is not yielded again.
            with contextlib.suppress(UnavailableError):
                await client.acknowledge(position)

    def _address(self, target: str) -> Address:
        if target in self._service:
            return self._service[target]
        names = [name for name, place in self._registrant.places.values() if place == target]
        return replace(self._broker, name=names[0] if names else target, target=target)

    def _client(self, id: str) -> BrokerClient:
        place = self._registrant.places.get(id)
        if place is None:
            raise UnavailableError("peer.unreachable", name=id, reason="nobody knows where it is")
        return BrokerClient(self._name, self._address(place[1]), BROKER_CODEC)

    async def _look_for(self, id: str) -> None:
        await asyncio.sleep(AGAIN_SECONDS)
        await self._carrier.event(self._registrant.locate, id)
        await asyncio.sleep(AGAIN_SECONDS)

    @contextlib.asynccontextmanager
    async def _patience(self, what: str, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            if self._failure is not None and self._failure.code == "peer.unreachable":
                raise self._failure from error
            raise UnavailableError("peer.silent", name=what, seconds=seconds) from error

    async def _ask(self, message: Asked, kind: type[_Answer], seconds: float) -> _Answer:
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        name = self._registrant.next_request()
        self._answers[name] = future
        try:
            async with self._patience("the registration service", seconds):
                await self._carrier.event(self._registrant.ask, message, name)
                answer = await future
        finally:
            self._answers.pop(name, None)
            if not future.done():
                await self._carrier.event(self._registrant.give_up, name)
        if isinstance(answer, Refused):
            raise _refusal(answer)
        assert isinstance(answer, kind)
        return answer

    async def _call(self, to: str, message: object) -> object:
        """Calls a node; a caller that is not admitted is told at once: asking again is in vain."""
        try:
            answer = await self._callers.call(to, message)
        except PeerRefusedError as error:
            # Whoever may not ask where something is, gets no answer to anything.
            own = self._answers.get(str(key_of(message)))
            for future in [own] if own else list(self._answers.values()):
                if not future.done():
                    future.set_exception(error)
            raise
        except UnavailableError as error:
            self._failure = error
            raise
        self._failure = None
        return answer

    def _answered(self, to: str, what: object) -> None:
        future = self._answers.get(to)
        if future is not None and not future.done():
            future.set_result(what)


def _refusal(refused: Refused) -> PathcastError:
    cause, reason = refused.code, refused.reason
    return RegistrationError("registration.refused", cause=cause, reason=reason)
