"""The combined NFA: a trie over location steps, with a hash table of transitions in every state.

Common prefixes of location paths are shared. A path ends in its accepting state, which lists what
is registered there: the queries that are this path (and predicates on its steps), and how many
NP-Filters read the store of its path matches. The self-loop of a //-child state is not stored;
execution knows about it.

Example:
    >>> from pathcast_papers.language import normalise
    >>> nfa = CombinedNFA()
    >>> state = nfa.insert(normalise("/catalog//msrp").steps)
    >>> state.depth, nfa.state_count      # initial, catalog, //-child, msrp
    (2, 4)
    >>> nfa.insert(normalise("/catalog//msrp").steps) is state
    True

It knows no message. Values never enter the automaton (section 5), except in the predicate tables
that Inline hangs on its states.

Source: Diao et al., TODS 2003, sections 3.2.1-3.2.3, figures 7-10; deletion: section 4.6.
Differs: see `pathcast_papers.evaluation.fragment` for the symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from pathcast_papers.evaluation.fragment import EPSILON, Symbol, fragment, matching_symbols
from pathcast_papers.language import Axis, NameTest

if TYPE_CHECKING:
    from pathcast_papers.filtering.predicate import Predicate
    from pathcast_papers.filtering.query_plan import QueryPlan


class LocationStep(Protocol):
    """What the automaton sees of a location step."""

    @property
    def axis(self) -> Axis:
        """How it leads on from the step before."""

    @property
    def test(self) -> NameTest:
        """The node test."""


class State:
    """One state.

    Attributes:
        parent: The state that its only incoming transition leaves, None for the initial state.
        symbol: Label of that transition; epsilon leads to a //-child state.
        is_descendant_child: Whether this is a //-child state, which loops on every element.
        depth: Location steps that are bound when it is reached.
        transitions: Hash table from symbol to child state.
        queries: Queries without nested paths that are accepted here: the query id list.
        store_users: Paths of queries with nested paths that end here and need its path matches.
        predicates: The table of Inline: query, predicate id, predicate.
    """

    __slots__ = (
        "depth",
        "is_descendant_child",
        "parent",
        "predicates",
        "queries",
        "store_users",
        "symbol",
        "transitions",
    )

    def __init__(self, parent: State | None, symbol: Symbol) -> None:
        self.parent = parent
        self.symbol = symbol
        self.depth: int = 0
        if parent is not None:
            self.depth = parent.depth + (symbol is not EPSILON)
        self.is_descendant_child = symbol is EPSILON and parent is not None
        self.transitions: dict[Symbol, State] = {}
        self.queries: list[QueryPlan] = []
        self.store_users = 0
        self.predicates: list[tuple[QueryPlan, int, Predicate]] = []

    @property
    def is_accepting(self) -> bool:
        """Whether a path of some query ends here."""
        return bool(self.queries) or self.store_users > 0


class CombinedNFA:
    """All location paths of all queries in one machine."""

    def __init__(self) -> None:
        self.initial = State(None, EPSILON)
        self.state_count = 1
        self._symbols: set[Symbol] = set()

    def insert(self, steps: Sequence[LocationStep]) -> State:
        """The state in which a location path ends; what is missing of the path is added.

        Cost: one hash look-up a step, and two for a `//`.
        """
        state = self.initial
        for symbol in _symbols(steps):
            child = state.transitions.get(symbol)
            if child is None:
                child = State(state, symbol)
                state.transitions[symbol] = child
                self.state_count += 1
                self._symbols.add(symbol)
            state = child
        return state

    def matching_symbols(self, uri: str, local: str) -> tuple[Symbol, ...]:
        """The labels that an element of this name can follow, without those that no state has."""
        symbols = matching_symbols(uri, local)
        return tuple(symbol for symbol in symbols if symbol in self._symbols)

    def states_on(self, steps: Sequence[LocationStep]) -> list[State]:
        """The state that binds each location step of a path that was inserted."""
        state, bound = self.initial, []
        for step in steps:
            for symbol in fragment(step.axis, step.test):
                state = state.transitions[symbol]
            bound.append(state)
        return bound

    def prune(self, state: State) -> None:
        """Deletes a state that accepts nothing and leads nowhere, and so on towards the root."""
        parent = state.parent
        while (
            parent is not None
            and not state.is_accepting
            and not state.transitions
            and parent.transitions.get(state.symbol) is state
        ):
            del parent.transitions[state.symbol]
            self.state_count -= 1
            state, parent = parent, parent.parent

    def states(self) -> Iterator[State]:
        """Every state, parents first."""
        pending = [self.initial]
        while pending:
            state = pending.pop()
            yield state
            pending.extend(state.transitions.values())


def _symbols(steps: Sequence[LocationStep]) -> Iterator[Symbol]:
    for step in steps:
        yield from fragment(step.axis, step.test)
