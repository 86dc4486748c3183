"""The clauses and conditions of a FLWR, one by one: for explanations.

Example:
    >>> [parts] = parts_of("for $b in //b where $b/@n > 1 return <r>{$b}</r>", {}, "fragment")
    >>> [(part.words, part.xpath) for part in parts]
    [('for $b in //b', '//b'), ('where $b/@n > 1', '//b[@n>1]')]
    >>> parts[1].left
    'exists(for $v1 in //b where $v1/@n > 1 return 1)'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from textwrap import shorten
from typing import Any, Final, NamedTuple

from pathcast.errors import PathcastError
from pathcast.query.atoms import COMPARISONS
from pathcast.query.names import Namespaces
from pathcast.query.notation import Notation
from pathcast.query.reader import parse as parse_xpath
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    EQUALITIES,
    ORDERS,
    Axis,
    BinaryExpr,
    BinaryOperator,
    Content,
    ContextItem,
    ElementConstructor,
    Enclosed,
    Expr,
    FilterExpr,
    Flwor,
    For,
    FunctionCall,
    If,
    Intersection,
    KindTest,
    Let,
    Literal,
    LocationPath,
    NodeKind,
    Number,
    NumberKind,
    PathExpr,
    Program,
    Quantified,
    Sequence,
    SimpleMap,
    Step,
    Text,
    VariableReference,
)
from pathcast.query.xquery.language import without_comments
from pathcast.query.xquery.notation import text_of
from pathcast.query.xquery.paper import conjuncts
from pathcast.query.xquery.reader import parse

_KEYWORDS: Final = re.compile(
    r"(?:[\s,(]|(?<=[\s)\]'\"])(?:for|let|where|and|stable|order|by|return|satisfies|then))*\Z"
)
"""The words that may stand between a part and the next."""


_COMPARED: Final = re.compile(r"\s*(?:[=<>]|!=|<=|>=|\b(?:eq|ne|lt|le|gt|ge))\Z")
"""The operator after the left side of a comparison."""


_ASKING: Final = frozenset({"contains", "contains-token", "ends-with", "matches", "starts-with"})
"""Functions that compare their arguments."""


_COMPARING: Final = ORDERS | EQUALITIES | {each for each in BinaryOperator if each.is_of_values}


WORDS_MAX: Final = 60
"""Characters shown of an expression that XPath does not say."""


class Part(NamedTuple):
    """A clause or condition.

    Attributes:
        words: As it is written.
        left: An XQuery that is true where something is left after this part and those before it.
        xpath: What has to select a node, or be true; variables are replaced by their paths. None
            where XPath 1.0 does not say it. Texts that only XQuery takes for numbers (`1e3`) are
            none in it.
        sides: Of a comparison, also by `contains` and its like, what it compares, constants aside:
            as it is written, and an XQuery that gives its values of all that is left before.
    """

    words: str
    left: str
    xpath: str | None
    sides: tuple[tuple[str, str], ...] = ()


def parts_of(query: str, namespaces: Namespaces, deliver: str) -> list[list[Part]]:
    """The parts of an XQuery in the order in which they are met, for each part of its frame.

    Args:
        query: The text.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.
        deliver: "fragment", "message", "ids" or "nodes".

    Returns:
        A list for each expression that can give a result; an empty one gives something of every
        message.

    Raises:
        QuerySyntaxError: It is no XQuery.
        UnsupportedQueryError: It holds a construct that is refused.
    """
    program = parse(query, namespaces, deliver)
    text = without_comments(query)
    found = []
    for expr in _frame(program.body):
        is_condition = deliver in ("message", "ids") and expr is program.body
        run = _Run(text, namespaces, is_condition=is_condition)
        run.add(expr)
        found.append(run.parts)
    return found


def _frame(expr: Expr | Content) -> Iterator[Expr]:
    """The expressions of which each can give a result."""
    match expr:
        case ElementConstructor(content=content):
            for part in content:
                yield from _frame(part)
        case Enclosed(expr=inner):
            yield from _frame(inner)
        case Sequence(items=items):
            for item in items:
                yield from _frame(item)
        case Literal() | Number() | Text():
            return
        case _:
            yield expr


class _Run:
    """The parts of one expression."""

    def __init__(self, query: str, namespaces: Namespaces, *, is_condition: bool) -> None:
        self.parts: list[Part] = []
        self._query = query
        self._notation = Notation(namespaces)
        self._is_condition = is_condition
        self._clauses: list[For | Let] = []
        self._conditions: list[Expr] = []
        self._values: dict[str, Expr | None] = {}
        # Variables that are bound to a node each.
        self._nodes: set[str] = set()
        self._items = 0

    def add(self, expr: Expr) -> None:
        """Adds the parts of an expression."""
        match expr:
            case Flwor(clauses=clauses, where=where, order=order, body=body):
                conditions = [] if where is None else list(conjuncts(where))
                ends = [each.offset for each in (*clauses, *conditions, *order, body)][1:]
                for clause in clauses:
                    self._bind(clause, "for", ends.pop(0))
                for condition in conditions:
                    self._check(condition, "where ", ends.pop(0))
                self.add(body)
            case If(condition=condition, then=then, otherwise=Sequence(items=())):
                for part in conjuncts(condition):
                    self._check(part, "if ", then.offset)
                self.add(then)
            case SimpleMap(source=source, body=body):
                name = self._bind_items(source, source)
                try:
                    inner = _at_item(body, name)
                except _NotInXPathError:
                    # What is asked of a position is not told.
                    return
                if _gives_nodes(inner):
                    self._add_nodes(inner, body)
                else:
                    self.add(inner)
            case _ if _gives_nodes(expr):
                self._add_nodes(expr, expr)
            case _ if self._is_condition and not self._clauses:
                self._check(expr, "", None)

    def _add_nodes(self, expr: Expr, shown: Expr) -> None:
        """Adds an expression that gives nodes, which may be written in another way."""
        if isinstance(expr, Intersection):
            self._intersect(expr, shown)
            return
        keyword = "return " if self._clauses and expr is shown else ""
        left = self._narrowed(expr)
        if not isinstance(left, VariableReference):
            self._check(left, keyword, None, shown)

    def _narrowed(self, expr: Expr) -> Expr:
        """Adds a path and its predicates that XPath does not say; gives what then remains of it."""
        if not isinstance(expr, LocationPath | PathExpr) or self._xpath(expr) is not None:
            return expr
        name = f"item.{self._items + 1}"
        for at, step in enumerate(expr.steps):
            for number in range(len(step.predicates)):
                before, asked = step.predicates[:number], step.predicates[number:]
                steps = (*expr.steps[:at], replace(step, predicates=step.predicates[: number + 1]))
                if self._xpath(replace(expr, steps=steps)) is not None:
                    continue
                nodes = replace(expr, steps=(*steps[:-1], replace(step, predicates=before)))
                if self._xpath(nodes) is None or not all(map(_is_truth, asked)):
                    return expr
                try:
                    conditions = [_at_item(each, name) for each in asked]
                except _NotInXPathError:
                    return expr
                self._bind_items(nodes, nodes)
                for condition, written in zip(conditions, asked, strict=True):
                    pairs = zip(conjuncts(condition), conjuncts(written), strict=True)
                    for each, shown in pairs:
                        self._check(each, "", None, shown)
                self._values[name] = None
                item = VariableReference(name, expr.offset)
                rest = expr.steps[at + 1 :]
                return PathExpr(item, rest, expr.offset) if rest else item
        return expr

    def _bind_items(self, expr: Expr, shown: Expr) -> str:
        """Binds a variable to each item of an expression; gives its name."""
        match expr:
            case SimpleMap(source=source, body=body):
                name = self._bind_items(source, source)
                try:
                    expr, shown = _at_item(body, name), body
                except _NotInXPathError:
                    name = ""
            case Intersection():
                self._intersect(expr, shown)
        self._items += 1
        name = f"item.{self._items}"
        self._clauses.append(For(name, None, expr))
        value = self._xpath(expr)
        if _gives_nodes(expr) and not isinstance(expr, Intersection):
            self._add(self._words(shown, None), value)
        self._values[name] = value
        self._nodes.add(name)
        return name

    def _intersect(self, expr: Intersection, shown: Expr) -> None:
        """`left intersect right` and `left except right`: each side, and then both."""
        assert isinstance(shown, Intersection)
        sides = [(shown.left, expr.left), (shown.right, expr.right)]
        for written, side in sides[:1] if expr.is_except else sides:
            self._check(side, "", None, written)
        values = [(self._words(written, None), self._values_left(side)) for written, side in sides]
        self._conditions.append(expr)
        words = [told for told, _ in values]
        operator = "except" if expr.is_except else "intersect"
        self._add(f" {operator} ".join(words), None, tuple(values))

    def _bind(self, clause: For | Let, keyword: str, end: int) -> None:
        self._clauses.append(clause)
        if isinstance(clause, Let):
            self._values[clause.variable] = self._xpath(clause.value)
            return
        words = f"{keyword} ${clause.variable} in {self._words(clause.source, end)}"
        if clause.position is None:
            self._clauses.pop()
            clause = replace(clause, source=self._narrowed(clause.source))
            self._clauses.append(clause)
        value = self._xpath(clause.source)
        self._add(words, value)
        self._values[clause.variable] = value
        self._nodes.add(clause.variable)
        if clause.position is not None:
            self._values[clause.position] = None

    def _check(
        self, condition: Expr, keyword: str, end: int | None, shown: Expr | None = None
    ) -> None:
        if isinstance(condition, Quantified) and not condition.is_every:
            # Its bindings give more tuples; whether any are left is the same.
            inner = [*conjuncts(condition.condition)]
            ends = [each.offset for each in (*condition.bindings, *inner)][1:]
            for binding in condition.bindings:
                self._bind(binding, "some", ends.pop(0))
            for each in inner:
                self._check(each, "satisfies ", ends.pop(0) if ends else end)
            return
        sides = tuple(self._sides(condition, shown or condition, end))
        self._conditions.append(condition)
        focus = None if end is None else self._focus(condition)
        found = self._xpath(condition, focus)
        nodes = None if focus is None else self._values[focus]
        if focus is not None and found is not None and isinstance(nodes, LocationPath):
            # Those of its nodes that satisfy it.
            self._values[focus] = found = _satisfying(nodes, found)
        self._add(keyword + self._words(shown or condition, end), found, sides)

    def _add(self, words: str, found: Expr | None, sides: tuple[tuple[str, str], ...] = ()) -> None:
        text = None if found is None else self._notation.expr(found)
        self.parts.append(Part(words, self._left(), text, sides))

    def _xpath(self, expr: Expr, focus: str | None = None) -> Expr | None:
        """An expression in XPath, if both languages mean the same by it."""
        try:
            found: Expr = _substituted(parse_xpath(text_of(Program(expr))), self._values, focus)
        except (PathcastError, _NotInXPathError):
            return None
        return found

    def _focus(self, condition: Expr) -> str | None:
        """The one variable that a condition is about, if it is bound to the nodes of a path."""
        names = set(_variables(condition))
        if len(names) != 1 or not names <= self._nodes:
            return None
        [name] = names
        return name if isinstance(self._values[name], LocationPath) else None

    def _sides(self, condition: Expr, shown: Expr, end: int | None) -> Iterator[tuple[str, str]]:
        """The operands of a condition, which may be written about the context item."""
        if not self._clauses:
            return
        match condition, shown:
            case BinaryExpr(operators=(operator,)), BinaryExpr(operands=(left, right)) if (
                operator in _COMPARING
            ):
                ends = (right.offset, end)
                written = [
                    _COMPARED.sub("", self._words(side, until))
                    for side, until in zip((left, right), ends, strict=True)
                ]
                sides = condition.operands
            case FunctionCall(name=name, arguments=sides), FunctionCall(arguments=arguments) if (
                name in _ASKING
            ):
                written = [self._words(each, None) for each in arguments]
            case _:
                return
        for side, words in zip(sides, written, strict=True):
            if not isinstance(side, Literal | Number):
                yield words, self._values_left(side)

    def _values_left(self, side: Expr) -> str:
        """An XQuery that gives the values of an expression, of all that is left."""
        item = "item"
        each = (For(item, None, side),)
        values = Flwor(each, None, (), FunctionCall("string", (VariableReference(item),)))
        clauses = tuple(self._clauses)
        return text_of(Program(Flwor(clauses, self._where(), (), values) if clauses else values))

    def _words(self, expr: Expr, end: int | None) -> str:
        """An expression as it is written, up to the next part."""
        if end is None:
            # Where it ends is not known.
            text = text_of(Program(expr))
            try:
                return self._notation.expr(parse_xpath(text))
            except PathcastError:
                return shorten(text, WORDS_MAX, placeholder=" ...")
        text = self._query[expr.offset : end]
        words = " ".join(_KEYWORDS.sub("", text).split())
        while words.endswith(")") and words.count(")") > words.count("("):
            words = words[:-1].rstrip()
        return words

    def _where(self) -> Expr | None:
        conditions = tuple(self._conditions)
        if len(conditions) > 1:
            return BinaryExpr((BinaryOperator.AND,) * (len(conditions) - 1), conditions)
        return next(iter(conditions), None)

    def _left(self) -> str:
        where = self._where()
        if not self._clauses and where is not None:
            return text_of(Program(where))
        one = Number(1, NumberKind.INTEGER)
        flwor = Flwor(tuple(self._clauses), where, (), one)
        return text_of(Program(FunctionCall("exists", (flwor,))))


def _gives_nodes(expr: Expr) -> bool:
    """Whether an expression is one of nodes, as it is written."""
    match expr:
        case LocationPath() | PathExpr() | FilterExpr() | Intersection():
            return True
    return isinstance(expr, BinaryExpr) and expr.operators[0] is BinaryOperator.UNION


def _is_truth(expr: Expr) -> bool:
    """Whether a predicate asks whether something holds, and not for a position."""
    match expr:
        case BinaryExpr(operators=(operator, *_)):
            joins = (BinaryOperator.AND, BinaryOperator.OR)
            return operator in joins or operator in _COMPARING
        case FunctionCall(name=name):
            return name in _ASKING or name in ("boolean", "empty", "exists", "not")
    return isinstance(expr, LocationPath | Quantified)


def _at_item(part: Any, name: str) -> Any:
    """A part of an expression with a variable for its context item.

    Raises:
        _NotInXPathError: It asks for the position of the item.
    """
    match part:
        case ContextItem(offset=offset):
            return VariableReference(name, offset)
        case LocationPath(is_absolute=False, steps=steps, offset=offset):
            return PathExpr(VariableReference(name, offset), steps, offset)
        case FunctionCall(name="position" | "last" | "lang"):
            raise _NotInXPathError
        # What follows has items of its own.
        case Step():
            return part
        case FilterExpr(primary=primary):
            return replace(part, primary=_at_item(primary, name))
        case SimpleMap(source=source):
            return replace(part, source=_at_item(source, name))
        case tuple():
            return tuple(_at_item(each, name) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    inner = {field.name: _at_item(getattr(part, field.name), name) for field in fields(part)}
    return replace(part, **inner)


def _variables(expr: object) -> Iterator[str]:
    """The names of the variables in an expression."""
    if isinstance(expr, VariableReference):
        yield expr.name
    elif isinstance(expr, tuple):
        for each in expr:
            yield from _variables(each)
    elif is_dataclass(expr):
        for field in fields(expr):
            yield from _variables(getattr(expr, field.name))


class _NotInXPathError(Exception):
    """XPath 1.0 does not say it, or says something else by it."""


def _substituted(part: Any, values: Mapping[str, Expr | None], focus: str | None) -> Any:
    """A part of an XPath with variables replaced: the focus by the context node."""
    match part:
        case VariableReference(name=name, offset=at) if name == focus:
            itself = KindTest(NodeKind.NODE, offset=at)
            return LocationPath(False, (Step(Axis.SELF, itself, (), at),), at)
        case VariableReference(name=name):
            value = values[name]
            if value is None:
                raise _NotInXPathError
            return value
        case PathExpr(start=start, steps=steps):
            steps = _substituted(steps, values, focus)
            if isinstance(start, VariableReference) and start.name == focus:
                return LocationPath(False, steps, part.offset)
            start = _substituted(start, values, focus)
            if isinstance(start, LocationPath):
                return replace(start, steps=start.steps + steps)
            return replace(part, start=start, steps=steps)
        case Step(predicates=predicates):
            return replace(part, predicates=_substituted(predicates, values, None))
        case FilterExpr(primary=primary, predicates=predicates):
            primary = _substituted(primary, values, focus)
            return replace(part, primary=primary, predicates=_substituted(predicates, values, None))
        case tuple():
            return tuple(_substituted(each, values, focus) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    names = [field.name for field in fields(part)]
    inner = {name: _substituted(getattr(part, name), values, focus) for name in names}
    found = replace(part, **inner)
    if isinstance(found, BinaryExpr):
        _check_comparison(found)
    return found


def _check_comparison(expr: BinaryExpr) -> None:
    """XQuery orders texts, where XPath orders numbers only; and the two differ on booleans."""
    kinds = {kind_of(operand) for operand in expr.operands}
    operator = expr.operators[0]
    if operator in EQUALITIES:
        is_same = Kind.BOOLEAN not in kinds and kinds != {Kind.STRING, Kind.NUMBER}
    else:
        is_same = operator not in COMPARISONS or Kind.NUMBER in kinds
    if not is_same:
        raise _NotInXPathError


def _satisfying(nodes: LocationPath, condition: Expr) -> Expr:
    """Filters nodes by a condition that is no position."""
    if kind_of(condition) is Kind.NUMBER:
        condition = FunctionCall("boolean", (condition,), condition.offset)
    if not nodes.steps:
        return FilterExpr(nodes, (condition,), nodes.offset)
    *before, last = nodes.steps
    last = replace(last, predicates=(*last.predicates, condition))
    return replace(nodes, steps=(*before, last))
