"""A registration service and brokers in the simulated network, whose profiles move under load.

Each broker is a node that is all that `pathcast.transport.hosted` runs: its part of registration,
its planes, and inboxes. Subscribers read the inbox of one broker up to `Moved`, go on at the host
that it names, and take of a stream only what is behind the last that they had. What they have had
at the end is compared, delivery by delivery, with what one process would have given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_store import MemoryStore
from pathcast import Query, Registry
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.deliveries import InboxDelivery, InForce, Moved
from pathcast.overlay.hosting import PLANES, Hosting, Served
from pathcast.overlay.placing import PlacementSettings
from pathcast.overlay.registration import RegistrationNode
from pathcast.overlay.registration_messages import (
    InterestRegistered,
    RegisterInterest,
    RegisterSource,
    SourceRegistered,
    ToBroker,
)
from pathcast.overlay.serving import HandedOver, LeftProfile, Planes, kept_for
from pathcast.overlay.xml_content import xml_content
from pathcast.protocol import Deliver, Effect, Forget, Node, Save, Wake
from pathcast.store import BrokerRecord, ChangeRecord, PlacementRecord, ProfileRecord, SampleRecord
from pathcast_lab.sim.network import Network
from registrant import Registrant

BROKERS = ("a", "b", "c")
LINKS = (("a", "b"), ("b", "c"))
LEASE_SECONDS = 3.0
MOVE_SECONDS = 0.5
PLACING = PlacementSettings(partitions=8, review_seconds=4.0, drift_max=0.05)


class HostedNode:
    """One broker with its part of registration.

    Args:
        name: Of the broker.
        store: The profile database.
        disk: What a former life saved.
        incarnation: Of this life.
        planes: Makes the planes of a node.
    """

    def __init__(
        self,
        name: str,
        store: MemoryStore,
        disk: Mapping[str, bytes],
        incarnation: int,
        planes: Callable[[BrokerNode, Served], Planes] = Planes,
    ) -> None:
        self.name = name
        part = BrokerRecord(name, "", f"eu/{name}", 1e9, 10_000)
        self.hosting = Hosting(name, part, store, lease_seconds=LEASE_SECONDS)
        self.node: BrokerNode | None = None
        self._disk = dict(disk)
        self._incarnation = incarnation
        self._make_planes = planes
        self._planes: Planes | None = None

    def start(self, now: float) -> Sequence[Effect]:
        return [Wake("move", MOVE_SECONDS), *self._hosted(self.hosting.start(now), now)]

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        if isinstance(message, ToBroker):
            return self._hosted(self.hosting.receive(sender, message, now), now)
        return [] if self.node is None else self._did(self.node.receive(sender, message, now), now)

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        return [] if self.node is None else self._did(self.node.neighbour(name, up, now), now)

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        room, _, name = timer.partition(":")
        if room == "hosting":
            return self._hosted(self.hosting.wake(name, now), now)
        if room == "move":
            return [Wake("move", MOVE_SECONDS), *self._review(now)]
        return [] if self.node is None else self._did(self.node.wake(name, now), now)

    def publish(self, source: str, message: str, body: bytes, now: float) -> Sequence[Effect]:
        assert self.node is not None
        return self._did(
            self.node.asked(now, self.node.broker.publish, source, message, body, sender="u"), now
        )

    def sampled(self, sample: SampleRecord, now: float) -> Sequence[Effect]:
        return self._hosted(self.hosting.sampled([sample], now), now)

    def left(self, profile: str, ticket: int, now: float) -> Sequence[Effect]:
        return self._hosted(self.hosting.left(profile, ticket, now), now)

    def _review(self, now: float) -> list[Effect]:
        if self._planes is None:
            return []
        moved, effects = self._planes.review(now)
        done = self._did(effects, now)
        for each in moved:
            if isinstance(each, HandedOver):
                said = self.hosting.in_force(each.profile, each.since, now, each.positions)
                done += self._hosted(said, now)
            else:
                assert isinstance(each, LeftProfile)
        return done

    def _hosted(self, effects: Sequence[Effect], now: float) -> list[Effect]:
        done: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Wake):
                done.append(Wake(f"hosting:{effect.timer}", effect.after))
            elif isinstance(effect, Deliver) and effect.to == PLANES:
                done += self._told(effect.what, now)
            else:
                done.append(effect)
        return done

    def _told(self, told: object, now: float) -> list[Effect]:
        assert isinstance(told, Served | ChangeRecord)
        if isinstance(told, Served):
            if not told.is_played:
                self.node = self._planes = None
                return []
            if self.node is None:
                return self._play(told, now)
        if self._planes is None:
            return []
        return self._did(self._planes.apply(told, now), now)

    def _play(self, served: Served, now: float) -> list[Effect]:
        done: list[Effect] = [
            Forget(key) if value is None else Save(key, value)
            for key, value in kept_for(served, self._disk).items()
        ]
        self._keep(done)
        links = {b if a == self.name else a: 1 for a, b in LINKS if self.name in (a, b)}
        members = [name for name in BROKERS if name != self.name]
        self._incarnation += 1
        self.node = BrokerNode(
            self.name, links, xml_content(), self._disk, self._incarnation, members=members
        )
        self._planes = self._make_planes(self.node, served)
        done += self._did(self.node.start(now), now)
        for name in links:
            done += self._did(self.node.neighbour(name, True, now), now)
        return done

    def _keep(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Save):
                self._disk[effect.key] = effect.value
            elif isinstance(effect, Forget):
                self._disk.pop(effect.key, None)

    def _did(self, effects: Sequence[Effect], now: float) -> list[Effect]:
        self._keep(effects)
        done: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Wake):
                done.append(Wake(f"broker:{effect.timer}", effect.after))
                continue
            done.append(effect)
            if isinstance(effect, Deliver) and isinstance(effect.what, InForce):
                assert self._planes is not None
                name = effect.what.subscription
                since = self._planes.served_since(effect.what)
                if since is not None and not self._planes.awaits_move(name, since):
                    done += self._hosted(self.hosting.in_force(name, since, now), now)
        return done


@dataclass
class Reader:
    """A subscriber of one profile.

    Attributes:
        at: The broker whose inbox it reads.
        read: Broker -> entries of its inbox that were read.
        had: Ids of the messages that it has taken, in order.
        hosts: The brokers whose inboxes it has read.
    """

    at: str
    read: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    had: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    last: dict[tuple[str, int], int] = field(default_factory=dict)


class MovingWorld:
    """See the module.

    Args:
        seed: Of the network.
        planes: Makes the planes of a broker; another one than `Planes` has a safeguard off.
    """

    def __init__(self, seed: int, planes: Callable[[BrokerNode, Served], Planes] = Planes) -> None:
        service = [(one, broker) for one in ("r1", "r2") for broker in BROKERS]
        asking = [("u", one) for one in ("r1", "r2", *BROKERS)]
        links = [*LINKS, *service, *asking]
        self.inboxes: dict[str, list[object]] = {name: [] for name in BROKERS}
        self.answers: dict[str, object] = {}
        self.readers: dict[str, Reader] = {}
        self.queries: dict[str, str] = {}
        # Message -> body, and when it was accepted; profile -> since when it is in force.
        self.messages: dict[str, tuple[bytes, float]] = {}
        self.in_force: dict[str, float] = {}
        self._seen: dict[str, set[object]] = defaultdict(set)
        self._asked: dict[str, str] = {}
        self._left: dict[tuple[str, str], int] = {}
        self.network = Network(seed, links=links, on_deliver=self._deliver)
        self.store = MemoryStore(lambda: self.network.now)
        for name in ("r1", "r2"):
            self.network.add(name, self._service(name))
        for name in BROKERS:
            self.network.add(name, self._broker(name, planes))
        self.network.add("u", lambda disk, life: Registrant(["r1", "r2"], life))
        self.network.run(2.0)

    def _service(self, name: str) -> Callable[[Mapping[str, bytes], int], Node]:
        return lambda disk, life: RegistrationNode(
            name, self.store, PLACING, lease_seconds=LEASE_SECONDS
        )

    def _broker(
        self, name: str, planes: Callable[[BrokerNode, Served], Planes]
    ) -> Callable[[Mapping[str, bytes], int], Node]:
        return lambda disk, life: HostedNode(name, self.store, disk, life, planes)

    def node(self, name: str) -> HostedNode | None:
        found = self.network.nodes.get(name)
        assert found is None or isinstance(found, HostedNode)
        return found

    def ask(self, message: RegisterSource | RegisterInterest) -> str:
        """Something is asked of the service; the name of the request."""
        client = self.network.nodes["u"]
        assert isinstance(client, Registrant)
        name = client.next_request()
        if isinstance(message, RegisterInterest):
            self._asked[name] = message.query
        self.network.call("u", lambda node, now: client.ask(message, name, now))
        return name

    def source(self, location: str) -> str:
        """A source that has registered."""
        name = self.ask(RegisterSource("-", location, "", 1.0, 100.0))
        while name not in self.answers:
            self.network.run(self.network.now + 0.5)
        made = self.answers[name]
        assert isinstance(made, SourceRegistered), made
        return made.source

    def publish(self, root: str, source: str, body: bytes) -> None:
        """A message, if the root can take it now."""
        node = self.node(root)
        if node is None or node.node is None:
            return
        name = f"m{len(self.messages)}"

        def published(_: Node, now: float) -> Sequence[Effect]:
            assert node is not None
            return node.publish(source, name, body, now)

        if self.network.call(root, published):
            self.messages[name] = (body, self.network.now)

    def read(self, until: float) -> None:
        """Time goes on, and subscribers read."""
        while self.network.now < until:
            self.network.run(min(until, self.network.now + 0.7))
            for profile, reader in self.readers.items():
                self._read(profile, reader)
            for (broker, profile), ticket in list(self._left.items()):
                record = self.store.get(ProfileRecord, profile)
                if record is None or record.former != broker:
                    del self._left[broker, profile]
                elif (node := self.node(broker)) is not None:
                    self.network.call(broker, _has_left(node, profile, ticket))

    def _read(self, profile: str, reader: Reader) -> None:
        while True:
            inbox = self.inboxes[reader.at]
            if reader.read[reader.at] >= len(inbox):
                return
            entry = inbox[reader.read[reader.at]]
            reader.read[reader.at] += 1
            if isinstance(entry, InboxDelivery) and entry.subscription == profile:
                stream = entry.root, entry.stream
                if entry.position > reader.last.get(stream, 0):
                    reader.last[stream] = entry.position
                    reader.had.append(entry.message)
            elif isinstance(entry, Moved) and entry.subscription == profile:
                self._left[reader.at, profile] = entry.ticket
                reader.at = entry.host
                reader.hosts.append(entry.host)

    def _deliver(self, name: str, given: Deliver) -> None:
        if name not in self.inboxes:
            self.answers[given.to] = given.what
            if isinstance(given.what, InterestRegistered):
                self.queries[given.what.profile] = self._asked[given.to]
                self.in_force[given.what.profile] = self.network.now
                made = given.what
                host = made.former or made.host
                self.readers[made.profile] = Reader(host, hosts=[host])
            return
        if isinstance(given.what, InboxDelivery):
            one = given.what
            key = one.subscription, one.version, one.root, one.stream, one.position
            if key in self._seen[name]:
                return
            self._seen[name].add(key)
        self.inboxes[name].append(given.what)

    def placement(self) -> PlacementRecord | None:
        """The placement, if there is one."""
        return self.store.get(PlacementRecord, "hosts")

    def check(self) -> None:
        """Each subscriber has had what one process would have given it, once."""
        index = Registry()
        index.add(Query(name, text) for name, text in self.queries.items())
        bodies = [body for body, _ in self.messages.values()]
        results = index.freeze().match(bodies)
        wanted: dict[str, set[str]] = defaultdict(set)
        due: dict[str, set[str]] = defaultdict(set)
        for (name, (_, at)), result in zip(self.messages.items(), results, strict=True):
            for profile in result.query_ids:
                wanted[profile].add(name)
                if at > self.in_force[profile]:
                    due[profile].add(name)
        for profile, reader in self.readers.items():
            had = set(reader.had)
            assert len(had) == len(reader.had), f"{profile} had something twice"
            assert had <= wanted[profile], f"{profile} had what it does not ask for"
            lost = sorted(due[profile] - had)
            assert not lost, f"{profile}, read at {reader.hosts}, lost {lost}\n" + "\n".join(
                self.network.trace(40, lost[0]).splitlines()[-20:]
            )


def _has_left(
    node: HostedNode, profile: str, ticket: int
) -> Callable[[Node, float], Sequence[Effect]]:
    return lambda _, now: node.left(profile, ticket, now)
