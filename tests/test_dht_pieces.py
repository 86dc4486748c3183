"""The automaton in pieces on a ring: answers are those of one process, whatever is cut."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("msgspec")

import msgspec

from filtering_worlds import SMALL, churned, filled, is_missed, peers_of, published, raced
from generators.alphabet import ALPHABET
from pathcast.dht import piece_cutting, piece_records, piece_store
from pathcast.dht.events import Events, EventTree
from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.messages import Ask
from pathcast.dht.piece_cutting import PieceSettings, part_of
from pathcast.dht.piece_finder import PieceFinder
from pathcast.dht.piece_messages import (
    Elements,
    FetchPiece,
    IndexQuery,
    Match,
    PieceQuestion,
    Ran,
    Relink,
    RemoveQuery,
    RunPieces,
    TakePiece,
    Together,
    Visit,
)
from pathcast.dht.piece_records import (
    NOTHING,
    Entry,
    PieceLink,
    PieceRecord,
    Reads,
    bin_state,
    covering,
    decoded_piece,
    encoded_piece,
    joined,
    moved,
    prefixes,
    read_behind,
    with_entry,
)
from pathcast.dht.publishing import PublicationOutcome
from pathcast.errors import PeerError
from pathcast.protocol import Deliver, Effect, Send, Wake
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.filtering_world import FilteringWorld
from pathcast_lab.sim.static_ring import StaticPeer, StaticRing
from pathcast_papers.message import parse_message


def in_pieces(gather_seconds: float = 0.005) -> FilteringSettings:
    return FilteringSettings(SMALL, gather_seconds=gather_seconds)


def cuts(world: FilteringWorld) -> int:
    return sum(peer.cutting.cuts for peer in peers_of(world))


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_one_process(seed: int) -> None:
    world = FilteringWorld.on_static_ring(seed, 20, in_pieces(), namespaces=ALPHABET.namespaces)
    filled(world, seed, 60, seconds=4.0)
    assert published(world, seed, 20) > 20
    assert cuts(world) > 3


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(1000, 2000), marks=pytest.mark.nightly)]
)
def test_no_match_is_lost_while_peers_come_and_go(seeds: Sequence[int]) -> None:
    matches = proved = publications = cut = 0
    for seed in seeds:
        world = churned(seed, in_pieces(gather_seconds=[0.0, 0.01][seed // 2 % 2]))
        matches += world.check()
        cut += cuts(world)
        publications += len(world.publications)
        proved += sum(
            one.outcome is not None and one.outcome.is_proved for one in world.publications
        )
    assert matches > 5 * len(seeds)
    assert 2 * cut > len(seeds)
    assert proved > 0.95 * publications


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(1000, 1300), marks=pytest.mark.nightly)]
)
def test_no_match_is_lost_while_queries_come_and_go(seeds: Sequence[int]) -> None:
    matches = 0
    for seed in seeds:
        world = raced(seed, in_pieces(gather_seconds=[0.0, 0.02][seed // 2 % 2]))
        assert world.not_in_force() == []
        matches += world.check()
    assert matches > 3 * len(seeds)


@pytest.mark.parametrize("safeguard", ["passes_on", "waits_for_readers", "tells_once"])
def test_a_safeguard_is_missed(safeguard: str) -> None:
    with without(safeguard):
        assert any(is_missed(seed, in_pieces(0.0)) for seed in range(40))


def test_a_seed_gives_the_same_run_in_another_process() -> None:
    """Sets of strings are in another order there: a peer that follows one would not replay."""
    program = (
        "from filtering_worlds import *\n"
        "settings = FilteringSettings(SMALL)\n"
        "static = filled(FilteringWorld.on_static_ring(1, 20, settings), 1, 60, 4.0)\n"
        "published(static, 1, 20)\n"
        "for world in (static, churned(1, settings)):\n"
        "    print(sorted(world.counted.messages.items()), world.counted.bytes.total())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_many_queries_at_once_make_no_record_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 8_000
    monkeypatch.setattr(piece_store, "RECORD_MAX", largest)
    pieces = PieceSettings(queries_max=20)
    settings = FilteringSettings(pieces=pieces, gather_seconds=0.2, patience_seconds=4.0)
    world = FilteringWorld.on_static_ring(1, 6, settings)
    for number in range(400):
        world.subscribe(world.names[number % 6], f"s{number}", f"/r/e{number % 20}/f{number}")
    sizes: list[int] = []
    for _ in range(40):
        world.run(0.5)
        held = [value for peer in peers_of(world) for value, _ in held_by(peer).values()]
        sizes += [len(value or b"") for value in held]
    assert world.not_in_force() == []
    assert largest / 4 < max(sizes) <= largest
    world.publish("p0", b"<r><e1><f1/><f21/></e1></r>")
    world.run(6)
    assert world.check() == 2


def held_by(peer: FilteringPeer) -> Mapping[str, tuple[bytes | None, int]]:
    assert isinstance(peer.substrate, StaticPeer)
    return peer.substrate.held


# Alone: a peer that owns every key, and what it says to another.

EVENTS = Events.of(parse_message(b"<a><b><c/></b><b/></a>"))
ENTRY = Entry("r", "s", "q", "/a/b", (), True)
LINK = PieceLink("start/a", Reads(("b",), 1))
NEW = PieceRecord(("start/a/b",), entries={"start/a/b": {"r": ENTRY}})


def alone(
    settings: FilteringSettings, records: dict[str, PieceRecord] | None = None
) -> FilteringPeer:
    held = {key: encoded_piece(record) for key, record in (records or {}).items()}
    ring = StaticRing(["p", "p"], records=held)
    return FilteringPeer(lambda asked: StaticPeer("p", ring, asked), 1, {}, settings)


def ask(peer: FilteringPeer, asked: PieceQuestion) -> list[object]:
    return said(peer, peer.receive("q", Ask(1, None, asked), 0.0))


def said(peer: FilteringPeer, effects: Sequence[Effect]) -> list[object]:
    """What is asked at once, and what waits for others."""
    gathers = in_pieces().gather_seconds
    waiting = [each for each in effects if isinstance(each, Wake) and each.after <= gathers]
    sent = [each for each in (*effects, *wake_all(peer, waiting)) if isinstance(each, Send)]
    asked = [each.message.what for each in sent if isinstance(each.message, Ask)]
    groups = [each.questions if isinstance(each, Together) else (each,) for each in asked]
    return [question for group in groups for question in group]


def wake_all(peer: FilteringPeer, effects: Sequence[Effect]) -> list[Effect]:
    timers = [each.timer for each in effects if isinstance(each, Wake)]
    return [effect for timer in timers for effect in peer.wake(timer, 1.0)]


def kept(peer: FilteringPeer, key: str) -> PieceRecord:
    assert isinstance(peer.substrate, StaticPeer)
    return decoded_piece(key, peer.substrate.held[key][0])


def entered(piece: str, key: str, *elements: int) -> RunPieces:
    return RunPieces("m", "q", {piece: {key: elements}}, EVENTS, 1, 1)


def replace_events(events: Events) -> RunPieces:
    return msgspec.structs.replace(entered("start", "start", 0), events=events)


@pytest.mark.parametrize("is_on", [True, False])
def test_a_piece_that_is_not_there_yet_is_waited_for(is_on: bool) -> None:
    peer = alone(in_pieces())
    with without(*([] if is_on else ["waits_for_pieces"])):
        effects = peer.receive("q", Ask(1, None, entered("start/a/b", "start/a/b", 2)), 0.0)
    empty = Ran("m", {"start/a/b": (2,)}, {}, 1, 1, ())
    assert said(peer, effects) == ([] if is_on else [empty])
    ask(peer, TakePiece("start/a/b", NEW))
    assert (Match("m", "r", "q") in said(peer, wake_all(peer, effects))) is is_on


@pytest.mark.parametrize("is_on", [True, False])
def test_a_query_that_was_removed_does_not_come_back(is_on: bool) -> None:
    peer = alone(in_pieces())
    asked = IndexQuery("start/a/b", ENTRY, 1)
    ask(peer, asked)
    ask(peer, RemoveQuery("start/a/b", "r", "q", 2))
    with without(*([] if is_on else ["remembers_removals"])):
        # An earlier try, held up.
        ask(peer, msgspec.structs.replace(asked, attempt=0))
    assert list(kept(peer, "start").entries) == ([] if is_on else ["start/a/b"])


def test_queries_are_taken_out_of_a_piece_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more goes in; also a query that never came in is taken out."""
    links = {f"start/n{number}": PieceLink("start/a", NOTHING) for number in range(100)}
    full = PieceRecord(entries={"start/a/b": {"r": ENTRY}}, links=links)
    monkeypatch.setattr(piece_store, "RECORD_MAX", 2 * len(encoded_piece(full)))
    peer = alone(in_pieces(), {"start": full})
    ask(peer, IndexQuery("start/a/c", renamed("r2"), 1))
    assert list(kept(peer, "start").entries) == ["start/a/b"]
    ask(peer, RemoveQuery("start/a/c", "r2", "q", 2))
    assert kept(peer, "start").removed == ("r2",)
    ask(peer, RemoveQuery("start/a/b", "r", "q", 3))
    assert kept(peer, "start").entries == {}


