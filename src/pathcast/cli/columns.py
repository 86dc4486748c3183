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

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from pathcast.cli.console import answers


def print_columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows under a head; rows may end early."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=False))
        answers().print("  ".join(cells).rstrip())


def print_table(title: str, head: Iterable[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table with a title: with rules on a terminal, plain elsewhere.

    Columns without a cell are left out.
    """
    columns = [
        (name, [row[place] for row in rows])
        for place, name in enumerate(head)
        if any(row[place] for row in rows)
    ]
    names = [name for name, _ in columns]
    lines = list(zip(*(cells for _, cells in columns), strict=True))
    out = answers()
    if not out.is_terminal:
        out.print(title)
        print_columns(names, lines)
        return
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name, cells in columns:
        is_numeric = all(cell[:1].isdigit() for cell in cells if cell)
        table.add_column(name, justify="right" if is_numeric else "left")
    for line in lines:
        # Text is printed as it is, brackets included.
        table.add_row(*map(Text, line))
    out.print(table)


def number(value: float) -> str:
    """Three digits that count, never an exponent.

    Example:
        >>> number(1234.5), number(12.34), number(1.234), number(0.01234), number(0)
        ('1,234', '12.3', '1.23', '0.0123', '0')
    """
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    places = 1 if size >= 10 else 2 if size >= 0.1 else 4
    return f"{value:.{places}f}"


def in_bytes(count: int) -> str:
    """A number of bytes with three digits or so."""
    if count < 1_000:
        return f"{count} B"
    size, unit = float(count), 0
    while size >= 999.5:
        size, unit = size / 1_000, unit + 1
    return f"{size:.3g} {('', 'kB', 'MB', 'GB', 'TB', 'PB')[unit]}"
