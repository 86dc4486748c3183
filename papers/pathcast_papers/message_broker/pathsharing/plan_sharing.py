"""PathSharing-FWR with plan sharing: work behind the engine is done once for many queries.

Four things are shared. Return path streams are grouped by bound node once (GroupBy). Selections are
pulled above joins, so that all queries with one binding path and one predicate path share a join.
Above it, selections that differ in constants alone are one shared selection with an output for each
combination of constants, DupElim folded in. And where several conditions meet, the semijoin of
their outputs is shared by the queries that have them all.

A query enters by looking up each operator it needs, making what is missing, and leaves by giving
back its uses: no plan of another query is touched.

Source: Diao and Franklin, VLDB 2003, section 5, figure 6.
Differs: the paper pulls selections up only in queries with one predicate path. With several, each
predicate path has its join and its selection, the binding path's predicates in all of them, and a
bound node passes that is in all outputs: these are in order of the binding field, so merge
semijoins put them together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Generic, TypeVar

from pathcast_papers.message_broker.pathsharing.algorithms import PathSharing, Plan
from pathcast_papers.message_broker.pathsharing.broker_query import (
    BrokerQuery,
    PredicatePath,
    SimplePredicate,
)
from pathcast_papers.message_broker.pathsharing.grouping import GroupBy, GroupedOuterJoinSelect
from pathcast_papers.message_broker.pathsharing.joins import Semijoin, SharedJoin
from pathcast_papers.message_broker.pathsharing.operators import DupElim, Input, Operator
from pathcast_papers.message_broker.pathsharing.optimisation import Optimisation
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths
from pathcast_papers.message_broker.pathsharing.shared_selection import (
    Constants,
    PredicateSignature,
    SharedSelection,
)

_Operator = TypeVar("_Operator", bound=Operator)


@dataclass(slots=True)
class _Users(Generic[_Operator]):
    operator: _Operator
    count: int = 0


class OperatorTable(Generic[_Operator]):
    """Operators by what they do, with how many uses each has."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Users[_Operator]] = {}

    def acquire(self, key: Hashable, make: Callable[[], _Operator]) -> _Operator:
        """The operator of a key, made if there is none; counts a use."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Users(make())
        entry.count += 1
        return entry.operator

    def release(self, key: Hashable) -> None:
        """Takes back a use; without uses the operator goes."""
        entry = self._entries[key]
        entry.count -= 1
        if not entry.count:
            del self._entries[key]

    def __iter__(self) -> Iterator[_Operator]:
        """The operators, in the order in which they were made."""
        return (entry.operator for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(slots=True)
class _SharingPlan(Plan):
    """A plan, and how to give back its uses of shared operators."""

    releases: list[Callable[[], None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Output:
    """A stream of bound nodes that plans share.

    Attributes:
        key: What it is; equal keys are equal streams.
        read: The stream, in order of the binding field.
    """

    key: Hashable
    read: Input


class PlanSharing(PathSharing):
    """All paths are matched by the engine, and plans share their operators."""

    name = "PlanSharing"

    def __init__(
        self,
        optimisation: Optimisation = Optimisation.QUERY,
        elements: SchemaPaths | None = None,
        *,
        tuples_max: int = 1_000_000,
    ) -> None:
        super().__init__(optimisation, elements, tuples_max=tuples_max)
        # In the order in which they run.
        self._distinct: OperatorTable[DupElim] = OperatorTable()
        self._joins: OperatorTable[SharedJoin] = OperatorTable()
        self._selections: OperatorTable[SharedSelection] = OperatorTable()
        self._output_users: dict[tuple[Hashable, Constants], int] = {}
        self._semijoins: OperatorTable[Semijoin] = OperatorTable()
        self._groupings: OperatorTable[GroupBy] = OperatorTable()

    def _operators(self) -> Iterable[Operator]:
        return chain(
            self._distinct,
            self._joins,
            self._selections,
            self._semijoins,
            self._groupings,
            super()._operators(),
        )

    def _make(self, query: BrokerQuery) -> Plan:
        plan = _SharingPlan(query)
        left = self._shared_bound(plan).read
        rights = [
            self._grouping(plan, query.extended(path)) if path else None for path in query.returns
        ]
        plan.operators.append(GroupedOuterJoinSelect(left, rights, len(query.binding)))
        return plan

    def _discard(self, plan: Plan) -> None:
        assert isinstance(plan, _SharingPlan)
        for release in reversed(plan.releases):
            release()
        super()._discard(plan)

    def _grouping(self, plan: _SharingPlan, path: NavigationPath) -> GroupBy:
        """The GroupBy of an extended return path."""
        binding_field = len(plan.query.binding)
        stream = self._stream(plan, path)
        return _acquire(
            plan,
            self._groupings,
            (plan.path_ids[-1], binding_field),
            lambda: GroupBy(
                stream,
                binding_field,
                is_scan=self.choices.is_ordered(path, binding_field),
                has_duplicates=self.choices.needs_return_dup_elim(path, binding_field),
            ),
        )

    def _shared_bound(self, plan: _SharingPlan) -> _Output:
        """The bound nodes that pass all conditions of a query."""
        query = plan.query
        if not query.predicates:
            return self._binding_alone(plan)
        outputs = [self._joined(plan, predicate) for predicate in query.predicates]
        whole = outputs[0]
        for output in outputs[1:]:
            left, right = whole, output
            key = (left.key, right.key)
            make = partial(Semijoin, left.read, right.read, len(query.binding), is_merge=True)
            whole = _Output(key, _acquire(plan, self._semijoins, key, make).output)
        return whole

    def _binding_alone(self, plan: _SharingPlan) -> _Output:
        """The bound nodes of a query without where clause."""
        query = plan.query
        stream = self._stream(plan, query.binding)
        key = ("stream", plan.path_ids[-1])
        if query.selections:
            return self._selected(plan, _Output(key, stream), query.selections)
        if not self.choices.needs_dup_elim(query.binding):
            return _Output(key, stream)
        fields = (len(query.binding),)
        operator = _acquire(
            plan, self._distinct, key, lambda: DupElim(stream, fields, is_scan=True)
        )
        return _Output(("distinct", key), operator.output)

    def _joined(self, plan: _SharingPlan, predicate: PredicatePath) -> _Output:
        """The shared join of the binding path and a predicate path, and the selection above it."""
        query = plan.query
        extended = query.extended(predicate.path)
        binding_field = len(query.binding)
        left = self._stream(plan, query.binding)
        left_id = plan.path_ids[-1]
        right = self._stream(plan, extended)
        key = ("join", left_id, plan.path_ids[-1])
        is_merge = self.choices.is_ordered(extended, binding_field)
        join = _acquire(
            plan,
            self._joins,
            key,
            lambda: SharedJoin(left, right, binding_field, is_merge=is_merge),
        )
        placed = (*query.selections, (binding_field + len(extended), predicate.predicate))
        return self._selected(plan, _Output(key, join.output), placed)

    def _selected(
        self,
        plan: _SharingPlan,
        source: _Output,
        predicates: Iterable[tuple[int, SimplePredicate]],
    ) -> _Output:
        """The output of a shared selection for the constants of some predicates."""
        placed = sorted(
            (
                (PredicateSignature(place, test.signature), test.constant)
                for place, test in predicates
            ),
            key=repr,
        )
        signature = tuple(one for one, _ in placed)
        constants = tuple(constant for _, constant in placed)
        key = (source.key, signature)
        selection = _acquire(
            plan,
            self._selections,
            key,
            lambda: SharedSelection(source.read, signature, len(plan.query.binding)),
        )
        users = self._output_users
        output = (key, constants)
        if output not in users:
            users[output] = 0
            selection.insert(constants)
        users[output] += 1

        def release() -> None:
            users[output] -= 1
            if not users[output]:
                del users[output]
                selection.delete(constants)

        plan.releases.append(release)
        return _Output(output, lambda: selection.list_of(constants))


def _acquire(
    plan: _SharingPlan,
    table: OperatorTable[_Operator],
    key: Hashable,
    make: Callable[[], _Operator],
) -> _Operator:
    """An operator of a table, with its release noted in the plan."""
    operator = table.acquire(key, make)
    plan.releases.append(lambda: table.release(key))
    return operator
