"""The stage of customised delivery: a function from DataFrame to DataFrames, schema stated.

    messages -> disseminate -> deliveries -> result_inboxes
                            -> dead letters

Example:
    >>> found = disseminate(frame, "s.snapshot", "body", "key")             # doctest: +SKIP
    >>> with found:                                   # computed once for both # doctest: +SKIP
    ...     found.deliveries.write.parquet("deliveries")
    ...     found.dead_letters.write.parquet("dead_letters")

It reads and writes nothing itself; `pipeline` does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyspark import StorageLevel
from pyspark.sql import functions as F

from pathcast.customize import SubscriptionSnapshot
from pathcast.engine.selection import engine_name
from pathcast.limits import Limits
from pathcast.spark import schemas
from pathcast.spark.delivering import DeliveryTask
from pathcast.spark.stages import INBOX_BUCKETS, check_columns, message_columns, ship_snapshot

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pathcast.model import EngineName


@dataclass(frozen=True, slots=True)
class DisseminatedMessages:
    """What became of the messages of one frame.

    Attributes:
        rows: The stage itself, schema `schemas.DISSEMINATED`.
        deliveries: What subscribers get, schema `schemas.DELIVERIES`.
        dead_letters: The messages that were refused, and the pairs of message and subscription
            whose results could not be made, schema `schemas.UNDELIVERED`.
        snapshot_version: The subscriptions that answered.

    As a context manager, it keeps the rows (not the messages) in memory and, where that is short,
    on disk, so that both views come of one computation.
    """

    rows: DataFrame
    deliveries: DataFrame
    dead_letters: DataFrame
    snapshot_version: str

    def __enter__(self) -> Self:
        self.rows.persist(StorageLevel.MEMORY_AND_DISK)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rows.unpersist()


def disseminate(
    df: DataFrame,
    snapshot_path: str | os.PathLike[str],
    message_col: str = "message",
    id_col: str = "message_id",
    *,
    limits: Limits | None = None,
    engine: EngineName | None = None,
    threads: int = 1,
    cache_bytes_max: int | None = None,
    ship: bool = False,
    snapshot_version: str | None = None,
) -> DisseminatedMessages:
    """Deliver every message of a frame to the subscriptions of a snapshot, in one Arrow stage.

    Args:
        df: Any frame, streaming ones included. If it has columns `code` and `reason`, they say why
            a message that is null could not be read (see `schemas.SOURCE`).
        snapshot_path: File that `SubscriptionSnapshot.save` wrote, at a path that the workers see
            too.
        message_col: The messages as they arrived (binary), or as text (string).
        id_col: Their ids, of any type that Spark casts to string; null for a digest of the bytes.
        limits: Bounds on a message and its results; those that the snapshot was frozen with when
            not given.
        engine: Which engine answers; `PATHCAST_ENGINE` of this process, or the kernel, when not
            given. Workers use what was decided here, whatever their environment says.
        threads: Threads of one task.
        cache_bytes_max: Memory of one worker for compiled label paths.
        ship: Send the file to the workers with `addFile` rather than expect it at the path.
        snapshot_version: Version of the file, where it is known. Workers check it. Where it or
            `limits` is not given, the file is read here.

    Returns:
        Deliveries and dead letters, not computed yet. Ids of deliveries are the same however often
        they are computed, and wherever.

    Raises:
        ConfigError: A column is missing or is not binary or string.
        SnapshotFormatError: The file is foreign, damaged or of another version.

    Cost:
        See docs/pipeline.md, "What it costs". A worker opens the snapshot once.
    """
    path = Path(snapshot_path).absolute()
    check_columns(df, message_col, id_col)
    engine = engine_name(engine)
    version = snapshot_version
    if version is None or limits is None:
        snapshot = SubscriptionSnapshot.open(path, engine=engine)
        version, limits = version or snapshot.version, limits or snapshot.limits
    task = DeliveryTask(
        snapshot=ship_snapshot(df.sparkSession, path, version) if ship else str(path),
        version=version,
        shipped=ship,
        engine=engine,
        limits=limits,
        threads=threads,
        cache_bytes_max=cache_bytes_max,
    )
    rows = df.select(*message_columns(df, message_col, id_col)).mapInArrow(
        task, schemas.DISSEMINATED
    )
    # One value for all rows need not travel with each.
    told = rows.withColumn("snapshot_version", F.lit(version))
    is_delivery = F.col("subscription_id").isNotNull() & F.col("code").isNull()
    letters = told.where(F.col("code").isNotNull())
    letters = letters.withColumn("bytes", F.coalesce("bytes", F.lit(0)))
    return DisseminatedMessages(
        rows=rows,
        deliveries=told.where(is_delivery).select(*schemas.DELIVERIES.names),
        dead_letters=letters.select(*schemas.UNDELIVERED.names),
        snapshot_version=version,
    )


def result_inboxes(deliveries: DataFrame, *, buckets: int = INBOX_BUCKETS) -> DataFrame:
    """Deliveries in the order of their inboxes.

    Args:
        deliveries: Schema `schemas.DELIVERIES`.
        buckets: Number of buckets that subscribers are spread over by their hash.

    Returns:
        Schema `schemas.RESULT_INBOXES`, partitioned by bucket and sorted by bucket, subscriber,
        message, subscription and result, so that the rows of one subscriber lie together.

    Cost:
        One shuffle of the deliveries, results included.
    """
    order = ("bucket", "subscriber", "message_id", "subscription_id", "result_number")
    return (
        deliveries.withColumn("bucket", bucket_of(F.col("subscriber"), buckets))
        .repartition("bucket")
        .sortWithinPartitions(*order)
        .select(*schemas.RESULT_INBOXES.names)
    )


def bucket_of(subscriber: Column, buckets: int) -> Column:
    """The bucket of a subscriber's inbox."""
    return F.pmod(F.xxhash64(subscriber), F.lit(buckets)).cast("int")
