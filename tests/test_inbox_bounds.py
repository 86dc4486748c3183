"""Inboxes are bounded, and say what they did not take: whoever reads one can count to the last."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="msgspec is not installed: pip install 'pathcast[net]'")

import msgspec
import pyarrow.parquet as pq

from pathcast.overlay.deliveries import Dropped, InboxDelivery, Told, Undecided
from pathcast.spark.arrivals import InboxListing
from pathcast.spark.storage import Storage
from pathcast.transport.disk import Disk, InboxCursor, Waiting
from pathcast.transport.inbox_bounds import Gap, InboxBounds, InboxState


class Reader:
    """A subscriber that keeps what it has read, and where it is."""

    def __init__(self) -> None:
        self.got: dict[int, str] = {}
        self.dropped: set[int] = set()
        self.at = 0

    def take(self, read: Sequence[Waiting | Gap]) -> None:
        for each in read:
            first, last = each if isinstance(each, Gap) else (each.position, each.position)
            assert first == self.at + 1, "positions have no holes"
            if isinstance(each, Gap):
                self.dropped |= set(range(first, last + 1))
            else:
                assert each.delivery_id not in self.got.values(), "it came twice"
                self.got[each.position] = each.delivery_id
            self.at = last


@pytest.mark.parametrize("seed", range(20))
def test_every_delivery_is_read_or_in_a_gap_over_restarts(tmp_path: Path, seed: int) -> None:
    """Two subscribers, doubles, acknowledgements, and a process that begins anew."""
    chance = random.Random(seed)
    bounds = InboxBounds(chance.randint(1, 20), chance.choice([60, 400, 1 << 30]))
    disk = Disk(tmp_path / "d", bounds)
    sent: dict[str, list[str]] = {"ann": [], "bob": []}
    readers = {"ann": Reader(), "bob": Reader()}
    acknowledged = {"ann": 0, "bob": 0}
    for _ in range(120):
        rows, asked = [], {}
        for who in sent:
            for _ in range(chance.choice([0, 1, 3, 9])):
                again = sent[who] and chance.random() < 0.2
                id = chance.choice(sent[who]) if again else f"{who}{len(sent[who])}"
                if not again:
                    sent[who].append(id)
                rows.append((who, id, bytes(chance.randint(0, 50))))
            if chance.random() < 0.3:
                asked[who] = acknowledged[who] = chance.randint(acknowledged[who], readers[who].at)
        came = disk.commit({}, rows, asked)
        for waiting in came.values():
            assert waiting == sorted(waiting)
        if chance.random() < 0.2:
            disk.close()
            disk = Disk(tmp_path / "d", bounds)
        for who, state in disk.inboxes().items():
            held = disk.waiting(who, state.cursor, 10**6)
            assert (state.waiting, state.bytes) == (
                len(held),
                sum(len(each.body) for each in held),
            )
            assert state.waiting <= bounds.deliveries_max
            assert state.bytes <= bounds.bytes_max
            assert state.last == len(sent[who])
        for who, reader in readers.items():
            if chance.random() < 0.5:
                reader.take(disk.read(who, reader.at, chance.randint(1, 9)))
    for who, reader in readers.items():
        while found := disk.read(who, reader.at, 7):
            reader.take(found)
        assert reader.at == len(sent[who])
        assert {*reader.got, *reader.dropped} == set(range(1, reader.at + 1))
        assert all(reader.got[at] == sent[who][at - 1] for at in reader.got)
    disk.close()


def test_what_is_known_of_an_inbox_is_the_same_when_it_is_counted_anew(tmp_path: Path) -> None:
    chance, bounds = random.Random(7), InboxBounds(8, 200)
    disk = Disk(tmp_path / "d", bounds)
    found: set[bool] = set()
    for number in range(300):
        rows = [("ann", f"{number}/{each}", bytes(chance.randint(0, 60))) for each in range(2)]
        at = disk.inboxes()["ann"].cursor + chance.randint(0, 4) if number else 0
        disk.commit({}, rows, {"ann": at})
        known = disk.inboxes()
        found.add(known["ann"].is_full)
        disk.close()
        disk = Disk(tmp_path / "d", bounds)
        assert disk.inboxes() == known
    assert found == {True, False}
    disk.close()


def test_a_full_inbox_takes_again_when_a_quarter_is_free_and_others_are_not_disturbed() -> None:
    disk = Disk(None, InboxBounds(8))
    disk.commit({}, [(who, f"d{n}", b"x") for n in range(10) for who in ("ann", "bob")])
    disk.commit({}, acknowledged={"ann": 1, "bob": 10})
    came = disk.commit({}, [(who, "d10", b"x") for who in ("ann", "bob")])
    assert came == {"ann": [], "bob": [Waiting(11, "d10", b"x")]}
    disk.commit({}, acknowledged={"ann": 2})
    came = disk.commit({}, [("ann", "d11", b"x")])
    assert came == {"ann": [Waiting(12, "d11", b"x")]}
    read = disk.read("ann", 7, 10)
    assert read == [Waiting(8, "d7", b"x"), Gap(9, 11), Waiting(12, "d11", b"x")]
    assert disk.inboxes()["ann"] == InboxState(12, 2, 7, 7)
    assert disk.inboxes()["ann"].dropped == 3
    # A gap that was acknowledged is not told again, and a double of what was dropped is none.
    came = disk.commit({}, [("ann", "d9", b"x")], {"ann": 11})
    assert came == {}
    assert disk.read("ann", 0, 10) == [Waiting(12, "d11", b"x")]
    disk.close()


def test_nothing_is_kept_of_inboxes_that_somebody_asks_for_and_nobody_has() -> None:
    disk = Disk(None)
    for number in range(50):
        assert disk.read(f"ann/{number}", 0, 9) == []
        disk.commit({}, acknowledged={f"ann/{number}": 7})
    assert (disk.inboxes(), disk._states) == ({}, {})
    disk.close()


def test_one_delivery_fits_into_an_empty_inbox_whatever_it_has() -> None:
    disk = Disk(None, InboxBounds(bytes_max=10))
    disk.commit({}, [("ann", "large", bytes(99)), ("ann", "next", b"")])
    assert disk.read("ann", 0, 9) == [Waiting(1, "large", bytes(99))]
    assert disk.read("ann", 1, 9) == [Gap(2, 2)]
    disk.close()


def test_ids_of_what_was_dropped_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathcast.transport.disk.REMEMBERED", 50)
    disk = Disk(None, InboxBounds(8))
    for number in range(200):
        disk.commit({}, [("ann", f"{number}/{each}", b"x") for each in range(7)])
        rows = disk._rows("select count(*) from deliveries")[0][0]
        assert rows <= 8 + 50 + 7
    assert disk.read("ann", 8, 9) == [Gap(9, 1400)]
    disk.commit({}, acknowledged={"ann": 1400})
    disk.commit({}, [("ann", "new", b"x")])
    assert disk.read("ann", 0, 9) == [Waiting(1401, "new", b"x")]
    disk.close()


def test_an_archive_notes_what_it_was_not_given_and_goes_on(tmp_path: Path) -> None:
    """Deliveries that were dropped, and messages that its profile could not be decided on."""
    told: list[Told] = [
        Dropped(1, 3),
        Undecided("archive/p", 1, "a", 1, 7, "m7", "limit.steps", "too many steps"),
        InboxDelivery("archive/p", 1, "a", 1, 8, "m8", (b"<m/>",)),
    ]
    waiting = [
        Waiting(at, f"d{at}", msgspec.msgpack.encode(each)) for at, each in enumerate(told, 3)
    ]

    class Broker:
        cursor = InboxCursor(5, 7)

        async def waiting(self, subscriber: str, after: int) -> AsyncIterator[list[Waiting]]:
            yield [each for each in waiting if each.position > after]

    arrivals, checkpoint = Storage(str(tmp_path / "arrivals")), Storage(str(tmp_path / "state"))
    network: Any = SimpleNamespace(client="archive")
    files: Any = SimpleNamespace(path="")
    listing = InboxListing(files, arrivals, checkpoint, network)
    asyncio.run(listing._fetch(Broker()))  # type: ignore[arg-type]
    assert listing.notes() == [
        ("3", "3 deliveries were dropped: the inbox was full"),
        ("m7", "archive/p has no answer for it: too many steps"),
    ]
    (path,) = (tmp_path / "arrivals").iterdir()
    assert pq.read_table(path).column("message_id").to_pylist() == ["m8"]
    assert listing._state.after == 5
