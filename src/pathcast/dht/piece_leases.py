"""Copies of pieces that other peers own, each used for some seconds after it was asked for.

Every publisher has a copy of the *top*, the start state's piece without its queries; whoever shares
a busy piece with its owner has one of that piece (`piece_sharing`). A copy that is used no more has
its version, so one that has not changed does not travel again.

Acknowledgements wait as long as a copy is used. So a publication that is published after
`Subscribed` meets the subscription in every copy, as it does at the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from pathcast.dht.courier import Courier
from pathcast.dht.messages import Reply, Value
from pathcast.dht.piece_messages import FetchPiece
from pathcast.dht.piece_records import PieceRecord, decoded_piece
from pathcast.dht.recent import Recent

_KEPT_SECONDS: Final = 60.0
_KEPT_MAX: Final = 64

Then = Callable[[PieceRecord | None, int], None]
"""Gets a copy, or None if there is none to be had, and the hops of the question for it."""


@dataclass(frozen=True, slots=True)
class _Lease:
    """A copy, its version, and when it has to be asked for again."""

    version: int
    record: PieceRecord
    until: float


class PieceLeases:
    """The copies that a peer has.

    Args:
        courier: Asks the owners.
        seconds: So long a copy is used, from when the question for it was put.
        now: The time.
    """

    def __init__(self, courier: Courier, seconds: float, now: Callable[[], float]) -> None:
        self._courier = courier
        self._seconds = seconds
        self._now = now
        self._held = Recent[tuple[str, bool], _Lease](_KEPT_SECONDS, _KEPT_MAX, now)
        self._waiting: dict[tuple[str, bool], dict[Hashable, tuple[float, Then]]] = {}

    def read(
        self,
        piece: str,
        waiter: Hashable,
        then: Then,
        *,
        with_queries: bool = False,
        work: Callable[[], float] = lambda: 0.0,
        tries: int | None = None,
    ) -> None:
        """Read a copy, at once or when its owner has answered.

        Args:
            piece: The key of the piece.
            waiter: Who waits; one that asks again waits once, from then on.
            then: Called once.
            with_queries: Whether to have its queries too.
            work: What the copy was used for since its owner was asked, for the owner to know.
            tries: How often the owner is looked up at most.
        """
        name = piece, with_queries
        held = self._held.get(name)
        if held is not None and self._now() < held.until:
            then(held.record, 0)
            return
        waiting = self._waiting.setdefault(name, {})
        is_asked = bool(waiting)
        waiting[waiter] = self._now(), then
        if is_asked:
            return
        version = 0 if held is None else held.version
        done = work()
        until = 0.0
        farthest = 0

        def question(hops: int) -> FetchPiece:
            nonlocal farthest, until
            farthest, until = hops, self._now() + self._seconds
            return FetchPiece(piece, version, with_queries, done)

        def fetched(reply: Reply | None) -> None:
            record = None
            if isinstance(reply, Value):
                is_same = held is not None and reply.version == version
                record = held.record if held and is_same else decoded_piece(piece, reply.value)
                self._held.put(name, _Lease(reply.version, record, until))
            for waiter, (since, then) in self._waiting.pop(name).items():
                if record is None or since < until:
                    then(record, farthest)
                else:
                    # The answer was long on its way, and is older than it may be by now.
                    self.read(
                        piece, waiter, then, with_queries=with_queries, work=work, tries=tries
                    )

        self._courier.to_owner(piece, question, fetched, tries)
