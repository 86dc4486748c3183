"""Topics of Kafka that get what an output gets: `[topics]`.

    commit -> files that it names -> mapInArrow -> Spark's writer for Kafka

The commit decides, before anything is written here: a micro-batch that is written again after a
kill is the same records, and the tasks of its messages do not run again. So a record can arrive
twice, and then has the same header `pathcast-delivery-id`; a dead letter has the same bytes.

    _topics.json    in the checkpoint: the last micro-batch of which the topics have all

A micro-batch follows the one before it; inside of one, tasks write side by side. It has no producer
of its own: options, security and retries are those of Spark's connector.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import UnavailableError, invalid_setting
from pathcast.spark.connectors import KAFKA, fault_of
from pathcast.spark.json_lines import as_json_rows
from pathcast.spark.ledger import Commit, CommitFollower
from pathcast.spark.outputs import Layout, batches_of
from pathcast.spark.publishing import PublishedOutput, PublishedThrough
from pathcast.spark.schemas import OutputName
from pathcast.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pathcast.spark.settings import TopicSettings

STATE: Final = "_topics.json"

ATTEMPTS_MAX: Final = 5
"""Jobs that write a micro-batch and fail for a fault that may pass; each has waited a minute."""

PAUSE_SECONDS: Final = 1.0
"""Before the next; it doubles each time."""

HEADERS: Final = (
    "pathcast-delivery-id",
    "pathcast-subscription-id",
    "pathcast-message-id",
    "pathcast-result-number",
)
"""Of a delivery, as text; the id is hexadecimal."""

RECORDS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("key", pa.string()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""What Spark's writer takes."""

_PASSING: Final = ("TimeoutException", "RetriableException", "NetworkException", "Disconnect")
"""In the causes of a job that failed because a broker was away."""


