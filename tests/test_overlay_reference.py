"""The paper's operator network: its figures, and that it never misses who wants a message."""

from __future__ import annotations

import random

import pytest

from generators import FamilyShape, random_family, random_message, random_valued_message
from oracles.paths import is_found
from overlay_reference import And, Join, Network, Transform, collect
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.query import compile_query, conjunction_of
from pathcast_papers import parse

Q1 = "/nitf[head/pubdata[@edition.area='SF']][.//tobject.subject[@tobject.subject.type='Stock']]"
Q2 = (
    "/nitf[head/pubdata[@edition.area='SF']][.//tobject.subject[@tobject.subject.matter='fishing']]"
)
Q3 = (
    "for $n in $msg/nitf where $n/head/pubdata/@edition.area = 'SF' "
    "and $n//series/@series.name = 'Tide Forecasts' return <nitf>{$n/body/body.content}</nitf>"
)
AREA = "/nitf/head/pubdata[@edition.area='SF']"
STOCK = "/nitf//tobject.subject[@tobject.subject.type='Stock']"
FISHING = "/nitf//tobject.subject[@tobject.subject.matter='fishing']"
TIDES = "/nitf//series[@series.name='Tide Forecasts']"


def test_figure_5() -> None:
    network = Network.of({"Q1": Q1, "Q2": Q2, "Q3": Q3})
    assert network.state_count == 7
    assert {str(each) for each in network.selections} == {AREA, STOCK, FISHING, TIDES}
    kinds = {of: operator for operator, targets in network.targets.items() for of in targets}
    assert {of: str(operator).split()[0] for of, operator in kinds.items()} == {
        "Q1": "join",
        "Q2": "join",
        "Q3": "transform",
    }
    assert isinstance(kinds["Q3"], Transform)
    assert isinstance(kinds["Q3"].input, Join)


def test_figure_6() -> None:
    box_a = Network.of({"Q1": Q1, "Q2": Q2})
    assert (box_a.state_count, len(box_a.selections)) == (6, 3)
    assert all(isinstance(operator, Join) for operator in box_a.targets)
    box_b = box_a.map().aggregate("Broker5")
    assert (box_b.state_count, len(box_b.selections)) == (6, 3)
    assert all(isinstance(operator, And) for operator in box_b.targets)
    assert box_b.describe() == [
        f"{FISHING} and {AREA} -> Broker5",
        f"{STOCK} and {AREA} -> Broker5",
    ]
    from_broker_6 = Network.of({"Q3": Q3}).map().aggregate("Broker6")
    box_c = collect([box_b, from_broker_6])
    assert (box_c.state_count, len(box_c.selections)) == (7, 4)
    assert box_c.describe() == [
        f"{TIDES} and {AREA} -> Broker6",
        f"{FISHING} and {AREA} -> Broker5",
        f"{STOCK} and {AREA} -> Broker5",
    ]
    box_d = box_c.aggregate("Broker4").common()
    assert box_d.state_count == 4
    assert box_d.describe() == ["/nitf/head/pubdata[@edition.area='SF'] -> Broker4"]


def test_entries_are_the_operators_of_the_mapped_network() -> None:
    mapped = Network.of({"Q1": Q1, "Q2": Q2, "Q3": Q3}).map()
    assert {str(each) for each in mapped.targets} == {
        conjunction_of(entry).linear().text
        for profile in (Q1, Q2, Q3)
        for entry in disjuncts_of(profile)
    }


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"<nitf><head><pubdata edition.area='SF'/><tobject.subject "
         b"tobject.subject.type='Stock'/></head></nitf>", {"Broker5"}),
        (b"<nitf><head><pubdata edition.area='SF'/></head><series series.name='Tide Forecasts'/>"
         b"<tobject.subject tobject.subject.matter='fishing'/></nitf>", {"Broker5", "Broker6"}),
        (b"<nitf><head><pubdata edition.area='NY'/></head><series series.name='Tide Forecasts'/>"
         b"</nitf>", set()),
    ],
)  # fmt: skip
def test_messages_go_where_figure_6_says(message: bytes, expected: set[str]) -> None:
    first = Network.of({"Q1": Q1, "Q2": Q2}).map().aggregate("Broker5")
    table = collect([first, Network.of({"Q3": Q3}).map().aggregate("Broker6")])
    assert table.route(parse(message, Limits())).targets == expected


def test_what_leads_to_reached_targets_is_left_aside() -> None:
    table = collect(Network.of({f"q{n}": f"/r//a[@x='{n}']"}).aggregate("east") for n in range(9))
    table = collect([table, Network.of({"q": "/r/z"}).aggregate("west")])
    message = b"<r>" + b"".join(b"<a x='%d'><b/></a>" % n for n in range(9)) + b"<z/></r>"
    pruned, naive = (table.route(parse(message, Limits()), prunes=each) for each in (True, False))
    assert pruned.targets == naive.targets == {"east", "west"}
    assert pruned.tried == 2  # the first x, and z
    assert naive.tried > 40
    assert pruned.entered < naive.entered


def test_no_broker_is_missed_that_holds_a_profile() -> None:
    """Three hosts behind two links; what a table adds are linear paths that are found apart."""
    reached = 0
    for seed in range(12):
        chosen = random.Random(seed)
        shape = FamilyShape(has_alternatives=seed % 2 == 0)
        hosts = [dict(_named(random_family(chosen, 4, shape), host)) for host in "abc"]
        networks = [
            Network.of(profiles, "ids").map().aggregate(host)
            for host, profiles in zip("abc", hosts, strict=True)
        ]
        far = collect(networks[:2]).aggregate("far")
        table = collect([far, networks[2]])
        loose = table.common()
        for tree in _messages(chosen):
            wanting = {
                host
                for host, profiles in zip(("far", "far", "c"), hosts, strict=True)
                if any(_holds(text, tree) for text in profiles.values())
            }
            for network in (table, loose):
                pruned, naive = (network.route(tree, prunes=each) for each in (True, False))
                assert pruned.targets == naive.targets
                assert pruned.targets >= wanting
                assert (pruned.tried, pruned.entered) <= (naive.tried, naive.entered)
            by_entries = {
                target
                for operator, targets in table.targets.items()
                for target in targets
                if all(is_found(p, tree) for p in conjunction_of(str(operator)).paths)
            }
            assert table.route(tree).targets == by_entries
            assert loose.route(tree).targets >= by_entries
            reached += len(by_entries)
    assert reached > 20


def _named(texts: list[str], host: str) -> list[tuple[str, str]]:
    return [(f"{host}{number}", text) for number, text in enumerate(texts)]


def _messages(chosen: random.Random) -> list[MessageTree]:
    texts = [random_valued_message(chosen) for _ in range(6)]
    texts += [random_message(chosen) for _ in range(6)]
    return [parse(text, Limits()) for text in texts]


def _holds(text: str, tree: MessageTree) -> bool:
    return any(is_found(path, tree) for path in compile_query(text).alternatives)
