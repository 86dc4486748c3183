"""Brokers in the simulated network: what is done to them, and what must be true of it.

A run is a `Scenario` (brokers, links, steps) under a seed. While it goes on, the world keeps what a
single process with all subscriptions would know; at its end faults stop, every broker is begun
again, and after some seconds of quiet it must be so that

- *nothing lost silently*: a message that was accepted after a subscription was acknowledged, and
  satisfies it, was delivered for it; or the subscriber was told `Lapsed`, and there was a reason:
  its position, because its host was away beyond retention; or a disk that was lost or older than
  what others had seen, two processes of one name, or an expulsion, after the message. Without a
  reason nobody is told `Lapsed`, and nobody of positions that are all from before it subscribed;
- *nothing foreign*: what was delivered is what the message, as it was published, gives the profile
  that the subscription had then;
- *nothing twice*: at the subscriber's cursor; and a host that did not crash hands nothing over
  twice; no version of a subscription is given twice, also where its id is used again;
- *nothing stale*: every table is what it is when made from scratch of all subscriptions and links;
- *no starvation*: every subscription was acknowledged, every cursor is at the end of every stream,
  and no root holds a message that all have had;
- *no refusal* between brokers that keep to the protocol;
- *one process a name*: of two, the one that began earlier takes nothing any more.

A broker that lost its disk begins anew, and one whose disk is older has the subscriptions of then.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec

from pathcast.errors import PeerRefusedError, PublicationError, UnknownQueryError
from pathcast.overlay.broker_node import BrokerNode, NodeSettings
from pathcast.overlay.broker_settings import Trees
from pathcast.overlay.content import Content, DeliveryProfile, Results
from pathcast.overlay.deliveries import InboxDelivery, InForce, Lapsed, NeighbourRefused
from pathcast.overlay.local_queries import KeptCursor
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.subscriptions import HostedSubscription
from pathcast.overlay.trees import (
    broadcast_tree,
    neighbours,
    spanning_tree,
    towards,
)
from pathcast.protocol import Deliver, Effect, Node
from pathcast_lab.sim.faults import NO_FAULTS
from pathcast_lab.sim.from_scratch import from_scratch
from pathcast_lab.sim.network import Network
from pathcast_lab.sim.steps import Step
from pathcast_lab.sim.toy_content import TOY, results

__all__ = ["BrokerWorld", "Scenario", "Violation"]

Edge = tuple[str, str]

LEAST_SECONDS = 1e-6
"""Between two steps, so that what came first is known by its time."""


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens to which brokers.

    Attributes:
        brokers: Names.
        links: Pairs of them.
        steps: In order of time. Actions of the network, and `subscribe` (host, id, profile),
            `unsubscribe` (id), `publish` (root, body), `source` (root), `leave` (broker), `join`
            (broker, neighbours), `expel` (by whom, whom), `back_up`, `roll_back`, `twin` (broker),
            `wire` (broker, neighbour), `untwin` (broker).
        quiet_seconds: From the last step to the checks.
        trees: As `BrokerSettings.trees`.
    """

    brokers: tuple[str, ...]
    links: tuple[Edge, ...]
    steps: tuple[Step, ...]
    quiet_seconds: float = 30.0
    trees: Trees = "spanning"

    def with_steps(self, steps: Sequence[Step]) -> Scenario:
        """The same with other steps."""
        return replace(self, steps=tuple(steps))

    def __str__(self) -> str:
        head = f"{self.trees} tree; links {', '.join('-'.join(link) for link in self.links)}"
        return "\n".join([head, *map(str, self.steps)])


