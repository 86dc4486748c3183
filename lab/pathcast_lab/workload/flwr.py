"""FLWR queries by a DTD, after the workload parameters of the paper on message brokers.

A query is a binding path, conjunctive predicates on paths below it, and a return clause of paths
below it, in the paper's form:

    <sections>{ for $s in doc("doc.xml")//section where $s//figure/title = "17"
    return <section>{ $s/title }{ $s//figure }</section> }</sections>

Example:
    >>> from pathcast_lab.workload.brokers import BOOK
    >>> graph = BOOK.graph()
    >>> queries = list(generate_flwrs(graph, FlwrParameters(count=3, seed=1, values_max=10)))
    >>> len({query.key for query in queries})
    3
    >>> queries[0].text().startswith("<")
    True

Each path is a walk that the DTD allows; whether a predicate can be true in the same document as
another is not asked. Nothing is matched here.

Source: 002, 6.1 and Table 1. Differs: the paper does not say how long a path is (each length up to
its maximum is as likely) nor how far `//` leads (to each descendant with the same odds); elements
are bound where they can repeat and have something below them, which gives the elements that the
paper names: `book` in bibliographies, `section`, `p` and `figure` in books.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pathcast.errors import ConfigError
from pathcast.schema import ElementGraph
from pathcast.workload.parameters import check_share, check_whole
from pathcast.workload.values import Draw

MISSES_MAX = 20_000
"""Attempts in a row without a new query after which a DTD counts as exhausted."""

ATTEMPTS_PER_QUERY_MAX = 20
"""Attempts for each query asked for, on the whole, after which a DTD counts as exhausted."""

TRIES_MAX = 1_000
"""Walks for one path after which the DTD counts as having none."""

DRAWS_A_PATH = 50
"""Walks for each predicate or return path of a query before its binding path is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlwrParameters:
    """How FLWR queries are generated; the paper's letters in parentheses.

    Attributes:
        count: Distinct queries (Q).
        seed: Any whole number; the same seed gives the same queries everywhere.
        binding_depth_max: Most location steps of a binding path (D1), 1 to 16.
        predicates: Predicate paths in each query (PP), 0 to 16.
        returns: Return paths in each query (RP), 1 to 16; fewer where an element has no more.
        relative_depth_max: Most location steps of a predicate path or return path (D2), 1 to 16.
        descendant: Probability of `//` at a location step (DSProb).
        values_max: Predicates compare with whole numbers from 1 to this (MaxValue).
        root: Root element; None takes the best candidate of the DTD.
    """

    count: int = 5_000
    seed: int = 0
    binding_depth_max: int = 3
    predicates: int = 1
    returns: int = 2
    relative_depth_max: int = 2
    descendant: float = 0.2
    values_max: int = 10
    root: str | None = None

    def __post_init__(self) -> None:
        check_whole(self, "count", 0, 100_000_000)
        check_whole(self, "seed", None, None)
        check_whole(self, "binding_depth_max", 1, 16)
        check_whole(self, "predicates", 0, 16)
        check_whole(self, "returns", 1, 16)
        check_whole(self, "relative_depth_max", 1, 16)
        check_share(self, "descendant")
        check_whole(self, "values_max", 1, 1_000_000_000)


class FlwrPredicate(NamedTuple):
    """`path = "constant"`, the path being relative to the binding path.

    Attributes:
        path: Such as `//figure/title` or `/figure/@id`.
        constant: A whole number, compared as text.
    """

    path: str
    constant: str


class FlwrQuery(NamedTuple):
    """A generated query.

    Attributes:
        element: Name of the element that the binding path binds.
        binding: Binding path.
        predicates: Predicates, sorted.
        returns: Return paths as they were drawn, without repetition.
    """

    element: str
    binding: str
    predicates: tuple[FlwrPredicate, ...]
    returns: tuple[str, ...]

    @property
    def key(self) -> tuple[str, tuple[FlwrPredicate, ...], tuple[str, ...]]:
        """What makes the query unique: the order of predicates and of return paths does not."""
        return self.binding, tuple(sorted(self.predicates)), tuple(sorted(self.returns))

    def text(self, *, opening: str | None = None) -> str:
        """The query in the paper's form, on one line.

        Args:
            opening: Attributes of the outer tag, to tell apart what is else equal; None for none.
        """
        variable = f"${self.element[0]}"
        outer = f"{self.element}s"
        conditions = " and ".join(
            f'{variable}{predicate.path} = "{predicate.constant}"' for predicate in self.predicates
        )
        where = f" where {conditions}" if conditions else ""
        content = "".join(f"{{ {variable}{path} }}" for path in self.returns)
        attributes = "" if opening is None else f" {opening}"
        return (
            f'<{outer}{attributes}>{{ for {variable} in doc("doc.xml"){self.binding}{where} '
            f"return <{self.element}>{content}</{self.element}> }}</{outer}>"
        )


