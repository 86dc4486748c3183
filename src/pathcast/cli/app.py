"""The application: which commands there are, and `main`."""

from __future__ import annotations

from typing import Annotated

import typer

from pathcast.cli.bench import bench
from pathcast.cli.broker import build_broker
from pathcast.cli.check import check
from pathcast.cli.console import guarded
from pathcast.cli.demo import demo
from pathcast.cli.dlq import dlq
from pathcast.cli.doctor import distribution_version, doctor
from pathcast.cli.exits import EXIT_CODES_HELP, ExitCode
from pathcast.cli.explain import explain
from pathcast.cli.generate import build_generate
from pathcast.cli.lint import LINT_EPILOG, lint_queries
from pathcast.cli.match import match
from pathcast.cli.net import build_net
from pathcast.cli.outputs import inbox, why
from pathcast.cli.registry import build_registry
from pathcast.cli.run import run
from pathcast.cli.suite_command import TEST_EPILOG, run_suites
from pathcast.cli.transform import TRANSFORM_EPILOG, transform


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="pathcast",
        help="Filter XML messages by hundreds of thousands of standing XPath queries.",
        epilog=EXIT_CODES_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for command in (match, explain, check, run, inbox, why, dlq, demo, bench, doctor):
        app.command(epilog=EXIT_CODES_HELP)(guarded(command))
    app.command(epilog=TRANSFORM_EPILOG)(guarded(transform))
    app.command("test", epilog=TEST_EPILOG)(guarded(run_suites))
    app.command("lint", epilog=LINT_EPILOG)(guarded(lint_queries))
    app.add_typer(build_generate(), name="generate")
    app.add_typer(build_broker(), name="broker")
    app.add_typer(build_net(), name="net")
    app.add_typer(build_registry(), name="registry")
    return app


def main() -> None:
    """Entry point of the console script."""
    build_app()()


def _print_version(is_asked: bool) -> None:
    if is_asked:
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
