"""Results as notebooks show them.

Example:
    >>> print(html_table("2 messages", ["row", "error"], [(0, None), (1, "a < b")], 2))
    <p>2 messages</p>
    <table>
    <tr><th>row</th><th>error</th></tr>
    <tr><td>0</td><td></td></tr>
    <tr><td>1</td><td>a &lt; b</td></tr>
    </table>

It reads no more rows than it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Final

ROWS_SHOWN: Final = 10
"""Rows of a table; of more there is a count."""

_CHARACTERS_SHOWN: Final = 200
"""Characters of a value."""


def html_table(
    title: str, names: Sequence[str], rows: Iterable[Sequence[object]], count: int
) -> str:
    """A title and the first rows of a table, as HTML.

    Args:
        title: What the rows are.
        names: Of the columns.
        rows: Values; None is an empty cell, bytes are shown as text.
        count: Number of rows that there are.
    """
    lines = [f"<p>{escape(title)}</p>", "<table>", _row("th", names)]
    lines += [_row("td", row) for row in islice(rows, ROWS_SHOWN)]
    if count > ROWS_SHOWN:
        lines.append(_row("td", [f"and {count - ROWS_SHOWN:,} more"]))
    return "\n".join([*lines, "</table>"])


def _row(kind: str, values: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{kind}>{_cell(value)}</{kind}>' for value in values)}</tr>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if len(text) > _CHARACTERS_SHOWN:
        text = f"{text[:_CHARACTERS_SHOWN]}…"
    return escape(text, quote=False)
