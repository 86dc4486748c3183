"""`pathcast check`: can every query be registered, of a file or of all that a pipeline reads?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.console import answers, extra, say
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import Engine, EngineOption, NamespaceOption, engine_name, read_namespaces
from pathcast.cli.query_file import read_query_file, register_lines
from pathcast.engine import QueryIndex


def check(
    queries: Annotated[
        Path,
        typer.Argument(
            metavar="QUERIES",
            exists=True,
            dir_okay=False,
            help="One query a line, or id<TAB>query; or the TOML file of a pipeline.",
        ),
    ],
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Of a pipeline: exit with 1 if any row is rejected, not only if "
            "subscriptions.rejected_max is exceeded.",
        ),
    ] = False,
    engine: EngineOption = None,
    namespace: NamespaceOption = None,
) -> ExitCode:
    """Check queries; print every fault with its line, a caret and a suggestion.

    Of a pipeline, everything that pathcast run would read is checked (TSV,
    CSV, Parquet, .xq files, folders) with the namespaces of the pipeline, and
    Spark is not started:

        pathcast check pipeline.toml --strict
    """
    if queries.suffix == ".toml":
        return _check_pipeline(queries, engine, strict=strict)
    found = read_query_file(queries)
    index = QueryIndex(engine=engine_name(engine), namespaces=read_namespaces(namespace))
    faults = register_lines(index.register, found)
    out = answers()
    for fault in faults:
        out.print(f"{queries}:{fault.line}: {fault.error}")
    say(f"queries: {len(found)}, with faults: {len(faults)}")
    return ExitCode.REFUSED if faults else ExitCode.OK


def _check_pipeline(pipeline: Path, engine: Engine | None, *, strict: bool) -> ExitCode:
    """Checks the subscriptions of a pipeline as a run would take them up."""
    with extra("spark", "pathcast check of a pipeline"):
        from pathcast.spark.book import SubscriptionBook
        from pathcast.spark.settings import load_settings
    settings = load_settings(pipeline)
    wanted = settings.subscriptions
    book = SubscriptionBook(
        wanted.path,
        settings.output.storage,
        deliver=wanted.deliver,
        engine=engine_name(engine) or settings.engine.engine,
        namespaces=wanted.namespaces,
    )
    count, rejected = book.check()
    out = answers()
    for row in rejected:
        out.print(f"{row.place or wanted.path}: {row.query_id}: {row.reason}")
    say(f"subscriptions: {count + len(rejected):,}, rejected: {len(rejected):,}")
    allowed = 0.0 if strict else wanted.rejected_max
    is_over = len(rejected) > allowed * (count + len(rejected))
    return ExitCode.REFUSED if is_over else ExitCode.OK
