"""The message factory: the groups of a query and the tags of its template become a message.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.language.xquery import PaperStep, parse
    >>> from pathcast_papers.language.xquery.syntax import NameTest
    >>> outer = parse("<titles>{for $s in //section return <t>{$s/title}</t>}</titles>").body
    >>> template = outer.content[0].expr.body
    >>> title = PaperReturn((PaperStep(False, NameTest("", "title")),), Target.ELEMENT, None)
    >>> query = PaperQuery((), (), (title,), template, outer, "s")
    >>> tree = parse_message(b"<book><section><title>XML</title></section><section/></book>")
    >>> message_factory(query, (((2,),), ((),)), tree)
    b'<titles><t><title>XML</title></t><t/></titles>'

Constructors and results are those of the exact interpreter, which here finds the value of the FLWR
expression in the groups and not by evaluation.

Source: Diao and Franklin, VLDB 2003, sections 2.1, 2.2 and figure 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_papers.evaluation.xpath import Document, Node, NodeKind
from pathcast_papers.language.xquery import PaperQuery, PaperReturn, Target
from pathcast_papers.language.xquery.syntax import (
    Attribute,
    Element,
    Enclosed,
    Expr,
    Flwor,
    For,
    Path,
    Root,
    Sequence,
    Text,
    Variable,
)
from pathcast_papers.message_broker.pathsharing.operators import GroupSequence
from pathcast_papers.message_broker.pathsharing.simple_predicates import attributes_named
from pathcast_papers.message_broker.xquery.construction import ConstructionFault
from pathcast_papers.message_broker.xquery.context import DynamicContext
from pathcast_papers.message_broker.xquery.evaluation import serialised, verdict
from pathcast_papers.message_broker.xquery.evaluator import Evaluator
from pathcast_papers.message_broker.xquery.items import Items


def message_factory(query: PaperQuery, groups: GroupSequence, tree: MessageTree) -> bytes:
    """The message that a query makes of a message; results without outer element in one piece.

    Args:
        query: The query.
        groups: What `PathSharing.process` gave for it; empty groups make nothing.
        tree: The message, with details.

    Raises:
        ConstructionError: The template would make what is no element.
        ResultLimitError: The result is too long.
    """
    return b"".join(results(query, groups, tree))


def results(
    query: PaperQuery,
    groups: GroupSequence,
    tree: MessageTree | Document,
    limits: Limits | None = None,
    *,
    message_bytes: int | None = None,
) -> tuple[bytes, ...]:
    """The results of a query, one for each item; none if the message is not delivered.

    Args:
        query: The query.
        groups: What `PathSharing.process` gave for it.
        tree: The message, with details.
        limits: How long the results may be; the defaults if not given.
        message_bytes: Bytes of the message as it arrived, for `Limits.result_ratio_max`.

    Raises:
        ConstructionError: The template would make what is no element.
        ResultLimitError: The results are too long.
    """
    document = tree if isinstance(tree, Document) else Document(tree)
    factory = _Factory(document, query, groups)
    try:
        items = factory.frame(factory.body, DynamicContext())
    except ConstructionFault as error:
        raise verdict(error, Limits()) from None
    if not factory.is_delivered:
        return ()
    return serialised(document, items, limits or Limits(), message_bytes)


class _Factory(Evaluator):
    """The interpreter, to which a FLWR expression is what the template makes of each group."""

    def __init__(self, document: Document, query: PaperQuery, groups: GroupSequence) -> None:
        super().__init__(document)
        self._query = query
        self._groups = groups
        self._template = _Template().of(query.template)
        # Without an outer constructor the FLWR stands alone; of what it says, only that it depends
        # on the message is looked at.
        bound = For(query.variable, None, Path(Root(), ()))
        self.body: Expr = query.outer or Flwor((bound,), None, (), query.template)

    def flwor(self, flwor: Flwor, context: DynamicContext) -> Items:
        """The template, once for each group."""
        found: list[Items] = []
        for group in self._groups:
            inner = context
            for number, (path, nodes) in enumerate(zip(self._query.returns, group, strict=True)):
                inner = inner.bind(_name(number), tuple(self._ends(path, nodes)))
            found.append(self.value(self._template, inner))
        return tuple(item for items in found for item in items)

    def _ends(self, path: PaperReturn, elements: tuple[int, ...]) -> Iterator[Node]:
        """The nodes that a return path ends at, in document order."""
        # Not element by element: the text of one may stand between that of another.
        yield from sorted(end for element in elements for end in self._targets(path, element))

    def _targets(self, path: PaperReturn, element: int) -> Iterator[Node]:
        document, tree = self.document, self.document.tree
        node = document.node_of_element(element)
        match path.target:
            case Target.ELEMENT:
                yield node
            case Target.TEXT:
                for child in document.children(node):
                    if document.kind(child) is NodeKind.TEXT:
                        yield child
            case Target.ATTRIBUTE:
                assert path.attribute is not None
                wanted = set(attributes_named(tree, element, path.attribute))
                for attribute in document.attributes(node):
                    if attribute.number in wanted:
                        yield attribute


class _Template:
    """A template in which each return path is a variable, numbered in document order."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, expr: Expr) -> Expr:
        """The template with variables."""
        match expr:
            case Path() | Variable():
                self._count += 1
                return Variable(_name(self._count - 1))
            case Sequence(items=items):
                return Sequence(tuple(self.of(item) for item in items))
            case Element():
                return self._element(expr)
        return expr

    def _element(self, element: Element) -> Element:
        attributes = tuple(
            Attribute(attribute.name, tuple(self._part(part) for part in attribute.parts))
            for attribute in element.attributes
        )
        content = tuple(
            self._element(part) if isinstance(part, Element) else self._part(part)
            for part in element.content
        )
        return Element(element.name, attributes, element.namespaces, content)

    def _part(self, part: Text | Enclosed) -> Text | Enclosed:
        return Enclosed(self.of(part.expr)) if isinstance(part, Enclosed) else part


def _name(number: int) -> str:
    # No variable of a query has such a name.
    return f"#{number}"