@dataclass(slots=True)
class _Registered:
    """What the world knows of one life of a subscription: an id that is used again begins another.

    Attributes:
        version: As the host answered; no other life of any subscription of this id has it.
        made_at: When it was asked for; -1 if an older disk has brought it back.
        made_in: Number of the life of the host that it was asked of.
        delivered: Ids of the messages that its subscriber has taken for it.
        lapsed: Positions that its subscriber was told it may miss: root, stream, first and last.
        lapsed_at: When its subscriber was told last that any messages may be lost; -1 for never.
        has_lapsed: It was told so, and the subscription was not acknowledged since.
    """

    host: str
    profile: str
    version: int
    made_at: float = -1.0
    made_in: int = -1
    in_force_at: float | None = None
    ended: bool = False
    delivered: list[str] = field(default_factory=list)
    lapsed: list[tuple[str, int, int, int]] = field(default_factory=list)
    lapsed_at: float = -1.0
    has_lapsed: bool = False


@dataclass(slots=True)
class _Accepted:
    """What the world knows of a message.

    Attributes:
        stream: Number of its stream.
        position: In the stream.
        witnesses: Since its root has an older disk, other brokers that have had it; None before.
    """

    root: str
    body: bytes
    at: float
    may_be_lost: bool = False
    stream: int = 0
    position: int = 0
    witnesses: set[str] | None = None

    def is_in(self, lapsed: tuple[str, int, int, int]) -> bool:
        """Whether it is at one of the positions that a subscriber was told it may miss."""
        root, stream, first, last = lapsed
        return (root, stream) == (self.root, self.stream) and first <= self.position <= last


