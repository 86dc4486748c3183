"""Rows that cannot be used among rows that can: each is reported in its place, and alone.

If these fail, one bad row of a file, a topic or a data frame takes the rest of the call with it, or
leaves something behind that breaks later calls.
"""

from __future__ import annotations

import pickle
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from broker_engines import broker_engines
from every_engine import engines
from generators import random_message, random_query
from generators.flwr_messages import random_flwr_message
from generators.flwr_text import random_flwr
from generators.flwr_vocabulary import VOCABULARIES
from generators.hostile_rows import (
    hostile_message,
    hostile_namespaces,
    hostile_query,
    hostile_subscription,
    hostile_text,
    mixed,
    not_text,
    surrogate_text,
)
from oracles import ENGINES, missing_reason
from oracles.engines import EngineName, made_by
from partitioned_index import PartitionedIndex
from pathcast import Query, Registry, Snapshot, Subscription
from pathcast.errors import (
    ConfigError,
    DuplicateQueryError,
    PathcastError,
    QuerySyntaxError,
    SchemaError,
    SnapshotFormatError,
    UnknownQueryError,
    UnsupportedQueryError,
    UnusableRowError,
)
from pathcast.lint import lint
from pathcast.schema import parse_dtd
from pathcast_lab.bench.placement.hashed import HashPlacement

SEEDS = range(8)
VOCABULARY = next(iter(VOCABULARIES.values()))
NAMES = ("Zeitung", "desk 7", "caf\u00e9", "\U0001f600", "")


def check_errors(errors: Mapping[int, PathcastError | None], places: Iterable[int]) -> None:
    """Each bad row has an error of the catalogue in its place, which can be shown and sent."""
    assert list(errors) == sorted(places)
    for error in errors.values():
        assert isinstance(error, PathcastError)
        assert str(error).encode()
        assert error.message.encode()
        if isinstance(error, UnusableRowError):
            assert "?" not in error.message, "a parameter of the sentence is missing"
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error)


def random_queries(random: Random, count: int) -> list[Query]:
    shared = {"n": "urn:n"}
    found = []
    for number in range(count):
        namespaces: Any = random.choice([None, shared, {}, MappingProxyType({"m": "urn:m"})])
        found.append(Query(f"{random.choice(NAMES)} {number}", random_query(random), namespaces))
    return found


def answers(matcher: Any, messages: Sequence[Any]) -> list[tuple[list[str], str | None]]:
    return [
        (list(result.query_ids), None if result.error is None else result.error.code)
        for result in matcher.match(messages)
    ]


