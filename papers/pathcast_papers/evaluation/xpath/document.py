"""A message as XPath's tree: every node of the seven types, in document order.

Nodes are values that sort in document order. The document node, elements, text, comments and
instructions have a *place*, counted from 0; a namespace or attribute node has the place of its
element and a number among the namespace or attribute nodes there.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> document = Document(parse_message(b"<a x='1'>t<!--c--><b/></a>"))
    >>> [document.kind(node).value for node in document.descendants(DOCUMENT_NODE)]
    ['element', 'text', 'comment', 'element']
    >>> document.string_value(document.children(DOCUMENT_NODE)[0])
    't'

It finds nodes and says what they are; axes and expressions are elsewhere.

Source: XPath 1.0, section 5 (data model).
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from pathcast.message import ExpandedName, MessageTree
from pathcast_papers.language.names import XML_NAMESPACE


class NodeKind(Enum):
    """The seven types of nodes."""

    DOCUMENT = "document"
    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    NAMESPACE = "namespace"
    TEXT = "text"
    COMMENT = "comment"
    INSTRUCTION = "processing instruction"


_MAIN: Final = 0
_NAMESPACE: Final = 1
_ATTRIBUTE: Final = 2


class Node(NamedTuple):
    """A node; compares and sorts in document order.

    Attributes:
        place: Its place, or that of the element it belongs to.
        sort: 0 for what has a place of its own, 1 for a namespace node, 2 for an attribute.
        number: Number of an attribute in the tree, or of a namespace node among those of its
            element.
    """

    place: int
    sort: int = _MAIN
    number: int = 0


DOCUMENT_NODE: Final = Node(0)
"""The document node."""


class Document:
    """One message.

    Args:
        tree: The message, with details.
        time: When it was: microseconds since the beginning of 1970, UTC.

    Cost: one pass over the nodes.
    """

    def __init__(self, tree: MessageTree, time: int = 0) -> None:
        self.time = time
        if tree.details is None:
            raise ValueError("the tree was parsed without details")
        self.tree = tree
        self._details = tree.details
        self._kinds: list[NodeKind] = [NodeKind.DOCUMENT]
        self._numbers: list[int] = [-1]
        self._parents: list[int] = [-1]
        self._ends: list[int] = [0]
        self._place_of_element: list[int] = []
        self._in_scope: dict[int, list[tuple[str, str]]] = {}
        self._number_nodes()

    def _number_nodes(self) -> None:
        tree, details = self.tree, self._details
        texts = markups = 0
        open_elements: list[int] = []

        def add_leaves(text_end: int, markup_end: int) -> None:
            nonlocal texts, markups
            while texts < text_end or markups < markup_end:
                if markups < markup_end and details.markup_texts_before[markups] <= texts:
                    is_comment = details.markup_target[markups] is None
                    kind = NodeKind.COMMENT if is_comment else NodeKind.INSTRUCTION
                    self._add(kind, markups, details.markup_parent[markups])
                    markups += 1
                else:
                    self._add(NodeKind.TEXT, texts, tree.text_parent[texts])
                    texts += 1

        for element in range(len(tree)):
            while open_elements and tree.element_end[open_elements[-1]] <= element:
                last = open_elements.pop()
                add_leaves(tree.text_end[last], details.markup_end[last])
                self._ends[self._place_of_element[last]] = len(self._kinds)
            add_leaves(tree.text_start[element], details.markup_start[element])
            self._place_of_element.append(len(self._kinds))
            self._add(NodeKind.ELEMENT, element, tree.parent[element])
            open_elements.append(element)
        while open_elements:
            last = open_elements.pop()
            add_leaves(tree.text_end[last], details.markup_end[last])
            self._ends[self._place_of_element[last]] = len(self._kinds)
        add_leaves(len(tree.text_value), len(details.markup_content))
        self._ends[0] = len(self._kinds)

    def _add(self, kind: NodeKind, number: int, parent: int) -> None:
        self._kinds.append(kind)
        self._numbers.append(number)
        self._parents.append(self._place_of_element[parent] if parent >= 0 else 0)
        self._ends.append(len(self._kinds))

    def __len__(self) -> int:
        """Number of places."""
        return len(self._kinds)

    # What a node is.

    def kind(self, node: Node) -> NodeKind:
        """Its type."""
        if node.sort == _MAIN:
            return self._kinds[node.place]
        return NodeKind.ATTRIBUTE if node.sort == _ATTRIBUTE else NodeKind.NAMESPACE

    def element_number(self, node: Node) -> int | None:
        """The number of an element in the columns of the tree; None for another node."""
        return self._numbers[node.place] if self.kind(node) is NodeKind.ELEMENT else None

    def number(self, node: Node) -> int:
        """The number of a node in the columns of the tree that hold its type."""
        return self._numbers[node.place] if node.sort == _MAIN else node.number

    def rank(self, node: Node) -> int:
        """How many nodes of its kind come before it; of a namespace node, its element's number.

        Cost: of a comment or an instruction, linear in those before it.
        """
        kind = self.kind(node)
        if kind is NodeKind.DOCUMENT:
            return 0
        if kind is NodeKind.NAMESPACE:
            return self._numbers[node.place]
        number = self.number(node)
        if kind not in (NodeKind.COMMENT, NodeKind.INSTRUCTION):
            return number
        is_comment = kind is NodeKind.COMMENT
        before = self._details.markup_target[:number]
        return sum((target is None) == is_comment for target in before)

    def expanded_name(self, node: Node) -> ExpandedName | None:
        """Namespace URI and local name; None for a node without a name (5)."""
        match self.kind(node):
            case NodeKind.ELEMENT:
                return self.tree.name[self._numbers[node.place]]
            case NodeKind.ATTRIBUTE:
                return self.tree.attribute_name[node.number]
            case NodeKind.NAMESPACE:
                return ("", self._namespaces(node.place)[node.number][0])
            case NodeKind.INSTRUCTION:
                return ("", self._details.markup_target[self._numbers[node.place]] or "")
        return None

    def qualified_name(self, node: Node) -> str:
        """The name as it was written; "" for a node without a name."""
        name = self.expanded_name(node)
        prefix = ""
        match self.kind(node):
            case NodeKind.ELEMENT:
                prefix = self._details.prefix[self._numbers[node.place]]
            case NodeKind.ATTRIBUTE:
                prefix = self._details.attribute_prefix[node.number]
        local = name[1] if name else ""
        return f"{prefix}:{local}" if prefix else local

    def string_value(self, node: Node) -> str:
        """The string-value."""
        number = self._numbers[node.place]
        match self.kind(node):
            case NodeKind.DOCUMENT:
                return "".join(self.tree.text_value)
            case NodeKind.ELEMENT:
                inside = slice(self.tree.text_start[number], self.tree.text_end[number])
                return "".join(self.tree.text_value[inside])
            case NodeKind.ATTRIBUTE:
                return self.tree.attribute_value[node.number]
            case NodeKind.NAMESPACE:
                return self._namespaces(node.place)[node.number][1]
            case NodeKind.TEXT:
                return self.tree.text_value[number]
        return self._details.markup_content[number]

    # Nodes around a node.

    def node_of_element(self, element: int) -> Node:
        """The node of an element, by its number in the tree."""
        return Node(self._place_of_element[element])

    def parent(self, node: Node) -> Node | None:
        """The parent; None for the document node."""
        if node.sort != _MAIN:
            return Node(node.place)
        return Node(self._parents[node.place]) if node.place else None

    def children(self, node: Node) -> list[Node]:
        """The children in document order."""
        found: list[Node] = []
        if node.sort == _MAIN:
            place, end = node.place + 1, self._ends[node.place]
            while place < end:
                found.append(Node(place))
                place = self._ends[place]
        return found

    def descendants(self, node: Node) -> list[Node]:
        """The descendants in document order."""
        if node.sort != _MAIN:
            return []
        return [Node(place) for place in range(node.place + 1, self._ends[node.place])]

    def end(self, node: Node) -> int:
        """The first place after a node and all that is in it."""
        return self._ends[node.place] if node.sort == _MAIN else node.place + 1

    def attributes(self, node: Node) -> list[Node]:
        """The attributes of an element, in the order they were written."""
        element = self.element_number(node)
        if element is None:
            return []
        own = range(self.tree.attribute_start[element], self.tree.attribute_start[element + 1])
        return [Node(node.place, _ATTRIBUTE, attribute) for attribute in own]

    def namespaces(self, node: Node) -> list[Node]:
        """The namespace nodes of an element: one for each prefix in force, `xml` among them."""
        if self.element_number(node) is None:
            return []
        count = len(self._namespaces(node.place))
        return [Node(node.place, _NAMESPACE, number) for number in range(count)]

    def namespace_bindings(self, node: Node) -> list[tuple[str, str]]:
        """Prefix and URI of the namespace nodes of an element, `xml` among them."""
        return [] if self.element_number(node) is None else self._namespaces(node.place)

    def has_default_taken_back(self, node: Node) -> bool:
        """Whether an element says `xmlns=""`."""
        element, starts = self.element_number(node), self._details.declaration_start
        if element is None:
            return False
        return ("", "") in self._details.declaration[starts[element] : starts[element + 1]]

    def _namespaces(self, place: int) -> list[tuple[str, str]]:
        found = self._in_scope.get(place)
        if found is None:
            in_force: dict[str, str] = {}
            element, starts = self._numbers[place], self._details.declaration_start
            chain = []
            while element >= 0:
                chain.append(element)
                element = self.tree.parent[element]
            for each in reversed(chain):
                for prefix, uri in self._details.declaration[starts[each] : starts[each + 1]]:
                    # In the order of the declarations that are in force, as in the kernel.
                    in_force.pop(prefix, None)
                    in_force[prefix] = uri
            in_force.pop("xml", None)
            # `xmlns=""` takes the default namespace away; it is no namespace node itself.
            found = [("xml", XML_NAMESPACE)]
            found += [(prefix, uri) for prefix, uri in in_force.items() if uri]
            self._in_scope[place] = found
        return found

    def elements_with_id(self, wanted: set[str]) -> list[Node]:
        """The elements that have one of some ids (5.2.1); of equal ids the first counts."""
        found: list[Node] = []
        left = set(wanted)
        for element in range(len(self.tree)):
            starts = self.tree.attribute_start
            for attribute in range(starts[element], starts[element + 1]):
                is_xml_id = self.tree.attribute_name[attribute] == (XML_NAMESPACE, "id")
                if not (is_xml_id or attribute in self._details.id_attribute):
                    continue
                value = self.tree.attribute_value[attribute]
                if value in left:
                    left.discard(value)
                    found.append(self.node_of_element(element))
        return list(dict.fromkeys(found))
