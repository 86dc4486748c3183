"""`run` of every kind of node: options, settings from a file, a log, an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from pathcast.cli.console import print_settings
from pathcast.cli.exits import ExitCode
from pathcast.cli.log import LogFormat, LogLevel, begin_log, log_start

if TYPE_CHECKING:
    from pathcast.settings import FileSettings

S = TypeVar("S", bound="FileSettings")


Ready = Callable[[str], None]
"""Called with the address of a node as soon as it listens."""


class RunOptions(NamedTuple):
    """Options of a command that runs a node.

    Attributes:
        file: Settings of the node.
        override: Settings that go over those of the file.
        describe: Settings are described, and nothing runs.
        log_format: How the log is written.
        log_level: The least that is logged.
    """

    file: Path | None
    override: list[str] | None
    describe: bool
    log_format: LogFormat
    log_level: LogLevel


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
