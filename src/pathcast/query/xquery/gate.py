"""The gate of a subscription."""

from __future__ import annotations

from pathcast.query.compiled import Reason
from pathcast.query.xquery.syntax import Program


def gate_of(program: Program) -> tuple[tuple[str, ...], tuple[Reason, ...]]:
    """The paths of which one must be there for a message to be delivered."""
    return ("/*",), (Reason("every message is a candidate: nothing is known of it", 0),)
