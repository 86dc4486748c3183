"""A budget of steps a message: who is left over is the same in every batch and order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from broker_engines import broker_engines, missing
from oracles import ENGINES
from oracles.engines import EngineName, made_by
from pathcast import Registry, Subscription
from pathcast.limits import Limits
from pathcast.model import DELIVER_MODES

CODE = "limit.message_steps"
CASE_BLIND = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive"

EVALUATED = [
    "for $a in //a where count(//b[. > $a/@n]) > {n} return <r>{{$a/b}}</r>",
    "for $a in //a, $b in //b where $a/@n = $b + {n} return <r>{{$b}}</r>",
    "<all>{{for $a in //a order by count(//b[. = $a/b]) return <n>{n}</n>}}</all>",
    "//a[count(//b) > count(b) + {n}]",
    "<x n='{{max(//b)}}'>{{for $b in //b where $b >= max(//b) - {n} return $b}}</x>",
]
"""Each is evaluated by itself; `{n}` is a small number."""

SHARED = [
    "//a",
    "for $a in //a return <r>{$a/b}</r>",
    "for $a in //a where $a/@n > 1 return <r>{$a/b}</r>",
]


def answer(registry: Registry, parts: Sequence[Sequence[tuple[str, bytes]]]) -> dict[Any, Any]:
    """Message and subscription -> its results, or the code of its verdict."""
    found: dict[Any, Any] = {}
    for part in parts:
        batch = registry.deliver([text for _, text in part], [name for name, _ in part])
        for row in batch.table.to_pylist():
            key = (row["message_id"], row["subscription_id"])
            found.setdefault(key, []).append(row["fragment"])
        for row in batch.verdicts.to_pylist():
            key = (row["message_id"], row["subscription_id"])
            assert key not in found, "a subscription has results and a verdict"
            found[key] = row["code"]
    return found


def steps(registry: Registry, text: bytes) -> int:
    return registry.deliver([text], ["m"]).stats.steps


def message(rng: random.Random) -> bytes:
    parts = []
    for number in range(rng.randrange(4, 14)):
        inner = "".join(f"<b>{rng.randrange(6)}</b>" for _ in range(rng.randrange(4)))
        parts.append(f'<a n="{number % 4}">{inner}</a>')
    return f"<m>{''.join(parts)}</m>".encode()


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(8, 200))]
)
def test_a_subscription_has_its_answer_or_is_named(seed: int) -> None:
    rng = random.Random(seed)
    names = rng.sample([f"s{n:03}" for n in range(300)] + ["é", "A", "z"], 40)
    shared = set(names[:8])
    subscriptions = [
        Subscription(name, "ann", rng.choice(SHARED))
        if name in shared
        else Subscription(
            name,
            "ann",
            rng.choice(EVALUATED).format(n=rng.randrange(4)),
            rng.choices(DELIVER_MODES, (8, 1, 1))[0],
        )
        for name in names
    ]
    messages = [(f"m{n}", message(rng)) for n in range(4)]
    share = rng.random()
    bounds: dict[bool, int] = {}
    left_over: dict[str, set[Any]] = {}
    for engine in ENGINES:
        if missing(engine) is not None:
            continue
        everything = made_by(engine, Registry, threads=1)
        everything.add(subscriptions)
        whole = answer(everything, [messages])
        assert CODE not in whole.values()
        most = max(steps(everything, text) for _, text in messages)
        # The gates have their own, for which this is plenty. The kernel's engines get the same.
        bound = bounds.setdefault(engine == "reference", max(most // 4, int(most * share)))
        limits = Limits(message_steps_max=bound)
        registry = made_by(engine, Registry, limits, threads=rng.choice([1, 2]))
        registry.add(rng.sample(subscriptions, len(subscriptions)))
        cut = rng.randrange(len(messages) + 1)
        told = answer(registry, [messages[:cut], messages[cut:]])
        assert answer(made_by(engine, Registry.of, registry.freeze()), [messages[::-1]]) == told, (
            engine
        )
        for key in whole.keys() | told.keys():
            assert told.get(key) in (whole.get(key), CODE), (engine, key)
        named = {key for key, found in told.items() if found == CODE}
        assert named, engine
        if engine != "reference":
            assert not {key for key in named if key[1] in shared}, engine
            left_over[engine] = named
        for name, _ in messages:
            first = min((who for of, who in named if of == name), default="\U0010ffff")
            # Those that a gate has left out are no, not named.
            for each in subscriptions:
                key = (name, each.id)
                is_by_gate = each.deliver != "fragment" and each.query.startswith("//")
                if each.id > first and each.id not in shared and not is_by_gate and key in whole:
                    assert told[key] == CODE, (engine, key)
    assert len({frozenset(found) for found in left_over.values()}) <= 1


HEAVY = "for $a in //a, $b in //b where $a/@n = $b + {n} return <r>{{$b}}</r>"
TEXT = b"<m>" + b"<a n='5'><b>3</b><b>4</b><b>5</b></a>" * 30 + b"</m>"


@broker_engines
class TestSteps:
    def test_those_that_are_left_over_are_named(self, engine: EngineName) -> None:
        alone = made_by(engine, Registry)
        alone.add(Subscription("a", "ann", HEAVY.format(n=1)))
        limits = Limits(message_steps_max=steps(alone, TEXT) * 3 // 2)
        heavy = [
            Subscription("c", "ann", HEAVY.format(n=2)),
            Subscription("b", "ann", HEAVY.format(n=0)),
            Subscription("a", "ann", HEAVY.format(n=1)),
        ]
        for order in (heavy, heavy[::-1]):
            registry = made_by(engine, Registry, limits)
            registry.add([Subscription("0", "ann", "//a/@n"), *order])
            found = registry.deliver(TEXT)
            assert {delivery.subscription_id for delivery in found} == {"0", "a"}
            assert sorted(found.verdicts) == ["b", "c"]
            error = found.verdicts["b"]
            assert (error.code, error.params["maximum"]) == (CODE, limits.message_steps_max)
            assert "Limits(message_steps_max=...)" in str(error)
            assert steps(registry, TEXT) <= 2 * limits.message_steps_max

    def test_what_takes_too_many_steps_itself_is_told_so(self, engine: EngineName) -> None:
        limits = Limits(evaluation_steps_max=1000, message_steps_max=2500)
        registry = made_by(engine, Registry, limits)
        registry.add([Subscription(name, "ann", HEAVY.format(n=1)) for name in "dbca"])
        codes = {name: error.code for name, error in registry.deliver(TEXT).verdicts.items()}
        own = "limit.evaluation_steps"
        assert codes == {"a": own, "b": own, "c": CODE, "d": CODE}

    def test_a_message_alone_is_judged(self, engine: EngineName) -> None:
        alone = made_by(engine, Registry)
        alone.add(Subscription("a", "ann", HEAVY.format(n=1)))
        registry = made_by(engine, Registry, Limits(message_steps_max=steps(alone, TEXT) * 3 // 2))
        registry.add([Subscription(name, "ann", HEAVY.format(n=1)) for name in "ab"])
        short = b"<m><a n='2'><b>1</b></a></m>"
        batch = registry.deliver([short, TEXT, short, TEXT, short])
        assert [row["row"] for row in batch.verdicts.to_pylist()] == [1, 3]


@pytest.mark.skipif(missing("kernel") is not None, reason="there is no kernel")
def test_what_is_written_takes_steps() -> None:
    text = b"<m><a n='1'>" + b"x" * 64_000 + b"</a></m>"
    took = []
    for result in ("$a", "$a/@n"):
        registry = Registry()
        query = f"for $a in //a where count($a) = 1 return {result}"
        registry.add(Subscription("s", "ann", query))
        took.append(steps(registry, text))
    assert 990 <= took[0] - took[1] <= 1010


@pytest.mark.skipif(missing("kernel") is not None, reason="there is no kernel")
@pytest.mark.parametrize("collation", ["", f" collation '{CASE_BLIND}'"])
def test_what_sorting_compares_takes_steps(collation: str) -> None:
    """256 keys of 6,400 bytes: each is taken up eight times."""
    text = b"<m>" + b"".join(b"<a>%s%d</a>" % (b"x" * 6_400, at) for at in range(256)) + b"</m>"
    took = []
    for order in ("", f"order by $a{collation} "):
        registry = Registry()
        registry.add(
            Subscription("s", "ann", f"<r>{{for $a in //a {order}return $a/@n}}{{//m}}</r>")
        )
        took.append(steps(registry, text))
    assert 8 * 256 * 100 <= took[1] - took[0] <= 11 * 256 * 100


@pytest.mark.skipif(missing("kernel") is not None, reason="there is no kernel")
def test_keys_are_in_the_order_of_their_capital_letters() -> None:
    registry = Registry()
    asked = f"<r>{{for $a in //a order by $a collation '{CASE_BLIND}' return $a}}</r>"
    registry.add(Subscription("s", "ann", asked))
    (found,) = registry.deliver(b"<m><a>b</a><a>_</a><a>B</a><a>ab</a><a>A</a></m>")
    assert found.fragment == b"<r><a>A</a><a>ab</a><a>b</a><a>B</a><a>_</a></r>"
