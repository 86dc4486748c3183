"""Millions of profiles on a thousand brokers: classes of equal ones, and how many are where.

What a table says and what a link carries depends on which distinct profiles stand behind it, not
on how many equal ones do. So each distinct profile is matched once, and ten million cost what the
distinct ones cost, besides the drawing of where they live.

Users live at brokers. A profile is hosted *at random* or *by location*, at the broker where its
user lives, or *by content*, at the broker that has its partition (`overlay.host_choice`). By
location, four in five of those who ask for the same live in one region (for quotes: for the same
exchange); at random, anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from pathcast.model import Query
from pathcast.overlay.generalisation import Sample
from pathcast.overlay.host_choice import ByContent, HostChoice
from pathcast.partition import PepPlacement
from pathcast.registry import Registry
from pathcast.store.records import BrokerRecord
from pathcast_lab.bench.overlay.byte_budgets import ENTRY_BYTES
from pathcast_lab.bench.overlay.definition import Where
from pathcast_lab.bench.overlay.inputs import entries_of, groups_of, profiles_of
from pathcast_lab.bench.overlay.topology import Tree, set_of

AT_HOME: Final = 0.8
"""Of those who ask for the same, how many live in one region, where location matters."""

PEP_SAMPLE: Final = 50
"""Messages that patterns are chosen by."""


@dataclass(frozen=True)
class Classes:
    """Distinct profiles of a workload.

    Attributes:
        texts: The profiles.
        frequency: How often each is drawn, in all 1.
        groups: A number for each profile, equal for those that are popular in the same region.
        entries: Distinct entries of all of them.
        entry_of: Pairs: number of a profile, number of an entry that it has.
    """

    texts: list[str]
    frequency: np.ndarray
    groups: np.ndarray
    entries: list[str]
    entry_of: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, workload: str, profiles: int, seed: int) -> Classes:
        """Those among so many profiles, which say how popular each is.

        Raises:
            ConfigError: The DTD of NITF is not at hand.

        Cost: about 1 ms a distinct profile.
        """
        drawn = Counter(profiles_of(workload, profiles, seed))
        numbers: dict[str, int] = {}
        pairs = [
            (at, numbers.setdefault(entry, len(numbers)))
            for at, text in enumerate(drawn)
            for entry in entries_of(workload, text)
        ]
        of_profile, of_entry = (np.array(column) for column in zip(*pairs, strict=True))
        counts = np.array(list(drawn.values()), dtype=float)
        groups = np.array(groups_of(workload, list(drawn)))
        return cls(
            list(drawn), counts / counts.sum(), groups, list(numbers), (of_profile, of_entry)
        )

    @cached_property
    def entry_bytes(self) -> np.ndarray:
        """Bytes of each entry in a table."""
        return np.array([ENTRY_BYTES + len(entry.encode()) for entry in self.entries], dtype=float)

    def entry_sets(self, profiles: np.ndarray) -> list[int]:
        """For each broker its entries.

        Args:
            profiles: `(brokers, profiles)`, whether a broker hosts one.
        """
        of_profile, of_entry = self.entry_of
        found = []
        for own in profiles:
            has = np.zeros(len(self.entries), dtype=bool)
            has[of_entry[own[of_profile]]] = True
            found.append(set_of(has))
        return found


@dataclass(frozen=True)
class Stream:
    """Messages, where they enter, and what holds of them.

    Attributes:
        sample: The messages.
        sizes: Bytes of each.
        rooted: For each broker the messages that it is the root of.
    """

    sample: Sample
    sizes: np.ndarray
    rooted: list[int]

    @classmethod
    def of(cls, messages: Sequence[bytes], brokers: int, draw: np.random.Generator) -> Stream:
        """Messages that enter anywhere."""
        roots = draw.integers(0, brokers, len(messages))
        rooted = [set_of(roots == at) for at in range(brokers)]
        return cls(Sample(messages), np.array(list(map(len, messages)), dtype=float), rooted)

    def wanted(self, entries: Sequence[str], own: Sequence[int]) -> list[int]:
        """For each broker the messages that one of its entries holds of.

        Args:
            entries: All entries; those that are new are read.
            own: For each broker the set of its entries, by number.
        """
        self.sample.read(entries)
        rows = [self.sample.rows(entry) for entry in entries]
        alive = [(1 << at, row) for at, row in enumerate(rows) if row]
        found = []
        for mine in own:
            wants = 0
            for bit, row in alive:
                if mine & bit:
                    wants |= row
            found.append(wants)
        return found


class Population:
    """Profiles on brokers.

    Args:
        classes: The distinct ones.
        count: Profiles.
        tree: The brokers.
        draw: Random choices.
    """

    def __init__(self, classes: Classes, count: int, tree: Tree, draw: np.random.Generator) -> None:
        self._classes, self._tree, self._draw = classes, tree, draw
        self._counts = draw.multinomial(count, classes.frequency)

    def hosted(self, where: Where, partition_hosts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which broker hosts which profiles, and how many each.

        Args:
            where: How hosts are chosen.
            partition_hosts: For each distinct profile the host of its partition; -1 for none.

        Returns:
            `(brokers, profiles)` truth values, and the number of profiles of each broker.
        """
        profile = np.repeat(np.arange(len(self._counts)), self._counts)
        brokers = len(self._tree)
        at = self._draw.integers(0, brokers, len(profile))
        if where == "location":
            at = self._at_home(profile, at)
        elif where == "content":
            own = partition_hosts[profile]
            at = np.where(own >= 0, own, at)
        has = np.zeros((brokers, len(self._counts)), dtype=bool)
        has[at, profile] = True
        return has, np.bincount(at, minlength=brokers)

    def _at_home(self, profile: np.ndarray, anywhere: np.ndarray) -> np.ndarray:
        """Brokers of the region that a profile is popular in, for most; anywhere for the rest."""
        regions = np.array(self._tree.regions)
        order = np.argsort(regions, kind="stable")
        # Groups are spread over brokers evenly, and with them over regions by their sizes.
        groups = self._classes.groups
        middle = (groups + 0.5) / (groups.max() + 1) * len(regions)
        home = regions[order][middle.astype(int)][profile]
        sizes = np.bincount(regions)
        starts = np.cumsum(sizes) - sizes
        inside = (self._draw.random(len(profile)) * sizes[home]).astype(int)
        stays = self._draw.random(len(profile)) < AT_HOME
        return np.where(stays, order[starts[home] + inside], anywhere)


