"""Procedures 1 to 4: states of one automaton on a ring of peers, in one process.

A message waits in a queue until those before it have been taken, so each takes as long as any
other. A message from a peer to itself is done and not counted.

Example:
    >>> from pathcast_lab.sim.static_ring import StaticRing
    >>> names = ["a", "b", "c", "d"]
    >>> ring = StateRing(names, StaticRing(names))
    >>> ring.subscribe("a", "s", "//x[@y > 2]")
    >>> ring.publish("b", b"<r><x y='3'/></r>").matched
    {'s'}
    >>> ring.publish_iteratively("b", b"<r><x y='1'/></r>").matched
    set()

Peers neither fail nor come and go, no message is lost, and queries are not removed.

Source: 000, sections 4.2, 5.2, 5.3 and 6.4. Differs: Procedure 2 pushes the empty set of targets
at the end of an element (lines 12 to 16), after which nothing would be active at the next sibling;
here the entry is only popped. An accepting state is asked also where no element follows. Conditions
are decided by the whole query, on the whole message.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from pathcast.dht.decisions import CandidateIndex
from pathcast.dht.events import Events, EventTree
from pathcast.dht.gates import Path, gates_of
from pathcast.dht.identifiers import state_key, state_path
from pathcast.dht.messages import Member
from pathcast.dht.piece_messages import Visit
from pathcast.dht.piece_records import Entry, Reads
from pathcast.query import compile_query
from pathcast_papers.dht.automaton import Children, Run, run
from pathcast_papers.evaluation.fragment import EPSILON, Symbol, matching_symbols
from pathcast_papers.message import parse_message

__all__ = ["ALL_ELEMENTS", "LookUps", "PaperExecution", "Replicating", "StateRing", "children_of"]

ALL_ELEMENTS: Final = Reads(("*",), None)
"""Reads all elements that lie in one."""

_START: Final = Visit("start", 0)


class LookUps(Protocol):
    """The owner of each key, and the way to it."""

    def owner(self, key: str) -> Member:
        """The peer of a key."""

    def hops(self, name: str, key: str) -> int:
        """Hops of a look-up by a peer."""


@dataclass(frozen=True, slots=True)
class Replicating:
    """Section 6.4: when a state is held by other peers as well.

    Attributes:
        share: Of the publications that reach a state; more of them make replicas.
        replicas: Other peers that hold the state then.
        documents_min: Publications before which there are no replicas.
    """

    share: float = 0.1
    replicas: int = 10
    documents_min: int = 10


@dataclass(slots=True)
class _State:
    """A state, and the states that are reached from it over l elements; a HeldState."""

    is_descendant_child: bool = False
    transitions: dict[Symbol, _State | None] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def put(self, labels: Path, length: int, entry: Entry) -> None:
        """Put a query where some labels lead, as far as that is held here."""
        if not labels:
            self.entries[entry.registration] = entry
            return
        label, left = labels[0], length - (labels[0] is not EPSILON)
        target = self.transitions.setdefault(label, None)
        if left >= 0:
            target = target or _State(label is EPSILON)
            self.transitions[label] = target
            target.put(labels[1:], left, entry)

    def accepted(self) -> tuple[Entry, ...]:
        """Queries that are satisfied where it is active: its own, and those of its //-child."""
        child = self.transitions.get(EPSILON)
        return (*self.entries.values(), *(child.entries.values() if child else ()))


