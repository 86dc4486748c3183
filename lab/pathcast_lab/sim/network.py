"""The simulated network: nodes, their disks and clocks, and messages on the way.

Time is a number that jumps from event to event; one `random.Random(seed)` draws everything. What a
node does with an event are effects (`pathcast.protocol`), done here in their order. A crash ends a
node between two effects of a list, or between two events; what `Save` kept is its disk, and is
given to its factory when it is begun again, unless the disk is lost as well, or an older copy of it
was put in its place. A node may have a *twin*: another process of its name, begun from a copy of
its disk. To the others there is one node of that name, behind one connection, which one of the two
has at a time.

Between two nodes that have a link there is one connection after the other. A connection carries
what is sent on it in order, and loses nothing until it ends (unless `faults` say that messages are
lost, doubled or overtaken, as datagrams are). It may end anywhere: each direction brings a part of
what was under way, or nothing, and that part may come after what the next connection brings. A node
sends on the connection that it was told of last. One direction may be dead while the other one
works, before anybody notices.

It does not look into messages and checks nothing: whoever drives it reads `delivered`, `nodes`,
`disks` and `lines`.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pathcast.protocol import Cancel, Deliver, Effect, Forget, Node, Save, Send, Wake
from pathcast_lab.sim.faults import NO_FAULTS, Faults
from pathcast_lab.sim.steps import Step

__all__ = ["Factory", "Network"]

Factory = Callable[[Mapping[str, bytes], int], Node]
"""Makes a node from its disk (empty the first time) and a number that no life of it had before."""

_SKEW_SECONDS = 3600.0
_LINES_MAX = 20_000


@dataclass(slots=True)
class _Place:
    """Where a node lives, whether it runs or not."""

    factory: Factory
    clock_start: float
    clock_rate: float
    node: Node | None = None
    life: int = 0
    timers: dict[str, int] = field(default_factory=dict)
    effects_left: int | None = None
    """A crash is due after so many effects."""
    disk_survives: bool = True


@dataclass(slots=True)
class _Direction:
    """What becomes of one direction of a connection that is not as it should be.

    Attributes:
        until: What would arrive later than this does not arrive.
        late: By so many seconds all else comes later, after the connection has ended.
    """

    until: float
    late: float = 0.0


class Network:
    """A network of nodes under a seed.

    Args:
        seed: Of everything that is drawn.
        faults: What is done to messages and clocks; can be changed on the way (`become`).
        links: Pairs of names that have a connection. None: everybody reaches everybody, and nobody
            is told of neighbours.
        through: Passes each message through bytes or whatever else, e.g. encode and decode.
        on_deliver: Called at each `Deliver` with the node's name; else they pile up in `delivered`.
        on_end: Called when a node has ended, with its name and whether its disk survives.
        delays: Pairs of names, the lesser first -> seconds that every message takes between them,
            in place of what `faults` would draw.

    Attributes:
        now: Seconds of the simulated world.
        nodes: Those that run, by name.
        disks: What each has saved.
        delivered: (node, `Deliver`), in order.
        sent: Number of messages sent.
        lines: What happened, the latest last; `trace` prints it.
    """

    def __init__(
        self,
        seed: int,
        faults: Faults = NO_FAULTS,
        *,
        links: Iterable[tuple[str, str]] | None = None,
        through: Callable[[object], object] | None = None,
        on_deliver: Callable[[str, Deliver], None] | None = None,
        on_end: Callable[[str, bool], None] | None = None,
        delays: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self.now = 0.0
        self.nodes: dict[str, Node] = {}
        self.disks: dict[str, dict[str, bytes]] = {}
        self.delivered: list[tuple[str, Deliver]] = []
        self.sent = 0
        self.lines: deque[tuple[float, str, str, object]] = deque(maxlen=_LINES_MAX)
        self._random = random.Random(seed)
        self._faults = faults
        self._through = through
        self._on_deliver = on_deliver or (lambda name, given: self.delivered.append((name, given)))
        self._on_end = on_end or (lambda name, disk: None)
        self._delays = dict(delays or {})
        self._places: dict[str, _Place] = {}
        self._links = None if links is None else {_pair(a, b) for a, b in links}
        self._cut: set[tuple[str, str]] = set()
        self._sides: dict[str, int] = {}
        self._queue: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._count = 0
        self._connection: dict[tuple[str, str], int] = {}
        # (node, neighbour) -> connection that the node was told of last.
        self._told: dict[tuple[str, str], int] = {}
        # (sender, receiver), connection -> what becomes of the direction.
        self._directions: dict[tuple[str, str, int], _Direction] = {}
        self._latest: dict[tuple[str, str], float] = {}
        self._slowness: dict[tuple[str, str], float] = {}
        self._copies: dict[str, dict[str, bytes]] = {}
        # Twin -> the name it goes by; (other, name) -> who has the connection of the name to it.
        self._names: dict[str, str] = {}
        self._holders: dict[tuple[str, str], str] = {}

    # What whoever drives a run says.

    def add(self, name: str, factory: Factory, *, links: Iterable[str] = ()) -> None:
        """Begin a node now, and connect it to others that are there."""
        skew = self._faults.skew
        self._places[name] = _Place(
            factory,
            self._random.uniform(0, _SKEW_SECONDS) if skew else 0.0,
            1 + self._random.uniform(-skew, skew),
        )
        self.disks[name] = {}
        if self._links is not None:
            self._links |= {_pair(name, other) for other in links}
        self._begin(name)

    def call(self, name: str, request: Callable[[Node, float], Sequence[Effect]]) -> bool:
        """Something asked of a node on the spot (a subscription, a publication).

        Returns:
            Whether the node runs and did all that came of it.
        """
        place = self._places[name]
        if place.node is None:
            return False
        life = place.life
        self._do(name, request(place.node, self._clock(place)))
        return place.node is not None and place.life == life

    def crash(self, name: str, disk: bool = True, after_effects: int = 0) -> None:
        """End a node; after so many more effects, which may be in the middle of a list.

        Args:
            name: The node; nothing is done if there is none or it does not run.
            disk: Whether what it saved is there when it is begun again.
            after_effects: 0 ends it at once.
        """
        place = self._places.get(name)
        if place is None or place.node is None:
            return
        place.disk_survives = disk
        if after_effects:
            place.effects_left = after_effects
        else:
            self._end(name)

    def back_up(self, name: str) -> None:
        """Copy the disk of a node, as it is now."""
        if name in self._places:
            self._copies[name] = dict(self.disks[name])

    def roll_back(self, name: str) -> bool:
        """End a node and put the copy of its disk in the place of it. Returns whether there is one.

        Nothing is done without a copy, or while there are two nodes of the name.
        """
        if name not in self._copies or name in self._names.values():
            return False
        self.crash(name)
        self.disks[name] = dict(self._copies[name])
        self._note(name, "restores", f"{len(self.disks[name])} saved")
        return True

    def twin(self, name: str) -> str | None:
        """Begin another process of a node's name from a copy of its disk; it has no connection.

        Returns:
            What it is called here; None if there is one already, or the node does not run.
        """
        place = self._places.get(name)
        if place is None or place.node is None or name in self._names.values():
            return None
        other = f"{name}+"
        self._names[other] = name
        self._places[other] = _Place(place.factory, place.clock_start, place.clock_rate)
        self.disks[other] = dict(self.disks[name])
        self._begin(other)
        return other

    def wire(self, name: str, other: str, holder: str) -> None:
        """The connection between a name and another node is `holder`'s from now on."""
        if self._holder(name, other) != holder:
            self._lost(name, other)
            self._holders[other, name] = holder
            self._made(name, other)

    def untwin(self, name: str, kept: str) -> None:
        """One of two processes of a name goes on as the only one; the other one ends for good."""
        twin = f"{name}+"
        gone = name if kept == twin else twin
        for a, b in self._pairs():
            if name in (a, b):
                self.wire(name, b if a == name else a, kept)
        if self._places[gone].node is not None:
            self._places[gone].disk_survives = True
            self._end(gone)
        if kept == twin:
            place = self._places[name] = self._places[twin]
            self.disks[name] = self.disks[twin]
            if place.node is not None:
                self.nodes[name] = place.node
                for timer, mark in list(place.timers.items()):
                    self._put(self.now, self._wake, name, place.life, timer, mark)
        for mapping in (self._places, self.disks, self.nodes, self._names):
            mapping.pop(twin, None)
        self._holders = {key: one for key, one in self._holders.items() if key[1] != name}
        for a, b in self._pairs():
            if name in (a, b):  # the one that was told of its connections may have been the twin
                self._made(a, b)

    def name_of(self, node: str) -> str:
        """The name that a node goes by; a twin's is that of the other one."""
        return self._names.get(node, node)

    def _holder(self, name: str, other: str) -> str:
        """Who has the connection of a name to another node."""
        return self._holders.get((other, name), name)

    def restart(self, name: str) -> None:
        """Begin a node again that has ended; one that runs will not crash as it was to."""
        place = self._places.get(name)
        if place is not None:
            place.effects_left = None
            if place.node is None:
                self._begin(name)

    def cut(self, a: str, b: str) -> None:
        """Nothing passes between two nodes until `mend`."""
        self._cut.add(_pair(a, b))
        self._lost(a, b)

    def mend(self, a: str, b: str) -> None:
        """Undo `cut`."""
        self._cut.discard(_pair(a, b))
        self._made(a, b)

    def split(self, *sides: Iterable[str]) -> None:
        """Nothing passes between nodes of different sides until `heal`; the rest is one more."""
        passed = {(a, b): self._passes(a, b) for a, b in self._pairs()}
        self._sides = {name: n for n, side in enumerate(sides, 1) for name in side}
        for (a, b), did_pass in passed.items():
            if not self._passes(a, b):
                self._lost(a, b)
            elif not did_pass:
                self._made(a, b)

    def heal(self) -> None:
        """Undo `split` and every `cut`."""
        apart = [(a, b) for a, b in self._pairs() if not self._passes(a, b)]
        self._sides, self._cut = {}, set()
        for a, b in apart:
            self._made(a, b)

    def reset(self, a: str, b: str) -> None:
        """The connection breaks, with all that is under way on it, and is made again."""
        self._lost(a, b)
        self._made(a, b)

    def become(self, faults: Faults) -> None:
        """From now on the network is so unkind. Clocks stay as they are."""
        self._faults = faults
        self._slowness.clear()

    def perform(self, step: Step) -> None:
        """Do a step that is a method of this network."""
        getattr(self, step.action)(*step.args)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do something when the time has come."""
        self._put(time, lambda: action())

    def delay(self, a: str, b: str, seconds: float) -> None:
        """From now on each message between two takes so long."""
        self._delays[_pair(a, b)] = seconds

    def run(self, until: float) -> None:
        """Let time go on."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action, args = heapq.heappop(self._queue)
            action(*args)
        self.now = max(self.now, until)

    def trace(self, last: int = 60, about: str = "") -> str:
        """The last lines of what happened, those that speak of `about`."""
        shown = [
            line
            for time, name, what, value in self.lines
            if about in (line := f"{time:9.4f} {name:>6} {what:<8} {value}")
        ]
        return "\n".join(shown[-last:])

    # What comes of it.

    def _put(self, time: float, action: Callable[..., None], *args: object) -> None:
        self._count += 1
        heapq.heappush(self._queue, (time, self._count, action, args))

    def _clock(self, place: _Place) -> float:
        return place.clock_start + self.now * place.clock_rate

    def _begin(self, name: str) -> None:
        place = self._places[name]
        place.life += 1
        place.timers.clear()
        place.effects_left = None
        incarnation = self._random.getrandbits(53)
        place.node = self.nodes[name] = place.factory(dict(self.disks[name]), incarnation)
        self._note(name, "begins", f"with {len(self.disks[name])} saved")
        self._do(name, place.node.start(self._clock(place)))
        for a, b in self._pairs():
            if name in (self._holder(a, b), self._holder(b, a)):
                self._made(a, b)

    def _end(self, name: str) -> None:
        place = self._places[name]
        place.node, place.effects_left = None, None
        place.life += 1
        del self.nodes[name]
        if not place.disk_survives:
            self.disks[name] = {}
        self._note(name, "ends", "with its disk" if place.disk_survives else "without its disk")
        self._on_end(name, place.disk_survives)
        for a, b in self._pairs():
            if name in (self._holder(a, b), self._holder(b, a)):
                self._lost(a, b)

    def _do(self, name: str, effects: Sequence[Effect]) -> None:
        place = self._places[name]
        for effect in effects:
            if place.effects_left is not None:
                place.effects_left -= 1
                if place.effects_left < 0:
                    self._end(name)
                    return
            match effect:
                case Send(to, message):
                    self._send(name, to, message)
                case Wake(timer, after):
                    self._count += 1
                    place.timers[timer] = mark = self._count
                    time = self.now + after / place.clock_rate
                    self._put(time, self._wake, name, place.life, timer, mark)
                case Cancel(timer):
                    place.timers.pop(timer, None)
                case Save(key, value):
                    self.disks[name][key] = value
                case Forget(key):
                    self.disks[name].pop(key, None)
                case Deliver():
                    self._note(name, "delivers", effect.what)
                    self._on_deliver(name, effect)

    def _send(self, sender: str, to: str, message: object) -> None:
        self.sent += 1
        node, sender = sender, self.name_of(sender)
        if not self._passes(sender, to) or self._holder(sender, to) != node:
            return
        faults, draw = self._faults, self._random
        current = self._connection.get(_pair(sender, to), 0)
        connection = self._told.get((node, to), current)
        if self._through is not None:
            message = self._through(message)
        if faults.loss and draw.random() < faults.loss:
            self._note(sender, "loses", (to, message))
            return
        copies = 2 if faults.duplicate and draw.random() < faults.duplicate else 1
        for _ in range(copies):
            time = self.now + self._delay(sender, to)
            if faults.reorder and draw.random() < faults.reorder:
                time += draw.uniform(0, faults.reorder_seconds)
            else:
                time = max(time, self._latest.get((sender, to), 0.0))
                self._latest[sender, to] = time
            self._put(time, self._arrive, sender, to, message, connection)
        if faults.breaks and draw.random() < faults.breaks:
            self._break(sender, to)

    def _break(self, a: str, b: str) -> None:
        """The connection ends by itself, and is made again; or it is half open before that."""
        faults, draw = self._faults, self._random
        number = self._connection.get(_pair(a, b), 0)
        if draw.random() >= faults.half_open:
            self.reset(a, b)
            return
        a, b = draw.choice([(a, b), (b, a)])
        self._directions.setdefault((a, b, number), _Direction(self.now))
        self._note(a, "half open", b)
        after = draw.uniform(0, faults.half_open_seconds)
        self._put(self.now + after, self._find_out, a, b, number)

    def _find_out(self, a: str, b: str, number: int) -> None:
        """Somebody notices that a connection does not work."""
        if number == self._connection.get(_pair(a, b), 0) and self._passes(a, b):
            self.reset(a, b)

    def _delay(self, a: str, b: str) -> float:
        fixed = self._delays.get(_pair(a, b))
        if fixed is not None:
            return fixed
        return self._random.uniform(*self._faults.delay_seconds) * self._slow(a, b)

    def _slow(self, a: str, b: str) -> float:
        if not self._faults.slow:
            return 1.0
        pair = _pair(a, b)
        if pair not in self._slowness:
            slow = self._random.random() < self._faults.slow
            self._slowness[pair] = self._faults.slow_factor if slow else 1.0
        return self._slowness[pair]

    def _arrive(
        self, sender: str, to: str, message: object, connection: int, is_late: bool = False
    ) -> None:
        node = self._holder(to, sender)
        place = self._places.get(node)
        if place is None or place.node is None or not self._passes(sender, to):
            return
        direction = self._directions.get((sender, to, connection))
        is_current = connection == self._connection.get(_pair(sender, to), 0)
        if direction is None:
            if not is_current:
                return
        elif not is_late and self.now > direction.until:
            return
        elif not is_late and direction.late:
            again = (sender, to, message, connection, True)
            self._put(self.now + direction.late, self._arrive, *again)
            return
        self._note(node, "receives", (sender, message))
        self._do(node, place.node.receive(sender, message, self._clock(place)))

    def _wake(self, name: str, life: int, timer: str, mark: int) -> None:
        place = self._places.get(name)
        if place is None or place.node is None or place.life != life:
            return
        if place.timers.get(timer) != mark:
            return
        del place.timers[timer]
        self._do(name, place.node.wake(timer, self._clock(place)))

    def _pairs(self) -> list[tuple[str, str]]:
        return sorted(self._links or ())

    def _passes(self, a: str, b: str) -> bool:
        pair = _pair(a, b)
        if self._links is not None and pair not in self._links:
            return False
        return pair not in self._cut and self._sides.get(a, 0) == self._sides.get(b, 0)

    def _lost(self, a: str, b: str) -> None:
        """The connection is gone, with what is on the way, or a part; each end may be told."""
        pair, faults, draw = _pair(a, b), self._faults, self._random
        number = self._connection.get(pair, 0)
        if faults.remains:
            for way in ((a, b), (b, a)):
                if draw.random() < faults.remains:
                    until = self.now + draw.uniform(0, faults.delay_seconds[1])
                    late = draw.uniform(0, faults.remains_seconds)
                    self._directions.setdefault((*way, number), _Direction(until, late))
        self._connection[pair] = number + 1
        self._latest.pop((a, b), None)
        self._latest.pop((b, a), None)
        self._tell(a, b, up=False)

    def _made(self, a: str, b: str) -> None:
        ends = (self._holder(a, b), self._holder(b, a))
        if self._passes(a, b) and all(end in self.nodes for end in ends):
            self._tell(a, b, up=True)

    def _tell(self, a: str, b: str, up: bool) -> None:
        if self._links is None or _pair(a, b) not in self._links:
            return
        if not up and self._faults.unnoticed and self._random.random() < self._faults.unnoticed:
            return
        for name, other in ((self._holder(a, b), b), (self._holder(b, a), a)):
            place = self._places.get(name)
            if place is not None and place.node is not None:
                delay = self._random.uniform(0, 0.01)
                number = self._connection.get(_pair(a, b), 0)
                self._put(self.now + delay, self._notify, name, place.life, other, up, number)

    def _notify(self, name: str, life: int, other: str, up: bool, number: int) -> None:
        place = self._places.get(name)
        if place is not None and place.node is not None and place.life == life:
            if up:
                self._told[name, other] = max(number, self._told.get((name, other), 0))
            self._note(name, "up" if up else "down", other)
            self._do(name, place.node.neighbour(other, up, self._clock(place)))

    def _note(self, name: str, what: str, value: object) -> None:
        self.lines.append((self.now, name, what, value))


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)
