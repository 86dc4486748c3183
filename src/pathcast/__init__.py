"""Pathcast: filter XML messages by hundreds of thousands of standing XPath queries.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> report = index.register([Query("q1", "/order[total > 100]//item[@sku='a1']")])
    >>> message = b"<order><total>120</total><item sku='a1'/></order>"
    >>> [list(result.query_ids) for result in index.matcher().match_batch([message])]
    [['q1']]

Without `engine=` the native kernel answers, or the engine that `PATHCAST_ENGINE` names.
"""

from __future__ import annotations

from pathcast.customize import (
    Broker,
    Deliveries,
    DeliveryBatch,
    SubscriptionPlan,
    SubscriptionSnapshot,
)
from pathcast.engine import (
    ArrowBatch,
    BatchResult,
    Explanation,
    Matcher,
    MatchResult,
    QueryIndex,
    Snapshot,
)
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import (
    BatchStats,
    Delivery,
    EngineName,
    Query,
    QueryWarning,
    RegisterReport,
    Subscription,
)
from pathcast.query import CompiledQuery, CostClass

__all__ = [
    "ArrowBatch",
    "BatchResult",
    "BatchStats",
    "Broker",
    "CompiledQuery",
    "CostClass",
    "Deliveries",
    "Delivery",
    "DeliveryBatch",
    "EngineName",
    "Explanation",
    "Limits",
    "MatchResult",
    "Matcher",
    "PathcastError",
    "Query",
    "QueryIndex",
    "QueryWarning",
    "RegisterReport",
    "Snapshot",
    "Subscription",
    "SubscriptionPlan",
    "SubscriptionSnapshot",
]
