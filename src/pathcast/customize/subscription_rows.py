r"""Subscriptions in files of any format: a table, a `.xq` file, or a folder of them, as rows.

A table has the columns subscriber, query_id and query, and may have `deliver` and `steps`: text,
separated by tabs or (`.csv`) commas and quoted as in CSV (`delimited`), or Parquet. Steps have
semicolons between them (`pathcast.customize.steps.split_steps`), or are a list in Parquet. What is
no subscription is told with its reason and its place, and costs no other.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "s.tsv")
    ...     _ = path.write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\nbob\n")
    ...     found = read_rows(path, "ids")
    >>> [tuple(row)[:4] for row in found.rows]
    [('q1', 'ann', '//a', 'ids')]
    >>> found.places[0].line, found.rejected[0].reason
    (2, 'subscription: line 3: 1 columns, 3 expected')

It compiles nothing: `subscription_engines` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pathcast.customize.delimited import TextPlace, read_text, records
from pathcast.customize.steps import split_steps
from pathcast.customize.subscription_files import SUFFIX, read_subscriptions
from pathcast.errors import ConfigError, PathcastError, UnsupportedQueryError
from pathcast.model import DELIVER_MODES, DeliverMode, Subscription

COLUMNS: Final = ("subscriber", "query_id", "query")
DELIVER: Final = "deliver"
STEPS: Final = "steps"
"""Columns that a table may have besides."""
PARQUET: Final = ".parquet"

_COLUMNS_TELLING: Final = 2
"""A first line that has so many of `COLUMNS` names columns; no file of queries begins so."""


@dataclass(frozen=True, slots=True)
class RejectedSubscription:
    """A row that nothing is delivered for.

    Attributes:
        row: As in the file; what it does not have is empty.
        error: What is wrong.
        place: Where its query stands, or the row.
    """

    row: Subscription
    error: PathcastError
    place: TextPlace

    @property
    def code(self) -> str:
        """Code of the error."""
        return self.error.code

    @property
    def reason(self) -> str:
        """What is wrong, in words."""
        return str(self.error)


class SubscriptionRows(NamedTuple):
    """The subscriptions of a table, a file or a folder.

    Attributes:
        rows: In their order.
        places: Where the query of each stands.
        rejected: What is none, and why.
    """

    rows: list[Subscription]
    places: list[TextPlace]
    rejected: list[RejectedSubscription]


def is_table(path: Path) -> bool:
    """Whether a file is a table of subscriptions: Parquet, or text whose first line names columns.

    Raises:
        ConfigError: It is UTF-16.
        OSError: It cannot be read.
    """
    if path.suffix == PARQUET:
        return True
    header = next(records(read_text(path, keep_bytes=True), _delimiter(path)), None)
    return header is not None and len({*COLUMNS} & {*header.fields}) >= _COLUMNS_TELLING


def read_rows(path: Path, deliver: DeliverMode) -> SubscriptionRows:
    """The subscriptions at a path, and what is none.

    Args:
        path: A table, a `.xq` file, or a folder of them.
        deliver: What is delivered where a row of a table does not say.

    Raises:
        ConfigError: The file cannot be read or lacks a column, or a folder cannot be listed.

    Cost: about 5 µs a row.
    """
    if path.is_dir() or path.suffix == SUFFIX:
        return _of_files(path)
    return _of_table(path, deliver)


def _of_files(path: Path) -> SubscriptionRows:
    try:
        files = read_subscriptions(path)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    found = SubscriptionRows([], [], [])
    for file in files:
        if file.subscription is not None:
            found.rows.append(file.subscription)
            found.places.append(file.place)
        elif file.error is not None:
            row = Subscription(str(file.path), "", "")
            found.rejected.append(RejectedSubscription(row, file.error, file.place))
    return found


def _of_table(path: Path, deliver: DeliverMode) -> SubscriptionRows:
    return _checked(read_table(path), deliver)


def _checked(table: SubscriptionTable, deliver: DeliverMode) -> SubscriptionRows:
    found = SubscriptionRows([], [], table.malformed)
    modes = table.columns.get(DELIVER, [None] * len(table.places))
    for place, subscriber, query_id, query, told, steps in zip(
        table.places,
        *(table.columns[name] for name in COLUMNS),
        modes,
        table.steps,
        strict=True,
    ):
        mode = told or deliver
        row = Subscription(query_id or "", subscriber or "", query or "", mode, None, steps or ())
        if not (subscriber and query_id and query):
            found.rejected.append(_malformed(row, "subscriber, query_id or query is empty", place))
        elif steps is None:
            found.rejected.append(_malformed(row, "one of its steps is missing", place))
        elif mode not in DELIVER_MODES:
            # Here, as in a file: a row that cannot be one takes its id from no other.
            error = UnsupportedQueryError("subscription.deliver", found=mode)
            found.rejected.append(RejectedSubscription(row, error, place))
        else:
            found.rows.append(row)
            found.places.append(place)
    return found


ROWS_AT_ONCE: Final = 100_000
"""Rows of one table of `read_row_tables`: some 10 MB."""

NAMESPACES: Final = pa.map_(pa.string(), pa.string())
"""Prefixes of one subscription; null where it has none of its own."""

STEP_LISTS: Final = pa.list_(pa.string())
"""Steps of one subscription; null where it has none."""

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


def read_row_tables(path: Path, deliver: DeliverMode) -> Iterator[RowTable]:
    """The subscriptions at a path, some at a time, as `read_rows` would give them.

    Of Parquet no more is held than one table; other files are read as a whole.

    Args:
        path: As for `read_rows`.
        deliver: Likewise.

    Raises:
        ConfigError: Likewise.

    Cost: 0.5 µs a row of Parquet, 6 µs of other files.
    """
    if path.suffix == PARQUET and not path.is_dir():
        yield from _parquet_tables(path, deliver)
        return
    yield from row_tables(read_rows(path, deliver), str(path))


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
    for subscriber, query_id, query, deliver, file, *place, own, steps in zip(
        *columns, strict=True
    ):
        namespaces = dict(own) if own else None
        row = Subscription(query_id, subscriber, query, deliver, namespaces, tuple(steps or ()))
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


def about_rows(path: Path) -> int:
    """About how many subscriptions there are at a path; of Parquet exactly.

    Raises:
        ConfigError: It cannot be looked at.
    """
    try:
        if path.is_dir():
            return sum(1 for _ in path.rglob(f"*{SUFFIX}"))
        if path.suffix == PARQUET:
            return int(pq.read_metadata(path).num_rows)
        return path.stat().st_size // _ROW_BYTES
    except (OSError, pa.ArrowException) as error:
        raise _unusable(path, str(error)) from error


_ROW_BYTES: Final = 64
"""Bytes of a row of text; they are rarely shorter."""


def _parquet_tables(path: Path, deliver: DeliverMode) -> Iterator[RowTable]:
    try:
        with path.open("rb") as handle:
            file = pq.ParquetFile(handle)
            names = _columns_of(path, file.schema_arrow.names)
            line = 1
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=names):
                yield _row_table(batch.select(names), path, line, deliver)
                line += len(batch)
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _unusable(path, reason) from error


def _row_table(batch: pa.RecordBatch, path: Path, line: int, deliver: DeliverMode) -> RowTable:
    """The rows of a batch of Parquet, those that are none apart."""
    names = [name for name in batch.schema.names if name != STEPS]
    texts = {name: batch.column(name).cast(pa.string()) for name in names}
    steps = _steps_in(batch.column(STEPS)) if STEPS in batch.schema.names else [()] * len(batch)
    modes = texts.get(DELIVER, pa.nulls(len(batch), pa.string()))
    modes = pc.if_else(pc.fill_null(pc.equal(modes, ""), True), deliver, modes)
    is_usable = pc.is_in(modes, value_set=pa.array(DELIVER_MODES))
    for name in COLUMNS:
        is_usable = pc.and_(is_usable, pc.fill_null(pc.not_equal(texts[name], ""), False))
    is_usable = pc.and_(is_usable, pa.array([each is not None for each in steps], pa.bool_()))
    lines = pa.array(range(line, line + len(batch)), pa.int64())
    nothing = pa.nulls(len(batch), pa.int64())
    columns = [*(texts[name] for name in COLUMNS), modes, pa.nulls(len(batch), pa.string())]
    columns += [lines, nothing, pa.repeat(False, len(batch)), pa.nulls(len(batch), NAMESPACES)]
    columns.append(pa.array([list(each or ()) or None for each in steps], STEP_LISTS))
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
    return RowTable(table.filter(is_usable), _checked(told, deliver).rejected)


class SubscriptionTable(NamedTuple):
    """A file of subscriptions as it was read.

    Attributes:
        columns: `COLUMNS` and, where the file has it, `DELIVER`; all of one length.
        steps: Steps of each row; None where one of a list is missing.
        places: Where the query of each row stands; in Parquet the number of the row, from 1.
        malformed: The lines that are no rows.
    """

    columns: Mapping[str, Sequence[str | None]]
    steps: Sequence[tuple[str, ...] | None]
    places: Sequence[TextPlace]
    malformed: list[RejectedSubscription]


def read_table(path: Path) -> SubscriptionTable:
    """A file of subscriptions.

    Raises:
        ConfigError: The file cannot be read or lacks a column.
    """
    try:
        return _read_parquet(path) if path.suffix == PARQUET else _read_text(path)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _unusable(path, reason) from error


def _read_parquet(path: Path) -> SubscriptionTable:
    # Opened here: pyarrow would take a directory for a data set of many files.
    with path.open("rb") as handle:
        file = pq.ParquetFile(handle)
        names = _columns_of(path, file.schema_arrow.names)
        table = file.read(names)
        # Converted here, where a text that is no UTF-8 is an error of the file.
        columns = {
            name: table.column(name).cast(pa.string()).to_pylist()
            for name in names
            if name != STEPS
        }
        steps = _steps_in(table.column(STEPS)) if STEPS in names else [()] * len(table)
    places = [TextPlace(str(path), number, None) for number in range(1, len(table) + 1)]
    return SubscriptionTable(columns, steps, places, [])


def _steps_in(column: pa.Array | pa.ChunkedArray) -> list[tuple[str, ...] | None]:
    """Steps of each row of a column of Parquet: lists, or texts to be split."""
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return [split_steps(text or "") for text in column.cast(pa.string()).to_pylist()]
    lists = column.cast(STEP_LISTS).to_pylist()
    return [None if None in (each or ()) else tuple(each or ()) for each in lists]


def _read_text(path: Path) -> SubscriptionTable:
    found = records(read_text(path), _delimiter(path))
    header = next(found, None)
    if header is None:
        raise _unusable(path, "it is empty; the first line names the columns")
    names = _columns_of(path, header.fields)
    numbers = [header.fields.index(name) for name in names]
    query = header.fields.index("query")
    rows: list[list[str]] = []
    places: list[TextPlace] = []
    malformed: list[RejectedSubscription] = []
    for record in found:
        fault = record.fault
        if fault is None and len(record.fields) != len(header.fields):
            fault = f"{len(record.fields)} columns, {len(header.fields)} expected"
        if fault is None:
            rows.append([record.fields[number] for number in numbers])
            places.append(record.place(query, str(path)))
        else:
            row = Subscription("", "", record.text)
            place = TextPlace(str(path), record.line)
            malformed.append(_malformed(row, f"line {record.line}: {fault}", place))
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    found_columns = dict(zip(names, columns, strict=True))
    steps = [split_steps(text) for text in found_columns.pop(STEPS, [""] * len(rows))]
    return SubscriptionTable(found_columns, steps, places, malformed)


def _delimiter(path: Path) -> str:
    return "," if path.suffix == ".csv" else "\t"


def _columns_of(path: Path, found: Sequence[str]) -> list[str]:
    """The columns to be read, of those that a file has.

    Raises:
        ConfigError: One is missing, or there twice.
    """
    wanted = [*COLUMNS, *(name for name in (DELIVER, STEPS) if name in found)]
    problems = {
        "no column": [name for name in wanted if name not in found],
        "more than one column": [name for name in wanted if found.count(name) > 1],
    }
    for problem, names in problems.items():
        if names:
            raise _unusable(
                path,
                f"{problem} {', '.join(names)}; it needs the columns {', '.join(COLUMNS)}, and has "
                f"{', '.join(found)}",
            )
    return wanted


def _malformed(row: Subscription, reason: str, place: TextPlace) -> RejectedSubscription:
    error = ConfigError("config.invalid", key="subscription", reason=reason)
    return RejectedSubscription(row, error, place)


def _unusable(path: Path, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=str(path), reason=reason)
