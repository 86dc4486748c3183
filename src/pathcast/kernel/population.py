"""The population of a snapshot, from native columns to Pathcast's values.

It decides nothing about queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pathcast.query.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    Axis,
    Constant,
    Double,
    Name,
    NameTest,
)
from pathcast.query.places import End, Place
from pathcast.query.population import PATHS_SCHEMA, PREDICATES_SCHEMA, Population

_AXES: Final = (Axis.CHILD, Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
_ENDS: Final = (End.ELEMENT, End.ATTRIBUTE, End.TEXT, End.VALUE)

NativeStep: TypeAlias = tuple[int, str | None, str | None]
"""Number of the axis, namespace URI and local name; None for any."""

NativePlace: TypeAlias = tuple[list[NativeStep], int, tuple[str | None, str | None]]
"""Steps, number of the end, and the name test of an attribute."""

NativePopulation: TypeAlias = tuple[list[NativePlace], Any, Any, Any, list[Any], list[Any]]
"""Places, constants (numbers, strings, numbers that values are cast for), columns of paths, columns
of predicates."""


def population_of_columns(query_ids: Sequence[str], columns: NativePopulation) -> Population:
    """The population that the kernel has given as columns."""
    places, numbers, strings, doubles, paths, predicates = columns
    constants: list[Constant | Double] = [
        Double(cast) if cast is not None else text if number is None else number
        for number, text, cast in zip(
            numbers.to_pylist(), strings.to_pylist(), doubles.to_pylist(), strict=True
        )
    ]
    return Population(
        query_ids,
        [_place(place) for place in places],
        constants,
        pa.RecordBatch.from_arrays(paths, schema=PATHS_SCHEMA),
        pa.RecordBatch.from_arrays(predicates, schema=PREDICATES_SCHEMA),
    )


def _place(place: NativePlace) -> Place:
    steps, end, (uri, local) = place
    named = tuple((_AXES[axis], _test(*test)) for axis, *test in steps)
    return Place(named, _ENDS[end], _test(uri, local) if end == 1 else None)


def _test(uri: str | None, local: str | None) -> NameTest:
    if uri is None:
        return AnyName() if local is None else AnyNamespace(local)
    return AnyIn(uri) if local is None else Name(uri, local)
