"""Simple predicates on the elements of a message: what is compared, and how.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.message_broker.pathsharing.broker_query import Signature
    >>> values = ElementValues(parse_message(b"<a k='07'>x<b>y</b></a>", Limits()))
    >>> values.column(Compared((), Target.ELEMENT, None)).texts(0)
    ('xy',)
    >>> key = Signature((), Target.ATTRIBUTE, NameTest("", "k"), Comparator.EQ, True)
    >>> values.column(key.compared).passes(0, SimplePredicate(key, 7.0))
    True

Source: XQuery 1.0, section 3.5.2 (general comparisons of untyped values).
Differs: what is no number is NaN where XQuery raises an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from pathcast.message import MessageTree
from pathcast_papers.language.xquery import Target
from pathcast_papers.language.xquery.syntax import Comparator, NameTest
from pathcast_papers.message_broker.pathsharing.broker_query import Compared, SimplePredicate
from pathcast_papers.message_broker.pathsharing.tree_search import select
from pathcast_papers.message_broker.xquery.items import number_of, untyped

_ORDERS: Final[Mapping[Comparator, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        Comparator.EQ: operator.eq,
        Comparator.NE: operator.ne,
        Comparator.LT: operator.lt,
        Comparator.LE: operator.le,
        Comparator.GT: operator.gt,
        Comparator.GE: operator.ge,
    }
)


def double_of(text: str) -> float:
    """The number that a text is as `xs:double`; NaN if it is none.

    Example:
        >>> double_of(" 1e2 "), double_of("-INF"), double_of("ten")
        (100.0, -inf, nan)
    """
    return number_of(untyped(text)).number


class Column:
    """What is compared of the elements of one message, each read once.

    Args:
        tree: The message.
        compared: What is compared.
    """

    def __init__(self, tree: MessageTree, compared: Compared) -> None:
        self._tree = tree
        self._compared = compared
        self._texts: dict[int, tuple[str, ...]] = {}
        self._numbers: dict[int, tuple[float, ...]] = {}

    def texts(self, element: int) -> tuple[str, ...]:
        """The values at an element."""
        found = self._texts.get(element)
        if found is None:
            steps = self._compared.steps
            ends = select(self._tree, element, steps) if steps else [element]
            found = tuple(value for end in ends for value in self._values(end))
            self._texts[element] = found
        return found

    def numbers(self, element: int) -> tuple[float, ...]:
        """The values at an element as numbers."""
        found = self._numbers.get(element)
        if found is None:
            found = self._numbers[element] = tuple(map(double_of, self.texts(element)))
        return found

    def passes(self, element: int, predicate: SimplePredicate) -> bool:
        """Whether some value at an element compares with the constant as asked."""
        operator_, constant = predicate.signature.operator, predicate.constant
        if operator_ is None or constant is None:
            return bool(self.texts(element))
        values = self.texts(element) if isinstance(constant, str) else self.numbers(element)
        order = _ORDERS[operator_]
        return any(order(value, constant) for value in values)

    def _values(self, element: int) -> Iterator[str]:
        tree = self._tree
        texts = range(tree.text_start[element], tree.text_end[element])
        match self._compared.target:
            case Target.ELEMENT:
                yield "".join(tree.text_value[texts.start : texts.stop])
            case Target.TEXT:
                for text in texts:
                    if tree.text_parent[text] == element:
                        yield tree.text_value[text]
            case Target.ATTRIBUTE:
                assert self._compared.attribute is not None
                for attribute in attributes_named(tree, element, self._compared.attribute):
                    yield tree.attribute_value[attribute]


class ElementValues:
    """The columns of one message, one for each thing that is compared."""

    def __init__(self, tree: MessageTree) -> None:
        self._tree = tree
        self._columns: dict[Compared, Column] = {}

    def column(self, compared: Compared) -> Column:
        """The column of what is compared."""
        found = self._columns.get(compared)
        if found is None:
            found = self._columns[compared] = Column(self._tree, compared)
        return found


def attributes_named(tree: MessageTree, element: int, test: NameTest) -> Iterator[int]:
    """The attributes of an element whose names pass a test, in document order."""
    for attribute in range(tree.attribute_start[element], tree.attribute_start[element + 1]):
        uri, local = tree.attribute_name[attribute]
        if (test.uri is None or test.uri == uri) and (test.local is None or test.local == local):
            yield attribute
