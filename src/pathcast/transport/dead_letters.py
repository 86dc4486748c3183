"""Dead letters of webhooks: deliveries that were refused, or tried too often, kept with the reason.

An operator lists them, has them posted again, which puts them behind what waits in the inbox, with
the ids that they had, or drops them. They are bounded as an inbox is; where there is no room for
another one, nothing more is posted until there is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from pathcast.transport.frames import Count, Name
from pathcast.transport.inbox_bounds import InboxBounds

LETTERS_TABLE: Final = """
create table dead_letters(
    subscriber text not null, position integer not null, id text not null, body blob not null,
    reason text not null, primary key(subscriber, position)
);
"""

_COLUMNS: Final = "subscriber, position, id, body, reason"


class DeadLetter(NamedTuple):
    """A delivery that a webhook did not take.

    Attributes:
        subscriber: Whose.
        position: That it had in the inbox.
        delivery_id: Its id.
        body: What was posted.
        reason: Why it was given up.
    """

    subscriber: str
    position: int
    delivery_id: str
    body: bytes
    reason: str


class ListLetters(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Asks for all dead letters, which come as `Letters`; none are their end."""


class SettleLetters(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Asks for dead letters of a subscriber to be posted again, or dropped.

    `LettersSettled` answers.
    """

    what: Literal["retry", "drop"]
    subscriber: Name
    positions: Annotated[tuple[Count, ...], msgspec.Meta(max_length=10_000)]


class Letters(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Some of them, in the order of subscribers and positions."""

    letters: tuple[DeadLetter, ...]


class LettersSettled(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How many were there, and had room."""

    count: int


def put_letter(base: sqlite3.Connection, letter: DeadLetter) -> None:
    """Keeps one."""
    base.execute("insert or replace into dead_letters values(?, ?, ?, ?, ?)", letter)


def has_room_for_letter(base: sqlite3.Connection, subscriber: str, bounds: InboxBounds) -> bool:
    """Whether there may be one more of a subscriber.

    Cost: linear in how many there are.
    """
    query = "select count(*), sum(length(body)) from dead_letters where subscriber = ?"
    ((count, size),) = base.execute(query, (subscriber,)).fetchall()
    return count < bounds.dead_letters_max and (size or 0) < bounds.bytes_max


def letters_after(
    base: sqlite3.Connection, after: tuple[str, int], limit: int, bytes_max: int
) -> list[DeadLetter]:
    """Return at most `limit` letters after one; the first one whatever its size."""
    which = "from dead_letters where (subscriber, position) > (?, ?) order by 1, 2 limit ?"
    query = f"select subscriber, position, length(body) {which}"
    ends = accumulate(size for *_, size in base.execute(query, (*after, limit)).fetchall())
    count = max(1, sum(end <= bytes_max for end in ends))
    rows = base.execute(f"select {_COLUMNS} {which}", (*after, count)).fetchall()
    return [DeadLetter(*row) for row in rows]


def take_letters(
    base: sqlite3.Connection, subscriber: str, positions: Sequence[int]
) -> list[DeadLetter]:
    """Takes out those of these that are there."""
    which = "from dead_letters where subscriber = ? and position = ?"
    found: list[DeadLetter] = []
    for position in sorted(set(positions)):
        row = base.execute(f"select {_COLUMNS} {which}", (subscriber, position)).fetchone()
        if row is not None:
            found.append(DeadLetter(*row))
            base.execute(f"delete {which}", (subscriber, position))
    return found
