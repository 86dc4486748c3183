"""Index, snapshot, matcher and results keep their word on every engine.

If one of these fails, a caller gets results for the wrong message, pays for what was not asked, or
is not told that something went wrong.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from every_engine import engines
from oracles.engines import EngineName, made_by, running
from pathcast import Limits, Query, Registry, Snapshot
from pathcast.engine import ERROR_TYPE, MATCHES_TYPE
from pathcast.engine.messages import message_column
from pathcast.engine.results import QueryIds
from pathcast.errors import (
    ConfigError,
    DuplicateQueryError,
    EncodingError,
    IllFormedMessageError,
    LimitExceededError,
    MessageError,
    PathcastError,
    QuerySyntaxError,
    UnknownQueryError,
)
from pathcast.kernel.registry import KernelRegistry
from pathcast.model import CACHE_BYTES_MAX, BatchStats, MessageBytes, StoredAnswer

MESSAGES: list[bytes | None] = [b"<a><b/></a>", b"<a", None, b"<c/>", b"", b"<a><b/><c/></a>"]
EXPECTED = [["q1", "q3"], [], [], ["q2"], [], ["q1", "q2", "q3"]]


def index_of(engine: EngineName, limits: Limits | None = None) -> Registry:
    index = made_by(engine, Registry, limits=limits)
    report = index.add([Query("q3", "//b"), Query("q2", "//c"), Query("q1", "/a/b")])
    assert (report.accepted, report.rejected) == (3, {})
    return index


# Choosing an engine.


def test_the_kernel_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that the plain NFA answers are counted, so that the switch shows."""
    for said, is_plain in ((None, False), ("", False), ("kernel", False), ("nfa", True)):
        monkeypatch.delenv("PATHCAST_ENGINE", raising=False)
        if said is not None:
            monkeypatch.setenv("PATHCAST_ENGINE", said)
        stats = index_of("kernel").match(MESSAGES).stats
        assert (stats.nfa_messages > 0) == is_plain, said


@pytest.mark.parametrize("name", ["turbo", "reference"])
def test_unknown_engines_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHCAST_ENGINE", name)
    with pytest.raises(ConfigError, match=f"PATHCAST_ENGINE: '{name}' is not one of"):
        Registry()


