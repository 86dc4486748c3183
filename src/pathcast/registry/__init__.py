"""Customised delivery: subscriptions in, messages as their subscribers asked for them out.

Read in this order: `registry` (the face), `deliveries` (what comes out), `identity` (which delivery
is which), `snapshot` and `snapshot_file` (subscriptions that do not change), `plan` (why).

What answers behind it is a dissemination engine (`backend`, `engines`): the native kernel or the
reference.

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
from pathcast.registry.snapshot import SubscriptionSnapshot

__all__ = [
    "DELIVERIES_SCHEMA",
    "ERRORS_SCHEMA",
    "VERDICTS_SCHEMA",
    "Deliveries",
    "DeliveryBatch",
    "Registry",
    "SubscriptionPlan",
    "SubscriptionSnapshot",
    "delivery_id",
    "message_id",
    "subscription_version",
]
