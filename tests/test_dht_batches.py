"""Messages that hold many questions or records: each has its own answer, and all fit on the way."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

pytest.importorskip("msgspec")

from generators.message_text import random_message
from pathcast.dht.asking import Asking
from pathcast.dht.batches import held_records, in_batches
from pathcast.dht.events import Events, EventTree
from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.gathering import Gathering, answer_together
from pathcast.dht.messages import Done, Known, Later, Replies, Reply, RequestRefused, RingRecord
from pathcast.dht.piece_messages import Indexed, Match, Together
from pathcast.protocol import Effect, Send
from pathcast_lab.sim import Faults
from pathcast_lab.sim.filtering_world import FilteringWorld
from pathcast_papers.dht.state_ring import ALL_ELEMENTS
from pathcast_papers.message import parse_message


def test_what_is_asked_together_is_answered_one_by_one() -> None:
    out: list[Effect] = []
    asking = Asking(out, 1.0, 2, lambda _: None)
    timers: list[Callable[[], None]] = []
    gathering = Gathering(asking, lambda _, then: timers.append(then), 0.1)
    replies: dict[str, Reply | None] = {}

    def replied(name: str) -> Callable[[Reply | None], None]:
        return lambda reply: replies.update({name: reply})

    for name in ("one", "two"):
        gathering.add("p", Match("m", name, "q"), replied(name))
    for registration in ("r1", "r2"):
        gathering.add("p", Indexed(registration, True, 1), replied(registration))
    [timer] = timers
    timer()
    [sent] = [each for each in out if isinstance(each, Send)]
    ask = sent.message
    assert len(ask.what.questions) == 4  # type: ignore[attr-defined]

    def do(question: object, answer: object) -> None:
        match question:
            case Match(registration="one"):
                answer(RequestRefused())  # type: ignore[operator]
            case Indexed(registration="r2"):
                answer(Later())  # type: ignore[operator]
            case _:
                answer(Done())  # type: ignore[operator]

    answers: list[Reply] = []
    answer_together(ask.what, do, answers.append)  # type: ignore[attr-defined]
    assert answers == [Replies((RequestRefused(), Done(), Done(), Later()))]
    # What is asked meanwhile waits for the answer; and of one who is dead nobody waits.
    gathering.add("p", Match("m", "three", "q"), replied("three"))
    assert len([each for each in out if isinstance(each, Send)]) == 1
    for _ in range(2):
        asking.wake("ask 1")
    assert replies == dict.fromkeys(["one", "two", "r1", "r2", "three"])


def test_nothing_asked_together_is_answered_with_nothing() -> None:
    answers: list[Reply] = []
    answer_together(Together(()), lambda *_: None, answers.append)
    assert answers == [Replies(())]


def test_large_records_travel_a_few_at_a_time() -> None:
    held = {f"k{n}": RingRecord(f"k{n}", bytes(400_000), 1, "w") for n in range(5)}
    asked = [Known.of(key, held[key] if key == "k1" else None) for key in [*held, "none"]]
    found = held_records(asked, held.get)
    assert [each.key for each in found.records] == ["k0"]
    assert (found.same, found.count) == ((1,), 2)
    assert [len(batch) for batch in in_batches(asked[2:], lambda _: 600_000)] == [1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(20))
def test_what_several_elements_see_is_what_each_sees(seed: int) -> None:
    """Pieces that travel to one peer share what is read of a message."""
    draw = random.Random(seed)
    message = EventTree(Events.of(parse_message(random_message(draw))))
    elements = draw.sample(message.events.left, min(3, len(message.events.left)))
    together = EventTree(message.projected([(element, ALL_ELEMENTS) for element in elements]))
    for element in elements:
        alone = [(element, ALL_ELEMENTS)]
        assert together.projected(alone) == message.projected(alone)
    seen = {
        left for element in elements for left in message.projected([(element, ALL_ELEMENTS)]).left
    }
    assert seen == set(together.events.left)


def test_a_slow_ring_is_not_given_the_same_queries_again_and_again() -> None:
    """Each message takes longer than a subscriber waits at first."""
    slow = Faults(delay_seconds=(0.3, 0.4))
    settings = FilteringSettings(patience_seconds=0.5, gather_seconds=0.02)
    world = FilteringWorld.on_static_ring(3, 8, settings, slow)
    for number in range(300):
        name = f"s{number}"
        subscribe = partial(world.subscribe, world.names[0], name, f"/a/b/{name}")
        world.network.at(number * 0.05, subscribe)
    world.run(40)
    assert world.not_in_force() == []
    repeated = world.network.nodes[world.names[0]].repeated  # type: ignore[attr-defined]
    assert 0 < repeated < 100
