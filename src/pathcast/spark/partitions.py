"""A generation cut into partitions, as files: what a worker needs of them, it opens alone.

    _snapshots/VERSION/NAME/            NAME says how it was cut: scheme, number, budget
        routing.snapshot                paths that say which partitions a message can concern
        routing.targets                 and the partitions of each
        partition-N/
            takers.arrow                who takes what of it, with the place in the whole table
            notices.snapshot            its filter queries; absent if there are none
            numbers.arrow               number there -> number in the whole snapshot
            results.subscriptions       its queries whose results are delivered; likewise
        partitions.json                 what there is; written last

Equal queries are one query and lie in one partition, so each pair of message and query has one
place where it is decided. Files of a name never change.

Which query goes where is decided by `assigning`; nothing is matched here.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.customize import Broker
from pathcast.engine import QueryIndex, Snapshot
from pathcast.errors import SnapshotFormatError
from pathcast.model import EngineName, Query, Subscription
from pathcast.partition.routing import FILE, RoutingIndex
from pathcast.spark.assigning import Queries, assigned
from pathcast.spark.generations import (
    NOTICES,
    RESULTS,
    TAKERS,
    TAKERS_SCHEMA,
    Generation,
    ids_of,
)

if TYPE_CHECKING:
    from pathcast.spark.settings import PlacementSettings
    from pathcast.spark.storage import Storage

PARTITIONS: Final = "partitions.json"
NUMBERS: Final = "numbers.arrow"
RANK: Final = "rank"

_RANKED: Final = pa.schema([*TAKERS_SCHEMA, pa.field(RANK, pa.uint32(), nullable=False)])
_NUMBERS: Final = pa.schema([pa.field("number", pa.uint32(), nullable=False)])


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """One partition.

    Attributes:
        queries: Distinct queries in it.
        has_notices: Whether some are filter queries.
        has_results: Whether the results of some are delivered.
        bytes: Size of its files.
    """

    queries: int
    has_notices: bool
    has_results: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class PartitionedGeneration:
    """A generation and how it was cut.

    Attributes:
        generation: The whole.
        name: How it was cut.
        partitions: By number.
        routes: Paths of the routing index.
        routing_bytes: Size of its files.
    """

    generation: Generation
    name: str
    partitions: tuple[PartitionFiles, ...]
    routes: int
    routing_bytes: int

    @property
    def folder(self) -> str:
        """Where its files lie in the output."""
        return f"{self.generation.folder}/{self.name}"

    def partition(self, number: int) -> Generation:
        """A partition as a generation of its own."""
        held = self.partitions[number]
        return replace(
            self.generation,
            queries=held.queries,
            has_notices=held.has_notices,
            has_results=held.has_results,
            part=f"{self.name}/partition-{number}",
        )

    def numbers(self, storage: Storage, number: int) -> np.ndarray:
        """For the filter queries of a partition, their numbers in the whole snapshot."""
        with self.partition(number).local(storage, [NUMBERS]) as [path]:
            numbers: np.ndarray = _read_ipc(path).column("number").to_numpy()
            return numbers

    def ranks(self, storage: Storage, number: int) -> np.ndarray:
        """For the rows of a partition's table of takers, their places in the whole table."""
        with self.partition(number).local(storage, [TAKERS]) as [path]:
            ranks: np.ndarray = _read_ipc(path).column(RANK).to_numpy()
            return ranks

    def routing(self, storage: Storage, engine: EngineName) -> RoutingIndex:
        """The routing index."""
        routing = replace(self.generation, part=self.name)
        with routing.local(storage, [FILE]) as [path]:
            return RoutingIndex.open(path.parent, engine=engine)

    def to_json(self) -> bytes:
        """As `partitions.json` has it."""
        row = asdict(replace(self, generation=None))  # type: ignore[arg-type]
        del row["generation"]
        return (json.dumps(row, sort_keys=True) + "\n").encode()

    @classmethod
    def read(
        cls, storage: Storage, generation: Generation, name: str
    ) -> PartitionedGeneration | None:
        """A cut that was written before; None if there is none.

        Raises:
            SnapshotFormatError: What is there is none.
        """
        path = f"{generation.folder}/{name}/{PARTITIONS}"
        try:
            row = json.loads(storage.read(path))
            parts = tuple(PartitionFiles(**each) for each in row.pop("partitions"))
            return cls(generation, partitions=parts, **row)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise SnapshotFormatError(
                "snapshot.damaged", path=storage.url(path), reason=str(error)
            ) from error


