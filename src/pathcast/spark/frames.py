"""From frame to frame: `deliver`, for sessions, sources and sinks of one's own.

    messages -> deliver -> deliveries, and what was not done

Example:
    >>> found = deliver(frame, "subscriptions.tsv", "body", id="key")       # doctest: +SKIP
    >>> found.where("error is null").write.saveAsTable("deliveries")        # doctest: +SKIP

A delivery becomes a row of the JVM here, which costs many times what it costs to make it:
`Delivery` writes where it is made.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import SparkContext, SparkFiles
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BinaryType, StringType

from pathcast.errors import invalid_setting
from pathcast.limits import Limits
from pathcast.registry import Registry, Snapshot
from pathcast.spark import schemas
from pathcast.spark.book import SubscriptionBook, saved_files
from pathcast.spark.frame_tasks import DELIVERED, RowTask
from pathcast.spark.generations import GenerationFiles
from pathcast.spark.shipping import prepare_environment, ship
from pathcast.spark.storage import Storage
from pathcast.spark.subscription_places import FilePlace

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pathcast.model import DeliverMode

SUBSCRIPTION_FILES = (".tsv", ".csv", ".parquet", ".xq")
"""Files of rows; others are what `save` has written."""


def deliver(
    df: DataFrame,
    subscriptions: str | os.PathLike[str] | Registry | Snapshot,
    message: str = "message",
    *,
    id: str | None = None,
    columns: Sequence[str] = (),
    deliver: DeliverMode = "ids",
    namespaces: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    threads: int = 1,
    cache_bytes_max: int | None = None,
) -> DataFrame:
    """Delivers every message of a frame, in one Arrow stage that Spark runs when it likes.

    Args:
        df: Any frame, streaming ones included. If it has the columns `code`, `reason` and `bytes`
            of `schemas.SOURCE`, all three and of its types, they say why a message that is null
            could not be read, and how long it is (null: 0); else they are columns like others.
        subscriptions: A file or folder of them; a `Registry`; or what one has frozen
            (`freeze`), or the file that was saved of it. Of filter queries, a delivery is a
            notice, and nobody's.
        message: Column with the messages as they arrived (binary), or as text (string).
        id: Column with their ids, of any type but binary that Spark casts to string; a null is
            replaced by a digest of the bytes, as all are where no column is given.
        columns: Columns that are passed through.
        deliver: What a row of a file gets that does not say it.
        namespaces: Prefixes for the queries of a file.
        limits: Bounds on a message and its results; those of the subscriptions when not given.
        threads: Threads of one task.
        cache_bytes_max: Memory of one worker for compiled label paths.

    Returns:
        Rows `DELIVERED`, `snapshot_version` and the columns passed through: a row a delivery; and
        with `error`, one a message that was refused and one a pair of message and subscription
        without an answer. Ids of deliveries are the same wherever and however often they are made.

    Raises:
        ConfigError: A column is missing or is not binary or string, or a file cannot be read.
        SnapshotFormatError: A file is foreign or damaged.

    Cost:
        About 10 µs a message of 4 KB for the way to the worker and back, 0.4 µs a delivery for the
        JVM, and the engine. Subscriptions are compiled here and sent to the workers as files.
    """
    check_columns_of(df, message, id, columns)
    for name in columns:
        if name.casefold() in schemas.RESERVED_COLUMNS or name.casefold() in DELIVERED.names:
            raise invalid_setting(
                "columns", f"{name} is a column that Pathcast writes itself; rename it"
            )
    prepare_workers(df.sparkSession)
    extra = extra_of(df, columns)
    with tempfile.TemporaryDirectory() as folder:
        files = _files_of(subscriptions, Path(folder), deliver, namespaces, limits)
        queries = _sent(df.sparkSession, files)
    task = RowTask(queries, extra, limits, threads, cache_bytes_max)
    chosen = df.select(*message_inputs(df, message, id), *columns)
    rows = chosen.mapInArrow(task, from_arrow_schema(pa.schema([*DELIVERED, *extra])))
    # One value for all rows need not travel with each.
    told = F.lit(queries.version).alias("snapshot_version")
    return rows.select(*DELIVERED.names, told, *columns)


def _files_of(
    subscriptions: str | os.PathLike[str] | Registry | Snapshot,
    folder: Path,
    deliver: DeliverMode,
    namespaces: Mapping[str, str] | None,
    limits: Limits | None,
) -> GenerationFiles:
    """Subscriptions as files; a folder takes those that are made for it."""
    if isinstance(subscriptions, Registry):
        subscriptions = subscriptions.freeze()
    if isinstance(subscriptions, Snapshot):
        path = folder / "saved"
        subscriptions.save(path)
        return saved_files(path, folder)
    path = Path(subscriptions).absolute()
    if not path.is_dir() and path.suffix not in SUBSCRIPTION_FILES:
        try:
            return saved_files(path, folder)
        except OSError as error:
            reason = f"{path} cannot be read: {error.strerror}"
            raise invalid_setting("subscriptions", reason) from error
    storage = Storage(folder)
    book = SubscriptionBook(
        FilePlace(path), storage, deliver=deliver, namespaces=namespaces, limits=None
    )
    taken = book.current()
    if taken.rejected:
        first = taken.rejected[0]
        logging.getLogger("pathcast.spark").warning(
            "%d subscriptions were rejected, the first is %s: %s",
            len(taken.rejected),
            first.place,
            first.reason,
        )
    with taken.generation.files(storage) as found:
        return found


def _sent(spark: SparkSession, files: GenerationFiles) -> GenerationFiles:
    """Sends files to all workers, present and future, under names that are digests of them.

    Spark looks at a file that was added for as long as the session lives, and every task fails
    when it has gone or another one of its name is added. So a copy is added that lies where Spark
    clears up at the end; a server of Spark Connect has copies of its own.
    """
    if classic_context(spark) is None:
        with tempfile.TemporaryDirectory() as folder:
            copies = [_copied(path, Path(folder)) for path in (files.takers, files.queries)]
            spark.addArtifacts(*map(str, copies), file=True)
    else:
        kept = Path(SparkFiles.getRootDirectory()) / "pathcast"
        kept.mkdir(exist_ok=True)
        known = set(kept.iterdir())
        copies = [_copied(path, kept) for path in (files.takers, files.queries)]
        for copy in copies:
            if copy not in known:
                spark.sparkContext.addFile(str(copy))
    return replace(files, takers=copies[0], queries=copies[1])


def _copied(path: Path, folder: Path) -> Path:
    with path.open("rb") as file:
        copy = folder / hashlib.file_digest(file, "sha256").hexdigest()
    if not copy.exists():
        shutil.copyfile(path, copy)
    return copy


def classic_context(spark: SparkSession) -> SparkContext | None:
    """Returns the context of a session; None for one of Spark Connect, which has none."""
    found: SparkContext | None = getattr(spark, "_sc", None)
    return found


def prepare_workers(spark: SparkSession, *, is_shipped: bool = True) -> None:
    """Has the workers of a session run this Pathcast, with the engine of this process.

    Those of Spark Connect know Pathcast; those of a cluster are sent its files if `is_shipped`.
    """
    context = classic_context(spark)
    if context is not None:
        prepare_environment(context)
        if is_shipped:
            ship(context)


def extra_of(df: DataFrame, columns: Sequence[str]) -> pa.Schema:
    """Columns of a frame that are passed through, in types of Arrow."""
    schema: pa.Schema = to_arrow_schema(df.select(*columns).schema, timezone="UTC")
    return schema


def message_inputs(df: DataFrame, message: str, id: str | None) -> list[Column]:
    """The columns of a frame that `schemas.SOURCE` has.

    `code`, `reason` and `bytes` are taken where all three are there, of the types that it says.
    """
    ids = F.lit(None) if id is None else df[id]
    names = ("code", "reason", "bytes")
    wanted = from_arrow_schema(schemas.SOURCE)
    is_told = all(
        name in df.columns and df.schema[name].dataType == wanted[name].dataType for name in names
    )
    told = [df[name] for name in names] if is_told else []
    return [ids.cast("string").alias("message_id"), df[message].alias("message"), *told]


def check_columns_of(
    df: DataFrame, message: str, id: str | None, columns: Sequence[str] = ()
) -> None:
    """Refuses (ConfigError) a frame without a column, or with messages or ids of a wrong type."""
    for key, name in (("message", message), ("id", id), *(("columns", each) for each in columns)):
        if name is not None and name not in df.columns:
            raise invalid_setting(key, f"no column {name!r} among {', '.join(df.columns)}")
    kind = df.schema[message].dataType
    if not isinstance(kind, (BinaryType, StringType)):
        raise invalid_setting(
            "message", f"column {message!r} is {kind.simpleString()}, not binary or string"
        )
    if id is not None and isinstance(df.schema[id].dataType, BinaryType):
        # Bytes that are not UTF-8 are no text for Arrow, and end the batch.
        fix = f"give a column of hex({id}) or cast({id} as string)"
        raise invalid_setting("id", f"column {id!r} is binary, and ids are text: {fix}")
