"""A whole file, its ranges side by side.

What comes out does not depend on the number of ranges or threads. Ranges are surveyed first (what
does one do, whatever it begins in?), so that the place where the next one begins is known when it
is cut.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from pathcast.errors import ConfigError, MessageError
from pathcast.limits import MIB, Limits
from pathcast.records.blocks import is_packed, unpacked
from pathcast.records.cutting import (
    CONTEXT_BYTES_MAX,
    Splitter,
    fault_row,
    placed_ranges,
)
from pathcast.records.paths import record_path

if TYPE_CHECKING:
    from pathcast.kernel.records import BytePlace, Outcomes

RANGE_BYTES: Final = 8 * MIB
"""A file is cut into ranges of about this size where several threads are at it: what a range gives
is held until those before it have been handed on."""

_HELD_A_RANGE: Final = 4
"""So many times its length is held of the rows of a range; the rest waits until it is its turn."""

_Rows: TypeAlias = tuple[IO[bytes], Iterator[pa.RecordBatch]]
"""An open file, and the rows of a range of it."""


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
        times the speed of the door. On several threads a survey of nearly the same cost comes on
        top: two give 1.2 to 1.8 times the speed of the door.

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
        yield from _side_by_side(splitter, path, size, ranges or 1, threads)
        return
    with path.open("rb", buffering=0) as handle:
        yield from splitter.cut_stream(unpacked(handle, path.name))


def _side_by_side(
    splitter: Splitter, path: Path, size: int, count: int, threads: int
) -> Iterator[pa.RecordBatch]:
    """Rows of ranges: surveyed in order, cut as soon as their places are known, given in order."""

    def opened() -> IO[bytes]:
        return path.open("rb", buffering=0)

    try:
        with opened() as handle:
            head = splitter.head(handle)[0]
    except MessageError as error:
        yield fault_row(error.code, error.params, int(error.params.get("offset") or 0))
        return
    length = size - head.root
    bounds = [head.root + length * number // count for number in range(count + 1)]

    def survey(number: int) -> Outcomes:
        with opened() as handle:
            return splitter.survey(handle, bounds[number], bounds[number + 1])

    def cut(number: int, place: BytePlace) -> _Rows:
        start, until = bounds[number], bounds[number + 1]
        handle, held, left = opened(), [], _HELD_A_RANGE * (until - start)
        try:
            rest = splitter.cut(handle, head, place, start, until)
            for batch in rest:
                held.append(batch)
                left -= batch.nbytes
                if left < 0:
                    break
        except BaseException:
            handle.close()
            raise
        return handle, chain(held, rest)

    ahead, last = 2 * threads, count - 1
    cuts: deque[Future[_Rows]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        surveys = deque(pool.submit(survey, number) for number in range(min(ahead, last)))

        def outcomes(number: int) -> Outcomes:
            if number + ahead < last:
                surveys.append(pool.submit(survey, number + ahead))
            return surveys.popleft().result()

        try:
            for number, place in placed_ranges(splitter, bounds, outcomes):
                cuts.append(pool.submit(cut, number, place))
                if len(cuts) > ahead:
                    yield from _given(cuts.popleft().result())
            while cuts:
                yield from _given(cuts.popleft().result())
        finally:
            for survey_left in surveys:
                survey_left.cancel()
            for cut_left in cuts:
                if not cut_left.cancel() and not cut_left.exception():
                    cut_left.result()[0].close()


def _given(rows: _Rows) -> Iterator[pa.RecordBatch]:
    handle, batches = rows
    with handle:
        yield from batches
