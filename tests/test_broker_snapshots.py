"""A broker that begins again from the snapshot of its profiles.

If these fail, a broker that was killed answers for subscriptions that nobody has, passes others by,
tells its neighbours too little, or takes as long to begin as if it had no snapshot.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from pathcast import Registry, Subscription
from pathcast.errors import PathcastError
from pathcast.overlay import subscription_snapshots
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.content import LOCAL, DeliveryProfile, QueryInLanguage
from pathcast.overlay.deliveries import OPERATOR, InForce, NeighbourRefused
from pathcast.overlay.hosting import Served, version_of
from pathcast.overlay.serving import Planes, kept_for
from pathcast.overlay.subscription_snapshots import SNAPSHOT
from pathcast.overlay.subscriptions import KeptSubscription
from pathcast.overlay.xml_content import xml_content
from pathcast.protocol import Deliver, Effect, Forget, Save
from pathcast.store import ProfileRecord

MESSAGES = [
    b"<a><b>1</b><c x='3'/></a>",
    b"<a><b>7</b><b>2</b><d><e>z</e></d></a>",
    b"<f><c x='1'/><b>5</b></f>",
    b"<g/>",
]

QUERIES = [
    "//b[. > 1]",
    "/a/c/@x",
    "//c[@x = 3] | //e",
    "/a[b = 7]//e",
    "//a[count(b) = 2]",
    "<n>{ for $b in //b where $b > 4 return <big>{$b}</big> }</n>",
    "for $d in /a/d return <d>{$d/e}</d>",
    "//b[last()]",
    "/f[c/@x < 2]/b",
]


def profile(draw: Random) -> DeliveryProfile:
    query: Any = draw.choice(QUERIES)
    if query.startswith("//") and draw.random() < 0.2:
        query = QueryInLanguage(query, "xquery")
    steps = ("drop //c",) if draw.random() < 0.2 else ()
    return DeliveryProfile(query, draw.choice(["fragment", "ids", "message"]), steps=steps)


class Host:
    """A broker without neighbours, and what it keeps: an event as a whole, or not at all.

    Attributes:
        asked: The profiles that it has told somebody that it keeps.
        given: What subscribers and the operator were told in its present life.
    """

    def __init__(self, directory: Path, projection: bool = True) -> None:
        self.directory = directory
        self.disk: dict[str, bytes] = {}
        self.asked: dict[str, DeliveryProfile] = {}
        self.given: list[Any] = []
        self._lives = itertools.count(1)
        self.begin(projection)

    def begin(self, projection: bool = True) -> None:
        """A new life; whatever the one before had not kept is lost."""
        self.given = []
        content = xml_content(projection=projection, snapshots=self.directory)
        life = next(self._lives) << 20
        self.node = BrokerNode("b", {}, content, dict(self.disk), life)
        self.keep(self.node.start(float(life)))

    def keep(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Save(key, value):
                    self.disk[key] = value
                case Forget(key):
                    self.disk.pop(key, None)
                case Deliver(_, what):
                    self.given.append(what)

    def subscribe(self, name: str, asked: DeliveryProfile) -> None:
        self.keep(self.node.asked(0.0, self.node.broker.subscribe, name, "ann", asked))
        self.asked[name] = asked

    def unsubscribe(self, name: str) -> None:
        self.keep(self.node.asked(0.0, self.node.broker.unsubscribe, name))
        del self.asked[name]

    def snapshot(self, *, is_last: bool = False) -> bool:
        """All of a snapshot at once; whether one was due."""
        review = self.node.broker.snapshots.review(is_last=is_last)
        if review is not None:
            self.node.broker.snapshots.adopt(review.make())
            self.keep(self.node.done(0.0))
        return review is not None

    @property
    def is_from_snapshot(self) -> bool:
        return bool(self.node.broker.subscriptions._records)

    def told(self, kind: type) -> list[Any]:
        return [each for each in self.given if isinstance(each, kind)]

    def check(self) -> None:
        """It has what it has told somebody, and answers as one process."""
        subscriptions = self.node.broker.subscriptions
        assert subscriptions.names() == sorted(self.asked)
        registry = Registry()
        for name, asked in self.asked.items():
            row = Subscription(
                name, "", asked.query, asked.deliver, {}, asked.steps, asked.language
            )
            registry.add(row)
        for body, answers in zip(MESSAGES, subscriptions.answers(MESSAGES), strict=True):
            expected: dict[str, list[bytes]] = {}
            for one in registry.deliver(body):
                expected.setdefault(one.subscription_id, []).append(one.fragment or b"")
            found = {one.name: list(results) for one, results in answers}  # type: ignore[arg-type]
            assert found.keys() == expected.keys()
            for name, results in found.items():
                assert self.asked[name].deliver == "ids" or results == expected[name]
        profiles = xml_content().profiles()
        entries = Counter(e for asked in self.asked.values() for e in profiles.entries(asked))
        assert subscriptions.counts() == entries
        plane = self.node.broker.planes[""]
        assert plane.interests.entries(LOCAL) == entries.keys()
        assert {
            name: subscriptions.kept(name).profile for name in subscriptions.names()
        } == self.asked
        in_force = {name for name in self.asked if name in subscriptions._in_force}
        assert in_force == self.asked.keys(), "nobody else has to be asked"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot is made of few."""
    monkeypatch.setattr(subscription_snapshots, "CHANGES_MIN", 3)
    monkeypatch.setattr(subscription_snapshots, "CHANGES_SHARE", 4)


