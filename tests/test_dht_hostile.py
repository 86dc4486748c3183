"""What a peer may be told that cannot be: typed errors, and nothing else happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("msgspec")

import msgspec

from generators.strategies import messages
from pathcast.dht.credit import Ledger
from pathcast.dht.events import Events, Message
from pathcast.dht.filtering import FilteringPeer
from pathcast.dht.hosting import Host, Hosted
from pathcast.dht.messages import Answer, Ask, Refused, decoded, encoded
from pathcast.dht.state_messages import (
    DoneVisit,
    ExpandState,
    GivenUp,
    IndexQuery,
    Match,
    RecExpandState,
    RemoveQuery,
    StateQuestion,
    Visit,
    Visited,
)
from pathcast.dht.states import Edge, Entry, StateRecord, decoded_state, encoded_state
from pathcast.errors import ConfigError, PeerError
from pathcast.message import parse_message
from pathcast.protocol import Deliver, Send
from pathcast_lab.sim.static_ring import StaticPeer, StaticRing

EVENTS = Events.of(parse_message(b"<a><b><c/></b><b/></a>"))
ENTRY = Entry("r", "s", "evil", "/a", (), True)


def peer() -> FilteringPeer:
    """One that owns every key."""
    ring = StaticRing(["p", "p"])
    return FilteringPeer(lambda asked: StaticPeer("p", ring, asked), 1, {})


def visit(key: str, element: int, events: Events = EVENTS) -> RecExpandState:
    return RecExpandState("m", "evil", Visit(key, element), events, 1, 1, 0, None)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (visit("stop", 0), "dht.key"),
        (visit("start/a/", 1), "dht.claim"),
        # No such element; the state is not active there; the range lies.
        (visit("start/a", 99), "dht.claim"),
        (visit("start/b", 1), "dht.claim"),
        (ExpandState(Visit("start/a/b", 1), EVENTS), "dht.claim"),
        (visit("start/a", 1, msgspec.structs.replace(EVENTS, right=(8, 9, 4, 7))), "dht.events"),
        (visit("start/a", 1, msgspec.structs.replace(EVENTS, depth=(1, 2, 2, 2))), "dht.events"),
        (visit("start/a", 1, msgspec.structs.replace(EVENTS, left=(1, 2, 2, 6))), "dht.events"),
        (visit("start/a", 1, msgspec.structs.replace(EVENTS, name=(0, 1, 9, 1))), "dht.events"),
        (visit("start/a", 1, msgspec.structs.replace(EVENTS, left=(1, 2, 3))), "dht.events"),
        (IndexQuery("start/a", 2, ENTRY, {}, 1), "dht.claim"),
        (IndexQuery("start//a/}", 0, ENTRY, {}, 1), "dht.key"),
        (RemoveQuery("start/a", 9, "r", "evil", 1), "dht.claim"),
        (GivenUp("start/a", "start/b/c", 1), "dht.claim"),
        (GivenUp("start/a", "start/a", 1), "dht.claim"),
    ],
)
def test_what_cannot_be_is_refused(asked: StateQuestion, code: str) -> None:
    node = peer()
    with pytest.raises(PeerError) as refused:
        node.receive("evil", decoded(encoded(Ask(1, None, asked))), 0.0)
    assert refused.value.code == code
    # And nothing came of it.
    assert not node.receive("evil", Ask(2, None, Match("m", "r", "q")), 0.0)[1:]


@pytest.mark.parametrize(
    "done",
    [
        DoneVisit(Visit("start/x", 1), (), 1, 1, ()),
        DoneVisit(Visit("start", 0), (Visit("/b", 1),), 1, 1, ()),
        DoneVisit(Visit("start/a", 1), (Visit("", 1),), 1, 1, ()),
        DoneVisit(Visit("start", 0), (Visit("/a", 77),), 1, 1, ()),
    ],
)
def test_forged_credits_are_refused_and_do_not_end_an_execution(done: DoneVisit) -> None:
    ring = StaticRing(["p", "q"])
    node = FilteringPeer(lambda asked: StaticPeer("p", ring, asked), 1, {})
    node.publish(b"<a><b><c/></b><b/></a>", "me")
    name = "1 1 p"
    with pytest.raises(PeerError) as refused:
        node.receive("evil", Ask(1, None, Visited(name, (done,))), 0.0)
    assert refused.value.code == "dht.claim"
    assert not [e for e in node.wake("state 999", 1.0) if isinstance(e, Deliver)]


def test_a_match_that_nobody_asked_for_is_refused() -> None:
    [reply] = peer().receive("evil", Ask(1, None, Match("m", "r", "q")), 0.0)
    assert isinstance(reply, Send)
    assert reply.message == Answer(1, Refused())


def test_a_member_of_another_host_is_not_believed() -> None:
    host = Host("h", {"h#0": peer()})
    message = Hosted("h#0", "g#1", Ask(1, None, Match("m", "r", "q")))
    with pytest.raises(PeerError) as refused:
        host.receive("evil", message, 0.0)
    assert refused.value.code == "dht.sender"


@pytest.mark.parametrize("given", ["s" * 300, ""])
def test_a_subscription_whose_name_cannot_travel_is_refused(given: str) -> None:
    with pytest.raises(ConfigError):
        peer().subscribe(given, "/a", "me")


def test_a_state_that_cannot_be_read_is_refused() -> None:
    hostile: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: b"\x93\x01",
        lambda: encoded_state(StateRecord({"a": Edge(-1, None)})),
        lambda: b"\x91\x81\xa1a\x92\x01" * 4000,
    ]
    for value in hostile:
        with pytest.raises(PeerError) as refused:
            decoded_state(value())
        assert refused.value.code == "dht.state"


@given(messages())
def test_a_part_of_a_message_says_what_lies_in_what(body: bytes) -> None:
    tree = parse_message(body)
    events = Events.of(tree)
    whole = Message(events)
    assert len(events.left) == len(tree)
    for element in (0, *events.left):
        part = Message(whole.around(element))
        assert part.children(element) == whole.children(element)
        assert part.depth(element) == whole.depth(element)
        for place, other in enumerate(events.left):
            inside = element == 0 or element < other < events.right[events.left.index(element)]
            assert whole.is_inside(other, element) == inside
            assert (other in part) >= inside
            assert events.depth[place] == tree.depth[place] + 1


@given(st.data(), st.integers(1, 3))
def test_credits_in_any_order_and_number(data: st.DataObject, copies: int) -> None:
    """A tree of credits: over exactly when each has come back, however often and when."""
    parent = [data.draw(st.integers(0, n - 1)) for n in range(1, data.draw(st.integers(1, 12)))]
    count = len(parent) + 1
    below = {
        n: [Visit("start", m + 1) for m, p in enumerate(parent) if p == n] for n in range(count)
    }
    order = data.draw(st.permutations([n for n in range(count) for _ in range(copies)]))
    ledger = Ledger(Visit("start", 0))
    back: set[int] = set()
    for n in order:
        assert not ledger.is_over or len(back) == count
        assert ledger.came_back(Visit("start", n), below[n]) == (n not in back)
        back.add(n)
    assert ledger.is_over


@pytest.mark.parametrize(
    "asked",
    [
        visit("start/" + "a" * 70_000, 1),
        visit("start/a", -1),
        RecExpandState("m" * 300, "evil", Visit("start", 0), EVENTS, 1, 1, 0, None),
        RecExpandState("m", "evil", Visit("start", 0), EVENTS, 2**41, 1, 0, None),
        IndexQuery("start/a", 0, Entry("r", "s", "evil", "/" + "a" * 70_000, (), True), {}, 1),
        IndexQuery("start/a", 0, ENTRY, {0: -1}, 1),
    ],
)
def test_what_is_too_large_is_not_read(asked: StateQuestion) -> None:
    with pytest.raises(PeerError) as refused:
        decoded(encoded(Ask(1, None, asked)))
    assert refused.value.code == "dht.message"
