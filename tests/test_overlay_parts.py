"""Long messages travel in parts, are sent on before all is here, and nothing is lost by it."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from oracles.engines import made_by

pytest.importorskip("msgspec")

from every_engine import engines
from generators import FamilyShape, random_family, random_message, random_valued_message
from pathcast.errors import PeerError, PublicationError
from pathcast.overlay import table
from pathcast.overlay.broker_node import NodeSettings
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.content import LOCAL, Content
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.link import LinkSettings
from pathcast.overlay.messages import (
    Forward,
    InParts,
    MessageBegin,
    MessageDropped,
    MessagePart,
    SessionFrame,
    StreamMessage,
    decoded,
    encoded,
)
from pathcast.overlay.parts import COMING_MAX, Arriving, Parts
from pathcast.overlay.table import Table
from pathcast.overlay.xml_content import xml_content
from pathcast_lab.sim import Step
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.broker_model import BrokerModel, Publish, Subscribe, _Arrive, _Reset
from pathcast_lab.sim.broker_scenarios import long_toy_body, random_scenario
from pathcast_lab.sim.broker_world import BrokerWorld, Scenario, Violation
from pathcast_lab.sim.interleavings import explore
from pathcast_lab.sim.toy_content import TOY, ToyInterests, ToyProfiles
from test_overlay_network import in_bytes, xml_body, xml_profile, xml_results

SEEDS = range(16)
NIGHTLY_SEEDS = range(1000, 4000)
LINE = (("a", "b"), ("b", "c"))
UNCUT = Content(partial(ToyInterests, cuts=False), ToyProfiles)
"""A link that cuts sends a message on when all of it is here."""


def settings(part_bytes: int, held_bytes_max: int = 1 << 20) -> NodeSettings:
    """Short parts, and links that are soon full."""
    link = LinkSettings(window_frames=3, frame_payloads_max=1, frame_bytes_max=4)
    return NodeSettings(
        ProtocolSettings(part_bytes=part_bytes, held_bytes_max=held_bytes_max), link
    )


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often a message was sent on before its end, and how often one was dropped."""
    counted = {"cut through": 0, "dropped": 0}
    start, stop = Parts.start, Parts.stop

    def counted_start(
        parts: Parts, name: str, message: Arriving | StreamMessage, generation: int, after: int
    ) -> None:
        counted["cut through"] += isinstance(message, Arriving) and not message.is_whole
        start(parts, name, message, generation, after)

    def counted_stop(parts: Parts, name: str) -> None:
        counted["dropped"] += parts.is_sending(name)
        stop(parts, name)

    monkeypatch.setattr(Parts, "start", counted_start)
    monkeypatch.setattr(Parts, "stop", counted_stop)
    return counted


def run(seed: int) -> BrokerWorld:
    scenario = random_scenario(seed, body=long_toy_body)
    draw = random.Random(seed)
    held_bytes_max = draw.choice([60, 1 << 20])
    given = settings(draw.choice([1, 3, 7]), held_bytes_max)
    through = in_bytes if seed % 4 == 0 else None
    content = TOY if seed % 2 else UNCUT
    return BrokerWorld(scenario, seed, content, settings=given, through=through).run()


def test_a_network_is_one_process(seen: dict[str, int]) -> None:
    delivered = sum(sum(map(len, run(seed).deliveries.values())) for seed in SEEDS)
    assert delivered > 100
    assert seen["cut through"] > 50
    assert seen["dropped"], "the seeds do not reach what they are there for"


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(NIGHTLY_SEEDS.start, NIGHTLY_SEEDS.stop, 250))
def test_a_network_is_one_process_at_length(first: int, seen: dict[str, int]) -> None:
    for seed in range(first, first + 250):
        run(seed)
    assert seen["dropped"] > 5


def test_parts_whose_rest_does_not_come_are_dropped_or_it_is_noticed() -> None:
    def fails(seed: int) -> bool:
        try:
            run(seed)
        except Violation:
            return True
        return False

    with without("drop"):
        assert any(fails(seed) for seed in SEEDS)


def long_xml_body(draw: random.Random) -> str:
    inside = "".join(xml_body(draw)[3:-4] for _ in range(3))
    return f"<r>{inside}</r>"


