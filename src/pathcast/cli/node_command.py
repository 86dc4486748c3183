"""`run` of every kind of node: options, settings from a file, a log, an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from pathcast.cli.console import print_settings
from pathcast.cli.exits import ExitCode
from pathcast.cli.log import LogFormat, LogLevel, begin_log, log_start
from pathcast.cli.options import DescribeOption, OverrideOption

if TYPE_CHECKING:
    from pathcast.settings import FileSettings

S = TypeVar("S", bound="FileSettings")


Ready = Callable[[str], None]
"""Called with the address of a node as soon as it listens."""


@dataclass(frozen=True)
class RunOptions:
    """Options of a command that runs a node."""

    file: Annotated[
        Path | None, typer.Argument(help="TOML file; --describe lists what it may say.")
    ] = None
    override: OverrideOption = None
    describe: DescribeOption = False
    log_format: Annotated[
        LogFormat,
        typer.Option("--log-format", help="Lines of the log: text for people, json for programs."),
    ] = LogFormat.TEXT
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="What is less than this is not logged.")
    ] = LogLevel.INFO


def run_node(
    model: type[S],
    options: RunOptions,
    name_of: Callable[[S], str],
    run: Callable[[S, Ready, Callable[[], S]], Coroutine[Any, Any, None]],
) -> ExitCode:
    """Run a node until it ends, or describe its settings.

    Args:
        model: The settings of its kind.
        options: Of the command.
        name_of: Gives the name of the node.
        run: Runs it, given its settings, a function to call with its address as soon as it listens,
            and one that reads its settings again.
    """
    from pathcast.settings import described, read_settings
    from pathcast.transport.events import log_event

    file = options.file
    if options.describe:
        print_settings(described(model))
        return ExitCode.OK
    if file is None:
        raise typer.BadParameter("name a file")
    begin_log(options.log_format, options.log_level)

    def read() -> S:
        return read_settings(model, file, options.override or ())

    settings = read()
    name = name_of(settings)
    asyncio.run(run(settings, log_start(name), read))
    log_event("process.ended", name=name)
    return ExitCode.OK
