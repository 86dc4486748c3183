"""The deliveries of a batch: Arrow columns, from which objects are made when somebody reads them.

A result that several subscribers get exists once: the column `fragment` is a dictionary array over
the distinct results, and the ids are dictionaries as well.

Example:
    >>> from pathcast import Registry, Subscription
    >>> registry = Registry()
    >>> report = registry.add(Subscription("s1", "desk", "for $b in //b return <c>{$b/@d}</c>"))
    >>> batch = registry.deliver([b"<a><b d='1'/></a>", b"<a"], ["m1", "m2"])
    >>> batch.table.select(["message_id", "subscriber", "fragment"]).to_pylist()
    [{'message_id': 'm1', 'subscriber': 'desk', 'fragment': b'<c d="1"></c>'}]
    >>> batch.errors.column("message_id").to_pylist()
    ['m2']

It builds no results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
import pyarrow as pa

from pathcast.engine import html_table
from pathcast.engine.messages import refused_rows
from pathcast.engine.results import take_ids, works_of
from pathcast.kernel.registry import DeliveryAnswer
from pathcast.model import (
    BatchStats,
    Delivery,
    Recipient,
    StoredDeliveries,
    SubscriptionWork,
)
from pathcast.registry.identity import DIGEST_BYTES, delivery_id, delivery_ids

if TYPE_CHECKING:
    from pathcast.errors import PathcastError
    from pathcast.registry.message_ids import MessageIds

_NAMES = pa.dictionary(pa.int32(), pa.string())
_DIGEST = pa.binary(DIGEST_BYTES)

DELIVERIES_SCHEMA = pa.schema(
    [
        pa.field("delivery_id", _DIGEST, nullable=False),
        pa.field("message_id", _NAMES, nullable=False),
        pa.field("subscription_id", _NAMES, nullable=False),
        pa.field("subscriber", _NAMES, nullable=False),
        pa.field("subscription_version", pa.dictionary(pa.int32(), _DIGEST), nullable=False),
        pa.field("snapshot_version", _NAMES, nullable=False),
        pa.field("result_number", pa.int32(), nullable=False),
        pa.field("fragment", pa.dictionary(pa.int32(), pa.large_binary())),
    ]
)
"""One row a delivery, in the order of messages, then of the numbers of subscriptions (as they came,
until they are frozen or merged), then of results. Ids and versions are the bytes that `Delivery`
shows as hexadecimal digits. `fragment` is null for deliver="ids" and deliver="nodes"."""

NODES_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int32(), nullable=False),
        pa.field("subscription_id", _NAMES, nullable=False),
        pa.field("result_number", pa.int32(), nullable=False),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("node_number", pa.int32(), nullable=False),
        ("start", pa.int32()),
        ("end", pa.int32()),
    ]
)
"""One row a delivery for deliver="nodes": the place of its message in the batch, the subscription
(by number, places in `DeliveryBatch.subscription_ids`), which of its results, and the place of the
node as `pathcast.model.DeliveredNode` says."""

ERRORS_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("message_id", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        ("line", pa.int64()),
        ("column", pa.int64()),
        ("offset", pa.int64()),
    ]
)
"""One row a message that was refused: its place in the batch, its id and why."""

VERDICTS_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("message_id", pa.string(), nullable=False),
        pa.field("subscription_id", pa.string(), nullable=False),
        pa.field("subscriber", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
    ]
)
"""One row a pair of message and subscription that could not be answered, and why."""


class DeliveryBatch:
    """The deliveries of a batch of messages.

    Cost:
        Everything is made when it is first read; columns of numbers are those that the engine has,
        and a version of a subscription is made once. Pickled, it has the distinct results and the
        ids of all messages, without the messages; 1 µs a KB of those whose ids are digests.

    Args:
        answer: Of the engine.
        messages: Their ids.
        version: Of the subscriptions that answered, by `str`.
        errors: Place -> what has to be said in the place of the refusal of the engine.
    """

    def __init__(
        self,
        answer: DeliveryAnswer,
        messages: MessageIds,
        version: object,
        errors: Mapping[int, PathcastError] | None = None,
    ) -> None:
        self._answer = answer
        self._messages = messages
        self._version = version
        self._errors = errors or {}

    def __len__(self) -> int:
        """Number of deliveries."""
        return len(self._answer)

    @property
    def stats(self) -> BatchStats:
        """Counters of the batch."""
        return self._answer.stats

    @cached_property
    def dearest(self) -> Sequence[SubscriptionWork]:
        """The subscriptions that took the most steps by themselves, the dearest first.

        `stats.work` is what all took so. A few hundred at most.

        Example:
            >>> from pathcast import Registry, Subscription
            >>> registry = Registry()
            >>> _ = registry.add(Subscription("s1", "ann", "//b/@n"))
            >>> _ = registry.add(Subscription("s2", "bob", "<n>{count(//b[@n > 1])}</n>"))
            >>> batch = registry.deliver([b"<a><b n='1'/><b n='22'/></a>"] * 100)
            >>> [each.subscription_id for each in batch.dearest]
            ['s2', 's1']
            >>> sum(each.steps for each in batch.dearest) == batch.stats.work
            True
        """
        return works_of(dict(self._answer.work), self._answer.subscription_ids)

    @property
    def snapshot_version(self) -> str:
        """Version of the subscriptions that answered."""
        return str(self._version)

    @cached_property
    def refusals(self) -> Sequence[tuple[int, PathcastError]]:
        """Place in the batch and error of each message that was refused, ascending."""
        return refused_rows(self._answer.refusals, self._errors)

    @property
    def message_ids(self) -> MessageIds:
        """Ids of the messages, by their places."""
        return self._messages

    @cached_property
    def subscription_ids(self) -> Sequence[str]:
        """Ids of the subscriptions that got something, by the places that `numbers` speaks of."""
        return take_ids(self._answer.subscription_ids, self._subscribed[0].to_pylist())

    @property
    def results(self) -> Sequence[tuple[int, str, int, bytes | None]]:
        """The deliveries without ids, subscribers and versions.

        Each is the place of its message, the id of its subscription, the number of the result and
        the result, None for deliver="ids" and deliver="nodes".

        Cost: 0.2 µs each; the cheapest way to read few.
        """
        return self._answer.deliveries(range(len(self)))

    @property
    def numbers(self) -> pa.RecordBatch:
        """The deliveries as numbers, without a text.

        Columns: `row` (place of the message in the batch), `subscription` (place in
        `subscription_ids`), `result_number` and `fragment` (a dictionary).

        Cost: a pass over the deliveries; no ids are made.
        """
        rows = self._answer.rows
        columns = {
            "row": rows.column("message").view(pa.int32()),
            "subscription": self._subscribed[1].view(pa.int32()),
            "result_number": rows.column("result").view(pa.int32()),
            "fragment": self._fragments,
        }
        return pa.RecordBatch.from_pydict(columns)

    @cached_property
    def nodes(self) -> pa.Table:
        """The places of nodes, for deliver="nodes", as rows of `NODES_SCHEMA`.

        Example:
            >>> from pathcast import Registry, Subscription
            >>> registry = Registry()
            >>> _ = registry.add(Subscription("q1", "ann", "//b/@n", deliver="nodes"))
            >>> message = b"<a><b n='1'/><b n='22'/></a>"
            >>> nodes = registry.deliver([message]).nodes
            >>> [message[row["start"] : row["end"]] for row in nodes.to_pylist()]
            [b'1', b'22']

        Cost: a pass over them.
        """
        of, rows = self._answer.nodes, self._answer.rows
        at = of.column("delivery")
        ids = self._recipients.column("subscription_id")
        columns = [
            rows.column("message").view(pa.int32()).take(at),
            pa.DictionaryArray.from_arrays(self._subscribed[1].view(pa.int32()).take(at), ids),
            rows.column("result").view(pa.int32()).take(at),
            of.column("kind"),
            *(of.column(name).view(pa.int32()) for name in ("number", "start", "end")),
        ]
        return pa.table(columns, schema=NODES_SCHEMA)

    @cached_property
    def table(self) -> pa.Table:
        """The deliveries as rows of `DELIVERIES_SCHEMA`, every distinct result once."""
        columns = self.rows.columns
        return pa.table([*columns[:-1], _shared(columns[-1])], schema=DELIVERIES_SCHEMA)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """`table` as a stream, for polars, DuckDB and all that read Arrow."""
        return self.table.__arrow_c_stream__(requested_schema)

    @cached_property
    def rows(self) -> pa.RecordBatch:
        """The rows of `table`; equal results are one value within a message only: a pass less."""
        answered = self._answer.rows
        rows, message_places = _runs(answered.column("message").to_numpy())
        message_ids = self._messages.take(rows.tolist())
        places = self._subscribed[1]
        ids, subscribers, versions = self._recipients.columns
        results = answered.column("result")
        made = delivery_ids(versions, places, message_ids, pa.array(message_places), results)
        distinct_messages, message_numbers = _numbered(message_ids)
        subscribers = subscribers.dictionary_encode()
        places = places.view(pa.int32())
        zeros = pa.array(np.zeros(len(self), dtype=np.int32))
        dictionary = pa.DictionaryArray.from_arrays
        return pa.record_batch(
            [
                made,
                dictionary(message_numbers[message_places], distinct_messages),
                dictionary(places, ids),
                dictionary(subscribers.indices.take(places), subscribers.dictionary),
                dictionary(places, versions),
                dictionary(zeros, pa.array([self.snapshot_version])),
                results.view(pa.int32()),
                self._fragments,
            ],
            schema=DELIVERIES_SCHEMA,
        )

    @cached_property
    def errors(self) -> pa.Table:
        """The messages that were refused, as rows of `ERRORS_SCHEMA`."""
        rows = [
            {"row": row, "message_id": self._messages[row], **error.to_dict()}
            for row, error in self.refusals
        ]
        return pa.Table.from_pylist(rows, ERRORS_SCHEMA)

    @cached_property
    def verdicts(self) -> pa.Table:
        """The pairs of message and subscription without an answer, as rows of `VERDICTS_SCHEMA`."""
        verdicts = self._answer.verdicts
        numbers = pa.array([number for _, number, _ in verdicts], pa.uint32())
        recipients = self._answer.recipients(numbers).to_pylist()
        rows = [
            {
                "row": row,
                "message_id": self._messages[row],
                "subscription_id": recipient["subscription_id"],
                "subscriber": recipient["subscriber"],
                "code": error.code,
                "message": str(error),
            }
            for (row, _, error), recipient in zip(verdicts, recipients, strict=True)
        ]
        return pa.Table.from_pylist(rows, VERDICTS_SCHEMA)

    def deliveries(self, row: int) -> Deliveries:
        """The deliveries of one message.

        Args:
            row: Place of the message in the batch.
        """
        if not 0 <= row < len(self._messages):
            raise IndexError(f"no message {row} in a batch of {len(self._messages)}")
        error = next((error for place, error in self.refusals if place == row), None)
        verdicts = {name: error for place, name, error in self.undecided if place == row}
        return Deliveries(self._answer.places(row), self._delivery, error, verdicts)

    @cached_property
    def undecided(self) -> Sequence[tuple[int, str, PathcastError]]:
        """Place of the message, id of the subscription and error of each verdict."""
        verdicts = self._answer.verdicts
        if not verdicts:
            return ()
        names = take_ids(self._answer.subscription_ids, [number for _, number, _ in verdicts])
        return [(row, name, error) for (row, _, error), name in zip(verdicts, names, strict=True)]

    @cached_property
    def _subscribed(self) -> tuple[pa.Array, pa.Array]:
        """`DeliveryAnswer.subscribed`."""
        return self._answer.subscribed()

    @cached_property
    def _recipients(self) -> pa.RecordBatch:
        """Whom the deliveries go to, by the places of `_subscribed`."""
        return self._answer.recipients(self._subscribed[0])

    @cached_property
    def _fragments(self) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(
            self._answer.rows.column("fragment").view(pa.int32()), self._answer.fragments
        )

    def _delivery(self, place: int) -> Delivery:
        """One delivery as an object."""
        [(row, name, result, fragment)] = self._answer.deliveries(range(place, place + 1))
        to, node = self._answer.recipient(place)
        message, version = self._messages[row], to.version.hex()
        return Delivery(
            delivery_id=delivery_id(version, message, result),
            message_id=message,
            subscription_id=name,
            subscriber=to.subscriber,
            subscription_version=version,
            snapshot_version=self.snapshot_version,
            result_number=result,
            fragment=fragment,
            node=node,
        )

    def __reduce__(self) -> tuple[object, ...]:
        # Tables are made again where they are read.
        answer = self._answer
        others = {number for _, number, _ in answer.verdicts}
        dear = {number for number, _ in answer.work}
        numbers = sorted({*self._subscribed[0].to_pylist(), *others, *dear})
        columns = answer.recipients(pa.array(numbers, pa.uint32())).to_pydict()
        recipients = map(Recipient, columns["subscriber"], columns["version"])
        stored = StoredDeliveries(
            answer.rows,
            answer.nodes,
            answer.fragments,
            self.refusals,
            answer.verdicts,
            answer.stats,
            dict(zip(numbers, columns["subscription_id"], strict=True)),
            dict(zip(numbers, recipients, strict=True)),
            answer.work,
        )
        return DeliveryBatch, (stored, self._messages, self.snapshot_version)

    def __repr__(self) -> str:
        return (
            f"DeliveryBatch({len(self._messages)} messages, {len(self)} deliveries, "
            f"{len(self.refusals)} refused, {len(self._answer.verdicts)} verdicts)"
        )

    def _repr_html_(self) -> str:
        names = ("message_id", "subscription_id", "subscriber", "result_number", "fragment")
        rows = (
            [getattr(delivery, name) for name in names]
            for delivery in map(self._delivery, range(len(self)))
        )
        return html_table(repr(self), names, rows, len(self))


class Deliveries(Sequence[Delivery]):
    """The deliveries of one message.

    Attributes:
        error: Why the message was refused; None where it was not.
        verdicts: Subscription id -> why its results could not be made. Empty as a rule.

    Cost:
        A delivery is made when it is read; the length costs nothing. Pickled and copied with its
        own deliveries only, not those of the batch.
    """

    __slots__ = ("_make", "_places", "error", "verdicts")

    def __init__(
        self,
        places: range,
        make: Callable[[int], Delivery],
        error: PathcastError | None,
        verdicts: Mapping[str, PathcastError],
    ) -> None:
        self._places = places
        self._make = make
        self.error = error
        self.verdicts = verdicts

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Delivery: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Delivery]: ...

    def __getitem__(self, index: int | slice) -> Delivery | Sequence[Delivery]:
        if isinstance(index, slice):
            return Deliveries(self._places[index], self._make, self.error, self.verdicts)
        return self._make(self._places[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:
        return _made_deliveries, (list(self), self.error, self.verdicts)

    def __repr__(self) -> str:
        if self.error is not None:
            return f"Deliveries(error={self.error!r})"
        undecided = f", {len(self.verdicts)} verdicts" if self.verdicts else ""
        return f"Deliveries({len(self)}{undecided})"


def _made_deliveries(
    made: list[Delivery], error: PathcastError | None, verdicts: Mapping[str, PathcastError]
) -> Deliveries:
    return Deliveries(range(len(made)), made.__getitem__, error, verdicts)


def _runs(ascending: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that occur, and for every row its place among them."""
    begins = np.ones(len(ascending), dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=begins[1:])
    places = np.cumsum(begins, dtype=np.uint32)
    return ascending[begins], np.subtract(places, 1, out=places)


def _numbered(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts, and for every text its place among them."""
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(text, len(numbers)) for text in texts]
    return list(numbers), np.array(places, dtype=np.int32)


def _shared(fragments: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same with every distinct result once: engines share within a message only."""
    encoded = fragments.dictionary.dictionary_encode()
    if len(encoded.dictionary) == len(fragments.dictionary):
        return fragments
    return pa.DictionaryArray.from_arrays(
        encoded.indices.take(fragments.indices), encoded.dictionary
    )
