"""The streaming chunker: a message without an upper bound, cut into all its chunks in one pass.

The kernel follows the label paths of all chunks at once. It holds the longest tag, the start tags
of open elements and what nobody has taken yet.

Example:
    >>> import io
    >>> from pathcast.chunking.filtering_scheme import Chunking
    >>> chunking = Chunking(2)
    >>> _ = chunking.register("q1", "/log/entry[@level > 2]"), chunking.register("q2", "/log/host")
    >>> chunker = StreamingChunker(chunking.scheme())
    >>> blocks = (b"<log><host>h</host>", b"<entry level='1'/><x/>", b"<entry/></log>")
    >>> chunker.cut(blocks).chunks
    (b"<log><entry level='1'/><entry/></log>", b'<log><host>h</host></log>')
    >>> sinks = [io.BytesIO(), io.BytesIO()]
    >>> chunker.cut_into(sinks, blocks).elements, sinks[1].getvalue()
    ((3, 2), b'<log><host>h</host></log>')

Source: Lehner and Irmert, BTW 2003, section 5 (CHUNKTOOL).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from pathcast.boundary import native, native_errors
from pathcast.chunking.cut import Cut, CutNode, cut_tree
from pathcast.chunking.filtering_scheme import FilteringScheme
from pathcast.errors import error_for
from pathcast.kernel.streams import UNBOUNDED, check_refusal
from pathcast.limits import Limits, StreamBounds
from pathcast.schema import ElementPaths, ExpandedName

BLOCK_BYTES: Final = 256 * 1024
"""Bytes that are fed at a time: enough to make what a call costs small."""


_FAULTS: Final = {
    "schema": "the message is not built as the schema says",
    "entity": "an element to be cut at comes from an entity",
}
"""Reason of the kernel -> why chunks must not be used."""


class Sink(Protocol):
    """The destination of a chunk: an open file."""

    def write(self, data: bytes, /) -> object:
        """Appends bytes."""


class StreamingChunker:
    """Cuts messages by one filtering scheme, one after another.

    Args:
        scheme: What the chunks are.
        limits: What a message may cost, but for its size and its number of elements.
        bounds: These, and how much of a message may be held; a size is bounded only if it is said.

    Raises:
        KernelMissingError: The kernel is not installed.
    """

    def __init__(
        self,
        scheme: FilteringScheme,
        limits: Limits | None = None,
        *,
        bounds: StreamBounds | None = None,
    ) -> None:
        given = bounds or StreamBounds()
        numbers = (
            given.message_bytes_max or UNBOUNDED,
            given.elements_max or UNBOUNDED,
            given.held_bytes_max,
        )
        self.scheme = scheme
        with native_errors():
            self._native = native.Chunker(
                len(scheme.chunks),
                list(_cut_paths([], cut_tree(scheme))),
                None if scheme.paths is None else _schema(scheme.paths),
                limits or Limits(),
                numbers,
            )

    def cut(self, blocks: Iterable[bytes], encoding: str | None = None) -> Cut:
        """Cuts a message into memory.

        Args:
            blocks: The message, in pieces of any size; large ones are fed in smaller ones.
            encoding: What the caller knows of its encoding.

        Raises:
            MessageError: The message is refused, as the door refuses it.

        Cost: that of the parser, and of copying what is kept.
        """
        sinks = [io.BytesIO() for _ in self.scheme.chunks]
        cut = self.cut_into(sinks, blocks, encoding)
        return replace(cut, chunks=tuple(sink.getvalue() for sink in sinks))

    def cut_into(
        self, sinks: Sequence[Sink], blocks: Iterable[bytes], encoding: str | None = None
    ) -> Cut:
        """Cuts a message into one sink a chunk, all at once; otherwise as `cut`.

        Returns:
            What is known of it, without the bytes. What was written counts only if there is no
            fault, and nothing was raised.

        Cost: memory of a block and of what is kept of it.
        """
        with native_errors():
            self._native.begin(encoding)
        for block in blocks:
            for start in range(0, len(block), BLOCK_BYTES):
                piece = block if len(block) <= BLOCK_BYTES else block[start : start + BLOCK_BYTES]
                with native_errors():
                    check_refusal(self._native.feed(piece))
                self._drain(sinks)
        with native_errors():
            found, detail = self._native.finish()
        if isinstance(found, str):
            assert isinstance(detail, dict)
            raise error_for(found, detail)
        assert not isinstance(detail, dict)
        self._drain(sinks)
        return Cut((), tuple(found), _FAULTS[detail] if detail else "")

    def _drain(self, sinks: Sequence[Sink]) -> None:
        for number, sink in enumerate(sinks):
            with native_errors():
                grown = self._native.grown(number)
            if grown:
                sink.write(grown)


def _cut_paths(
    above: list[ExpandedName], node: CutNode
) -> Iterable[tuple[list[ExpandedName], int, int]]:
    if node.single or node.content:
        yield above, node.single, node.content
    for name, below in node.below.items():
        yield from _cut_paths([*above, name], below)


def _schema(
    paths: ElementPaths,
) -> tuple[ExpandedName, list[tuple[ExpandedName, ExpandedName]]]:
    assert paths.root is not None
    edges = [(name, child) for name in sorted(paths.names) for child in paths.children(name)]
    return paths.root, edges
