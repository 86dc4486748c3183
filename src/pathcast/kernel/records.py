"""The kernel's part in cutting files of records: `pathcast.records` says what it is.

Example:
    >>> read_head(b"<?xml version='1.0'?> <a/>", True, Limits())
    Head(carried=b'', root=22, has_doctype=False)
    >>> read_head(b"<a", False, Limits()) is None
    True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pathcast.boundary import native, native_errors
from pathcast.errors import error_for
from pathcast.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

    from pathcast.errors import Param

Outcomes: TypeAlias = "list[tuple[int, int, int, int, list[int]] | None]"
"""Outcome of a range by number of the state that it may begin in; numbers and lists, to travel."""


class Head(NamedTuple):
    """The prolog of a file.

    Attributes:
        carried: What stands before the root element of each message.
        root: Where the root element begins.
        has_doctype: Whether there is a document type declaration.
    """

    carried: bytes
    root: int
    has_doctype: bool


class BytePlace(NamedTuple):
    """The construct that a byte of a file is in (`kernel/core/src/files/records/place.rs`).

    Attributes:
        state: In which markup, by number.
        depth: Elements that are open.
        is_closed: Whether the root element has ended.
        tags: Offsets of the start tags of the outermost of these.
    """

    state: int = 0
    depth: int = 0
    is_closed: bool = False
    tags: tuple[int, ...] = ()

    def after(self, outcomes: Outcomes, ancestors: int) -> BytePlace | None:
        """The place after a range that begins here; None where the file breaks off in it."""
        place = (self.state, self.depth, self.is_closed, list(self.tags))
        with native_errors():
            found = native.place_after(place, outcomes, ancestors)
        if found is None:
            return None
        state, depth, is_closed, tags = found
        return BytePlace(state, depth, is_closed, tuple(tags))


class Rows(NamedTuple):
    """Records that were cut: columns, and rows without a message, with code and parameters."""

    offsets: pa.Array
    sizes: pa.Array
    messages: pa.Array
    faults: Sequence[tuple[int, str, dict[str, Param]]]


def read_head(start: bytes, is_whole: bool, limits: Limits) -> Head | None:
    """The prolog of a file, from its first bytes; None when more of them are needed.

    Raises:
        MessageError: The door would refuse it, or it is in an encoding of several bytes a
            character other than UTF-8.
    """
    with native_errors():
        found = native.read_head(start, is_whole, limits)
    if found is None:
        return None
    if len(found) == 2:
        raise error_for(*found)
    return Head(*found)


def tag_end(text: bytes) -> int | None:
    """The length of the start tag that a text begins with; None when it does not hold all of it."""
    with native_errors():
        return native.tag_end(text)


def survey(ancestors: int, start: int, blocks: Iterable[bytes]) -> Outcomes:
    """The outcome of a range, read from every state that it may begin in."""
    with native_errors():
        found = native.RecordSurvey(ancestors, start)
        for block in blocks:
            found.feed(block)
        return found.outcomes()


class RangeCutter:
    """The records of a range whose place is known (`kernel/core/src/files/records/cutter.rs`)."""

    def __init__(
        self,
        path: tuple[tuple[str | None, str | None], ...],
        limits: Limits,
        context_bytes_max: int,
        head: Head,
        place: BytePlace,
        tags: list[bytes],
        start: int,
        until: int,
    ) -> None:
        state, depth, is_closed, offsets = place
        with native_errors():
            self._cutter = native.RecordCutter(
                list(path),
                limits,
                context_bytes_max,
                (head.carried, head.has_doctype),
                (state, depth, is_closed, list(offsets)),
                tags,
                start,
                until,
            )

    def feed(self, block: bytes, at: int) -> int:
        """Reads a block from a byte on; the byte it has come to, where rows are to be taken."""
        with native_errors():
            return self._cutter.feed(block, at)

    def finish(self) -> None:
        """The file ends here."""
        with native_errors():
            self._cutter.finish()

    @property
    def is_done(self) -> bool:
        """Whether nothing more is wanted of the file."""
        return self._cutter.is_done

    @property
    def is_full(self) -> bool:
        """Whether rows are to be taken before it reads on."""
        return self._cutter.is_full

    @property
    def offset(self) -> int:
        """How far the file has been read."""
        return self._cutter.offset

    def take(self) -> Rows:
        """The rows so far."""
        with native_errors():
            (offsets, sizes, messages), faults = self._cutter.take()
        return Rows(offsets, sizes, messages, faults)
