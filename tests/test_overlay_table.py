"""The running table: who wants a message, as the paper's operator network says."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from every_engine import engines
from generators import FamilyShape, random_family, random_message, random_valued_message
from oracles.engines import made_by
from overlay_reference import Network, collect
from pathcast.errors import QuerySyntaxError, UnknownQueryError
from pathcast.limits import Limits
from pathcast.overlay.content import LOCAL
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.table import Table
from pathcast_papers import parse

ORIGINS = [LOCAL, "east", "west"]


@engines
def test_a_table_says_what_the_operator_network_says(engine: str) -> None:
    """Through any history of changes; else messages go astray, or are lost."""
    wanted = 0
    for seed in range(2):
        chosen = random.Random(seed)
        texts = random_family(chosen, 10, FamilyShape(has_alternatives=seed % 2 == 0))
        table = made_by(engine, Table)
        held: list[tuple[str, str]] = []
        for _ in range(5):
            for origin in ORIGINS:
                mine = [text for name, text in held if name == origin]
                removed = chosen.sample(mine, len(mine) // 2)
                # A neighbour tells a set; own profiles may be equal.
                rest = texts if origin == LOCAL else [each for each in texts if each not in mine]
                added = chosen.sample(rest, min(3, len(rest)))
                before = _entries(text for name, text in held if name == origin)
                for text in removed:
                    held.remove((origin, text))
                held += [(origin, text) for text in added]
                after = _entries(text for name, text in held if name == origin)
                if origin == LOCAL:
                    table.set(origin, _listed(added), _listed(removed))
                else:
                    table.set(origin, sorted(after - before), sorted(before - after))
            network = collect(
                Network.of({str(n): text}, "ids").map().aggregate(name)
                for n, (name, text) in enumerate(held)
            )
            messages = [random_valued_message(chosen) for _ in range(12)]
            messages += [random_message(chosen) for _ in range(12)]
            expected = [network.route(parse(each, Limits())).targets for each in messages]
            assert table.route(messages) == expected
            assert len(table) == len(network.targets)
            wanted += sum(map(len, expected))
    assert wanted > 5


def test_a_merge_changes_no_answer() -> None:
    table = Table()
    messages = [b"<m><q n='%d'/></m>" % n for n in range(40)]
    for n in range(400):
        table.set("east", [f"/m/q[@n={n % 40}]"], [f"/m/q[@n={(n + 20) % 40}]"])
        assert table.route([messages[n % 40], messages[(n + 20) % 40]]) == [{"east"}, set()]
    assert len(table) == 20


def test_what_is_refused_changes_nothing() -> None:
    table = Table()
    table.set(LOCAL, ["/a", "/a"], [])
    with pytest.raises(QuerySyntaxError):
        table.set(LOCAL, ["/b", "/c["], ["/a"])
    with pytest.raises(UnknownQueryError):
        table.set(LOCAL, [], ["/a", "/a", "/a"])
    table.set(LOCAL, [], ["/a"])
    table.set("east", ["/a"], ["/b"])
    assert table.route([b"<a/>", b"<b/>", b"<a"]) == [{LOCAL, "east"}, set(), set()]
    table.set(LOCAL, [], ["/a"])
    assert table.route([b"<a/>"]) == [{"east"}]
    assert table.entries("east") == {"/a"}


def test_many_entries_that_go_are_gone_in_the_end() -> None:
    """Of many entries one that goes may be forwarded for in vain, for so long as that costs less
    than making the table anew; never for an origin that asks for nothing, and none is missed."""
    table = Table()
    table.set("east", [f"/m/q[@n={n}]" for n in range(300)], [])
    table.set("west", ["/m/q[@n=1]"], [])
    table.set("east", [], ["/m/q[@n=1]", "/m/q[@n=2]"])
    gone, asked = b"<m><q n='1'/></m>", b"<m><q n='3'/></m>"
    table.set("west", [], ["/m/q[@n=1]"])
    assert {"east"} >= table.route([gone])[0]
    for _ in range(400):
        found = table.route([gone, asked])
        assert found[1] == {"east"}
    assert found[0] == set()


def test_an_entry_in_another_notation_is_one() -> None:
    table = Table()
    table.set("east", ["/m//q[ @n = '1' ] and //r", "//a and //b"], [])
    assert table.route([b"<m><q n='1'/><r/></m>", b"<a/>"]) == [{"east"}, set()]
    table.set("east", [], ["/m//q[ @n = '1' ] and //r"])
    assert table.route([b"<m><q n='1'/><r/></m>"]) == [set()]


def test_what_cannot_be_told_counts_as_wanted() -> None:
    deep = b"<a><b>" * 30 + b"<c/><d/><e>x</e>" + b"</b></a>" * 30
    for limits, expected in ((Limits(), set()), (Limits(message_steps_max=1), {"east"})):
        table = Table(limits=limits)
        table.set("east", ["//a[.//b[.//c]]//d and //e[contains(.,'y')]"], [])
        assert table.route([deep]) == [expected]


def _listed(texts: list[str]) -> list[str]:
    return [entry for text in texts for entry in disjuncts_of(text, deliver="ids")]


def _entries(texts: Iterable[str]) -> set[str]:
    return set(_listed(list(texts)))
