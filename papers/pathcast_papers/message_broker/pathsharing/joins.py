"""Joins on the binding field: semijoin, OuterJoin-Select, and the join that plans share.

The left input is always a binding path stream, in order of the binding field. Where a right input
is known to be in that order too, both are read once side by side (merge); else the right one is
hashed and the left one probes. Both ways keep the order of the left input.

Source: Diao and Franklin, VLDB 2003, sections 3.2 (semijoin), 3.3 (OuterJoin-Select), 5.2 (shared
join).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pathcast_papers.message_broker.pathsharing.operators import (
    GroupOperator,
    Input,
    MessageRun,
    Operator,
    OperatorKind,
)
from pathcast_papers.message_broker.pathsharing.paths import PathTuple


class Semijoin(Operator):
    """Emits the left path tuples that agree with some right one in the binding field.

    Duplicates on the right do no harm; those on the left stay.

    Args:
        left: A binding path stream.
        right: The stream of an extended predicate path.
        binding_field: Number, from 1, of the binding field; the same on both sides.
        is_merge: Whether the right stream is in order of the binding field.
    """

    def __init__(self, left: Input, right: Input, binding_field: int, *, is_merge: bool) -> None:
        super().__init__()
        self.kind = OperatorKind.SEMIJOIN_MERGE if is_merge else OperatorKind.SEMIJOIN_HASH
        self._left, self._right = left, right
        self._field = binding_field - 1
        self._is_merge = is_merge

    def run(self, message: MessageRun) -> None:
        """Reads both inputs once."""
        self.tuples = self._merge() if self._is_merge else self._hash()

    def _merge(self) -> list[PathTuple]:
        field, right = self._field, self._right()
        kept: list[PathTuple] = []
        at = 0
        for path_tuple in self._left():
            while at < len(right) and right[at][field] < path_tuple[field]:
                at += 1
            if at == len(right):
                break
            if right[at][field] == path_tuple[field]:
                kept.append(path_tuple)
        return kept

    def _hash(self) -> list[PathTuple]:
        left = self._left()
        if not left:
            return []
        field = self._field
        matched = {path_tuple[field] for path_tuple in self._right()}
        return [path_tuple for path_tuple in left if path_tuple[field] in matched]


class SharedJoin(Operator):
    """The join that stands for all semijoins of one binding path and one predicate path.

    A path tuple of the output is a left one followed by a right one, so that selections above can
    look at every field of both.

    Args:
        left: A binding path stream.
        right: The stream of an extended predicate path.
        binding_field: Number, from 1, of the binding field; the same on both sides.
        is_merge: Whether the right stream is in order of the binding field.
    """

    def __init__(self, left: Input, right: Input, binding_field: int, *, is_merge: bool) -> None:
        super().__init__()
        self.kind = OperatorKind.SHARED_JOIN_MERGE if is_merge else OperatorKind.SHARED_JOIN_HASH
        self._left, self._right = left, right
        self._field = binding_field - 1
        self._is_merge = is_merge

    def run(self, message: MessageRun) -> None:
        """Reads both inputs once; where left tuples share a bound node, its right ones again."""
        left = self._left()
        if not left:
            self.tuples = ()
            return
        groups = (
            _merged(left, self._right(), self._field)
            if self._is_merge
            else _hashed(left, self._right(), self._field)
        )
        self.tuples = [
            one + other for one, matching in zip(left, groups, strict=True) for other in matching
        ]


class OuterJoinSelect(GroupOperator):
    """Makes a group of each left path tuple: for each right stream the return fields that match.

    Args:
        left: A binding path stream without duplicates.
        rights: For each return path its stream, free of duplicates in binding and return field;
            None for the bound node itself.
        binding_field: Number, from 1, of the binding field.
        is_merge: Whether all right streams are in order of the binding field.

    Differs: the merge keeps the order of the return field within a bound node, which the stream has
    among equal binding fields.
    """

    def __init__(
        self, left: Input, rights: Sequence[Input | None], binding_field: int, *, is_merge: bool
    ) -> None:
        super().__init__()
        self.kind = OperatorKind.OUTER_JOIN_MERGE if is_merge else OperatorKind.OUTER_JOIN_HASH
        self._left, self._rights = left, tuple(rights)
        self._field = binding_field - 1
        self._is_merge = is_merge

    def run(self, message: MessageRun) -> None:
        """Builds hash tables of the return path streams, or goes along them."""
        left = self._left()
        if not left:
            self.groups = ()
            return
        match = _merged if self._is_merge else _hashed
        columns: list[Iterator[tuple[int, ...]]] = []
        for right in self._rights:
            if right is None:
                columns.append((path_tuple[self._field],) for path_tuple in left)
            else:
                columns.append(map(_return_fields, match(left, right(), self._field)))
        self.groups = tuple(zip(*columns, strict=True)) if columns else ((),) * len(left)


def _return_fields(path_tuples: Sequence[PathTuple]) -> tuple[int, ...]:
    return tuple(path_tuple[-1] for path_tuple in path_tuples)


def _merged(
    left: Sequence[PathTuple], right: Sequence[PathTuple], field: int
) -> Iterator[Sequence[PathTuple]]:
    """For each left tuple the right ones of its bound node; both sides are in that order."""
    begin = end = 0
    for path_tuple in left:
        bound = path_tuple[field]
        if begin == end or right[begin][field] != bound:
            begin = end
            while begin < len(right) and right[begin][field] < bound:
                begin += 1
            end = begin
            while end < len(right) and right[end][field] == bound:
                end += 1
        yield right[begin:end]


def _hashed(
    left: Sequence[PathTuple], right: Sequence[PathTuple], field: int
) -> Iterator[Sequence[PathTuple]]:
    """For each left tuple the right ones of its bound node, in the order of the right side."""
    table: dict[int, list[PathTuple]] = {}
    for path_tuple in right:
        table.setdefault(path_tuple[field], []).append(path_tuple)
    for path_tuple in left:
        yield table.get(path_tuple[field], ())
