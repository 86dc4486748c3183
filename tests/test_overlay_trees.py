"""Trees that every broker computes alike from what is announced."""

from __future__ import annotations

import random

import msgspec
import pytest

pytest.importorskip("msgspec")

from pathcast.errors import PeerError, PublicationError
from pathcast.overlay import announcements
from pathcast.overlay.announcements import Announcements
from pathcast.overlay.messages import Announcement, Expelled, Presence, SourceEntry
from pathcast.overlay.trees import broadcast_tree, neighbours, spanning_tree, towards

Links = dict[str, dict[str, int]]


def random_links(draw: random.Random) -> Links:
    names = [f"n{n}" for n in range(draw.randint(1, 9))]
    links: Links = {name: {} for name in names}
    for _ in range(draw.randrange(20)):
        a, b = draw.choice(names), draw.choice(names)
        if a != b:
            links[a][b] = draw.randint(1, 3)
            if draw.random() < 0.8:
                links[b][a] = draw.randint(1, 3)
    return links


def reachable(links: Links, start: str) -> set[str]:
    found, ends = {start}, [start]
    while ends:
        name = ends.pop()
        new = {b for b in links[name] if name in links[b]} - found
        found |= new
        ends += new
    return found


def cost(links: Links, edge: tuple[str, str]) -> int:
    a, b = edge
    return max(links[a][b], links[b][a])


@pytest.mark.parametrize("seed", range(100))
def test_a_tree_reaches_all_that_can_be_reached_by_one_way(seed: int) -> None:
    links = random_links(random.Random(seed))
    spanning = spanning_tree(links)
    parts = {frozenset(reachable(links, name)) for name in links}
    assert len(spanning) == len(links) - len(parts)
    for name in links:
        for tree in (spanning, broadcast_tree(links, name)):
            way = towards(tree, name)
            assert way.keys() == reachable(links, name) - {name}
            assert set(way.values()) == set(neighbours(tree, name))
        assert len(broadcast_tree(links, name)) == len(reachable(links, name)) - 1


@pytest.mark.parametrize("seed", range(100))
def test_a_link_that_fails_is_replaced_by_at_most_one(seed: int) -> None:
    # Tables go over every new edge: a tree that is made all over for one link would cost them all.
    draw = random.Random(seed)
    links = random_links(draw)
    before = spanning_tree(links)
    if not before:
        return
    a, b = draw.choice(before)
    del links[a][b]
    after = spanning_tree(links)
    assert len(set(after) - set(before)) <= 1
    assert set(before) - set(after) == {(a, b)}


def test_a_link_that_one_end_claims_alone_is_none() -> None:
    # A broker that claims to be everybody's neighbour would be in every tree.
    links = {"liar": {"a": 1, "b": 1}, "a": {"b": 9}, "b": {"a": 9}}
    assert spanning_tree(links) == [("a", "b")]
    assert broadcast_tree(links, "a") == [("a", "b")]


def announced(version: int, incarnation: int = 1, owner: str = "b", **of: object) -> Announcement:
    return Announcement(owner, "", version, incarnation, Presence(**of))  # type: ignore[arg-type]


def test_the_latest_holds_in_whatever_order_it_comes() -> None:
    said = [announced(n, stream=n) for n in range(1, 6)]
    for seed in range(20):
        heard = said * 2
        random.Random(seed).shuffle(heard)
        known = Announcements("a", 7, ["b"])
        for one in heard:
            known.hear("c", [one])
        assert known.presence("b") == Presence(stream=5)


def test_two_lives_that_say_different_things_in_one_version_are_told_apart() -> None:
    first, second = announced(1, 5, stream=1), announced(1, 6, stream=2)
    for order in ([first, second], [second, first]):
        known = Announcements("a", 7, [])
        known.hear("c", order)
        assert known.presence("b") == Presence(stream=2)


def test_what_is_said_in_the_name_of_a_broker_is_corrected_by_it() -> None:
    known = Announcements("a", 7, [])
    known.say("", Presence(stream=3))
    elder = announced(40, owner="a", stream=99)
    assert known.hear("c", [elder]) == [], "others prefer what the later life says"
    forged = msgspec.structs.replace(elder, incarnation=7)
    (correction,) = known.hear("c", [forged])
    assert (correction.version, correction.body) == (41, Presence(stream=3))
    # A source of a life whose disk is lost is withdrawn.
    (withdrawn,) = known.hear("c", [Announcement("a", "s", 4, 2, SourceEntry("x"))])
    assert withdrawn.body == SourceEntry(withdrawn=True)
    assert not known.sources()


def test_an_expelled_broker_is_a_member_again_when_it_knows_of_it() -> None:
    known = Announcements("a", 7, ["b"])
    known.hear("b", [announced(1)])
    before = known.roster()
    expelled = known.expel("b")
    assert expelled.body == Expelled()
    assert known.members == ["a"]
    known.hear("b", [announced(9)])
    assert known.members == ["a"], "a broker that does not know that it lost messages is no member"
    known.hear("b", [announced(10, term=1)])
    assert known.members == ["a", "b"]
    assert known.roster() != before


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (announced(2**41), "overlay.announcement"),
        (Announcement("b", "", 1, 1, SourceEntry()), "overlay.announcement"),
        (Announcement("b", "!", 1, 1, Presence()), "overlay.announcement"),
        (Announcement("b", "s", 1, 1, Presence()), "overlay.announcement"),
    ],
)
def test_announcements_that_nobody_makes_are_refused(one: Announcement, code: str) -> None:
    known = Announcements("a", 7, [])
    with pytest.raises(PeerError) as refusal:
        known.hear("c", [one])
    assert refusal.value.code == code
    assert "c" in str(refusal.value)


def test_a_catalog_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "SOURCES_MAX", 3)
    monkeypatch.setattr(announcements, "MEMBERS_MAX", 3)
    known = Announcements("a", 7, [])
    for key in ("s", ""):
        said = [
            Announcement(f"b{n}", key and f"s{n}", 1, 1, SourceEntry() if key else Presence())
            for n in range(4)
        ]
        with pytest.raises(PeerError) as refusal:
            known.hear("c", said)
        assert refusal.value.code == "overlay.catalog"
    assert len(known.sources()) == 3, "those before the one too many were taken"
    with pytest.raises(PublicationError, match="4 sources"):
        known.check_room("own", SourceEntry())


def test_a_catalog_of_large_schemas_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "SOURCES_BYTES_MAX", 1_000)
    known = Announcements("a", 7, [])
    schema = SourceEntry("x" * 480)
    known.hear("c", [Announcement("b", "s1", 1, 1, schema), Announcement("b", "s2", 1, 1, schema)])
    with pytest.raises(PeerError, match="bytes of sources") as refusal:
        known.hear("c", [Announcement("b", "s3", 1, 1, schema)])
    assert refusal.value.code == "overlay.catalog"
    with pytest.raises(PublicationError):
        known.check_room("own", schema)
    # What a source has in place of its old schema counts, and not both.
    known.hear("c", [Announcement("b", "s1", 2, 1, SourceEntry())])
    known.check_room("own", schema)
    known.hear("c", [Announcement("b", "s3", 1, 1, schema)])
    assert sorted(known.sources()) == ["s1", "s2", "s3"]