def generate_flwrs(graph: ElementGraph, parameters: FlwrParameters) -> Iterator[FlwrQuery]:
    """Distinct queries, one after the other; the first ones are the same whatever `count` is.

    Raises:
        ConfigError: The DTD does not give so many, or no element can be bound.
        SchemaError: The DTD has no such root.

    Cost: About 15 µs a query while distinct ones are easy to find; the keys stay in memory.
    """
    generator = FlwrGenerator(graph, parameters)
    seen: set[object] = set()
    attempts = misses = 0
    attempts_max = ATTEMPTS_PER_QUERY_MAX * parameters.count + MISSES_MAX
    while len(seen) < parameters.count:
        query = generator.generate()
        attempts += 1
        if query.key in seen:
            misses += 1
            if misses >= MISSES_MAX or attempts >= attempts_max:
                raise ConfigError(
                    "workload.exhausted",
                    found=len(seen),
                    requested=parameters.count,
                    attempts=attempts,
                )
            continue
        misses = 0
        seen.add(query.key)
        yield query


class FlwrGenerator:
    """Makes one query after the other; the sequence depends on the seed alone.

    Args:
        graph: The DTD.
        parameters: What queries are like; `count` is not used.

    Raises:
        ConfigError: No element of the DTD can be bound by a path of this length.

    Not to be used from two threads at once.
    """

    def __init__(self, graph: ElementGraph, parameters: FlwrParameters) -> None:
        self._parameters = parameters
        self._draw = Draw(f"flwr/{parameters.seed}")
        self._root = graph.root(parameters.root).name
        self._children: Mapping[str, tuple[str, ...]] = graph.child_names
        self._descendants = {name: _descendants(graph, name) for name in graph.heights}
        self._bindable = _bindable(graph)
        self._data = {element.name: _data(graph, element.name) for element in graph}

    def generate(self) -> FlwrQuery:
        """The next query."""
        parameters = self._parameters
        for _ in range(TRIES_MAX):
            element, binding = self._binding()
            predicates = self._predicates(element)
            returns = self._returns(element)
            if returns and len(predicates) == parameters.predicates:
                return FlwrQuery(element, binding, tuple(sorted(predicates)), tuple(returns))
        raise ConfigError(
            "config.invalid",
            key="predicates, returns",
            reason="no element that can be bound has so many paths below it",
        )

    def _binding(self) -> tuple[str, str]:
        for _ in range(TRIES_MAX):
            element, path = self._walk(None, self._parameters.binding_depth_max)
            if element in self._bindable:
                return element, path
        raise ConfigError(
            "config.invalid",
            key="binding_depth_max",
            reason="no element that can repeat and has something below it is within reach",
        )

    def _predicates(self, element: str) -> list[FlwrPredicate]:
        wanted = self._parameters.predicates
        found: dict[FlwrPredicate, None] = {}
        for _ in range(DRAWS_A_PATH * wanted):
            if len(found) == wanted:
                break
            last, path = self._walk(element, self._parameters.relative_depth_max)
            data = self._data[last]
            if path and data:
                constant = str(self._draw.whole(1, self._parameters.values_max))
                found[FlwrPredicate(path + self._draw.pick(data), constant)] = None
        return list(found)

    def _returns(self, element: str) -> list[str]:
        wanted = self._parameters.returns
        found: dict[str, None] = {}
        for _ in range(DRAWS_A_PATH * wanted):
            if len(found) == wanted:
                break
            _, path = self._walk(element, self._parameters.relative_depth_max)
            if path:
                found[path] = None
        return list(found)

    def _walk(self, start: str | None, steps_max: int) -> tuple[str, str]:
        """A path from an element, or from the document, and the element where it ends."""
        draw, descendant = self._draw, self._parameters.descendant
        here, parts = start, []
        for _ in range(draw.whole(1, steps_max)):
            is_descendant = draw.is_lucky(descendant)
            below = self._below(here, is_descendant=is_descendant)
            if not below:
                break
            here = draw.pick(below)
            parts.append(f"//{here}" if is_descendant else f"/{here}")
        return here or self._root, "".join(parts)

    def _below(self, here: str | None, *, is_descendant: bool) -> Sequence[str]:
        if here is not None:
            return self._descendants[here] if is_descendant else self._children[here]
        if not is_descendant:
            return (self._root,)
        below = self._descendants[self._root]
        return below if self._root in below else (self._root, *below)


def _descendants(graph: ElementGraph, name: str) -> tuple[str, ...]:
    """Every element that can stand below, in declared order."""
    found: set[str] = set()
    waiting = list(graph.child_names[name])
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting.extend(graph.child_names[here])
    return tuple(element.name for element in graph if element.name in found)


def _bindable(graph: ElementGraph) -> frozenset[str]:
    """Elements that can repeat under some parent and have elements below them.

    Not those that a group repeats with others only because they are all it can hold (`author+`
    with one name in it): what the literature binds has data of its own, an attribute.
    """
    repeated = {child.name for element in graph for child in element.children if child.repeatable}
    return frozenset(
        name
        for name in repeated
        if name in graph.heights and graph.child_names[name] and graph[name].attributes
    )


def _data(graph: ElementGraph, name: str) -> tuple[str, ...]:
    """What of an element can be compared: its text (nothing to add), its attributes."""
    element = graph[name]
    text = ("",) if element.kind.has_text else ()
    return (*text, *(f"/@{attribute.name}" for attribute in element.attributes))
