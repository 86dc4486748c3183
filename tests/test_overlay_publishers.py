"""Numbered publications: whatever is killed, a root takes each once, in the publisher's order."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

pytest.importorskip("msgspec", reason="needs: pip install 'pathcast[net]'")

import msgspec

from pathcast.errors import PublicationError
from pathcast.overlay import publishers as publishers_module
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.messages import SourceEntry, StreamMessage
from pathcast.overlay.publishers import Logged, Numbered, Publishers, PublishRequest
from pathcast.protocol import Effect, Forget, Save
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.toy_content import TOY

MESSAGES = 40


class Root:
    """A root alone, on a disk that a kill between any two effects leaves as it was then.

    Attributes:
        taken: What it ever had in its log on disk, in order.
    """

    def __init__(self) -> None:
        self.disk: dict[str, bytes] = {}
        self.taken: list[str] = []
        self._lives = 0
        self.start()

    def start(self) -> None:
        self._lives += 1
        self.node = BrokerNode("a", {}, TOY, dict(self.disk), self._lives)
        self.do(self.node.start(float(self._lives)))

    def do(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Save(key, value):
                    self.disk[key] = value
                    if key.startswith("log/"):
                        logged = msgspec.msgpack.decode(value, type=list[Logged])
                        self.taken += [one.message.message for one in logged]
                case Forget(key):
                    self.disk.pop(key, None)


def publish(root: Root, chance: random.Random, publisher: str, ids: Sequence[str]) -> None:
    """Publishes, again from the last place that was written down, until all receipts came."""
    sure = 0
    while sure < len(ids):
        for place in range(sure, len(ids)):
            effects = root.node.asked(
                0.0,
                root.node.broker.publish,
                "s",
                ids[place],
                b"x",
                numbered=Numbered(publisher, 7 * place + 1),
            )
            if chance.random() < 0.1:
                # The root is killed between two effects, or before it could send the receipt.
                root.do(effects[: chance.randint(0, len(effects))])
                root.start()
                break
            root.do(effects)
            if chance.random() < 0.3:
                # Everybody has had everything: the log is emptied, and a kill may come then, too.
                effects = root.node.wake("tick", float(place))
                root.do(effects[: chance.randint(0, len(effects))])
                root.start()
            if chance.random() < 0.1:
                break  # the publisher is killed, and knows what it had written down
            if chance.random() < 0.3:
                sure = place + 1
        else:
            sure = len(ids)


def history(seed: int) -> tuple[list[str], list[list[str]]]:
    """What two publishers, one after the other and back, left in the log; what they wanted."""
    chance = random.Random(seed)
    root = Root()
    root.do(root.node.asked(0.0, root.node.broker.register_source, "s", SourceEntry()))
    wanted = [[f"{name}{number}" for number in range(MESSAGES)] for name in "pq"]
    for upto in (MESSAGES // 2, MESSAGES):
        for name, ids in zip("pq", wanted, strict=True):
            publish(root, chance, name, ids[:upto])
    return root.taken, wanted


@pytest.mark.parametrize("seed", range(40))
def test_each_is_taken_once_and_in_order_whatever_is_killed(seed: int) -> None:
    taken, wanted = history(seed)
    for name, ids in zip("pq", wanted, strict=True):
        assert [id for id in taken if id.startswith(name)] == ids


def test_without_numbers_some_are_taken_twice() -> None:
    with without("numbers"):
        taken, wanted = history(0)
    assert len(taken) > len(set(taken)) == sum(map(len, wanted))


def test_of_a_call_all_are_taken_or_none_and_each_number_once() -> None:
    root = Root()
    root.do(root.node.asked(0.0, root.node.broker.register_source, "s", SourceEntry(), owner="ann"))
    broker = root.node.broker
    numbers = [1, 2, 2, 3, 1]
    given = [PublishRequest("s", f"m{n}", b"x", numbered=Numbered("p", n)) for n in numbers]
    for odd, sender in (("nobody's", "ann"), ("s", "bob")):
        with pytest.raises(PublicationError):
            broker.publish_all([*given, PublishRequest(odd, "m", b"x")], sender)
    too_long = PublishRequest("s", "long", bytes(ProtocolSettings().message_bytes_max + 1))
    with pytest.raises(PublicationError):
        broker.publish_all([given[0], too_long], "ann")
    assert broker.publish_all([], "ann") == []
    root.do(root.node.done(0.0))
    assert root.taken == []
    assert broker.publish_all(given, "ann") == [1, 2, 0, 3, 0]
    root.do(root.node.done(0.0))
    assert root.taken == ["m1", "m2", "m3"]
    # What was taken before is not asked for room.
    assert broker.publish_all([msgspec.structs.replace(too_long, numbered=Numbered("p", 3))]) == [0]


def test_no_more_publishers_are_remembered_than_the_last_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publishers_module, "PUBLISHERS_MAX", 3)
    publishers = Publishers()
    disk: dict[str, bytes] = {}
    for number in range(1, 6):
        publishers.took(Numbered(f"p{number}", number))
        publishers.took(Numbered("p1", number))
        for effect in publishers.keep():
            match effect:
                case Save(key, value):
                    disk[key] = value
                case Forget(key):
                    del disk[key]
    assert sorted(disk) == ["publisher/p1", "publisher/p4", "publisher/p5"]
    assert publishers.keep() == []
    again = Publishers()
    message = StreamMessage(9, "s", "m", 0, "", False, 0, b"")
    again.restore(disk, [Logged(message, Numbered("p4", 9)), Logged(message)])
    known = {name: again.has_had(Numbered(name, 5)) for name in ("p1", "p2", "p4", "p5")}
    assert known == {"p1": True, "p2": False, "p4": True, "p5": True}
    assert not again.has_had(None)


@pytest.mark.parametrize("number", [0, -1, 2**62])
def test_a_number_that_cannot_be_is_no_publication(number: int) -> None:
    packed = msgspec.msgpack.encode({"publisher": "p", "number": number})
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(packed, type=Numbered)
