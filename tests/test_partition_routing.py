"""The routing index never keeps a message from a partition that holds a query it satisfies.

If one of these fails, partitioned delivery loses messages that broadcast would have delivered.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from every_engine import engines
from generators import (
    FamilyShape,
    random_expression,
    random_family,
    random_message,
    random_query,
    random_valued_message,
)
from generators.flwr_messages import random_flwr_message
from generators.flwr_text import random_flwr, random_notice
from generators.flwr_vocabulary import VOCABULARIES
from oracles.engines import EngineName, made_by, population_of
from pathcast import Query, QueryIndex, Registry, Subscription
from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import DeliverMode
from pathcast.partition import PepPlacement, exclusiveness_patterns
from pathcast.partition.population_routes import routes_of_population
from pathcast.partition.routes import Routes, bits_of, fitted, route_bytes
from pathcast.partition.routing import FILE, RoutingIndex, routes_of, words_for
from pathcast.query import normalise

BUDGETS = (1, 600, 2_000, 6_000, 1 << 30)


def filter_queries(chosen: random.Random, count: int) -> list[Subscription]:
    """Filter queries of one structure, of many, and such as paths cannot say."""
    shape = FamilyShape(has_alternatives=chosen.random() < 0.5)
    texts = random_family(chosen, count, shape)
    texts += [random_query(chosen) for _ in range(count // 2)]
    texts += [random_expression(chosen) for _ in range(count // 4)]
    rows = [Subscription(f"q{at}", "ann", text, "ids") for at, text in enumerate(texts)]
    rejected = (
        made_by("reference", QueryIndex).register([Query(r.id, r.query) for r in rows]).rejected
    )
    return [row for row in rows if row.id not in rejected]


def messages_for(chosen: random.Random, count: int) -> pa.Array:
    """Messages, some that the door refuses and some that are missing."""
    found: list[bytes | None] = []
    for at in range(count):
        message = random_message(chosen) if at % 2 else random_valued_message(chosen)
        found.append(message[:-3] if at % 7 == 3 else None if at % 11 == 5 else message)
    return pa.array(found, pa.binary())


@engines
def test_every_partition_of_a_satisfied_query_is_marked(engine: EngineName) -> None:
    checked = sent = pairs = 0
    for seed in range(6):
        chosen = random.Random(seed)
        rows = filter_queries(chosen, 24)
        partitions = chosen.choice((1, 2, 5, 64, 65, 200))
        of = {row.id: chosen.randrange(partitions) for row in rows}
        messages = messages_for(chosen, 24)
        whole = made_by(engine, QueryIndex)
        whole.register([Query(row.id, row.query) for row in rows])
        expected = whole.matcher().match(messages)
        budget = BUDGETS[seed % len(BUDGETS)]
        index = made_by(
            engine,
            RoutingIndex.of,
            routes_of(rows, of),
            partitions,
            budget_bytes=budget,
            sample=messages_for(chosen, 8) if seed % 2 else None,
        )
        marks = index.marker().mark(messages)
        for at, result in enumerate(expected):
            marked = marks.partitions[at].as_py()
            assert marked == sorted(set(marked))
            assert {of[name] for name in result.query_ids} <= set(marked), (seed, at)
            error = marks.errors[at].as_py()
            assert (error and error["code"]) == (result.error and result.error.code)
            if result.error is not None or not messages[at].is_valid:
                assert not marked
            checked += len(result.query_ids)
            sent += len(marked)
            pairs += len(set(of.values()))
    assert checked > 150
    assert sent < 0.8 * pairs, "it keeps messages from nowhere"


@engines
def test_every_partition_that_delivers_a_result_is_marked(engine: EngineName) -> None:
    checked = 0
    for seed in range(5):
        chosen = random.Random(100 + seed)
        vocabulary = VOCABULARIES[chosen.choice(("bib", "book", "orders", "small"))]
        registry = made_by(engine, Registry)
        rows = []
        for at in range(14):
            make = random_notice if at % 4 == 3 else random_flwr
            flwr = make(chosen, vocabulary)
            deliver: DeliverMode = "message" if at % 2 else "fragment"
            deliver = "ids" if at % 4 == 3 else deliver
            rows.append(Subscription(f"s{at}", "ann", flwr.text, deliver, flwr.namespaces))
        rejected = registry.add(rows).rejected
        rows = [row for row in rows if row.id not in rejected]
        of = {row.id: chosen.randrange(6) for row in rows}
        messages = pa.array([random_flwr_message(chosen, vocabulary) for _ in range(12)])
        index = made_by(
            engine,
            RoutingIndex.of,
            routes_of(rows, of),
            6,
            budget_bytes=BUDGETS[seed % len(BUDGETS)],
        )
        marks = index.marker().mark(messages)
        delivered = registry.deliver(messages)
        for at in range(len(messages)):
            wanted = {of[each.subscription_id] for each in delivered.deliveries(at)}
            assert wanted <= set(marks.partitions[at].as_py()), (seed, at)
            checked += len(wanted)
    assert checked > 30


@engines
def test_a_path_that_is_not_decided_marks_its_partitions(engine: EngineName) -> None:
    """A message that has used up its steps may satisfy what was left."""
    rows = [Subscription(f"q{n}", "ann", f"//a[@x = {n}]//b", "ids") for n in range(9)]
    of = {row.id: at for at, row in enumerate(rows)}
    limits = Limits(message_steps_max=1)
    index = made_by(engine, RoutingIndex.of, routes_of(rows, of), 9, limits=limits)
    message = b"<r>" + b"<a x='7'><b/></a>" * 60 + b"</r>"
    whole = made_by(engine, QueryIndex, limits=limits)
    whole.register([Query(row.id, row.query) for row in rows])
    result = whole.matcher().match([message])[0]
    wanted = {of[name] for name in (*result.query_ids, *result.verdicts)}
    assert 7 in wanted
    assert wanted <= set(index.marker().mark(pa.array([message])).partitions[0].as_py())


def test_routes_fit_their_budget_and_cover_what_they_stand_for() -> None:
    fits = 0
    for seed in range(16):
        chosen = random.Random(seed)
        rows = filter_queries(chosen, 16)
        partitions = chosen.choice((3, 70))
        of = {row.id: chosen.randrange(partitions) for row in rows}
        routes = routes_of(rows, of)
        words = words_for(partitions)
        before = routes.size(words)
        budget = chosen.choice(BUDGETS)
        found = fitted(routes, budget, words=words)
        assert routes.size(words) == before, "the given routes were changed"
        assert found.size(words) <= budget or len(found) == 1
        fits += len(found) > 1 and found.size(words) < before
        for exact in routes:
            for target in bits_of(exact.targets):
                assert any(
                    each.targets >> target & 1 and each.path.covers(exact.path) for each in found
                ), (seed, str(exact))
    assert fits > 5


def test_a_larger_budget_sends_fewer_messages_in_vain() -> None:
    """What is given away for bytes is precision: all of it where there are bytes for nothing."""
    chosen = random.Random(5)
    rows = [
        Subscription(f"q{n}", "ann", f"/m/a[@x = {n}][@y = '{n % 13}k']", "ids") for n in range(200)
    ]
    of = {row.id: int(row.id[1:]) // 25 for row in rows}
    messages = pa.array(
        [
            f"<m><a x='{chosen.randrange(200)}' y='{chosen.randrange(13)}k'/></m>".encode()
            for _ in range(60)
        ]
    )
    sent = []
    for budget in (1 << 20, 30_000, 3_000, 200):
        index = made_by("reference", RoutingIndex.of, routes_of(rows, of), 8, budget_bytes=budget)
        marks = index.marker().mark(messages)
        sent.append(len(marks.partitions.flatten()) / (8 * len(messages)))
    assert sent == sorted(sent)
    # Exact; then one linear path of each, then a range of each partition, then everything.
    assert sent[0] < 0.05
    assert sent[2] <= 0.126
    assert sent[3] == 1.0


def test_what_most_queries_of_a_partition_share_is_kept() -> None:
    """Placed by `@x`, queries are told apart by `@x`, whatever else they ask."""
    routes = Routes()
    for number in range(60):
        target, other = number % 3, number // 3
        path = normalise(f"/m/a[@x = 'v{target}'][@y = 'w{other}']")
        routes.add([path], target)
    found = fitted(routes, 3 * route_bytes(normalise("/m/a[@x = 'v0']"), 1), words=1)
    assert sorted(map(str, found)) == [f"/m/a[@x='v{n}'] -> {n}" for n in range(3)]


def test_a_path_that_another_covers_for_the_same_partition_is_dropped() -> None:
    routes = Routes()
    routes.add([normalise("/m/a[@x = 1]")], 0)
    routes.add([normalise("/m/a[@x = 1]"), normalise("//a[@x > 0]")], 1)
    routes.add([normalise("//a[@x]")], 1)
    found = fitted(routes, 1 << 30, words=1)
    assert sorted(map(str, found)) == ["//a[@x] -> 1", "/m/a[@x=1] -> 0"]


@engines
def test_an_index_is_the_same_from_its_files(engine: EngineName, tmp_path: Path) -> None:
    chosen = random.Random(3)
    rows = filter_queries(chosen, 30)
    of = {row.id: chosen.randrange(130) for row in rows}
    index = made_by(engine, RoutingIndex.of, routes_of(rows, of), 130)
    index.save(tmp_path)
    opened = made_by(engine, RoutingIndex.open, tmp_path)
    assert (opened.partitions, len(opened), opened.routes()) == (130, len(index), index.routes())
    messages = messages_for(chosen, 30)
    assert opened.marker().mark(messages).partitions == index.marker().mark(messages).partitions


def test_a_file_that_is_not_as_it_was_written_is_refused(tmp_path: Path) -> None:
    routes = Routes()
    routes.add([normalise("/a/b")], 0)
    made_by("reference", RoutingIndex.of, routes, 1).save(tmp_path)
    content = (tmp_path / FILE).read_bytes()
    damaged = [content[:cut] for cut in (0, 7, len(content) // 2)]
    damaged += [content.replace(b"/a/b", other) for other in (b"/a/c", b"/a/[")]
    for each in damaged:
        assert each != content
        (tmp_path / FILE).write_bytes(each)
        with pytest.raises(SnapshotFormatError, match=FILE):
            made_by("reference", RoutingIndex.open, tmp_path)


def test_the_rows_of_a_partition() -> None:
    routes = Routes()
    routes.add([normalise("//a")], 0)
    routes.add([normalise("//b")], 1)
    marker = made_by("reference", RoutingIndex.of, routes, 2).marker()
    marks = marker.mark(pa.array([b"<a/>", b"<b/>", b"<a><b/></a>", b"<c/>"]))
    assert marks.rows_of(0).tolist() == [0, 2]
    assert marks.rows_of(1).tolist() == [1, 2]
    assert marks.partitions.to_pylist() == [[0], [1], [0, 1], []]


@engines
def test_routes_of_columns_reach_every_partition_of_a_satisfied_query(engine: EngineName) -> None:
    """What an index exports of its queries is enough to route by."""
    checked = 0
    for seed in range(8):
        chosen = random.Random(300 + seed)
        rows = filter_queries(chosen, 24)
        whole = made_by(engine, QueryIndex)
        whole.register([Query(row.id, row.query) for row in rows])
        population = population_of([Query(row.id, row.query) for row in rows])
        partitions = chosen.choice((1, 3, 70))
        placed = np.array([chosen.randrange(partitions) for _ in rows])
        of = dict(zip(population.query_ids, placed.tolist(), strict=True))
        routes = routes_of_population(population, placed)
        for exact in routes_of(rows, of):
            for target in bits_of(exact.targets):
                assert any(
                    each.targets >> target & 1 and each.path.covers(exact.path) for each in routes
                ), (seed, str(exact))
                checked += 1
        index = made_by(
            engine, RoutingIndex.of, routes, partitions, budget_bytes=BUDGETS[seed % len(BUDGETS)]
        )
        messages = messages_for(chosen, 16)
        marks = index.marker().mark(messages)
        for at, result in enumerate(whole.matcher().match(messages)):
            assert {of[name] for name in result.query_ids} <= set(marks.partitions[at].as_py())
    assert checked > 150


def test_a_partition_by_values_is_found_by_its_values() -> None:
    """With the exclusiveness patterns of the paper a message of one value touches one partition."""
    index = QueryIndex()
    texts = [f"/m[@a = {n % 50}][b = 'v{n % 7}']" for n in range(700)]
    index.register([Query(f"q{n}", text) for n, text in enumerate(texts)])
    population = index.population()
    patterns = [each for each in exclusiveness_patterns(population) if str(each.place) == "/m/@a"]
    placement = PepPlacement.of(population, 10, patterns=patterns)
    placed = placement.place(population)
    messages = pa.array([f"<m a='{n}'><b>v1</b></m>".encode() for n in range(50)])
    by_values = placement.touched(messages).partitions.to_pylist()
    for budget in (1 << 20, 5_000):
        routes = routes_of_population(population, placed)
        found = RoutingIndex.of(
            routes, placement.partitions, budget_bytes=budget, dont_care=placement.dont_care
        )
        marked = found.marker().mark(messages).partitions.to_pylist()
        for at in range(50):
            # Nobody is in the don't-care partition, to which a placement sends all messages.
            assert marked[at] == [n for n in by_values[at] if n != placement.dont_care]
            assert len(marked[at]) == 1
