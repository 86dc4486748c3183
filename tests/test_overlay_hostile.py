"""A broker that lies: refused with a typed error, shunned, and nobody else notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

pytest.importorskip("msgspec")

from pathcast.overlay import announcements, query_plane
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.messages import (
    Announce,
    Announcement,
    Detach,
    FollowStream,
    Forward,
    Interest,
    Payload,
    PositionPassed,
    Presence,
    SessionFrame,
    SessionHello,
    Settled,
    SourceEntry,
    StreamMessage,
)
from pathcast.protocol import Effect, Node, Send
from pathcast_lab.sim import Step
from pathcast_lab.sim.broker_world import BrokerWorld, Scenario
from pathcast_lab.sim.from_scratch import from_scratch

BUSINESS = (
    Step(0.0, "source", ("a",)),
    Step(0.0, "source", ("b",)),
    Step(2.0, "subscribe", ("a", "s", "a1")),
    Step(2.0, "subscribe", ("c", "t", "a1|a2")),
    *(Step(4.0 + n / 2, "publish", ("ab"[n % 2], str(n % 3))) for n in range(20)),
)


Lie = Callable[[BrokerNode], Sequence[Payload | SessionFrame | SessionHello]]


class Liar:
    """An honest broker, but for what it says to a neighbour once it has heard so many messages.

    Args:
        node: The honest one.
        lie: Payloads, said in the present session, or whole frames.
        to: Whom it lies to.
    """

    def __init__(self, node: BrokerNode, lie: Lie, to: str) -> None:
        self.node, self.lie, self.to = node, lie, to
        self.heard = 0

    def start(self, now: float) -> Sequence[Effect]:
        return self.node.start(now)

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        effects = list(self.node.receive(sender, message, now))
        self.heard += 1
        if self.heard > 25:
            link = self.node._links[self.to]
            for one in self.lie(self.node):
                if isinstance(one, SessionFrame | SessionHello):
                    effects.append(Send(self.to, one))
                else:
                    link.send(one)
            effects += [Send(self.to, one) for one in link.flush(now)]
        return effects

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        return self.node.wake(timer, now)

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        return self.node.neighbour(name, up, now)


def presence(owner: str, version: int, **of: object) -> Announcement:
    return Announcement(owner, "", version, 1, Presence(**of))  # type: ignore[arg-type]


def stream_of(node: BrokerNode, root: str) -> int:
    return node.broker.streams[root].number


def began_of(node: BrokerNode, name: str) -> int:
    """When the present life of a broker began; a forger of a later one would be its successor."""
    known = node.broker.announcements.presence(name)
    return 0 if known is None else known.began


def life_of(node: BrokerNode) -> int:
    """The life that numbers the stream of b now: who speaks of another one may know an older b."""
    return node.broker.streams["b"].lives[-1][0]


def forward(
    node: BrokerNode, root: str, at: int = 0, considers: int | None = None, steps: int = 0
) -> Forward:
    """What a root would say, with a message of the liar's own."""
    one = StreamMessage(at + 1, "", "forged", 0, "", False, 0, b"1", considers, steps)
    return Forward(root, stream_of(node, root), 1, at, at + 1, (one,))


def run(lie: Lie) -> BrokerWorld:
    """`z` lies to `b`; a, b and c go about their business, and have all of their deliveries."""

    def twisted(node: BrokerNode) -> Node:
        return Liar(node, lie, "b")

    links = (("a", "b"), ("b", "c"), ("b", "z"))
    world = BrokerWorld(Scenario(("a", "b", "c", "z"), links, BUSINESS), 1, twisted={"z": twisted})
    for step in BUSINESS:
        world.network.run(step.at)
        world.perform(step)
    world.network.run(world.network.now + 5.0)
    world.check_deliveries()
    for name, numbers in {"s": "1", "t": "12"}.items():
        bodies = [world.accepted[message].body.decode() for message in world.deliveries[name]]
        published = [one.body.decode() for one in world.accepted.values()]
        assert sorted(bodies) == sorted(body for body in published if body in numbers), name
    return world


