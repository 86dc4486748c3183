"""`pathcast match`: which standing queries does each message satisfy?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.console import say, say_error, say_warning, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import MESSAGES_HELP, InputMessage, check_standard_input, read_batches
from pathcast.cli.options import (
    QueryOptions,
    ThreadsOption,
    existing,
)
from pathcast.cli.queries import QUERIES_HELP, announce, read_queries
from pathcast.errors import PathcastError, shown
from pathcast.registry import Registry


def match(
    messages: Annotated[list[str], typer.Argument(metavar="MESSAGE...", help=MESSAGES_HELP)],
    queries: Annotated[
        Path,
        typer.Option(
            "--queries",
            metavar="FILE",
            callback=existing,
            help=QUERIES_HELP + " The id of a query without one is the number of its line; blank "
            "lines and lines that begin with # are skipped.",
        ),
    ],
    options: QueryOptions,
    threads: ThreadsOption = None,
) -> ExitCode:
    """Say for each message which of the standing queries it satisfies.

    Prints one line of JSON a message, in the order of the arguments:
    message (its name), matches (ids of queries, sorted), undecided (ids
    of queries that needed more than evaluation_steps_max, or were left
    when the message had used up message_steps_max, sorted) and error,
    which is null or holds code, message, line, column and offset.
    An undecided query is warned of on standard error, and the exit code
    is 1 then, as for a refused message. Of subscriptions, matches are the ids
    of those that a run would deliver something of.
    """
    check_standard_input(str(queries), *messages)
    source = read_queries(queries, options)
    engines, taken = source.take_up(threads)
    announce(engines, taken)
    if not taken.takers:
        say_error(f"{source.path}: no query that can be used")
        return ExitCode.REFUSED
    refused = undecided = 0
    for batch in read_batches(messages, source.limits):
        refused_here, undecided_here = _print_batch(engines.registry, batch)
        refused += refused_here
        undecided += undecided_here
    faults = len(taken.rejected)
    if undecided:
        say(f"undecided: {undecided} pairs of query and message")
    if faults or refused:
        say(f"refused: {faults} queries, {refused} messages")
    return ExitCode.REFUSED if faults or refused or undecided else ExitCode.OK


def _print_batch(registry: Registry, batch: list[InputMessage]) -> tuple[int, int]:
    """Prints a line a message; gives the numbers of refused messages and of verdicts."""
    found = registry.match([m.content for m in batch if isinstance(m.content, bytes)])
    results = iter(found)
    refused = undecided = 0
    for message in batch:
        matches: list[str] = []
        verdicts: Mapping[str, PathcastError] = {}
        if isinstance(message.content, bytes):
            result = next(results)
            matches, verdicts, error = list(result.query_ids), result.verdicts, result.error
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
