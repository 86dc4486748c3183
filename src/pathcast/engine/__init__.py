"""Answers about messages: results, routes, explanations.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = Registry()
    >>> report = registry.add([Query("q1", "/nitf/head//tobject[@type='news']")])
    >>> for result in registry.match([b"<nitf/>"]):
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
from pathcast.engine.gates import gates_that_hold
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
from pathcast.engine.routing import Router, RoutingStream, RoutingTable
from pathcast.engine.rows import carried_mode
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
    "Messages",
    "NodePlace",
    "PartExplanation",
    "PathFinder",
    "Plan",
    "PredicateExplanation",
    "QueryIds",
    "QueryNumbers",
    "Router",
    "RoutingStream",
    "RoutingTable",
    "StepExplanation",
    "Verdicts",
    "carried_mode",
    "gates_that_hold",
    "html_table",
]
