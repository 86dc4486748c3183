"""Requests whose answers come later, of nodes that wait for a database, and clients that repeat.

If these fail, a change that was written reaches nobody because its client went away, a client is
answered with what somebody else asked for, or a request is done twice or given up too early.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Self

import msgspec
import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: pip install 'pathcast[net]'")

from pathcast.errors import (
    PathcastError,
    PeerRefusedError,
    RegistrationError,
    SourceError,
    UnavailableError,
)
from pathcast.overlay.deliveries import Dropped, InboxDelivery, Moved, Told
from pathcast.overlay.registration_messages import (
    InterestChanged,
    InterestRegistered,
    Locate,
    Located,
    NotLeading,
    RegisterInterest,
    RegistrationRefused,
)
from pathcast.protocol import Deliver, Effect, Send, Wake
from pathcast.transport import registration_client
from pathcast.transport.carrier import Carrier, NodeAdapter
from pathcast.transport.disk import Disk, Waiting
from pathcast.transport.grpc_streams import Address
from pathcast.transport.registration import CODEC, key_of
from pathcast.transport.registration_client import RegistrationClient
from pathcast.transport.requests import Requests
from patience import PATIENCE_SECONDS, eventually


class Desk:
    """A node that asks a friend about each `Locate`, and answers when the friend has."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.asked: list[tuple[str, str]] = []
        self.is_broken = False

    def start(self, now: float) -> Sequence[Effect]:
        return []

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        self.may_go_on.wait(PATIENCE_SECONDS)
        if self.is_broken:
            raise ValueError("a bug")
        if isinstance(message, Locate):
            self.asked.append((sender, message.request))
            ask = RegisterInterest(f"{sender} {message.request}", sender, "//a")
            return [Send("friend", ask), Deliver("planes", message.id), Wake("never", 1e6)]
        assert isinstance(message, InterestRegistered)
        return [
            Send(client, Located(request, message.profile, "b", message.address))
            for client, request in self.asked
            if message.request == f"{client} {request}"
        ]

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        return []

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        return []


class Friend:
    """Answers the calls of a desk, each when it may."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answers: dict[str, asyncio.Event] = {}

    async def call(self, to: str, message: object) -> object:
        assert isinstance(message, RegisterInterest)
        self.calls.append(message.request)
        may_answer = self.answers.setdefault(message.request, asyncio.Event())
        await may_answer.wait()
        return InterestRegistered(message.request, message.owner, to, "there")

    def answer(self, request: str) -> None:
        self.answers.setdefault(request, asyncio.Event()).set()


def carried(desk: Desk, friend: Friend, delivered: list[object]) -> Carrier:
    return Carrier(
        "desk",
        NodeAdapter(lambda saved, life: desk, CODEC, blocks=True),
        Disk(None),
        requests=Requests("desk", key_of, [RegisterInterest], friend.call),
        deliver=lambda to, what: delivered.append(what),
    )


def test_clients_are_answered_when_the_answer_comes_each_with_its_own() -> None:
    async def main() -> None:
        desk, friend = Desk(), Friend()
        carrier = carried(desk, friend, [])
        await carrier.start()
        # Ann repeats; names of requests are each client's own.
        ann, again, bob = (
            asyncio.create_task(carrier.ask(name, Locate("1", "p"), PATIENCE_SECONDS))
            for name in ("ann", "ann", "bob")
        )
        await eventually(lambda: len(desk.asked) == 3)
        friend.answer("bob 1")
        assert await bob == Located("1", "bob", "b", "there")
        assert not ann.done()
        friend.answer("ann 1")
        assert await ann == await again == Located("1", "ann", "b", "there")
        assert sorted(friend.calls) == ["ann 1", "bob 1"]
        await carrier.stop()

    asyncio.run(main())


def test_an_event_whose_client_has_gone_is_done_all_the_same() -> None:
    """The node has taken it in: effects that were dropped would never come again."""

    async def main() -> None:
        desk, delivered = Desk(), list[object]()
        carrier = carried(desk, Friend(), delivered)
        await carrier.start()
        desk.may_go_on.clear()
        with pytest.raises(UnavailableError) as silent:
            await carrier.ask("ann", Locate("1", "p"), 0.01)
        assert silent.value.code == "peer.silent"
        assert delivered == []
        desk.may_go_on.set()
        await eventually(lambda: delivered == ["p"])
        await carrier.stop()

    asyncio.run(main())


def test_a_bug_of_a_node_that_waits_for_a_database_ends_its_process() -> None:
    async def main() -> None:
        desk = Desk()
        carrier = carried(desk, Friend(), [])
        await carrier.start()
        desk.is_broken = True
        carrier.event(desk.receive, "ann", Locate("1", "p"))
        with pytest.raises(ValueError, match="a bug"):
            await carrier.run()
        await carrier.stop()

    asyncio.run(main())


class Script:
    """Takes the calls of a client, and answers by turns; an error is raised."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, object]] = []

    async def call(self, to: str, message: object) -> object:
        self.calls.append((to, message))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


