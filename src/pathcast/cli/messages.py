"""Messages that a command is given, read in batches.

    given                                   stands for
    -                                       standard input, one message
    a file, a pipe                          one message
    *.parquet, *.zip, *.tar, *.tgz, *.gz    the messages in it (`message_sources`)
    one of these, "!" and an id             that message of it
    the folder of a Delta table             its rows
    a directory                             its *.xml files and the files above, at any depth
    a URL that fsspec understands           the file, or the files of that place, likewise
    a pipeline's TOML file                  the messages that a run would read of its source

Messages come one after the other, so millions of them need neither a long command line nor much
memory. Of a directory only regular files are read: a pipe in it would block for ever.

It starts no engine.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from pathcast.cli.console import extra, say
from pathcast.errors import ConfigError, LimitExceededError, PathcastError, UnreadableMessageError
from pathcast.limits import Limits

STANDARD_INPUT = "-"

PACKED_SUFFIXES: Final = (".parquet", ".zip", ".tar", ".tgz", ".gz")
"""Ends of the names of files that hold many messages."""

TABLE_LOG: Final = "_delta_log"
"""Folder that a Delta table has."""

MESSAGES_HELP = (
    "XML, Parquet or archives (.zip, .tar, .tgz, .gz); a directory or a URL of them, or a Delta "
    "table; the TOML file of a pipeline for what its source has; - for standard input."
)

BATCH_MESSAGES_MAX = 1_000
"""Messages of a batch: enough to keep every core busy."""

BATCH_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of a batch, give or take one message: bounds memory whatever the size of the files."""

_MEMBER: Final = re.compile(f"(.+?(?:{'|'.join(map(re.escape, PACKED_SUFFIXES))}))!.+", re.DOTALL)


class InputMessage(NamedTuple):
    """A message as it was found.

    Attributes:
        name: The path as it was given or found, "-", or the file, "!" and the id in it.
        content: Its bytes, or why they could not be had.
    """

    name: str
    content: bytes | PathcastError


def read_messages(given: Iterable[str], limits: Limits) -> Iterator[InputMessage]:
    """The messages that the arguments of a command stand for, in order.

    Args:
        given: See the module.
        limits: A message that is longer is not held.

    Yields:
        Each message, or an error in the place of what cannot be read; the others come all the same.

    Raises:
        MissingDependencyError: A library that opens a place is not installed.
    """
    for name in given:
        yield from _messages_of(name.removeprefix("file://"), limits)


def _messages_of(name: str, limits: Limits) -> Iterator[InputMessage]:
    # As `pathcast.spark.storage`, which is imported for URLs only, tells them.
    is_url = "://" in name
    path = Path(name)
    if name == STANDARD_INPUT:
        yield read_message(name, bytes_max=limits.message_bytes_max)
    elif not is_url and path.is_dir() and not Path(path, TABLE_LOG).is_dir():
        yield from _in_directory(name, limits)
    elif (member := _MEMBER.fullmatch(name)) and (is_url or not path.exists()):
        container = _messages_of(member[1], limits)
        missing = _unreadable(name, f"{member[1]} holds no message of this id")
        yield next((each for each in container if each.name == name), InputMessage(name, missing))
    elif is_url or path.is_dir() or name.endswith((*PACKED_SUFFIXES, ".toml")):
        yield from _elsewhere(name, limits)
    else:
        yield read_message(name, bytes_max=limits.message_bytes_max)


def _elsewhere(name: str, limits: Limits) -> Iterator[InputMessage]:
    with extra("spark", name):
        from pathcast.cli.message_sources import messages_at
    yield from messages_at(name, limits)


def _in_directory(directory: str, limits: Limits) -> Iterator[InputMessage]:
    is_empty = True
    for found in _walk(directory):
        is_empty = False
        if isinstance(found, InputMessage):
            yield found
        elif found.endswith(PACKED_SUFFIXES):
            yield from _elsewhere(found, limits)
        else:
            yield read_message(found, bytes_max=limits.message_bytes_max, is_named=False)
    if is_empty:
        say(f"{directory}: no message in it: no *.xml file, Parquet file or archive")


