"""What must be there for a subscription to be delivered, as a formula over nodes of the message.

A formula speaks of variables: numbers, each a node of the message, `ROOT` its document node. It is
built by `language.xquery.necessary` and read as XPath by `implied`: the strongest condition
of one node that the formula implies and that XPath can say without variables. What correlates two
variables is dropped there, which only weakens.

Every formula is a necessary condition of what it was made from. Where it is sufficient too, that
is known (`exact`), and only such a formula may be negated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

ROOT: Final = 0
"""The variable of the document node."""


@dataclass(frozen=True, slots=True)
class Top:
    """True; or, if not exact, nothing is known."""

    is_exact: bool


@dataclass(frozen=True, slots=True)
class Atom:
    """An XPath condition of one node.

    Attributes:
        variable: The context node.
        text: The condition.
        is_exact: Whether it says all of it.
    """

    variable: int
    text: str
    is_exact: bool


@dataclass(frozen=True, slots=True)
class All:
    """A conjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """A disjunction; of nothing, it is false."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """There is a node at the end of a path, of which something holds.

    Attributes:
        variable: The node.
        base: Where the path begins.
        path: XPath, relative to `base`; absolute if that is the root.
        is_exact: Whether the path leads to the nodes that are meant and no others.
        inner: What holds of the node, and of the others.
    """

    variable: int
    base: int
    path: str
    is_exact: bool
    inner: Formula


Formula: TypeAlias = Top | Atom | All | Any | Exists

TRUE: Final = Top(True)
UNKNOWN: Final = Top(False)
FALSE: Final = Any(())


def all_of(*parts: Formula) -> Formula:
    """A conjunction, without what is true anyway."""
    kept = [part for part in parts if part is not TRUE]
    if FALSE in kept:
        return FALSE
    return kept[0] if len(kept) == 1 else All(tuple(kept)) if kept else TRUE


def any_of(*parts: Formula) -> Formula:
    """A disjunction, without what is false anyway."""
    kept = [part for part in parts if part != FALSE]
    if TRUE in kept:
        return TRUE
    return kept[0] if len(kept) == 1 else Any(tuple(kept))


def exists(variable: int, base: int, path: str, is_exact: bool, inner: Formula) -> Formula:
    """That a node is there; false if nothing can hold of it."""
    return FALSE if inner == FALSE else Exists(variable, base, path, is_exact, inner)


def implied(formula: Formula, context: int, *, is_inner: bool = False) -> str | None:
    """The XPath condition of a node that a formula implies.

    Args:
        formula: Any.
        context: The variable that the context node of the condition stands for.
        is_inner: Whether the formula is part of one of which the condition of the document node is
            asked too, so that what the formula says of that alone need not be said again.

    Returns:
        The condition; None if there is none but the true one.

    Example:
        >>> inner = all_of(Atom(1, "@x", True), Atom(2, "@y", True))
        >>> implied(Exists(2, 1, "b", True, inner), 1)
        '(b[@y] and @x)'

    Cost: linear in the formula, times the variables that are nested in it.
    """
    if is_inner and _free(formula) <= {ROOT}:
        return None
    match formula:
        case Top():
            return None
        case Atom(variable=variable, text=text):
            if variable == context:
                return text
            return f"(/)[{text}]" if variable == ROOT else None
        case All(parts=parts):
            texts = _distinct(implied(part, context, is_inner=is_inner) for part in parts)
            return _joined(texts, "and")
        case Any(parts=parts):
            alternatives = [implied(part, context) for part in parts]
            if any(text is None for text in alternatives):
                return None
            return _joined(_distinct(alternatives), "or") or "false()"
        case Exists(variable=variable, base=base, path=path, inner=inner):
            here: str | None = None
            if base in (context, ROOT):
                condition = implied(inner, variable, is_inner=True)
                here = path if condition is None else f"{path}[{condition}]"
            rest = implied(inner, context, is_inner=is_inner)
            return _joined(_distinct((here, rest)), "and")


def exact(formula: Formula, context: int) -> str | None:
    """The XPath condition of a node that says just what a formula does; None if there is none."""
    match formula:
        case Top(is_exact=is_exact):
            return "true()" if is_exact else None
        case Atom(variable=variable, text=text, is_exact=is_exact):
            if not is_exact or variable not in (context, ROOT):
                return None
            return text if variable == context else f"(/)[{text}]"
        case All(parts=parts) | Any(parts=parts):
            texts = [exact(part, context) for part in parts]
            known = [text for text in texts if text is not None]
            if len(known) < len(texts):
                return None
            word = "and" if isinstance(formula, All) else "or"
            return _joined(known, word) or "false()"
        case Exists(variable=variable, base=base, path=path, is_exact=is_exact, inner=inner):
            condition = exact(inner, variable)
            if condition is None or not is_exact or base not in (context, ROOT):
                return None
            return path if condition == "true()" else f"{path}[{condition}]"


def negated(formula: Formula) -> Formula:
    """The opposite of a formula, if it can be said of one node; else nothing is known."""
    if formula == FALSE:
        return TRUE
    if formula is TRUE:
        return FALSE
    for variable in sorted(_free(formula) | {ROOT}, reverse=True):
        text = exact(formula, variable)
        if text is not None:
            return Atom(variable, f"not({text})", True)
    return UNKNOWN


def _free(formula: Formula) -> set[int]:
    """The variables that a formula speaks of without binding them."""
    match formula:
        case Top():
            return set()
        case Atom(variable=variable):
            return {variable}
        case All(parts=parts) | Any(parts=parts):
            return set().union(*(_free(part) for part in parts))
        case Exists(variable=variable, base=base, inner=inner):
            return (_free(inner) - {variable}) | {base}


def _distinct(texts: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text is not None))


def _joined(texts: list[str], word: str) -> str | None:
    if not texts:
        return None
    return texts[0] if len(texts) == 1 else f"({f' {word} '.join(texts)})"
