"""The engine's face: index, snapshot, matcher, results, explanations.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> report = index.register([Query("q1", "/nitf/head//tobject[@type='news']")])
    >>> snapshot = index.freeze()
    >>> for result in snapshot.matcher().match_batch([b"<nitf/>"]):
    ...     print(list(result.query_ids), result.error)
    [] None

What answers behind it is an engine (`pathcast.engine.backend`): the native kernel or the reference.
"""

from __future__ import annotations

from pathcast.engine.backend import (
    EngineModule,
    IndexBackend,
    MatcherBackend,
    RoutingBackend,
    SnapshotBackend,
)
from pathcast.engine.explanation import (
    Explanation,
    ExpressionExplanation,
    Failure,
    NodePlace,
    Plan,
    PredicateExplanation,
    StepExplanation,
)
from pathcast.engine.index import QueryIndex
from pathcast.engine.matcher import Matcher
from pathcast.engine.messages import Messages
from pathcast.engine.path_finder import FoundPaths, PathFinder
from pathcast.engine.results import (
    ERROR_TYPE,
    MATCHES_TYPE,
    ArrowBatch,
    BatchResult,
    MatchResult,
    QueryIds,
    QueryNumbers,
)
from pathcast.engine.routing import Routed, Router, RoutingStream, RoutingTable
from pathcast.engine.selection import ENGINE_VARIABLE, engine_name, select_engine
from pathcast.engine.snapshot import Snapshot
from pathcast.engine.verdicts import VERDICTS_SCHEMA, Verdicts

__all__ = [
    "ENGINE_VARIABLE",
    "ERROR_TYPE",
    "MATCHES_TYPE",
    "VERDICTS_SCHEMA",
    "ArrowBatch",
    "BatchResult",
    "EngineModule",
    "Explanation",
    "ExpressionExplanation",
    "Failure",
    "FoundPaths",
    "IndexBackend",
    "MatchResult",
    "Matcher",
    "MatcherBackend",
    "Messages",
    "NodePlace",
    "PathFinder",
    "Plan",
    "PredicateExplanation",
    "QueryIds",
    "QueryIndex",
    "QueryNumbers",
    "Routed",
    "Router",
    "RoutingBackend",
    "RoutingStream",
    "RoutingTable",
    "Snapshot",
    "SnapshotBackend",
    "StepExplanation",
    "Verdicts",
    "engine_name",
    "select_engine",
]
