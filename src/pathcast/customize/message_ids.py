"""The ids of the messages of a batch: the publisher's or, where it gave none, a digest.

Example:
    >>> ids = MessageIds(pa.array([b"<a/>", b"<b/>"], pa.binary()), ["m1", None])
    >>> ids[0], len(ids[1])
    ('m1', 32)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pathcast.customize.identity import message_id
from pathcast.errors import ConfigError


class MessageIds:
    """Place of a message in its batch -> its id.

    Args:
        messages: `binary` or `large_binary` array.
        given: Ids by place, None where there is none; None for no ids at all.

    Raises:
        ConfigError: There are not as many ids as messages, or an id is no text.

    Cost:
        A digest is made when it is asked for, about 1 µs a KB: messages that nobody gets need none.
    """

    def __init__(
        self,
        messages: pa.Array,
        given: pa.Array | pa.ChunkedArray | Iterable[str | None] | None = None,
    ) -> None:
        self._messages = messages
        self._digests: dict[int, str] = {}
        self._given = None if given is None else _texts(given)
        if self._given is not None and len(self._given) != len(messages):
            reason = f"{len(self._given)} ids for {len(messages)} messages"
            raise ConfigError("config.invalid", key="message_ids", reason=reason)

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, row: int) -> str:
        given = None if self._given is None else self._given[row]
        if given is not None:
            return given
        if row not in self._digests:
            self._digests[row] = message_id(memoryview(self._messages[row].as_buffer()))
        return self._digests[row]

    def take(self, rows: Sequence[int]) -> list[str]:
        """The ids of many messages."""
        return [self[row] for row in rows]


def _texts(given: pa.Array | pa.ChunkedArray | Iterable[str | None]) -> list[str | None]:
    if isinstance(given, pa.Array | pa.ChunkedArray):
        return list(given.cast(pa.string()).to_pylist())
    if isinstance(given, str):
        raise TypeError("message_ids must be many: put a single id into a list")
    texts = list(given)
    for text in texts:
        if text is not None and not isinstance(text, str):
            reason = f"an id must be text, not {type(text).__name__}"
            raise ConfigError("config.invalid", key="message_ids", reason=reason)
    return texts
