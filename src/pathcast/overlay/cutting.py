"""Early transformation on links: the entries that announce it, and the cutting of messages.

Every profile says, in an entry beside its routing entries, which steps it begins with and what
would be left of a message that was cut for it after them: the offer of
`pathcast.overlay.projection`, or that it has to see messages whole. Entries go up as all others do,
in deltas, from neighbour to neighbour. Where one of the profiles behind a link needs messages
whole, nothing is cut out on it; so a neighbour is told, instead of all of them, the steps that they
have in common.

What a link needs of a message is the union over the profiles behind it. On it the steps that all
have in common are done first, if they were not done before; then what nobody has use for is cut
out, be it before the steps that only some of them have (`offer_before`).

Example:
    >>> from pathcast.overlay.content import LOCAL
    >>> told = ToldCuts()
    >>> _ = told.set_neighbours(["west"])
    >>> one, two = (cut_entry(Subscription("s", "ann", f"/batch/order[{n}]/no")) for n in "xy")
    >>> [len(change.added) for change in told.update(LOCAL, [one, two], []).values()]
    [2]
    >>> told.update(LOCAL, [WHOLE], [])["west"] == Delta((WHOLE,), tuple(sorted([one, two])))
    True
    >>> cuts = LinkCuts()
    >>> cuts.update("east", [one], [])
    >>> batch = b"<batch><order><no>7</no></order><order><x/><no>8</no></order></batch>"
    >>> cuts.cut([batch], {"east": [0], "west": [0]})["east"]
    [Sent(body=b'<batch><order><x/><no>8</no></order></batch>', steps=0)]
    >>> from pathcast.registry.steps import parse_steps
    >>> steps = parse_steps(["drop //no", "rename //x y"])
    >>> asked = Subscription("s", "ann", "/batch/order[y]")
    >>> cuts.update("east", [cut_entry(asked, steps)], [one])
    >>> cuts.cut([batch], {"east": [0]})["east"]
    [Sent(body=b'<batch><order><y/></order></batch>', steps=2)]

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.2. Differs: the paper propagates the query
that all have in common and computes remainders at the parent; here what each asks for goes up, and
what is common is found where messages are cut, so that a profile that goes leaves nothing behind.
Steps are done to the message, which is what all profiles have in common, and a message says how
many were: the remainder of a profile is the rest of its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, NamedTuple

import msgspec

from pathcast.errors import QuerySyntaxError
from pathcast.limits import Limits
from pathcast.model import STEPS_MAX, Subscription
from pathcast.overlay.content import Delta, Sent
from pathcast.overlay.interest import Interests
from pathcast.overlay.projection import (
    SELECTS_MAX,
    Offer,
    Projections,
    common,
    offer_before,
    offer_of,
)
from pathcast.query.names import is_ncname
from pathcast.query.syntax import NameTest
from pathcast.registry.restructuring import AskedSteps, Restructurings
from pathcast.registry.selector import Select, Selector
from pathcast.registry.steps import EditStep, Steps, check_steps, common_steps

TRIAL_MESSAGES: Final = 256
"""Messages of a link after which it is seen whether it pays to cut them."""

PAYS: Final = 1 / 16
"""Share of their bytes that has to have been saved."""

REST_MESSAGES: Final = 4096
"""Messages that a link where it does not pay is sent uncut, before it is tried again."""

_Steps = Annotated[tuple[EditStep, ...], msgspec.Meta(max_length=STEPS_MAX)]


class _Whole(msgspec.Struct, frozen=True, tag="whole", omit_defaults=True):
    """A profile that has to see messages whole, after steps.

    Attributes:
        steps: Steps, if there are any.
    """

    steps: _Steps = ()


class _Units(msgspec.Struct, frozen=True, tag="units", omit_defaults=True):
    """A profile of which no result changes if units are cut out in which it selects nothing.

    Attributes:
        unit: Names of a path of child steps to the units, as (namespace URI, local name).
        select: Query that selects in them.
        namespaces: Its bindings, as (prefix, URI).
        steps: Steps after which that is so.
    """

    unit: Annotated[tuple[tuple[str, str], ...], msgspec.Meta(min_length=2, max_length=256)]
    select: str
    namespaces: tuple[tuple[str, str], ...] = ()
    steps: _Steps = ()


class _UnitsLeftUnread(msgspec.Struct, frozen=True, tag="units"):
    """`_Units` of which only the steps are looked at: a tenth of the time."""

    steps: _Steps = ()


_DECODER: Final = msgspec.json.Decoder(_Whole | _Units)
_KINDS: Final = msgspec.json.Decoder(_Whole | _UnitsLeftUnread)


class EntryNeeds(NamedTuple):
    """An entry as data: the parts of a message that it needs.

    Attributes:
        steps: What is done to a message first.
        offer: What may be cut out of it then; None if it is needed whole.
    """

    steps: Steps
    offer: Offer | None

    def offer_after(self, done: int) -> Offer | None:
        """The offer to cut a message that so many of the steps were done to."""
        if self.offer is None or done == len(self.steps):
            return self.offer
        return offer_before(self.offer, self.steps[done:])


def is_cut_entry(entry: str) -> bool:
    """Whether an entry is about what may be cut; others are paths."""
    return entry.startswith("{")


def cut_entry(subscription: Subscription, steps: Steps = ()) -> str:
    """The entry of a profile.

    Args:
        subscription: Of the message after the steps.
        steps: What is done to it first.

    Raises:
        QuerySyntaxError: Its query cannot be used.
        UnsupportedQueryError: Likewise.

    Cost: 0.4 ms.
    """
    offer = offer_of(subscription)
    if offer is None:
        return _whole_after(steps)
    (select,) = offer.selects
    unit = tuple((name.uri or "", name.local or "") for name in offer.unit)
    return msgspec.json.encode(_Units(unit, select.query, select.namespaces, steps)).decode()


def _whole_after(steps: Steps) -> str:
    return msgspec.json.encode(_Whole(steps)).decode()


WHOLE: Final = _whole_after(())
"""The entry of a profile that has to see messages as they are."""


@lru_cache(maxsize=65_536)
def needs_in(entry: str) -> EntryNeeds:
    """Read an entry as data.

    Raises:
        QuerySyntaxError: It is no entry.
    """
    try:
        read = _DECODER.decode(entry)
    except (msgspec.DecodeError, RecursionError) as error:
        raise QuerySyntaxError("XPST0003", query=entry, offset=0, reason=str(error)) from None
    if isinstance(read, _Whole):
        return EntryNeeds(read.steps, None)
    unit = tuple(NameTest(uri, local) for uri, local in read.unit)
    for name in unit:
        if not is_ncname(name.local or ""):
            reason = f"{name.local!r} is no name of an element"
            raise QuerySyntaxError("XPST0003", query=entry, offset=0, reason=reason)
    return EntryNeeds(read.steps, Offer(unit, frozenset([Select(read.select, read.namespaces)])))


class _Kinds:
    """How many entries there are of each kind: steps, and whether whole messages are needed.

    Entries were read before, where they came from (`needs_in`).
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._kinds: Counter[tuple[Steps, bool]] = Counter()
        self.count(entries, 1)

    def count(self, entries: Iterable[str], by: int) -> None:
        """Some more, or fewer."""
        for entry in entries:
            read = _KINDS.decode(entry)
            kind = read.steps, isinstance(read, _Whole)
            self._kinds[kind] += by
            if not self._kinds[kind]:
                del self._kinds[kind]

    def instead(self, is_plain: bool) -> str | None:
        """The one entry that is told instead of them; None if they are told themselves.

        Args:
            is_plain: Whoever is told does no steps.
        """
        if not self._kinds:
            return None
        if is_plain and any(steps for steps, _ in self._kinds):
            return WHOLE
        is_few = self._kinds.total() <= SELECTS_MAX
        if is_few and not any(is_whole for _, is_whole in self._kinds):
            return None
        return _whole_after(common_steps(steps for steps, _ in self._kinds))


