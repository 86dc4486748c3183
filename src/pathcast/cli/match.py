"""`pathcast match`: which standing queries does each message satisfy?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.console import say, say_error, say_warning, write_json_line
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
from pathcast.errors import PathcastError, shown


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
    message (its name), matches (ids of queries, sorted), undecided (ids
    of queries that needed more than evaluation_steps_max, or were left
    when the message had used up message_steps_max, sorted) and error,
    which is null or holds code, message, line, column and offset.
    An undecided query is warned of on standard error, and the exit code
    is 1 then, as for a refused message.
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
    refused = undecided = 0
    names = message_names(messages)
    for batch in read_batches(names, bytes_max=limits.message_bytes_max):
        refused_here, undecided_here = _print_batch(matcher, batch)
        refused += refused_here
        undecided += undecided_here
    if undecided:
        say(f"undecided: {undecided} pairs of query and message")
    if faults or refused:
        say(f"refused: {len(faults)} queries, {refused} messages")
    return ExitCode.REFUSED if faults or refused or undecided else ExitCode.OK


def _print_batch(matcher: Matcher, batch: list[Message]) -> tuple[int, int]:
    """Prints a line a message; gives the numbers of refused messages and of verdicts."""
    readable = [m.content for m in batch if isinstance(m.content, bytes)]
    results = iter(matcher.match_batch(readable))
    refused = undecided = 0
    for message in batch:
        matches: list[str] = []
        verdicts: Mapping[str, PathcastError] = {}
        error: PathcastError | None
        if isinstance(message.content, bytes):
            result = next(results)
            matches, error = list(result.query_ids), result.error
            verdicts = result.verdicts
        else:
            error = message.content
        for query_id, verdict in verdicts.items():
            say_warning(f"{message.name}: query {query_id}: {verdict}")
        refused += error is not None
        undecided += len(verdicts)
        write_json_line(
            {
                "message": shown(message.name),
                "matches": matches,
                "undecided": list(verdicts),
                "error": None if error is None else error.to_dict(),
            }
        )
    return refused, undecided
