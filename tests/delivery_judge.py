"""What subscribers of a network must have got, judged by what they were told.

A subscription is judged by the version that its broker answered: an id that is used again has
another version, which is another subscription. From `InForce` of a version on, every message that
satisfies it is due, until the id is withdrawn.

After a restore of a broker from a backup, a message may be missing only if

- the broker is its root and took it after the backup began, and the subscriber was told `Lapsed`
  after the restore; or
- the broker is the host of the subscription, which was told `Lapsed`, and the message was published
  before the `InForce` that followed.

A restored inbox hands over again what its subscriber had read; each delivery at most once more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cache

from pathcast import Registry, Subscription
from pathcast.overlay.deliveries import InboxDelivery, InForce, Lapsed

CLIENT = "tester"
"""Who subscribes."""


@dataclass
class Known:
    """One version of a subscription, as its subscriber knows it.

    Attributes:
        host: Broker that it is at.
        query: Its profile; empty if the answer to `Subscribe` was lost with its connection.
        first: Messages from this number on must come; None while it is not in force.
        is_wanted: Whether nobody withdrew it.
        ended: Messages from this number on must not come; None while it is not withdrawn.
        lapsed: Number of messages that had been published when it was told `Lapsed` last.
        is_lapsed: Whether `InForce` is still to follow on that.
        got: Message -> what came of it.
        may_repeat: Messages that the restored inbox may hand over again.
    """

    host: str
    query: str = ""
    first: int | None = None
    is_wanted: bool = False
    ended: int | None = None
    lapsed: int = -1
    is_lapsed: bool = False
    got: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    may_repeat: set[str] = field(default_factory=set)


@dataclass
class Sent:
    """A message that was published, or is being published."""

    root: str
    number: int
    body: bytes
    has_receipt: bool = False


class DeliveryJudge:
    """See the module.

    Attributes:
        subscriptions: Id -> its latest version.
        versions: All versions of all ids.
        sent: All messages, in the order in which they were published.
        faults: What must not be, as it is seen.
    """

    def __init__(self) -> None:
        self.subscriptions: dict[str, Known] = {}
        self.versions: dict[tuple[str, int], Known] = {}
        self.sent: dict[str, Sent] = {}
        self.faults: list[str] = []
        self._roots: set[str] = set()
        # Restored broker -> numbers of its messages that it may have lost, for each restore.
        self._restored: dict[str, list[range]] = {}
        # Id -> profiles that it was ever asked to have.
        self._asked: defaultdict[str, set[str]] = defaultdict(set)

    # What is done.

    def publish(self, root: str, message: str, body: bytes) -> None:
        """A message is about to be published."""
        self._roots.add(root)
        self.sent[message] = Sent(root, len(self.sent), body)

    def ask(self, host: str, id: str, query: str) -> None:
        """A subscription is about to be asked for, under a new id or one that was withdrawn."""
        former = self.subscriptions.get(id)
        assert former is None or (former.host == host and not former.is_wanted), "the id is in use"
        self._asked[id].add(query)

    def answer(self, host: str, id: str, query: str, version: int) -> None:
        """It has a version. Deliveries and notices of it may have been read before the answer."""
        known = self.subscriptions[id] = self._version(host, id, version)
        assert not known.query, f"{id} was given version {version} before"
        known.query, known.is_wanted = query, True
        self._end_versions(id, but=known)

    def withdraw(self, id: str) -> None:
        """It was withdrawn: nothing published from now on may come of it."""
        self.subscriptions[id].is_wanted = False
        self._end_versions(id)

    def _end_versions(self, id: str, but: Known | None = None) -> None:
        for (each, _), one in self.versions.items():
            if each == id and one.ended is None and one is not but:
                one.ended = len(self.sent)

    def restore(self, host: str, first: int) -> None:
        """A broker does not run, and has a backup that may lack its messages from a number on."""
        self._restored.setdefault(host, []).append(range(first, len(self.sent)))
        for known in self._at(host):
            known.may_repeat = set(known.got)
            known.ended = None  # the backup may have it

    def has_restored(self, host: str) -> bool:
        """Whether a broker was restored once."""
        return host in self._restored

    def is_kept(self, id: str, version: int | None) -> bool:
        """Whether the version that a restored broker has, if any, is the one that is wanted."""
        known = self.subscriptions[id]
        return version is not None and self.versions.get((id, version)) is known

    def agree(self, host: str) -> None:
        """Subscriber and restored broker have the same subscriptions again."""
        for known in self._at(host):
            if not known.is_wanted and known.ended is None:
                known.ended = len(self.sent)

    def _at(self, host: str) -> list[Known]:
        return [one for one in self.versions.values() if one.host == host]

    def _version(self, host: str, id: str, version: int) -> Known:
        return self.versions.setdefault((id, version), Known(host))

    # What is told.

    def take(self, host: str, told: object) -> None:
        """A subscriber reads what a host has put into its inbox."""
        match told:
            case InForce(name, version):
                known = self._version(host, id_of(name), version)
                known.is_lapsed = False
                if known.first is None:
                    known.first = len(self.sent)
            case InboxDelivery():
                self._take_delivery(host, told)
            case Lapsed():
                self._lapse(host, told)
            case _:
                self.faults.append(f"{host} says {told}")

    def _take_delivery(self, host: str, told: InboxDelivery) -> None:
        id, message = id_of(told.subscription), told.message
        known = self._version(host, id, told.version)
        if known.host != host:
            self.faults.append(f"{message} came to {id} from {host}, not {known.host}")
        if message in known.got and message not in known.may_repeat:
            self.faults.append(f"{message} came twice to {id} at {host}: {told}")
        if known.ended is not None and self.sent[message].number >= known.ended:
            self.faults.append(f"{message} came to {id} at {host}, which was withdrawn: {told}")
        known.may_repeat.discard(message)
        known.got[message] = tuple(told.results)

    def _lapse(self, host: str, told: Lapsed) -> None:
        known = self._version(host, id_of(told.subscription), told.version)
        roots = {told.root} if told.root else self._roots
        is_due = host in self._restored or not self._restored.keys().isdisjoint(roots)
        if not is_due:
            self.faults.append(f"{told} at {host}, and there is no reason")
        known.lapsed, known.is_lapsed = len(self.sent), True
        if host in self._restored and not told.root:
            known.first = None

    # What must be so.

    def due(self) -> set[tuple[str, int, str]]:
        """Subscription, version and message of what must come, as one process says.

        Of a version that was withdrawn, all that its root published before the last message that
        came for it: what was under way then need not come any more.
        """
        wanted = {one.query for one in self.versions.values() if one.first is not None}
        messages = self._satisfying(wanted - {""})
        found: set[tuple[str, int, str]] = set()
        for (id, version), known in self.versions.items():
            if known.query and known.first is not None:
                lasts = self._lasts(known)
                due = (each for each in messages[known.query] if self._is_due(known, lasts, each))
                found.update((id, version, each) for each in due)
        return found

    def _satisfying(self, queries: Set[str]) -> Mapping[str, list[str]]:
        """Profile -> messages with a receipt that satisfy it."""
        registry = Registry()
        registry.add(Subscription(query, "", query, "ids") for query in sorted(queries))
        found: defaultdict[str, list[str]] = defaultdict(list)
        sent = [(id, one) for id, one in self.sent.items() if one.has_receipt]
        for start in range(0, len(sent), 1000):
            ids, given = zip(*sent[start : start + 1000], strict=True)
            table = registry.deliver([one.body for one in given], ids).table
            rows = (table[name].to_pylist() for name in ("subscription_id", "message_id"))
            for query, message in zip(*rows, strict=True):
                found[query].append(message)
        return found

    def _lasts(self, known: Known) -> Mapping[str, int]:
        """Root -> number that bounds what is due of its messages."""
        if known.is_wanted:
            return dict.fromkeys(self._roots, len(self.sent))
        lasts: Counter[str] = Counter()
        for each in known.got:
            sent = self.sent[each]
            lasts[sent.root] = max(lasts[sent.root], sent.number)
        return lasts

    def _is_due(self, known: Known, lasts: Mapping[str, int], message: str) -> bool:
        one = self.sent[message]
        if known.first is None or not known.first <= one.number < lasts[one.root]:
            return False
        gaps = self._restored.get(one.root, ())
        return not any(one.number in gap and known.lapsed >= gap.stop for gap in gaps)

    def missing(self, due: set[tuple[str, int, str]] | None = None) -> list[str]:
        """Deliveries that must come and are not there yet.

        Args:
            due: What was due a while ago: subscribers may have been told `Lapsed` since.
        """
        return [
            f"{message} for {id} of version {version} ({known.query}) at {known.host}"
            for id, version, message in (self.due() if due is None else due)
            if message not in (known := self.versions[id, version]).got
            if self._is_due(known, self._lasts(known), message)
        ]

    def check_results(self) -> None:
        """Everything that came is what one process gives."""
        for (id, version), known in self.versions.items():
            queries = [known.query] if known.query else sorted(self._asked[id])
            for message, results in list(known.got.items()):
                expected = [_results(each, self.sent[message].body) for each in queries]
                assert results in expected, (
                    f"{message} gave {id} of version {version} {results}, not {expected}"
                )


def id_of(name: str) -> str:
    """The id of a subscription, as its client knows it."""
    return name.removeprefix(f"{CLIENT}/")


@cache
def _one_process(query: str) -> Registry:
    registry = Registry()
    registry.add([Subscription("q", "", query, "fragment")])
    return registry


@cache
def _results(query: str, body: bytes) -> tuple[bytes, ...] | None:
    """What a profile gives of a message; None if it does not satisfy it."""
    given = list(_one_process(query).deliver(body, "m"))
    if not given:
        return None
    return tuple(each.fragment for each in given if each.fragment is not None)