class ToldCuts:
    """The early transformations that each neighbour is told, with the face of `Interests`.

    What all others ask for; or, if one of them needs messages whole, or they are so many that they
    are no offer together, the steps that they have in common, after which messages are needed
    whole.

    Args:
        plain: Neighbours that are to do no steps.
    """

    def __init__(self, plain: Collection[str] = ()) -> None:
        self._all = Interests()
        self._kinds: dict[str, _Kinds] = {}
        self._plain = frozenset(plain)

    def update(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> dict[str, Delta]:
        """Implement `InterestTables.update`."""
        return self._as_told(self._all.update(origin, added, removed))

    def set_neighbours(self, names: Iterable[str]) -> dict[str, Delta]:
        """Implement `InterestTables.set_neighbours`."""
        names = set(names)
        self._kinds = {name: self._kinds.get(name) or _Kinds() for name in names}
        return self._as_told(self._all.set_neighbours(names))

    def told(self, neighbour: str) -> frozenset[str]:
        """Implement `InterestTables.told`."""
        return self._told(neighbour, self._all.told(neighbour))

    def entries(self, origin: str) -> frozenset[str]:
        """Implement `InterestTables.entries`."""
        return self._all.entries(origin)

    def _told(self, name: str, entries: frozenset[str]) -> frozenset[str]:
        instead = _Kinds(entries).instead(name in self._plain)
        return entries if instead is None else frozenset([instead])

    def _as_told(self, deltas: Mapping[str, Delta]) -> dict[str, Delta]:
        changes = {}
        for name, delta in deltas.items():
            kinds, is_plain = self._kinds[name], name in self._plain
            before = kinds.instead(is_plain)
            kinds.count(delta.added, 1)
            kinds.count(delta.removed, -1)
            after = kinds.instead(is_plain)
            if before is not None or after is not None:
                now = self._all.told(name) if before is None or after is None else frozenset[str]()
                was = (now - set(delta.added)) | set(delta.removed)
                was = was if before is None else frozenset([before])
                told = now if after is None else frozenset([after])
                delta = Delta(tuple(sorted(told - was)), tuple(sorted(was - told)))
            if delta.added or delta.removed:
                changes[name] = delta
        return changes


@dataclass(slots=True)
class _Yield:
    """The bytes that cutting has lately saved on one link."""

    messages: int = 0
    given: int = 0
    sent: int = 0
    rest: int = 0


class LinkCuts:
    """Cuts messages for the links of a broker, by the entries that neighbours have told.

    On a link where cutting saves less than `PAYS` it is given up for a while. Steps are done all
    the same: whoever is behind would have to do them, and often more than one.

    Args:
        never: Neighbours that are always sent messages as they are.
        limits: What one message may cost that steps are done to.
    """

    def __init__(
        self,
        never: Collection[str] = (),
        limits: Limits | None = None,
    ) -> None:
        self._never = frozenset(never)
        self._entries: dict[str, set[str]] = {}
        self._changed: set[str] = set()
        self._steps: dict[str, Steps] = {}
        self._restructurings = Restructurings(limits)
        self._projections = Projections()
        self._trial = Selector([], threads=1)
        self._yields: dict[str, _Yield] = {}
        self.saved: Counter[str] = Counter()
        """Neighbour -> bytes that it was not sent."""

    def check(self, entries: Iterable[str]) -> None:
        """Raises QuerySyntaxError or UnsupportedQueryError if one is no entry."""
        for entry in entries:
            needs = needs_in(entry)
            check_steps(needs.steps)
            if needs.offer is not None:
                selects = dict(enumerate(needs.offer.selects))
                self._trial.add(selects)
                self._trial.remove(selects)

    def update(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> None:
        """Takes what changes of what a neighbour tells; as `Interests.update`."""
        entries = self._entries.setdefault(origin, set())
        entries.update(added)
        entries.difference_update(removed)
        self._changed.add(origin)

    def forget(self, origin: str) -> None:
        """A neighbour is gone, with what it told."""
        self._entries.pop(origin, None)
        self._yields.pop(origin, None)
        self._changed.add(origin)

    def cut(
        self,
        bodies: Sequence[bytes],
        wanted: Mapping[str, Sequence[int]],
        done: Sequence[int] = (),
    ) -> dict[str, list[Sent | None]]:
        """Implement `pathcast.overlay.content.InterestTables.cut`."""
        self._take_changes()
        done = done or [0] * len(bodies)
        came = [Sent(body, steps) for body, steps in zip(bodies, done, strict=True)]
        if not any(self._steps.get(name) or name in self._projections for name in wanted):
            return {name: [came[row] for row in rows] for name, rows in wanted.items()}
        shaped = self._restructured(came, wanted)
        parts = self._projected(shaped)
        sent: dict[str, list[Sent | None]] = {}
        for name, rows in wanted.items():
            made: list[Sent | None] = [
                came[row] if part is not None and part.body == came[row].body else part
                for row, part in zip(rows, parts[name], strict=True)
            ]
            before = sum(len(came[row].body) for row in rows)
            self.saved[name] += before - sum(len(one.body) for one in made if one)
            sent[name] = made
        return sent

    def _restructured(
        self, came: Sequence[Sent], wanted: Mapping[str, Sequence[int]]
    ) -> dict[str, list[Sent]]:
        """Messages after the steps of links; as they came if these cannot be done to them."""
        series: list[dict[Steps, Sent]] = [{} for _ in came]
        steps_of = {name: self._steps.get(name, ()) for name in wanted}
        for name, rows in wanted.items():
            for row in rows:
                # One that had more done to it is for nobody behind this link that has told by now.
                if came[row].steps < len(steps_of[name]):
                    series[row][steps_of[name]] = came[row]
        asked = [AskedSteps(one.body, one.steps, list(series[row])) for row, one in enumerate(came)]
        for row, texts in enumerate(self._restructurings.apply(asked)):
            for steps, text in zip(asked[row].series, texts, strict=True):
                if isinstance(text, bytes):
                    series[row][steps] = Sent(text, len(steps))
        return {
            name: [series[row].get(steps_of[name], came[row]) for row in rows]
            for name, rows in wanted.items()
        }

    def _projected(self, given: Mapping[str, Sequence[Sent]]) -> dict[str, list[Sent | None]]:
        """Cut messages for the links on which cutting is tried.

        Offers are about messages that the steps of a link were done to; others are not cut.
        """
        texts: dict[bytes, int] = {}
        ready: dict[str, list[bytes]] = {}
        for name, messages in given.items():
            if self._is_tried(name, len(messages)):
                steps = len(self._steps.get(name, ()))
                ready[name] = [one.body for one in messages if one.steps == steps]
        rows = {
            name: [texts.setdefault(text, len(texts)) for text in bodies]
            for name, bodies in ready.items()
        }
        left = self._projections.project_all(list(texts), rows)
        sent: dict[str, list[Sent | None]] = {name: list(all) for name, all in given.items()}
        for name, bodies in ready.items():
            self._count(name, bodies, left[name])
            steps, parts = len(self._steps.get(name, ())), iter(left[name])
            for row, one in enumerate(given[name]):
                if one.steps == steps:
                    part = next(parts)
                    sent[name][row] = None if part is None else Sent(part, steps)
        return sent

    def is_cutting(self, name: str) -> bool:
        """Implement `pathcast.overlay.content.InterestTables.is_cutting`."""
        self._take_changes()
        has_steps = bool(self._steps.get(name))
        return has_steps or (name in self._projections and self._is_tried(name, 0))

    def _take_changes(self) -> None:
        for name in sorted(self._changed):
            entries = self._entries.get(name, set()) if name not in self._never else set()
            needs = [needs_in(entry) for entry in entries]
            shared = self._steps[name] = common_steps({one.steps for one in needs})
            offers = (one.offer_after(len(shared)) for one in needs)
            self._projections.set(name, common(offers))
        if self._changed:
            self._restructurings.set(list(self._steps.values()))
        self._changed.clear()

    def _is_tried(self, name: str, messages: int) -> bool:
        found = self._yields.setdefault(name, _Yield())
        found.rest = max(0, found.rest - messages)
        return not found.rest

    def _count(self, name: str, given: Sequence[bytes], sent: Sequence[bytes | None]) -> None:
        found = self._yields[name]
        bytes_given, bytes_sent = sum(map(len, given)), sum(len(each) for each in sent if each)
        found.messages += len(given)
        found.given += bytes_given
        found.sent += bytes_sent
        if found.messages >= TRIAL_MESSAGES:
            pays = found.given - found.sent >= PAYS * found.given
            self._yields[name] = _Yield(rest=0 if pays else REST_MESSAGES)
