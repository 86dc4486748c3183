r"""Query files: one standing query a line.

A line is a query, whose id is then the number of the line (from 1), or an id, a tab and a query.
Either may be quoted as in CSV (`delimited`). Blank lines and lines that begin with `#` are skipped,
but counted. The file is UTF-8, and a line that is not is a query that is refused, alone.

The queries are rows of subscriptions without a subscriber, delivered as an id.

Example:
    >>> lines = ["# prices", "/quote[price > 300]", "", "news\t/nitf//tobject"]
    >>> found = query_lines("\n".join(lines))
    >>> for row, place in zip(found.rows, found.places):
    ...     print(place.line, row.id, row.query)
    2 2 /quote[price > 300]
    4 news /nitf//tobject
"""

from __future__ import annotations

from pathlib import Path

from pathcast.errors import ConfigError
from pathcast.model import QueryLanguage, Subscription
from pathcast.registry.delimited import TextPlace, decode, records
from pathcast.registry.subscription_rows import (
    RejectedSubscription,
    SubscriptionRows,
    is_table,
    rows_of_table,
)


def query_lines(
    text: str, path: str = "", language: QueryLanguage | None = None
) -> SubscriptionRows:
    """The queries of a file's text, in order, and the lines that have none.

    Args:
        text: The content of the file.
        path: Its name, for places.
        language: Of the queries.
    """
    found = SubscriptionRows([], [], [])
    for record in records(text, fields_max=2):
        if not record.text.strip() or record.text.lstrip().startswith("#"):
            continue
        told = record.fields[-1]
        whole = record.place(len(record.fields) - 1, path)
        line, column = whole.at(told, len(told) - len(told.lstrip()))
        place = TextPlace(path, line, column, whole.is_quoted)
        query_id = record.fields[0].strip() if len(record.fields) == 2 else ""
        named = query_id or str(record.line)
        row = Subscription(named, "", told.strip(), "ids", language=language)
        fault = record.fault or (None if row.query else "there is no query")
        if fault is None:
            found.rows.append(row)
            found.places.append(place)
        else:
            error = ConfigError("config.invalid", key=row.id, reason=fault)
            found.rejected.append(RejectedSubscription(row, error, place))
    return found


def rows_of(
    content: bytes, path: Path, language: QueryLanguage | None = None
) -> tuple[SubscriptionRows, bool]:
    """The queries of a file, in order, and what has none; whether it is a table of subscriptions.

    Bytes that are not UTF-8 become lone surrogates, which no index takes in an id or a query: the
    line is refused where it is taken up, and the others are not.

    Args:
        content: Of the file, which may be a pipe: it is read once.
        path: Its name.
        language: Of the queries that choose none.

    Raises:
        ConfigError: It is UTF-16, or a table that lacks a column.
    """
    name = str(path)
    text = decode(content, name, keep_bytes=True)
    if is_table(text, path):
        return rows_of_table(text, path, "ids", language), True
    return query_lines(text, name, language), False
