"""What travels to other processes: results and snapshots; what does not says what to send instead.

If a result held its batch, its messages or the table of all ids, sending it back from a worker
would cost more than answering the message.
"""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pathcast import Limits, Query, Registry, Snapshot, Subscription
from pathcast.engine import PathFinder, RoutingTable
from pathcast.errors import NotPicklableError
from pathcast.model import RoutingEntry

Trip = Callable[[Any], Any]

MESSAGES = [b"<a><b>1</b><b>2</b></a>", b"<a", None, b"<c/>", b"<a><b/></a>"]
LIMITS = Limits(evaluation_steps_max=4)
"""So few steps that one of the queries below gets a verdict."""


@pytest.fixture(params=[lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def trip(request: pytest.FixtureRequest) -> Trip:
    """What brings an object to another process, or copies it."""
    made: Trip = request.param
    return made


def index_of(padding: int = 0) -> Registry:
    index = Registry(limits=LIMITS)
    queries = [Query("q1", "/a/b"), Query("q2", "//c"), Query("heavy", "count(//*[last()]) > 1")]
    queries += [Query(f"padding {number}", f"/x/y{number}") for number in range(padding)]
    assert index.add(queries).accepted == len(queries)
    return index


def broker_of() -> Registry:
    registry = Registry(Limits(result_bytes_max=40))
    report = registry.add(
        [
            Subscription("s1", "ann", "for $b in //b return <r>{$b}</r>"),
            Subscription("s2", "bob", "<longer_than_the_limit_is>{//b}</longer_than_the_limit_is>"),
        ]
    )
    assert report.accepted == 2
    return registry


def seen(result: Any) -> tuple[Any, ...]:
    """All that a reader can see of the result of a message."""
    verdicts = {name: str(error) for name, error in result.verdicts.items()}
    error = None if result.error is None else result.error.to_dict()
    return list(result.query_numbers), list(result.query_ids), error, verdicts


def test_results_of_queries(trip: Trip) -> None:
    matcher = index_of().freeze()
    batch = matcher.match(MESSAGES)
    expected = [seen(result) for result in batch]
    assert any(ids for _, ids, _, _ in expected)
    assert any(error for _, _, error, _ in expected)
    assert any(verdicts for _, _, _, verdicts in expected)
    again = trip(batch)
    assert (again.stats, [seen(result) for result in again]) == (batch.stats, expected)
    # Twice: what came back can be sent on.
    assert [seen(result) for result in trip(again)] == expected
    assert [seen(trip(result)) for result in batch] == expected
    assert [seen(trip(trip(result))) for result in batch] == expected
    assert trip(batch[0].query_ids) == batch[0].query_ids
    assert trip(batch[0].query_numbers) == batch[0].query_numbers
    chunks = pa.chunked_array([pa.array(MESSAGES[:2]), pa.array(MESSAGES[2:], pa.binary())])
    columns = matcher.match(chunks)
    copied = trip(columns)
    assert copied.matches.equals(columns.matches)
    assert copied.errors.equals(columns.errors)
    assert copied.verdicts.equals(columns.verdicts)
    numbers = {number for row in columns.lists() for number in row}
    assert numbers
    for number in numbers:
        assert copied.query_ids[number] == columns.query_ids[number]
    assert [seen(each) for each in trip(matcher.match(chunks))] == expected


def test_results_of_subscriptions(trip: Trip) -> None:
    batch = broker_of().deliver(MESSAGES, ["m0", None, "m2", "m3", None])

    def told(row: Any) -> tuple[Any, ...]:
        verdicts = {name: str(error) for name, error in row.verdicts.items()}
        return list(row), row.error and row.error.to_dict(), verdicts

    rows = range(len(MESSAGES))
    expected = [told(batch.deliveries(row)) for row in rows]
    again = trip(batch)
    assert [told(again.deliveries(row)) for row in rows] == expected
    for name in ("table", "errors", "verdicts"):
        assert getattr(batch, name).num_rows, f"the batch has no {name}: nothing is compared"
        assert getattr(again, name).equals(getattr(batch, name))
    assert again.numbers.equals(batch.numbers)
    assert list(again.message_ids.take(rows)) == list(batch.message_ids.take(rows))
    assert trip(again).table.equals(batch.table)
    alone = [trip(batch.deliveries(row)) for row in rows]
    assert [told(each) for each in alone] == expected
    assert list(alone[0][1:]) == list(batch.deliveries(0)[1:])


def test_ids_that_are_refused_stay_refused(trip: Trip) -> None:
    batch = broker_of().deliver([b"<a><b/></a>"], ["\udce9"])
    again = trip(batch)
    assert again.message_ids.errors.keys() == batch.message_ids.errors.keys() == {0}
    assert again.errors.equals(batch.errors)


def test_a_result_travels_without_its_neighbours() -> None:
    index = index_of(padding=2_000)
    batch = index.freeze().match([b"<a><b/></a>", b"<c>" + 9_000 * b" " + b"</c>"])
    # 2,000 ids alone take 20 KB.
    assert len(pickle.dumps(batch)) < 9_000
    assert len(pickle.dumps(batch[0])) < 2_000
    deliveries = broker_of().deliver([b"<a><b/></a>", b"<c>" + 9_000 * b" " + b"</c>"])
    assert len(pickle.dumps(deliveries)) < 9_000
    # Who reads results needs no engine, and may have none.
    for found in (batch, batch[0], deliveries, deliveries.deliveries(0)):
        assert b"kernel" not in pickle.dumps(found)
    assert len(pickle.dumps(deliveries.deliveries(0))) < 2_000


def identity_of(snapshot: Snapshot) -> tuple[str, Limits]:
    return snapshot.version, snapshot.limits


def answers_of(snapshot: Snapshot) -> list[list[str]]:
    return [list(found.query_ids) for found in snapshot.match(MESSAGES)]


def test_a_snapshot_is_the_same_elsewhere(tmp_path: Path) -> None:
    frozen = index_of().freeze()
    file = tmp_path / "q.snapshot"
    frozen.save(file)
    for snapshot in (frozen, Snapshot.open(file)):
        content = pickle.dumps(snapshot)
        # The file is not there on another machine.
        file.unlink(missing_ok=True)
        again = pickle.loads(content)
        assert identity_of(again) == identity_of(frozen)
        assert answers_of(again) == answers_of(frozen)
        assert again.query("q1") == frozen.query("q1")
        assert answers_of(pickle.loads(pickle.dumps(again))) == answers_of(frozen)
    assert copy.deepcopy(frozen) is frozen
    assert copy.copy(frozen) is frozen
    population = frozen.population()
    assert list(pickle.loads(pickle.dumps(population)).query_ids) == list(population.query_ids)


def test_a_snapshot_of_subscriptions_is_the_same_elsewhere(tmp_path: Path) -> None:
    frozen = broker_of().freeze()
    file = tmp_path / "s.snapshot"
    frozen.save(file)
    expected = Registry.of(frozen).deliver(MESSAGES).table
    for snapshot in (frozen, Snapshot.open(file)):
        content = pickle.dumps(snapshot)
        file.unlink(missing_ok=True)
        again = pickle.loads(content)
        assert identity_of(again) == identity_of(frozen)
        assert Registry.of(again).deliver(MESSAGES).table.equals(expected)
    assert copy.deepcopy(frozen) is frozen


def match_elsewhere(snapshot: Snapshot) -> Any:
    """What a worker does: a snapshot in, results out."""
    return snapshot.match(MESSAGES)


def test_a_process_that_shares_nothing_answers_with_a_snapshot() -> None:
    frozen = index_of().freeze()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(match_elsewhere, frozen).result()
    assert [seen(each) for each in found] == [seen(each) for each in match_elsewhere(frozen)]


@pytest.mark.parametrize("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_belongs_to_a_process_says_what_to_send(send: Trip) -> None:
    registry = broker_of()
    table = RoutingTable([RoutingEntry(("//b",), 1)], 1)
    advice = {
        "Registry": (registry, "freeze()"),
        "RoutingTable": (table, "entries"),
        "Router": (table.router(), "entries"),
        "RoutingStream": (table.stream(), "RoutingTable"),
        "PathFinder": (PathFinder(), "PathFinder"),
    }
    for kind, (thing, instead) in advice.items():
        with pytest.raises(NotPicklableError, match=f"a {kind} is neither") as refused:
            send(thing)
        assert instead in str(refused.value.params["instead"])
    # Inside of something else, too, the error names what is in the way.
    with pytest.raises(NotPicklableError, match="a Registry"):
        send({"registry": [registry]}) if send is not copy.copy else send(registry)


def test_a_push_parser_says_what_to_send() -> None:
    streams = pytest.importorskip("pathcast.kernel.streams", exc_type=ImportError)
    with pytest.raises(NotPicklableError, match="a PushParser is neither"):
        pickle.dumps(streams.PushParser())