def test_a_network_of_xml_is_one_process(seen: dict[str, int]) -> None:
    for seed in range(4):
        scenario = random_scenario(
            seed,
            brokers=(4, 6),
            disasters=0.1,
            profile=xml_profile,
            body=long_xml_body,
            seconds=8.0,
        )
        content = xml_content(covering=seed % 2 == 0)
        given = settings(8)
        BrokerWorld(scenario, seed, content, xml_results, settings=given).run()
    assert seen["cut through"] > 5


def in_the_middle(*, resets: list[tuple[str, str]] | None = None) -> BrokerModel:
    """`b`, between `a` and `c`, has the first parts of a message that `c` wants."""
    todo: list[Subscribe | Publish] = [
        Subscribe("c", "s", "a7"),
        Publish("a", b"1 7 13 14 15 16 17 18 19 20"),
    ]
    model = BrokerModel(LINE, todo, resets or [], part_bytes=4, content=UNCUT)
    model.do(todo[0])
    model._calm()
    model.do(model.todo[0])
    model.do(_Arrive("a", "b"))
    assert model.on_the_way["a", "b"], "the end of the message has come"
    return model


def test_a_follower_is_sent_parts_before_the_last_one_is_here() -> None:
    model = in_the_middle()
    first, *_ = model.on_the_way["b", "c"]
    assert isinstance(first, MessageBegin)
    assert first.message.body == b"1 7 "
    assert model.brokers["b"].streams["a"].at == 0
    model.check_end()
    assert model.delivered == {"s": ["1 7 13 14 15 16 17 18 19 20"]}


def test_what_nobody_is_known_to_want_is_not_sent_on() -> None:
    model = BrokerModel(
        LINE, [Subscribe("b", "s", "a7"), Publish("a", b"7 8 9 10")], part_bytes=4, content=UNCUT
    )
    for asked in list(model.todo):
        model.do(asked)
        model._calm()
    stream = model.brokers["b"].streams["a"]
    assert model.delivered == {"s": ["7 8 9 10"]}
    assert not stream.held
    assert stream.followers["c"].told == 1, "silence is told"


def test_a_message_in_parts_is_dropped_with_the_session_that_brought_it() -> None:
    model = in_the_middle(resets=[("a", "b")])
    model.do(_Reset("a", "b"))
    said = list(model.on_the_way["b", "c"])
    assert isinstance(said[0], MessageBegin)
    assert [type(one) for one in said if isinstance(one, MessageDropped)] == [MessageDropped]
    model.check_end()
    assert model.delivered == {"s": ["1 7 13 14 15 16 17 18 19 20"]}


def test_a_table_that_changes_meanwhile_counts_for_what_is_not_decided() -> None:
    """`c` wants nothing when the message begins, and another number when it ends."""
    todo: list[Subscribe | Publish] = [
        Subscribe("b", "s", "a1"),
        Publish("a", b"1 7 13 14 15 16"),
        Subscribe("c", "t", "a16"),
    ]
    model = BrokerModel(LINE, todo, part_bytes=4, content=UNCUT)
    model.do(todo[0])
    model._calm()
    model.do(model.todo[0])
    model.do(_Arrive("a", "b"))
    model.do(model.todo[0])
    model.do(_Arrive("c", "b"))
    model.check_end()
    assert model.delivered["t"] == ["1 7 13 14 15 16"]


def test_every_order_of_a_subscription_and_a_long_message() -> None:
    todo: list[Subscribe | Publish] = [Subscribe("c", "s", "a2"), Publish("a", b"1 2 3 4")]
    explored = explore(BrokerModel(LINE, todo, part_bytes=3, content=UNCUT))
    assert explored.states > 30


@pytest.mark.nightly
@pytest.mark.parametrize("reset", LINE)
def test_every_order_with_a_session_that_ends(reset: tuple[str, str]) -> None:
    todo: list[Subscribe | Publish] = [Subscribe("c", "s", "a2"), Publish("a", b"1 2 3")]
    model = BrokerModel(LINE, todo, [reset], part_bytes=3, content=UNCUT, is_reduced=True)
    assert explore(model, states_max=100_000).states > 1000


