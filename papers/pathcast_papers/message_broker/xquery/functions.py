"""The functions that a subscription may call.

Arguments are converted as their function wants them: of a sequence where one item is wanted the
first is used, of anything where text is wanted its string, of anything where a number is wanted the
number (`number_of` in `items`). A missing item is "" for a function of text,
NaN for a position in `substring`, and nothing for a function of a number.

Source: XQuery 1.0 and XPath 2.0 Functions and Operators; XPath 1.0, section 4, for arguments that
XQuery refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pathcast_papers.evaluation.xpath import DOCUMENT_NODE, Node
from pathcast_papers.language.names import XML_NAMESPACE
from pathcast_papers.language.regular_expressions import read_call
from pathcast_papers.language.values import (
    FOLDS,
    normalize_space,
    substring,
    substring_after,
    substring_before,
    translate,
)
from pathcast_papers.language.xquery.functions import PICTURED
from pathcast_papers.language.xquery.syntax import Call
from pathcast_papers.message_broker.xquery.calculation import average_of, rounded, sum_of
from pathcast_papers.message_broker.xquery.comparison import distinct, extreme, folded
from pathcast_papers.message_broker.xquery.context import DynamicContext
from pathcast_papers.message_broker.xquery.deep_equality import are_equal
from pathcast_papers.message_broker.xquery.items import (
    Atomic,
    Items,
    Kind,
    boolean,
    double,
    integer,
    number_of,
    promoted,
    string,
)
from pathcast_papers.message_broker.xquery.pictures import adjusted, pictured
from pathcast_papers.message_broker.xquery.sequences import CHOSEN, component, current, to_greater

if TYPE_CHECKING:
    from pathcast_papers.message_broker.xquery.evaluator import Evaluator

_OF_TEXT: Final = MappingProxyType[str, Callable[..., str | bool | int]](
    {
        "concat": lambda *texts: "".join(texts),
        "contains": lambda text, part: part in text,
        "starts-with": str.startswith,
        "ends-with": str.endswith,
        "string": lambda text: text,
        "string-length": len,
        "normalize-space": normalize_space,
        "substring-before": substring_before,
        "substring-after": substring_after,
        "translate": translate,
        "upper-case": FOLDS["upper-case"],
        "lower-case": FOLDS["lower-case"],
    }
)
"""Functions of texts alone."""

_OF_NODE: Final = ("name", "local-name", "namespace-uri")
_OF_NUMBER: Final = ("floor", "ceiling", "round", "abs")


def call(evaluator: Evaluator, expr: Call, context: DynamicContext) -> Items:
    """The value of a call."""
    evaluator.budget.charge(1)
    match expr.function:
        case "true" | "false":
            return (boolean(expr.function == "true"),)
        case "current-dateTime" | "current-date" | "current-time" | "implicit-timezone":
            return current(evaluator.document.time, expr.function)
        case "position" | "last" if context.focus is None:
            return (integer(1),)
        case "position" if context.focus is not None:
            return (integer(context.focus.position),)
        case "last" if context.focus is not None:
            return (integer(context.focus.size),)
        case "not":
            return (boolean(not evaluator.is_true(expr.arguments[0], context)),)
        case "boolean":
            return (boolean(evaluator.is_true(expr.arguments[0], context)),)
    arguments = [evaluator.value(each, context) for each in expr.arguments]
    name = expr.function
    if name in CHOSEN:
        return CHOSEN[name](evaluator, *arguments)
    if "-from-" in name:
        return component(evaluator, name, arguments[0])
    if name in ("matches", "replace", "tokenize"):
        return _of_pattern(evaluator, name, arguments)
    if name == "compare":
        return _compared(evaluator, arguments)
    if name in PICTURED:
        return pictured(evaluator, name, arguments[0], _text(evaluator, arguments[1]))
    if name.startswith("adjust-"):
        return adjusted(evaluator, name, *arguments)
    if name == "deep-equal":
        fold = folded if len(arguments) > 2 else str
        return (boolean(are_equal(evaluator, arguments[0], arguments[1], fold)),)
    if name in _OF_TEXT:
        return (_of_texts(evaluator, name, arguments),)
    if name in _OF_NODE:
        return (string(_node_name(evaluator, name, arguments[0])),)
    if name == "round" and len(arguments) > 1:
        return to_greater(evaluator, *arguments)
    if name in _OF_NUMBER:
        values = evaluator.atomised(arguments[0][:1])
        return tuple(rounded(name, value) for value in values)
    return _of_sequence(evaluator, name, arguments, context)


def _of_texts(evaluator: Evaluator, name: str, arguments: list[Items]) -> Atomic:
    texts = [_text(evaluator, argument) for argument in arguments]
    evaluator.budget.charge_text(sum(len(text) for text in texts))
    if name in ("substring-before", "substring-after") and len(texts) > 2:
        return string(_cut(name, *texts[:2]))
    found = _OF_TEXT[name](*texts)
    if isinstance(found, bool):
        return boolean(found)
    return integer(found) if isinstance(found, int) else string(found)


def _cut(name: str, text: str, mark: str) -> str:
    """A text before or after a mark, by the case-blind collation, which keeps lengths."""
    at = folded(text).find(folded(mark))
    if at < 0:
        return ""
    return text[:at] if name == "substring-before" else text[at + len(mark) :]


def _compared(evaluator: Evaluator, arguments: list[Items]) -> Items:
    """`fn:compare`."""
    if not (arguments[0] and arguments[1]):
        return ()
    texts = [_text(evaluator, argument) for argument in arguments[:2]]
    evaluator.budget.charge_text(sum(map(len, texts)))
    one, other = map(folded, texts) if len(arguments) > 2 else texts
    return (integer((one > other) - (one < other)),)


def _of_pattern(evaluator: Evaluator, name: str, arguments: list[Items]) -> Items:
    """`fn:matches`, `fn:replace` and `fn:tokenize`."""
    text, *others = [_text(evaluator, argument) for argument in arguments]
    evaluator.budget.charge_text(len(text))
    if not others:
        text, others = normalize_space(text), [" "]
    pattern, replacement = read_call(name, *others)
    if name == "matches":
        return (boolean(pattern.is_match(text)),)
    if name == "replace":
        return (string(pattern.replaced(text, replacement)),)
    return tuple(map(string, pattern.split(text))) if text else ()


def _text(evaluator: Evaluator, items: Items) -> str:
    """The first item as text."""
    return str(evaluator.atomised(items[:1])[0]) if items else ""


def _number(evaluator: Evaluator, items: Items) -> float:
    """The first item as a number."""
    values = evaluator.atomised(items[:1])
    return number_of(values[0]).number if values else math.nan


def _node_name(evaluator: Evaluator, function: str, items: Items) -> str:
    """A part of the name of the first item; an atomic value has none."""
    if not items or not isinstance(items[0], Node):
        return ""
    if function == "name":
        return evaluator.document.qualified_name(items[0])
    uri, local = evaluator.document.expanded_name(items[0]) or ("", "")
    return local if function == "local-name" else uri


def _of_sequence(
    evaluator: Evaluator, name: str, arguments: list[Items], context: DynamicContext
) -> Items:
    items = arguments[0]
    evaluator.budget.charge(len(items))
    match name:
        case "count":
            return (integer(len(items)),)
        case "exists":
            return (boolean(bool(items)),)
        case "empty":
            return (boolean(not items),)
        case "lang":
            return (boolean(_has_language(evaluator, _text(evaluator, items), context)),)
        case "number":
            values = evaluator.atomised(items[:1])
            if not values:
                return (double(math.nan),)
            return (promoted(Kind.DOUBLE, number_of(values[0])),)
        case "substring":
            places = [_number(evaluator, argument) for argument in arguments[1:]]
            text = _text(evaluator, items)
            evaluator.budget.charge_text(len(text))
            return (string(substring(text, *places)),)
    values = evaluator.atomised(items)
    match name:
        case "data":
            return values
        case "distinct-values":
            return tuple(distinct(values, folded if len(arguments) > 1 else str))
        case "string-join":
            separator = _text(evaluator, arguments[1]) if len(arguments) > 1 else ""
            texts = [str(value) for value in values]
            # Before it is built: repeated joins grow without end.
            evaluator.budget.charge_text(sum(len(text) + len(separator) for text in texts))
            return (string(separator.join(texts)),)
        case "id":
            return _with_ids(evaluator, values)
        case "sum":
            return (sum_of(list(values)),)
        case "avg":
            return (average_of(list(values)),) if values else ()
        case "min" | "max":
            fold = folded if len(arguments) > 1 else str
            return (extreme(list(values), fold, is_max=name == "max"),) if values else ()
    raise AssertionError(name)


def _with_ids(evaluator: Evaluator, values: tuple[Atomic, ...]) -> Items:
    """`fn:id`: the elements of the message with ids among the words of some texts."""
    words = {word for value in values for word in normalize_space(str(value)).split(" ")} - {""}
    document = evaluator.document
    evaluator.budget.charge(len(document.tree.attribute_name) if words else 0)
    return tuple(document.elements_with_id(words))


def _has_language(evaluator: Evaluator, wanted: str, context: DynamicContext) -> bool:
    """`fn:lang`: by the nearest `xml:lang` at the context node or above; case does not count."""
    at = DOCUMENT_NODE if context.focus is None else context.focus.item
    if not isinstance(at, Node):
        return False
    document = evaluator.document
    node: Node | None = at
    while node is not None:
        evaluator.budget.charge(1)
        for attribute in document.attributes(node):
            if document.expanded_name(attribute) == (XML_NAMESPACE, "lang"):
                # Only ASCII has case here.
                found = document.string_value(attribute).encode().lower()
                sought = wanted.encode().lower()
                return found == sought or found.startswith(sought + b"-")
        node = document.parent(node)
    return False
