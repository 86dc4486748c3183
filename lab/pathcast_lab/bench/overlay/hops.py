"""Hop latency of long messages: cut-through against store-and-forward.

A line of brokers runs here, the real protocol and the real engine, over links whose time is
computed from their width. Each broker has a processor of its own: what it takes for an event is
measured, as processor time, and delays what it sends. Time runs from the publication at the root
until the host at the end of the line hands the message to its subscriber. The root's disk and the
machinery of connections (gRPC, event loops) are left out.

The subscriber wants every message. What it asks for stands at the beginning of a message, so that
the decision falls early, or at its end. Other profiles fill the tables.
"""

from __future__ import annotations

import gc
import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import Final

from pathcast.overlay.broker_node import BrokerNode, NodeSettings
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.content import Content, DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery, InForce
from pathcast.overlay.messages import MESSAGE_BYTES_MAX, SourceEntry, decoded, encoded
from pathcast.overlay.xml_content import limits_of, xml_content
from pathcast.protocol import Deliver, Effect, Send, Wake
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.timing import Spread
from pathcast_lab.bench.wrong_count import WrongCountError

CUT_THROUGH: Final = "cut-through"
STORED: Final = "store-and-forward"
EARLY: Final = "decided early"
LATE: Final = "decided at the end"
HOP: Final = "a further hop"

_PROFILE: Final = {EARLY: "/report/head[@topic='t1']", LATE: "/report/tail[@topic='t1']"}
_SETTLING_SECONDS: Final = 5.0
_PAYING_BYTES: Final = 1_300
"""Of the first message for each profile: as much as makes brokers make their routing tables."""

_LONG_BYTES: Final = 100_000
_PATIENCE_SECONDS: Final = 600.0
_ROOT: Final = "b0"


