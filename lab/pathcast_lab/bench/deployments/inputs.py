"""Subscriptions, messages, and the pairs of them that every deployment has to deliver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pathcast.errors import ConfigError
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast.workload.documents import generate_documents
from pathcast.workload.domains import DOMAINS
from pathcast.workload.parameters import QueryParameters
from pathcast.workload.queries import generate_queries
from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.deployments.definition import DeploymentSet, DeploymentTable

SURPLUS = 8
"""Queries that are generated for each that is wanted."""


@dataclass(frozen=True)
class Load:
    """What is put into each deployment.

    Attributes:
        queries: Id -> query.
        messages: Distinct messages; number n of a run is number n modulo their number.
        answers: For each the ids of the queries that it satisfies, by one process.
    """

    queries: dict[str, str]
    messages: list[bytes]
    answers: list[frozenset[str]]

    def body(self, number: int) -> bytes:
        """A message of a run."""
        return self.messages[number % len(self.messages)]

    def due(self, number: int) -> frozenset[str]:
        """The queries that message `number` of a run satisfies."""
        return self.answers[number % len(self.answers)]

    def check(self, case: str, found: Counter[tuple[str, int]], numbers: Sequence[int]) -> None:
        """Compares pairs of query and message with those of one process.

        Raises:
            WrongCountError: One is lost, doubled or foreign.
        """
        expected = Counter((id, number) for number in numbers for id in self.due(number))
        if found != expected:
            raise wrong_count(case, found.total(), expected.total(), "one process")


def made_load(table: DeploymentTable, chosen: DeploymentSet, seed: int) -> Load:
    """Messages, and distinct queries of which none matches more than a share of them.

    Raises:
        ConfigError: There are not so many queries.
    """
    source = DOMAINS[table.domain]
    graph, wanted = source.graph(), chosen.subscriptions
    parameters = QueryParameters(count=SURPLUS * wanted, seed=seed, depth_max=table.depth_max)
    texts = list(generate_queries(graph, parameters))
    messages = list(generate_documents(graph, source.documents(chosen.distinct, seed)))
    index = Registry()
    index.add([Query(str(number), text) for number, text in enumerate(texts)])
    snapshot = index.freeze()
    found = snapshot.match(pa.array(messages, pa.binary())).matches
    hits = np.bincount(found.values.to_numpy(), minlength=len(texts))
    few = np.flatnonzero(hits <= table.share_max * len(messages))
    if len(few) < wanted:
        reason = f"{len(few):,} of {len(texts):,} queries match few enough messages"
        raise ConfigError("config.invalid", key="subscriptions", reason=reason)
    kept = set(np.random.default_rng(seed).permutation(few)[:wanted].tolist())
    ids = [f"q{id}" for id in snapshot.query_ids]
    return Load(
        {ids[number]: texts[int(snapshot.query_ids[number])] for number in sorted(kept)},
        messages,
        [frozenset(ids[n] for n in numbers if n in kept) for numbers in found.to_pylist()],
    )
