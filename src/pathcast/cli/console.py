"""Where commands print: data on standard output, everything else on standard error.

It does not decide what is printed, and it never prints a traceback for an error of the catalogue.
"""

from __future__ import annotations

import asyncio
import functools
import io
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from pathcast.cli.exits import ExitCode, exit_code_for
from pathcast.errors import PathcastError
from pathcast.errors import extra as extra

if TYPE_CHECKING:
    from pathcast.settings import SettingDescription

P = ParamSpec("P")


def notices() -> Console:
    """Standard error, for a person: wrapped by the terminal only, coloured only on one."""
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def answers() -> Console:
    """Standard output for commands whose answer is text to read; plain when piped."""
    return Console(highlight=False, markup=False, soft_wrap=True)


def say(text: str) -> None:
    """One notice to the person who called."""
    notices().print(text)


def print_settings(settings: Iterable[SettingDescription]) -> None:
    """Every key of a file by sections, as `--describe` lists them."""
    out = answers()
    section = ""
    for setting in settings:
        name, _, key = setting.key.partition(".")
        if name != section:
            out.print(f"[{name}]")
            section = name
        out.print(f"  {key}  ({setting.type}; default: {setting.default})")
        out.print(f"      {setting.description}")


def say_error(error: Exception | str) -> None:
    """An error as a sentence; carets under a query keep their place."""
    notices().print(Text.assemble(("error: ", "bold red"), str(error)))


def say_warning(error: Exception | str) -> None:
    """Something that went on without being decided or done."""
    notices().print(Text.assemble(("warning: ", "bold yellow"), str(error)))


def write_json_line(value: object) -> None:
    """One value as one line of JSON (ASCII only, so that any pipe can carry it)."""
    sys.stdout.write(json.dumps(value) + "\n")


def guarded(command: Callable[P, ExitCode | Coroutine[Any, Any, ExitCode]]) -> Callable[P, Any]:
    """A command, which may await, whose errors become a sentence on standard error and a code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # What the output cannot carry (a name of a file that is not UTF-8, Greek on a terminal
            # that has ASCII) is written out, as standard error does it.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            done = command(*args, **kwargs)
            code = done if isinstance(done, ExitCode) else asyncio.run(done)
            sys.stdout.flush()
        except PathcastError as error:
            say_error(error)
            code = exit_code_for(error)
        except KeyboardInterrupt:
            say("interrupted")
            code = ExitCode.INTERRUPTED
        except BrokenPipeError:
            _discard_output()
            code = ExitCode.PIPE_CLOSED
        except OSError as error:
            say_error(f"{error.filename or 'input or output'}: {error.strerror or error}")
            code = ExitCode.REFUSED
        raise typer.Exit(int(code))

    if command.__doc__ is not None:
        # Predicates of a query in an example are no markup.
        run.__doc__ = escape(command.__doc__)
    return run


def _discard_output() -> None:
    """Lets what is still buffered go nowhere, so that the interpreter's last flush succeeds."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
