"""Messages from files and from standard input, read in batches.

A directory stands for the `*.xml` files in it, at any depth, in sorted order; so millions of
messages need neither a long command line nor much memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pathcast.errors import LimitExceededError, PathcastError, UnreadableMessageError

STANDARD_INPUT = "-"

BATCH_MESSAGES_MAX = 1_000
"""Messages of a batch: enough to keep every core busy."""

BATCH_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of a batch, give or take one message: bounds memory whatever the size of the files."""


class Message(NamedTuple):
    """A message as it was found.

    Attributes:
        name: The path as it was given or found, or "-".
        content: Its bytes, or why they could not be had.
    """

    name: str
    content: bytes | PathcastError


def message_names(given: Iterable[str]) -> Iterator[str]:
    """The messages that the arguments of a command stand for; directories are walked."""
    for name in given:
        if name != STANDARD_INPUT and Path(name).is_dir():
            yield from _walk(name)
        else:
            yield name


def _walk(directory: str) -> Iterator[str]:
    for folder, folders, files in os.walk(directory):
        folders.sort()
        for file in sorted(files):
            if file.lower().endswith(".xml"):
                yield str(Path(folder, file))


def read_message(name: str, *, bytes_max: int) -> Message:
    """One message.

    Args:
        name: A path, or "-" for standard input.
        bytes_max: A larger message is not read at all, since the door would refuse it.
    """
    if name == STANDARD_INPUT:
        content = sys.stdin.buffer.read(bytes_max + 1)
        size = len(content)
    else:
        try:
            with Path(name).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                content = b"" if size > bytes_max else file.read(bytes_max + 1)
        except OSError as error:
            reason = error.strerror or str(error)
            return Message(
                name, UnreadableMessageError("message.unreadable", path=name, reason=reason)
            )
    given = max(size, len(content))
    if given > bytes_max:
        limit = "message_bytes_max"
        return Message(
            name,
            LimitExceededError("limit.message_bytes", limit=limit, given=given, maximum=bytes_max),
        )
    return Message(name, content)


def read_batches(names: Iterable[str], *, bytes_max: int) -> Iterator[list[Message]]:
    """All messages in order, in batches bounded by number and by bytes."""
    batch: list[Message] = []
    batch_bytes = 0
    for name in names:
        message = read_message(name, bytes_max=bytes_max)
        batch.append(message)
        batch_bytes += len(message.content) if isinstance(message.content, bytes) else 0
        if len(batch) >= BATCH_MESSAGES_MAX or batch_bytes >= BATCH_BYTES_MAX:
            yield batch
            batch, batch_bytes = [], 0
    if batch:
        yield batch
