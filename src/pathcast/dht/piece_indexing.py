"""Queries come to their pieces, and go; so do pieces that were cut off.

A query is asked of the start state's piece first, and goes by links: each says, before it is passed
on, that what is behind it reads what the query reads. Where no link covers its key, it stays. It is
acknowledged when every peer that has read a piece before, its owner or with a copy of it, has read
it anew.

Source: 000, section 4.2, procedure 1, over pieces in place of states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from pathcast.dht.acknowledging import Acknowledging
from pathcast.dht.courier import Courier
from pathcast.dht.identifiers import identifier, is_in_range, state_path
from pathcast.dht.messages import Done, Later, Reply, RequestRefused, Value, from_wire
from pathcast.dht.piece_cutting import Cutting
from pathcast.dht.piece_messages import (
    FetchPiece,
    IndexQuery,
    Lost,
    Relink,
    RemoveQuery,
    TakePiece,
)
from pathcast.dht.piece_records import (
    PieceRecord,
    covering,
    decoded_piece,
    encoded_piece,
    with_entry,
    with_link_to,
    with_passed,
    without_entry,
)
from pathcast.dht.piece_sharing import PieceSharing
from pathcast.dht.piece_store import PieceStore
from pathcast.dht.recent import Recent
from pathcast.dht.substrate import Substrate

Answer = Callable[[Reply], None]
_LOST_MAX = 64
_TAKEN_MAX = 20_000
_TAKEN_SECONDS = 120.0
"""Later than that nobody puts the same question again."""


class PieceIndexing:
    """Indexes the queries that come to a peer's pieces.

    Args:
        substrate: For the keys that are its own.
        courier: For what is passed on.
        store: Its pieces.
        cutting: Looks at what has grown.
        sharing: Says who may have copies.
        settle_seconds: After it was stored, so long until every peer sees a change.
        retry_seconds: Before it looks again whether a piece is there.
        tries: How often.
        now: The time.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        store: PieceStore,
        cutting: Cutting,
        sharing: PieceSharing,
        settle_seconds: float,
        retry_seconds: float,
        tries: int,
        now: Callable[[], float],
    ) -> None:
        self._substrate = substrate
        self._courier = courier
        self._store = store
        self._cutting = cutting
        self._sharing = sharing
        self._acknowledging = Acknowledging(courier, settle_seconds)
        self._retry_seconds = retry_seconds
        self._tries = tries
        self._taken = Recent[tuple[object, ...], None](_TAKEN_SECONDS, _TAKEN_MAX, now)
        self._made: dict[tuple[bytes, bytes, int], dict[str, bool]] = {}

    def change(self, asked: IndexQuery | RemoveQuery, answer: Answer) -> None:
        """Put a query into a piece or take it out, or pass it on to where it belongs.

        Raises:
            PeerError: "dht.key"; no state has its key.
        """
        state_path(asked.key)
        if not self._substrate.owns(asked.piece):
            answer(Later())
            return
        answer(Done())
        if isinstance(asked, IndexQuery):
            question = "index", asked.entry.registration
        else:
            question = "remove", asked.registration
        # One that is put again on each of its ways would be done so many times their number.
        taken = (*question, asked.key, asked.piece, asked.attempt)
        if taken not in self._taken:
            self._taken.put(taken, None)
            self._change(asked, self._tries)

    def _change(self, asked: IndexQuery | RemoveQuery, left: int) -> None:
        def change(record: PieceRecord) -> PieceRecord:
            if not record.is_there:
                return record
            link = covering(asked.key, record.links)
            if isinstance(asked, RemoveQuery):
                if link is not None:
                    return record
                return without_entry(record, asked.key, asked.registration)
            if link is not None:
                return with_passed(record, link, asked.key)
            return with_entry(record, asked.key, asked.entry)

        def changed(record: PieceRecord | None) -> None:
            if record is None:
                # It has become somebody else's, or cannot be stored.
                self._acknowledging.is_lost(asked)
                return
            link = covering(asked.key, record.links)
            if not record.is_there:
                if left:
                    again = self._retry_seconds
                    self._courier.after(again, lambda: self._change(asked, left - 1))
                else:
                    self._acknowledging.is_lost(asked)
            elif link is not None:
                piece = record.links[link].piece
                self._acknowledging.pass_on(piece, replace(asked, piece=piece))
            else:
                self._acknowledging.indexed(asked)
            self._cutting.look(asked.piece, record)

        takes_out = isinstance(asked, RemoveQuery)
        self._store.change(asked.piece, change, changed, takes_out=takes_out)

    def fetch(self, sender: str, asked: FetchPiece, answer: Answer) -> None:
        """Give a peer a copy of a piece: its states and links, or all if the peer shares it."""
        piece = asked.piece
        may_have = not asked.with_queries or self._sharing.may_have(piece, sender, asked.work)
        if self._substrate.owns(piece) and not may_have:
            answer(RequestRefused())
            return

        def has_read(value: Value | None) -> None:
            if value is None or not self._substrate.is_whole(piece):
                answer(Later())
            elif value.version == asked.version:
                answer(Value(None, value.version))
            else:
                record = decoded_piece(piece, value.value)
                copy = replace(record, removed=(), leaving={})
                if not asked.with_queries:
                    copy = replace(copy, entries={key: {} for key in record.entries})
                answer(Value(encoded_piece(copy), value.version))
                self._cutting.look(piece, record)

        self._substrate.read(piece, has_read)

    def take(self, asked: TakePiece, answer: Answer) -> None:
        """A piece that was cut off is there from now on, once it is stored."""
        if not self._substrate.owns(asked.piece):
            answer(Later())
            return

        is_question = not asked.record.is_there

        def changed(record: PieceRecord | None) -> None:
            if record is None:
                answer(Later())
            elif is_question:
                answer(RequestRefused() if record.is_there else Done())
            else:
                answer(Done() if record.cut == asked.record.cut else RequestRefused())

        def change(record: PieceRecord) -> PieceRecord:
            return record if record.is_there or is_question else asked.record

        self._store.change(asked.piece, change, changed)

    def lost(self, asked: Lost) -> bool:
        """Answer whether all pieces in a lost arc to which links lead are restored.

        They are made anew, with nothing in them, and queries come to them as they did before.
        """
        arc = from_wire(asked.low), from_wire(asked.high)
        loss = asked.low, asked.high, asked.number
        if loss not in self._made and len(self._made) >= _LOST_MAX:
            del self._made[next(iter(self._made))]
        made = self._made.setdefault(loss, {})

        def make(piece: str, roots: Sequence[str]) -> None:
            def is_made(reply: Reply | None) -> None:
                if isinstance(reply, Done | RequestRefused):
                    made[piece] = True
                else:
                    del made[piece]

            made[piece] = False
            self._courier.to_owner(piece, TakePiece(piece, PieceRecord(tuple(roots))), is_made)

        for key in self._substrate.own_keys():
            kept = self._substrate.kept(key)
            record = decoded_piece(key, kept.value if kept is not None else None)
            for piece in {link.piece for link in record.links.values()} - record.leaving.keys():
                if piece not in made and is_in_range(arc[0], identifier(piece), arc[1]):
                    make(piece, [key for key, its in record.links.items() if its.piece == piece])
        return all(made.values()) and self._substrate.is_complete

    def relink(self, asked: Relink, answer: Answer) -> None:
        """A state has gone to a new piece: the link to it, here or further on, is to say so."""
        if not self._substrate.owns(asked.piece):
            answer(Later())
            return
        answer(Done())

        def change(record: PieceRecord) -> PieceRecord:
            link = record.links.get(asked.key)
            # What has gone on is not sent back by a message that comes late: the piece in between
            # has not been told what is read by the queries that have passed it by.
            if link is None or link.piece != asked.left or asked.to == asked.piece:
                return record
            return with_link_to(record, asked.key, asked.to)

        def changed(record: PieceRecord | None) -> None:
            link = None if record is None else covering(asked.key, record.links)
            if record is not None and link is not None and link != asked.key:
                piece = record.links[link].piece
                self._courier.to_owner(piece, replace(asked, piece=piece))

        self._store.change(asked.piece, change, changed)
