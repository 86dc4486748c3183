"""A member of a zip archive, unpacked no further than to a bound, whatever its header says.

`zipfile` gives the decompressors of bzip2 and LZMA no bound: some kilobytes of such a member become
gigabytes in one call. Here it finds the packed bytes, and the decompressors of the standard library
are asked for as much as a message may have.

Deflate, bzip2, LZMA and members that are not packed are known; names and the directory of an
archive are not looked at.
"""

from __future__ import annotations

import bz2
import copy
import lzma
import struct
import zipfile
import zlib
from typing import IO, Final, Protocol

from pathcast.limits import KIB

_STEP_BYTES: Final = 64 * KIB
_LZMA_MEMORY: Final = 4 * KIB
"""The least dictionary of LZMA."""


class _Decompressor(Protocol):
    """The interface that bzip2 and LZMA share."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Deflate:
    """Deflate, called as bzip2 and LZMA are."""

    def __init__(self) -> None:
        self._inside = zlib.decompressobj(-zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._inside.eof

    @property
    def needs_input(self) -> bool:
        return not self._inside.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inside.decompress(self._inside.unconsumed_tail + data, max_length)


def read_zip_member(opened: zipfile.ZipFile, member: zipfile.ZipInfo, bytes_max: int) -> bytes:
    """The content of a member, whose length and check value are those of the directory.

    Args:
        opened: The archive.
        member: One of it.
        bytes_max: No member has more bytes; one that says it has is not asked for.

    Raises:
        BadZipFile: Its bytes are not those that the directory speaks of.
        NotImplementedError: It is packed in a way that is not known.

    Cost:
        The content, and 64 KiB; for LZMA also its dictionary, which is no larger than the content
        may be.
    """
    packed = copy.copy(member)
    # The library gives the bytes as they lie there, and leaves it to others to check them.
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, member.compress_size
    packed.CRC = None  # type: ignore[assignment]
    with opened.open(packed) as inside:
        content = _unpacked(inside, member, bytes_max)
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile(f"{member.filename!r} is damaged: it is not what was packed")
    return content


def _unpacked(inside: IO[bytes], member: zipfile.ZipInfo, bytes_max: int) -> bytes:
    """The content, or a part of it where it is longer than was said."""
    wanted = min(member.file_size, bytes_max) + 1
    if member.compress_type == zipfile.ZIP_STORED:
        return inside.read(wanted)
    decompressor = _decompressor(inside, member, bytes_max)
    content = bytearray()
    while len(content) < wanted and not decompressor.eof:
        block = inside.read(_STEP_BYTES) if decompressor.needs_input else b""
        found = decompressor.decompress(block, wanted - len(content))
        if not block and not found and decompressor.needs_input:
            break  # cut short, or without a mark at its end
        content += found
    return bytes(content)


def _decompressor(inside: IO[bytes], member: zipfile.ZipInfo, bytes_max: int) -> _Decompressor:
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return _Deflate()
    if member.compress_type == zipfile.ZIP_BZIP2:
        return bz2.BZ2Decompressor()
    if member.compress_type == zipfile.ZIP_LZMA:
        # Version of the library that packed it, length of the properties, properties.
        _, length = struct.unpack("<HH", inside.read(4))
        told, dictionary = struct.unpack("<BI", inside.read(length))
        rest, lc = divmod(told, 9)
        pb, lp = divmod(rest, 5)
        # Nothing lies further back than the content is long.
        size = max(_LZMA_MEMORY, min(dictionary, bytes_max))
        chosen = {"id": lzma.FILTER_LZMA1, "dict_size": size, "lc": lc, "lp": lp, "pb": pb}
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[chosen])
    raise NotImplementedError(
        f"{member.filename!r} is packed by method {member.compress_type}; there are deflate, bzip2 "
        "and LZMA"
    )
