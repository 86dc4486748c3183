"""The placement of profiles: made of what is known, measured, and given to brokers.

All of it is a function of the profiles, of the schemas of the sources and of a sample of their
messages. A placement is *measured* by the share of the profiles that are in the partitions which a
message goes to; it has drifted by as much as that share is above the share with a placement made
now. `PlacementSettings.drift_max` is how much is put up with.

Example:
    >>> texts = [f"/order[@to = '{city}']" for city in ("Bern", "Graz", "Linz", "Oslo")]
    >>> def asked(texts): return profiles_population(
    ...     Subscription(f"p{n}", "ann", text) for n, text in enumerate(texts))
    >>> sample = [b"<order to='Linz' by='ann'/>", b"<order to='Bern' by='bob'/>"]
    >>> placement = placement_for(asked(texts), [], sample, 4)
    >>> [str(each.place) for each in placement.patterns]
    ['/order/@to']
    >>> others = asked([f"/order[@by = '{name}']" for name in ("ann", "bob", "eve", "joe")])
    >>> measured(placement, others, sample).visited
    1.0
    >>> measured(placement_for(others, [], sample, 4), others, sample).visited
    0.25

Source: 001, 4.4. The paper leaves the maintenance of partitions and their mapping to brokers open.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from pathcast.errors import PathcastError, StoreError
from pathcast.model import Subscription
from pathcast.overlay.schemas import occurrences_of
from pathcast.partition import ExclusivenessPattern, PepPlacement, ValueKey, patterns_by_schema
from pathcast.query import NativePlace, Population, place_of
from pathcast.registry import Registry
from pathcast.schema import PathOccurrences
from pathcast.store import BrokerRecord

PLACEMENT: Final = "hosts"
"""Id of the placement of profiles in the store."""

PROFILES_MIN: Final = 16
"""Below so many profiles, location alone says where they are hosted."""

PROFILES_MAX: Final = 10_000
"""Profiles that a placement is made of and measured on; their ids are digests, so the first are a
random sample."""

FILLED: Final = 1.1
"""A broker keeps partitions that it has profiles of up to so many times its share of the whole."""


class _KeptPlacement(msgspec.Struct, frozen=True, array_like=True):
    """A placement in a `PlacementRecord`."""

    patterns: list[tuple[NativePlace, int, float | None]]
    buckets: int
    borders: tuple[tuple[ValueKey, ...], ...]


@dataclass(frozen=True)
class PlacementSettings:
    """How profiles are placed by content; all nodes of the service have to say the same.

    Attributes:
        partitions: K; there is one more, for profiles without any pattern.
        region_levels: Levels of a location that name a region; 0 for one region.
        review_seconds: How often the placement is measured, if something has changed.
        drift_max: It is made anew if a message visits this share of the profiles more than it would
            with one that is made now.
    """

    partitions: int = 100
    region_levels: int = 0
    review_seconds: float = 60.0
    drift_max: float = 0.05

    def region(self, location: str) -> tuple[str, ...]:
        """The region of a location."""
        return tuple(location.split("/")[: self.region_levels])


@dataclass(frozen=True, slots=True)
class PlacementMeasure:
    """How good a placement is for some profiles.

    Attributes:
        unplaced: Share of the profiles that have none of its patterns.
        touched: Partitions that a message goes to, on average.
        visited: Share of the profiles that are in these.
    """

    unplaced: float
    touched: float
    visited: float


def written(placement: PepPlacement) -> bytes:
    """Patterns, buckets and borders, for `read_placement`."""
    patterns = [(each.place.to_native(), each.queries, each.rate) for each in placement.patterns]
    return msgspec.msgpack.encode(_KeptPlacement(patterns, placement.buckets, placement.borders))


def read_placement(content: bytes) -> PepPlacement:
    """The placement that `written` wrote.

    Raises:
        StoreError: It did not ("store.damaged").
    """
    try:
        kept = msgspec.msgpack.decode(content, type=_KeptPlacement)
        patterns = [
            ExclusivenessPattern(place_of(place), queries, rate)
            for place, queries, rate in kept.patterns
        ]
    except (msgspec.DecodeError, IndexError) as error:
        raise StoreError("store.damaged", url="placement", reason=str(error)) from None
    return PepPlacement(tuple(patterns), kept.buckets, kept.borders)


def profiles_population(subscriptions: Iterable[Subscription]) -> Population:
    """The population of profiles; one that cannot be read (any more) is left out.

    Cost: a compilation of each.
    """
    registry = Registry()
    registry.add(list(subscriptions))
    return registry.population()


def population_of_one(subscription: Subscription) -> Population:
    """The population of a single profile.

    Raises:
        QuerySyntaxError: Its query is none, or is refused.

    Cost: about 1 ms.
    """
    registry = Registry()
    report = registry.add([subscription])
    for error in report.errors.values():
        raise error
    return registry.population()


def schemas_of(texts: Iterable[str]) -> list[PathOccurrences]:
    """How often paths occur in the messages of sources with these schemas; no schema says nothing.

    One that cannot be read (any more) is left out.
    """
    found = []
    for text in sorted(set(texts)):
        try:
            found += occurrences_of(text)
        except PathcastError:
            continue
    return found


def placement_for(
    population: Population,
    schemas: Sequence[PathOccurrences],
    sample: Sequence[bytes],
    partitions: int,
) -> PepPlacement:
    """The placement for profiles.

    Args:
        population: What they ask for.
        schemas: Of the sources: without a sample they say what a message has once.
        sample: Messages: patterns are those with which these visit few profiles. May be empty.
        partitions: How many.
    """
    if sample:
        return PepPlacement.of(population, partitions, sample=list(sample))
    patterns = patterns_by_schema(population, schemas)
    return PepPlacement.of(population, partitions, patterns=patterns)


def measured(
    placement: PepPlacement, population: Population, sample: Sequence[bytes]
) -> PlacementMeasure:
    """How many partitions and profiles a message visits.

    Args:
        placement: The placement.
        population: The profiles.
        sample: Messages; if empty, one value a pattern is taken, as profiles ask for them.
    """
    placed = placement.place(population)
    shares = np.bincount(placed, minlength=placement.partitions) / max(1, len(population))
    unplaced = float(shares[placement.dont_care])
    if sample:
        lists = placement.touched(list(sample)).partitions
        numbers = lists.values.to_numpy()
        numbers = numbers[shares[numbers] > 0]
        count = max(1, len(sample))
        return PlacementMeasure(
            unplaced, len(numbers) / count, float(shares[numbers].sum()) / count
        )
    touched, visited = float(unplaced > 0), unplaced
    for number in placement.patterns_of(population):
        if len(number):
            touched += 1
            visited += float(shares[placed[number]].mean())
    return PlacementMeasure(unplaced, touched, min(1.0, visited))


def given_partitions(
    placement: PepPlacement,
    population: Population,
    hosts: Mapping[str, str],
    brokers: Iterable[BrokerRecord],
    settings: PlacementSettings,
) -> list[BrokerRecord]:
    """Brokers with the partitions of a placement: evenly, and so that few profiles move.

    In each region the partitions are given from the largest on: to the broker that hosts most of
    its profiles, if that has room in its share of the whole, else to the one that has least of its
    share.

    Args:
        placement: The placement.
        population: Of some of the profiles.
        hosts: Id of a profile -> id of its host.
        brokers: All.
        settings: How profiles are placed.

    Returns:
        The brokers that have other partitions than before.
    """
    regions: dict[tuple[str, ...], list[BrokerRecord]] = defaultdict(list)
    changed: list[BrokerRecord] = []
    for broker in sorted(brokers, key=lambda each: each.id):
        if broker.state == "active" and broker.profiles_max:
            regions[settings.region(broker.location)].append(broker)
        elif broker.partitions:
            changed.append(msgspec.structs.replace(broker, partitions=()))
    placed = placement.place(population).tolist()
    at = [(part, hosts.get(id, "")) for id, part in zip(population.query_ids, placed, strict=True)]
    for members in regions.values():
        names = {each.id for each in members}
        counts: dict[int, Counter[str]] = defaultdict(Counter)
        for partition, host in at:
            if partition != placement.dont_care and host in names:
                counts[partition][host] += 1
        given = _given(counts, members)
        for broker in members:
            partitions = tuple(sorted(given[broker.id]))
            if partitions != broker.partitions:
                changed.append(msgspec.structs.replace(broker, partitions=partitions))
    return changed


def _given(
    counts: Mapping[int, Counter[str]], members: Sequence[BrokerRecord]
) -> Mapping[str, list[int]]:
    """The partitions of each broker of a region."""
    total = sum(each.total() for each in counts.values())
    room = sum(each.profiles_max for each in members)
    share = {each.id: total * each.profiles_max / room for each in members}
    load = dict.fromkeys(share, 0)
    given: dict[str, list[int]] = {name: [] for name in share}
    for partition in sorted(counts, key=lambda each: (-counts[each].total(), each)):
        here = counts[partition]
        size = here.total()
        fitting = [n for n in share if here[n] and load[n] + size <= FILLED * share[n]]
        keeper = max(fitting, key=lambda n: (here[n], n), default=None)
        owner = keeper or min(share, key=lambda n: ((load[n] + size) / share[n], n))
        given[owner].append(partition)
        load[owner] += size
    return given
