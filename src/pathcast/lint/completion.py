"""The names and values that can come next in a query, as far as it is written.

Example:
    >>> from pathcast.lint.structure import structure_of_dtd
    >>> from pathcast.schema import parse_dtd
    >>> dtd = "<!ELEMENT order (to, item*)><!ELEMENT to (#PCDATA)><!ELEMENT item EMPTY>"
    >>> dtd += "<!ATTLIST item sku CDATA #IMPLIED size (s|m) #IMPLIED>"
    >>> orders = structure_of_dtd(parse_dtd(dtd))
    >>> [each.text for each in complete("/order/", [orders]).proposals]
    ['item', 'to']
    >>> [each.text for each in complete("//order[to = 'Bern'][item/@s", [orders]).proposals]
    ['size', 'sku']
    >>> [each.text for each in complete("//item[@size = '", [orders]).proposals]
    ['m', 's']

It is for XPath: variables of XQuery are not followed. A predicate that is closed narrows nothing.

Source: 001, section 3.1 leaves to the user what sources publish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from pathcast.lint.reach import Leaf, Nodes, Reach
from pathcast.lint.structure import ANY_NAMESPACE, DOCUMENT, Structure
from pathcast.query import read_query
from pathcast.query.notation import Notation
from pathcast.query.syntax import Axis, KindTest, LocationPath, NameTest, NodeKind, Step

PROPOSALS_MAX: Final = 200

ProposalKind: TypeAlias = Literal["element", "attribute", "value"]

_NAME: Final = re.compile(r"[\w.\-:*]*\Z")
_COMPARES: Final = frozenset("=<>!")
_ENDS: Final = frozenset("|,+")


class Proposal(NamedTuple):
    """A name or value that can stand there.

    Attributes:
        text: To be written from `Completion.offset` on.
        kind: "element", "attribute", or "value" of a string.
    """

    text: str
    kind: ProposalKind


class Completion(NamedTuple):
    """The proposals for a query.

    Attributes:
        offset: Where they begin: what is written behind it is the beginning of each.
        proposals: In order of their texts, 200 at most.
    """

    offset: int
    proposals: tuple[Proposal, ...]


class _Open(NamedTuple):
    """The end of a query that is not complete.

    Attributes:
        context: Path to what it stands in; "" for the document.
        axis: How what is written leads on from there.
        is_attribute: Whether that is an attribute.
        begun: Its first characters.
        is_value: Whether these are of a string that is compared with the context.
    """

    context: str
    axis: Axis
    is_attribute: bool
    begun: str
    is_value: bool = False


def complete(
    text: str,
    structures: Iterable[Structure],
    namespaces: Mapping[str, str] | None = None,
) -> Completion:
    """The names and values that can come next.

    Args:
        text: The query up to where it is written.
        structures: Of what messages can look like; a proposal is of one of them.
        namespaces: Bindings of the query.

    Raises:
        QuerySyntaxError: What is complete of it cannot be read.

    Cost: that of the steps over each structure.
    """
    open_end = _open_end(text)
    bound = namespaces or {}
    steps = _steps(open_end.context, bound)
    notation = Notation(bound)
    found: set[Proposal] = set()
    for structure in structures:
        reach = Reach(structure)
        nodes: Nodes = frozenset({DOCUMENT})
        for step in steps:
            nodes = reach.step(step, nodes)
        if open_end.is_value:
            found |= {Proposal(each, "value") for each in _values(structure, nodes)}
        else:
            found |= _names(reach, nodes, open_end, notation)
    fitting = sorted(each for each in found if each.text.startswith(open_end.begun))
    return Completion(len(text) - len(open_end.begun), tuple(fitting[:PROPOSALS_MAX]))


def _steps(context: str, namespaces: Mapping[str, str]) -> Sequence[Step]:
    """Raises QuerySyntaxError."""
    if context in ("", "/"):
        return ()
    expr = read_query(context, namespaces)
    return expr.steps if isinstance(expr, LocationPath) else ()


def _names(reach: Reach, nodes: Nodes, end: _Open, notation: Notation) -> set[Proposal]:
    axis, structure = end.axis, reach.structure
    anything = NameTest(None, None)
    if end.is_attribute:
        if axis is not Axis.CHILD:
            everywhere = Step(axis, KindTest(NodeKind.NODE), (), 0)
            nodes = reach.step(everywhere, nodes)
        nodes = reach.step(Step(Axis.ATTRIBUTE, anything, (), 0), nodes)
        names = {each.name for each in nodes if isinstance(each, Leaf)}
    else:
        axis = Axis.DESCENDANT if axis is Axis.DESCENDANT_OR_SELF else axis
        nodes = reach.step(Step(axis, anything, (), 0), nodes)
        places = [structure.places[each] for each in nodes if isinstance(each, int)]
        names = {(place.uri, place.local) for place in places}
    kind: ProposalKind = "attribute" if end.is_attribute else "element"
    return {
        Proposal(_written(name, notation, end), kind)
        for name in names
        if name[0] != "http://www.w3.org/2000/xmlns/"
    }


def _written(name: tuple[str, str], notation: Notation, end: _Open) -> str:
    uri, local = name
    if end.begun.startswith("*:"):
        return f"*:{local}"
    test = NameTest(None if uri in ("", ANY_NAMESPACE) else uri, local)
    return notation.node_test(test, has_default=not end.is_attribute)


def _values(structure: Structure, nodes: Nodes) -> set[str]:
    """The values that attributes and elements can have, where they are few."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, int):
            found |= structure.places[node].content.values or frozenset()
        elif node.kind == "attribute":
            found |= structure.places[node.place].attributes[node.name].values or frozenset()
    return found


def _open_end(text: str) -> _Open:
    """The end of a query, and the path that it stands in."""
    around: list[tuple[str, str]] = []
    base = path = compared = ""
    is_apart = False
    at = 0
    while at < len(text):
        sign = text[at]
        at += 1
        if sign in "'\"":
            end = text.find(sign, at)
            if end < 0:
                return _Open(compared, Axis.SELF, False, text[at:], is_value=True)
            at, path = end + 1, ""
        elif sign == "[":
            around.append((base, path))
            base, path = _joined(base, path), ""
        elif sign == "(":
            around.append((base, ""))
            path = ""
        elif sign in "])":
            base, path = around.pop() if around else ("", "")
        elif sign in _COMPARES:
            compared, path = _joined(base, path) if path else compared, ""
        elif sign in _ENDS:
            path = ""
        elif sign.isspace():
            is_apart = True
            continue
        else:
            # A word behind a word: the one before was an operand, or an operator.
            is_new = is_apart and not path.endswith(("/", "@", ":")) and sign != "/"
            path = sign if is_new else path + sign
        is_apart = False
    if is_apart and not path.endswith(("/", "@", ":")):
        path = ""
    found = _NAME.search(path)
    assert found is not None
    begun, head = found.group(), path[: found.start()]
    is_attribute, head = head.endswith("@"), head.removesuffix("@")
    if head.endswith("//"):
        return _Open(_joined(base, head[:-2], head), Axis.DESCENDANT_OR_SELF, is_attribute, begun)
    return _Open(_joined(base, head.removesuffix("/"), head), Axis.CHILD, is_attribute, begun)


def _joined(base: str, path: str, written: str | None = None) -> str:
    """A path from where another one leads; from the document if it is absolute, as written."""
    if (path if written is None else written).startswith("/"):
        return path
    if not path:
        return base
    return f"{base}/{path}"
