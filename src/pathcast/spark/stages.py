"""The stages of the pipeline: functions from DataFrame to DataFrame, schema stated.

    messages -> match_messages -> matches, dead letters
    matches, subscriptions -> deliveries -> inboxes

Example:
    >>> found = match_messages(frame, "q.snapshot", "message", "id")        # doctest: +SKIP
    >>> with found:                                   # computed once for both # doctest: +SKIP
    ...     found.matches.write.parquet("matches")
    ...     found.dead_letters.write.parquet("dead_letters")

Stages read and write nothing themselves; `pipeline` does.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyspark import SparkFiles, StorageLevel
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType

from pathcast.engine import Snapshot
from pathcast.engine.selection import engine_name
from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.spark import schemas
from pathcast.spark.matching import MatchTask

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pathcast.model import EngineName

INBOX_BUCKETS = 16
"""Buckets of the inboxes unless told otherwise: as many files a micro-batch, whatever the number
of subscribers. One folder a subscriber was 14 times slower at 1,000 subscribers."""


@dataclass(frozen=True, slots=True)
class MatchedMessages:
    """What became of the messages of one frame. Every message is either matched or refused.

    Attributes:
        verdicts: One row a message, schema `schemas.verdicts`: the stage itself.
        matches: The messages that were not refused, schema `schemas.matches`; the list of
            queries is empty for a message that nobody asked for.
        dead_letters: The messages that were refused, and the pairs of a matched message and a
            query that could not be decided on it, schema `schemas.DEAD_LETTERS`.
        snapshot_version: The snapshot that all rows were matched with.

    Cost:
        `matches` and `dead_letters` are two views of one stage. Spark computes the stage for each
        action on either, so whoever needs both writes them inside `with found:`, which keeps the
        verdicts (not the messages) in memory and, where that is short, on disk.
    """

    verdicts: DataFrame
    matches: DataFrame
    dead_letters: DataFrame
    snapshot_version: str

    def __enter__(self) -> Self:
        self.verdicts.persist(StorageLevel.MEMORY_AND_DISK)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.verdicts.unpersist()


def match_messages(
    df: DataFrame,
    snapshot_path: str | os.PathLike[str],
    message_col: str = "message",
    id_col: str = "message_id",
    *,
    ids: schemas.Ids = "ids",
    limits: Limits | None = None,
    engine: EngineName | None = None,
    threads: int = 1,
    cache_bytes_max: int | None = None,
    ship: bool = False,
    snapshot_version: str | None = None,
) -> MatchedMessages:
    """Match every message of a frame against the queries of a snapshot, in one Arrow stage.

    Args:
        df: Any frame, streaming ones included. If it has columns `code` and `reason`, they say why
            a message that is null could not be read (see `schemas.SOURCE`).
        snapshot_path: File that `Snapshot.save` wrote, at a path that the workers see too.
        message_col: The messages as they arrived (binary), or as text (string).
        id_col: Their ids, of any type that Spark casts to string.
        ids: Whether matches name queries by "ids", or by "numbers" in the snapshot (`int`, a
            quarter of the bytes; `Snapshot.query_ids` translates).
        limits: Bounds on a message; those that the snapshot was frozen with when not given.
        engine: Which engine matches; `PATHCAST_ENGINE` of this process, or the kernel, when not
            given. Workers use what was decided here, whatever their environment says.
        threads: Threads of one task.
        cache_bytes_max: Memory of one worker for compiled label paths.
        ship: Send the file to the workers with `addFile` rather than expect it at the path.
        snapshot_version: Version of the file, where it is known. Workers check it. Where it or
            `limits` is not given, the file is opened here to ask for it, which the reference engine
            takes seconds for.

    Returns:
        Matches and dead letters, not computed yet.

    Raises:
        ConfigError: A column is missing or is not binary or string.
        SnapshotFormatError: The file is foreign, damaged or of another version.

    Cost:
        About 10 µs a message of 4 KB for the way to the worker and back, and the matching. A worker
        maps the file in under a millisecond and shares its pages with all others.
    """
    path = Path(snapshot_path).absolute()
    check_columns(df, message_col, id_col)
    version = snapshot_version
    if version is None or limits is None:
        snapshot = Snapshot.open(path, engine=engine)
        version, limits = version or snapshot.version, limits or snapshot.limits
    task = MatchTask(
        snapshot=ship_snapshot(df.sparkSession, path, version) if ship else str(path),
        version=version,
        shipped=ship,
        ids=ids,
        engine=engine_name(engine),
        limits=limits,
        threads=threads,
        cache_bytes_max=cache_bytes_max,
    )
    verdicts = df.select(*message_columns(df, message_col, id_col)).mapInArrow(
        task, schemas.verdicts(ids)
    )
    queries = "query_ids" if ids == "ids" else "query_numbers"
    fine = F.col("code").isNull()
    return MatchedMessages(
        verdicts=verdicts,
        matches=verdicts.where(fine).select("message_id", queries, "snapshot_version"),
        dead_letters=_dead_letters(verdicts),
        snapshot_version=version,
    )


def _dead_letters(verdicts: DataFrame) -> DataFrame:
    """What was not matched: whole messages, and single queries on messages that were."""
    reason = ("code", "message", "line", "column", "offset")

    def letter(query_id: Column, columns: dict[str, Column]) -> Column:
        fields = [query_id.cast("string").alias("query_id")]
        for name in reason:
            kind = schemas.DEAD_LETTERS[name].dataType
            fields.append(columns.get(name, F.lit(None)).cast(kind).alias(name))
        return F.struct(*fields)

    refused = F.array(letter(F.lit(None), {name: F.col(name) for name in reason}))
    undecided = F.transform(
        "undecided",
        lambda query: letter(query.query_id, {"code": query.code, "message": query.message}),
    )
    letters = F.when(F.col("code").isNotNull(), refused).otherwise(undecided)
    rows = verdicts.select(
        "message_id", "bytes", "snapshot_version", F.explode(letters).alias("letter")
    )
    return rows.select(
        *(
            F.col(name if name in rows.columns else f"letter.{name}").alias(name)
            for name in schemas.DEAD_LETTERS.names
        )
    )


def ship_snapshot(spark: SparkSession, path: Path, version: str) -> str:
    """Send a snapshot to all workers, present and future; its name among the files of the job.

    Spark looks at a file that was added for as long as the session lives, and every task fails
    when it has gone or another one of its name is added. So a copy is added that is named after its
    content and lies where Spark clears up at the end.
    """
    name = f"{version}.snapshot"
    copy = Path(SparkFiles.getRootDirectory()) / "pathcast" / name
    if not copy.exists():
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)
        spark.sparkContext.addFile(str(copy))
    return name


def check_columns(df: DataFrame, message_col: str, id_col: str) -> None:
    """Make sure that a frame has the columns of messages.

    Raises:
        ConfigError: A column is missing or is not binary or string.
    """
    for key, name in (("message_col", message_col), ("id_col", id_col)):
        if name not in df.columns:
            raise ConfigError(
                "config.invalid",
                key=key,
                reason=f"no column {name!r} among {', '.join(df.columns)}",
            )
    kind = df.schema[message_col].dataType
    if not isinstance(kind, (BinaryType, StringType)):
        raise ConfigError(
            "config.invalid",
            key="message_col",
            reason=f"column {message_col!r} is {kind.simpleString()}, not binary or string",
        )


def message_columns(df: DataFrame, message_col: str, id_col: str) -> list[Column]:
    """The columns that travel to the workers, and no other."""
    inputs = [df[id_col].cast("string").alias("message_id"), df[message_col].alias("message")]
    inputs += [df[name] for name in ("code", "reason", "bytes") if _is_source_column(df, name)]
    return inputs


def _is_source_column(df: DataFrame, name: str) -> bool:
    return name in df.columns and df.schema[name].dataType == schemas.SOURCE[name].dataType


def deliveries(
    matches: DataFrame, subscriptions: DataFrame, *, buckets: int = INBOX_BUCKETS
) -> DataFrame:
    """One row for each subscriber and query that a message is delivered for.

    Args:
        matches: Schema `schemas.matches`, by ids or by numbers.
        subscriptions: Schema `schemas.SUBSCRIPTIONS`; `query_number` is needed only when the
            matches are by numbers, and must then belong to the same snapshot.
        buckets: Number of buckets that subscribers are spread over by their hash.

    Returns:
        Schema `schemas.INBOXES`, partitioned by bucket and sorted by bucket, subscriber, message
        and query, so that the rows of one subscriber lie together in one file.

    Cost:
        One join and one shuffle of the deliveries.
    """
    by_id = "query_ids" in matches.columns
    queries, key = ("query_ids", "query_id") if by_id else ("query_numbers", "query_number")
    # Hashed once a subscription, not once a delivery.
    bucket = F.pmod(F.xxhash64("subscriber"), F.lit(buckets)).cast("int")
    return (
        matches.select("message_id", "snapshot_version", F.explode(queries).alias(key))
        .join(subscriptions.withColumn("bucket", bucket), key)
        .repartition("bucket")
        .sortWithinPartitions("bucket", "subscriber", "message_id", "query_id")
        .select(
            "subscriber",
            "query_id",
            "message_id",
            # After the shuffle, which so has a third less to carry.
            _delivery_id().alias("delivery_id"),
            "snapshot_version",
            "bucket",
        )
    )


RESULT_NUMBER = 0
"""A query that answers yes or no has one result a message, and this is its number."""


def _delivery_id() -> Column:
    """hash(subscription, snapshot version, message, result number), 128 bits in hexadecimal.

    The parts are preceded by their length: no two different deliveries read the same.
    """
    parts = ["subscriber", "query_id", "snapshot_version", "message_id"]
    text = F.concat(
        *(
            piece
            for name in parts
            for piece in (F.length(name).cast("string"), F.lit(":"), F.col(name))
        ),
        F.lit(f":{RESULT_NUMBER}"),
    )
    return F.substring(F.sha2(text, 256), 1, 32)
