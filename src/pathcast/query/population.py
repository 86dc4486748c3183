"""A query population as columns: where its paths end and what its predicates compare.

What wants to know a population as a whole (which comparisons are common, which paths carry most
queries) asks an index, a snapshot or a broker for these columns and reads no text.

Example:
    >>> from pathcast.query import compile_query
    >>> texts = {"q1": "/a[@x = 1]", "q2": "/a[@x = 1]/b", "q3": "/a[@x = 2 or @x = 3]"}
    >>> found = population_of(
    ...     texts, [compile_query(text).alternatives for text in texts.values()])
    >>> for row in found.counts().to_pylist():
    ...     sign, constant = OPERATORS[row["operator"]].value, found.constants[row["constant"]]
    ...     print(found.places[row["place"]], sign, constant, row["queries"])
    /a/@x = 1.0 2
    /a/@x = 2.0 1
    /a/@x = 3.0 1

A query holds only if one of its alternatives does, and an alternative only if the message has, at
the place of each of its predicates, a value that compares as asked.

Source: 001, 4.4: "aggregates the predicates contained in the selection operators at each accepting
state".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from pathcast.query.normal import Constant, Double, NormalQuery, Operator
from pathcast.query.places import Place, end_place, predicates_of

OPERATORS: Final[tuple[Operator, ...]] = tuple(Operator)
"""What the numbers in the column `operator` stand for."""

PATHS_SCHEMA: Final = pa.schema(
    [pa.field(name, pa.uint32(), nullable=False) for name in ("query", "alternative", "place")]
)
"""One row an alternative: number of the query, of the alternative, and where its path ends."""

PREDICATES_SCHEMA: Final = pa.schema(
    [
        *PATHS_SCHEMA,
        pa.field("operator", pa.uint8(), nullable=False),
        pa.field("constant", pa.uint32(), nullable=False),
    ]
)
"""One row a predicate of an alternative: its place, operator and constant."""


@dataclass(frozen=True)
class Population:
    """The paths and predicates of the queries of a population.

    Attributes:
        query_ids: Number of a query -> its id.
        places: Number of a place -> the place; distinct.
        constants: Number of a constant -> the constant; distinct, numbers apart from strings and
            from those that values are cast for.
        paths: `PATHS_SCHEMA` rows, ascending by query and alternative, one for each alternative.
        predicates: `PREDICATES_SCHEMA` rows, ascending by query and alternative.
    """

    query_ids: Sequence[str]
    places: Sequence[Place]
    constants: Sequence[Constant | Double]
    paths: pa.RecordBatch
    predicates: pa.RecordBatch

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    def column(self, name: str) -> np.ndarray:
        """A column of `predicates` as numbers."""
        column: np.ndarray = self.predicates.column(name).to_numpy()
        return column

    def alternatives(self) -> np.ndarray:
        """Number of a query -> how many alternatives it has; `int64`."""
        return np.bincount(self.paths.column("query").to_numpy(), minlength=len(self))

    def counts(self) -> pa.Table:
        """How many queries have each predicate.

        Returns:
            Columns `place`, `operator`, `constant` and `queries`, ascending by the first three. A
            query that has a predicate in several alternatives counts once.

        Cost: a sort of the predicates; about 0.2 µs each.
        """
        names = ("place", "operator", "constant", "query")
        rows = np.stack([self.column(name).astype(np.uint32) for name in names], axis=1)
        distinct = np.unique(rows, axis=0) if len(rows) else rows
        starts = np.ones(len(distinct), dtype=bool)
        starts[1:] = (distinct[1:, :3] != distinct[:-1, :3]).any(axis=1)
        first = np.flatnonzero(starts)
        counted = np.diff(np.append(first, len(distinct)))
        columns = {name: pa.array(distinct[first, at]) for at, name in enumerate(names[:3])}
        return pa.table({**columns, "queries": pa.array(counted, pa.int64())})


def population_of(
    query_ids: Iterable[str], alternatives: Iterable[Sequence[NormalQuery]]
) -> Population:
    """The columns of queries whose normal forms are at hand.

    Args:
        query_ids: Their ids.
        alternatives: For each query the paths of which one must hold.

    Cost: about 20 µs a query.
    """
    ids = list(query_ids)
    places: dict[Place, int] = {}
    constants: dict[Constant | Double, int] = {}
    paths: list[tuple[int, int, int]] = []
    predicates: list[tuple[int, int, int, int, int]] = []
    numbers = {operator: number for number, operator in enumerate(OPERATORS)}
    for query, ways in enumerate(alternatives):
        for alternative, path in enumerate(ways):
            end = places.setdefault(end_place(path), len(places))
            paths.append((query, alternative, end))
            for place, compare in predicates_of(path):
                at = places.setdefault(place, len(places))
                constant = constants.setdefault(compare.constant, len(constants))
                operator = numbers[compare.operator]
                predicates.append((query, alternative, at, operator, constant))
    return Population(
        ids,
        tuple(places),
        tuple(constants),
        _batch(paths, PATHS_SCHEMA),
        _batch(predicates, PREDICATES_SCHEMA),
    )


def _batch(rows: Sequence[tuple[int, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
