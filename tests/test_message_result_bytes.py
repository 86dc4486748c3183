"""A budget of result bytes a message: who is served is the same on every engine, in every batch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from broker_engines import broker_engines, missing
from oracles import ENGINES
from oracles.engines import EngineName, made_by
from pathcast import Registry, Subscription
from pathcast.limits import Limits
from pathcast.model import DELIVER_MODES, LocalDeliverMode

DELIVERY_BYTES = 64
PLACE_BYTES = 16


def answer(registry: Registry, parts: list[list[tuple[str, bytes]]]) -> dict[Any, Any]:
    """Message and subscription -> its results, or the code of its verdict."""
    found: dict[Any, Any] = {}
    for part in parts:
        batch = registry.deliver([text for _, text in part], [name for name, _ in part])
        nodes = iter(batch.nodes.to_pylist())
        modes = {name: registry.get(name).deliver for name in batch.subscription_ids}
        for row in batch.table.to_pylist():
            result = row["fragment"]
            if modes[row["subscription_id"]] == "nodes":
                node = next(nodes)
                assert node["subscription_id"] == row["subscription_id"]
                result = (node["kind"], node["node_number"])
            found.setdefault((row["message_id"], row["subscription_id"]), []).append(result)
        for row in batch.verdicts.to_pylist():
            key = (row["message_id"], row["subscription_id"])
            assert key not in found, "a subscription has results and a verdict"
            found[key] = row["code"]
    return found


def model(
    results: dict[str, list[Any]], modes: Mapping[str, str], bytes_max: int
) -> dict[str, Any]:
    """Who is served, as the documentation says it: by ids, equal results once."""
    known: set[bytes] = set()
    spent, is_full = 0, False
    expected: dict[str, Any] = {}
    for name in sorted(results):
        if modes[name] == "fragment" and not is_full:
            new = {result for result in results[name] if result is not None} - known
            known |= new
            spent += sum(map(len, new)) + DELIVERY_BYTES * len(results[name])
        if modes[name] == "nodes" and not is_full:
            spent += (PLACE_BYTES + DELIVERY_BYTES) * len(results[name])
        is_full = spent > bytes_max
        is_served = modes[name] not in ("fragment", "nodes") or not is_full
        expected[name] = results[name] if is_served else "limit.message_result_bytes"
    return expected


QUERIES = [
    "//a",
    "//b",
    "for $a in //a return <r>{$a}</r>",
    "<all>{for $a in //a return $a/b}</all>",
    "<all>{//b}</all>",
    "for $a in //a where count($a/b) = 1 return <r>{$a}</r>",
    "for $a in //a where count($a/b) > 1 return $a/b",
    "//a[count(b) > 1]",
    "//a/@n",
    "<always n='{count(//b)}'>{/*}</always>",
    "//nothing",
]


def mode_of(rng: random.Random, query: str) -> LocalDeliverMode:
    """Results for most, and for some of those that give nodes the places of these."""
    if "<" not in query and rng.random() < 0.3:
        return "nodes"
    return rng.choices(DELIVER_MODES, (8, 1, 1))[0]


def message(rng: random.Random) -> bytes:
    """A message that all engines write alike, byte for byte."""
    parts = []
    for number in range(rng.randrange(1, 8)):
        inner = b"".join(
            b"<b>%s</b>" % (b"x" * rng.randrange(1, 12)) for _ in range(rng.randrange(3))
        )
        head = b'<a n="%d"' % (number % 3)
        parts.append(head + (b">" + inner + b"</a>" if inner else b"/>"))
    return b"<m>" + b"".join(parts) + b"</m>"


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(8, 200))]
)
def test_who_is_served_is_what_the_documentation_says(seed: int) -> None:
    rng = random.Random(seed)
    names = rng.sample([f"s{n}" for n in range(40)] + ["é", "A", "z", "s", "\U0001f600"], 14)
    subscriptions = [
        Subscription(name, "ann", query, mode_of(rng, query))
        for name, query in ((name, rng.choice(QUERIES)) for name in names)
    ]
    modes = {each.id: each.deliver for each in subscriptions}
    messages = [(f"m{n}", message(rng)) for n in range(5)]
    everything = made_by("reference", Registry, threads=1)
    everything.add(subscriptions)
    whole = answer(everything, [messages])
    totals = [
        sum(
            DELIVERY_BYTES + (PLACE_BYTES if modes[who] == "nodes" else len(each))
            for (of, who), results in whole.items()
            if of == name and modes[who] in ("fragment", "nodes")
            for each in results
        )
        for name, _ in messages
    ]
    bytes_max = max(1, rng.randrange(max(totals) + 30))
    expected: dict[Any, Any] = {}
    for name, _ in messages:
        results = {who: found for (of, who), found in whole.items() if of == name}
        expected |= {(name, who): told for who, told in model(results, modes, bytes_max).items()}
    limits = Limits(message_result_bytes_max=bytes_max)
    for engine in ENGINES:
        if missing(engine) is not None:
            continue
        registry = made_by(engine, Registry, limits, threads=rng.choice([1, 2]))
        registry.add(rng.sample(subscriptions, len(subscriptions)))
        cut = rng.randrange(len(messages) + 1)
        assert answer(registry, [messages[:cut], messages[cut:]]) == expected, engine
        assert answer(made_by(engine, Registry.of, registry.freeze()), [messages]) == expected


@broker_engines
class TestRoom:
    def test_equal_results_take_room_once(self, engine: EngineName) -> None:
        many = [Subscription(f"s{n:03}", "ann", "//b") for n in range(100)]
        many.append(Subscription("t", "ann", "for $b in //b where count($b) = 1 return $b"))
        text = b"<a><b>" + b"x" * 1000 + b"</b></a>"
        exact = Limits(message_result_bytes_max=1007 + 101 * DELIVERY_BYTES)
        registry = made_by(engine, Registry, exact)
        registry.add(many)
        assert (len(registry.deliver(text)), registry.deliver(text).verdicts) == (101, {})
        short = Limits(message_result_bytes_max=1006 + 101 * DELIVERY_BYTES)
        registry = made_by(engine, Registry, short)
        registry.add(many)
        assert list(registry.deliver(text).verdicts) == ["t"]

    def test_the_verdict_names_who_is_not_served_and_how_to_be(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry, Limits(message_result_bytes_max=80))
        registry.add(
            [
                Subscription("c", "ann", "//a/text()"),
                Subscription("b", "ann", "//a"),
                Subscription("a", "ann", "//a/@n"),
                Subscription("d", "ann", "//nothing"),
                Subscription("e", "ann", "//a", "ids"),
                Subscription("f", "ann", "/a", "message"),
            ]
        )
        found = registry.deliver(b"<a n='1'>text</a>")
        assert sorted(delivery.subscription_id for delivery in found) == ["a", "e", "f"]
        assert sorted(found.verdicts) == ["b", "c"]
        error = found.verdicts["b"]
        assert (error.code, error.params["maximum"]) == ("limit.message_result_bytes", 80)
        assert "Limits(message_result_bytes_max=...)" in str(error)

    def test_a_message_alone_is_judged(self, engine: EngineName) -> None:
        # What an earlier message of the batch has taken is not counted.
        registry = made_by(engine, Registry, Limits(message_result_bytes_max=300))
        registry.add(Subscription("s", "ann", "//b"))
        long, short = b"<a>" + b"<b>x</b>" * 20 + b"</a>", b"<a><b>y</b></a>"
        batch = registry.deliver([short, long, short, long, short] * 3)
        assert [row["row"] for row in batch.verdicts.to_pylist()] == [1, 3, 6, 8, 11, 13]
        assert set(batch.table.column("fragment").to_pylist()) == {b"<b>y</b>"}
