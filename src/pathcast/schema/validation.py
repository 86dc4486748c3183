"""Messages validated whole against a DTD or an XML Schema, by lxml.

Example:
    >>> validator = validator_of("<!ELEMENT order (no)><!ELEMENT no (#PCDATA)>")
    >>> validator.fault(b"<order><no>7</no></order>") is None
    True
    >>> validator.fault(b"<order><sum>7</sum></order>").reason.partition(", ")[0]
    'Element order content does not follow the DTD'

Both come from strangers. A schema is whole in its text: one that names other files is refused, for
nothing is read; so is an XML Schema whose numbers of occurrences libxml2 would write out. Of a
message nothing external is read, and it is refused where libxml2 has narrower limits than the door
(texts of 10 MB, 256 levels).

Source: 001, section 5 (Figure 10: the message pre-processor of a root broker).
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from io import StringIO
from typing import Any, Final, NamedTuple

from pathcast.errors import SchemaError, extra
from pathcast.schema.external import with_modules

XSD: Final = "http://www.w3.org/2001/XMLSchema"

OCCURRENCES_MAX: Final = 1_000
"""Of `minOccurs` and `maxOccurs` that are numbers: what they repeat is written out."""

FAULT_CHARACTERS_MAX: Final = 1_000

GIVEN_UP: Final = "the validator gives up on this message, which takes too long by the schema"

_DECLARATION: Final = re.compile(r"\A\s*<\?xml\s[^>]*\?>")


class ValidationFault(NamedTuple):
    """The first thing that makes a message invalid.

    Attributes:
        reason: The validator's sentence.
        line: Where, from 1; None if it does not say.
    """

    reason: str
    line: int | None


def is_xsd(text: str) -> bool:
    """Whether the text of a schema is an XML Schema, and no DTD."""
    return XSD in text and not text.lstrip().startswith("<!")


class MessageValidator:
    """A compiled schema; messages are validated by one thread at a time.

    Args:
        text: A DTD or an XML Schema.

    Raises:
        SchemaError: Messages cannot be validated against it.
        MissingDependencyError: lxml is not installed.

    Cost: some milliseconds for a DTD, some tens for a large XML Schema.
    """

    def __init__(self, text: str) -> None:
        with extra("workload", "validating messages"):
            from lxml import etree
        self._etree = etree
        self._turn = threading.Lock()
        self._validator = _compiled_xsd(etree, text) if is_xsd(text) else _compiled_dtd(etree, text)

    def fault(self, message: bytes) -> ValidationFault | None:
        """The fault that makes a message invalid, if it has one; or that the validator gives up.

        Cost: about 10 µs a kilobyte to parse it again, and a few times that to validate it.
        """
        with self._turn:
            try:
                tree = self._etree.fromstring(message, _parser(self._etree))
                if self._validator.validate(tree):
                    return None
            except self._etree.XMLSyntaxError as error:
                return ValidationFault(_short(error.msg), error.lineno or None)
            except self._etree.LxmlError as error:
                # libxml2 bounds what a pattern or a model of content may take.
                told = [entry.message for entry in self._validator.error_log] or [str(error)]
                return ValidationFault(_short(f"{GIVEN_UP}: {told[0]}"), None)
            entry = next(iter(self._validator.error_log), None)
            if entry is None:
                return ValidationFault(_short(None), None)
            return ValidationFault(_short(entry.message), entry.line or None)


@lru_cache(maxsize=64)
def validator_of(text: str) -> MessageValidator:
    """The validator of a schema; those that were used last are kept.

    Raises:
        SchemaError: Messages cannot be validated against it.
        MissingDependencyError: lxml is not installed.
    """
    return MessageValidator(text)


def _parser(etree: Any) -> Any:
    return etree.XMLParser(resolve_entities="internal", no_network=True, load_dtd=False)


def _compiled_dtd(etree: Any, text: str) -> Any:
    resolved = with_modules(text, None, "the schema")
    if resolved.unread:
        named = ", ".join(resolved.unread)
        raise _unusable(f"it names other files ({named}); put them into its text")
    try:
        return etree.DTD(StringIO(resolved.text))
    except etree.DTDParseError as error:
        raise _unusable(str(error)) from error


def _compiled_xsd(etree: Any, text: str) -> Any:
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        root = etree.fromstring(_DECLARATION.sub("", text).encode(), parser)
    except etree.XMLSyntaxError as error:
        raise _unusable(str(error)) from error
    for element in root.iter(f"{{{XSD}}}*"):
        name = etree.QName(element).localname
        is_import = name == "import" and "schemaLocation" in element.attrib
        if name in ("include", "redefine") or is_import:
            raise _unusable(f"it has xs:{name}, and names another file; put it into its text")
        for bound in ("minOccurs", "maxOccurs"):
            number = element.get(bound, "1").strip()
            is_number = number.isdecimal()
            if is_number and (len(number) > 9 or int(number) > OCCURRENCES_MAX):
                raise _unusable(f"{bound} is {number}; {OCCURRENCES_MAX:,} is the most")
    try:
        return etree.XMLSchema(root)
    except etree.XMLSchemaParseError as error:
        raise _unusable(str(error)) from error


def _unusable(reason: str) -> SchemaError:
    return SchemaError("schema.unusable", reason=_short(reason))


def _short(text: str | None) -> str:
    return (text or "invalid")[:FAULT_CHARACTERS_MAX]
