"""A peer that filters: the pieces of its keys, and the requests of its publishers and subscribers.

It lies on a substrate, of which it knows nothing but `pathcast.dht.substrate.Substrate`.

Example:
    >>> from pathcast_lab.sim import Network
    >>> from pathcast_lab.sim.static_ring import StaticPeer, StaticRing
    >>> names = ["a", "b", "c"]
    >>> ring, network = StaticRing(names), Network(seed=1)
    >>> def begin(name):
    ...     def below(asked):
    ...         return StaticPeer(name, ring, asked)
    ...     network.add(name, lambda disk, life: FilteringPeer(below, life, disk))
    >>> for name in names:
    ...     begin(name)
    >>> _ = network.call("a", lambda peer, _: peer.subscribe("s", "//x[@y > 2]", "ann"))
    >>> network.run(until=2.0)
    >>> _ = network.call("b", lambda peer, _: peer.publish(b"<r><x y='3'/></r>", "bob"))
    >>> network.run(until=4.0)
    >>> for peer, given in network.delivered:
    ...     print(peer, given.to, type(given.what).__name__)
    a ann Subscribed
    a ann Matched
    b bob PublicationOutcome
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pathcast.dht.courier import Courier
from pathcast.dht.decisions import CandidateIndex
from pathcast.dht.gathering import answer_together
from pathcast.dht.matching import Matching
from pathcast.dht.messages import Done, Later, Reply, RequestRefused
from pathcast.dht.piece_cutting import Cutting, PieceSettings
from pathcast.dht.piece_indexing import PieceIndexing
from pathcast.dht.piece_leases import PieceLeases
from pathcast.dht.piece_messages import (
    AskWork,
    FetchBody,
    FetchPiece,
    Indexed,
    IndexQuery,
    IsOpen,
    Lost,
    Match,
    NotIndexed,
    PieceQuestion,
    Ran,
    Relink,
    RemoveQuery,
    RunPieces,
    TakePiece,
    Together,
)
from pathcast.dht.piece_publishing import PieceWay
from pathcast.dht.piece_running import PieceEntering, PieceRunning
from pathcast.dht.piece_sharing import KnownSharers, PieceSharing
from pathcast.dht.piece_store import PieceStore
from pathcast.dht.publication_memory import PublicationMemory
from pathcast.dht.publishing import Publishing
from pathcast.dht.subscriptions import PeerSubscriptions
from pathcast.dht.substrate import CLOCK_RATES, Asked, Substrate
from pathcast.limits import Limits
from pathcast.protocol import Effect


@dataclass(frozen=True, slots=True)
class FilteringSettings:
    """Settings on which all peers of a ring agree.

    Attributes:
        pieces: When pieces are cut or shared, and how long copies of them are used.
        retry_seconds: Before a key is looked up again whose owner did not take a question.
        tries: How often it is.
        gather_seconds: How long a question waits for others to the same peer, to travel with them.
        patience_seconds: Before a publisher or a subscriber asks again for what nobody has said.
        patience_tries: How often, without news.
        acknowledge_seconds: The same for a subscriber, at least; None: `patience_seconds`.
        limits: What a message may cost.
    """

    pieces: PieceSettings = field(default_factory=PieceSettings)
    retry_seconds: float = 0.25
    tries: int = 20
    gather_seconds: float = 0.005
    patience_seconds: float = 2.0
    patience_tries: int = 10
    acknowledge_seconds: float | None = None
    limits: Limits = field(default_factory=Limits)


class FilteringPeer:
    """One life of a peer, as a `pathcast.protocol.Node`.

    Args:
        below: Makes its part of the structured overlay, given what takes questions about pieces.
        life: A number that no life of it had before.
        disk: What it saved: its subscriptions.
        settings: The same for all.

    Attributes:
        substrate: Its part of the structured overlay.
        courier: Counts what was sent.
        running: Counts what was run for publications.
        cutting: Counts pieces that were cut off.
        sharing: Says who shares pieces of this peer.
    """

    def __init__(
        self,
        below: Callable[[Asked], Substrate],
        life: int,
        disk: Mapping[str, bytes],
        settings: FilteringSettings | None = None,
    ) -> None:
        settings = settings or FilteringSettings()
        self._settings = settings
        self.substrate = below(self._asked)
        name, out = self.substrate.me.name, self.substrate.out
        self.courier = Courier(
            self.substrate,
            self._asked,
            settings.retry_seconds,
            settings.tries,
            settings.gather_seconds,
        )
        store = PieceStore(self.substrate, self.courier, settings.retry_seconds)
        memory = PublicationMemory(lambda: self._now)
        self._now = 0.0
        self._matching = Matching(self.courier, CandidateIndex())
        me = self.substrate.me
        self.cutting = Cutting(self.courier, store, settings.pieces, f"{me.life} {me.name}")
        copy_seconds = settings.pieces.copy_seconds
        leases = PieceLeases(self.courier, copy_seconds, lambda: self._now)
        known = KnownSharers(lambda: self._now)
        entering = PieceEntering(lambda: self.substrate.me, self.courier, known)
        self.sharing = PieceSharing(
            self.substrate, self.courier, settings.pieces.work_max, lambda: self._now
        )
        self.running = PieceRunning(
            self.substrate,
            self.courier,
            store,
            memory,
            self._matching,
            self.cutting,
            self.sharing,
            leases,
            entering,
            settings.retry_seconds,
            settings.tries,
        )
        self._indexing = PieceIndexing(
            self.substrate,
            self.courier,
            store,
            self.cutting,
            self.sharing,
            self.substrate.settle_seconds + copy_seconds * CLOCK_RATES,
            settings.retry_seconds,
            settings.tries,
            lambda: self._now,
        )
        patience, tries = settings.patience_seconds, settings.patience_tries
        self._publishing = Publishing(
            name,
            life,
            self.courier,
            PieceWay(name, leases, entering),
            out,
            settings.limits,
            patience_seconds=patience,
            tries=tries,
        )
        self._subscriptions = PeerSubscriptions(
            name,
            life,
            self.courier,
            out,
            disk,
            patience if settings.acknowledge_seconds is None else settings.acknowledge_seconds,
            tries,
            lambda: self._now,
        )

    # As a node.

    def start(self, now: float) -> list[Effect]:
        """Begin, with the subscriptions that were saved."""
        self._now = now
        effects = self.substrate.start(now)
        self._subscriptions.start()
        return [*effects, *self._effects()]

    def receive(self, sender: str, message: object, now: float) -> list[Effect]:
        """As the substrate, which hands questions about pieces back to this peer.

        Raises:
            PeerError: What was said cannot be.
        """
        self._now = now
        effects = self.substrate.receive(sender, message, now)
        return [*effects, *self._effects()]

    def wake(self, timer: str, now: float) -> list[Effect]:
        """A timer of the substrate or of this peer."""
        self._now = now
        effects = self.substrate.wake(timer, now)
        self.courier.wake(timer)
        return [*effects, *self._effects()]

    def neighbour(self, name: str, up: bool, now: float) -> list[Effect]:
        """Forward to the substrate."""
        self._now = now
        return [*self.substrate.neighbour(name, up, now), *self._effects()]

    def ended(self, name: str, now: float) -> list[Effect]:
        """The process of a peer is known to have ended: nobody has to wait for its answers."""
        self._now = now
        self.substrate.asking.ended(name)
        return self._effects()

    # What is asked of it by those behind it.

    def subscribe(
        self,
        subscription: str,
        query: str,
        to: str,
        namespaces: Mapping[str, str] | None = None,
    ) -> list[Effect]:
        """Put a query on the ring (`PeerSubscriptions.subscribe`)."""
        self._subscriptions.subscribe(subscription, query, to, namespaces)
        return self._on_the_spot()

    def unsubscribe(self, subscription: str) -> list[Effect]:
        """Take a query off the ring (`PeerSubscriptions.unsubscribe`)."""
        self._subscriptions.unsubscribe(subscription)
        return self._on_the_spot()

    def publish(self, body: bytes, to: str) -> list[Effect]:
        """Publish a message (`Publishing.publish`)."""
        self._publishing.publish(body, to)
        return self._on_the_spot()

    @property
    def under_way(self) -> int:
        """Publications of this peer that have no outcome yet."""
        return self._publishing.under_way

    @property
    def subscription_count(self) -> int:
        """Subscriptions of this peer."""
        return len(self._subscriptions)

    @property
    def repeated(self) -> int:
        """How often a query was put on its way again, because nobody had acknowledged it."""
        return self._subscriptions.repeated

    # Inside.

    def _effects(self) -> list[Effect]:
        self.courier.do_own()
        return self.substrate.effects()

    def _on_the_spot(self) -> list[Effect]:
        """Answer this peer's own requests, which wait for an event that tells the time."""
        if self.courier.has_own:
            self.courier.after(0.0, lambda: None)
        return self.substrate.effects()

    def _asked(self, sender: str, asked: PieceQuestion, answer: Callable[[Reply], None]) -> None:
        match asked:
            case Together():
                answer_together(asked, partial(self._asked, sender), answer)
            case RunPieces():
                self.running.run(sender, asked, answer)
            case Ran():
                self._publishing.ran(sender, asked, answer)
            case IndexQuery() | RemoveQuery():
                self._indexing.change(asked, answer)
            case FetchPiece():
                self._indexing.fetch(sender, asked, answer)
            case AskWork():
                answer(self.sharing.work_rate())
            case TakePiece():
                self._indexing.take(asked, answer)
            case Relink():
                self._indexing.relink(asked, answer)
            case Indexed():
                self._subscriptions.indexed(asked, answer)
            case NotIndexed():
                self._subscriptions.not_indexed(asked, answer)
            case IsOpen(publication):
                answer(Done() if self._publishing.is_open(publication) else RequestRefused())
            case Match():
                self._subscriptions.match(asked, answer)
            case Lost():
                self._lost(asked, answer)
            case FetchBody():
                self._publishing.fetch(asked, answer)

    def _lost(self, asked: Lost, answer: Callable[[Reply], None]) -> None:
        """Bring back what was lost, as far as it is this peer's to do so."""
        are_queries_here = self._subscriptions.lost(asked)
        are_pieces_here = self._indexing.lost(asked)
        answer(Done() if are_queries_here and are_pieces_here else Later())
