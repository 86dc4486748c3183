"""Work by subscription: counted, the same for every number of threads, and bounded."""

from __future__ import annotations

import pickle

import pytest

from pathcast import Limits, Query, Registry, Subscription
from pathcast.model import SubscriptionWork

MESSAGES = [b"<a>" + b"<b n='5'/>" * (at % 7 + 1) + b"<c>%d</c></a>" % at for at in range(300)]

ROWS: list[Query | Subscription] = [
    Query("conjunction", "//b[@n = '5']"),
    Query("expression", "//a[count(b) > count(c)]"),
    Query("same", "//a[count(b) > count(c)]"),
    Query("elsewhere", "/a[.//b][count(b) > count(c)]"),
    Query("position", "//b[position() = last()]/@n"),
    Subscription("nodes", "ann", "//b/@n"),
    Subscription("program", "bob", "<n>{count(//b[@n > 1])}</n>"),
    Subscription("shared", "ann", "for $b in //b return <c>{$b/@n}</c>"),
    Subscription("stepped", "ann", "//b[count(../b) > 2]", steps=("drop //c",)),
]


@pytest.mark.parametrize("cache_bytes_max", [1, 1 << 26])
def test_steps_are_the_same_for_all_threads_caches_and_batches(cache_bytes_max: int) -> None:
    one = Registry(threads=1)
    many = Registry(threads=3, cache_bytes_max=cache_bytes_max)
    one.add(ROWS)
    many.add(ROWS)
    whole, parts = one.deliver(MESSAGES), many.deliver(MESSAGES)
    assert whole.dearest == parts.dearest
    assert whole.stats.work == parts.stats.work == sum(each.steps for each in whole.dearest)
    halves = [one.deliver(MESSAGES[:100]), one.deliver(MESSAGES[100:])]
    assert sum(each.stats.work for each in halves) == whole.stats.work
    matched = one.match(MESSAGES), many.match(MESSAGES)
    assert matched[0].dearest == matched[1].dearest
    steps = dict(whole.dearest)
    told = dict(matched[0].dearest)
    assert "conjunction" not in told, "it is told together with all others"
    assert "same" not in told, "the first of equal queries has the steps of all"
    assert set(steps) == {row.id for row in ROWS}
    assert set(told) == set(steps) - {"conjunction", "same", "shared"}
    matches = sum("conjunction" in each.query_ids for each in matched[0])
    assert steps["conjunction"] == matches, "a step for each delivery"


def test_steps_of_a_query_that_has_left_are_those_of_its_equals() -> None:
    registry = Registry(threads=1)
    registry.add(ROWS)
    before = dict(registry.match(MESSAGES).dearest)
    registry.remove("expression")
    after = dict(registry.match(MESSAGES).dearest)
    assert after["same"] == before["expression"]
    registry.remove("same")
    assert "same" not in dict(registry.match(MESSAGES).dearest)
    frozen = dict(registry.freeze().match(MESSAGES).dearest)
    assert frozen == dict(registry.match(MESSAGES).dearest)


def test_results_are_told_without_the_engine() -> None:
    registry = Registry(threads=1)
    registry.add(ROWS)
    for found in (registry.deliver(MESSAGES), registry.match(MESSAGES)):
        assert pickle.loads(pickle.dumps(found)).dearest == found.dearest


def test_what_is_done_in_vain_is_not_counted_twice() -> None:
    """Where not all results fit, the message is served again in the order of ids."""
    registry = Registry(Limits(message_result_bytes_max=400), threads=1)
    registry.add([row for row in ROWS if row.id in ("shared", "program")])
    message = b"<a>" + b"<b n='5'/>" * 50 + b"</a>"
    batch = registry.deliver([message])
    assert batch.stats.verdicts
    assert sum(each.steps for each in batch.dearest) == batch.stats.work
    free = Registry(threads=1)
    free.add([row for row in ROWS if row.id == "program"])
    assert dict(batch.dearest)["program"] == free.deliver([message]).dearest[0].steps


def test_a_few_hundred_are_told() -> None:
    registry = Registry(threads=1)
    registry.add([Query(f"q{at}", f"//a[count(b) > count(c{at})]") for at in range(1_000)])
    batch = registry.match(MESSAGES[:1])
    assert len(batch.dearest) == 256
    steps = batch.dearest[0].steps
    assert batch.stats.work == 1_000 * steps
    assert batch.dearest[0] == SubscriptionWork("q0", steps)