def report(size: int, decided: str) -> bytes:
    """A message of about so many bytes, that `_PROFILE` wants."""
    topics = ("t1", "t2") if decided == EARLY else ("t2", "t1")
    head = f"<report><head topic='{topics[0]}'/><body>".encode()
    tail = f"</body><tail topic='{topics[1]}'/></report>".encode()
    line = b"<line no='17'><sku>A7-4411</sku><text>as ordered, to be sent by rail</text></line>"
    count = max(1, (size - len(head) - len(tail)) // len(line))
    return head + line * count + tail


@dataclass
class Line:
    """Brokers in a line, and the time that passes there.

    Args:
        hops: Links between the root and the host.
        bytes_per_second: Width of each link, each way.
        delay_seconds: On each link, beside its width.
        settings: Of all brokers.
        content: The language of profiles and messages.
    """

    hops: int
    bytes_per_second: float
    delay_seconds: float
    settings: NodeSettings
    content: Content
    nodes: dict[str, BrokerNode] = field(default_factory=dict)
    delivered: list[float] = field(default_factory=list)
    """When messages were delivered."""
    in_force: int = 0

    def __post_init__(self) -> None:
        names = [f"b{n}" for n in range(self.hops + 1)]
        self._events: list[tuple[float, int, str, Callable[[float], Sequence[Effect]]]] = []
        self._count = 0
        self._busy = dict.fromkeys(names, 0.0)
        self._free: dict[tuple[str, str], float] = {}
        for n, name in enumerate(names):
            near = {names[m]: 1 for m in (n - 1, n + 1) if 0 <= m < len(names)}
            node = BrokerNode(
                name, near, self.content, {}, n + 1, members=names, settings=self.settings
            )
            self.nodes[name] = node
            self.at(0.0, name, node.start)

    @property
    def host(self) -> str:
        """The end of the line."""
        return f"b{self.hops}"

    def at(self, time: float, name: str, call: Callable[[float], Sequence[Effect]]) -> None:
        """A broker is called at a time, or when it has done what came before."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, name, call))

    def run(self, is_over: Callable[[], bool]) -> None:
        """Lets time go on until something is so, and for `_PATIENCE_SECONDS` at most."""
        until = self._events[0][0] + _PATIENCE_SECONDS
        while not is_over() and self._events[0][0] < until:
            time, _, name, call = heapq.heappop(self._events)
            begins = max(time, self._busy[name])
            started = process_time()
            effects = call(begins)
            frames = [
                (one.to, encoded(one.message))  # type: ignore[arg-type]
                for one in effects
                if isinstance(one, Send)
            ]
            done = self._busy[name] = begins + process_time() - started
            for to, data in frames:
                self._carry(name, to, data, done)
            for effect in effects:
                if isinstance(effect, Wake):
                    self.at(done + effect.after, name, self._woken(name, effect.timer))
                elif isinstance(effect, Deliver) and isinstance(effect.what, InForce):
                    self.in_force += 1
                elif isinstance(effect, Deliver) and isinstance(effect.what, InboxDelivery):
                    self.delivered.append(done)

    def _carry(self, sender: str, to: str, data: bytes, time: float) -> None:
        link = (sender, to)
        self._free[link] = max(time, self._free.get(link, 0.0)) + len(data) / self.bytes_per_second
        node = self.nodes[to]
        self.at(
            self._free[link] + self.delay_seconds,
            to,
            lambda now: node.receive(sender, decoded(data), now),
        )

    def _woken(self, name: str, timer: str) -> Callable[[float], Sequence[Effect]]:
        return lambda now: self.nodes[name].wake(timer, now)

    def subscribe(self, profiles: Sequence[str]) -> float:
        """Profiles at the host, once the brokers know each other. Returns when all are in force."""
        for n, profile in enumerate(profiles):
            asked = DeliveryProfile(profile, "ids")
            self.at(_SETTLING_SECONDS, self.host, self._asked(f"s{n}", asked))
        root = self.nodes[_ROOT]
        register = root.broker.register_source
        self.at(
            _SETTLING_SECONDS, _ROOT, lambda now: root.asked(now, register, "source", SourceEntry())
        )
        self.run(lambda: self.in_force == len(profiles))
        return max(self._busy.values()) + _SETTLING_SECONDS

    def _asked(self, name: str, profile: DeliveryProfile) -> Callable[[float], Sequence[Effect]]:
        return lambda now: self.nodes[self.host].asked(
            now, self.nodes[self.host].broker.subscribe, name, name, profile
        )

    def publish(self, time: float, number: int, body: bytes) -> float:
        """A message at a time. Returns the seconds until the host has delivered it."""
        before, root = len(self.delivered), self.nodes[_ROOT]
        self.at(
            time,
            _ROOT,
            lambda now: root.asked(now, root.broker.publish, "source", f"m{number}", body),
        )
        self.run(lambda: len(self.delivered) > before)
        return self.delivered[-1] - time if len(self.delivered) > before else _PATIENCE_SECONDS


def run_hops(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Every width, place of the decision, way and size.

    Raises:
        WrongCountError: A message was delivered twice, or not once.
    """
    del seed
    others = [f"/report/head[@topic='u{n}']" for n in range(chosen.profiles - 1)]
    content = xml_content(limits=limits_of(MESSAGE_BYTES_MAX))
    for width in chosen.megabits:
        for decided in (EARLY, LATE):
            for way in (CUT_THROUGH, STORED):
                settings = NodeSettings(
                    ProtocolSettings(
                        message_bytes_max=MESSAGE_BYTES_MAX, cut_through=way == CUT_THROUGH
                    )
                )
                say(f"{width} Mb/s, {decided}, {way}")
                taken: dict[int, dict[int, list[float]]] = {}
                for hops in chosen.hops:
                    line = Line(hops, width * 125_000, chosen.delay_ms / 1000, settings, content)
                    taken[hops] = _seconds(line, [_PROFILE[decided], *others], chosen, decided)
                for size in chosen.sizes:
                    place = Place(figure.name, f"{width} Mb/s, {decided}", way, size, 0)
                    of_hops = {hops: taken[hops][size] for hops in taken}
                    yield list(_totals(place, of_hops))


def _seconds(
    line: Line, profiles: Sequence[str], chosen: OverlaySet, decided: str
) -> dict[int, list[float]]:
    """Size -> seconds of each message, after one that pays for the tables."""
    found: dict[int, list[float]] = {size: [] for size in chosen.sizes}
    now, published = line.subscribe(profiles), 0
    paying = max(_LONG_BYTES, _PAYING_BYTES * len(profiles))
    for size in (paying, *chosen.sizes * chosen.messages):
        body = report(size, decided)
        gc.collect()
        seconds = line.publish(now, published, body)
        if published:
            found[size].append(seconds)
        published += 1
        now += seconds + _SETTLING_SECONDS
    if len(line.delivered) != published:
        raise WrongCountError(
            case=f"{line.hops} hops, {decided}",
            found=len(line.delivered),
            expected=published,
            oracle="publications",
        )
    return found


def _totals(place: Place, taken: dict[int, list[float]]) -> Iterator[Value]:
    hops = list(taken)
    for count in hops:
        yield place.value(f"{count} hops" if count > 1 else "1 hop", "ms", _spread(taken[count]))
    if len(hops) > 1:
        further = (min(taken[hops[-1]]) - min(taken[hops[0]])) / (hops[-1] - hops[0])
        yield place.value(HOP, "ms", 1000 * further)


def _spread(seconds: Sequence[float]) -> Spread:
    ordered = sorted(1000 * one for one in seconds)
    return Spread(ordered[len(ordered) // 2], ordered[0], ordered[-1])
