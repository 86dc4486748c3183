"""A peer that filters: the states of its keys, and what its publishers and subscribers ask.

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
    >>> network.run(until=1.0)
    >>> _ = network.call("b", lambda peer, _: peer.publish(b"<r><x y='3'/></r>", "bob"))
    >>> network.run(until=2.0)
    >>> for peer, given in network.delivered:
    ...     print(peer, given.to, type(given.what).__name__)
    a ann Subscribed
    a ann Matched
    b bob Published
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pathcast.dht.courier import Courier
from pathcast.dht.decisions import Decisions
from pathcast.dht.events import Events, Message
from pathcast.dht.gathering import answer_together
from pathcast.dht.identifiers import identifier, is_in_range
from pathcast.dht.indexing import Indexing
from pathcast.dht.iterative import Iterating
from pathcast.dht.matching import Matching
from pathcast.dht.messages import Done, Later, Refused, Reply
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.dht.piece_records import prefixes
from pathcast.dht.piecewise import Piecewise
from pathcast.dht.publication_memory import PublicationMemory
from pathcast.dht.publishing import Publishing, StateWay, Way
from pathcast.dht.safeguards import ALL_SAFEGUARDS, Safeguards
from pathcast.dht.shedding import Shedding, SheddingSettings
from pathcast.dht.state_messages import (
    ExpandState,
    FetchBody,
    FetchState,
    FetchTop,
    GivenUp,
    HoldReplica,
    Indexed,
    IndexQuery,
    IsOpen,
    Lost,
    Match,
    NotIndexed,
    Ran,
    RecExpandState,
    Relink,
    RemoveQuery,
    RunPieces,
    StateQuestion,
    TakePiece,
    Together,
    Visited,
)
from pathcast.dht.state_store import StateStore
from pathcast.dht.states import encoded_state, held_state
from pathcast.dht.subscriptions import Subscriptions
from pathcast.dht.substrate import CLOCK_RATES, Asked, Substrate
from pathcast.dht.visiting import Visiting
from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.message import parse_message
from pathcast.protocol import Effect

__all__ = ["FilteringPeer", "FilteringSettings"]


@dataclass(frozen=True, slots=True)
class FilteringSettings:
    """What all peers agree on.

    Attributes:
        length: l: so many elements away from a state others are held with it.
        whole: Whether all of a message travels with every visit, as in the paper; else what the
            visit can see of it, and the whole message only to peers that have to decide on it.
        retry_seconds: Before a key is looked up again whose owner did not take a question.
        tries: How often it is.
        gather_seconds: How long a question waits for others to the same peer, to travel with them;
            None: each travels alone, as in the paper.
        patience_seconds: Before a publisher or a subscriber asks again for what nobody has said.
        patience_tries: How often, without news.
        acknowledge_seconds: The same for a subscriber, at least; None: `patience_seconds`.
        limits: What a message may cost.
        on_the_way: Whether predicates on attributes are evaluated where edges are followed, beside
            after structure.
        shedding: When a state is replicated; None: never.
        pieces: The automaton is in pieces by cost, not in states; None: it is not. Then `length`,
            `whole`, `on_the_way` and `shedding` have no meaning, and nothing is published
            iteratively.
        safeguards: Only tests give others.

    Raises:
        ConfigError: Pieces are combined with what is about states.
    """

    length: int = 0
    whole: bool = False
    retry_seconds: float = 0.25
    tries: int = 20
    gather_seconds: float | None = None
    patience_seconds: float = 2.0
    patience_tries: int = 10
    acknowledge_seconds: float | None = None
    limits: Limits = field(default_factory=Limits)
    on_the_way: bool = False
    shedding: SheddingSettings | None = None
    pieces: PieceSettings | None = None
    safeguards: Safeguards = ALL_SAFEGUARDS

    def __post_init__(self) -> None:
        for name in ("length", "whole", "on_the_way", "shedding"):
            if self.pieces is not None and getattr(self, name):
                reason = f"{name} is about states, and there are pieces"
                raise ConfigError("config.invalid", key="pieces", reason=reason)


class FilteringPeer:
    """One life of a peer, as a `pathcast.protocol.Node`.

    Args:
        below: Makes its part of the structured overlay, given what takes questions about states.
        life: A number that no life of it had before.
        disk: What it saved: its subscriptions.
        settings: The same for all.

    Attributes:
        substrate: Its part of the structured overlay.
        courier: Counts what was sent.
        visiting: Counts what was done for publications.
        matching: Counts what was decided.
        shedding: Counts notices of replicas.
        pieces: Counts what was done for pieces; None if there are none.
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
        store = StateStore(
            self.substrate,
            self.courier,
            settings.retry_seconds,
            held_state,
            encoded_state,
            settings.safeguards,
        )
        memory = PublicationMemory(lambda: self._now)
        settle = self.substrate.settle_seconds
        if settings.shedding is not None:
            settle += settings.shedding.replica_seconds * CLOCK_RATES
        self.shedding = Shedding(self.substrate, self.courier, settings.shedding, lambda: self._now)
        self._now = 0.0
        self._indexing = Indexing(
            self.substrate,
            self.courier,
            store,
            settings.length,
            settle,
            on_the_way=settings.on_the_way,
            safeguards=settings.safeguards,
        )
        self.matching = Matching(self.courier, Decisions())
        self.visiting = Visiting(
            self.substrate,
            self.courier,
            store,
            memory,
            self.matching,
            self.shedding,
            settings.length,
        )
        self.pieces = None
        way: Way = StateWay(name, self.shedding, whole=settings.whole)
        if settings.pieces is not None:
            self.pieces = Piecewise(
                self.substrate,
                self.courier,
                memory,
                self.matching,
                settings.pieces,
                settings.retry_seconds,
                settings.tries,
                lambda: self._now,
                settings.safeguards,
            )
            way = self.pieces.way
        patience, tries = settings.patience_seconds, settings.patience_tries
        self._publishing = Publishing(
            name,
            life,
            self.courier,
            way,
            out,
            settings.limits,
            attributes=settings.on_the_way,
            patience_seconds=patience,
            tries=tries,
            safeguards=settings.safeguards,
        )
        self._iterating = Iterating(name, self.courier, out, memory, self.matching)
        self._subscriptions = Subscriptions(
            name,
            life,
            self.courier,
            out,
            disk,
            patience if settings.acknowledge_seconds is None else settings.acknowledge_seconds,
            tries,
            lambda: self._now,
            settings.safeguards,
        )

    # As a node.

    def start(self, now: float) -> list[Effect]:
        """Begin, with the subscriptions that were saved."""
        self._now = now
        effects = self.substrate.start(now)
        self._subscriptions.start()
        return [*effects, *self._effects()]

    def receive(self, sender: str, message: object, now: float) -> list[Effect]:
        """As the substrate; what is asked of states comes back here.

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
        """As the substrate."""
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
        """As `Subscriptions.subscribe`."""
        self._subscriptions.subscribe(subscription, query, to, namespaces)
        return self._on_the_spot()

    def unsubscribe(self, subscription: str) -> list[Effect]:
        """As `Subscriptions.unsubscribe`."""
        self._subscriptions.unsubscribe(subscription)
        return self._on_the_spot()

    def publish(self, body: bytes, to: str) -> list[Effect]:
        """Publish recursively; as `Publishing.publish`."""
        self._publishing.publish(body, to)
        return self._on_the_spot()

    def publish_iteratively(self, body: bytes, to: str) -> list[Effect]:
        """Publish iteratively; as `Iterating.publish`.

        Raises:
            ConfigError: The automaton is in pieces.
            MessageError: The door refuses the message.
        """
        if self.pieces is not None:
            reason = "nothing is published iteratively where there are pieces"
            raise ConfigError("config.invalid", key="pieces", reason=reason)
        tree = parse_message(body, self._settings.limits)
        message = Message(Events.of(tree, attributes=self._settings.on_the_way))
        self._iterating.publish(self._publishing.new_name(), body, message, to)
        return self._on_the_spot()

    @property
    def under_way(self) -> int:
        """Publications of this peer that have no outcome yet; recursive ones."""
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
        """What this peer has asked itself waits for an event that tells the time."""
        if self.courier.has_own:
            self.courier.after(0.0, lambda: None)
        return self.substrate.effects()

    def _asked(self, sender: str, asked: StateQuestion, answer: Callable[[Reply], None]) -> None:
        if self.pieces is not None and self.pieces.asked(sender, asked, answer):
            return
        match asked:
            case Together():
                answer_together(asked, partial(self._asked, sender), answer)
            case RecExpandState():
                self.visiting.visit(sender, asked, answer)
            case Visited():
                self._publishing.visited(sender, asked, answer)
            case Ran():
                self._publishing.ran(sender, asked, answer)
            case ExpandState():
                self.visiting.expand(asked, answer)
            case IndexQuery():
                self._indexing.index(asked, answer)
            case RemoveQuery():
                self._indexing.remove(asked, answer)
            case GivenUp():
                self._indexing.give_up(asked, answer)
            case Indexed():
                self._subscriptions.indexed(asked, answer)
            case NotIndexed():
                self._subscriptions.not_indexed(asked, answer)
            case IsOpen(publication):
                ways = (self._publishing, self._iterating)
                answer(Done() if any(way.is_open(publication) for way in ways) else Refused())
            case Lost():
                self._lost(asked, answer)
            case Match():
                self._subscriptions.match(asked, answer)
            case HoldReplica():
                self.shedding.hold(asked, answer)
            case FetchState():
                self.shedding.fetch(asked, answer)
            case FetchBody():
                self._publishing.fetch(asked, answer)
            case RunPieces() | FetchTop() | TakePiece() | Relink():
                answer(Later())

    def _lost(self, asked: Lost, answer: Callable[[Reply], None]) -> None:
        """Bring back what was lost, as far as it is this peer's to do so."""
        is_everything = self.pieces is not None
        is_here = self._subscriptions.lost(asked, _is_all if is_everything else _is_on_the_way)
        if self.pieces is not None:
            is_here &= self.pieces.lost(asked)
        answer(Done() if is_here else Later())


def _is_on_the_way(key: str, low: int, high: int) -> bool:
    """Whether one of the states on the way to a state lies in an arc."""
    return any(is_in_range(low, identifier(prefix), high) for prefix in prefixes(key))


def _is_all(key: str, low: int, high: int) -> bool:
    """In which pieces a query is, its subscriber does not know."""
    return True
