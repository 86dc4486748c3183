r"""Subscriptions in files of any format: a table, a `.xq` file, or a folder of them, as rows.

A table has the columns subscriber, query_id and query, and may have `deliver`, `language` and
`steps`: text, separated by tabs or (`.csv`) commas and quoted as in CSV (`delimited`), or Parquet.
Steps have
semicolons between them (`pathcast.registry.steps.split_steps`), or are a list in Parquet. What is
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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.engine.rows import with_language
from pathcast.errors import ConfigError, PathcastError, UnsupportedQueryError
from pathcast.model import (
    DELIVER_MODES,
    QUERY_LANGUAGES,
    DeliverMode,
    QueryLanguage,
    QueryWarning,
    Subscription,
)
from pathcast.registry.delimited import TextPlace, read_text, records
from pathcast.registry.steps import split_steps
from pathcast.registry.subscription_files import SUFFIX, read_subscriptions

COLUMNS: Final = ("subscriber", "query_id", "query")
DELIVER: Final = "deliver"
LANGUAGE: Final = "language"
STEPS: Final = "steps"
"""Columns that a table may have besides."""
PARQUET: Final = ".parquet"

SubscriptionKey: TypeAlias = tuple[str, str]
"""Subscriber and id of the query, which are what a subscription is known by."""

_COLUMNS_TELLING: Final = 2
"""A first line that has so many of `COLUMNS` names columns; no file of queries begins so."""


@dataclass(frozen=True, slots=True)
class RejectedSubscription:
    """A row that nothing is delivered for.

    Attributes:
        row: As in the file; what it does not have is empty.
        error: What is wrong.
        place: Where its query stands, or the row.
        in_force: The last valid version of this subscription, which is answered in its place; None
            where there is none.
    """

    row: Subscription
    error: PathcastError
    place: TextPlace
    in_force: Subscription | None = None

    @property
    def key(self) -> SubscriptionKey | None:
        """Subscriber and id of the query; None where the row does not say them."""
        row = self.row
        return (row.subscriber, row.id) if row.subscriber and row.id else None

    @property
    def code(self) -> str:
        """Code of the error."""
        return self.error.code

    @property
    def reason(self) -> str:
        """The error's text."""
        return str(self.error)


class WarnedSubscription(NamedTuple):
    """A condition of a query that was taken up, which never or always holds.

    Attributes:
        row: The first that has the query.
        place: Where its query stands, or the row.
        warning: What is wrong.
    """

    row: Subscription
    place: TextPlace
    warning: QueryWarning

    def __str__(self) -> str:
        line, column = self.place.at(self.row.query, self.warning.offset)
        at = f"{self.place.path}:{line}" + ("" if column is None else f":{column}")
        named = f"{self.row.id}: " if self.row.subscriber else ""
        return f"{at}: {named}{self.warning}"


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


def is_table(text: str, path: Path) -> bool:
    """Whether the text of a file is a table of subscriptions: whether its first line names columns.

    Args:
        text: The content of the file.
        path: Its name, which says what separates columns.
    """
    header = next(records(text, _delimiter(path)), None)
    return header is not None and len({*COLUMNS} & {*header.fields}) >= _COLUMNS_TELLING


def read_rows(
    path: Path, deliver: DeliverMode, language: QueryLanguage | None = None
) -> SubscriptionRows:
    """The subscriptions at a path, and what is none.

    Args:
        path: A table, a `.xq` file, or a folder of them.
        deliver: What is delivered where a row of a table does not say.
        language: Of the rows and files that choose none.

    Raises:
        ConfigError: The file cannot be read or lacks a column, or a folder cannot be listed.

    Cost: about 5 µs a row.
    """
    if path.is_dir() or path.suffix == SUFFIX:
        return _of_files(path, language)
    return checked_rows(read_table(path), deliver, language)