def test_a_missing_kernel_is_an_error_and_no_fallback(tmp_path: Path) -> None:
    """In a process of its own: who has imported the kernel keeps it."""
    tried = """
import subprocess
import sys
sys.modules["pathcast_kernel"] = None
from pathcast import Registry, Snapshot
from pathcast.errors import KernelMissingError
for attempt in (Registry, Registry, lambda: Snapshot.open("none")):
    try:
        attempt()
    except KernelMissingError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", tried], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("pip install pathcast-kernel") == 3


# Registration.


@engines
def test_reports(engine: EngineName) -> None:
    index = index_of(engine)
    report = index.add(
        [
            Query("ok", "/d"),
            Query("q1", "/e"),
            Query("bad", "/a["),
            Query("variable", "/a[b = $c]"),
            Query("ok", "/f"),
            Query("ns", "/p:a"),
        ]
    )
    assert report.accepted == 1
    kinds = {query_id: type(error) for query_id, error in report.rejected.items()}
    assert kinds == {
        "q1": DuplicateQueryError,
        "bad": QuerySyntaxError,
        "variable": QuerySyntaxError,
        "ok": DuplicateQueryError,
        "ns": QuerySyntaxError,
    }
    assert report.rejected["variable"].params["name"] == "c"
    assert len(index) == 4
    assert "ok" in index
    assert "bad" not in index
    assert index.freeze().query("ok").text == "/d"


@engines
def test_removal_is_all_or_nothing(engine: EngineName) -> None:
    index = index_of(engine)
    with pytest.raises(UnknownQueryError, match="no query has the id q9"):
        index.remove(["q1", "q9"])
    assert "q1" in index
    index.remove(["q1", "q1"])
    assert "q1" not in index
    assert len(index) == 2
    with pytest.raises(UnknownQueryError):
        index.remove(["q1"])
    index.remove("q2")
    assert len(index) == 1
    index.remove([])


@engines
def test_namespaces_of_index_and_query(engine: EngineName) -> None:
    index = made_by(engine, Registry, namespaces={"p": "urn:1", "": "urn:1"})
    report = index.add(
        [
            Query("index", "/p:a"),
            Query("own", "/p:a", {"p": "urn:2"}),
            Query("default", "/a"),
            Query("no-default", "/a", {"": ""}),
            Query("both", "/p:a/q:b", {"q": "urn:2"}),
        ]
    )
    assert not report.rejected
    batch = [
        b"<a xmlns='urn:1'><b xmlns='urn:2'/></a>",
        b"<a xmlns='urn:2'/>",
        b"<a/>",
    ]
    expected = [["both", "default", "index"], ["own"], ["no-default"]]
    assert [list(result.query_ids) for result in index.match(batch)] == expected
    snapshot = index.freeze()
    assert [list(result.query_ids) for result in snapshot.match(batch)] == expected
    assert snapshot.query("both").namespaces == {"p": "urn:1", "q": "urn:2", "": "urn:1"}


def test_namespaces_stay_though_a_merge_comes_between() -> None:
    # The handler runs on the thread that changes the registry, which `Registry` would let wait.
    registry = KernelRegistry(Limits(), 1, CACHE_BYTES_MAX)
    merged: set[int] = set()

    def merge(*_: object) -> None:
        merged.add(len(registry.freeze()))
        signal.setitimer(signal.ITIMER_REAL, 0.001)

    # A merge sorts the maps of namespaces, which come here in the opposite order.
    maps = [{"p": f"urn:{number}"} for number in (3, 2, 1)]
    queries = [Query(f"q{number}", "/p:a", maps[number % 3]) for number in range(40_000)]
    handler = signal.signal(signal.SIGALRM, merge)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        assert not registry.register(queries, {}).rejected
    finally:
        # Nothing that is under way begins it again, and an alarm would end the process.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert merged & set(range(1, len(queries))), "no merge came between"
    for query in queries:
        found = registry.subscription(query.id)
        assert (found.query, found.namespaces) == (query.text, query.namespaces)


# Results.


@engines
def test_batch_results(engine: EngineName) -> None:
    batch = index_of(engine).match(MESSAGES)
    assert len(batch) == len(MESSAGES)
    assert [list(result.query_ids) for result in batch] == EXPECTED
    assert [isinstance(result.error, IllFormedMessageError) for result in batch] == [
        False, True, False, False, True, False,
    ]  # fmt: skip
    assert batch[2].error is None
    assert list(batch[-1].query_ids) == EXPECTED[-1]
    assert [list(result.query_ids) for result in batch[3:]] == EXPECTED[3:]
    with pytest.raises(IndexError):
        batch[6]
    with pytest.raises(IndexError):
        batch[-7]


@engines
def test_numbers_and_ids_belong_together(engine: EngineName) -> None:
    snapshot = index_of(engine).freeze()
    batch = snapshot.match(MESSAGES)
    for result, expected in zip(batch, EXPECTED, strict=True):
        numbers = list(result.query_numbers)
        assert numbers == sorted(numbers)
        assert sorted(snapshot.query_ids[number] for number in numbers) == expected
        assert len(result.query_ids) == len(result.query_numbers) == len(expected)
    assert sorted(snapshot.query_ids) == ["q1", "q2", "q3"]
    assert snapshot.query("q2") == Query("q2", "//c")
    with pytest.raises(UnknownQueryError):
        snapshot.query("q9")


def answered(numbers: list[int], ids: list[str]) -> StoredAnswer:
    """An engine's answer to one message."""
    return StoredAnswer(pa.array([numbers], MATCHES_TYPE), (), None, BatchStats(), ids)


def test_ids_are_sequences() -> None:
    ids = QueryIds(answered([2, 0], ["b", "x", "a"]), 0)
    assert len(ids) == 2
    assert list(ids) == ["a", "b"]
    assert ids[0] == "a"
    assert ids[-1] == "b"
    assert ids[:1] == ["a"]
    assert "b" in ids
    assert "x" not in ids
    assert ids == ["a", "b"]
    assert list(reversed(ids)) == ["b", "a"]
    assert ids.index("b") == 1
    assert repr(ids) == "QueryIds(['a', 'b'])"


def test_no_id_is_looked_up_before_it_is_asked_for() -> None:
    """A result of 20,000 matches that nobody reads must not cost 20,000 look-ups."""

    class Untouchable(list[str]):
        def __getitem__(self, index: object) -> str:  # type: ignore[override]
            raise AssertionError("an id was looked up")

    ids = QueryIds(answered([0, 1], Untouchable(["a", "b"])), 0)
    assert len(ids) == 2
    with pytest.raises(AssertionError, match="looked up"):
        list(ids)


@engines
def test_stats(engine: EngineName) -> None:
    stats = index_of(engine).match(MESSAGES).stats
    assert stats.messages == 5
    assert stats.bytes == sum(len(message) for message in MESSAGES if message)
    assert stats.refused == 2
    assert stats.matches == 6
    assert stats.nodes == 6
    assert stats.parsing_ns > 0
    assert stats.matching_ns > 0
    assert (stats + BatchStats()).to_dict() == stats.to_dict()
    if engine in ("nfa", "reference"):
        assert stats.nfa_messages == 3


