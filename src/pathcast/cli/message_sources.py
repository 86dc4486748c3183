"""Messages of Parquet files, archives, URLs and sources of pipelines, as a pipeline reads them.

The readers are those of `pathcast.spark`, in this process and without Spark. A message is called by
its file, "!" and its id in there; of a pipeline's source, as the pipeline calls it.

It knows no options of a place: a pipeline's TOML file has those (`source.storage_options`), and the
names of the columns of Parquet files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from pathcast.cli.console import say
from pathcast.cli.messages import PACKED_SUFFIXES, InputMessage
from pathcast.errors import (
    KernelMissingError,
    MissingDependencyError,
    PathcastError,
    UnreadableMessageError,
)
from pathcast.limits import Limits
from pathcast.registry import message_id
from pathcast.spark.files import FILE, FoundFile, shown, unreadable
from pathcast.spark.listing import file_at
from pathcast.spark.lookup import batches_of
from pathcast.spark.settings import SourceKind, SourceSettings, load_settings
from pathcast.spark.sources import NO_COLUMNS, listing_of, reader_of
from pathcast.spark.storage import Storage, is_url

Naming = Callable[[FoundFile, str | None], str]
"""Name of a message by its file and its id; None for a file of one message, or that is not read."""

_KINDS: Sequence[SourceKind] = ("directory", "parquet", "archive")
"""Kinds of files that a place may hold side by side."""


class RefusedBySourceError(UnreadableMessageError):
    """A message that a source does not hand on, with the code and the sentence that it gives."""

    @property
    def message(self) -> str:
        """The sentence of the source."""
        return str(self.params["reason"])


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
    try:
        if given.endswith(".toml") and not is_url(given):
            yield from _of_pipeline(given, limits)
        else:
            yield from _of_place(given, limits)
    except (MissingDependencyError, KernelMissingError):
        raise
    except PathcastError as error:
        yield InputMessage(given, error)
    except Exception as error:
        # A file system behind a URL raises what its library likes: it is an input like any other.
        is_elsewhere = is_url(given) or given.endswith(".toml")
        if not is_elsewhere and not isinstance(error, OSError):
            raise
        yield InputMessage(given, unreadable(given, error))


def _of_pipeline(given: str, limits: Limits) -> Iterator[InputMessage]:
    source = load_settings(given).source
    listing = listing_of(source)
    files, faults = listing.look(())
    for _, note in listing.notes():
        say(note)
    for folder, fault in faults.items():
        yield InputMessage(folder, unreadable(folder, fault))
    yield from _read(source, files, limits, lambda file, name: name or shown(file.name))


def _of_place(given: str, limits: Limits) -> Iterator[InputMessage]:
    parent, slash, name = given.rpartition("/")
    is_whole = is_url(given) and (parent.endswith(":/") or not name)
    if not is_whole:
        place = parent or slash or "."
        file = _file_at(Storage(place), name)
        if file is not None:
            source = SourceSettings(kind=_kind_of(name), path=place)
            yield from _read(source, [file], limits, _naming(source, parent + slash))
            return
        if not is_url(given):
            # Parquet and archives are looked at from their ends, which a pipe does not have.
            reason = "it is no regular file" if Path(given).exists() else "there is no such file"
            yield _unreadable(given, reason)
            return
    is_empty = True
    for kind in _KINDS:
        source = SourceSettings(kind=kind, path=given)
        files, _ = listing_of(source).look(())
        files.sort(key=lambda file: file.name)
        is_empty = is_empty and not files
        yield from _read(source, files, limits, _naming(source, given.rstrip("/") + "/"))
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
        if source.kind == "parquet" and id is not None:
            return f"{prefix}{file.name}!{id}"
        return prefix + (file.name if id is None or source.kind == "directory" else id)

    return named


def _read(
    source: SourceSettings, files: Sequence[FoundFile], limits: Limits, name_of: Naming
) -> Iterator[InputMessage]:
    reader = reader_of(source, limits, NO_COLUMNS)
    for file in files:
        unread: dict[str, PathcastError] = {}
        count = 0
        for batch in batches_of(reader, file, unread):
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