@dataclass(slots=True)
class BrokerWorld:
    """A run of a scenario.

    Args:
        scenario: What happens.
        seed: Of the network.
        content: The language; toy by default.
        results: The single process: what a message gives a profile, nothing if it does not satisfy
            it.
        profile: Makes a profile of the text in a step.
        settings: Of all brokers; trees are the scenario's.
        may_lapse: Whether brokers are away beyond retention, so that messages are given up for
            them. If not, only those that were expelled miss any.
        through: Passes messages through bytes.
        twisted: Makes a broker by another factory, e.g. one that lies: name -> node of the brokers'
            node.
    """

    scenario: Scenario
    seed: int
    content: Content = TOY
    results: Callable[[bytes, str], Results] = results
    profile: Callable[[str], DeliveryProfile] = DeliveryProfile
    settings: NodeSettings = field(default_factory=NodeSettings)
    may_lapse: bool = False
    through: Callable[[object], object] | None = None
    twisted: Mapping[str, Callable[[BrokerNode], Node]] = field(default_factory=dict)
    network: Network = field(init=False)
    subscriptions: dict[str, _Registered] = field(default_factory=dict)
    accepted: dict[str, _Accepted] = field(default_factory=dict)
    deliveries: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    refused: list[tuple[str, NeighbourRefused]] = field(default_factory=list)
    crashed: set[str] = field(default_factory=set)
    harmed: set[str] = field(default_factory=set)
    missed: int = 0
    """Deliveries that were due, and whose subscribers were told that they do not come."""
    not_taken: int = 0
    """Messages that a root had no room for."""
    left: set[str] = field(default_factory=set)
    links: set[Edge] = field(default_factory=set)
    _cursor: dict[tuple[str, int, str, int], int] = field(default_factory=dict)
    _life: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _handed: set[tuple[str, int, str, int, int, str, int]] = field(default_factory=set)
    _taken_in: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """Id and version of a subscription, message -> stream in which it was taken."""
    _profiles: dict[tuple[str, int], str] = field(default_factory=dict)
    _inboxes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    _read: dict[str, dict[tuple[str, int, str, int], int]] = field(default_factory=dict)
    _streams: dict[str, int] = field(default_factory=dict)
    _older_disks: Counter[str] = field(default_factory=Counter)
    _acknowledged: set[tuple[str, int]] = field(default_factory=set)
    _twins: dict[str, str] = field(default_factory=dict)
    _had_twin: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.network = Network(
            self.seed,
            links=self.scenario.links,
            through=self.through,
            on_deliver=self._deliver,
            on_end=self._end,
        )
        self.links = {_pair(a, b) for a, b in self.scenario.links}
        for name in self.scenario.brokers:
            self._add(name, self._links_of(name))

    def run(self) -> BrokerWorld:
        """Do all steps, let it be quiet, check.

        Raises:
            Violation: What does not hold, with the seed, the steps and the end of the trace.
        """
        network = self.network
        try:
            for step in self.scenario.steps:
                network.run(max(step.at, network.now + LEAST_SECONDS))
                self.perform(step)
            for name in sorted(self._twins):
                self.do_untwin(name)
            network.heal()
            network.become(NO_FAULTS)
            for name in sorted(network.disks):
                network.restart(name)
            network.run(network.now + self.scenario.quiet_seconds)
            self.check()
        except Violation as violation:
            raise Violation(
                f"{violation}\nseed {self.seed}\n{self.scenario}\n{network.trace()}"
            ) from None
        return self

    @property
    def brokers(self) -> list[str]:
        """All that have not left, by name."""
        return sorted(self.network.disks.keys() - self.left - set(self._twins.values()))

    def node(self, name: str) -> BrokerNode:
        """A broker that runs."""
        node = self.network.nodes[name]
        assert isinstance(node, BrokerNode), name
        return node

    # Steps.

    def perform(self, step: Step) -> None:
        """Do a step now."""
        own = getattr(self, f"do_{step.action}", None)
        if own is None:
            self.network.perform(step)
        else:
            own(*step.args)

    def do_subscribe(self, host: str, name: str, profile: str) -> None:
        """A subscriber asks a host, with an id that is new, or was used before, or is in use."""
        before = self.subscriptions.get(name)
        if host not in self.network.nodes or host in self.left:
            return
        if host in self._twins:
            return  # one of the two knows it, and may be the elder
        made = _Registered(host, profile, 0, self.network.now, self._life[host])

        def asked(node: BrokerNode, now: float) -> Sequence[Effect]:
            effects = node.asked(now, node.broker.subscribe, name, name, self.profile(profile))
            given = node.broker.subscriptions.get(name)
            assert given is not None, name
            made.version = given.version
            if made.version in self.versions[name]:
                raise Violation(f"{host} gives version {made.version} of {name} twice")
            self.versions[name].add(made.version)
            self._profiles[name, made.version] = profile
            self.subscriptions[name] = made
            return effects

        done = False
        with suppress(PeerRefusedError):
            done = self._call(host, asked)
        if not done and self._saved_version(host, name) != made.version:
            made.ended = True
            if before is not None and self._saved_version(host, name) == before.version:
                self.subscriptions[name] = before

    def do_unsubscribe(self, name: str) -> None:
        """A subscriber takes a profile out."""
        known = self.subscriptions.get(name)
        if known is None or known.ended or known.host not in self.network.nodes:
            return
        if known.host in self._twins:
            return
        try:
            self._call(known.host, lambda node, now: node.asked(now, node.broker.unsubscribe, name))
            known.ended = self._saved_version(known.host, name) == 0
        except UnknownQueryError as error:
            raise Violation(f"{known.host} does not know {name} any more") from error
        except PeerRefusedError:
            return  # the elder of two

    def do_source(self, root: str) -> None:
        """A source is registered with a root."""
        if root in self.network.nodes and root not in self.left:
            with suppress(PeerRefusedError):
                self._call(
                    root,
                    lambda node, now: node.asked(
                        now, node.broker.register_source, f"of {root}", SourceEntry()
                    ),
                )

    def do_publish(self, root: str, body: str, twin: bool = False) -> None:
        """A message is given to a root; or to the other process of its name, if there is one."""
        node = self._twins.get(root, root) if twin else root
        if node not in self.network.nodes:
            return
        message = f"m{len(self.accepted)}"
        # A broker that crashes while it takes a message may have taken it.
        one = self.accepted[message] = _Accepted(root, body.encode(), self.network.now, True)

        def asked(node: BrokerNode, now: float) -> Sequence[Effect]:
            effects = node.asked(now, node.broker.publish, f"of {root}", message, body.encode())
            stream = node.broker.streams[root]
            one.stream, one.position = stream.number, stream.at
            return effects

        try:
            one.may_be_lost = not self._call(node, asked)
        except PeerRefusedError:
            del self.accepted[message]
        except PublicationError as error:
            self.not_taken += error.code == "publication.log"
            del self.accepted[message]

    def do_join(self, name: str, *near: str) -> None:
        """A new broker, with links to these."""
        self.links |= {_pair(name, other) for other in near}
        self._add(name, self._links_of(name))
        for other in near:
            for node in (other, self._twins.get(other, other)):
                if node in self.network.nodes:
                    self._call(node, lambda node, now: node.set_link(name, 1, now))

    def do_leave(self, name: str) -> None:
        """A broker goes for good, unless it holds together those that stay.

        What it was drawn for may have become so: another one was down when it was to leave.
        """
        staying = [one for one in self.brokers if one != name]
        if name not in self.network.nodes or not are_connected(staying, self.links):
            return
        self._call(name, lambda node, now: node.asked(now, node.broker.leave))
        if "leaving" in self.network.disks[name]:
            self.left.add(name)
            for known in self.subscriptions.values():
                known.ended = known.ended or known.host == name

    def do_expel(self, by: str, name: str) -> None:
        """An operator takes a broker out, at another one."""
        if by in self.network.nodes and by != name:
            self.harmed.add(name)
            self._call(by, lambda node, now: node.asked(now, node.broker.expel, name))

    def do_back_up(self, name: str) -> None:
        """The disk of a broker is copied, with the inboxes of its subscribers."""
        self.network.back_up(name)
        mine = {each for each, known in self.subscriptions.items() if known.host == name}
        self._inboxes[name] = {each: list(self.deliveries[each]) for each in sorted(mine)}
        self._read[name] = {key: at for key, at in self._cursor.items() if key[0] in mine}

    def _restore_inboxes(self, host: str) -> None:
        """What subscribers had not read of inboxes that are older now, they have not had."""
        mine = {each for each, known in self.subscriptions.items() if known.host == host}
        for name in sorted(mine):
            kept = self._inboxes[host].get(name, [])
            unread = set(self.deliveries[name]) - set(kept)
            for one in [one for one in self._taken_in if one[0] == name and one[2] in unread]:
                del self._taken_in[one]
            known = self.subscriptions[name]
            known.delivered = [one for one in known.delivered if one not in unread]
            self.deliveries[name] = list(kept)
        others = {key: at for key, at in self._cursor.items() if key[0] not in mine}
        self._cursor = others | self._read[host]

    def do_roll_back(self, name: str) -> None:
        """A broker gets an older disk; it does not run before it is begun again."""
        if self.network.roll_back(name):
            self._restore_inboxes(name)
            self.harmed.add(name)
            self._older_disks[name] += 1
            self._know_disk(name)
            cursors = {other: self._cursor_on_disk(other, name) for other in self.brokers}
            for one in self.accepted.values():
                if one.root == name and one.position > cursors[name]:
                    witnesses = {each for each, at in cursors.items() if at >= one.position}
                    before = witnesses if one.witnesses is None else one.witnesses
                    one.witnesses = before & witnesses

    def _cursor_on_disk(self, host: str, root: str) -> int:
        """Position up to which a host has had a stream for sure."""
        saved = self.network.disks[host].get(f"cursor/{root}")
        return 0 if saved is None else msgspec.msgpack.decode(saved, type=KeptCursor).position

    def do_twin(self, name: str) -> None:
        """Another process of a broker's name begins from a copy of its disk."""
        if name not in self.left and (other := self.network.twin(name)) is not None:
            self._twins[name] = other
            self._had_twin.add(name)
            self._older_disks[name] += 1
            self.harmed.add(name)

    def do_wire(self, name: str, other: str, twin: bool) -> None:
        """One of the two processes of a name has the connection to a neighbour."""
        if name in self._twins and other not in self._twins:
            self.network.wire(name, other, self._twins[name] if twin else name)

    def do_untwin(self, name: str) -> None:
        """Both are connected, one after the other: one ends, and the other one goes on.

        Raises:
            Violation: Both go on.
        """
        if name not in self._twins:
            return
        twin, network = self._twins[name], self.network
        network.heal()
        network.become(NO_FAULTS)
        for each in sorted(network.disks):
            network.restart(each)
        for holder in (name, twin, name):
            for other in self._links_of(name):
                network.wire(name, other, holder)
            network.run(network.now + 12.0)
        elders = [each for each in (name, twin) if self._is_elder(each)]
        if len(elders) != 1:
            raise Violation(f"of two processes named {name} {len(elders)} give way")
        later = twin if elders == [name] else name
        del self._twins[name]
        network.untwin(name, later)
        self._know_disk(name)
        for known in self.subscriptions.values():
            if known.in_force_at is None and (later, known.version) in self._acknowledged:
                known.in_force_at = network.now

    def _is_elder(self, name: str) -> bool:
        node = self.network.nodes[name]
        assert isinstance(node, BrokerNode), name
        return node.broker.is_elder

    def _know_disk(self, host: str) -> None:
        """Subscriptions of a broker are those of its disk."""
        for name, known in self.subscriptions.items():
            if known.host != host:
                continue
            version = self._saved_version(host, name)
            if version in (0, known.version) and known.ended == (not version):
                continue
            profile = self._profiles.get((name, version), known.profile)
            self.subscriptions[name] = _Registered(
                host, profile, version or known.version, ended=not version
            )

    def _add(self, name: str, near: Sequence[str]) -> None:
        def factory(disk: Mapping[str, bytes], incarnation: int) -> Node:
            node = BrokerNode(
                name,
                dict.fromkeys(self._links_of(name), 1),
                self.content,
                disk,
                incarnation,
                members=self.scenario.brokers,
                settings=self._node_settings(),
            )
            return self.twisted[name](node) if name in self.twisted else node

        self.network.add(name, factory, links=near)

    def _node_settings(self) -> NodeSettings:
        broker = replace(self.settings.broker, trees=self.scenario.trees)
        return replace(self.settings, broker=broker)

    def _links_of(self, name: str) -> list[str]:
        return sorted(b if a == name else a for a, b in self.links if name in (a, b))

    def _call(self, name: str, request: Callable[[BrokerNode, float], Sequence[Effect]]) -> bool:
        def asked(node: Node, now: float) -> Sequence[Effect]:
            assert isinstance(node, BrokerNode), name
            return request(node, now)

        return self.network.call(name, asked)

    def _saved_version(self, host: str, name: str) -> int:
        """What a broker that crashed in the middle of a request will know."""
        saved = self.network.disks[host].get(f"subscription/{name}")
        return (
            0 if saved is None else msgspec.msgpack.decode(saved, type=HostedSubscription).version
        )

    # What is seen.

    def _end(self, name: str, disk: bool) -> None:
        self.crashed.add(name)
        self._life[name] += 1
        if (one := self.network.name_of(name)) in self._twins:
            self._older_disks[one] += 1  # begun again it is the later one, and returns to its disk
        if not disk:
            self.left.discard(name)
            self.harmed.add(name)
            for known in self.subscriptions.values():
                known.ended = known.ended or known.host == name

    def _deliver(self, node: str, given: Deliver) -> None:
        host = self.network.name_of(node)
        match given.what:
            case InForce(name, version):
                known = self.subscriptions.get(name)
                self._acknowledged.add((node, version))
                if known is not None and known.version == version:
                    known.has_lapsed = False
                    if known.in_force_at is None:
                        known.in_force_at = self.network.now
            case Lapsed() as said:
                self._lapse(host, said)
            case NeighbourRefused(peer, "peer.twin"):
                if peer not in self._twins and peer not in self.twisted:
                    raise Violation(f"{peer} gives way, and is the only one of its name")
            case NeighbourRefused():
                self.refused.append((host, given.what))
            case InboxDelivery() as delivery:
                self._take(node, delivery)

    def _lapse(self, host: str, said: Lapsed) -> None:
        """A subscriber is told that messages may be lost: of a root, at these positions, or any."""
        known = self.subscriptions[said.subscription]
        if known.version != said.version:
            if host in self._twins:
                return  # what the other one of the two knows
            raise Violation(f"{said} is told of {known}")
        is_due = bool(self.harmed) or (said.root and self.may_lapse)
        # A host that crashed does not know whether a subscription was in force before, nor, if it
        # has joined, whether a life of it that was ahead of its disk had had a position.
        is_late = host not in self.scenario.brokers
        is_unsure = host in self.crashed and (is_late or known.in_force_at is None)
        if not (is_due or is_unsure) or self._is_of_before(host, known, said):
            raise Violation(f"{said} is told of {known}, and there is no reason")
        known.has_lapsed = True
        if said.root:
            known.lapsed.append((said.root, said.stream, said.first, said.last))
            return
        known.lapsed_at = self.network.now
        if host in self.harmed:
            known.in_force_at = None

    def _is_of_before(self, host: str, known: _Registered, said: Lapsed) -> bool:
        """Whether all positions are from before the subscription, of this life of its host.

        A host that was away when a root gave positions up does not know which are from before.
        """
        has_older_disk = host in self._older_disks or said.root in self.harmed
        if not said.root or self.may_lapse or has_older_disk:
            return False
        lapsed = (said.root, said.stream, said.first, said.last)
        is_of_this_life = known.made_in == self._life[host]
        since = (one for one in self.accepted.values() if one.at >= known.made_at)
        return is_of_this_life and not any(one.is_in(lapsed) for one in since)

    def _take(self, node: str, given: InboxDelivery) -> None:
        name, host = given.subscription, self.network.name_of(node)
        known = self.subscriptions[name]
        profile = known.profile
        if known.host != host or known.version != given.version:
            if known.host != host or host not in self._twins:
                raise Violation(f"{given} comes from {host}, but {name} is {known}")
            profile = self._profiles[name, given.version]
        if given.message not in self.accepted:
            raise Violation(f"{given} was never published")
        expected = self.results(self.accepted[given.message].body, profile)
        if not expected or given.results != expected:
            raise Violation(f"{given} is not {expected}, what the message gives {known}")
        if self._streams.setdefault(given.root, given.stream) != given.stream and not self.harmed:
            raise Violation(f"{given.root} has begun another stream, and there is no reason")
        life = self._life[node]
        handed = (name, given.version, given.root, given.stream, given.position, node, life)
        if handed in self._handed and not self.harmed:
            raise Violation(f"{given} was handed over twice by {host}, which did not crash")
        self._handed.add(handed)
        cursor = (name, given.version, given.root, given.stream)
        if given.position <= self._cursor.get(cursor, 0):
            return
        self._cursor[cursor] = given.position
        taken = (name, given.version, given.message)
        # The later process of a host's name does not know what the other one has handed over; in
        # another stream the position does not say it either.
        is_unknown = host in self._had_twin and self._taken_in.get(taken) != given.stream
        if taken in self._taken_in and not is_unknown:
            raise Violation(f"{given} came twice to {name}")
        self._taken_in[taken] = given.stream
        if known.version == given.version:
            known.delivered.append(given.message)
        self.deliveries[name].append(given.message)

    # What must be so.

    def check(self) -> None:
        """All invariants."""
        self.check_deliveries()
        self.check_progress()
        self.check_tables()
        if self.refused and not self.twisted:
            raise Violation(f"refused among honest brokers: {self.refused[0]}")

    def check_deliveries(self) -> None:
        """Nothing lost; what is foreign or comes twice is seen when it happens."""
        for name, known in sorted(self.subscriptions.items()):
            if known.ended or known.in_force_at is None:
                continue
            for message, one in self.accepted.items():
                must = not one.may_be_lost and one.at >= known.in_force_at
                if one.root in self.harmed and one.at <= known.lapsed_at:
                    continue
                if one.witnesses is not None and one.witnesses <= self.harmed:
                    continue  # nobody can know that the disk of its root is older
                is_there = message in known.delivered
                if must and not is_there and self.results(one.body, known.profile):
                    if any(map(one.is_in, known.lapsed)) and self._may_miss(known.host, one.root):
                        self.missed += 1
                        continue
                    raise Violation(
                        f"{message} ({one.body!r}, of {one.root} at {one.at:.3f}) was not "
                        f"delivered for {name} ({known})"
                    )

    def _may_miss(self, host: str, root: str) -> bool:
        """Whether it is right that a root gave messages up that a host has not had."""
        return self.may_lapse or host in self.harmed or root in self.harmed

    def check_progress(self) -> None:
        """No starvation."""
        for name, known in sorted(self.subscriptions.items()):
            if not known.ended and (known.in_force_at is None or known.has_lapsed):
                raise Violation(f"{name} ({known}) was never acknowledged")
        for name in self._honest():
            for root, stream in self.node(name).broker.streams.items():
                if root in self.left or root in self.twisted:
                    continue
                end = self.node(root).broker.streams[root].at
                if stream.cursor != end:
                    raise Violation(f"{name} is at {stream.cursor} of {root}'s {end}")
                if stream.is_root and stream.held:
                    raise Violation(f"{name} holds {stream.held[0]}, had by {stream.positions}")

    def check_tables(self) -> None:
        """Nothing stale."""
        brokers = self._honest()
        links = {
            name: {other: 1 for other in self._links_of(name) if other in brokers}
            for name in brokers
        }
        for name in brokers:
            for tree, plane in sorted(self.node(name).broker.planes.items()):
                interests = plane.interests
                is_live = tree in self.node(name).broker.streams
                live = links if is_live or not tree else {}
                edges = broadcast_tree(live, tree) if tree else spanning_tree(live)
                for peer in neighbours(edges, name):
                    behind = {other for other, way in towards(edges, name).items() if way == peer}
                    is_parent = bool(tree) and towards(edges, name).get(tree) == peer
                    expected = frozenset() if is_parent else self._wanted(behind)
                    if interests.entries(peer) != expected:
                        raise Violation(
                            f"{name} has {sorted(interests.entries(peer))} of {peer} (tree "
                            f"{tree!r}), from scratch it is {sorted(expected)}"
                        )
                for peer, told in from_scratch(interests).items():
                    if interests.told(peer) != told:
                        raise Violation(f"{name} told {peer} what it would not tell from scratch")
                    if peer not in neighbours(edges, name):
                        raise Violation(f"{name} has a table of {peer}, which is no neighbour")

    def _honest(self) -> list[str]:
        return [name for name in self.brokers if name not in self.twisted]

    def _wanted(self, hosts: set[str]) -> frozenset[str]:
        """What one broker that had all subscriptions of these hosts would tell a neighbour."""
        one, profiles = self.content.interests(), self.content.profiles()
        one.set_neighbours(["asked"])
        wanted = {
            entry
            for known in self.subscriptions.values()
            if not known.ended and known.host in hosts
            for entry in profiles.entries(self.profile(known.profile))
        }
        one.update("", sorted(wanted), ())
        return one.told("asked")


def _pair(a: str, b: str) -> Edge:
    return (a, b) if a < b else (b, a)


def are_connected(names: Collection[str], links: Iterable[tuple[str, str]]) -> bool:
    """Whether links between these brokers connect all of them."""
    costs: dict[str, dict[str, int]] = {name: {} for name in names}
    for a, b in links:
        if a in costs and b in costs:
            costs[a][b] = costs[b][a] = 1
    return len(spanning_tree(costs)) == len(costs) - 1
