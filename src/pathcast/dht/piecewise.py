"""The automaton in pieces, at one peer: indexing, running, cutting, and a publisher's way.

Credits, matches, records and courier are those of states.
"""

from __future__ import annotations

from collections.abc import Callable

from pathcast.dht.courier import Courier
from pathcast.dht.matching import Matching
from pathcast.dht.messages import Later, Reply
from pathcast.dht.piece_cutting import Cutting, PieceSettings
from pathcast.dht.piece_indexing import PieceIndexing
from pathcast.dht.piece_publishing import PieceWay
from pathcast.dht.piece_records import PieceRecord, decoded_piece, encoded_piece
from pathcast.dht.piece_running import PieceRunning
from pathcast.dht.publication_memory import PublicationMemory
from pathcast.dht.safeguards import Safeguards
from pathcast.dht.state_messages import (
    ExpandState,
    FetchState,
    FetchTop,
    GivenUp,
    HoldReplica,
    IndexQuery,
    Lost,
    RecExpandState,
    Relink,
    RemoveQuery,
    RunPieces,
    StateQuestion,
    TakePiece,
)
from pathcast.dht.state_store import StateStore
from pathcast.dht.substrate import CLOCK_RATES, Substrate

__all__ = ["Piecewise"]


class Piecewise:
    """What one peer does for pieces.

    Args:
        substrate: Its part of the structured overlay.
        courier: For what is sent.
        memory: Of publications.
        matching: For what is accepted.
        settings: The same for all.
        retry_seconds: Before something is looked for again.
        tries: How often.
        now: The time.
        safeguards: Only tests give others.

    Attributes:
        way: How publications are asked for.
        running: Counts what was run.
        cutting: Counts pieces that were cut off.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        memory: PublicationMemory,
        matching: Matching,
        settings: PieceSettings,
        retry_seconds: float,
        tries: int,
        now: Callable[[], float],
        safeguards: Safeguards,
    ) -> None:
        store = StateStore(substrate, courier, retry_seconds, _decoded, encoded_piece, safeguards)
        name = f"{substrate.me.life} {substrate.me.name}"
        self.cutting = Cutting(courier, store, settings, name)
        self.running = PieceRunning(
            substrate,
            courier,
            store,
            memory,
            matching,
            self.cutting,
            retry_seconds,
            tries,
            safeguards,
        )
        self.way = PieceWay(substrate.me.name, courier, settings.top_seconds, now)
        self._indexing = PieceIndexing(
            substrate,
            courier,
            store,
            self.cutting,
            substrate.settle_seconds + settings.top_seconds * CLOCK_RATES,
            retry_seconds,
            tries,
            safeguards,
        )

    def lost(self, asked: Lost) -> bool:
        """As `PieceIndexing.lost`."""
        return self._indexing.lost(asked)

    def asked(self, sender: str, asked: StateQuestion, answer: Callable[[Reply], None]) -> bool:
        """Answer a question about pieces (or states, of which there are none); else False."""
        match asked:
            case RunPieces():
                self.running.run(sender, asked, answer)
            case IndexQuery() | RemoveQuery():
                self._indexing.change(asked, answer)
            case FetchTop():
                self._indexing.fetch_top(asked, answer)
            case TakePiece():
                self._indexing.take(asked, answer)
            case Relink():
                self._indexing.relink(asked, answer)
            case RecExpandState() | ExpandState() | GivenUp() | HoldReplica() | FetchState():
                answer(Later())
            case _:
                return False
        return True


def _decoded(key: str, value: bytes | None) -> tuple[PieceRecord, PieceRecord]:
    record = decoded_piece(key, value)
    return record, record
