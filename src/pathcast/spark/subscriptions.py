"""Subscriptions as files: a table, a `.xq` file, or a folder of them, read as rows.

A table has the columns subscriber, query_id and query, and may have `deliver`; text is quoted as in
CSV (`pathcast.customize.delimited`). What is no subscription is told with its reason, and costs no
other.

It compiles nothing: `book` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.customize.delimited import read_text, records
from pathcast.customize.subscription_files import SUFFIX, files_of
from pathcast.customize.subscription_files import read_subscriptions as read_files
from pathcast.errors import ConfigError, PathcastError
from pathcast.model import DeliverMode, Subscription

COLUMNS = ("subscriber", "query_id", "query")
DELIVER = "deliver"
"""Column that a table may have besides."""


@dataclass(frozen=True, slots=True)
class RejectedSubscription:
    """A line of the file that nothing is delivered for.

    Attributes:
        subscriber: As in the file.
        query_id: As in the file.
        query: As in the file.
        code: Code of the error.
        reason: What is wrong, and where.
        place: File and, in a text, line.
    """

    subscriber: str
    query_id: str
    query: str
    code: str
    reason: str
    place: str = ""


Signature = tuple[tuple[str, int, int, int], ...]
"""Name, time, size and inode of every file."""


def signature_of(path: Path) -> Signature:
    """What changes when somebody changes the subscriptions at a path.

    Raises:
        ConfigError: They cannot be looked at.
    """
    try:
        files = files_of(path) if path.is_dir() else iter((path,))
        found = []
        for file in files:
            status = file.stat()
            found.append((str(file), status.st_mtime_ns, status.st_size, status.st_ino))
    except OSError as error:
        raise unusable_subscriptions(path, error.strerror or str(error)) from error
    return tuple(found)


class SubscriptionRows(NamedTuple):
    """The subscriptions of a table, a file or a folder.

    Attributes:
        rows: In their order.
        places: File and, in a text, line of each.
        rejected: What is none, and why.
    """

    rows: list[Subscription]
    places: list[str]
    rejected: list[RejectedSubscription]


def read_rows(path: Path, deliver: DeliverMode) -> SubscriptionRows:
    """The subscriptions at a path, and what is none.

    Args:
        path: A table, a `.xq` file, or a folder of them.
        deliver: What is delivered where a row of a table does not say.

    Raises:
        ConfigError: The file cannot be read or lacks a column, or a folder cannot be listed.
    """
    if path.is_dir() or path.suffix == SUFFIX:
        return _of_files(path)
    return _of_table(path, deliver)


def _of_files(path: Path) -> SubscriptionRows:
    try:
        files = read_files(path)
    except OSError as error:
        raise unusable_subscriptions(path, error.strerror or str(error)) from error
    found = SubscriptionRows([], [], [])
    for file in files:
        place = str(file.path)
        if file.subscription is not None:
            found.rows.append(file.subscription)
            found.places.append(place)
        elif (fault := file.error) is not None:
            told = RejectedSubscription("", place, "", fault.code, str(fault), place)
            found.rejected.append(told)
    return found


def _of_table(path: Path, deliver: DeliverMode) -> SubscriptionRows:
    table = read_table(path)
    found = SubscriptionRows([], [], table.malformed)
    names = [*COLUMNS, *([DELIVER] if DELIVER in table.columns else [])]
    for line, subscriber, query_id, query, *told in zip(
        table.lines, *(table.columns[name] for name in names), strict=True
    ):
        place = f"{path}:{line}"
        if subscriber and query_id and query:
            mode = (told[0] if told else None) or deliver
            # The broker refuses a mode that does not exist.
            found.rows.append(Subscription(query_id, subscriber, query, mode))
            found.places.append(place)
        else:
            found.rejected.append(malformed_subscription(subscriber, query_id, query, place))
    return found


class SubscriptionTable(NamedTuple):
    """A file of subscriptions as it was read.

    Attributes:
        columns: `COLUMNS` and, where the file has it, `DELIVER`; all of one length.
        lines: Line of each row, or its number in Parquet, from 1.
        malformed: The lines that are no rows.
    """

    columns: Mapping[str, Sequence[str | None]]
    lines: Sequence[int]
    malformed: list[RejectedSubscription]


def read_table(path: Path) -> SubscriptionTable:
    """A file of subscriptions.

    Raises:
        ConfigError: The file cannot be read or lacks a column.
    """
    try:
        return _read_parquet(path) if path.suffix == ".parquet" else _read_text(path)
    except ConfigError as error:
        raise unusable_subscriptions(path, str(error.params["reason"])) from error
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise unusable_subscriptions(path, reason) from error


def _read_parquet(path: Path) -> SubscriptionTable:
    # Opened here: pyarrow would take a directory for a data set of many files.
    with path.open("rb") as handle:
        file = pq.ParquetFile(handle)
        names = _columns_of(path, file.schema_arrow.names)
        table = file.read(names)
        # Converted here, where a text that is no UTF-8 is an error of the file.
        columns = {name: table.column(name).cast(pa.string()).to_pylist() for name in names}
    return SubscriptionTable(columns, range(1, len(table) + 1), [])


def _read_text(path: Path) -> SubscriptionTable:
    found = records(read_text(path), "," if path.suffix == ".csv" else "\t")
    header = next(found, None)
    if header is None:
        raise unusable_subscriptions(path, "it is empty; the first line names the columns")
    names = _columns_of(path, header.fields)
    places = [header.fields.index(name) for name in names]
    rows: list[list[str]] = []
    lines: list[int] = []
    malformed: list[RejectedSubscription] = []
    for record in found:
        fault = record.fault
        if fault is None and len(record.fields) != len(header.fields):
            fault = f"{len(record.fields)} columns, {len(header.fields)} expected"
        if fault is None:
            rows.append([record.fields[place] for place in places])
            lines.append(record.line)
        else:
            place = f"{path}:{record.line}"
            reason = f"line {record.line}: {fault}"
            malformed.append(_malformed("", "", record.text, reason, place))
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return SubscriptionTable(dict(zip(names, columns, strict=True)), lines, malformed)


def _columns_of(path: Path, found: Sequence[str]) -> list[str]:
    """The columns to be read, of those that a file has.

    Raises:
        ConfigError: One is missing, or there twice.
    """
    wanted = [*COLUMNS, *([DELIVER] if DELIVER in found else [])]
    problems = {
        "no column": [name for name in wanted if name not in found],
        "more than one column": [name for name in wanted if found.count(name) > 1],
    }
    for problem, names in problems.items():
        if names:
            raise unusable_subscriptions(
                path,
                f"{problem} {', '.join(names)}; it needs the columns {', '.join(COLUMNS)}, and has "
                f"{', '.join(found)}",
            )
    return wanted


def rejected_table(rejected: Sequence[RejectedSubscription], snapshot_version: str) -> pa.Table:
    """Rejected subscriptions as rows, with the version that they are missing from."""
    names = RejectedSubscription.__slots__
    columns = {name: pa.array([getattr(r, name) for r in rejected], pa.string()) for name in names}
    columns["snapshot_version"] = pa.array([snapshot_version] * len(rejected), pa.string())
    return pa.table(columns)


def rejected(row: Subscription, error: PathcastError, place: str = "") -> RejectedSubscription:
    """A row that was not taken up, and why."""
    return RejectedSubscription(row.subscriber, row.id, row.query, error.code, str(error), place)


def malformed_subscription(
    subscriber: str | None, query_id: str | None, text: str | None, place: str
) -> RejectedSubscription:
    """A row that lacks something."""
    reason = "subscriber, query_id or query is empty"
    return _malformed(subscriber, query_id, text, reason, place)


def _malformed(
    subscriber: str | None, query_id: str | None, text: str | None, reason: str, place: str
) -> RejectedSubscription:
    error = ConfigError("config.invalid", key="subscription", reason=reason)
    return rejected(Subscription(query_id or "", subscriber or "", text or ""), error, place)


def unusable_subscriptions(path: Path, reason: str) -> ConfigError:
    """The error of subscriptions that cannot be read."""
    return ConfigError("config.invalid", key="subscriptions.path", reason=f"{path}: {reason}")
