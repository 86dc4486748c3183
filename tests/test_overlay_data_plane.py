"""What comes first in a broker: neighbours are sent a message before its own subscribers get it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

pytest.importorskip("msgspec")

import msgspec

from pathcast.overlay import local_queries
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.content import Content, DeliveryProfile, Results, Sent
from pathcast.overlay.deliveries import InboxDelivery
from pathcast.overlay.local_queries import LOCAL_MESSAGES, KeptCursor
from pathcast.overlay.messages import (
    FollowStream,
    Forward,
    Payload,
    SessionFrame,
    SessionHello,
    SourceEntry,
    StreamMessage,
)
from pathcast.overlay.parts import Parts
from pathcast.overlay.publishers import PublishRequest
from pathcast.overlay.streams import Stream
from pathcast.protocol import Deliver, Effect, Save, Send, Wake
from pathcast_lab.sim.toy_content import ToyInterests, ToyProfiles


class Watched(ToyProfiles):
    """Says when local queries are run, and on how many messages."""

    def __init__(self, done: list[str]) -> None:
        super().__init__()
        self._done = done

    def answers(
        self, bodies: Sequence[bytes], done: Sequence[int] = (), times: Sequence[int] = ()
    ) -> list[dict[str, Results]]:
        self._done.append(f"local {len(bodies)}")
        return super().answers(bodies, done, times)


class Line:
    """Brokers `a`, a root, `b` and `c`, in a row; the latter two each host a subscription."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.now = 0.0
        names = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
        self.disks: dict[str, dict[str, bytes]] = {name: {} for name in names}
        self.near = names
        self.nodes = {name: self.node(name, 100 + n) for n, name in enumerate(names)}
        for name, node in self.nodes.items():
            self.carry(name, node.start(self.now))
        self.carry(
            "a",
            self.nodes["a"].asked(
                self.now, self.nodes["a"].broker.register_source, "s", SourceEntry()
            ),
        )
        for host in ("b", "c"):
            asked = self.nodes[host].asked(
                self.now, self.nodes[host].broker.subscribe, host, host, DeliveryProfile("a1")
            )
            self.carry(host, asked)
        self.pass_time()
        self.done.clear()

    def node(self, name: str, incarnation: int) -> BrokerNode:
        return BrokerNode(
            name,
            dict.fromkeys(self.near[name], 1),
            Content(ToyInterests, lambda: Watched(self.done)),
            self.disks[name],
            incarnation,
            members=[*self.near],
        )

    def begin(self, name: str, incarnation: int) -> None:
        """One begins again without its disk."""
        self.disks[name] = {}
        self.nodes[name] = self.node(name, incarnation)
        self.carry(name, self.nodes[name].start(self.now))

    def carry(self, name: str, effects: Iterable[Effect]) -> None:
        """Everything is done at once, local queries too."""
        for effect in effects:
            match effect:
                case Send(to, message):
                    self.carry(to, self.nodes[to].receive(name, message, self.now))
                case Save(key, value):
                    self.disks[name][key] = value
                case Wake("local"):
                    self.carry(name, self.nodes[name].wake("local", self.now))

    def pass_time(self) -> None:
        for _ in range(12):
            self.now += 0.25
            for name, node in self.nodes.items():
                self.carry(name, node.wake("tick", self.now))

    def frames(self, count: int) -> list[SessionFrame]:
        """What `a` sends of messages that it takes, and nobody has received yet.

        What `a` does for subscribers of its own, with the same wait for the disk, is not watched.
        """
        frames = []
        for n in range(count):
            for effect in self.nodes["a"].asked(
                self.now, self.nodes["a"].broker.publish, "s", f"m{n}", b"1"
            ):
                if isinstance(effect, Send):
                    assert isinstance(effect.message, SessionFrame | SessionHello)
                    frames.append(effect.message)
        self.done.clear()
        return [one for one in frames if isinstance(one, SessionFrame)]


def forwards(effects: Iterable[Effect]) -> list[str]:
    return [
        one.message
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.message, SessionFrame)
        for payload in effect.message.payloads
        if isinstance(payload, Forward)
        for one in payload.messages
    ]


def deliveries(effects: Iterable[Effect]) -> list[str]:
    return [
        effect.what.message
        for effect in effects
        if isinstance(effect, Deliver) and isinstance(effect.what, InboxDelivery)
    ]


def test_a_message_is_on_its_way_before_local_queries_are_run() -> None:
    line = Line()
    b = line.nodes["b"]
    (frame,) = line.frames(1)
    effects = b.receive("a", frame, line.now)
    assert forwards(effects) == ["m0"]
    assert deliveries(effects) == []
    assert line.done == []
    assert isinstance(effects[-1], Wake)
    assert deliveries(b.wake("local", line.now)) == ["m0"]
    assert line.done == ["local 1"]


def test_a_burst_is_forwarded_before_its_local_work_begins_and_in_order() -> None:
    line = Line()
    b = line.nodes["b"]
    effects = [effect for frame in line.frames(20) for effect in b.receive("a", frame, line.now)]
    names = [f"m{n}" for n in range(20)]
    assert forwards(effects) == names
    assert line.done == []
    assert len([one for one in effects if one == Wake("local", 0.0)]) == 1, "it is set anew"
    assert deliveries(b.wake("local", line.now)) == names
    assert line.done == ["local 20"], "what waited is one batch"


