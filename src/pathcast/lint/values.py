"""Values that a query asks for and that do not occur, and what may be meant.

Example:
    >>> from pathcast.lint.structure import structure_of_sample
    >>> from pathcast import kernel
    >>> from pathcast.limits import Limits
    >>> from pathcast.query import parse
    >>> from pathcast.query.atoms import atom_of
    >>> structure = structure_of_sample(
    ...     [kernel.parse(b"<a><severity>Severe</severity></a>", Limits())]
    ... )
    >>> atom = atom_of(parse("severity = 'severe'"))
    >>> known = Values(frozenset({"Severe"}), is_attribute=False)
    >>> advice = value_advice(atom, known, structure, Notation({}))
    >>> advice.code, advice.message
    ('PL109', "`severity` is 'Severe' in the sample, never 'severe': case counts")

It compares what is known with what is asked; what is known is `pathcast.lint.structure`'s matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pathcast.lint.structure import Structure
from pathcast.query.atoms import Atom
from pathcast.query.canonical import literal_text
from pathcast.query.implication import holds
from pathcast.query.near_names import near
from pathcast.query.normal import Comparison, Operator
from pathcast.query.notation import Notation
from pathcast.query.values import normalize_space

SHOWN_MAX: Final = 5
"""Names or values listed in a message."""

_OF_STRINGS: Final = (Operator.EQ, Operator.NE, Operator.STARTS_WITH, Operator.CONTAINS)
"""Comparisons of strings as such."""


@dataclass(frozen=True, slots=True)
class Values:
    """All values that what a query compares can have, or has in the sample.

    Attributes:
        known: The values.
        is_attribute: Whether they are of attributes; else of elements or text.
    """

    known: frozenset[str]
    is_attribute: bool


@dataclass(frozen=True, slots=True)
class ValueAdvice:
    """The advice on a constant of a comparison.

    Attributes:
        code: PL106, PL107, PL108 or PL109.
        message: What is wrong.
        fix: What may be meant; None if nothing is near.
    """

    code: str
    message: str
    fix: str | None


def value_advice(
    atom: Atom, values: Values, structure: Structure, notation: Notation
) -> ValueAdvice | None:
    """Return the advice on a comparison's constant; None if the value occurs, or may.

    Args:
        atom: The comparison.
        values: What there is.
        structure: Where that is known from.
        notation: Writes the query.
    """
    known, compare = sorted(values.known), atom.compare
    is_found = any(holds(value, _positive(compare)) for value in known)
    if structure.source == "dtd":
        if any(holds(value, compare) for value in known):
            return None
        message = f"`{notation.expr(atom.expr)}` cannot hold: the DTD allows {_values(known)}"
        return ValueAdvice("PL106", message, _did_you_mean(compare, known))
    constant = compare.constant
    if is_found or not isinstance(constant, str) or compare.operator not in _OF_STRINGS:
        return None
    operand = notation.expr(atom.operand)
    otherwise = _otherwise(atom, known, operand)
    if otherwise is not None:
        return otherwise
    if compare.operator is not Operator.EQ:
        return None
    message = f"`{operand}` never has this value in the sample; there is {_values(known)}"
    code = "PL107" if values.is_attribute else "PL108"
    return ValueAdvice(code, message, _did_you_mean(compare, known))


def _positive(compare: Comparison) -> Comparison:
    """A comparison with what it names: `!=` names a value as `=` does."""
    if compare.operator is not Operator.NE:
        return compare
    return Comparison(Operator.EQ, compare.constant)


def _otherwise(atom: Atom, known: Sequence[str], operand: str) -> ValueAdvice | None:
    """The value as the sample writes it, if that differs in case or white space only."""
    compare = _positive(atom.compare)
    constant = str(compare.constant)
    if not constant.strip():
        return None
    what = "case counts"
    found = [value for value in known if _holds(value, compare, str.casefold)]
    if not found:
        what = "white space counts"
        found = [value for value in known if _holds(value, compare, _loose)]
    if not found:
        return None
    never = "never" if compare.operator is Operator.EQ else "never with"
    wanted = literal_text(constant)
    message = f"`{operand}` is {_values(found)} in the sample, {never} {wanted}: {what}"
    if compare.operator is not Operator.EQ:
        return ValueAdvice("PL109", message, None)
    meant = normalize_space(found[0])
    fix = f"write {literal_text(found[0])}"
    if what != "case counts" and meant != found[0]:
        sign = atom.compare.operator.value
        fix = f"write `normalize-space({operand}){sign}{literal_text(meant)}`"
    return ValueAdvice("PL109", message, fix)


def _holds(value: str, compare: Comparison, spelling: Callable[[str], str]) -> bool:
    asked = Comparison(compare.operator, spelling(str(compare.constant)))
    return holds(spelling(value), asked)


def _loose(text: str) -> str:
    return normalize_space(text).casefold()


def _did_you_mean(compare: Comparison, known: Sequence[str]) -> str | None:
    meant = near(str(compare.constant), known)
    return f"did you mean {literal_text(meant[0])}?" if meant else None


def _values(values: Sequence[str]) -> str:
    return listed([literal_text(value) for value in values], quote="")


def listed(words: Sequence[str], *, quote: str = "`") -> str:
    """Words as a person lists them, the first few of many.

    Example:
        >>> listed(["a", "b"])
        '`a`, `b`'
    """
    shown = [f"{quote}{word}{quote}" for word in words[:SHOWN_MAX]]
    if len(words) > SHOWN_MAX:
        shown.append(f"{len(words) - SHOWN_MAX} more")
    return ", ".join(shown)
