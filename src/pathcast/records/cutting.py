"""A range of a file to rows: the records in it as messages, and what could not be cut.

Where tags do not add up (a `<` in an attribute value, an end tag too many, the end of the file
inside an element) the file breaks off: what comes before that is cut, and the row of the fault is
the last. Any other fault costs only what it is in: a record, which the door refuses by itself, or
what lies between two records, which is a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

import pyarrow as pa

from pathcast.errors import MessageError, Param, PathcastError, error_for
from pathcast.limits import KIB, Limits
from pathcast.records.blocks import BEYOND_BYTES, BLOCK_BYTES, FAULTS, blocks, is_damage

if TYPE_CHECKING:
    from pathcast.kernel.records import BytePlace, Head, Outcomes, RangeCutter, Rows

CONTEXT_BYTES_MAX: Final = 64 * KIB
"""Bytes of document type declaration and tags that may be written around each record."""

_TAG_BYTES: Final = 4 * KIB

RECORDS: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("message", pa.binary(), nullable=True),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("code", pa.string(), nullable=True),
        pa.field("reason", pa.string(), nullable=True),
        pa.field("fault_offset", pa.int64(), nullable=True),
    ]
)
"""A row a record. `offset` is the byte of the (unpacked) file where the record, or what stands in
its place, begins, and `bytes` how long it is there. `message` is null where there is none; then
`code` and `reason` say why and `fault_offset` where."""


@dataclass(frozen=True, slots=True)
class Splitter:
    """How a file is cut; small enough to travel.

    Attributes:
        path: Name tests from the root element to a record (`paths.record_path`).
        limits: What a message may cost.
        context_bytes_max: Bytes of what is written around a record.
    """

    path: tuple[tuple[str | None, str | None], ...]
    limits: Limits
    context_bytes_max: int = CONTEXT_BYTES_MAX

    def head(self, handle: IO[bytes]) -> tuple[Head, bytes]:
        """The prolog, and all that was read of the file, which is at its beginning.

        Raises:
            MessageError: The door would refuse it; it is longer than a message may be; or the file
                is in an encoding of several bytes a character other than UTF-8.
        """
        from pathcast.kernel.records import read_head

        start, is_whole = b"", False
        while True:
            head = read_head(start, is_whole, self.limits)
            if head is not None:
                return head, start
            if len(start) > self.limits.message_bytes_max:
                raise error_for(
                    "limit.message_bytes",
                    {
                        "limit": "message_bytes_max",
                        "given": len(start),
                        "maximum": self.limits.message_bytes_max,
                    },
                )
            # Twice as much each time: what is read again is as much as there is.
            block = getattr(handle, "read1", handle.read)(max(BEYOND_BYTES, len(start)))
            start, is_whole = start + block, not block

    def survey(self, handle: IO[bytes], start: int, until: int) -> Outcomes:
        """Scan a range for every construct that it may begin in.

        Cost: little more than one reading for the ends of tags, 500 to 750 MB/s.

        Example:
            >>> import io
            >>> splitter = Splitter((("", "a"), ("", "b")), Limits())
            >>> splitter.survey(io.BytesIO(b"<a><b/><!--"), 0, 11)[0]
            (10, 0, 1, 1, [0])
        """
        from pathcast.kernel.records import survey

        def blocks_there() -> Iterator[bytes]:
            left = until - start
            while left and (block := handle.read(min(BLOCK_BYTES, left))):
                left -= len(block)
                yield block

        handle.seek(start)
        return survey(len(self.path) - 1, start, blocks_there())

    def cut(
        self, handle: IO[bytes], head: Head, place: BytePlace, start: int, until: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a range, in batches of schema `RECORDS`.

        Args:
            handle: The file; it can be read from any byte on.
            head: Its prolog.
            place: What the first byte of the range lies in.
            start: The first byte.
            until: The byte after the last one.
        """
        tags = [self._tag(handle, offset) for offset in place.tags]
        handle.seek(start)
        cutter = self._cutter(head, place, tags, start, until)
        for block in blocks(handle, start, until):
            yield from _fed(cutter, block)
            if cutter.is_done:
                break
        yield from _rest(cutter)

    def cut_stream(self, handle: IO[bytes]) -> Iterator[pa.RecordBatch]:
        """The rows of a file that is read from its beginning to its end.

        One that cannot be read to its end (a packed one that is cut short) has its records up to
        there, and a row that says where that is.

        Raises:
            OSError: The disk, or the network, does not give what the file holds.
        """
        from pathcast.kernel.records import BytePlace

        try:
            head, start = self.head(handle)
        except MessageError as error:
            yield fault_row(error.code, error.params, int(error.params.get("offset") or 0))
            return
        except FAULTS as error:
            if not is_damage(error):
                raise
            yield unreadable_row(error, 0)
            return
        cutter = self._cutter(head, BytePlace(), [], head.root, 1 << 62)
        yield from _fed(cutter, start[head.root :])
        source = blocks(handle, len(start), None)
        while not cutter.is_done:
            try:
                block = next(source, b"")
            except FAULTS as error:
                if not is_damage(error):
                    raise
                yield _batch(cutter.take())
                yield unreadable_row(error, cutter.offset)
                return
            if not block:
                break
            yield from _fed(cutter, block)
        yield from _rest(cutter)

    def _cutter(
        self, head: Head, place: BytePlace, tags: list[bytes], start: int, until: int
    ) -> RangeCutter:
        from pathcast.kernel.records import RangeCutter

        limits = self.limits, self.context_bytes_max
        return RangeCutter(self.path, *limits, head, place, tags, start, until)

    def _tag(self, handle: IO[bytes], offset: int) -> bytes:
        """The start tag of an ancestor; of one that is too long, the beginning."""
        from pathcast.kernel.records import tag_end

        size = _TAG_BYTES
        while True:
            handle.seek(offset)
            text = handle.read(size)
            end = tag_end(text)
            if end is not None:
                return text[:end]
            if len(text) < size or size > self.context_bytes_max:
                # It is not to be written around anything.
                return text[: self.context_bytes_max + 1].rstrip(b">")
            size *= 4


