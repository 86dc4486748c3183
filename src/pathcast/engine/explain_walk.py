"""Walks a query through a message, and notes what every step and condition finds.

The walk follows the syntax tree. It takes location paths step by step, and asks the kernel for the
nodes of a step and the value of everything else, so that what it notes and what decides are the
same semantics; the value of the whole query is always the kernel's.

It says nothing of how the engine found the answer; see `pathcast.engine.explanation` for what it
gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pathcast.engine.explanation import (
    ExpressionExplanation,
    Failure,
    NodePlace,
    PredicateExplanation,
    StepExplanation,
    ValueType,
    counted,
)
from pathcast.engine.near_miss import SEEN_MAX, nearness, sentence, shortened, shown
from pathcast.engine.node_path import node_path
from pathcast.engine.surroundings import RESOLVED, Surroundings
from pathcast.kernel.message_nodes import (
    DOCUMENT_NODE,
    Context,
    MessageNodes,
    Node,
    Result,
)
from pathcast.query.atoms import COMPARISONS, Atom, atom_of
from pathcast.query.canonical import literal_text
from pathcast.query.names import Namespaces
from pathcast.query.notation import Notation, is_bare_self, is_double_slash
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    Literal,
    LocationPath,
    Number,
    PathExpr,
    Step,
    UnaryExpr,
)
from pathcast.query.values import boolean_of, string_of

NODES_MAX: Final = 5
"""Nodes shown of a node-set."""

NEAREST_MAX: Final = 200
"""Nodes looked at for the one that comes nearest."""

STEPS_FACTOR: Final = 10
"""Steps of the walk for every step that a verdict may take: it looks at parts again and again."""

_KINDS: Final[Mapping[BinaryOperator, str]] = {
    BinaryOperator.AND: "and",
    BinaryOperator.OR: "or",
    BinaryOperator.UNION: "union",
}


class Walk:
    """One query in one message.

    Args:
        nodes: The message.
        namespaces: The prefixes of the query.
    """

    def __init__(self, nodes: MessageNodes, namespaces: Namespaces) -> None:
        self._message = nodes
        self._notation = Notation(namespaces)
        self._around = Surroundings(nodes, namespaces)
        self._texts: dict[int, str] = {}
        self._kept: dict[tuple[int, Context], Result] = {}
        self._told: dict[tuple[int, Context], ExpressionExplanation] = {}

    def query(self, expr: Expr) -> ExpressionExplanation:
        """Evaluate a resolved query from the document node.

        Raises:
            OverBudgetError: There is too much to tell.
        """
        return self._expression(expr, Context(DOCUMENT_NODE))

    # What the kernel is asked for. Values are kept by the nodes of the syntax tree.

    def _evaluate(self, expr: Expr, contexts: Sequence[Context]) -> list[Result]:
        """The values of an expression in contexts, found together: parts of it are kept."""
        asked = [each for each in dict.fromkeys(contexts) if (id(expr), each) not in self._kept]
        if asked:
            if id(expr) not in self._texts:
                self._texts[id(expr)] = RESOLVED.expr(expr)
            values = self._message.values(self._texts[id(expr)], asked)
            self._kept.update(zip(((id(expr), each) for each in asked), values, strict=True))
        return [self._kept[id(expr), each] for each in contexts]

    def _value(self, expr: Expr, context: Context) -> Result:
        return self._evaluate(expr, [context])[0]

    def _text(self, node: Node) -> str:
        return self._message.string_value(node)

    def _path(self, node: Node) -> str:
        return node_path(self._message, node, self._notation)

    def _expression(self, expr: Expr, context: Context) -> ExpressionExplanation:
        """Evaluate an expression in a context; explained once for all depths."""
        key = (id(expr), context)
        if key not in self._told:
            self._told[key] = self._tell(expr, context)
        return self._told[key]

    def _tell(self, expr: Expr, context: Context) -> ExpressionExplanation:
        match expr:
            case LocationPath(is_absolute=is_absolute, steps=steps):
                start = DOCUMENT_NODE if is_absolute else context.node
                explained, nodes = self._steps(steps, [start], is_absolute=is_absolute)
                return self._node_set(expr, "path", nodes, steps=explained)
            case PathExpr(start=before, steps=steps):
                found = self._expression(before, context)
                starts = self._nodes(before, context)
                explained, nodes = self._steps(steps, starts, is_absolute=True)
                return self._node_set(expr, "path", nodes, steps=explained, operands=(found,))
            case FilterExpr():
                return self._filter(expr, context)
            case BinaryExpr():
                return self._binary(expr, context)
            case FunctionCall():
                return self._call(expr, context)
            case Literal() | Number():
                return self._valued(expr, "constant", context, ())
            case UnaryExpr(operand=operand):
                return self._valued(
                    expr, "arithmetic", context, (self._expression(operand, context),)
                )
        raise AssertionError(expr)

    # Expressions.

    def _node_set(
        self,
        expr: Expr,
        kind: str,
        nodes: Sequence[Node],
        *,
        steps: tuple[StepExplanation, ...] = (),
        operands: tuple[ExpressionExplanation, ...] = (),
    ) -> ExpressionExplanation:
        failure = None
        if not nodes:
            failures = (step.failure for step in steps)
            failure = next((each for each in failures if each is not None), None)
            inner = (operand.failure for operand in operands)
            failure = failure or next((each for each in inner if each is not None), None)
            failure = failure or self._failure(expr)
        return ExpressionExplanation(
            self._notation.expr(expr),
            expr.offset,
            kind,
            "node-set",
            counted(len(nodes)),
            bool(nodes),
            self._places(nodes),
            steps,
            operands,
            failure,
        )

    def _valued(
        self,
        expr: Expr,
        kind: str,
        context: Context,
        operands: tuple[ExpressionExplanation, ...],
        failure: Failure | None = None,
    ) -> ExpressionExplanation:
        """An expression with its value, and why it is false if it is."""
        value = self._value(expr, context)
        nodes = self._places(list(value)) if isinstance(value, tuple) else ()
        is_true = truth(value)
        return ExpressionExplanation(
            self._notation.expr(expr),
            expr.offset,
            kind,
            _TYPES[kind_of(expr)],
            value_text(value),
            is_true,
            nodes,
            (),
            operands,
            None if is_true else failure or self._failure(expr),
        )

    def _binary(self, expr: BinaryExpr, context: Context) -> ExpressionExplanation:
        operator = expr.operators[0]
        operands = tuple(self._expression(operand, context) for operand in expr.operands)
        kind = _KINDS.get(operator)
        if kind is None:
            kind = "comparison" if operator in COMPARISONS else "arithmetic"
        failure = None
        if kind == "and":
            failure = next((each.failure for each in operands if not each.is_true), None)
        elif kind in ("or", "union"):
            # The alternative that gets farthest comes nearest.
            _, farthest = max(
                zip(expr.operands, operands, strict=True),
                key=lambda pair: (
                    sum(step.passed > 0 for step in pair[1].steps),
                    self._nearness(pair[0], context) if kind == "or" else 0.0,
                ),
            )
            failure = farthest.failure
        elif kind == "comparison":
            failure = self._compared(expr, context, operands)
        return self._valued(expr, kind, context, operands, failure)

    def _compared(
        self, expr: BinaryExpr, context: Context, operands: Sequence[ExpressionExplanation]
    ) -> Failure:
        """Why a comparison is false."""
        atom = atom_of(expr)
        if atom is not None:
            return self._failure(expr, [self._miss(atom, context)])
        empty = [each for each in operands if each.type == "node-set" and not each.is_true]
        if empty:
            return self._failure(expr, [f"there is no `{each.text}`" for each in empty])
        values = [
            f"`{each.text}` is {self._seen(operand, context)}"
            for each, operand in zip(operands, expr.operands, strict=True)
            if each.kind != "constant"
        ]
        return self._failure(expr, [" and ".join(values)] if values else [])

    def _seen(self, expr: Expr, context: Context) -> str:
        """A value, or the values of several nodes."""
        value = self._value(expr, context)
        if not isinstance(value, tuple):
            return value_text(value)
        values = dict.fromkeys(self._text(node) for node in value)
        return " or ".join([shown(each) for each in list(values)[:SEEN_MAX]])

    def _call(self, expr: FunctionCall, context: Context) -> ExpressionExplanation:
        operands = tuple(self._expression(argument, context) for argument in expr.arguments)
        failure = None
        if expr.name == "not" and operands[0].is_true:
            found = operands[0]
            where = f" ({found.nodes[0].path})" if found.nodes else ""
            failure = self._failure(expr, [f"`{found.text}` holds{where}"])
        elif expr.name == "boolean":
            failure = operands[0].failure
        elif (atom := atom_of(expr)) is not None:
            failure = self._failure(expr, [self._miss(atom, context)])
        elif kind_of(expr) is Kind.BOOLEAN and operands:
            seen = [
                f"`{each.text}` is {self._seen(argument, context) or 'not there'}"
                for each, argument in zip(operands, expr.arguments, strict=True)
                if each.kind != "constant"
            ]
            failure = self._failure(expr, seen)
        kind = "not" if expr.name == "not" else "function"
        return self._valued(expr, kind, context, operands, failure)

    def _filter(self, expr: FilterExpr, context: Context) -> ExpressionExplanation:
        """An expression in parentheses with predicates: positions count in document order."""
        primary = self._expression(expr.primary, context)
        nodes = self._nodes(expr.primary, context)
        told, left, failure = self._predicates(expr.predicates, [nodes])
        step = StepExplanation(
            self._notation.expr(expr),
            expr.offset,
            len(nodes),
            len(left),
            self._places(left),
            told,
            failure,
        )
        steps = (step,) if nodes else ()
        return self._node_set(expr, "filter", left, steps=steps, operands=(primary,))

    def _nodes(self, expr: Expr, context: Context) -> list[Node]:
        value = self._value(expr, context)
        return list(value) if isinstance(value, tuple) else []

    # Location paths.

    def _steps(
        self, steps: Sequence[Step], starts: Sequence[Node], *, is_absolute: bool
    ) -> tuple[tuple[StepExplanation, ...], list[Node]]:
        """The steps up to the one that selects nothing, and what the path selects."""
        told: list[StepExplanation] = []
        nodes, before = list(starts), list(starts)
        slash = "/" if is_absolute else ""
        for number, step in enumerate(steps):
            is_inner = number < len(steps) - 1
            if is_inner and number == 0 and is_bare_self(step) and not is_absolute:
                slash = "./"
                continue
            if is_inner and slash in ("/", "./") and is_double_slash(step):
                slash, before = slash + "/", nodes
                nodes = self._around.united(step, nodes)
                continue
            lists = self._around.along(step, nodes)
            found, nodes = self._step(step, slash, lists, before)
            told.append(found)
            if not nodes:
                break
            slash, before = "/", nodes
        return tuple(told), nodes

    def _step(
        self, step: Step, slash: str, lists: list[list[Node]], before: Sequence[Node]
    ) -> tuple[StepExplanation, list[Node]]:
        text = slash + self._notation.step(step)
        candidates = {node for nodes in lists for node in nodes}
        if not candidates:
            failure = self._around.nowhere(step, slash, before)
            return StepExplanation(text, step.offset, 0, 0, (), (), failure), []
        told, left, fault = self._predicates(step.predicates, lists)
        found = StepExplanation(
            text, step.offset, len(candidates), len(left), self._places(left), told, fault
        )
        return found, left

    def _predicates(
        self, predicates: Sequence[Expr], lists: list[list[Node]]
    ) -> tuple[tuple[PredicateExplanation, ...], list[Node], Failure | None]:
        """The predicates up to the one that leaves nothing; what is left; what left nothing."""
        told: list[PredicateExplanation] = []
        for predicate in predicates:
            if not any(lists):
                break
            left = self._filtered(predicate, lists)
            text = f"[{self._notation.expr(predicate)}]"
            counts = _distinct(lists), _distinct(left)
            if any(left):
                told.append(PredicateExplanation(text, predicate.offset, *counts))
                lists = left
                continue
            detail, failure = self._nearest(predicate, text, lists)
            told.append(PredicateExplanation(text, predicate.offset, *counts, detail))
            return tuple(told), [], failure
        nodes = sorted({node for nodes in lists for node in nodes})
        return tuple(told), nodes, None

    def _filtered(self, expr: Expr, lists: Sequence[Sequence[Node]]) -> list[list[Node]]:
        contexts = [_contexts(nodes) for nodes in lists]
        self._evaluate(expr, [context for each in contexts for context in each])
        return [[at.node for at in each if self._passes(expr, at)] for each in contexts]

    def _passes(self, expr: Expr, context: Context) -> bool:
        value = self._value(expr, context)
        if isinstance(value, float):
            return value == context.position
        return truth(value)

    # What comes nearest.

    def _nearest(
        self, expr: Expr, text: str, lists: list[list[Node]]
    ) -> tuple[ExpressionExplanation, Failure]:
        """The node that comes nearest to passing a predicate that none passes, and why not."""
        contexts = [context for nodes in lists for context in _contexts(nodes)][:NEAREST_MAX]
        parts = _conjuncts(expr)
        for part in parts:
            self._evaluate(part, contexts)
        # The first of those that come equally near.
        context = max(contexts, key=lambda each: self._score(parts, each))
        detail = self._expression(expr, context)
        misses = self._misses(parts, context)
        seen: tuple[str, ...] = ()
        if kind_of(expr) is Kind.NUMBER:
            longest = max(len(nodes) for nodes in lists)
            seen = (f"positions 1 to {longest}" if longest > 1 else "position 1",)
        elif (atom := atom_of(expr)) is not None:
            found = [value for each in contexts for value in self._values(atom, each)]
            is_number = kind_of(atom.operand) is Kind.NUMBER
            seen = tuple(
                value if is_number else shown(value)
                for value in list(dict.fromkeys(found))[:SEEN_MAX]
            )
        missing = next(_missing_names(detail), None)
        return detail, Failure(
            "predicate",
            text,
            expr.offset,
            seen,
            tuple(misses),
            self._path(context.node),
            () if missing is None else missing.near_names,
            None if missing is None else missing.hint,
        )

    def _score(self, parts: Sequence[Expr], context: Context) -> tuple[int, float]:
        """How many parts of a condition hold, and how near the others come."""
        failed = [part for part in parts if not self._passes(part, context)]
        return len(parts) - len(failed), sum(self._nearness(part, context) for part in failed)

    def _nearness(self, expr: Expr, context: Context) -> float:
        """How near a condition that fails comes: 1 for nearly, -1 for what is not there at all."""
        if kind_of(expr) is Kind.NUMBER:
            number = self._value(expr, context)
            if isinstance(number, float) and number == number:
                return -abs(number - context.position)
            return -1.0
        if isinstance(expr, BinaryExpr) and expr.operators[0] is BinaryOperator.OR:
            return max(self._nearness(operand, context) for operand in expr.operands)
        if isinstance(expr, BinaryExpr) and expr.operators[0] is BinaryOperator.AND:
            return min(self._nearness(operand, context) for operand in expr.operands)
        atom = atom_of(expr)
        if atom is None:
            return -1.0
        values = self._values(atom, context)
        return max((nearness(value, atom.compare) for value in values), default=-1.0)

    def _misses(self, parts: Sequence[Expr], context: Context) -> list[str]:
        misses: list[str] = []
        for part in parts:
            if self._passes(part, context):
                continue
            if kind_of(part) is Kind.NUMBER:
                value = self._value(part, context)
                misses.append(f"position {context.position}, the query wants {value_text(value)}")
                continue
            failure = self._expression(part, context).failure
            if failure is not None and failure.near_misses:
                misses += failure.near_misses
            elif kind_of(part) is Kind.NODE_SET:
                misses.append(f"there is no `{self._notation.expr(part)}`")
            else:
                misses.append(f"`{self._notation.expr(part)}` is false")
        return misses

    def _miss(self, atom: Atom, context: Context) -> str:
        operand = self._notation.expr(atom.operand)
        is_number = kind_of(atom.operand) is Kind.NUMBER
        return sentence(operand, self._values(atom, context), atom.compare, is_number=is_number)

    def _values(self, atom: Atom, context: Context) -> list[str]:
        """The values that a comparison looks at."""
        value = self._value(atom.operand, context)
        if not isinstance(value, tuple):
            return [string_of(value)]
        nodes = value[:1] if atom.is_call else value
        return [self._text(node) for node in nodes]

    # Words.

    def _is_leaf(self, node: Node) -> bool:
        """Whether a node holds no elements, so that its string-value says all of it."""
        return self._message.value("not(child::*)", Context(node)) is True

    def _failure(self, expr: Expr, misses: Sequence[str] = ()) -> Failure:
        text = self._notation.expr(expr)
        return Failure("condition", text, expr.offset, near_misses=tuple(misses))

    def _places(self, nodes: Sequence[Node]) -> tuple[NodePlace, ...]:
        return tuple(
            NodePlace(
                self._path(node),
                shortened(self._text(node)) if self._is_leaf(node) else None,
            )
            for node in nodes[:NODES_MAX]
        )


_TYPES: Final[Mapping[Kind, ValueType]] = {
    Kind.NODE_SET: "node-set",
    Kind.BOOLEAN: "boolean",
    Kind.NUMBER: "number",
    Kind.STRING: "string",
}


def truth(value: Result) -> bool:
    """`boolean(value)`."""
    return bool(value) if isinstance(value, tuple) else boolean_of(value)


def value_text(value: Result) -> str:
    """A value for people: strings in quotes, node-sets counted."""
    if isinstance(value, tuple):
        return counted(len(value))
    return literal_text(shortened(value)) if isinstance(value, str) else string_of(value)


def _missing_names(found: ExpressionExplanation) -> Iterator[Failure]:
    """The steps of what is false in an expression whose names do not occur, with a hint."""
    if found.is_true:
        return
    for step in found.steps:
        if step.failure is not None and step.failure.hint is not None:
            yield step.failure
    for operand in found.operands:
        yield from _missing_names(operand)


def _conjuncts(expr: Expr) -> list[Expr]:
    """Split an expression into its conjuncts."""
    if isinstance(expr, BinaryExpr) and expr.operators[0] is BinaryOperator.AND:
        return [part for operand in expr.operands for part in _conjuncts(operand)]
    return [expr]


def _contexts(nodes: Sequence[Node]) -> list[Context]:
    """The contexts of predicates on a list: positions count in its order."""
    return [Context(node, position, len(nodes)) for position, node in enumerate(nodes, start=1)]


def _distinct(lists: Sequence[Sequence[Node]]) -> int:
    return len({node for nodes in lists for node in nodes})
