"""The application: which commands there are, and `main`.

The module of a command is imported when the command is called: what one needs, an engine,
generators or connections, the others do not wait for. The list of all commands imports none.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from pathcast.cli.console import guarded
from pathcast.cli.exits import EXIT_CODES_HELP, ExitCode
from pathcast.cli.grouped_options import with_options

Command: TypeAlias = Callable[..., ExitCode | Coroutine[Any, Any, ExitCode]]


class _Place(NamedTuple):
    """Where a command is.

    Attributes:
        module: Of `pathcast.cli`.
        name: In there, of a function.
        summary: The first sentence of its help.
        epilog: Name in there of what its help ends with; None: exit codes.
    """

    module: str
    name: str
    summary: str
    epilog: str | None = None


ENGINE_HELP: Final = (
    "The native kernel answers; PATHCAST_ENGINE=nfa in the environment has its plain NFA answer, "
    "for debugging."
)

ENGINE_ENDED: Final = (
    "--engine has ended: the native kernel answers; leave the option out, or set the environment "
    "variable PATHCAST_ENGINE=nfa to have its plain NFA answer, for debugging"
)

COMMANDS: Final = {
    "match": _Place(
        "match", "match", "Say for each message which of the standing queries it satisfies."
    ),
    "explain": _Place(
        "explain", "explain", "Show why a message satisfies a query, or where it first fails."
    ),
    "check": _Place(
        "check",
        "check",
        "Check queries; print every fault with its line, a caret and a suggestion.",
    ),
    "run": _Place(
        "run",
        "run",
        "Run messages through Spark: matches, dead letters and an inbox per subscriber.",
    ),
    "inbox": _Place(
        "outputs", "inbox", "Print what was delivered to a subscriber, one line of JSON a delivery."
    ),
    "why": _Place("outputs", "why", "Say why a message came to a subscriber, or why it did not."),
    "dlq": _Place(
        "dlq", "dlq", "List the dead letters of a pipeline, and have them taken up again."
    ),
    "top": _Place(
        "top", "top", "Show how a pipeline, broker or peer is doing, again and again.", "TOP_EPILOG"
    ),
    "replay": _Place(
        "replay",
        "replay",
        "Answer micro-batches again into another output, or publish them again.",
        "REPLAY_EPILOG",
    ),
    "demo": _Place(
        "demo",
        "demo",
        "Show the whole way: messages, subscriptions, Spark pipeline, one subscriber's inbox.",
    ),
    "doctor": _Place(
        "doctor", "doctor", "Say what is installed, what is missing and how to get it."
    ),
    "transform": _Place(
        "transform",
        "transform",
        "Print what a subscriber with this query would get of each message.",
        "TRANSFORM_EPILOG",
    ),
    "preview": _Place(
        "preview",
        "preview",
        "Say what a subscription would have delivered of the newest archived messages.",
        "PREVIEW_EPILOG",
    ),
    "bench": _Place(
        "bench", "bench", "Measure what queries cost on messages, and name the dearest."
    ),
    "test": _Place(
        "suite_command",
        "run_suites",
        "Run cases of query, message and what has to be delivered.",
        "TEST_EPILOG",
    ),
    "lint": _Place(
        "lint",
        "lint_queries",
        "Find what is likely wrong with queries, before a message is missed.",
        "LINT_EPILOG",
    ),
}

GROUPS: Final = {
    "generate": "Generate documents, queries or subscriptions; the same seed gives the same bytes.",
    "chunk": "Cut messages of any size by what queries ask for; answer them piece by piece.",
    "sub": "Subscriptions in a profile database, which pipelines read.",
    "broker": "One broker of a network.",
    "net": "A network of brokers, on this machine or elsewhere.",
    "registry": "The registration service of a network.",
    "peer": "Peers that hold one automaton together.",
}
"""Name of a group, and of the module that has its `COMMANDS` -> its help."""


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

    def format_help(self, ctx: Any, formatter: Any) -> None:
        summaries = {name: place.summary for name, place in COMMANDS.items()} | GROUPS
        self.commands = {
            name: TyperCommand(name, help=summary) for name, summary in summaries.items()
        }
        super().format_help(ctx, formatter)


class _Command(TyperCommand):
    """A command that says of an option which has ended what to do instead."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        asked = args[: args.index("--")] if "--" in args else args
        if any(each == "--engine" or each.startswith("--engine=") for each in asked):
            ctx.fail(ENGINE_ENDED)
        return super().parse_args(ctx, args)


def group(help: str, commands: Mapping[str, Command]) -> typer.Typer:
    """A group of commands."""
    app = typer.Typer(help=help, no_args_is_help=True, epilog=EXIT_CODES_HELP)
    for name, command in commands.items():
        app.command(name, epilog=EXIT_CODES_HELP)(guarded(with_options(command)))
    return app


def _made(name: str) -> Any:
    if name in GROUPS:
        module = importlib.import_module(f"pathcast.cli.{name}")
        made: Any = typer.main.get_group(group(GROUPS[name], module.COMMANDS))
    else:
        place = COMMANDS[name]
        module = importlib.import_module(f"pathcast.cli.{place.module}")
        app = typer.Typer(add_completion=False)
        epilog = EXIT_CODES_HELP if place.epilog is None else escape(getattr(module, place.epilog))
        app.command(name, cls=_Command, epilog=epilog)(
            guarded(with_options(getattr(module, place.name)))
        )
        made = typer.main.get_command(app)
    made.name = name
    return made


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="pathcast",
        cls=_Commands,
        help="Filter XML messages by hundreds of thousands of standing XPath queries.",
        epilog=f"{EXIT_CODES_HELP} {ENGINE_HELP}",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    return app


def main() -> None:
    """Entry point of the console script."""
    from pathcast.spark import MEMORY_ENVIRONMENT

    for name, value in MEMORY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
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
