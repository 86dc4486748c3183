"""`pathcast explain`: why does a message satisfy a query, or where does it fail?"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.asked_query import QUERY_ID, AskOptions
from pathcast.cli.console import answers, say, say_warning, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.explain_plan import explain_subscription
from pathcast.cli.messages import MESSAGES_HELP, check_standard_input, read_one
from pathcast.cli.options import (
    Format,
    FormatOption,
    LimitOption,
    NamespaceOption,
    read_limits,
    read_namespaces,
)
from pathcast.errors import ConfigError, MessageError, QuerySyntaxError
from pathcast.kernel.message_nodes import (
    DOCUMENT_NODE,
    Context,
    MessageNodes,
    OverBudgetError,
)
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.query import binding
from pathcast.query.xquery import is_xquery, without_comments
from pathcast.registry import Registry


def explain(
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="A standing query, XPath or XQuery, or @FILE for the one in FILE.",
        ),
    ],
    message: Annotated[
        str | None,
        typer.Argument(
            metavar="MESSAGE",
            help=f"One message: {MESSAGES_HELP} FILE!ID is one of several in a file. An XQuery is "
            "explained without one, too.",
            show_default=False,
        ),
    ] = None,
    *,
    options: AskOptions,
    others: Annotated[
        Path | None,
        typer.Option(
            "--with",
            metavar="PATH",
            exists=True,
            help="Other subscriptions, a .xq file or a folder of them: what an XQuery shares with "
            "them is told.",
            show_default=False,
        ),
    ] = None,
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

    Of an XQuery subscription, and of one with steps, it shows the plan: what is looked for together
    with other subscriptions, what only this one needs, and with --with how
    many others share each part; with a message, what is delivered of it.

    A message that does not satisfy the query is an answer, not a failure: the
    exit code is 0.
    """
    check_standard_input(query.removeprefix("@"), str(message))
    limits, namespaces = read_limits(limit), read_namespaces(namespace)
    asked = options.read(query)._replace(deliver="fragment")
    text = asked.query
    content = None if message is None else read_one(message, limits)
    if asked.steps or is_xquery(text, asked.language):
        return explain_subscription(
            asked,
            content,
            others,
            limits=limits,
            namespaces=namespaces,
            format_=format_,
        )
    if content is None:
        raise ConfigError(
            "config.invalid", key="MESSAGE", reason="is missing; an XPath is explained on a message"
        )
    registry = Registry(limits, namespaces, threads=1)
    try:
        report = registry.add(Query(QUERY_ID, without_comments(text), language=asked.language))
    except QuerySyntaxError as error:
        _say_binding(error, content, limits)
        raise
    for warning in report.warnings:
        say_warning(str(warning))
    explanation = registry.explain(QUERY_ID, content)
    if format_ is Format.JSON:
        write_json_line(explanation.to_dict())
    else:
        answers().print(str(explanation))
    has_verdict = explanation.error is None and explanation.bug is None
    return ExitCode.OK if has_verdict else ExitCode.REFUSED


def _say_binding(error: QuerySyntaxError, content: bytes, limits: Limits) -> None:
    """Says what the message binds a prefix to that the query does not bind."""
    if error.code != "XPST0081":
        return
    prefix = str(error.params["prefix"])
    bound = f"string(//namespace::*[local-name()='{prefix}'])"
    uri: object = ""
    # The fault of the query is told, whatever the message is.
    with suppress(MessageError, OverBudgetError):
        uri = MessageNodes(content, limits).value(bound, Context(DOCUMENT_NODE))
    if uri:
        say(f"the message binds it: {binding(prefix, str(uri))}")
