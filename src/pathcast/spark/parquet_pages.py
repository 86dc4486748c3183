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
    >>> read_pages(file, pq.ParquetFile(file), 0, ["message"])
    ReadingPlan(held_bytes=66, batch_rows=1024, dictionaries=('message',))

It unpacks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, Final, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from pathcast.limits import KIB, MIB
from pathcast.spark.files import BATCH_ROWS_MAX

WINDOW_BYTES_MAX: Final = 16 * MIB
"""Values of the rows that are read at once; a single longer row is read alone."""

PAGES_MAX: Final = 100_000
"""Pages of one column in one row group: each is remembered while the row group is looked at."""

_HEADER_BYTES: Final = 256
_HEADER_BYTES_MAX: Final = MIB
_DICTIONARY_COPIES: Final = 4
"""A dictionary is held as it is unpacked, decoded, while it is looked up, and in the batch."""

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_PLAIN_DICTIONARY, _DELTA_LENGTHS, _DELTA_BYTES, _RLE_DICTIONARY = 2, 6, 7, 8
_INDEX_BYTES: Final = 4
_LENGTHS_BYTES: Final = 8
_FIXED_BYTES: Final = 16


class ReadingPlan(NamedTuple):
    """How a row group is to be read.

    Attributes:
        held_bytes: What pages take while they are read: of each column the largest.
        batch_rows: Rows to be read at once.
        dictionaries: Columns that are to be read as dictionaries, by their paths.
    """

    held_bytes: int
    batch_rows: int
    dictionaries: tuple[str, ...]


class _Page(NamedTuple):
    """What stands before a page.

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


def read_pages(
    handle: IO[bytes], file: pq.ParquetFile, group: int, columns: Sequence[str]
) -> ReadingPlan:
    """Looks at the pages of some columns of a row group.

    Args:
        handle: The file.
        file: The same, as the library has opened it.
        group: Number of the row group.
        columns: Names of columns, each with all that is nested in it.

    Raises:
        ValueError: A page is none.

    Cost: about 20 µs a page, of which there is one a megabyte as a rule.
    """
    held, rows = 0, BATCH_ROWS_MAX
    dictionaries: list[str] = []
    metadata = file.metadata.row_group(group)
    for number in range(metadata.num_columns):
        leaf, chunk = file.schema.column(number), metadata.column(number)
        if not any(leaf.path == name or leaf.path.startswith(f"{name}.") for name in columns):
            continue
        pages = list(_pages(handle, chunk))
        is_text = leaf.physical_type == "BYTE_ARRAY"
        if is_text and any(page.kind == _DICTIONARY for page in pages):
            dictionaries.append(leaf.path)
        held += _held(pages)
        width = 0 if is_text else max(leaf.length, _FIXED_BYTES)
        if leaf.max_repetition_level:
            # How many values a row has is told nowhere: all of them may be those of one.
            values = sum(page.values for page in pages)
            held += values * width + sum(_values_bytes(page, page.values) for page in pages)
        else:
            rows = min(rows, _rows_at_once(pages, width))
    return ReadingPlan(held, rows, tuple(dictionaries))


def _held(pages: Sequence[_Page]) -> int:
    """Bytes of the largest page of data, and of the dictionary."""
    data = dictionary = 0
    for page in pages:
        if page.kind == _DICTIONARY:
            dictionary = max(dictionary, page.packed + _DICTIONARY_COPIES * page.unpacked)
            continue
        size = page.packed + page.unpacked
        if page.encoding in (_DELTA_LENGTHS, _DELTA_BYTES):
            size += _LENGTHS_BYTES * page.values
        data = max(data, size)
    return data + dictionary


def _values_bytes(page: _Page, rows: int) -> int:
    """Bytes of the values of a page, or of so many of them, at most."""
    if page.kind == _DICTIONARY:
        return 0
    if page.encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
        return _INDEX_BYTES * page.values
    if page.encoding == _DELTA_BYTES:
        # A value may repeat all of the one before it.
        return min(rows, page.values) * page.unpacked
    return page.unpacked


def _rows_at_once(pages: Sequence[_Page], width: int) -> int:
    """So many rows of a column, wherever they begin, are not longer than a window."""
    ends = np.cumsum([page.values for page in pages if page.kind != _DICTIONARY], dtype=np.int64)
    rows = BATCH_ROWS_MAX
    while rows > 1:
        sizes = [_values_bytes(page, rows) for page in pages if page.kind != _DICTIONARY]
        sums = np.cumsum([0, *sizes], dtype=np.float64)
        # A window that begins with the last row of a page reaches so many pages on.
        last = np.minimum(np.searchsorted(ends, ends + rows - 1), len(ends) - 1)
        most = (sums[last + 1] - sums[:-1]).max() if len(ends) else 0
        if most + rows * width <= WINDOW_BYTES_MAX:
            break
        rows //= 2
    return rows


def _pages(handle: IO[bytes], chunk: Any) -> Iterator[_Page]:
    """What stands before each page of a column of a row group."""
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
        yield page
        seen += 0 if page.kind == _DICTIONARY else page.values
        at += length + page.packed


def _page_at(handle: IO[bytes], at: int) -> tuple[_Page, int]:
    """What stands before a page, and its length."""
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
