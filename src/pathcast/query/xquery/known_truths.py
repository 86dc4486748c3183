"""Conditions of an XQuery that never or always hold, whatever the message is.

Looks at the program alone: values of types that have no comparison, texts in small letters beside
capital ones, parts of dates beyond their range, counts below zero, patterns that match everything,
and conditions of one value that exclude each other.

Example:
    >>> from pathcast.query.xquery.reader import parse
    >>> text = "for $a in //a where lower-case($a/b) = 'Flood' and count($a/c) >= 0 return $a"
    >>> for issue in program_truths(parse(text)):
    ...     print(issue.truth, issue.offset, issue.reason)
    never 20 `lower-case($a/b) = "Flood"`: lower-case() gives no capital letters
    always 51 `count($a/c) >= 0`: count() gives whole numbers from 0 on

Several nodes are not one value: `b = 'x' and b = 'y'` holds where there are two `b`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pathcast.errors import QuerySyntaxError
from pathcast.query.condition_walk import (
    ConditionIssue,
    ConditionWalk,
    Conjunction,
    depends_on_list,
)
from pathcast.query.syntax import (
    EQUALITIES,
    ORDERS,
    Axis,
    BinaryExpr,
    BinaryOperator,
    Cast,
    ContextItem,
    Expr,
    For,
    FunctionCall,
    Let,
    LocationPath,
    NameTest,
    Number,
    PathExpr,
    Program,
    Sequence,
    Step,
    UnaryExpr,
    VariableReference,
)
from pathcast.query.syntax import Literal as String
from pathcast.query.truth import KnownTruth
from pathcast.query.xquery.notation import text_of
from pathcast.query.xquery.reader import parse

_Value: TypeAlias = tuple[str, Any]
"""The type of a constant, and its value as Python compares it."""

_SWAPPED: Final = MappingProxyType(
    {
        BinaryOperator.EQ: BinaryOperator.EQ,
        BinaryOperator.NE: BinaryOperator.NE,
        BinaryOperator.LT: BinaryOperator.GT,
        BinaryOperator.LE: BinaryOperator.GE,
        BinaryOperator.GT: BinaryOperator.LT,
        BinaryOperator.GE: BinaryOperator.LE,
    }
)
_GENERAL: Final[Mapping[BinaryOperator, BinaryOperator]] = MappingProxyType(
    {
        each: BinaryOperator[each.name.removeprefix("VALUE_")]
        for each in BinaryOperator
        if each.is_of_values or each in EQUALITIES | ORDERS
    }
)
"""Comparisons -> the general one that says the same of one value."""
_JOINING: Final = (BinaryOperator.AND, BinaryOperator.OR)
_TRUTHS: Final = frozenset(
    {
        *("boolean", "contains", "contains-token", "empty", "ends-with", "exists", "matches"),
        *("not", "starts-with"),
    }
)
"""Functions that give booleans, and are looked at wherever they stand."""
_MOMENTS: Final = frozenset({"date", "dateTime", "time"})
_DURATIONS: Final = frozenset({"dayTimeDuration", "yearMonthDuration"})
_GIVEN_TYPES: Final = MappingProxyType(
    {
        "current-date": "date",
        "current-dateTime": "dateTime",
        "current-time": "time",
        "dateTime": "dateTime",
        "implicit-timezone": "dayTimeDuration",
        "adjust-date-to-timezone": "date",
        "adjust-dateTime-to-timezone": "dateTime",
        "adjust-time-to-timezone": "time",
    }
)
"""Functions that give dates, times or durations."""
_SEVERAL: Final = frozenset(
    {
        *("data", "distinct-values", "id", "index-of", "insert-before", "last", "position"),
        *("remove", "reverse", "string-to-codepoints", "subsequence", "tail", "tokenize"),
    }
)
"""Functions that give several values, or another one after each predicate."""
_PARTS: Final[Mapping[str, tuple[int, float]]] = MappingProxyType(
    {
        "month": (1, 12),
        "day": (1, 31),
        "hours": (0, 23),
        "minutes": (0, 59),
        # Less than 60, with as many digits as there are.
        "seconds": (0, 59.999999999),
    }
)
"""Parts of dates and times -> the least and the greatest value."""
_CASES: Final[Mapping[str, tuple[Callable[[str], str], str]]] = MappingProxyType(
    {
        "lower-case": (str.lower, "lower-case() gives no capital letters"),
        "upper-case": (str.upper, "upper-case() gives no small letters"),
    }
)


def program_truths(program: Program) -> list[ConditionIssue]:
    """The conditions of a program whose truth is known before any message, by place.

    Cost: linear in the program, but for conjunctions, whose members are compared with each other.
    """
    walk = ConditionWalk(_XQuery(program))
    walk.expression(program.body, is_decisive=False)
    return sorted(walk.issues, key=lambda issue: issue.offset)


class _XQuery:
    """The judgements of XQuery on the conditions of a program."""

    def __init__(self, program: Program) -> None:
        bound = list(_bound(program.body))
        several = {name for name, is_one in bound if not is_one}
        self.single = {name for name, is_one in bound if is_one} - several

    def shown(self, expr: Expr) -> str:
        return text_of(Program(expr))

    def is_truth(self, expr: Any) -> bool:
        match expr:
            case BinaryExpr(operators=(operator, *_)):
                return operator in _GENERAL or operator in _JOINING
            case FunctionCall(name=name):
                return name in _TRUTHS
        return False

    def is_position(self, expr: Expr) -> bool:
        return isinstance(expr.operand if isinstance(expr, UnaryExpr) else expr, Number)

    def is_needed(self, operand: Expr, expr: BinaryExpr) -> bool:
        return False

    def own_truth(self, expr: Expr) -> KnownTruth | None:
        found = None
        if isinstance(expr, FunctionCall):
            found = _of_call(expr)
        elif isinstance(expr, BinaryExpr) and expr.operators[0] in _GENERAL:
            found = _of_comparison(expr)
        return None if found is None else (found[0], f"`{self.shown(expr)}`: {found[1]}")

    def meant(self, expr: Expr, beside: Iterable[Expr]) -> str | None:
        return None

    def nodes_asked(self, expr: Expr) -> Expr | None:
        return None

    def excluded(self, expr: Expr) -> tuple[str, object] | None:
        return None

    def compare(
        self, walk: ConditionWalk, expr: Expr, scope: str, found: Conjunction, is_decisive: bool
    ) -> None:
        """Takes one more comparison of a value with constants."""
        if not isinstance(expr, BinaryExpr) or expr.operators[0] not in _GENERAL:
            return
        left, operator, right = _constant_last(expr)
        bounds = _bounds(operator, right)
        if bounds is None or not self.is_single(left, is_value=expr.operators[0].is_of_values):
            return
        name = self.shown(left)
        known = found.values.setdefault(name + scope if depends_on_list(name) else name, [])
        for earlier, before in known:
            if before.kind == bounds.kind and not before.meets(bounds):
                both = f"`{self.shown(expr)}` and `{self.shown(earlier)}` exclude each other"
                walk.say("never", expr, both, is_decisive)
                break
        known.append((expr, bounds))

    def is_single(self, expr: Expr, *, is_value: bool) -> bool:
        """Whether an expression gives one value at most, and the same one each time."""
        match expr:
            case VariableReference(name=name):
                return name in self.single
            case ContextItem() | Cast():
                return True
            case FunctionCall(name=name):
                return name not in _SEVERAL
            case LocationPath(is_absolute=False, steps=steps) if all(map(_is_one, steps)):
                return True
            case PathExpr(start=VariableReference(name=name), steps=steps):
                return is_value or (name in self.single and all(map(_is_one, steps)))
        # A value comparison reads the first item.
        return is_value


def _bound(part: Any) -> Iterator[tuple[str, bool]]:
    """The variables that a part of a program binds, and whether each to one item at a time."""
    if isinstance(part, tuple):
        for each in part:
            yield from _bound(each)
    elif is_dataclass(part):
        match part:
            case For(variable=variable, position=position):
                yield variable, True
                if position is not None:
                    yield position, True
            case Let(variable=variable):
                yield variable, False
        for field in fields(part):
            yield from _bound(getattr(part, field.name))


def _is_one(step: Step) -> bool:
    """Whether a step leads to one node at most."""
    test = step.test
    is_name = isinstance(test, NameTest) and None not in (test.uri, test.local)
    return not step.predicates and (
        step.axis is Axis.SELF or (step.axis is Axis.ATTRIBUTE and is_name)
    )


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The values that are possible: one of some, or between two.

    Attributes:
        kind: The type of the constants.
        values: The values that are equal; None for an order.
        least: The least value, and whether itself is one.
        most: The greatest value, and whether itself is one.
    """

    kind: str
    values: tuple[Any, ...] | None
    least: tuple[Any, bool] | None = None
    most: tuple[Any, bool] | None = None

    def has(self, value: Any) -> bool:
        """Whether a value of the type is within them."""
        if self.values is not None:
            return value in self.values
        above = (
            self.least is None
            or value > self.least[0]
            or (self.least[1] and value == self.least[0])
        )
        below = (
            self.most is None or value < self.most[0] or (self.most[1] and value == self.most[0])
        )
        return above and below

    def meets(self, other: _Bounds) -> bool:
        """Whether a value may be within both."""
        for one, another in ((self, other), (other, self)):
            if one.values is not None:
                return any(another.has(value) for value in one.values)
        least = [each.least for each in (self, other) if each.least is not None]
        most = [each.most for each in (self, other) if each.most is not None]
        return all(
            low[0] < high[0] or (low[0] == high[0] and low[1] and high[1])
            for low in least
            for high in most
        )


