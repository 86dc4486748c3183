"""`pathcast match`: which standing queries does each message satisfy?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from pathcast.cli.console import say, say_error, say_warning, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import MESSAGES_HELP, InputMessage, check_standard_input, read_batches
from pathcast.cli.options import (
    LanguageOption,
    LimitOption,
    NamespaceOption,
    ThreadsOption,
    existing,
)
from pathcast.cli.queries import QUERIES_HELP, announce, read_queries
from pathcast.errors import PathcastError, shown
from pathcast.registry.subscription_engines import SubscriptionEngines


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
    threads: ThreadsOption = None,
    namespace: NamespaceOption = None,
    language: LanguageOption = None,
    limit: LimitOption = None,
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
    source = read_queries(queries, namespace=namespace, limit=limit, language=language)
    engines, taken = source.take_up(threads)
    announce(engines, taken)
    if not taken.takers:
        say_error(f"{source.path}: no query that can be used")
        return ExitCode.REFUSED
    matcher = _Matcher(engines, threads)
    refused = undecided = 0
    for batch in read_batches(messages, source.limits):
        refused_here, undecided_here = _print_batch(matcher, batch)
        refused += refused_here
        undecided += undecided_here
    faults = len(taken.rejected)
    if undecided:
        say(f"undecided: {undecided} pairs of query and message")
    if faults or refused:
        say(f"refused: {faults} queries, {refused} messages")
    return ExitCode.REFUSED if faults or refused or undecided else ExitCode.OK


class _Found(NamedTuple):
    """The result for one message.

    Attributes:
        matches: Ids of queries, sorted.
        undecided: Id of a query -> why nothing is known of it, sorted.
        error: Why the message was refused, if it was.
    """

    matches: list[str]
    undecided: dict[str, PathcastError]
    error: PathcastError | None


class _Matcher:
    """The engines of queries: filter queries in one, what wants results in the other."""

    def __init__(self, engines: SubscriptionEngines, threads: int | None) -> None:
        # A snapshot collects faster than an index that may change.
        index = engines.index
        self._index = index.freeze().matcher(threads=threads) if len(index) else None
        self._registry = engines.registry if len(engines.registry) else None

    def match(self, messages: list[bytes]) -> Iterator[_Found]:
        """Match a batch; one result a message."""
        found = [_Found([], {}, None) for _ in messages]
        if self._index is not None:
            found = [
                _Found(list(result.query_ids), dict(result.verdicts), result.error)
                for result in self._index.match(messages)
            ]
        delivered = None if self._registry is None else self._registry.deliver(messages)
        for row, (matches, undecided, error) in enumerate(found):
            if delivered is None:
                yield _Found(matches, undecided, error)
                continue
            deliveries = delivered.deliveries(row)
            ids = {delivery.subscription_id for delivery in deliveries}
            both = undecided | dict(deliveries.verdicts)
            yield _Found(
                sorted(ids.union(matches)), dict(sorted(both.items())), error or deliveries.error
            )


def _print_batch(matcher: _Matcher, batch: list[InputMessage]) -> tuple[int, int]:
    """Prints a line a message; gives the numbers of refused messages and of verdicts."""
    results = matcher.match([m.content for m in batch if isinstance(m.content, bytes)])
    refused = undecided = 0
    for message in batch:
        content = message.content
        found = next(results) if isinstance(content, bytes) else _Found([], {}, content)
        for query_id, verdict in found.undecided.items():
            say_warning(f"{message.name}: query {query_id}: {verdict}")
        refused += found.error is not None
        undecided += len(found.undecided)
        write_json_line(
            {
                "message": shown(message.name),
                "matches": found.matches,
                "undecided": list(found.undecided),
                "error": None if found.error is None else found.error.to_dict(),
            }
        )
    return refused, undecided
