"""Generations cut into partitions, side by side: no process holds more than a section or a part.

    sections -> where each query goes, and the routes there -> rows in the order of partitions
             -> the routing index (here)
             -> each partition compiled from its rows of all sections, once

A generation that is one whole is one section. The files of the stage between lie in the folders of
the sections and go when the partitions are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.engine import QueryIndex
from pathcast.errors import PathcastError
from pathcast.model import Query
from pathcast.partition import Placement
from pathcast.partition.routes import ROUTE_BYTES, Routes, fitted
from pathcast.partition.routing import FILE, RoutingIndex, words_for
from pathcast.registry import Registry
from pathcast.spark import assigning
from pathcast.spark.assigning import PieceQueries, placement_of, routes_to
from pathcast.spark.generations import (
    NO_FILES,
    QUERIES,
    TAKERS,
    TAKERS_SCHEMA,
    Generation,
    PartFiles,
    ids_of,
)
from pathcast.spark.merging import RANK, RANKS, RANKS_SCHEMA
from pathcast.spark.partitions import NUMBERS, PARTITIONS, PartitionedGeneration
from pathcast.spark.sources import shares_of
from pathcast.spark.taking_up import (
    QUERIES_SCHEMA,
    collector_paused,
    read_ipc,
    read_queries,
    save_into,
    subscriptions_in,
    write_ipc,
    write_snapshots,
)

if TYPE_CHECKING:
    from pathcast.spark.settings import PlacementSettings
    from pathcast.spark.storage import Storage
    from pathcast.spark.workers import Workers

_NUMBERS_SCHEMA: Final = pa.schema([pa.field("number", pa.uint32(), nullable=False)])

PIECES_A_ROUND: Final = 2
"""Pieces for each worker that are placed before their routes are taken together: the driver holds
those of one round."""

MERGED_BUDGETS: Final = 4
"""Budgets that routes may fill before they are made to fit one."""


@dataclass(frozen=True, slots=True)
class PieceUnit:
    """A piece to be placed.

    Attributes:
        number: Among the pieces of the generation.
        cost: Queries.
    """

    number: int
    cost: int


@dataclass(slots=True)
class PlacedPiece:
    """Where the queries of a piece went.

    Attributes:
        number: Number of the piece.
        queries: By partition, where its rows begin in the file of queries; one more for the end.
        takers: The same for the file of takers.
        routes: Routes to these partitions.
        error: Why it was not placed.
    """

    number: int
    queries: np.ndarray
    takers: np.ndarray
    routes: Routes = field(default_factory=Routes)
    error: PathcastError | None = None


@dataclass(frozen=True)
class PlaceTask:
    """Places the queries of pieces; pickled.

    Attributes:
        storage: The output.
        generation: The whole.
        name: How it is cut.
        settings: The scheme.
        placement: Where queries go; None to make one for each piece.
        partitions: Their number.
        dont_care: See `Placement`.
        namespaces: Prefixes for all queries.
        sample: Messages, where a placement is to be made.
    """

    storage: Storage
    generation: Generation
    name: str
    settings: PlacementSettings
    placement: Placement | None
    partitions: int
    dont_care: int | None
    namespaces: Mapping[str, str]
    sample: pa.Array | None

    def __call__(self, units: Iterable[PieceUnit]) -> Iterator[PlacedPiece]:
        """Place the queries of each piece."""
        pieces = self.generation.pieces()
        nowhere = np.zeros(self.partitions + 1, dtype=np.int64)
        for unit in units:
            report = PlacedPiece(unit.number, nowhere, nowhere)
            try:
                if unit.cost:
                    self._place(report, pieces[unit.number])
            except PathcastError as error:
                report.error = error
            yield report

    def _place(self, report: PlacedPiece, piece: Generation) -> None:
        queries = PieceQueries.open(self.storage, piece)
        placement = self.placement or placement_of(
            queries,
            self.settings,
            limits=self.generation.message_limits(),
            sample=self.sample,
        )
        placed = queries.place(placement)
        folder = f"{piece.folder}/{self.name}"
        budget = self.settings.routing_bytes_max
        routes = routes_to(
            queries,
            placed,
            is_exact=self.generation.queries <= assigning.EXACT_MAX,
            namespaces=self.namespaces,
            dont_care=self.dont_care,
            budget_bytes=budget,
        )
        if self.generation.sections:
            routes = _within(routes, budget, self.partitions, self.dont_care)
        report.routes = routes
        of_query = queries.rows(placed)
        report.queries = self._write(folder, QUERIES, queries.table, of_query)
        takers = self._takers(piece)
        at = pc.index_in(
            takers.column("subscription_id").combine_chunks(),
            value_set=queries.table.column("id").combine_chunks(),
        )
        report.takers = self._write(folder, TAKERS, takers, of_query[at.to_numpy()])

    def _takers(self, piece: Generation) -> pa.Table:
        """Return the takers of the queries of a piece, with their places in the whole table."""
        if self.generation.sections:
            with piece.local(self.storage, [TAKERS, RANKS]) as [takers, ranks]:
                places = read_ipc(ranks).column(RANK)
                return read_ipc(takers).append_column(RANKS_SCHEMA.field(RANK), places)
        with piece.local(self.storage, [TAKERS]) as [path]:
            table = read_ipc(path)
        every = pa.array(np.arange(len(table), dtype=np.uint32))
        return table.append_column(RANKS_SCHEMA.field(RANK), every)

    def _write(self, folder: str, name: str, table: pa.Table, where: np.ndarray) -> np.ndarray:
        """Writes rows in the order of their partitions; where those of each begin."""
        order = np.argsort(where, kind="stable")
        write_ipc(self.storage, f"{folder}/{name}", table.take(pa.array(order)))
        starts: np.ndarray = np.searchsorted(where[order], np.arange(self.partitions + 1))
        return starts


@dataclass(frozen=True, slots=True)
class CompileUnit:
    """A partition to be compiled.

    Attributes:
        number: Its number.
        queries: For each piece, where its rows begin and end in the file of queries.
        takers: The same for the file of takers.
        cost: Queries.
    """

    number: int
    queries: Sequence[tuple[int, int]]
    takers: Sequence[tuple[int, int]]
    cost: int


@dataclass(slots=True)
class CompiledPart:
    """A partition that was compiled.

    Attributes:
        number: Its number.
        files: What it has.
        error: Why it was not compiled.
    """

    number: int
    files: PartFiles
    error: PathcastError | None = None


@dataclass(frozen=True)
class CompileTask:
    """Compiles partitions; pickled.

    Attributes:
        storage: The output.
        placed: What is being made.
        namespaces: Prefixes for all queries.
    """

    storage: Storage
    placed: PartitionedGeneration
    namespaces: Mapping[str, str]

    def __call__(self, units: Iterable[CompileUnit]) -> Iterator[CompiledPart]:
        """Compile each partition."""
        generation, name = self.placed.generation, self.placed.name
        with ExitStack() as stack:
            queries: list[pa.Table] = []
            takers: list[pa.Table] = []
            for piece in generation.pieces():
                if piece.queries:
                    at = replace(piece, part=f"{piece.part}/{name}".lstrip("/"))
                    paths = stack.enter_context(at.local(self.storage, [QUERIES, TAKERS]))
                    queries.append(read_queries(paths[0]))
                    takers.append(read_ipc(paths[1]))
                else:
                    queries.append(QUERIES_SCHEMA.empty_table())
                    takers.append(_ranked().empty_table())
            for unit in units:
                part = CompiledPart(unit.number, NO_FILES)
                try:
                    if unit.cost:
                        with collector_paused():
                            part.files = self._compile(
                                unit.number,
                                _slices(queries, unit.queries),
                                _slices(takers, unit.takers),
                            )
                except PathcastError as error:
                    part.error = error
                yield part

    def _compile(self, number: int, queries: pa.Table, takers: pa.Table) -> PartFiles:
        folder = f"{self.placed.folder}/partition-{number}"
        takers = takers.take(pc.sort_indices(takers.column(RANK)))
        size = write_ipc(self.storage, f"{folder}/{TAKERS}", takers.cast(_ranked()))
        is_notice = queries.column("number").is_valid()
        notices, results = queries.filter(is_notice), queries.filter(pc.invert(is_notice))
        snapshot = registry = None
        limits = self.placed.generation.message_limits()
        if len(notices):
            index = QueryIndex(limits=limits, namespaces=self.namespaces)
            rows = zip(*_columns(notices, "id", "query", "namespaces"), strict=True)
            report = index.register(
                Query(name, text, dict(own) if own else None) for name, text, own in rows
            )
            for error in report.rejected.values():
                raise error
            snapshot = index.freeze()
            if not self.placed.generation.sections:
                own = notices.column("id").combine_chunks()
                at = pc.index_in(ids_of(snapshot), value_set=own)
                numbers = pa.table([notices.column("number").take(at)], schema=_NUMBERS_SCHEMA)
                size += write_ipc(self.storage, f"{folder}/{NUMBERS}", numbers)
        if len(results):
            registry = Registry(limits, self.namespaces, threads=1)
            for error in registry.add(subscriptions_in(results)).rejected.values():
                raise error
        size += write_snapshots(self.storage, folder, snapshot, registry)
        return PartFiles(len(queries), bool(len(notices)), bool(len(results)), size)


class GenerationCutter:
    """Cuts generations and writes the parts.

    Args:
        storage: The output.
        placement: How to cut.
        namespaces: Prefixes for all queries.
    """

    def __init__(
        self,
        storage: Storage,
        placement: PlacementSettings,
        *,
        namespaces: Mapping[str, str],
    ) -> None:
        self._storage = storage
        self._placement = placement
        self._namespaces = namespaces

    @property
    def name(self) -> str:
        """How generations are cut, as a name of a folder."""
        placement = self._placement
        return f"{placement.scheme}-{placement.partitions}-{placement.routing_bytes_max}"

    def cut(
        self, generation: Generation, workers: Workers, sample: pa.Array | None
    ) -> PartitionedGeneration | None:
        """The parts of a generation; those that are there are left as they are.

        None where they are not, and the texts of its queries are not there either.

        Args:
            generation: The whole, whose files are there.
            workers: Who places and compiles.
            sample: Messages that are like those to come; what is generalised in the routing index
                is chosen by them.

        Cost: 5 to 15 µs a query to place it, and what registering it costs, shared by the workers;
        20 µs and more for each route here.
        """
        found = PartitionedGeneration.read(self._storage, generation, self.name)
        if found is not None:
            return found
        pieces = generation.pieces()
        if not all(self._storage.exists(f"{piece.folder}/{QUERIES}") for piece in pieces):
            return None
        units = [PieceUnit(number, piece.queries) for number, piece in enumerate(pieces)]
        task = self._task(generation, max(units, key=lambda unit: unit.cost), sample)
        placed, routes = self._place(task, units, workers)
        made = self._route(generation, task, routes, sample)
        parts = workers.run(
            CompileTask(self._storage, made, self._namespaces),
            shares_of(_compile_units(placed, task.partitions), workers.count),
        )
        for part in parts:
            if part.error is not None:
                raise part.error
        files = tuple(part.files for part in sorted(parts, key=lambda part: part.number))
        made = replace(made, partitions=files)
        self._storage.write(f"{made.folder}/{PARTITIONS}", made.to_json())
        for unit in units:
            folder = f"{pieces[unit.number].folder}/{self.name}"
            self._storage.delete(f"{folder}/{name}" for name in (QUERIES, TAKERS))
        return made

    def _task(
        self, generation: Generation, largest: PieceUnit, sample: pa.Array | None
    ) -> PlaceTask:
        """Return the task that places pieces, all by one placement or each by its own."""
        settings = self._placement
        piece = generation.pieces()[largest.number]
        queries = PieceQueries.open(self._storage, piece)
        placement = placement_of(
            queries,
            settings,
            limits=generation.message_limits(),
            sample=sample,
        )
        is_by_piece = settings.scheme == "cost"
        return PlaceTask(
            self._storage,
            generation,
            self.name,
            settings,
            None if is_by_piece else placement,
            placement.partitions,
            placement.dont_care,
            self._namespaces,
            sample if is_by_piece else None,
        )

    def _place(
        self, task: PlaceTask, units: Sequence[PieceUnit], workers: Workers
    ) -> tuple[list[PlacedPiece], Routes]:
        """Where the queries of all pieces went, and the routes there."""
        placed: list[PlacedPiece] = []
        routes = Routes()
        budget = self._placement.routing_bytes_max
        step = max(1, PIECES_A_ROUND * workers.count)
        for start in range(0, len(units), step):
            shares = shares_of(units[start : start + step], workers.count)
            for piece in workers.run(task, shares):
                if piece.error is not None:
                    raise piece.error
                for route in piece.routes:
                    routes.add_targets(route.path, route.targets)
                placed.append(replace(piece, routes=Routes()))
            if len(routes) * ROUTE_BYTES > MERGED_BUDGETS * budget:
                routes = _within(routes, budget, task.partitions, task.dont_care)
        placed.sort(key=lambda piece: piece.number)
        return placed, routes

    def _route(
        self, generation: Generation, task: PlaceTask, routes: Routes, sample: pa.Array | None
    ) -> PartitionedGeneration:
        """The routing index of what all pieces have."""
        index = RoutingIndex.of(
            routes,
            task.partitions,
            budget_bytes=self._placement.routing_bytes_max,
            limits=generation.message_limits(),
            dont_care=task.dont_care,
            sample=sample,
        )
        made = PartitionedGeneration(generation, self.name, (), len(index), 0)
        size = save_into(self._storage, made.folder, index.save, (FILE,))
        return replace(made, routing_bytes=size)


def _compile_units(placed: Sequence[PlacedPiece], partitions: int) -> list[CompileUnit]:
    units = []
    for number in range(partitions):
        queries = [tuple(piece.queries[number : number + 2].tolist()) for piece in placed]
        takers = [tuple(piece.takers[number : number + 2].tolist()) for piece in placed]
        cost = sum(end - start for start, end in queries)
        units.append(CompileUnit(number, queries, takers, cost))
    return units


def _within(routes: Routes, budget: int, partitions: int, dont_care: int | None) -> Routes:
    """Routes within a budget, without knowing how often paths occur."""
    words = words_for(partitions)
    if routes.size(words) <= budget:
        return routes
    given_up = 0 if dont_care is None else 1 << dont_care
    return fitted(routes, budget, words=words, given_up=given_up)


def _slices(tables: Sequence[pa.Table], bounds: Sequence[tuple[int, int]]) -> pa.Table:
    return pa.concat_tables(
        [
            table.slice(start, end - start)
            for table, (start, end) in zip(tables, bounds, strict=True)
        ]
    )


def _ranked() -> pa.Schema:
    return pa.schema([*TAKERS_SCHEMA, *RANKS_SCHEMA])


def _columns(table: pa.Table, *names: str) -> list[list[str]]:
    return [table.column(name).to_pylist() for name in names]
