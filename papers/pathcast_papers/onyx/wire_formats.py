"""Wire formats: the forms in which a message may travel, and which of them is quickest on a link.

Text, element stream, or element stream with a schema dictionary; each as it is, or compressed by
zlib or zstd. What is compressed is one message, so that any can be lost or come alone.

Example:
    >>> packed = compress(b"<a/>" * 100, WireFormat.TEXT_ZLIB)
    >>> len(packed) < 100, decompress(packed, WireFormat.TEXT_ZLIB, 1_000) == b"<a/>" * 100
    (True, True)
    >>> try:
    ...     decompress(packed, WireFormat.TEXT_ZLIB, 100)
    ... except LimitExceededError as error:
    ...     error.params["given"]
    101

It knows no stream from the inside: `element_stream` does, and the kernel.

Source: 001, 4.3.2 (the six formats of Figures 7 and 8). Differs: ADR 0012; zstd beside zlib.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, cast

from pathcast.errors import LimitExceededError, MissingDependencyError
from pathcast_papers.onyx.wire_fault import WireFormatError

Encoding = Literal["text", "stream", "dictionary"]
Compression = Literal["none", "zlib", "zstd"]

ZLIB_LEVEL: Final = 6
ZSTD_LEVEL: Final = 3
"""The levels that the libraries choose themselves."""


class WireFormat(Enum):
    """How a message is written, and how that is compressed; the values are what a header says."""

    TEXT = "text"
    TEXT_ZLIB = "text+zlib"
    TEXT_ZSTD = "text+zstd"
    STREAM = "stream"
    STREAM_ZLIB = "stream+zlib"
    STREAM_ZSTD = "stream+zstd"
    DICTIONARY = "dictionary"
    DICTIONARY_ZLIB = "dictionary+zlib"
    DICTIONARY_ZSTD = "dictionary+zstd"

    @property
    def encoding(self) -> Encoding:
        """How the message is written."""
        return cast(Encoding, self.value.partition("+")[0])

    @property
    def compression(self) -> Compression:
        """How that is compressed."""
        return cast(Compression, self.value.partition("+")[2] or "none")


def compress(message: bytes, format: WireFormat) -> bytes:
    """What travels of a text or stream.

    Raises:
        MissingDependencyError: zstandard is not installed.
    """
    match format.compression:
        case "zlib":
            return zlib.compress(message, ZLIB_LEVEL)
        case "zstd":
            packed: bytes = _zstandard().ZstdCompressor(level=ZSTD_LEVEL).compress(message)
            return packed
    return message


def decompress(packed: bytes, format: WireFormat, bytes_max: int) -> bytes:
    """The text or stream that came, and no more of it than is allowed.

    Args:
        packed: What travelled.
        format: As its header says.
        bytes_max: Bytes that may come out; at most one more is made.

    Raises:
        LimitExceededError: There is more.
        WireFormatError: It is not compressed like this, ends too early, or has something behind it.
        MissingDependencyError: zstandard is not installed.
    """
    match format.compression:
        case "zlib":
            return _unpack_zlib(packed, bytes_max)
        case "zstd":
            return _unpack_zstd(packed, bytes_max)
    if len(packed) > bytes_max:
        raise _too_long(len(packed), bytes_max)
    return packed


def _unpack_zstd(packed: bytes, bytes_max: int) -> bytes:
    library = _zstandard()
    # In one call, so that there is no window beside what comes out.
    unpack = library.ZstdDecompressor()
    try:
        told = library.frame_content_size(packed)
        if told < 0:
            raise _not_compressed("zstd", "it does not say how much comes out")
        if told > bytes_max:
            raise _too_long(told, bytes_max)
        message: bytes = unpack.decompress(packed, allow_extra_data=False)
    except library.ZstdError as error:
        raise _not_compressed("zstd", str(error)) from None
    return message


def _unpack_zlib(packed: bytes, bytes_max: int) -> bytes:
    unpack = zlib.decompressobj()
    try:
        message = unpack.decompress(packed, bytes_max + 1)
    except zlib.error as error:
        raise _not_compressed("zlib", str(error)) from None
    if len(message) > bytes_max:
        raise _too_long(len(message), bytes_max)
    if not unpack.eof:
        raise _not_compressed("zlib", "it ends too early")
    if unpack.unused_data:
        raise _not_compressed("zlib", f"{len(unpack.unused_data)} bytes follow")
    return message


def _too_long(given: int, maximum: int) -> LimitExceededError:
    return LimitExceededError(
        "limit.message_bytes",
        limit="message_bytes_max",
        given=given,
        maximum=maximum,
        line=1,
        column=1,
        offset=0,
    )


def _zstandard() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "dependency.missing", purpose="zstd", module="zstandard", extra="net"
        ) from error
    return zstandard


def _not_compressed(compression: str, reason: str) -> WireFormatError:
    return WireFormatError(f"this is not compressed by {compression}: {reason}", 0)


@dataclass(frozen=True, slots=True)
class FormatCost:
    """What one message costs in a format, on average.

    Attributes:
        wire_bytes: Bytes that travel, headers of the transport left out.
        seconds: Time to write and compress it, and to decompress and read it.
    """

    wire_bytes: float
    seconds: float


def best_format(bandwidth: float, costs: Mapping[WireFormat, FormatCost]) -> WireFormat:
    """The format in which a message is there first.

    Args:
        bandwidth: Of the link, in bytes a second.
        costs: Measured on messages of its kind (`pathcast-lab bench wire-figures`).

    Returns:
        The one of the least `wire_bytes / bandwidth + seconds`; of equal ones the first.

    Raises:
        ValueError: There is no format to choose from, or no bandwidth.

    Example:
        >>> costs = {
        ...     WireFormat.TEXT: FormatCost(3000, 10e-6),
        ...     WireFormat.DICTIONARY: FormatCost(1000, 25e-6),
        ... }
        >>> best_format(1e6, costs).value, best_format(1e9, costs).value
        ('dictionary', 'text')
    """
    if not costs or bandwidth <= 0:
        raise ValueError("best_format needs formats and a bandwidth above 0")
    return min(costs, key=lambda each: costs[each].wire_bytes / bandwidth + costs[each].seconds)
