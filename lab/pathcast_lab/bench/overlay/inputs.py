"""Profiles and messages of a workload, and which link a profile lies behind."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.workload import (
    DOMAINS,
    DocumentParameters,
    QueryParameters,
    generate_documents,
    generate_queries,
)
from pathcast_lab.bench.inputs import open_source
from pathcast_lab.bench.overlay.quotes import (
    EXCHANGES,
    quote_entries,
    quote_messages,
    quote_profiles,
    symbol_of,
)
from pathcast_lab.bench.placement.realistic import domain_messages, domain_queries

VALUES_MAX: Final = 500
"""Values that one attribute of generated NITF can take, so that a comparison is rarely true."""


def profiles_of(workload: str, count: int, seed: int) -> list[str]:
    """Texts of profiles, equal ones among them.

    Raises:
        ConfigError: The DTD of NITF is not at hand.
        MissingDependencyError: lxml is not installed.
    """
    if workload == "quotes":
        return quote_profiles(count, seed)
    if workload in DOMAINS:
        return [query.text for query in domain_queries(workload, count, seed)]
    parameters = QueryParameters(
        count=count,
        seed=seed,
        predicates=2,
        nested_paths=1,
        wildcard=0.0,
        descendant=0.1,
        values_max=VALUES_MAX,
        statistics_seed=seed + 1,
    )
    return list(generate_queries(open_source(workload).graph, parameters))


def entries_of(workload: str, profile: str) -> tuple[str, ...]:
    """The entries of a profile. Cost: about 1 ms; less for those of quotes."""
    return quote_entries(profile) if workload == "quotes" else disjuncts_of(profile, deliver="ids")


def groups_of(workload: str, profiles: Sequence[str]) -> list[int]:
    """For each profile a number, equal for those that are popular in the same places.

    Quotes of one exchange are; of other workloads each profile has places of its own.
    """
    if workload == "quotes":
        return [EXCHANGES.index(symbol_of(profile)[0]) for profile in profiles]
    return list(range(len(profiles)))


def messages_of(workload: str, count: int, seed: int) -> list[bytes]:
    """Messages for the profiles of the same seed; errors as `profiles_of`."""
    if workload == "quotes":
        return quote_messages(count, seed)
    if workload in DOMAINS:
        return domain_messages(workload, count, seed + 1)
    parameters = DocumentParameters(count=count, seed=seed + 1, values_max=VALUES_MAX)
    return list(generate_documents(open_source(workload).graph, parameters))


def behind_links(profiles: list[str], links: int, seed: int) -> list[list[str]]:
    """The profiles by link, chosen at random."""
    chosen = Random(seed)
    found: list[list[str]] = [[] for _ in range(links)]
    for profile in profiles:
        chosen.choice(found).append(profile)
    return found
