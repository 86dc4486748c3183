"""All of XPath 1.0 over a message, written after the recommendation.

Every sub-expression is a value in a context: a node, a position, a size. The value of one that is
asked for twice in a context it does not tell apart is kept, which makes the worst case polynomial
in expression and message. Each evaluation has a budget, counted in steps: a node visited by an
axis, a predicate evaluated, a function called, 64 characters handled by a string function.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.language import read_expression
    >>> evaluator = Evaluator(parse_message(b"<a><b>1</b><b>2</b></a>"))
    >>> evaluator.evaluate(read_expression("sum(/child::a/child::b[(. > 1)])"))
    2.0
    >>> evaluator.holds(read_expression("/child::a/child::b[3]"))
    False

It knows no variables and no prefixes: expressions are resolved (`pathcast_papers.language.static`).

Source: XPath 1.0; Gottlob, Koch and Pichler, "Efficient algorithms for processing XPath queries",
TODS 2005, for keeping values per context. Differs: steps are taken from one node after the other,
not by sets of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from pathcast.message import MessageTree
from pathcast_papers.evaluation.comparison import passes as passes_comparison
from pathcast_papers.evaluation.xpath.axes import axis_nodes, passes
from pathcast_papers.evaluation.xpath.dependence import Dependence, dependence_of
from pathcast_papers.evaluation.xpath.document import DOCUMENT_NODE, Document, Node
from pathcast_papers.language.names import XML_NAMESPACE
from pathcast_papers.language.normal import Comparison
from pathcast_papers.language.paper_class import beyond_xpath
from pathcast_papers.language.static import Kind, kind_of
from pathcast_papers.language.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    Literal,
    LocationPath,
    Number,
    PathExpr,
    Predicate,
    Step,
    UnaryExpr,
)
from pathcast_papers.language.values import (
    COMPARISONS,
    VALUE_FUNCTIONS,
    Value,
    apply,
    boolean_of,
    calculate,
    compare,
    normalize_space,
    number_of,
    string_of,
)

NodeSet: TypeAlias = tuple[Node, ...]
"""Nodes in document order, each once."""

Result: TypeAlias = Value | NodeSet
"""A value of any of the four types."""

CHARACTERS_PER_STEP: Final = 64
"""Characters of text that a string function handles for one step."""


class OverBudgetError(Exception):
    """The evaluation takes more steps than it was given."""


class Context(NamedTuple):
    """Where an expression is evaluated (XPath 1.0, 1)."""

    node: Node
    position: int = 1
    size: int = 1


class Evaluator:
    """Evaluates expressions over one message.

    Args:
        tree: The message, parsed with details.
        steps_max: Steps that one evaluation may take; any number if not given.

    Attributes:
        document: The message as XPath's tree.
        steps: Steps taken by the last evaluation.
        steps_max: Steps that the next evaluation may take.
    """

    def __init__(self, tree: MessageTree, steps_max: int | None = None) -> None:
        self.document = Document(tree)
        self.steps = 0
        self.steps_max = math.inf if steps_max is None else steps_max
        self._dependences: dict[int, Dependence] = {}
        self._kept: dict[tuple[int, Node | None, int, int], Result] = {}

    def holds(self, expr: Expr, node: Node = DOCUMENT_NODE) -> bool:
        """`boolean(expr)` with a node as context node.

        Raises:
            OverBudgetError: It takes more steps than the budget.
        """
        return _boolean(self.evaluate(expr, node))

    def evaluate(self, expr: Expr, node: Node = DOCUMENT_NODE) -> Result:
        """The value of an expression with a node as context node.

        Raises:
            OverBudgetError: It takes more steps than the budget.
        """
        self.steps = 0
        self._dependences = dependence_of(expr)
        # Kept values belong to the nodes of this syntax tree.
        self._kept.clear()
        return self.value(expr, Context(node))

    def select(self, expr: Expr, node: Node = DOCUMENT_NODE) -> list[Node]:
        """The nodes of an expression that is a node-set, in document order."""
        result = self.evaluate(expr, node)
        if not isinstance(result, tuple):
            raise TypeError("the expression is no node-set")
        return list(result)

    def charge(self, steps: int) -> None:
        """Takes steps off the budget."""
        self.steps += steps
        if self.steps > self.steps_max:
            raise OverBudgetError

    # Values.

    def value(self, expr: Expr, context: Context) -> Result:
        """The value of a sub-expression in a context."""
        if isinstance(expr, Literal | Number):
            return expr.value
        depends = self._dependences[id(expr)]
        key = (
            id(expr),
            context.node if depends & Dependence.NODE else None,
            context.position if depends & Dependence.POSITION else 0,
            context.size if depends & Dependence.SIZE else 0,
        )
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = self.computed(expr, context)
        return kept

    def computed(self, expr: Expr, context: Context) -> Result:
        """The value of a sub-expression that has not been evaluated in this context."""
        match expr:
            case LocationPath(is_absolute=is_absolute, steps=steps):
                start = DOCUMENT_NODE if is_absolute else context.node
                return self.path((start,), steps)
            case PathExpr(start=before, steps=steps):
                return self.path(self.nodes(before, context), steps)
            case FilterExpr(primary=primary, predicates=predicates):
                # Positions count in document order (3.3).
                return tuple(self.filtered(list(self.nodes(primary, context)), predicates))
            case FunctionCall():
                return self.call(expr, context)
            case UnaryExpr(minuses=minuses, operand=operand):
                number = self.number(operand, context)
                return -number if minuses % 2 else number
            case BinaryExpr():
                return self.binary(expr, context)
        raise AssertionError(expr)

    def nodes(self, expr: Expr, context: Context) -> NodeSet:
        """The value of an expression that is a node-set."""
        result = self.value(expr, context)
        if not isinstance(result, tuple):
            raise AssertionError(expr)
        return result

    def plain(self, expr: Expr, context: Context) -> Value:
        """The value of an expression; of a node-set, the string-value of the first node."""
        result = self.value(expr, context)
        if not isinstance(result, tuple):
            return result
        return self.string_value(result[0]) if result else ""

    def number(self, expr: Expr, context: Context) -> float:
        """The value of an expression as a number."""
        return number_of(self.plain(expr, context))

    def boolean(self, expr: Expr, context: Context) -> bool:
        """The value of an expression as a boolean."""
        return _boolean(self.value(expr, context))

    def string_value(self, node: Node) -> str:
        """The string-value of a node."""
        text = self.document.string_value(node)
        self.charge(len(text) // CHARACTERS_PER_STEP)
        return text

    # Operators.

    def binary(self, expr: BinaryExpr, context: Context) -> Result:
        """Operators of one level, from left to right (3.1, 3.4, 3.5)."""
        first, *others = expr.operands
        if expr.operators[0] is BinaryOperator.OR:
            return any(self.boolean(operand, context) for operand in expr.operands)
        if expr.operators[0] is BinaryOperator.AND:
            return all(self.boolean(operand, context) for operand in expr.operands)
        if expr.operators[0] is BinaryOperator.UNION:
            united = {node for each in expr.operands for node in self.nodes(each, context)}
            return tuple(sorted(united))
        beyond = beyond_xpath(expr)
        if beyond is not None:
            return self.is_passed(*beyond, context)
        result = self.value(first, context)
        for operator, operand in zip(expr.operators, others, strict=True):
            right = self.value(operand, context)
            if operator in COMPARISONS:
                result = self.compared(operator, result, right)
            else:
                result = calculate(operator, self.as_number(result), self.as_number(right))
        return result

    def is_passed(self, path: LocationPath, asked: Comparison, context: Context) -> bool:
        """Whether some node of a path compares as asked."""
        nodes = self.nodes(path, context)
        return any(passes_comparison(self.string_value(node), asked) for node in nodes)

    def as_number(self, result: Result) -> float:
        """A value as a number."""
        if not isinstance(result, tuple):
            return number_of(result)
        return number_of(self.string_value(result[0])) if result else math.nan

    def compared(self, operator: BinaryOperator, left: Result, right: Result) -> bool:
        """A comparison; of a node-set, whether one of its nodes compares so (3.4)."""
        if isinstance(left, bool) or isinstance(right, bool):
            return compare(operator, _plain_boolean(left), _plain_boolean(right))
        lefts = self.comparable(left)
        rights = self.comparable(right)
        if operator is BinaryOperator.EQ and isinstance(left, tuple) and isinstance(right, tuple):
            return not set(lefts).isdisjoint(rights)
        return any(compare(operator, one, other) for one in lefts for other in rights)

    def comparable(self, result: Result) -> list[Value]:
        """The values that a comparison tries: each string-value of a node-set once."""
        if not isinstance(result, tuple):
            return [result]
        return list(dict.fromkeys(self.string_value(node) for node in result))

    # Paths.

    def path(self, nodes: NodeSet, steps: Sequence[Step]) -> NodeSet:
        """The nodes that steps lead to from some nodes (2.1)."""
        for step in steps:
            found: set[Node] = set()
            for node in nodes:
                found.update(self.step(step, node))
            nodes = tuple(sorted(found))
        return nodes

    def step(self, step: Step, node: Node) -> list[Node]:
        """The nodes that one step leads to from one node, in the order of its axis."""
        candidates = axis_nodes(self.document, step.axis, node)
        self.charge(len(candidates))
        passing = [each for each in candidates if passes(self.document, step.axis, step.test, each)]
        return self.filtered(passing, step.predicates)

    def filtered(self, nodes: list[Node], predicates: Sequence[Predicate]) -> list[Node]:
        """Filter a list by predicates; positions count in its order (2.4)."""
        for predicate in predicates:
            self.charge(len(nodes))
            is_number = kind_of(predicate.expr) is Kind.NUMBER
            size = len(nodes)
            kept: list[Node] = []
            for position, node in enumerate(nodes, start=1):
                context = Context(node, position, size)
                result = self.value(predicate.expr, context)
                if result == position if is_number else _boolean(result):
                    kept.append(node)
            nodes = kept
        return nodes

    # Functions.

    def call(self, expr: FunctionCall, context: Context) -> Result:
        """A call of a core function (4)."""
        self.charge(1)
        name, arguments = expr.name, expr.arguments
        match name:
            case "last":
                return float(context.size)
            case "position":
                return float(context.position)
            case "count":
                return float(len(self.nodes(arguments[0], context)))
            case "sum":
                nodes = self.nodes(arguments[0], context)
                return sum((number_of(self.string_value(node)) for node in nodes), start=0.0)
            case "id":
                return self.ids(arguments[0], context)
            case "lang":
                return self.language(string_of(self.plain(arguments[0], context)), context.node)
            case "local-name" | "namespace-uri" | "name":
                return self.name(expr, context)
            case "boolean":
                return self.boolean(arguments[0], context)
            case "not":
                return not self.boolean(arguments[0], context)
        beyond = beyond_xpath(expr)
        if beyond is not None:
            return self.is_passed(*beyond, context)
        if name not in VALUE_FUNCTIONS:
            raise AssertionError(expr)
        values = [self.plain(argument, context) for argument in arguments]
        if not values and name not in ("true", "false"):
            # Without an argument it is about the context node.
            values = [self.string_value(context.node)]
        length = sum(len(value) for value in values if isinstance(value, str))
        self.charge(length // CHARACTERS_PER_STEP)
        return apply(name, values)

    def name(self, expr: FunctionCall, context: Context) -> str:
        """The functions on names, of the first node or of the context node (4.1)."""
        nodes = self.nodes(expr.arguments[0], context) if expr.arguments else (context.node,)
        if not nodes:
            return ""
        if expr.name == "name":
            return self.document.qualified_name(nodes[0])
        uri, local = self.document.expanded_name(nodes[0]) or ("", "")
        return local if expr.name == "local-name" else uri

    def ids(self, argument: Expr, context: Context) -> NodeSet:
        """`id()`: the elements with ids in a string, or in the values of a node-set (4.1)."""
        result = self.value(argument, context)
        if isinstance(result, tuple):
            text = " ".join(self.string_value(node) for node in result)
        else:
            text = string_of(result)
        words = set(normalize_space(text).split(" ")) - {""}
        self.charge(len(self.document.tree.attribute_name) if words else 0)
        return tuple(self.document.elements_with_id(words))

    def language(self, wanted: str, node: Node) -> bool:
        """`lang()`: by the nearest `xml:lang` there or above; case does not count (4.3)."""
        at: Node | None = node
        while at is not None:
            self.charge(1)
            for attribute in self.document.attributes(at):
                if self.document.expanded_name(attribute) == (XML_NAMESPACE, "lang"):
                    # Only ASCII has case here.
                    found = self.document.string_value(attribute).encode().lower()
                    sought = wanted.encode().lower()
                    return found == sought or found.startswith(sought + b"-")
            at = self.document.parent(at)
        return False


def _boolean(result: Result) -> bool:
    return bool(result) if isinstance(result, tuple) else boolean_of(result)


def _plain_boolean(result: Result) -> Value:
    """A value beside a boolean: a node-set is one, too."""
    return bool(result) if isinstance(result, tuple) else result
