"""Demonstrations: deployments as processes on this machine, compared with one process.

`pathcast-lab demo net`, `registry` and `ring` run them; their input is generated. A demonstration
says what was lost, doubled or foreign, and ends with 1 if anything was. They measure nothing:
all processes share the cores of one machine.
"""

from __future__ import annotations

import typer

from pathcast.cli.console import guarded
from pathcast.cli.exits import EXIT_CODES_HELP


def build_demos() -> typer.Typer:
    """The commands of the demonstrations."""
    from pathcast_lab.demos import net, registry, ring

    app = typer.Typer(
        help="Show networks and rings of processes, compared with one process.",
        no_args_is_help=True,
    )
    for name, module in {"net": net, "registry": registry, "ring": ring}.items():
        app.command(name, epilog=EXIT_CODES_HELP)(guarded(module.demo))
    return app
