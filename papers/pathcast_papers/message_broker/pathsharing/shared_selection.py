"""Shared selection: all selections of one signature, their constants in one index.

A signature is, for each simple predicate, the field it is asked of and what its comparison shares
with others. The index is as deep as there are predicates: at each level a table finds, for the
values of the node, the constants that pass, without trying the others. Each combination of
constants that some query has is an output of its own.

Example:
    >>> index = ConstantIndex(Comparator.LE)
    >>> for constant in (2.0, 5.0, 9.0):
    ...     index.insert(constant)
    >>> index.passed((5.0,))                       # of 5 <= 2, 5 <= 5, 5 <= 9
    [5.0, 9.0]

Source: Diao and Franklin, VLDB 2003, section 5.2.
Differs: several predicates on a path are taken, where the paper's implementation takes one; strings
are ordered as well as numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from pathcast_papers.language.xquery.syntax import Comparator
from pathcast_papers.message_broker.pathsharing.broker_query import Constant, Signature
from pathcast_papers.message_broker.pathsharing.operators import (
    Input,
    MessageRun,
    Operator,
    OperatorKind,
)
from pathcast_papers.message_broker.pathsharing.paths import PathTuple
from pathcast_papers.message_broker.pathsharing.simple_predicates import ElementValues

Constants: TypeAlias = tuple[Constant, ...]
"""The constant of each predicate of a signature."""


class PredicateSignature(NamedTuple):
    """The signature of one predicate at its place.

    Attributes:
        field: The field (from 1) of the path tuple that it is asked of.
        signature: What is compared, and how.
    """

    field: int
    signature: Signature


class ConstantIndex:
    """The constants of one operator, found by value.

    Args:
        operator: The operator; None for existence, with None as its one constant.
    """

    def __init__(self, operator: Comparator | None) -> None:
        self._operator = operator
        self._constants: dict[Constant, None] = {}
        # For an order: the constants, sorted. All are strings, or all are numbers.
        self._sorted: list[Any] = []

    def insert(self, constant: Constant) -> None:
        """Adds a constant; it must not be there."""
        self._constants[constant] = None
        if self._is_order:
            insort(self._sorted, constant)

    def delete(self, constant: Constant) -> None:
        """Takes a constant out."""
        del self._constants[constant]
        if self._is_order:
            del self._sorted[bisect_left(self._sorted, constant)]

    def passed(self, values: Sequence[str] | Sequence[float]) -> Sequence[Constant]:
        """The constants that some value passes against, each once.

        Cost: for `=` one look-up a value, for an order two binary searches and the result.
        """
        distinct: set[Any] = set(values)
        match self._operator:
            case None:
                return [None] if distinct else []
            case Comparator.EQ:
                return [value for value in distinct if value in self._constants]
            case Comparator.NE:
                # Of two different values one differs from any constant.
                return [one for one in self._constants if distinct - {one}]
            case _:
                return self._beyond([value for value in distinct if not _is_nan(value)])

    @property
    def _is_order(self) -> bool:
        return self._operator not in (None, Comparator.EQ, Comparator.NE)

    def _beyond(self, values: Sequence[Any]) -> Sequence[Constant]:
        """Of `<` the constants above the least value, of `>` those below the greatest."""
        if not values:
            return []
        match self._operator:
            case Comparator.LT:
                return self._sorted[bisect_right(self._sorted, min(values)) :]
            case Comparator.LE:
                return self._sorted[bisect_left(self._sorted, min(values)) :]
            case Comparator.GT:
                return self._sorted[: bisect_left(self._sorted, max(values))]
            case _:
                return self._sorted[: bisect_right(self._sorted, max(values))]


def _is_nan(value: str | float) -> bool:
    return isinstance(value, float) and math.isnan(value)


@dataclass(slots=True)
class _Level:
    """The index at one predicate, below some constants of those before it."""

    index: ConstantIndex
    below: dict[Constant, _Level | None] = field(default_factory=dict)


class SharedSelection(Operator):
    """The selection for all queries that have its input and its signature.

    DupElim on the binding field is folded in: the input is in order of it, so a tuple with the same
    bound node as the last one of an output is left out.

    Args:
        source: A binding path stream or the output of a shared join.
        signature: The predicates, in an order that all users keep.
        binding_field: Number, from 1, of the binding field.
    """

    kind = OperatorKind.SHARED_SELECTION

    def __init__(
        self, source: Input, signature: Sequence[PredicateSignature], binding_field: int
    ) -> None:
        super().__init__()
        self._source = source
        self._signature = tuple(signature)
        self._binding_field = binding_field - 1
        self._root = _Level(ConstantIndex(self._signature[0].signature.operator))
        self._outputs: set[Constants] = set()
        # One tpList for each output, made when its first tuple comes.
        self._lists: dict[Constants, list[PathTuple]] = {}

    def insert(self, constants: Constants) -> None:
        """Adds an output; it must not be there."""
        self._outputs.add(constants)
        level = self._root
        for number, constant in enumerate(constants):
            if constant not in level.below:
                level.index.insert(constant)
                is_last = number + 1 == len(constants)
                level.below[constant] = None if is_last else self._new_level(number + 1)
            below = level.below[constant]
            if below is not None:
                level = below

    def delete(self, constants: Constants) -> None:
        """Takes an output out."""
        self._outputs.remove(constants)
        self._lists.pop(constants, None)
        levels = [self._root]
        for constant in constants[:-1]:
            below = levels[-1].below[constant]
            assert below is not None
            levels.append(below)
        for level, constant in zip(reversed(levels), reversed(constants), strict=True):
            below = level.below[constant]
            if below is not None and below.below:
                break
            del level.below[constant]
            level.index.delete(constant)

    def __len__(self) -> int:
        """Outputs: distinct constants of the signature."""
        return len(self._outputs)

    def list_of(self, constants: Constants) -> Sequence[PathTuple]:
        """The tpList of an output."""
        return self._lists.get(constants, ())

    @property
    def size(self) -> int:
        """Path tuples of all outputs."""
        return sum(len(tuples) for tuples in self._lists.values())

    def run(self, message: MessageRun) -> None:
        """Finds, for each path tuple, the outputs it goes to."""
        self._lists = {}
        tuples = self._source()
        if not tuples:
            return
        probe = _Probe(self._signature, message.values)
        field_ = self._binding_field
        for path_tuple in tuples:
            for constants in probe.passed(path_tuple, self._root):
                output = self._lists.setdefault(constants, [])
                if not output or output[-1][field_] != path_tuple[field_]:
                    output.append(path_tuple)

    def _new_level(self, number: int) -> _Level:
        return _Level(ConstantIndex(self._signature[number].signature.operator))


class _Probe:
    """Goes down the index for the path tuples of one message; asks no table twice for one node."""

    def __init__(self, signature: Sequence[PredicateSignature], values: ElementValues) -> None:
        self._fields = [place.field - 1 for place in signature]
        columns = [values.column(place.signature.compared) for place in signature]
        self._read: list[Callable[[int], Sequence[str] | Sequence[float]]] = [
            column.numbers if place.signature.is_number else column.texts
            for place, column in zip(signature, columns, strict=True)
        ]
        self._known: dict[tuple[int, int], Sequence[Constant]] = {}

    def passed(self, path_tuple: PathTuple, root: _Level) -> list[Constants]:
        """The outputs that a path tuple goes to."""
        found: list[tuple[Constants, _Level]] = [((), root)]
        complete: list[Constants] = []
        for field_, read in zip(self._fields, self._read, strict=True):
            following: list[tuple[Constants, _Level]] = []
            for constants, level in found:
                for constant in self._at(level, path_tuple[field_], read):
                    below = level.below[constant]
                    if below is None:
                        complete.append((*constants, constant))
                    else:
                        following.append(((*constants, constant), below))
            if not following:
                break
            found = following
        return complete

    def _at(
        self,
        level: _Level,
        element: int,
        read: Callable[[int], Sequence[str] | Sequence[float]],
    ) -> Sequence[Constant]:
        key = (id(level), element)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = level.index.passed(read(element))
        return known
