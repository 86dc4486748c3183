"""`pathcast transform`: what a subscriber would get of each message."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Annotated

import typer

from pathcast.cli.asked_query import AskOptions, QueryArgument
from pathcast.cli.console import say, say_error, say_warning, write_json_line
from pathcast.cli.exits import EXIT_CODES_HELP, ExitCode
from pathcast.cli.messages import (
    MESSAGES_HELP,
    STANDARD_INPUT,
    InputMessage,
    check_standard_input,
    read_batches,
)
from pathcast.cli.options import (
    Format,
    FormatOption,
    LimitOption,
    NamespaceOption,
    ThreadsOption,
    read_limits,
    read_namespaces,
)
from pathcast.errors import PathcastError, shown
from pathcast.query.names import is_text
from pathcast.registry import Deliveries, Registry

STEM_BYTES_MAX = 200
"""Bytes of a message's name that the names of its results begin with; systems allow 255 in all."""

TRANSFORM_EPILOG = (
    "Example: pathcast transform 'for $b in //book where $b/price < 30 "
    'return <hit year="{$b/@year}">{$b/title}</hit>\' catalogue.xml prints '
    '<hit year="1999"><title>Sand</title></hit> for every such book. ' + EXIT_CODES_HELP
)


def transform(
    query: QueryArgument,
    messages: Annotated[list[str], typer.Argument(metavar="MESSAGE...", help=MESSAGES_HELP)],
    options: AskOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIRECTORY",
            help="Writes each result to a file of its own, MESSAGE.NUMBER.xml, and prints nothing.",
            show_default=False,
        ),
    ] = None,
    threads: ThreadsOption = None,
    namespace: NamespaceOption = None,
    limit: LimitOption = None,
    format_: FormatOption = Format.TEXT,
) -> ExitCode:
    """Print what a subscriber with this query would get of each message.

    Results come in the order of the messages, each on a line of its own (a
    result may have line breaks of its own). A message that the query asks
    nothing of has none, and that is no failure. Steps of a .xq file and of
    --step are done first. With --format json each
    result is an object: message, result_number, delivery_id, fragment.
    """
    check_standard_input(query.removeprefix("@"), *messages)
    limits = read_limits(limit)
    registry = Registry(limits, read_namespaces(namespace), threads=threads)
    registry.add(options.read(query)._replace(deliver="fragment"))
    writer = None if out is None else _ResultFiles(out)
    refused = undecided = results = 0
    for batch in read_batches(messages, limits):
        for message, found in delivered(registry, batch):
            if isinstance(found, PathcastError):
                refused += 1
                say_error(f"{message.name}: {found}")
                continue
            for undone in found.verdicts.values():
                undecided += 1
                say_warning(f"{message.name}: {undone}")
            results += len(found)
            _write(message, found, writer, format_)
    if writer is not None:
        say(f"{results:,} results in {writer.folder}")
    return ExitCode.REFUSED if refused or undecided else ExitCode.OK


def delivered(
    registry: Registry, batch: list[InputMessage]
) -> Iterator[tuple[InputMessage, Deliveries | PathcastError]]:
    """The messages of a batch with their deliveries, or with why they have none.

    Args:
        registry: Answers.
        batch: As they were read.
    """
    readable = [message for message in batch if isinstance(message.content, bytes)]
    found = registry.deliver(
        [message.content for message in readable if isinstance(message.content, bytes)],
        # A name that is not UTF-8 names nothing elsewhere; a digest of the message does.
        [message.name if is_text(message.name) else None for message in readable],
    )
    row = 0
    for message in batch:
        if isinstance(message.content, bytes):
            deliveries = found.deliveries(row)
            row += 1
            yield message, deliveries.error or deliveries
        else:
            yield message, message.content


def _write(
    message: InputMessage, found: Deliveries, writer: _ResultFiles | None, format_: Format
) -> None:
    for delivery in found:
        fragment = delivery.fragment or b""
        if writer is not None:
            writer.write(message.name, delivery.result_number, fragment)
        elif format_ is Format.JSON:
            write_json_line(
                {
                    "message": shown(message.name),
                    "result_number": delivery.result_number,
                    "delivery_id": delivery.delivery_id,
                    "fragment": fragment.decode(),
                }
            )
        else:
            sys.stdout.buffer.write(fragment + b"\n")
    # Standard error is not held back, and should not overtake the results it belongs to.
    sys.stdout.flush()


class _ResultFiles:
    """A directory that results are written to.

    Attributes:
        folder: The directory.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, message: str, number: int, fragment: bytes) -> None:
        """Writes one result."""
        (self.folder / f"{self._name(message)}.{number}.xml").write_bytes(fragment)

    def _name(self, message: str) -> str:
        """The message's file name, made different from that of every other message."""
        if message not in self._names:
            # Of a message in a file of many it is the id that tells; that may be of any length.
            within = (message.rpartition("!")[2] or message).replace("\0", "_")
            stem = "stdin" if message == STANDARD_INPUT else PurePath(within).stem
            stem = os.fsdecode(os.fsencode(stem)[:STEM_BYTES_MAX])
            name, turn = stem, 1
            while name in self._taken:
                turn += 1
                name = f"{stem}-{turn}"
            self._taken.add(name)
            self._names[message] = name
        return self._names[message]
