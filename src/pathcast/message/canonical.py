"""Results in one notation: canonical XML of a fragment, so that equal infosets are equal bytes.

Engines may write `<a/>` or `<a></a>`, CDATA or references, attributes in any order; none of it is
part of the result. What is: names, prefixes, the namespaces in scope of every element, attributes,
text, comments and processing instructions.

Example:
    >>> canonical(b"<a  y='2' x='1'><![CDATA[<]]></a>")
    b'<a x="1" y="2">&lt;</a>'
    >>> canonical(b"<a xmlns:p='u'><b xmlns:p='u'/></a>") == canonical(b"<a xmlns:p='u'><b/></a>")
    True

Canonical XML 1.0 with comments, over a fragment instead of a document: a text, an attribute's value
written as text, several nodes. One thing is left out: relative namespace names, which Canonical XML
refuses, are taken as they are. `expanded` forgets prefixes, for the few results where XQuery leaves
their choice to the implementation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.parsers import expat

_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;"})
_VALUE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#x9;", "\n": "&#xA;", "\r": "&#xD;"}
)
_XML = "http://www.w3.org/XML/1998/namespace"

Namespaces = Mapping[str, str]
"""Prefix -> namespace name, "" for the default namespace."""


class FragmentError(ValueError):
    """Bytes that cannot stand inside an element: no result of any query."""


def canonical(fragment: bytes) -> bytes:
    """A fragment in canonical form.

    Args:
        fragment: Content of an element: UTF-8, namespaces declared inside.

    Returns:
        UTF-8. Two fragments are the same result if and only if these are equal.

    Raises:
        FragmentError: The bytes are no well-formed content, or a prefix is not declared.

    Cost: linear in the fragment; one copy of it.

    Source: Canonical XML 1.0, 2.3. Differs: a fragment; relative namespace names are not refused.
    """
    return _written(fragment, _Canonical())


def expanded(fragment: bytes) -> bytes:
    """A fragment with expanded names in place of prefixes and declarations.

    Example:
        >>> expanded(b"<p:a xmlns:p='u' xmlns:q='v' q:x=''/>")
        b'<{u}a {v}x=""></{u}a>'

    Raises:
        FragmentError: As `canonical`.
    """
    return _written(fragment, _Expanded())


class _Canonical:
    """Writes names as they are, and what an element declares beyond its parent."""

    def start(
        self, name: str, attributes: Sequence[tuple[str, str]], scope: Namespaces, outer: Namespaces
    ) -> str:
        _resolved(name, scope)
        declared = sorted((p, uri) for p, uri in scope.items() if outer.get(p, "") != uri)
        text = f"<{name}"
        for prefix, uri in declared:
            text += f' xmlns{":" if prefix else ""}{prefix}="{uri.translate(_VALUE)}"'
        for (_, _), (attribute, value) in sorted(
            (_resolved_attribute(item[0], scope), item) for item in attributes
        ):
            text += f' {attribute}="{value.translate(_VALUE)}"'
        return text + ">"

    def end(self, name: str, scope: Namespaces) -> str:
        return f"</{name}>"


class _Expanded:
    """Writes expanded names, and no declarations."""

    def start(
        self, name: str, attributes: Sequence[tuple[str, str]], scope: Namespaces, outer: Namespaces
    ) -> str:
        text = "<" + _clark(_resolved(name, scope))
        for attribute, value in sorted(
            (_resolved_attribute(name, scope), value) for name, value in attributes
        ):
            text += f' {_clark(attribute)}="{value.translate(_VALUE)}"'
        return text + ">"

    def end(self, name: str, scope: Namespaces) -> str:
        return f"</{_clark(_resolved(name, scope))}>"


def _clark(name: tuple[str, str]) -> str:
    return f"{{{name[0]}}}{name[1]}" if name[0] else name[1]


def _resolved(name: str, scope: Namespaces) -> tuple[str, str]:
    prefix, _, local = name.rpartition(":")
    if prefix == "xml":
        return _XML, local
    uri = scope.get(prefix, "")
    if prefix and not uri:
        raise FragmentError(f"prefix {prefix!r} is not declared")
    return uri, local


def _resolved_attribute(name: str, scope: Namespaces) -> tuple[str, str]:
    return _resolved(name, scope) if ":" in name else ("", name)


def _written(fragment: bytes, writer: _Canonical | _Expanded) -> bytes:
    parts: list[str] = []
    scopes: list[dict[str, str]] = [{}]
    parser = expat.ParserCreate("UTF-8")
    parser.ordered_attributes = True
    parser.buffer_text = True

    def start(name: str, flat: list[str]) -> None:
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        scope = dict(scopes[-1])
        for attribute, value in pairs:
            if attribute == "xmlns":
                scope[""] = value
            elif attribute.startswith("xmlns:"):
                scope[attribute[6:]] = value
        own = [pair for pair in pairs if pair[0] != "xmlns" and not pair[0].startswith("xmlns:")]
        if len(scopes) > 1:
            parts.append(writer.start(name, own, scope, scopes[-1]))
        scopes.append(scope)

    def end(name: str) -> None:
        scope = scopes.pop()
        if len(scopes) > 1:
            parts.append(writer.end(name, scope))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: parts.append(text.translate(_TEXT))
    parser.CommentHandler = lambda text: parts.append(f"<!--{text}-->")
    parser.ProcessingInstructionHandler = lambda target, text: parts.append(
        f"<?{target} {text}?>" if text else f"<?{target}?>"
    )
    try:
        parser.Parse(b"<f>" + fragment + b"</f>", True)
    except expat.ExpatError as error:
        raise FragmentError(f"{error}: {fragment[:200]!r}") from None
    return "".join(parts).encode()