class _Said(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    pass


class IndexQuery(_Said, frozen=True):
    """Procedure 1: put a query into the state at a depth of its path, and pass it on."""

    key: str
    depth: int
    entry: Entry


class RecExpandState(_Said, frozen=True):
    """Procedure 4: do a visit, and hand on the visits that it leads to.

    Attributes:
        publication: Name of the publication.
        publisher: The peer that has the message.
        visit: State and element.
        events: The element, those it is in and those in it; or all.
        hops: Messages in the longest chain that led here.
        way: The same with the hops of look-ups.
        body: The message, if all of it travels.
    """

    publication: str
    publisher: str
    visit: Visit
    events: Events
    hops: int
    way: int
    body: bytes | None


class ExpandState(_Said, frozen=True):
    """Procedure 3: to which visits does a visit lead? Answer: `Expanded`."""

    visit: Visit
    events: Events


class Expanded(_Said, frozen=True):
    """Visits that a visit leads to, and queries that are accepted."""

    handed: tuple[Visit, ...]
    accepted: tuple[Entry, ...]


class Match(_Said, frozen=True):
    """A publication satisfies a subscription."""

    publication: str
    subscription: str


class FetchBody(_Said, frozen=True):
    """The message of a publication? Answer: `Body`."""

    publication: str


class Body(_Said, frozen=True):
    """The message."""

    body: bytes


_Message: TypeAlias = (
    IndexQuery | RecExpandState | ExpandState | Expanded | Match | FetchBody | Body
)


@dataclass(slots=True)
class PaperExecution:
    """A publication that is over.

    Attributes:
        matched: Subscriptions that were told.
        hops: Messages in the longest chain.
        way: The same with the hops of look-ups.
        visits: Visits that were done.
    """

    matched: set[str] = field(default_factory=set)
    hops: int = 0
    way: int = 0
    visits: int = 0


@dataclass(slots=True)
class _Seen:
    """A publication at one peer."""

    visits: set[Visit] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    body: bytes | None = None


class StateRing:
    """Peers of one automaton.

    Args:
        names: Of the peers.
        look_ups: Owners of keys.
        length: l: so many elements away from a state others are held with it.
        whole: Whether all of a message travels with a visit, as in the paper; else its element,
            those it is in and those in it, and the message to peers that decide conditions.
        replicating: When states are replicated; None: never.
        namespaces: Prefixes of all queries.

    Attributes:
        sent: Messages to other peers, by the name of their type.
        hops: Hops of the look-ups for them.
        bytes: Length of all of them, MessagePack.
        done: Visits that were done, by peer.
        notices: Messages that tell a peer of the replicas of a state.
    """

    def __init__(
        self,
        names: Sequence[str],
        look_ups: LookUps,
        length: int = 0,
        *,
        whole: bool = True,
        replicating: Replicating | None = None,
        namespaces: Mapping[str, str] | None = None,
    ) -> None:
        self.sent: Counter[str] = Counter()
        self.hops: Counter[str] = Counter()
        self.bytes = 0
        self.done: Counter[str] = Counter()
        self.notices = 0
        self._names = list(names)
        self._look_ups = look_ups
        self._length = length
        self._is_whole = whole
        self._replicating = replicating
        self._namespaces = dict(namespaces or {})
        self._states: dict[str, _State] = {}
        self._replicas: dict[str, tuple[str, ...]] = {}
        self._reached: dict[str, set[str]] = {}
        self._last: tuple[Events, Children] | None = None
        self._queue: deque[tuple[str, _Message]] = deque()
        self._decisions = {name: CandidateIndex() for name in names}
        self._registrations = 0
        self._bodies: dict[str, bytes] = {}
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._execution = PaperExecution()

    def subscribe(self, peer: str, subscription: str, query: str) -> None:
        """Procedure 1: index a query at the peers of the states of its path.

        Args:
            peer: The subscriber.
            subscription: Its name for the query; nobody else uses it.
            query: XPath 1.0.

        Raises:
            QuerySyntaxError: The query cannot be read.
        """
        bound = tuple(sorted(self._namespaces.items()))
        for gate in gates_of(compile_query(query, self._namespaces)):
            self._registrations += 1
            name = str(self._registrations)
            entry = Entry(name, subscription, peer, query, bound, gate.is_exact)
            asked = IndexQuery(state_key(gate.labels), 0, entry)
            self._to_owner(peer, _START.key, lambda _, asked=asked: asked)  # type: ignore[misc]
        self._take_all()

    def publish(self, peer: str, body: bytes) -> PaperExecution:
        """Procedure 4: publish a message recursively.

        Raises:
            MessageError: The message cannot be read.
        """
        name, message = self._begin(body)
        asked = RecExpandState(name, peer, _START, message.events, 0, 0, body)
        self._hand_over(peer, asked, None if self._is_whole else message)
        self._take_all()
        return self._execution

    def publish_iteratively(self, peer: str, body: bytes) -> PaperExecution:
        """Procedures 2 and 3: the publisher asks each state, one element after another.

        Raises:
            MessageError: The message cannot be read.
        """
        name, message = self._begin(body)
        execution, accepted = self._execution, dict[Entry, None]()
        active: dict[int, dict[str, None]] = {_START.element: {_START.key: None}}
        while active:
            element = min(active)
            events = message.projected([(element, ALL_ELEMENTS)])
            farthest = 0
            for key in active.pop(element):
                owner, hops = self._way(peer, key)
                asked = ExpandState(Visit(key, element), events)
                self._count(peer, owner, asked, hops)
                expanded = self._expand(owner, asked)
                self._count(owner, peer, expanded)
                farthest = max(farthest, hops)
                accepted.update(dict.fromkeys(expanded.accepted))
                for visit in expanded.handed:
                    active.setdefault(visit.element, {})[visit.key] = None
            # There and back.
            execution.hops += 2 * (farthest > 0)
            execution.way += farthest + (farthest > 0)
        self._seen[peer, name] = _Seen(body=body)
        self._settle(peer, peer, name, accepted)
        self._take_all()
        return execution

    def _begin(self, body: bytes) -> tuple[str, EventTree]:
        name = str(len(self._bodies))
        self._bodies[name] = body
        self._execution = PaperExecution()
        return name, EventTree(Events.of(parse_message(body)))

    # Messages.

    def _way(self, peer: str, key: str) -> tuple[str, int]:
        """The owner of a key, and the hops to it from a peer."""
        owner = self._look_ups.owner(key).name
        return owner, 0 if owner == peer else self._look_ups.hops(peer, key)

    def _count(self, sender: str, to: str, message: _Message, hops: int = 0) -> None:
        if sender != to:
            kind = type(message).__name__
            self.sent[kind] += 1
            self.hops[kind] += hops
            self.bytes += len(msgspec.msgpack.encode(message))

    def _send(self, sender: str, to: str, message: _Message, hops: int = 0) -> None:
        self._count(sender, to, message, hops)
        self._queue.append((to, message))

    def _to_owner(self, sender: str, key: str, message: Callable[[int], _Message]) -> None:
        """Send a message to the owner of a key, made from the hops to it."""
        owner, hops = self._way(sender, key)
        self._send(sender, owner, message(hops), hops)

    def _take_all(self) -> None:
        while self._queue:
            peer, message = self._queue.popleft()
            match message:
                case IndexQuery():
                    self._index(peer, message)
                case RecExpandState():
                    self._visit(peer, message)
                case Match():
                    self._execution.matched.add(message.subscription)

    # At the peers of states.

    def _index(self, peer: str, asked: IndexQuery) -> None:
        path = state_path(asked.key)
        key = state_key(path[: asked.depth])
        state = self._states.setdefault(key, _State(path[: asked.depth][-1:] == (EPSILON,)))
        state.put(path[asked.depth :], self._length, asked.entry)
        if asked.depth < len(path):
            further = replace(asked, depth=asked.depth + 1)
            self._to_owner(peer, state_key(path[: further.depth]), lambda _: further)

    def _run(self, peer: str, visit: Visit, events: Events) -> Run:
        self._execution.visits += 1
        self.done[peer] += 1
        path = state_path(visit.key)
        state = self._states.get(visit.key) or _State()
        if self._last is None or self._last[0] is not events:
            self._last = events, children_of(events)
        return run(path, state, visit.element, self._last[1], self._length)

    def _expand(self, peer: str, asked: ExpandState) -> Expanded:
        done = self._run(peer, asked.visit, asked.events)
        handed = tuple(Visit(state_key(path), element) for path, element in done.handed)
        return Expanded(handed, _accepted(done))

    def _visit(self, peer: str, asked: RecExpandState) -> None:
        seen = self._seen.setdefault((peer, asked.publication), _Seen())
        if asked.visit in seen.visits:
            return
        seen.visits.add(asked.visit)
        seen.body = seen.body or asked.body
        execution = self._execution
        execution.hops = max(execution.hops, asked.hops)
        execution.way = max(execution.way, asked.way)
        self._replicate(asked.visit.key, asked.publication)
        done = self._run(peer, asked.visit, asked.events)
        message = None if self._is_whole else EventTree(asked.events)
        for path, element in done.handed:
            visit = Visit(state_key(path), element)
            self._hand_over(peer, replace(asked, visit=visit), message)
        self._settle(peer, asked.publisher, asked.publication, _accepted(done))

    def _hand_over(self, peer: str, asked: RecExpandState, message: EventTree | None) -> None:
        """Send a visit to the owner of its state, or to one of those that have replicas."""
        key = asked.visit.key
        owner, hops = self._way(peer, key)
        # All choose the same, so a visit that comes by two ways is done once.
        chosen = random.Random(f"{asked.publication} {key}").choice(
            [owner, *self._replicas.get(key, ())]
        )
        if chosen != owner:
            hops = int(chosen != peer)
        asked = replace(asked, hops=asked.hops + (hops > 0), way=asked.way + hops)
        if message is not None:
            events = message.projected([(asked.visit.element, ALL_ELEMENTS)])
            asked = replace(asked, events=events, body=None)
        self._send(peer, chosen, asked, hops)

    def _replicate(self, key: str, publication: str) -> None:
        """Make replicas of a state that too many publications reach, and tell all other peers."""
        settings, documents = self._replicating, len(self._bodies)
        if settings is None or key in self._replicas:
            return
        reached = self._reached.setdefault(key, set())
        reached.add(publication)
        if documents < settings.documents_min or len(reached) <= settings.share * documents:
            return
        owner = self._look_ups.owner(key).name
        others = [name for name in self._names if name != owner]
        count = min(settings.replicas, len(others))
        # Not by keys: whoever has a large part of the circle has enough to do.
        self._replicas[key] = tuple(random.Random(key).sample(others, count))
        self.notices += len(self._names) - 1

    # At accepting peers.

    def _settle(
        self, peer: str, publisher: str, publication: str, entries: Iterable[Entry]
    ) -> None:
        """Decide queries, and notify their subscribers."""
        seen = self._seen[peer, publication]
        new = [entry for entry in entries if entry.registration not in seen.settled]
        seen.settled.update(entry.registration for entry in new)
        open_ = [entry for entry in new if not entry.is_exact]
        if open_ and seen.body is None:
            self._count(peer, publisher, FetchBody(publication))
            seen.body = self._bodies[publication]
            self._count(publisher, peer, Body(seen.body))
        answers = {}
        if seen.body is not None and open_:
            queries = [(entry.query, entry.namespaces) for entry in open_]
            answers = self._decisions[peer].decide(seen.body, queries)
        for entry in new:
            if entry.is_exact or answers[entry.query, entry.namespaces] is True:
                self._send(peer, entry.subscriber, Match(publication, entry.subscription))


def _accepted(done: Run) -> tuple[Entry, ...]:
    found: dict[Entry, None] = {}
    for _, state, _ in done.active:
        assert isinstance(state, _State)
        found.update(dict.fromkeys(state.accepted()))
    return tuple(found)


def children_of(events: Events) -> Children:
    """The children of the elements of a part of a message, which are called by their L."""
    below: dict[int, list[tuple[int, Sequence[Symbol]]]] = {}
    open_ = [(0, 1 << 62)]
    for name, left, right in zip(events.name, events.left, events.right, strict=True):
        while open_[-1][1] < left:
            open_.pop()
        below.setdefault(open_[-1][0], []).append((left, matching_symbols(*events.names[name])))
        open_.append((left, right))
    return lambda element: below.get(element, ())