@engines
@pytest.mark.parametrize("is_joined", [False, True])
def test_decisions_are_those_of_the_table(
    engine: str, is_joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is known to want a message wants it; at its end all are known."""
    monkeypatch.setattr(table, "BUILD", 1e9)
    if not is_joined:  # a routing table for each change, and what is gone stays in it
        monkeypatch.setattr(table, "GROWTH", 0)
        monkeypatch.setattr(table, "GONE_SHARE", 0)
    early = wanted = 0
    for seed in range(4):
        chosen = random.Random(seed)
        texts = random_family(chosen, 12, FamilyShape(has_alternatives=seed % 2 == 0))
        routes = made_by(engine, Table)
        held: dict[str, set[str]] = {"east": set(), "west": set(), LOCAL: set()}
        for _ in range(3):
            for origin, before in held.items():
                asked = chosen.sample(texts, 3)
                now = {entry for each in asked for entry in disjuncts_of(each, deliver="ids")}
                routes.set(origin, sorted(now - before), sorted(before - now))
                held[origin] = now
            for number in range(6):
                make = random_valued_message if number % 2 else random_message
                message = make(chosen)
                [expected] = routes.route([message])
                decisions = routes.decisions(len(message))
                start = 0
                while start < len(message):
                    size = chosen.randint(1, 40)
                    decisions.feed(message[start : start + size])
                    start += size
                    assert decisions.wanted <= expected
                    assert decisions.decided in (None, expected)
                    early += start < len(message) and decisions.decided is not None
                assert decisions.decided == expected
                wanted += len(expected)
    assert wanted > 20
    assert early > 3 or engine == "reference"


def test_a_table_that_has_changed_says_who_wants_a_message_and_not_who_does_not() -> None:
    routes = made_by("reference", Table)
    routes.set("east", ["/a/b"], [])
    message = b"<a><b/><c/></a>"
    before = routes.decisions(len(message))
    before.feed(message[:5])
    routes.set("west", ["/a/c"], [])
    before.feed(message[5:])
    assert before.wanted == {"east"}
    assert before.decided is None
    after = routes.decisions(len(message))
    after.feed(message)
    assert after.decided == frozenset({"east", "west"})


def test_a_message_is_nobodys_where_nobody_asks() -> None:
    assert made_by("reference", Table).decisions(4).decided == frozenset()


def test_what_is_no_message_is_nobodys_yet() -> None:
    routes = Table()
    routes.set("east", ["/a/b[.='x']"], [])
    decisions = routes.decisions(100)
    decisions.feed(b"<a><b></c>")
    decisions.feed(b"<b>x</b>")
    assert decisions.wanted == frozenset()
    assert decisions.decided is None


# What cannot be.


def begin(position: int = 1, after: int = 0, total: int = 10, body: bytes = b"1 2") -> MessageBegin:
    message = StreamMessage(position, "", "m", 0, "", False, 0, body)
    return MessageBegin("z", 1, 1, after, total, message)


def part(position: int = 1, offset: int = 3, body: bytes = b" 3 ") -> MessagePart:
    return MessagePart("z", 1, 1, position, offset, body)


WRONG: dict[str, tuple[list[InParts], str]] = {
    "two at a time": ([begin(), begin(2)], "one begins at 2, and 1 has not ended"),
    "not where the stream is": ([begin(9, after=5)], "it begins after 5, and 0 was expected"),
    "of a position that was had": ([begin(0)], "position 0 is not after 0"),
    "longer than it says at once": ([begin(total=2)], "3 bytes come of 2"),
    "longer than it says": ([begin(total=5), part()], "6 bytes come of 5"),
    "that never began": ([part()], "position 1 goes on, and none has begun"),
    "of another message": ([begin(), part(2)], "position 2 goes on, and 1 has begun"),
    "left out": ([begin(), part(offset=6)], "bytes from 6 on come, and 3 are here"),
    "twice": ([begin(), part(), part()], "bytes from 3 on come, and 6 are here"),
    "dropped, of what never began": (
        [MessageDropped("z", 1, 1, 1)],
        "position 1 goes on, and none has begun",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_parts_that_cannot_be_are_refused(name: str) -> None:
    said, reason = WRONG[name]
    parts = Parts("z", 1, 4, lambda *_: None, lambda _: True, lambda _: None, lambda _: 0)
    *before, last = said
    for one in before:
        parts.hear("z", one, 0)
    with pytest.raises(PeerError) as refused:
        parts.hear("z", last, 0)
    assert refused.value.code == "overlay.part"
    assert refused.value.params == {"peer": "z", "root": "z", "reason": reason}


@pytest.mark.parametrize(
    "said", [begin(total=1 << 40), begin(total=0), part(body=b""), part(offset=-1)]
)
def test_what_is_out_of_range_is_no_frame(said: InParts) -> None:
    with pytest.raises(PeerError, match="a frame cannot be read"):
        decoded(encoded(SessionFrame(1, 2, 1, 0, (said,))))


def following(model: BrokerModel, lies: Callable[[int, int], list[InParts | Forward]]) -> None:
    """`a`, root and upstream of `b`, says something in the stream that `b` follows."""
    stream = model.brokers["b"].streams["a"]
    for one in lies(stream.number, stream.generation):
        model.brokers["b"].hear("a", one)


def test_nothing_comes_between_parts() -> None:
    model = BrokerModel(LINE, [Publish("a", b"1")], part_bytes=4, content=UNCUT)

    life = model.brokers["a"].streams["a"].life_at(1)

    def lies(number: int, generation: int) -> list[InParts | Forward]:
        message = StreamMessage(1, "", "m", 0, "", False, 0, b"1 2")
        return [
            MessageBegin("a", number, generation, 0, 10, message, life),
            Forward("a", number, generation, 0, 1, ()),
        ]

    with pytest.raises(PeerError, match="1 has begun and not ended") as refused:
        following(model, lies)
    assert refused.value.code == "overlay.stream"


def test_parts_of_before_are_not_heard() -> None:
    model = BrokerModel(LINE, [Publish("a", b"1")], part_bytes=4, content=UNCUT)
    following(model, lambda number, generation: [part()])
    following(
        model, lambda number, generation: [MessagePart("a", number, generation - 1, 5, 9, b"x")]
    )
    assert model.brokers["b"].streams["a"].parts.arriving is None


def test_a_neighbour_begins_no_more_messages_than_may_be_held() -> None:
    roots = [f"r{n}" for n in range(COMING_MAX + 1)]
    links = (("b", "z"), *((root, "z") for root in roots))
    todo: list[Subscribe | Publish] = [Publish(root, b"1") for root in roots]
    model = BrokerModel(links, todo, part_bytes=4, content=UNCUT)
    broker = model.brokers["b"]

    def begun(root: str) -> MessageBegin:
        stream = broker.streams[root]
        message = StreamMessage(1, "", "m", 0, "", False, 0, b"1 2")
        life = stream.life_at(1)
        return MessageBegin(root, stream.number, stream.generation, stream.at, 10, message, life)

    for root in roots[:-1]:
        broker.hear("z", begun(root))
    with pytest.raises(PeerError) as refused:
        broker.hear("z", begun(roots[-1]))
    assert refused.value.code == "overlay.parts"


def test_a_root_takes_no_longer_messages_than_brokers_do() -> None:
    given = NodeSettings(ProtocolSettings(message_bytes_max=8, log_bytes_max=14))
    scenario = Scenario(("a", "b"), (("a", "b"),), (Step(0.0, "source", ("a",)),))
    world = BrokerWorld(scenario, 1, settings=given)
    world.perform(scenario.steps[0])
    world.network.run(2.0)
    node = world.node("a")
    with pytest.raises(PublicationError) as refused:
        node.asked(2.0, node.broker.publish, "of a", "m", b"123456789")
    assert refused.value.code == "publication.too_long"
    node.asked(2.0, node.broker.publish, "of a", "m1", b"12345678")
    with pytest.raises(PublicationError) as refused:
        node.asked(2.0, node.broker.publish, "of a", "m2", b"12345678")
    assert refused.value.code == "publication.log"
    assert refused.value.params["bytes"] == 8
