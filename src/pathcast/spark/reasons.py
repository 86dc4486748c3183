"""Why a message came to a subscriber, or why not: from what the pipeline has written.

The answer is that of the subscriptions which the message's micro-batch was pinned to, not of those
that count today.

Example:
    >>> found = why("delivered", "ann", "7.xml")                            # doctest: +SKIP
    >>> [(reason.subscription_id, reason.verdict) for reason in found.reasons]  # doctest: +SKIP
    [('q-price', 'delivered'), ('q-region', 'not satisfied')]
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import QueryLanguage, Subscription
from pathcast.registry import Registry
from pathcast.spark.files import NO_COLUMNS, shown
from pathcast.spark.generations import Generation
from pathcast.spark.journal import Journal
from pathcast.spark.last_valid import subscriptions_of
from pathcast.spark.ledger import Commit, committed_batches
from pathcast.spark.outputs import KEPT, layout_of, read_output, rejected_of
from pathcast.spark.sources import listing_of, reader_of, units_of
from pathcast.spark.storage import Storage, as_storage

if TYPE_CHECKING:
    from pathcast.spark.settings import PipelineSettings

Verdict: TypeAlias = Literal["delivered", "not satisfied", "not decided"]
Fate: TypeAlias = Literal["answered", "refused", "not read", "not seen"]


@dataclass(frozen=True, slots=True)
class SubscriptionReason:
    """The outcome of one subscription on the message.

    Attributes:
        deliver: What it asks for, "ids" for a notice.
        message: Why there is no answer, where it was not decided.
        explanation: Where the query fails or how it holds; None where the message is not at hand.
        steps: What is done to the message first.
        kept: Why this version, the last valid one, stays in force; None where its row is valid.
        language: That was chosen; None where none was, and of filter queries in XPath 1.0.
    """

    subscription_id: str
    query: str
    deliver: str
    verdict: Verdict
    deliveries: int
    message: str | None = None
    explanation: str | None = None
    steps: tuple[str, ...] = ()
    kept: str | None = None
    language: QueryLanguage | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """The outcome of a message for a subscriber.

    Attributes:
        fate: What became of the message itself.
        told: Why it was refused or not read, in words; None otherwise.
        batch_id: Micro-batch that it was in; None if it was in none.
        snapshot_version: Subscriptions that answered.
        reasons: One for each subscription that the subscriber had then, by id.
        rejected: Rows of the subscriber that were no subscriptions, in words.
    """

    subscriber: str
    message_id: str
    fate: Fate
    told: str | None
    batch_id: int | None
    snapshot_version: str | None
    reasons: tuple[SubscriptionReason, ...]
    rejected: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)

    def to_text(self) -> str:
        """In lines, for a person."""
        lines = [f"message {self.message_id}: {self._fate()}"]
        if self.fate == "answered" and not self.reasons:
            lines.append(f"{self.subscriber} had no subscription then")
        for reason in self.reasons:
            told = f" ({reason.deliveries})" if reason.deliveries > 1 else ""
            lines.append(f"{reason.subscription_id}: {reason.verdict}{told}")
            if reason.kept is not None:
                lines.append(f"  {KEPT}: {reason.kept}")
            lines += [f"  {step}" for step in reason.steps]
            chosen = "" if reason.language is None else f" ({reason.language})"
            lines.append(f"  {reason.query}{chosen}")
            if reason.message is not None:
                lines.append(f"  {reason.message}")
            if reason.explanation is not None:
                lines += [f"  {line}" for line in reason.explanation.splitlines()]
        lines += [f"rejected: {told}" for told in self.rejected]
        return "\n".join(lines)

    def _fate(self) -> str:
        if self.fate == "not seen":
            return "no micro-batch that is complete has had it"
        place = f"in micro-batch {self.batch_id}, subscriptions {self.snapshot_version}"
        return f"{self.fate} {place}" + (f": {self.told}" if self.told else "")


def why(
    output: str | os.PathLike[str] | Storage,
    subscriber: str,
    message_id: str,
    *,
    batch_id: int | None = None,
    content: bytes | None = None,
    limits: Limits | None = None,
) -> Why:
    """Why a message came to a subscriber, or why not.

    Args:
        output: Output of a pipeline.
        subscriber: Who asks.
        message_id: About which message.
        batch_id: The micro-batch that the message was in, where that is known and the output does
            not say (it does where there are matches, or the message was delivered to anybody).
        content: The message, so that what was not satisfied can be explained.
        limits: Bounds on the message.

    Raises:
        ConfigError: The place is no output.

    Cost:
        Message ids have no order in the output: each of its files is looked through.
    """
    storage = as_storage(output)
    layout = layout_of(storage)
    letters = _rows_of(storage, "dead_letters", message_id)
    inboxes = _rows_of(storage, "inboxes", message_id) if layout.inboxes else letters.slice(0, 0)
    known = [inboxes, letters]
    if layout.matches != "none":
        known.append(_rows_of(storage, "matches", message_id))
    places = [table for table in known if len(table)]
    version = None
    if places:
        batch_id, version = (
            places[0].column(n)[0].as_py() for n in ("batch_id", "snapshot_version")
        )
    if batch_id is None:
        unread = _unread(storage, message_id)
        if unread is not None:
            commit, told = unread
            version = commit.snapshot_version
            return Why(subscriber, message_id, "not read", told, commit.batch_id, version, ())
        return Why(subscriber, message_id, "not seen", None, None, None, ())
    if version is None:
        version = Commit.read(storage, batch_id).snapshot_version
    refused = letters.filter(pc.is_null(letters.column("subscription_id")))
    if len(refused):
        told = refused.column("message")[0].as_py()
        return Why(subscriber, message_id, "refused", told, batch_id, version, ())
    taken = subscriptions_of(storage, version, subscriber)
    mine, not_done = (
        [row for row in table.to_pylist() if row["subscriber"] == subscriber]
        for table in (inboxes, letters)
    )
    count = Counter(row["subscription_id"] for row in mine)
    undecided = {row["subscription_id"]: row["message"] for row in not_done}
    rejected = rejected_of(storage, layout, version, subscriber)
    reasons = tuple(
        SubscriptionReason(
            name,
            row.query,
            row.deliver,
            "not decided" if name in undecided else "delivered" if count[name] else "not satisfied",
            count[name],
            undecided.get(name),
            None if content is None else _explained(row, content, limits),
            row.steps,
            next((each.told for each in rejected if each.query_id == name), None),
            row.language,
        )
        for name, row in sorted(taken.items())
    )
    others = tuple(
        f"{each.query_id or each.query}: {each.told}"
        for each in rejected
        if each.query_id not in taken
    )
    return Why(subscriber, message_id, "answered", None, batch_id, version, reasons, others)


def _explained(row: Subscription, content: bytes, limits: Limits | None) -> str | None:
    try:
        found = Registry(limits, threads=1).explain(row, content)
    except PathcastError as error:
        # A query of an earlier version may be refused by this one.
        return str(error)
    return str(found) if found.is_told else None


def subscribers_of(output: str | os.PathLike[str] | Storage) -> list[str] | None:
    """Return the subscribers of the last micro-batch, sorted; None where there was no micro-batch.

    Raises:
        ConfigError: The place is no output.

    Cost: reads the column of subscribers of all subscriptions.
    """
    storage = as_storage(output)
    layout_of(storage)
    batches = committed_batches(storage)
    if not batches:
        return None
    commit = Commit.read(storage, batches[-1])
    with Generation.read(storage, commit.snapshot_version).files(storage) as files:
        found = pc.unique(files.table().subscribers).to_pylist()
    return sorted(set(found) - {None})


def _rows_of(storage: Storage, name: str, message_id: str) -> pa.Table:
    table = read_output(storage, name)  # type: ignore[arg-type]
    return table.filter(pc.equal(table.column("message_id"), message_id))


def _unread(storage: Storage, name: str) -> tuple[Commit, str] | None:
    """The last micro-batch that could not read a file of this name, and why."""
    for batch_id in reversed(committed_batches(storage)):
        commit = Commit.read(storage, batch_id)
        for entry in commit.unread:
            if entry.name == name:
                return commit, entry.message
    return None


def batch_of(settings: PipelineSettings, message_id: str) -> int | None:
    """The last micro-batch of a file that is named as its message; None for other sources."""
    is_named = settings.source.kind == "directory"
    return Journal(settings.checkpoint).last_entry(message_id) if is_named else None


def message_of(settings: PipelineSettings, message_id: str) -> bytes | None:
    """The bytes of a message, if the source still has it.

    Cost: one file where its name is the id; otherwise the source is read from its beginning.
    """
    source = settings.source
    if source.kind == "spark":
        return None
    try:
        files, _ = listing_of(source).look(set())
    except (OSError, PathcastError):
        return None
    if source.kind == "directory":
        files = [file for file in files if file.name == message_id]
    elif source.kind == "archive":
        files = [file for file in files if message_id.startswith(f"{shown(file.name)}!")]
    elif source.kind == "records":
        files = [file for file in files if message_id.rpartition("#")[0] == shown(file.name)]
    reader = reader_of(source, settings.engine.message_limits(), NO_COLUMNS)
    unread: dict[str, PathcastError] = {}
    for file in files:
        for batch, _ in reader.read(units_of(reader, [file], unread), unread):
            place = pc.index(batch.column("message_id"), message_id).as_py()
            if place >= 0:
                content: bytes | None = batch.column("message")[place].as_py()
                return content
    return None
