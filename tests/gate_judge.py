"""Whether a message passes the gate of a subscription, by the kernel's routing table.

The papers read the canonical text of their own class alone; gates say more (texts in one case,
lists of words, patterns).
"""

from __future__ import annotations

from pathcast.engine import RoutingTable
from pathcast.model import RoutingEntry
from pathcast.query import CompiledSubscription


def lets_pass(gate: CompiledSubscription, source: bytes) -> bool:
    """Whether one of the paths of a gate is in a message."""
    table = RoutingTable([RoutingEntry((path,), 1) for path in gate.alternatives], 1)
    return list(table.router().route([source]).lists()) == [[0]]
