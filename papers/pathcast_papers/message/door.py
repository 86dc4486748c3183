"""The reference door: bytes to a message tree by the standard library's expat.

It gives the tree and the errors that the kernel's door gives, with these differences:

* expat follows the fourth edition of XML 1.0 in names: of the characters beyond U+00FF it accepts
  fewer than the fifth edition, which the kernel follows;
* expat tells few kinds of syntax error apart, so that `xml.syntax` stands for several codes of the
  kernel, and its line and column may be those of the construct rather than of the character;
* it is slow.

Example:
    >>> parse_message(b"<a>&b;</a>")
    Traceback (most recent call last):
    ...
    pathcast.errors.IllFormedMessageError: line 1, column 4: entity 'b' is not declared
"""

from __future__ import annotations

import contextlib
import re
from typing import Final, Never
from xml.parsers import expat

from pathcast.errors import (
    DtdRefusedError,
    IllFormedMessageError,
    LimitExceededError,
    MessageError,
    Param,
    error_for,
)
from pathcast.limits import Limits
from pathcast.message.tree import NO_ELEMENT, ExpandedName, MessageTree, TreeDetails
from pathcast_papers.message.decoding import (
    DecodedMessage,
    check_declared,
    decode_message,
    line_and_column,
)
from pathcast_papers.message.expansion import check_expansion, refuse_expansion

_SEPARATOR: Final = "\x1f"
"""Between URI, local name and prefix; no character of XML."""

_XML_URI: Final = "http://www.w3.org/XML/1998/namespace"
_XMLNS_URI: Final = "http://www.w3.org/2000/xmlns/"
_ILLEGAL: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VERSION: Final = re.compile(r"1\.[0-9]+")
_ATTRIBUTE_NAME: Final = re.compile(rb"([^\s=/>\"']+)\s*=\s*(?:\"[^\"]*\"|'[^']*')")

_CODES: Final = {
    3: "xml.end",
    5: "xml.end",
    7: "xml.tag.mismatch",
    8: "xml.attribute.duplicate",
    9: "xml.outside",
    10: "xml.dtd.parameter",
    11: "xml.entity.undeclared",
    12: "xml.entity.recursive",
    13: "xml.entity.unbalanced",
    14: "xml.reference.character",
    15: "xml.entity.unparsed",
    16: "xml.entity.external",
    17: "xml.instruction.target",
    20: "xml.end",
    24: "xml.entity.undeclared",
    27: "ns.prefix.undeclared",
    28: "ns.prefix.empty",
    29: "xml.entity.unbalanced",
    30: "xml.declaration",
    32: "xml.dtd",
    38: "ns.prefix.reserved",
    39: "ns.prefix.reserved",
    40: "ns.uri.reserved",
}
"""Number of an error of expat -> code of the catalogue; any other is `xml.syntax`."""

_AMPLIFICATION: Final = 43


def parse_message(
    message: bytes, limits: Limits | None = None, encoding: str | None = None
) -> MessageTree:
    """Parses one message.

    Args:
        message: The bytes as they arrived.
        limits: What it may cost; the defaults if not given.
        encoding: What the caller knows of its encoding; goes before mark and declaration.

    Returns:
        The tree.

    Raises:
        IllFormedMessageError: The message is not well-formed.
        EncodingError: The bytes are not text in the encoding they should be in.
        LimitExceededError: A limit was exceeded.
        DtdRefusedError: There is a document type declaration and `limits.dtd` is "refuse".

    Cost: about 5 times `lxml.etree.fromstring`; twice that when there are entity declarations.
    """
    limits = limits or Limits()
    _check_size(len(message), limits)
    decoded = decode_message(message, encoding)
    _check_size(len(decoded.text.encode()), limits)
    # Reading stops short of the first character that XML does not have; expat would take some of
    # them for another encoding. An end met there is that character's fault.
    illegal = _ILLEGAL.search(decoded.text)
    legal = decoded.text[: illegal.start()] if illegal else decoded.text
    reader = _Reader(decoded, legal.encode(), len(message), limits)
    if illegal is None:
        return reader.run()
    with contextlib.suppress(_EndError):
        reader.run()
    raise _fault_at(decoded, illegal.start(), "xml.character", character=_name(illegal[0]))


def _name(character: str) -> str:
    return f"U+{ord(character):04X}"


def _fault_at(
    decoded: DecodedMessage, characters: int, code: str, **params: Param
) -> IllFormedMessageError:
    line, column = line_and_column(decoded.text[:characters])
    offset = decoded.offset(characters)
    return IllFormedMessageError(code, line=line, column=column, offset=offset, **params)


class _EndError(IllFormedMessageError):
    """The message ends too early."""


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.message_bytes_max:
        raise LimitExceededError(
            "limit.message_bytes",
            limit="message_bytes_max",
            given=size,
            maximum=limits.message_bytes_max,
            line=1,
            column=1,
            offset=0,
        )


