"""A language of profiles and messages that costs nothing: for seeds that are about the protocol.

A message is numbers and marks, `b"3 17 x"`. A profile is alternatives, `"a3|a1*"`: a3 is satisfied
by the number 3, a1* by all numbers that begin with 1, `a3&x` by 3 with the mark x, which Map drops,
so that a link can carry what its host does not deliver. What is delivered is the numbers that it
asks for; or, if it ends in `!`, the message. An entry that ends in `*` covers those that begin like
it.

A message can be cut down to its marks and the numbers that somebody asks for: a profile tells `k3`
for what it would have kept, or, if it needs the message whole, `w`.

A profile may begin with steps, `"4:3,7:>a3"`: what is 4 becomes 3, then 7 is dropped, before it is
looked at. It tells what must be there before them, and its steps with what it would keep: `4:3/k3`.

Example:
    >>> profiles = ToyProfiles()
    >>> asked = DeliveryProfile("a3&x|a1*")
    >>> profiles.add("s", asked)
    >>> profiles.entries(asked), profiles.answers([b"3", b"3 x", b"17 2"])
    (('a3', 'a1*', 'k3', 'k1*'), [{}, {'s': (b'3',)}, {'s': (b'17',)}])
    >>> tables = ToyInterests()
    >>> _ = tables.set_neighbours(["b"]), tables.update("", ["a1*"], [])
    >>> dict(tables.update("", ["a17"], [])), dict(tables.update("", [], ["a1*"]))
    ({}, {'b': Delta(added=('a17',), removed=('a1*',))})
    >>> _ = tables.update("b", ["a1*", "k1*"], [])
    >>> tables.cut([b"3 17 x"], {"b": [0]})
    {'b': [Sent(body=b'17 x', steps=0)]}

    >>> profiles.entries(DeliveryProfile("4:3,7:>a3")), results(b"4 5 7 x", "4:3,7:>a3")
    (('a3', 'a4', '4:3,7:/k3'), (b'3',))
    >>> _ = tables.update("b", ["a3", "a4", "4:3,7:/k3"], ["a1*", "k1*"])
    >>> tables.cut([b"4 5 x"], {"b": [0]})
    {'b': [Sent(body=b'3 x', steps=2)]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import takewhile

from pathcast.errors import QuerySyntaxError
from pathcast.overlay.content import Content, DeliveryProfile, Delta, Results, Sent

__all__ = ["TOY", "ToyInterests", "ToyProfiles", "results", "satisfies"]

WHOLE = "w"


def satisfies(body: bytes, profile: str) -> bool:
    """Whether a message satisfies a profile."""
    return bool(results(body, profile))


def results(body: bytes, profile: str, done: int = 0) -> Results:
    """What a message gives a profile; nothing if it does not satisfy it.

    Args:
        body: The message.
        profile: The profile.
        done: How many of its steps were done to the message.
    """
    steps, profile = _steps_of(profile)
    body = _after(body, steps[done:])
    words = body.decode().split()
    alternatives = [one.partition("&") for one in profile.removesuffix("!").split("|")]
    asked = [entry for entry, _, mark in alternatives if not mark or mark in words]
    found = [word for word in words if any(_covers(entry, f"a{word}") for entry in asked)]
    return (body,) if found and profile.endswith("!") else tuple(map(str.encode, found))


Steps = tuple[tuple[str, str], ...]
"""Numbers, and what becomes of each: "" for nothing."""


def _steps_of(profile: str) -> tuple[Steps, str]:
    """The steps of a profile, and the rest of it."""
    steps, _, rest = profile.rpartition(">")
    return _read_steps(steps), rest


def _read_steps(text: str) -> Steps:
    pairs = [step.partition(":") for step in text.split(",") if step]
    return tuple((number, other) for number, _, other in pairs)


def _after(body: bytes, steps: Steps) -> bytes:
    """A message after steps."""
    words = body.decode().split()
    if not any(number in words for number, _ in steps):
        return body
    for number, other in steps:
        words = [other if word == number else word for word in words]
        words = [word for word in words if word]
    return " ".join(words).encode()


def _before(entry: str, steps: Steps) -> list[str]:
    """What a message satisfies one of which satisfies an entry after some of the steps or all."""
    entries = [entry]
    for number, other in reversed(steps):
        if other and any(_covers(one, f"a{other}") for one in entries):
            entries.append(f"a{number}")
    return entries


def _read_cut(entry: str) -> tuple[Steps, str]:
    """What an entry about cutting says: steps, and what is kept after them."""
    steps, _, kept = entry.rpartition("/")
    return _read_steps(steps), kept


def _common(entries: Iterable[str]) -> Steps:
    """Steps that all begin with."""
    every = [_read_cut(entry)[0] for entry in entries]
    shared = takewhile(lambda steps: len(set(steps)) == 1, zip(*every, strict=False))
    return tuple(steps[0] for steps in shared)


def _is_cut_down(entries: Iterable[str]) -> bool:
    """Whether a message may be cut for all of them, after their steps: they have the same."""
    every = [_read_cut(entry) for entry in entries]
    return len({steps for steps, _ in every}) == 1 and WHOLE not in [kept for _, kept in every]


def _told_cuts(entries: set[str]) -> set[str]:
    """What is told of entries about cutting: where nothing is cut down, what they share."""
    if not entries or _is_cut_down(entries):
        return entries
    steps = ",".join(f"{number}:{other}" for number, other in _common(entries))
    return {f"{steps}/{WHOLE}" if steps else WHOLE}


def _holds(words: Sequence[str], entry: str) -> bool:
    return any(_covers(entry, f"a{word}") for word in words)


def _covers(one: str, other: str) -> bool:
    return one == other or (one.endswith("*") and other.startswith(one[:-1]))


class ToyInterests:
    """`pathcast.overlay.content.InterestTables`, made anew at each change.

    Args:
        keeps_what_is_covered: False is the classic fault.
        cuts: Whether messages are cut.
    """

    def __init__(self, keeps_what_is_covered: bool = True, cuts: bool = True) -> None:
        self._keeps = keeps_what_is_covered
        self._cuts = cuts
        self._wanted: dict[str, set[str]] = {}
        self._told: dict[str, frozenset[str]] = {}

    def check(self, entries: Iterable[str]) -> None:
        """As `Interests.check`."""
        for entry in entries:
            if entry[:1] not in ("a", "k", WHOLE) and "/" not in entry:
                raise QuerySyntaxError("XPST0003", reason=f"{entry} is no entry")

    def update(
        self, origin: str, added: Iterable[str], removed: Iterable[str]
    ) -> Mapping[str, Delta]:
        """As `Interests.update`."""
        wanted = self._wanted.setdefault(origin, set())
        wanted -= set(removed)
        added = set(added)
        wanted |= added
        if not self._keeps:
            # The classic fault: what another entry covers is forgotten instead of kept for later.
            for one in sorted(added):
                if any(_covers(two, one) and two != one for two in wanted):
                    wanted.discard(one)
        return self._changes()

    def set_neighbours(self, names: Iterable[str]) -> Mapping[str, Delta]:
        """As `Interests.set_neighbours`."""
        names = list(names)
        self._wanted = {
            origin: wanted for origin, wanted in self._wanted.items() if origin in ("", *names)
        }
        self._told = {name: self._told.get(name, frozenset()) for name in names}
        return self._changes()

    def told(self, neighbour: str) -> frozenset[str]:
        """As `Interests.told`."""
        return self._told[neighbour]

    def entries(self, origin: str) -> frozenset[str]:
        """As of the protocol."""
        return frozenset(self._wanted.get(origin, ()))

    def held(self, neighbour: str) -> frozenset[str]:
        """As of the protocol."""
        return self.entries(neighbour)

    def from_scratch(self) -> Mapping[str, frozenset[str]]:
        """Aggregate anew for each neighbour."""
        return {name: self._aggregate(name) for name in self._told}

    def route(self, bodies: Sequence[bytes]) -> Sequence[set[str]]:
        """As `Interests.route`."""
        table = self.table()
        return [
            {name for name, wanted in table.items() if any(_holds(words, one) for one in wanted)}
            for words in (body.decode().split() for body in bodies)
        ]

    def cut(
        self,
        bodies: Sequence[bytes],
        wanted: Mapping[str, Sequence[int]],
        done: Sequence[int] = (),
    ) -> dict[str, list[Sent | None]]:
        """As `Interests.cut`."""
        done = done or [0] * len(bodies)
        return {
            name: [self._cut(name, Sent(bodies[row], done[row])) for row in rows]
            for name, rows in wanted.items()
        }

    def _cut(self, name: str, came: Sent) -> Sent | None:
        cuts = self._cuts_of(name)
        steps = _common(cuts)
        if not self._cuts or not cuts or came.steps > len(steps):
            return came
        made = Sent(_after(came.body, steps[came.steps :]), len(steps))
        if not _is_cut_down(cuts):
            return made if made.body != came.body else came
        kept = [_read_cut(entry)[1] for entry in cuts]
        words = made.body.decode().split()
        used = {word for word in words if any(_covers(entry, f"k{word}") for entry in kept)}
        marks = [word for word in words if not word.isdecimal()]
        left = " ".join([w for w in words if w in used or w in marks]).encode()
        if not used:
            return None
        return came if left == came.body else Sent(left, len(steps))

    def _cuts_of(self, name: str) -> set[str]:
        """Entries about cutting."""
        return {entry for entry in self._wanted[name] if entry[0] != "a"}

    def is_cutting(self, neighbour: str) -> bool:
        """As `Interests.is_cutting`."""
        cuts = self._cuts_of(neighbour)
        return self._cuts and bool(_common(cuts) or (cuts and _is_cut_down(cuts)))

    def decisions(self, size: int) -> ToyDecisions:
        """As `Interests.decisions`."""
        return ToyDecisions(self, size)

    def table(self) -> dict[str, frozenset[str]]:
        """Who wants anything, and what."""
        wanted = {name: self.entries(name) for name in self._told}
        return {name: entries for name, entries in wanted.items() if entries}

    def _aggregate(self, neighbour: str) -> frozenset[str]:
        wanted = {
            entry
            for origin, entries in self._wanted.items()
            if origin != neighbour
            for entry in entries
        }
        paths = {entry for entry in wanted if entry[0] == "a"}
        wanted = paths | _told_cuts(wanted - paths)
        covers = [entry for entry in wanted if entry.endswith("*")]
        return frozenset(
            entry
            for entry in wanted
            if not any(_covers(cover, entry) for cover in covers if cover != entry)
        )

    def _changes(self) -> dict[str, Delta]:
        changes = {}
        for name, before in self._told.items():
            now = self._aggregate(name)
            if now != before:
                self._told[name] = now
                changes[name] = Delta(tuple(sorted(now - before)), tuple(sorted(before - now)))
        return changes


class ToyDecisions:
    """`pathcast.overlay.content.RoutingDecision`: word by word, and at the end by the last one."""

    def __init__(self, interests: ToyInterests, size: int) -> None:
        self._interests = interests
        self._table = interests.table()
        self._left = size
        self._begun = ""
        self._wanted: set[str] = set()

    def feed(self, part: bytes) -> None:
        """As `Decisions.feed`; a word counts when the blank after it is there."""
        self._left -= len(part)
        *words, self._begun = (self._begun + part.decode()).split(" ")
        if not self._left:
            words.append(self._begun)
        for name, entries in self._table.items():
            if any(_holds(words, entry) for entry in entries):
                self._wanted.add(name)

    @property
    def wanted(self) -> Set[str]:
        """As `Decisions.wanted`."""
        return self._wanted

    @property
    def decided(self) -> Set[str] | None:
        """As `Decisions.decided`."""
        is_final = not self._left or self._wanted == self._table.keys()
        return self._wanted if is_final and self._interests.table() == self._table else None


class ToyProfiles:
    """`pathcast.overlay.content.Profiles`."""

    snapshots: None = None

    def __init__(self) -> None:
        self._profiles: dict[str, DeliveryProfile] = {}

    @property
    def entries_by(self) -> str:
        """As of `Profiles`."""
        return "toy"

    def entries(self, profile: DeliveryProfile) -> tuple[str, ...]:
        """As of the protocol."""
        steps, query = _steps_of(profile.query)
        asked = [one.partition("&")[0] for one in query.removesuffix("!").split("|")]
        kept = [WHOLE] if query.endswith("!") else ["k" + one[1:] for one in asked]
        if steps:
            kept = [f"{profile.query.partition('>')[0]}/{one}" for one in kept]
        return (*dict.fromkeys(e for one in asked for e in _before(one, steps)), *kept)

    def add(self, subscription: str, profile: DeliveryProfile) -> None:
        """As `Profiles.add`."""
        self._profiles[subscription] = profile

    def remove(self, subscription: str) -> None:
        """As `Profiles.remove`."""
        del self._profiles[subscription]

    def answers(
        self, bodies: Sequence[bytes], done: Sequence[int] = (), times: Sequence[int] = ()
    ) -> list[dict[str, Results]]:
        """As `Profiles.answers`."""
        return [
            {
                name: given
                for name, profile in sorted(self._profiles.items())
                if (given := results(body, profile.query, count))
            }
            for body, count in zip(bodies, done or [0] * len(bodies), strict=True)
        ]


TOY = Content(ToyInterests, ToyProfiles)
