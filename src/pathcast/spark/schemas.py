"""The columns of every file that this room writes, and what they hold.

Arrow schemas: what workers write, and what readers find, in this order. Message ids are text,
whatever the id column of the source was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa

OutputName: TypeAlias = Literal["inboxes", "matches", "dead_letters"]
OUTPUTS: Final[tuple[OutputName, ...]] = ("inboxes", "matches", "dead_letters")

DAY: Final = "day"
"""With `output.by_day`, folders of an output are called DAY=2026-11-29, and a Delta table has a
column of this name, by which it is partitioned."""

MatchesForm: TypeAlias = Literal["none", "numbers", "ids"]
"""Whether there is a row a message with the queries that it satisfies, and how they are named."""

DELIVERY_ID: Final = pa.binary(16)

TIME: Final = pa.timestamp("us", "UTC")

FragmentForm: TypeAlias = Literal["text", "binary"]
"""How results are written: as text, or as bytes."""

_ORIGIN: Final = (
    pa.field("snapshot_version", pa.string(), nullable=False),
    pa.field("batch_id", pa.int32(), nullable=False),
    pa.field("processed_at", TIME, nullable=False),
)
"""Which subscriptions answered, in which micro-batch, and when that was begun: the same time
however often it is done. They cost a few bytes a row group."""

SOURCE = pa.schema(
    [
        pa.field("message_id", pa.string(), nullable=True),
        pa.field("message", pa.binary(), nullable=True),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("code", pa.string(), nullable=True),
        pa.field("reason", pa.string(), nullable=True),
    ]
)
"""A message as a source hands it on. `message` is null when it could not be read, and `code` and
`reason` then say why; without an id, its digest serves. Columns that are passed through follow."""

INBOXES = pa.schema(
    [
        pa.field("subscriber", pa.string(), nullable=False),
        pa.field("subscription_id", pa.string(), nullable=False),
        pa.field("message_id", pa.string(), nullable=False),
        pa.field("result_number", pa.int32(), nullable=False),
        pa.field("fragment", pa.string(), nullable=True),
        pa.field("fragment_bytes", pa.binary(), nullable=True),
        pa.field("delivery_id", DELIVERY_ID, nullable=False),
        pa.field("message_time", TIME, nullable=True),
        *_ORIGIN,
    ]
)
"""One row a delivery, sorted by subscriber and subscription within a file. `fragment` is null for a
notice, and for a message that is delivered as it arrived and is no UTF-8: `fragment_bytes` has that
one. Columns that are passed through follow."""


def inboxes(fragments: FragmentForm) -> pa.Schema:
    """Columns of inboxes.

    Args:
        fragments: As bytes, there is one column of them.
    """
    if fragments == "text":
        return INBOXES
    place = INBOXES.get_field_index("fragment")
    found = INBOXES.set(place, INBOXES.field(place).with_type(pa.binary()))
    return found.remove(found.get_field_index("fragment_bytes"))


def body_of(row: Mapping[str, Any]) -> bytes | None:
    """The bytes of a delivery, whatever the form of its fragment; None for a notice."""
    fragment = row["fragment"]
    if isinstance(fragment, str):
        return fragment.encode()
    body: bytes | None = row.get("fragment_bytes") if fragment is None else fragment
    return body


DEAD_LETTERS = pa.schema(
    [
        pa.field("message_id", pa.string(), nullable=True),
        pa.field("subscription_id", pa.string(), nullable=True),
        pa.field("subscriber", pa.string(), nullable=True),
        pa.field("code", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("line", pa.int32(), nullable=True),
        pa.field("column", pa.int32(), nullable=True),
        pa.field("offset", pa.int64(), nullable=True),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("file", pa.string(), nullable=True),
        *_ORIGIN,
    ]
)
"""One row for each thing that was not done. `subscription_id` null: the message was refused, or
with `message_id` null too, the file could not be read. With a `subscription_id`: that pair of
message and subscription has no answer. `line` and `column` count from 1, `offset` in bytes from 0.
"""

LETTERS: Final = pa.schema(list(DEAD_LETTERS)[: DEAD_LETTERS.get_field_index("file")])
"""Dead letters as they are made, before somebody knows where they belong."""


def matches(form: MatchesForm) -> pa.Schema:
    """One row a message that was not refused; the list is empty when nothing matched.

    Numbers are positions in the snapshot that the row names, ascending; ids are
    sorted.
    """
    value = pa.int32() if form == "numbers" else pa.string()
    name = "query_numbers" if form == "numbers" else "query_ids"
    return pa.schema(
        [
            pa.field("message_id", pa.string(), nullable=False),
            pa.field(name, pa.list_(pa.field("element", value, nullable=False)), nullable=False),
            *_ORIGIN,
        ]
    )


FRAGMENT_BASE64: Final = "fragment_base64"
"""Key that inboxes have in JSON lines only: a fragment that is not UTF-8."""

RESERVED_COLUMNS: Final = frozenset(
    name.casefold()
    for name in (
        *(name for schema in (SOURCE, INBOXES) for name in schema.names),
        *(name for form in ("numbers", "ids") for name in matches(form).names),
        FRAGMENT_BASE64,
    )
)
"""Names that no column that is passed through may have, without regard to case. Dead letters pass
none, so that theirs (`offset`, `line`, `column`, `file`) are free."""
