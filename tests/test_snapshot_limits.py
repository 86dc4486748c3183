"""An answer does not depend on where it is computed: limits travel with what is saved.

Messages and results are made to lie just within and just beyond every limit, raised and lowered
ones, so that a limit that is lost, or taken from elsewhere, shows in some answer.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

import pytest

from broker_engines import broker_engines
from oracles.engines import EngineName, made_by, running
from pathcast import Query, Registry, Snapshot, Subscription
from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits

SUBSCRIPTIONS: Final = [
    Subscription("all", "ann", "/*", "ids"),
    Subscription("copies", "bob", "//c"),
    Subscription("frames", "bob", "<r>{for $c in //c return <d>{$c}{$c}</d>}</r>"),
    Subscription("program", "cem", "for $c in //c where count($c/preceding::c) = 3 return $c"),
    Subscription("steps", "cem", "//c[count(preceding::c) = 3]"),
]
QUERIES: Final = [
    Query("all", "/*"),
    Query("deep", "//c"),
    Query("steps", "//c[count(preceding::c) = 3]"),
]

Answer = list[tuple[Any, ...]]


def broker_answer(matcher: Any, messages: list[bytes]) -> Answer:
    """Deliveries, verdicts and refusals, as rows that can be compared."""
    batch = matcher.deliver(messages)
    rows: Answer = [
        (row["message_id"], row["subscription_id"], row["result_number"], row["delivery_id"])
        for row in batch.table.to_pylist()
    ]
    rows += [
        (r["row"], r["subscription_id"], r["code"], r["message"])
        for r in batch.verdicts.to_pylist()
    ]
    rows += [(r["row"], "", r["code"], r["message"]) for r in batch.errors.to_pylist()]
    return sorted(rows, key=repr)


def query_answer(matcher: Any, messages: list[bytes]) -> Answer:
    """Matches, verdicts and refusals, likewise."""
    rows: Answer = []
    for place, result in enumerate(matcher.match(messages)):
        error = str(result.error) if result.error is not None else None
        verdicts = sorted((name, str(fault)) for name, fault in result.verdicts.items())
        rows.append((place, sorted(result.query_ids), error, verdicts))
    return rows


def near(limits: Limits, rng: random.Random) -> list[bytes]:
    """Messages about every limit, just within it and just beyond."""
    made = []
    for beyond in (0, 1):
        depth = limits.depth_max + beyond
        made.append(b"<c>" * depth + b"</c>" * depth)
        made.append(b"<a>" + b"<c/>" * (min(limits.elements_max, 500) - 1 + beyond) + b"</a>")
        count = limits.attributes_max + beyond
        made.append(b"<c " + b" ".join(b"a%d=''" % n for n in range(count)) + b"/>")
        value = b"v" * (limits.attribute_value_bytes_max + beyond)
        made.append(b"<c a='" + value + b"'/>")
        ratio = min(limits.result_ratio_max, 40) * 1_000
        made.append(
            b"<a>" + b"<c>" * 5 + b"x" * (ratio // 50 + 400 * beyond) + b"</c>" * 5 + b"</a>"
        )
        expanded = b"e" * (min(limits.entity_expansion_bytes_max, 4_000) // 2 + beyond)
        made.append(b"<!DOCTYPE a [<!ENTITY e '" + expanded + b"'>]><a><c>&e;&e;</c></a>")
        names = min(limits.names_max, 500) + beyond
        made.append(b"<a>" + b"".join(b"<n%d/>" % n for n in range(names - 1)) + b"</a>")
        results = limits.result_bytes_max // 2 + beyond
        made.append(b"<a><c>" + b"x" * min(results, 40_000) + b"</c></a>")
        # About as many steps as the exact evaluation may take: it looks at pairs of elements.
        steps = int(min(limits.evaluation_steps_max, 40_000) ** 0.5)
        made.append(b"<a>" + b"<c/>" * (steps + beyond * steps // 2) + b"</a>")
        size = min(limits.message_bytes_max, 100_000) + beyond
        made.append(b"<a>" + b" " * (size - 7) + b"</a>")
    return rng.sample(made, len(made))


def random_limits(rng: random.Random) -> Limits:
    """Each limit is the default one, lowered, or raised: what is lost then shows."""
    changed: dict[str, Any] = {}
    choices: dict[str, list[Any]] = {
        "message_bytes_max": [50_000, 99_000, 1 << 24],
        "depth_max": [3, 40, 300],
        "elements_max": [10, 100, 400],
        "attributes_max": [2, 100, 300],
        "attribute_value_bytes_max": [10, 5_000, 70_000],
        "entity_expansion_ratio_max": [1, 2, 20],
        "entity_expansion_bytes_max": [100, 3_000],
        "names_max": [5, 200, 400],
        "evaluation_steps_max": [50, 1_000, 10_000],
        "result_bytes_max": [10, 4_000, 30_000, 1 << 24],
        "result_ratio_max": [1, 3, 200],
        "dtd": ["refuse"],
    }
    for name, values in choices.items():
        if rng.random() < 0.35:
            changed[name] = rng.choice(values)
    return replace(Limits(), **changed)


ELSEWHERE: Final = """
import json, sys
from pathlib import Path
from oracles.engines import made_by
from pathcast import Registry, Snapshot, Snapshot
from test_snapshot_limits import broker_answer, query_answer
folder, engine = Path(sys.argv[1]), sys.argv[2]
for case in json.loads((folder / "cases.json").read_text()):
    messages = [bytes.fromhex(text) for text in case["messages"]]
    opened = made_by(engine, Snapshot.open, folder / case["registry"])
    registry = made_by(engine, Registry.of, opened)
    print(repr(broker_answer(registry, messages)))
    queries = made_by(engine, Snapshot.open, folder / case["index"])
    print(repr(query_answer(queries, messages)))
