"""What is kept under the key of a state: the state, and what is held with it.

A state has edges (its transitions) and entries (the queries that are accepted there, with their
subscribers). A self-loop is not stored: the key says whether there is one. States that are held
because they are near hang on the edges that lead to them; an edge to any other leads to None.

An edge goes when the state it leads to is empty, has no edges and no entries. Nothing counts how
many queries an edge serves, for a count that is changed by messages which may come twice, or never,
is wrong sooner or later. Instead a record numbers the queries that *pass* it (`passes`), an edge
has the number of the latest, and a state those of the latest that *arrived* from each record that
holds the edge (`seen`, by the number of labels of that record's key). A state that is found empty
is *closed* to what it has seen and says so to those records (`without_edge`), which take the edge
if nothing else has passed it. A query that arrives late at a closed state begins anew (`is_late`),
since its edge may be gone. So no edge goes that a query needs; one may stay that none needs, if a
query that passed never arrived.

Example:
    >>> entry = Entry("r1", "s1", "p", "//a", (), True)
    >>> state = with_entry(StateRecord(), (None, ("", "a")), 0, entry)
    >>> list(state.edges), list(state.edges["$"].to.edges), state.edges["$"].to.edges["a"].to
    (['$'], ['a'], None)
    >>> without_edge(state, ("$",), "a", seen=0) == state
    True
    >>> without_edge(state, ("$",), "a", seen=1).edges["$"].to.is_empty
    True
    >>> decoded_state(encoded_state(state)) == state
    True

Source: 000, sections 3.1 (p.states) and 4.2. Differs: removal is not in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from pathcast.dht.automaton import HeldState, Path
from pathcast.dht.guards import Guard, joined
from pathcast.dht.identifiers import label_of, label_text, state_path
from pathcast.errors import PeerError
from pathcast.evaluation.fragment import EPSILON, Symbol

__all__ = [
    "Edge",
    "Entry",
    "Held",
    "StateRecord",
    "arrived",
    "closed",
    "decoded_state",
    "encoded_state",
    "held_state",
    "is_late",
    "with_entry",
    "without_edge",
    "without_entry",
]

Short = Annotated[str, Meta(max_length=256)]
Number = Annotated[int, Meta(ge=0, lt=2**62)]
Text = Annotated[str, Meta(max_length=65_536)]

_REMOVED_MAX = 64


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A query at its accepting state, and who wants to know.

    Attributes:
        registration: One indexing of one gate; no other has it.
        subscription: What the subscriber calls it.
        subscriber: The peer that is told.
        query: The whole query.
        namespaces: Its prefixes.
        is_exact: Whether who reaches the state satisfies the query; else it is evaluated.
    """

    registration: Short
    subscription: Short
    subscriber: Short
    query: Text
    namespaces: Annotated[tuple[tuple[Short, Text], ...], Meta(max_length=256)]
    is_exact: bool