def placed_ranges(
    splitter: Splitter,
    bounds: Sequence[int],
    outcomes: Callable[[int], Outcomes],
) -> Iterator[tuple[int, BytePlace]]:
    """The ranges between bounds with their places, up to where the file breaks off."""
    from pathcast.kernel.records import BytePlace

    place: BytePlace | None = BytePlace()
    for number in range(len(bounds) - 1):
        assert place is not None
        yield number, place
        if number < len(bounds) - 2:
            place = place.after(outcomes(number), len(splitter.path) - 1)
            if place is None:
                return


def _fed(cutter: RangeCutter, block: bytes) -> Iterator[pa.RecordBatch]:
    at = 0
    while at < len(block):
        at = cutter.feed(block, at)
        if cutter.is_full:
            yield _batch(cutter.take())


def _rest(cutter: RangeCutter) -> Iterator[pa.RecordBatch]:
    if not cutter.is_done:
        cutter.finish()
    rows = cutter.take()
    if len(rows.offsets):
        yield _batch(rows)


def _batch(rows: Rows) -> pa.RecordBatch:
    count = len(rows.offsets)
    told: list[pa.Array] = [pa.nulls(count, field.type) for field in list(RECORDS)[3:]]
    if rows.faults:
        columns: list[list[str | int | None]] = [[None] * count for _ in told]
        for row, code, params in rows.faults:
            columns[0][row] = code
            columns[1][row] = _sentence(code, params)
            columns[2][row] = int(params["offset"] or 0)
        fields = list(RECORDS)[3:]
        told = [pa.array(each, field.type) for each, field in zip(columns, fields, strict=True)]
    columns_of = [rows.offsets, rows.messages, rows.sizes, *told]
    return pa.RecordBatch.from_arrays(columns_of, schema=RECORDS)


def fault_row(code: str, params: dict[str, Param], offset: int) -> pa.RecordBatch:
    """A batch of one row: nothing comes after this byte."""
    row = [offset, None, 0, code, _sentence(code, {**params, "offset": offset}), offset]
    return pa.RecordBatch.from_arrays(
        [pa.array([value], field.type) for value, field in zip(row, RECORDS, strict=True)],
        schema=RECORDS,
    )


def unreadable_row(error: Exception, offset: int) -> pa.RecordBatch:
    """The row of a file that cannot be read further than to a byte."""
    reason = str(error) or type(error).__name__
    return fault_row("records.unreadable", {"reason": reason}, offset)


def _sentence(code: str, params: dict[str, Param]) -> str:
    """The error's sentence, with the byte offset in place of line and column."""
    error: PathcastError = error_for(code, {**params, "line": 0, "column": 0})
    sentence = error.message.removeprefix("line 0, column 0: ")
    place = f"byte {params['offset']}: "
    return sentence if sentence.startswith(place) else place + sentence
