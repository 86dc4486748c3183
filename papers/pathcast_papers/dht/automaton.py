"""The automaton of all queries, cut into states that each have a key; pure definitions.

A query becomes *gates* (`pathcast.dht.gates`), linear paths. A path has states, one before each
label and one after the last; all paths together are a trie, so the labels that lead to a state are
the state, and its key (`pathcast.dht.identifiers.state_key`). A state whose last label is epsilon
is a //-child: it has a self-loop. Two epsilons never follow one another.

The peer of a state holds it *and what is reached from it over l elements*: epsilon costs nothing.
So at l = 0 each state is held once, and the target of an epsilon at its source's peer as well.

    labels       start   $     a     b            of //a/b
    depth          0     1     2     3
    l = 0        0..1    1     2     3            what the peer of each holds
    l = 1        0..2   1..2  2..3   3

An execution *visits* a state at an element: the state is active when the element has begun. The
visit of `start` is at the document. The peer that is handed a visit runs what it holds: over l + 1
levels of elements, since a state comes with its transitions. What is active after the last level is
handed over to the peers of those states. So visits are handed over at every (l + 1)-th level only:
at elements whose depth is a multiple of l + 1, where the document is 0 and the root element 1. At
any level, what was reached over an epsilon that needs no element is accepted by whoever visits its
source: a final `//.`.

Example:
    >>> from pathcast.dht.gates import gates_of
    >>> from pathcast.dht.identifiers import state_key
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast.query import compile_query
    >>> from pathcast_papers.filtering.nfa import CombinedNFA
    >>> from pathcast_papers.language import normalise
    >>> [gate] = gates_of(compile_query("//a[@x > 1]/b"))
    >>> [held_until(gate.labels, depth, 0) for depth in range(4)]
    [1, 1, 2, 3]
    >>> nfa = CombinedNFA()
    >>> _ = nfa.insert(normalise("//a[@x > 1]/b").steps)
    >>> for visit in visits(nfa.initial, parse_message(b"<a><b/></a>"), length=0):
    ...     print(state_key(visit.path), visit.element)
    start -1
    start/$ 0
    start/$/a 0
    start/$ 1
    start/$/a/b 1

Source: 000, sections 3 and 5.2. Differs: labels as in `evaluation.fragment`; a target is
handed over when it is not held, so after l + 1 levels, not l.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from pathcast.dht.gates import Path
from pathcast.message import ExpandedName, MessageTree
from pathcast_papers.evaluation.fragment import EPSILON, Symbol, matching_symbols

__all__ = [
    "DOCUMENT",
    "Children",
    "HeldState",
    "Run",
    "Visit",
    "children_in",
    "held_until",
    "moves",
    "run",
    "visits",
]

DOCUMENT = -1
"""The element at which the start state is visited."""


class HeldState(Protocol):
    """What is known of a state where it is held: a record's, or one of the reference automaton."""

    @property
    def transitions(self) -> Mapping[Symbol, HeldState | None]:
        """Where each label leads; None to a state that is not held."""

    @property
    def is_descendant_child(self) -> bool:
        """Whether its last label is epsilon: it loops on every element."""


def held_until(labels: Path, depth: int, length: int) -> int:
    """The last state of a path that the peer of the state at `depth` holds.

    Args:
        labels: Of the path.
        depth: Number of labels before the state.
        length: l.

    Returns:
        The depth of that state; the transition that leaves it is held as well.
    """
    left = length
    while depth < len(labels) and (labels[depth] is EPSILON or left):
        left -= labels[depth] is not EPSILON
        depth += 1
    return depth


