"""Virtual nodes: several members of the ring in one process, each with its own place.

A member is called `host#number`; what is for it goes to its host. Members of one host are nodes of
their own, which speak to each other without a message.

Example:
    >>> virtual_names("h", 3)
    ('h#0', 'h#1', 'h#2')
    >>> host_of("h#2")
    'h'

Source: 000, section 6.4 (3 virtual nodes a peer); Stoica et al. 2001, section 6.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from pathcast.dht.messages import Answer, Ask
from pathcast.errors import PeerError
from pathcast.protocol import Cancel, Effect, Forget, Node, Save, Send, Wake


class Hosted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A message between two members, as it travels between their hosts."""

    to: Annotated[str, Meta(max_length=128)]
    sender: Annotated[str, Meta(max_length=128)]
    what: Ask | Answer


def virtual_names(host: str, count: int) -> tuple[str, ...]:
    """Names of the members of a host."""
    return tuple(f"{host}#{number}" for number in range(count))


def host_of(member: str) -> str:
    """The host of a member; a member of no host is its own."""
    return member.rpartition("#")[0] or member


def disk_of(disk: Mapping[str, bytes], member: str) -> dict[str, bytes]:
    """Return the records of one member from its host's disk."""
    prefix = f"{member} "
    return {k.removeprefix(prefix): value for k, value in disk.items() if k.startswith(prefix)}


class PeerHost:
    """The members of one host, as one `pathcast.protocol.Node`.

    Args:
        name: Of the host.
        members: By name.
    """

    def __init__(self, name: str, members: Mapping[str, Node]) -> None:
        self.name = name
        self.members = dict(members)
        self._inside: deque[tuple[str, str, object]] = deque()

    def start(self, now: float) -> list[Effect]:
        """Begin all members."""
        return self._done(now, [(m, node.start(now)) for m, node in self.members.items()])

    def receive(self, sender: str, message: object, now: float) -> list[Effect]:
        """A message for a member, from one of another host.

        Raises:
            PeerError: "dht.sender"; the sender is no member of that host, or as the member says.
        """
        if not isinstance(message, Hosted) or host_of(message.sender) != sender:
            given = message.sender if isinstance(message, Hosted) else type(message).__name__
            raise PeerError("dht.sender", peer=sender, given=given)
        node = self.members.get(message.to)
        if node is None:
            return []
        return self._done(now, [(message.to, node.receive(message.sender, message.what, now))])

    def wake(self, timer: str, now: float) -> list[Effect]:
        """A timer of a member."""
        member, _, its = timer.partition(" ")
        return self._done(now, [(member, self.members[member].wake(its, now))])

    def neighbour(self, name: str, up: bool, now: float) -> list[Effect]:
        """Members hear of hosts."""
        done = [(m, node.neighbour(name, up, now)) for m, node in self.members.items()]
        return self._done(now, done)

    def ask(
        self, member: str, request: Callable[[Node], Sequence[Effect]], now: float
    ) -> list[Effect]:
        """Something asked of a member on the spot."""
        return self._done(now, [(member, request(self.members[member]))])

    def _done(self, now: float, done: Sequence[tuple[str, Sequence[Effect]]]) -> list[Effect]:
        """Return the effects for the carrier, once members have exchanged all their messages."""
        effects: list[Effect] = []
        for member, its in done:
            self._take(member, its, effects)
        while self._inside:
            sender, to, message = self._inside.popleft()
            node = self.members.get(to)
            if node is not None:
                self._take(to, node.receive(sender, message, now), effects)
        return effects

    def _take(self, member: str, its: Sequence[Effect], effects: list[Effect]) -> None:
        for effect in its:
            match effect:
                case Send(to, message) if host_of(to) == self.name:
                    self._inside.append((member, to, message))
                case Send(to, Ask() | Answer() as message):
                    effects.append(Send(host_of(to), Hosted(to, member, message)))
                case Wake(timer, after):
                    effects.append(Wake(f"{member} {timer}", after))
                case Cancel(timer):
                    effects.append(Cancel(f"{member} {timer}"))
                case Save(key, value):
                    effects.append(Save(f"{member} {key}", value))
                case Forget(key):
                    effects.append(Forget(f"{member} {key}"))
                case _:
                    # For whoever stands behind the host.
                    effects.append(effect)