# Arrow.


@engines
@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()], ids=str)
def test_arrow_arrays(engine: EngineName, type_: pa.DataType) -> None:
    snapshot = index_of(engine).freeze()
    batch = snapshot.match(pa.array(MESSAGES, type_))
    assert batch.matches.type == MATCHES_TYPE
    assert batch.errors.type == ERROR_TYPE
    batch.matches.validate(full=True)
    batch.errors.validate(full=True)
    assert [
        None if row is None else sorted(batch.query_ids[number] for number in row)
        for row in batch.matches.to_pylist()
    ] == [["q1", "q3"], [], None, ["q2"], [], ["q1", "q2", "q3"]]
    errors = batch.errors.to_pylist()
    assert [error is None for error in errors] == [True, False, True, True, False, True]
    assert errors[1]["line"] == 1
    assert errors[1]["code"]
    assert errors[1]["message"]
    assert batch.stats.refused == 2


@engines
def test_arrow_slices_and_chunks(engine: EngineName) -> None:
    """Offsets of slices are honoured, and chunks come back as chunks."""
    whole = pa.array([b"<zz/>", *MESSAGES, b"<zz/>"], pa.binary())
    snapshot = index_of(engine).freeze()
    for matcher in (snapshot, index_of(engine)):
        expected = matcher.match(pa.array(MESSAGES, pa.binary()))
        sliced = matcher.match(whole.slice(1, 6))
        assert sliced.matches.equals(expected.matches)
        assert sliced.errors.equals(expected.errors)
        chunked = matcher.match(pa.chunked_array([whole.slice(1, 2), whole.slice(3, 4)]))
        assert isinstance(chunked.matches, pa.ChunkedArray)
        assert chunked.matches.to_pylist() == expected.matches.to_pylist()
        assert chunked.errors.to_pylist() == expected.errors.to_pylist()
        assert chunked.stats.messages == 5
        results = matcher.match(pa.chunked_array([whole.slice(1, 2), whole.slice(3, 4)]))
        assert [list(result.query_ids) for result in results] == EXPECTED
        assert isinstance(results[4].error, IllFormedMessageError)


@engines
def test_empty_batches(engine: EngineName) -> None:
    matcher = index_of(engine).freeze()
    assert list(matcher.match([])) == []
    assert len(matcher.match(pa.array([], pa.binary())).matches) == 0
    assert len(matcher.match(pa.chunked_array([], pa.binary())).matches) == 0
    nulls = matcher.match(pa.nulls(2))
    assert nulls.matches.to_pylist() == [None, None]
    assert nulls.errors.to_pylist() == [None, None]


@engines
@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()], ids=str)
def test_text_is_utf_8_whatever_it_declares(engine: EngineName, type_: pa.DataType) -> None:
    """Text was decoded by somebody; its declaration tells of bytes that are gone."""
    index = made_by(engine, Registry)
    index.add([Query("q1", "/a[.='é']")])
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>"
    assert [list(result.query_ids) for result in index.match([text])] == [["q1"]]
    assert index.match(pa.array([text], type_)).matches.to_pylist() == [[0]]
    as_bytes = index.match([text.encode(), text.encode("latin-1")])
    assert [list(result.query_ids) for result in as_bytes] == [[], ["q1"]]


@pytest.mark.parametrize(
    "messages",
    [[b"<a/>", "<a/>"], pa.array([1]), 7, None],
    ids=["mixed", "number array", "number", "none"],
)
def test_what_is_no_message(messages: object) -> None:
    with pytest.raises(TypeError):
        index_of("reference").match(messages)


@engines
@pytest.mark.parametrize("message", [b"<c/>", "<c/>", bytearray(b"<c/>"), memoryview(b"<c/>")])
def test_one_message_has_one_result(engine: EngineName, message: MessageBytes | str) -> None:
    result = index_of(engine).match(message)
    assert list(result.query_ids) == ["q2"]
    assert result.error is None
    stored = pickle.loads(pickle.dumps(result))
    assert (list(stored.query_ids), list(stored.query_numbers)) == (["q2"], [1])


def test_bytes_like_messages() -> None:
    batch: list[bytes | bytearray | memoryview] = [
        b"<c/>", bytearray(b"<c/>"), memoryview(b"x<c/>y")[1:5],
    ]  # fmt: skip
    results = index_of("reference").match(batch)
    assert [list(result.query_ids) for result in results] == [["q2"]] * 3


