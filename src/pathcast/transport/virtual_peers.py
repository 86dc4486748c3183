"""Several members of the ring in one process: its virtual nodes, as one node of a carrier.

The members of process `p04` are `p04#0`, `p04#1`, ...: each has a place, neighbours and records of
its own, and what two of one process say to each other is no message. Clients speak to the first.
Of a process of the base the first is of the base, and stays; the others are members like any other.
When a process leaves, its members go one after another.

A process that ends takes all its members along. So a record has more copies than a process has
members, which settings see to.

Source: 000, section 6.4 (3 virtual nodes a peer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathcast.dht.hosting import PeerHost
from pathcast.protocol import Deliver, Effect
from pathcast.transport.peer import Left, ServedPeer


class VirtualPeers(PeerHost):
    """The members of one process.

    Args:
        name: Of the process.
        served: Its members; clients speak to the first.

    Attributes:
        served: The same.
    """

    def __init__(self, name: str, served: Mapping[str, ServedPeer]) -> None:
        super().__init__(name, served)
        self.served = list(served.values())

    def request(self, client: str, messages: Sequence[object], now: float) -> list[Effect]:
        """Forward a client's request to a peer."""
        first = self.served[0]
        return self._done(now, [(first.ring.me.name, first.request(client, messages, now))])

    def ended(self, name: str, now: float) -> list[Effect]:
        """The process of a peer has ended, and all members that it had."""
        return self._done(now, [(each.ring.me.name, each.ended(name, now)) for each in self.served])

    def _take(self, member: str, its: Sequence[Effect], effects: list[Effect]) -> None:
        for effect in its:
            match effect:
                case Deliver(to, Left()):
                    self._has_left(to, effects)
                case _:
                    super()._take(member, [effect], effects)

    def _has_left(self, to: str, effects: list[Effect]) -> None:
        """The next goes when one has gone: two at once would hand over to each other."""
        for each in self.served:
            if not each.ring.has_left:
                self._take(each.ring.me.name, each.leave(to), effects)
                return
        effects.append(Deliver(to, Left(self.name)))
