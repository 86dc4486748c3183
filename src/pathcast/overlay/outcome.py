r"""The effects of events for the carrier: records to keep, messages to send, deliveries.

Example:
    >>> outcome = EventEffects()
    >>> outcome.save("term", 3)
    >>> outcome.taken()
    ([Save(key='term', value=b'\x03')], [])
    >>> outcome.taken()
    ([], [])
"""

from __future__ import annotations

import msgspec

from pathcast.overlay.deliveries import Told
from pathcast.protocol import Deliver, Effect, Forget, Save


class EventEffects:
    """The effects of an event, or of several together.

    Attributes:
        effects: What is to be done before anything is sent.
        given: What is to be done after it: subscribers do not hold neighbours up.
    """

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.given: list[Effect] = []

    def save(self, key: str, value: object) -> None:
        """Keep a value, before anything is sent."""
        self.effects.append(Save(key, msgspec.msgpack.encode(value)))

    def forget(self, key: str) -> None:
        """Keep it no longer."""
        self.effects.append(Forget(key))

    def deliver(self, subscriber: str, told: Told) -> None:
        """Hand something over."""
        self.given.append(Deliver(subscriber, told))

    def taken(self) -> tuple[list[Effect], list[Effect]]:
        """Effects, and what is given after them; nothing is left."""
        taken = self.effects, self.given
        self.effects, self.given = [], []
        return taken
