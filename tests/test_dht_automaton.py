"""The automaton in pieces: what is visited is what one run-time stack has, whatever the length."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.alphabet import ALPHABET
from generators.strategies import messages, query_sets
from oracles.paths import of_papers
from pathcast.dht.fragment import EPSILON, Symbol
from pathcast.dht.gates import Path, gates_of
from pathcast.message import MessageTree
from pathcast.query import compile_query
from pathcast_papers.dht.automaton import (
    DOCUMENT,
    HeldState,
    children_in,
    held_until,
    run,
    visits,
)
from pathcast_papers.filtering.execution import Execution
from pathcast_papers.filtering.nfa import CombinedNFA, State
from pathcast_papers.message import parse_message


class _Held:
    """A state and what is reached over `length` elements; transitions beyond lead to None."""

    def __init__(self, state: State, length: int) -> None:
        self.is_descendant_child = state.is_descendant_child
        self.transitions: dict[Symbol, HeldState | None] = {}
        for symbol, target in state.transitions.items():
            left = length - (symbol is not EPSILON)
            self.transitions[symbol] = None if left < 0 else _Held(target, left)


def _path(state: State) -> Path:
    return () if state.parent is None else (*_path(state.parent), state.symbol)


def _automaton(texts: Sequence[str]) -> CombinedNFA:
    nfa = CombinedNFA()
    for text in texts:
        for alternative in compile_query(text, ALPHABET.namespaces).alternatives:
            nfa.insert(of_papers(alternative).steps)
    return nfa


def _on_the_stack(nfa: CombinedNFA, tree: MessageTree) -> set[tuple[Path, int]]:
    """States and elements that a run-time stack of one process holds at some time."""
    found: set[tuple[Path, int]] = {((), DOCUMENT)}
    run, open_ = Execution(nfa), [DOCUMENT]
    for element, (name, parent) in enumerate(zip(tree.name, tree.parent, strict=True)):
        while open_[-1] != parent:
            open_.pop()
            run.end_element()
        open_.append(element)
        run.start_element(element, *name)
        found |= {(_path(state), element) for state in run.stack[-1]}
    return found


@given(query_sets(), messages(), st.integers(0, 3))
def test_visits_are_what_is_on_the_stack_of_one_process(
    texts: list[str], message: bytes, length: int
) -> None:
    nfa, tree = _automaton(texts), parse_message(message)
    states = {_path(state): state for state in nfa.states()}
    done = set()
    for path, element, _ in set(visits(nfa.initial, tree, length)):
        held = _Held(states[path], length)
        of_it = run(path, held, element, children_in(tree), length)
        done |= {(path, element) for path, _, element in of_it.active}
        depth = 0 if element == DOCUMENT else tree.depth[element] + 1
        assert depth % (length + 1) == 0
    assert done == _on_the_stack(nfa, tree)


@given(query_sets(), st.integers(0, 3))
def test_what_is_held_is_what_so_many_elements_reach(texts: list[str], length: int) -> None:
    for text in texts:
        for gate in gates_of(compile_query(text, ALPHABET.namespaces)):
            for depth in range(len(gate.labels) + 1):
                until = held_until(gate.labels, depth, length)
                over = [label for label in gate.labels[depth:until] if label is not EPSILON]
                assert len(over) <= length
                # What is left out begins with an element that is one too many.
                if until < len(gate.labels):
                    assert len(over) == length
                    assert gate.labels[until] is not EPSILON


@pytest.mark.parametrize(
    ("text", "exact", "labels"),
    [
        ("/a//b", True, [(("", "a"), None, ("", "b"))]),
        ("/a[b]//c[@x]", False, [(("", "a"), None, ("", "c"))]),
        ("/a | /b[1]", None, [(("", "a"),), (("", "b"),)]),
        ("/a[@x] | /a", True, [(("", "a"),)]),
        ("/a/b[last()]", False, [(("", "a"), ("", "b"))]),
        ("/a//@x", False, [(("", "a"), None)]),
        ("count(//a) = 0", False, [((None, None),)]),
    ],
)
def test_gates(text: str, exact: bool | None, labels: list[Path]) -> None:
    gates = gates_of(compile_query(text))
    assert [gate.labels for gate in gates] == labels
    if exact is not None:
        assert {gate.is_exact for gate in gates} == {exact}
