"""Content in XML: profiles in XPath and XQuery, entries that are disjuncts of linear paths.

Example:
    >>> content = xml_content(engine="reference")
    >>> tables, profiles = content.interests(), content.profiles()
    >>> _ = tables.set_neighbours(["east"])
    >>> _ = tables.update("east", profiles.entries(Profile("//item[@sku='A7']")), [])
    >>> [sorted(names) for names in tables.route([b"<item sku='A7'/>", b"<item sku='B1'/>"])]
    [['east'], []]
    >>> text = "for $i in //item where $i/price < 3 return $i/price"
    >>> profiles.add("s", Profile(text, "fragment"))
    >>> profiles.answers([b"<item><price>2</price></item>", b"<item/>"])
    [{'s': (b'<price>2</price>',)}, {}]

Source: 001, section 4.2.1 (Map, Collect, Aggregate) and 5 (local plan, broker queries).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial

from pathcast.customize import Broker as LocalBroker
from pathcast.engine.selection import engine_name
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.overlay.content import LOCAL, Content, Decisions, Profile, Results, Verdict
from pathcast.overlay.cutting import (
    WHOLE,
    LinkCuts,
    ToldCuts,
    cut_entry,
    is_cut_entry,
    offer_in,
)
from pathcast.overlay.disjuncts import disjuncts_of, is_linear
from pathcast.overlay.interest import EXACT, Delta, Interests, Policy
from pathcast.overlay.table import Table

__all__ = ["XmlInterests", "XmlProfiles", "limits_of", "xml_content"]


def xml_content(
    policy: Policy = EXACT,
    engine: str | None = None,
    limits: Limits | None = None,
    *,
    projection: bool = True,
    whole_links: Collection[str] = (),
) -> Content:
    """Content in XML, for brokers.

    Args:
        policy: How what a neighbour is told is made less.
        engine: As for `QueryIndex`. The reference engine cuts nothing out of messages.
        limits: What one message may cost; the same at all brokers of a network.
        projection: Whether messages are cut down to what is of use behind a link, where that pays.
            Without it nobody above cuts them for this broker or those behind it either.
        whole_links: Neighbours that are sent messages as they are all the same.
    """
    return Content(
        partial(XmlInterests, policy, engine, limits, projection, whole_links),
        partial(XmlProfiles, engine, limits, projection),
    )


def limits_of(message_bytes_max: int) -> Limits:
    """Limits for messages of so many bytes: with more bytes, as many more elements.

    Example:
        >>> limits_of(64 << 20).elements_max
        8388608
    """
    elements_max = max(Limits().elements_max, message_bytes_max // 8)
    return Limits(message_bytes_max=message_bytes_max, elements_max=elements_max)


class XmlInterests:
    """`pathcast.overlay.content.Interests`: what neighbours are told, and what they tell.

    Args:
        policy: How what a neighbour is told is made less.
        engine: As for `QueryIndex`.
        limits: What one message may cost.
        projection: As for `xml_content`.
        whole_links: As for `xml_content`.
    """

    def __init__(
        self,
        policy: Policy = EXACT,
        engine: str | None = None,
        limits: Limits | None = None,
        projection: bool = True,
        whole_links: Collection[str] = (),
    ) -> None:
        self._interests = Interests(policy)
        self._table = Table(engine=engine, limits=limits)
        self._told_cuts = ToldCuts()
        is_native = engine_name(engine) != "reference"
        self._cuts = LinkCuts(engine, whole_links) if projection and is_native else None
        self._neighbours: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Distinct entries of the table."""
        return len(self._table)

    def check(self, entries: Iterable[str]) -> None:
        """As `Interests.check`."""
        paths, cuts = _split(entries)
        self._table.check(paths)
        for entry in cuts:
            offer_in(entry)
        if self._cuts is not None:
            self._cuts.check(cuts)

    def update(
        self, origin: str, added: Iterable[str], removed: Iterable[str]
    ) -> Mapping[str, Delta]:
        """As `Interests.update`."""
        added, added_cuts = _split(added)
        removed, removed_cuts = _split(removed)
        if origin != LOCAL:  # what its own subscribers want, a broker decides exactly
            self._table.set(origin, added, removed)
            if self._cuts is not None:
                self._cuts.update(origin, added_cuts, removed_cuts)
        return _joined(
            self._interests.update(origin, added, removed),
            self._told_cuts.update(origin, added_cuts, removed_cuts),
        )

    def set_neighbours(self, names: Iterable[str]) -> Mapping[str, Delta]:
        """As `Interests.set_neighbours`."""
        names = tuple(names)
        for name in self._neighbours:
            if name not in names:
                self._table.set(name, [], sorted(self._table.entries(name)))
                if self._cuts is not None:
                    self._cuts.forget(name)
        self._neighbours = names
        return _joined(self._interests.set_neighbours(names), self._told_cuts.set_neighbours(names))

    def told(self, neighbour: str) -> frozenset[str]:
        """As `Interests.told`."""
        return self._interests.told(neighbour) | self._told_cuts.told(neighbour)

    def entries(self, origin: str) -> frozenset[str]:
        """As of the protocol."""
        return self._interests.entries(origin) | self._told_cuts.entries(origin)

    def from_scratch(self) -> Mapping[str, frozenset[str]]:
        """As `Interests.from_scratch`."""
        cuts = self._told_cuts.from_scratch()
        return {name: told | cuts[name] for name, told in self._interests.from_scratch().items()}

    def route(self, bodies: Sequence[bytes]) -> list[frozenset[str]]:
        """As `Interests.route`."""
        return self._table.route(list(bodies))

    def cut(
        self, bodies: Sequence[bytes], wanted: Mapping[str, Sequence[int]]
    ) -> Mapping[str, Sequence[bytes | None]]:
        """As `Interests.cut`."""
        if self._cuts is None:
            return {name: [bodies[row] for row in rows] for name, rows in wanted.items()}
        return self._cuts.cut(bodies, wanted)

    @property
    def saved(self) -> Mapping[str, int]:
        """Neighbour -> bytes that were cut out of what it was sent."""
        return {} if self._cuts is None else self._cuts.saved

    def is_cutting(self, neighbour: str) -> bool:
        """As `Interests.is_cutting`."""
        return self._cuts is not None and self._cuts.is_cutting(neighbour)

    def decisions(self, size: int) -> Decisions | None:
        """As `Interests.decisions`."""
        return self._table.decisions(size)


