"""Entries of routing tables: read back as written, and never narrower than the profile."""

from __future__ import annotations

import random

import pytest

from generators import (
    FamilyShape,
    random_family,
    random_message,
    random_query,
    random_valued_message,
)
from oracles.paths import is_found
from pathcast.boundary import native
from pathcast.errors import QuerySyntaxError
from pathcast.limits import Limits
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.xml_content import xml_content
from pathcast.query import compile_query, conjunction_of
from pathcast.workload.subscriptions import SubscriptionParameters, generate_subscriptions
from pathcast_papers import parse

STOCK = "$n//tobject.subject/@tobject.subject.type = 'Stock'"
OF_STOCK = "[.//tobject.subject[@tobject.subject.type='Stock']]"
Q1 = "/nitf[head/pubdata[@edition.area='SF']]//tobject.subject[@tobject.subject.type='Stock']"
LINEAR_Q1 = (
    "/nitf//tobject.subject[@tobject.subject.type='Stock'] and "
    "/nitf/head/pubdata[@edition.area='SF']"
)
A1, A2 = "//a[@x='1']/b", "//a[@y='2']/b"


@pytest.mark.parametrize(
    ("profile", "entries", "linear"),
    [
        # Figure 5: Q1, and Q1 as a FLWR.
        ("/nitf[head/pubdata[@edition.area='SF']]" + OF_STOCK, (Q1,), (LINEAR_Q1,)),
        (
            f"for $n in $msg/nitf where $n/head/pubdata/@edition.area = 'SF' and {STOCK} "
            "return <stock>{$n/body/body.head/hedline}</stock>",
            (Q1,),
            (LINEAR_Q1,),
        ),
        ("//*", ("/*",), ("/*",)),
        ("/*[2]", (), ()),
        ("//a[last()]", ("//a",), ("//a",)),
        ("/a[b][c/d[e]]/f", ("/a[c/d/e][f]/b",), ("/a/b and /a/c/d/e and /a/f",)),
        ("/a[b/c]/b/c/d", ("/a[b/c/d]/b/c",), ("/a/b/c/d",)),
        ("//a[@x='1' or @y='2'][b]", (A1, A2), (A1, A2)),
        ("//a[b][3]/c", ("//a[b][position()=3]/c",), ("//a/b and //a/c",)),
        ("//a[b = ' and '][c]", ("//a[c]/b[.=' and ']",), ("//a/b[.=' and '] and //a/c",)),
    ],
)
def test_a_profile_is_a_disjunction_of_conjunctions(
    profile: str, entries: tuple[str, ...], linear: tuple[str, ...]
) -> None:
    assert disjuncts_of(profile) == entries
    assert tuple(conjunction_of(entry).linear().text for entry in entries) == linear
    for entry in entries + linear:
        assert conjunction_of(entry).text == entry


def test_profiles_of_other_languages_are_read_as_brokers_read_them() -> None:
    assert disjuncts_of("//p:a", {"p": "urn:p"}) == ("//Q{urn:p}a",)
    assert disjuncts_of("count(//a) > 2", deliver="ids") == ("//a",)
    assert disjuncts_of("not(//a)", deliver="ids") == ("/*",)
    with pytest.raises(QuerySyntaxError):
        disjuncts_of("//a[")
    with pytest.raises(QuerySyntaxError):
        conjunction_of("/a and ")


def test_linear_paths_may_be_found_apart() -> None:
    """That is what linear paths lose, and patterns do not."""
    apart = parse(b"<r><a><b/></a><a><c/></a></r>", Limits())
    together = parse(b"<r><a><b/><c/></a></r>", Limits())
    (pattern,) = _entries("//a[b]/c")
    linear = pattern.linear()
    assert [all(is_found(p, m) for p in linear.paths) for m in (apart, together)] == [True] * 2
    assert [is_found(pattern.paths[0], m) for m in (apart, together)] == [False, True]


