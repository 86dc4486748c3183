"""The plan of a subscription in words: which operators serve it, and how many others each serves.

Source: Diao and Franklin, VLDB 2003, sections 3 and 5, for the names of the operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathcast.model import Subscription
    from pathcast.query import CompiledSubscription

_DELIVER = {
    "fragment": "message factory: write the results",
    "message": "deliver the message as it arrived",
    "ids": "deliver a notice",
}


def plan_lines(
    subscription: Subscription, compiled: CompiledSubscription, told: Mapping[str, Any]
) -> tuple[list[str], dict[str, int]]:
    """Operators from the leaves up, and operator -> number of other users.

    Args:
        subscription: The subscription.
        compiled: What `pathcast.query` makes of it.
        told: What the kernel says of it.
    """
    lines = [f"path {path}" for path in compiled.alternatives]
    shared: dict[str, int] = {}
    if told["way"] == "shared":
        lines += [
            "shared plan: BoundNodes of the binding path, predicates, GroupBy on return paths"
        ]
        shared = {
            "binding path": told["binding"] - 1,
            "selection": told["selection"] - 1,
            "return clause": told["template"] - 1,
        }
        for number, uses in enumerate(told["predicates"], 1):
            shared[f"predicate {number}"] = uses - 1
    elif told["way"] == "gated":
        lines.append("evaluate the program")
    elif told["way"] == "selecting":
        lines.append("select the nodes")
    elif compiled.expression is not None:
        lines.append(f"evaluate {compiled.expression}")
    return [*lines, _DELIVER[subscription.deliver]], shared
