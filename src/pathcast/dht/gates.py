"""Gates: the linear paths under which a query is found on the ring.

A query becomes one linear path for each of its alternatives, without predicates; one of them is
found in every message that satisfies the query. The labels of a gate lead from the start state of
the automaton of all queries to an accepting state, and are the key of that state
(`pathcast.dht.identifiers.state_key`).

Example:
    >>> from pathcast.query import compile_query
    >>> [gate] = gates_of(compile_query("//a[@x > 1]/b"))
    >>> gate.labels, gate.is_exact
    ((None, ('', 'a'), ('', 'b')), False)

Source: 000, sections 2.1 and 3. Differs: labels as in `pathcast.dht.fragment`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pathcast.dht.fragment import Symbol, fragment
from pathcast.query import CompiledQuery, steps_of

Path: TypeAlias = tuple[Symbol, ...]
"""A state: the labels that lead to it from the start state."""


@dataclass(frozen=True, slots=True)
class LinearGate:
    """A linear path that is found in every message that satisfies an alternative of a query.

    Attributes:
        labels: Of its transitions; the accepting state is reached over all of them.
        is_exact: Whether a message that has the path satisfies the query; if not, that is decided
            where the path is found, by the query and the whole message.
    """

    labels: Path
    is_exact: bool


def gates_of(compiled: CompiledQuery) -> tuple[LinearGate, ...]:
    """One necessary linear path for each alternative of a query: its main path, bare.

    Nested paths and predicates are left out, so a query with branches is indexed once an
    alternative.

    Returns:
        Gates with different labels, in the order of the alternatives.
    """
    found: dict[Path, bool] = {}
    for alternative in compiled.alternatives:
        steps = steps_of(alternative)
        labels = tuple(label for axis, test in steps for label in fragment(axis, test))
        is_exact = compiled.expression is None and alternative.is_bare
        found[labels] = found.get(labels, False) or is_exact
    return tuple(LinearGate(labels, is_exact) for labels, is_exact in found.items())
