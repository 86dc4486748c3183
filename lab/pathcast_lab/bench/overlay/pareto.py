"""Bytes of all tables of a network against bytes that its links carry and nobody behind wants.

One policy holds for all brokers: its levels are learnt from the tables of a few links, both ways,
on messages that are not counted. Beside the curve stand covering removal, which
carries nothing in vain, and the paper's method, by which a link is told the paths that all
disjuncts behind it have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from random import Random

import numpy as np

from pathcast.overlay.covered import CoveredEntries, RankedEntry
from pathcast.overlay.generalisation import Optimiser, Sample
from pathcast.query import conjunction_of
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.budgets import (
    COMMON,
    COVERING,
    FORWARDED,
    OPTIMISED,
    TABLES,
    WRONG,
)
from pathcast_lab.bench.overlay.byte_budgets import ENTRY_BYTES, within
from pathcast_lab.bench.overlay.byte_budgets import table_bytes as entries_bytes
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.inputs import messages_of
from pathcast_lab.bench.overlay.links import flooded_bytes, table_bytes
from pathcast_lab.bench.overlay.population import Classes, Population, Stream, partition_hosts
from pathcast_lab.bench.overlay.topology import (
    Tree,
    behind,
    below,
    crossings,
    members,
    set_of,
    tree_of,
    weight,
)
from pathcast_lab.bench.wrong_count import WrongCountError

TRIED = ("powers", "begins 4", "begins 2", "begins 1", "existence", "structure", "anything")
"""Levels that the optimiser may choose; those of several paths do nothing for entries of one."""


def run_pareto(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Every workload, number of profiles and way to choose hosts.

    Raises:
        WrongCountError: A table does not let through what somebody wants.
        ConfigError: The DTD of NITF is not at hand.
    """
    for workload in figure.workloads:
        classes = Classes.of(workload, chosen.profiles, seed)
        messages = messages_of(workload, chosen.messages + chosen.sample, seed)
        learnt, counted = messages[: chosen.sample], messages[chosen.sample :]
        [(shape, fan_out)] = figure.trees
        tree = tree_of(shape, chosen.brokers[0], fan_out, Random(f"tree/{seed}"))
        stream = Stream.of(counted, len(tree), np.random.default_rng(seed))
        own = partition_hosts(classes, tree, learnt)
        for count in chosen.populations:
            population = Population(classes, count, tree, np.random.default_rng(seed + count))
            for where in figure.hosts:
                has, _ = population.hosted(where, own)
                network = NetworkTables(classes, tree, stream, classes.entry_sets(has))
                say(f"{workload}, {where}: {count:,} profiles, {len(classes.entries):,} entries")
                place = Place(figure.name, f"{workload}, {where}", "exact", 100.0, count)
                yield network.exact(place)
                links = network.some_links(chosen.links, Random(f"links/{seed}"))
                optimiser = Optimiser(links, Sample(learnt), ENTRY_BYTES, TRIED)
                exact = sum(map(entries_bytes, links))
                budgets = [int(exact * share / 100) for share in chosen.budgets]
                for share, made in zip(chosen.budgets, within(optimiser, *budgets), strict=True):
                    place = Place(figure.name, place.variant, OPTIMISED, share, count)
                    yield network.generalised(place, made)
                yield network.common(Place(figure.name, place.variant, COMMON, 0.0, count))
                yield network.uncovered(Place(figure.name, place.variant, COVERING, 0.0, count))


