"""The node that a carrier runs: a broker's planes over a reliable link to each neighbour.

Example:
    >>> from pathcast.overlay.content import Content
    >>> node = BrokerNode("a", {"b": 1}, Content(dict, dict), {}, 7)  # doctest: +SKIP

Source: 001, section 5, Figure 10: packet listener, planes, sender.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec

from pathcast.errors import PeerError
from pathcast.overlay.broker import BrokerState
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.compression import LinkCompression, SourceDictionaries
from pathcast.overlay.content import Content
from pathcast.overlay.deliveries import OPERATOR, NeighbourRefused
from pathcast.overlay.link import LinkSettings, NeighbourLink
from pathcast.overlay.link_costs import MeasuredCost
from pathcast.overlay.messages import Announce, Payload, SessionFrame, SessionHello
from pathcast.overlay.numbers_of_life import NumbersOfLife
from pathcast.protocol import Effect, Send, Wake

P = ParamSpec("P")

TICK = "tick"
LOCAL = "local"
"""The timer that goes off when what was to be sent is sent: local queries are run then."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Settings of a node.

    Attributes:
        broker: Of its planes.
        link: Of its links.
        tick_seconds: How often it looks at what is due.
        shun_seconds: How long a neighbour is not listened to after a refusal; twice as long with
            each further one, up to `shun_seconds_max`.
        shun_seconds_max: See there.
        format: Of messages that are sent: "text", or "zstd" (`pathcast.overlay.compression`).
        formats: Neighbour -> format, where it is another one.
    """

    broker: ProtocolSettings = field(default_factory=ProtocolSettings)
    link: LinkSettings = field(default_factory=LinkSettings)
    tick_seconds: float = 0.25
    shun_seconds: float = 1.0
    shun_seconds_max: float = 60.0
    format: str = "text"
    formats: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Shunned:
    until: float
    seconds: float


class BrokerNode:
    """A broker as a `pathcast.protocol.Node`.

    Requests (`asked`) give effects as events do. Deliveries go to subscribers
    by name, refusals to "operator".

    Args:
        name: Of the broker.
        links: Neighbours it may have links with, and what a link costs; 0: as it is measured.
        content: The language of profiles and messages.
        disk: What was saved by a former life.
        incarnation: A number below 2**53 that no former life had.
        members: Other brokers of the network as it was founded.
        settings: See there.
    """

    def __init__(
        self,
        name: str,
        links: Mapping[str, int],
        content: Content,
        disk: Mapping[str, bytes],
        incarnation: int,
        *,
        members: Iterable[str] = (),
        settings: NodeSettings = NodeSettings(),
    ) -> None:
        self._settings = settings
        self._numbers = NumbersOfLife(incarnation)
        self._links = {peer: NeighbourLink(self._numbers, settings.link) for peer in sorted(links)}
        self._measured = {peer: MeasuredCost() for peer, cost in links.items() if not cost}
        self._dictionaries = SourceDictionaries(name)
        self.compressions = {peer: self._compression(peer) for peer in self._links}
        self._shunned: dict[str, _Shunned] = {}
        self._rewound_at = float("-inf")
        self._is_due_locally = False
        self.broker = BrokerState(
            name,
            {peer: cost or 1 for peer, cost in links.items()},
            content,
            disk,
            incarnation,
            self._send,
            lambda peer: self._links[peer].has_room,
            members,
            settings.broker,
        )

    def start(self, now: float) -> Sequence[Effect]:
        """Begin: links offer sessions."""
        self.broker.start(now)
        return [Wake(TICK, self._settings.tick_seconds), *self.done(now)]

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        """A frame of a neighbour; what cannot be is refused, and the neighbour shunned."""
        link = self._links.get(sender)
        if link is None or not isinstance(message, SessionHello | SessionFrame):
            return []
        shunned = self._shunned.get(sender)
        if shunned is not None and now < shunned.until:
            return []
        try:
            received = link.receive(message, now)
            compression = self.compressions[sender]
            if received.began:
                compression.began()
                self.broker.session_began(sender)
            for payload in received.payloads:
                self.broker.hear(sender, compression.incoming(payload))
        except PeerError as error:
            self._refuse(sender, error, now)
        return self.done(now)

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        """Resend, give silent neighbours up, say what was left for now; or run local queries."""
        if timer == LOCAL:
            self._is_due_locally = False
            self.broker.local.work()
            return self.done(now)
        for peer, link in self._links.items():
            if link.tick(now):
                self.broker.session_ended(peer)
        self._measure(now)
        self._dictionaries.time_is(now)
        self.broker.tick(now)
        return [*self.done(now), Wake(TICK, self._settings.tick_seconds)]

    def _measure(self, now: float) -> None:
        for peer, measured in self._measured.items():
            link = self._links[peer]
            if not link.is_up:
                measured.begin_anew()
            elif (took := link.taken_round_trip()) is not None:
                measured.see(took, now)
            self.broker.set_link(peer, measured.cost)
            if link.is_up and measured.is_probe_due(now):
                self._send(peer, Announce(()))

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        """A connection was made or lost. A session outlives it."""
        if up and name in self._links:
            self._links[name].connected(now)
        return self.done(now)

    def asked(
        self, now: float, ask: Callable[P, object], *args: P.args, **kwargs: P.kwargs
    ) -> Sequence[Effect]:
        """Carry out a request of this broker's own clients, a method of `broker`.

        What it publishes is accepted once the effects up to the first `Send` are done.
        """
        self.broker.time_is(now)
        ask(*args, **kwargs)
        return self.done(now)

    def set_link(self, peer: str, cost: int, now: float) -> Sequence[Effect]:
        """There is a neighbour that was not known at the beginning, or a link has another cost."""
        if peer not in self._links:
            self._links[peer] = NeighbourLink(self._numbers, self._settings.link)
            self.compressions[peer] = self._compression(peer)
        self._measured.pop(peer, None)
        if not cost:
            self._measured[peer] = MeasuredCost()
        self.broker.set_link(peer, cost or 1)
        return self.done(now)

    def link_counts(self) -> dict[str, tuple[int, int]]:
        """Neighbour -> sessions there have been with it, and frames that were sent to it again."""
        return {peer: (link.sessions, link.resent) for peer, link in self._links.items()}

    def _compression(self, peer: str) -> LinkCompression:
        format = self._settings.formats.get(peer, self._settings.format)
        return LinkCompression(peer, format, self._dictionaries)

    def _send(self, peer: str, payload: Payload) -> None:
        self._links[peer].send(self.compressions[peer].outgoing(payload))

    def _refuse(self, peer: str, error: PeerError, now: float) -> None:
        """Nothing of this session counts; the neighbour may offer another, later."""
        settings = self._settings
        before = self._shunned.get(peer)
        seconds = settings.shun_seconds if before is None else 2 * before.seconds
        seconds = min(seconds, settings.shun_seconds_max)
        self._shunned[peer] = _Shunned(now + seconds, seconds)
        self._links[peer].close(now)
        self.broker.session_ended(peer)
        self.broker.outcome.deliver(OPERATOR, NeighbourRefused(peer, error.code, error.message))

    def done(self, now: float) -> list[Effect]:
        """The effects of an event: what is saved, then sent to neighbours, then delivered.

        Whoever asks `broker` for several things at once calls this after the last of them: they are
        saved, routed, told and answered together.
        """
        if now - self._rewound_at >= self._settings.tick_seconds and self.broker.rewind():
            self._rewound_at = now
        self.broker.finish()
        broker = self.broker
        # What waits for the disk takes along what subscribers here get, if that is found soon: the
        # disk is waited for once, not twice, until they have it.
        if broker.outcome.effects and broker.local.has_little_work:
            broker.local.work()
        while broker.local.is_behind:
            broker.local.work()
        effects, given = broker.outcome.taken()
        for peer, link in self._links.items():
            for message in link.flush(now):
                effects.append(Send(peer, message))
        if broker.local.has_work and not self._is_due_locally:
            self._is_due_locally = True
            given.append(Wake(LOCAL, 0.0))
        return effects + given
