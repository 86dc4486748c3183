"""PathSharing-F, -FW and -FWR: how much of a query goes into the shared path matching engine.

F puts binding paths into the engine and follows predicate and return paths by tree search; FW puts
predicate paths in too and joins their streams with the binding path's; FWR puts return paths in
too. Behind the engine each distinct query has a plan of operators of its own;
`pathcast_papers.message_broker.pathsharing.plan_sharing` shares those as well.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.language.xquery import PaperQuery, PaperReturn, PaperStep, Target
    >>> from pathcast_papers.language.xquery.syntax import NameTest, Variable
    >>> query = PaperQuery((PaperStep(True, NameTest("", "section")),), (), (PaperReturn(
    ...     (PaperStep(False, NameTest("", "title")),), Target.ELEMENT, None),),
    ...     Variable("s"), None, "s")
    >>> fwr = PathSharingFWR(Optimisation.QUERY)
    >>> fwr.subscribe("titles", query)
    >>> fwr.process(parse_message(
    ...     b"<section><title/><section/><section><title/></section></section>", Limits()))
    {'titles': (((1,),), ((),), ((4,),))}

Results are node ids in groupSequence-listSequence form;
`pathcast_papers.message_broker.pathsharing.message_factory` makes messages of them.

Source: Diao and Franklin, VLDB 2003, section 3.
Differs: queries that are equal but for the order of their conditions (and, with a DTD, for paths of
one canonical form) share a plan in all algorithms, as in the paper's experiments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pathcast.errors import ConfigError, DuplicateQueryError, UnknownQueryError
from pathcast.message import MessageTree
from pathcast_papers.language.xquery import PaperQuery
from pathcast_papers.message_broker.pathsharing.broker_query import BrokerQuery
from pathcast_papers.message_broker.pathsharing.executor import Profiler, execute
from pathcast_papers.message_broker.pathsharing.joins import OuterJoinSelect, Semijoin
from pathcast_papers.message_broker.pathsharing.matching_engine import PathId, PathMatchingEngine
from pathcast_papers.message_broker.pathsharing.operators import (
    DupElim,
    GroupOperator,
    GroupSequence,
    Input,
    MessageRun,
    Operator,
    OperatorKind,
    ReturnSelect,
    Selection,
    WhereFilter,
)
from pathcast_papers.message_broker.pathsharing.optimisation import (
    Choices,
    Optimisation,
    facts_of,
    rewritten_query,
)
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath
from pathcast_papers.message_broker.pathsharing.reliance import Fact
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths


@dataclass(slots=True)
class Plan:
    """The plan of a distinct query.

    Attributes:
        query: The query, in canonical form where that is asked.
        path_ids: Its paths in the engine, one entry for each use.
        operators: Its own operators, each after those it reads from.
        ids: The subscriptions that have it.
    """

    query: BrokerQuery
    path_ids: list[PathId] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    ids: dict[str, None] = field(default_factory=dict)

    @property
    def result(self) -> GroupSequence:
        """The groups for the message that was run last."""
        last = self.operators[-1]
        assert isinstance(last, GroupOperator)
        return last.groups


@dataclass(frozen=True, slots=True)
class PlanStatistics:
    """What is planned.

    Attributes:
        queries: Subscriptions.
        plans: Distinct plans.
        paths: Distinct paths in the engine.
        states: States of its automaton.
        operators: Operators of each kind in all plans; shared ones count once.
    """

    queries: int
    plans: int
    paths: int
    states: int
    operators: Mapping[OperatorKind, int]


class PathSharing(ABC):
    """The face of all algorithms.

    Args:
        optimisation: How much plans are optimised.
        elements: The element graph of the messages' DTD, for `Optimisation.QUERY_AND_DTD`.
        tuples_max: Path tuples that one message may give.

    Raises:
        ConfigError: `Optimisation.QUERY_AND_DTD` without `elements`.

    An object runs one message at a time.

    Attributes:
        engine: The path matching engine.
        choices: What the plans may leave out.
        distrusted: Messages so far of which something was not true that plans rely on.
    """

    name: ClassVar[str]

    def __init__(
        self,
        optimisation: Optimisation = Optimisation.QUERY,
        elements: SchemaPaths | None = None,
        *,
        tuples_max: int = 1_000_000,
    ) -> None:
        self._elements = elements if optimisation is Optimisation.QUERY_AND_DTD else None
        if self._elements is None and optimisation is Optimisation.QUERY_AND_DTD:
            raise ConfigError(
                "config.invalid", key="elements", reason="Opt(q+dtd) needs an element graph"
            )
        self.optimisation = optimisation
        self.engine = PathMatchingEngine(tuples_max)
        self.choices = Choices(optimisation, self._elements)
        self._tuples_max = tuples_max
        self._plans: dict[BrokerQuery, Plan] = {}
        self._queries: dict[str, BrokerQuery] = {}
        # What plans rely on, with how many queries do.
        self._facts: Counter[Fact] = Counter()
        self.distrusted = 0
        self._fallback: PathSharing | None = None

    def subscribe(self, id: str, query: PaperQuery | BrokerQuery) -> None:
        """Adds a query; nothing that is planned already is planned again.

        Raises:
            DuplicateQueryError: The id is in use.
        """
        if id in self._queries:
            raise DuplicateQueryError("query.duplicate", id=id)
        parts = query if isinstance(query, BrokerQuery) else BrokerQuery.of(query)
        self._queries[id] = parts
        if self._elements is not None:
            self._facts.update(facts_of(parts, self._elements))
        canonical = self._canonical(parts)
        plan = self._plans.get(canonical)
        if plan is None:
            plan = self._plans[canonical] = self._make(canonical)
        plan.ids[id] = None
        if self._fallback is not None:
            self._fallback.subscribe(id, parts)

    def unsubscribe(self, id: str) -> None:
        """Takes a query out, and what nothing else needs of its plan.

        Raises:
            UnknownQueryError: There is no such id.
        """
        if id not in self._queries:
            raise UnknownQueryError("query.unknown", id=id)
        parts = self._queries.pop(id)
        if self._elements is not None:
            for fact in facts_of(parts, self._elements):
                self._facts[fact] -= 1
                if not self._facts[fact]:
                    del self._facts[fact]
        canonical = self._canonical(parts)
        plan = self._plans[canonical]
        del plan.ids[id]
        if not plan.ids:
            del self._plans[canonical]
            self._discard(plan)
        if self._fallback is not None:
            self._fallback.unsubscribe(id)

    def __len__(self) -> int:
        """Subscriptions."""
        return len(self._queries)

    def __contains__(self, id: object) -> bool:
        return id in self._queries

    def process(
        self, tree: MessageTree, profiler: Profiler | None = None
    ) -> dict[str, GroupSequence]:
        """The groups of every query that has any, for a message.

        A message of which something is not true that plans have taken from the DTD is given to
        plans without a DTD, which are made when the first such message comes.

        Args:
            tree: The message.
            profiler: Takes the cost of each kind of operator, if given.

        Raises:
            EvaluationBudgetError: The message gives more path tuples than allowed.
        """
        if not self._can_trust(tree):
            self.distrusted += 1
            return self._without_dtd().process(tree, profiler)
        if profiler is None:
            return self._process(tree, None)
        with profiler.timing_all():
            return self._process(tree, profiler)

    def _process(self, tree: MessageTree, profiler: Profiler | None) -> dict[str, GroupSequence]:
        begin = 0.0 if profiler is None else profiler.clock()
        self.engine.run(tree)
        if profiler is not None:
            seconds = profiler.clock() - begin
            profiler.add(OperatorKind.PATH_MATCHING, seconds, self.engine.tuples)
        execute(self._operators(), MessageRun(tree), profiler)
        return {
            id: groups
            for plan in self._plans.values()
            if (groups := plan.result)
            for id in plan.ids
        }

    def plan_statistics(self) -> PlanStatistics:
        """Counts over all plans."""
        operators = Counter(operator.kind for operator in self._operators())
        return PlanStatistics(
            len(self._queries),
            len(self._plans),
            len(self.engine),
            self.engine.nfa.state_count,
            dict(operators),
        )

    def plan(self, id: str) -> Plan:
        """The plan of a subscription.

        Raises:
            UnknownQueryError: There is no such id.
        """
        if id not in self._queries:
            raise UnknownQueryError("query.unknown", id=id)
        return self._plans[self._canonical(self._queries[id])]

    def _canonical(self, query: BrokerQuery) -> BrokerQuery:
        return query if self._elements is None else rewritten_query(query, self._elements)

    def _can_trust(self, tree: MessageTree) -> bool:
        """Whether a message conforms to the DTD, where it matters."""
        if self._elements is None or not self._facts:
            return True
        if self._elements.conforms(tree.name, tree.parent):
            return True
        message = SchemaPaths.of_message(tree.name, tree.parent)
        return all(fact.holds(message) for fact in self._facts)

    def _without_dtd(self) -> PathSharing:
        if self._fallback is None:
            self._fallback = type(self)(Optimisation.QUERY, tuples_max=self._tuples_max)
            for id, query in self._queries.items():
                self._fallback.subscribe(id, query)
        return self._fallback

    def _operators(self) -> Iterable[Operator]:
        """All operators, each after those it reads from."""
        return (operator for plan in self._plans.values() for operator in plan.operators)

    @abstractmethod
    def _make(self, query: BrokerQuery) -> Plan:
        """The plan of a query that has none yet."""

    def _discard(self, plan: Plan) -> None:
        """Takes back what a plan has put into the engine."""
        for path_id in plan.path_ids:
            self.engine.release(path_id)

    def _stream(self, plan: Plan, path: NavigationPath) -> Input:
        """The stream of a path, which is put into the engine for a plan."""
        path_id = self.engine.insert(path)
        plan.path_ids.append(path_id)
        return lambda: self.engine.stream(path_id)

    def _bound(self, plan: Plan) -> Input:
        """The binding path stream, through Selection and DupElim (section 3.1)."""
        query = plan.query
        stream = self._stream(plan, query.binding)
        if query.selections:
            stream = _then(plan, Selection(stream, query.selections))
        if self.choices.needs_dup_elim(query.binding):
            # The stream is in order of the binding field, so a scan is enough whatever is known.
            stream = _then(plan, DupElim(stream, (len(query.binding),), is_scan=True))
        return stream

    def _filtered(self, plan: Plan) -> Input:
        """The binding path stream through a left-deep tree of semijoins (section 3.2)."""
        query = plan.query
        stream = self._bound(plan)
        for path, predicate in query.predicates:
            extended = query.extended(path)
            right = _then(
                plan, Selection(self._stream(plan, extended), ((len(extended), predicate),))
            )
            is_merge = self.choices.is_ordered(extended, len(query.binding))
            stream = _then(plan, Semijoin(stream, right, len(query.binding), is_merge=is_merge))
        return stream


class PathSharingF(PathSharing):
    """Binding paths are matched by the engine; the rest is tree search (section 3.1)."""

    name = "PathSharing-F"

    def _make(self, query: BrokerQuery) -> Plan:
        plan = Plan(query)
        stream = self._bound(plan)
        if query.predicates:
            stream = _then(plan, WhereFilter(stream, query.predicates))
        plan.operators.append(ReturnSelect(stream, query.returns))
        return plan


class PathSharingFW(PathSharing):
    """Binding and predicate paths are matched by the engine (section 3.2)."""

    name = "PathSharing-FW"

    def _make(self, query: BrokerQuery) -> Plan:
        plan = Plan(query)
        plan.operators.append(ReturnSelect(self._filtered(plan), query.returns))
        return plan


class PathSharingFWR(PathSharing):
    """All paths are matched by the engine (section 3.3)."""

    name = "PathSharing-FWR"

    def _make(self, query: BrokerQuery) -> Plan:
        plan = Plan(query)
        left = self._filtered(plan)
        field_ = len(query.binding)
        paths = [query.extended(path) for path in query.returns if path]
        is_merge = all(self.choices.is_ordered(path, field_) for path in paths)
        rights = list(self._rights(plan))
        plan.operators.append(OuterJoinSelect(left, rights, field_, is_merge=is_merge))
        return plan

    def _rights(self, plan: Plan) -> Iterator[Input | None]:
        """The return path streams, through DupElim where it is needed."""
        query = plan.query
        field_ = len(query.binding)
        for path in query.returns:
            if not path:
                yield None
                continue
            extended = query.extended(path)
            stream = self._stream(plan, extended)
            if self.choices.needs_return_dup_elim(extended, field_):
                is_scan = self.choices.is_ordered(extended, field_)
                fields = (field_, len(extended))
                stream = _then(plan, DupElim(stream, fields, is_scan=is_scan))
            yield stream


def _then(plan: Plan, operator: Operator) -> Input:
    plan.operators.append(operator)
    return operator.output