class Edge(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A transition.

    Attributes:
        passed: Number of the latest query that passed it.
        to: The state it leads to, if that is held here.
        guards: What queries that have passed ask of the element; None: one asks nothing.
    """

    passed: Number
    to: StateRecord | None
    guards: tuple[Guard, ...] | None = None


class StateRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A state, and those that are held with it.

    Attributes:
        edges: By label, as in keys.
        entries: By registration.
        passes: Queries that have passed, or ended here.
        seen: The latest number that arrived from each record with an edge to this state.
        closed: What had been seen when the state was found empty.
        removed: The latest registrations that were removed here, and do not come back.
    """

    edges: dict[str, Edge] = {}
    entries: dict[str, Entry] = {}
    passes: Number = 0
    seen: dict[Number, Number] = {}
    closed: dict[Number, Number] = {}
    removed: tuple[Short, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is accepted here or beyond."""
        return not self.edges and not self.entries


_DECODER = msgspec.msgpack.Decoder(StateRecord)


def encoded_state(state: StateRecord) -> bytes:
    """A state as the value of a record."""
    return msgspec.msgpack.encode(state)


def decoded_state(value: bytes | None) -> StateRecord:
    """The state in the value of a record; no value is an empty one.

    Raises:
        PeerError: "dht.state"; it is none.
    """
    if value is None:
        return StateRecord()
    try:
        return _DECODER.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("dht.state", reason=str(error)) from None


def held_state(key: str, value: bytes | None) -> tuple[StateRecord, Held]:
    """The state of a key in the value of its record, and as it is run.

    Raises:
        PeerError: "dht.state", "dht.key"; it is none.
    """
    state = decoded_state(value)
    return state, Held.of(state_path(key), state)


def is_late(state: StateRecord, passed: Mapping[int, int]) -> bool:
    """Whether a query arrives at a state that was given up since it passed the one before."""
    return any(number <= state.closed.get(depth, -1) for depth, number in passed.items())


def arrived(state: StateRecord, passed: Mapping[int, int]) -> StateRecord:
    """A state after a query has arrived that has passed these records."""
    seen = dict(state.seen)
    for depth, number in passed.items():
        seen[depth] = max(number, seen.get(depth, 0))
    return msgspec.structs.replace(state, seen=seen)


def with_entry(
    state: StateRecord,
    labels: Path,
    length: int,
    entry: Entry,
    guards: Sequence[Guard | None] | None = None,
) -> StateRecord:
    """A state after a query has passed or ended here; its entry is there once.

    Args:
        state: Before.
        labels: From the state to the accepting one.
        length: l: so many elements away states are held.
        entry: The query.
        guards: What it asks at each of the labels; None: they are not evaluated on the way.
    """
    passes = state.passes + 1
    guards = guards if guards is not None else [None] * len(labels)
    after = _with(state, labels, length, entry, passes, guards)
    return msgspec.structs.replace(after, passes=passes)


def _with(
    state: StateRecord,
    labels: Path,
    length: int,
    entry: Entry,
    passes: int,
    guards: Sequence[Guard | None],
) -> StateRecord:
    if not labels:
        if entry.registration in state.removed or entry.registration in state.entries:
            return state
        entries = {**state.entries, entry.registration: entry}
        return msgspec.structs.replace(state, entries=entries)
    label, left = label_text(labels[0]), length - (labels[0] is not EPSILON)
    edge = state.edges.get(label)
    to = None
    if left >= 0:
        before = edge.to if edge is not None and edge.to is not None else StateRecord()
        to = _with(before, labels[1:], left, entry, passes, guards[1:])
    after = Edge(passes, to, joined(() if edge is None else edge.guards, guards[0]))
    return msgspec.structs.replace(state, edges={**state.edges, label: after})


def closed(state: StateRecord) -> StateRecord:
    """An empty state, closed to all that has arrived so far."""
    return msgspec.structs.replace(state, closed=state.seen)


def without_entry(state: StateRecord, labels: Path, length: int, registration: str) -> StateRecord:
    """A state after a query was removed; edges stay until those behind them say they are empty.

    Args:
        state: Before.
        labels: From the state to the accepting one.
        length: l.
        registration: Which.
    """
    if not labels:
        entries = {key: entry for key, entry in state.entries.items() if key != registration}
        removed = state.removed
        if registration not in removed:
            removed = (*removed, registration)[-_REMOVED_MAX:]
        return msgspec.structs.replace(state, entries=entries, removed=removed)
    label, left = label_text(labels[0]), length - (labels[0] is not EPSILON)
    edge = state.edges.get(label)
    if left < 0 or edge is None or edge.to is None:
        return state
    to = without_entry(edge.to, labels[1:], left, registration)
    return msgspec.structs.replace(
        state, edges={**state.edges, label: Edge(edge.passed, to, edge.guards)}
    )


def without_edge(state: StateRecord, way: tuple[str, ...], label: str, seen: int) -> StateRecord:
    """A state after one that it has an edge to was found empty.

    Args:
        state: Before.
        way: Labels from the state to the one that the edge leaves, as in keys.
        label: Of the edge.
        seen: Number of the latest query that arrived there; the edge stays if a later one passed.
    """
    edge = state.edges.get(way[0] if way else label)
    if edge is None:
        return state
    edges = dict(state.edges)
    if way:
        if edge.to is None:
            return state
        edges[way[0]] = msgspec.structs.replace(
            edge, to=without_edge(edge.to, way[1:], label, seen)
        )
    elif edge.passed <= seen:
        del edges[label]
    return msgspec.structs.replace(state, edges=edges)


class Held:
    """A state record as `automaton.HeldState`.

    Attributes:
        transitions: By label.
        is_descendant_child: Whether it loops.
        entries: Queries that are accepted.
        guards: By label, those of the transition.
    """

    __slots__ = ("entries", "guards", "is_descendant_child", "transitions")

    def __init__(self, state: StateRecord, label: Symbol, *, is_start: bool = False) -> None:
        self.transitions: Mapping[Symbol, HeldState | None] = {
            (symbol := label_of(text)): None if edge.to is None else Held(edge.to, symbol)
            for text, edge in state.edges.items()
        }
        self.is_descendant_child = label is EPSILON and not is_start
        self.guards = {label_of(text): edge.guards for text, edge in state.edges.items()}
        self.entries = tuple(state.entries.values())

    @classmethod
    def of(cls, path: Path, state: StateRecord) -> Self:
        """The state of a path."""
        return cls(state, path[-1] if path else EPSILON, is_start=not path)

    def accepted(self) -> tuple[Entry, ...]:
        """Queries that are satisfied where it is active: its own, and its //-child's."""
        child = self.transitions.get(EPSILON)
        return (*self.entries, *child.entries) if isinstance(child, Held) else self.entries
