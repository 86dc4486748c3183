"""What brokers tell each other of what may be cut, and what they make of it on links."""

from __future__ import annotations

import json
import random

import pytest

from oracles.engines import made_by

pytest.importorskip("msgspec")

from broker_engines import missing
from pathcast import Subscription
from pathcast.errors import PathcastError, QuerySyntaxError
from pathcast.overlay import cutting
from pathcast.overlay.content import LOCAL, DeliveryProfile, Sent
from pathcast.overlay.cutting import (
    WHOLE,
    EntryNeeds,
    LinkCuts,
    ToldCuts,
    cut_entry,
    needs_in,
)
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.projection import Offer, offer_of
from pathcast.overlay.xml_content import XmlInterests, xml_content
from pathcast_lab.sim.from_scratch import from_scratch

NEEDS_KERNEL = pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))


def entry(query: str, **namespaces: str) -> str:
    return cut_entry(Subscription("s", "ann", query, namespaces=namespaces))


def test_an_entry_is_the_offer_of_its_profile() -> None:
    for query in ("/b/c[@n = 1]", "/b/c/d", "/b/p:c[x]", "for $c in /b/c where $c/x return $c/y"):
        asked = Subscription("s", "ann", query, namespaces={"p": "urn:p"})
        assert needs_in(cut_entry(asked)) == EntryNeeds((), offer_of(asked))
        assert isinstance(offer_of(asked), Offer)
    for query in ("//c", "/b/c[1]", "count(/b/c)"):
        assert entry(query) == WHOLE
    assert needs_in(WHOLE) == EntryNeeds((), None)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        '{"type":"none"}',
        '{"type":"units","unit":[["","b"]],"select":"/b/c"}',
        '{"type":"units","unit":[["","b"],["","c] return 1"]],"select":"/b/c"}',
        '{"type":"units","unit":[["","b"],["",""]],"select":"/b/c"}',
        '{"type":"units","unit":"bc","select":"/b/c"}',
        '{"type":"units","unit":[["","b"],["","c"]],"select":7}',
        "{" * 5000,
    ],
)
def test_what_is_no_entry_is_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        needs_in(text)


@NEEDS_KERNEL
@pytest.mark.parametrize(
    ("query", "namespaces"),
    [("/b/[", []), ("<a>{/b/c}</a>", []), ("/p:b", []), ("1 + 1", [["p", "u"]]), ("for $x", [])],
)
def test_a_query_that_cannot_be_run_is_refused_and_leaves_nothing(
    query: str, namespaces: list[list[str]]
) -> None:
    tables = XmlInterests()
    unit = [["", "b"], ["", "c"]]
    made = {"type": "units", "unit": unit, "select": query, "namespaces": namespaces}
    with pytest.raises(PathcastError):
        tables.check([json.dumps(made)])
    tables.check([entry("/b/c[x]"), "/b/c"])


@pytest.mark.parametrize("seed", range(8))
def test_deltas_come_to_what_is_told_from_scratch(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "SELECTS_MAX", 5)
    draw = random.Random(seed)
    told, heard = ToldCuts(), dict[str, set[str]]()
    entries = [*(entry(f"/b/c[@n = {n}]") for n in range(12)), WHOLE]
    own: list[str] = []
    behind: dict[str, set[str]] = {}
    collapsed = 0
    for _ in range(300):
        if draw.random() < 0.1:
            names = draw.sample("wxyz", draw.randint(0, 4))
            behind = {name: behind.get(name, set()) for name in names}
            heard = {name: heard.get(name, set()) for name in names}
            deltas = told.set_neighbours(names)
        else:
            origin = draw.choice([LOCAL, *sorted(behind)])
            added = draw.sample(entries, draw.choice([0, 1, 1, 2]))
            if origin == LOCAL:
                removed = draw.sample(own, min(len(own), draw.randint(0, 3)))
                own += added
                for one in removed:
                    own.remove(one)
            else:
                removed = [one for one in sorted(behind[origin]) if draw.random() < 0.4]
                behind[origin] = (behind[origin] | set(added)) - set(removed)
            deltas = told.update(origin, added, removed)
        for name, delta in deltas.items():
            assert not set(delta.added) & heard[name]
            assert set(delta.removed) <= heard[name]
            heard[name] = (heard[name] | set(delta.added)) - set(delta.removed)
        assert from_scratch(told) == heard
        for name, known in heard.items():
            assert told.told(name) == known
            others = set(own).union(*(behind[one] for one in behind if one != name))
            is_whole = WHOLE in others or len(others) > 5
            assert known == ({WHOLE} if is_whole else others)
            collapsed += is_whole and WHOLE not in others
    assert collapsed > 0


