r"""Subscriptions in files as columns: rows as Arrow tables, some at a time.

However many there are, of Parquet no more is held than one table, and a table can be written, cut
and read again without an object for each row.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "s.tsv")
    ...     _ = path.write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\n")
    ...     _, found = read_row_tables(path, "ids")
    >>> found.table.select(["subscriber", "query", "line"]).to_pylist()
    [{'subscriber': 'ann', 'query': '//a', 'line': 2}]

It compiles nothing, and says of no row what a query is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.model import (
    DELIVER_MODES,
    QUERY_LANGUAGES,
    DeliverMode,
    QueryLanguage,
    Subscription,
)
from pathcast.registry.delimited import TextPlace
from pathcast.registry.subscription_rows import (
    COLUMNS,
    DELIVER,
    LANGUAGE,
    PARQUET,
    STEP_LISTS,
    STEPS,
    RejectedSubscription,
    SubscriptionRows,
    SubscriptionTable,
    as_text,
    checked_rows,
    columns_of,
    read_rows,
    steps_in,
    table_of,
    told_unusable,
)

ROWS_AT_ONCE: Final = 100_000
"""Rows of one table of `read_row_tables`: some 10 MB."""

NAMESPACES: Final = pa.map_(pa.string(), pa.string())
"""Prefixes of one subscription; null where it has none of its own."""

ROW_SCHEMA: Final = pa.schema(
    [
        pa.field("subscriber", pa.string()),
        pa.field("query_id", pa.string()),
        pa.field("query", pa.string()),
        pa.field("deliver", pa.string()),
        pa.field("path", pa.string()),
        pa.field("line", pa.int64()),
        pa.field("column", pa.int64()),
        pa.field("is_quoted", pa.bool_()),
        pa.field("namespaces", NAMESPACES),
        pa.field(STEPS, STEP_LISTS),
        pa.field(LANGUAGE, pa.string()),
    ]
)
"""Rows as columns: a subscription, and its place, whose path is null for that of the file."""


class RowTable(NamedTuple):
    """Some of the subscriptions at a path.

    Attributes:
        table: `ROW_SCHEMA`.
        rejected: What is none.
    """

    table: pa.Table
    rejected: list[RejectedSubscription]


def read_row_tables(
    path: Path, deliver: DeliverMode, language: QueryLanguage | None = None
) -> Iterator[RowTable]:
    """The subscriptions at a path, some at a time, as `read_rows` would give them.

    Of Parquet no more is held than one table; other files are read as a whole.

    Args:
        path: As for `read_rows`.
        deliver: Likewise.
        language: "xpath1" or "xquery" of subscriptions that say none; None leaves it to the text.

    Raises:
        ConfigError: Likewise.

    Cost: 0.5 µs a row of Parquet, 6 µs of other files.
    """
    if path.suffix == PARQUET and not path.is_dir():
        yield from _parquet_tables(path, deliver, language)
        return
    yield from row_tables(read_rows(path, deliver, language), str(path))


def row_tables(found: SubscriptionRows, path: str) -> Iterator[RowTable]:
    """Rows as tables, some at a time; `rows_of_table` makes rows of them again.

    Args:
        found: The rows, and what is none.
        path: What most of their places name.
    """
    yield RowTable(ROW_SCHEMA.empty_table(), found.rejected)
    for start in range(0, len(found.rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        rows, places = found.rows[some], found.places[some]
        columns = [
            [row.subscriber for row in rows],
            [row.id for row in rows],
            [row.query for row in rows],
            [row.deliver for row in rows],
            [None if place.path == path else place.path for place in places],
            [place.line for place in places],
            [place.column for place in places],
            [place.is_quoted for place in places],
            namespace_column(rows),
            step_column(rows),
            language_column(rows),
        ]
        yield RowTable(pa.table(columns, schema=ROW_SCHEMA), [])


def rows_of_table(table: pa.Table, path: str) -> SubscriptionRows:
    """Rows of which `row_tables` or `read_row_tables` made a table.

    Args:
        table: `ROW_SCHEMA`.
        path: The path that was read.
    """
    columns = [table.column(name).to_pylist() for name in ROW_SCHEMA.names]
    found = SubscriptionRows([], [], [])
    for subscriber, query_id, query, deliver, file, *place, own, steps, language in zip(
        *columns, strict=True
    ):
        namespaces = dict(own) if own else None
        steps = tuple(steps or ())
        row = Subscription(query_id, subscriber, query, deliver, namespaces, steps, language)
        found.rows.append(row)
        found.places.append(TextPlace(file or path, *place))
    return found


def namespace_column(rows: Sequence[Subscription]) -> pa.Array:
    """The namespaces of rows, `NAMESPACES`."""
    own = [list(row.namespaces.items()) if row.namespaces else None for row in rows]
    return pa.array(own, NAMESPACES)


def step_column(rows: Sequence[Subscription]) -> pa.Array:
    """The steps of rows, `STEP_LISTS`."""
    return pa.array([list(row.steps) or None for row in rows], STEP_LISTS)


def language_column(rows: Sequence[Subscription]) -> pa.Array:
    """The languages of rows, null where none was chosen."""
    return pa.array([row.language for row in rows], pa.string())


def _parquet_tables(
    path: Path, deliver: DeliverMode, language: QueryLanguage | None
) -> Iterator[RowTable]:
    with told_unusable(path), path.open("rb") as handle:
        file = pq.ParquetFile(handle)
        names = columns_of(path, file.schema_arrow.names)
        line = 1
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=names):
            try:
                yield _row_table(batch.select(names), path, line, deliver, language)
            except pa.ArrowInvalid:
                # Some text is not UTF-8: each row by itself, since only that one is refused.
                read = table_of(batch, names, path, line)
                yield from row_tables(checked_rows(read, deliver, language), str(path))
            line += len(batch)


def _row_table(
    batch: pa.RecordBatch,
    path: Path,
    line: int,
    deliver: DeliverMode,
    language: QueryLanguage | None,
) -> RowTable:
    """The rows of a batch of Parquet, those that are none apart."""
    names = [name for name in batch.schema.names if name != STEPS]
    texts = {name: as_text(batch.column(name)) for name in names}
    steps = steps_in(batch.column(STEPS)) if STEPS in batch.schema.names else [()] * len(batch)
    modes = texts.get(DELIVER, pa.nulls(len(batch), pa.string()))
    modes = pc.if_else(pc.fill_null(pc.equal(modes, ""), True), deliver, modes)
    is_usable = pc.is_in(modes, value_set=pa.array(DELIVER_MODES))
    languages = texts.get(LANGUAGE, pa.nulls(len(batch), pa.string()))
    is_chosen = pc.fill_null(pc.not_equal(languages, ""), False)
    languages = pc.if_else(is_chosen, languages, pa.scalar(language, pa.string()))
    usable = pa.array([None, *QUERY_LANGUAGES], pa.string())
    is_usable = pc.and_(is_usable, pc.is_in(languages, value_set=usable))
    for name in COLUMNS:
        is_usable = pc.and_(is_usable, pc.fill_null(pc.not_equal(texts[name], ""), False))
    is_usable = pc.and_(is_usable, pa.array([each is not None for each in steps], pa.bool_()))
    lines = pa.array(range(line, line + len(batch)), pa.int64())
    nothing = pa.nulls(len(batch), pa.int64())
    columns = [*(texts[name] for name in COLUMNS), modes, pa.nulls(len(batch), pa.string())]
    columns += [lines, nothing, pa.repeat(False, len(batch)), pa.nulls(len(batch), NAMESPACES)]
    columns += [pa.array([list(each or ()) or None for each in steps], STEP_LISTS), languages]
    table = pa.table(columns, schema=ROW_SCHEMA)
    if pc.all(is_usable).as_py() is not False:
        return RowTable(table, [])
    bad = pa.table(texts).filter(pc.invert(is_usable))
    places = [
        TextPlace(str(path), at, None) for at in lines.filter(pc.invert(is_usable)).to_pylist()
    ]
    is_bad = pc.invert(is_usable).to_pylist()
    told = SubscriptionTable(
        {name: bad.column(name).to_pylist() for name in texts},
        [each for each, is_wrong in zip(steps, is_bad, strict=True) if is_wrong],
        places,
        [],
    )
    return RowTable(table.filter(is_usable), checked_rows(told, deliver, language).rejected)