class NetworkTables:
    """The tables of one network.

    Args:
        classes: What entries there are.
        tree: The brokers.
        stream: The messages.
        own: For each broker the set of its entries.
    """

    def __init__(self, classes: Classes, tree: Tree, stream: Stream, own: list[int]) -> None:
        self._classes, self._tree, self._stream, self._own = classes, tree, stream, own
        self._wanted = stream.wanted(classes.entries, own)
        self._crossed = crossings(tree, self._wanted, stream.rooted)
        self._bytes = table_bytes(tree, own, classes.entry_bytes)

    def some_links(self, count: int, random: Random) -> list[list[str]]:
        """The entries behind some links, seen from both ends."""
        sets = behind(range(len(self._tree)), self._tree.parent, self._own)
        links = random.sample([at for at, _ in self._tree.links], count)
        return [
            [self._classes.entries[number] for number in self._numbers(half[at])]
            for at in links
            for half in sets
        ]

    def exact(self, place: Place) -> list[Value]:
        """Every distinct entry."""
        return self._values(place, self._bytes, self._crossed)

    def generalised(self, place: Place, made: Callable[[str], str]) -> list[Value]:
        """Each entry in the place of which another one is told."""
        numbers: dict[str, int] = {}
        told = np.array(
            [numbers.setdefault(made(each), len(numbers)) for each in self._classes.entries]
        )
        own = []
        for mine in self._own:
            has = np.zeros(len(numbers), dtype=bool)
            has[told[members(mine, len(told))]] = True
            own.append(set_of(has))
        wide = list(numbers)
        sizes = np.array([ENTRY_BYTES + len(each.encode()) for each in wide], dtype=float)
        crossed = crossings(self._tree, self._stream.wanted(wide, own), self._stream.rooted)
        return self._values(place, table_bytes(self._tree, own, sizes), crossed)

    def common(self, place: Place) -> list[Value]:
        """The paths that all disjuncts behind a link have; one entry, of any message if none."""
        paths: dict[str, int] = {}
        per_entry = []
        for entry in self._classes.entries:
            texts = [path.text for path in conjunction_of(entry).paths]
            per_entry.append(
                reduce(or_, (1 << paths.setdefault(each, len(paths)) for each in texts))
            )
        every = (1 << len(paths)) - 1
        lacking = [
            reduce(or_, (every & ~per_entry[at] for at in self._numbers(mine)), 0)
            for mine in self._own
        ]
        order = range(len(self._tree))
        down, up = behind(order, self._tree.parent, lacking)
        has = behind(order, self._tree.parent, [int(bool(mine)) for mine in self._own])
        texts = list(paths)
        inside = below(order, self._tree.parent, self._stream.rooted)
        crossed, size = [], 0
        for at, _ in self._tree.links:
            passed = []
            for lacks, is_there in ((down[at], has[0][at]), (up[at], has[1][at])):
                shared = [texts[n] for n in np.flatnonzero(members(every & ~lacks, len(texts)))]
                passed.append(self._rows_of_all(shared) if is_there else 0)
                size += is_there * (ENTRY_BYTES + len(" and ".join(shared or ["/*"]).encode()))
            crossed.append((passed[0] & ~inside[at]) | (passed[1] & inside[at]))
        return self._values(place, size, crossed)

    def uncovered(self, place: Place) -> list[Value]:
        """Entries that none of those behind the same link covers."""
        count = len(self._classes.entries)
        sets = behind(range(len(self._tree)), self._tree.parent, self._own)
        matrix = np.stack([members(each, count) for half in sets for each in half[1:]])
        links = [set_of(column) for column in matrix.T]
        numbers = {entry: at for at, entry in enumerate(self._classes.entries)}
        known = CoveredEntries()
        for entry in numbers:
            known.add(RankedEntry(entry))
        saved = 0.0
        for entry, at in numbers.items():
            covered = reduce(or_, (links[numbers[each]] for each in known.before(entry)), 0)
            saved += (links[at] & covered).bit_count() * self._classes.entry_bytes[at]
        return self._values(place, self._bytes - saved, self._crossed)

    def _numbers(self, entries: int) -> list[int]:
        found: list[int] = np.flatnonzero(members(entries, len(self._classes.entries))).tolist()
        return found

    def _rows_of_all(self, paths: Sequence[str]) -> int:
        """The messages that all of some paths hold of."""
        everything = (1 << len(self._stream.sizes)) - 1
        self._stream.sample.read(paths)
        return reduce(lambda rows, path: rows & self._stream.sample.rows(path), paths, everything)

    def _values(self, place: Place, size: float, crossed: Sequence[int]) -> list[Value]:
        kept = sum((a & b).bit_count() for a, b in zip(crossed, self._crossed, strict=True))
        if kept != (right := sum(each.bit_count() for each in self._crossed)):
            raise WrongCountError(
                case=str(place),
                found=kept,
                expected=right,
                oracle="exact tables",
            )
        all_bytes = flooded_bytes(self._tree, self._stream)
        sent = weight(crossed, self._stream.sizes)
        right_bytes = weight(self._crossed, self._stream.sizes)
        return [
            place.value("a broker", "MiB", size / len(self._tree) / (1 << 20)),
            place.value(TABLES, "%", 100 * size / self._bytes),
            place.value(WRONG, "%", 100 * (sent - right_bytes) / all_bytes),
            place.value(FORWARDED, "%", 100 * sent / all_bytes),
        ]
