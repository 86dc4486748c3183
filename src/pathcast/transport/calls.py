"""Calls of clients that are there together are one event of a node.

While a node does an event, further calls come, of the same client and of others. They are done
together in the next one: what they publish is logged, routed, answered and sent together, which
costs little more than one of them.

Example:
    >>> def echo(node, client, messages, now):
    ...     return [Send(client, message) for message in messages]
    >>> one_by_one(echo)(None, [("ann", ["a", "b"]), ("bob", ["c"])], 0.0)
    ([['a', 'b'], ['c']], [])
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from pathcast.errors import PathcastError
from pathcast.protocol import Effect, Node, Send

TOGETHER_MAX: Final = 256
"""Messages of calls after which no further call is done in the same event."""

TOGETHER_BYTES: Final = 1 << 20
"""Bytes of them likewise: what a root takes in one event is one record on its disk."""

ClientCall = tuple[str, Sequence[object]]
"""A client, and the messages of one call of it."""

Outcomes = tuple[Sequence[Sequence[object] | PathcastError], Sequence[Effect]]
"""For each call its answers, or why it was refused; and the effects of all."""

SomeNode = TypeVar("SomeNode", bound=Node)


@dataclass
class WaitingCall:
    """A call of a client that waits for its turn.

    Attributes:
        client: Who calls.
        messages: What is asked.
        kept: Done when what was made of it is on disk.
        answers: Those to it, once it was done.
    """

    client: str
    messages: Sequence[object]
    kept: asyncio.Future[None]
    answers: Sequence[object] = ()


def parted_calls(
    calls: Sequence[WaitingCall],
) -> tuple[list[WaitingCall], list[WaitingCall]]:
    """The first calls, which are done in one event; and the others."""
    taken = count = size = 0
    while taken < len(calls) and count < TOGETHER_MAX and size < TOGETHER_BYTES:
        count += len(calls[taken].messages)
        size += sum(map(_size, calls[taken].messages))
        taken += 1
    return list(calls[:taken]), list(calls[taken:])


def _size(message: object) -> int:
    """Bytes of the message that a request carries, if it publishes one."""
    return len(getattr(message, "body", b""))


def one_by_one(
    request: Callable[[SomeNode, str, Sequence[object], float], Sequence[Effect]],
) -> Callable[[SomeNode, Sequence[ClientCall], float], Outcomes]:
    """Makes what does many calls of what does one, whose answers are sent to the client."""

    def each(node: SomeNode, calls: Sequence[ClientCall], now: float) -> Outcomes:
        outcomes: list[Sequence[object] | PathcastError] = []
        effects: list[Effect] = []
        for client, messages in calls:
            try:
                told = request(node, client, messages, now)
            except PathcastError as error:
                outcomes.append(error)
                continue
            answers, others = parted_effects(client, told)
            outcomes.append(answers)
            effects += others
        return outcomes, effects

    return each


def parted_effects(client: str, effects: Iterable[Effect]) -> tuple[list[object], list[Effect]]:
    """The messages that are sent to a client, who is no neighbour; and all other effects."""
    answers: list[object] = []
    others: list[Effect] = []
    for effect in effects:
        if isinstance(effect, Send) and effect.to == client:
            answers.append(effect.message)
        else:
            others.append(effect)
    return answers, others


def end(future: asyncio.Future[None], error: Exception | None = None) -> None:
    """Ends a future, unless nobody waits for it any more."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
