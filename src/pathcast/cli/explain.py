"""`pathcast explain`: why does a message satisfy a query, or where does it fail?"""

from __future__ import annotations

from typing import Annotated

import typer

from pathcast.cli.console import answers, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import read_message
from pathcast.cli.options import (
    EngineOption,
    Format,
    FormatOption,
    LimitOption,
    NamespaceOption,
    engine_name,
    read_limits,
    read_namespaces,
)
from pathcast.engine import QueryIndex
from pathcast.errors import PathcastError
from pathcast.model import Query

QUERY_ID = "query"


def explain(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A standing query.")],
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="An XML file, or - for standard input.")
    ],
    engine: EngineOption = None,
    namespace: NamespaceOption = None,
    limit: LimitOption = None,
    format_: FormatOption = Format.TEXT,
) -> ExitCode:
    """Show why a message satisfies a query, or where it first fails.

    Tells how the query is answered (paths that are indexed; an expression
    that is evaluated on candidates, or on every message, and why), then for
    each step how many nodes it selects and where the first is, and at the
    step that selects nothing what is there instead: the names, the value
    that comes nearest and what the query wants.

    A message that does not satisfy the query is an answer, not a failure: the
    exit code is 0.
    """
    limits = read_limits(limit)
    index = QueryIndex(
        engine=engine_name(engine), limits=limits, namespaces=read_namespaces(namespace)
    )
    report = index.register([Query(QUERY_ID, query)])
    for error in report.rejected.values():
        raise error
    content = read_message(message, bytes_max=limits.message_bytes_max).content
    if isinstance(content, PathcastError):
        raise content
    explanation = index.explain(QUERY_ID, content)
    if format_ is Format.JSON:
        write_json_line(explanation.to_dict())
    else:
        answers().print(str(explanation))
    return ExitCode.OK if explanation.error is None else ExitCode.REFUSED
