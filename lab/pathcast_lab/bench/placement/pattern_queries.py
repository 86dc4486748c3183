"""Figure 9: queries over ten patterns, placed at random and by PEP, and messages that repeat.

Example:
    >>> from random import Random
    >>> from pathcast_lab.bench.placement.definition import PatternParameters
    >>> small = PatternParameters(queries=2, patterns=3, values=9)
    >>> [query.text for query in pattern_queries(small, Random(1))]
    ['/m[p0/@v = 5][p2/@v = 2]', '/m[p1/@v = 8][p2/@v = 7]']
    >>> pattern_message(small, Random(1), repeats=1, is_each=False)[:30]
    b'<m><p0 v="2"/><p1 v="5"/><p2 v'

The paper gives neither messages nor the domain of values; docs/fidelity.md says what was chosen.

Source: 001, 4.4, Figure 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np
import pyarrow as pa

from pathcast.model import Query
from pathcast.partition import PepPlacement, candidate_patterns
from pathcast.registry import Registry
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.placement.definition import (
    PatternParameters,
    PlacementFigure,
    PlacementSet,
    PlacementVariant,
)
from pathcast_lab.bench.placement.hashed import HashPlacement
from pathcast_lab.bench.placement.placing import Placement
from pathcast_lab.bench.timing import Spread
from pathcast_lab.bench.wrong_count import WrongCountError

RANDOM = "random"
PEP = "PEP"


def pattern_queries(parameters: PatternParameters, draw: Random) -> list[Query]:
    """Queries of some of the patterns each, with values, all uniformly drawn."""
    found = []
    for number in range(parameters.queries):
        chosen = sorted(draw.sample(range(parameters.patterns), parameters.of_each))
        asked = "".join(f"[p{at}/@v = {draw.randint(1, parameters.values)}]" for at in chosen)
        found.append(Query(f"q{number}", f"/m{asked}"))
    return found


def pattern_message(
    parameters: PatternParameters, draw: Random, *, repeats: int, is_each: bool
) -> bytes:
    """A message with every pattern once, and some repeated.

    Args:
        parameters: Patterns and values.
        draw: Random choices.
        repeats: Elements that repeat one that is there already.
        is_each: Whether every pattern is repeated so often, or all of them together.
    """
    names = [*range(parameters.patterns)] * (1 + repeats * is_each)
    if not is_each:
        names += draw.choices(range(parameters.patterns), k=repeats)
    values = (draw.randint(1, parameters.values) for _ in names)
    inside = "".join(f'<p{at} v="{value}"/>' for at, value in zip(names, values, strict=True))
    return f"<m>{inside}</m>".encode()


def run_patterns(
    figure: PlacementFigure, chosen: PlacementSet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """The points of Figure 9, a list of values each.

    Raises:
        WrongCountError: A query is satisfied in a partition that its message would not go to.
    """
    populations: dict[int, Standing] = {}
    for variant in figure.variants[: chosen.variants]:
        parameters = PatternParameters(queries=chosen.queries, values=variant.values)
        if variant.values not in populations:
            say(f"V={variant.values}: {parameters.queries:,} queries")
            populations = {variant.values: Standing(parameters, seed)}
        standing = populations[variant.values]
        for repeats in chosen.repeats:
            draw = Random(f"messages/{seed}/{variant.label}/{repeats}")
            messages = [
                pattern_message(parameters, draw, repeats=repeats, is_each=variant.is_each)
                for _ in range(chosen.messages)
            ]
            yield standing.point(figure, variant, repeats, messages)


class Standing:
    """Queries of the figure, with both placements."""

    def __init__(self, parameters: PatternParameters, seed: int) -> None:
        self._parameters = parameters
        index = Registry()
        index.add(pattern_queries(parameters, Random(f"queries/{seed}")))
        snapshot = index.freeze()
        population = snapshot.population()
        # All patterns, as the paper says; one of ten could be spared, as each query has two.
        patterns = candidate_patterns(population)
        self._matcher = snapshot
        self._placements: dict[str, Placement] = {
            RANDOM: HashPlacement(parameters.partitions, seed),
            PEP: PepPlacement.of(population, parameters.partitions, patterns=patterns, seed=seed),
        }
        self._placed = {
            name: placement.place(population) for name, placement in self._placements.items()
        }

    def point(
        self,
        figure: PlacementFigure,
        variant: PlacementVariant,
        repeats: int,
        messages: Sequence[bytes],
    ) -> list[Value]:
        """Both placements on the same messages."""
        matches = self._matcher.match(pa.array(messages)).matches
        values = []
        count = self._parameters.partitions
        for series, placement in self._placements.items():
            placed = self._placed[series]
            sizes = np.bincount(placed, minlength=placement.partitions)
            touched = placement.touched(messages).partitions
            matched, sent, concerned = [], [], []
            for found, goes_to in zip(matches, touched, strict=True):
                partitions = np.unique(placed[found.values.to_numpy()])
                goes = goes_to.values.to_numpy()
                if not np.isin(partitions, goes).all():
                    raise WrongCountError(
                        case=f"{figure.caption}, {series}: partitions with a match",
                        found=int(np.isin(partitions, goes).sum()),
                        expected=len(partitions),
                        oracle="one index",
                    )
                matched.append(100 * len(partitions) / count)
                own = goes[goes != placement.dont_care] if placement.dont_care else goes
                sent.append(100 * len(own) / count)
                concerned.append(100 * sizes[partitions].sum() / sizes.sum())
            place = Place(
                figure.name, variant.label, series, float(repeats), self._parameters.queries
            )
            values += [
                place.value("partitions matched", "%", _mean(matched)),
                place.value("partitions sent to", "%", _mean(sent)),
                place.value("queries in them", "%", _mean(concerned)),
            ]
        return values


def _mean(shares: Sequence[float]) -> Spread:
    """The mean over messages, which are random ones, and the extremes."""
    return Spread(float(np.mean(shares)), min(shares), max(shares))
