"""`pathcast check`: can every query of a file be registered?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.console import answers, say
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import EngineOption, NamespaceOption, engine_name, read_namespaces
from pathcast.cli.query_file import read_query_file, register_lines
from pathcast.engine import QueryIndex


def check(
    queries: Annotated[
        Path,
        typer.Argument(
            metavar="QUERIES",
            exists=True,
            dir_okay=False,
            help="One query a line, or id<TAB>query.",
        ),
    ],
    engine: EngineOption = None,
    namespace: NamespaceOption = None,
) -> ExitCode:
    """Check a file of queries; print every fault with its line, a caret and a suggestion."""
    found = read_query_file(queries)
    index = QueryIndex(engine=engine_name(engine), namespaces=read_namespaces(namespace))
    faults = register_lines(index.register, found)
    out = answers()
    for fault in faults:
        out.print(f"{queries}:{fault.line}: {fault.error}")
    say(f"queries: {len(found)}, with faults: {len(faults)}")
    return ExitCode.REFUSED if faults else ExitCode.OK
