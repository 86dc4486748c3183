"""Executing the NFA: the run-time stack and path matches by predecessor pointers.

A start-of-element event follows every matching transition of every active state and pushes the
target states; an end-of-element event pops them. Each entry of the stack points back to the
entries it was reached from, so the path matches that end in an accepting state can be read off
backwards: entries of //-child states are passed over, for they bind no location step.

Example:
    >>> from pathcast_papers.language import normalise
    >>> nfa = CombinedNFA()
    >>> accepting = nfa.insert(normalise("//a//a").steps)
    >>> run = Execution(nfa)
    >>> for element in range(3):                                     # <a><a><a>
    ...     targets = run.start_element(element, "", "a")
    >>> [sorted(path_matches(entry)) for entry in targets if entry.state is accepting]
    [[(0, 2), (1, 2)]]

Path matches can be exponentially many in recursive messages, so nothing here lists them unless it
is asked to: `exists_path_match` and `bound_elements` visit each entry once.

Source: Diao et al., TODS 2003, section 3.2.4 (handlers, figure 10), section 5.2 (predecessor
pointers, figure 21).
Differs: a //-child state that accepts (a final `//.`) is also reached over its epsilon-transition
at the very element that leads to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pathcast_papers.evaluation.fragment import EPSILON, Symbol
from pathcast_papers.filtering.nfa import CombinedNFA, State


class StackEntry:
    """A state that is active after an element.

    Attributes:
        state: The state.
        element: The element whose start led here; -1 for the initial state.
        predecessors: The entries it was reached from.
    """

    __slots__ = ("element", "predecessors", "state")

    def __init__(self, state: State, element: int, predecessor: StackEntry | None) -> None:
        self.state = state
        self.element = element
        self.predecessors: list[StackEntry] = [] if predecessor is None else [predecessor]


class Execution:
    """One run of the NFA over one message.

    Attributes:
        stack: Active states of the document and of every open element, as state -> entry.
    """

    def __init__(self, nfa: CombinedNFA) -> None:
        self.stack = [{nfa.initial: StackEntry(nfa.initial, -1, None)}]
        self._nfa = nfa
        self._symbols: dict[tuple[str, str], tuple[Symbol, ...]] = {}

    def start_element(self, element: int, uri: str, local: str) -> list[StackEntry]:
        """Follows all transitions for an element.

        Returns:
            The target states' entries, and those of accepting //-child states that a target state
            leads to without input.
        """
        symbols = self._symbols.get((uri, local))
        if symbols is None:
            symbols = self._symbols[uri, local] = self._nfa.matching_symbols(uri, local)
        targets: dict[State, StackEntry] = {}
        for entry in self.stack[-1].values():
            _follow(entry.state, entry, element, symbols, targets)
        self.stack.append(targets)
        reached = list(targets.values())
        for entry in targets.values():
            descendant_child = entry.state.transitions.get(EPSILON)
            if descendant_child is not None and descendant_child.is_accepting:
                reached.append(StackEntry(descendant_child, element, entry))
        return reached

    def end_element(self) -> None:
        """Backtracks to the states before the element."""
        self.stack.pop()


def _follow(
    state: State,
    origin: StackEntry,
    element: int,
    symbols: Sequence[Symbol],
    targets: dict[State, StackEntry],
) -> None:
    """Applies rules 1 to 4 of section 3.2.4 to a state."""
    transitions = state.transitions
    for symbol in symbols:
        target = transitions.get(symbol)
        if target is not None:
            _add(target, origin, element, targets)
    if state.is_descendant_child:
        _add(state, origin, element, targets)
    descendant_child = transitions.get(EPSILON)
    if descendant_child is not None:
        _follow(descendant_child, origin, element, symbols, targets)


def _add(state: State, origin: StackEntry, element: int, targets: dict[State, StackEntry]) -> None:
    entry = targets.get(state)
    if entry is None:
        targets[state] = StackEntry(state, element, origin)
    else:
        entry.predecessors.append(origin)


def path_matches(accepting: StackEntry) -> Iterator[tuple[int, ...]]:
    """Every path match that ends in an entry: the element of each location step.

    Cost: in proportion to the path matches, which recursion can make exponentially many.
    """
    pending: list[tuple[StackEntry, tuple[int, ...]]] = [(accepting, (accepting.element,))]
    while pending:
        entry, match = pending.pop()
        for origin in entry.predecessors:
            if origin.state.parent is None:
                yield match
            elif origin.state.is_descendant_child:
                pending.append((origin, match))
            else:
                pending.append((origin, (origin.element, *match)))


def exists_path_match(
    accepting: StackEntry, passes: Callable[[int, int], bool], failed: set[StackEntry]
) -> bool:
    """Whether some path match that ends in an entry passes at every step.

    Args:
        accepting: The entry in the accepting state.
        passes: Whether an element passes what is asked at a step (number from 1 on).
        failed: Entries that are known to begin no such match backwards; is added to. May be kept
            for later calls with the same question on the same message.

    Cost: each entry is visited once over all calls that share `failed`.
    """
    if not passes(_step_number(accepting), accepting.element):
        return False
    pending = list(accepting.predecessors)
    while pending:
        entry = pending.pop()
        if entry.state.parent is None:
            return True
        if entry in failed:
            continue
        failed.add(entry)
        if entry.state.is_descendant_child or passes(entry.state.depth, entry.element):
            pending.extend(entry.predecessors)
    return False


def bound_elements(
    accepting: Iterable[StackEntry], step: int, passes: Callable[[int, int], bool]
) -> set[int]:
    """The elements that a step is bound to in path matches that pass at all later steps.

    Args:
        accepting: The store of a path: its entries in the accepting state.
        step: Number of the step (from 1 on), before the last one.
        passes: Whether an element passes what is asked at a later step.

    Cost: each entry is visited once.
    """
    bound: set[int] = set()
    visited: set[StackEntry] = set()
    for entry in accepting:
        if not passes(_step_number(entry), entry.element):
            continue
        pending = list(entry.predecessors)
        while pending:
            origin = pending.pop()
            if origin in visited:
                continue
            visited.add(origin)
            if origin.state.is_descendant_child:
                pending.extend(origin.predecessors)
            elif origin.state.depth == step:
                bound.add(origin.element)
            elif passes(origin.state.depth, origin.element):
                pending.extend(origin.predecessors)
    return bound


def _step_number(accepting: StackEntry) -> int:
    """The step that an accepting entry binds; a //-child state accepts for one more step."""
    return accepting.state.depth + accepting.state.is_descendant_child
