"""Columns of text for people, and sizes as people read them.

Example:
    >>> print_columns(("broker", "entries"), [("bern", "12,345"), ("chur", "7"), ("zug",)])
    broker  entries
    bern    12,345
    chur    7
    zug
    >>> in_bytes(0), in_bytes(12_345), in_bytes(12_345_678)
    ('0 B', '12.3 kB', '12.3 MB')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from pathcast.cli.console import answers


def print_columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows under a head; rows may end early."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=False))
        answers().print("  ".join(cells).rstrip())


def in_bytes(count: int) -> str:
    """A number of bytes with three digits or so."""
    if count < 1_000:
        return f"{count} B"
    size, unit = float(count), 0
    while size >= 999.5:
        size, unit = size / 1_000, unit + 1
    return f"{size:.3g} {('', 'kB', 'MB', 'GB', 'TB', 'PB')[unit]}"
