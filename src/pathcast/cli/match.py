"""`pathcast match`: which standing queries does each message satisfy?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.console import say, say_error, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import Message, message_names, read_batches
from pathcast.cli.options import (
    EngineOption,
    LimitOption,
    NamespaceOption,
    ThreadsOption,
    engine_name,
    read_limits,
    read_namespaces,
)
from pathcast.cli.query_file import read_query_file, register_lines
from pathcast.engine import Matcher, QueryIndex
from pathcast.errors import PathcastError


def match(
    messages: Annotated[
        list[str],
        typer.Argument(
            metavar="MESSAGE...",
            help="XML files; a directory stands for the *.xml files in it, - for standard input.",
        ),
    ],
    queries: Annotated[
        Path,
        typer.Option(
            "--queries",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="One query a line (its id is the line number), or id<TAB>query; "
            "blank lines and lines that begin with # are skipped.",
        ),
    ],
    engine: EngineOption = None,
    threads: ThreadsOption = None,
    namespace: NamespaceOption = None,
    limit: LimitOption = None,
) -> ExitCode:
    """Say for each message which of the standing queries it satisfies.

    Prints one line of JSON a message, in the order of the arguments:
    message (its name), matches (ids of queries, sorted) and error, which
    is null or holds code, message, line, column and offset.
    """
    limits = read_limits(limit)
    index = QueryIndex(
        engine=engine_name(engine), limits=limits, namespaces=read_namespaces(namespace)
    )
    faults = register_lines(index.register, read_query_file(queries))
    for fault in faults:
        say_error(f"{queries}:{fault.line}: {fault.error}")
    if not len(index):
        say_error(f"{queries}: no query that can be used")
        return ExitCode.REFUSED
    # A snapshot collects faster than an index that may change.
    matcher = index.freeze().matcher(threads=threads)
    refused = 0
    names = message_names(messages)
    for batch in read_batches(names, bytes_max=limits.message_bytes_max):
        refused += _print_batch(matcher, batch)
    if faults or refused:
        say(f"refused: {len(faults)} queries, {refused} messages")
        return ExitCode.REFUSED
    return ExitCode.OK


def _print_batch(matcher: Matcher, batch: list[Message]) -> int:
    """Prints a line a message; gives the number of refused messages."""
    readable = [m.content for m in batch if isinstance(m.content, bytes)]
    results = iter(matcher.match_batch(readable))
    refused = 0
    for message in batch:
        matches: list[str] = []
        error: PathcastError | None
        if isinstance(message.content, bytes):
            result = next(results)
            matches, error = list(result.query_ids), result.error
        else:
            error = message.content
        refused += error is not None
        write_json_line(
            {
                "message": message.name,
                "matches": matches,
                "error": None if error is None else error.to_dict(),
            }
        )
    return refused
