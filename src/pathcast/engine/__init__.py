"""The engine's face: index, snapshot, matcher, results, explanations.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> report = index.register([Query("q1", "/nitf/head//tobject[@type='news']")])
    >>> snapshot = index.freeze()
    >>> for result in snapshot.matcher().match([b"<nitf/>"]):
    ...     print(list(result.query_ids), result.error)
    [] None

The native kernel answers behind it (`pathcast.kernel`).
"""

from __future__ import annotations

from pathcast.engine.explanation import (
    Explanation,
    ExpressionExplanation,
    Failure,
    NodePlace,
    PartExplanation,
    Plan,
    PredicateExplanation,
    StepExplanation,
)
from pathcast.engine.index import QueryIndex
from pathcast.engine.matcher import Matcher
from pathcast.engine.messages import Messages
from pathcast.engine.notebook import html_table
from pathcast.engine.path_finder import FoundPaths, PathFinder
from pathcast.engine.results import (
    ERROR_TYPE,
    MATCHES_TYPE,
    BatchResult,
    MatchResult,
    QueryIds,
    QueryNumbers,
)
from pathcast.engine.routing import Routed, Router, RoutingStream, RoutingTable
from pathcast.engine.snapshot import Snapshot
from pathcast.engine.verdicts import VERDICTS_SCHEMA, Verdicts

__all__ = [
    "ERROR_TYPE",
    "MATCHES_TYPE",
    "VERDICTS_SCHEMA",
    "BatchResult",
    "Explanation",
    "ExpressionExplanation",
    "Failure",
    "FoundPaths",
    "MatchResult",
    "Matcher",
    "Messages",
    "NodePlace",
    "PartExplanation",
    "PathFinder",
    "Plan",
    "PredicateExplanation",
    "QueryIds",
    "QueryIndex",
    "QueryNumbers",
    "Routed",
    "Router",
    "RoutingStream",
    "RoutingTable",
    "Snapshot",
    "StepExplanation",
    "Verdicts",
    "html_table",
]
