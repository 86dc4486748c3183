"""Executing the NFA where only accepting states count: the run-time stack of section 3, bare.

Queries that are nothing but a location path need no path matches, so the stack holds states and no
predecessor pointers, and an accepting state that was reached once is not looked at again.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.language import normalise
    >>> from pathcast_papers import parse
    >>> nfa = CombinedNFA()
    >>> states = {text: nfa.insert(normalise(text).steps) for text in ("/a/b", "//c", "/a//c/b")}
    >>> visited = visited_states(nfa, parse(b"<a><c/><b/></a>", Limits()))
    >>> [text for text, state in states.items() if state in visited]
    ['/a/b', '//c']

It gives no elements: `execution` does.

Source: Diao et al., TODS 2003, section 3.2.4 (handlers, figure 10; footnote 4: "visited").
"""

from __future__ import annotations

from pathcast.message import MessageTree
from pathcast_papers.evaluation.fragment import EPSILON, Symbol
from pathcast_papers.filtering.nfa import CombinedNFA, State


def visited_states(nfa: CombinedNFA, tree: MessageTree) -> set[State]:
    """Every state that a message reaches, //-child states that loop included.

    Cost: a few look-ups for each active state and element.
    """
    visited: set[State] = set()
    stack: list[list[State]] = [[nfa.initial]]
    symbols_of: dict[tuple[str, str], tuple[Symbol, ...]] = {}
    for element, name in enumerate(tree.name):
        symbols = symbols_of.get(name)
        if symbols is None:
            symbols = symbols_of[name] = nfa.matching_symbols(*name)
        del stack[tree.depth[element] + 1 :]
        targets: list[State] = []
        for state in stack[-1]:
            transitions = state.transitions
            for symbol in symbols:
                target = transitions.get(symbol)
                if target is not None:
                    targets.append(target)
            descendant_child = transitions.get(EPSILON)
            if state.is_descendant_child:
                targets.append(state)
            elif descendant_child is not None:
                targets.append(descendant_child)
                inner = descendant_child.transitions
                for symbol in symbols:
                    target = inner.get(symbol)
                    if target is not None:
                        targets.append(target)
        # A //-child state is reached from itself and, again, from the state before it.
        stack.append(targets if len(targets) < 2 else list(dict.fromkeys(targets)))
        visited.update(targets)
    return visited