@pytest.mark.parametrize(
    "asked",
    [
        FetchPiece("start", 0),
        IndexQuery("start/a/b", msgspec.structs.replace(ENTRY, registration="r2"), 1),
        entered("start", "start/a/b", 2),
    ],
)
def test_whoever_comes_to_a_piece_that_was_being_cut_makes_it_go_on(asked: PieceQuestion) -> None:
    """The peer that began it is dead: what leaves has been stored with its copies."""
    link = PieceLink("start/a/b", Reads((), 0))
    peer = alone(
        in_pieces(), {"start": PieceRecord(links={"start/a/b": link}, leaving={"start/a/b": NEW})}
    )
    ask(peer, asked)
    assert "r" in kept(peer, "start/a/b").entries["start/a/b"]
    assert kept(peer, "start/a/b").roots == ("start/a/b",)
    assert kept(peer, "start").leaving == {}
    # What comes a second time changes nothing.
    ask(peer, TakePiece("start/a/b", PieceRecord(("start/a/b",))))
    assert "r" in kept(peer, "start/a/b").entries["start/a/b"]


def test_what_a_piece_has_given_away_is_reached_by_the_old_link_and_by_the_new() -> None:
    link = PieceLink("start/a", Reads(("b", "c"), 2))
    records = {
        "start": PieceRecord(
            links={"start/a": link, "start/x": PieceLink("start/a", Reads((), 0))}
        ),
        "start/a": PieceRecord(("start/a", "start/x")),
        "start/x": PieceRecord(("start/x",)),
    }
    peer = alone(in_pieces(), records)
    asked = IndexQuery("start/x/y", ENTRY, 1)
    ask(peer, asked)
    assert kept(peer, "start").links["start/x"] == PieceLink("start/a", Reads(("y",), 1))
    assert list(kept(peer, "start/a").entries) == ["start/x/y"]
    # It is cut; a query that was on its way with the old link is passed on, as is a removal.
    cut = moved(kept(peer, "start/a"), ["start/x"], "start/x")
    peer = alone(in_pieces(), {**records, "start/a": replace_leaving(cut), "start/x": taken(cut)})
    ask(peer, msgspec.structs.replace(asked, piece="start/a", entry=renamed("r2")))
    assert set(kept(peer, "start/x").entries["start/x/y"]) == {"r", "r2"}
    ask(peer, Relink("start", "start/x", "start/a", "start/x"))
    assert kept(peer, "start").links["start/x"].piece == "start/x"
    ask(peer, RemoveQuery("start/x/y", "r", "q", 1))
    assert set(kept(peer, "start/x").entries["start/x/y"]) == {"r2"}


