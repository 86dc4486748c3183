"""A message that was cut, as a folder: a file a chunk, evaluated wherever and whenever.

The folder has `0.xml`, `1.xml` and so on, one a chunk that has something of the message, and
`cut.json`, which is written last: a folder without it was not cut to the end. The message itself is
not copied, unless it came through a pipe; it is read again for the potpourri alone, or where the
cut has a fault.

Example:
    >>> from tempfile import TemporaryDirectory
    >>> from pathcast.chunking.filtering_scheme import Chunking
    >>> from pathcast.chunking.scheme_file import open_scheme, save_scheme
    >>> chunking = Chunking(2)
    >>> _ = chunking.register("q1", "/a/b[x]"), chunking.register("q2", "//c")
    >>> with TemporaryDirectory() as folder:
    ...     message, scheme = Path(folder, "m.xml"), Path(folder, "s.json")
    ...     _ = message.write_bytes(b"<a><b><x/></b><c/></a>")
    ...     save_scheme(chunking.scheme(), scheme)
    ...     cut = cut_message(open_scheme(scheme), message, Path(folder, "m"))
    ...     [answer] = evaluated([cut], open_scheme(scheme))
    >>> cut.bytes, answer.query_ids
    ((18,), ('q1', 'q2'))

Memory: cutting holds a block and what the chunker holds; evaluating holds the chunks that are
evaluated at the same time.

Source: Lehner and Irmert, BTW 2003, section 5 (CHUNKTOOL, FILTERTOOL).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pathcast.chunking.evaluation import ChunkAnswer, ChunkEvaluator, ChunkTask, merged
from pathcast.chunking.filtering_scheme import QuerySet
from pathcast.chunking.scheme_file import SchemeFile
from pathcast.chunking.streaming import BLOCK_BYTES, StreamingChunker
from pathcast.errors import ConfigError, PathcastError, UnreadableMessageError
from pathcast.limits import Limits, StreamBounds
from pathcast.schema import LabelPath

COMMIT: Final = "cut.json"
"""The file that says what was cut."""

REST: Final = -1
"""Stands for what is evaluated on the whole message."""

STANDARD_INPUT: Final = "-"

_COPY: Final = "whole.xml"

_UNFINISHED: Final = f"{COMMIT}.new"
"""Marks a folder whose message is being cut; becomes `COMMIT`."""


@dataclass(frozen=True, slots=True)
class CutFolder:
    """A message that was cut.

    Attributes:
        folder: The place of the chunks.
        scheme: Digest of the file of the scheme.
        message: The message.
        size: Its bytes.
        bytes: Of each chunk.
        elements: Of each chunk, ancestors and filter nodes counted.
        fault: Why the chunks must not be used (`Cut.fault`); empty as a rule.
    """

    folder: Path
    scheme: str
    message: Path
    size: int
    bytes: tuple[int, ...]
    elements: tuple[int, ...]
    fault: str

    def chunk(self, number: int) -> Path:
        """The file of a chunk."""
        return self.folder / f"{number}.xml"


class _Counted:
    """A file that counts what is written to it, and is made when there is something."""

    def __init__(self, path: Path, opened: ExitStack) -> None:
        self._path, self._opened = path, opened
        self._file: BinaryIO | None = None
        self.bytes = 0

    def write(self, data: bytes, /) -> None:
        """Appends bytes."""
        if self._file is None:
            self._file = self._opened.enter_context(self._path.open("wb"))
        self._file.write(data)
        self.bytes += len(data)


def cut_message(
    file: SchemeFile,
    message: Path,
    folder: Path,
    limits: Limits | None = None,
    bounds: StreamBounds | None = None,
) -> CutFolder:
    """Cuts a message into a folder, in one pass.

    Args:
        file: What to cut by.
        message: A file or a pipe; `-` is standard input.
        folder: Is made; chunks of an earlier cut are replaced.
        limits: What the message may cost, but for its size and its number of elements.
        bounds: These.

    Raises:
        MessageError: The message is refused; the folder has no `cut.json` then.
        ConfigError: The folder has something else.
        OSError: A file cannot be read or written.

    Cost: that of the parser, and of writing what is kept.
    """
    _clear(folder)
    chunker = StreamingChunker(file.scheme, limits, bounds=bounds)
    with ExitStack() as opened:
        sinks = [
            _Counted(folder / f"{number}.xml", opened) for number in range(len(file.scheme.chunks))
        ]
        is_piped = not message.is_file()
        copy = _Counted(folder / _COPY, opened)
        size = 0

        def blocks() -> Iterator[bytes]:
            nonlocal size
            is_given = str(message) == STANDARD_INPUT
            source = sys.stdin.buffer if is_given else opened.enter_context(message.open("rb"))
            while block := source.read(BLOCK_BYTES):
                size += len(block)
                if is_piped:
                    copy.write(block)
                yield block

        cut = chunker.cut_into(sinks, blocks())
    whole = folder / _COPY if is_piped else message.resolve()
    counted = tuple(sink.bytes for sink in sinks)
    found = CutFolder(folder, file.digest, whole, size, counted, cut.elements, cut.fault)
    content = {
        "scheme": found.scheme,
        "message": str(whole),
        "size": found.size,
        "bytes": found.bytes,
        "elements": found.elements,
        "fault": found.fault,
    }
    unfinished = folder / _UNFINISHED
    unfinished.write_text(json.dumps(content) + "\n")
    unfinished.replace(folder / COMMIT)
    return found


def open_cut(folder: Path, file: SchemeFile) -> CutFolder:
    """A message that was cut before.

    Args:
        folder: What `cut_message` has made.
        file: The scheme, which has to be the one it was cut by.

    Raises:
        ConfigError: It is no such folder, or was cut by another scheme.
        OSError: It cannot be read.
    """
    try:
        read: dict[str, Any] = json.loads((folder / COMMIT).read_bytes())
        cut = CutFolder(
            folder,
            str(read["scheme"]),
            Path(read["message"]),
            int(read["size"]),
            tuple(map(int, read["bytes"])),
            tuple(map(int, read["elements"])),
            str(read["fault"]),
        )
    except FileNotFoundError as error:
        raise _refused(folder, f"it has no {COMMIT}: no message was cut into it") from error
    except (ValueError, KeyError, TypeError) as error:
        raise _refused(folder / COMMIT, f"it does not say what was cut ({error})") from error
    if cut.scheme != file.digest:
        raise _refused(folder, "it was cut by another scheme; cut the message again")
    return cut


def evaluated(
    cuts: Iterable[CutFolder],
    file: SchemeFile,
    *,
    limits: Limits | None = None,
    threads: int = 1,
    part: int | None = None,
) -> Iterator[ChunkAnswer]:
    """The answers for messages that were cut.

    Args:
        cuts: The messages.
        file: What they were cut by.
        limits: What one chunk, or a whole message, may cost.
        threads: Chunks of a message that are evaluated side by side.
        part: The one part that is evaluated of each message: number of a chunk, or `REST`; None for
            all of them.

    Yields:
        One answer a message: that of the whole message, if `part` is None. What cannot be read is
        an error of the queries that needed it.

    Cost: memory of `threads` chunks; of the message, where there is a potpourri or a fault.
    """
    evaluator = ChunkEvaluator(limits=limits)

    def work(each: _Part) -> ChunkAnswer:
        try:
            content = each.read()
        except PathcastError as error:
            everyone = {name for ids in each.queries.queries.values() for name in ids}
            return ChunkAnswer(each.prefix, (), dict.fromkeys(sorted(everyone), error))
        return evaluator.evaluate(ChunkTask(each.prefix, each.queries, content))

    with ThreadPoolExecutor(threads) as pool:
        for cut in cuts:
            yield merged(pool.map(work, _parts(cut, file, part)))


@dataclass(frozen=True, slots=True)
class _Part:
    """A file, and what is evaluated on it."""

    prefix: LabelPath
    queries: QuerySet
    path: Path
    size: int

    def read(self) -> bytes:
        """The content of the file.

        Raises:
            UnreadableMessageError: It cannot be read, or has changed.
        """
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error
        if len(content) != self.size:
            raise self._unreadable(f"it has {len(content)} bytes, and had {self.size} when cut")
        return content

    def _unreadable(self, reason: str) -> UnreadableMessageError:
        return UnreadableMessageError("message.unreadable", path=str(self.path), reason=reason)


def _parts(cut: CutFolder, file: SchemeFile, only: int | None) -> list[_Part]:
    """Files of a message to evaluate, the largest first."""
    scheme = file.scheme
    if cut.fault:
        whole = [_Part((), scheme.whole, cut.message, cut.size)]
        return whole if only in (None, REST) else []
    parts = [
        _Part(chunk.prefix, chunk.queries, cut.chunk(number), size)
        for number, (chunk, size) in enumerate(zip(scheme.chunks, cut.bytes, strict=True))
        if size and chunk.queries and only in (None, number)
    ]
    if scheme.potpourri and only in (None, REST):
        parts.append(_Part((), scheme.potpourri, cut.message, cut.size))
    return sorted(parts, key=lambda part: -part.size)


def _clear(folder: Path) -> None:
    """Makes a folder, or takes out of it what an earlier cut has left."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [each.name for each in folder.iterdir()]
    if found and not {COMMIT, _UNFINISHED} & set(found):
        reason = "it has files that no cut has made; name an empty folder, or one that is not there"
        raise _refused(folder, reason)
    (folder / _UNFINISHED).touch()
    (folder / COMMIT).unlink(missing_ok=True)
    for name in found:
        if name.endswith(".xml"):
            (folder / name).unlink()


def _refused(place: Path, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=str(place), reason=reason)
