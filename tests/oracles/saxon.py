"""Saxon as an oracle for customised delivery: another implementation of XQuery, written by others.

A subscription is given to Saxon as its author wrote it. Around it: `$msg` is the message, the
context item too; `doc("...")` and `document("...")` are `$msg`; the namespaces of the subscription
are declared. Results come one by one, serialised as a delivery carries them.

Example:
    >>> oracle = SaxonOracle.shared()  # doctest: +SKIP
    >>> oracle.evaluate("<r>{ $msg//b }</r>", b"<a><b/></a>")  # doctest: +SKIP
    (b'<r><b/></r>',)

Needs `saxonche` (SaxonC-HE, Mozilla Public License 2.0, with parts under other licences that its
wheel lists), which Pathcast itself never imports: the extra `saxon` is for tests alone. Where Saxon
and Pathcast differ, by decision, is listed in `oracles.saxon_differences`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from xml.sax.saxutils import escape

_STRING = r'"(?:[^"]|"")*"' + r"|'(?:[^']|'')*'"
_BLANK = r"(?:\s|\(:(?:[^:(]|:(?!\))|\((?!:))*:\))*"
_PROLOG = re.compile(
    rf"(?P<version>{_BLANK}xquery\s+version\s+(?:{_STRING}){_BLANK};)?"
    rf"(?P<declarations>(?:{_BLANK}declare\s+(?:{_STRING}|[^;\"'])*;)*)"
)
_DECLARED = re.compile(
    r"declare\s+(?:namespace\s+(?P<prefix>[\w.-]+)|(?P<default>default\s+element\s+namespace))"
)
_MESSAGE = re.compile(
    rf"(?<![\w.$-])(?:fn:)?doc(?:ument)?{_BLANK}\({_BLANK}(?:{_STRING}){_BLANK}\)"
)
_CODE = re.compile(r"\b((?:XP|XQ|FO|SE)[A-Z]{2}\d{4})\b")
_XML_DECLARATION = re.compile(r"^\ufeff?<\?xml\s[^?]*\?>")

_SERIALISED = """
for $pathcast-item in (
%s
) return typeswitch ($pathcast-item)
  case attribute() return concat("v", string($pathcast-item))
  case node() return concat("n", serialize($pathcast-item,
    map {"method": "xml", "omit-xml-declaration": true(), "indent": false()}))
  default return concat("v", string($pathcast-item))
"""


class SaxonError(Exception):
    """Saxon gives no value.

    Attributes:
        code: The W3C code, such as `FORG0001`; "" if Saxon names none.
        is_static: Whether the query was refused before it ran.
    """

    def __init__(self, code: str, text: str, *, is_static: bool) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.is_static = is_static


def saxon_missing_reason() -> str | None:
    """Why Saxon cannot be asked here; None if it can."""
    if find_spec("saxonche") is None:
        return "saxonche is not installed (pip install 'pathcast[saxon]')"
    return None


class SaxonOracle:
    """One Saxon processor. Not for several threads.

    Raises:
        ImportError: saxonche is not installed.
    """

    def __init__(self) -> None:
        import saxonche

        self._error: type[Exception] = saxonche.PySaxonApiError
        self._processor = saxonche.PySaxonProcessor(license=False)
        # Nothing is fetched, whatever a message or a query names.
        self._processor.set_configuration_property(
            "http://saxon.sf.net/feature/allowedProtocols", ""
        )
        self._xquery = self._processor.new_xquery_processor()
        self._message: tuple[bytes, Any] | None = None

    @staticmethod
    @functools.cache
    def shared() -> SaxonOracle:
        """The processor of this process: a second one would start a second Java runtime."""
        return SaxonOracle()

    def evaluate(
        self, text: str, message: bytes, namespaces: Mapping[str, str] | None = None
    ) -> tuple[bytes, ...]:
        """The results of a subscription on a message, each as a delivery would carry it.

        Args:
            text: XQuery 1.0, with `$msg`, `doc("...")`, `document("...")` for the message.
            message: UTF-8; it may have an internal subset, never an external one.
            namespaces: Prefix -> namespace name; "" is the default element namespace.

        Returns:
            One entry per item of the value: elements, comments and processing instructions
            serialised, text and values escaped as content. Not canonical yet.

        Raises:
            SaxonError: There is no value: a static or a dynamic error.

        Cost: compiles the query at each call, about half a millisecond; the message that was asked
        last is kept as a tree.
        """
        return self._run(query_for_saxon(text, namespaces), message)

    def gives_any(
        self,
        contents: tuple[str, ...],
        message: bytes,
        namespaces: Mapping[str, str] | None = None,
    ) -> bool:
        """Whether one of several expressions gives an item: the rule of delivery."""
        sequence = ", ".join(f"({content})" for content in contents)
        (answer,) = self.evaluate(f"exists(({sequence}))", message, namespaces)
        return answer == b"true"

    def _run(self, query: str, message: bytes) -> tuple[bytes, ...]:
        xquery = self._xquery
        tree = self._tree(message)
        xquery.set_context(xdm_item=tree)
        xquery.set_parameter("msg", tree)
        try:
            xquery.set_query_content(query)
            value = xquery.run_query_to_value()
        except self._error as error:
            raise _saxon_error(str(error)) from None
        if value is None:
            return ()
        return tuple(_result(value.item_at(number).string_value) for number in range(value.size))

    def _tree(self, message: bytes) -> Any:
        if self._message is None or self._message[0] != message:
            text = _XML_DECLARATION.sub("", message.decode())
            self._message = (message, self._processor.parse_xml(xml_text=text))
        return self._message[1]


_NO_NUMBER = ("Cannot convert string", "Failure converting")
"""How Saxon says, without a code, that a string is no number; the second of `0x1` and its like."""


def _saxon_error(text: str) -> SaxonError:
    found = _CODE.search(text)
    code = found[1] if found else ""
    if not code and any(words in text for words in _NO_NUMBER):
        code = "FORG0001"
    return SaxonError(code, text, is_static="Static error" in text)


def _result(tagged: str) -> bytes:
    kind, text = tagged[0], tagged[1:]
    return (escape(text, {"\r": "&#13;"}) if kind == "v" else text).encode()


def query_for_saxon(text: str, namespaces: Mapping[str, str] | None = None) -> str:
    """The query that Saxon is given: the same body, in a prolog that explains its world.

    Example:
        >>> query_for_saxon('doc("x")//p:a', {"p": "urn:p"}).splitlines()[:2]
        ['declare namespace p = "urn:p";', 'declare variable $msg external;']
    """
    found = _PROLOG.match(text)
    assert found is not None
    body = text[found.end() :]
    version, declarations = found["version"] or "", found["declarations"]
    own = {
        "" if declared["default"] else declared["prefix"]
        for declared in _DECLARED.finditer(declarations)
    }
    given = "".join(
        f"declare namespace {prefix} = {_literal(uri)};\n"
        if prefix
        else f"declare default element namespace {_literal(uri)};\n"
        for prefix, uri in (namespaces or {}).items()
        if prefix not in own
    )
    return (
        f"{version}{given}{declarations}declare variable $msg external;\n"
        + _SERIALISED % _MESSAGE.sub("$msg", body)
    )


def _literal(uri: str) -> str:
    return '"' + uri.replace("&", "&amp;").replace('"', '""') + '"'
