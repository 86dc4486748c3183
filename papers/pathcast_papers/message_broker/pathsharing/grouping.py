"""GroupBy: return path streams grouped by bound node once, for all queries that return the path.

Source: Diao and Franklin, VLDB 2003, section 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathcast_papers.message_broker.pathsharing.operators import (
    GroupOperator,
    Input,
    MessageRun,
    Operator,
    OperatorKind,
)


class GroupBy(Operator):
    """Groups the path tuples of a return path by the binding field.

    Args:
        source: The stream of an extended return path.
        binding_field: Number, from 1, of the binding field.
        is_scan: Whether the stream is in order of the binding field; else it hashes.
        has_duplicates: Whether path tuples may agree in binding and return field. Within a group
            the return fields are in order, so one look back is enough.

    Attributes:
        groups: Bound node -> return fields, in document order.
    """

    def __init__(
        self, source: Input, binding_field: int, *, is_scan: bool, has_duplicates: bool
    ) -> None:
        super().__init__()
        self.kind = OperatorKind.GROUP_BY_SCAN if is_scan else OperatorKind.GROUP_BY_HASH
        self.groups: dict[int, Sequence[int]] = {}
        self._source = source
        self._field = binding_field - 1
        self._is_scan = is_scan
        self._has_duplicates = has_duplicates

    @property
    def size(self) -> int:
        """How many groups it made."""
        return len(self.groups)

    def run(self, message: MessageRun) -> None:
        """Reads the stream once."""
        found: dict[int, list[int]] = {}
        field = self._field
        if self._is_scan:
            bound, group = -1, list[int]()
            for path_tuple in self._source():
                if path_tuple[field] != bound:
                    bound, group = path_tuple[field], []
                    found[bound] = group
                self._add(group, path_tuple[-1])
        else:
            for path_tuple in self._source():
                self._add(found.setdefault(path_tuple[field], []), path_tuple[-1])
        self.groups = {bound: tuple(group) for bound, group in found.items()}

    def _add(self, group: list[int], node: int) -> None:
        if not self._has_duplicates or not group or group[-1] != node:
            group.append(node)


class GroupedOuterJoinSelect(GroupOperator):
    """OuterJoin-Select that gets its lists from GroupBy operators.

    Args:
        left: A binding path stream without duplicates.
        rights: For each return path its GroupBy; None for the bound node itself.
        binding_field: Number, from 1, of the binding field.
    """

    kind = OperatorKind.OUTER_JOIN_GROUPED

    def __init__(self, left: Input, rights: Sequence[GroupBy | None], binding_field: int) -> None:
        super().__init__()
        self._left, self._rights = left, tuple(rights)
        self._field = binding_field - 1

    def run(self, message: MessageRun) -> None:
        """Looks up the group of each bound node in each GroupBy."""
        field = self._field
        self.groups = tuple(
            tuple(
                (bound,) if right is None else tuple(right.groups.get(bound, ()))
                for right in self._rights
            )
            for bound in (path_tuple[field] for path_tuple in self._left())
        )
