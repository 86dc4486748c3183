"""The columns of every frame and file that this room writes, and what they hold.

Message ids are strings, whatever the id column of the source was. Query numbers are `int`, since
Spark has no unsigned type; a snapshot holds fewer than 2^31 queries. `query_ids` is sorted by
id, `query_numbers` ascending.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

Ids: TypeAlias = Literal["ids", "numbers"]
"""Whether matches name queries by id, or by number in the snapshot of the row."""

SOURCE = StructType(
    [
        StructField("message_id", StringType(), nullable=True),
        StructField("message", BinaryType(), nullable=True),
        StructField("bytes", LongType(), nullable=False),
        StructField("code", StringType(), nullable=True),
        StructField("reason", StringType(), nullable=True),
    ]
)
"""A message as a source hands it on. `message` is null when it could not be read, and `code` and
`reason` then say why."""

_MESSAGE_ID = StructField("message_id", StringType(), nullable=True)
_VERSION = StructField("snapshot_version", StringType(), nullable=False)
_BYTES = StructField("bytes", LongType(), nullable=False)
_QUERY_IDS = StructField("query_ids", ArrayType(StringType(), containsNull=False), nullable=True)
_QUERY_NUMBERS = StructField(
    "query_numbers", ArrayType(IntegerType(), containsNull=False), nullable=True
)
_UNDECIDED_QUERY = StructType(
    [StructField(name, StringType(), nullable=True) for name in ("query_id", "code", "message")]
)
_UNDECIDED = StructField(
    "undecided", ArrayType(_UNDECIDED_QUERY, containsNull=False), nullable=True
)
_REASON = (
    StructField("code", StringType(), nullable=True),
    StructField("message", StringType(), nullable=True),
    StructField("line", IntegerType(), nullable=True),
    StructField("column", IntegerType(), nullable=True),
    StructField("offset", LongType(), nullable=True),
)


def verdicts(ids: Ids) -> StructType:
    """One row a message: what it matched, or (`code` is not null) why it was refused.

    `undecided` has the queries that could not be decided on it, and why; empty as a rule.
    """
    queries = _QUERY_IDS if ids == "ids" else _QUERY_NUMBERS
    return StructType([_MESSAGE_ID, queries, _UNDECIDED, _VERSION, _BYTES, *_REASON])


def matches(ids: Ids) -> StructType:
    """One row a message that was not refused; the list is empty when nothing matched."""
    return StructType([_MESSAGE_ID, _QUERY_IDS if ids == "ids" else _QUERY_NUMBERS, _VERSION])


DEAD_LETTERS = StructType(
    [
        _MESSAGE_ID,
        StructField("query_id", StringType(), nullable=True),
        *_REASON,
        _BYTES,
        _VERSION,
    ]
)
"""One row a refused message, `query_id` null; and one row a pair of message and query that could
not be decided within `Limits.evaluation_steps_max` or `Limits.message_steps_max`, where the message
itself was matched. `line` and `column` count from 1, `offset` in bytes from 0."""

SUBSCRIPTIONS = StructType(
    [
        StructField("subscriber", StringType(), nullable=False),
        StructField("query_id", StringType(), nullable=False),
        StructField("query_number", IntegerType(), nullable=False),
    ]
)
"""Who gets the messages of which query; `query_number` belongs to one snapshot."""

INBOXES = StructType(
    [
        StructField("subscriber", StringType(), nullable=False),
        StructField("query_id", StringType(), nullable=False),
        StructField("message_id", StringType(), nullable=True),
        StructField("delivery_id", StringType(), nullable=False),
        StructField("snapshot_version", StringType(), nullable=False),
        StructField("bucket", IntegerType(), nullable=False),
    ]
)
"""One row a delivery of a match. `bucket` is the hash of the subscriber modulo their number."""

_SUBSCRIPTION = (
    StructField("subscription_id", StringType(), nullable=True),
    StructField("subscriber", StringType(), nullable=True),
)
_RESULT = (
    StructField("delivery_id", StringType(), nullable=True),
    StructField("result_number", IntegerType(), nullable=True),
    StructField("fragment", BinaryType(), nullable=True),
)

DISSEMINATED = StructType(
    [
        _MESSAGE_ID,
        *_SUBSCRIPTION,
        *_RESULT,
        StructField("bytes", LongType(), nullable=True),
        *_REASON,
    ]
)
"""The stage of customised delivery. Every message has one row without a subscription, with its
size and, if it was refused, `code` and the rest. Every delivery has a row with a subscription; so
has every pair of message and subscription that has no answer, which then has a `code`."""

DELIVERIES = StructType([*_RESULT[:1], _MESSAGE_ID, *_SUBSCRIPTION, _VERSION, *_RESULT[1:]])
"""One row a delivery; `fragment` is null for deliver="ids"."""

UNDELIVERED = StructType([_MESSAGE_ID, *_SUBSCRIPTION, *_REASON, _BYTES, _VERSION])
"""One row a refused message, `subscription_id` null; and one row a pair of message and subscription
whose results could not be made. `bytes` is the size of the message, 0 for a pair."""

RESULT_INBOXES = StructType(
    [
        StructField("subscriber", StringType(), nullable=True),
        StructField("subscription_id", StringType(), nullable=True),
        _MESSAGE_ID,
        *_RESULT[1:],
        *_RESULT[:1],
        _VERSION,
        StructField("bucket", IntegerType(), nullable=True),
    ]
)
"""`DELIVERIES` as they are written: the columns of one inbox first, and its bucket."""

TEXT_RESULT_INBOXES = StructType(
    [
        *RESULT_INBOXES.fields[:4],
        StructField("fragment", StringType(), nullable=True),
        StructField("fragment_base64", StringType(), nullable=True),
        *RESULT_INBOXES.fields[5:],
    ]
)
"""The same for JSON, which has no bytes: `fragment` is text, or null where the message that was
asked for is no UTF-8; then it is in `fragment_base64`."""
