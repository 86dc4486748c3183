"""A whole file, its ranges side by side.

What comes out does not depend on the number of ranges or threads: a range is surveyed first (what
does it do, whatever it begins in?), so that the place where the next one begins is known when it is
cut.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import pyarrow as pa

from pathcast.errors import ConfigError, MessageError
from pathcast.limits import MIB, Limits
from pathcast.records.blocks import is_packed, unpacked
from pathcast.records.cutting import CONTEXT_BYTES_MAX, Splitter, fault_row, placed_ranges
from pathcast.records.paths import record_path

if TYPE_CHECKING:
    from pathcast.kernel.records import Outcomes, Place

RANGE_BYTES: Final = 8 * MIB
"""A file is cut into ranges of about this size where several threads are at it: what a range gives
is held until those before it have been handed on."""


def split_records(
    file: str | os.PathLike[str] | IO[bytes],
    *,
    record: str,
    namespaces: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    context_bytes_max: int = CONTEXT_BYTES_MAX,
    ranges: int | None = None,
    threads: int = 1,
) -> Iterator[pa.RecordBatch]:
    """The records of a file, each as a message of its own.

    Args:
        file: A path, packed if it ends in .gz or .zst; or something to be read from its beginning.
        record: Path of the records, such as "/orders/order": see `paths`.
        namespaces: Prefix -> URI, for the path.
        limits: What a message may cost; the defaults if not given.
        context_bytes_max: Bytes of tags and declarations that may be written around a record.
        ranges: Ranges that the file is cut into; of a packed file or a stream, there is one. When
            not given, as many as there is to do for the threads.
        threads: Ranges that are worked on at the same time.

    Yields:
        Batches of schema `RECORDS`, in the order of the file. A row without a message is a fault: a
        record that is too long, something between two records that the door refuses, or the byte at
        which the file breaks off.

    Raises:
        QuerySyntaxError: `record` is no XPath.
        ConfigError: It is none that names records, or `ranges` are asked of a stream.
        OSError: The file cannot be read.
        KernelMissingError: The kernel is not installed.

    Cost:
        400 to 600 MB/s on one thread, where records have some hundred bytes, which is 1.1 to 1.7
        times the speed of the door; with several ranges a survey of nearly the same cost comes on
        top, so that two threads give 1.2 to 1.8 times the speed of the door.

    Example:
        >>> import io
        >>> batches = list(split_records(io.BytesIO(b"<a><b/><b>"), record="/a/b"))
        >>> [row["reason"] or row["message"] for row in batches[0].to_pylist()]
        [b'<a><b/></a>', 'byte 10: the message ends inside the root element']
    """
    path = record_path(record, namespaces)
    splitter = Splitter(path, limits or Limits(), context_bytes_max)
    is_path = isinstance(file, (str, os.PathLike))
    if (ranges or 1) > 1 and (not is_path or is_packed(os.fspath(file))):  # type: ignore[arg-type]
        reason = "a packed file or a stream is read from its beginning to its end"
        raise ConfigError("config.invalid", key="ranges", reason=reason)
    return _split(splitter, file, ranges, threads)


def _split(
    splitter: Splitter, file: str | os.PathLike[str] | IO[bytes], ranges: int | None, threads: int
) -> Iterator[pa.RecordBatch]:
    if not isinstance(file, (str, os.PathLike)):
        yield from splitter.cut_stream(file)
        return
    path = Path(file)
    size = path.stat().st_size
    if ranges is None and threads > 1 and not is_packed(path.name):
        ranges = -(-size // RANGE_BYTES)
    if (ranges or 1) > 1:
        yield from _Ranges(splitter, path, size, ranges or 1, threads).rows()
        return
    with path.open("rb", buffering=0) as handle:
        yield from splitter.cut_stream(unpacked(handle, path.name))


class _Ranges:
    """Ranges of one file: surveyed ahead, placed in order, cut side by side, handed on in order."""

    def __init__(
        self, splitter: Splitter, path: Path, size: int, ranges: int, threads: int
    ) -> None:
        self._splitter = splitter
        self._path = path
        self._size = size
        self._ranges = ranges
        self._threads = threads

    def rows(self) -> Iterator[pa.RecordBatch]:
        try:
            with self._open() as handle:
                self._head = self._splitter.head(handle)[0]
        except MessageError as error:
            yield fault_row(error.code, error.params, int(error.params.get("offset") or 0))
            return
        root, length = self._head.root, self._size - self._head.root
        bounds = [root + length * number // self._ranges for number in range(self._ranges + 1)]
        ahead = 2 * self._threads
        with ThreadPoolExecutor(self._threads) as pool:
            surveys: deque[Future[Outcomes]] = deque()
            cuts: deque[Future[list[pa.RecordBatch]]] = deque()

            def outcomes(number: int) -> Outcomes:
                upto = min(number + ahead, self._ranges - 1)
                for each in range(number + len(surveys), upto):
                    surveys.append(pool.submit(self._survey, bounds[each], bounds[each + 1]))
                return surveys.popleft().result()

            for number, place in placed_ranges(self._splitter, bounds, outcomes):
                start, until = bounds[number : number + 2]
                cuts.append(pool.submit(self._cut, place, start, until))
                if len(cuts) > ahead:
                    yield from cuts.popleft().result()
            while cuts:
                yield from cuts.popleft().result()

    def _open(self) -> IO[bytes]:
        return self._path.open("rb", buffering=0)

    def _survey(self, start: int, until: int) -> Outcomes:
        with self._open() as handle:
            return self._splitter.survey(handle, start, until)

    def _cut(self, place: Place, start: int, until: int) -> list[pa.RecordBatch]:
        with self._open() as handle:
            return list(self._splitter.cut(handle, self._head, place, start, until))
