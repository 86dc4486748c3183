"""Syntax tree -> canonical text.

The text parses to the same tree, but for the names of variables and for offsets; and trees that
differ in nothing else have the same text. So equal texts are equal programs, whoever wrote them
with whatever prefixes, blanks and variables.

Variables are `$v1`, `$v2`, ... in the order in which they are bound. Names of paths are
`Q{uri}local` unless they are in the default element namespace of their place; names of constructed
elements keep their prefixes, which are part of the result.

Example:
    >>> from pathcast.query.xquery.reader import parse
    >>> text_of(parse("<hot> {for $s in  $msg//n:story return $s/title } </hot>", {"n": "urn:n"}))
    '<hot>{for $v1 in //Q{urn:n}story return $v1/title}</hot>'
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from pathcast.query.canonical import number_text
from pathcast.query.functions import CASE_BLIND, FUNCTION_NAMESPACE, SCHEMA_NAMESPACE
from pathcast.query.names import XML_NAMESPACE
from pathcast.query.notation import is_double_slash
from pathcast.query.syntax import (
    AttributeConstructor,
    Axis,
    BinaryExpr,
    BinaryOperator,
    Cast,
    Castable,
    ComputedName,
    ConstructedName,
    ContextItem,
    ElementConstructor,
    Enclosed,
    Expr,
    FilterExpr,
    Flwor,
    For,
    FunctionCall,
    If,
    InstanceOf,
    Intersection,
    KindTest,
    Let,
    Literal,
    LocationPath,
    NameTest,
    NodeKind,
    Number,
    NumberKind,
    OrderKey,
    PathExpr,
    Program,
    Quantified,
    RangeExpr,
    Sequence,
    SimpleMap,
    Step,
    Text,
    UnaryExpr,
    VariableReference,
)

_SINGLE, _OR, _AND, _COMPARISON, _RANGE, _ADDITIVE, _MULTIPLICATIVE, _UNION = range(8)
_INTERSECT, _CASTABLE, _UNARY, _MAP, _PATH, _PRIMARY = range(8, 14)

_OPERATOR_LEVELS: Final = MappingProxyType(
    {
        BinaryOperator.OR: _OR,
        BinaryOperator.AND: _AND,
        BinaryOperator.PLUS: _ADDITIVE,
        BinaryOperator.MINUS: _ADDITIVE,
        BinaryOperator.MULTIPLY: _MULTIPLICATIVE,
        BinaryOperator.DIV: _MULTIPLICATIVE,
        BinaryOperator.IDIV: _MULTIPLICATIVE,
        BinaryOperator.MOD: _MULTIPLICATIVE,
        BinaryOperator.UNION: _UNION,
    }
)
"""How tightly operators hold together; all others compare."""

_PREDECLARED: Final = (
    ("fn", FUNCTION_NAMESPACE),
    ("local", "http://www.w3.org/2005/xquery-local-functions"),
    ("xml", XML_NAMESPACE),
    ("xs", SCHEMA_NAMESPACE),
    ("xsi", "http://www.w3.org/2001/XMLSchema-instance"),
)
_IN_TEXT: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "{": "{{", "}": "}}", "\r": "&#xD;"}
)
_IN_VALUE: Final = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        '"': "&quot;",
        "{": "{{",
        "}": "}}",
        "\t": "&#x9;",
        "\n": "&#xA;",
        "\r": "&#xD;",
    }
)
_IN_STRING: Final = str.maketrans({"&": "&amp;", '"': '""', "\r": "&#xD;"})


def text_of(program: Program) -> str:
    """The canonical text of a program.

    Args:
        program: As it was parsed; or a part of it, whose free variables stay as they are.

    Returns:
        XQuery, with a prolog for the prefixes of constructed names that no constructor declares.

    Cost: linear in the text, times the depth.
    """
    prolog: dict[str, str] = {}
    _find_prefixes(program.body, dict(_PREDECLARED), prolog)
    declarations = "".join(
        f'declare namespace {prefix} = "{uri.translate(_IN_STRING)}"; '
        if prefix
        else f'declare default element namespace "{uri.translate(_IN_STRING)}"; '
        for prefix, uri in sorted(prolog.items())
    )
    return declarations + _Writer(prolog).items(program.body, {})


def _find_prefixes(expr: object, bound: dict[str, str], prolog: dict[str, str]) -> None:
    """Finds the prefixes of constructed names that stand for something declared outside."""
    if isinstance(expr, ElementConstructor):
        bound = {**bound, **dict(expr.namespaces)}
        for name in (expr.name, *(each.name for each in expr.attributes)):
            for prefix, uri in _bindings(name, is_attribute=name is not expr.name):
                if bound.get(prefix, "") != uri:
                    prolog[prefix] = uri
    if isinstance(expr, tuple):
        for each in expr:
            _find_prefixes(each, bound, prolog)
    elif hasattr(expr, "__dataclass_fields__") and not isinstance(expr, ConstructedName):
        for field in expr.__dataclass_fields__:
            value = getattr(expr, field)
            if not isinstance(value, str | int | float | None):
                _find_prefixes(value, bound, prolog)


class _Writer:
    """Writes expressions.

    Attributes:
        default: The default element namespace of the place.
        schema: How the names of types begin there.
        bound: How many variables have been bound.
    """

    def __init__(self, prolog: dict[str, str]) -> None:
        self.default = prolog.get("", "")
        self.schema = _schema_prefix(prolog, "xs:")
        self.bound = 0

    def fresh(self) -> str:
        self.bound += 1
        return f"v{self.bound}"

    def items(self, expr: Expr, names: dict[str, str]) -> str:
        """An expression where commas may stand."""
        if isinstance(expr, Sequence) and expr.items:
            return ", ".join(self.expr(item, names) for item in expr.items)
        return self.expr(expr, names)

    def expr(self, expr: Expr, names: dict[str, str], level: int = _SINGLE) -> str:
        """An expression, in parentheses if it holds together more loosely than a level."""
        text, own = self._expr(expr, names)
        return f"({text})" if own < level else text

    def _expr(self, expr: Expr, names: dict[str, str]) -> tuple[str, int]:
        """An expression and how tightly it holds together."""
        match expr:
            case LocationPath(is_absolute=is_absolute, steps=steps):
                return self.path(is_absolute, steps, names)
            case PathExpr(start=start, steps=steps):
                level = _PATH if isinstance(start, FilterExpr) else _PRIMARY
                return self.steps(steps, self.expr(start, names, level), names), _PATH
            case VariableReference(name=name):
                return f"${names.get(name, name)}", _PRIMARY
            case Literal(value=value):
                return f'"{value.translate(_IN_STRING)}"', _PRIMARY
            case Number():
                return _number(expr), _PRIMARY
            case ContextItem():
                return ".", _PRIMARY
            case FunctionCall(name=function, arguments=arguments):
                inner = ", ".join(self.expr(each, names) for each in arguments)
                return f"{function}({inner})", _PRIMARY
            case Cast(to=to, operand=operand):
                return f"{self.schema}{to}({self.expr(operand, names)})", _PRIMARY
            case Sequence():
                return f"({self.items(expr, names) if expr.items else ''})", _PRIMARY
            case ElementConstructor():
                return self.element(expr, names), _PATH
            case FilterExpr(primary=primary, predicates=predicates):
                before = self.expr(primary, names, _PRIMARY)
                return before + self.predicates(predicates, names), _PATH
            case Flwor():
                return self.flwor(expr, dict(names)), _SINGLE
            case Quantified():
                return self.quantified(expr, dict(names)), _SINGLE
            case If(condition=condition, then=then, otherwise=otherwise):
                parts = (self.expr(each, names) for each in (condition, then, otherwise))
                return "if ({}) then {} else {}".format(*parts), _SINGLE
        return self.operators(expr, names)

    def operators(self, expr: Expr, names: dict[str, str]) -> tuple[str, int]:
        """Operators and their operands."""
        match expr:
            case BinaryExpr(operators=(operator, *_), operands=operands):
                return self.binary(operator, operands, names)
            case Intersection(is_except=is_except, left=left, right=right):
                word = "except" if is_except else "intersect"
                before = self.expr(left, names, _INTERSECT)
                return f"{before} {word} {self.expr(right, names, _CASTABLE)}", _INTERSECT
            case RangeExpr(first=first, last=last):
                before = self.expr(first, names, _ADDITIVE)
                return f"{before} to {self.expr(last, names, _ADDITIVE)}", _RANGE
            case SimpleMap(source=source, body=body):
                before = self.expr(source, names, _MAP)
                return f"{before} ! {self.expr(body, names, _PATH)}", _MAP
            case InstanceOf(operand=operand, item=item, occurrence=occurrence):
                wanted = self.item_type(item) + occurrence
                # In parentheses among operators: a * or + after it would say how many items.
                return f"{self.expr(operand, names, _CASTABLE)} instance of {wanted}", _COMPARISON
            case UnaryExpr(operand=operand):
                return f"-{self.expr(operand, names, _MAP)}", _UNARY
            case Castable(to=to, operand=operand):
                before = self.expr(operand, names, _UNARY)
                sign = "?" if expr.is_optional else ""
                return f"{before} castable as {self.schema}{to}{sign}", _CASTABLE
        raise AssertionError(expr)

    def binary(
        self, operator: BinaryOperator, operands: tuple[Expr, ...], names: dict[str, str]
    ) -> tuple[str, int]:
        """Operands with the same operator between them; sums and products lean to the left."""
        level = _OPERATOR_LEVELS.get(operator, _COMPARISON)
        first, *others = operands
        is_left = level in (_ADDITIVE, _MULTIPLICATIVE)
        text = self.expr(first, names, level if is_left else level + 1)
        for operand in others:
            text += f" {operator.value} {self.expr(operand, names, level + 1)}"
        return text, level

    # FLWOR and quantifiers.

    def flwor(self, expr: Flwor, names: dict[str, str]) -> str:
        parts: list[str] = []
        for clause in expr.clauses:
            if isinstance(clause, For):
                parts.append(f"for {self.binding(clause, names)}")
            else:
                value = self.expr(clause.value, names)
                names[clause.variable] = self.fresh()
                parts.append(f"let ${names[clause.variable]} := {value}")
        if expr.where is not None:
            parts.append(f"where {self.expr(expr.where, names)}")
        if expr.order:
            parts.append(f"order by {', '.join(self.key(key, names) for key in expr.order)}")
        parts.append(f"return {self.expr(expr.body, names)}")
        return " ".join(parts)

    def binding(self, clause: For, names: dict[str, str]) -> str:
        source = self.expr(clause.source, names)
        names[clause.variable] = self.fresh()
        position = ""
        if clause.position is not None:
            names[clause.position] = self.fresh()
            position = f" at ${names[clause.position]}"
        return f"${names[clause.variable]}{position} in {source}"

    def key(self, key: OrderKey, names: dict[str, str]) -> str:
        descending = " descending" if key.is_descending else ""
        greatest = " empty greatest" if key.is_empty_greatest else ""
        collation = f' collation "{CASE_BLIND}"' if key.is_case_blind else ""
        return self.expr(key.key, names, _OR) + descending + greatest + collation

    def quantified(self, expr: Quantified, names: dict[str, str]) -> str:
        word = "every" if expr.is_every else "some"
        bindings = ", ".join(self.binding(binding, names) for binding in expr.bindings)
        return f"{word} {bindings} satisfies {self.expr(expr.condition, names)}"

    # Paths.

    def path(
        self, is_absolute: bool, steps: tuple[Step, ...], names: dict[str, str]
    ) -> tuple[str, int]:
        """A path from the message or the context node."""
        text = self.steps(steps, "", names)
        if is_absolute:
            return (text, _PATH) if steps else ("(/)", _PRIMARY)
        return (f".{text}" if text.startswith("//") else text.removeprefix("/")), _PATH

    def steps(self, steps: tuple[Step, ...], before: str, names: dict[str, str]) -> str:
        """Steps, each after its slash."""
        text, is_after_double = before, False
        for number, step in enumerate(steps):
            is_last = number == len(steps) - 1
            if is_double_slash(step) and not is_last and not is_after_double:
                text += "//"
                is_after_double = True
                continue
            text += ("" if is_after_double else "/") + self.step(step, names)
            is_after_double = False
        return text

    def step(self, step: Step, names: dict[str, str]) -> str:
        predicates = self.predicates(step.predicates, names)
        is_node = step.test == KindTest(NodeKind.NODE)
        if is_node and step.axis is Axis.PARENT:
            return ".." + predicates
        axis = f"{step.axis.value}::"
        if step.axis is Axis.ATTRIBUTE:
            axis = "@"
        elif step.axis is Axis.CHILD and step.test != KindTest(NodeKind.ATTRIBUTE):
            axis = ""
        return axis + self.node_test(step) + predicates

    def node_test(self, step: Step) -> str:
        match step.test:
            case NameTest(uri=None, local=None):
                return "*"
            case NameTest(uri=None, local=local):
                return f"*:{local}"
            case NameTest(uri=uri, local=None):
                return f"Q{{{uri}}}*"
            case NameTest(uri=uri, local=local):
                default = "" if step.axis is Axis.ATTRIBUTE else self.default
                return f"{local}" if uri == default else f"Q{{{uri}}}{local}"
            case KindTest(kind=kind, target=target):
                inner = "" if target is None else f'"{target.translate(_IN_STRING)}"'
                return f"{kind.value}({inner})"

    def item_type(self, item: Step | str) -> str:
        if isinstance(item, str):
            return f"{self.schema}{item[3:]}" if item.startswith("xs:") else item
        if isinstance(item.test, KindTest):
            return self.node_test(item)
        kind = "attribute" if item.axis is Axis.ATTRIBUTE else "element"
        return f"{kind}({self.node_test(item)})"

    def predicates(self, predicates: tuple[Expr, ...], names: dict[str, str]) -> str:
        return "".join(f"[{self.items(predicate, names)}]" for predicate in predicates)

    # Constructors.

    def element(self, expr: ElementConstructor, names: dict[str, str]) -> str:
        if _is_computed(expr):
            return self.computed(expr, names)
        outer, declared = (self.default, self.schema), dict(expr.namespaces)
        self.default = declared.get("", self.default)
        self.schema = _schema_prefix(declared, self.schema)
        tag = self.name(expr.name, names)
        text = f"<{tag}"
        for prefix, uri in expr.namespaces:
            text += f' xmlns{":" if prefix else ""}{prefix}="{uri.translate(_IN_VALUE)}"'
        text += "".join(self.attribute(attribute, names) for attribute in expr.attributes)
        if expr.content:
            inner = "".join(self.content(each, names) for each in expr.content)
            text += f">{inner}</{tag}>"
        else:
            text += "/>"
        self.default, self.schema = outer
        return text

    def attribute(self, attribute: AttributeConstructor, names: dict[str, str]) -> str:
        value = "".join(
            part.value.translate(_IN_VALUE)
            if isinstance(part, Text)
            else f"{{{self.items(part.expr, names)}}}"
            for part in attribute.parts
        )
        return f' {self.name(attribute.name, names)}="{value}"'

    def name(self, name: ConstructedName | ComputedName, names: dict[str, str]) -> str:
        if isinstance(name, ComputedName):
            return f"{{{self.items(name.expr, names)}}}"
        return f"{name.prefix}:{name.local}" if name.prefix else name.local

    def computed(self, expr: ElementConstructor, names: dict[str, str]) -> str:
        """A constructor by its word; no tag has a computed name."""
        items: list[str] = []
        for attribute in expr.attributes:
            values = [part.expr for part in attribute.parts if isinstance(part, Enclosed)]
            value = "".join(self.items(each, names) for each in values)
            items.append(f"attribute {self.name(attribute.name, names)} {{{value}}}")
        for part in expr.content:
            match part:
                case Enclosed(expr=inner):
                    text = _value_of_text(inner)
                    items.append(
                        self.expr(inner, names)
                        if text is None
                        else f"text {{{self.items(text, names)}}}"
                    )
                case ElementConstructor():
                    items.append(self.element(part, names))
        return f"element {self.name(expr.name, names)} {{{', '.join(items)}}}"

    def content(self, part: Text | ElementConstructor | Enclosed, names: dict[str, str]) -> str:
        match part:
            case Text(value=value):
                # White space alone would be boundary space, were it not for the reference.
                if not value.strip(" \t\r\n"):
                    return f"&#x{ord(value[0]):X};{value[1:]}".replace("\r", "&#xD;")
                return value.translate(_IN_TEXT)
            case ElementConstructor():
                return self.element(part, names)
            case Enclosed(expr=expr):
                return f"{{{self.items(expr, names)}}}"


def _is_computed(expr: ElementConstructor) -> bool:
    """Whether no tag can say it: its name, that of an attribute or an element in it is computed."""
    return (
        isinstance(expr.name, ComputedName)
        or any(isinstance(each.name, ComputedName) for each in expr.attributes)
        or any(isinstance(part, ElementConstructor) and _is_computed(part) for part in expr.content)
    )


def _value_of_text(expr: Expr) -> Expr | None:
    """The expression in the braces of `text {}`, if that is what an expression stands for."""
    match expr:
        case Flwor(
            clauses=(Let(variable=name, value=value),),
            where=None,
            order=(),
            body=If(
                condition=FunctionCall(name="exists", arguments=(VariableReference(name=asked),)),
                then=FunctionCall(
                    name="string-join",
                    arguments=(VariableReference(name=joined), Literal(value=" ")),
                ),
                otherwise=Sequence(items=()),
            ),
        ) if name == asked == joined:
            return value
    return None


def _bindings(
    name: ConstructedName | ComputedName, *, is_attribute: bool
) -> Iterable[tuple[str, str]]:
    """Bindings of prefixes that a name asks for."""
    if isinstance(name, ComputedName):
        return [(prefix, uri) for prefix, uri in name.namespaces if prefix != "xml"]
    return [] if is_attribute and not name.prefix else [(name.prefix, name.uri)]


def _schema_prefix(declared: dict[str, str], around: str) -> str:
    """How the names of types begin where some prefixes are declared."""
    if "xs" not in declared:
        return around
    return "xs:" if declared["xs"] == SCHEMA_NAMESPACE else f"Q{{{SCHEMA_NAMESPACE}}}"


def _number(number: Number) -> str:
    """A number of its kind."""
    value = number.value
    if number.kind is NumberKind.INTEGER:
        return str(value)
    is_infinite = value == float("inf")
    if number.kind is NumberKind.DOUBLE:
        return "1e999" if is_infinite else f"{number_text(float(value))}e0"
    # Too many digits for a double; a decimal has no exponent.
    text = "1" + "0" * 400 if is_infinite else number_text(float(value))
    return text if "." in text else f"{text}.0"