@pytest.mark.parametrize("seed", range(15))
def test_killed_anywhere_it_goes_on_with_what_it_has_kept(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    host = Host(tmp_path)
    opened = 0
    for _ in range(120):
        what = draw.random()
        name = f"s{draw.randrange(12)}"
        if what < 0.4:
            host.subscribe(name, profile(draw))
        elif what < 0.6 and name in host.asked:
            host.unsubscribe(name)
        elif what < 0.75:
            review = host.node.broker.snapshots.review(is_last=draw.random() < 0.3)
            if review is None:
                continue
            for _ in range(draw.randrange(4)):  # changes while it is made
                if (other := f"s{draw.randrange(12)}") in host.asked and draw.random() < 0.5:
                    host.unsubscribe(other)
                else:
                    host.subscribe(other, profile(draw))
            if draw.random() < 0.2:
                host.node.broker.snapshots.adopt(None, is_base_lost=draw.random() < 0.5)
            else:
                host.node.broker.snapshots.adopt(review.make())
            effects = host.node.done(0.0)
            if draw.random() < 0.2:  # killed before that is kept
                host.begin()
            else:
                host.keep(effects)
        elif what < 0.9:
            if draw.random() < 0.3:  # an event that nobody was told of
                host.node.asked(0.0, host.node.broker.subscribe, "lost", "ann", profile(draw))
            host.begin()
            opened += host.is_from_snapshot
            assert not host.told(NeighbourRefused)
            host.check()
    host.begin()
    host.check()
    assert opened, "no life began from a snapshot"


def filled(directory: Path) -> Host:
    """A host with a snapshot, and with changes after it of each kind."""
    host = Host(directory)
    draw = Random(7)
    for number in range(9):
        host.subscribe(f"s{number}", profile(draw))
    assert host.snapshot()
    host.subscribe("s1", DeliveryProfile("//new", "ids"))
    host.unsubscribe("s2")
    host.subscribe("later", DeliveryProfile("//b", "fragment"))
    return host


def test_what_was_in_force_goes_on_and_is_not_told_again(tmp_path: Path) -> None:
    host = filled(tmp_path)
    host.begin()
    assert host.is_from_snapshot
    assert sorted(one.subscription for one in host.told(InForce)) == ["later", "s1"]
    host.check()


def test_no_record_is_read_before_it_is_needed(tmp_path: Path) -> None:
    host = filled(tmp_path)
    for key in list(host.disk):
        if key.startswith("subscription/s") and key not in ("subscription/s1", "subscription/s2"):
            host.disk[key] = b"never read"
    host.begin()
    assert host.is_from_snapshot
    assert len(host.node.broker.subscriptions) == 9


def spoil_missing(host: Host, file: Path) -> None:
    file.unlink()


def spoil_damaged(host: Host, file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes(content)


def spoil_other(host: Host, file: Path) -> None:
    registry = Registry()
    registry.add([Subscription("s0", "s0", "//b")])
    registry.freeze().save(file)


def spoil_life_between(host: Host, file: Path) -> None:
    """A version without snapshots has run: it notes nothing of what changes."""
    host.disk["began"] = msgspec.msgpack.encode(1 << 60)


def spoil_settings(host: Host, file: Path) -> None:
    kept = msgspec.msgpack.decode(host.disk[SNAPSHOT])
    host.disk[SNAPSHOT] = msgspec.msgpack.encode({**kept, "entries_by": "0.0 True"})


SPOILED: Mapping[str, Callable[[Host, Path], None]] = {
    "missing": spoil_missing,
    "damaged": spoil_damaged,
    "of other profiles": spoil_other,
    "a life between": spoil_life_between,
    "other settings": spoil_settings,
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_snapshot_that_cannot_be_used_is_told_of_and_made_anew(tmp_path: Path, how: str) -> None:
    host = filled(tmp_path)
    (file,) = tmp_path.glob("*.snapshot")
    SPOILED[how](host, file)
    host.begin()
    assert not host.is_from_snapshot
    (told,) = host.told(NeighbourRefused)
    assert told.peer == SNAPSHOT
    assert SNAPSHOT not in host.disk
    host.check()
    assert host.snapshot()
    host.begin()
    assert host.is_from_snapshot
    host.check()


def test_a_snapshot_that_fails_counts_its_changes_again(tmp_path: Path) -> None:
    host = filled(tmp_path)
    review = host.node.broker.snapshots.review(is_last=True)
    assert review is not None
    assert host.node.broker.snapshots.review(is_last=True) is None, "one is being made"
    (file,) = tmp_path.glob("*.snapshot")
    file.unlink()
    with pytest.raises((PathcastError, OSError)):
        review.make()
    host.node.broker.snapshots.adopt(None, is_base_lost=True)
    host.keep(host.node.done(0.0))
    assert host.snapshot(), "from all of them"
    host.begin()
    assert host.is_from_snapshot
    host.check()


def test_one_file_stays_and_nobody_else_reads_it(tmp_path: Path) -> None:
    host = filled(tmp_path)
    for number in range(3):
        for other in range(4):
            host.subscribe(f"x{other}", DeliveryProfile(f"//q{number}", "ids"))
        assert host.snapshot()
    files = list(tmp_path.glob("*.snapshot"))
    assert len(files) == 2, "the one before may still be the one that is kept"
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def record(number: int, query: str, **fields: Any) -> ProfileRecord:
    return ProfileRecord(f"p-{number}", "ann", query, "ids", host="b", address="ann", **fields)


def test_what_the_service_changes_while_a_broker_is_away_counts(tmp_path: Path) -> None:
    host = Host(tmp_path)
    profiles = [record(number, query) for number, query in enumerate(QUERIES)]
    for key, value in kept_for(Served(tuple(profiles)), host.disk).items():
        host.keep([Forget(key) if value is None else Save(key, value)])
    host.begin()
    assert host.snapshot()
    host.keep(
        host.node.asked(
            0.0, host.node.broker.subscribe, "p-0", "ann", DeliveryProfile("//z", "ids"), 5
        )
    )
    assert kept_for(Served(tuple(profiles[1:])), host.disk).keys() <= {
        "subscription/p-0",
        "changed/p-0",
    }, "what is the same is not written again"
    served = Served((*profiles[2:], record(1, "//other"), record(20, "//b", pending=True)))
    for key, value in kept_for(served, host.disk).items():
        host.keep([Forget(key) if value is None else Save(key, value)])
    host.asked = {each.id: DeliveryProfile(each.query, each.deliver) for each in served.profiles}
    host.begin()
    host.check()


def test_the_service_is_told_again_what_it_may_not_know(tmp_path: Path) -> None:
    """A profile that it takes for pending is in force here: nothing else would ever say so."""
    host = Host(tmp_path)
    waiting = record(1, "//b", pending=True)
    for each in (record(0, "//c"), waiting, record(2, "//d"), record(3, "//e")):
        asked = DeliveryProfile(each.query, each.deliver)
        host.keep(
            host.node.asked(
                0.0, host.node.broker.subscribe, each.id, "ann", asked, version_of(each)
            )
        )
    assert host.snapshot()
    content = xml_content(snapshots=tmp_path)
    node = BrokerNode("b", {}, content, dict(host.disk), 99 << 20)
    Planes(node, Served((waiting,)))
    said = [each.what for each in node.start(99.0) if isinstance(each, Deliver)]
    assert [each.subscription for each in said if isinstance(each, InForce)] == ["p-1"]
    assert not any(each.to == OPERATOR for each in said if isinstance(each, Deliver))


def test_entries_of_records_without_any_are_those_that_were_counted(tmp_path: Path) -> None:
    host = Host(tmp_path)
    for number, query in enumerate(QUERIES):
        host.subscribe(f"s{number}", DeliveryProfile(query, "ids"))
    assert host.snapshot()
    kept = msgspec.msgpack.decode(host.disk["subscription/s0"], type=KeptSubscription)
    bare = msgspec.structs.replace(kept, entries=(), entries_by="")
    host.disk["subscription/s0"] = msgspec.msgpack.encode(bare)
    host.begin()
    assert host.is_from_snapshot
    host.unsubscribe("s0")
    host.check()
