"""Queries and messages of the figures, by workload and parameters.

The paper's DTDs (NITF, XMark auction, DBLP) are no part of the package. Where the shared data is
not at hand one of Pathcast's own domains stands in, and the run says so.

Example:
    >>> from random import Random
    >>> derived("/a/b/c", Random(1), wildcard=0.5, descendant=0.0)
    '/a/*/*'

It generates nothing itself; `pathcast.workload` does.

Source: 003, 4.2.1 and 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from pathcast.errors import ConfigError
from pathcast.workload import DOMAINS, DocumentParameters, generate_documents
from pathcast_lab.bench.figures.definition import FiguresDefinition, Parameters, Workload
from pathcast_lab.bench.inputs import Source, open_source, shared_data

QueryT = TypeVar("QueryT")

PASSES_MAX: Final = 40
"""How often base queries, as many as are wanted, are gone through for distinct derived ones."""

_STEP: Final = re.compile(r"(?P<step>//?[^/\[\]]+)(?P<predicates>(?:\[[^\[\]]*\])+)")
"""A location step of a generated query without nested paths that has predicates."""


class Inputs:
    """Where the queries and messages of a run come from.

    Args:
        definition: Seed, DTDs and stand-ins.
        work: Where generated queries are kept.
        say: Takes a line when a domain stands in for a DTD.

    Raises:
        MissingDependencyError: lxml is not installed.
    """

    def __init__(
        self, definition: FiguresDefinition, work: Path | None, say: Callable[[str], None]
    ) -> None:
        self._definition = definition
        self._work = work
        self._say = say
        self._sources: dict[Workload, Source] = {}
        self._kept: tuple[tuple[object, ...], list[str]] | None = None

    def source(self, workload: Workload) -> Source:
        """The source of a workload.

        Raises:
            ConfigError: Its DTD cannot be used.
        """
        if workload not in self._sources:
            shared = shared_data()
            place = None if shared is None else shared / self._definition.dtds[workload]
            if place is not None and place.is_file():
                source = replace(open_source(dtd=place, work=self._work), name=workload)
            else:
                domain = self._definition.stand_ins[workload]
                self._say(f"{workload}: its DTD is not at hand, the {domain} domain stands in")
                source = open_source(domain, work=self._work)
            self._sources[workload] = source
        return self._sources[workload]

    def messages(self, workload: Workload, parameters: Parameters, count: int) -> list[bytes]:
        """The first messages of a workload at D and RP."""
        source = self.source(workload)
        documents = DocumentParameters(
            count=count,
            seed=self._definition.seed,
            depth_max=parameters.depth_max,
            repeats_max=parameters.repeats_max,
        )
        if source.name in DOMAINS:
            documents = DOMAINS[source.name].documents(count, self._definition.seed)
        return list(generate_documents(source.graph, documents))

    def queries(self, workload: Workload, parameters: Parameters, most: int) -> list[str]:
        """The first queries of a workload.

        Args:
            workload: The DTD.
            parameters: What they are like; `queries` says how many are wanted.
            most: How many will be wanted with these parameters: so many are made at once, and kept
                until others are asked for.

        Raises:
            ConfigError: There are not so many.
        """
        most = max(most, parameters.queries)
        key = (workload, parameters.model_copy(update={"queries": most}))
        if self._kept is None or self._kept[0] != key:
            self._kept = None
            made = self._derived if parameters.is_derived else self._generated
            self._kept = (key, made(workload, parameters, most))
        return first_of(self._kept[1], parameters.queries)

    def _generated(self, workload: Workload, parameters: Parameters, count: int) -> list[str]:
        source = self.source(workload)
        # A domain of Pathcast is flatter than the DTD that it stands in for.
        deeper = 4 if source.name in DOMAINS else 0
        texts = replace(source, depth_max={"": parameters.depth_max + deeper}).queries(
            count,
            seed=self._definition.seed,
            wildcard=parameters.wildcard,
            descendant=parameters.descendant,
            predicates=parameters.predicates,
            nested_paths=parameters.nested_paths,
            distinct=parameters.distinct,
        )
        if parameters.predicates < 2 or parameters.nested_paths:
            return texts
        return [without_repetitions(text) for text in texts]

    def _derived(self, workload: Workload, parameters: Parameters, count: int) -> list[str]:
        plain = parameters.model_copy(update={"wildcard": 0.0, "descendant": 0.0})
        base = self._generated(workload, plain, count)
        draw = Random(f"derived/{self._definition.seed}")
        made = _derivations(base, draw, parameters.wildcard, parameters.descendant)
        return list(islice(made, count))


def first_of(found: list[QueryT], wanted: int) -> list[QueryT]:
    """Returns the first queries.

    Args:
        found: Queries, in order.
        wanted: How many.

    Raises:
        ConfigError: There are not so many.
    """
    if len(found) < wanted:
        reason = f"{len(found):,} of {wanted:,} distinct queries were found"
        raise ConfigError("config.invalid", key="queries", reason=reason)
    return found[:wanted]


def _derivations(
    base: Sequence[str], draw: Random, wildcard: float, descendant: float
) -> Iterator[str]:
    """Distinct queries made of the base ones, until nothing new comes."""
    seen: set[str] = set()
    for _ in range(PASSES_MAX):
        before = len(seen)
        for text in base:
            made = derived(text, draw, wildcard=wildcard, descendant=descendant)
            if made not in seen:
                seen.add(made)
                yield made
        if len(seen) == before:
            return


def without_repetitions(text: str) -> str:
    """A query without predicates that say again what another one of the same step says.

    The generator draws each of P predicates for itself, and a step has few attributes. What is
    repeated changes no answer, but counts against the limit of predicates of a step.

    Example:
        >>> without_repetitions("/a[@x=1][@y=2][@x=1]//b[@x=1]")
        '/a[@x=1][@y=2]//b[@x=1]'
    """

    def unique(match: re.Match[str]) -> str:
        predicates = dict.fromkeys(re.findall(r"\[[^\[\]]*\]", match["predicates"]))
        return match["step"] + "".join(predicates)

    return _STEP.sub(unique, text)


def derived(text: str, draw: Random, *, wildcard: float, descendant: float) -> str:
    """A path of `/` and names, with names replaced by `*` and `/` by `//` at random."""
    steps = []
    for name in text.split("/")[1:]:
        operator = "//" if draw.random() < descendant else "/"
        steps.append(operator + ("*" if draw.random() < wildcard else name))
    return "".join(steps)
