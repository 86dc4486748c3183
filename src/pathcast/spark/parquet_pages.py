"""Pages of a Parquet file: how much memory reading a row group takes, before it is read.

A reader of Parquet unpacks a page as a whole, and takes as many rows at a time as it is told to,
however long they are. Some kilobytes of a file may be gigabytes of rows: a page that packs well, or
a value that stands in a dictionary once and in many rows. The sizes in the footer are not what
pages are; what stands before each page is what the reader goes by.

Example:
    >>> import io
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"message": ["<a/>"] * 5000}), file, compression="none")
    >>> guarded = GuardedFile(file)
    >>> read_pages(guarded, pq.ParquetFile(guarded), 0, ["message"])
    ReadingPlan(held_bytes=46, batch_rows=1024)

It unpacks dictionaries, to see how long their longest value is, and no other page.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.limits import KIB, MIB
from pathcast.spark.files import BATCH_ROWS_MAX

WINDOW_BYTES_MAX: Final = 8 * MIB
"""Values of the rows that are read at once; a single longer row is read alone."""

PAGES_MAX: Final = 100_000
"""Pages of one column in one row group: each is remembered while the row group is looked at."""

_HEADER_BYTES: Final = 256
_HEADER_BYTES_MAX: Final = MIB
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_PLAIN_DICTIONARY, _DELTA_LENGTHS, _DELTA_BYTES, _RLE_DICTIONARY = 2, 6, 7, 8
_LENGTHS_BYTES: Final = 8
_FIXED_BYTES: Final = 16


class ReadingPlan(NamedTuple):
    """How a row group is to be read.

    Attributes:
        held_bytes: What pages take while they are read: of each column the largest, packed and
            unpacked, and the dictionary, which is held twice.
        batch_rows: Rows to be read at once.
    """

    held_bytes: int
    batch_rows: int


class _Page(NamedTuple):
    """The header of a page.

    Attributes:
        kind: Of data, of a dictionary, or something else.
        unpacked: Its bytes.
        packed: Its bytes in the file.
        values: Values in it, those that are null included.
        encoding: How they are written.
    """

    kind: int
    unpacked: int
    packed: int
    values: int
    encoding: int


class GuardedFile:
    """A file of a source that can be told to refuse to be read.

    What the library tells of a column chunk it checks on the way, and a fault that it finds there
    ends the process; on the way to reading one it raises. So it is made to begin with reading.

    Args:
        handle: The file.

    Attributes:
        size: Its bytes.
    """

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle = handle
        self._refuses = False
        self.size = handle.seek(0, 2)
        self.seek, self.tell, self.close = handle.seek, handle.tell, handle.close
        self.seekable, self.readable = handle.seekable, handle.readable

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._handle.closed

    def read(self, size: int = -1) -> bytes:
        """Bytes from where the file is."""
        if self._refuses:
            raise _RefusedReadError
        return self._handle.read(size)

    def check_chunks(self, file: pq.ParquetFile, group: int, columns: Sequence[str]) -> None:
        """Checks what the footer says of some columns of a row group.

        Raises:
            OSError: It is damaged.
        """
        self._refuses = True
        try:
            chosen = list(columns)
            next(file.iter_batches(1, row_groups=[group], columns=chosen, use_threads=False), None)
        except _RefusedReadError:
            pass
        finally:
            self._refuses = False


class _RefusedReadError(Exception):
    """The library began to read values."""


class _Leaf(NamedTuple):
    """Pages of a column of a row group.

    Attributes:
        pages: Those with data.
        dictionary_bytes: What the dictionary takes.
        width: Bytes of a value of fixed width, which one that is null has too; 0 for text.
        longest: Bytes of the longest value in the dictionary.
    """

    pages: Sequence[_Page]
    dictionary_bytes: int
    width: int
    longest: int

    def held_bytes(self) -> int:
        """Bytes of the largest page with data, and of the dictionary."""
        largest = 0
        for page in self.pages:
            size = page.packed + page.unpacked
            if page.encoding in (_DELTA_LENGTHS, _DELTA_BYTES):
                size += _LENGTHS_BYTES * page.values
            largest = max(largest, size)
        return largest + self.dictionary_bytes

    def values_bytes(self, page: _Page, rows: int) -> int:
        """Bytes of so many values of a page, at most."""
        rows = min(rows, page.values)
        if self.width:
            return rows * self.width
        if page.encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
            return rows * self.longest
        if page.encoding == _DELTA_BYTES:
            # A value may repeat all of the one before it.
            return rows * page.unpacked
        return page.unpacked

    def rows_at_once(self) -> int:
        """So many rows are not longer than a window, wherever they begin."""
        if not self.pages:
            return BATCH_ROWS_MAX
        ends = np.cumsum([page.values for page in self.pages], dtype=np.int64)
        rows = BATCH_ROWS_MAX
        while rows > 1:
            sums = np.cumsum([0, *(self.values_bytes(page, rows) for page in self.pages)])
            # Rows that begin with the last one of a page reach so many pages on.
            last = np.minimum(np.searchsorted(ends, ends + rows - 1), len(ends) - 1)
            if (sums[last + 1] - sums[:-1]).max() <= WINDOW_BYTES_MAX:
                break
            rows //= 2
        return rows


def read_pages(
    handle: GuardedFile, file: pq.ParquetFile, group: int, columns: Sequence[str]
) -> ReadingPlan:
    """Looks at the pages of some columns of a row group.

    Args:
        handle: The file.
        file: The same, as the library has opened it.
        group: Number of the row group.
        columns: Names of columns, each with all that is nested in it.

    Raises:
        OSError: The footer is damaged.
        ValueError: A page is none.

    Cost: about 20 µs a page, of which there is one a megabyte as a rule, and unpacking
        dictionaries.
    """
    handle.check_chunks(file, group, columns)
    held, rows = 0, BATCH_ROWS_MAX
    metadata = file.metadata.row_group(group)
    for number in range(metadata.num_columns):
        about, chunk = file.schema.column(number), metadata.column(number)
        if not any(about.path == name or about.path.startswith(f"{name}.") for name in columns):
            continue
        leaf = _leaf(handle, chunk, about)
        held += leaf.held_bytes()
        if about.max_repetition_level:
            # How many values a row has is told nowhere: all of them may be those of one.
            held += sum(leaf.values_bytes(page, page.values) for page in leaf.pages)
        else:
            rows = min(rows, leaf.rows_at_once())
    return ReadingPlan(held, rows)


def _leaf(handle: GuardedFile, chunk: Any, about: Any) -> _Leaf:
    is_text = about.physical_type == "BYTE_ARRAY"
    pages: list[_Page] = []
    dictionary = longest = 0
    for page, at in _pages(handle, chunk):
        if page.kind != _DICTIONARY:
            pages.append(page)
            continue
        dictionary = max(dictionary, page.packed + 2 * page.unpacked)
        if is_text:
            longest = max(longest, _longest(handle, chunk.compression, page, at))
    return _Leaf(pages, dictionary, 0 if is_text else max(about.length, _FIXED_BYTES), longest)


def _longest(handle: GuardedFile, compression: str, page: _Page, at: int) -> int:
    """Bytes of the longest value of a dictionary."""
    if page.unpacked > DICTIONARY_BYTES_MAX or compression not in _CODECS:
        return page.unpacked
    handle.seek(at)
    content = handle.read(page.packed)
    if compression != "UNCOMPRESSED":
        content = pa.Codec(_CODECS[compression]).decompress(content, page.unpacked, asbytes=True)
    longest = place = 0
    while place < len(content):
        (length,) = struct.unpack_from("<I", content, place)
        longest = max(longest, length)
        place += 4 + length
    return min(longest, page.unpacked)


DICTIONARY_BYTES_MAX: Final = 96 * MIB
"""A larger dictionary is not unpacked to be looked at."""

_CODECS: Final = {
    "UNCOMPRESSED": "",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "BROTLI": "brotli",
    "ZSTD": "zstd",
}
"""Names of codecs in files and in the library; values of other ones may be as long as the page."""


def _pages(handle: GuardedFile, chunk: Any) -> Iterator[tuple[_Page, int]]:
    """Yield the header of each page of a column chunk, and where the page begins."""
    at, end = chunk.data_page_offset, chunk.total_compressed_size
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end += at
    seen = count = 0
    while seen < chunk.num_values and at < end:
        page, length = _page_at(handle, at)
        count += 1
        if count > PAGES_MAX:
            raise ValueError(f"a column has more than {PAGES_MAX:,} pages in a row group")
        yield page, at + length
        seen += 0 if page.kind == _DICTIONARY else page.values
        at += length + page.packed


def _page_at(handle: GuardedFile, at: int) -> tuple[_Page, int]:
    """Return the header of a page, and its length."""
    size = _HEADER_BYTES
    while True:
        handle.seek(at)
        content = handle.read(size)
        header = _Compact(content)
        try:
            found = header.struct()
        except IndexError:
            if len(content) < size or size >= _HEADER_BYTES_MAX:
                raise ValueError(f"no page at byte {at:,}") from None
            size *= 4 * KIB // _HEADER_BYTES
            continue
        return _as_page(found, at), header.at


def _as_page(found: dict[int, Any], at: int) -> _Page:
    kind, unpacked, packed = (found.get(field, -1) for field in (1, 2, 3))
    about = found.get({_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}.get(kind, 0)) or {}
    encoding = about.get(4 if kind == _DATA_V2 else 2, 0)
    page = _Page(kind, unpacked, packed, about.get(1, 0), encoding)
    if min(page) < 0:
        raise ValueError(f"no page at byte {at:,}")
    return page


class _Compact:
    """Structures of numbers in the compact protocol of Thrift; text in them is passed over.

    Example:
        >>> _Compact(bytes([0x15, 0x04, 0x00])).struct()
        {1: 2}
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def struct(self) -> dict[int, Any]:
        """Fields by their numbers.

        Raises:
            IndexError: It goes on behind the content.
        """
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 0x0F
            number = number + step if step else self._number()
            fields[number] = self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._number()
        if kind == 12:
            return self.struct()
        if kind in (9, 10):
            head = self._byte()
            count, inside = head >> 4, head & 0x0F
            count = self._varint() if count == 15 else count
            return [self._byte() if inside in (1, 2) else self._value(inside) for _ in range(count)]
        if kind not in (7, 8):
            raise ValueError(f"no type {kind} in what stands before a page")
        length = 8 if kind == 7 else self._varint()
        self.at += length
        if self.at > len(self._content):
            raise IndexError
        return None

    def _byte(self) -> int:
        found = self._content[self.at]
        self.at += 1
        return found

    def _varint(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise ValueError("a number of more than 64 bits stands before a page")

    def _number(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)
