"""Procedure 1, at the peers of states: queries come, go, and states that are empty with them.

A query goes from state to state of its path, one message a state whatever l is: it travels whole,
so each peer adds the states that it holds beside its own. It is passed on when the change is
stored with its copies. The last peer waits until every peer that has read a state before has read
it anew (`Substrate.settle_seconds`, and that of replicas), and tells the subscriber: what is
published from then on meets
the query. A removal goes the same way.

Source: 000, section 4.2, procedure 1. Differs: `Indexed`; removal, which the paper does not have.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from pathcast.dht.acknowledging import Acknowledging
from pathcast.dht.automaton import Path, held_until
from pathcast.dht.courier import Courier
from pathcast.dht.guards import guards_of
from pathcast.dht.identifiers import label_text, state_key, state_path
from pathcast.dht.messages import Done, Later, Reply
from pathcast.dht.repetitions import Repetitions
from pathcast.dht.safeguards import ALL_SAFEGUARDS, Safeguards
from pathcast.dht.state_messages import GivenUp, IndexQuery, RemoveQuery
from pathcast.dht.state_store import StateStore
from pathcast.dht.states import (
    Held,
    StateRecord,
    arrived,
    closed,
    is_late,
    with_entry,
    without_edge,
    without_entry,
)
from pathcast.dht.substrate import Substrate
from pathcast.errors import PeerError

__all__ = ["Indexing"]

Answer = Callable[[Reply], None]
_ALL = 1 << 62


class Indexing:
    """What a peer does for the queries that pass its states.

    Args:
        substrate: For the keys that are its own.
        courier: For what is passed on.
        store: Its states.
        length: l, the same at all peers.
        settle_seconds: After it was stored, so long until every peer sees a change.
        on_the_way: Whether edges get guards.
        safeguards: Only tests give others.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        store: StateStore[StateRecord, Held],
        length: int,
        settle_seconds: float,
        on_the_way: bool = False,
        safeguards: Safeguards = ALL_SAFEGUARDS,
    ) -> None:
        self._substrate = substrate
        self._courier = courier
        self._store = store
        self._length = length
        self._acknowledging = Acknowledging(courier, settle_seconds, safeguards)
        self._on_the_way = on_the_way
        self._safeguards = safeguards
        self._repetitions = Repetitions()

    def index(self, asked: IndexQuery, answer: Answer) -> None:
        """Put a query into a state, and pass it on."""
        path = _path(asked.key, asked.depth)
        key = state_key(path[: asked.depth])
        if not self._substrate.owns(key):
            answer(Later())
            return
        answer(Done())
        if self._repetitions.is_one(
            "index", asked.key, asked.entry.registration, asked.depth, asked.attempt
        ):
            return
        guards = None
        if self._on_the_way:
            guards = guards_of(asked.entry.query, asked.entry.namespaces, path)[asked.depth :]
        late: list[bool] = []
        floors: dict[int, int] = {}
        # Of states that are still to come, so many queries have passed at least.
        passed_before = {d: n for d, n in asked.passed.items() if d < asked.depth}

        def change(state: StateRecord) -> StateRecord:
            late[:] = [self._safeguards.late_begin_anew and is_late(state, passed_before)]
            if late[0]:
                floors.update(state.closed)
                return state
            state = arrived(state, passed_before)
            least = asked.passed.get(asked.depth, 0)
            state = replace(state, passes=max(state.passes, least))
            if not self._safeguards.remembers_removals:
                state = replace(state, removed=())
            return with_entry(state, path[asked.depth :], self._length, asked.entry, guards)

        def changed(state: StateRecord | None) -> None:
            if state is None:
                self._acknowledging.is_lost(asked)
            elif late[0]:
                anew = asked.attempt + 1
                # The numbers of records that were lost begin anew: not below what was seen.
                self.pass_on(replace(asked, depth=0, passed=floors, attempt=anew))
            elif asked.depth == len(path):
                self._acknowledging.indexed(asked)
            else:
                passed = {**asked.passed, asked.depth: state.passes}
                passed = {
                    depth: number
                    for depth, number in passed.items()
                    if held_until(path, depth, self._length) >= asked.depth
                }
                self.pass_on(replace(asked, depth=asked.depth + 1, passed=passed))

        self._store.change(key, change, changed)

    def remove(self, asked: RemoveQuery, answer: Answer) -> None:
        """Take a query out of a state, and pass it on."""
        path = _path(asked.key, asked.depth)
        key = state_key(path[: asked.depth])
        if not self._substrate.owns(key):
            answer(Later())
            return
        answer(Done())
        if self._repetitions.is_one(
            "remove", asked.key, asked.registration, asked.depth, asked.attempt
        ):
            return
        labels = path[asked.depth :]

        def changed(state: StateRecord | None) -> None:
            if state is None:
                self._acknowledging.is_lost(asked)
            elif asked.depth < len(path):
                self.pass_on(replace(asked, depth=asked.depth + 1))
            else:
                self._give_up(path, state)
                self._acknowledging.indexed(asked)

        self._store.change(
            key,
            lambda state: _closed_if_empty(
                without_entry(state, labels, self._length, asked.registration)
            ),
            changed,
        )

    def give_up(self, asked: GivenUp, answer: Answer) -> None:
        """Take the edge to an empty state; and if this one is empty then, give it up as well."""
        path, child = state_path(asked.key), state_path(asked.child)
        if child[: len(path)] != path or len(child) <= len(path):
            raise PeerError("dht.claim", claim=f"{asked.child} lies behind {asked.key}")
        if not self._substrate.owns(asked.key):
            answer(Later())
            return
        answer(Done())
        *way, label = map(label_text, child[len(path) :])
        seen = asked.seen if self._safeguards.keeps_passed_edges else _ALL

        def change(state: StateRecord) -> StateRecord:
            after = without_edge(state, tuple(way), label, seen)
            return state if after == state else _closed_if_empty(after)

        def changed(state: StateRecord | None) -> None:
            if state is not None:
                self._give_up(path, state)

        self._store.change(asked.key, change, changed)

    def pass_on(self, asked: IndexQuery | RemoveQuery) -> None:
        """Send it to the state that it is for; the subscriber begins again if that is in vain."""
        self._acknowledging.pass_on(state_key(state_path(asked.key)[: asked.depth]), asked)

    def _give_up(self, path: Path, state: StateRecord) -> None:
        """Tell the records that have an edge to a state that it is empty, if it is."""
        if not state.is_empty:
            return
        for depth, seen in state.closed.items():
            if depth < len(path):
                above = state_key(path[:depth])
                asked = GivenUp(above, state_key(path), seen)
                self._courier.to_owner(above, asked)


def _closed_if_empty(state: StateRecord) -> StateRecord:
    return closed(state) if state.is_empty else state


def _path(key: str, depth: int) -> Path:
    """The labels of a key that has so many or more.

    Raises:
        PeerError: "dht.key", "dht.claim"; it has none, or fewer.
    """
    path = state_path(key)
    if depth > len(path):
        raise PeerError("dht.claim", claim=f"{key} has a state at depth {depth}")
    return path
