"""Messages on their way to partitions: files that a marking task writes and partitions read.

A message is written once, whatever the number of partitions that it goes to: partitions read the
rows that are theirs where they lie (mapped, where the output is a directory of this machine), so a
message that nobody needs is not moved at all, and one that many need is moved once. The files are
Arrow, not compressed. They belong to one attempt of one micro-batch and go when it is over.

    _routed/BATCH-ATTEMPT.arrow     rows: id, message (null if no partition needs it), file of the
                                    source, partitions, columns that are passed through

It knows nothing of queries.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.spark import schemas
from pathcast.spark.files import BATCH_BYTES_MAX, BATCH_ROWS_MAX

if TYPE_CHECKING:
    from pathcast.spark.storage import Storage

ROUTED: Final = "_routed"

ROW: Final = schemas.ROUTED_ROW
"""Column that tells a partition where in the file a message stands."""

_FILE: Final = schemas.ROUTED_FILE
_PARTITIONS: Final = schemas.ROUTED_PARTITIONS


@dataclass(frozen=True, slots=True)
class RoutedFile:
    """A file of routed messages.

    Attributes:
        name: Inside the output.
        rows: Messages in it, those that no partition needs included.
        bytes: Size.
        needed: Partition -> bytes of the messages that go there.
    """

    name: str
    rows: int
    bytes: int
    needed: Mapping[int, int] = field(default_factory=dict)


class RoutedWriter:
    """Writes the messages of one marking task.

    Args:
        storage: The output.
        batch_id: Number of the micro-batch.
        extra: Columns that are passed through.
        keep_all: Whether messages that no partition needs are rows, without their bytes.
    """

    def __init__(
        self, storage: Storage, batch_id: int, extra: pa.Schema, *, keep_all: bool
    ) -> None:
        self._storage = storage
        self._name = f"{ROUTED}/{batch_id:06d}-{uuid.uuid4().hex}.arrow"
        self._schema = pa.schema(
            [
                schemas.SOURCE.field("message_id"),
                schemas.SOURCE.field("message"),
                pa.field(_FILE, pa.string()),
                pa.field(_PARTITIONS, pa.list_(pa.uint32())),
                *extra,
            ]
        )
        self._extra = extra
        self._keep_all = keep_all
        self._open: tuple[IO[bytes], pa.RecordBatchFileWriter] | None = None
        self._rows = 0
        self._needed: dict[int, int] = {}

    def add(
        self,
        batch: pa.RecordBatch,
        ids: pa.Array,
        partitions: pa.ListArray,
        is_refused: np.ndarray,
        file: str | None,
    ) -> None:
        """Takes the messages of a batch that were not refused."""
        counts = pc.fill_null(pc.list_value_length(partitions), 0).to_numpy()
        keep = ~is_refused if self._keep_all else ~is_refused & (counts > 0)
        if not keep.any():
            return
        messages = batch.column("message")
        if self._keep_all and not (counts > 0).all():
            messages = pc.if_else(pa.array(counts > 0), messages, pa.scalar(None, messages.type))
        files = pa.repeat(pa.scalar(file, pa.string()), len(batch))
        columns = [ids, messages, files, partitions]
        columns += [batch.column(name) for name in self._extra.names]
        table = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        if not keep.all():
            table = table.filter(pa.array(keep))
        self._count(table)
        self._writer().write_batch(table)
        self._rows += len(table)

    def finish(self) -> RoutedFile | None:
        """Ends the file; None if nothing was written."""
        if self._open is None:
            return None
        handle, writer = self._open
        writer.close()
        handle.flush()
        size = handle.tell()
        handle.close()
        return RoutedFile(self._name, self._rows, size, self._needed)

    def _writer(self) -> pa.RecordBatchFileWriter:
        if self._open is None:
            handle = self._storage.create(self._name)
            self._open = handle, pa.ipc.new_file(handle, self._schema)
        return self._open[1]

    def _count(self, batch: pa.RecordBatch) -> None:
        lists = batch.column(_PARTITIONS)
        sizes = pc.fill_null(pc.binary_length(batch.column("message")), 0).to_numpy()
        weights = sizes[pc.list_parent_indices(lists).to_numpy()]
        found = np.bincount(lists.flatten().to_numpy(), weights=weights)
        for partition in np.flatnonzero(found).tolist():
            self._needed[partition] = self._needed.get(partition, 0) + int(found[partition])


class RoutedMessages:
    """The messages of a file, for all partitions that one task serves.

    The file is opened once, and it is looked once which rows go where. One of this machine is
    mapped; another is read into memory.

    Args:
        storage: The output.
        name: Name of the file.
    """

    def __init__(self, storage: Storage, name: str) -> None:
        with opened_ipc(storage, name) as reader:
            batches = [reader.get_batch(at) for at in range(reader.num_record_batches)]
        self._batches = [_Routed(batch) for batch in batches]

    def of(self, partition: int) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """The messages that go to a partition, in their order.

        Yields:
            A batch, schema `schemas.SOURCE`, the columns passed through and `ROW`; and the file of
            the source that all of it comes from, where there is one.
        """
        held: list[pa.RecordBatch] = []
        first = size = rows = 0
        held_file: str | None = None
        for routed in self._batches:
            wanted = routed.rows_of(partition)
            if len(wanted):
                file = routed.file
                if held and (
                    file != held_file or size >= BATCH_BYTES_MAX or rows >= BATCH_ROWS_MAX
                ):
                    yield _joined(held), held_file
                    held, size, rows = [], 0, 0
                held.append(_as_source(routed.batch, wanted, first))
                held_file, size, rows = file, size + held[-1].nbytes, rows + len(wanted)
            first += len(routed.batch)
        if held:
            yield _joined(held), held_file


class _Routed:
    """A batch and which of its rows go where."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.file: str | None = batch.column(_FILE)[0].as_py()
        lists = batch.column(_PARTITIONS)
        numbers = lists.flatten().to_numpy()
        order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[order]
        self._rows = pc.list_parent_indices(lists).to_numpy()[order]

    def rows_of(self, partition: int) -> np.ndarray:
        """The rows that go to a partition, ascending."""
        first, end = np.searchsorted(self._numbers, [partition, partition + 1])
        rows: np.ndarray = self._rows[first:end]
        return rows