def test_arrow_input_is_not_copied() -> None:
    array = pa.array([b"<a/>", b"<b/>"], pa.binary())
    column = message_column(array)
    (chunk,), encoding = column.arrays, column.encoding
    assert encoding is None
    assert chunk.buffers()[2].address == array.buffers()[2].address
    text = pa.array(["<a/>", "<b/>"], pa.string())
    column = message_column(text)
    (chunk,), encoding = column.arrays, column.encoding
    assert encoding == "UTF-8"
    assert chunk.buffers()[2].address == text.buffers()[2].address


# Limits and options.


@engines
def test_limits_of_index_and_matcher(engine: EngineName) -> None:
    index = index_of(engine, Limits(depth_max=1))
    (result,) = index.match([b"<a><b/></a>"])
    assert isinstance(result.error, LimitExceededError)
    assert result.error.params["limit"] == "depth_max"
    assert "Limits(depth_max=...)" in str(result.error)
    (result,) = index.freeze().match([b"<a><b/></a>"])
    assert isinstance(result.error, LimitExceededError)
    (result,) = running(index.freeze(), Limits()).match([b"<a><b/></a>"])
    assert result.error is None


@engines
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_options_are_checked(engine: EngineName, value: Any, tmp_path: Path) -> None:
    index_of(engine).freeze().save(tmp_path / "s")
    for make in (Registry, partial(Snapshot.open, tmp_path / "s")):
        with pytest.raises(ConfigError, match="threads"):
            made_by(engine, make, threads=value)
        with pytest.raises(ConfigError, match="cache_bytes_max"):
            made_by(engine, make, cache_bytes_max=value)


@engines
def test_errors_have_their_families_and_travel(engine: EngineName) -> None:
    """Errors of messages cross process boundaries: they pickle."""
    batch = index_of(engine).match(
        [b"<a", b"<?xml version='1.0' encoding='nonsense'?><a/>", b"<a>\xff</a>"]
    )
    kinds = [IllFormedMessageError, EncodingError, EncodingError]
    for result, kind in zip(batch, kinds, strict=True):
        error = result.error
        assert isinstance(error, kind)
        assert isinstance(error, MessageError)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.code, again.params) == (type(error), error.code, error.params)


# Snapshots and threads.


@engines
def test_snapshots_do_not_change(engine: EngineName, tmp_path: Path) -> None:
    index = index_of(engine)
    frozen = index.freeze()
    matcher = frozen
    version = frozen.version
    index.remove(["q1"])
    index.add([Query("q4", "//*")])
    index.freeze()
    assert [list(result.query_ids) for result in matcher.match(MESSAGES)] == EXPECTED
    assert len(frozen) == 3
    assert frozen.version == version != index.freeze().version
    frozen.save(tmp_path / "a")
    frozen.save(str(tmp_path / "a"))
    opened = made_by(engine, Snapshot.open, str(tmp_path / "a"))
    assert opened.version == version
    assert [list(result.query_ids) for result in opened.match(MESSAGES)] == EXPECTED


@engines
def test_a_live_matcher_sees_changes_from_the_next_batch_on(engine: EngineName) -> None:
    index = made_by(engine, Registry)
    assert list(index.match([b"<a/>"])[0].query_ids) == []
    index.add([Query("q1", "/a")])
    assert list(index.match([b"<a/>"])[0].query_ids) == ["q1"]
    index.add([Query("q0", "/*")])
    assert list(index.match([b"<a/>"])[0].query_ids) == ["q0", "q1"]
    index.remove(["q1"])
    assert list(index.match([b"<a/>"])[0].query_ids) == ["q0"]
    index.add([Query("q1", "/b")])
    assert list(index.match([b"<a/>"])[0].query_ids) == ["q0"]


@engines
def test_one_matcher_in_many_threads(engine: EngineName) -> None:
    """The index changes while four threads match; queries that stay are always found."""
    index = index_of(engine)
    failures: list[BaseException] = []
    stop = threading.Event()

    def match() -> None:
        try:
            while not stop.is_set():
                for result, expected in zip(index.match(MESSAGES), EXPECTED, strict=True):
                    assert [q for q in result.query_ids if not q.startswith("x")] == expected
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=match) for _ in range(4)]
    for thread in threads:
        thread.start()
    for round_ in range(20):
        ids = [f"x{round_}-{number}" for number in range(5)]
        index.add([Query(query_id, f"//b[{number}]") for number, query_id in enumerate(ids)])
        index.remove(ids)
        if round_ % 3 == 0:
            index.freeze()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_every_name_of_the_face_is_exported() -> None:
    import pathcast

    for name in pathcast.__all__:
        assert getattr(pathcast, name) is not None
    assert issubclass(PathcastError, Exception)
