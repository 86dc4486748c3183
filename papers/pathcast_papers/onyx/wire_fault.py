"""The error of a message in a wire format other than text.

Example:
    >>> raise WireFormatError("name number 7 of 3 is asked for", 12)
    Traceback (most recent call last):
    pathcast_papers.onyx.wire_fault.WireFormatError: byte 12: name number 7 of 3 is asked for
"""

from __future__ import annotations


class WireFormatError(ValueError):
    """Bytes are no stream, or are not compressed as their header says.

    Args:
        reason: What is wrong.
        offset: Byte at which it was noticed, from 0.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)

    def __str__(self) -> str:
        reason, offset = self.args
        return f"byte {offset}: {reason}"