def test_a_link_is_not_led_back_by_what_comes_late() -> None:
    """The piece in between does not know what queries read that have passed it by."""
    peer = alone(
        in_pieces(), {"start": PieceRecord(links={"start/x": PieceLink("start/a", Reads((), 0))})}
    )
    first = Relink("start", "start/x", "start/a", "start/b")
    second = Relink("start", "start/x", "start/b", "start/c")
    for asked, piece in (
        (second, "start/a"),
        (first, "start/b"),
        (second, "start/c"),
        (first, "start/c"),
        (second, "start/c"),
    ):
        ask(peer, asked)
        assert kept(peer, "start").links["start/x"].piece == piece


def test_a_link_that_queries_of_ever_new_names_have_passed_has_a_bounded_size() -> None:
    """Their names are not remembered one by one: everything is read behind it."""
    link = PieceLink("start/a", NOTHING)
    peer = alone(
        in_pieces(),
        {"start": PieceRecord(links={"start/a": link}), "start/a": PieceRecord(("start/a",))},
    )
    for number in range(200):
        ask(peer, IndexQuery(f"start/a/n{number}", renamed(f"r{number}"), 1))
        reads = kept(peer, "start").links["start/a"].reads
        assert len(reads.labels) == (1 if number >= 128 else number + 1)
    assert reads == Reads(("*",), 1)
    assert joined(reads, Reads(("b",), 2)) == Reads(("*",), 2)
    assert read_behind("start", "start/a/n1", reads) == Reads(("*",), 3)
    tree = EventTree(Events.of(parse_message(b"<a><b><c/></b><n7/></a>")))
    assert tree.projected([(1, reads)]).names == (("", "a"), ("", "b"), ("", "n7"))


