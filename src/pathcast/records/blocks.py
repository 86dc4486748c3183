"""Files in blocks: as they are, from any byte on, or unpacked, from the beginning.

A name that ends in .gz or .zst is unpacked as it is read: gzip by the standard library, Zstandard
by the codec of PyArrow, members and frames one after another.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import IO, Final, cast

import pyarrow as pa

from pathcast.limits import KIB, MIB

BLOCK_BYTES: Final = MIB
BEYOND_BYTES: Final = 64 * KIB
"""The first block beyond a range: of what is read there, little is needed as a rule."""

PACKED: Final = (".gz", ".zst")

FAULTS: Final = (OSError, EOFError, zlib.error, pa.ArrowException)
"""What reading a packed file that is damaged or cut short raises."""


def is_damage(error: Exception) -> bool:
    """Whether that is so of the file for good, rather than of the way to it."""
    return getattr(error, "errno", None) is None


def is_packed(name: str) -> bool:
    """Whether a file is unpacked as it is read; it has no ranges then."""
    return name.endswith(PACKED)


def unpacked(handle: IO[bytes], name: str) -> IO[bytes]:
    """Open the unpacked content of a file, to be read from beginning to end."""
    if name.endswith(".gz"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=handle))
    if name.endswith(".zst"):
        return cast(IO[bytes], pa.CompressedInputStream(pa.PythonFile(handle, "r"), "zstd"))
    return handle


def blocks(handle: IO[bytes], start: int, until: int | None) -> Iterator[bytes]:
    """A file from one byte on: large blocks up to another, then small ones that grow, to its end.

    Args:
        handle: The file; it is at `start`.
        start: Where the first block begins.
        until: Where large blocks end; None for nowhere.
    """
    at, beyond = start, BEYOND_BYTES
    # What comes before a fault is given first, where a packed file is read no further than it has
    # to.
    read = getattr(handle, "read1", handle.read)
    while True:
        size = BLOCK_BYTES
        if until is not None:
            if at < until:
                size = min(BLOCK_BYTES, until - at)
            else:
                size, beyond = beyond, min(2 * beyond, BLOCK_BYTES)
        block = read(size)
        if not block:
            return
        yield block
        at += len(block)
