"""`pathcast check`: can every query be registered, of a file or of all that a pipeline reads?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.console import answers, extra, say, say_warning
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import LanguageOption, NamespaceOption, QueryOptions, ValuesOption
from pathcast.cli.queries import QueriesArgument, read_queries, told


def check(
    queries: QueriesArgument,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 1 if there is no query, and of a pipeline if any row is rejected, not "
            "only if subscriptions.rejected_max is exceeded.",
        ),
    ] = False,
    namespace: NamespaceOption = None,
    language: LanguageOption = None,
    values: ValuesOption = None,
) -> ExitCode:
    """Check queries; print every fault with its line, a caret and a suggestion.

    Whatever pathcast run reads can be checked, and is rejected for the same
    reasons. A condition that never or always holds, whatever the message is,
    is warned of on standard error and does not change the exit code. Of a
    pipeline, everything that a run would read is checked, with the
    namespaces and limits of the pipeline; Spark is not started:

        pathcast check queries.txt
        pathcast check pipeline.toml --strict
    """
    source = read_queries(queries, QueryOptions(namespace, language, values))
    engines, taken = source.take_up()
    out = answers()
    for each in taken.rejected:
        out.print(told(each))
    warnings = engines.warnings(taken)
    for warned in warnings:
        say_warning(str(warned))
    rejected = len(taken.rejected)
    if source.has_subscribers:
        kept = sum(each.in_force is not None for each in taken.rejected)
        stay = f", in force as they were last valid: {kept:,}" if kept else ""
        count = f"subscriptions: {len(source):,}, rejected: {rejected:,}{stay}"
    else:
        count = f"queries: {len(source)}, with faults: {rejected}"
    say(count + (f", warnings: {len(warnings):,}" if warnings else ""))
    if queries.suffix == ".toml":
        _check_columns(queries)
    if not taken.takers and not rejected:
        say_warning(f"{source.path}: no query")
    allowed = 0.0 if strict else source.rejected_max
    is_refused = rejected > allowed * len(source) or (strict and not taken.takers)
    return ExitCode.REFUSED if is_refused else ExitCode.OK


def _check_columns(pipeline: Path) -> None:
    """Refuse columns that cannot be passed through."""
    with extra("spark", "pathcast check of a pipeline"):
        from pathcast.spark import load_settings
        from pathcast.spark.sources import check_columns
    settings = load_settings(pipeline)
    check_columns(settings.source, settings.output.format)