class XmlProfiles:
    """`pathcast.overlay.content.Profiles`: the local plan, exact.

    Args:
        engine: As for `QueryIndex`.
        limits: What one message may cost.
        projection: As for `xml_content`.
    """

    def __init__(
        self, engine: str | None = None, limits: Limits | None = None, projection: bool = True
    ) -> None:
        self._projection = projection
        self._broker = LocalBroker(engine=engine, limits=limits)
        self._is_native = self._broker.engine != "reference"
        self._names: dict[str, None] = {}

    def entries(self, profile: Profile) -> tuple[str, ...]:
        """As of the protocol."""
        return _entries(profile, self._is_native, self._projection)

    def add(self, subscription: str, profile: Profile) -> None:
        """As `Profiles.add`."""
        asked = _asked(profile, subscription)
        for error in self._broker.subscribe(asked).errors.values():
            raise error
        self._names[subscription] = None

    def remove(self, subscription: str) -> None:
        """As `Profiles.remove`."""
        self._broker.unsubscribe(subscription)
        del self._names[subscription]

    def answers(self, bodies: Sequence[bytes]) -> list[dict[str, Results | Verdict]]:
        """As `Profiles.answers`.

        A message that is refused here, whatever its root has let in, is undecided for all.
        """
        answer = self._broker.process_few(bodies)
        results: list[dict[str, list[bytes]]] = [{} for _ in bodies]
        for row, name, result in answer.deliveries:
            given = results[row].setdefault(name, [])
            if result is not None:
                given.append(result)
        found: list[dict[str, Results | Verdict]] = [
            {name: tuple(given) for name, given in one.items()} for one in results
        ]
        for row, name, error in answer.verdicts:
            found[row][name] = Verdict(error.code, error.message)
        for row, error in answer.refusals:
            found[row] = dict.fromkeys(self._names, Verdict(error.code, error.message))
        return [dict(sorted(one.items())) for one in found]


@lru_cache(maxsize=100_000)
def _entries(profile: Profile, is_native: bool, projection: bool) -> tuple[str, ...]:
    """Popular profiles are asked for at many hosts, and again when a broker starts.

    Cost: as `_paths`, and that of `cut_entry`.
    """
    return (*_paths(profile, is_native), cut_entry(_asked(profile)) if projection else WHOLE)


def _paths(profile: Profile, is_native: bool) -> tuple[str, ...]:
    """The routing entries.

    Cost: some microseconds for a path whose conditions are about values, of which the kernel says
    what `disjuncts_of` would; else as `disjuncts_of`.
    """
    if is_native:
        from pathcast.kernel import canonical_form

        text = canonical_form(profile.query, dict(profile.namespaces))
        if text is not None and is_linear(text):
            return (text,)
    return disjuncts_of(profile.query, dict(profile.namespaces), profile.deliver)


def _asked(profile: Profile, id: str = "") -> Subscription:
    return Subscription(id, id, profile.query, profile.deliver, dict(profile.namespaces))


def _split(entries: Iterable[str]) -> tuple[list[str], list[str]]:
    """Entries that are paths, and those about what may be cut."""
    given = list(entries)
    paths = [entry for entry in given if not is_cut_entry(entry)]
    return paths, [entry for entry in given if is_cut_entry(entry)]


def _joined(paths: Mapping[str, Delta], cuts: Mapping[str, Delta]) -> dict[str, Delta]:
    """What changes of both, for each neighbour."""
    none = Delta()
    return {
        name: Delta(
            (*(one := paths.get(name, none)).added, *(two := cuts.get(name, none)).added),
            (*one.removed, *two.removed),
        )
        for name in sorted(paths.keys() | cuts.keys())
    }
