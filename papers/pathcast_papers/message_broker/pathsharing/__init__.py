"""Path sharing for customised delivery, as the paper describes it: F, FW, FWR and plan sharing.

The path matching engine gives streams of path tuples; operators behind it make of them, for every
query and message, the nodes of the result in groupSequence-listSequence form; the message factory
makes that into a message.

Read it in this order: `paths`, `broker_query`, `matching_engine`, `operators`, `joins`,
`algorithms` (section 3 of the paper); `claims`, `optimisation` (4); `grouping`, `shared_selection`,
`plan_sharing`, `executor` (5).

It takes queries of the paper's class (`pathcast_papers.language.xquery.paper_form`) and no others;
the exact interpreter, `pathcast_papers.message_broker.xquery`, takes all.

Source: Diao and Franklin, "Query Processing for High-Volume XML Message Brokering", VLDB 2003.
"""

from pathcast_papers.message_broker.pathsharing.algorithms import (
    PathSharing,
    PathSharingF,
    PathSharingFW,
    PathSharingFWR,
    PlanStatistics,
)
from pathcast_papers.message_broker.pathsharing.broker_query import BrokerQuery
from pathcast_papers.message_broker.pathsharing.executor import Profiler
from pathcast_papers.message_broker.pathsharing.message_factory import message_factory, results
from pathcast_papers.message_broker.pathsharing.operators import Group, GroupSequence, OperatorKind
from pathcast_papers.message_broker.pathsharing.optimisation import Optimisation
from pathcast_papers.message_broker.pathsharing.plan_sharing import PlanSharing

__all__ = [
    "BrokerQuery",
    "Group",
    "GroupSequence",
    "OperatorKind",
    "Optimisation",
    "PathSharing",
    "PathSharingF",
    "PathSharingFW",
    "PathSharingFWR",
    "PlanSharing",
    "PlanStatistics",
    "Profiler",
    "message_factory",
    "results",
]