def test_queries_of_ever_new_names_meet_what_they_have_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece_records, "_LABELS_MAX", 8)
    world = FilteringWorld.on_static_ring(1, 12, in_pieces())
    for first in range(0, 300, 50):
        for number in range(first, first + 50):
            world.subscribe(peer_of(world, number), f"s{number}", f"/a{number % 12}/b/n{number}")
        world.run(4)
        assert world.not_in_force() == []
        for number in range(first, first + 40):
            world.unsubscribe(f"s{number}")
        world.run(2)
    for number in range(300):
        world.publish(peer_of(world, number), message(number))
    world.run(4)
    assert all(one.outcome and one.outcome.is_proved for one in world.publications)
    assert world.check() == 60
    held = {key: value for peer in peers_of(world) for key, (value, _) in held_by(peer).items()}
    records = [decoded_piece(key, value) for key, value in held.items()]
    reads = [link.reads.labels for record in records for link in record.links.values()]
    assert max(map(len, reads)) <= 8
    assert ("*",) in reads


def message(number: int) -> bytes:
    return f"<a{number % 12}><b><n{number}/><c/></b></a{number % 12}>".encode()


def peer_of(world: FilteringWorld, number: int) -> str:
    return world.names[number % len(world.names)]


def renamed(registration: str) -> Entry:
    return msgspec.structs.replace(ENTRY, registration=registration)


def replace_leaving(record: PieceRecord) -> PieceRecord:
    return msgspec.structs.replace(record, leaving={})


def taken(record: PieceRecord) -> PieceRecord:
    [found] = record.leaving.values()
    return found


@pytest.mark.parametrize("labels_max", [512, 2, 0])
@pytest.mark.parametrize("seed", range(20))
def test_a_cut_takes_about_half_and_never_the_state_that_names_the_piece(
    seed: int, labels_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece_cutting, "_LABELS_MAX", labels_max)
    draw = random.Random(seed)
    record = PieceRecord(("start/a", "start/b"))
    for number in range(60):
        labels = [draw.choice("abc$" if n else "ab") for n in range(draw.randint(1, 5))]
        key = "/".join(["start", *labels]).replace("$/$", "$").replace("$/$", "$")
        record = with_entry(record, key, renamed(f"r{number}"))
    hits = {key: draw.randrange(50) for key in record.entries}
    roots = part_of(record, "start/a", hits)
    after = moved(record, roots, roots[0])
    [gone] = after.leaving.values()
    assert "start/a" not in roots
    assert not any(root.endswith("/$") for root in roots)
    assert labels_max < 512 or not any(map(bin_state, roots))
    assert labels_max or all(bin_state(root) or root.endswith("/$") for root in roots)
    assert not any(covering(key, after.links) for key in after.entries)
    assert all(covering(key, set(gone.roots)) for key in gone.entries)
    assert {**after.entries, **gone.entries} == record.entries
    assert 5 < sum(map(len, gone.entries.values())) < 56


@pytest.mark.parametrize(("seed", "labels_max"), [(0, 0), (1, 2)])
def test_answers_are_those_of_one_process_where_labels_are_in_bins(
    seed: int, labels_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece_cutting, "_LABELS_MAX", labels_max)
    world = FilteringWorld.on_static_ring(seed, 20, in_pieces(), namespaces=ALPHABET.namespaces)
    filled(world, seed, 60, seconds=4.0)
    assert published(world, seed, 20) > 20
    assert any(map(bin_state, links_of(world)))
    world = churned(seed, in_pieces(gather_seconds=[0.0, 0.01][seed % 2]))
    assert world.check() > 5
    world = raced(seed, in_pieces())
    assert world.not_in_force() == []
    world.check()


