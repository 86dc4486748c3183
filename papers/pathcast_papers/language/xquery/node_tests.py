"""Names of a FLWR subscription, axes and node tests: what they are called and what they mean."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from pathcast_papers.language import suggestions
from pathcast_papers.language.names import (
    NCNAME_PATTERN,
    XML_NAMESPACE,
    XMLNS_NAMESPACE,
    Namespaces,
    namespace_of,
    uri_of,
)
from pathcast_papers.language.xquery.functions import FUNCTION_NAMESPACE, SCHEMA_NAMESPACE
from pathcast_papers.language.xquery.scanner import Kind, Scanner
from pathcast_papers.language.xquery.syntax import Axis, KindTest, NameTest, NodeKind, NodeTest

_AXES: Final = MappingProxyType({axis.value: axis for axis in Axis})
NODE_KINDS: Final = MappingProxyType({kind.value: kind for kind in NodeKind})
PREDECLARED: Final = MappingProxyType(
    {
        "fn": FUNCTION_NAMESPACE,
        "local": "http://www.w3.org/2005/xquery-local-functions",
        "xs": SCHEMA_NAMESPACE,
        "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    }
)
"""The prefixes that need no declaration, besides `xml` (XQuery 1.0, 4.12)."""
REFUSED_KINDS: Final = frozenset({"document-node", "item", "schema-element", "schema-attribute"})


class NodeTests(Scanner):
    """The part of the parser that looks names up.

    Attributes:
        namespaces: Prefix -> URI, as bound at this place.
        variables: Names of the variables that are bound at this place.
        parameters: Parameter of the function of the prolog that is put in here -> its name in the
            tree.
        predicates_open: How many predicates stand around this place.
    """

    def __init__(self, text: str, namespaces: Namespaces) -> None:
        self.namespaces: dict[str, str] = dict(namespaces)
        for prefix, uri in PREDECLARED.items():
            self.namespaces.setdefault(prefix, uri)
        self.variables: frozenset[str] = frozenset()
        self.parameters: dict[str, str] = {}
        self.predicates_open = 0
        super().__init__(text)

    # Names.

    def prefixed(self, prefix: str, offset: int) -> str:
        """The namespace URI of a prefix."""
        uri = namespace_of(prefix, self.namespaces)
        if uri is None:
            meant = suggestions.nearest(prefix, sorted({"xml", *self.namespaces} - {""}))
            hint = f'declare namespace {prefix} = "...";'
            raise self.error(
                "XPST0081",
                offset,
                f"prefix {prefix} is not bound",
                f"did you mean {meant}:?" if meant else hint,
                prefix=prefix,
            )
        return self.bindable(prefix, uri, offset)

    def bindable(self, prefix: str, uri: str, offset: int) -> str:
        """A namespace URI that a prefix, or the default "", may be bound to."""
        if uri == XMLNS_NAMESPACE or (uri == XML_NAMESPACE and prefix != "xml"):
            raise self.error("XQST0070", offset, f"the namespace {uri} is reserved")
        if uri_of(uri) != uri:
            # One of the text is collapsed; this one was given beside it.
            raise self.unsupported("a namespace URI with white space to be collapsed", offset)
        return self.writable(uri, offset)

    def writable(self, uri: str, offset: int) -> str:
        """A namespace URI that canonical texts can hold."""
        if "{" in uri or "}" in uri:
            raise self.unsupported("a namespace URI with braces", offset)
        if any("\ud800" <= character <= "\udfff" for character in uri):
            raise self.unsupported("a namespace URI with a lone surrogate", offset)
        return uri

    def default_namespace(self, offset: int) -> str:
        """The default element namespace."""
        return self.bindable("", self.namespaces.get("", ""), offset)

    def name_test(self, axis: Axis) -> NameTest:
        """The name test that is the token; goes on."""
        written, offset = self.value, self.start
        if written == "*" and self.kind is Kind.SYMBOL:
            return self._star()
        self.advance()
        if written.startswith("Q{"):
            uri, local = self.braced(written, offset)
            return NameTest(uri, None if local == "*" else local)
        prefix, colon, local = written.partition(":")
        if colon:
            return NameTest(self.prefixed(prefix, offset), None if local == "*" else local)
        default = "" if axis is Axis.ATTRIBUTE else self.default_namespace(offset)
        return NameTest(default, written)

    def braced(self, written: str, offset: int) -> tuple[str, str]:
        """The namespace URI and the local name of `Q{uri}name`."""
        uri, _, local = written[2:].partition("}")
        uri = uri_of(uri)
        if uri == XMLNS_NAMESPACE:
            raise self.error("XQST0070", offset, f"the namespace {uri} is reserved")
        return uri, local

    def _star(self) -> NameTest:
        """`*`, or `*:name` without blanks."""
        if not self.text.startswith(":", self.end) or self.text.startswith("::", self.end):
            self.advance()
            return NameTest(None, None)
        match = NCNAME_PATTERN.match(self.text, self.end + 1)
        if match is None:
            raise self.error("XPST0003", self.end + 1, "a local name is expected after *:")
        self.move(match.end())
        return NameTest(None, match[0])

    def variable_name(self, written: str, offset: int) -> str:
        """The name of a variable with its prefix looked up."""
        prefix, colon, local = written.partition(":")
        return f"Q{{{self.prefixed(prefix, offset)}}}{local}" if colon else written

    def axis(self) -> Axis:
        """`child::` and the others."""
        written, offset = self.value, self.start
        axis = _AXES.get(written)
        if axis is Axis.NAMESPACE:
            raise self.unsupported("the namespace axis", offset)
        if axis is None:
            meant = suggestions.nearest(written, _AXES)
            raise self.error(
                "XPST0003",
                offset,
                f"there is no axis {written}::",
                f"did you mean {meant}::?" if meant else None,
            )
        self.advance()
        self.advance()
        return axis

    def node_test(self, axis: Axis | None) -> tuple[Axis, NodeTest]:
        """A node test, and the axis that it stands on."""
        if self.is_symbol("*"):
            axis = axis or Axis.CHILD
            return axis, self.name_test(axis)
        if self.kind is not Kind.NAME:
            raise self.unexpected("a name, * or a node test")
        if not self.comes("("):
            axis = axis or Axis.CHILD
            return axis, self.name_test(axis)
        return self.kind_test(axis)

    def kind_test(self, axis: Axis | None) -> tuple[Axis, NodeTest]:
        """`text()` and the others."""
        written, offset = self.value, self.start
        kind = NODE_KINDS.get(written)
        if kind is None:
            if written in REFUSED_KINDS:
                raise self.unsupported(f"the node test {written}()", offset)
            raise self.unexpected("a node test")
        if axis is None:
            axis = Axis.ATTRIBUTE if kind is NodeKind.ATTRIBUTE else Axis.CHILD
        self.advance()
        self.expect("(", f"of {written}()")
        test: NodeTest = KindTest(kind)
        if not self.is_symbol(")"):
            test = self._kind_argument(kind, axis)
            if self.is_symbol(","):
                raise self.unsupported(f"a schema type in {written}()", self.start)
        self.expect(")", f"of {written}()")
        return axis, test

    def _kind_argument(self, kind: NodeKind, axis: Axis) -> NodeTest:
        offset = self.start
        if kind is NodeKind.PROCESSING_INSTRUCTION:
            if self.kind not in (Kind.NAME, Kind.STRING):
                raise self.unexpected("a target")
            target = self.value
            self.advance()
            return KindTest(kind, target)
        if kind not in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
            raise self.unexpected(f") of {kind.value}()")
        if self.take("*"):
            return KindTest(kind)
        if self.kind is not Kind.NAME or self.value.endswith("*"):
            raise self.unexpected("a name or *")
        if (kind is NodeKind.ATTRIBUTE) is not (axis is Axis.ATTRIBUTE):
            raise self.unsupported(f"{kind.value}(name) on the {axis.value} axis", offset)
        return self.name_test(axis)
