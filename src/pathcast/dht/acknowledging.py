"""Acknowledgements of queries to subscribers: indexed, or refused on the way.

Without the second a query that is lost on its way, because the owner of a state changes just then,
would be sent again only when its subscriber's patience is over, which is long where the ring is
slow.
"""

from __future__ import annotations

from pathcast.dht.courier import Courier
from pathcast.dht.messages import Reply
from pathcast.dht.piece_messages import Indexed, IndexQuery, NotIndexed, RemoveQuery


class Acknowledging:
    """Passes queries on from peer to peer, and tells their subscribers.

    Args:
        courier: For what is sent.
        settle_seconds: After a change is stored, until every peer that has read it before has read
            it anew.
    """

    def __init__(self, courier: Courier, settle_seconds: float) -> None:
        self._courier = courier
        self._settle_seconds = settle_seconds

    def pass_on(self, key: str, asked: IndexQuery | RemoveQuery) -> None:
        """Send a query to the owner of a key; its subscriber is told if no owner takes it."""

        def answered(reply: Reply | None) -> None:
            if reply is None:
                self.is_lost(asked)

        self._courier.to_owner(key, asked, answered)

    def is_lost(self, asked: IndexQuery | RemoveQuery) -> None:
        """A query is not on its way any more: its subscriber is to send it again."""
        subscriber, registration = _registered(asked)
        self._courier.to_peer_again(subscriber, NotIndexed(registration, asked.attempt))

    def indexed(self, asked: IndexQuery | RemoveQuery) -> None:
        """A query has come to the end of its way."""
        subscriber, registration = _registered(asked)
        indexed = Indexed(registration, isinstance(asked, IndexQuery), asked.attempt)
        self._courier.after(
            self._settle_seconds, lambda: self._courier.to_peer_again(subscriber, indexed)
        )


def _registered(asked: IndexQuery | RemoveQuery) -> tuple[str, str]:
    """Subscriber and registration."""
    if isinstance(asked, IndexQuery):
        return asked.entry.subscriber, asked.entry.registration
    return asked.subscriber, asked.registration