class _Reader:
    """One message on its way through expat."""

    def __init__(
        self, decoded: DecodedMessage, data: bytes, message_bytes: int, limits: Limits
    ) -> None:
        self._decoded = decoded
        self._data = data
        self._message_bytes = message_bytes
        self._limits = limits
        self._details = TreeDetails()
        self._tree = MessageTree(details=self._details)
        self._open: list[int] = []
        self._text: list[str] = []
        self._names: set[ExpandedName] = set()
        self._declarations: list[tuple[str, str]] = []
        self._is_in_doctype = False
        self._ids: dict[str, dict[str, bool]] = {}
        self._defaults: dict[str, dict[str, str]] = {}
        self._defaulted = 0
        self._parser = self._new_parser()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate("UTF-8", _SEPARATOR)
        parser.namespace_prefixes = True
        parser.ordered_attributes = True
        parser.buffer_text = True
        # The internal subset is read with its parameter entities; whatever is outside is not.
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        parser.ExternalEntityRefHandler = lambda *_: 1
        parser.XmlDeclHandler = self._on_declaration
        parser.StartDoctypeDeclHandler = self._on_doctype
        parser.EndDoctypeDeclHandler = self._on_doctype_end
        parser.AttlistDeclHandler = self._on_attribute_list
        parser.StartNamespaceDeclHandler = self._on_namespace
        parser.StartElementHandler = self._on_start
        parser.EndElementHandler = self._on_end
        parser.CharacterDataHandler = self._text.append
        parser.CommentHandler = self._on_comment
        parser.ProcessingInstructionHandler = self._on_instruction
        return parser

    def run(self) -> MessageTree:
        if self._decoded.text.startswith("\ufeff"):
            # A second byte order mark is a character; expat would skip it.
            raise _fault_at(self._decoded, 0, "xml.outside")
        check_expansion(self._data, self._message_bytes, self._limits)
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            self._refuse(error)
        self._tree.attribute_start.append(len(self._tree.attribute_name))
        self._details.declaration_start.append(len(self._details.declaration))
        return self._tree

    def _refuse(self, error: expat.ExpatError) -> Never:
        place = self._place(error.lineno, error.offset + 1, self._parser.ErrorByteIndex)
        reason = expat.ErrorString(error.code)
        if error.code == _AMPLIFICATION:
            limits = self._limits
            maximum = min(
                limits.entity_expansion_bytes_max,
                limits.entity_expansion_ratio_max * self._message_bytes,
            )
            raise error_for(
                "limit.entity_expansion",
                {
                    "limit": "entity_expansion_bytes_max",
                    "given": max(maximum + 1, 8 << 20),
                    "maximum": maximum,
                    **place,
                },
            ) from None
        code = _CODES.get(error.code, "xml.syntax")
        names = self._names_at(code, self._parser.ErrorByteIndex)
        kind = _EndError if code == "xml.end" else IllFormedMessageError
        raise kind(code, reason=reason, **names, **place) from None

    def _names_at(self, code: str, index: int) -> dict[str, Param]:
        """Parameters of an error's sentence, read from the text at its place."""
        text = self._data[max(index, 0) : index + 200].decode("utf-8", "replace")
        if code == "xml.end":
            return {"construct": "the last thing begun in it" if text else "the root element"}
        if code == "xml.tag.mismatch" and self._open:
            expected = self._tree.name[self._open[-1]][1]
            return {"found": re.split(r"[\s>]", text)[0], "expected": expected}
        found = re.match(r"[&%]([^;]*);", text)
        if not found:
            return {}
        return {"name": found[1], "reference": found[0]}

    def _place(self, line: int, column: int, index: int) -> dict[str, Param]:
        index = max(index, 0)
        offset = self._decoded.mark + index
        if self._decoded.codec not in ("utf-8", "us-ascii"):
            characters = len(self._data[:index].decode("utf-8", "replace"))
            offset = self._decoded.offset(characters)
        return {"line": line, "column": column, "offset": offset}

    def _here(self) -> dict[str, Param]:
        parser = self._parser
        line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        return self._place(line, column, parser.CurrentByteIndex)

    def _check(self, code: str, limit: str, given: int) -> None:
        maximum: int = getattr(self._limits, limit)
        if given > maximum:
            raise LimitExceededError(
                code, limit=limit, given=given, maximum=maximum, **self._here()
            )

    def _fault(self, code: str, **params: Param) -> MessageError:
        return IllFormedMessageError(code, **params, **self._here())

    def _on_declaration(self, version: str, encoding: str | None, _standalone: int) -> None:
        if not _VERSION.fullmatch(version):
            raise self._fault(
                "xml.declaration", reason="the version must be 1.0 (or another 1.x, read as 1.0)"
            )
        if encoding is not None:
            check_declared(encoding, self._decoded)

    def _on_doctype(self, *_identifiers: object) -> None:
        if self._limits.dtd == "refuse":
            raise DtdRefusedError("dtd.refused", **self._here())
        self._is_in_doctype = True

    def _on_doctype_end(self) -> None:
        self._is_in_doctype = False

    def _on_attribute_list(
        self, element: str, name: str, type_: str, default: str | None, _required: bool
    ) -> None:
        self._ids.setdefault(element, {}).setdefault(name, type_ == "ID")
        if default is not None:
            self._defaults.setdefault(element, {}).setdefault(name, default)

    def _on_namespace(self, prefix: str | None, uri: str | None) -> None:
        # Expat 2.5 lets these two pass.
        if prefix is None and uri in (_XML_URI, _XMLNS_URI):
            raise self._fault("ns.uri.reserved", prefix="", uri=uri)
        self._declarations.append((prefix or "", uri or ""))

    def _on_start(self, name: str, attributes: list[str]) -> None:
        self._end_text()
        tree = self._tree
        element = len(tree)
        self._check("limit.depth", "depth_max", len(self._open) + 1)
        self._check("limit.elements", "elements_max", element + 1)
        count = len(attributes) // 2 + len(self._declarations)
        self._check("limit.attributes", "attributes_max", count)
        tree.name.append(self._expanded(name))
        tree.parent.append(self._open[-1] if self._open else NO_ELEMENT)
        tree.depth.append(len(self._open))
        tree.element_end.append(0)
        tree.attribute_start.append(len(tree.attribute_name))
        tree.text_start.append(len(tree.text_value))
        tree.text_end.append(0)
        self._open.append(element)
        self._add_details(name, attributes)
        if self._defaults:
            self._charge_defaults(name, attributes)
        for at in range(0, len(attributes), 2):
            value = attributes[at + 1]
            self._check(
                "limit.attribute_value_bytes", "attribute_value_bytes_max", len(value.encode())
            )
            tree.attribute_name.append(self._expanded(attributes[at]))
            tree.attribute_value.append(value)

    def _add_details(self, name: str, attributes: list[str]) -> None:
        details = self._details
        details.markup_start.append(len(details.markup_content))
        details.markup_end.append(0)
        details.prefix.append(_prefix(name))
        details.declaration_start.append(len(details.declaration))
        details.declaration += self._declarations
        self._declarations = []
        ids = self._ids.get(_written(name), {})
        for attribute in attributes[::2]:
            if ids.get(_written(attribute)):
                details.id_attribute.add(len(details.attribute_prefix))
            details.attribute_prefix.append(_prefix(attribute))

    def _expanded(self, name: str) -> ExpandedName:
        parts = name.split(_SEPARATOR)
        expanded = (parts[0], parts[1]) if len(parts) > 1 else ("", name)
        if expanded not in self._names:
            self._names.add(expanded)
            self._check("limit.names", "names_max", len(self._names))
        return expanded

    def _charge_defaults(self, name: str, attributes: list[str]) -> None:
        """Counts defaulted attributes as entities: the message does not hold them."""
        defaults = self._defaults.get(_written(name))
        if not defaults:
            return
        start = self._parser.CurrentByteIndex
        specified: set[str] = set()
        if self._data[start : start + 1] == b"<":
            end = self._data.find(b"<", start + 1)
            tag = self._data[start : end if end >= 0 else len(self._data)]
            specified = {found.decode() for found in _ATTRIBUTE_NAME.findall(tag)}
        for at in range(0, len(attributes), 2):
            written = _written(attributes[at])
            value = defaults.get(written)
            if value == attributes[at + 1] and written not in specified:
                self._defaulted += len(written.encode()) + len(value.encode())
        parser = self._parser
        refuse_expansion(
            self._defaulted,
            self._message_bytes,
            self._limits,
            parser.CurrentLineNumber,
            parser.CurrentColumnNumber + 1,
            parser.CurrentByteIndex,
        )

    def _on_end(self, _name: str) -> None:
        self._end_text()
        element = self._open.pop()
        self._tree.element_end[element] = len(self._tree)
        self._tree.text_end[element] = len(self._tree.text_value)
        self._details.markup_end[element] = len(self._details.markup_content)

    def _on_comment(self, text: str) -> None:
        self._end_text()
        self._add_markup(None, text)

    def _on_instruction(self, target: str, data: str) -> None:
        self._end_text()
        if ":" in target:
            raise self._fault("ns.colon", name=target)
        self._add_markup(target, data)

    def _add_markup(self, target: str | None, content: str) -> None:
        if self._is_in_doctype:
            return
        details = self._details
        details.markup_target.append(target)
        details.markup_content.append(content)
        details.markup_parent.append(self._open[-1] if self._open else NO_ELEMENT)
        details.markup_texts_before.append(len(self._tree.text_value))

    def _end_text(self) -> None:
        if self._text:
            if self._open:
                self._tree.text_parent.append(self._open[-1])
                self._tree.text_value.append("".join(self._text))
            self._text.clear()


def _prefix(name: str) -> str:
    """The prefix of a name as expat gives it."""
    parts = name.split(_SEPARATOR)
    return parts[2] if len(parts) > 2 else ""


def _written(name: str) -> str:
    """A name as expat gives it -> as it was written."""
    parts = name.split(_SEPARATOR)
    return f"{parts[2]}:{parts[1]}" if len(parts) > 2 else parts[-1]
