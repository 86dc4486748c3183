"""Operators over path-tuple streams: Selection, DupElim, Where-Filter, Return-Select.

An operator reads tpLists and fills its own, which all operators after it share. It is run once a
message, after those it reads from.

Source: Diao and Franklin, VLDB 2003, section 3.1; tpLists: section 5.3.
Differs: a tpList holds the tuples, which are immutable, where the paper's holds pointers to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeAlias

from pathcast.message import MessageTree
from pathcast_papers.message_broker.pathsharing.broker_query import PredicatePath, SimplePredicate
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath, PathTuple
from pathcast_papers.message_broker.pathsharing.simple_predicates import ElementValues
from pathcast_papers.message_broker.pathsharing.tree_search import search, select

Input: TypeAlias = Callable[[], Sequence[PathTuple]]
"""How an operator reads the tpList that it remembers from the making of the plan."""

Group: TypeAlias = tuple[tuple[int, ...], ...]
"""What one invocation of the return clause gets: for each return path the nodes it matches."""

GroupSequence: TypeAlias = tuple[Group, ...]
"""The groupSequence-listSequence format: one group for each bound node, in document order."""


class OperatorKind(Enum):
    """The operators by the paper's names, each with the way it works, and the engine."""

    PATH_MATCHING = "path matching engine"
    SELECTION = "Selection"
    DUP_ELIM_SCAN = "DupElim (scan)"
    DUP_ELIM_HASH = "DupElim (hash)"
    WHERE_FILTER = "Where-Filter"
    RETURN_SELECT = "Return-Select"
    SEMIJOIN_MERGE = "semijoin (merge)"
    SEMIJOIN_HASH = "semijoin (hash)"
    OUTER_JOIN_MERGE = "OuterJoin-Select (merge)"
    OUTER_JOIN_HASH = "OuterJoin-Select (hash)"
    SHARED_JOIN_MERGE = "shared join (merge)"
    SHARED_JOIN_HASH = "shared join (hash)"
    SHARED_SELECTION = "shared selection"
    GROUP_BY_SCAN = "GroupBy (scan)"
    GROUP_BY_HASH = "GroupBy (hash)"
    OUTER_JOIN_GROUPED = "OuterJoin-Select (GroupBy)"


class MessageRun:
    """The message that operators run on.

    Attributes:
        tree: The message.
        values: What predicates compare of its elements.
    """

    __slots__ = ("tree", "values")

    def __init__(self, tree: MessageTree) -> None:
        self.tree = tree
        self.values = ElementValues(tree)


class Operator(ABC):
    """One operator of a plan.

    Attributes:
        kind: What it is; of a class with a scan and a hash way, set by each object.
        tuples: Its tpList: what it gave for the message that was run last.
    """

    kind: OperatorKind

    def __init__(self) -> None:
        self.tuples: Sequence[PathTuple] = ()

    def output(self) -> Sequence[PathTuple]:
        """The tpList, as later operators read it."""
        return self.tuples

    @abstractmethod
    def run(self, message: MessageRun) -> None:
        """Reads the inputs and fills the output for a message."""

    @property
    def size(self) -> int:
        """How many tuples, or groups, it gave for the message that was run last."""
        return len(self.tuples)


class Selection(Operator):
    """Emits the path tuples for which all simple predicates hold.

    Args:
        source: A stream.
        predicates: Simple predicates, each with the field (from 1) it is asked of.
    """

    kind = OperatorKind.SELECTION

    def __init__(self, source: Input, predicates: Sequence[tuple[int, SimplePredicate]]) -> None:
        super().__init__()
        self._source = source
        self._predicates = tuple(predicates)

    def run(self, message: MessageRun) -> None:
        """Tries the predicates on the nodes of each tuple."""
        tuples = self._source()
        for field, predicate in self._predicates:
            passes = message.values.column(predicate.signature.compared).passes
            tuples = [one for one in tuples if passes(one[field - 1], predicate)]
        self.tuples = tuples


class DupElim(Operator):
    """Emits the first of the path tuples that agree in some fields.

    Args:
        source: A stream; for the scan, one in order of all these fields together or of the last
            one, so that duplicates stand next to each other.
        fields: The fields, from 1: the binding field; for return paths, the return field also.
        is_scan: Whether one look back is enough; else it hashes.
    """

    def __init__(self, source: Input, fields: Sequence[int], *, is_scan: bool) -> None:
        super().__init__()
        self.kind = OperatorKind.DUP_ELIM_SCAN if is_scan else OperatorKind.DUP_ELIM_HASH
        self._source = source
        self._fields = tuple(field - 1 for field in fields)
        self._is_scan = is_scan

    def run(self, message: MessageRun) -> None:
        """Looks at each tuple once."""
        kept: list[PathTuple] = []
        seen: set[PathTuple] = set()
        before: PathTuple | None = None
        for path_tuple in self._source():
            key = tuple(path_tuple[field] for field in self._fields)
            if self._is_scan:
                if key == before:
                    continue
                before = key
            else:
                if key in seen:
                    continue
                seen.add(key)
            kept.append(path_tuple)
        self.tuples = kept


class WhereFilter(Operator):
    """Emits the path tuples whose bound node passes every predicate of the where clause.

    A predicate path is followed by the tree search routine, which ends at the first node that
    passes; the first predicate that fails ends the tuple.
    """

    kind = OperatorKind.WHERE_FILTER

    def __init__(self, source: Input, predicates: Sequence[PredicatePath]) -> None:
        super().__init__()
        self._source = source
        self._predicates = tuple(predicates)

    def run(self, message: MessageRun) -> None:
        """Searches below each bound node."""
        self.tuples = [
            path_tuple
            for path_tuple in self._source()
            if all(_holds(message, path_tuple[-1], predicate) for predicate in self._predicates)
        ]


def _holds(message: MessageRun, node: int, predicate: PredicatePath) -> bool:
    path, test = predicate
    passes = message.values.column(test.signature.compared).passes
    if not path:
        return passes(node, test)
    return any(passes(found, test) for found in search(message.tree, node, path))


class GroupOperator(Operator):
    """The last operator of a plan, which makes groups.

    Attributes:
        groups: The result for the message that was run last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.groups: GroupSequence = ()

    @property
    def size(self) -> int:
        """How many groups it gave."""
        return len(self.groups)


class ReturnSelect(GroupOperator):
    """Makes a group of each path tuple, by the tree search routine for each return path."""

    kind = OperatorKind.RETURN_SELECT

    def __init__(self, source: Input, returns: Sequence[NavigationPath]) -> None:
        super().__init__()
        self._source = source
        self._returns = tuple(returns)

    def run(self, message: MessageRun) -> None:
        """Searches below each bound node, once for each return path."""
        self.groups = tuple(
            tuple(tuple(select(message.tree, path_tuple[-1], path)) for path in self._returns)
            for path_tuple in self._source()
        )