class PartitionWriter:
    """Cuts generations and writes the parts.

    Args:
        storage: The output.
        placement: How to cut.
        engine: Which engine compiles the queries.
        namespaces: Prefixes for all queries.
    """

    def __init__(
        self,
        storage: Storage,
        placement: PlacementSettings,
        *,
        engine: EngineName,
        namespaces: Mapping[str, str],
    ) -> None:
        self._storage = storage
        self._placement = placement
        self._engine = engine
        self._namespaces = namespaces

    @property
    def name(self) -> str:
        """How generations are cut, as a name of a folder."""
        placement = self._placement
        return f"{placement.scheme}-{placement.partitions}-{placement.routing_bytes_max}"

    def write(
        self, generation: Generation, queries: Queries, sample: pa.Array | None
    ) -> PartitionedGeneration:
        """The parts of a generation; those that are there are left as they are.

        Args:
            generation: The whole, whose files are there.
            queries: What it was made of.
            sample: Messages that are like those to come; what is generalised in the routing index
                is chosen by them.

        Cost: what registering all queries costs, and `assigned`.
        """
        found = PartitionedGeneration.read(self._storage, generation, self.name)
        if found is not None:
            return found
        limits = generation.message_limits()
        where = assigned(
            queries,
            self._placement,
            engine=self._engine,
            limits=limits,
            namespaces=self._namespaces,
            sample=sample,
        )
        count, partition_of = where.partitions, where.partition_of
        index = RoutingIndex.of(
            where.routes,
            count,
            budget_bytes=self._placement.routing_bytes_max,
            engine=self._engine,
            limits=limits,
            dont_care=where.dont_care,
            sample=sample,
        )
        made = PartitionedGeneration(generation, self.name, (), len(index), 0)
        routing_bytes = self._save(made.folder, index.save, (FILE,))
        ranks = _ranks_by_partition(queries.takers, partition_of, count)
        whole = self._notice_ids(generation)
        notices = _by_partition(queries.notices, partition_of, count)
        results = _by_partition(queries.results, partition_of, count)
        parts = []
        for number, of_it in enumerate(ranks):
            if not len(of_it):
                parts.append(PartitionFiles(0, False, False, 0))
                continue
            folder = f"{made.folder}/partition-{number}"
            takers = queries.takers.take(pa.array(of_it))
            written = [self._takers(folder, takers, of_it)]
            if notices[number]:
                written.append(self._notices(folder, notices[number], generation, whole))
            if results[number]:
                written.append(self._results(folder, results[number], generation))
            held = len(notices[number]) + len(results[number])
            has = bool(notices[number]), bool(results[number])
            parts.append(PartitionFiles(held, *has, sum(written)))
        made = replace(made, partitions=tuple(parts), routing_bytes=routing_bytes)
        self._storage.write(f"{made.folder}/{PARTITIONS}", made.to_json())
        return made

    def _notice_ids(self, generation: Generation) -> pa.Array:
        """Ids of the filter queries by number in the whole snapshot."""
        with generation.files(self._storage) as files:
            if files.notices is None:
                return pa.array([], pa.string())
            return ids_of(Snapshot.open(files.notices, engine=self._engine))

    def _takers(self, folder: str, takers: pa.Table, ranks: np.ndarray) -> int:
        table = takers.append_column(RANK, pa.array(ranks.astype(np.uint32)))
        return self._write_ipc(f"{folder}/{TAKERS}", table.cast(_RANKED))

    def _notices(
        self, folder: str, rows: Sequence[Subscription], generation: Generation, whole: pa.Array
    ) -> int:
        """Writes filter queries, and the numbers that the whole snapshot has for them."""
        limits = generation.message_limits()
        index = QueryIndex(engine=self._engine, limits=limits, namespaces=self._namespaces)
        report = index.register([Query(row.id, row.query) for row in rows])
        for error in report.rejected.values():
            raise error
        snapshot = index.freeze()
        size = self._save(folder, lambda at: snapshot.save(at / NOTICES), (NOTICES,))
        numbers = pc.index_in(ids_of(snapshot), value_set=whole).cast(pa.uint32())
        return size + self._write_ipc(f"{folder}/{NUMBERS}", pa.table([numbers], schema=_NUMBERS))

    def _results(self, folder: str, rows: Sequence[Subscription], generation: Generation) -> int:
        """Writes subscriptions whose results are delivered."""
        broker = Broker(self._engine, generation.message_limits(), self._namespaces, threads=1)
        for error in broker.subscribe(rows).rejected.values():
            raise error
        frozen = broker.freeze()
        return self._save(folder, lambda at: frozen.save(at / RESULTS), (RESULTS,))

    def _save(self, folder: str, save: Callable[[Path], None], names: Sequence[str]) -> int:
        """Lets something write files, and takes them into the output; their size."""
        size = 0
        with tempfile.TemporaryDirectory() as temporary:
            save(Path(temporary))
            for name in names:
                content = (Path(temporary) / name).read_bytes()
                self._storage.write(f"{folder}/{name}", content)
                size += len(content)
        return size

    def _write_ipc(self, name: str, table: pa.Table) -> int:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue().to_pybytes()
        self._storage.write(name, content)
        return len(content)


def _by_partition(
    rows: Mapping[str, Subscription], partition_of: Mapping[str, int], count: int
) -> list[list[Subscription]]:
    found: list[list[Subscription]] = [[] for _ in range(count)]
    for name, row in rows.items():
        found[partition_of[name]].append(row)
    return found


def _ranks_by_partition(
    takers: pa.Table, partition_of: Mapping[str, int], count: int
) -> list[np.ndarray]:
    """For each partition the rows of the table that belong to it, ascending."""
    ids = takers.column("subscription_id").combine_chunks().dictionary_encode()
    of_id = np.array([partition_of[name] for name in ids.dictionary.to_pylist()], dtype=np.int64)
    of_row = of_id[ids.indices.to_numpy()] if len(of_id) else np.zeros(0, dtype=np.int64)
    order = np.argsort(of_row, kind="stable")
    ends = np.cumsum(np.bincount(of_row, minlength=count))
    return np.split(order, ends[:-1])


def _read_ipc(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
