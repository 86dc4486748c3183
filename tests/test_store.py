"""The store: what is written is there, in order and whole; what cannot be kept is refused.

Every test runs on SQLite and on PostgreSQL. If these fail, a subscription is lost, or a reader of
the log misses a change or gets one that never was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_store import MemoryStore
from pathcast.errors import StoreError, UnusableRowError
from pathcast.store import (
    BrokerRecord,
    CatalogRecord,
    Lease,
    ProfileRecord,
    Record,
    Removal,
    SourceRecord,
    Store,
    check_record,
)
from store_cases import check_whole, profile

RECORDS: list[Record] = [
    profile("p1", namespaces={"x": "urn:x"}, labels={"tier": "gold"}, host="b1", address="u1"),
    profile("p2", steps=("drop //b", "rename //c d")),
    ProfileRecord(
        "p3", "ann", "//a", valid_from="2026-03-01T12:00+01:00", valid_until="2027-01-01"
    ),
    SourceRecord("s1", "s1:1", "eu/ch/bern", 1, 5000.0, 1024.0, "b1"),
    CatalogRecord("s1@1", "s1", 1, "<!ELEMENT a ANY>\n"),
    BrokerRecord("b1", "b1:1", "eu/ch", 1e9, 100_000, (1, 2), 3),
]


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store.open(store_url) as opened:
        yield opened


def test_records_of_every_kind_come_back_as_they_were(store: Store) -> None:
    assert store.write(RECORDS) == len(RECORDS)
    for position, record in enumerate(RECORDS, 1):
        kept = msgspec.structs.replace(record, version=position)
        assert store.get(type(record), record.id) == kept
        assert store.changes(position - 1, 1)[0].record == kept
    check_whole(store)


def test_changes_follow_each_other_and_a_removal_of_nothing_is_none(store: Store) -> None:
    assert store.write([profile("a"), profile("b")]) == 2
    assert store.write([profile("a", "//x"), Removal("profile", "b")]) == 4
    assert store.write([Removal("profile", "b"), Removal("profile", "never")]) == 4
    assert [change.id for change in check_whole(store)] == ["a", "b", "a", "b"]
    assert [change.position for change in store.changes(1, 2)] == [2, 3]
    assert store.changes(4) == []


def test_profiles_are_found_by_what_they_have(store: Store) -> None:
    store.write(
        [
            profile("p1", labels={"tier": "gold", "a'b": "x"}, host="b1"),
            profile("p2", labels={"tier": "tin"}, host="b1"),
            profile("p3", labels={"tier": "gold"}, host="b2", state="paused"),
        ]
    )

    def ids(**fields: object) -> list[str]:
        return [each.id for each in store.find(ProfileRecord, **fields)]  # type: ignore[arg-type]

    assert ids(host="b1") == ["p1", "p2"]
    assert ids(labels={"tier": "gold"}) == ["p1", "p3"]
    assert ids(labels={"tier": "gold"}, state="active") == ["p1"]
    assert ids(labels={"a'b": "x"}) == ["p1"]
    assert ids(owner="nobody") == []
    assert store.count(ProfileRecord, "host") == {("b1",): 2, ("b2",): 1}
    assert store.count(SourceRecord) == {(): 0}


def test_who_changes_what_it_has_not_read_is_refused(store: Store) -> None:
    store.write([profile("p")], check=True)
    read = store.get(ProfileRecord, "p")
    assert read is not None
    store.write([msgspec.structs.replace(read, query="//x")], check=True)
    for stale in (read, profile("p")):
        with pytest.raises(StoreError) as found:
            store.write([profile("q"), stale], check=True)
        assert found.value.code == "store.conflict"
        assert not found.value.retry
    assert store.get(ProfileRecord, "q") is None, "half of a write was done"
    # A profile that leaves and comes again never has a version that it had.
    store.write([Removal("profile", "p")])
    store.write([profile("p")])
    again = store.get(ProfileRecord, "p")
    assert again is not None
    assert again.version == 4


def test_a_request_is_done_once(store: Store) -> None:
    assert store.done("r1") is None
    store.write([profile("p1"), profile("p2")], request="r1")
    with pytest.raises(StoreError) as found:
        store.write([profile("p3")], request="r1")
    assert found.value.code == "store.requested"
    assert store.done("r1") == ("profile", "p1")
    store.write([Removal("profile", "p1")])
    assert store.done("r1") == ("profile", "p1"), "a late copy of it would be done again"
    check_whole(store)


def test_a_record_has_its_history_until_the_log_is_compacted(store: Store) -> None:
    before = time.time_ns() // 1000
    store.write([profile("a"), profile("b")])
    store.write([profile("a", "//c")])
    store.write([SourceRecord("a", "", "", 1, 1.0, 1.0, "")])
    store.write([Removal("profile", "a")])
    found = store.history(ProfileRecord, "a")
    assert [each.position for _, each in found] == [5, 3, 1]
    assert [each.record and each.record.query for _, each in found] == [None, "//c", "//a"]  # type: ignore[union-attr]
    assert all(before <= at <= time.time_ns() // 1000 for at, _ in found)
    assert [each.position for _, each in store.history(ProfileRecord, "a", 1)] == [5]
    store.compact(1)
    assert [each.position for _, each in store.history(ProfileRecord, "a")] == [5, 3]
    assert store.history(ProfileRecord, "nobody") == []


def test_compaction_drops_the_log_and_keeps_the_state(store: Store) -> None:
    store.write([profile("a"), profile("b")], request="r1")
    store.write([profile("c")], request="r2")
    store.write([Removal("profile", "c")])
    store.compact(4)
    store.compact(2)
    with pytest.raises(StoreError) as found:
        store.changes(3)
    assert found.value.code == "store.compacted"
    position, records = store.state(ProfileRecord)
    assert (position, [each.id for each in records]) == (4, ["a", "b"])
    assert store.changes(position) == []
    assert store.done("r1") == ("profile", "a")
    assert store.done("r2") is None
    assert store.write([profile("d")]) == 5
    assert [change.position for change in store.changes(position)] == [5]


@pytest.mark.parametrize("call", [lambda s: s.changes(7), lambda s: s.compact(7)])
def test_a_reader_of_another_database_is_told(store: Store, call: object) -> None:
    store.write([profile("a")])
    with pytest.raises(StoreError) as found:
        call(store)  # type: ignore[operator]
    assert found.value.code == "store.ahead"


HOSTILE = [
    (profile("p", "x" * 10_000_000), "row.length"),
    (profile("p", "é" * 600_000), "row.length"),
    (profile("x" * 10_000_000), "row.length"),
    (profile("p\0"), "row.character"),
    (profile("p", "//a[. = '\0']"), "row.character"),
    (profile("p", "//a\x0b"), "row.character"),
    (profile("p", "//a\ufffe"), "row.character"),
    (profile("p", "//\ud800"), "row.surrogate"),
    (profile("p", labels={"\udfff": "x"}), "row.surrogate"),
    (profile("p", labels={"a": "\0"}), "row.character"),
    (profile("p", labels={str(n): "" for n in range(65)}), "row.field"),
    (profile("p", labels=[]), "row.field"),
    (profile("p", labels={1: "x"}), "row.field"),
    (profile("p", deliver="everything"), "row.field"),
    (profile("p", state=None), "row.field"),
    (profile(""), "row.field"),
    (profile(7), "row.field"),  # type: ignore[arg-type]
    (profile("p", version=True), "row.field"),
    (ProfileRecord("p", "ann", "//a", steps=("drop //b\0",)), "row.character"),
    (ProfileRecord("p", "ann", "//a", steps=["drop //b"]), "row.field"),  # type: ignore[arg-type]
    (ProfileRecord("p", "ann", "//a", steps=("drop //b",) * 65), "row.field"),
    (ProfileRecord("p", "ann", "//a", steps=("b" * 5_000,)), "row.length"),
    (ProfileRecord("p", None, "//a"), "row.field"),  # type: ignore[arg-type]
    (ProfileRecord("p", "", "//a"), "row.field"),
    (ProfileRecord("p", "ann", "//a", valid_from="tomorrow"), "row.field"),
    (ProfileRecord("p", "ann", "//a", valid_until="0001-01-01T00:00+14:00"), "row.field"),
    (ProfileRecord("p", "ann", "//a", valid_until=7), "row.field"),  # type: ignore[arg-type]
    (
        ProfileRecord("p", "ann", "//a", valid_from="2026-03-01", valid_until="2026-03-01T00:00Z"),
        "row.field",
    ),
    (SourceRecord("s", "", "", 1, float("nan"), 1.0, ""), "row.field"),
    (SourceRecord("s", "", "", 1, float("inf"), 1.0, ""), "row.field"),
    (SourceRecord("s", "", "", -1, 1.0, 1.0, ""), "row.field"),
    (SourceRecord("s", "", "", 10**30, 1.0, 1.0, ""), "row.field"),
    (SourceRecord("s", "", "", "1", 1.0, 1.0, ""), "row.field"),  # type: ignore[arg-type]
    (CatalogRecord("s@1", "s", 1, "x" * (8 * 2**20 + 1)), "row.length"),
    (BrokerRecord("b", "", "", 1.0, 1, [1]), "row.field"),  # type: ignore[arg-type]
    (BrokerRecord("b", "", "", 1.0, 1, ("1",)), "row.field"),  # type: ignore[arg-type]
    (Removal("log", "p"), "row.field"),
    (Removal("profile", "\0"), "row.character"),
    ("a profile", "row.type"),
    (None, "row.type"),
]


@pytest.mark.parametrize(("row", "code"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_cannot_be_kept_is_refused(row: Record, code: str) -> None:
    with pytest.raises(UnusableRowError) as found:
        check_record(row)
    assert found.value.code == code
    assert len(str(found.value)) < 300


def test_a_refused_row_costs_the_whole_write_and_nothing_else(store: Store) -> None:
    store.write([profile("a")])
    bad: list[list[Record | Removal]] = [
        [profile("b"), profile("c\0")],
        [profile("b"), Removal("profile", "b")],
    ]
    for rows in bad:
        with pytest.raises(UnusableRowError):
            store.write(rows)
    with pytest.raises(UnusableRowError):
        store.write([profile("b")], request="\0")
    with pytest.raises(UnusableRowError):
        store.take("\0", "me", 1.0)
    for name in ("\0", "\ud800", "x" * 10_000_000, None):
        with pytest.raises(UnusableRowError):
            store.get(ProfileRecord, name)  # type: ignore[arg-type]
    for name in ("\0", "\ud800"):
        with pytest.raises(UnusableRowError):
            store.done(name)
        with pytest.raises(UnusableRowError):
            store.find(ProfileRecord, owner=name)
        with pytest.raises(UnusableRowError):
            store.find(ProfileRecord, labels={"a": name})
    assert [change.id for change in check_whole(store)] == ["a"]


NAMES = st.sampled_from(["a", "b", "Ünï 𝄞", "x'; DROP TABLE log; --", "%(id)s", ":id", "\\"])
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff", min_codepoint=32)
    | st.sampled_from("\t\n\r"),
    max_size=30,
)
PROFILES = st.builds(
    ProfileRecord,
    id=NAMES,
    owner=TEXTS.filter(bool),
    query=TEXTS,
    deliver=st.sampled_from(["fragment", "ids", "message"]),
    namespaces=st.dictionaries(TEXTS, TEXTS, max_size=2),
    labels=st.dictionaries(TEXTS, TEXTS, max_size=2),
)
WRITES = st.lists(
    PROFILES | st.builds(Removal, kind=st.just("profile"), id=NAMES),
    max_size=4,
    unique_by=lambda change: change.id,
)


def test_any_history_is_its_log(store: Store) -> None:
    # One database for all examples, which only adds histories to each other.
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(WRITES, max_size=5))
    def run(writes: list[list[Record | Removal]]) -> None:
        before = store.position
        model = {each.id: each for each in store.state(ProfileRecord)[1]}
        for changes in writes:
            position = store.write(changes)
            for change in changes:
                model.pop(change.id, None)
                if isinstance(change, ProfileRecord):
                    model[change.id] = change
            assert position == store.position
        found = store.state(ProfileRecord)[1]
        assert {each.id for each in found} == set(model)
        for each in found:
            assert msgspec.structs.replace(each, version=0) == msgspec.structs.replace(
                model[each.id], version=0
            )
        assert len(store.changes(before)) == store.position - before

    run()
    check_whole(store)


CHECKED = st.lists(
    st.tuples(
        st.sampled_from(["write", "check", "take", "fence", "request"]),
        NAMES,
        st.integers(0, 3),
    ),
    max_size=12,
)


def test_the_store_in_memory_does_what_the_databases_do(store: Store) -> None:
    # Names are told apart by example, since the database is one for all of them.
    count = 0

    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(CHECKED)
    def run(steps: list[tuple[str, str, int]]) -> None:
        nonlocal count
        count += 1
        stores: list[Store | MemoryStore] = [store, MemoryStore(clock=lambda: 0.0)]
        begin = store.position
        told: list[list[object]] = [[], []]
        for each, said in zip(stores, told, strict=True):
            offset = begin if each is store else 0
            held: Lease | None = None
            for what, name, number in steps:
                row = profile(f"{count}/{name}", version=offset + number if number else 0)
                try:
                    if what == "take":
                        # Holders come and go: every lease is over at once.
                        holder = None if number else held
                        held = each.take(f"{count}", "me", 0.0, holder) or held
                        said.append(held)
                    elif what == "fence":
                        old = Lease(f"{count}", "me", number)
                        said.append(each.write([row], lease=old) - offset)
                    elif what == "request":
                        request = f"{count}/{number}"
                        said.append(each.done(request))
                        said.append(each.write([row], request=request) - offset)
                    elif number == 3 and what == "write":
                        said.append(each.write([Removal("profile", row.id)]) - offset)
                    else:
                        said.append(each.write([row], check=what == "check") - offset)
                except StoreError as error:
                    said.append(error.code)
                kept = each.get(ProfileRecord, row.id)
                said.append(kept and kept.version - offset)
            said.append([(c.id, c.record is None) for c in each.changes(offset)])
        assert told[0] == told[1]

    run()
