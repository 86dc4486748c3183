"""XML messages and profiles in XPath and XQuery, as the protocol sees them.

Example:
    >>> content = xml_content(engine="reference")
    >>> profiles = content.profiles()
    >>> profiles.entries("/order[to = 'Bern']")
    ("/order/to[.='Bern']",)
    >>> profiles.add("s1", "/order[to = 'Bern']")
    >>> profiles.matching([b"<order><to>Bern</to></order>", b"<order/>", b"<order>"])
    [['s1'], [], []]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache

from pathcast.customize import Broker
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.overlay.content import Content
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.interest import EXACT, Delta, Interests, Policy
from pathcast.overlay.table import Table

__all__ = ["XmlInterests", "XmlProfiles", "xml_content"]


class XmlInterests:
    """`pathcast.overlay.content.Interests`: what is told, and the table that messages go by."""

    def __init__(self, policy: Policy, engine: str | None, limits: Limits | None) -> None:
        self._told = Interests(policy)
        self._table = Table(engine=engine, limits=limits)
        self._neighbours: frozenset[str] = frozenset()

    def update(
        self, origin: str, added: Iterable[str], removed: Iterable[str]
    ) -> Mapping[str, Delta]:
        """See there. What cannot be read is refused before anything changes."""
        added, removed = list(added), list(removed)
        self._table.set(origin, added, removed)
        return self._told.update(origin, added, removed)

    def set_neighbours(self, names: Iterable[str]) -> Mapping[str, Delta]:
        """See there."""
        now = frozenset(names)
        for lost in sorted(self._neighbours - now):
            self._table.set(lost, (), self._table.entries(lost))
        self._neighbours = now
        return self._told.set_neighbours(now)

    def told(self, neighbour: str) -> frozenset[str]:
        """See there."""
        return self._told.told(neighbour)

    def entries(self, origin: str) -> frozenset[str]:
        """See there."""
        return self._told.entries(origin)

    def from_scratch(self) -> Mapping[str, frozenset[str]]:
        """See there."""
        return self._told.from_scratch()

    def route(self, bodies: Sequence[bytes]) -> Sequence[Set[str]]:
        """See there. A message that the door refuses is wanted by nobody."""
        return self._table.route(list(bodies))

    def __len__(self) -> int:
        """Distinct entries."""
        return len(self._table)


class XmlProfiles:
    """`pathcast.overlay.content.Profiles`: the exact answer of one host."""

    def __init__(self, engine: str | None, limits: Limits | None) -> None:
        self._broker = Broker(engine, limits, threads=1)
        # Subscribers share texts, and a text is asked about when it comes and when it goes.
        self._entries = lru_cache(65_536)(disjuncts_of)

    def entries(self, profile: str) -> tuple[str, ...]:
        """See there."""
        return self._entries(profile)

    def add(self, subscription: str, profile: str) -> None:
        """See there.

        Raises:
            PathcastError: It is no profile.
        """
        report = self._broker.subscribe(Subscription(subscription, "", profile, "ids"))
        for error in report.errors.values():
            raise error

    def remove(self, subscription: str) -> None:
        """See there."""
        self._broker.unsubscribe(subscription)

    def matching(self, bodies: Sequence[bytes]) -> Sequence[Sequence[str]]:
        """See there. A message that the door refuses satisfies none."""
        batch = self._broker.process_batch(list(bodies))
        found: list[set[str]] = [set() for _ in bodies]
        numbers, names = batch.numbers, batch.subscription_ids
        rows, places = numbers.column("row").to_pylist(), numbers.column("subscription").to_pylist()
        for row, place in zip(rows, places, strict=True):
            found[row].add(names[place])
        return [sorted(each) for each in found]


def xml_content(
    policy: Policy = EXACT, *, engine: str | None = None, limits: Limits | None = None
) -> Content:
    """The language of XML messages and their profiles.

    Args:
        policy: How entries are made fewer on their way.
        engine: As for `QueryIndex`.
        limits: What one message may cost.
    """
    return Content(
        lambda: XmlInterests(policy, engine, limits), lambda: XmlProfiles(engine, limits)
    )
