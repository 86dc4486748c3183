"""The snapshot file: queries as position-independent sections behind a checked header.

Both engines write and read this format. A file of kind 1 holds the queries alone; the kernel's own
kind 0 holds the same sections and a compiled automaton beside them, which this module skips.

Layout (little endian). A header of 64 bytes: magic `PATHCAST`, u32 format, u32 kind, u32 number of
sections, u32 zero, u64 length of the file, u32 CRC-32 of all that follows the header, u32 CRC-32 of
the header's first 36 bytes, zeros. Then one entry a section: u32 tag, u32 part, u64 offset from the
start of the file, u64 length. Sections begin at multiples of 64, with zeros between them.

A file that is cut, foreign or has any bit changed gives `SnapshotFormatError`: the checksums cover
every byte, and what they cover is read with every bound checked.

Example:
    >>> import tempfile
    >>> content = SnapshotContent((Query("q1", "/a//b"),), Limits())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "queries.snapshot"
    ...     write_snapshot(path, content)
    ...     read_snapshot(path).queries[0].text
    '/a//b'

It does not parse queries.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import secrets
import struct
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast_papers.language.names import are_texts

MAGIC = b"PATHCAST"
FORMAT = 6
KIND_AUTOMATON = 0
KIND_QUERIES = 1

_HEADER = struct.Struct("<8sIIIIQI")
_CHECKSUM = struct.Struct("<I")
_ENTRY = struct.Struct("<IIQQ")
_HEADER_LENGTH = 64
_OF_SUBSCRIPTIONS = range(23, 33)
"""Tags of sections that only subscriptions of other kinds than filter queries have."""
_ALIGNMENT = 64


class Section(IntEnum):
    """Tags of the sections that every file has."""

    ID_OFFSETS = 1
    IDS = 2
    TEXT_OFFSETS = 3
    TEXTS = 4
    NAMESPACE_NUMBERS = 5
    NAMESPACES = 6
    METADATA = 7
    LIMITS = 8


_DIGESTED = tuple(tag for tag in Section if tag != Section.METADATA)


@dataclass(frozen=True, slots=True)
class SnapshotContent:
    """What a snapshot says, whoever wrote it.

    Attributes:
        queries: The queries in the order of their numbers, each with all namespaces it may use.
        limits: What a message may cost, as agreed where the queries were registered.
        version: Hexadecimal digest of both; computed when empty.
    """

    queries: tuple[Query, ...]
    limits: Limits
    version: str = ""


def write_snapshot(path: Path, content: SnapshotContent) -> None:
    """Writes a file of kind 1, whole or not at all.

    The bytes go to a file beside it that then takes its name, so that a reader which has the old
    one mapped keeps it, and a crash leaves one of the two.

    Args:
        path: The file to write or replace.
        content: What to write; the same content gives the same bytes.

    Raises:
        OSError: The file cannot be written.
    """
    sections = _sections_of(content.queries, content.limits)
    metadata = {"version": content.version or digest(sections), "writer": "reference"}
    sections[Section.METADATA] = _json(metadata)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(_assemble(sections))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_snapshot(path: Path) -> SnapshotContent:
    """Reads the queries of a file of either kind.

    Raises:
        SnapshotFormatError: The file is not a snapshot, of another format, or damaged.
        OSError: The file cannot be read.
    """
    data = path.read_bytes()
    sections = _read_sections(str(path), data)
    reader = _Reader(str(path), data, sections)
    ids = reader.strings(Section.ID_OFFSETS, Section.IDS)
    texts = reader.strings(Section.TEXT_OFFSETS, Section.TEXTS)
    namespaces = reader.namespaces()
    numbers = reader.integers(Section.NAMESPACE_NUMBERS, "I")
    if not len(ids) == len(texts) == len(numbers):
        raise _damaged(str(path), "the sections hold different numbers of queries")
    if len(set(ids)) != len(ids):
        raise _damaged(str(path), "an id occurs twice")
    if any(number >= len(namespaces) for number in numbers):
        raise _damaged(str(path), "a query names a set of namespaces that is not there")
    queries = tuple(
        Query(query_id, text, namespaces[number] or None)
        for query_id, text, number in zip(ids, texts, numbers, strict=True)
    )
    return SnapshotContent(queries, reader.limits(), reader.version())


def version_of(queries: Sequence[Query], limits: Limits) -> str:
    """The version of a snapshot of these queries in this order, under these limits."""
    return digest(_sections_of(queries, limits))


def digest(sections: Mapping[int, bytes]) -> str:
    """128 bits of SHA-256 over the format and the sections of queries and limits, in tag order.

    The version of another format is another one, so that whoever names files by it finds none that
    cannot be read.
    """
    sha = hashlib.sha256(struct.pack("<I", FORMAT))
    for tag in _DIGESTED:
        sha.update(struct.pack("<Q", len(sections[tag])))
        sha.update(sections[tag])
    return sha.hexdigest()[:32]


def _sections_of(queries: Sequence[Query], limits: Limits) -> dict[int, bytes]:
    namespace_numbers: dict[tuple[tuple[str, str], ...], int] = {}
    numbers = [
        namespace_numbers.setdefault(
            tuple(sorted((query.namespaces or {}).items())), len(namespace_numbers)
        )
        for query in queries
    ]
    id_offsets, ids = _packed(query.id for query in queries)
    text_offsets, texts = _packed(query.text for query in queries)
    return {
        Section.ID_OFFSETS: id_offsets,
        Section.IDS: ids,
        Section.TEXT_OFFSETS: text_offsets,
        Section.TEXTS: texts,
        Section.NAMESPACE_NUMBERS: struct.pack(f"<{len(numbers)}I", *numbers),
        Section.NAMESPACES: _json([dict(pairs) for pairs in namespace_numbers]),
        Section.LIMITS: limits.to_json().encode(),
    }


def _packed(strings: Iterable[str]) -> tuple[bytes, bytes]:
    """Strings as offsets (one more than there are strings) and UTF-8 bytes."""
    encoded = [string.encode() for string in strings]
    offsets = [0]
    for item in encoded:
        offsets.append(offsets[-1] + len(item))
    return struct.pack(f"<{len(offsets)}Q", *offsets), b"".join(encoded)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _assemble(sections: Mapping[int, bytes]) -> bytes:
    place = _HEADER_LENGTH + len(sections) * _ENTRY.size
    directory = bytearray()
    body = bytearray()
    for tag in sorted(sections):
        gap = -place % _ALIGNMENT
        body += bytes(gap) + sections[tag]
        directory += _ENTRY.pack(tag, 0, place + gap, len(sections[tag]))
        place += gap + len(sections[tag])
    rest = bytes(directory + body)
    head = _HEADER.pack(MAGIC, FORMAT, KIND_QUERIES, len(sections), 0, place, zlib.crc32(rest))
    return (head + _CHECKSUM.pack(zlib.crc32(head))).ljust(_HEADER_LENGTH, b"\0") + rest


def _read_sections(path: str, data: bytes) -> dict[int, tuple[int, int]]:
    """Checks the header and both checksums; gives the range of bytes of each section."""
    if not data.startswith(MAGIC):
        raise SnapshotFormatError(
            "snapshot.foreign", path=path, reason="it does not begin with PATHCAST"
        )
    if len(data) < _HEADER_LENGTH:
        raise _damaged(path, f"it ends after {len(data)} bytes, inside the header")
    _, format_, kind, count, zero, length, body_sum = _HEADER.unpack_from(data)
    (head_sum,) = _CHECKSUM.unpack_from(data, _HEADER.size)
    if zlib.crc32(data[: _HEADER.size]) != head_sum:
        raise _damaged(path, "the checksum of the header is wrong")
    if format_ != FORMAT:
        raise SnapshotFormatError("snapshot.version", path=path, found=format_, expected=FORMAT)
    if kind not in (KIND_AUTOMATON, KIND_QUERIES):
        raise _damaged(path, f"kind {kind} does not exist")
    if zero or any(data[_HEADER.size + _CHECKSUM.size : _HEADER_LENGTH]):
        raise _damaged(path, "reserved bytes of the header are not zero")
    if length != len(data):
        raise _damaged(path, f"it has {len(data)} bytes where its header says {length}")
    if zlib.crc32(memoryview(data)[_HEADER_LENGTH:]) != body_sum:
        raise _damaged(path, "the checksum is wrong")
    if _HEADER_LENGTH + count * _ENTRY.size > length:
        raise _damaged(path, "the list of sections is longer than the file")
    sections: dict[int, tuple[int, int]] = {}
    for number in range(count):
        tag, part, start, size = _ENTRY.unpack_from(data, _HEADER_LENGTH + number * _ENTRY.size)
        if part or tag in _OF_SUBSCRIPTIONS:
            reason = "it holds subscriptions that are no filter queries"
            raise SnapshotFormatError("snapshot.foreign", path=path, reason=reason)
        if tag in sections or start % _ALIGNMENT or start + size > length:
            raise _damaged(path, f"section {tag} does not lie where a section can")
        sections[tag] = (start, start + size)
    return sections


class _Reader:
    """The typed content of sections, every bound checked."""

    def __init__(self, path: str, data: bytes, sections: Mapping[int, tuple[int, int]]) -> None:
        self._path = path
        self._data = data
        self._sections = sections

    def bytes_of(self, tag: Section) -> bytes:
        if tag not in self._sections:
            raise _damaged(self._path, f"section {tag.name} is missing")
        start, end = self._sections[tag]
        return self._data[start:end]

    def integers(self, tag: Section, code: str) -> array[int]:
        data = self.bytes_of(tag)
        if len(data) % struct.calcsize(f"<{code}"):
            raise _damaged(self._path, f"section {tag.name} ends inside a number")
        return array("Q", (number for (number,) in struct.iter_unpack(f"<{code}", data)))

    def strings(self, offsets_tag: Section, bytes_tag: Section) -> list[str]:
        offsets, data = self.integers(offsets_tag, "Q"), self.bytes_of(bytes_tag)
        if not offsets or offsets[0] != 0 or offsets[-1] != len(data):
            raise _damaged(self._path, f"section {offsets_tag.name} does not span the strings")
        if any(left > right for left, right in itertools.pairwise(offsets)):
            raise _damaged(self._path, f"section {offsets_tag.name} does not ascend")
        try:
            return [data[left:right].decode() for left, right in itertools.pairwise(offsets)]
        except UnicodeDecodeError as error:
            raise _damaged(self._path, f"section {bytes_tag.name} is not UTF-8") from error

    def namespaces(self) -> list[dict[str, str]]:
        value = self._json_of(Section.NAMESPACES)
        if not isinstance(value, list):
            raise _damaged(self._path, "section NAMESPACES is not a list")
        for bindings in value:
            if not isinstance(bindings, dict) or not are_texts([*bindings, *bindings.values()]):
                raise _damaged(self._path, "section NAMESPACES does not hold bindings of prefixes")
        return value

    def version(self) -> str:
        """The version that the writer gave, or that of the content where it gave none."""
        metadata = self._json_of(Section.METADATA)
        if not isinstance(metadata, dict):
            raise _damaged(self._path, "section METADATA is not an object")
        version = metadata.get("version")
        if isinstance(version, str) and version:
            return version
        return digest({tag: self.bytes_of(tag) for tag in _DIGESTED})

    def limits(self) -> Limits:
        """What a message may cost, as the writer has it."""
        text = self.bytes_of(Section.LIMITS).decode(errors="replace")
        return Limits.from_json(text, self._path)

    def _json_of(self, tag: Section) -> object:
        try:
            return json.loads(self.bytes_of(tag))
        except (ValueError, RecursionError) as error:
            raise _damaged(self._path, f"section {tag.name} is not JSON") from error


def _damaged(path: str, reason: str) -> SnapshotFormatError:
    return SnapshotFormatError("snapshot.damaged", path=path, reason=reason)
