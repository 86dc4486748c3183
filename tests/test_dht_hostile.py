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
from pathcast.dht.events import Events, EventTree
from pathcast.dht.filtering import FilteringPeer
from pathcast.dht.hosting import Hosted, PeerHost
from pathcast.dht.messages import Answer, Ask, RequestRefused, decoded, encoded
from pathcast.dht.piece_messages import (
    Elements,
    IndexQuery,
    Match,
    PieceQuestion,
    Ran,
    RemoveQuery,
    RunPieces,
    Visit,
)
from pathcast.dht.piece_records import (
    Entry,
    PieceLink,
    PieceRecord,
    Reads,
    decoded_piece,
    encoded_piece,
)
from pathcast.errors import ConfigError, PeerError
from pathcast.protocol import Deliver, Send
from pathcast_lab.sim.static_ring import StaticPeer, StaticRing
from pathcast_papers.dht.state_ring import ALL_ELEMENTS, children_of
from pathcast_papers.message import parse_message

EVENTS = Events.of(parse_message(b"<a><b><c/></b><b/></a>"))
ENTRY = Entry("r", "s", "evil", "/a", (), True)


def peer() -> FilteringPeer:
    """One that owns every key."""
    ring = StaticRing(["p", "p"])
    return FilteringPeer(lambda asked: StaticPeer("p", ring, asked), 1, {})


def changed(**columns: tuple[int, ...]) -> Events:
    return msgspec.structs.replace(EVENTS, **columns)


def run_pieces(key: str, element: int, events: Events = EVENTS) -> RunPieces:
    return RunPieces("m", "evil", {"start": {key: (element,)}}, events, 1, 1)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (run_pieces("stop", 0), "dht.key"),
        (run_pieces("start/a/", 1), "dht.claim"),
        # No such element; the state is not active there; the range lies.
        (run_pieces("start/a", 99), "dht.claim"),
        (run_pieces("start/b", 1), "dht.claim"),
        (run_pieces("start/a/b", 1), "dht.claim"),
        (
            run_pieces("start/a", 1, changed(right=(8, 9, 4, 7))),
            "dht.events",
        ),
        (
            run_pieces("start/a", 1, changed(depth=(1, 2, 2, 2))),
            "dht.events",
        ),
        (
            run_pieces("start/a", 1, changed(left=(1, 2, 2, 6))),
            "dht.events",
        ),
        (
            run_pieces("start/a", 1, changed(name=(0, 1, 9, 1))),
            "dht.events",
        ),
        (run_pieces("start/a", 1, changed(left=(1, 2, 3))), "dht.events"),
        (IndexQuery("start//a/}", ENTRY, 1), "dht.key"),
        (RemoveQuery("stop/a", "r", "evil", 1), "dht.key"),
    ],
)
def test_what_cannot_be_is_refused(asked: PieceQuestion, code: str) -> None:
    node = peer()
    with pytest.raises(PeerError) as refused:
        node.receive("evil", decoded(encoded(Ask(1, None, asked))), 0.0)
    assert refused.value.code == code
    # And nothing came of it.
    assert not node.receive("evil", Ask(2, None, Match("m", "r", "q")), 0.0)[1:]


@pytest.mark.parametrize(
    ("done", "handed"),
    [
        ({"start/x": (1,)}, {}),
        ({"start": (0,)}, {"start/b": (1,)}),
        ({"start": (0,)}, {"start/a": (77,)}),
    ],
)
def test_forged_credits_are_refused_and_do_not_end_an_execution(
    done: Elements, handed: Elements
) -> None:
    ring = StaticRing(["p", "q"])
    # It has to ask another for the top.
    me = next(name for name in "pq" if name != ring.owner("start").name)
    node = FilteringPeer(lambda asked: StaticPeer(me, ring, asked), 1, {})
    node.publish(b"<a><b><c/></b><b/></a>", "me")
    name = f"1 1 {me}"
    with pytest.raises(PeerError) as refused:
        node.receive("evil", Ask(1, None, Ran(name, done, handed, 1, 1, ())), 0.0)
    assert refused.value.code == "dht.claim"
    assert not [e for e in node.wake("state 999", 1.0) if isinstance(e, Deliver)]


def test_a_match_that_nobody_asked_for_is_refused() -> None:
    [reply] = peer().receive("evil", Ask(1, None, Match("m", "r", "q")), 0.0)
    assert isinstance(reply, Send)
    assert reply.message == Answer(1, RequestRefused())


def test_a_member_of_another_host_is_not_believed() -> None:
    host = PeerHost("h", {"h#0": peer()})
    message = Hosted("h#0", "g#1", Ask(1, None, Match("m", "r", "q")))
    with pytest.raises(PeerError) as refused:
        host.receive("evil", message, 0.0)
    assert refused.value.code == "dht.sender"


@pytest.mark.parametrize("given", ["s" * 300, ""])
def test_a_subscription_whose_name_cannot_travel_is_refused(given: str) -> None:
    with pytest.raises(ConfigError):
        peer().subscribe(given, "/a", "me")


def test_a_piece_that_cannot_be_read_is_refused() -> None:
    hostile: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: b"\x93\x01",
        lambda: encoded_piece(PieceRecord(links={"start/a": PieceLink("start/a", Reads((), -1))})),
        lambda: b"\x91\x81\xa1a\x92\x01" * 4000,
    ]
    for value in hostile:
        with pytest.raises(PeerError) as refused:
            decoded_piece("start", value())
        assert refused.value.code == "dht.state"


@given(messages())
def test_a_part_of_a_message_says_what_lies_in_what(body: bytes) -> None:
    tree = parse_message(body)
    events = Events.of(tree)
    whole = EventTree(events)
    assert len(events.left) == len(tree)
    for element in (0, *events.left):
        part = EventTree(whole.projected([(element, ALL_ELEMENTS)]))
        assert children_of(part.events)(element) == children_of(events)(element)
        assert part.depth(element) == whole.depth(element)
        for place, other in enumerate(events.left):
            inside = element == 0 or element < other < events.right[events.left.index(element)]
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
        run_pieces("start/" + "a" * 70_000, 1),
        run_pieces("start/a", -1),
        RunPieces("m" * 300, "evil", {}, EVENTS, 1, 1),
        RunPieces("m", "evil", {}, EVENTS, 2**41, 1),
        IndexQuery("start/a", Entry("r", "s", "evil", "/" + "a" * 70_000, (), True), 1),
        IndexQuery("start/a", ENTRY, -1),
    ],
)
def test_what_is_too_large_is_not_read(asked: PieceQuestion) -> None:
    with pytest.raises(PeerError) as refused:
        decoded(encoded(Ask(1, None, asked)))
    assert refused.value.code == "dht.message"