def _bounds(operator: BinaryOperator, right: Expr) -> _Bounds | None:
    constants = [_value_of(each) for each in _listed(right)]
    if not constants or None in constants:
        return None
    known = [each for each in constants if each is not None]
    kind = known[0][0]
    if any(each[0] != kind for each in known):
        return None
    values = tuple(each[1] for each in known)
    if operator is BinaryOperator.EQ:
        return _Bounds(kind, values)
    if len(values) > 1 or operator is BinaryOperator.NE:
        return None
    is_closed = operator in (BinaryOperator.LE, BinaryOperator.GE)
    if operator in (BinaryOperator.GT, BinaryOperator.GE):
        return _Bounds(kind, None, least=(values[0], is_closed))
    return _Bounds(kind, None, most=(values[0], is_closed))


def _listed(expr: Expr) -> tuple[Expr, ...]:
    return expr.items if isinstance(expr, Sequence) else (expr,)


def _value_of(expr: Expr) -> _Value | None:
    """The value of a constant; None of a date that Python's calendar does not have."""
    match expr:
        case String(value=value):
            return "string", value
        case Number(value=number):
            return "number", float(number)
        case Cast(to=to, operand=String(value=text)):
            with suppress(ValueError):
                moment = datetime.fromisoformat(text.strip())
                if (to == "dateTime" and "T" in text) or (to == "date" and len(text.strip()) == 10):
                    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
                    return to, zoned
    return None


