"""A query population as columns: where its paths end and what its predicates compare.

What wants to know a population as a whole (which comparisons are common, which paths carry most
queries) asks a registry or a snapshot for these columns and reads no text.

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
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from pathcast.boundary import native
from pathcast.query.normal import Constant, Double, Operator
from pathcast.query.places import NativePlace, Place, place_of

OPERATORS: Final[tuple[Operator, ...]] = tuple(Operator)
"""What the numbers in the column `operator` stand for."""

NativePopulation: TypeAlias = tuple[list[NativePlace], Any, Any, Any, list[Any], list[Any]]
"""Places, constants (numbers, strings, numbers that values are cast for), columns of paths, columns
of predicates."""

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
    query_ids: Iterable[str], alternatives: Iterable[Sequence[native.NormalPath]]
) -> Population:
    """The columns of queries whose paths are at hand.

    Args:
        query_ids: Their ids.
        alternatives: For each query the paths of which one must hold.

    Cost: about 1 µs a path.
    """
    found = native.population_of([list(paths) for paths in alternatives])
    return population_of_columns(list(query_ids), found)


def population_of_columns(query_ids: Sequence[str], columns: NativePopulation) -> Population:
    """The population that the kernel gives as columns."""
    places, numbers, strings, doubles, paths, predicates = columns
    constants: list[Constant | Double] = [
        Double(cast) if cast is not None else text if number is None else number
        for number, text, cast in zip(
            numbers.to_pylist(), strings.to_pylist(), doubles.to_pylist(), strict=True
        )
    ]
    return Population(
        query_ids,
        [place_of(place) for place in places],
        constants,
        pa.RecordBatch.from_arrays(paths, schema=PATHS_SCHEMA),
        pa.RecordBatch.from_arrays(predicates, schema=PREDICATES_SCHEMA),
    )
