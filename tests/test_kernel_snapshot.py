"""The kernel's snapshot of subscriptions of every kind: opened, it answers and goes on.

If these fail, what is saved is not what is served, or a file is read by who cannot know it.
"""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pathcast import Subscription
from pathcast.boundary import native
from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast_papers.filtering.snapshot import ReferenceSnapshot

ORDER = b"<order urgent='yes'><item><price>150</price></item><item><price>5</price></item></order>"
CHEAP = b"<order><item><price>50</price></item></order>"
SUBSCRIPTIONS = [
    Subscription("dear", "ann", "for $i in //item where $i/price > 100 return <d>{$i/price}</d>"),
    Subscription("order", "bob", "/order[@urgent]", "message"),
    Subscription("sum", "ann", "if (count(//item) > 1) then <n>{count(//item)}</n> else ()"),
    Subscription("last", "", "//item[position() = last()]/price"),
    Subscription("fact", "", "//price", "ids"),
    Subscription("flat", "bob", "/order/price", steps=("unwrap //item",)),
]
STEPS: dict[int, list[tuple[str, str, str, list[tuple[str, str]]]]] = {
    5: [("unwrap", "//item", "", [])]
}


def opened(path: Path) -> Any:
    """The subscriptions of a file, which go on."""
    snapshot = native.Snapshot.open(path)
    assert snapshot is not None
    return native.Dissemination.of_snapshot(snapshot, Limits(), 1, 1 << 20)


def delivered(registry: Any) -> list[tuple[int, str, bytes | None]]:
    answer = registry.process([ORDER, CHEAP])
    assert answer.refusals() == answer.verdicts() == []
    deliveries = answer.deliveries(0, len(answer))
    return sorted((message, name, made) for message, name, _, made in deliveries)


def delivered_from(path: Path, answers: Any) -> None:
    answers.put(delivered(opened(path)))


@pytest.fixture
def registry() -> Any:
    made = native.Dissemination(Limits(), 1, 1 << 20)
    assert made.subscribe(SUBSCRIPTIONS, {}, STEPS) == []
    return made


def test_what_is_opened_serves_what_was_frozen_in_every_process(
    registry: Any, tmp_path: Path
) -> None:
    path = tmp_path / "s.snapshot"
    expected = delivered(registry)
    assert [(message, name) for message, name, _ in expected] == [
        *((0, name) for name in ("dear", "fact", "flat", "flat", "last", "order", "sum")),
        *((1, name) for name in ("fact", "flat", "last")),
    ]
    registry.freeze().save(path)
    assert delivered(registry) == expected
    again = opened(path)
    assert delivered(again) == expected
    for row in SUBSCRIPTIONS:
        assert again.subscription(row.id) == registry.subscription(row.id)
        assert again.explain(row.id)["way"] == registry.explain(row.id)["way"]
    spawned = multiprocessing.get_context("spawn")
    answers = spawned.Queue()
    child = spawned.Process(target=delivered_from, args=(path, answers))
    child.start()
    assert answers.get(timeout=120) == expected
    child.join()


def test_changes_of_what_is_opened_are_in_the_next_file(registry: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.snapshot"
    first = registry.freeze()
    first.save(path)
    again = opened(path)
    new = Subscription("new", "eve", "for $i in //item where $i/price > 140 return <e/>")
    assert again.subscribe([new], {}) == []
    assert again.subscribe([new], {}) == [(0, "query.duplicate")]
    again.unsubscribe(["sum", "flat"])
    names = [name for message, name, _ in delivered(again) if message == 0]
    assert names == ["dear", "fact", "last", "new", "order"]
    again.freeze().save(path)
    assert [name for message, name, _ in delivered(opened(path)) if message == 0] == names
    # A set of subscriptions has one version, whatever its history.
    again.subscribe([SUBSCRIPTIONS[2], SUBSCRIPTIONS[5]], {}, {1: STEPS[5]})
    again.unsubscribe(["new"])
    assert json.loads(again.freeze().metadata) == json.loads(first.metadata)


def test_a_matcher_of_a_snapshot_says_which_are_delivered(registry: Any) -> None:
    matcher = registry.freeze().matcher(Limits(), 1, 1 << 20)
    answer = matcher.match(pa.array([ORDER, CHEAP]))
    found = [sorted(answer.entries().take(answer.numbers(row))) for row in (0, 1)]
    assert found == [sorted(row.id for row in SUBSCRIPTIONS), ["fact", "flat", "last"]]


def test_the_papers_refuse_other_subscriptions(registry: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.snapshot"
    registry.freeze().save(path)
    with pytest.raises(SnapshotFormatError, match="no filter queries"):
        ReferenceSnapshot.open(path)