def _constant_last(expr: BinaryExpr) -> tuple[Expr, BinaryOperator, Expr]:
    left, right = expr.operands
    operator = _GENERAL[expr.operators[0]]
    if _is_constant(left) and not _is_constant(right):
        return right, _SWAPPED[operator], left
    return left, operator, right


def _is_constant(expr: Expr) -> bool:
    match expr:
        case String() | Number():
            return True
        case Cast(operand=operand):
            return isinstance(operand, String | Number)
        case Sequence(items=items):
            return all(map(_is_constant, items))
    return False


def _shown(expr: Expr) -> str:
    """An expression as canonical text has it."""
    return text_of(Program(expr))


# What one condition says by itself.


def _of_comparison(expr: BinaryExpr) -> KnownTruth | None:
    left, operator, right = _constant_last(expr)
    if right == Sequence(()) or left == Sequence(()):
        return "never", "no item compares with none"
    return (
        _of_types(left, right)
        or _of_texts(left, operator, right)
        or _of_whole_numbers(left, operator, right)
        or _of_parts(left, operator, right)
    )


def _of_types(left: Expr, right: Expr) -> KnownTruth | None:
    """Values of types that have no comparison."""
    one, other = _type_of(left), _type_of(right)
    if one in _MOMENTS | _DURATIONS:
        texts = [each.value for each in _listed(right) if isinstance(each, String | Number)]
        if texts and len(texts) == len(_listed(right)):
            if all(not isinstance(text, str) for text in texts):
                return "never", f"an xs:{one} does not compare with a number"
            if all(isinstance(text, str) and not _is_value(text, one) for text in texts):
                return "never", f"{texts[0]!r} is no xs:{one}"
    kinds = {one, other}
    is_moment = bool(kinds & (_MOMENTS | _DURATIONS))
    if is_moment and None not in kinds and len(kinds) > 1 and not kinds <= _DURATIONS:
        return "never", f"an xs:{one} does not compare with an xs:{other}"
    return None


def _type_of(expr: Expr) -> str | None:
    """The type of dates, times, durations, numbers or booleans that all values are of."""
    match expr:
        case Cast(to=to) if to != "string":
            return to
        case FunctionCall(name=name):
            return _GIVEN_TYPES.get(name)
    return None


@cache
def _is_value(text: str, to: str) -> bool:
    """Whether a text can be cast to a type."""
    quoted = text.replace("&", "&amp;").replace('"', '""')
    try:
        parse(f'xs:{to}("{quoted}"), //a')
    except QuerySyntaxError:
        return False
    return True


