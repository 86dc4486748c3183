"""A message of a pipeline by its id: which micro-batch had it, and what it says.

For questions afterwards; nothing of a run needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pathcast.errors import PathcastError
from pathcast.spark.files import NO_COLUMNS, FileReader, FoundFile, Unit, shown
from pathcast.spark.journal import Journal
from pathcast.spark.sources import listing_of, reader_of, units_of
from pathcast.spark.workers import InProcess

if TYPE_CHECKING:
    from pathcast.spark.settings import PipelineSettings


def batch_of(settings: PipelineSettings, message_id: str) -> int | None:
    """The last micro-batch of a file that is named as its message; None for other sources."""
    is_named = settings.source.kind == "directory"
    return Journal(settings.checkpoint).last_entry(message_id) if is_named else None


def parts_of(reader: FileReader, file: FoundFile, unread: dict[str, PathcastError]) -> list[Unit]:
    """A file of a source in the parts that tasks read, in their order; surveyed in this process."""
    return units_of(reader, [file], InProcess(), unread)


def message_of(settings: PipelineSettings, message_id: str) -> bytes | None:
    """The bytes of a message, if the source still has it.

    Cost: one file where its name is the id; otherwise the source is read from its beginning.
    """
    source = settings.source
    if source.kind == "spark":
        return None
    try:
        files, _ = listing_of(source).look(set())
    except (OSError, PathcastError):
        return None
    if source.kind == "directory":
        files = [file for file in files if file.name == message_id]
    elif source.kind == "archive":
        files = [file for file in files if message_id.startswith(f"{shown(file.name)}!")]
    elif source.kind == "records":
        files = [file for file in files if message_id.rpartition("#")[0] == shown(file.name)]
    reader = reader_of(source, settings.engine.message_limits(), NO_COLUMNS)
    unread: dict[str, PathcastError] = {}
    for file in files:
        for batch, _ in reader.read(parts_of(reader, file, unread), unread):
            place = pc.index(batch.column("message_id"), message_id).as_py()
            if place >= 0:
                content: bytes | None = batch.column("message")[place].as_py()
                return content
    return None
