"""Standing queries as a command is given them: everything that `pathcast run` reads, and more.

- the TOML file of a pipeline: its subscriptions, with its namespaces and limits;
- a table of subscriptions (text or Parquet), a `.xq` file, or a folder of them;
- a file with a query a line (`query_file`), whose queries are nobody's and are delivered as an id.

All of them become rows, which are taken up as those of a run are: what a command takes and rejects
is what a run takes and rejects.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.console import extra, say_error, say_warning
from pathcast.cli.messages import STANDARD_INPUT
from pathcast.cli.options import (
    QueryOptions,
    existing,
    read_language,
    read_limits,
    read_namespaces,
)
from pathcast.cli.query_file import rows_of
from pathcast.limits import Limits
from pathcast.registry import rows_with_values
from pathcast.registry.subscription_engines import LastValid, SubscriptionEngines, TakenRows
from pathcast.registry.subscription_files import SUFFIX
from pathcast.registry.subscription_rows import (
    PARQUET,
    RejectedSubscription,
    SubscriptionRows,
    read_rows,
)

PIPELINE_SUFFIX = ".toml"

QUERIES_HELP = (
    "One query a line, or id<TAB>query; or what pathcast run reads: a table of subscriptions "
    "(.tsv, .csv, .parquet), a .xq file or a folder of them, or the TOML file of a pipeline; - for "
    "standard input."
)

QueriesArgument = Annotated[
    Path, typer.Argument(metavar="QUERIES", callback=existing, help=QUERIES_HELP)
]


@dataclass(frozen=True)
class QuerySource:
    """Queries that were read, and how they are to be taken up.

    Attributes:
        path: The file, folder or database that has them; of a pipeline, what its file names.
        rows: What was read.
        namespaces: Prefixes for all queries.
        limits: What a message may cost.
        has_subscribers: Whether the rows are subscriptions, not queries a line.
        rejected_max: Share of the rows that may be rejected.
        last_valid: Gives what a run answers in place of rows that are not valid any more.
    """

    path: str
    rows: SubscriptionRows
    namespaces: Mapping[str, str]
    limits: Limits
    has_subscribers: bool = True
    rejected_max: float = 0.0
    last_valid: LastValid | None = None

    def __len__(self) -> int:
        """Rows, whatever becomes of them."""
        return len(self.rows.rows) + len(self.rows.rejected)

    def take_up(self, threads: int | None = 1) -> tuple[SubscriptionEngines, TakenRows]:
        """The engines with these queries, and what became of each row; rejections by place.

        Args:
            threads: Threads of one batch; None for all processors.
        """
        engines = SubscriptionEngines(self.limits, self.namespaces, threads)
        taken = engines.take_up(self.rows, self.last_valid)
        taken.rejected.sort(key=_place)
        return engines, taken


def _place(each: RejectedSubscription) -> tuple[str, int]:
    return each.place.path, each.place.line


def read_queries(path: Path, options: QueryOptions) -> QuerySource:
    """The queries at a path.

    Args:
        path: See the module.
        options: Of the command; those that are given go over what a pipeline says.

    Raises:
        ConfigError: An option or a setting cannot be used, or a table cannot be read.
        MissingDependencyError: It is a pipeline, and the extra `spark` is not installed.
        OSError: A file with a query a line cannot be read.
    """
    given = read_namespaces(options.namespace)
    chosen = read_language(options.language)
    if path.suffix == PIPELINE_SUFFIX and path.is_file():
        with extra("spark", "the file of a pipeline"):
            from pathcast.spark import load_settings
            from pathcast.spark.last_valid import last_valid_of
            from pathcast.spark.subscription_places import place_of
        settings = load_settings(path)
        wanted = settings.subscriptions
        given_over = {"language": chosen, "values": options.values}
        wanted = wanted.model_copy(
            update={key: value for key, value in given_over.items() if value is not None}
        )
        with closing(place_of(wanted)) as place:
            name, rows = place.name, place.rows(wanted.deliver)
        return QuerySource(
            name,
            rows,
            {**wanted.namespaces, **given},
            read_limits(options.limit, settings.engine.message_limits()),
            rejected_max=wanted.rejected_max,
            last_valid=last_valid_of(settings),
        )
    if path.is_dir() or path.suffix in (SUFFIX, PARQUET):
        rows, has_subscribers = read_rows(path, "ids", chosen), True
    else:
        rows, has_subscribers = rows_of(read_bytes(path), path, chosen)
    limits = read_limits(options.limit)
    rows = rows_with_values(rows, options.values)
    return QuerySource(str(path), rows, given, limits, has_subscribers)


def read_bytes(path: Path) -> bytes:
    """The content of a file that a command is given, or of a pipe; `-` is standard input.

    Raises:
        OSError: It cannot be read.
    """
    return sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else path.read_bytes()


def announce(engines: SubscriptionEngines, taken: TakenRows) -> None:
    """Says on standard error what was rejected, and what of the others is likely wrong."""
    for each in taken.rejected:
        say_error(told(each))
    for warned in engines.warnings(taken):
        say_warning(str(warned))


def told(each: RejectedSubscription) -> str:
    """A rejection as a line: where, which, why."""
    named = f"{each.row.id}: " if each.row.subscriber and each.row.id else ""
    kept = each.in_force
    stays = "" if kept is None else f"\n  the last valid version stays in force: {kept.query}"
    return f"{each.place}: {named}{each.reason}{stays}"
