"""Which gates hold of messages: conjunctions of paths that the product has written itself.

Example:
    >>> found = gates_that_hold(["//item[@sku='A7'] and //to", "/recall"], b"<to sku='A7'/>")
    >>> list(found.query_ids)
    []

It is no registry: nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from pathcast.engine.matcher import matched
from pathcast.engine.messages import Messages
from pathcast.engine.results import BatchResult, MatchResult
from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, MessageBytes


@overload
def gates_that_hold(gates: Iterable[str], messages: MessageBytes) -> MatchResult: ...


@overload
def gates_that_hold(gates: Iterable[str], messages: Messages) -> BatchResult: ...


def gates_that_hold(
    gates: Iterable[str], messages: MessageBytes | Messages
) -> MatchResult | BatchResult:
    """The gates that hold of one message or of many, by their texts.

    A gate is paths in canonical text, which may cast a value as XQuery does, with " and " between
    them. Where they cannot be told together, messages that have not all pass too.

    Args:
        gates: Different gates.
        messages: As for `Registry.match`.

    Raises:
        QuerySyntaxError: One is no canonical text.

    Cost: some microseconds a gate, which is compiled for these messages.
    """
    limits = Limits()
    registry = KernelRegistry(limits, 1, CACHE_BYTES_MAX)
    registry.register_gates(list(gates))
    return matched(registry.match, messages, limits, is_live=True)
