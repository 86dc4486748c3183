"""Which broker is the root of a source, and which is the host of a profile.

Root: among brokers whose bandwidth is not taken by the sources they have, those that the expected
volume fits; of these the one of the least topological distance, then the one least loaded.

Host: by location (the nearest broker with room), by content (the broker that has the partition
which the profile is placed in), or both (likewise, among the brokers of the user's region).

The mapping of partitions to brokers: a partition belongs to the active broker that lists it; with a
placement all partitions that have profiles are given (`placing.given_partitions`), and one that
nobody lists is given, when its first profile comes, to the broker that has the fewest partitions
for the profiles that it may host. Of a broker that is gone the partitions are nobody's again. A
profile of the don't-care partition, which every message goes to, and one whose broker is full go to
the nearest with room.

Locations are names from the widest to the narrowest, "eu/ch/bern"; their distance is the number of
levels that they do not share.

Example:
    >>> distance("eu/ch/bern", "eu/ch/basel"), distance("eu/ch", "us"), distance("eu", "eu")
    (2, 3, 0)

Source: 001, 3.1 and 4.4. The paper names the criteria and leaves the mapping open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from pathcast.partition import PepPlacement
from pathcast.query import Population
from pathcast.store import BrokerRecord


def distance(one: str, other: str) -> int:
    """Levels of two locations that they do not share."""
    left, right = ([part for part in each.split("/") if part] for each in (one, other))
    shared = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        shared += 1
    return len(left) + len(right) - 2 * shared


def root_for(
    brokers: Iterable[BrokerRecord], volumes: Mapping[str, float], location: str, volume: float
) -> BrokerRecord | None:
    """The root broker of a source; None if none has bandwidth for it.

    Args:
        brokers: All.
        volumes: Id of a broker -> bytes a second expected of the sources that it is the root of.
        location: Of the source.
        volume: Bytes a second expected of it.

    Example:
        >>> near, far = BrokerRecord("a", "", "eu/ch", 1e6, 0), BrokerRecord("b", "", "us", 1e9, 0)
        >>> root_for([near, far], {}, "eu/ch/bern", 1e5).id
        'a'
        >>> root_for([near, far], {"a": 9.5e5}, "eu/ch/bern", 1e5).id
        'b'
    """
    fitting = [
        broker
        for broker in brokers
        if broker.state == "active" and volumes.get(broker.id, 0.0) + volume <= broker.bandwidth
    ]

    def order(broker: BrokerRecord) -> tuple[float, float, str]:
        used = (volumes.get(broker.id, 0.0) + volume) / (broker.bandwidth or 1.0)
        return distance(broker.location, location), used, broker.id

    return min(fitting, key=order, default=None)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The host of a profile.

    Attributes:
        broker: As it is from now on.
        is_changed: Whether it was given a partition.
    """

    broker: BrokerRecord
    is_changed: bool = False


@dataclass(frozen=True)
class Nearest:
    """By location."""

    def host(
        self,
        population: Population,
        location: str,
        brokers: Mapping[str, BrokerRecord],
        hosted: Mapping[str, int],
    ) -> Chosen | None:
        """The nearest with room; of several, the one least full; None if no broker has room.

        Args:
            population: What the profile asks for.
            location: Of the user.
            brokers: All, by id.
            hosted: Id of a broker -> profiles that it hosts.
        """

        def order(broker: BrokerRecord) -> tuple[float, float, str]:
            full = hosted.get(broker.id, 0) / broker.profiles_max
            return distance(broker.location, location), full, broker.id

        found = min(with_room(brokers.values(), hosted), key=order, default=None)
        return None if found is None else Chosen(found)


@dataclass(frozen=True)
class ByContent:
    """By content, of all brokers or of those of the user's region.

    Attributes:
        placement: Says which partition a profile is in; PEP, usually.
        region_levels: Levels of a location that name a region; 0 for one region.
    """

    placement: PepPlacement
    region_levels: int = 0

    def host(
        self,
        population: Population,
        location: str,
        brokers: Mapping[str, BrokerRecord],
        hosted: Mapping[str, int],
    ) -> Chosen | None:
        """The broker of its partition, see the module."""
        partition = int(self.placement.place(population)[0])
        if partition != self.placement.dont_care:
            active = [broker for broker in brokers.values() if broker.state == "active"]
            region = [broker for broker in active if self._is_near(broker, location)] or active
            owners = [broker for broker in region if partition in broker.partitions]
            if owners and hosted.get(owners[0].id, 0) < owners[0].profiles_max:
                return Chosen(owners[0])
            candidates = with_room(region, hosted)
            if not owners and candidates:
                owner = min(
                    candidates, key=lambda each: (len(each.partitions) / each.profiles_max, each.id)
                )
                partitions = tuple(sorted((*owner.partitions, partition)))
                return Chosen(msgspec.structs.replace(owner, partitions=partitions), True)
        return Nearest().host(population, location, brokers, hosted)

    def homes(
        self,
        population: Population,
        hosts: Mapping[str, str],
        brokers: Mapping[str, BrokerRecord],
        hosted: Mapping[str, int],
    ) -> dict[str, str]:
        """Where profiles are to go that are elsewhere, as far as there is room.

        Args:
            population: What they ask for.
            hosts: Id of a profile -> id of its host.
            brokers: All, by id.
            hosted: As of `host`.

        Returns:
            Id of a profile -> the broker of the user's region that has its partition; where the
            user is was not kept, and the host was near.
        """
        owners: dict[int, list[BrokerRecord]] = {}
        for broker in brokers.values():
            for partition in broker.partitions if broker.state == "active" else ():
                owners.setdefault(partition, []).append(broker)
        coming: Counter[str] = Counter()
        homes: dict[str, str] = {}
        placed = self.placement.place(population).tolist()
        for id, partition in zip(population.query_ids, placed, strict=True):
            host = brokers.get(hosts[id])
            if host is None:
                continue
            near = [one for one in owners.get(partition, ()) if self._is_near(one, host.location)]
            if not near or host.id in [one.id for one in near]:
                continue
            owner = near[0]
            if hosted.get(owner.id, 0) + coming[owner.id] < owner.profiles_max:
                coming[owner.id] += 1
                homes[id] = owner.id
        return homes

    def _is_near(self, broker: BrokerRecord, location: str) -> bool:
        levels = self.region_levels
        return broker.location.split("/")[:levels] == location.split("/")[:levels]


def with_room(brokers: Iterable[BrokerRecord], hosted: Mapping[str, int]) -> list[BrokerRecord]:
    """The brokers that may host one profile more."""
    return [
        broker
        for broker in brokers
        if broker.state == "active" and hosted.get(broker.id, 0) < broker.profiles_max
    ]


HostChoice: TypeAlias = Nearest | ByContent
"""Chooses hosts."""
