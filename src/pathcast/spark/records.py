"""Messages that are records of large files: ranges of bytes, cut side by side.

    orders.xml, orders.xml.gz, orders.xml.zst   id "orders.xml#1042": the byte where it begins

A large file is cut into ranges, and goes through two passes. In the first, tasks survey the ranges:
what does each do to the markup and to the elements that are open, whatever they are? From that the
driver composes what each range begins inside of (`places`), and in the second pass tasks cut and
deliver the records. A task could not find that out by itself: a comment, or a section, may have
begun anywhere before, and only the bytes before can tell. The survey costs nearly what cutting
costs, which is half of what reading the messages costs the door; a file of one range, or one that
is packed, needs none.

A record has one id and is in one range, however the file is cut. A file that breaks off (its tags
do not add up, or it is packed and cut short) has its records up to there, and a dead letter with
the byte; a range beyond that is not read. What lies between two records and is refused is a dead
letter, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import MessageError, PathcastError
from pathcast.records import Splitter
from pathcast.records.blocks import is_packed, unpacked
from pathcast.records.cutting import placed_ranges
from pathcast.spark import schemas
from pathcast.spark.files import (
    FILE_COST_BYTES,
    FileReader,
    FoundFile,
    Unit,
    as_unread,
    read_parts,
    shown,
)

if TYPE_CHECKING:
    from pathcast.kernel.records import Head, Outcomes

RANGES_MAX: Final = 4096
"""A file is cut into no more ranges: what a survey tells of each is some KB on the driver."""

SOURCE: Final = schemas.SOURCE.append(pa.field("offset", pa.int64(), nullable=True))
"""As of all sources, and where the fault of a row without a message is."""


class Surveyed(NamedTuple):
    """A range of a file: its first byte, and the records in it or why it cannot be read."""

    name: str
    start: int
    outcomes: Outcomes | PathcastError


@dataclass(frozen=True)
class RecordReader(FileReader):
    """Reads each record of a large file as a message.

    Attributes:
        splitter: What is cut out of a file.
        range_bytes: Size of a range, at least.
    """

    splitter: Splitter
    range_bytes: int

    def units(self, file: FoundFile) -> list[Unit]:
        """The file, or ranges of it: size of the file, first byte, byte after the last."""
        whole = [Unit(file.name, file.size + FILE_COST_BYTES)]
        count = min(-(-file.size // self.range_bytes), RANGES_MAX)
        if count < 2 or is_packed(file.name):
            return whole
        try:
            root = self._head(file.name).root
        except MessageError:
            return whole  # the task that reads it says what is wrong
        length = file.size - root
        bounds = [root + length * number // count for number in range(count + 1)]
        return [
            Unit(file.name, until - start + FILE_COST_BYTES, (file.size, start, until))
            for start, until in pairwise(bounds)
        ]

    def survey(self, units: Iterable[Unit]) -> Iterator[Surveyed]:
        """The first pass over some ranges; a task."""
        for unit in units:
            size, start, until = unit.groups
            unread: dict[str, PathcastError] = {}
            with as_unread(unit.name, unread), self.storage.open(unit.name) as handle:
                _check_size(handle.seek(0, 2), size)
                yield Surveyed(unit.name, start, self.splitter.survey(handle, start, until))
            for name, error in unread.items():
                yield Surveyed(name, start, error)

    def placed(
        self,
        units: Sequence[Unit],
        surveys: Iterable[Surveyed],
        unread: dict[str, PathcastError],
    ) -> list[Unit]:
        """Units with the places of their ranges, those left out that a file does not come to.

        The surveys are of all ranges but the last one of each file.
        """
        known: dict[tuple[str, int], Outcomes] = {}
        for name, start, outcomes in surveys:
            if isinstance(outcomes, PathcastError):
                unread[name] = outcomes
            else:
                known[name, start] = outcomes
        found: list[Unit] = []
        ranges: dict[str, list[Unit]] = {}
        for unit in units:
            if unit.groups:
                ranges.setdefault(unit.name, []).append(unit)
            else:
                found.append(unit)
        for name, parts in ranges.items():
            if name in unread:
                continue
            bounds = [part.groups[1] for part in parts] + [parts[-1].groups[2]]
            before = [known[name, start] for start in bounds[:-2]]
            places = placed_ranges(self.splitter, bounds, before.__getitem__)
            for number, (state, depth, is_closed, tags) in places:
                groups = (*parts[number].groups, state, depth, int(is_closed), *tags)
                found.append(replace(parts[number], groups=groups))
        return found

    def read(
        self, units: Iterable[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Read the records of ranges, which have places; arguments as of `FileReader.read`."""
        return read_parts(units, unread, self._batches)

    def _batches(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        for batch in self._rows(unit):
            yield _as_source(batch, unit.name)

    def _rows(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        from pathcast.kernel.records import BytePlace

        with self.storage.open(unit.name) as handle:
            if not unit.groups:
                yield from self.splitter.cut_stream(unpacked(handle, unit.name))
                return
            size, start, until, state, depth, is_closed, *tags = unit.groups
            _check_size(handle.seek(0, 2), size)
            handle.seek(0)
            head, _ = self.splitter.head(handle)
            place = BytePlace(state, depth, bool(is_closed), tuple(tags))
            yield from self.splitter.cut(handle, head, place, start, until)

    def _head(self, name: str) -> Head:
        with self.storage.open(name) as handle:
            return self.splitter.head(handle)[0]


def _check_size(size: int, expected: int) -> None:
    if size != expected:
        raise OSError("it changed while it was read")


def _as_source(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    ids = pc.binary_join_element_wise(shown(name), batch.column("offset").cast(pa.string()), "#")
    columns = ["message", "bytes", "code", "reason", "fault_offset"]
    return pa.RecordBatch.from_arrays(
        [ids, *(batch.column(column) for column in columns)], schema=SOURCE
    )
