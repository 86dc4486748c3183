"""The output directory: how it is written, and how it is to be read.

    _pathcast.json                       format of what follows; checked by later runs
    matches/batch_id=N/*                 one row a message that was not refused
    dead_letters/batch_id=N/*            one row a refused message
    inboxes/batch_id=N/bucket=K/*        one row a delivery
    rejected_queries/*                   subscriptions that nothing is delivered for
    _snapshots/VERSION.snapshot          what the rows with this version were matched with
    _commits/N.json                      batch N is complete

A batch is written under `_staging` and moved into place by one rename for each output, the commit
last. So `matches/batch_id=N` is complete whenever it can be seen, and a reader who wants all
three outputs to agree reads the batches with a commit: `read_output` does.

Example:
    >>> from pathcast.spark.outputs import inbox, read_output
    >>> read_output(spark, "out", "matches").count()                        # doctest: +SKIP
    >>> inbox(spark, "out", "subscriber-7").show()                          # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pathcast.errors import ConfigError
from pathcast.spark import schemas
from pathcast.spark.ledger import committed_batches, sync_directory, write_atomically
from pathcast.spark.subscriptions import RejectedSubscription, rejected_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LAYOUT = "_pathcast.json"
STAGING = "_staging"

OutputName = Literal["matches", "dead_letters", "inboxes"]
OUTPUTS: tuple[OutputName, ...] = ("matches", "dead_letters", "inboxes")

FileFormat = Literal["parquet", "jsonl"]

ContentName = Literal["matches", "results"]
"""What a pipeline delivers: that a query was satisfied, or the results of a subscription."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What has to stay the same for as long as an output directory grows.

    Attributes:
        format: Format of the files.
        ids: Whether matches name queries by id or by number.
        inbox_buckets: Number of buckets of the inboxes.
        content: What the inboxes hold.
    """

    format: FileFormat
    ids: schemas.Ids
    inbox_buckets: int
    content: ContentName = "matches"

    @property
    def outputs(self) -> tuple[OutputName, ...]:
        """What is written. Results have no matches beside them: they are in the inboxes."""
        return OUTPUTS if self.content == "matches" else OUTPUTS[1:]

    def schema(self, name: OutputName) -> StructType:
        """Columns of an output.

        Raises:
            ConfigError: There is no such output here.
        """
        if name not in self.outputs:
            raise ConfigError(
                "config.invalid",
                key="output",
                reason=f"a pipeline that delivers {self.content} writes no {name}",
            )
        if self.content == "results":
            if name == "dead_letters":
                return schemas.UNDELIVERED
            is_text = self.format == "jsonl"
            return schemas.TEXT_RESULT_INBOXES if is_text else schemas.RESULT_INBOXES
        if name == "matches":
            return schemas.matches(self.ids)
        return schemas.DEAD_LETTERS if name == "dead_letters" else schemas.INBOXES

    @property
    def spark_format(self) -> str:
        """What Spark calls the format."""
        return "json" if self.format == "jsonl" else "parquet"


def claim(output: Path, layout: Layout) -> None:
    """Make an output directory ready for a run, and clear away what a killed run left half done.

    Raises:
        ConfigError: It holds output of another layout.
    """
    output.mkdir(parents=True, exist_ok=True)
    found = find_layout(output)
    if found is None:
        write_atomically(output / LAYOUT, json.dumps(asdict(layout)).encode())
    elif found != layout:
        raise ConfigError(
            "config.invalid",
            key="output",
            reason=f"{output} was written with {found}, not {layout}; choose a new directory",
        )
    shutil.rmtree(output / STAGING, ignore_errors=True)


def layout_of(output: str | os.PathLike[str]) -> Layout:
    """The layout of an output directory.

    Raises:
        ConfigError: The directory is not the output of a pipeline.
    """
    found = find_layout(Path(output))
    if found is None:
        raise ConfigError(
            "config.invalid", key="output", reason=f"{output} is not the output of a pipeline"
        )
    return found


def find_layout(output: Path) -> Layout | None:
    """The layout of an output directory; None where it is none yet."""
    try:
        return Layout(**json.loads((output / LAYOUT).read_bytes()))
    except FileNotFoundError:
        return None


class StagedBatch:
    """The output of one micro-batch, invisible until it is published."""

    def __init__(self, output: Path, layout: Layout, batch_id: int) -> None:
        self._output = output
        self._layout = layout
        self._batch_id = batch_id
        # A JVM that outlives its killed driver by a moment may still write into its own directory.
        self._staging = output / STAGING / f"{batch_id}-{uuid.uuid4().hex[:8]}"
        self._written: list[OutputName] = []

    def write(self, frame: DataFrame, name: OutputName) -> None:
        """Write an output; inboxes are split into their buckets."""
        if "fragment" in frame.columns and self._layout.format == "jsonl":
            frame = _as_text(frame, self._layout.schema(name))
        writer = frame.write.format(self._layout.spark_format)
        if self._layout.format == "jsonl":
            # Every line has every key: a null is no reason to lose a column.
            writer = writer.option("ignoreNullFields", "false")
        if name == "inboxes":
            writer = writer.partitionBy("bucket")
        writer.save(str(self._staging / name))
        self._written.append(name)

    def deliveries(self) -> Counter[str]:
        """Rows of the staged inboxes by subscriber, counted in what was written."""
        counts: Counter[str] = Counter()
        for batch in self._staged("inboxes", ["subscriber"]):
            for row in pc.value_counts(batch.column(0)).to_pylist():
                counts[row["values"]] += row["counts"]
        return counts

    def refused(self, codes: Collection[str]) -> tuple[str, ...]:
        """Ids of the staged dead letters with one of these codes, sorted."""
        found: set[str] = set()
        for batch in self._staged("dead_letters", ["message_id", "code"]):
            is_told = pc.is_in(batch.column("code"), pa.array(sorted(codes)))
            found.update(batch.column("message_id").filter(is_told).to_pylist())
        return tuple(sorted(found))

    def _staged(self, name: OutputName, columns: list[str]) -> Iterable[pa.RecordBatch]:
        if name not in self._written:
            return ()
        kind = "json" if self._layout.format == "jsonl" else "parquet"
        scanner = ds.dataset(self._staging / name, format=kind).scanner(columns=columns)
        batches: Iterable[pa.RecordBatch] = scanner.to_batches()
        return batches

    def publish(self) -> None:
        """Move everything into place; what a killed run of the same batch had put there goes."""
        for name in self._layout.outputs:
            target = self._output / name / f"batch_id={self._batch_id}"
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                self._staging.mkdir(parents=True, exist_ok=True)
                target.rename(self._staging / f"replaced-{name}")
            if name in self._written:
                (self._staging / name).rename(target)
            sync_directory(target.parent)
        shutil.rmtree(self._staging, ignore_errors=True)


def _as_text(frame: DataFrame, schema: StructType) -> DataFrame:
    """Results as text; a message that is no UTF-8 goes as base64, in a column of its own."""
    text = F.col("fragment").cast("string")
    is_text = F.is_valid_utf8(text)
    return (
        frame.withColumn("fragment_base64", F.when(~is_text, F.base64("fragment")))
        .withColumn("fragment", F.when(is_text, text))
        .select(*schema.names)
    )


def write_rejected(
    output: Path,
    layout: Layout,
    rejected: tuple[RejectedSubscription, ...],
    snapshot_version: str,
    digest: str,
) -> Path | None:
    """Write the subscriptions that were rejected; None when there are none."""
    if not rejected:
        return None
    table = rejected_table(rejected, snapshot_version)
    path = output / "rejected_queries" / f"{digest}.{layout.format}"
    if layout.format == "jsonl":
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
        write_atomically(path, "".join(lines).encode())
    else:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        write_atomically(path, sink.getvalue().to_pybytes())
    return path


def read_output(spark: SparkSession, output: str | os.PathLike[str], name: OutputName) -> DataFrame:
    """An output as its readers should see it: the batches that are complete, each once.

    Args:
        spark: Any session.
        output: Output directory of a pipeline, which may be running.
        name: "matches", "dead_letters" or "inboxes".

    Returns:
        The columns of the output, and `batch_id`.
    """
    layout = layout_of(output)
    root = Path(output).absolute() / name
    folders = [root / f"batch_id={batch_id}" for batch_id in committed_batches(output)]
    # A batch without refused messages or deliveries has no directory there.
    paths = [str(folder) for folder in folders if folder.is_dir()]
    schema = StructType([*layout.schema(name).fields]).add("batch_id", "long")
    if not paths:
        return spark.createDataFrame([], schema)
    reader = spark.read.format(layout.spark_format).schema(schema)
    return reader.option("basePath", str(root)).load(paths).select(schema.names)


def inbox(spark: SparkSession, output: str | os.PathLike[str], subscriber: str) -> DataFrame:
    """What was delivered to one subscriber; only that subscriber's bucket is read."""
    buckets = layout_of(output).inbox_buckets
    bucket = F.pmod(F.xxhash64(F.lit(subscriber)), F.lit(buckets)).cast("int")
    rows = read_output(spark, output, "inboxes")
    return rows.where((F.col("bucket") == bucket) & (F.col("subscriber") == subscriber))
