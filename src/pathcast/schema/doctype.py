"""The document type declaration of a message, and the DTD that it stands for.

Example:
    >>> doctype = read_doctype(
    ...     b'<!DOCTYPE book SYSTEM "book.dtd" [<!ELEMENT note (#PCDATA)>]><book/>')
    >>> doctype.root, doctype.system_id, doctype.internal_subset
    ('book', 'book.dtd', '<!ELEMENT note (#PCDATA)>')
    >>> read_doctype(b"<book/>") is None
    True

Of the message only the part before the root element is looked at, so this is no check that it is
well-formed. The external subset is read from a catalog or from a directory that the caller names,
never from elsewhere.

Source: XML 1.0, section 2.8 (productions 22, 28 and 75).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pathcast.errors import SchemaError
from pathcast.schema.catalog import Catalog
from pathcast.schema.dtd import elements_of
from pathcast.schema.element_paths import ElementPaths
from pathcast.schema.external import (
    DTD_BYTES_MAX,
    DtdPart,
    decode,
    encoded,
    local_file,
    read_text,
)
from pathcast.schema.graph import ElementGraph

_LITERAL: Final = r"""(?:"[^"]*+"|'[^']*+')"""
_MISC: Final = re.compile(r"(?:[ \t\r\n]++|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)
_DOCTYPE: Final = re.compile(
    rf"""<!DOCTYPE\s+(?P<root>[^\s>\[]++)\s*+
    (?:SYSTEM\s+(?P<system>{_LITERAL})
    |PUBLIC\s+(?P<public>{_LITERAL})\s+(?P<public_system>{_LITERAL}))?\s*+
    (?P<end>\[|>)""",
    re.VERBOSE,
)
# What stands between the declarations of an internal subset, and the declarations.
_SUBSET_PART: Final = re.compile(
    rf"""(?:[ \t\r\n]++|<!--.*?-->|<\?.*?\?>|%[^\s;%\]]++;|<!(?:[^"'>\[]++|{_LITERAL})*+>)*+""",
    re.VERBOSE | re.DOTALL,
)
_SUBSET_END: Final = re.compile(r"\]\s*+>")


@dataclass(frozen=True, slots=True)
class DocumentType:
    """A document type declaration.

    Attributes:
        root: Name of the root element, as written.
        public_id: Public identifier of the external subset.
        system_id: System identifier of the external subset.
        internal_subset: The declarations between the brackets; "" without any.
    """

    root: str
    public_id: str | None
    system_id: str | None
    internal_subset: str


@dataclass(frozen=True, slots=True)
class DocumentSchema:
    """The schema in a message's document type declaration.

    Attributes:
        doctype: The declaration.
        graph: The elements that are declared; None if there are none.
        is_complete: Whether the external subset, if there is one, and all modules were read.
    """

    doctype: DocumentType
    graph: ElementGraph | None
    is_complete: bool

    def paths(self, namespaces: Mapping[str, str] | None = None) -> ElementPaths | None:
        """Loops and paths of the element graph, from the root; None if it is not known.

        Args:
            namespaces: As for `ElementPaths`.
        """
        if self.graph is None or self.doctype.root not in self.graph:
            return None
        return ElementPaths(self.graph, root=self.doctype.root, namespaces=namespaces)


def read_doctype(message: bytes | str) -> DocumentType | None:
    """The document type declaration of a message; None if it has none.

    Args:
        message: A message, or its beginning up to the root element. Bytes are decoded by the byte
            order mark or the encoding declaration.

    Raises:
        SchemaError: The declaration cannot be read, or the message is too large.
    """
    name = "the message"
    data = encoded(message, name) if isinstance(message, str) else message
    text = message.removeprefix("\ufeff") if isinstance(message, str) else decode(data, name)
    if len(data) > DTD_BYTES_MAX:
        raise SchemaError(
            "schema.unreadable", path=name, reason=f"it has more than {DTD_BYTES_MAX} bytes"
        )
    misc = _MISC.match(text)
    start = misc.end() if misc else 0
    if not text.startswith("<!DOCTYPE", start):
        return None
    head = _DOCTYPE.match(text, start)
    if head is None:
        raise _unreadable("its document type declaration has an error")
    subset = ""
    if head["end"] == "[":
        parts = _SUBSET_PART.match(text, head.end())
        end = parts.end() if parts else head.end()
        if not _SUBSET_END.match(text, end):
            raise _unreadable("its internal subset has an error or is not closed")
        subset = text[head.end() : end]
    system = head["system"] or head["public_system"]
    return DocumentType(
        head["root"],
        None if head["public"] is None else " ".join(head["public"][1:-1].split()),
        None if system is None else system[1:-1],
        subset,
    )


def read_document_schema(
    message: bytes | str,
    *,
    catalog: Catalog | None = None,
    directory: str | Path | None = None,
) -> DocumentSchema | None:
    """The DTD of a message: its internal subset, and its external one if it is at hand.

    Args:
        message: The message.
        catalog: Where the external subset and its modules are looked for first.
        directory: Where relative system identifiers begin. Nothing outside is read by them, and
            without it nothing that the catalog does not know.

    Returns:
        None if the message has no document type declaration.

    Raises:
        SchemaError: The declaration or the DTD cannot be read.
        MissingDependencyError: lxml is not installed, and there is something to read.
    """
    doctype = read_doctype(message)
    if doctype is None:
        return None
    base = None if directory is None else Path(directory)
    parts = [DtdPart(doctype.internal_subset, base)]
    is_complete = True
    if doctype.system_id is not None or doctype.public_id is not None:
        file = _external(doctype, catalog, base)
        if file is None:
            is_complete = False
        else:
            parts.append(DtdPart(read_text(file), file.parent))
    if not any(part.text.strip() for part in parts):
        return DocumentSchema(doctype, None, is_complete)
    elements, unread = elements_of(parts, f"the DTD of {doctype.root}", catalog)
    graph = ElementGraph(elements, unread) if elements else None
    return DocumentSchema(doctype, graph, is_complete and not unread)


def _external(doctype: DocumentType, catalog: Catalog | None, base: Path | None) -> Path | None:
    if catalog is not None:
        known = catalog.find(doctype.public_id, doctype.system_id)
        if known is not None and known.is_file():
            return known
    if base is None or doctype.system_id is None:
        return None
    return local_file(doctype.system_id, base, base)


def _unreadable(reason: str) -> SchemaError:
    return SchemaError("schema.unreadable", path="the message", reason=reason)
