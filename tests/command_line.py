"""The command line in the process of a test."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from pathcast.cli.app import build_app


def run_command(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """Runs a command; an exception that is not how commands end is raised."""
    result = CliRunner().invoke(build_app(), [str(a) for a in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