SILENT = UnavailableError("peer.silent", name="r1", seconds=5.0)
MADE = InterestRegistered("-", "p-1", "b", "b:1")


def asking(monkeypatch: pytest.MonkeyPatch, *answers: object) -> tuple[RegistrationClient, Script]:
    monkeypatch.setattr(registration_client, "AGAIN_SECONDS", 0.0)
    service = [Address(name, f"{name}:1") for name in ("r1", "r2")]
    client, script = RegistrationClient("ann", service, Address("", "")), Script(*answers)
    monkeypatch.setattr(client, "_callers", script)
    return client, script


def test_a_request_is_repeated_under_one_name_at_one_node_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = RegistrationRefused("-", "store.conflict", "somebody else wrote", retry=True)
    client, script = asking(monkeypatch, SILENT, NotLeading("-"), later, MADE, MADE)
    assert asyncio.run(client.register_interest("//a")) is MADE
    assert [to for to, _ in script.calls] == ["r1:1", "r2:1", "r1:1", "r2:1"]
    names = {message.request for _, message in script.calls}  # type: ignore[attr-defined]
    assert len(names) == 1
    # The node that answered is asked first from then on, under another name.
    asyncio.run(client.register_interest("//a"))
    to, message = script.calls[-1]
    assert to == "r2:1"
    assert message.request not in names  # type: ignore[attr-defined]


def test_a_broker_that_does_not_answer_is_looked_for_and_asked_where_it_is_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = Located("-", "p-1", "b", "backup:1")
    client, script = asking(
        monkeypatch, MADE, SILENT, NotLeading("-"), moved, InterestChanged("-", "p-1")
    )
    asyncio.run(client.register_interest("//a"))
    asyncio.run(client.change_interest("p-1", "//b"))
    asked = [to for to, _ in script.calls[1:]]
    assert (asked[0], asked[-1]) == ("b:1", "backup:1")
    first, again = script.calls[1][1], script.calls[-1][1]
    assert first == again
    looked = [message for _, message in script.calls if isinstance(message, Locate)]
    # The broker where it was is named: it can say that the profile was deleted.
    assert [(each.id, each.broker) for each in looked] == [("p-1", "b")] * 2


REFUSALS = [
    (PeerRefusedError("peer.unknown", name="ann"), PeerRefusedError),
    (RegistrationRefused("-", "registration.unknown", "there is none"), RegistrationError),
]


@pytest.mark.parametrize(("answer", "error"), REFUSALS, ids=["caller", "request"])
def test_what_is_refused_is_told_at_once_wherever_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, answer: object, error: type[Exception]
) -> None:
    client, script = asking(monkeypatch, answer, answer)
    with pytest.raises(error):
        asyncio.run(client.register_interest("//a"))
    # Where the broker is has to be asked for first.
    with pytest.raises(error):
        asyncio.run(client.delete_interest("p-2"))
    assert script.answers == []


def test_a_service_that_cannot_be_reached_is_named_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = UnavailableError("peer.unreachable", name="r1", reason="nobody answers")
    client, _ = asking(monkeypatch, *[gone] * 10_000)
    monkeypatch.setattr(registration_client, "AGAIN_SECONDS", 0.001)
    with pytest.raises(UnavailableError, match="nobody answers"):
        asyncio.run(client.register_interest("//a", seconds=0.05))


