"""Expressions of a FLWR subscription over one message.

A value is a sequence of items. `value` takes any expression; what a path or a predicate gives is
kept, by what it depends on (`language.xquery.dependence`), and not found again. `frame` is
`value` for the frame of a subscription: it notes whether one of the content expressions met there
gave an item.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.language.syntax import Axis
    >>> from pathcast_papers.language.xquery.syntax import Call, NameTest, Path, Root, Step
    >>> evaluator = Evaluator(Document(parse_message(b"<a><b>1</b><b>2</b></a>")))
    >>> path = Path(Root(), (Step(Axis.DESCENDANT, NameTest("", "b")),))
    >>> [str(item) for item in evaluator.value(Call("sum", (path,)), DynamicContext())]
    ['3']

Functions are in `functions`, constructors in `construction`.

Source: XQuery 1.0, section 3. Differs: as `pathcast_papers.message_broker.xquery` lists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pathcast_papers.evaluation.xpath import DOCUMENT_NODE, Document, Node, NodeKind
from pathcast_papers.evaluation.xpath.axes import axis_nodes
from pathcast_papers.language.xquery import syntax
from pathcast_papers.language.xquery.dependence import Dependences
from pathcast_papers.language.xquery.frame import contents_of, is_constant, parts
from pathcast_papers.language.xquery.syntax import (
    Context,
    Element,
    Expr,
    Flwor,
    For,
    Let,
    Root,
    Step,
)
from pathcast_papers.message_broker.xquery import comparison
from pathcast_papers.message_broker.xquery.budget import Budget
from pathcast_papers.message_broker.xquery.calculation import calculate, negated
from pathcast_papers.message_broker.xquery.casts import cast, castable
from pathcast_papers.message_broker.xquery.construction import construct, element_text
from pathcast_papers.message_broker.xquery.context import Binding, DynamicContext, Focus
from pathcast_papers.message_broker.xquery.functions import call
from pathcast_papers.message_broker.xquery.items import (
    Atomic,
    ConstructedElement,
    Item,
    Items,
    Kind,
    boolean,
    integer,
    string,
    untyped,
)
from pathcast_papers.message_broker.xquery.paths import passes, shortened

_PAIRS_PER_STEP = 16
"""Pairs of atomic values that a general comparison tries for one step."""

_OCCURRENCES = {"": (1, 1), "?": (0, 1), "*": (0, math.inf), "+": (1, math.inf)}
"""How many items there are -> fewest and most."""

_KEPT_MAX = 100_000
"""Values that are kept; when there are more, all are found again."""


class Evaluator:
    """Evaluates the expressions of one program over one message.

    Args:
        document: The message as XPath's tree.
        budget: The steps that it may take; any number if not given.

    Attributes:
        document: The message.
        budget: The steps.
        is_delivered: Whether a content expression of a frame gave an item until now.
    """

    def __init__(self, document: Document, budget: Budget | None = None) -> None:
        self.document = document
        self.budget = budget or Budget()
        self.is_delivered = False
        self._dependences = Dependences()
        self._kept: dict[tuple[object, ...], Items] = {}
        self._shortened: dict[int, Sequence[Step]] = {}

    def frame(self, expr: Expr, context: DynamicContext) -> Items:
        """The value of the body of a subscription, or of a part of its frame."""
        match expr:
            case syntax.Sequence(items=parts):
                return tuple(item for part in parts for item in self.frame(part, context))
            case Element():
                return (construct(self, expr, context, is_frame=True),)
        items = self.value(expr, context)
        if items and not self.is_delivered:
            self.is_delivered = not is_constant(expr, self._dependences)
        return items

    def holds(self, program: syntax.Program) -> bool:
        """The effective boolean value of a subscription (`language.xquery.frame.parts`)."""
        found: Items = ()
        for part in parts(program, self._dependences):
            if isinstance(part, Element):
                contents = contents_of(part, self._dependences)
                if any(self.value(expr, DynamicContext()) for expr in contents):
                    return True
                continue
            found += self.value(part, DynamicContext())
            if len(found) > 1 or (found and not isinstance(found[0], Atomic)):
                return True
        return effective_boolean(found)

    def gives_item(self, program: syntax.Program) -> bool:
        """Whether some content expression of the frame gives an item."""
        for part in parts(program, self._dependences):
            wanted = contents_of(part, self._dependences) if isinstance(part, Element) else [part]
            if any(self.value(expr, DynamicContext()) for expr in wanted):
                return True
        return False

    def value(self, expr: Expr, context: DynamicContext) -> Items:
        """The value of an expression."""
        match expr:
            case syntax.Literal(value=value, kind=kind):
                return (_literal(value, kind),)
            case syntax.Variable(name=name):
                return context.binding(name).value
            case syntax.Path():
                return self.path(expr, context)
            case syntax.Comparison():
                return self.comparison(expr, context)
            case syntax.And(operands=operands):
                return (boolean(all(self.is_true(each, context) for each in operands)),)
            case syntax.Or(operands=operands):
                return (boolean(any(self.is_true(each, context) for each in operands)),)
            case syntax.Call():
                return call(self, expr, context)
            case Flwor():
                return self.flwor(expr, context)
            case syntax.Quantified():
                return (boolean(self.quantified(expr, context)),)
            case syntax.If(condition=condition, then=then, otherwise=otherwise):
                chosen = then if self.is_true(condition, context) else otherwise
                return self.value(chosen, context)
            case syntax.Sequence(items=parts):
                found = tuple(item for part in parts for item in self.value(part, context))
                self.budget.charge(len(found))
                return found
            case Element():
                return (construct(self, expr, context),)
            case syntax.ContextItem():
                return () if context.focus is None else (context.focus.item,)
            case syntax.Arithmetic():
                return self.arithmetic(expr, context)
            case syntax.Negation(operand=operand):
                number = self.first(operand, context)
                return () if number is None else (negated(number),)
            case syntax.Cast(to=to, operand=operand):
                atom = self.first(operand, context)
                result = None if atom is None else cast(atom, to)
                return () if result is None else (result,)
            case syntax.Castable(to=to, operand=operand, is_optional=is_optional):
                atoms = self.atomised(self.value(operand, context))
                if len(atoms) != 1:
                    return (boolean(is_optional and not atoms),)
                return (boolean(castable(atoms[0], to) is not None),)
            case syntax.InstanceOf():
                return (boolean(self.is_instance(expr, context)),)
            case syntax.Range(first=first, last=last):
                return self.range(self.first(first, context), self.first(last, context))
            case syntax.SimpleMap(source=source, body=body):
                return self.mapped(self.value(source, context), body, context)
            case syntax.Intersection(is_except=is_except, left=left, right=right):
                others = set(self.nodes(right, context))
                kept = {each for each in self.nodes(left, context) if (each in others) != is_except}
                return tuple(sorted(kept))
            case syntax.Filter(primary=primary, predicates=predicates):
                return self.filtered(self.value(primary, context), predicates, context)
            case syntax.Union(operands=operands):
                united = {node for each in operands for node in self.nodes(each, context)}
                return tuple(sorted(united))
        raise AssertionError(expr)

    # Values as something else.

    def is_true(self, expr: Expr, context: DynamicContext) -> bool:
        """The effective boolean value of an expression."""
        return effective_boolean(self.value(expr, context))

    def nodes(self, expr: Expr, context: DynamicContext) -> list[Node]:
        """The nodes among the items of an expression."""
        return [item for item in self.value(expr, context) if isinstance(item, Node)]

    def first(self, expr: Expr, context: DynamicContext) -> Atomic | None:
        """The first item of an expression as an atomic value; None if there is none."""
        items = self.value(expr, context)
        return self.atomised(items[:1])[0] if items else None

    def atomised(self, items: Items) -> tuple[Atomic, ...]:
        """The atomic values of items."""
        return tuple(item if isinstance(item, Atomic) else self._atomic(item) for item in items)

    def _atomic(self, item: Node | ConstructedElement) -> Atomic:
        if isinstance(item, ConstructedElement):
            return untyped(element_text(self, item))
        value = self.text_of(item)
        if self.document.kind(item) in (NodeKind.COMMENT, NodeKind.INSTRUCTION):
            return string(value)
        return untyped(value)

    def text_of(self, node: Node) -> str:
        """The string value of a node."""
        value = self.document.string_value(node)
        self.budget.charge_text(len(value))
        return value

    # Operators.

    def comparison(self, expr: syntax.Comparison, context: DynamicContext) -> Items:
        """A value comparison of the first items, or a general comparison of all."""
        if expr.is_value:
            left, right = self.first(expr.left, context), self.first(expr.right, context)
            if left is None or right is None:
                return ()
            return (boolean(comparison.holds(expr.operator, left, right)),)
        lefts = self.atomised(self.value(expr.left, context))
        rights = self.atomised(self.value(expr.right, context))
        self.budget.charge(len(lefts) * len(rights) // _PAIRS_PER_STEP)
        return (boolean(comparison.is_some_pair(expr.operator, lefts, rights)),)

    def arithmetic(self, expr: syntax.Arithmetic, context: DynamicContext) -> Items:
        """Operators from left to right; a long sum does not nest deep here."""
        operations: list[syntax.Arithmetic] = []
        leftmost: Expr = expr
        while isinstance(leftmost, syntax.Arithmetic):
            operations.append(leftmost)
            leftmost = leftmost.left
        result = self.first(leftmost, context)
        for operation in reversed(operations):
            right = self.first(operation.right, context)
            if result is None or right is None:
                return ()
            result = calculate(operation.operator, result, right)
        return () if result is None else (result,)

    def is_instance(self, expr: syntax.InstanceOf, context: DynamicContext) -> bool:
        """Whether the items are of a kind, and as many as asked."""
        items = self.value(expr.operand, context)
        self.budget.charge(len(items))
        if expr.item == "empty-sequence()":
            return not items
        fewest, most = _OCCURRENCES[expr.occurrence]
        return fewest <= len(items) <= most and all(self._is_of(item, expr.item) for item in items)

    def _is_of(self, item: Item, wanted: Step | str) -> bool:
        if isinstance(wanted, Step):
            axis, test = wanted.axis, wanted.node_test
            return isinstance(item, Node) and passes(self.document, axis, test, item)
        match wanted:
            case "item()":
                return True
            case "document-node()":
                return item == DOCUMENT_NODE
        if not isinstance(item, Atomic):
            return False
        # An integer is a decimal, too.
        names = {"xs:anyAtomicType", f"xs:{item.kind.value}"}
        names |= {"xs:decimal"} if item.kind is Kind.INTEGER else set()
        names |= {"xs:untypedAtomic"} if item.kind is Kind.UNTYPED else set()
        return wanted in names

    def range(self, first: Atomic | None, last: Atomic | None) -> Items:
        """The integers from one value to another, both cast to integers."""
        ends = [None if each is None else cast(each, "integer") for each in (first, last)]
        if any(each is None or each.kind is not Kind.INTEGER for each in ends):
            return ()
        low, high = (each.whole for each in ends if each is not None)
        self.budget.charge(max(0, high - low + 1))
        return tuple(map(integer, range(low, high + 1)))

    def mapped(self, items: Items, body: Expr, context: DynamicContext) -> Items:
        """What an expression gives for each item."""
        found: list[Item] = []
        for position, item in enumerate(items, start=1):
            self.budget.charge(1)
            value = self.value(body, context.at(Focus(item, position, len(items))))
            self.budget.charge(len(value))
            found += value
        return tuple(found)

    # Paths and predicates.

    def path(self, path: syntax.Path, context: DynamicContext) -> Items:
        """The nodes that a path leads to, in document order, each once."""
        dependence = self._dependences.of(path)
        if dependence.is_on_item or dependence.is_on_position or dependence.is_on_size:
            return self._walked(path, context)
        key = (id(path), *self._bindings(dependence.variables, context))
        kept = self._kept.get(key)
        if kept is None:
            kept = self._keep(key, self._walked(path, context))
        return kept

    def _keep(self, key: tuple[object, ...], value: Items) -> Items:
        if len(self._kept) >= _KEPT_MAX:
            self._kept.clear()
        self._kept[key] = value
        return value

    def _bindings(self, names: frozenset[str], context: DynamicContext) -> list[Binding]:
        return [context.binding(name) for name in sorted(names)]

    def _walked(self, path: syntax.Path, context: DynamicContext) -> Items:
        nodes: Sequence[Node]
        match path.start:
            case Root():
                nodes = (DOCUMENT_NODE,)
            case Context():
                item = context.focus.item if context.focus is not None else DOCUMENT_NODE
                nodes = (item,) if isinstance(item, Node) else ()
            case start:
                nodes = self.nodes(start, context)
        for step in self._steps(path):
            found: set[Node] = set()
            for node in nodes:
                found.update(self.step(step, node, context))
            nodes = sorted(found)
        return tuple(nodes)

    def _steps(self, path: syntax.Path) -> Sequence[Step]:
        steps = self._shortened.get(id(path))
        if steps is None:
            steps = self._shortened[id(path)] = shortened(path.steps)
        return steps

    def step(self, step: Step, node: Node, context: DynamicContext) -> list[Node]:
        """The nodes that one step leads to from one node, in the order of its axis."""
        candidates = axis_nodes(self.document, step.axis, node)
        self.budget.charge(len(candidates))
        passing = tuple(
            each for each in candidates if passes(self.document, step.axis, step.node_test, each)
        )
        left = self.filtered(passing, step.predicates, context)
        return [item for item in left if isinstance(item, Node)]

    def filtered(self, items: Items, predicates: Sequence[Expr], context: DynamicContext) -> Items:
        """What predicates leave of a sequence; positions count in its order."""
        for predicate in predicates:
            self.budget.charge(len(items))
            dependence = self._dependences.of(predicate)
            bindings = self._bindings(dependence.variables, context)
            size = len(items)
            left = []
            for position, item in enumerate(items, start=1):
                key = (
                    id(predicate),
                    item if dependence.is_on_item else None,
                    position if dependence.is_on_position else 0,
                    size if dependence.is_on_size else 0,
                    *bindings,
                )
                value = self._kept.get(key)
                if value is None:
                    focus = Focus(item, position, size)
                    value = self._keep(key, self.value(predicate, context.at(focus)))
                if _keeps(value, position):
                    left.append(item)
            items = tuple(left)
        return items

    # FLWOR.

    def flwor(self, flwor: Flwor, context: DynamicContext) -> Items:
        """The tuples that pass, in order, and what each of them returns."""
        tuples = self.tuples(flwor.clauses, context)
        if flwor.where is not None:
            where = flwor.where
            tuples = (each for each in tuples if self.is_true(where, each))
        if flwor.order:
            tuples = iter(self.ordered(list(tuples), flwor.order))
        returned: list[Items] = []
        for each in tuples:
            value = self.value(flwor.body, each)
            self.budget.charge(len(value))
            returned.append(value)
        return tuple(item for value in returned for item in value)

    def tuples(
        self, clauses: Sequence[For | Let], context: DynamicContext
    ) -> Iterator[DynamicContext]:
        """The stream of tuples: contexts with the variables of all clauses bound."""
        waiting = [self.bound(clauses[0], context)]
        while waiting:
            bound = next(waiting[-1], None)
            if bound is None:
                waiting.pop()
            elif len(waiting) == len(clauses):
                yield bound
            else:
                waiting.append(self.bound(clauses[len(waiting)], bound))

    def bound(self, clause: For | Let, context: DynamicContext) -> Iterator[DynamicContext]:
        """The contexts that one clause makes of one."""
        self.budget.charge(1)
        if isinstance(clause, Let):
            yield context.bind(clause.variable, self.value(clause.value, context))
            return
        for position, item in enumerate(self.value(clause.source, context), start=1):
            self.budget.charge(1)
            inner = context.bind(clause.variable, (item,))
            if clause.position is not None:
                inner = inner.bind(clause.position, (integer(position),))
            yield inner

    def ordered(
        self, tuples: list[DynamicContext], keys: Sequence[syntax.OrderKey]
    ) -> list[DynamicContext]:
        """Tuples in the order of `order by`."""
        columns = [[self.first(key.key, each) for each in tuples] for key in keys]
        places = comparison.order(columns, keys, len(tuples))
        return [tuples[place] for place in places]

    def quantified(self, expr: syntax.Quantified, context: DynamicContext) -> bool:
        """`some` and `every`."""
        found = (self.is_true(expr.condition, each) for each in self.tuples(expr.bindings, context))
        return all(found) if expr.is_every else any(found)


def effective_boolean(items: Items) -> bool:
    """The effective boolean value of a sequence; true for more than one atomic value.

    Example:
        >>> effective_boolean(()), effective_boolean((integer(0),)), effective_boolean((string("0"),))
        (False, False, True)
    """  # noqa: E501 (an example in one line)
    if not items:
        return False
    first = items[0]
    if len(items) > 1 or not isinstance(first, Atomic):
        return True
    return bool(first.value) and first.value == first.value


def _keeps(value: Items, position: int) -> bool:
    """Whether a predicate with some value keeps the item at a position."""
    if len(value) == 1 and isinstance(value[0], Atomic) and value[0].is_number:
        return value[0].value == position
    return effective_boolean(value)


def _literal(value: str | int | float, kind: syntax.LiteralKind) -> Atomic:
    match kind:
        case syntax.LiteralKind.STRING:
            return string(str(value))
        case syntax.LiteralKind.INTEGER:
            return integer(int(value))
        case syntax.LiteralKind.DECIMAL:
            return Atomic(Kind.DECIMAL, float(value))
    return Atomic(Kind.DOUBLE, float(value))
