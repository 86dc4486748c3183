"""`pathcast replay`: micro-batches that are done, answered or published again."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from pathcast.cli.console import answers, extra, say, write_json_line
from pathcast.cli.exits import EXIT_CODES_HELP, ExitCode
from pathcast.cli.options import OverrideOption
from pathcast.errors import ConfigError

REPLAY_EPILOG: Final = (
    "Example: pathcast replay pipeline.toml --from 2026-03-01 --to 2026-03-02T12:00 "
    "--subscription cheap --output backfill answers what came in these hours for one subscription. "
    + EXIT_CODES_HELP
)

_PIPELINE = typer.Argument(metavar="PIPELINE.toml", exists=True, dir_okay=False)
_BOUND = "a number of a micro-batch (batch_id), or a time, UTC unless it says otherwise"


def replay(
    pipeline: Annotated[Path, _PIPELINE],
    first: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="BATCH|TIME",
            help=f"The first: {_BOUND}, for those begun from then on. Default: from the beginning.",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="BATCH|TIME",
            help="The last, included, likewise. Default: to the end.",
            show_default=False,
        ),
    ] = None,
    subscription: Annotated[
        list[str] | None,
        typer.Option(
            "--subscription",
            metavar="ID",
            help="Only subscriptions with this id. Repeatable. Default: all of today.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="PLACE",
            help="Backfill: a new directory or URL, which gets what a run would write.",
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Redelivery: what the commits say is written to the topics of the pipeline again.",
        ),
    ] = False,
    skip_missing: Annotated[
        bool,
        typer.Option("--skip-missing", help="Leave out files that are gone or have changed since."),
    ] = False,
    overrides: OverrideOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one line of JSON.")
    ] = False,
) -> ExitCode:
    """Answer micro-batches again into another output, or publish them again.

    With --output, the messages of these micro-batches are answered with the
    subscriptions of today, or with those that are named, into an output of
    its own, which pathcast inbox and every other reader takes. Files have to
    be there as they were, and offsets of Kafka still be kept: what is not is
    named, and nothing is done unless --skip-missing leaves it out. Killed or
    stopped, the same command goes on where it was.

    With --again, no message is read: the rows that were written are records
    of the topics once more.

    Deliveries have the ids that they had, so a consumer that knows ids drops
    what it has had.
    """
    if again == (output is not None):
        reason = "is given, or --again, and not both: the first answers messages, the second none"
        raise ConfigError("config.invalid", key="--output", reason=reason)
    if again and skip_missing:
        reason = "is for --output, which reads files of the source"
        raise ConfigError("config.invalid", key="--skip-missing", reason=reason)
    with extra("spark", "pathcast replay"):
        import_module("pathcast.spark.session")
        from pathcast.spark import (
            backfill,
            batches_between,
            hidden_lost_connections,
            load_settings,
            redeliver,
        )
        from pathcast.spark.progress import progress_on
    settings = load_settings(pipeline, overrides or [])
    chosen = batches_between(settings, first, last)
    say(f"micro-batches {chosen[0]:,} to {chosen[-1]:,} of {settings.output.storage}")
    progress, only = progress_on(Console(stderr=True)), subscription or ()
    with hidden_lost_connections():
        if output is None:
            done = redeliver(settings, chosen, only=only, progress=progress)
            if as_json:
                write_json_line({"batches": done})
            else:
                answers().print(f"{done:,} micro-batches are written to the topics again")
            return ExitCode.OK if done == len(chosen) else ExitCode.INTERRUPTED
        summary = backfill(
            settings, chosen, output, only=only, skip_missing=skip_missing, progress=progress
        )
    if as_json:
        write_json_line(summary.to_dict())
    else:
        answers().print(summary.to_text())
    return ExitCode.INTERRUPTED if summary.was_stopped else ExitCode.OK