def routed_ids(storage: Storage, name: str, extra: pa.Schema) -> pa.RecordBatch:
    """The ids of all messages of a file and the columns passed through, without the messages."""
    with opened_ipc(storage, name, ["message_id", *extra.names]) as reader:
        table = reader.read_all().select(["message_id", *extra.names])
        return table.combine_chunks().to_batches()[0]


def remove_routed(storage: Storage) -> None:
    """Takes out all files of routed messages; to be called by the sole writer only."""
    storage.delete(f"{ROUTED}/{name}" for name in storage.names(ROUTED))


@contextmanager
def opened_ipc(
    storage: Storage, name: str, columns: list[str] | None = None
) -> Iterator[pa.RecordBatchFileReader]:
    """An Arrow file of the output; one of this machine is mapped."""
    options = pa.ipc.IpcReadOptions()
    if storage.is_local:
        source = pa.memory_map(storage.url(name))
    else:
        source = pa.PythonFile(storage.open(name), mode="r")
    with source:
        reader = pa.ipc.open_file(source, options=options)
        if columns is not None:
            options.included_fields = [reader.schema.get_field_index(each) for each in columns]
            reader = pa.ipc.open_file(source, options=options)
        yield reader


def _as_source(batch: pa.RecordBatch, rows: np.ndarray, first: int) -> pa.RecordBatch:
    """Some rows as a reader of the source would give them."""
    taken = batch.take(pa.array(rows))
    messages = taken.column("message")
    nothing = pa.nulls(len(taken), pa.string())
    sizes = pc.binary_length(messages).cast(pa.int64())
    columns = [taken.column("message_id"), messages, sizes, nothing, nothing]
    extra = [field for field in batch.schema if field.name not in _OWN]
    columns += [taken.column(field.name) for field in extra]
    columns.append(pa.array((rows + first).astype(np.uint32)))
    schema = pa.schema([*schemas.SOURCE, *extra, pa.field(ROW, pa.uint32())])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


_OWN: Final = ("message_id", "message", _FILE, _PARTITIONS)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
