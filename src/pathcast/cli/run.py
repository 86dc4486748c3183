"""`pathcast run`: a pipeline that a TOML file describes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pathcast.cli.console import answers, extra, print_settings, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import DescribeOption, OverrideOption
from pathcast.errors import ConfigError


def run(
    pipeline: Annotated[
        Path | None,
        typer.Argument(metavar="PIPELINE.toml", exists=True, dir_okay=False, show_default=False),
    ] = None,
    overrides: OverrideOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one line of JSON.")
    ] = False,
    describe: DescribeOption = False,
) -> ExitCode:
    """Run messages through Spark: matches, dead letters and an inbox per subscriber.

    Refused messages are a result of a pipeline (its dead letters), so they do
    not change the exit code; a batch that could read none of its files, or
    not list a folder of its source, ends with 1. Ctrl-C and SIGTERM stop
    after the current micro-batch; the next run goes on from there. A stream
    that SIGTERM has stopped ends with 0.
    """
    if describe:
        from pathcast.spark.settings import describe_settings

        print_settings(describe_settings())
        return ExitCode.OK
    if pipeline is None:
        raise ConfigError("config.invalid", key="PIPELINE.toml", reason="is missing")
    with extra("spark", "pathcast run"):
        # What a run begins with is asked for before anything of the pipeline is read.
        import_module("pathcast.spark.session")
        from pathcast.spark import hidden_lost_connections, load_settings
        from pathcast.spark import run as run_pipeline
        from pathcast.spark.progress import progress_on
    settings = load_settings(pipeline, overrides or [])
    with hidden_lost_connections():
        summary = run_pipeline(settings, progress=progress_on(Console(stderr=True)))
    if as_json:
        write_json_line(summary.to_dict())
    else:
        answers().print(summary.to_text())
    if settings.mode.kind == "batch" and (summary.unlisted or summary.has_read_nothing):
        return ExitCode.REFUSED  # what lies there waits for a run that can list or read it
    # SIGTERM is how a service ends that has no other end; a batch has one, and is not there yet.
    is_service = settings.mode.kind == "stream" and summary.stopped_by == "SIGTERM"
    return ExitCode.INTERRUPTED if summary.was_stopped and not is_service else ExitCode.OK
