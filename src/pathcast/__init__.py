"""Pathcast: filter XML messages by hundreds of thousands of standing XPath queries.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> report = index.register([Query("q1", "/order[total > 100]//item[@sku='a1']")])
    >>> message = b"<order><total>120</total><item sku='a1'/></order>"
    >>> [list(result.query_ids) for result in index.matcher().match_batch([message])]
    [['q1']]

The native kernel answers. `PATHCAST_ENGINE=nfa` has its plain NFA answer, for debugging.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_ROOMS = {
    "pathcast.customize": (
        "Broker",
        "Deliveries",
        "DeliveryBatch",
        "SubscriptionPlan",
        "SubscriptionSnapshot",
    ),
    "pathcast.engine": (
        "ArrowBatch",
        "BatchResult",
        "Explanation",
        "Matcher",
        "MatchResult",
        "QueryIndex",
        "Snapshot",
    ),
    "pathcast.errors": ("PathcastError",),
    "pathcast.limits": ("Limits",),
    "pathcast.model": (
        "BatchStats",
        "Delivery",
        "Query",
        "QueryWarning",
        "RegisterReport",
        "Subscription",
    ),
    "pathcast.query": ("CompiledQuery", "CostClass"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imports the room of a name when the name is asked for first."""
    if f"pathcast.{name}" in _ROOMS:
        return import_module(f"pathcast.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_ROOM_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
