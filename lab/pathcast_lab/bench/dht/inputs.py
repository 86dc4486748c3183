"""Queries, documents and traces of the figures, made once a run.

Source: 000, section 6, Table 1. Its documents are the IBM generator's, its queries YFilter's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from pathcast.errors import ConfigError
from pathcast.schema import ElementGraph, read_dtd
from pathcast.workload import (
    DocumentParameters,
    QueryParameters,
    domain_graph,
    generate_documents,
    generate_queries,
)
from pathcast_lab.bench.dht.definition import DhtFigures, DhtSchema, DhtWorkload, QueryKind
from pathcast_lab.bench.dht.documents import Documents
from pathcast_lab.bench.dht.state_table import StateTable
from pathcast_lab.bench.dht.trace import Trace
from pathcast_lab.bench.inputs import shared_data

__all__ = ["Inputs"]


@dataclass(eq=False)
class Inputs:
    """What the figures of a run share.

    Attributes:
        definition: DTDs, workloads, seed.
        notes: What was found out about inputs.
    """

    definition: DhtFigures
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Of one run, and of no other.
        self.graph = cache(self._graph)
        self.messages = cache(self._messages)
        self.table = cache(self._table)
        self.trace = cache(self._trace)

    def workload(self, name: str) -> DhtWorkload:
        """A workload."""
        return next(each for each in self.definition.workloads if each.name == name)

    def _graph(self, name: str) -> ElementGraph | None:
        schema: DhtSchema = next(each for each in self.definition.schemas if each.name == name)
        shared = shared_data()
        if shared is not None and (shared / schema.file).is_file():
            return read_dtd(shared / schema.file)
        if schema.stand_in:
            self.notes.append(f"{name}: its DTD is not at hand, {schema.stand_in} stands in")
            return domain_graph(schema.stand_in)
        self.notes.append(f"{name}: its DTD is not at hand")
        return None

    def graphs(self, name: str) -> list[ElementGraph]:
        """The DTDs of a workload that are at hand."""
        found = (self.graph(schema) for schema in self.workload(name).schemas)
        return [graph for graph in found if graph is not None]

    def _messages(self, name: str, count: int) -> list[bytes]:
        workload, graphs = self.workload(name), self.graphs(name)
        each = -(-count // len(graphs))
        parameters = DocumentParameters(
            count=each,
            seed=self.definition.seed,
            depth_max=workload.depth_max,
            repeats_max=workload.repeats_max,
        )
        made = [generate_documents(graph, parameters) for graph in graphs]
        found = list(islice((one for turn in zip(*made, strict=True) for one in turn), count))
        elements = sum(len(graph.declared) for graph in graphs)
        attributes = sum(len(each.attributes) for graph in graphs for each in graph.declared)
        size = sum(map(len, found)) / len(found) / 1000
        tags = sum(message.count(b"</") for message in found) / len(found)
        dtds = f"{len(graphs)} DTDs" if len(graphs) > 1 else "a DTD"
        self.notes.append(
            f"{name}: {dtds} with {elements} elements and {attributes} attributes; "
            f"{count:,} documents of {size:.1f} KB and {tags:.0f} elements on average"
        )
        return found

    def queries(self, graph: ElementGraph, kind: QueryKind, count: int) -> Iterator[str]:
        """Queries by a DTD; fewer where there are not so many."""
        definition = self.definition
        parameters = QueryParameters(
            count=count,
            seed=definition.seed,
            depth_max=definition.query_depth,
            wildcard=definition.wildcard,
            descendant=definition.descendant,
            distinct=kind == "distinct",
        )
        try:
            yield from generate_queries(graph, parameters)
        except ConfigError as error:
            if error.code != "workload.exhausted":
                raise

    def texts(self, name: str, kind: QueryKind, count: int) -> Iterator[str]:
        """The queries of a workload, its DTDs in turn."""
        graphs = self.graphs(name)
        # A DTD that has no more leaves its turns to the others.
        limit = count if kind == "distinct" else -(-count // len(graphs))
        made = [self.queries(graph, kind, limit) for graph in graphs]
        return islice(in_turn(made), count)

    def _table(self, name: str, kind: QueryKind, count: int) -> StateTable:
        table = StateTable.of(self.texts(name, kind, count))
        if len(table.final) < count:
            raise ConfigError(
                "workload.exhausted", found=len(table.final), requested=count, attempts=count
            )
        return table

    def _trace(
        self, name: str, kind: QueryKind, queries: int, documents: int, length: int = 0
    ) -> Trace:
        table = self.table(name, kind, queries)
        return Trace.of(table, Documents.of(self.messages(name, documents), table.labels), length)


def in_turn(made: list[Iterator[str]]) -> Iterator[str]:
    """One of each, again and again; who has no more is left out.

    Example:
        >>> "".join(in_turn([iter("aaa"), iter("b")]))
        'abaa'
    """
    while made:
        left = []
        for each in made:
            found = next(each, None)
            if found is not None:
                left.append(each)
                yield found
        made = left