def test_what_satisfies_a_profile_satisfies_an_entry() -> None:
    """Else a message is lost on its way. Patterns say no less than linear paths do."""
    satisfied = 0
    for seed in range(8):
        chosen = random.Random(seed)
        trees = [parse(random_valued_message(chosen), Limits()) for _ in range(12)]
        trees += [parse(random_message(chosen), Limits()) for _ in range(12)]
        shape = FamilyShape(has_alternatives=seed % 4 == 0)
        for text in random_family(chosen, 8, shape) + [random_query(chosen) for _ in range(8)]:
            paths = compile_query(text).alternatives
            entries = _entries(text)
            for tree in trees:
                holds = any(is_found(path, tree) for path in paths)
                found = any(all(is_found(p, tree) for p in e.paths) for e in entries)
                wide = any(all(is_found(p, tree) for p in e.linear().paths) for e in entries)
                assert found == holds, text
                assert wide >= holds, text
                satisfied += holds
    assert satisfied > 200


def _entries(text: str) -> list[native.Conjunction]:
    entries = [conjunction_of(entry) for entry in disjuncts_of(text, deliver="ids")]
    assert [entry.text for entry in entries] == list(disjuncts_of(text, deliver="ids"))
    return entries


def test_a_host_asks_for_the_entries_of_its_profiles() -> None:
    """Else the entries of a profile would depend on the engine, and neighbours on them."""
    pytest.importorskip("msgspec")
    pytest.importorskip("pathcast_kernel")
    from pathcast.overlay.content import DeliveryProfile
    from pathcast.overlay.cutting import is_cut_entry
    from pathcast.overlay.local_plan import XmlProfiles

    chosen = random.Random(5)
    parameters = SubscriptionParameters(queries=400, subscribers=1, seed=5, distinct_share=1.0)
    texts = [row.query for row in generate_subscriptions(parameters)]
    texts += [random_query(chosen) for _ in range(300)]
    texts += ["//*", "/*[2]", "//a[@x='1'][@x='2']", "/a[.='x'][.='y']/b", "//a[. < 3]", "/a/*//b"]
    kernel = XmlProfiles()
    read = 0
    for text in texts:
        try:
            expected = disjuncts_of(text, deliver="message")
        except QuerySyntaxError:
            continue
        entries = [each for each in kernel.entries(DeliveryProfile(text)) if not is_cut_entry(each)]
        assert tuple(entries) == expected, text
        read += 1
    assert read > 500


@pytest.mark.parametrize("count", [2, 16, 17, 100])
def test_lists_of_any_length_are_one_entry(count: int) -> None:
    values = sorted(f"S{number}" for number in range(count))
    listed = ",".join(f"'{value}'" for value in values)
    told = (f"/quotes/quote[@s=({listed})]",)
    conditions = " or ".join(f"@s='{value}'" for value in values)
    assert disjuncts_of(f"/quotes/quote[{conditions}]", deliver="ids") == told
    assert disjuncts_of(f"for $q in /quotes/quote where $q/@s = ({listed}) return $q") == told
    conditions = " or ".join(f"$q/@s = '{value}'" for value in values)
    assert disjuncts_of(f"for $q in /quotes/quote where {conditions} return $q") == told


@pytest.mark.parametrize("count", [2, 16, 17, 100])
def test_a_union_is_an_entry_a_path_and_a_conjunction_is_one(count: int) -> None:
    paths = sorted(f"//b{number}" for number in range(count))
    assert disjuncts_of(" | ".join(paths), deliver="ids") == tuple(paths)
    assert disjuncts_of(" and ".join(paths), deliver="ids") == (" and ".join(paths),)


def test_a_watch_list_of_one_host_sends_a_link_no_other_quotes() -> None:
    content = xml_content()
    tables, profiles = content.interests(), content.profiles()
    values = " or ".join(f"@s='S{number}'" for number in range(40))
    tables.set_neighbours(["east"])
    tables.update("east", profiles.entries(DeliveryProfile(f"/quotes/quote[{values}]")), [])
    quotes = [f"<quotes><quote s='S{number}'/></quotes>".encode() for number in range(80)]
    assert [bool(names) for names in tables.route(quotes)] == [True] * 40 + [False] * 40
