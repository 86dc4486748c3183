"""A source or a user as worlds have it: it asks until it is answered.

A request has a name that begins with the incarnation of the node, so that one that is started
again asks for nothing under a name that it had used. A request goes to one node of the service
after the other; one for a broker goes to the node that plays it, which is asked for anew where it
does not answer.

Source: 001, 3.1, Figure 3: the data source and the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from pathcast.overlay.registration_messages import (
    Answer,
    ChangeInterest,
    DeleteInterest,
    InterestRegistered,
    Locate,
    Located,
    NotLeading,
    RegisterInterest,
    RegisterSource,
    RegistrationRefused,
    SourceRegistered,
    UpdateSource,
)
from pathcast.protocol import Deliver, Effect, Send, Wake

AGAIN: Final = "again"
Asked = RegisterSource | RegisterInterest | ChangeInterest | DeleteInterest | UpdateSource


@dataclass
class _Open:
    """A request without an answer."""

    message: Asked
    sent: int = 0


class Registrant:
    """See the module.

    Args:
        services: Addresses of the nodes of the registration service.
        incarnation: A number that no life of this node had before.
        again_seconds: After so many a request is sent again.

    Attributes:
        places: Id of a source or a profile -> its broker, and address of the node that plays it.
    """

    def __init__(
        self, services: Sequence[str], incarnation: int, *, again_seconds: float = 1.0
    ) -> None:
        self.places: dict[str, tuple[str, str]] = {}
        self._services = list(services)
        self._incarnation = incarnation
        self._again_seconds = again_seconds
        self._number = 0
        self._open: dict[str, _Open] = {}
        # Of the service node that answered last.
        self._leading = 0

    def start(self, now: float) -> Sequence[Effect]:
        """Nothing to begin with."""
        return []

    def next_request(self) -> str:
        """A name for a request, which no other has."""
        self._number += 1
        return f"{self._incarnation}.{self._number}"

    def ask(self, message: Asked, name: str, now: float) -> Sequence[Effect]:
        """Sends a request; its answer comes as `Deliver` to the name of the request.

        Args:
            message: Its `request` is replaced by the name.
            name: From `next_request`.
            now: The time.
        """
        self._open[name] = _Open(msgspec.structs.replace(message, request=name))
        return [*self._sent(name), Wake(AGAIN, self._again_seconds)]

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        """An answer, or where somebody is."""
        if not isinstance(message, Answer):
            return []
        if isinstance(message, Located):
            self.places[message.id] = (message.broker, message.address)
            return []
        waiting = self._open.get(message.request)
        if waiting is None or isinstance(message, NotLeading):
            # Of no request, or another node is to be asked: with the timer, not at once.
            return []
        if isinstance(message, RegistrationRefused) and message.retry:
            return []
        if isinstance(message, SourceRegistered):
            self.places[message.source] = (message.root, message.address)
        elif isinstance(message, InterestRegistered):
            self.places[message.profile] = (message.host, message.address)
        del self._open[message.request]
        return [Deliver(message.request, message)]

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        """Sends again what has no answer."""
        if not self._open:
            return []
        self._leading += 1
        sent = [effect for name in list(self._open) for effect in self._sent(name)]
        return [*sent, Wake(AGAIN, self._again_seconds)]

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        """Connections do not matter."""
        return []

    def _sent(self, name: str) -> Sequence[Effect]:
        waiting = self._open[name]
        waiting.sent += 1
        message = waiting.message
        service = self._services[self._leading % len(self._services)]
        if isinstance(message, (RegisterSource, RegisterInterest)):
            return [Send(service, message)]
        id = message.source if isinstance(message, UpdateSource) else message.profile
        effects: list[Effect] = []
        broker, address = self.places.get(id, ("", ""))
        if not address or waiting.sent > 1:
            effects.append(Send(service, Locate(self.next_request(), id, broker)))
        if address:
            effects.append(Send(address, message))
        return effects