REFUSED: dict[str, tuple[Lie, str]] = {
    "interest out of order": (
        lambda node: [Interest("", 500, False, ("a1",), ())],
        "overlay.interest",
    ),
    "entries that are none": (
        lambda node: [Interest("", 500, True, ("a1", "no entry"), ())],
        "overlay.entry",
    ),
    "settles what nobody told": (lambda node: [Settled("", 10_000)], "overlay.settled"),
    "a message that considers what nobody told": (
        lambda node: [forward(node, "b", considers=10_000)],
        "overlay.considered",
    ),
    "a message that steps were done to for nobody": (
        lambda node: [forward(node, "b", steps=2)],
        "overlay.steps",
    ),
    "a version out of reach": (
        lambda node: [Announce((presence("a", 2**61),))],
        "overlay.announcement",
    ),
    "a source in the place of a presence": (
        lambda node: [Announce((Announcement("a", "", 3, 1, SourceEntry()),))],
        "overlay.announcement",
    ),
    "follows from beyond the end": (
        lambda node: [FollowStream("b", stream_of(node, "b"), 9, 10**6, life_of(node))],
        "overlay.stream",
    ),
    "says that others had what was never sent": (
        lambda node: [PositionPassed("b", stream_of(node, "b"), (("a", 10**6, life_of(node)),))],
        "overlay.stream",
    ),
    "acknowledges what was never sent": (
        lambda node: [SessionFrame(*(node._links["b"]._session or (1, 2)), 0, 10**6, ())],
        "overlay.acknowledged",
    ),
    "far beyond the window": (
        lambda node: [SessionFrame(*(node._links["b"]._session or (1, 2)), 10**6, 0, ())],
        "overlay.window",
    ),
    "more entries than are taken": (
        lambda node: [Interest("", 600, True, tuple(f"a{n}" for n in range(101)), ())],
        "overlay.entries",
    ),
    "more sources than are taken": (
        lambda node: [
            Announce(tuple(Announcement("z", f"{n}", 1, 1, SourceEntry()) for n in range(60)))
        ],
        "overlay.catalog",
    ),
    "more brokers than are taken": (
        lambda node: [Announce(tuple(presence(f"x{n}", 1, left=True) for n in range(60)))],
        "overlay.catalog",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_lie_is_refused_and_others_go_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_plane, "ENTRIES_MAX", 100)
    monkeypatch.setattr(announcements, "SOURCES_MAX", 50)
    monkeypatch.setattr(announcements, "MEMBERS_MAX", 50)
    lie, code = REFUSED[name]
    world = run(lie)
    assert {one.code for _, one in world.refused} == {code}
    assert {(host, one.peer) for host, one in world.refused} == {("b", "z")}
    # It is shunned for longer each time: it cannot keep its neighbour busy.
    assert len(world.refused) < 8


HARMLESS: dict[str, Lie] = {
    "claims links to all": lambda node: [
        Announce((presence("z", 2**30, links=(("a", 0), ("b", 0), ("c", 0))),))
    ],
    "sends messages of a stream that it does not lead to": lambda node: [
        forward(node, root, at) for root in "ab" for at in range(3)
    ],
    "wants everything": lambda node: [Interest("", 2**20 + 1000, True, ("a*",), ())],
    "speaks in sessions that are none": lambda node: [
        SessionFrame(1, 2, 1, 0, (Interest("", 1, True, ("a*",), ()),)),
        SessionFrame(node._links["b"]._session[1] if node._links["b"]._session else 3, 4, 1, 9, ()),
        SessionHello(77, 0),
        SessionHello(78, 99),
    ],
    "speaks of trees and streams that are none": lambda node: [
        Interest("nobody", 1, True, ("a*",), ()),
        Settled("nobody", 5),
        Detach("nobody"),
        FollowStream("nobody", 1, 1, 0),
        FollowStream("a", 12345, 1, 0),
    ],
    "says in the name of others that they are alone": lambda node: [
        Announce(
            tuple(presence(name, 2**20, links=(), began=began_of(node, name)) for name in "bc")
        )
    ],
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_lie_that_cannot_be_told_from_the_truth_harms_nobody_else(name: str) -> None:
    world = run(HARMLESS[name])
    for host in "abc":
        tree = world.node(host).broker.planes[""]
        expected = {"a": {"b"}, "b": {"a", "c", "z"}, "c": {"b"}}[host]
        told = set(from_scratch(tree.interests))
        assert told - {"z"} == expected - {"z"}, "the tree of the others is another one"


def test_nobody_that_is_no_neighbour_is_heard() -> None:
    world = BrokerWorld(Scenario(("a", "b"), (("a", "b"),), ()), 1)
    node = world.node("a")
    assert node.receive("stranger", SessionHello(1, 0), 0.0) == []
    assert node.receive("b", "no frame", 0.0) == []
