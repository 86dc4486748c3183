"""Filtering schemes as files: preparing one, cutting by it and evaluating need not be one process.

A file is JSON: the chunks with their queries, the potpourri, every query as it stands, and the
schema as far as a chunker checks it.

Example:
    >>> from tempfile import TemporaryDirectory
    >>> from pathcast.chunking.filtering_scheme import Chunking
    >>> chunking = Chunking(2)
    >>> _ = chunking.register("q1", "/a/b[x]"), chunking.register("q2", "//c")
    >>> with TemporaryDirectory() as folder:
    ...     save_scheme(chunking.scheme(), Path(folder, "s.json"))
    ...     opened = open_scheme(Path(folder, "s.json"))
    >>> opened.scheme.chunks[0].prefix, opened.scheme.potpourri.texts
    ((('', 'a'), ('', 'b')), ('//c',))

Source: Lehner and Irmert, BTW 2003, section 5 (PREPTOOL gives what CHUNKTOOL and FILTERTOOL take).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pathcast.chunking.filtering_scheme import CHUNKS_MAX, Chunk, FilteringScheme, QuerySet
from pathcast.chunking.needs import Need
from pathcast.errors import ConfigError
from pathcast.schema import ElementPaths, ExpandedName, LabelPath

FORMAT: Final = "pathcast chunking scheme 1"
"""The value of the key `format`; a scheme that this version cannot read has another."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SchemeFile:
    """A scheme that was opened.

    Attributes:
        scheme: The scheme.
        digest: Of the file; what was cut by it says so.
    """

    scheme: FilteringScheme
    digest: str


def save_scheme(scheme: FilteringScheme, path: Path) -> None:
    """Writes a scheme; a file of that name is replaced.

    Raises:
        OSError: It cannot be written.
    """
    content = {
        "format": FORMAT,
        "chunks": [
            {
                "prefix": chunk.prefix,
                "filters": [[need.path, need.has_content] for need in chunk.filters],
                "queries": dict(chunk.queries.queries),
            }
            for chunk in scheme.chunks
        ],
        "potpourri": dict(scheme.potpourri.queries),
        "whole": dict(scheme.whole.queries),
        "schema": None if scheme.paths is None else _schema(scheme.paths),
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def open_scheme(path: Path) -> SchemeFile:
    """Reads a scheme.

    Raises:
        ConfigError: The file is none, or that of another version.
        OSError: It cannot be read.
    """
    content = path.read_bytes()
    try:
        read: Mapping[str, Any] = json.loads(content)
        if read["format"] != FORMAT:
            raise ValueError(f"its format is {read['format']!r}, this version reads {FORMAT!r}")
        chunks = tuple(_chunk(each) for each in read["chunks"])
        if len(chunks) > CHUNKS_MAX:
            raise ValueError(f"it has {len(chunks)} chunks, {CHUNKS_MAX} are the most")
        schema = read["schema"]
        scheme = FilteringScheme(
            version=0,
            chunks=chunks,
            potpourri=_queries(read["potpourri"]),
            whole=_queries(read["whole"]),
            paths=None if schema is None else _paths(schema),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"it is no chunking scheme ({error}); write one with pathcast chunk prepare"
        raise ConfigError("config.invalid", key=str(path), reason=reason) from error
    return SchemeFile(scheme, hashlib.sha256(content).hexdigest())


def _schema(paths: ElementPaths) -> dict[str, object]:
    edges = [[name, paths.children(name)] for name in sorted(paths.names)]
    return {"root": paths.root, "edges": edges}


def _paths(read: Mapping[str, Any]) -> ElementPaths:
    edges = {_name(name): _list(children, _name) for name, children in read["edges"]}
    return ElementPaths.of(_name(read["root"]), edges)


def _chunk(read: Mapping[str, Any]) -> Chunk:
    filters = [Need(_path(path), _flag(has_content)) for path, has_content in read["filters"]]
    return Chunk(_path(read["prefix"]), tuple(filters), _queries(read["queries"]))


def _queries(read: Mapping[str, Any]) -> QuerySet:
    queries = {_text(text): tuple(_list(ids, _text)) for text, ids in read.items()}
    return QuerySet(MappingProxyType(queries), 0)


def _path(read: object) -> LabelPath:
    return tuple(_list(read, _name))


def _name(read: object) -> ExpandedName:
    uri, local = _list(read, _text)
    return uri, local


def _list(read: object, item: Callable[[Any], T]) -> list[T]:
    if not isinstance(read, list):
        raise ValueError(f"{read!r:.40} stands where a list is expected")
    return [item(each) for each in read]


def _text(read: object) -> str:
    if not isinstance(read, str):
        raise ValueError(f"{read!r:.40} stands where text is expected")
    return read


def _flag(read: object) -> bool:
    if not isinstance(read, bool):
        raise ValueError(f"{read!r:.40} stands where true or false is expected")
    return read
