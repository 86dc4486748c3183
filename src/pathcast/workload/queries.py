"""Queries by a DTD: random walks from the root, with the paper's parameters.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> graph = parse_dtd("<!ELEMENT a (b*)><!ELEMENT b (c*)><!ELEMENT c (#PCDATA)>")
    >>> parameters = QueryParameters(count=3, depth_max=3, wildcard=0, descendant=0)
    >>> sorted(generate_queries(graph, parameters))
    ['/a', '/a/b', '/a/b/c']

Every query is a walk that the DTD allows, and each of its predicates can be true; whether all of
them can be true in one document is not checked (an element of a choice excludes the others).

Source: 003, 4.2.1 and Table 2; nested paths as in 6.4. The paper does not say how a walk ends nor
how far `//` leads: `stop_odds` and `skip_odds` are ours. Differs: where distinct queries become
hard to find the generator changes its odds (see `QueryGenerator.diversify`) instead of trying ever
more often.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from pathcast.errors import ConfigError
from pathcast.schema import ElementGraph
from pathcast.workload.parameters import QueryParameters
from pathcast.workload.predicates import PredicateWriter
from pathcast.workload.values import Draw, IntegerValues, ValueSource

MISSES_MAX = 50_000
"""Attempts in a row without a new query after which a DTD counts as exhausted."""

WALKS_MAX = 10_000
"""Walks for one query after which its predicates and nested paths count as impossible."""

BLOCK = 2000
"""Attempts after which it is checked that at least half of them gave a new query."""

ATTEMPTS_PER_QUERY_MAX = 100
"""Attempts for each query asked for, on the whole, after which a DTD counts as exhausted."""


PREDICATES_MAX = 16
"""Predicates that a step of a query may have (`pathcast.query`)."""


class GeneratedStep(NamedTuple):
    """A location step of a generated path.

    Attributes:
        is_descendant: Its operator is `//`, not `/`.
        is_wildcard: Its node test is `*`.
        level: Place, in the walk that the path was made from, of the element it stands for.
    """

    is_descendant: bool
    is_wildcard: bool
    level: int


def clean_up(steps: list[GeneratedStep], first_level: int = 0) -> list[GeneratedStep]:
    """The path with less redundancy, by the paper's three rules in the order given.

    1. Each `//*` becomes `/*//`.
    2. Of several consecutive `/*//` the first is kept.
    3. At the end of the path `/*//` becomes `/*`.

    A `//` that rule 1 moves before another `*` makes a new `//*`, so the rules are applied until
    none is left.

    Args:
        steps: The path.
        first_level: Place in the walk of a child of the element where the path begins.

    Example:
        >>> steps = [GeneratedStep(True, True, 1), GeneratedStep(False, False, 2)]  # //*/b
        >>> [tuple(step) for step in clean_up(steps)]  # /*//b
        [(False, True, 0), (True, False, 2)]

    Source: 003, 4.2.1.
    """
    while any(step.is_descendant and step.is_wildcard for step in steps):
        cleaned: list[GeneratedStep] = []
        is_moved = False  # The step before has become `/*//`.
        for step in steps:
            if step.is_descendant and step.is_wildcard:
                if is_moved:
                    continue
                level = cleaned[-1].level + 1 if cleaned else first_level
                cleaned.append(GeneratedStep(False, True, level))
                is_moved = True
            elif is_moved:
                cleaned.append(GeneratedStep(True, step.is_wildcard, step.level))
                is_moved = False
            else:
                cleaned.append(step)
        steps = cleaned
    return steps


def generate_queries(
    graph: ElementGraph, parameters: QueryParameters, values: ValueSource | None = None
) -> Iterator[str]:
    """The queries, one after the other.

    Args:
        graph: The DTD.
        parameters: What they are like.
        values: Where the values of predicates come from; None takes the source that documents with
            the same `statistics_seed`, `values` and `values_max` have.

    Raises:
        ConfigError: The DTD does not give so many distinct queries; says how many were found. Or
            no predicate or nested path of the kind asked for can be written.
        SchemaError: The DTD has no such root.

    Cost: About 5 µs a query without predicates and nested paths, while distinct ones are easy to
    find; the texts stay in memory when they have to be distinct.
    """
    generator = QueryGenerator(graph, parameters, values)
    if not parameters.distinct:
        return (generator.generate() for _ in range(parameters.count))
    return _distinct(generator, parameters.count)


def _distinct(generator: QueryGenerator, count: int) -> Iterator[str]:
    seen: set[str] = set()
    generate = generator.generate
    attempts = misses = found_before = 0
    attempts_max = ATTEMPTS_PER_QUERY_MAX * count + MISSES_MAX
    while len(seen) < count:
        query = generate()
        attempts += 1
        if query not in seen:
            misses = 0
            seen.add(query)
            yield query
        else:
            misses += 1
            if misses >= MISSES_MAX or attempts >= attempts_max:
                raise ConfigError(
                    "workload.exhausted", found=len(seen), requested=count, attempts=attempts
                )
        if attempts % BLOCK == 0:
            if 2 * (len(seen) - found_before) < BLOCK:
                generator.diversify()
            found_before = len(seen)


class QueryGenerator:
    """Makes one query after the other; the sequence depends on the seed alone.

    Args:
        graph: The DTD.
        parameters: What queries are like; `count` and `distinct` are not used.
        values: Where the values of predicates come from.

    Not to be used from two threads at once.
    """

    def __init__(
        self, graph: ElementGraph, parameters: QueryParameters, values: ValueSource | None = None
    ) -> None:
        self._parameters = parameters
        self._draw = Draw(f"queries/{parameters.seed}")
        self._graph = graph
        self._root = graph.root(parameters.root).name
        self._children = _numbered_children(graph)
        self._names = [element.name for element in graph]
        self._root_number = self._names.index(self._root)
        self._tokens = ([f"/{name}" for name in self._names], [f"//{name}" for name in self._names])
        self._odds = (
            parameters.wildcard,
            parameters.descendant,
            parameters.stop_odds,
            parameters.skip_odds,
        )
        self._steps_max = parameters.depth_max
        self._levels_max = parameters.levels_max or parameters.depth_max + 2
        self._is_spread = False
        self._weights = self._cumulate(is_spread=False)
        source = _value_source(graph, parameters) if values is None else values
        self._writer = PredicateWriter(graph, parameters, source, self._draw)
        self._check_possible()

    def generate(self) -> str:
        """The next query."""
        parameters = self._parameters
        if not parameters.predicates and not parameters.nested_paths:
            return self._linear()
        walk, steps = self._walk([self._root_number], parameters.depth_max)
        attempts = 0
        while True:
            names = [self._names[number] for number in walk]
            nested = self._nested(steps, walk)
            levels = [step.level for step in steps]
            predicates = self._writer.write(levels, names) if nested is not None else None
            if nested is not None and predicates is not None:
                return self._text(steps, walk, nested, predicates)
            attempts += 1
            if attempts >= WALKS_MAX:
                raise ConfigError(
                    "config.invalid",
                    key="predicates, nested_paths",
                    reason=f"{attempts} walks in a row have no step that can carry them",
                )
            walk, steps = self._walk([self._root_number], parameters.depth_max)

    def _linear(self) -> str:
        """A query without predicates and nested paths: `_walk` and `_text` in one, for speed."""
        random = self._draw.random
        children, weights, tokens = self._children, self._weights, self._tokens
        wildcard, descendant, stop_odds, skip_odds = self._odds
        steps_max, levels_max = self._steps_max, self._levels_max
        here = self._root_number
        below = children[here]
        level = 1
        parts: list[str] = []
        is_redundant = is_descendant = False
        while True:
            if random() < descendant:
                is_descendant = True
            is_last = level >= levels_max or not below
            if not is_descendant or is_last or random() >= skip_odds:
                if random() < wildcard:
                    parts.append("//*" if is_descendant else "/*")
                    is_redundant = is_redundant or is_descendant
                else:
                    parts.append(tokens[is_descendant][here])
                is_descendant = False
                if is_last or len(parts) >= steps_max or random() < stop_odds:
                    break
            if weights is None:
                here = below[int(random() * len(below))]
            else:
                here = below[bisect_right(weights[level][here], random())]
            below = children[here]
            level += 1
        if is_redundant:
            steps = [
                GeneratedStep(part.startswith("//"), part.endswith("*"), place)
                for place, part in enumerate(parts)
            ]
            names = [part.lstrip("/") for part in parts]
            parts = [_operator(step) + _test(step, names) for step in clean_up(steps)]
        return "".join(parts)

    def _walk(self, walk: list[int], steps_max: int) -> tuple[list[int], list[GeneratedStep]]:
        """Goes on from the last element of the walk, and chooses which elements are steps.

        Args:
            walk: Elements from the root on; the last one may be the first step. Changed.
            steps_max: Location steps.
        """
        random = self._draw.random
        children = self._children
        wildcard, descendant, stop_odds, skip_odds = self._odds
        levels_max = self._levels_max
        steps: list[GeneratedStep] = []
        first_level = len(walk) - 1
        is_redundant = is_descendant = False
        while True:
            level = len(walk)
            here = walk[-1]
            below = children[here]
            if random() < descendant:
                is_descendant = True
            is_last = level >= levels_max or not below
            if not is_descendant or is_last or random() >= skip_odds:
                is_wildcard = random() < wildcard
                is_redundant = is_redundant or (is_descendant and is_wildcard)
                steps.append(GeneratedStep(is_descendant, is_wildcard, level - 1))
                is_descendant = False
                if is_last or len(steps) >= steps_max or random() < stop_odds:
                    break
            walk.append(self._child(walk))
        return walk, clean_up(steps, first_level) if is_redundant else steps

    def _child(self, walk: list[int]) -> int:
        here = walk[-1]
        below = self._children[here]
        if self._weights is None:
            return below[int(self._draw.random() * len(below))]
        return below[bisect_right(self._weights[len(walk)][here], self._draw.random())]

    def _text(
        self,
        steps: list[GeneratedStep],
        walk: list[int],
        nested: list[list[str]] | None = None,
        predicates: list[list[str]] | None = None,
    ) -> str:
        names = [self._names[number] for number in walk]
        out: list[str] = []
        for place, step in enumerate(steps):
            out.append(_operator(step) + _test(step, names))
            brackets = list(predicates[place]) if predicates is not None else []
            if nested is not None:
                brackets.extend(f"[{path}]" for path in nested[place])
            out.extend(joined_predicates(brackets))
        return "".join(out)

    def _nested(self, steps: list[GeneratedStep], walk: list[int]) -> list[list[str]] | None:
        """The nested paths of each step; None if no step can have one."""
        nested: list[list[str]] = [[] for _ in steps]
        if not self._parameters.nested_paths:
            return nested
        anchors = [
            place
            for place, step in enumerate(steps)
            if place + 1 < self._steps_max
            and step.level + 1 < self._levels_max
            and self._children[walk[step.level]]
        ]
        if not anchors:
            return None
        for _ in range(self._parameters.nested_paths):
            place = anchors[int(self._draw.random() * len(anchors))]
            inner = walk[: steps[place].level + 1]
            inner.append(self._child(inner))
            inner, path = self._walk(inner, self._steps_max - place - 1)
            text = self._text(path, inner)
            nested[place].append(f".{text}" if path[0].is_descendant else text[1:])
        return nested

    def diversify(self) -> None:
        """Makes queries that were not made before more likely.

        At the first call all walks become about as likely, not all children of an element: a
        uniform choice among children visits the few walks of poor subtrees again and again. Each
        later call makes paths longer and `//` more frequent, up to one half. (Rejecting repetitions
        shifts the odds as well, but needs ever more attempts.)
        """
        if not self._is_spread:
            self._is_spread = True
            self._weights = self._cumulate(is_spread=True)
            return
        wildcard, descendant, stop_odds, skip_odds = self._odds
        if 0 < descendant < 0.5:
            descendant += (0.5 - descendant) / 5
            skip_odds += (1 / 3 - skip_odds) / 5
        self._odds = (wildcard, descendant, stop_odds * 0.8, skip_odds)

    def _cumulate(self, *, is_spread: bool) -> list[list[list[float]]] | None:
        """Level -> element -> cumulated probabilities of its children; None for uniform.

        Level counts the elements of the walk so far.
        """
        skew = self._parameters.name_skew
        if not skew and not is_spread:
            return None
        draw = Draw(f"ranks/{self._parameters.seed}")
        lots = sorted((draw.random(), number) for number in range(len(self._names)))
        popularity = {number: (rank + 1) ** -skew for rank, (_, number) in enumerate(lots)}
        walks = [1] * len(self._names)  # Walks from each element over the levels that are left.
        levels: list[list[list[float]]] = []
        for _ in range(self._levels_max):
            rows: list[list[float]] = []
            for below in self._children:
                most = max((walks[child] for child in below), default=1)
                weights = [
                    popularity[child] * (walks[child] / most if is_spread else 1.0)
                    for child in below
                ]
                total = sum(weights)
                shares = list(accumulate(weight / total for weight in weights))
                rows.append([*shares[:-1], 1.0] if shares else [])
            levels.append(rows)
            walks = [1 + sum(walks[child] for child in below) for below in self._children]
        return [[], *reversed(levels)]

    def _check_possible(self) -> None:
        if self._parameters.nested_paths and (
            min(self._steps_max, self._levels_max) < 2 or not self._children[self._root_number]
        ):
            raise ConfigError(
                "config.invalid",
                key="nested_paths",
                reason=f"below {self._root} there is no level for a nested path",
            )
        reached = {self._root_number}
        for _ in range(1, self._levels_max):
            reached |= {child for number in reached for child in self._children[number]}
        if not self._writer.is_possible(self._names[number] for number in reached):
            raise ConfigError(
                "config.invalid",
                key="predicates",
                reason="no element that a query reaches can have one of the kinds in the mix",
            )


def joined_predicates(brackets: list[str]) -> list[str]:
    """The same predicates; of too many for a step, repeated ones once and the last ones as `and`.

    Args:
        brackets: Each with its brackets. With a position among them they stay as they are.

    Example:
        >>> joined_predicates([f"[@a{number % 18}]" for number in range(20)])[-2:]
        ['[@a14]', '[@a15 and @a16 and @a17]']
    """
    if len(brackets) <= PREDICATES_MAX or any(text[1:-1].isdecimal() for text in brackets):
        return brackets
    brackets = list(dict.fromkeys(brackets))
    if len(brackets) <= PREDICATES_MAX:
        return brackets
    kept, rest = brackets[: PREDICATES_MAX - 1], brackets[PREDICATES_MAX - 1 :]
    return [*kept, f"[{' and '.join(text[1:-1] for text in rest)}]"]


def _operator(step: GeneratedStep) -> str:
    return "//" if step.is_descendant else "/"


def _test(step: GeneratedStep, names: Sequence[str]) -> str:
    return "*" if step.is_wildcard else names[step.level]


def _numbered_children(graph: ElementGraph) -> list[tuple[int, ...]]:
    numbers = {element.name: number for number, element in enumerate(graph)}
    return [tuple(numbers[name] for name in graph.child_names[element.name]) for element in graph]


def _value_source(graph: ElementGraph, parameters: QueryParameters) -> ValueSource:
    if parameters.values == "plausible":
        from pathcast.workload.domains import plausible_values

        return plausible_values(graph)
    seed = parameters.statistics_seed
    return IntegerValues(graph, parameters.seed if seed is None else seed, parameters.values_max)
