"""XML catalogs: where the DTD that a public or system identifier names lies on this machine.

Of a catalog's entries `system`, `systemSuffix`, `rewriteSystem`, `public`, `group`, `nextCatalog`,
`prefer` and `xml:base` are followed. What they lead to must be a local file: nothing is fetched.

Example:
    >>> catalog = parse_catalog(
    ...     b'''<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">
    ...       <public publicId="-//Books//DTD Book//EN" uri="dtd/book.dtd"/>
    ...       <rewriteSystem systemIdStartString="http://books.example/" rewritePrefix="old/"/>
    ...     </catalog>''', Path("/catalogs"))
    >>> catalog.find("-//Books//DTD  Book//EN", None).as_posix()
    '/catalogs/dtd/book.dtd'
    >>> catalog.find(None, "http://books.example/1/book.dtd").as_posix()
    '/catalogs/old/1/book.dtd'

It knows no `uri`, `rewriteURI` and `delegate...` entries and no `urn:publicid:` names; catalogs
with entity declarations are refused. A system identifier with `..` behind the part that
`rewriteSystem` replaces leads nowhere: it comes from the message, and does not choose files.

Source: OASIS, XML Catalogs 1.1, sections 6 (entries) and 7.1 (resolution of external identifiers).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

from pathcast.errors import SchemaError
from pathcast.limits import MIB

CATALOG_BYTES_MAX: Final = 4 * MIB
"""Bytes of one catalog; the largest in public use have some 100 KiB."""

CATALOGS_MAX: Final = 64
"""Catalogs that one leads to by `nextCatalog`; also ends those that lead to each other."""

_NAMESPACE: Final = "urn:oasis:names:tc:entity:xmlns:xml:catalog"
_BASE: Final = "http://www.w3.org/XML/1998/namespace base"


@dataclass(slots=True)
class Catalog:
    """The entries of a catalog file and, after them, of those it goes on to.

    Attributes:
        system: System identifier -> where it is.
        rewrite: Beginning of a system identifier -> what takes its place.
        suffix: End of a system identifier -> where it is.
        public: Public identifier -> where it is; looked up whatever else is given.
        public_alone: The same for entries that count only without a system identifier.
        following: Where the next catalogs are.
        others: The next catalogs, once read.
    """

    system: dict[str, str] = field(default_factory=dict)
    rewrite: dict[str, str] = field(default_factory=dict)
    suffix: dict[str, str] = field(default_factory=dict)
    public: dict[str, str] = field(default_factory=dict)
    public_alone: dict[str, str] = field(default_factory=dict)
    following: list[str] = field(default_factory=list)
    others: list[Catalog] = field(default_factory=list)

    def find(self, public_id: str | None, system_id: str | None) -> Path | None:
        """The file of an external identifier; None if no entry leads to a local file.

        Args:
            public_id: Public identifier, if there is one; white space does not count.
            system_id: System identifier as written, if there is one.
        """
        for catalog in (self, *self.others):
            uri = catalog._uri(public_id and " ".join(public_id.split()), system_id)
            if uri is not None:
                return _local_file(uri)
        return None

    def _uri(self, public_id: str | None, system_id: str | None) -> str | None:
        """The first entry that holds, in the order of section 7.1.2."""
        if system_id:
            if system_id in self.system:
                return self.system[system_id]
            start = max(filter(system_id.startswith, self.rewrite), key=len, default=None)
            if start is not None:
                rest = system_id[len(start) :]
                is_inside = ".." not in re.split(r"[/\\]", unquote(rest))
                return self.rewrite[start] + rest if is_inside else None
            end = max(filter(system_id.endswith, self.suffix), key=len, default=None)
            if end is not None:
                return self.suffix[end]
        if public_id in self.public:
            return self.public[public_id]
        return None if system_id else self.public_alone.get(public_id or "")


def read_catalog(path: str | os.PathLike[str]) -> Catalog:
    """The catalog in a file, with those that it goes on to.

    Raises:
        SchemaError: A file cannot be read or is no catalog, or there are too many.
    """
    read: dict[Path, Catalog] = {}
    waiting = [Path(path).absolute()]
    while waiting:
        file = waiting.pop(0)
        if file in read:
            continue
        if len(read) >= CATALOGS_MAX:
            raise _refused(str(path), f"it leads to more than {CATALOGS_MAX} catalogs")
        try:
            with file.open("rb") as stream:
                data = stream.read(CATALOG_BYTES_MAX + 1)
        except OSError as error:
            raise _refused(str(file), error.strerror or str(error)) from error
        read[file] = parse_catalog(data, file.parent, str(file))
        waiting += [found for uri in read[file].following if (found := _local_file(uri))]
    first, *others = read.values()
    first.others = others
    return first


def parse_catalog(data: bytes, directory: Path, name: str = "the catalog") -> Catalog:
    """The entries of a catalog; the catalogs that it goes on to are not read.

    Args:
        data: The catalog.
        directory: Where relative references begin.
        name: What errors call it.

    Raises:
        SchemaError: It is no catalog, or too large.
    """
    if len(data) > CATALOG_BYTES_MAX:
        raise _refused(name, f"it has more than {CATALOG_BYTES_MAX} bytes")
    reader = _Reader(name, directory.absolute().as_uri() + "/")
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.EntityDeclHandler = reader.refuse_entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _refused(name, str(error)) from error
    return reader.catalog


class _Reader:
    """Takes the entries of a catalog as they come.

    Every open element has the base of its references and whether public identifiers count beside
    system identifiers.
    """

    def __init__(self, name: str, base: str) -> None:
        self.catalog = Catalog()
        self._name = name
        self._open: list[tuple[str, bool]] = [(base, True)]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        namespace, _, local = tag.rpartition(" ")
        if len(self._open) == 1 and (namespace, local) != (_NAMESPACE, "catalog"):
            raise _refused(self._name, f"its root is {local}, not catalog")
        base, prefers_public = self._open[-1]
        base = _joined(base, attributes.get(_BASE, ""))
        if "prefer" in attributes:
            prefers_public = attributes["prefer"] == "public"
        self._open.append((base, prefers_public))
        if namespace == _NAMESPACE:
            self._add(local, attributes, base, prefers_public)

    def end(self, _tag: str) -> None:
        """An element ends."""
        self._open.pop()

    def refuse_entity(self, *_: object) -> None:
        """A catalog needs no entities of its own, and they can grow without bound."""
        raise _refused(self._name, "it declares entities")

    def _add(self, local: str, attributes: dict[str, str], base: str, prefers_public: bool) -> None:
        catalog = self.catalog
        public = catalog.public if prefers_public else catalog.public_alone
        kinds: dict[str, tuple[dict[str, str], str, str]] = {
            "system": (catalog.system, "systemId", "uri"),
            "systemSuffix": (catalog.suffix, "systemIdSuffix", "uri"),
            "rewriteSystem": (catalog.rewrite, "systemIdStartString", "rewritePrefix"),
            "public": (public, "publicId", "uri"),
        }
        if local == "nextCatalog":
            catalog.following.append(_joined(base, self._attribute(local, attributes, "catalog")))
        elif local in kinds:
            table, key, value = kinds[local]
            found = self._attribute(local, attributes, key)
            if local == "public":
                found = " ".join(found.split())
            # The first entry holds (section 7.1.2).
            target = _joined(base, self._attribute(local, attributes, value))
            table.setdefault(found, target)
            if public is catalog.public and local == "public":
                catalog.public_alone.setdefault(found, target)

    def _attribute(self, local: str, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            raise _refused(self._name, f"a {local} entry has no {name}")
        return attributes[name]


def _joined(base: str, reference: str) -> str:
    """A reference made absolute (RFC 3986, 5.2), as far as files need it."""
    if urlsplit(reference).scheme or not reference:
        return reference or base
    if reference.startswith("/"):
        scheme, rest = base.split("://", 1) if "://" in base else ("file", "")
        return f"{scheme}://{rest.split('/', 1)[0]}{reference}"
    return base.rsplit("/", 1)[0] + "/" + reference


def _local_file(uri: str) -> Path | None:
    """The path of a `file:` URI of this machine."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(os.path.normpath(unquote(parts.path)))


def _refused(name: str, reason: str) -> SchemaError:
    return SchemaError("schema.catalog", path=name, reason=reason)