def _walk(directory: str) -> Iterator[str | InputMessage]:
    """Names of the files of a directory, and an error for each folder that cannot be listed."""
    faults: list[OSError] = []
    for folder, folders, files in os.walk(directory, onerror=faults.append):
        for name in folders:
            if Path(folder, name).is_symlink():
                say(f"{Path(folder, name)}: a link to a folder, which is not followed")
        folders[:] = sorted(name for name in folders if is_counted(name))
        for file in sorted(filter(is_counted, files)):
            if file.lower().endswith(".xml") or file.endswith(PACKED_SUFFIXES):
                yield str(Path(folder, file))
        yield from map(_fault_of, faults)
        faults.clear()
    yield from map(_fault_of, faults)


def is_counted(name: str) -> bool:
    """Whether a name inside a directory counts: hidden files are no messages to a pipeline either.

    Example:
        >>> is_counted("a.xml"), is_counted("._a.xml"), is_counted("_commits")
        (True, False, False)
    """
    return not name.startswith((".", "_"))


def _fault_of(error: OSError) -> InputMessage:
    name = str(error.filename)
    return InputMessage(name, _unreadable(name, error.strerror or str(error)))


def read_message(name: str, *, bytes_max: int, is_named: bool = True) -> InputMessage:
    """One message.

    Args:
        name: A path, or "-" for standard input.
        bytes_max: A larger message is not read at all, since the door would refuse it.
        is_named: Whether somebody has named this file, and not only a directory that it is in: a
            pipe is read then.
    """
    if name == STANDARD_INPUT:
        content = sys.stdin.buffer.read(bytes_max + 1)
        size = len(content)
    else:
        try:
            with open(name, "rb", opener=None if is_named else _open_at_once) as file:
                status = os.fstat(file.fileno())
                if not is_named and not stat.S_ISREG(status.st_mode):
                    reason = "a pipe or device in a directory is not read; name it to read it"
                    return InputMessage(name, _unreadable(name, reason))
                size = status.st_size
                content = b"" if size > bytes_max else file.read(bytes_max + 1)
        except (OSError, ValueError) as error:
            # A name that no file has, with a null character, is a ValueError.
            return InputMessage(
                name, _unreadable(name, getattr(error, "strerror", None) or str(error))
            )
    given = max(size, len(content))
    if given > bytes_max:
        limit = "message_bytes_max"
        return InputMessage(
            name,
            LimitExceededError("limit.message_bytes", limit=limit, given=given, maximum=bytes_max),
        )
    return InputMessage(name, content)


def _open_at_once(name: str, flags: int) -> int:
    """Opens a file; a pipe that nobody writes to, too, without waiting for a writer."""
    return os.open(name, flags | os.O_NONBLOCK)


def read_one(given: str, limits: Limits) -> bytes:
    """The only message that an argument stands for.

    Raises:
        PathcastError: It cannot be read, or there is none or more than one.
    """
    found = list(islice(read_messages([given], limits), 2))
    if len(found) != 1:
        told = f"name one of its messages, such as {found[0].name}" if found else "it has none"
        raise _unreadable(given, f"one message is needed; {told}")
    content = found[0].content
    if isinstance(content, PathcastError):
        raise content
    return content


def check_standard_input(*given: str) -> None:
    """Refuses a command line that reads standard input twice: the second time it would be empty.

    Raises:
        ConfigError: `-` is there more than once.
    """
    if given.count(STANDARD_INPUT) > 1:
        reason = "is standard input, which can be read once only; name a file for the other"
        raise ConfigError("config.invalid", key=STANDARD_INPUT, reason=reason)


def read_batches(given: Iterable[str], limits: Limits) -> Iterator[list[InputMessage]]:
    """Read messages (`read_messages`) in batches."""
    return in_batches(read_messages(given, limits))


def in_batches(messages: Iterable[InputMessage]) -> Iterator[list[InputMessage]]:
    """Messages in batches bounded by number and by bytes."""
    batch: list[InputMessage] = []
    batch_bytes = 0
    for message in messages:
        batch.append(message)
        batch_bytes += len(message.content) if isinstance(message.content, bytes) else 0
        if len(batch) >= BATCH_MESSAGES_MAX or batch_bytes >= BATCH_BYTES_MAX:
            yield batch
            batch, batch_bytes = [], 0
    if batch:
        yield batch


def _unreadable(name: str, reason: str) -> UnreadableMessageError:
    return UnreadableMessageError("message.unreadable", path=name, reason=reason)
