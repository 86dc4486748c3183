"""The pieces that a peer owns: read, and changed one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pathcast.dht.courier import Courier
from pathcast.dht.messages import RECORD_MAX, Value
from pathcast.dht.piece_records import PieceRecord, decoded_piece, encoded_piece
from pathcast.dht.substrate import Substrate

_TRIES = 20
_CHANGES_MAX = 500
"""Changes of one write: others, and what has to come first, are not behind thousands."""
_KNOWN_MAX = 4096


@dataclass(frozen=True, slots=True)
class _Change:
    make: Callable[[PieceRecord], PieceRecord]
    then: Callable[[PieceRecord | None], None]
    is_first: bool
    takes_out: bool


class _Known(NamedTuple):
    """A piece that was decoded or written, and its version."""

    version: int
    record: PieceRecord


class PieceStore:
    """Pieces of one peer.

    Args:
        substrate: Where records are.
        courier: For timers.
        retry_seconds: Before a record is read again that could not be.
    """

    def __init__(self, substrate: Substrate, courier: Courier, retry_seconds: float) -> None:
        self._substrate = substrate
        self._courier = courier
        self._retry_seconds = retry_seconds
        self._known: dict[str, _Known] = {}
        self._readers: dict[str, list[Callable[[PieceRecord | None], None]]] = {}
        self._changes: dict[str, list[_Change]] = {}
        self._changed: dict[str, None] = {}
        self._being_made: dict[str, int] = {}
        self._busy: set[str] = set()
        self._resting: set[str] = set()

    def read(self, key: str, then: Callable[[PieceRecord | None], None]) -> None:
        """Return the value of a key; None if the peer does not own it, or is in doubt."""
        self._readers.setdefault(key, []).append(then)
        self._go_on(key)

    def change(
        self,
        key: str,
        change: Callable[[PieceRecord], PieceRecord],
        then: Callable[[PieceRecord | None], None],
        *,
        first: bool = False,
        takes_out: bool = False,
    ) -> None:
        """Change what is under a key when the event is over, with all else that changes it then.

        Args:
            key: Of the piece.
            change: Gives what is new; may be called several times.
            then: Gets what is new, or None if this peer cannot store it (any more), or no record
                can hold it; then it may have been stored all the same.
            first: Before all that waits, and with twice the room: whoever makes a full record
                smaller keeps for a while what it takes out.
            takes_out: With twice the room: it makes a full record smaller, or little larger.
        """
        queue = self._changes.setdefault(key, [])
        place = self._being_made.get(key, 0) if first else len(queue)
        queue.insert(place, _Change(change, then, first, takes_out or first))
        if not self._changed:
            self._courier.at_end(self._begin)
        self._changed[key] = None

    def _begin(self) -> None:
        """The event is over."""
        keys, self._changed = self._changed, {}
        for key in keys:
            self._go_on(key)

    def _go_on(self, key: str) -> None:
        if key in self._busy:
            return
        if key in self._readers:
            self._busy.add(key)
            self._read(key, _TRIES)
        elif key in self._changes and key not in self._resting:
            self._busy.add(key)
            self._change(key, _TRIES)

    def _read(self, key: str, left: int) -> None:
        def has_read(value: Value | None) -> None:
            if not self._substrate.is_whole(key):
                value = None
            if value is None and left and self._substrate.owns(key):
                self._again(lambda: self._read(key, left - 1))
                return
            held = None if value is None else self._decoded(key, value)
            self._busy.discard(key)
            for then in self._readers.pop(key):
                then(held)
            self._go_on(key)

        self._substrate.read(key, has_read)

    def _change(self, key: str, left: int) -> None:
        queue = self._changes[key]

        def has_read(value: Value | None) -> None:
            if value is None:
                stored(None, 0)
                return
            before = self._decoded(key, value)
            count = 1 if queue[0].is_first else min(len(queue), _CHANGES_MAX)
            records, data = self._made(before, queue[:count])
            while len(data) > _room(queue[:count]) and count > 1:
                count //= 2
                records, data = self._made(before, queue[:count])
            record = records[-1]
            self._being_made[key] = count

            def written(is_stored: bool) -> None:
                if is_stored:
                    self._know(key, value.version + 1, record)
                stored(records if is_stored else None, count)

            if record == before:
                if is_kept:
                    self._change(key, left - 1)
                else:
                    stored(records, count)
            elif len(data) > _room(queue[:count]):
                given_up(queue[:1])
            else:
                self._substrate.write(key, data, value.version, written)

        def stored(records: list[PieceRecord] | None, count: int) -> None:
            if records is None and left and self._substrate.owns(key):
                self._again(lambda: self._change(key, left - 1))
                return
            if records is None:
                given_up(list(queue))
                return
            done = queue[:count]
            made(len(done))
            for each, record in zip(done, records, strict=True):
                each.then(record)

        def given_up(changes: Sequence[_Change]) -> None:
            made(len(changes))
            for each in changes:
                each.then(None)

        def made(count: int) -> None:
            del queue[:count]
            self._being_made.pop(key, None)
            self._busy.discard(key)
            if queue:
                self._rest(key)
            else:
                del self._changes[key]
            self._go_on(key)

        # What is here is the newest as a rule; if not, the change is refused, and what is is read.
        is_kept = left == _TRIES
        if is_kept:
            has_read(self._substrate.kept(key))
        else:
            self._substrate.read(key, has_read)

    def _made(
        self, before: PieceRecord, changes: Sequence[_Change]
    ) -> tuple[list[PieceRecord], bytes]:
        """Apply changes in order; the result of each, and the last value."""
        records = []
        for each in changes:
            before = each.make(before)
            records.append(before)
        return records, encoded_piece(before)

    def _rest(self, key: str) -> None:
        """A piece that many change is stored now and then, not for each of them."""

        def has_rested() -> None:
            self._resting.discard(key)
            self._go_on(key)

        self._resting.add(key)
        self._again(has_rested)

    def _again(self, then: Callable[[], None]) -> None:
        self._courier.after(self._retry_seconds, then)

    def _decoded(self, key: str, value: Value) -> PieceRecord:
        known = self._known.get(key)
        if known is not None and known.version == value.version:
            return known.record
        record = decoded_piece(key, value.value)
        self._know(key, value.version, record)
        return record

    def _know(self, key: str, version: int, record: PieceRecord) -> None:
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[key] = _Known(version, record)


def _room(changes: Sequence[_Change]) -> int:
    """Bytes that a record may have after some changes."""
    return RECORD_MAX if all(each.takes_out for each in changes) else RECORD_MAX // 2