"""


SEEDS: Final = [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 80))]


@broker_engines
@pytest.mark.parametrize("seed", SEEDS)
def test_a_broker_that_is_saved_and_opened_answers_alike(
    engine: EngineName, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    limits = random_limits(rng)
    messages = near(limits, rng)
    registry = made_by(engine, Registry, limits, threads=1)
    assert not registry.add(SUBSCRIPTIONS).rejected
    expected = broker_answer(registry, messages)
    path = tmp_path / "s"
    registry.freeze().save(path)
    opened = made_by(engine, Snapshot.open, path)
    assert (opened.limits, opened.version) == (limits, registry.version)
    frozen = made_by(engine, Registry.of, registry.freeze())
    assert broker_answer(frozen, messages) == expected
    restored = made_by(engine, Registry.of, opened, threads=rng.choice([1, 2]))
    assert broker_answer(restored, messages) == expected


@broker_engines
@pytest.mark.parametrize("seed", SEEDS)
def test_an_index_that_is_saved_and_opened_answers_alike(
    engine: EngineName, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    limits = random_limits(rng)
    messages = near(limits, rng)
    index = made_by(engine, Registry, limits=limits)
    assert not index.add(QUERIES).rejected
    expected = query_answer(index, messages)
    path = tmp_path / "s"
    index.freeze().save(path)
    opened = made_by(engine, Snapshot.open, path)
    assert (opened.limits, opened.version) == (limits, index.freeze().version)
    assert query_answer(index.freeze(), messages) == expected
    assert query_answer(running(opened, threads=rng.choice([1, 2])), messages) == expected


@broker_engines
def test_another_process_answers_alike(engine: EngineName, tmp_path: Path) -> None:
    cases, expected = [], []
    for seed in range(1 if engine == "reference" else 3):
        rng = random.Random(100 + seed)
        limits = random_limits(rng)
        messages = near(limits, rng)
        registry, index = (
            made_by(engine, Registry, limits),
            made_by(engine, Registry, limits=limits),
        )
        registry.add(SUBSCRIPTIONS)
        index.add(QUERIES)
        registry.freeze().save(tmp_path / f"{seed}.s")
        index.freeze().save(tmp_path / f"{seed}.q")
        expected += [broker_answer(registry, messages), query_answer(index, messages)]
        texts = [message.hex() for message in messages]
        cases.append({"registry": f"{seed}.s", "index": f"{seed}.q", "messages": texts})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path), engine]
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [repr(answer) for answer in expected]


@broker_engines
def test_limits_travel_with_a_file(engine: EngineName, tmp_path: Path) -> None:
    limits = Limits(depth_max=300, result_ratio_max=50)
    for queries in ([], QUERIES):
        index = made_by(engine, Registry, limits=limits)
        index.add(queries)
        index.freeze().save(tmp_path / "q")
        assert made_by(engine, Snapshot.open, tmp_path / "q").limits == limits


def test_the_product_refuses_a_file_of_the_papers(tmp_path: Path) -> None:
    made_by("reference", Registry).freeze().save(tmp_path / "q")
    with pytest.raises(SnapshotFormatError, match="another kind"):
        Snapshot.open(tmp_path / "q")


@broker_engines
def test_the_version_is_that_of_the_limits_too(engine: EngineName) -> None:
    # Files are named by it and never replaced: equal versions must give equal answers.
    registries, indexes = set(), set()
    changed = [Limits(), Limits(dtd="refuse")]
    seven: list[dict[str, Any]] = [{field.name: 7} for field in fields(Limits)]
    changed += [replace(Limits(), **change) for change in seven if "dtd" not in change]
    for limits in changed:
        registries.add(made_by(engine, Registry, limits).version)
        indexes.add(made_by(engine, Registry, limits=limits).freeze().version)
    assert len(registries) == len(indexes) == len(changed) == len(fields(Limits)) + 1


def test_a_limit_that_is_not_known_here_is_an_error() -> None:
    text = Limits().to_json()
    assert Limits.from_json(text.replace('"depth_max":256,', ""), "f") == Limits()
    for wrong in (text.replace("depth_max", "width_max"), text.replace("256", "0"), "[]", "", "{"):
        with pytest.raises(SnapshotFormatError, match="limits"):
            Limits.from_json(wrong, "f")
