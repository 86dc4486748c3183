"""The registry of subscriptions: messages in, deliveries as their subscribers asked for them out.

Read in this order: `registry` (the face), `deliveries` (what comes out), `identity` (which delivery
is which), `snapshot` (subscriptions that do not change), `plan` and `explained` (why).
`steps`, `restructuring` and `before_steps` are about steps, the other modules about
subscriptions in files. The native kernel answers behind it (`pathcast.kernel.registry`).

Example:
    >>> from pathcast import Registry, Subscription
    >>> registry = Registry()
    >>> report = registry.add(Subscription("s1", "ann", "//b/@c", deliver="ids"))
    >>> [delivery.subscriber for delivery in registry.deliver(b"<a><b c='1'/></a>")]
    ['ann']
"""

from __future__ import annotations

from pathcast.registry.deliveries import (
    DELIVERIES_SCHEMA,
    ERRORS_SCHEMA,
    VERDICTS_SCHEMA,
    Deliveries,
    DeliveryBatch,
)
from pathcast.registry.identity import delivery_id, message_id, subscription_version
from pathcast.registry.plan import SubscriptionPlan
from pathcast.registry.registry import Registry
from pathcast.registry.snapshot import Snapshot
from pathcast.registry.value_files import files_below, rows_with_values, with_values

__all__ = [
    "DELIVERIES_SCHEMA",
    "ERRORS_SCHEMA",
    "VERDICTS_SCHEMA",
    "Deliveries",
    "DeliveryBatch",
    "Registry",
    "Snapshot",
    "SubscriptionPlan",
    "delivery_id",
    "files_below",
    "message_id",
    "rows_with_values",
    "subscription_version",
    "with_values",
]