def moves(state: HeldState, symbols: Sequence[Symbol]) -> Iterator[Path]:
    """What one element adds to the labels of an active state.

    Args:
        state: The state.
        symbols: Labels that the element can follow (`matching_symbols`).

    Yields:
        `()` for a self-loop, `(label,)` for a transition, `(EPSILON,)` and `(EPSILON, label)` for
        those of its //-child. Each once.
    """
    if state.is_descendant_child:
        yield ()
    for symbol in symbols:
        if symbol in state.transitions:
            yield (symbol,)
    if EPSILON in state.transitions:
        yield (EPSILON,)
        child = state.transitions[EPSILON]
        for symbol in symbols:
            if child is not None and symbol in child.transitions:
                yield (EPSILON, symbol)


class Run(NamedTuple):
    """What comes of a visit where it is done.

    Attributes:
        active: Visits that were done: states, as paths, what is held of them, and elements. The
            first is the one asked for.
        handed: Visits that others do: states and elements.
    """

    active: list[tuple[Path, HeldState, int]]
    handed: list[tuple[Path, int]]


Children: TypeAlias = Callable[[int], Iterable[tuple[int, Sequence[Symbol]]]]
"""The children of an element (or `DOCUMENT`), and the labels that each can follow."""


def run(
    path: Path,
    state: HeldState,
    element: int,
    children: Children,
    length: int,
) -> Run:
    """Do a visit: delta over words of `length` + 1 elements.

    Args:
        path: The state.
        state: What is held of it, to length `length`.
        element: Where it is active.
        children: The message.
        length: l.

    Returns:
        Each pair of state and element once.
    """
    done = Run([(path, state, element)], [])
    here: dict[int, dict[Path, HeldState | None]] = {element: {path: state}}
    for level in range(length + 1):
        below: dict[int, dict[Path, HeldState | None]] = {}
        for above, active in here.items():
            for child, symbols in children(above):
                targets: dict[Path, HeldState | None] = {}
                for source, held in active.items():
                    assert held is not None, "what is l elements away is held"
                    for move in moves(held, symbols):
                        targets.setdefault(source + move, _reached(held, move))
                if targets:
                    below[child] = targets
        here = below
        if level < length:
            done.active.extend(
                (target, held, child)
                for child, targets in below.items()
                for target, held in targets.items()
                if held is not None
            )
    done.handed.extend((target, child) for child, targets in here.items() for target in targets)
    return done


def _reached(state: HeldState, move: Path) -> HeldState | None:
    reached: HeldState | None = state
    for symbol in move:
        assert reached is not None, "a //-child is held where its source is"
        reached = reached.transitions[symbol]
    return reached


class Visit(NamedTuple):
    """A visit that is handed to the peer of a state.

    Attributes:
        path: The state.
        element: Where it is active; `DOCUMENT` for the start.
        source: The state whose peer hands it over; None for the publisher.
    """

    path: Path
    element: int
    source: Path | None


def visits(start: HeldState, tree: MessageTree, length: int) -> Iterator[Visit]:
    """All visits that are handed over in a recursive execution, each (source, path, element) once.

    A visit that was handed over before, by another source, is handed over, but not done again. If
    the peer of `path` is that of `source`, no message is sent.

    Args:
        start: The start state of the whole automaton.
        tree: The message.
        length: l.
    """
    children = children_in(tree)
    done: set[tuple[Path, int]] = set()
    open_: list[Visit] = [Visit((), DOCUMENT, None)]
    for visit in open_:
        yield visit
        if (visit.path, visit.element) not in done:
            done.add((visit.path, visit.element))
            state = _reached(start, visit.path)
            assert state is not None, "the whole automaton is held"
            handed = run(visit.path, state, visit.element, children, length).handed
            open_.extend(Visit(path, element, visit.path) for path, element in handed)


def children_in(tree: MessageTree) -> Children:
    """The children of the elements of a message."""
    below: dict[int, list[tuple[int, Sequence[Symbol]]]] = {}
    known: dict[ExpandedName, Sequence[Symbol]] = {}
    for element, (name, parent) in enumerate(zip(tree.name, tree.parent, strict=True)):
        symbols = known.setdefault(name, matching_symbols(*name))
        below.setdefault(parent, []).append((element, symbols))
    return lambda element: below.get(element, ())
