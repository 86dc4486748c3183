"""The ids of the messages of a batch: the publisher's or, where it gave none, a digest.

Example:
    >>> ids = MessageIds(pa.array([b"<a/>", b"<b/>"], pa.binary()), ["m1", None])
    >>> ids[0], len(ids[1])
    ('m1', 32)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

import pyarrow as pa

from pathcast.engine.rows import check_text
from pathcast.errors import ConfigError, PathcastError, UnusableRowError
from pathcast.query.names import are_texts
from pathcast.registry.identity import message_id

ManyIds: TypeAlias = pa.Array | pa.ChunkedArray | Iterable[str | None]
"""Ids of the messages of a batch; None where there is none."""


class MessageIds:
    """Place of a message in its batch -> its id.

    Args:
        messages: Bytes, None for a missing message: a list, or an array of binary of any layout.
        given: Ids by place, None where there is none; None for no ids at all.

    Attributes:
        errors: Place -> error, for ids that are no text. Such a message has a digest for an id
            here, and nothing of it may be delivered.

    Raises:
        ConfigError: There are not as many ids as messages.
        TypeError: `given` is nothing of this kind.

    Cost:
        A digest is made when it is asked for, about 1 µs a KB: messages that nobody gets need none.
        Pickled and copied with the digests of all and without the messages.
    """

    def __init__(
        self,
        messages: pa.Array | Sequence[bytes | None],
        given: ManyIds | None = None,
    ) -> None:
        self._messages = messages
        self._digests: dict[int, str] = {}
        ids = [None] * len(messages) if given is None else _objects(given)
        if len(ids) != len(messages):
            reason = f"{len(ids)} ids for {len(messages)} messages"
            raise ConfigError("config.invalid", key="message_ids", reason=reason)
        self.errors: Mapping[int, PathcastError] = {} if given is None else _errors(ids)
        for place in self.errors:
            ids[place] = None
        self._given = cast("list[str | None]", ids)

    def __len__(self) -> int:
        return len(self._given)

    def __reduce__(self) -> tuple[object, ...]:
        return _known_ids, (self.take(range(len(self))), self.errors)

    def __getitem__(self, row: int) -> str:
        given = self._given[row]
        if given is not None:
            return given
        if row not in self._digests:
            content = self._messages[row]
            if isinstance(content, pa.Scalar):
                content = content.as_buffer()
            self._digests[row] = message_id(b"" if content is None else memoryview(content))
        return self._digests[row]

    def take(self, rows: Sequence[int]) -> list[str]:
        """The ids of many messages."""
        return [self[row] for row in rows]


def _known_ids(ids: list[str], errors: Mapping[int, PathcastError]) -> MessageIds:
    """Ids that are all made."""
    known = MessageIds([None] * len(ids), ids)
    known.errors = errors
    return known


def _objects(given: pa.Array | pa.ChunkedArray | Iterable[object]) -> list[object]:
    """The ids as Python has them; bytes that are not UTF-8 become lone surrogates.

    Raises:
        TypeError: They are no texts, or a single one.
    """
    if isinstance(given, str | bytes):
        raise TypeError("message_ids must be many: put a single id into a list")
    if not isinstance(given, pa.Array | pa.ChunkedArray):
        return list(given)
    try:
        return list(given.cast(pa.string()).to_pylist())
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raw = given.cast(pa.large_binary()).to_pylist()
        return [None if item is None else item.decode("utf-8", "surrogateescape") for item in raw]
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"message_ids must be text, not {given.type}") from error


def _errors(ids: Sequence[object]) -> dict[int, PathcastError]:
    """Errors of ids, by place."""
    if are_texts([each for each in ids if each is not None]):
        return {}
    errors: dict[int, PathcastError] = {}
    for place, each in enumerate(ids):
        try:
            if each is not None:
                check_text(each, "id of the message")
        except UnusableRowError as error:
            errors[place] = error
    return errors
