"""Normal form -> canonical text.

Equal normal forms have equal canonical texts, and a canonical text parses back to its normal form
with no namespaces bound.

Example:
    >>> from pathcast_papers.language.compiled import normalise
    >>> canonical_text(normalise("/child::a[ 3 < b/@c ]//*/text()"))
    '/a[b[@c>3]]//*[text()]'
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from pathcast_papers.language.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Constant,
    Double,
    NameTest,
    NormalQuery,
    OneOf,
    Position,
    Stage,
    Step,
    TextCondition,
    TypedText,
    ValueCondition,
)

_RUN: Final = re.compile(r"""[^'"]*(?:'[^"]*|"[^']*)""")
"""Characters up to a quote of the other kind than the first among them."""


def canonical_text(query: NormalQuery) -> str:
    """The canonical text of a query.

    Args:
        query: The normal form.

    Returns:
        The text. It is XPath 1.0 except for `Q{uri}name`, `*:name` and `//.[...]`.

    Cost: linear in the text, times the depth of nested paths.
    """
    return "".join(_step(step) for step in query.steps)


def condition_text(condition: Condition) -> str:
    """A condition as it stands between the brackets; conditions are sorted by it."""
    if isinstance(condition, AttributeCondition):
        return _compared("@" + name_test_text(condition.test), condition.compare)
    if isinstance(condition, TextCondition):
        return _compared("text()", condition.compare)
    if isinstance(condition, ValueCondition):
        return _compared(".", condition.compare)
    first, *others = condition.steps
    start = "" if first.axis is Axis.CHILD else "." + _separator(first)
    return start + _from_test(first) + "".join(_step(step) for step in others)


def position_text(position: Position) -> str:
    """A position as it stands between the brackets; positions are sorted by it."""
    return f"position(){position.operator.value}{number_text(position.number)}"


def name_test_text(test: NameTest) -> str:
    """A name test, its namespace as `Q{uri}`."""
    if isinstance(test, AnyName):
        return "*"
    if isinstance(test, AnyIn):
        return f"Q{{{test.uri}}}*"
    if isinstance(test, AnyNamespace):
        return f"*:{test.local}"
    return f"Q{{{test.uri}}}{test.local}" if test.uri else test.local


def number_text(number: float) -> str:
    """The shortest decimal that reads back as the number, without exponent.

    Example:
        >>> number_text(5.0), number_text(-0.0), number_text(1e21), number_text(2.5e-7)
        ('5', '0', '1000000000000000000000', '0.00000025')
    """
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    text = format(Decimal(repr(number)), "f")
    return text.removesuffix(".0")


def literal_text(value: str) -> str:
    r"""A string as XPath 1.0 writes it, which has no escapes.

    It stands in single quotes, or in double ones if it holds a single one. What holds both kinds
    has no literal: it is cut where the kind of its quotes changes, and joined by `concat`.

    Example:
        >>> print(literal_text("a"), literal_text("it's"), literal_text("it's \"b\""))
        'a' "it's" concat("it's ",'"b"')
    """
    if has_literal(value):
        quote = '"' if "'" in value else "'"
        return f"{quote}{value}{quote}"
    return f"concat({','.join(map(literal_text, _RUN.findall(value)))})"


def has_literal(value: str) -> bool:
    """Whether a string can stand in quotes: XPath 1.0 cannot quote one with both kinds."""
    return "'" not in value or '"' not in value


def _separator(step: Step) -> str:
    return "/" if step.axis is Axis.CHILD else "//"


def _step(step: Step) -> str:
    return _separator(step) + _from_test(step)


def _from_test(step: Step) -> str:
    is_or_self = step.axis is Axis.DESCENDANT_OR_SELF
    test = "." if is_or_self else name_test_text(step.test)
    return test + "".join(_stage(stage) for stage in step.stages)


def _stage(stage: Stage) -> str:
    positions = " and ".join(position_text(position) for position in stage.positions)
    conditions = "".join(f"[{condition_text(condition)}]" for condition in stage.conditions)
    return (f"[{positions}]" if positions else "") + conditions


def _compared(what: str, compare: Comparison | None) -> str:
    if compare is None:
        return what
    if isinstance(compare.constant, Double):
        return f"double({what}){compare.operator.value}{number_text(compare.constant.number)}"
    if isinstance(compare.constant, TypedText):
        to, text = compare.constant.to, literal_text(compare.constant.text)
        return f"{to}({what}){compare.operator.value}{text}"
    operator = compare.operator
    what = f"{compare.fold}({what})" if compare.fold else what
    if isinstance(compare.constant, OneOf):
        values = compare.constant.values
        constant = f"({','.join(map(_constant, values))})"
        what = f"double({what})" if isinstance(values[0], Double) else what
    else:
        constant = _constant(compare.constant)
    if operator.is_call:
        return f"{operator.value}({what},{constant})"
    return what + operator.value + constant


def _constant(constant: Constant | Double) -> str:
    if isinstance(constant, Double):
        return number_text(constant.number)
    return number_text(constant) if isinstance(constant, float) else literal_text(constant)
