"""The size of a message with its entities expanded, computed before any is expanded.

Expat expands as it goes and tells afterwards. So a message with entity declarations is read twice:
here with expansion switched off, adding up sizes, and then, if they are within the limits, again.

Expat does expand references in attribute values even then; there its own protection holds (100
times the message above 8 MiB), which `pathcast_papers.message.door` reports as the same limit.

It reports no syntax errors; the second reading does.
"""

from __future__ import annotations

import re
from typing import Final
from xml.parsers import expat

from pathcast.errors import LimitExceededError
from pathcast.limits import Limits

_REFERENCE: Final = re.compile(r"&([^#&;\s][^&;\s]*);")
_ATTRIBUTE_LIST: Final = re.compile(r"<!ATTLIST(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")
_LITERAL: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_START_TAG: Final = re.compile(rb"<(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")
_PREDEFINED: Final = frozenset(("lt", "gt", "amp", "apos", "quot"))


def check_expansion(data: bytes, message_bytes: int, limits: Limits) -> None:
    """Refuses a message whose entities expand to more than the limits allow.

    Args:
        data: The message in UTF-8, without byte order mark.
        message_bytes: Its size as it arrived; what the ratio is taken of.
        limits: What it may cost.

    Raises:
        LimitExceededError: `entity_expansion_bytes_max` or `entity_expansion_ratio_max`.
    """
    if b"<!ENTITY" in data:
        _Count(data, message_bytes, limits).run()


class _Count:
    def __init__(self, data: bytes, message_bytes: int, limits: Limits) -> None:
        self._data = data
        self._message_bytes = message_bytes
        self._limits = limits
        self._cap = limits.entity_expansion_bytes_max + 1
        self._values: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._total = 0
        self._subset: list[str] = []
        self._parser = expat.ParserCreate("UTF-8")

    def run(self) -> None:
        parser = self._parser
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        parser.ExternalEntityRefHandler = lambda *_: 1
        parser.EntityDeclHandler = self._on_entity
        parser.StartElementHandler = self._on_start
        parser.EndDoctypeDeclHandler = self._on_doctype_end
        parser.CommentHandler = lambda _: None
        parser.ProcessingInstructionHandler = lambda *_: None
        # A default handler that does not expand: references arrive as they are written.
        parser.DefaultHandler = self._on_default
        try:
            parser.Parse(self._data, True)
        except expat.ExpatError:
            return

    def _on_entity(
        self, name: str, is_parameter: bool, value: str | None, *_external: str | None
    ) -> None:
        if is_parameter:
            # Every reference to it adds its text once; they are read between declarations only.
            self._values.setdefault(f"%{name}", value or "")
        elif value is not None:
            self._values.setdefault(name, value)

    def _on_default(self, text: str) -> None:
        if text.startswith("&"):
            self._add_references(text)
        elif text.startswith("%") and text.endswith(";"):
            self._charge(len(self._values.get(f"%{text[1:-1]}", "").encode()))
        else:
            self._subset.append(text)

    def _on_doctype_end(self) -> None:
        for declaration in _ATTRIBUTE_LIST.findall("".join(self._subset)):
            for literal in _LITERAL.findall(declaration):
                self._add_references(literal)
        self._subset.clear()

    def _on_start(self, _name: str, _attributes: dict[str, str]) -> None:
        self._subset.clear()
        start = self._parser.CurrentByteIndex
        if self._data[start : start + 1] == b"<":
            found = _START_TAG.match(self._data, start)
            if found and b"&" in found[0]:
                self._add_references(found[0].decode())

    def _add_references(self, text: str) -> None:
        for name in _REFERENCE.findall(text):
            self._charge(self._size(name))

    def _size(self, name: str) -> int:
        """Bytes that a reference adds, those of the references inside included, up to the cap."""
        if name not in self._values:
            return 0
        waiting = [name]
        while waiting:
            top = waiting[-1]
            if top in self._sizes:
                waiting.pop()
                continue
            value = self._values[top]
            inner = [
                other
                for other in _REFERENCE.findall(value)
                if other in self._values and other not in _PREDEFINED
            ]
            unknown = [other for other in inner if other not in self._sizes]
            if unknown:
                # One that refers to itself counts as empty here; the parser refuses it.
                self._sizes.update((other, 0) for other in unknown if other in waiting)
                waiting.extend(other for other in unknown if other not in self._sizes)
                continue
            size = len(value.encode()) + sum(self._sizes[other] for other in inner)
            self._sizes[top] = min(size, self._cap)
            waiting.pop()
        return self._sizes[name]

    def _charge(self, size: int) -> None:
        self._total += size
        refuse_expansion(
            self._total,
            self._message_bytes,
            self._limits,
            self._parser.CurrentLineNumber,
            self._parser.CurrentColumnNumber + 1,
            self._parser.CurrentByteIndex,
        )


def refuse_expansion(
    total: int, message_bytes: int, limits: Limits, line: int, column: int, offset: int
) -> None:
    """Raises when `total` bytes are more than entities may expand to."""
    maximum = limits.entity_expansion_bytes_max
    ratio = limits.entity_expansion_ratio_max
    if total > maximum:
        name, given = "entity_expansion_bytes_max", total
    elif total > ratio * message_bytes:
        name, given, maximum = "entity_expansion_ratio_max", -(-total // message_bytes), ratio
    else:
        return
    raise LimitExceededError(
        "limit.entity_expansion",
        limit=name,
        given=given,
        maximum=maximum,
        line=line,
        column=column,
        offset=offset,
    )
