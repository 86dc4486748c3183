"""Ids that clients choose: of subscriptions, queries and messages.

They are checked one by one, where a call is carried out, and not where it is decoded: one that
cannot be used is refused in its own place, and the rest of the call is done.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from pathcast.errors import PathcastError, UnusableRowError

Asked = TypeVar("Asked")

SHOWN_CHARACTERS_MAX: Final = 1024


def check_id(id: str, field: str, characters_max: int) -> None:
    """Refuses an id that is empty, too long, or has a control character.

    Args:
        id: The id.
        field: Whose it is, for the sentence of the error.
        characters_max: Characters that it may have.

    Raises:
        UnusableRowError: It cannot be used ("row.field").

    Example:
        >>> check_id("order-1", "id of the message", 128)
        >>> check_id("", "id of the message", 128)
        Traceback (most recent call last):
        ...
        pathcast.errors.UnusableRowError: the id of the message has to be 1 to 128 characters, not 0
    """
    if not 0 < len(id) <= characters_max:
        expected = f"1 to {characters_max} characters"
        raise UnusableRowError("row.field", field=field, expected=expected, found=len(id))
    if not id.isprintable():
        for each in id:
            if unicodedata.category(each) == "Cc":
                expected, found = "without control characters", f"with U+{ord(each):04X}"
                raise UnusableRowError("row.field", field=field, expected=expected, found=found)


def check_length(text: str, field: str, bytes_max: int) -> None:
    """Refuses a text that is too long.

    Raises:
        UnusableRowError: It is ("row.length").
    """
    given = len(text.encode())
    if given > bytes_max:
        raise UnusableRowError("row.length", field=field, given=given, maximum=bytes_max)


def each_alone(
    rows: Iterable[tuple[str, Asked]], do: Callable[[str, Asked], None]
) -> tuple[tuple[str, str, str], ...]:
    """Does something with each row of a call; gives id, code and sentence of those refused."""
    refused: list[tuple[str, str, str]] = []
    for id, asked in rows:
        try:
            do(id, asked)
        except PathcastError as error:
            refused.append((shown(id), error.code, error.message))
    return tuple(refused)


def shown(id: str) -> str:
    """The part of a refused id that the answer repeats: 1,024 characters."""
    return id[:SHOWN_CHARACTERS_MAX]
