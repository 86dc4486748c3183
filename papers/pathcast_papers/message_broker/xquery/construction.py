"""Direct element constructors.

The items of enclosed expressions become content: neighbouring atomic values of one expression a
text with a space between each two, attribute nodes at the head attributes, a document node its
children, everything else itself. Text that meets text is one text, and empty text is none.

An element knows the namespaces that are in scope by itself: those that constructors declare where
it is written, and those of the prefixes in its name and the names of its attributes. One that takes
the default namespace back (`xmlns=""`) inherits none, wherever it is put. An attribute whose prefix
means something else here gets the first one, by code point, that has its namespace; if there is
none, its own with `_1`, `_2` and so on after it, the first that is free.

What a constructor writes as `xml:id` is one word, without the white space around it.

Source: XQuery 1.0, section 3.7.1 (direct element constructors), 3.7.4 (in-scope namespaces).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Final

from pathcast_papers.evaluation.xpath import Node, NodeKind
from pathcast_papers.language.names import NCNAME, XML_NAMESPACE
from pathcast_papers.language.patterns import LazyPattern
from pathcast_papers.language.values import normalize_space
from pathcast_papers.language.xquery.syntax import (
    Attribute,
    ComputedName,
    Element,
    Enclosed,
    Name,
    Text,
)
from pathcast_papers.message_broker.xquery.context import DynamicContext
from pathcast_papers.message_broker.xquery.items import Atomic, ConstructedElement, Item, Kind

if TYPE_CHECKING:
    from pathcast_papers.message_broker.xquery.evaluator import Evaluator


_QNAME: Final = LazyPattern(f"(?:{NCNAME}:)?{NCNAME}")
_ANY_ELEMENT: Final = Name("", "", "an element")
"""The name of an element that has none in what is said of it."""


class ConstructionFault(Exception):
    """A constructor makes no element.

    Attributes:
        code: The code of the W3C.
        name: The name of the element, as it is written.
    """

    def __init__(self, code: str, name: Name) -> None:
        super().__init__(code)
        self.code = code
        self.name = written(name)


def written(name: Name) -> str:
    """A name with its prefix.

    Example:
        >>> written(Name("p", "urn:p", "a")), written(Name("", "", "a"))
        ('p:a', 'a')
    """
    return f"{name.prefix}:{name.local}" if name.prefix else name.local


def construct(
    evaluator: Evaluator, element: Element, context: DynamicContext, *, is_frame: bool = False
) -> ConstructedElement:
    """The element that a constructor makes.

    Args:
        evaluator: Evaluates what is enclosed.
        element: The constructor.
        context: Where it stands.
        is_frame: Whether it is part of the frame of a subscription.

    Raises:
        ConstructionFault: An attribute comes after other content, or twice.
    """
    evaluator.budget.charge(1)
    name = element.name
    if isinstance(name, ComputedName):
        name = _computed_name(evaluator, name, context, _ANY_ELEMENT, is_attribute=False)
    declared = dict(context.namespaces)
    for prefix, uri in element.namespaces:
        declared[prefix] = uri
    declared = {prefix: uri for prefix, uri in declared.items() if uri}
    context = context.inside(declared)
    own = {**declared, "": ""} if ("", "") in element.namespaces else declared
    content = _Content(evaluator, name, own)
    for attribute in element.attributes:
        named = attribute.name
        if isinstance(named, ComputedName):
            named = _computed_name(evaluator, named, context, name, is_attribute=True)
        value = _attribute_value(evaluator, attribute, context)
        is_id = (named.uri, named.local) == (XML_NAMESPACE, "id")
        content.add_attribute(named, normalize_space(value) if is_id else value)
    evaluate = evaluator.frame if is_frame else evaluator.value
    for part in element.content:
        match part:
            case Text(value=value):
                content.add_text(value)
            case Element():
                content.add(construct(evaluator, part, context, is_frame=is_frame))
            case Enclosed(expr=expr):
                content.add_all(evaluate(expr, context))
    return content.finished()


def _attribute_value(evaluator: Evaluator, attribute: Attribute, context: DynamicContext) -> str:
    texts: list[str] = []
    for part in attribute.parts:
        if isinstance(part, Text):
            texts.append(part.value)
        else:
            values = evaluator.atomised(evaluator.value(part.expr, context))
            texts.append(" ".join(str(value) for value in values))
        evaluator.budget.charge_text(len(texts[-1]))
    return "".join(texts)


def _computed_name(
    evaluator: Evaluator,
    name: ComputedName,
    context: DynamicContext,
    element: Name,
    *,
    is_attribute: bool,
) -> Name:
    """The name that an expression gives in a constructor of an element.

    Raises:
        ConstructionFault: It is none, its prefix is not bound, or it would declare a namespace.
    """
    value = evaluator.first(name.expr, context)
    if value is None or value.kind not in (Kind.STRING, Kind.UNTYPED):
        raise ConstructionFault("XQDY0074", element)
    written = str(value).strip(" \t\r\n")
    evaluator.budget.charge_text(len(written))
    if _QNAME.fullmatch(written) is None:
        raise ConstructionFault("XQDY0074", element)
    prefix, _, local = written.rpartition(":")
    if is_attribute and "xmlns" in (prefix, written):
        raise ConstructionFault("XQDY0044", element)
    if prefix == "xmlns":
        raise ConstructionFault("XQDY0096", element)
    known = dict(name.namespaces)
    if prefix and prefix not in known:
        raise ConstructionFault("XQDY0074", element)
    return Name(prefix, "" if is_attribute and not prefix else known.get(prefix, ""), local)


class _Content:
    """An element in the making."""

    def __init__(self, evaluator: Evaluator, name: Name, declared: dict[str, str]) -> None:
        self._evaluator = evaluator
        self._document = evaluator.document
        self._name = name
        self._namespaces = declared
        self._attributes: dict[tuple[str, str], tuple[Name, str]] = {}
        self._nodes: list[str | Node | ConstructedElement] = []
        self._texts: list[str] = []
        if name.uri and name.prefix != "xml":
            self._namespaces = {**declared, name.prefix: name.uri}

    def add_all(self, items: Iterable[Item]) -> None:
        """Adds the items of one enclosed expression."""
        is_after_atomic = False
        for item in items:
            self._evaluator.budget.charge(1)
            if isinstance(item, Atomic):
                self.add_text(f" {item}" if is_after_atomic else str(item))
            elif isinstance(item, Node):
                self.add_node(item)
            else:
                self.add(item)
            is_after_atomic = isinstance(item, Atomic)

    def add_text(self, text: str) -> None:
        """Adds characters."""
        if text:
            self._evaluator.budget.charge_text(len(text))
            self._texts.append(text)

    def add(self, node: Node | ConstructedElement) -> None:
        """Adds a node that is neither text nor attribute."""
        self._end_text()
        self._nodes.append(node)

    def add_node(self, node: Node) -> None:
        """Adds a node of the message."""
        match self._document.kind(node):
            case NodeKind.TEXT:
                self.add_text(self._document.string_value(node))
            case NodeKind.ATTRIBUTE:
                self._copy_attribute(node)
            case NodeKind.DOCUMENT:
                for child in self._document.children(node):
                    self.add(child)
            case _:
                self.add(node)

    def _copy_attribute(self, node: Node) -> None:
        if self._texts or self._nodes:
            raise ConstructionFault("XQTY0024", self._name)
        prefix, _, _ = self._document.qualified_name(node).rpartition(":")
        uri, local = self._document.expanded_name(node) or ("", "")
        value = self._document.string_value(node)
        self._evaluator.budget.charge_text(len(value))
        self.add_attribute(Name(self._prefix_for(prefix, uri), uri, local), value)

    def add_attribute(self, name: Name, value: str) -> None:
        """Adds an attribute whose prefix is right."""
        key = (name.uri, name.local)
        if key in self._attributes:
            raise ConstructionFault("XQDY0025", self._name)
        self._attributes[key] = (name, value)
        if name.prefix not in ("", "xml"):
            self._namespaces = {**self._namespaces, name.prefix: name.uri}

    def _prefix_for(self, prefix: str, uri: str) -> str:
        if prefix in ("", "xml") or self._namespaces.get(prefix, uri) == uri:
            return prefix
        known = sorted(other for other, bound in self._namespaces.items() if other and bound == uri)
        if known:
            return known[0]
        others = (f"{prefix}_{number}" for number in count(1))
        return next(other for other in others if other not in self._namespaces)

    def _end_text(self) -> None:
        if self._texts:
            self._nodes.append("".join(self._texts))
            self._texts = []

    def finished(self) -> ConstructedElement:
        """The element."""
        self._end_text()
        attributes = tuple(self._attributes.values())
        return ConstructedElement(self._name, attributes, self._namespaces, tuple(self._nodes))


def element_text(evaluator: Evaluator, element: ConstructedElement) -> str:
    """The string value of a constructed element.

    Subscriptions cannot ask for it; a value of any kind has one nevertheless.
    """
    texts: list[str] = []
    waiting: list[str | Node | ConstructedElement] = [element]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ConstructedElement):
            evaluator.budget.charge(1)
            waiting.extend(reversed(part.content))
        elif isinstance(part, str):
            texts.append(part)
            evaluator.budget.charge_text(len(part))
        elif evaluator.document.kind(part) is NodeKind.ELEMENT:
            texts.append(evaluator.text_of(part))
    return "".join(texts)
