"""A language of profiles and messages that costs nothing: for seeds that are about the protocol.

A message is numbers and marks, `b"3 17 x"`. A profile is alternatives, `"a3|a1*"`: a3 is satisfied
by the number 3, a1* by all numbers that begin with 1, `a3&x` by 3 with the mark x, which Map drops,
so that a link can carry what its host does not deliver. What is delivered is the numbers that it
asks for; or, if it ends in `!`, the message. An entry that ends in `*` covers those that begin like
it.

A message can be cut down to its marks and the numbers that somebody asks for: a profile tells `k3`
for what it would have kept, or, if it needs the message whole, `w`.

Example:
    >>> profiles = ToyProfiles()
    >>> asked = Profile("a3&x|a1*")
    >>> profiles.add("s", asked)
    >>> profiles.entries(asked), profiles.answers([b"3", b"3 x", b"17 2"])
    (('a3', 'a1*', 'k3', 'k1*'), [{}, {'s': (b'3',)}, {'s': (b'17',)}])
    >>> tables = ToyInterests()
    >>> _ = tables.set_neighbours(["b"]), tables.update("", ["a1*"], [])
    >>> dict(tables.update("", ["a17"], [])), dict(tables.update("", [], ["a1*"]))
    ({}, {'b': ToyChange(added=('a17',), removed=('a1*',))})
    >>> _ = tables.update("b", ["a1*", "k1*"], [])
    >>> tables.cut([b"3 17 x"], {"b": [0]})
    {'b': [b'17 x']}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from pathcast.errors import QuerySyntaxError
from pathcast.overlay.content import Content, Profile, Results

__all__ = ["TOY", "ToyChange", "ToyInterests", "ToyProfiles", "results", "satisfies"]

WHOLE = "w"


@dataclass(frozen=True, slots=True)
class ToyChange:
    """What changes of what a neighbour is told."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


def satisfies(body: bytes, profile: str) -> bool:
    """Whether a message satisfies a profile."""
    return bool(results(body, profile))


def results(body: bytes, profile: str) -> Results:
    """What a message gives a profile; nothing if it does not satisfy it."""
    words = body.decode().split()
    alternatives = [one.partition("&") for one in profile.removesuffix("!").split("|")]
    asked = [entry for entry, _, mark in alternatives if not mark or mark in words]
    found = [word for word in words if any(_covers(entry, f"a{word}") for entry in asked)]
    return (body,) if found and profile.endswith("!") else tuple(map(str.encode, found))


def _holds(words: Sequence[str], entry: str) -> bool:
    return any(_covers(entry, f"a{word}") for word in words)


def _covers(one: str, other: str) -> bool:
    return one == other or (one.endswith("*") and other.startswith(one[:-1]))


class ToyInterests:
    """`pathcast.overlay.content.Interests`, made anew at each change.

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
            if entry[:1] not in ("a", "k", WHOLE):
                raise QuerySyntaxError("XPST0003", reason=f"{entry} is no entry")

    def update(
        self, origin: str, added: Iterable[str], removed: Iterable[str]
    ) -> Mapping[str, ToyChange]:
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

    def set_neighbours(self, names: Iterable[str]) -> Mapping[str, ToyChange]:
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

    def from_scratch(self) -> Mapping[str, frozenset[str]]:
        """As `Interests.from_scratch`."""
        return {name: self._aggregate(name) for name in self._told}

    def route(self, bodies: Sequence[bytes]) -> Sequence[set[str]]:
        """As `Interests.route`."""
        table = self.table()
        return [
            {name for name, wanted in table.items() if any(_holds(words, one) for one in wanted)}
            for words in (body.decode().split() for body in bodies)
        ]

    def cut(
        self, bodies: Sequence[bytes], wanted: Mapping[str, Sequence[int]]
    ) -> dict[str, list[bytes | None]]:
        """As `Interests.cut`."""
        return {
            name: [self._cut(name, bodies[row]) for row in rows] for name, rows in wanted.items()
        }

    def _cut(self, name: str, body: bytes) -> bytes | None:
        kept = [entry for entry in self._wanted[name] if entry.startswith("k")]
        if not self._cuts or WHOLE in self._wanted[name] or not kept:
            return body
        words = body.decode().split()
        used = {word for word in words if any(_covers(entry, f"k{word}") for entry in kept)}
        marks = [word for word in words if not word.isdecimal()]
        return " ".join([w for w in words if w in used or w in marks]).encode() if used else None

    def is_cutting(self, neighbour: str) -> bool:
        """As `Interests.is_cutting`."""
        wanted = self._wanted[neighbour]
        return self._cuts and WHOLE not in wanted and any(each.startswith("k") for each in wanted)

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
        if WHOLE in wanted:
            wanted = {entry for entry in wanted if not entry.startswith("k")}
        covers = [entry for entry in wanted if entry.endswith("*")]
        return frozenset(
            entry
            for entry in wanted
            if not any(_covers(cover, entry) for cover in covers if cover != entry)
        )

    def _changes(self) -> dict[str, ToyChange]:
        changes = {}
        for name, before in self._told.items():
            now = self._aggregate(name)
            if now != before:
                self._told[name] = now
                changes[name] = ToyChange(tuple(sorted(now - before)), tuple(sorted(before - now)))
        return changes


class ToyDecisions:
    """`pathcast.overlay.content.Decisions`: word by word, and at the end by the last one."""

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

    def __init__(self) -> None:
        self._profiles: dict[str, Profile] = {}

    def entries(self, profile: Profile) -> tuple[str, ...]:
        """As of the protocol."""
        asked = [one.partition("&")[0] for one in profile.query.removesuffix("!").split("|")]
        is_whole = profile.query.endswith("!")
        return (*asked, *([WHOLE] if is_whole else ["k" + one[1:] for one in asked]))

    def add(self, subscription: str, profile: Profile) -> None:
        """As `Profiles.add`."""
        self._profiles[subscription] = profile

    def remove(self, subscription: str) -> None:
        """As `Profiles.remove`."""
        del self._profiles[subscription]

    def answers(self, bodies: Sequence[bytes]) -> list[dict[str, Results]]:
        """As `Profiles.answers`."""
        return [
            {
                name: given
                for name, profile in sorted(self._profiles.items())
                if (given := results(body, profile.query))
            }
            for body in bodies
        ]


TOY = Content(ToyInterests, ToyProfiles)
