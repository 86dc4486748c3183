"""Routes of a population: for each query the one thing it asks that says most of where it lies.

Exact routes (`routing.routes_of`) need every query's text; ten million of them need what an index
exports of them as columns. Of each alternative of a query one predicate is kept, as a linear path;
where it has none, its bare main path. Which one is weighed as in `routes`: what many queries of the
partition ask and few of the others do, equality before other comparisons.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> texts = ["/m[@a = 1][@b = 7]", "/m[@a = 1][@b = 8]", "/m[@a = 2][@b = 7]", "/m/c"]
    >>> report = index.register(Query(f"q{n}", text) for n, text in enumerate(texts))
    >>> snapshot, partitions = index.freeze(), {"q0": 0, "q1": 0, "q2": 1, "q3": 2}
    >>> of_queries = np.array([partitions[each] for each in snapshot.query_ids])
    >>> routes = routes_of_population(snapshot.population(), of_queries)
    >>> sorted(map(str, routes))
    ['/m/c -> 2', '/m[@a=1] -> 0', '/m[@a=2] -> 1']

Source: 001, 4.2.1 (common paths) and 4.4.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pathcast.boundary import native
from pathcast.partition.routes import ROUTE_BYTES, Routes
from pathcast.query import OPERATORS, Comparison, Operator, Population, path_to

_BARE: Final = len(OPERATORS)
"""Stands for no operator: the path itself."""

_SELECTING: Final = (Operator.EQ, Operator.STARTS_WITH)


def routes_of_population(
    population: Population,
    placed: np.ndarray,
    *,
    dont_care: int | None = None,
    budget_bytes: int | None = None,
) -> Routes:
    """Routes that are reached by every message that satisfies a query.

    Args:
        population: What the queries ask.
        placed: The partition of each.
        dont_care: The partition that `fitted` would have every message go to before others lose
            anything: where the routes cannot fit, those to it are not made.
        budget_bytes: Bytes that they have to fit later; None for any.

    Returns:
        Linear paths with one comparison or none.

    Cost: sorts of the predicates, about 1 µs each; some microseconds for each distinct route.
    """
    parts = _parts(population)
    if not len(parts):
        return Routes()
    targets = placed[parts[:, _QUERY]].astype(np.int64)
    asked, part = np.unique(parts[:, _PLACE:], axis=0, return_inverse=True)
    part = part.reshape(-1)
    kept = _best(parts, asked, part, targets, int(placed.max()) + 1)
    pairs = np.unique(np.stack([part[kept], targets[kept]], axis=1), axis=0)
    routes = Routes()
    words = placed.max() // 64 + 1
    least = len(np.unique(pairs[:, 0])) * (ROUTE_BYTES + 8 * int(words))
    if dont_care is not None and budget_bytes is not None and least > budget_bytes:
        is_given_up = pairs[:, 1] == dont_care
        if is_given_up.any():
            routes.lead_everything_to(1 << dont_care)
        pairs = pairs[~is_given_up]
    paths: dict[int, native.NormalPath] = {}
    for number, target in pairs.tolist():
        if number not in paths:
            paths[number] = _path(population, *asked[number].tolist())
        routes.add([paths[number]], target)
    return routes


_QUERY, _ALTERNATIVE, _PLACE = 0, 1, 2
"""Columns of `_parts`; operator and constant follow."""


def _parts(population: Population) -> np.ndarray:
    """Rows (query, alternative, place, operator, constant): what each alternative asks."""
    predicates, paths = population.predicates, population.paths
    compared = np.stack(
        [predicates.column(name).to_numpy().astype(np.int64) for name in predicates.schema.names],
        axis=1,
    )
    ways = np.stack(
        [paths.column(name).to_numpy().astype(np.int64) for name in paths.schema.names], axis=1
    )
    bare = np.full((len(ways), 2), [_BARE, 0], dtype=np.int64)
    return np.concatenate([compared, np.concatenate([ways, bare], axis=1)])


def _best(
    parts: np.ndarray, asked: np.ndarray, part: np.ndarray, targets: np.ndarray, count: int
) -> np.ndarray:
    """For each alternative the row of the part that is kept."""
    everywhere = np.bincount(part, minlength=len(asked))
    _, pair, here = np.unique(part * count + targets, return_inverse=True, return_counts=True)
    here = here[pair.reshape(-1)]
    worth = np.log1p(here) * here / everywhere[part]
    operators = asked[:, 1][part]
    selecting = [OPERATORS.index(each) for each in _SELECTING]
    kinds = np.where(np.isin(operators, selecting), 2, np.where(operators == _BARE, 0, 1))
    order = np.lexsort((part, worth, kinds, parts[:, _ALTERNATIVE], parts[:, _QUERY]))
    ways = parts[order][:, [_QUERY, _ALTERNATIVE]]
    is_last = np.ones(len(order), dtype=bool)
    is_last[:-1] = (ways[1:] != ways[:-1]).any(axis=1)
    kept: np.ndarray = order[is_last]
    return kept


def _path(population: Population, place: int, operator: int, constant: int) -> native.NormalPath:
    """A place and what is compared there as a path."""
    if operator == _BARE:
        return path_to(population.places[place])
    compare = Comparison(OPERATORS[operator], population.constants[constant])
    return path_to(population.places[place], compare)
