"""Steps of a program as steps of XPath.

A step keeps its axis and its test. A predicate keeps what can be said of it, which may be less than
it asks; where it is less, the nodes that pass are counted differently, so that a position among
them means something else: predicates that ask for one are left out from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pathcast_papers.language.canonical import has_literal, literal_text, number_text
from pathcast_papers.language.xquery.formula import exact, implied
from pathcast_papers.language.xquery.items import Node, Scope
from pathcast_papers.language.xquery.syntax import (
    And,
    Axis,
    Call,
    Comparator,
    Comparison,
    Expr,
    Filter,
    KindTest,
    Literal,
    LiteralKind,
    NameTest,
    NodeKind,
    Or,
    Path,
    Quantified,
    Step,
    Union,
)

if TYPE_CHECKING:
    from pathcast_papers.language.xquery.necessary import Necessary

_BOOLEAN_OR_TEXT: Final = frozenset(
    {
        "boolean",
        "not",
        "true",
        "false",
        "lang",
        "contains",
        "starts-with",
        "ends-with",
        "exists",
        "empty",
        "string",
        "concat",
        "name",
        "local-name",
        "namespace-uri",
        "substring",
        "substring-before",
        "substring-after",
        "translate",
        "normalize-space",
        "string-join",
        "upper-case",
        "lower-case",
    }
)


def may_be_number(expr: Expr) -> bool:
    """Whether the value of a predicate may be a number, and so a position.

    Example:
        >>> from pathcast_papers.language.xquery.parser import parse
        >>> [may_be_number(parse(text).body) for text in ("//a", "count(//a)", "//a = 2")]
        [False, True, False]
    """
    match expr:
        case Comparison() | And() | Or() | Quantified() | Path() | Union():
            return False
        case Call(function=function):
            return function not in _BOOLEAN_OR_TEXT
        case Literal(kind=kind):
            return kind is not LiteralKind.STRING
        case Filter(primary=primary):
            return may_be_number(primary)
    return True


def path_text(
    steps: Sequence[Step], is_absolute: bool, necessary: Necessary, scope: Scope
) -> tuple[str, bool]:
    """Steps as XPath; and whether they lead to the same nodes, not to more."""
    texts: list[str] = []
    is_exact = True
    for step in steps:
        text = f"{step.axis.value}::{_node_test(step)}"
        is_whole = _is_whole_test(step)
        for predicate in step.predicates:
            positional = _positional(predicate)
            if positional is not None:
                if is_whole:
                    text += f"[{positional}]"
                continue
            condition, is_all = _condition(predicate, necessary, scope)
            is_whole = is_whole and is_all
            if condition is not None:
                text += f"[{condition}]"
        is_exact = is_exact and is_whole
        texts.append(text)
    return ("/" if is_absolute else "") + "/".join(texts), is_exact


def _condition(predicate: Expr, necessary: Necessary, scope: Scope) -> tuple[str | None, bool]:
    """What a predicate asks of a node, as XPath; and whether that is all."""
    node = necessary.fresh()
    formula = necessary.truth(predicate, scope, Node(node))
    if not may_be_number(predicate):
        whole = exact(formula, node)
        if whole is not None:
            return whole, True
    return implied(formula, node), False


def _positional(predicate: Expr) -> str | None:
    """A predicate that asks for a position and nothing else, as XPath."""
    match predicate:
        case Literal(value=int() | float() as number):
            return number_text(float(number))
        case Call(function="last"):
            return "last()"
        case Comparison(left=Call(function="position"), operator=operator, right=right):
            match right:
                case Literal(value=int() | float() as number):
                    return f"position() {operator.value} {number_text(float(number))}"
                case Call(function="last") if operator is Comparator.EQ:
                    return "position() = last()"
    return None


def _node_test(step: Step) -> str:
    match step.node_test:
        case NameTest(uri=None, local=None):
            return "*"
        case NameTest(uri=None, local=local):
            return f"*:{local}"
        case NameTest(uri=uri, local=None):
            return f"Q{{{uri}}}*"
        case NameTest(uri="", local=str() as local):
            return local
        case NameTest(uri=uri, local=local):
            return f"Q{{{uri}}}{local}"
        case KindTest(kind=NodeKind.PROCESSING_INSTRUCTION, target=str() as target):
            return f"processing-instruction({literal_text(target) if has_literal(target) else ''})"
        case KindTest(kind=NodeKind.ELEMENT):
            # No element is an attribute, and no text is.
            return "text()" if step.axis is Axis.ATTRIBUTE else "*"
        case KindTest(kind=NodeKind.ATTRIBUTE):
            return "*" if step.axis is Axis.ATTRIBUTE else "node()"
        case KindTest(kind=kind):
            return f"{kind.value}()"


def _is_whole_test(step: Step) -> bool:
    """Whether `_node_test` says the same as the test of a step."""
    match step.node_test:
        case KindTest(kind=NodeKind.ATTRIBUTE):
            return step.axis is Axis.ATTRIBUTE
        case KindTest(target=str() as target):
            return has_literal(target)
    return True