class Inboxes:
    """Brokers with inboxes, as their clients see them.

    Attributes:
        waiting: Broker -> groups of deliveries that it has.
        told: Broker and position, in the order in which brokers were told that all was read.
        refusal: What `a` says when it is told that.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Queue[list[Told]]] = {
            name: asyncio.Queue() for name in ("a", "b")
        }
        self.told: list[tuple[str, int]] = []
        self.refusal: PathcastError | None = None

    def client(self, name: str, address: Address, codec: object) -> InboxClient:
        """A connection to one of the brokers."""
        return InboxClient(self, address.name)


class InboxClient:
    def __init__(self, inboxes: Inboxes, broker: str) -> None:
        self._inboxes = inboxes
        self._broker = broker

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def deliveries(self, subscriber: str) -> AsyncIterator[list[Waiting]]:
        position = 0
        while True:
            group = await self._inboxes.waiting[self._broker].get()
            bodies = [msgspec.msgpack.encode(each) for each in group]
            yield [Waiting(position + n, f"{n}", body) for n, body in enumerate(bodies, 1)]
            position += len(group)

    async def acknowledge(self, position: int) -> None:
        self._inboxes.told.append((self._broker, position))

    async def settle(self, subscriber: str, position: int) -> None:
        self._inboxes.told.append((f"{self._broker} was left", position))
        if self._inboxes.refusal is not None:
            raise self._inboxes.refusal


def delivery(position: int) -> InboxDelivery:
    return InboxDelivery("p-1", 1, "r", 1, position, f"m{position}", ())


FORMER_REFUSES = [
    SourceError("inbox.ahead", path="ann", last=0, after=2),
    PeerRefusedError("peer.unknown", name="ann"),
    UnavailableError("peer.unreachable", name="a", reason="nobody answers"),
]


@pytest.mark.parametrize("refusal", FORMER_REFUSES, ids=lambda each: each.code)
def test_a_former_host_that_refuses_does_not_hold_up_the_new_one(
    monkeypatch: pytest.MonkeyPatch, refusal: PathcastError
) -> None:
    """It is told again after a pause that all was read there, and then not any more."""

    async def main() -> None:
        inboxes = Inboxes()
        inboxes.refusal = refusal
        at_b = Located("-", "p-1", "b", "b:1")
        client, _ = asking(monkeypatch, Located("-", "p-1", "a", "a:1"), at_b)
        monkeypatch.setattr(registration_client, "BrokerClient", inboxes.client)
        for each in ([delivery(1)], [Moved("p-1", 1, "b", 1)]):
            inboxes.waiting["a"].put_nowait([*each])
        for position in (2, 3):
            inboxes.waiting["b"].put_nowait([delivery(position)])
        deliveries = client.deliveries("p-1")
        assert await anext(deliveries) == delivery(1)
        await client.acknowledge("p-1")
        assert isinstance(await anext(deliveries), Moved)
        assert await anext(deliveries) == delivery(2)
        left = ("a was left", 2)
        assert inboxes.told == [("a", 1), left]
        await client.acknowledge("p-1")
        assert await anext(deliveries) == delivery(3)
        assert inboxes.told == [("a", 1), left, ("b", 1)]
        monkeypatch.setattr(registration_client, "SETTLE_SECONDS", 0.0)
        client._left["p-1"].due = 0.0
        await client.acknowledge("p-1")
        inboxes.refusal = None
        await client.acknowledge("p-1")
        await client.acknowledge("p-1")
        assert inboxes.told[3:] == [("b", 2), left, ("b", 2), left, ("b", 2)]

    asyncio.run(main())


def test_a_host_is_read_while_the_service_cannot_say_whether_it_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A delivery that has come when the service answers is handed over before the other host's."""

    async def main() -> None:
        inboxes = Inboxes()
        client, script = asking(monkeypatch)
        answers = asyncio.Queue[object]()
        asked: list[object] = []

        async def call(to: str, message: object) -> object:
            asked.append(message)
            return await answers.get()

        monkeypatch.setattr(script, "call", call)
        monkeypatch.setattr(registration_client, "BrokerClient", inboxes.client)
        monkeypatch.setattr(registration_client, "DROPPED_SECONDS", 0.0)
        answers.put_nowait(Located("-", "p-1", "a", "a:1"))
        inboxes.waiting["a"].put_nowait([Dropped(1, 4)])
        deliveries = client.deliveries("p-1")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await anext(deliveries) == Dropped(1, 4)
            coming = asyncio.ensure_future(anext(deliveries))
            await eventually(lambda: len(asked) == 2)
            inboxes.waiting["a"].put_nowait([delivery(1)])
            assert await coming == delivery(1)
            coming = asyncio.ensure_future(anext(deliveries))
            await asyncio.sleep(0)
            inboxes.waiting["a"].put_nowait([delivery(2)])
            inboxes.waiting["b"].put_nowait([delivery(3)])
            for _ in range(2):
                answers.put_nowait(Located("-", "p-1", "b", "b:1"))
            assert await coming == delivery(2)
            assert await anext(deliveries) == delivery(3)

    asyncio.run(main())
