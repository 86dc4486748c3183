"""What must be there for an expression to give an item, or to be true.

`Necessary.each(expr, then)` is the heart: the formula of "some item of `expr` is such that
`then(item)`". From it follow whether an expression gives an item at all, general comparisons
(which ask for some item of either side), quantifiers and nested `for` clauses. An item is a node
of the message that a variable of the formula stands for, a value made from one, a constant, or
unknown; what is asked of an unknown item is not known either.

Why each part is implied by what XQuery gives:

- A comparison of a node with a string by `=` or `!=` is the same in XPath. By `<` it is of strings
  in XQuery and of numbers in XPath: nothing is said of it but that both sides have an item.
- A comparison of a node with a number casts to `xs:double`, which takes exponents, a plus sign and
  `INF`; XPath's `number()` takes none of them. So `. > 5` becomes `. > 5`, or one of the letters
  without which no such number is written. That makes five alternatives of one, and is done for
  `casts_max` comparisons; the others ask for the node only.
- A predicate that is not carried over whole only weakens the path; positions after it are left out.
- `if (c) then a else b` gives an item if `c` holds and `a` does, or if `c` does not and `b` does.
- What is sorted, counted or bound by `let` is not asked of: a `let` is put in where it is used.

Cost: linear in the program, times the ways that nested sequences open, of which `STEPS_MAX` are
looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pathcast_papers.language.canonical import literal_text, number_text
from pathcast_papers.language.xquery.formula import (
    FALSE,
    ROOT,
    TRUE,
    UNKNOWN,
    Atom,
    Formula,
    all_of,
    any_of,
    exists,
    negated,
)
from pathcast_papers.language.xquery.items import (
    Bound,
    Constant,
    Item,
    Node,
    Scope,
    Then,
    Unknown,
    bound_scope,
)
from pathcast_papers.language.xquery.paper import FLIPPED
from pathcast_papers.language.xquery.steps import may_be_number, path_text
from pathcast_papers.language.xquery.syntax import (
    And,
    Arithmetic,
    Call,
    Comparator,
    Comparison,
    Context,
    ContextItem,
    Expr,
    Filter,
    Flwor,
    If,
    Let,
    Literal,
    Negation,
    Or,
    Path,
    Quantified,
    Root,
    Sequence,
    Union,
    Variable,
)

STEPS_MAX: Final = 4000
"""Parts of a program that are looked at, those seen several times counted each time."""

NESTING_MAX: Final = 80
"""How deep the walk goes; what is nested deeper is not known."""

_EMPTY_IF_EMPTY: Final = frozenset(
    {"data", "distinct-values", "min", "max", "avg", "abs", "floor", "ceiling", "round", "id"}
)
"""Functions that give no item for no item."""

_FALSE_IF_EMPTY: Final = (
    _EMPTY_IF_EMPTY
    | frozenset(
        {
            "count",
            "string",
            "string-length",
            "normalize-space",
            "upper-case",
            "lower-case",
            "number",
        }
    )
    | frozenset({"sum", "name", "local-name", "namespace-uri", "substring", "translate"})
)
"""Functions whose value for no item in the first argument is false."""

_TEXT_FUNCTIONS: Final = frozenset(
    {
        "string",
        "normalize-space",
        "substring",
        "substring-before",
        "substring-after",
        "translate",
        "name",
        "local-name",
        "namespace-uri",
    }
)
"""Functions from one string or node to a string that XPath has too, with the same value."""

_PARTS: Final = {"contains": "contains", "starts-with": "starts-with", "ends-with": "contains"}
"""Conditions on a string, and what XPath can say of them."""


class Necessary:
    """The walk over a program.

    Args:
        casts_max: How many comparisons with a number are carried over.
        cast_operators: Those comparisons that may be.
    """

    def __init__(self, casts_max: int, cast_operators: Collection[Comparator]) -> None:
        self.casts_left = casts_max
        self.cast_operators = cast_operators
        self.steps_left = STEPS_MAX
        self.depth = 0
        self.variables = ROOT

    def fresh(self) -> int:
        """A new variable of the formula."""
        self.variables += 1
        return self.variables

    def gives(self, expr: Expr, scope: Scope, context: Item) -> Formula:
        """What must hold if an expression gives an item."""
        return self.each(expr, scope, context, _unasked)

    # Items.

    def each(self, expr: Expr, scope: Scope, context: Item, then: Then) -> Formula:
        """What must hold if `then` holds for some item of an expression."""
        self.steps_left -= 1
        if self.steps_left < 0 or self.depth > NESTING_MAX:
            return UNKNOWN
        self.depth += 1
        found = self._each(expr, scope, context, then)
        self.depth -= 1
        return found

    def _each(self, expr: Expr, scope: Scope, context: Item, then: Then) -> Formula:
        match expr:
            case Path():
                return self.path(expr, scope, context, then)
            case Variable(name=name):
                bound = scope[name]
                if isinstance(bound, Bound):
                    return self.each(bound.expr, bound.scope, bound.context, then)
                return then(bound)
            case ContextItem():
                return then(context)
            case Literal(value=value):
                return then(Constant(value if isinstance(value, str) else float(value)))
            case Negation(operand=Literal(value=int() | float() as number)):
                return then(Constant(-float(number)))
            case Sequence(items=items) | Union(operands=items):
                return any_of(*(self.each(item, scope, context, then) for item in items))
            case Flwor():
                return self.clauses(expr, 0, scope, context, then)
            case If():
                condition = self.truth(expr.condition, scope, context)
                return any_of(
                    all_of(condition, self.each(expr.then, scope, context, then)),
                    all_of(negated(condition), self.each(expr.otherwise, scope, context, then)),
                )
            case Filter():
                return self.filtered(expr, scope, context, then)
            case Call(function="data" | "distinct-values", arguments=(argument,)):
                return self.each(argument, scope, context, lambda item: then(_value_of(item)))
            case Call(function=function, arguments=arguments):
                if function not in _EMPTY_IF_EMPTY:
                    return then(Unknown())
                given = self.each(arguments[0], scope, context, _unknown)
                return all_of(given, then(Unknown()))
            case Arithmetic(left=left, right=right):
                return self.both(left, right, scope, context, then)
            case Comparison(is_value=True, left=left, right=right):
                return self.both(left, right, scope, context, then)
            case Negation(operand=operand):
                return all_of(self.each(operand, scope, context, _unknown), then(Unknown()))
            case _:
                # One item, whatever the message is.
                return then(Unknown())

    def both(self, left: Expr, right: Expr, scope: Scope, context: Item, then: Then) -> Formula:
        """An operator that gives nothing if one of its operands does."""
        return all_of(
            self.each(left, scope, context, _unknown),
            self.each(right, scope, context, _unknown),
            then(Unknown()),
        )

    def path(self, expr: Path, scope: Scope, context: Item, then: Then) -> Formula:
        """The nodes of a path."""
        match expr.start:
            case Root():
                return self.stepped(Node(ROOT), expr, scope, then)
            case Context():
                return self.stepped(context, expr, scope, then)
            case start:
                return self.each(
                    start, scope, context, lambda item: self.stepped(item, expr, scope, then)
                )

    def stepped(self, base: Item, expr: Path, scope: Scope, then: Then) -> Formula:
        """The nodes that steps lead to from an item."""
        if not isinstance(base, Node):
            return all_of(UNKNOWN, then(Unknown()))
        if not expr.steps:
            return then(base)
        text, is_exact = path_text(expr.steps, base.variable == ROOT, self, scope)
        node = self.fresh()
        return exists(node, base.variable, text, is_exact, then(Node(node)))

    def filtered(self, expr: Filter, scope: Scope, context: Item, then: Then) -> Formula:
        """The items of `primary[...]`: what holds of them holds of items of `primary`."""

        def passing(item: Item) -> Formula:
            conditions: list[Formula] = []
            for predicate in expr.predicates:
                # A number that is a position is not 0, so that it is true besides.
                conditions.append(self.truth(predicate, scope, item))
                if may_be_number(predicate):
                    conditions.append(UNKNOWN)
            return all_of(*conditions, then(item))

        return self.each(expr.primary, scope, context, passing)

    def clauses(self, expr: Flwor, number: int, scope: Scope, context: Item, then: Then) -> Formula:
        """The items of a FLWOR, from one of its clauses on."""
        self.steps_left -= 1
        if self.steps_left < 0 or self.depth > NESTING_MAX:
            return UNKNOWN
        if number == len(expr.clauses):
            condition: Formula = TRUE
            if expr.where is not None:
                condition = self.truth(expr.where, scope, context)
            return all_of(condition, self.each(expr.body, scope, context, then))
        clause = expr.clauses[number]
        if isinstance(clause, Let):
            closed: Scope = {**scope, clause.variable: Bound(clause.value, scope, context)}
            return self.clauses(expr, number + 1, closed, context, then)

        def bind(item: Item) -> Formula:
            inner = bound_scope(scope, clause, item)
            self.depth += 1
            found = self.clauses(expr, number + 1, inner, context, then)
            self.depth -= 1
            return found

        return self.each(clause.source, scope, context, bind)

    # Conditions.

    def truth(self, expr: Expr, scope: Scope, context: Item) -> Formula:
        """What must hold if the effective boolean value of an expression is true."""
        self.steps_left -= 1
        if self.steps_left < 0 or self.depth > NESTING_MAX:
            return UNKNOWN
        self.depth += 1
        found = self._truth(expr, scope, context)
        self.depth -= 1
        return found

    def _truth(self, expr: Expr, scope: Scope, context: Item) -> Formula:
        match expr:
            case And(operands=operands):
                return all_of(*(self.truth(operand, scope, context) for operand in operands))
            case Or(operands=operands):
                return any_of(*(self.truth(operand, scope, context) for operand in operands))
            case Comparison():
                return self.comparison(expr, scope, context)
            case Quantified():
                return self.quantified(expr, scope, context)
            case Call():
                return self.call(expr, scope, context)
            case Literal(value=value):
                return TRUE if value else FALSE
            case If():
                condition = self.truth(expr.condition, scope, context)
                return any_of(
                    all_of(condition, self.truth(expr.then, scope, context)),
                    all_of(negated(condition), self.truth(expr.otherwise, scope, context)),
                )
            case _:
                return self.each(expr, scope, context, _truth_of_item)

    def call(self, expr: Call, scope: Scope, context: Item) -> Formula:
        """A call as a condition."""
        match expr.function:
            case "not":
                return negated(self.truth(expr.arguments[0], scope, context))
            case "empty":
                return negated(self.gives(expr.arguments[0], scope, context))
            case "exists" | "count":
                # A number that is not 0 is true.
                return self.gives(expr.arguments[0], scope, context)
            case "boolean":
                return self.truth(expr.arguments[0], scope, context)
            case "true":
                return TRUE
            case "false":
                return FALSE
            case "contains" | "starts-with" | "ends-with":
                return self.part(expr, scope, context)
        if expr.function in _FALSE_IF_EMPTY:
            return self.each(expr.arguments[0], scope, context, _unknown)
        return UNKNOWN

    def part(self, expr: Call, scope: Scope, context: Item) -> Formula:
        """`contains`, `starts-with` and `ends-with` some text."""
        whole, part = expr.arguments
        match part:
            case Literal(value=str() as text) if text:
                before = f"{_PARTS[expr.function]}("
                return self.of_text(whole, scope, context, before, f",{literal_text(text)})")
        return UNKNOWN

    def of_text(self, expr: Expr, scope: Scope, context: Item, before: str, after: str) -> Formula:
        """A condition that no empty string fulfils, on the string value of an expression.

        Args:
            expr: The expression.
            scope: The variables that it sees.
            context: The context item that it sees.
            before: The XPath of the condition, up to the value.
            after: The rest of it.
        """
        calls: list[Call] = []
        while isinstance(expr, Call) and expr.function in _TEXT_FUNCTIONS:
            calls.append(expr)
            expr = expr.arguments[0]
        value = "."
        for call in reversed(calls):
            rest = [_literal(argument) for argument in call.arguments[1:]]
            if None in rest:
                return self.each(expr, scope, context, _unknown)
            value = f"{call.function}({','.join([value, *map(str, rest)])})"

        def holds(item: Item) -> Formula:
            # The first node is meant, so that one of them fulfils it: never all there is to say.
            if isinstance(item, Node):
                return Atom(item.variable, f"{before}{value}{after}", False)
            return UNKNOWN

        return self.each(expr, scope, context, holds)

    def quantified(self, expr: Quantified, scope: Scope, context: Item) -> Formula:
        """`some` is a nested path; `every` denies that some does not."""
        if expr.is_every:
            return UNKNOWN
        return self._some(expr, 0, scope, context)

    def _some(self, expr: Quantified, number: int, scope: Scope, context: Item) -> Formula:
        if number == len(expr.bindings):
            return self.truth(expr.condition, scope, context)
        binding = expr.bindings[number]
        return self.each(
            binding.source,
            scope,
            context,
            lambda item: self._some(expr, number + 1, bound_scope(scope, binding, item), context),
        )

    # Comparisons.

    def comparison(self, expr: Comparison, scope: Scope, context: Item) -> Formula:
        """Some item of the left side compares so with some item of the right."""
        counted = self.counted(expr, scope, context)
        if counted is not None:
            return counted
        text_of_call = self.text_compared(expr, scope, context)
        if text_of_call is not None:
            return text_of_call
        found = self.each(
            expr.left,
            scope,
            context,
            lambda left: self.each(
                expr.right, scope, context, lambda right: self.compared(left, expr.operator, right)
            ),
        )
        # A value comparison reads one item of each side, a general one all of them.
        return all_of(found, UNKNOWN) if expr.is_value else found

    def text_compared(self, expr: Comparison, scope: Scope, context: Item) -> Formula | None:
        """`normalize-space(path) = "text"` and the like."""
        if expr.operator is not Comparator.EQ:
            return None
        for call, literal in ((expr.left, expr.right), (expr.right, expr.left)):
            match call, literal:
                case Call(function=function), Literal(value=str() as text) if text:
                    if function in _TEXT_FUNCTIONS:
                        return self.of_text(call, scope, context, "", f" = {literal_text(text)}")
        return None

    def counted(self, expr: Comparison, scope: Scope, context: Item) -> Formula | None:
        """`count(path) > n` and the like: at least one, if no less will do."""
        match expr.left, expr.right:
            case Call(function="count", arguments=(path,)), Literal(value=int() as number):
                operator = expr.operator
            case Literal(value=int() as number), Call(function="count", arguments=(path,)):
                operator = FLIPPED[expr.operator]
            case _:
                return None
        given = self.gives(path, scope, context)
        if (operator, number) in ((Comparator.GT, 0), (Comparator.GE, 1), (Comparator.NE, 0)):
            return given
        if (operator, number) in ((Comparator.EQ, 0), (Comparator.LT, 1), (Comparator.LE, 0)):
            return negated(given)
        is_more = operator in (Comparator.EQ, Comparator.GT, Comparator.GE) and number > 0
        return all_of(given, UNKNOWN) if is_more else UNKNOWN

    def compared(self, left: Item, operator: Comparator, right: Item) -> Formula:
        """Two items compare so."""
        match left, right:
            case Node(), Constant(value=value):
                return self.against(left, operator, value)
            case Constant(value=value), Node():
                return self.against(right, FLIPPED[operator], value)
        return UNKNOWN

    def against(self, node: Node, operator: Comparator, value: str | float) -> Formula:
        """A node compares so with a constant."""
        if isinstance(value, str):
            if operator not in (Comparator.EQ, Comparator.NE):
                return UNKNOWN
            return Atom(node.variable, f". {operator.value} {literal_text(value)}", True)
        is_cast = self.casts_left > 0 and operator in self.cast_operators
        if not is_cast or value in (float("inf"), float("-inf")):
            return UNKNOWN
        self.casts_left -= 1
        letters = " or ".join(f"contains(., '{letter}')" for letter in "eEI+")
        text = f"(. {operator.value} {number_text(value)} or {letters})"
        return Atom(node.variable, text, False)


def _unasked(item: Item) -> Formula:
    """That there is an item, whatever it is."""
    return TRUE


def _unknown(item: Item) -> Formula:
    """That there is an item, of which something is asked that cannot be said."""
    return UNKNOWN


def _truth_of_item(item: Item) -> Formula:
    """That a sequence with this item is true: a node makes it so."""
    return TRUE if isinstance(item, Node) and not item.is_value else UNKNOWN


def _value_of(item: Item) -> Item:
    return Node(item.variable, is_value=True) if isinstance(item, Node) else item


def _literal(expr: Expr) -> str | None:
    """The XPath of a literal; None for anything else."""
    match expr:
        case Literal(value=str() as text):
            return literal_text(text)
        case Literal(value=int() | float() as number):
            return number_text(float(number))
    return None
