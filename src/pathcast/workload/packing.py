r"""Writes generated messages and subscriptions to files.

Example:
    >>> import tempfile
    >>> from pathcast.workload.subscriptions import GeneratedSubscription
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     row = GeneratedSubscription("s1", "q1", "/a")
    ...     path = write_subscriptions([row], Path(folder) / "s.tsv")
    ...     path.read_text()
    'subscriber\tquery_id\tquery\ns1\tq1\t/a\n'

Files are written anew under another name and then renamed, so a reader never sees half of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.errors import ConfigError
from pathcast.workload.documents import GeneratedMessage
from pathcast.workload.subscriptions import GeneratedSubscription

ROWS_PER_GROUP = 1024
"""Messages of one Parquet row group: some MB, and enough groups for several readers."""

MESSAGE_SCHEMA = pa.schema([pa.field("message_id", pa.string()), pa.field("message", pa.binary())])
"""Columns of packed messages, named as pipelines read them."""

SUBSCRIPTION_SCHEMA = pa.schema(
    [pa.field(name, pa.string()) for name in GeneratedSubscription._fields]
)
"""Columns of packed subscriptions."""


def write_message_files(
    messages: Iterable[GeneratedMessage], directory: str | os.PathLike[str]
) -> int:
    """One file `ID.xml` for each message.

    Args:
        messages: What is written.
        directory: Made if it is not there; other files in it stay.

    Returns:
        Number of messages.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for message in messages:
        with _replacing(folder / f"{message.id}.xml") as path:
            path.write_bytes(message.message)
        count += 1
    return count


def write_message_parquet(
    messages: Iterable[GeneratedMessage], path: str | os.PathLike[str]
) -> int:
    """A Parquet file with the columns `message_id` (string) and `message` (binary).

    Returns:
        Number of messages.
    """
    count = 0
    with _replacing(Path(path)) as fresh, pq.ParquetWriter(fresh, MESSAGE_SCHEMA) as writer:
        for group in _groups(messages, ROWS_PER_GROUP):
            ids = pa.array([message.id for message in group], pa.string())
            data = pa.array([message.message for message in group], pa.binary())
            writer.write_table(pa.table([ids, data], schema=MESSAGE_SCHEMA))
            count += len(group)
    return count


def write_subscriptions(
    subscriptions: Iterable[GeneratedSubscription], path: str | os.PathLike[str]
) -> Path:
    """A file of subscriptions: `.tsv` with a line of headings, or `.parquet`, by the path's end.

    Both have the columns `subscriber`, `query_id` and `query`.

    Returns:
        The path.

    Raises:
        ConfigError: The path ends otherwise, or a value holds a tab or line end, which TSV cannot.
    """
    target = Path(path)
    if target.suffix == ".tsv":
        _write_tsv(subscriptions, target)
    elif target.suffix == ".parquet":
        rows = list(subscriptions)
        table = pa.table(
            [pa.array([row[column] for row in rows], pa.string()) for column in range(3)],
            schema=SUBSCRIPTION_SCHEMA,
        )
        with _replacing(target) as fresh:
            pq.write_table(table, fresh)
    else:
        raise ConfigError(
            "config.invalid", key="path", reason=f"{target} ends in neither .tsv nor .parquet"
        )
    return target


def _write_tsv(subscriptions: Iterable[GeneratedSubscription], target: Path) -> None:
    with _replacing(target) as fresh, fresh.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(GeneratedSubscription._fields) + "\n")
        for row in subscriptions:
            if any(sign in value for value in row for sign in "\t\r\n"):
                raise ConfigError(
                    "config.invalid",
                    key=row.query_id,
                    reason="a tab or line end cannot be written to a TSV file",
                )
            file.write("\t".join(row) + "\n")


def _groups(
    messages: Iterable[GeneratedMessage], size: int
) -> Iterator[tuple[GeneratedMessage, ...]]:
    group: list[GeneratedMessage] = []
    for message in messages:
        group.append(message)
        if len(group) == size:
            yield tuple(group)
            group.clear()
    if group:
        yield tuple(group)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A leading dot hides the file from readers that watch the directory.
    fresh = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield fresh
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