def test_a_root_gives_its_own_subscribers_few_messages_with_the_wait_that_logs_them() -> None:
    line = Line()
    a = line.nodes["a"]
    line.carry("a", a.asked(line.now, a.broker.subscribe, "a", "a", DeliveryProfile("a1")))
    line.pass_time()
    effects = a.asked(line.now, a.broker.publish, "s", "m0", b"1")
    kinds = [type(effect) for effect in effects]
    assert isinstance(effects[0], Save)
    assert effects[0].key.startswith("log/")
    assert forwards(effects) == deliveries(effects) == ["m0"]
    assert max(n for n, each in enumerate(kinds) if each is Send) < kinds.index(Deliver)
    stream = a.broker.streams["a"]
    kept = KeptCursor(stream.number, 1, stream.lives)
    assert effects[-1] == Save("cursor/a", msgspec.msgpack.encode(kept))


def test_a_root_sends_many_messages_before_it_gives_its_own_subscribers_any() -> None:
    line = Line()
    a = line.nodes["a"]
    line.carry("a", a.asked(line.now, a.broker.subscribe, "a", "a", DeliveryProfile("a1")))
    line.pass_time()
    names = [f"m{n}" for n in range(LOCAL_MESSAGES + 1)]
    a.broker.publish_all([PublishRequest("s", name, b"1") for name in names])
    effects = a.done(line.now)
    assert forwards(effects) == names
    assert deliveries(effects) == []
    assert deliveries(a.wake("local", line.now)) == names


def test_a_cursor_does_not_pass_what_waits() -> None:
    line = Line()
    b = line.nodes["b"]
    (frame,) = line.frames(1)
    b.receive("a", frame, line.now)
    stream = b.broker.streams["a"]
    assert (stream.taken, stream.cursor) == (1, 0)
    b.wake("tick", line.now)
    assert stream.positions.get("b", 0) == 0, "a root would forget what is not delivered yet"
    # Asked for again meanwhile, it is not taken twice.
    stream.rewind()
    assert stream.at == 1
    b.wake("local", line.now)
    assert stream.cursor == 1


def test_a_cursor_is_saved_with_its_deliveries_and_after_them() -> None:
    line = Line()
    b = line.nodes["b"]
    for frame in line.frames(3):
        effects = b.receive("a", frame, line.now)
        assert not [one for one in effects if isinstance(one, Save) and one.key == "cursor/a"]
    *given, saved = b.wake("local", line.now)
    assert deliveries(given) == ["m0", "m1", "m2"]
    stream = b.broker.streams["a"]
    kept = KeptCursor(stream.number, 3, stream.lives)
    assert saved == Save("cursor/a", msgspec.msgpack.encode(kept))


def test_a_stream_that_ends_leaves_nothing_waiting() -> None:
    line = Line()
    b = line.nodes["b"]
    (frame,) = line.frames(1)
    b.receive("a", frame, line.now)
    former = b.broker.streams["a"]
    line.begin("a", 900)
    line.carry(
        "a",
        line.nodes["a"].asked(line.now, line.nodes["a"].broker.register_source, "s", SourceEntry()),
    )
    line.pass_time()
    assert b.broker.streams["a"].number != former.number
    assert former.cursor == 1, "should it be back, it goes on after this"
    assert not b.broker.local.has_work


def test_what_one_neighbour_sent_is_not_passed_on_when_another_one_leads() -> None:
    """What it considered is a number of that neighbour's: of the other it would say too much."""
    sent: list[tuple[str, Payload]] = []
    taken: list[StreamMessage] = []
    rooms = {"west"}

    def send(peer: str, payload: Payload) -> None:
        sent.append((peer, payload))

    stream = Stream(
        "root",
        7,
        False,
        0,
        send,
        lambda peer: peer in rooms,
        lambda peer: True,
        lambda bodies: [{"east"} for _ in bodies],
        lambda bodies, wanted, done: {
            name: [Sent(bodies[row], done[row]) for row in wanted[name]] for name in wanted
        },
        lambda origin, upstream, number: 5 if upstream == "west" else 99,
        lambda peer: True,
        lambda stream, messages: taken.extend(messages),
        lambda *_: None,
        Parts("root", 7, 1 << 16, send, lambda peer: True, lambda size: None, lambda position: 0),
        lambda stream, message: None,
    )
    stream.lead("west")
    stream.rewind()
    stream.hear_follow("east", FollowStream("root", 7, 1, 0))
    stream.rewind()
    cut = StreamMessage(1, "s", "m", 0, "", False, 0, b"1", 3)
    stream.hear_forward("west", Forward("root", 7, stream.generation, 0, 1, (cut,)))
    stream.lead("north")
    rooms.add("east")
    stream.advance()
    assert [payload for peer, payload in sent if peer == "east"] == []
    assert [one.considers for one in taken] == [5], "its own subscribers have it as it came"
    stream.rewind()
    assert sent[-1] == ("north", FollowStream("root", 7, stream.generation, 0)), (
        "it is asked for again"
    )
    stream.hear_forward("north", Forward("root", 7, stream.generation, 0, 1, (cut,)))
    stream.advance()
    peer, said = sent[-1]
    assert isinstance(said, Forward)
    assert (peer, [one.considers for one in said.messages]) == ("east", [99])
    assert len(taken) == 1


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_queries, "LOCAL_WAITING_MAX", 5)
    monkeypatch.setattr(local_queries, "LOCAL_MESSAGES", 3)
    line = Line()
    b = line.nodes["b"]
    effects = [effect for frame in line.frames(20) for effect in b.receive("a", frame, line.now)]
    assert deliveries(effects) == [f"m{n}" for n in range(15)]
    assert forwards(effects) == [f"m{n}" for n in range(20)]
    assert deliveries(b.wake("local", line.now)) == ["m15", "m16", "m17"]