def batch(*numbers: int) -> bytes:
    return b"<b>" + b"".join(b"<c n='%d'>text of it</c>" % n for n in numbers) + b"</b>"


@NEEDS_KERNEL
def test_links_are_cut_by_what_they_tell_now() -> None:
    cuts = LinkCuts()
    wanted = {"east": [0, 1], "west": [1]}
    bodies = [batch(1, 2, 3), batch(2, 3)]
    one, two, three = (entry(f"/b/c[@n = {n}]") for n in (1, 2, 3))

    def sent() -> dict[str, list[bytes | None]]:
        made = cuts.cut(bodies, wanted)
        return {name: [one and one.body for one in each] for name, each in made.items()}

    assert sent() == {"east": bodies, "west": bodies[1:]}
    cuts.update("east", [one], [])
    cuts.update("west", [three, two], [])
    assert sent() == {"east": [batch(1), None], "west": bodies[1:]}
    cuts.update("east", [two], [one])
    cuts.update("west", [], [two])
    assert sent() == {"east": [batch(2), batch(2)], "west": [batch(3)]}
    cuts.update("west", [WHOLE], [])
    assert sent()["west"] == bodies[1:]
    cuts.update("west", [], [WHOLE])
    assert sent()["west"] == [batch(3)]
    assert cuts.saved == {
        "east": len(b"".join(bodies)) * 4 - len(batch(1) + batch(2) * 6),
        "west": 2 * (len(batch(2, 3)) - len(batch(3))),
    }
    cuts.forget("west")
    assert sent()["west"] == bodies[1:]


@NEEDS_KERNEL
def test_a_link_where_it_does_not_pay_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cutting, "TRIAL_MESSAGES", 4)
    monkeypatch.setattr(cutting, "REST_MESSAGES", 6)
    cuts = LinkCuts()
    for name in ("pays", "does not"):
        cuts.update(name, [entry("/b/c[@n = 1]")], [])
    useful, mixed = batch(1, 1), batch(1, 2)

    def sent(name: str, body: bytes) -> bytes | None:
        made = cuts.cut([body], {name: [0]})[name][0]
        return made and made.body

    for _ in range(4):
        assert sent("pays", mixed) == batch(1)
        assert sent("does not", useful) == useful
    given = [(sent("pays", mixed), sent("does not", mixed)) for _ in range(7)]
    assert given == [(batch(1), mixed)] * 5 + [(batch(1), batch(1))] * 2


@NEEDS_KERNEL
def test_a_neighbour_may_be_sent_whole_messages_always() -> None:
    tables = xml_content(whole_links=["west"]).interests()
    tables.set_neighbours(["east", "west"])
    for name in ("east", "west"):
        tables.update(name, [entry("/b/c[@n = 1]"), "/b/c[@n = 1]"], [])
    body = batch(1, 2)
    made = tables.cut([body], {"east": [0], "west": [0]})
    assert made == {"east": [Sent(batch(1))], "west": [Sent(body)]}


def test_a_broker_without_projection_asks_for_whole_messages() -> None:
    profile = DeliveryProfile("/b/c[@n = 1]", "fragment")
    assert WHOLE in made_by("reference", XmlProfiles, projection=False).entries(profile)
    assert WHOLE not in made_by("reference", XmlProfiles).entries(profile)
    off = made_by("reference", XmlInterests, projection=False)
    off.set_neighbours(["east", "west"])
    off.update("east", [entry(profile.query)], [])
    assert off.told("west") == {entry(profile.query)}
    assert off.cut([batch(1, 2)], {"east": [0]}) == {"east": [Sent(batch(1, 2))]}
