"""Content in XML: profiles in XPath and XQuery, entries that are disjuncts of paths.

Example:
    >>> content = xml_content()
    >>> from pathcast.overlay.content import DeliveryProfile
    >>> tables, profiles = content.interests(), content.profiles()
    >>> _ = tables.set_neighbours(["east"])
    >>> _ = tables.update("east", profiles.entries(DeliveryProfile("//item[@sku='A7']")), [])
    >>> [sorted(names) for names in tables.route([b"<item sku='A7'/>", b"<item sku='B1'/>"])]
    [['east'], []]
    >>> text = "for $i in //item where $i/price < 3 return $i/price"
    >>> profiles.add("s", DeliveryProfile(text, "fragment"))
    >>> profiles.answers([b"<item><price>2</price></item>", b"<item/>"])
    [{'s': (b'<price>2</price>',)}, {}]

Source: 001, section 4.2.1 (Map, Collect, Aggregate) and 5 (local plan, broker queries).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pathcast.limits import Limits
from pathcast.overlay.budgeted_table import BudgetedTable
from pathcast.overlay.content import LOCAL, Content, Delta, RoutingDecision, Sent
from pathcast.overlay.cutting import LinkCuts, ToldCuts, is_cut_entry, needs_in
from pathcast.overlay.interest import Interests
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.table import Table


def xml_content(
    limits: Limits | None = None,
    *,
    covering: bool = False,
    table_entries_max: int | None = None,
    projection: bool = True,
    whole_links: Collection[str] = (),
    snapshots: Path | None = None,
) -> Content:
    """Content in XML, for brokers.

    Args:
        limits: What one message may cost; the same at all brokers of a network.
        covering: Whether neighbours are not told what something else that they are told covers.
        table_entries_max: Entries of the table of a tree, before it is made wider; None: it is
            exact.
        projection: Whether messages are restructured, and cut down to what is of use behind a link,
            where that pays. Without it nobody above does so for this broker's own profiles either.
        whole_links: Neighbours that are sent messages as they are all the same.
        snapshots: Directory where a host keeps a snapshot of its profiles; None: nowhere.
    """
    return Content(
        partial(
            XmlInterests,
            limits,
            covering=covering,
            table_entries_max=table_entries_max,
            projection=projection,
            whole_links=whole_links,
        ),
        partial(XmlProfiles, limits, projection, snapshots),
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
    """`pathcast.overlay.content.InterestTables`: what neighbours are told, and what they tell.

    Args:
        limits: What one message may cost.
        covering: As for `xml_content`.
        table_entries_max: As for `xml_content`.
        projection: As for `xml_content`.
        whole_links: As for `xml_content`.

    Attributes:
        budgeted: The table, if it has a budget.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        covering: bool = False,
        table_entries_max: int | None = None,
        projection: bool = True,
        whole_links: Collection[str] = (),
    ) -> None:
        self._interests = Interests(covering=covering)
        self.budgeted: BudgetedTable | None = None
        if table_entries_max is not None:
            self.budgeted = BudgetedTable(table_entries_max, limits=limits)
        self._table = Table(limits=limits) if self.budgeted is None else self.budgeted
        self._told_cuts = ToldCuts(whole_links)
        self._cuts = LinkCuts(whole_links, limits) if projection else None
        self._neighbours: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Distinct entries of the table."""
        return len(self._table)

    def check(self, entries: Iterable[str]) -> None:
        """Implement `InterestTables.check`."""
        paths, cuts = _split(entries)
        self._table.check(paths)
        for entry in cuts:
            needs_in(entry)
        if self._cuts is not None:
            self._cuts.check(cuts)

    def update(
        self, origin: str, added: Iterable[str], removed: Iterable[str]
    ) -> Mapping[str, Delta]:
        """Implement `InterestTables.update`."""
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
        """Implement `InterestTables.set_neighbours`."""
        names = tuple(names)
        for name in self._neighbours:
            if name not in names:
                self._table.set(name, [], sorted(self._interests.entries(name)))
                if self._cuts is not None:
                    self._cuts.forget(name)
        self._neighbours = names
        return _joined(self._interests.set_neighbours(names), self._told_cuts.set_neighbours(names))

    def told(self, neighbour: str) -> frozenset[str]:
        """Implement `InterestTables.told`."""
        return self._interests.told(neighbour) | self._told_cuts.told(neighbour)

    def entries(self, origin: str) -> frozenset[str]:
        """Implement `InterestTables.entries`."""
        return self._interests.entries(origin) | self._told_cuts.entries(origin)

    def held(self, neighbour: str) -> frozenset[str]:
        """Implement `InterestTables.held`."""
        return self._table.entries(neighbour)

    def route(self, bodies: Sequence[bytes]) -> list[frozenset[str]]:
        """Implement `InterestTables.route`."""
        return self._table.route(list(bodies))

    def cut(
        self,
        bodies: Sequence[bytes],
        wanted: Mapping[str, Sequence[int]],
        done: Sequence[int] = (),
    ) -> Mapping[str, Sequence[Sent | None]]:
        """Implement `InterestTables.cut`."""
        if self._cuts is not None:
            return self._cuts.cut(bodies, wanted, done)
        came = [
            Sent(body, steps) for body, steps in zip(bodies, done or [0] * len(bodies), strict=True)
        ]
        return {name: [came[row] for row in rows] for name, rows in wanted.items()}

    @property
    def saved(self) -> Mapping[str, int]:
        """Neighbour -> bytes that were cut out of what it was sent."""
        return {} if self._cuts is None else self._cuts.saved

    def is_cutting(self, neighbour: str) -> bool:
        """Implement `InterestTables.is_cutting`."""
        return self._cuts is not None and self._cuts.is_cutting(neighbour)

    def decisions(self, size: int) -> RoutingDecision | None:
        """Implement `InterestTables.decisions`."""
        return self._table.decisions(size)


def _split(entries: Iterable[str]) -> tuple[list[str], list[str]]:
    """Entries that are paths, and those about what may be cut."""
    paths: list[str] = []
    cuts: list[str] = []
    for entry in entries:
        (cuts if is_cut_entry(entry) else paths).append(entry)
    return paths, cuts


def _joined(paths: Mapping[str, Delta], cuts: Mapping[str, Delta]) -> dict[str, Delta]:
    """Merge two changes for each neighbour."""
    none = Delta()
    return {
        name: Delta(
            (*(one := paths.get(name, none)).added, *(two := cuts.get(name, none)).added),
            (*one.removed, *two.removed),
        )
        for name in sorted(paths.keys() | cuts.keys())
    }
