"""A whole file, its ranges side by side.

What comes out does not depend on the number of ranges or threads. A range is cut from the place
that it probably begins in, and what comes of that counts if the range before it ends there;
otherwise it is cut again. Where guesses go wrong, ranges are surveyed first (what does one do,
whatever it begins in?), so that the place where the next one begins is known when it is cut.
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
from pathcast.records.cutting import CONTEXT_BYTES_MAX, RangeCut, Splitter, fault_row
from pathcast.records.guesses import Guess, Guesses, window_bytes
from pathcast.records.paths import record_path

if TYPE_CHECKING:
    from pathcast.kernel.records import BytePlace, Outcomes

RANGE_BYTES: Final = 8 * MIB
"""A file is cut into ranges of about this size where several threads are at it: what a range gives
is held until those before it have been handed on."""

_HELD_A_RANGE: Final = 4
"""So many times its length is held of the rows of a range; the rest waits until it is its turn."""


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
        times the speed of the door. Two threads give about 1.6 times that, where the elements
        around the records are the same for many ranges; where a survey of nearly the same cost
        comes on top, 1.2 to 1.8 times the speed of the door.

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
    """Ranges of one file: begun side by side, placed and handed on in order.

    A range is begun by cutting it from a guess at its place, which the ranges before it confirm or
    not. Where guesses are no use, it is surveyed, and cut when its place is known.
    """

    def __init__(
        self, splitter: Splitter, path: Path, size: int, ranges: int, threads: int
    ) -> None:
        self._splitter = splitter
        self._path = path
        self._size = size
        self._ranges = ranges
        self._threads = threads
        self._ahead = 2 * threads
        self._ancestors = len(splitter.path) - 1
        self._guesses = Guesses(self._ancestors, self._ahead)
        self._guessed: dict[int, Guess] = {}
        self._begun: deque[Future[RangeCut | Outcomes]] = deque()
        self._placed: deque[Future[RangeCut]] = deque()

    def rows(self) -> Iterator[pa.RecordBatch]:
        try:
            with self._open() as handle:
                self._head = self._splitter.head(handle)[0]
                root, length = self._head.root, self._size - self._head.root
                count = self._ranges
                self._bounds = [root + length * number // count for number in range(count + 1)]
                self._window = window_bytes(length // count)
                self._known = self._first_known(handle)
        except MessageError as error:
            yield fault_row(error.code, error.params, int(error.params.get("offset") or 0))
            return
        with ThreadPoolExecutor(self._threads) as pool:
            try:
                yield from self._in_order(pool)
            finally:
                for future in self._begun:
                    if not future.cancel() and not future.exception():
                        _close(future.result())
                for cut in self._placed:
                    if not cut.cancel() and not cut.exception():
                        _close(cut.result())

    def _in_order(self, pool: ThreadPoolExecutor) -> Iterator[pa.RecordBatch]:
        from pathcast.kernel.records import BytePlace

        place = BytePlace()
        self._begun.append(pool.submit(self._begin, 0, place))
        for number in range(self._ranges):
            upto = min(number + self._ahead + 1, self._ranges)
            for each in range(number + len(self._begun), upto):
                self._begun.append(pool.submit(self._begin, each, None))
            begun = self._begun.popleft().result()
            if isinstance(begun, RangeCut):
                is_right = self._is_right(number, begun, place)
                cut = begun if is_right else pool.submit(self._cut, number, place).result()
                yield from self._finished(upto=0)
                yield from _rows(cut)
                after = cut.after
            else:
                self._placed.append(pool.submit(self._cut, number, place))
                yield from self._finished(upto=self._ahead)
                after = place.after(begun, self._ancestors) if begun else None
            if after is None:
                break
            place = self._known = after
        yield from self._finished(upto=0)

    def _is_right(self, number: int, cut: RangeCut, place: BytePlace) -> bool:
        """Whether a range was cut from the place where it begins; forgets it if not."""
        guess = self._guessed.pop(number, None)
        if guess is not None:
            self._guesses.judge(guess, place)
        if cut.place == place:
            return True
        _close(cut)
        return False

    def _finished(self, *, upto: int) -> Iterator[pa.RecordBatch]:
        """The rows of ranges that are cut from places that are known, all but so many."""
        while len(self._placed) > upto:
            yield from _rows(self._placed.popleft().result())

    def _open(self) -> IO[bytes]:
        return self._path.open("rb", buffering=0)

    def _first_known(self, handle: IO[bytes]) -> BytePlace:
        """The place behind the first window; what the second one comes down to is learnt."""
        from pathcast.kernel.records import BytePlace

        known = BytePlace()
        for number in range(2):
            start = self._bounds[0] + number * self._window
            outcomes = self._splitter.survey(handle, start, min(start + self._window, self._size))
            guess = self._guesses.guess(known, outcomes) if number else None
            after = known.after(outcomes, self._ancestors)
            if after is None:
                break
            if guess is not None:
                self._guesses.learn(guess, after)
            known = after
        return known

    def _begin(self, number: int, place: BytePlace | None) -> RangeCut | Outcomes:
        """Cuts a range from its place or, if that is not known, from a guess; or surveys it."""
        if place is not None:
            return self._cut(number, place)
        start, until = self._bounds[number : number + 2]
        with self._open() as handle:
            if self._guesses.are_worth_it:
                window = max(self._bounds[0], start - self._window)
                outcomes = self._splitter.survey(handle, window, start)
                guess = self._guesses.guess(self._known, outcomes)
                if guess is not None:
                    self._guessed[number] = guess
                    return self._cut(number, guess.place)
            return self._splitter.survey(handle, start, until) if until < self._size else []

    def _cut(self, number: int, place: BytePlace) -> RangeCut:
        start, until = self._bounds[number : number + 2]
        handle = self._open()
        try:
            cut = self._splitter.cut(handle, self._head, place, start, until)
            cut.read_ahead(_HELD_A_RANGE * (until - start))
        except BaseException:
            handle.close()
            raise
        return cut


def _rows(cut: RangeCut) -> Iterator[pa.RecordBatch]:
    with cut.handle:
        yield from cut


def _close(begun: RangeCut | Outcomes) -> None:
    if isinstance(begun, RangeCut):
        begun.handle.close()
