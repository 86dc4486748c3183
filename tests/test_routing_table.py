"""A routing table reaches a target exactly where one of its entries holds, however early it stops.

If one of these fails, a broker keeps a message from a link that wants it, or sends it in vain.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_engine import engines
from generators import (
    MessageShape,
    random_family,
    random_message,
    random_query,
    random_routing_entries,
    random_valued_message,
)
from generators.strategies import messages as some_messages
from generators.strategies import queries as some_queries
from oracles import ENGINES, missing_reason
from oracles.engines import EngineName, made_by
from pathcast.engine import RoutingTable
from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.model import MatcherOptions, Query, RoutingEntry
from pathcast.registry import Registry
from pathcast.workload import (
    DOMAINS,
    DocumentParameters,
    QueryParameters,
    generate_documents,
    generate_queries,
)

SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(6, 400))]
NATIVE = [name for name in ENGINES if name != "reference" and missing_reason(name) is None]
TARGETS = (1, 2, 5, 64, 65, 200)


def united(
    entries: Sequence[RoutingEntry], messages: pa.Array, engine: EngineName = "reference"
) -> list[list[int] | None]:
    """The targets by asking for every path first, and uniting what its entries lead to then."""
    paths = list(dict.fromkeys(path for entry in entries for path in entry.paths))
    index = made_by(engine, Registry)
    assert not index.add([Query(path, path) for path in paths]).rejected
    found: list[list[int] | None] = []
    for message, result in zip(messages, index.match(messages), strict=True):
        held, reached = set(result.query_ids), 0
        for entry in entries:
            if held.issuperset(entry.paths):
                reached |= entry.targets
        targets = [at for at in range(reached.bit_length()) if reached >> at & 1]
        found.append(targets if message.is_valid else None)
    return found


def refused_and_missing(chosen: random.Random, messages: Sequence[bytes]) -> pa.Array:
    """Messages, of which some are refused and some are not there."""
    kinds = [chosen.randrange(9) for _ in messages]
    rows = [
        None if kind == 0 else message[:-3] if kind == 1 else message
        for kind, message in zip(kinds, messages, strict=True)
    ]
    return pa.array(rows, pa.binary())


@engines
@pytest.mark.parametrize("seed", SEEDS)
def test_targets_are_those_of_the_entries_that_hold(engine: EngineName, seed: int) -> None:
    chosen = random.Random(seed)
    texts = random_family(chosen, 20) + [random_query(chosen) for _ in range(20)]
    targets = chosen.choice(TARGETS)
    entries = random_routing_entries(chosen, texts, chosen.choice((3, 30, 120)), targets=targets)
    deep = MessageShape(depth_max=9, children_max=2)
    messages = [random_valued_message(chosen) for _ in range(20)]
    messages += [random_message(chosen, shape=deep) for _ in range(20)]
    column = refused_and_missing(chosen, messages)
    router = made_by(engine, RoutingTable, entries, targets).router(
        threads=1, cache_bytes_max=chosen.choice((1, 30_000, 1 << 24))
    )
    expected = united(entries, column)
    assert router.route(column).matches.to_pylist() == expected
    # What a message before has compiled makes no difference.
    routed = router.route(column)
    assert routed.matches.to_pylist() == expected
    assert routed.stats.matches == sum(len(each or ()) for each in expected)
    assert sum(1 for error in routed.errors.to_pylist() if error) == routed.stats.refused


@engines
@pytest.mark.parametrize("domain", ["payments", "news"])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_documents_of_a_dtd_go_where_their_queries_are(
    engine: EngineName, domain: str, seed: int
) -> None:
    """Recursive and repeated elements, `//` and `*`, conditions on values."""
    graph = DOMAINS[domain].graph()
    chosen = random.Random(seed)
    texts: list[str] = []
    for predicates, nested_paths in ((1, 0), (2, 1), (3, 0)):
        shape = QueryParameters(
            count=20, seed=seed, predicates=predicates, nested_paths=nested_paths, distinct=False
        )
        texts += generate_queries(graph, shape)
    entries = random_routing_entries(chosen, texts, 60, targets=200)
    documents = list(generate_documents(graph, DocumentParameters(count=12, seed=seed)))
    column = refused_and_missing(chosen, documents)
    router = made_by(engine, RoutingTable, entries, 200).router(threads=1)
    expected = united(entries, column)
    assert router.route(column).matches.to_pylist() == expected
    assert any(0 < len(targets) < 200 for targets in expected if targets)


@pytest.mark.parametrize("engine", NATIVE)
@given(
    texts=st.lists(some_queries(), min_size=1, max_size=6),
    messages=st.lists(some_messages(), max_size=4),
    chosen=st.randoms(use_true_random=False),
)
@settings(max_examples=25, deadline=None)
def test_tables_that_shrink(
    engine: EngineName, texts: list[str], messages: list[bytes], chosen: random.Random
) -> None:
    entries = random_routing_entries(chosen, texts, 5, targets=3)
    column = pa.array(messages, pa.binary())
    expected = united(entries, column)
    found = made_by(engine, RoutingTable, entries, 3).router(threads=1).route(column)
    assert found.matches.to_pylist() == expected


@engines
def test_a_target_needs_one_entry_and_an_entry_all_of_its_paths(engine: EngineName) -> None:
    entries = [
        RoutingEntry(("/a/b", "/a/c[@x=1]"), 0b0001),
        RoutingEntry(("//d",), 0b0011),
        RoutingEntry(("/a/b", "/a/b"), 0b0100),
        RoutingEntry(("//never", "/a"), 0b1000),
        RoutingEntry(("/a",), 0),
    ]
    table = made_by(engine, RoutingTable, entries, 4)
    assert (len(table), table.targets, table.nbytes > 0) == (5, 4, True)
    messages = [b"<a><b/><c x='1'/></a>", b"<a><c x='1'/></a>", b"<x><d/></x>", b"<a/>"]
    routed = table.router(threads=2).route(pa.array(messages))
    assert routed.matches.to_pylist() == [[0, 2], [], [0, 1], []]
    nothing = made_by(engine, RoutingTable, [], 0).router().route(pa.array(messages))
    assert nothing.matches.to_pylist() == [[], [], [], []]


@engines
def test_what_is_not_decided_counts_as_reached(engine: EngineName) -> None:
    texts = [f"//a[@x={n}]//b" for n in range(9)]
    entries = [RoutingEntry((text,), 1 << at) for at, text in enumerate(texts)]
    entries.append(RoutingEntry((texts[0], texts[7]), 1 << 9))
    message = b"<r>" + b"<a x='7'><b/></a><a x='0'><b/></a>" * 60 + b"</r>"
    table = made_by(engine, RoutingTable, entries, 10, limits=Limits(message_steps_max=1))
    [targets] = table.router().route(pa.array([message])).matches.to_pylist()
    assert {0, 7, 9} <= set(targets)


@engines
@pytest.mark.parametrize(
    ("entry", "targets", "reason"),
    [
        (RoutingEntry((), 1), 1, "an entry has no path"),
        (RoutingEntry(("/a",), 2), 1, "'/a' leads to a target beyond the 1 that there are"),
        (RoutingEntry(("/a",), -1), 1, "'/a' leads to a target beyond"),
        (RoutingEntry(("/a", "/b["), 1), 1, "'/b\\[' is no path in canonical text"),
        (RoutingEntry(("/a [@b = 1]",), 1), 1, "is no path in canonical text"),
        (RoutingEntry(("count(/a)",), 1), 1, "is no path in canonical text"),
        (RoutingEntry(("/a",), 1), 1 << 40, "targets: 1099511627776 is not from 0 to"),
    ],
)
def test_entries_that_cannot_be_used(
    engine: EngineName, entry: RoutingEntry, targets: int, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        made_by(engine, RoutingTable, [entry], targets)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_looking_at_everything_gives_the_same(seed: int) -> None:
    """Pruning can be switched off in the kernel, to be measured."""
    kernel = pytest.importorskip("pathcast.kernel.routing")
    chosen = random.Random(seed)
    texts = random_family(chosen, 30)
    entries = random_routing_entries(chosen, texts, 60, targets=9)
    column = pa.array([random_valued_message(chosen) for _ in range(40)])
    options = MatcherOptions(limits=Limits(), threads=1, cache_bytes_max=1 << 24)
    found = [
        kernel.KernelRoutingTable(entries, 9, prunes=prunes).matcher(options).match(column)
        for prunes in (True, False)
    ]
    assert found[0].matches == found[1].matches
    # Less is looked at.
    assert found[0].stats.steps <= found[1].stats.steps