def _of_texts(left: Expr, operator: BinaryOperator, right: Expr) -> KnownTruth | None:
    """A function of a text beside texts that it never gives."""
    texts = [each.value for each in _listed(right) if isinstance(each, String | Number)]
    if not isinstance(left, FunctionCall) or operator is not BinaryOperator.EQ:
        return None
    if not texts or len(texts) < len(_listed(right)):
        return None
    reasons = [_ungiven(left, text, "=") if isinstance(text, str) else None for text in texts]
    return ("never", reasons[0]) if reasons[0] is not None and None not in reasons else None


def _ungiven(call: FunctionCall, text: str, at: str) -> str | None:
    """Why a function never gives a text, or one with it `at` some end; None if it may."""
    if call.name in _CASES:
        change, reason = _CASES[call.name]
        # A letter that has no other case, or several, is left alone.
        changed = any(change(each) != each and change(each).swapcase() == each for each in text)
        return reason if changed else None
    if call.name == "normalize-space":
        ends = [
            text[:1].isspace() and at in ("=", "starts"),
            text[-1:].isspace() and at in ("=", "ends"),
        ]
        is_odd = any(ends) or "  " in text or any(sign in text for sign in "\t\r\n")
        return "normalize-space() gives single blanks between words" if is_odd else None
    if call.name == "substring" and len(call.arguments) == 3 and at == "=":
        length = call.arguments[2]
        if isinstance(length, Number):
            most = max(round(length.value + 0.499), 0)
            return f"substring() gives {most} characters at most" if len(text) > most else None
    return None


def _of_whole_numbers(left: Expr, operator: BinaryOperator, right: Expr) -> KnownTruth | None:
    if not isinstance(left, FunctionCall) or left.name not in ("count", "string-length"):
        return None
    reason = f"{left.name}() gives whole numbers from 0 on"
    return _of_range(operator, right, (0, float("inf")), reason, is_whole=True)


def _of_parts(left: Expr, operator: BinaryOperator, right: Expr) -> KnownTruth | None:
    part, _, of = left.name.partition("-from-") if isinstance(left, FunctionCall) else ("", "", "")
    if part not in _PARTS or of == "duration":
        return None
    least, most = _PARTS[part]
    reason = f"{part}-from-{of}() gives numbers from {least} to {most:.0f}"
    if part == "seconds":
        reason = f"seconds-from-{of}() gives numbers from 0 to less than 60"
    found = _of_range(operator, right, (least, most), reason, is_whole=part != "seconds")
    # Where there is no date, there is no part, and no comparison holds.
    return found if found is not None and found[0] == "never" else None


def _of_range(
    operator: BinaryOperator,
    right: Expr,
    bounds: tuple[float, float],
    reason: str,
    *,
    is_whole: bool,
) -> KnownTruth | None:
    """Compare a number between bounds with a constant, if the bounds decide it."""
    if not isinstance(right, Number):
        return None
    value, (least, most) = float(right.value), bounds
    is_among = least <= value <= most and not (is_whole and value % 1)
    always, never = {
        BinaryOperator.EQ: (False, not is_among),
        BinaryOperator.NE: (not is_among, False),
        BinaryOperator.LT: (most < value, least >= value),
        BinaryOperator.LE: (most <= value, least > value),
        BinaryOperator.GT: (least > value, most <= value),
        BinaryOperator.GE: (least >= value, most < value),
    }[operator]
    if always or never:
        return ("always" if always else "never"), reason
    return None


def _of_call(call: FunctionCall) -> KnownTruth | None:
    """Judge a search for a text or a pattern, if the function alone decides it."""
    match call:
        case FunctionCall(
            "contains" | "starts-with" | "ends-with", (FunctionCall() as text, String(part))
        ):
            at = {"starts-with": "starts", "ends-with": "ends"}.get(call.name, "in")
            reason = _ungiven(text, part, at)
            return None if reason is None else ("never", reason)
        case FunctionCall("matches", (_, String(pattern))) if not {*pattern} & {*"^$"}:
            return ("always", "the pattern matches the empty text") if _is_void(pattern) else None
    return None


@cache
def _is_void(pattern: str) -> bool:
    """Whether a pattern matches the empty text."""
    quoted = pattern.replace("&", "&amp;").replace('"', '""')
    try:
        parse(f'replace(//a, "{quoted}", "")')
    except QuerySyntaxError as error:
        return error.code == "FORX0003"
    return False
