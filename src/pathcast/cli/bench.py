"""`pathcast bench`: the cost of a user's own queries on their own messages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Final, TypeAlias

import pyarrow as pa
import typer

from pathcast.cli.bench_costs import (
    CostGauge,
    DearestQueries,
    Measured,
    MeasuredQuery,
    QueryClass,
    classified,
    measured,
    pass_of,
)
from pathcast.cli.columns import number, print_table
from pathcast.cli.console import answers, notices, say, say_error, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import MESSAGES_HELP, check_standard_input, read_batches
from pathcast.cli.options import QueryOptions, ThreadsOption
from pathcast.cli.queries import QueriesArgument, QuerySource, announce, read_queries
from pathcast.errors import PathcastError, shown
from pathcast.limits import MIB, Limits
from pathcast.lint import lint
from pathcast.query import compile_subscription
from pathcast.registry import Registry
from pathcast.registry.subscription_engines import SubscriptionEngines, TakenRows

HELD_BYTES_MAX: Final = 64 * MIB
"""Bytes of messages that are held, give or take one batch: every pass needs them again."""

REFUSED_MAX: Final = 5
"""Messages that are refused and named."""

SEARCH_SHARE: Final = 0.7
"""Share of the seconds for the dearest queries in which they are searched; then they are timed."""

Fact: TypeAlias = dict[str, Any]
"""A row of a table, and a line of JSON."""

_REGISTERED: Final = {
    "registered": "queries",
    "rejected": "rejected",
    "seconds": "registered in s",
    "us_per_query": "µs/query",
}
_READ: Final = {
    "read": "messages",
    "bytes": "bytes",
    "refused": "refused",
    "unread": "not read",
}
_PASSES: Final = {
    "pass": "pass",
    "rounds": "rounds",
    "messages_per_second": "messages/s",
    "megabytes_per_second": "MB/s",
    "us_per_message": "µs/message",
    "us_per_message_least": "least",
    "us_per_message_most": "most",
    "matches_per_message": "matches",
    "share_of_reading": "reading",
}
_CLASSES: Final = {
    "class": "class",
    "queries": "queries",
    "us_per_message": "µs/message",
    "steps_per_message": "steps",
    "matches_per_message": "matches",
}
_QUERIES: Final = {
    "id": "query",
    "class": "class",
    "steps_per_message": "steps",
    "us_per_message": "µs/message",
    "undecided": "undecided",
}


def bench(
    queries: QueriesArgument,
    messages: Annotated[list[str], typer.Argument(metavar="MESSAGE...", help=MESSAGES_HELP)],
    options: QueryOptions,
    rounds: Annotated[
        int, typer.Option(min=1, help="Passes over all messages, of which the median counts.")
    ] = 5,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="After so many seconds no table begins another pass; what is missing is told.",
        ),
    ] = 10.0,
    top: Annotated[int, typer.Option(min=1, help="Dearest queries that are shown.")] = 10,
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON for each row, for programs.")
    ] = False,
    threads: ThreadsOption = None,
) -> ExitCode:
    """Measure what queries cost on messages, and name the dearest.

    Three tables: the throughput with all queries; what a message costs with
    the queries of one cost class alone, beyond reading it; and the queries
    that cost most by themselves, with the reason and what lint says of them:

        pathcast bench queries.txt messages/
        pathcast bench pipeline.toml pipeline.toml --top 3 --json

    A query that shared paths answer costs nothing that is its own. The others
    are evaluated one by one: halves of them are measured until single queries
    are left, by the steps that the engine counts (the same steps that
    evaluation_steps_max and message_steps_max bound), which do not depend on
    the machine or its load. Times do: compare those of one run. Of more than
    64 MiB of messages the first are measured.
    """
    check_standard_input(str(queries), *messages)
    source = read_queries(queries, options)
    started = time.perf_counter()
    engines, taken = source.take_up(threads)
    # It builds what registering has left to do, on which the registry goes on.
    engines.registry.freeze()
    registering = time.perf_counter() - started
    announce(engines, taken)
    if not taken.takers:
        say_error(f"{source.path}: no query that can be used")
        return ExitCode.REFUSED
    held = _hold(messages, source.limits)
    if not held.count:
        say_error("no message that can be read")
        return ExitCode.REFUSED
    tables = _Tables(source, engines, held, rounds, seconds, threads, as_json)
    tables.tell_inputs(taken, registering)
    tables.tell_passes()
    evaluated = tables.tell_classes()
    tables.tell_dearest(evaluated, top)
    is_refused = taken.rejected or held.unread or tables.refused or tables.undecided
    return ExitCode.REFUSED if is_refused else ExitCode.OK


@dataclass(frozen=True)
class _HeldMessages:
    """Messages that every pass answers.

    Attributes:
        names: Of those in the batches.
        batches: Columns of bytes.
        bytes: How long they are together.
        unread: How many could not be read.
    """

    names: list[str]
    batches: list[pa.Array]
    bytes: int
    unread: int

    @property
    def count(self) -> int:
        """How many messages there are."""
        return len(self.names)


def _hold(given: Sequence[str], limits: Limits) -> _HeldMessages:
    """The first messages of those that the arguments stand for; says which are not read."""
    names: list[str] = []
    batches: list[pa.Array] = []
    unread = held_bytes = 0
    for batch in read_batches(given, limits):
        if held_bytes >= HELD_BYTES_MAX:
            say(f"measured on the first {len(names):,} messages; the others were not read")
            break
        contents: list[bytes] = []
        for message in batch:
            if isinstance(message.content, PathcastError):
                unread += 1
                say_error(f"{message.name}: {message.content}")
            else:
                names.append(message.name)
                contents.append(message.content)
        if contents:
            batches.append(pa.array(contents, pa.large_binary()))
            held_bytes += sum(map(len, contents))
    return _HeldMessages(names, batches, held_bytes, unread)


class _Tables:
    """The tables of a run, each printed as soon as it is measured.

    An interruption prints what is known of a table.

    Attributes:
        refused: Messages that are refused.
        undecided: Pairs of message and query without a verdict.
    """

    def __init__(
        self,
        source: QuerySource,
        engines: SubscriptionEngines,
        held: _HeldMessages,
        rounds: int,
        seconds: float,
        threads: int | None,
        as_json: bool,
    ) -> None:
        self._source = source
        self._engines = engines
        self._held = held
        self._rounds = rounds
        self._seconds = seconds
        self._threads = threads
        self._as_json = as_json
        self._gauge = CostGauge(source.limits, threads, held.batches, rounds)
        self.refused = self._gauge.nothing.stats.refused
        self.undecided = 0

    def tell_inputs(self, taken: TakenRows, registering: float) -> None:
        """Print the queries that were registered and the messages that were read."""
        self._say_refused()
        registered: Fact = {
            "registered": len(self._engines.queries),
            "rejected": len(taken.rejected),
            "seconds": registering,
            "us_per_query": registering * 1e6 / len(self._source),
        }
        held = self._held
        read: Fact = {
            "read": held.count,
            "bytes": held.bytes,
            "refused": self.refused,
            "unread": held.unread,
        }
        self._print("registration", "registration", _REGISTERED, [registered])
        self._print("messages", "messages", _READ, [read])

    def _say_refused(self) -> None:
        """Names some of the messages that the door refuses."""
        if not self.refused:
            return
        none = Registry(self._source.limits, threads=self._threads)
        errors = (error for batch in self._held.batches for error in none.match(batch).errors)
        named = zip(self._held.names, errors, strict=True)
        for name, error in islice((pair for pair in named if pair[1].is_valid), REFUSED_MAX):
            say_error(f"{shown(name)}: {error.as_py()['message']}")
        if self.refused > REFUSED_MAX:
            say_error(f"and {self.refused - REFUSED_MAX:,} more messages are refused")

    def tell_passes(self) -> None:
        """Throughput with no query and with all of them."""
        facts: list[Fact] = []
        deadline = time.perf_counter() + self._seconds
        registry = self._engines.registry
        is_delivered = any(row.deliver != "ids" for row in self._engines.queries.values())
        run = pass_of(self._held.batches, registry, is_delivered=is_delivered)
        with self._table("throughput", "pass", _PASSES, facts):
            nothing = self._gauge.nothing
            facts.append(self._pass("no query", nothing))
            cold = measured(run)
            self.undecided = cold.stats.verdicts
            facts.append(self._pass("cold", cold))
            warm = measured(run, self._rounds, deadline)
            share = min(1.0, nothing.least / warm.least)
            facts.append({**self._pass("warm", warm), "share_of_reading": share})
        if self.undecided:
            say(f"undecided: {self.undecided:,} pairs of query and message")

    def _pass(self, name: str, found: Measured) -> Fact:
        count = self._held.count
        return {
            "pass": name,
            "rounds": len(found.seconds),
            "messages_per_second": count / found.median,
            "megabytes_per_second": self._held.bytes / found.median / 1e6,
            "us_per_message": found.median * 1e6 / count,
            "us_per_message_least": found.least * 1e6 / count,
            "us_per_message_most": max(found.seconds) * 1e6 / count,
            "matches_per_message": found.stats.matches / count,
        }

    def tell_classes(self) -> list[tuple[list[MeasuredQuery], int]]:
        """Print the cost of each class of queries, measured alone.

        Returns:
            The queries that are evaluated one by one, by class, and the steps that they take.
        """
        facts: list[Fact] = []
        dear: list[tuple[list[MeasuredQuery], int]] = []
        deadline = time.perf_counter() + self._seconds
        title = "cost by class, beyond reading the message"
        with self._table(title, "class", _CLASSES, facts):
            by_class: dict[QueryClass, list[MeasuredQuery]] = {each: [] for each in QueryClass}
            for query in classified(self._engines):
                by_class[query.query_class].append(query)
            for query_class, queries in by_class.items():
                if not queries:
                    continue
                cost, steps = self._cost(queries, deadline)
                facts.append({"class": query_class.value, "queries": len(queries), **cost})
                if not query_class.is_shared:
                    dear.append((queries, steps))
        return dear

    def _cost(self, queries: Sequence[MeasuredQuery], deadline: float) -> tuple[Fact, int]:
        """Measure queries alone: their time, and their steps on all messages."""
        run, count = self._gauge.pass_of(queries), self._held.count
        stats = measured(run).stats
        steps = self._gauge.steps_of(stats)
        spent = self._gauge.beyond_reading(run, self._rounds, deadline)
        return {
            "us_per_message": None if spent is None else spent * 1e6 / count,
            "steps_per_message": steps / count,
            "matches_per_message": stats.matches / count,
            "undecided": stats.verdicts,
        }, steps

    def tell_dearest(self, dear: list[tuple[list[MeasuredQuery], int]], top: int) -> None:
        """The queries that cost most by themselves, and why."""
        gauge, now = self._gauge, time.perf_counter()
        search = DearestQueries(
            lambda queries: gauge.steps_of(measured(gauge.pass_of(queries)).stats), top
        )
        for queries, steps in dear:
            search.add(queries, steps)
        costs: dict[str, Fact] = {}
        try:
            with _progress("searching the dearest queries"):
                search.run(now + SEARCH_SHARE * self._seconds)
                for _, query in search.found:
                    if time.perf_counter() >= now + self._seconds:
                        break
                    costs[query.row.id] = self._cost([query], now + self._seconds)[0]
        finally:
            self._print_dearest(
                [self._query(steps, query, costs) for steps, query in search.found],
                *search.unreached,
                evaluated=sum(len(queries) for queries, _ in dear),
            )

    def _query(self, steps: int, query: MeasuredQuery, costs: Mapping[str, Fact]) -> Fact:
        row = query.row
        findings = lint(row, namespaces=self._source.namespaces).findings
        advice = [
            f"{each.code}: {each.message}" + ("" if each.fix is None else f"; {each.fix}")
            for each in findings
        ]
        reasons = compile_subscription(row.query, row.namespaces, row.deliver, row.language).reasons
        return {
            "id": row.id,
            "class": query.query_class.value,
            "steps_per_message": steps / self._held.count,
            # None where there was no time to measure it, or where it is lost in the noise.
            **{name: costs.get(row.id, {}).get(name) for name in ("us_per_message", "undecided")},
            "query": row.query,
            "steps": list(row.steps),
            "reasons": list(map(str, reasons)),
            "advice": advice,
        }

    def _print_dearest(
        self, facts: list[Fact], queries: int, steps: int, *, evaluated: int
    ) -> None:
        """Prints the queries that were found, and how many of the evaluated were not reached."""
        if facts:
            self._print("dearest queries, each by itself", "query", _QUERIES, facts)
        left = steps / self._held.count
        if self._as_json:
            if queries:
                counts = {"queries": queries, "steps_per_message": left}
                write_json_line({"fact": "not reached", **counts})
            return
        out = answers()
        for fact in facts:
            out.print(f"{shown(fact['id'])}: {shown(' '.join(fact['query'].split()))}")
            advice = "\n".join(fact["advice"])
            reasons = [reason for reason in fact["reasons"] if reason not in advice]
            for line in (*reasons, *fact["advice"]):
                out.print(f"  {shown(line)}")
        if queries:
            out.print(
                f"not reached: {queries:,} queries, which together take {number(left)} steps a "
                "message; --seconds gives more time"
            )
        elif not facts and evaluated:
            out.print(
                f"dearest queries: of those here, {evaluated:,} may be evaluated by itself, and "
                "took no step on these messages"
            )
        elif not facts:
            out.print("dearest queries: none is evaluated by itself; shared paths answer them all")

    @contextmanager
    def _table(
        self, title: str, fact: str, columns: Mapping[str, str], facts: list[Fact]
    ) -> Iterator[None]:
        """Says what is measured inside; prints the facts then, or those there are at Ctrl-C."""
        try:
            with _progress(title):
                yield
        finally:
            if facts:
                self._print(title, fact, columns, facts)

    def _print(
        self, title: str, fact: str, columns: Mapping[str, str], facts: Sequence[Fact]
    ) -> None:
        if self._as_json:
            for each in facts:
                write_json_line({"fact": fact, **each})
            return
        cells = [[_cell(name, each.get(name)) for name in columns] for each in facts]
        print_table(title, columns.values(), cells)
        answers().print()


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0%}" if name.startswith("share") else number(value)
    return f"{value:,}" if isinstance(value, int) else shown(str(value))


@contextmanager
def _progress(text: str) -> Iterator[None]:
    """Says on a terminal what is going on; seldom, since it takes time of what is measured."""
    console = notices()
    if not console.is_terminal:
        yield
        return
    with console.status(text, refresh_per_second=2):
        yield
