"""Element streams by the native kernel, and the dictionaries that its doors know.

Example:
    >>> import pyarrow as pa
    >>> messages = pa.array([b'<order no="7"><item>tea</item><item>jam</item></order>'])
    >>> streams = encode_streams(messages)
    >>> decode_streams(streams, Dictionaries(), Limits())[0].to_pylist() == messages.to_pylist()
    True

It decides nothing about messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathcast.errors import PathcastError, error_for
from pathcast.kernel.boundary import native, native_errors
from pathcast.limits import Limits
from pathcast.message.dictionaries import Dictionaries, Dictionary

if TYPE_CHECKING:
    import pyarrow as pa


class NativeDictionaries:
    """The dictionaries of a matcher, for the kernel: they follow those that the caller has.

    Args:
        known: The caller's.
    """

    def __init__(self, known: Dictionaries) -> None:
        self._known = known
        with native_errors():
            self.native = native.Dictionaries()
        self._versions: frozenset[bytes] = frozenset()
        self.follow()

    def follow(self) -> None:
        """Brings the kernel up to date. Cost: nothing to speak of if nothing has changed."""
        known = {each.version: each for each in self._known}
        if known.keys() == self._versions:
            return
        for version in known.keys() - self._versions:
            self.native.add(version, list(known[version].names))
        for version in self._versions - known.keys():
            self.native.remove(version)
        self._versions = frozenset(known)


def encode_streams(messages: pa.Array, dictionary: Dictionary | None = None) -> pa.Array:
    """The streams of messages. Cost: about that of parsing them."""
    with native_errors():
        known = NativeDictionaries(Dictionaries([] if dictionary is None else [dictionary]))
        return known.native.encode(messages, None if dictionary is None else dictionary.version)


def decode_streams(
    streams: pa.Array, known: Dictionaries, limits: Limits
) -> tuple[pa.Array, list[tuple[int, PathcastError]]]:
    """The messages that streams stand for."""
    with native_errors():
        messages, refused = NativeDictionaries(known).native.decode(streams, limits)
    return messages, [(row, error_for(code, params)) for row, code, params in refused]
