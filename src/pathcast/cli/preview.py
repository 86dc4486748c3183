"""`pathcast preview`: what a subscription would have delivered of the newest archived messages.

It starts no Spark and changes nothing: it reads files as pipelines do, and answers as they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Final

import typer

from pathcast.cli.asked_query import QueryArgument, SubscribeOptions
from pathcast.cli.console import answers, extra, say_error, say_warning, write_json_line
from pathcast.cli.exits import EXIT_CODES_HELP, ExitCode
from pathcast.cli.messages import InputMessage, in_batches
from pathcast.cli.options import (
    Format,
    FormatOption,
    LimitOption,
    NamespaceOption,
    ThreadsOption,
    read_limits,
    read_namespaces,
)
from pathcast.cli.transform import delivered
from pathcast.errors import PathcastError, UnsupportedQueryError, shown
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.query import CompiledSubscription, CostClass, compile_subscription
from pathcast.registry import Deliveries, Registry

EXAMPLES: Final = 3
"""Messages that are shown with what would be delivered of them."""

TOLD_OF_A_CODE: Final = 3
"""Errors of one code that are told one by one."""

UNREAD: Final = "message.unreadable"
"""Code of the error in the place of a file that could not be read."""

RESULT_WIDTH: Final = 200
"""Characters of a result that are printed."""

PREVIEW_EPILOG: Final = (
    "Example: pathcast preview '//order[total > 100]' --last 5000 archive/ tells how many of the "
    "last 5,000 orders somebody with this subscription would have had. " + EXIT_CODES_HELP
)

SourcesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="XML files, Parquet, Delta tables, archives (.zip, .tar, .tgz, .gz), directories or "
        "URLs of them; the TOML file of a pipeline for what its source has, with its columns, "
        "records and options.",
    ),
]
LastOption = Annotated[
    int,
    typer.Option("--last", metavar="N", min=1, help="Messages, of the files written last."),
]


@dataclass
class PreviewExample:
    """A message that something would have been delivered of.

    Attributes:
        message: Its name.
        place: Of the first node that the query selects; None where it is no XPath.
        results: How many there would have been.
        first: The first, None for a notice or a whole message.
    """

    message: str
    place: str | None
    results: int
    first: str | None


@dataclass
class Preview:
    """The counts of a preview, and its examples.

    Attributes:
        messages: That were looked at.
        matched: Of which something would have been delivered.
        deliveries: Results, messages and notices together.
        undecided: Without an answer within the limits.
        refused: Code of an error -> messages that have it.
        unread: Files and places that could not be read; they are not among the messages.
        examples: The first that matched.
        nearest: Where none matched, why the newest message does not; None where nothing is told.
    """

    messages: int = 0
    matched: int = 0
    deliveries: int = 0
    undecided: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    unread: int = 0
    examples: list[PreviewExample] = field(default_factory=list)
    nearest: str | None = None

    def count_error(self, error: PathcastError) -> int:
        """Counts what is not answered; how many of its code there were before."""
        if error.code == UNREAD:
            self.unread += 1
            return self.unread - 1
        known = self.refused.get(error.code, 0)
        self.messages += 1
        self.refused[error.code] = known + 1
        return known

    @property
    def share(self) -> float:
        """Of the messages that matched; 0 where there are none."""
        return self.matched / self.messages if self.messages else 0.0


def preview(
    query: QueryArgument,
    sources: SourcesArgument,
    options: SubscribeOptions,
    last: LastOption = 1_000,
    threads: ThreadsOption = None,
    namespace: NamespaceOption = None,
    limit: LimitOption = None,
    format_: FormatOption = Format.TEXT,
) -> ExitCode:
    """Say what a subscription would have delivered of the newest archived messages.

    Prints how many of the last N messages it would have been delivered
    something of, three examples with the place or the first result, and its
    cost class with the reason; where none matched, why the newest does not.
    Conditions that never or always hold, and messages that are refused, are
    told on standard error. Without --deliver, a query that gives no nodes is
    previewed as a notice. Nothing is written.

        pathcast preview '//order[total > 100]' archive/2026-03/
        pathcast preview @cheap.xq --last 100000 s3://bucket/messages
        pathcast preview //alert pipeline.toml --namespace cap --format json
    """
    asked = options.read(query)
    namespaces = read_namespaces(namespace)
    try:
        compile_subscription(asked.query, namespaces, asked.deliver, asked.language)
    except UnsupportedQueryError as error:
        if error.code != "subscription.fragment" or options.deliver is not None:
            raise
        asked = asked._replace(deliver="ids")
    limits = read_limits(limit)
    return preview_of(asked, sources, last, limits, namespaces, threads=threads, format_=format_)


def preview_of(
    asked: Subscription,
    sources: Sequence[str],
    last: int,
    limits: Limits,
    namespaces: Mapping[str, str],
    *,
    threads: int | None,
    format_: Format,
) -> ExitCode:
    """Previews a subscription, and prints what was found.

    Args:
        asked: The subscription.
        sources: Where messages are.
        last: How many of them.
        limits: Bounds on a message.
        namespaces: Prefixes, over which those of the subscription go.
        threads: Threads of a batch; None for all processors.
        format_: For people or for programs.

    Raises:
        PathcastError: The subscription is refused.
    """
    with extra("spark", "pathcast preview"):
        from pathcast.cli.message_sources import newest_messages
    registry = Registry(limits, namespaces, threads=threads)
    for warning in registry.add(asked).warnings:
        say_warning(str(warning))
    bound = {**namespaces, **(asked.namespaces or {})}
    compiled = compile_subscription(asked.query, bound, asked.deliver, asked.language)
    found = Preview()
    newest: InputMessage | None = None
    for batch in in_batches(newest_messages(sources, limits, last)):
        for message, answer in delivered(registry, batch):
            if isinstance(answer, PathcastError):
                known = found.count_error(answer)
                if known < TOLD_OF_A_CODE:
                    say_error(f"{message.name}: {answer}")
                continue
            found.messages += 1
            newest = newest or message
            for undone in answer.verdicts.values():
                found.undecided += 1
                if found.undecided <= TOLD_OF_A_CODE:
                    say_warning(f"{message.name}: {undone}")
            found.matched += bool(answer)
            found.deliveries += len(answer)
            if answer and len(found.examples) < EXAMPLES:
                assert isinstance(message.content, bytes)
                found.examples.append(_example(registry, message.name, message.content, answer))
    if newest is not None and not found.matched and not found.undecided:
        explanation = registry.explain(asked.id, newest.content)  # type: ignore[arg-type]
        told = str(explanation) if explanation.is_told else ""
        found.nearest = f"{shown(newest.name)}: {told}" if told else None
    if format_ is Format.JSON:
        reasons = [str(reason) for reason in compiled.reasons]
        facts = {**asdict(found), "share": found.share, "deliver": asked.deliver}
        write_json_line({**facts, "cost": compiled.cost.value, "reasons": reasons})
    else:
        _print(found, compiled, last)
    is_whole = not (found.refused or found.undecided or found.unread)
    return ExitCode.OK if is_whole else ExitCode.REFUSED


def _example(registry: Registry, name: str, content: bytes, answer: Deliveries) -> PreviewExample:
    subscription = answer[0].subscription_id
    steps = registry.explain(subscription, content).steps
    places = steps[-1].nodes if steps else ()
    fragment = answer[0].fragment
    # A whole message says no more than its name.
    is_result = fragment is not None and registry.get(subscription).deliver == "fragment"
    first = fragment.decode(errors="replace") if fragment is not None and is_result else None
    return PreviewExample(shown(name), places[0].path if places else None, len(answer), first)


def _print(found: Preview, compiled: CompiledSubscription, last: int) -> None:
    out = answers()
    fewer = f" (there are no {last:,})" if found.messages < last else ""
    out.print(
        f"{found.matched:,} of the last {found.messages:,} messages{fewer} match, "
        f"{found.share:.1%}, with {found.deliveries:,} deliveries"
    )
    if found.refused:
        codes = ", ".join(f"{code} {count:,}" for code, count in sorted(found.refused.items()))
        out.print(f"refused: {codes}")
    if found.unread:
        out.print(f"not read: {found.unread:,}")
    if found.undecided:
        out.print(f"undecided: {found.undecided:,}")
    reasons = "; ".join(map(str, compiled.reasons))
    out.print(f"cost class: {compiled.cost.value}" + (f" ({reasons})" if reasons else ""))
    if compiled.cost is CostClass.SCAN:
        out.print("it is evaluated for every message; pathcast bench measures what that costs")
    if found.nearest is not None:
        out.print(found.nearest)
    for example in found.examples:
        more = f"  {example.results:,} results" if example.results > 1 else ""
        place = f"  {example.place}" if example.place else ""
        out.print(f"{example.message}{place}{more}")
        if example.first is not None:
            text = " ".join(example.first.split())
            is_long = len(text) > RESULT_WIDTH
            out.print(f"  {text[: RESULT_WIDTH - 3] + '...' if is_long else text}")