def links_of(world: FilteringWorld) -> list[str]:
    held = {key: value for peer in peers_of(world) for key, (value, _) in held_by(peer).items()}
    return [link for key, value in held.items() for link in decoded_piece(key, value).links]


def test_a_bin_is_entered_in_the_states_that_names_of_elements_lead_to() -> None:
    """That of c is in another bin."""
    finder = PieceFinder()
    largest = next(key for key in prefixes("start/a/b") if key.startswith("start/a/#"))
    finder.follow(PieceRecord(links={largest: PieceLink("start/a/b", NOTHING)}))
    tree = EventTree(Events.of(parse_message(b"<a><b/><c/><b><b/></b></a>")))
    for entered, found in (
        ({"start/a": [1]}, [("start/a/b", 2), ("start/a/b", 6)]),
        ({"start": [0]}, [("start/a/b", 2), ("start/a/b", 6)]),
        ({"start/a": [6]}, [("start/a/b", 7)]),
        ({"start/b": [1]}, []),
    ):
        assert finder.find([(tree, entered)]) == [found]


def test_a_bin_is_no_state() -> None:
    peer = alone(in_pieces())
    for key in ("start/#8", "start/#8/a"):
        with pytest.raises(PeerError, match="no state"):
            ask(peer, IndexQuery(key, ENTRY, 1))


def test_what_is_read_behind_a_bin_is_counted_from_its_states() -> None:
    assert read_behind("start/#8", "start/a/b/c") == Reads(("b", "c"), 2)
    assert read_behind("start/#8", "start/#86", Reads(("b",), 1)) == Reads(("b",), 1)
    assert read_behind("start/a", "start/a/b/#8", Reads(("c",), 1)) == Reads(("*",), 3)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (entered("start/a", "stop", 1), "dht.key"),
        # No such element; the state is not active there; the range lies.
        (entered("start/a", "start/a", 99), "dht.claim"),
        (entered("start/a", "start/b", 1), "dht.claim"),
        (replace_events(Events((("", "a"),), (0,), (3,), (2,), (1,))), "dht.events"),
        (IndexQuery("stop/x", ENTRY, 1), "dht.key"),
    ],
)
def test_what_cannot_be_is_refused(asked: PieceQuestion, code: str) -> None:
    with pytest.raises(PeerError) as caught:
        ask(alone(in_pieces()), asked)
    assert caught.value.code == code


def test_credits_of_what_is_not_in_the_message_are_refused() -> None:
    peer = alone(in_pieces(), {"start": PieceRecord(links={"start/a": LINK})})
    effects = peer.publish(b"<a><b/></a>", "bob")
    wake_all(peer, effects)
    claims: list[tuple[Elements, Elements]] = [
        ({"start/b": (1,)}, {}),
        ({"start/a": (1,)}, {"start/a/b": (9,)}),
    ]
    for done, handed in claims:
        with pytest.raises(PeerError, match="active at element"):
            ask(peer, Ran("1 1 p", done, handed, 1, 1, ()))
    ask(peer, Ran("1 1 p", {"start/a": (1,)}, {"start/a/b": (2,)}, 1, 1, ()))
    assert peer.under_way == 1
    effects = peer.receive("q", Ask(2, None, Ran("1 1 p", {"start/a/b": (2,)}, {}, 2, 3, ())), 1.0)
    [outcome] = [each.what for each in effects if isinstance(each, Deliver)]
    assert outcome == PublicationOutcome("1 1 p", (), (), 2, 3, 3)


def test_a_piece_that_nobody_has_made_is_reported_as_not_proved() -> None:
    settings = replace(in_pieces(), patience_seconds=0.5, patience_tries=3, tries=2)
    records = {"start": encoded_piece(PieceRecord(links={"start/a": LINK}))}
    world = FilteringWorld.on_static_ring(1, 6, settings, records=records)
    world.publish("p0", b"<a><b/></a>")
    world.run(10)
    [publication] = world.publications
    assert publication.outcome is not None
    assert publication.outcome.unproved == (Visit("start/a", 1),)
