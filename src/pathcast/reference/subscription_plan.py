"""The plan of a subscription, for `explain`: what it would be evaluated by, and what it shares.

Source: Diao and Franklin, VLDB 2003, section 3, for the names of the operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pathcast.reference.standing_subscription import StandingSubscription


def explanation(
    subscription: StandingSubscription, others: Sequence[StandingSubscription]
) -> Mapping[str, object]:
    """The plan of a subscription; see `pathcast.customize.backend.DisseminationBackend.explain`.

    Args:
        subscription: The subscription.
        others: All others that stand.

    Cost: linear in the text of all subscriptions.
    """
    compiled, made = subscription.compiled, subscription.subscription
    gate = list(compiled.alternatives)
    users = Counter(path for other in others for path in set(other.compiled.alternatives))
    shared = {f"gate {path}": users[path] for path in gate}
    return {
        "kind": compiled.kind,
        "deliver": made.deliver,
        "query": made.query,
        "plan": _general_plan(subscription),
        "gate": gate,
        "expression": compiled.expression,
        "reasons": [str(reason) for reason in compiled.reasons],
        "shared": shared,
    }


def _general_plan(subscription: StandingSubscription) -> list[str]:
    """The operators of a subscription that is evaluated by itself."""
    compiled = subscription.compiled
    lines = [f"path {path}" for path in compiled.alternatives]
    if compiled.kind == "xquery":
        lines.append("evaluate the program")
    elif subscription.subscription.deliver == "fragment":
        lines.append("select the nodes")
    elif compiled.expression is not None:
        lines.append(f"evaluate {compiled.expression}")
    deliver = {
        "fragment": "serialise every item",
        "message": "deliver the message as it arrived",
        "ids": "deliver a notice",
    }
    return [*lines, deliver[subscription.subscription.deliver]]
