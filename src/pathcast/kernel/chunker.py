"""The kernel's chunker: blocks of a message in, what its chunks grow by out.

Example:
    >>> paths = [([("", "a"), ("", "b")], 0, 1)]
    >>> chunker = KernelChunker(1, paths, None, Limits())
    >>> for block in (b"<a k='1'><b>x</", b"b><c/></a>"):
    ...     chunker.feed(block)
    >>> chunker.finish(), chunker.grown(0)
    (([2], ''), b"<a k='1'><b>x</b></a>")

What a chunk is, `pathcast.chunking` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from pathcast.boundary import native, native_errors
from pathcast.errors import error_for
from pathcast.limits import Limits, StreamBounds

ExpandedName: TypeAlias = tuple[str, str]
CutPath: TypeAlias = tuple[list[ExpandedName], int, int]
"""Label path; chunks, as bits, that keep the nodes there; those that keep them with content."""

Schema: TypeAlias = tuple[ExpandedName, list[tuple[ExpandedName, ExpandedName]]]
"""Root element; parent and child of every edge."""

_FAULTS: Final = {
    "schema": "the message is not built as the schema says",
    "entity": "an element to be cut at comes from an entity",
}


class KernelChunker:
    """Cuts one message after another.

    Args:
        chunks: How many chunks there are, 64 at most.
        paths: Label paths that they keep.
        schema: What messages are held to; None for nothing.
        limits: What a message may cost, but for its size and its number of elements.
        bounds: These, and how much of a message may be held.
    """

    def __init__(
        self,
        chunks: int,
        paths: Sequence[CutPath],
        schema: Schema | None,
        limits: Limits,
        bounds: StreamBounds | None = None,
    ) -> None:
        given = bounds or StreamBounds()
        unbounded = 2**64 - 1
        numbers = (
            given.message_bytes_max or unbounded,
            given.elements_max or unbounded,
            given.held_bytes_max,
        )
        with native_errors():
            self._native = native.Chunker(chunks, list(paths), schema, limits, numbers)

    def begin(self, encoding: str | None = None) -> None:
        """Begins a message; what was not taken of the one before is forgotten."""
        with native_errors():
            self._native.begin(encoding)

    def feed(self, block: bytes) -> None:
        """The next bytes of the message.

        Raises:
            MessageError: It is refused; no more of it must be fed.
        """
        with native_errors():
            refusal = self._native.feed(block)
        if refusal is not None:
            raise error_for(*refusal)

    def grown(self, chunk: int) -> bytes:
        """Bytes that a chunk has grown by since the last call."""
        with native_errors():
            return self._native.grown(chunk)

    def finish(self) -> tuple[list[int], str]:
        """Ends the message.

        Returns:
            Elements of each chunk, and why the chunks must not be used; empty if they may.

        Raises:
            MessageError: It is refused.
        """
        with native_errors():
            code, detail = self._native.finish()
        if isinstance(code, str):
            assert isinstance(detail, dict)
            raise error_for(code, detail)
        assert not isinstance(detail, dict)
        return code, _FAULTS[detail] if detail else ""
