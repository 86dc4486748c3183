"""The application: which commands there are, and `main`.

The module of a command is imported when the command is called, or all are helped with: what one
needs, an engine, generators or connections, the others do not wait for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

from pathcast.cli.console import guarded
from pathcast.cli.exits import EXIT_CODES_HELP, ExitCode


class _Place(NamedTuple):
    """Where a command is.

    Attributes:
        module: Of `pathcast.cli`.
        name: In there: of a function, or of one that builds a group of commands.
        epilog: Name in there of what its help ends with; None: exit codes.
    """

    module: str
    name: str
    epilog: str | None = None


COMMANDS: Final = {
    "match": _Place("match", "match"),
    "explain": _Place("explain", "explain"),
    "check": _Place("check", "check"),
    "run": _Place("run", "run"),
    "inbox": _Place("outputs", "inbox"),
    "why": _Place("outputs", "why"),
    "dlq": _Place("dlq", "dlq"),
    "demo": _Place("demo", "demo"),
    "doctor": _Place("doctor", "doctor"),
    "transform": _Place("transform", "transform", "TRANSFORM_EPILOG"),
    "bench": _Place("bench", "bench"),
    "test": _Place("suite_command", "run_suites", "TEST_EPILOG"),
    "lint": _Place("lint", "lint_queries", "LINT_EPILOG"),
}

GROUPS: Final = {
    "generate": _Place("generate", "build_generate"),
    "broker": _Place("broker", "build_broker"),
    "net": _Place("net", "build_net"),
    "registry": _Place("registry", "build_registry"),
    "peer": _Place("peer", "build_peer"),
}


class _Made(Mapping[str, Any]):
    """Commands by name, each made when somebody asks for it."""

    def __getitem__(self, name: str) -> Any:
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter([*COMMANDS, *GROUPS])

    def __len__(self) -> int:
        return len(COMMANDS) + len(GROUPS)


class _Commands(TyperGroup):
    """The group of all commands; parameters are those of Typer's."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "commands": _Made()})

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


def _made(name: str) -> Any:
    place = COMMANDS.get(name) or GROUPS[name]
    module = importlib.import_module(f"pathcast.cli.{place.module}")
    found: Callable[..., Any] = getattr(module, place.name)
    if name in GROUPS:
        made: Any = typer.main.get_group(found())
    else:
        app = typer.Typer(add_completion=False)
        epilog = EXIT_CODES_HELP if place.epilog is None else getattr(module, place.epilog)
        app.command(name, epilog=epilog)(guarded(found))
        made = typer.main.get_command(app)
    made.name = name
    return made


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="pathcast",
        cls=_Commands,
        help="Filter XML messages by hundreds of thousands of standing XPath queries.",
        epilog=EXIT_CODES_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    return app


def main() -> None:
    """Entry point of the console script."""
    build_app()()


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from pathcast.cli.doctor import distribution_version

        print("pathcast", distribution_version("pathcast"))
        raise typer.Exit(ExitCode.OK)


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Filter XML messages by hundreds of thousands of standing XPath queries."""
