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

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial

from pathcast.customize import Broker as LocalBroker
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.overlay.content import LOCAL, Content, Decisions, Profile, Results, Verdict
from pathcast.overlay.disjuncts import disjuncts_of, is_linear
from pathcast.overlay.interest import EXACT, Delta, Interests, Policy
from pathcast.overlay.table import Table

__all__ = ["XmlInterests", "XmlProfiles", "limits_of", "xml_content"]


def xml_content(
    policy: Policy = EXACT, engine: str | None = None, limits: Limits | None = None
) -> Content:
    """Content in XML, for brokers.

    Args:
        policy: How what a neighbour is told is made less.
        engine: As for `QueryIndex`.
        limits: What one message may cost; the same at all brokers of a network.
    """
    return Content(
        partial(XmlInterests, policy, engine, limits), partial(XmlProfiles, engine, limits)
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
    """

    def __init__(
        self, policy: Policy = EXACT, engine: str | None = None, limits: Limits | None = None
    ) -> None:
        self._interests = Interests(policy)
        self._table = Table(engine=engine, limits=limits)
        self._neighbours: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Distinct entries of the table."""
        return len(self._table)

    def check(self, entries: Iterable[str]) -> None:
        """As `Interests.check`."""
        self._table.check(entries)

    def update(
        self, origin: str, added: Iterable[str], removed: Iterable[str]
    ) -> Mapping[str, Delta]:
        """As `Interests.update`."""
        added, removed = list(added), list(removed)
        if origin != LOCAL:  # what its own subscribers want, a broker decides exactly
            self._table.set(origin, added, removed)
        return self._interests.update(origin, added, removed)

    def set_neighbours(self, names: Iterable[str]) -> Mapping[str, Delta]:
        """As `Interests.set_neighbours`."""
        names = tuple(names)
        for name in self._neighbours:
            if name not in names:
                self._table.set(name, [], sorted(self._table.entries(name)))
        self._neighbours = names
        return self._interests.set_neighbours(names)

    def told(self, neighbour: str) -> frozenset[str]:
        """As `Interests.told`."""
        return self._interests.told(neighbour)

    def entries(self, origin: str) -> frozenset[str]:
        """As of the protocol."""
        return self._interests.entries(origin)

    def from_scratch(self) -> Mapping[str, frozenset[str]]:
        """As `Interests.from_scratch`."""
        return self._interests.from_scratch()

    def route(self, bodies: Sequence[bytes]) -> list[frozenset[str]]:
        """As `Interests.route`."""
        return self._table.route(list(bodies))

    def decisions(self, size: int) -> Decisions | None:
        """As `Interests.decisions`."""
        return self._table.decisions(size)


class XmlProfiles:
    """`pathcast.overlay.content.Profiles`: the local plan, exact.

    Args:
        engine: As for `QueryIndex`.
        limits: What one message may cost.
    """

    def __init__(self, engine: str | None = None, limits: Limits | None = None) -> None:
        self._broker = LocalBroker(engine=engine, limits=limits)
        self._is_native = self._broker.engine != "reference"
        self._names: dict[str, None] = {}

    def entries(self, profile: Profile) -> tuple[str, ...]:
        """As of the protocol."""
        return _entries(profile, self._is_native)

    def add(self, subscription: str, profile: Profile) -> None:
        """As `Profiles.add`."""
        asked = Subscription(
            subscription, subscription, profile.query, profile.deliver, dict(profile.namespaces)
        )
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
        batch = self._broker.process_batch(list(bodies))
        names, numbers = batch.subscription_ids, batch.numbers
        found: list[dict[str, Results | Verdict]] = [{} for _ in bodies]
        rows, places = numbers["row"].to_pylist(), numbers["subscription"].to_pylist()
        fragments = numbers["fragment"].to_pylist()
        for row, place, fragment in zip(rows, places, fragments, strict=True):
            given = found[row].get(names[place], ())
            assert isinstance(given, tuple)
            found[row][names[place]] = given if fragment is None else (*given, fragment)
        for each in batch.verdicts.to_pylist():
            found[each["row"]][each["subscription_id"]] = Verdict(each["code"], each["message"])
        for row, error in batch.refusals:
            found[row] = dict.fromkeys(self._names, Verdict(error.code, error.message))
        return [dict(sorted(one.items())) for one in found]


@lru_cache(maxsize=100_000)
def _entries(profile: Profile, is_native: bool) -> tuple[str, ...]:
    """Popular profiles are asked for at many hosts, and again when a broker starts.

    Cost: some microseconds for a path whose conditions are about values, of which the kernel says
    what `disjuncts_of` would; else as `disjuncts_of`.
    """
    if is_native:
        from pathcast.kernel import canonical_form

        text = canonical_form(profile.query, dict(profile.namespaces))
        if text is not None and is_linear(text):
            return (text,)
    return disjuncts_of(profile.query, dict(profile.namespaces), profile.deliver)
