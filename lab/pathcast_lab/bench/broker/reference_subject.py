"""A broker algorithm under the clock: from a parsed message to the groups of all queries.

MQPT is "the time from the scan of a parsed document starting until the last result in the
groupSequence-listSequence format is returned" (6.1). Messages are parsed before the clock runs,
which is the thread's processor time: an algorithm in Python waits for nothing. Operators are
profiled in passes of their own, whose clock costs something.

Example:
    >>> from pathcast_lab.workload import BIB, FlwrParameters
    >>> queries = list(BIB.queries(FlwrParameters(count=20, binding_depth_max=2)))
    >>> subject = BrokerSubject(BrokerAlgorithm.FWR, "Opt(q)", queries, None)
    >>> subject.statistics.queries
    20

It checks nothing; `experiments` compares the answers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias

from pathcast.message import MessageTree
from pathcast_lab.bench.broker.definition import BrokerAlgorithm, OptimisationName
from pathcast_lab.workload import FlwrPredicate, FlwrQuery
from pathcast_papers.language.xquery import Target
from pathcast_papers.language.xquery.syntax import Comparator, NameTest
from pathcast_papers.message_broker.pathsharing.algorithms import (
    PathSharing,
    PathSharingF,
    PathSharingFW,
    PathSharingFWR,
    PlanStatistics,
)
from pathcast_papers.message_broker.pathsharing.broker_query import (
    BrokerQuery,
    PredicatePath,
    Signature,
    SimplePredicate,
)
from pathcast_papers.message_broker.pathsharing.executor import Profiler
from pathcast_papers.message_broker.pathsharing.operators import GroupSequence, OperatorKind
from pathcast_papers.message_broker.pathsharing.optimisation import Optimisation
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath, navigation_path
from pathcast_papers.message_broker.pathsharing.plan_sharing import PlanSharing
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths

Groups: TypeAlias = Mapping[str, GroupSequence]
"""Id of a query -> its groups, where it has any."""

_CLASSES: Final[Mapping[BrokerAlgorithm, type[PathSharing]]] = MappingProxyType(
    {
        BrokerAlgorithm.F: PathSharingF,
        BrokerAlgorithm.FW: PathSharingFW,
        BrokerAlgorithm.FWR: PathSharingFWR,
        BrokerAlgorithm.SHARED: PlanSharing,
    }
)

_MEASURES: Final[Mapping[OperatorKind, str]] = MappingProxyType(
    {
        OperatorKind.PATH_MATCHING: "path matching",
        OperatorKind.SELECTION: "selection",
        OperatorKind.SHARED_SELECTION: "selection",
        OperatorKind.DUP_ELIM_SCAN: "DupElim",
        OperatorKind.DUP_ELIM_HASH: "DupElim",
        OperatorKind.WHERE_FILTER: "Where-Filter",
        OperatorKind.SEMIJOIN_MERGE: "semijoin",
        OperatorKind.SEMIJOIN_HASH: "semijoin",
        OperatorKind.SHARED_JOIN_MERGE: "semijoin",
        OperatorKind.SHARED_JOIN_HASH: "semijoin",
        OperatorKind.RETURN_SELECT: "Return-Select",
        OperatorKind.OUTER_JOIN_MERGE: "OuterJoin-Select",
        OperatorKind.OUTER_JOIN_HASH: "OuterJoin-Select",
        OperatorKind.OUTER_JOIN_GROUPED: "OuterJoin-Select",
        OperatorKind.GROUP_BY_SCAN: "GroupBy",
        OperatorKind.GROUP_BY_HASH: "GroupBy",
    }
)
"""Kind of an operator -> the row of the paper's tables that it belongs to; joins that plans share
stand where the semijoins did."""


def broker_query(query: FlwrQuery) -> BrokerQuery:
    """The parts of a generated query, as the parser of FLWR texts would give them."""
    return BrokerQuery(
        _path(query.binding),
        (),
        tuple(sorted((_predicate(one) for one in query.predicates), key=repr)),
        tuple(_path(path) for path in query.returns),
    )


@cache
def _path(text: str) -> NavigationPath:
    return navigation_path(text)


def _predicate(predicate: FlwrPredicate) -> PredicatePath:
    path, _, attribute = predicate.path.partition("/@")
    signature = Signature(
        (),
        Target.ATTRIBUTE if attribute else Target.ELEMENT,
        NameTest("", attribute) if attribute else None,
        Comparator.EQ,
        is_number=False,
    )
    return PredicatePath(_path(path), SimplePredicate(signature, predicate.constant))


class BrokerSubject:
    """An algorithm with some queries, whose ids are their numbers.

    Args:
        algorithm: Which one.
        optimisation: Which optimisations.
        queries: The queries.
        elements: The element graph, for `Opt(q+dtd)`.
    """

    def __init__(
        self,
        algorithm: BrokerAlgorithm,
        optimisation: OptimisationName,
        queries: Sequence[FlwrQuery],
        elements: SchemaPaths | None,
    ) -> None:
        self.algorithm = algorithm
        self.optimisation = optimisation
        chosen = Optimisation(optimisation)
        known = elements if chosen is Optimisation.QUERY_AND_DTD else None
        self._broker = _CLASSES[algorithm](chosen, known)
        for number, query in enumerate(queries):
            self._broker.subscribe(str(number), broker_query(query))

    @property
    def statistics(self) -> PlanStatistics:
        """What is planned."""
        return self._broker.plan_statistics()

    def answers(self, trees: Sequence[MessageTree]) -> list[Groups]:
        """The groups of each message."""
        return [self._broker.process(tree) for tree in trees]

    def run(self, trees: Sequence[MessageTree]) -> int:
        """Processor time of one pass in ns. To be called while `undisturbed`."""
        process = self._broker.process
        started = time.thread_time_ns()
        for tree in trees:
            process(tree)
        return time.thread_time_ns() - started

    def profile(self, trees: Sequence[MessageTree]) -> dict[str, float]:
        """Seconds of each kind of operator in one pass, by its row in the paper's tables."""
        profiler = Profiler(clock=time.thread_time)
        for tree in trees:
            self._broker.process(tree, profiler)
        costs: dict[str, float] = {}
        for kind, seconds in profiler.seconds.items():
            costs[_MEASURES[kind]] = costs.get(_MEASURES[kind], 0.0) + seconds
        costs["executor"] = profiler.executor_seconds
        return costs
