"""The command `pathcast-lab`. Output and exit codes are as those of the command `pathcast`."""

from __future__ import annotations

import typer

from pathcast.cli.console import guarded
from pathcast.cli.exits import EXIT_CODES_HELP
from pathcast_lab.cli.bench import bench
from pathcast_lab.demos import build_demos

__all__ = ["build_app", "main"]


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="pathcast-lab",
        help="Measure Pathcast and the figures of its papers, and show it at work.",
        epilog=EXIT_CODES_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.command("bench", epilog=EXIT_CODES_HELP)(guarded(bench))
    app.add_typer(build_demos(), name="demo")
    app.callback()(_options)
    return app


def main() -> None:
    """Entry point of the console script."""
    build_app()()


def _options() -> None:
    """Measure Pathcast and the figures of its papers, and show it at work."""
