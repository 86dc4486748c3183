r"""Messages of any length: checked as they arrive, by the kernel's push parser.

A message beyond `Limits.message_bytes_max`, or beyond memory, is read in blocks. It is checked as
the door checks a message, and refused with the same error at the same line, column and offset,
however it is cut into blocks. What has to be held of it is one tag, comment or instruction, and
names.

Example:
    >>> parser = PushParser()
    >>> for block in (b"<orders><order id='7'>te", b"a</order></ord", b"ers>"):
    ...     parser.feed(block)
    >>> summary = parser.finish()
    >>> summary.elements, summary.depth, summary.text_bytes
    (2, 2, 3)
    >>> parser = PushParser()
    >>> parser.feed(b"<orders>\n<order")
    >>> parser.finish()
    Traceback (most recent call last):
    ...
    pathcast.errors.IllFormedMessageError: line 2, column 7: the message ends inside a tag

It makes no tree: nothing of the message is kept but counts.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

from pathcast.boundary import native, native_errors
from pathcast.errors import NotPicklableError, UnreadableMessageError, error_for
from pathcast.limits import MIB, Limits, StreamBounds

if TYPE_CHECKING:
    import pyarrow as pa

_COMPRESSED = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))
"""First bytes of a compressed file, and what pyarrow calls it. No XML begins so."""

UNBOUNDED = 2**64 - 1
"""A bound that the kernel takes for none."""


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """Counts of a message's contents, entities expanded.

    Attributes:
        bytes: Its length as it arrived, after decompression.
        elements: Elements.
        depth: Elements from the root to the deepest one, both counted.
        attributes: Attributes, defaults included; namespace declarations are none.
        texts: Text nodes, as XPath 1.0 has them.
        text_bytes: Bytes of all text nodes in UTF-8.
        comments: Comments, those outside the root element included.
        instructions: Processing instructions, likewise.
    """

    bytes: int
    elements: int
    depth: int
    attributes: int
    texts: int
    text_bytes: int
    comments: int
    instructions: int


class PushParser:
    """One message that arrives in blocks.

    Args:
        limits: What it may cost; `message_bytes_max` and `elements_max` do not count here.
        bounds: How long it may be, and how much of it may have to be held.
        encoding: What the caller knows of its encoding; goes before mark and declaration.

    Cost: about that of the door, without its tree; memory as `StreamBounds.held_bytes_max` says.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        bounds: StreamBounds | None = None,
        encoding: str | None = None,
    ) -> None:
        bounds = bounds or StreamBounds()
        self._is_finished = False
        with native_errors():
            self._native = native.PushParser(
                limits or Limits(),
                bounds.message_bytes_max or UNBOUNDED,
                bounds.elements_max or UNBOUNDED,
                bounds.held_bytes_max,
                encoding,
            )

    def feed(self, block: bytes) -> None:
        """Takes in the next bytes of the message.

        Args:
            block: Of any length; from 64 KiB on it costs least.

        Raises:
            MessageError: The message is refused. So is all that is fed after it.
            ValueError: The message has been finished.
        """
        if self._is_finished:
            raise ValueError("the message has been finished: a new one needs a new PushParser")
        with native_errors():
            check_refusal(self._native.feed(block))

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="PushParser",
            instead="send the message, and feed it to a PushParser where it arrives",
        )

    def finish(self) -> StreamSummary:
        """The message ends here.

        Returns:
            What it consists of.

        Raises:
            MessageError: The message is refused.
        """
        if not self._is_finished:
            with native_errors():
                check_refusal(self._native.finish())
            self._is_finished = True
        return self.summary

    @property
    def summary(self) -> StreamSummary:
        """Counts of the input that was read so far."""
        with native_errors():
            return StreamSummary(**self._native.summary())

    @property
    def memory(self) -> int:
        """Bytes of memory that are held, about."""
        with native_errors():
            held: int = self._native.memory()
        return held


def check_refusal(refusal: tuple[str, dict[str, Any]] | None) -> None:
    """Raises what the kernel has said of a message."""
    if refusal is not None:
        raise error_for(*refusal)


def check_stream(
    source: str | Path | IO[bytes],
    limits: Limits | None = None,
    bounds: StreamBounds | None = None,
    encoding: str | None = None,
    *,
    block_bytes: int = MIB,
) -> StreamSummary:
    """Whether a message of any length is well-formed, and what it consists of.

    Args:
        source: A file, or something with `read`. What begins as gzip or zstd does is decompressed.
        limits: See `PushParser`.
        bounds: See `PushParser`. They count what comes out of decompression.
        encoding: See `PushParser`.
        block_bytes: How much is read at a time.

    Returns:
        What it consists of.

    Raises:
        MessageError: The message is refused.
        UnreadableMessageError: The source cannot be read, or its compression is damaged or cut.

    Cost: one pass; memory independent of the length.

    Example:
        >>> import gzip, io
        >>> check_stream(io.BytesIO(gzip.compress(b"<a><b/>x</a>"))).elements
        2
    """
    name = str(source) if isinstance(source, str | Path) else "the stream"
    parser = PushParser(limits, bounds, encoding)
    try:
        with contextlib.ExitStack() as closing:
            if isinstance(source, str | Path):
                raw = closing.enter_context(Path(source).open("rb"))
            else:
                # The stream stays the caller's: it is not closed with the reader.
                raw = io.BufferedReader(cast(io.RawIOBase, source))
                closing.callback(raw.detach)
            stream = _decompressed(raw)
            while block := stream.read(block_bytes):
                parser.feed(block)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableMessageError("message.unreadable", path=name, reason=reason) from error
    return parser.finish()


def _decompressed(raw: io.BufferedReader) -> pa.NativeFile | io.BufferedReader:
    """The bytes of the message."""
    import pyarrow as pa

    first = raw.peek(4)
    for sign, codec in _COMPRESSED:
        if first.startswith(sign):
            return pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec)
    return raw