def _of_files(path: Path, language: QueryLanguage | None) -> SubscriptionRows:
    try:
        files = read_subscriptions(path)
    except OSError as error:
        raise unusable(path, error.strerror or str(error)) from error
    found = SubscriptionRows([], [], [])
    for file in files:
        if file.subscription is not None:
            found.rows.append(file.subscription)
            found.places.append(file.place)
        elif file.error is not None:
            row = Subscription(file.id, file.subscriber, "")
            found.rejected.append(RejectedSubscription(row, file.error, file.place))
    return found._replace(rows=with_language(found.rows, language))


def rows_of_table(
    text: str, path: Path, deliver: DeliverMode, language: QueryLanguage | None = None
) -> SubscriptionRows:
    """Reads the rows of a table whose text was read (`read_rows`).

    Raises:
        ConfigError: It lacks a column.
    """
    return checked_rows(_text_table(text, path), deliver, language)


def checked_rows(
    table: SubscriptionTable, deliver: DeliverMode, language: QueryLanguage | None = None
) -> SubscriptionRows:
    """The rows of a table, and what is none.

    Args:
        table: As it was read; lines that are no rows come first among what is none.
        deliver: What is delivered where a row does not say.
        language: Of the rows that choose none.
    """
    found = SubscriptionRows([], [], table.malformed)
    unsaid = [None] * len(table.places)
    for place, subscriber, query_id, query, told, chosen, steps in zip(
        table.places,
        *(table.columns[name] for name in COLUMNS),
        table.columns.get(DELIVER, unsaid),
        table.columns.get(LANGUAGE, unsaid),
        table.steps,
        strict=True,
    ):
        mode = told or deliver
        row = Subscription(query_id or "", subscriber or "", query or "", mode, None, steps or ())
        row = row._replace(language=chosen or language)
        if not _are_text([*row[:4], *row.steps]):
            row = Subscription(_shown(row.id), _shown(row.subscriber), _shown(row.query))
            found.rejected.append(_malformed(row, NOT_TEXT, place))
        elif not (subscriber and query_id and query):
            found.rejected.append(_malformed(row, "subscriber, query_id or query is empty", place))
        elif steps is None:
            found.rejected.append(_malformed(row, "one of its steps is missing", place))
        elif mode not in DELIVER_MODES:
            # Here, as in a file: a row that cannot be one takes its id from no other.
            error = UnsupportedQueryError("subscription.deliver", found=mode)
            found.rejected.append(RejectedSubscription(row, error, place))
        elif row.language not in (None, *QUERY_LANGUAGES):
            error = UnsupportedQueryError("query.language", found=row.language)
            found.rejected.append(RejectedSubscription(row, error, place))
        else:
            found.rows.append(row)
            found.places.append(place)
    return found


class SubscriptionTable(NamedTuple):
    """A file of subscriptions as it was read.

    Attributes:
        columns: `COLUMNS` and, where the file has them, `DELIVER` and `LANGUAGE`; all of one
            length.
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
    with told_unusable(path):
        if path.suffix == PARQUET:
            return _read_parquet(path)
        return _text_table(read_text(path, keep_bytes=True), path)


@contextmanager
def told_unusable(path: Path) -> Iterator[None]:
    """Turns what libraries raise on a file that they cannot read into the error of the file.

    Raises:
        ConfigError: The file cannot be used.
    """
    try:
        yield
    except PathcastError:
        raise
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise unusable(path, reason or type(error).__name__) from error


def _read_parquet(path: Path) -> SubscriptionTable:
    # Opened here: pyarrow would take a directory for a data set of many files.
    with path.open("rb") as handle:
        file = pq.ParquetFile(handle)
        names = columns_of(path, file.schema_arrow.names)
        return table_of(file.read(names), names, path, 1)


def table_of(
    rows: pa.Table | pa.RecordBatch, names: Sequence[str], path: Path, first: int
) -> SubscriptionTable:
    """Rows of Parquet as they were read.

    Args:
        rows: The rows.
        names: Columns of them that are wanted.
        path: The file.
        first: Number of the first of these rows in the file, from 1.
    """
    columns = {name: _texts(rows.column(name)) for name in names if name != STEPS}
    steps = steps_in(rows.column(STEPS)) if STEPS in names else [()] * len(rows)
    places = [TextPlace(str(path), first + number, None) for number in range(len(rows))]
    return SubscriptionTable(columns, steps, places, [])


def _texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Texts of a column; bytes that are not UTF-8 are lone surrogates, as in `read_text`."""
    try:
        found: list[str | None] = as_text(column).to_pylist()
    except pa.ArrowInvalid:
        values = column.cast(pa.binary()).to_pylist()
        found = [v if v is None else v.decode("utf-8", "surrogateescape") for v in values]
    return found