class TopicPublisher(CommitFollower):
    """Writes micro-batches to topics, one after the other."""

    def __init__(
        self,
        topics: TopicSettings,
        output: PublishedOutput,
        spark: SparkSession | None,
        *,
        only: Sequence[str] = (),
    ) -> None:
        self._options = topics.options
        self._topics: dict[OutputName, str] = {}
        if topics.deliveries is not None:
            self._topics["inboxes"] = topics.deliveries
        if topics.dead_letters is not None:
            self._topics["dead_letters"] = topics.dead_letters
        self._output = output
        self._spark = spark
        self._only = tuple(only)
        self.through = output.published(STATE).through

    def check(self) -> None:
        """Returns if there is a session, and it has the connector.

        Raises:
            ConfigError: One of them is missing.
        """
        from pyspark.errors import PySparkException

        options = {**self._options, "subscribe": ",".join(self._topics.values())}
        try:
            self._session().read.format(KAFKA).options(**options).load()
        except PySparkException as error:
            raise invalid_setting("topics.options", fault_of(error, KAFKA)) from error

    def publish(self, commit: Commit) -> bool:
        """Writes a micro-batch; whether all of it is on the brokers' disks.

        False only if it was told to stop: then it is to be called again, by the next run.

        Raises:
            UnavailableError: The brokers were away for minutes.
            ConfigError: They refuse a record, or the connector an option.

        Cost:
            0.1 s, and what Spark and the brokers need for the records.
        """
        files = [
            (topic, name, file.name)
            for name, topic in self._topics.items()
            for file in commit.files.get(name, ())
        ]
        if files and not self._is_written(commit.batch_id, files):
            return False
        self.published += sum(f.rows for name in self._topics for f in commit.files.get(name, ()))
        self._done(commit.batch_id)
        return True

    def _is_written(self, batch_id: int, files: list[tuple[str, OutputName, str]]) -> bool:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            reason = self._fault(batch_id, files)
            if reason is None:
                return True
            if not any(word in reason for word in _PASSING):
                raise invalid_setting("topics", reason)
            told = f"micro-batch {batch_id} waits to be written to topics: {reason}"
            self._output.note(f"{told} ({attempt} of {ATTEMPTS_MAX})")
            if self._output.stop.wait(PAUSE_SECONDS * 2 ** (attempt - 1)):
                return False
        raise UnavailableError("peer.unreachable", name="[topics]", reason=reason)

    def _fault(self, batch_id: int, files: list[tuple[str, OutputName, str]]) -> str | None:
        """Writes the rows of files, in one job; why it failed, None if it did not."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
        from pyspark.sql.pandas.types import from_arrow_schema

        columns = [pa.array(column) for column in zip(*files, strict=True)]
        names = pa.table(columns, names=["topic", "output", "file"])
        rows = self._session().createDataFrame(names)
        task = RecordTask(self._output.storage, self._output.layout, batch_id, self._only)
        records = rows.mapInArrow(task, from_arrow_schema(RECORDS))
        try:
            records.write.format(KAFKA).options(**self._options).save()
        except (PySparkException, Py4JJavaError) as error:
            return fault_of(error, KAFKA)
        return None

    def _session(self) -> SparkSession:
        if self._spark is None:
            # Whoever brings workers needs no PySpark.
            from pyspark.sql import SparkSession

            from pathcast.spark.session import running_context

            context = running_context()
            if context is None:
                reason = "a Spark session writes them, and there is none"
                raise invalid_setting("topics", reason)
            self._spark = SparkSession(context)
        return self._spark

    def _done(self, batch_id: int) -> None:
        """The topics have all of the micro-batches up to this one."""
        self.through = batch_id
        self._output.checkpoint.write_json(STATE, PublishedThrough(batch_id))


@dataclass(frozen=True, slots=True)
class RecordTask:
    """A function from names of files to the records that their rows are.

    Attributes:
        output: Where the files lie.
        layout: Of the output.
        batch_id: The micro-batch whose rows count: files may hold those of others as well.
        only: As for `TopicPublisher`.
    """

    output: Storage
    layout: Layout
    batch_id: int
    only: tuple[str, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches of `RECORDS`."""
        for batch in batches:
            for named in batch.to_pylist():
                topic, name = named["topic"], named["output"]
                make = _deliveries if name == "inboxes" else _letters
                for rows in map(
                    self._chosen, batches_of(self.output, self.layout, name, named["file"])
                ):
                    columns = [pa.array([topic] * len(rows)), *make(rows)]
                    yield pa.record_batch(
                        [c.cast(f.type) for c, f in zip(columns, RECORDS, strict=True)],
                        schema=RECORDS,
                    )

    def _chosen(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        wanted = pc.equal(rows.column("batch_id"), self.batch_id)
        if self.only:
            asked = pc.is_in(rows.column("subscription_id"), pa.array(self.only, pa.string()))
            wanted = pc.and_(wanted, asked)
        return rows.filter(wanted)


def _deliveries(rows: pa.RecordBatch) -> list[pa.Array]:
    """Keys, values and headers of rows of inboxes."""
    values = rows.column("fragment").cast(pa.binary())
    if "fragment_bytes" in rows.schema.names:
        values = pc.coalesce(values, rows.column("fragment_bytes"))
    headers = (
        pa.array([id.hex() for id in rows.column("delivery_id").to_pylist()], pa.string()),
        rows.column("subscription_id"),
        rows.column("message_id"),
        rows.column("result_number"),
    )
    # A value that is null would take an earlier one out of a topic that is compacted.
    return [rows.column("subscriber"), pc.fill_null(values, b""), _headers(headers)]


def _headers(columns: tuple[pa.Array, ...]) -> pa.Array:
    """A list of `HEADERS` a row."""
    count, width = len(columns[0]), len(HEADERS)
    values = pa.concat_arrays([column.cast(pa.string()).cast(pa.binary()) for column in columns])
    order = np.arange(count * width).reshape(width, count).T.ravel()
    keys = pa.DictionaryArray.from_arrays(np.tile(np.arange(width), count), list(HEADERS))
    pairs = pa.StructArray.from_arrays(
        [keys.cast(pa.string()), values.take(pa.array(order))], names=["key", "value"]
    )
    starts = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), pairs)


def _letters(rows: pa.RecordBatch) -> list[pa.Array]:
    """Keys, values and headers, of which they have none, of dead letters."""
    found = as_json_rows(pa.table(rows))
    values = [json.dumps(row, ensure_ascii=False).encode() for row in found]
    headers = pa.nulls(len(rows), RECORDS.field("headers").type)
    return [rows.column("message_id"), pa.array(values, pa.binary()), headers]
