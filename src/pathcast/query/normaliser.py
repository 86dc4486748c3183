"""Syntax tree -> normal form.

Every rule keeps the answer to "does the query select at least one node of the message":

- A relative query is read from the document node; `$msg`, `doc("...")` and `document("...")` at
  its start mean that node.
- `/a/@b` is `/a[@b]`, `/a/text()` is `/a[text()]`; after `//` the step `//.` takes the condition,
  or an ordinary one when it can: `//@b` is `//*[@b]`, `/a/*//@b` is `/a//*[@b]`.
- `and` is split, constants go to the right, an ordering against a numeric string is one against the
  number (XPath 1.0, 3.4), conditions are sorted, equal ones are kept once.
- In a run of bare wildcards only the number of steps matters and whether a `//` is among them: it
  goes to the step after the run, and away at the end of a path.
- The nested paths of a step's last stage and the steps after it are asked of the same elements: a
  rule chooses which of them leads on, and the others are nested paths.

What is XPath but not evaluated is refused with the construct and its place.

Source: paper 003, section 2.2, for the language. Differs: XPath's meaning of positions and
comparisons throughout; see docs/query-language.md.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast.query import conditions, normal, suggestions
from pathcast.query.canonical import canonical_text
from pathcast.query.names import Namespaces, namespace_of
from pathcast.query.normal import AttributeCondition, NestedCondition, NormalQuery, TextCondition
from pathcast.query.parser import DEPTH_MAX, TEXT_BYTES_MAX, check_length, parse
from pathcast.query.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    Literal,
    LocationPath,
    NameTest,
    NodeType,
    NodeTypeTest,
    Number,
    PathExpr,
    Predicate,
    Step,
    UnaryExpr,
    VariableReference,
)

MESSAGE_VARIABLE: Final = "msg"
"""The one variable there is: the message, as papers write it."""

GROWTH_MAX: Final = 5
"""Canonical text is at most this many times as long as the query, namespace URIs aside: the worst
is `[1]`, which becomes `[position()=1]`."""

_End: TypeAlias = AttributeCondition | TextCondition | None
"""What a path ends in when it does not end in an element."""

_COMPARISONS: Final = {
    BinaryOperator.EQ: normal.Operator.EQ,
    BinaryOperator.NE: normal.Operator.NE,
    BinaryOperator.LT: normal.Operator.LT,
    BinaryOperator.LE: normal.Operator.LE,
    BinaryOperator.GT: normal.Operator.GT,
    BinaryOperator.GE: normal.Operator.GE,
}

_CALLS: Final = {operator.value: operator for operator in normal.Operator if operator.is_call}

_ONE_EACH: Final = "register one query for each alternative"


def normalise(text: str, namespaces: Namespaces | None = None) -> NormalQuery:
    """The normal form of a query.

    Args:
        text: An XPath 1.0 expression.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.

    Returns:
        The normal form; equal for queries that differ only in notation.

    Raises:
        QuerySyntaxError: The text is not XPath 1.0, or names something that is not declared.
        UnsupportedQueryError: It is XPath 1.0 but holds a construct that is not evaluated.

    Cost: linear in the text times its depth; some tens of µs.

    Example:
        >>> normalise("//a[@b]") == normalise("descendant::a[attribute::b][@b]")
        True
        >>> normalise("//a[@b or @c]")
        Traceback (most recent call last):
        ...
        pathcast.errors.UnsupportedQueryError: not supported in a standing query: or
          //a[@b or @c]
                 ^
          register one query for each alternative
    """
    normaliser = _Normaliser(text, namespaces or {})
    query = normaliser.query(parse(text))
    if GROWTH_MAX * len(text.encode()) + normaliser.uri_bytes > TEXT_BYTES_MAX:
        check_length(canonical_text(query), text)
    if text.count("[") >= DEPTH_MAX and conditions.depth(query.steps) > DEPTH_MAX:
        raise QuerySyntaxError(
            "query.too_deep", query=text, offset=0, maximum=DEPTH_MAX, reason="nests too deep"
        )
    return query


def canonical_form(text: str, namespaces: Namespaces | None = None) -> str:
    """The canonical text of a query: equal for queries that differ only in notation.

    Args:
        text: An XPath 1.0 expression.
        namespaces: As in `normalise`.

    Returns:
        A text that parses to the same normal form when no namespaces are bound.

    Raises:
        QuerySyntaxError: As in `normalise`.

    Example:
        >>> canonical_form("$msg/nitf//*/p[10 >= @x and 2]")
        Traceback (most recent call last):
        ...
        pathcast.errors.UnsupportedQueryError: not supported in a standing query: a number as a condition
          $msg/nitf//*/p[10 >= @x and 2]
                                      ^
        >>> canonical_form("$msg/nitf//*/p[10 >= @x][2]")
        '/nitf/*//p[@x<=10][position()=2]'
    """  # noqa: E501 (the message is shown as it is)
    return canonical_text(normalise(text, namespaces))


class _Normaliser:
    def __init__(self, text: str, namespaces: Namespaces) -> None:
        self.text = text
        self.namespaces = namespaces
        self.uri_bytes = 0  # what namespace URIs add to the canonical text

    # Refusals.

    def unsupported(
        self, construct: str, offset: int, suggestion: str | None = None
    ) -> UnsupportedQueryError:
        return UnsupportedQueryError(
            "query.unsupported",
            query=self.text,
            offset=offset,
            construct=construct,
            reason=f"{construct} is not supported",
            suggestion=suggestion,
        )

    def unsupported_expression(self, expr: Expr) -> UnsupportedQueryError:
        """Names what an expression is that is neither a path nor a constant."""
        construct, offset = "", expr.offset
        match expr:
            case FunctionCall(name=name):
                construct = f"function {name}()"
            case VariableReference(name=name):
                self.check_variable(expr)
                construct = f"variable ${name} inside a query"
            case FilterExpr():
                construct = "a predicate on an expression in parentheses"
            case UnaryExpr():
                construct = "arithmetic (-)"
            case BinaryExpr(operators=(operator, *_)):
                return self.unsupported_operator(operator, expr)
            case Literal():
                construct = "a string as a condition"
            case Number():
                construct = "a number as a condition"
            case PathExpr(start=start) if not isinstance(start, LocationPath):
                return self.unsupported_expression(start)
            case LocationPath() | PathExpr():
                hint = "a path in a predicate begins at its step: b/c, or .//c for any depth"
                return self.unsupported("an absolute path in a predicate", offset, hint)
        return self.unsupported(construct, offset)

    def unsupported_operator(
        self, operator: BinaryOperator, expr: BinaryExpr
    ) -> UnsupportedQueryError:
        offset = expr.operator_offset
        if operator is BinaryOperator.OR:
            return self.unsupported("or", offset, _ONE_EACH)
        if operator is BinaryOperator.UNION:
            return self.unsupported("union (|)", offset, _ONE_EACH)
        if operator is BinaryOperator.AND or operator in _COMPARISONS:
            return self.unsupported("comparison of a condition", offset)
        return self.unsupported(f"arithmetic ({operator.value})", offset)

    def check_variable(self, expr: VariableReference) -> None:
        if expr.name != MESSAGE_VARIABLE:
            raise QuerySyntaxError(
                "XPST0008",
                query=self.text,
                offset=expr.offset,
                name=expr.name,
                reason=f"variable ${expr.name} is not declared",
                suggestion=f"the message is ${MESSAGE_VARIABLE}, at the start of a query",
            )

    # The query.

    def query(self, expr: Expr) -> NormalQuery:
        path = self.path_of(expr)
        if path is None:
            raise self.unsupported_query(expr)
        steps, end, is_pending = self.walk(path.steps)
        return NormalQuery(self.finish_main(path, steps, end, is_pending))

    def finish_main(
        self,
        path: LocationPath,
        steps: list[normal.Step],
        end: normal.Condition | None,
        is_pending: bool,
    ) -> tuple[normal.Step, ...]:
        if not steps and (end is None or not is_pending):
            at = path.steps[-1].offset if path.steps else path.offset
            if isinstance(end, AttributeCondition):
                raise self.unsupported(
                    "an attribute of the document node", at, "write //@name or /*/@name"
                )
            if isinstance(end, TextCondition):
                raise self.unsupported(
                    "text of the document node", at, "write //text() or /*/text()"
                )
            raise self.unsupported(
                "the document node", at, "every message has it; write /* for any element"
            )
        conditions.end_path(steps, end, is_pending)
        return conditions.simplified(steps, is_main=True)

    def unsupported_query(self, expr: Expr) -> UnsupportedQueryError:
        if isinstance(expr, VariableReference):
            self.check_variable(expr)
            return self.unsupported("the document node", expr.offset, "write a path after it")
        if isinstance(expr, Literal | Number):
            return self.unsupported(
                "a constant as a query", expr.offset, "a query is a location path"
            )
        if isinstance(expr, FunctionCall) and expr.name in ("doc", "document"):
            return self.unsupported("the document node", expr.offset, "write a path after it")
        if isinstance(expr, BinaryExpr):
            operator = expr.operators[0]
            if operator in _COMPARISONS:
                for operand in expr.operands:
                    if self.constant(operand) is None and self.path_of(operand) is None:
                        return self.unsupported_expression(operand)
                hint = self.with_brackets(expr) or "write the condition in brackets: /a[b > 3]"
                return self.unsupported(
                    "a comparison outside a predicate", expr.operator_offset, hint
                )
            if operator is BinaryOperator.AND:
                hint = "write the conditions in brackets: /a[b and c]"
                return self.unsupported("and outside a predicate", expr.operator_offset, hint)
        return self.unsupported_expression(expr)

    def with_brackets(self, expr: BinaryExpr) -> str | None:
        """The query that a comparison outside a predicate stands for."""
        try:
            left, compare = self.comparison(expr)
            path = self.path_of(left)
            if path is None:
                return None
            steps, end, is_pending = self.walk(path.steps)
            if end is None and (is_pending or not steps):
                return None
            meant = self.finish_main(path, steps, conditions.compared(end, compare), is_pending)
        except QuerySyntaxError:
            return None
        return f"write the condition in brackets: {canonical_text(NormalQuery(meant))}"

    # Paths.

    def path_of(self, expr: Expr, *, is_main: bool = True) -> LocationPath | None:
        """The location path that an expression is, if it is one; parentheses change nothing."""
        if isinstance(expr, LocationPath):
            return expr
        if not isinstance(expr, PathExpr):
            return None
        start = self.path_of(expr.start, is_main=is_main)
        if start is not None:
            return LocationPath(start.is_absolute, start.steps + expr.steps, start.offset)
        if is_main and self.is_document(expr.start):
            return LocationPath(True, expr.steps, expr.offset)
        return None

    def is_document(self, expr: Expr) -> bool:
        """Whether an expression is a paper's way to say "the message"."""
        if isinstance(expr, VariableReference):
            self.check_variable(expr)
            return True
        if isinstance(expr, FunctionCall) and expr.name in ("doc", "document"):
            return isinstance(expr.arguments[0], Literal)
        return False

    def walk(self, written: tuple[Step, ...]) -> tuple[list[normal.Step], _End, bool]:
        """The steps to elements; what the path ends in; whether a `//` waits for a step."""
        steps: list[normal.Step] = []
        end: _End = None
        is_pending = False
        for index, step in enumerate(written):
            test = step.test
            is_node = isinstance(test, NodeTypeTest) and test.type is NodeType.NODE
            if step.axis is Axis.SELF and is_node and not step.predicates:
                continue
            if end is not None:
                kind = "an attribute" if isinstance(end, AttributeCondition) else "text()"
                raise self.unsupported(f"a step after {kind}", step.offset)
            if step.axis is Axis.DESCENDANT_OR_SELF and is_node and not step.predicates:
                is_pending = True
            elif step.axis is Axis.SELF and is_node:
                is_last = index == len(written) - 1
                steps.append(self.or_self(step, is_pending=is_pending, is_last=is_last))
                is_pending = False
            elif step.axis is Axis.ATTRIBUTE:
                end = self.attribute(step)
            elif step.axis not in (Axis.CHILD, Axis.DESCENDANT):
                raise self.unsupported(f"axis {step.axis.value}::", step.offset)
            elif isinstance(test, NameTest):
                steps.append(self.element(step, test, is_pending=is_pending))
                is_pending = False
            elif test.type is NodeType.TEXT:
                if step.predicates:
                    raise self.unsupported("a predicate on text()", step.predicates[0].offset)
                end = TextCondition()
                is_pending = is_pending or step.axis is Axis.DESCENDANT
            else:
                raise self.unsupported(f"node test {test.type.value}()", test.offset)
        return steps, end, is_pending

    def element(self, step: Step, test: NameTest, *, is_pending: bool) -> normal.Step:
        stages = self.stages(step.predicates)
        if step.axis is Axis.DESCENDANT and any(stage.positions for stage in stages):
            hint = "after // a position counts among the children of one parent: //a[2]"
            raise self.unsupported("a position on the axis descendant::", step.offset, hint)
        is_deep = is_pending or step.axis is Axis.DESCENDANT
        axis = normal.Axis.DESCENDANT if is_deep else normal.Axis.CHILD
        return normal.Step(axis, self.name_test(test, is_element=True), stages)

    def attribute(self, step: Step) -> AttributeCondition:
        if not isinstance(step.test, NameTest):
            raise self.unsupported(
                f"node test {step.test.type.value}() on attributes", step.test.offset
            )
        if step.predicates:
            raise self.unsupported("a predicate on an attribute", step.predicates[0].offset)
        return AttributeCondition(self.name_test(step.test, is_element=False))

    def or_self(self, step: Step, *, is_pending: bool, is_last: bool) -> normal.Step:
        """`//.[@a]` at the end of a path, which is how `//@a` is written canonically."""
        stages = self.stages(step.predicates)
        is_plain = len(stages) == 1 and not stages[0].positions
        if not (is_pending and is_last and is_plain):
            raise self.unsupported("a predicate on .", step.predicates[0].offset)
        for condition in stages[0].conditions:
            # A text node or comment, too, has a value: only these two ask for an element.
            if not isinstance(condition, AttributeCondition | TextCondition):
                raise self.unsupported("a predicate on .", step.predicates[0].offset)
        return normal.Step(normal.Axis.DESCENDANT_OR_SELF, normal.AnyName(), stages)

    def name_test(self, test: NameTest, *, is_element: bool) -> normal.NameTest:
        if test.uri is not None:
            uri = test.uri
        elif test.prefix == "*":
            return normal.AnyNamespace(test.local)
        elif test.prefix is not None:
            uri = self.namespace(test)
        elif test.local == "*":
            return normal.AnyName()
        else:
            uri = self.namespaces.get("", "") if is_element else ""
        if "{" in uri or "}" in uri:
            raise self.unsupported("a namespace URI with braces", test.offset)
        if not uri.isascii() and any("\ud800" <= character <= "\udfff" for character in uri):
            raise self.unsupported("a namespace URI with a lone surrogate", test.offset)
        self.uri_bytes += len(uri.encode()) + len("Q{}")
        return normal.AnyIn(uri) if test.local == "*" else normal.Name(uri, test.local)

    def namespace(self, test: NameTest) -> str:
        prefix = test.prefix or ""
        uri = namespace_of(prefix, self.namespaces)
        if uri is None:
            bound = sorted({"xml", *self.namespaces} - {""})
            meant = suggestions.nearest(prefix, bound)
            anyhow = "*" if test.local == "*" else f"*:{test.local}"
            hint = f'bind it: namespaces={{"{prefix}": "..."}}, or write {anyhow}'
            raise QuerySyntaxError(
                "XPST0081",
                query=self.text,
                offset=test.offset,
                prefix=prefix,
                reason=f"prefix {prefix} is not bound",
                suggestion=f"did you mean {meant}:?" if meant else hint,
            )
        return uri

    # Predicates.

    def stages(self, predicates: tuple[Predicate, ...]) -> tuple[normal.Stage, ...]:
        drafts: list[tuple[list[normal.Position], list[normal.Condition]]] = []
        for predicate in predicates:
            positions, found = self.predicate(predicate.expr)
            if positions or (found and not drafts):
                drafts.append((positions, found))
            elif found:
                drafts[-1][1].extend(found)
        return tuple(conditions.stage(positions, found) for positions, found in drafts)

    def predicate(self, expr: Expr) -> tuple[list[normal.Position], list[normal.Condition]]:
        number = self.constant(expr)
        if isinstance(number, float):
            return [normal.Position(normal.Operator.EQ, number)], []
        positions: list[normal.Position] = []
        found: list[normal.Condition] = []
        waiting = [expr]
        while waiting:
            part = waiting.pop()
            if isinstance(part, BinaryExpr) and part.operators[0] is BinaryOperator.AND:
                waiting.extend(reversed(part.operands))
                continue
            self.conjunct(part, positions, found)
        return positions, found

    def conjunct(
        self, expr: Expr, positions: list[normal.Position], found: list[normal.Condition]
    ) -> None:
        """A condition between `and`s."""
        compare = None
        if isinstance(expr, FunctionCall) and expr.name in _CALLS:
            found.extend(self.call(expr, _CALLS[expr.name]))
            return
        if isinstance(expr, BinaryExpr) and expr.operators[0] in _COMPARISONS:
            expr, compare = self.comparison(expr)
            if isinstance(expr, FunctionCall) and expr.name == "position":
                if isinstance(compare.constant, str):
                    raise self.unsupported("comparison of position() with a string", expr.offset)
                positions.append(normal.Position(compare.operator, compare.constant))
                return
        path = self.path_of(expr, is_main=False)
        if path is None or path.is_absolute:
            raise self.unsupported_expression(path or expr)
        steps, end, is_pending = self.walk(path.steps)
        condition: normal.Condition | None = end
        if compare is not None:
            is_or_self = bool(steps) and steps[-1].axis is normal.Axis.DESCENDANT_OR_SELF
            if end is None and (is_pending or is_or_self):
                raise self.unsupported("comparison of //.", path.steps[-1].offset)
            condition = conditions.compared(end, compare)
        if not steps and not is_pending:
            found.extend([condition] if condition is not None else [])
            return
        conditions.end_path(steps, condition, is_pending and end is not None)
        if steps:
            found.append(NestedCondition(conditions.simplified(steps, is_main=False)))

    def call(self, expr: FunctionCall, operator: normal.Operator) -> list[normal.Condition]:
        """`starts-with` or `contains` of one attribute, named in full, or of `.`."""
        path, constant = self.path_of(expr.arguments[0], is_main=False), expr.arguments[1]
        if path is None or path.is_absolute or not isinstance(constant, Literal):
            raise self.unsupported_expression(expr)
        steps, end, is_pending = self.walk(path.steps)
        is_one = end is None or (
            isinstance(end, AttributeCondition) and isinstance(end.test, normal.Name)
        )
        if steps or is_pending or not is_one:
            raise self.unsupported_expression(expr)
        if not constant.value:
            # Every string starts with the empty one and contains it.
            return []
        return [conditions.compared(end, normal.Comparison(operator, constant.value))]

    def comparison(self, expr: BinaryExpr) -> tuple[Expr, normal.Comparison]:
        """What is compared, and the comparison with a constant on its right."""
        if len(expr.operators) > 1:
            raise self.unsupported("comparison of a condition", expr.operator_offset)
        left, right = expr.operands
        operator = _COMPARISONS[expr.operators[0]]
        constants = self.constant(left), self.constant(right)
        for operand, constant in zip(expr.operands, constants, strict=True):
            is_position = isinstance(operand, FunctionCall) and operand.name == "position"
            if constant is None and not is_position and self.path_of(operand) is None:
                raise self.unsupported_expression(operand)
        left_constant, right_constant = constants
        if right_constant is not None:
            if left_constant is not None:
                raise self.unsupported("comparison of two constants", expr.operator_offset)
            return left, conditions.comparison(operator, right_constant)
        if left_constant is not None:
            return right, conditions.comparison(normal.FLIPPED[operator], left_constant)
        has_call = any(isinstance(operand, FunctionCall) for operand in expr.operands)
        what = "position() with a path" if has_call else "two paths"
        raise self.unsupported(f"comparison of {what}", expr.operator_offset)

    def constant(self, expr: Expr) -> normal.Constant | None:
        """The constant that an expression is, if it is one."""
        sign = 1.0
        while isinstance(expr, UnaryExpr):
            sign *= -1.0 if expr.minuses % 2 else 1.0
            if isinstance(expr.operand, Literal):
                return None
            expr = expr.operand
        if isinstance(expr, Literal):
            return expr.value
        if not isinstance(expr, Number):
            return None
        if expr.value == float("inf"):
            raise self.unsupported("a number beyond the range of IEEE 754 doubles", expr.offset)
        return sign * expr.value + 0.0  # no negative zero
