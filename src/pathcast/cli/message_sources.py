"""Messages of Parquet files, archives, URLs and sources of pipelines, as a pipeline reads them.

The readers are those of `pathcast.spark`, in this process and without Spark. A message is called by
its file, "!" and its id in there; of a pipeline's source, as the pipeline calls it.

It knows no options of a place: a pipeline's TOML file has those (`source.storage_options`), and the
names of the columns of Parquet files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from pathcast.cli.console import say
from pathcast.cli.messages import PACKED_SUFFIXES, TABLE_LOG, InputMessage
from pathcast.errors import (
    KernelMissingError,
    MissingDependencyError,
    PathcastError,
    UnreadableMessageError,
)
from pathcast.limits import Limits
from pathcast.registry import message_id
from pathcast.spark.files import FILE, NO_COLUMNS, FileReader, FoundFile, shown, unreadable
from pathcast.spark.listing import file_at
from pathcast.spark.settings import SourceKind, SourceSettings, load_settings
from pathcast.spark.sources import listing_of, reader_of, units_of
from pathcast.spark.storage import Storage, is_url

Naming = Callable[[FoundFile, str | None], str]
"""Name of a message by its file and its id; None for a file of one message, or that is not read."""

_KINDS: Final[Sequence[SourceKind]] = ("directory", "parquet", "archive")
"""Kinds of files that a place may hold side by side."""


class RefusedBySourceError(UnreadableMessageError):
    """A message that a source does not hand on, with the code and the sentence that it gives."""

    @property
    def message(self) -> str:
        """The sentence of the source."""
        return str(self.params["reason"])


class _Place(NamedTuple):
    """Files of one kind that lie at one place.

    Attributes:
        source: How they are read.
        files: Oldest first.
        name_of: What their messages are called.
    """

    source: SourceSettings
    files: Sequence[FoundFile]
    name_of: Naming


def messages_at(given: str, limits: Limits) -> Iterator[InputMessage]:
    """The messages of a file that holds many, of a URL, or of the source of a pipeline.

    Args:
        given: Name of the file, URL, or TOML file of the pipeline.
        limits: Bounds on a message.

    Yields:
        Each message, or an error in the place of what cannot be read.

    Raises:
        MissingDependencyError: A library that opens the place is not installed.
        KernelMissingError: Records are to be cut, and the kernel is not installed.
    """
    with _told(given) as untold:
        for place in _places_at(given):
            yield from [place] if isinstance(place, InputMessage) else _read(place, limits)
    yield from untold


def newest_messages(given: Sequence[str], limits: Limits, count: int) -> Iterator[InputMessage]:
    """The last messages of all places together: of the files that were written last.

    Args:
        given: Files, directories, URLs, or TOML files of pipelines.
        limits: Bounds on a message.
        count: How many. An error in the place of a message counts as one.

    Yields:
        First an error for each place that cannot be read, then messages: those of the newest file
        come first, those of one part of a file (row group, range) in their order.

    Raises:
        MissingDependencyError: A library that opens a place is not installed.
        KernelMissingError: Records are to be cut, and the kernel is not installed.

    Cost: lists all places. A part of a file that holds many messages is read twice, other files and
        parts not at all.
    """
    found: list[tuple[FoundFile, FileReader, Naming]] = []
    for name in given:
        with _told(name) as untold:
            for place in _places_at(name.removeprefix("file://")):
                if isinstance(place, InputMessage):
                    yield place
                    continue
                reader = reader_of(place.source, limits, NO_COLUMNS)
                found += [(file, reader, place.name_of) for file in place.files]
        yield from untold
    found.sort(key=lambda each: (each[0].modified_ns, each[0].name), reverse=True)
    left = count
    for file, reader, name_of in found:
        if not left:
            return
        unread: dict[str, PathcastError] = {}
        read = 0
        for unit in reversed(units_of(reader, [file], unread)):
            held = 1 if reader.is_whole else sum(len(batch) for batch, _ in reader.read([unit], {}))
            rows = (
                row
                for batch, _ in reader.read([unit], unread)
                for row in _rows(batch, file, name_of)
            )
            yield from islice(rows, max(0, held - left), None)
            taken = min(held, left)
            read, left = read + taken, left - taken
            if not left:
                break
        for error in unread.values():
            yield _unread(error, name_of(file, None), read)


@contextmanager
def _told(given: str) -> Iterator[list[InputMessage]]:
    """Keeps what ends the reading of a place, as an error in the place of its messages.

    Yields:
        What gets it.
    """
    untold: list[InputMessage] = []
    try:
        yield untold
    except (MissingDependencyError, KernelMissingError):
        raise
    except PathcastError as error:
        untold.append(InputMessage(given, error))
    except Exception as error:
        # A file system behind a URL raises what its library likes: it is an input like any other.
        is_elsewhere = is_url(given) or given.endswith(".toml")
        if not is_elsewhere and not isinstance(error, OSError):
            raise
        untold.append(InputMessage(given, unreadable(given, error)))


def _places_at(given: str) -> Iterator[_Place | InputMessage]:
    """The files that a name stands for, and errors in the places of what cannot be listed."""
    if given.endswith(".toml") and not is_url(given):
        return _places_of_pipeline(given)
    return _places_of(given)


def _places_of_pipeline(given: str) -> Iterator[_Place | InputMessage]:
    source = load_settings(given).source
    if source.kind == "spark":
        reason = "Spark alone reads its source (source.format); name files of messages instead"
        yield _unreadable(given, reason)
        return
    listing = listing_of(source)
    files, faults = listing.look(())
    for _, note in listing.notes():
        say(note)
    for folder, fault in faults.items():
        yield InputMessage(folder, unreadable(folder, fault))
    yield _Place(source, files, lambda file, name: name or shown(file.name))


def _places_of(given: str) -> Iterator[_Place | InputMessage]:
    parent, slash, name = given.rpartition("/")
    is_folder = not is_url(given) and Path(given).is_dir()
    if not is_folder and not (is_url(given) and (parent.endswith(":/") or not name)):
        place = parent or slash or "."
        file = _file_at(Storage(place), name)
        if file is not None:
            source = SourceSettings(kind=_kind_of(name), path=place)
            yield _Place(source, [file], _naming(source, parent + slash))
            return
        if not is_url(given):
            # Parquet and archives are looked at from their ends, which a pipe does not have.
            reason = "it is no regular file" if Path(given).exists() else "there is no such file"
            yield _unreadable(given, reason)
            return
    is_empty = True
    for kind in ("delta",) if Storage(given).exists(TABLE_LOG) else _KINDS:
        source = SourceSettings(kind=kind, path=given)
        files, faults = listing_of(source).look(())
        if kind == _KINDS[0]:
            for folder, fault in faults.items():
                yield InputMessage(folder, unreadable(folder, fault))
        files.sort(key=lambda file: file.name)
        is_empty = is_empty and not files
        yield _Place(source, files, _naming(source, given.rstrip("/") + "/"))
    if is_empty:
        yield _unreadable(given, "there is no such file, and no file of messages below it")


def _file_at(storage: Storage, name: str) -> FoundFile | None:
    """A regular file; None where there is none, or a folder."""
    if not storage.is_local:
        try:
            if storage.info(name).get("type") == "directory":
                return None
        except FileNotFoundError:
            return None
    return file_at(storage, name)


def _kind_of(name: str) -> SourceKind:
    if not name.endswith(PACKED_SUFFIXES):
        return "directory"
    return "parquet" if name.endswith(".parquet") else "archive"


def _naming(source: SourceSettings, prefix: str) -> Naming:
    """Names of messages of files below a prefix: ids of archives begin with that of the file."""

    def named(file: FoundFile, id: str | None) -> str:
        if source.kind in ("parquet", "delta") and id is not None:
            return f"{prefix}{file.name}!{id}"
        return prefix + (file.name if id is None or source.kind == "directory" else id)

    return named


def _read(place: _Place, limits: Limits) -> Iterator[InputMessage]:
    reader, name_of = reader_of(place.source, limits, NO_COLUMNS), place.name_of
    for file in place.files:
        unread: dict[str, PathcastError] = {}
        count = 0
        for batch, _ in reader.read(units_of(reader, [file], unread), unread):
            count += len(batch)
            yield from _rows(batch, file, name_of)
        for error in unread.values():
            yield _unread(error, name_of(file, None), count)


def _rows(batch: pa.RecordBatch, file: FoundFile, name_of: Naming) -> Iterator[InputMessage]:
    names = ("message_id", "message", "code", "reason")
    columns = (batch.column(name).to_pylist() for name in names)
    for id, content, code, reason in zip(*columns, strict=True):
        # A pipeline, too, has a digest serve where there is no id.
        name = name_of(file, message_id(content or b"") if id is None else id)
        if content is not None:
            yield InputMessage(name, content)
        elif code is not None:
            yield InputMessage(name, RefusedBySourceError(code, reason=reason))
        else:
            yield _unreadable(name, "its value is null")


def _unread(error: PathcastError, name: str, count: int) -> InputMessage:
    """The error for a file of many messages that could not be read to its end."""
    if error.code != FILE:
        return InputMessage(name, error)
    before = f"; {count:,} of its messages were read before" if count else ""
    return _unreadable(name, f"{error.params.get('reason')}{before}")


def _unreadable(name: str, reason: str) -> InputMessage:
    return InputMessage(
        name, UnreadableMessageError("message.unreadable", path=name, reason=reason)
    )