def as_text(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column of Parquet as text.

    Raises:
        ArrowInvalid: Some of it is not UTF-8.
    """
    found = column.cast(pa.string())
    found.validate(full=True)
    return found


def steps_in(column: pa.Array | pa.ChunkedArray) -> list[tuple[str, ...] | None]:
    """Steps of each row of a column of Parquet: lists, or texts to be split."""
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return [split_steps(text or "") for text in _texts(column)]
    lists = column.cast(pa.list_(pa.binary())).to_pylist()
    return [
        None
        if None in (each or ())
        else tuple(step.decode("utf-8", "surrogateescape") for step in each or ())
        for each in lists
    ]


def _text_table(text: str, path: Path) -> SubscriptionTable:
    found = records(text, _delimiter(path))
    header = next(found, None)
    if header is None:
        raise unusable(path, "it is empty; the first line names the columns")
    names = columns_of(path, header.fields)
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
            query_id, subscriber = map(_shown, _key_in(header.fields, record.fields))
            row = Subscription(query_id, subscriber, _shown(record.text))
            place = TextPlace(str(path), record.line)
            malformed.append(_malformed(row, f"line {record.line}: {fault}", place))
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    found_columns = dict(zip(names, columns, strict=True))
    steps = [split_steps(text) for text in found_columns.pop(STEPS, [""] * len(rows))]
    return SubscriptionTable(found_columns, steps, places, malformed)


def _key_in(header: Sequence[str], fields: Sequence[str]) -> tuple[str, str]:
    """Id of the query and subscriber of a line that is no row; empty where it cannot be told.

    What is wrong with a line that lacks its last columns stands after the two; a line with more or
    other columns, or quotes that do not match, may have them anywhere.
    """
    at = header.index("query_id"), header.index("subscriber")
    if max(at) < len(fields) < len(header):
        return fields[at[0]], fields[at[1]]
    return "", ""


def _delimiter(path: Path) -> str:
    return "," if path.suffix == ".csv" else "\t"


def columns_of(path: Path, found: Sequence[str]) -> list[str]:
    """The columns to be read, of those that a file has.

    Raises:
        ConfigError: One is missing, or there twice.
    """
    wanted = [*COLUMNS, *(name for name in (DELIVER, LANGUAGE, STEPS) if name in found)]
    problems = {
        "no column": [name for name in wanted if name not in found],
        "more than one column": [name for name in wanted if found.count(name) > 1],
    }
    for problem, names in problems.items():
        if names:
            raise unusable(
                path,
                f"{problem} {', '.join(names)}; it needs the columns {', '.join(COLUMNS)}, and has "
                f"{_shown(', '.join(found))}",
            )
    return wanted


NOT_TEXT: Final = "it has a byte that is not UTF-8; save the file as UTF-8"


def _are_text(values: Sequence[str]) -> bool:
    """Whether none has a byte that is not UTF-8, which is a lone surrogate in it."""
    try:
        for value in values:
            if not value.isascii():
                value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(text: str) -> str:
    r"""A text whose bytes that are not UTF-8 are written as \xNN."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _malformed(row: Subscription, reason: str, place: TextPlace) -> RejectedSubscription:
    error = ConfigError("config.invalid", key="subscription", reason=reason)
    return RejectedSubscription(row, error, place)


def unusable(path: Path, reason: str) -> ConfigError:
    """The error of a file or folder that cannot be used."""
    return ConfigError("config.invalid", key=str(path), reason=reason)
