"""The input of the demonstration: messages of three domains and their subscribers' queries.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_demo(folder, messages=30, queries=60, subscribers=6)
    >>> written.message_count, written.query_count, sorted(written.messages_by_domain)
    (30, 60, ['alerts', 'news', 'payments'])

Only input is written here; nothing is matched.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pathcast.errors import ConfigError
from pathcast.workload.documents import DocumentGenerator, GeneratedMessage
from pathcast.workload.domains import domain_named
from pathcast.workload.packing import (
    write_message_files,
    write_message_parquet,
    write_subscriptions,
)
from pathcast.workload.shaped import ShapedParameters, generate_shaped
from pathcast.workload.subscriptions import (
    GeneratedSubscription,
    SubscriptionParameters,
    generate_subscriptions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoParameters:
    """Parameters of the demonstration's input.

    Attributes:
        messages: Messages of all domains, 0 to 100,000,000.
        queries: Standing queries, 0 to 10,000,000.
        subscribers: Subscribers, 1 to 10,000,000.
        seed: Any whole number; the same seed gives the same files everywhere.
        broken_ratio: Share of messages that are broken on purpose, 0 to 1.
        shaped: Share of the queries that are FLWR expressions, 0 to 1; where there are any, the
            file has a column `deliver`, and the other queries ask for a notice.
        packing: "files" writes `messages/ID.xml`, "parquet" writes `messages/messages.parquet`.
        domains: Which domains, in turn.
    """

    messages: int = 3_000
    queries: int = 10_000
    subscribers: int = 1_000
    seed: int = 0
    broken_ratio: float = 0.02
    shaped: float = 0.0
    packing: Literal["files", "parquet"] = "files"
    domains: tuple[str, ...] = ("alerts", "news", "payments")

    def __post_init__(self) -> None:
        if self.packing not in ("files", "parquet"):
            raise ConfigError(
                "config.invalid",
                key="packing",
                reason=f'{self.packing!r} is not "files" or "parquet"',
            )
        if not 0 <= self.shaped <= 1:
            raise ConfigError(
                "config.invalid", key="shaped", reason=f"{self.shaped!r} is not between 0 and 1"
            )
        if not isinstance(self.messages, int) or not 0 <= self.messages <= 100_000_000:
            raise ConfigError(
                "config.invalid",
                key="messages",
                reason=f"{self.messages!r} is not a whole number from 0 to 100000000",
            )
        self.subscriptions()

    def subscriptions(self) -> SubscriptionParameters:
        """The part of it that concerns subscriptions."""
        return SubscriptionParameters(
            queries=self.queries - self.shaped_queries,
            subscribers=self.subscribers,
            seed=self.seed,
            domains=self.domains,
        )

    @property
    def shaped_queries(self) -> int:
        """How many of the queries are FLWR expressions."""
        return round(self.queries * self.shaped)

    def rows(self) -> Iterator[GeneratedSubscription]:
        """All subscriptions."""
        yield from generate_subscriptions(self.subscriptions())
        yield from generate_shaped(
            ShapedParameters(
                queries=self.shaped_queries,
                subscribers=self.subscribers,
                seed=self.seed,
                domains=self.domains,
            )
        )


@dataclass(frozen=True, slots=True)
class DemoInput:
    """The files that were written.

    Attributes:
        directory: Where.
        messages: Directory of the messages.
        subscriptions: TSV file of the subscriptions.
        message_count: Messages.
        bytes: Bytes of all messages.
        messages_by_domain: Domain -> number of messages.
        faults: Kind of fault -> number of messages broken so on purpose.
        query_count: Standing queries.
        distinct_query_count: Different texts among them.
        subscriber_count: Subscribers that have a query.
    """

    directory: Path
    messages: Path
    subscriptions: Path
    message_count: int
    bytes: int
    messages_by_domain: Mapping[str, int]
    faults: Mapping[str, int]
    query_count: int
    distinct_query_count: int
    subscriber_count: int


def write_demo(
    directory: str | os.PathLike[str],
    *,
    messages: int = 3_000,
    queries: int = 10_000,
    subscribers: int = 1_000,
    seed: int = 0,
    broken_ratio: float = 0.02,
    shaped: float = 0.0,
    packing: Literal["files", "parquet"] = "files",
) -> DemoInput:
    """Writes messages and subscriptions.

    Args:
        directory: Gets `messages/` and `subscriptions.tsv`; made if it is not there. Files of the
            same names are replaced, others stay.
        messages: As in `DemoParameters`, like those below.
        queries: Standing queries.
        subscribers: Subscribers.
        seed: Any whole number.
        broken_ratio: Share of messages that are broken on purpose.
        shaped: Share of the queries that are FLWR expressions.
        packing: One file a message, or one Parquet file.

    Raises:
        ConfigError: A value is out of range.
        MissingDependencyError: lxml is not installed.

    Cost: About 1 ms a message and 10 µs a query.
    """
    parameters = DemoParameters(
        messages=messages,
        queries=queries,
        subscribers=subscribers,
        seed=seed,
        broken_ratio=broken_ratio,
        shaped=shaped,
        packing=packing,
    )
    folder = Path(directory)
    tally = _Tally()
    made = tally.count_messages(demo_messages(parameters))
    if packing == "files":
        write_message_files(made, folder / "messages")
    else:
        write_message_parquet(made, folder / "messages" / "messages.parquet")
    rows = tally.count_queries(parameters.rows())
    write = _write_with_modes if shaped else write_subscriptions
    subscriptions = write(rows, folder / "subscriptions.tsv")
    return DemoInput(
        directory=folder,
        messages=folder / "messages",
        subscriptions=subscriptions,
        message_count=sum(tally.domains.values()),
        bytes=tally.bytes,
        messages_by_domain=dict(sorted(tally.domains.items())),
        faults=dict(sorted(tally.faults.items())),
        query_count=tally.queries,
        distinct_query_count=len(tally.texts),
        subscriber_count=len(tally.subscribers),
    )


def demo_messages(parameters: DemoParameters) -> Iterator[GeneratedMessage]:
    """The messages, the domains in turn; an id begins with its domain's name."""
    generators: list[DocumentGenerator] = []
    for name in parameters.domains:
        domain = domain_named(name)
        documents = domain.documents(parameters.messages, parameters.seed, parameters.broken_ratio)
        generators.append(
            DocumentGenerator(domain.graph(), documents, domain.values(), prefix=name)
        )
    for number in range(parameters.messages):
        turn, place = divmod(number, len(generators))
        yield generators[place].generate(turn)


def _write_with_modes(rows: Iterator[GeneratedSubscription], path: Path) -> Path:
    """Subscriptions with a column that says what is delivered: results of FLWR expressions."""
    lines = ["subscriber\tquery_id\tquery\tdeliver"]
    for row in rows:
        is_shaped = row.query_id.startswith("f")
        lines.append("\t".join((*row, "fragment" if is_shaped else "ids")))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@dataclass
class _Tally:
    """Counts what passes by."""

    domains: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    queries: int = 0
    texts: set[str] = field(default_factory=set)
    subscribers: set[str] = field(default_factory=set)

    def count_messages(self, messages: Iterator[GeneratedMessage]) -> Iterator[GeneratedMessage]:
        for message in messages:
            self.domains[message.id.rpartition("-")[0]] += 1
            self.bytes += len(message.message)
            if message.fault is not None:
                self.faults[message.fault.value] += 1
            yield message

    def count_queries(
        self, rows: Iterator[GeneratedSubscription]
    ) -> Iterator[GeneratedSubscription]:
        for row in rows:
            self.queries += 1
            self.texts.add(row.query)
            self.subscribers.add(row.subscriber)
            yield row
