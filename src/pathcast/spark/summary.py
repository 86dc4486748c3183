"""A run of the pipeline in numbers.

The numbers come from the commits of the micro-batches, which are written once for each, so they are
exact however often Spark had to repeat a task.

Example:
    >>> summary = Summary(output="out", messages=2, bytes=4_000_000, matches=3, seconds=2.0)
    >>> summary.megabytes_per_second
    2.0
    >>> print(summary.to_text().splitlines()[0])
    2 messages (4.0 MB) in 2.0 s: 2.0 MB/s, 1 messages/s
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pathcast.spark.ledger import COUNTED

if TYPE_CHECKING:
    from pathcast.spark.ledger import Commit


@dataclass(frozen=True, slots=True)
class Summary:
    """Counters of a run.

    Attributes:
        output: Output directory.
        batches: Micro-batches.
        messages: Messages that arrived.
        bytes: Bytes of these.
        matches: Pairs of message and query.
        deliveries: Rows of the inboxes.
        refused: Error code -> number of messages refused for it.
        undecided: Pairs of message and query that used up their steps, or the message's.
        tombstones: Rows of the source that are no messages.
        skipped: Offsets of Kafka that gave no record, where those that are gone are passed over.
        work: Steps that single queries took (`pathcast.spark.dearest`).
        queries: Standing queries at the end.
        subscriptions: Pairs of subscriber and query at the end.
        subscriptions_kept: Why the earlier subscriptions stayed, where they did to the end.
        rejected_queries: Error code -> number of subscriptions that were not taken up.
        last_valid: How many of these are answered in their last valid versions.
        seconds: Wall-clock time from the first micro-batch to the last.
        start_seconds: Wall-clock time before that: Spark, subscriptions.
        unread: Files that could not be read and wait until they change or are asked for.
        unlisted: Folder that could not be listed at the end -> why. What lies there waits.
        earlier_messages: Messages that earlier runs with this output had done already.
        published: Messages that were published into a network of brokers, or topics.
        was_stopped: Whether the run ended because it was told to.
        stopped_by: The signal that told it, "SIGTERM" or "SIGINT"; empty where it was no signal.
    """

    output: str
    batches: int = 0
    messages: int = 0
    bytes: int = 0
    matches: int = 0
    deliveries: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    undecided: int = 0
    tombstones: int = 0
    skipped: int = 0
    work: int = 0
    queries: int = 0
    subscriptions: int = 0
    subscriptions_kept: str = ""
    rejected_queries: Mapping[str, int] = field(default_factory=dict)
    last_valid: int = 0
    seconds: float = 0.0
    start_seconds: float = 0.0
    unread: int = 0
    unlisted: Mapping[str, str] = field(default_factory=dict)
    earlier_messages: int = 0
    published: int = 0
    was_stopped: bool = False
    stopped_by: str = ""

    def with_commit(self, commit: Commit) -> Summary:
        """This and one more micro-batch."""
        sums = {
            name: getattr(self, name) + getattr(commit, name)
            for name in (*COUNTED, "deliveries", "skipped")
        }
        return replace(
            self,
            batches=self.batches + 1,
            refused=dict(sorted((Counter(self.refused) + Counter(commit.refused)).items())),
            unread=self.unread + len(commit.unread),
            **sums,
        )

    @property
    def has_read_nothing(self) -> bool:
        """Whether files came, and none of them could be read."""
        return self.unread > 0 and not self.messages

    @property
    def has_refused_all(self) -> bool:
        """Whether messages came, and each of them was refused."""
        return 0 < self.messages <= sum(self.refused.values())

    @property
    def megabytes_per_second(self) -> float:
        """Bytes of messages over the time of the micro-batches, in 10^6 bytes a second."""
        return self.bytes / 1e6 / self.seconds if self.seconds else 0.0

    @property
    def messages_per_second(self) -> float:
        """Messages over the time of the micro-batches."""
        return self.messages / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        rates = {
            "megabytes_per_second": round(self.megabytes_per_second, 3),
            "messages_per_second": round(self.messages_per_second, 1),
        }
        return {**asdict(self), **rates}

    def to_json(self) -> str:
        """All numbers on one line."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_text(self) -> str:
        """The summary in plain lines."""
        lines = [self._headline()]
        lines += [f"{label + ':':<18}{value}" for label, value in self._rows()]
        return "\n".join(lines)

    def _headline(self) -> str:
        return (
            f"{self.messages:,} messages ({self.bytes / 1e6:,.1f} MB) in {self.seconds:,.1f} s: "
            f"{self.megabytes_per_second:,.1f} MB/s, {self.messages_per_second:,.0f} messages/s"
        )

    def _rows(self) -> list[tuple[str, str]]:
        refused = sum(self.refused.values())
        rejected = sum(self.rejected_queries.values())
        rows = []
        if self.has_read_nothing:
            rows.append(("nothing was read", "no file of the source could be read"))
        elif self.has_refused_all:
            rows.append(("nothing was taken", "every message is a dead letter"))
        rows += [
            ("standing queries", f"{self.queries:,} for {self.subscriptions:,} subscriptions"),
            ("matches", f"{self.matches:,}"),
            ("deliveries", f"{self.deliveries:,}"),
            ("refused messages", _with_reasons(refused, self.refused)),
            ("rejected queries", _with_reasons(rejected, self.rejected_queries)),
            ("micro-batches", f"{self.batches:,}"),
        ]
        if self.subscriptions_kept:
            rows.append(("earlier queries", f"kept: {self.subscriptions_kept}"))
        if self.last_valid:
            told = "whose rows are not valid stay as they were last valid"
            rows.append(("last valid", f"{self.last_valid:,} subscriptions {told}"))
        if self.published:
            rows.append(("published", f"{self.published:,} messages"))
        if self.undecided:
            rows.append(("undecided", f"{self.undecided:,} pairs of message and query"))
        if self.tombstones:
            rows.append(("tombstones", f"{self.tombstones:,} rows without a message"))
        if self.skipped:
            rows.append(("skipped offsets", f"{self.skipped:,} gave no record"))
        if self.unread:
            rows.append(("unread files", f"{self.unread:,}, not processed: pathcast dlq tells why"))
        for folder, reason in self.unlisted.items():
            rows.append(("unread folder", f"{folder}: {reason}"))
        if self.earlier_messages:
            rows.append(("done before", f"{self.earlier_messages:,} messages by earlier runs"))
        if self.was_stopped:
            told = self.stopped_by or "yes"
            rows.append(("stopped", f"{told}; the next run goes on from here"))
        rows.append(("output", self.output))
        return rows


def _with_reasons(total: int, reasons: Mapping[str, int]) -> str:
    told = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{code} {count:,}" for code, count in told)
    return f"{total:,} ({listed})" if listed else f"{total:,}"
