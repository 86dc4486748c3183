"""Simple predicates on the elements of a message: what is compared, and how.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast.message import parse_message
    >>> values = ElementValues(parse_message(b"<a k='07'>x<b>y</b></a>", Limits()))
    >>> values.compared(0, Signature((), Target.ELEMENT, None, Comparator.EQ, False))
    ('xy',)
    >>> key = Signature((), Target.ATTRIBUTE, NameTest("", "k"), Comparator.EQ, True)
    >>> values.passes(0, SimplePredicate(key, 7.0))
    True

Source: XQuery 1.0, section 3.5.2 (general comparisons of untyped values).
Differs: what is no number is NaN where XQuery raises an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from pathcast.message import MessageTree
from pathcast.reference.pathsharing.broker_query import (
    Comparator,
    NameTest,
    Signature,
    SimplePredicate,
    Target,
)
from pathcast.reference.pathsharing.tree_search import select
from pathcast.reference.xquery.items import number_of, untyped

_Value = TypeVar("_Value", str, float)
_Order = Callable[[_Value, _Value], bool]

_NUMBERS: Final[dict[Comparator, _Order[float]]] = {
    Comparator.EQ: operator.eq,
    Comparator.NE: operator.ne,
    Comparator.LT: operator.lt,
    Comparator.LE: operator.le,
    Comparator.GT: operator.gt,
    Comparator.GE: operator.ge,
}
_STRINGS: Final[dict[Comparator, _Order[str]]] = {
    Comparator.EQ: operator.eq,
    Comparator.NE: operator.ne,
    Comparator.LT: operator.lt,
    Comparator.LE: operator.le,
    Comparator.GT: operator.gt,
    Comparator.GE: operator.ge,
}


def double_of(text: str) -> float:
    """The number that a text is as `xs:double`; NaN if it is none.

    Example:
        >>> double_of(" 1e2 "), double_of("-INF"), double_of("ten")
        (100.0, -inf, nan)
    """
    return number_of(untyped(text)).number


class ElementValues:
    """What predicates compare of the elements of one message, each read once."""

    def __init__(self, tree: MessageTree) -> None:
        self._tree = tree
        self._known: dict[tuple[int, Signature], tuple[str, ...]] = {}

    def compared(self, element: int, signature: Signature) -> tuple[str, ...]:
        """The values that a predicate of a signature compares at an element."""
        # Not the operator: what is compared is the same for all.
        key = (element, signature._replace(operator=None, is_number=False))
        found = self._known.get(key)
        if found is None:
            ends = select(self._tree, element, signature.steps) if signature.steps else [element]
            found = tuple(value for end in ends for value in self._values(end, signature))
            self._known[key] = found
        return found

    def passes(self, element: int, predicate: SimplePredicate) -> bool:
        """Whether some value at an element compares with the constant as asked."""
        signature, constant = predicate
        values = self.compared(element, signature)
        if signature.operator is None:
            return bool(values)
        if isinstance(constant, str):
            order = _STRINGS[signature.operator]
            return any(order(value, constant) for value in values)
        assert constant is not None
        numbers = _NUMBERS[signature.operator]
        return any(numbers(double_of(value), constant) for value in values)

    def _values(self, element: int, signature: Signature) -> Iterator[str]:
        tree = self._tree
        texts = range(tree.text_start[element], tree.text_end[element])
        match signature.target:
            case Target.ELEMENT:
                yield "".join(tree.text_value[texts.start : texts.stop])
            case Target.TEXT:
                for text in texts:
                    if tree.text_parent[text] == element:
                        yield tree.text_value[text]
            case Target.ATTRIBUTE:
                assert signature.attribute is not None
                for attribute in attributes_named(tree, element, signature.attribute):
                    yield tree.attribute_value[attribute]


def attributes_named(tree: MessageTree, element: int, test: NameTest) -> Iterator[int]:
    """The attributes of an element whose names pass a test, in document order."""
    for attribute in range(tree.attribute_start[element], tree.attribute_start[element + 1]):
        uri, local = tree.attribute_name[attribute]
        if (test.uri is None or test.uri == uri) and (test.local is None or test.local == local):
            yield attribute
