"""Pathcast: filter XML messages by hundreds of thousands of standing XPath queries.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = Registry()
    >>> report = registry.add(Query("q1", "/order[total > 100]//item[@sku='a1']"))
    >>> message = b"<order><total>120</total><item sku='a1'/></order>"
    >>> list(registry.match(message).query_ids)
    ['q1']

The native kernel answers. `PATHCAST_ENGINE=nfa` has its plain NFA answer, for debugging.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathcast.engine import (
        BatchResult,
        Explanation,
        MatchResult,
    )
    from pathcast.errors import (
        ConfigError,
        ConstructionError,
        DiskError,
        DtdRefusedError,
        DuplicateQueryError,
        EncodingError,
        EvaluationBudgetError,
        ExplanationBugError,
        FrameError,
        IllFormedMessageError,
        JavaMissingError,
        KernelBugError,
        KernelMissingError,
        LimitExceededError,
        MessageBudgetError,
        MessageError,
        MissingDependencyError,
        NotPicklableError,
        PathcastError,
        PeerError,
        PeerRefusedError,
        PublicationError,
        QuerySyntaxError,
        RegistrationError,
        ResultLimitError,
        SchemaError,
        SnapshotFormatError,
        SourceError,
        SparkLostError,
        StoreError,
        UnavailableError,
        UnknownQueryError,
        UnreadableMessageError,
        UnsupportedQueryError,
        UnusableRowError,
    )
    from pathcast.limits import Limits
    from pathcast.model import (
        BatchStats,
        Delivery,
        Query,
        QueryWarning,
        RegisterReport,
        Subscription,
    )
    from pathcast.query import PREFIX_PACKS, CompiledQuery, CostClass
    from pathcast.registry import (
        Deliveries,
        DeliveryBatch,
        Registry,
        Snapshot,
        SubscriptionPlan,
    )

__all__ = [
    "PREFIX_PACKS",
    "BatchResult",
    "BatchStats",
    "CompiledQuery",
    "ConfigError",
    "ConstructionError",
    "CostClass",
    "Deliveries",
    "Delivery",
    "DeliveryBatch",
    "DiskError",
    "DtdRefusedError",
    "DuplicateQueryError",
    "EncodingError",
    "EvaluationBudgetError",
    "Explanation",
    "ExplanationBugError",
    "FrameError",
    "IllFormedMessageError",
    "JavaMissingError",
    "KernelBugError",
    "KernelMissingError",
    "LimitExceededError",
    "Limits",
    "MatchResult",
    "MessageBudgetError",
    "MessageError",
    "MissingDependencyError",
    "NotPicklableError",
    "PathcastError",
    "PeerError",
    "PeerRefusedError",
    "PublicationError",
    "Query",
    "QuerySyntaxError",
    "QueryWarning",
    "RegisterReport",
    "RegistrationError",
    "Registry",
    "ResultLimitError",
    "SchemaError",
    "Snapshot",
    "SnapshotFormatError",
    "SourceError",
    "SparkLostError",
    "StoreError",
    "Subscription",
    "SubscriptionPlan",
    "UnavailableError",
    "UnknownQueryError",
    "UnreadableMessageError",
    "UnsupportedQueryError",
    "UnusableRowError",
]

_ROOMS = {
    "pathcast.registry": (
        "Deliveries",
        "DeliveryBatch",
        "Registry",
        "Snapshot",
        "SubscriptionPlan",
    ),
    "pathcast.engine": (
        "BatchResult",
        "Explanation",
        "MatchResult",
    ),
    "pathcast.errors": tuple(name for name in __all__ if name.endswith("Error")),
    "pathcast.limits": ("Limits",),
    "pathcast.model": (
        "BatchStats",
        "Delivery",
        "Query",
        "QueryWarning",
        "RegisterReport",
        "Subscription",
    ),
    "pathcast.query": ("CompiledQuery", "CostClass", "PREFIX_PACKS"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imports the room of a name when the name is asked for first."""
    if name == "__version__":
        # It takes longer to import than the rest of this package.
        from importlib.metadata import version

        return version("pathcast")
    if f"pathcast.{name}" in _ROOMS:
        return import_module(f"pathcast.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_ROOM_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