@engines
@pytest.mark.parametrize("seed", SEEDS)
def test_queries(engine: EngineName, seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    good = random_queries(random, 12)
    messages = [random_message(random) for _ in range(6)]
    rows, bad = mixed(random, good, hostile_query, count=9)
    index, control = made_by(engine, Registry), made_by(engine, Registry)
    control.add(good)
    expected = answers(control, messages)
    report = index.add(iter(rows))
    check_errors(report.errors, bad)
    assert report.accepted == len(index) == len(good)
    # The report by id leaves no row out but those with an id that another one has.
    assert set(report.rejected.values()) <= set(report.errors.values())
    assert report.rejected
    assert answers(index, messages) == expected
    frozen = index.freeze()
    assert frozen.version == control.freeze().version, "something of a bad row was kept"
    assert answers(frozen, messages) == expected
    frozen.save(tmp_path / "queries.snapshot")
    opened = made_by(engine, Snapshot.open, tmp_path / "queries.snapshot")
    assert answers(opened, messages) == expected
    # What is asked for by an id that nothing can have is unknown, and nothing is removed.
    for _ in range(8):
        name: Any = hostile_text(random, "x")
        assert name not in index
        ids = [good[0].id, name]
        random.shuffle(ids)
        for ask in (
            lambda ids=ids: index.remove(ids),
            lambda name=name: index.get(name),
            lambda name=name: frozen.query(name),
        ):
            with pytest.raises(UnknownQueryError) as caught:
                ask()
            assert str(caught.value).encode()
    assert answers(index, messages) == expected
    # Later calls work: all of it again, after the good ones have gone.
    index.remove([query.id for query in good])
    assert answers(index, messages) == [([], error) for _, error in expected]
    again = index.add(rows)
    assert {place: error.code for place, error in again.errors.items()} == {
        place: error.code for place, error in report.errors.items()
    }
    assert answers(index, messages) == expected


def random_subscriptions(random: Random, count: int) -> list[Subscription]:
    found = []
    for number in range(count):
        deliver: Any = random.choice(["fragment", "message", "ids"])
        is_flwr = random.random() < 0.5
        text = random_flwr(random, VOCABULARY).text if is_flwr else f"//{random.choice('abc')}"
        found.append(Subscription(f"s {number}", random.choice(NAMES), text, deliver))
    return found


def delivered(registry: Any, messages: Sequence[Any], ids: Any = None) -> list[dict[str, Any]]:
    batch = registry.deliver(messages, ids)
    assert batch.errors.num_rows == batch.stats.refused
    return list(batch.table.to_pylist())


def unordered(registry: Registry, messages: Sequence[Any]) -> list[dict[str, Any]]:
    """The same in whatever order: freezing gives subscriptions other numbers."""
    return sorted(delivered(registry, messages), key=itemgetter("delivery_id"))


@broker_engines
@pytest.mark.parametrize("seed", SEEDS)
def test_subscriptions(engine: EngineName, seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    good = random_subscriptions(random, 10)
    messages = [random_flwr_message(random, VOCABULARY) for _ in range(4)] + [b"<a><b/><c/></a>"]
    registry, control = made_by(engine, Registry, threads=1), made_by(engine, Registry, threads=1)
    taken = control.add(good)
    good = [row for place, row in enumerate(good) if place not in taken.errors]
    expected = unordered(control, messages)
    rows, bad = mixed(random, good, hostile_subscription, count=9)
    report = registry.add(iter(rows))
    check_errors(report.errors, bad)
    assert report.accepted == len(registry) == len(good)
    assert registry.version == control.version, "something of a bad row was kept"
    assert unordered(registry, messages) == expected
    assert [tuple(each) for each in registry.deliver(messages[-1], "m")] == [
        tuple(each) for each in control.deliver(messages[-1], "m")
    ]
    registry.freeze().save(tmp_path / "subscriptions.snapshot")
    opened = made_by(engine, Snapshot.open, tmp_path / "subscriptions.snapshot")
    assert unordered(made_by(engine, Registry.of, opened), messages) == expected
    for _ in range(8):
        name: Any = hostile_text(random, "x")
        assert name not in registry
        ids = [good[0].id, name]
        random.shuffle(ids)
        for ask in (
            lambda ids=ids: registry.remove(ids),
            lambda name=name: registry.get(name),
            lambda name=name: Registry().explain(name),
        ):
            with pytest.raises(UnknownQueryError):
                ask()
    assert unordered(registry, messages) == expected
    registry.remove([row.id for row in good])
    assert unordered(registry, messages) == []
    again = registry.add(rows)
    assert {place: error.code for place, error in again.errors.items()} == {
        place: error.code for place, error in report.errors.items()
    }
    assert unordered(registry, messages) == expected


@broker_engines
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["bytes", "text"])
def test_messages(engine: EngineName, seed: int, kind: str) -> None:
    random = Random(seed)
    queries = random_queries(random, 10)
    index = made_by(engine, Registry)
    index.add(queries)
    registry = made_by(engine, Registry, threads=1)
    registry.add([Subscription(f"s{n}", "desk", f"//{name}") for n, name in enumerate("abcd")])
    good: list[Any] = [random_message(random) for _ in range(8)]
    if kind == "text":
        good = [message.decode() for message in good]
    else:
        forms = (bytes, bytearray, memoryview)
        good = [random.choice(forms)(message) for message in good]

    def hostile(random: Random, message: Any) -> object:
        if kind == "text" and random.random() < 0.5:
            return surrogate_text(random, message)
        found = hostile_message(random, b"<a/>")
        is_bytes = isinstance(found, memoryview)
        return 5 if is_bytes and kind == "text" else found

    rows, bad = mixed(random, good, hostile, count=6)
    if kind == "bytes":
        # A missing message is no error.
        rows.append(None)
    fine = [place for place in range(len(rows)) if place not in bad]
    matchers = (index, index.freeze(), index)
    for matcher in matchers:
        expected = answers(matcher, [rows[place] for place in fine])
        batch = matcher.match(rows)
        check_errors(
            {place: result.error for place, result in enumerate(batch) if result.error},
            bad,
        )
        found = answers(matcher, rows)
        assert [found[place] for place in fine] == expected
        assert all(not found[place][0] for place in bad)
        assert batch.stats.refused == len(bad)
        assert batch.stats.messages == len(rows) - rows.count(None)
    names = [f"m{place}" for place in range(len(rows))]
    served = registry.deliver(rows, names)
    check_errors(
        {
            row: served.deliveries(row).error
            for row in range(len(rows))
            if served.deliveries(row).error
        },
        bad,
    )
    assert served.errors.column("row").to_pylist() == sorted(bad)
    assert served.table.to_pylist() == delivered(
        registry, [rows[place] for place in fine], [names[place] for place in fine]
    )


@broker_engines
@pytest.mark.parametrize("seed", SEEDS)
def test_ids_of_messages(engine: EngineName, seed: int) -> None:
    random = Random(seed)
    registry = made_by(engine, Registry, threads=1)
    registry.add([Subscription("all", "desk", "/*"), Subscription("b", "desk", "//b", "ids")])
    good = [None if random.random() < 0.2 else f"m{n}" for n in range(8)]
    rows, bad = mixed(random, [name or "" for name in good], _hostile_name, count=5)
    kept = iter(good)
    ids = [row if place in bad else next(kept) for place, row in enumerate(rows)]
    messages: list[bytes | None] = [f"<a><b>{n}</b></a>".encode() for n in range(len(ids))]
    fine = [place for place in range(len(ids)) if place not in bad]
    batch = registry.deliver(messages, ids)
    check_errors({row: batch.deliveries(row).error for row in sorted(bad)}, bad)
    assert {batch.deliveries(row).error for row in fine} == {None}
    assert batch.errors.column("row").to_pylist() == sorted(bad)
    assert len(set(batch.errors.column("message_id").to_pylist())) == len(bad)
    assert batch.stats.refused == len(bad)
    assert batch.table.to_pylist() == delivered(
        registry, [messages[place] for place in fine], [ids[place] for place in fine]
    )
    one = min(bad)
    assert str(registry.deliver(b"<a/>", ids[one]).error) == str(batch.deliveries(one).error)


def _hostile_name(random: Random, name: str) -> object:
    while (found := hostile_text(random, name)) is None:
        pass
    return found


def test_engines_say_the_same() -> None:
    # One error a place, whoever answers.
    said = set()
    for engine in ENGINES:
        if missing_reason(engine) is not None:
            continue
        random = Random(1)
        queries, _ = mixed(random, random_queries(random, 20), hostile_query, count=60)
        texts, _ = mixed(random, ["<a/>"] * 20, surrogate_text, count=40)
        index, registry = made_by(engine, Registry), made_by(engine, Registry, threads=1)
        report = index.add(queries)
        results = index.match(texts)
        served = registry.deliver(texts)
        assert [str(result.error) for result in results if result.error] == [
            str(served.deliveries(row).error) for row in served.errors.column("row").to_pylist()
        ]
        said.add(
            (
                tuple((place, str(error)) for place, error in report.errors.items()),
                tuple(None if each.error is None else each.error.code for each in results),
            )
        )
    assert len(said) == 1


class TestCalls:
    """What is wrong with a whole call is an error of the call, and changes nothing."""

    @pytest.mark.parametrize("rows", [5, None, "//a", b"//a", object()])
    def test_no_rows_of_queries(self, rows: Any) -> None:
        index = made_by("reference", Registry)
        with pytest.raises(TypeError):
            index.add(rows)
        assert len(index) == 0

    @pytest.mark.parametrize(
        ("row", "kind"),
        [
            (Query("q", "//a["), QuerySyntaxError),
            (Query("taken", "//b"), DuplicateQueryError),
            (Query(7, "//a"), UnusableRowError),  # type: ignore[arg-type]
            (Subscription("q", "ann", "//a", "pigeon"), UnsupportedQueryError),  # type: ignore[arg-type]
        ],
    )
    def test_one_row_that_cannot_be_used_is_raised(self, row: Any, kind: type[Exception]) -> None:
        """Nobody reads a report on one row: it would be lost in silence."""
        query = Query("taken", "//a")
        indexes = (
            made_by("reference", Registry),
            PartitionedIndex(HashPlacement(2), engine="reference"),
        )
        for index in indexes:
            assert index.add(query).accepted == 1
            with pytest.raises(kind):
                index.add(row)
            assert index.add([row]).accepted == 0
            assert len(index) == 1

    @pytest.mark.parametrize(
        ("row", "kind"),
        [
            (Subscription("q", "ann", "//a["), QuerySyntaxError),
            (Subscription("q", "ann", "//a", "by pigeon"), UnsupportedQueryError),  # type: ignore[arg-type]
            (Subscription("q", "ann", "//a", steps=("move //b",)), QuerySyntaxError),
            (Subscription("taken", "ann", "//b"), DuplicateQueryError),
            (Subscription("q", 7, "//a"), UnusableRowError),  # type: ignore[arg-type]
        ],
    )
    def test_one_subscription_that_cannot_be_used_is_raised(
        self, row: Any, kind: type[Exception]
    ) -> None:
        registry = made_by("reference", Registry)
        assert registry.add(Subscription("taken", "ann", "//a")).accepted == 1
        version = registry.version
        with pytest.raises(kind):
            registry.add(row)
        assert registry.add([row]).accepted == 0
        assert (len(registry), registry.version) == (1, version)

    @pytest.mark.parametrize("rows", [5, None, "//a", b"//a", object()])
    def test_no_rows_of_subscriptions(self, rows: Any) -> None:
        registry = made_by("reference", Registry)
        with pytest.raises(TypeError):
            registry.add(rows)
        assert len(registry) == 0

    @pytest.mark.parametrize("ids", [5, None, object()])
    def test_no_rows_of_ids(self, ids: Any) -> None:
        with pytest.raises(TypeError):
            made_by("reference", Registry).remove(ids)
        with pytest.raises(TypeError):
            made_by("reference", Registry).remove(ids)

    @pytest.mark.parametrize("ids", ["m", b"m", 5, pa.array([{"a": 1}])])
    def test_no_rows_of_ids_of_messages(self, ids: Any) -> None:
        with pytest.raises(TypeError):
            made_by("reference", Registry).deliver([b"<a/>"], ids)

    @pytest.mark.parametrize("seed", range(40))
    def test_namespaces_of_all(self, seed: int) -> None:
        namespaces: Any = hostile_namespaces(Random(seed))
        for make in (Registry, Registry):
            with pytest.raises(ConfigError, match=r"^namespaces: the ") as caught:
                made_by("reference", make, namespaces=namespaces)
            assert str(caught.value).encode()

    @pytest.mark.parametrize("seed", range(40))
    def test_a_query_to_explain(self, seed: int) -> None:
        random = Random(seed)
        index = made_by("reference", Registry)
        query = hostile_query(random, Query("q", "//a"))
        # What is no row is taken for an id.
        expected = UnusableRowError if isinstance(query, Query) else UnknownQueryError
        with pytest.raises((expected, QuerySyntaxError)):
            index.explain(query, b"<a/>")  # type: ignore[call-overload]
        message: Any = hostile_message(random, b"<a/>")
        found = index.explain(Query("q", "//a"), message)
        assert found.error is not None
        found = index.explain(Query("q", "//a"), surrogate_text(random, "<a/>"))
        assert found.error is not None


class TestSubscribing:
    def test_the_report_has_every_row_of_an_id(self) -> None:
        registry = made_by("reference", Registry)
        row = Subscription("s", "desk", "//a")
        report = registry.add([row._replace(query="//a["), row, row, row._replace(query="(")])
        assert report.accepted == 1
        assert [(place, type(error).__name__) for place, error in report.errors.items()] == [
            (0, "QuerySyntaxError"),
            (2, "DuplicateQueryError"),
            (3, "DuplicateQueryError"),
        ]
        assert list(report.rejected) == ["s"]

    @pytest.mark.parametrize("deliver", ["", "Ids", "by pigeon", "ids\udcff"])
    def test_a_way_to_deliver_that_does_not_exist(self, deliver: Any) -> None:
        report = made_by("reference", Registry).add([Subscription("s", "desk", "//a", deliver)])
        assert type(report.rejected["s"]) is UnsupportedQueryError
        assert str(report.rejected["s"]).encode()

    @broker_engines
    @pytest.mark.parametrize("when", ["before", "within", "after"])
    def test_an_interrupted_call_leaves_nothing(
        self, engine: EngineName, when: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Ctrl-C while subscriptions are taken: what the engine has and the registry does not know
        # would be delivered to nobody, and be an error of every later message.
        registry = made_by(engine, Registry, threads=1)
        registry.add(Subscription("stays", "desk", "//a"))
        version, backend = registry.version, registry._backend
        taking = backend.subscribe

        def interrupted(rows: Any, namespaces: Any, steps: Any) -> Any:
            if when != "before":
                taken = rows if when == "after" else rows[:2]
                own = {place: steps[place] for place in steps if place < len(taken)}
                taking(taken, namespaces, own)
            raise KeyboardInterrupt

        asked = [
            Subscription(f"s{n}", "desk", "//a", steps=("drop //b",) * (n % 2)) for n in range(4)
        ]
        monkeypatch.setattr(backend, "subscribe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            registry.add(asked)
        monkeypatch.undo()
        assert (len(registry), len(backend), registry.version) == (1, 1, version)
        assert [each.subscription_id for each in registry.deliver(b"<a/>")] == ["stays"]
        assert registry.add(asked).accepted == 4

    @broker_engines
    @pytest.mark.parametrize("is_done", [False, True])
    def test_an_interrupted_leaving_is_booked_as_it_went(
        self, engine: EngineName, is_done: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        registry = made_by(engine, Registry, threads=1)
        registry.add([Subscription("a", "desk", "//a"), Subscription("b", "desk", "//a")])
        backend = registry._backend
        leaving = backend.unsubscribe

        def interrupted(ids: Any) -> None:
            if is_done:
                leaving(ids)
            raise KeyboardInterrupt

        monkeypatch.setattr(backend, "unsubscribe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            registry.remove("a")
        assert len(registry) == len(backend) == (1 if is_done else 2)
        names = [each.subscription_id for each in registry.deliver(b"<a/>")]
        assert names == (["b"] if is_done else ["a", "b"])
        control = made_by(engine, Registry, threads=1)
        control.add([registry.get(name) for name in names])
        assert registry.version == control.version

    @broker_engines
    @pytest.mark.parametrize("change", ["add", "update", "remove"])
    @pytest.mark.parametrize("after", range(3))
    def test_an_interruption_between_the_books_leaves_them_right(
        self, engine: EngineName, change: str, after: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        registry = made_by(engine, Registry, threads=1)
        rows = [Subscription(f"s{n}", "desk", f"//a[@n = {n}]") for n in range(4)]
        if change != "add":
            registry.add(rows)
        books, calls = registry._set_version, 0
        assert registry.version

        def interrupted(said: Any) -> None:
            nonlocal calls
            calls += 1
            if calls > after or change == "add":
                raise KeyboardInterrupt

        monkeypatch.setattr(books, "came" if change == "add" else "left", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(registry, change)([row.id for row in rows] if change == "remove" else rows)
        monkeypatch.undo()
        found = list(registry.find())
        assert len(found) == len(registry)
        control = made_by(engine, Registry, threads=1)
        control.add(found)
        assert registry.version == control.version
        if change == "update":
            assert {row.id for row in found} == {row.id for row in rows}


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([b"m\xff", b"ok", None], pa.binary()),
        pa.StringArray.from_buffers(
            3, *(pa.array([b"m\xff", b"ok", None], pa.binary()).buffers()[i] for i in (1, 2, 0))
        ),
    ],
    ids=["binary", "string"],
)
def test_arrow_ids_that_are_not_utf8(ids: pa.Array) -> None:
    registry = made_by("reference", Registry)
    registry.add(Subscription("s", "desk", "/a"))
    batch = registry.deliver([b"<a/>"] * 3, ids)
    assert batch.errors.column("row").to_pylist() == [0]
    assert batch.table.column("message_id").to_pylist()[0] == "ok"
    assert len(batch) == 2


def test_a_missing_message_has_an_id() -> None:
    batch = made_by("reference", Registry).deliver([None, b"<a/>"])
    assert len(batch.message_ids.take([0, 1])) == 2
    assert batch.errors.num_rows == 0


def test_not_text_is_not_text() -> None:
    assert not any(isinstance(not_text(Random(seed)), str) for seed in range(200))


@pytest.mark.parametrize("seed", range(20))
def test_texts_of_schemas(seed: int) -> None:
    random = Random(seed)
    with pytest.raises(SchemaError) as caught:
        parse_dtd(surrogate_text(random, "<!ELEMENT a (b*)><!ELEMENT b EMPTY>"))
    assert str(caught.value).encode()


def test_a_text_is_no_longer_in_the_encoding_that_it_declares() -> None:
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><!ELEMENT caf\u00e9 EMPTY>"
    assert "caf\u00e9" in parse_dtd(text)


@pytest.mark.parametrize("seed", range(10))
def test_rows_to_lint(seed: int) -> None:
    random = Random(seed)
    rows, bad = mixed(random, random_queries(random, 6), hostile_query, count=6)
    report = lint(rows)
    refused = [each.query for each in report.findings if each.code == "PL001"]
    assert (report.queries, refused) == (len(rows), sorted(bad))
    good = lint([row for place, row in enumerate(rows) if place not in bad])
    others = [each for each in report.findings if each.code != "PL001"]
    assert [(each.code, each.query_id) for each in others] == [
        (each.code, each.query_id) for each in good.findings
    ]


class TestSnapshotFiles:
    """A file made by hand may name what no caller could have registered."""

    @engines
    def test_namespaces_of_queries(self, engine: EngineName, tmp_path: Path) -> None:
        path = tmp_path / "queries.snapshot"
        registry = made_by(engine, Registry)
        registry.add(Query("q", "//a", {"p": "urn:abc"}))
        registry.freeze().save(path)
        data = path.read_bytes()

        def opened(uri: bytes) -> Query:
            changed = data.replace(b'"urn:abc"', uri.ljust(9))
            assert len(changed) == len(data)
            path.write_bytes(_resealed(changed))
            return made_by(engine, Snapshot.open, path).query("q")

        assert opened(b'"urn"').namespaces == {"p": "urn"}
        for wrong in (b'"\\ud800"', b"12345", b"null"):
            with pytest.raises(SnapshotFormatError):
                opened(wrong)

    def test_namespaces_of_subscriptions(self, tmp_path: Path) -> None:
        path = tmp_path / "subscriptions.snapshot"
        registry = Registry()
        registry.add(Subscription("s", "desk", "//a", namespaces={"p": "urn:abc"}))
        registry.freeze().save(path)
        data = path.read_bytes()
        for wrong in (b'"\\ud800"', b"12345", b"null"):
            path.write_bytes(_resealed(data.replace(b'"urn:abc"', wrong.ljust(9))))
            with pytest.raises(SnapshotFormatError, match="namespaces"):
                Snapshot.open(path)


def _resealed(data: bytes) -> bytes:
    """A snapshot file with the checksums that its bytes have now."""
    head = data[:32] + struct.pack("<I", zlib.crc32(data[64:]))
    return head + struct.pack("<I", zlib.crc32(head)) + data[40:]
