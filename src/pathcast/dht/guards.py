"""Predicates on the way: an edge that no query behind it can pass is not followed.

A query that asks for an attribute of a step's element gives the edge of that step a *guard*. An
edge has the guards of all queries that have passed it, or none at all if one of them asks for
nothing there: so it is followed if some query behind it may still hold, and what is told is the
same as without guards. Fewer visits are handed on; attributes travel, which they do not without.

Example:
    >>> [guard] = guards_of("/a[@x > 2]", (), (("", "a"),))
    >>> is_passed(guard, [("", "x", "3")]), is_passed(guard, [("", "x", "1")])
    (True, False)

Positions, text and nested paths are decided after structure, with the whole message.

Source: 000, section 5.3, which leaves it to others; Inline of Diao et al., TODS 2003, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from pathcast.dht.automaton import Path, gates_of
from pathcast.errors import PathcastError
from pathcast.evaluation.comparison import passes
from pathcast.evaluation.fragment import EPSILON, fragment, symbol_of
from pathcast.query import AttributeCondition, Comparison, NormalQuery, Operator, compile_query
from pathcast.query import Step as LocationStep

__all__ = ["Attribute", "Guard", "guards_of", "is_passed", "joined"]

Attribute: TypeAlias = tuple[str, str, str]
"""Namespace, local name, value."""

_Text = Annotated[str, Meta(max_length=65_536)]
_GUARDS_MAX = 32


class Guard(msgspec.Struct, frozen=True, array_like=True):
    """An attribute that an element must have.

    Attributes:
        uri: Its namespace; None for any.
        local: Its local name; None for any.
        operator: How its value compares; None: it is there.
        constant: With what.
    """

    uri: _Text | None
    local: _Text | None
    operator: Operator | None
    constant: float | _Text | None


def is_passed(guard: Guard, attributes: Iterable[Attribute]) -> bool:
    """Whether one of the attributes of an element is what is asked for."""
    for uri, local, value in attributes:
        if guard.uri not in (None, uri) or guard.local not in (None, local):
            continue
        if guard.operator is None or guard.constant is None:
            return True
        if passes(value, Comparison(guard.operator, guard.constant)):
            return True
    return False


def joined(guards: tuple[Guard, ...] | None, guard: Guard | None) -> tuple[Guard, ...] | None:
    """Guards of an edge after one more query has passed it; None lets everything pass."""
    if guards is None or guard is None or guard in guards:
        return guards if guard is not None else None
    return (*guards, guard) if len(guards) < _GUARDS_MAX else None


@lru_cache(maxsize=4096)
def guards_of(
    query: str, namespaces: tuple[tuple[str, str], ...], labels: Path
) -> tuple[Guard | None, ...]:
    """What a query asks of the element at each label of a gate of it; None: nothing.

    Of several alternatives with one gate, and of a query that cannot be read, nothing is known.
    """
    nothing: tuple[Guard | None, ...] = (None,) * len(labels)
    try:
        compiled = compile_query(query, dict(namespaces))
    except PathcastError:
        return nothing
    if len(compiled.alternatives) != len(gates_of(compiled)):
        return nothing
    for alternative in compiled.alternatives:
        guards = _along(alternative)
        if tuple(label for label, _ in guards) == labels:
            return tuple(guard for _, guard in guards)
    return nothing


def _along(query: NormalQuery) -> list[tuple[object, Guard | None]]:
    return [
        (label, None if label is EPSILON else _of_step(step))
        for step in query.steps
        for label in fragment(step.axis, step.test)
    ]


def _of_step(step: LocationStep) -> Guard | None:
    for stage in step.stages:
        for condition in stage.conditions:
            if isinstance(condition, AttributeCondition):
                symbol = symbol_of(condition.test)
                assert symbol is not None, "a name test is no epsilon"
                compare = condition.compare
                if compare is None:
                    return Guard(*symbol, None, None)
                return Guard(*symbol, compare.operator, compare.constant)
    return None
