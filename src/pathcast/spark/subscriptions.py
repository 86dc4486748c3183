"""Subscriptions as files: a table, a `.xq` file, or a folder of them, read as rows.

A table has the columns subscriber, query_id and query, and may have `deliver`. What is no
subscription is told with its reason and costs no other.

It compiles nothing: `book` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from pathcast.customize.subscription_files import SUFFIX, files_of
from pathcast.customize.subscription_files import read_subscriptions as read_files
from pathcast.errors import ConfigError, PathcastError
from pathcast.model import DeliverMode, Subscription

COLUMNS = ("subscriber", "query_id", "query")


@dataclass(frozen=True, slots=True)
class RejectedSubscription:
    """A line of the file that nothing is delivered for.

    Attributes:
        subscriber: As in the file.
        query_id: As in the file.
        query: As in the file.
        code: Code of the error.
        reason: What is wrong, and where.
    """

    subscriber: str
    query_id: str
    query: str
    code: str
    reason: str


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


def read_rows(
    path: Path, deliver: DeliverMode
) -> tuple[list[Subscription], list[RejectedSubscription]]:
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


def _of_files(path: Path) -> tuple[list[Subscription], list[RejectedSubscription]]:
    try:
        files = read_files(path)
    except OSError as error:
        raise unusable_subscriptions(path, error.strerror or str(error)) from error
    rows: list[Subscription] = []
    refused: list[RejectedSubscription] = []
    for file in files:
        if file.subscription is not None:
            rows.append(file.subscription)
        elif (fault := file.error) is not None:
            refused.append(RejectedSubscription("", str(file.path), "", fault.code, str(fault)))
    return rows, refused


def _of_table(
    path: Path, deliver: DeliverMode
) -> tuple[list[Subscription], list[RejectedSubscription]]:
    refused: list[RejectedSubscription] = []
    table = read_table(path, refused)
    names = [*COLUMNS, *(["deliver"] if "deliver" in table.column_names else [])]
    columns: Sequence[list[str | None]] = [
        table.column(name).cast(pa.string()).to_pylist() for name in names
    ]
    rows: list[Subscription] = []
    for subscriber, query_id, query, *told in zip(*columns, strict=True):
        if subscriber and query_id and query:
            mode = (told[0] if told else None) or deliver
            # The broker refuses a mode that does not exist.
            rows.append(Subscription(query_id, subscriber, query, mode))  # type: ignore[arg-type]
        else:
            refused.append(malformed_subscription(subscriber, query_id, query))
    return rows, refused


def read_table(path: Path, malformed: list[RejectedSubscription]) -> pa.Table:
    """A file of subscriptions as a table that has at least `COLUMNS`.

    Args:
        path: The file.
        malformed: Gets the lines that are none.

    Raises:
        ConfigError: The file cannot be read or lacks a column.
    """
    try:
        table = pq.read_table(path) if path.suffix == ".parquet" else _read_tsv(path, malformed)
    except (OSError, pa.ArrowException) as error:
        raise unusable_subscriptions(path, str(error)) from error
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise unusable_subscriptions(
            path,
            f"no column {', '.join(missing)}; it needs the columns {', '.join(COLUMNS)}, and has "
            f"{', '.join(table.column_names)}",
        )
    return table


def _read_tsv(path: Path, malformed: list[RejectedSubscription]) -> pa.Table:
    def reject(row: pyarrow.csv.InvalidRow) -> str:
        reason = f"{row.actual_columns} columns, {row.expected_columns} expected"
        malformed.append(_malformed("", "", row.text, reason))
        return "skip"

    return pyarrow.csv.read_csv(
        path,
        # One thread, so that rejected lines are reported in the order of the file.
        read_options=pyarrow.csv.ReadOptions(use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter="\t", quote_char=False, invalid_row_handler=reject
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in (*COLUMNS, "deliver")},
            strings_can_be_null=False,
        ),
    )


def rejected_table(rejected: Sequence[RejectedSubscription], snapshot_version: str) -> pa.Table:
    """Rejected subscriptions as rows, with the version that they are missing from."""
    names = RejectedSubscription.__slots__
    columns = {name: pa.array([getattr(r, name) for r in rejected], pa.string()) for name in names}
    columns["snapshot_version"] = pa.array([snapshot_version] * len(rejected), pa.string())
    return pa.table(columns)


def rejected(row: Subscription, error: PathcastError) -> RejectedSubscription:
    """A row that was not taken up, and why."""
    return RejectedSubscription(row.subscriber, row.id, row.query, error.code, str(error))


def malformed_subscription(
    subscriber: str | None, query_id: str | None, text: str | None
) -> RejectedSubscription:
    """A row that lacks something."""
    return _malformed(subscriber, query_id, text, "subscriber, query_id or query is empty")


def _malformed(
    subscriber: str | None, query_id: str | None, text: str | None, reason: str
) -> RejectedSubscription:
    error = ConfigError("config.invalid", key="subscription", reason=reason)
    return rejected(Subscription(query_id or "", subscriber or "", text or ""), error)


def unusable_subscriptions(path: Path, reason: str) -> ConfigError:
    """The error of subscriptions that cannot be read."""
    return ConfigError("config.invalid", key="subscriptions.path", reason=f"{path}: {reason}")
