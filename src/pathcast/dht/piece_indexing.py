"""Queries come to their pieces, and go; so do pieces that were cut off.

A query is asked of the start state's piece first, and goes by links: each says, before it is passed
on, that what is behind it reads what the query reads. Where no link covers its key, it stays. It is
acknowledged when every peer that has read a piece before, and every publisher that has read the
top, has read it anew.

Source: 000, section 4.2, procedure 1, over pieces in place of states.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from pathcast.dht.courier import Courier
from pathcast.dht.identifiers import state_path
from pathcast.dht.messages import Done, Later, Reply, Value
from pathcast.dht.piece_cutting import Cutting, PieceStore
from pathcast.dht.piece_records import (
    START_PIECE,
    PieceRecord,
    covering,
    decoded_piece,
    encoded_piece,
    with_entry,
    with_link_to,
    with_passed,
    without_entry,
)
from pathcast.dht.repetitions import Repetitions
from pathcast.dht.safeguards import Safeguards
from pathcast.dht.state_messages import (
    FetchTop,
    Indexed,
    IndexQuery,
    Relink,
    RemoveQuery,
    TakePiece,
)
from pathcast.dht.substrate import Substrate

__all__ = ["PieceIndexing"]

Answer = Callable[[Reply], None]


class PieceIndexing:
    """What a peer does for the queries that come to its pieces.

    Args:
        substrate: For the keys that are its own.
        courier: For what is passed on.
        store: Its pieces.
        cutting: Looks at what has grown.
        settle_seconds: After it was stored, so long until every peer sees a change.
        retry_seconds: Before it looks again whether a piece is there.
        tries: How often.
        safeguards: Only tests give others.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        store: PieceStore,
        cutting: Cutting,
        settle_seconds: float,
        retry_seconds: float,
        tries: int,
        safeguards: Safeguards,
    ) -> None:
        self._substrate = substrate
        self._courier = courier
        self._store = store
        self._cutting = cutting
        self._settle_seconds = settle_seconds
        self._retry_seconds = retry_seconds
        self._tries = tries
        self._safeguards = safeguards
        self._repetitions = Repetitions()

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
        if not self._repetitions.is_one(*question, asked.key, asked.piece, asked.attempt):
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
            if not self._safeguards.remembers_removals:
                record = replace(record, removed=())
            return with_entry(record, asked.key, asked.entry)

        def changed(record: PieceRecord | None) -> None:
            if record is None:
                # It has become somebody else's, or the subscriber begins again.
                self._courier.to_owner(asked.piece, asked)
                return
            link = covering(asked.key, record.links)
            if not record.is_there:
                if left:
                    again = self._retry_seconds
                    self._courier.after(again, lambda: self._change(asked, left - 1))
            elif link is not None:
                piece = record.links[link].piece
                self._courier.to_owner(piece, replace(asked, piece=piece))
            else:
                self._settled(asked)
            self._cutting.look(asked.piece, record)

        self._store.change(asked.piece, change, changed)

    def fetch_top(self, asked: FetchTop, answer: Answer) -> None:
        """Give a publisher the states and links of the start state's piece."""

        def has_read(value: Value | None) -> None:
            if value is None:
                answer(Later())
            elif value.version == asked.version:
                answer(Value(None, value.version))
            else:
                record = decoded_piece(START_PIECE, value.value)
                top = PieceRecord(entries={key: {} for key in record.entries}, links=record.links)
                answer(Value(encoded_piece(top), value.version))
                self._cutting.look(START_PIECE, record)

        self._substrate.read(START_PIECE, has_read)

    def take(self, asked: TakePiece, answer: Answer) -> None:
        """A piece that was cut off is there from now on, once it is stored."""
        if not self._substrate.owns(asked.piece):
            answer(Later())
            return
        self._store.change(
            asked.piece,
            lambda record: record if record.is_there else asked.record,
            lambda record: answer(Later() if record is None else Done()),
        )

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

    def _settled(self, asked: IndexQuery | RemoveQuery) -> None:
        if isinstance(asked, IndexQuery):
            subscriber = asked.entry.subscriber
            indexed = Indexed(asked.entry.registration, True)
        else:
            subscriber, indexed = asked.subscriber, Indexed(asked.registration, False)
        self._courier.after(
            self._settle_seconds if self._safeguards.waits_for_readers else 0.0,
            lambda: self._courier.to_peer(subscriber, indexed),
        )
