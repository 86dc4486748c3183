"""Which subscriptions a message satisfies, asked without what they are delivered.

It must be those that are delivered something, whatever is delivered and in which way the kernel
comes to it; otherwise a program that asks first and delivers later loses results.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from itertools import cycle

import pyarrow as pa
import pytest

from customised_cases import GENEROUS
from generators import VOCABULARIES
from oracles.engines import ENGINES, EngineName, made_by
from pathcast import Registry
from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import DELIVER_MODES, Query, Subscription
from pathcast.registry.steps import parse_steps, step_data
from test_customised_engines import cases_of, vocabularies
from test_restructuring import BOUND
from test_steps import drawn, messages_of

pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")

Pairs = set[tuple[int, int]]


def engine(limits: Limits = GENEROUS, threads: int = 1) -> KernelRegistry:
    return KernelRegistry(limits, threads=threads, cache_bytes_max=1 << 24)


def delivered(target: KernelRegistry, messages: Sequence[bytes]) -> tuple[Pairs, Pairs]:
    """Pairs of message and subscription with a delivery, and those with a verdict."""
    answer = target.process(pa.array(messages, pa.binary()))
    assert not answer.refusals
    rows = zip(
        answer.rows["message"].to_pylist(), answer.rows["subscription"].to_pylist(), strict=True
    )
    return set(rows), {(row, number) for row, number, _ in answer.verdicts}


def matched(target: KernelRegistry, messages: Sequence[bytes]) -> Pairs:
    answer = target.match(pa.array(messages, pa.binary()))
    assert not answer.refusals
    assert answer.over_budget is None
    assert answer.stats.messages == len(messages)
    found = answer.matches.to_pylist()
    assert [answer.numbers(row) for row in range(len(messages))] == found
    assert all(numbers == sorted(set(numbers)) for numbers in found)
    assert answer.stats.matches == sum(map(len, found))
    assert answer.stats.deliveries == answer.stats.result_bytes == 0
    return {(row, number) for row, numbers in enumerate(found) for number in numbers}


@vocabularies
def test_those_are_matched_that_are_delivered_something(vocabulary: str) -> None:
    cases = cases_of(vocabulary, 6)
    modes = cycle(DELIVER_MODES)
    asked = [each._replace(deliver=next(modes)) for each in cases.subscriptions()]
    target = engine(threads=2)
    assert not target.subscribe(asked, {}).rejected
    messages = cases.messages * 8
    pairs, undecided = delivered(target, messages)
    assert pairs == matched(target, messages) - undecided
    assert len(pairs) > len(messages)
    target.unsubscribe([each.id for each in asked[::2]])
    pairs, undecided = delivered(target, messages)
    assert pairs == matched(target, messages) - undecided


def test_those_are_matched_that_are_delivered_something_after_their_steps() -> None:
    rng, found = random.Random("matched"), 0
    for _ in range(8):
        asked, messages = drawn(rng, 20), messages_of(rng, 6)
        steps = {
            place: step_data(parse_steps(each.steps, BOUND))
            for place, each in enumerate(asked)
            if each.steps
        }
        target = engine()
        assert not target.subscribe(asked, BOUND, steps).rejected
        pairs, undecided = delivered(target, messages)
        assert not undecided
        assert pairs == matched(target, messages)
        found += len(pairs)
    assert found > 100


def test_missing_and_refused_messages_have_no_matches() -> None:
    target = engine()
    target.subscribe([Subscription("s", "d", "<r>{//b}</r>"), Subscription("t", "d", "/c")], {})
    for given in ([b"<a><b/></a>", None, b"<a"], pa.array([b"<a><b/></a>", None, b"<a"])):
        answer = target.match(given)
        assert answer.matches.to_pylist() == [[0], None, []]
        assert [row for row, _ in answer.refusals] == [2]
        assert list(answer.query_ids) == ["s", "t"]


def test_what_takes_too_many_steps_is_undecided_and_what_is_too_long_is_not() -> None:
    limits = Limits(evaluation_steps_max=1_000, message_result_bytes_max=1_000)
    target = engine(limits)
    texts = ["<r>{count(//b[. = //c[. != 1]])}</r>", "for $b in //b return $b", "/a"]
    target.subscribe([Subscription(text, "d", text) for text in texts], {})
    message = b"<a>" + b"<b>1</b><c/>" * 300 + b"</a>"
    answer = target.match([message])
    assert answer.matches.to_pylist() == [[1, 2]]
    over = answer.over_budget
    assert over is not None
    assert [column.to_pylist() for column in over] == [[0], [0], [False]]
    codes = {error.code for _, _, error in target.process(pa.array([message])).verdicts}
    assert "limit.message_result_bytes" in codes
    assert not answer.verdicts


def test_a_subscription_whose_steps_cannot_be_done_is_told() -> None:
    target = engine(Limits(message_bytes_max=100))
    steps = step_data(parse_steps(["rename //a " + "long" * 10], {}))
    target.subscribe([Subscription("s", "d", "//b"), Subscription("t", "d", "//b")], {}, {0: steps})
    answer = target.match([b"<a><b/></a>", b"<a>" * 5 + b"<b/>" + b"</a>" * 5])
    assert answer.matches.to_pylist() == [[0, 1], [1]]
    assert answer.over_budget is None
    [(row, number, error)] = answer.verdicts
    assert (row, number, error.code) == (1, 0, "limit.message_bytes")


@pytest.mark.parametrize("made_by_engine", ENGINES)
def test_a_registry_matches_queries_and_subscriptions_as_it_delivers_to_them(
    made_by_engine: EngineName,
) -> None:
    """Filter queries come and go among subscriptions, before and after the first delivery."""
    rng = random.Random("queries and subscriptions")
    cases = cases_of(sorted(VOCABULARIES)[0], 4)
    rows: list[Query | Subscription] = list(cases.subscriptions())
    rows += [Query(f"q{place}", f"//{name}") for place, name in enumerate("abcdefgh")]
    rng.shuffle(rows)
    registry = made_by(made_by_engine, Registry, GENEROUS, threads=1)
    seen = 0
    for first in range(0, len(rows), 5):
        registry.add(rows[first : first + 5])
        leaving = rng.choice(rows[: first + 1])
        if leaving.id in registry:
            registry.remove(leaving.id)
        batch, given = registry.match(cases.messages), registry.deliver(cases.messages)
        for place, result in enumerate(batch):
            deliveries = given.deliveries(place)
            ids = {each.subscription_id for each in deliveries}
            assert {*result.query_ids} - {*deliveries.verdicts} == ids
            assert registry.match(cases.messages[place]).query_ids == result.query_ids
            seen += len(ids)
    assert seen > 20
    left = {row.id: row for row in rows if row.id in registry}
    again = made_by(made_by_engine, Registry, GENEROUS, threads=1)
    again.add(row for row in left.values() if isinstance(row, Query))
    again.add(row for row in left.values() if isinstance(row, Subscription))
    assert again.version == registry.version
    assert {found.id for found in registry.find(subscriber="")} == {
        row.id for row in left.values() if isinstance(row, Query)
    }
    query = next(row for row in left.values() if isinstance(row, Query))
    assert registry.get(query.id) == Subscription(query.id, "", query.text, "ids")


def test_verdicts_of_every_kind_are_in_results_and_in_columns_and_pickle() -> None:
    registry = Registry(Limits(message_bytes_max=100, evaluation_steps_max=50), threads=1)
    registry.add(Query("heavy", "//b[count(//b[. = //b]) = 0]"))
    registry.add(Subscription("s", "d", "//b", steps=("rename //a " + "long" * 10,)))
    message = b"<a>" * 5 + b"<b/>" * 8 + b"</a>" * 5
    batch = registry.match([b"<a/>", message])
    for found in (batch, pickle.loads(pickle.dumps(batch))):
        assert {name: error.code for name, error in found[1].verdicts.items()} == {
            "heavy": "limit.evaluation_steps",
            "s": "limit.message_bytes",
        }
        assert found[1].verdicts["s"].params["id"] == "s"
        rows = found.verdicts.select(["row", "query_number"]).to_pylist()
        assert rows == sorted(rows, key=lambda row: (row["row"], row["query_number"]))
        assert found.verdicts["row"].to_pylist() == [1, 1]
        assert {*found.verdicts["code"].to_pylist()} == {
            "limit.evaluation_steps",
            "limit.message_bytes",
        }
    one = pickle.loads(pickle.dumps(batch[1]))
    assert list(one.verdicts) == ["heavy", "s"]
    assert list(one.query_ids) == list(batch[1].query_ids)