def brokers_of(tree: Tree) -> dict[str, BrokerRecord]:
    """The brokers of a tree as the registration service knows them, with room for all profiles."""
    return {
        f"b{at:04d}": BrokerRecord(f"b{at:04d}", "", location_of(tree, at), 0.0, 1 << 40)
        for at in range(len(tree))
    }


def location_of(tree: Tree, broker: int) -> str:
    """Where a broker is."""
    return f"r{tree.regions[broker]:02d}/b{broker:04d}"


def chosen_hosts(
    choice: HostChoice, tree: Tree, queries: Sequence[Query], homes: np.ndarray, alike: np.ndarray
) -> np.ndarray:
    """The host of each profile.

    Args:
        choice: How hosts are chosen.
        tree: The brokers.
        queries: The profiles.
        homes: The broker where the user of each lives.
        alike: A number for each profile: equal for those that the choice does not tell apart, of
            which only the first is asked for.

    Cost: a look at every broker for each number.
    """
    _, first, number = np.unique(alike, return_index=True, return_inverse=True)
    brokers = brokers_of(tree)
    hosts = np.zeros(len(first), dtype=int)
    for at in np.argsort(first, kind="stable").tolist():
        query, home = queries[first[at]], int(homes[first[at]])
        index = Registry()
        index.add([query])
        found = choice.host(index.population(), location_of(tree, home), brokers, {})
        assert found is not None
        brokers[found.broker.id] = found.broker
        hosts[at] = int(found.broker.id[1:])
    return hosts[number]


def partition_hosts(classes: Classes, tree: Tree, messages: Sequence[bytes]) -> np.ndarray:
    """For each distinct profile the broker that has its partition by PEP; -1 for none.

    There are as many partitions as brokers.
    """
    index = Registry()
    index.add(Query(text, text) for text in classes.texts)
    population = index.population()
    placement = PepPlacement.of(population, len(tree), sample=list(messages[:PEP_SAMPLE]))
    by_text = dict(zip(population.query_ids, placement.place(population).tolist(), strict=True))
    placed = np.array([by_text[text] for text in classes.texts])
    found = np.full(len(placed), -1)
    cares = np.flatnonzero(placed != placement.dont_care)
    found[cares] = chosen_hosts(
        ByContent(placement),
        tree,
        [Query(classes.texts[at], classes.texts[at]) for at in cares],
        np.zeros(len(cares), dtype=int),
        placed[cares],
    )
    return found
