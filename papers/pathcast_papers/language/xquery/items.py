"""Items as a gate sees them, and what variables of a program stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pathcast_papers.language.xquery.formula import Formula
from pathcast_papers.language.xquery.syntax import Expr, For


@dataclass(frozen=True, slots=True)
class Node:
    """An item: the node that a variable of the formula stands for, or its value."""

    variable: int
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """An item that is the same for every message."""

    value: str | float


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any other item."""


Item: TypeAlias = Node | Constant | Unknown
Then: TypeAlias = Callable[[Item], Formula]
"""What is asked of an item."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An expression that a `let` bound, and the variables that it sees."""

    expr: Expr
    scope: Scope
    context: Item


Scope: TypeAlias = dict[str, Item | Bound]
"""Variable -> what it stands for."""


def bound_scope(scope: Scope, clause: For, item: Item) -> Scope:
    """The variables that are seen after a `for` has bound an item."""
    inner: Scope = {**scope, clause.variable: item}
    if clause.position is not None:
        inner[clause.position] = Unknown()
    return inner
