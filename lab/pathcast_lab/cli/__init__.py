"""The command `pathcast-lab`. Output and exit codes are as those of the command `pathcast`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import typer

from pathcast.cli.app import Command, group
from pathcast.cli.console import guarded
from pathcast.cli.exits import EXIT_CODES_HELP
from pathcast_lab.cli.bench import bench
from pathcast_lab.demos import net, registry, ring

__all__ = ["build_app", "main"]

DEMOS: Final[Mapping[str, Command]] = {
    "net": net.demo,
    "registry": registry.demo,
    "ring": ring.demo,
}


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
    app.add_typer(
        group("Show networks and rings of processes beside one process.", DEMOS), name="demo"
    )
    app.callback()(_options)
    return app


def main() -> None:
    """Entry point of the console script."""
    build_app()()


def _options() -> None:
    """Measure Pathcast and the figures of its papers, and show it at work."""
