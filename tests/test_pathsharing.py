"""PathSharing-F, -FW, -FWR and plan sharing against the definition, with every optimisation.

If these fail, some plan gives a subscriber other nodes than the query selects.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from path_sharing_queries import (
    BIB,
    BIB_DTD,
    BOOK,
    BOOK_DTD,
    Shape,
    expected_groups,
    random_message,
    random_query,
)
from pathcast.limits import Limits
from pathcast.message import parse_message
from pathcast.reference.pathsharing import (
    Optimisation,
    PathSharing,
    PathSharingF,
    PathSharingFW,
    PathSharingFWR,
    PlanSharing,
)
from pathcast.schema import ElementPaths, parse_dtd

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

ALGORITHMS = (PathSharingF, PathSharingFW, PathSharingFWR, PlanSharing)
LIMITS = Limits()


def every_variant(elements: ElementPaths) -> Iterator[PathSharing]:
    for algorithm in ALGORITHMS:
        for optimisation in Optimisation:
            yield algorithm(optimisation, elements)


def shapes() -> list[tuple[Shape, ElementPaths]]:
    return [
        (BOOK, ElementPaths(parse_dtd(BOOK_DTD), root="book")),
        (BIB, ElementPaths(parse_dtd(BIB_DTD), root="bib")),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_every_variant_gives_what_the_query_selects(seed: int) -> None:
    random = Random(seed)
    non_empty = 0
    for shape, elements in shapes():
        variants = list(every_variant(elements))
        queries = {f"q{number}": random_query(random, shape) for number in range(25)}
        for variant in variants:
            for id, query in queries.items():
                variant.subscribe(id, query)
        for _ in range(3):
            message = random_message(random, shape)
            tree = parse_message(message, LIMITS)
            expected = {
                id: groups
                for id, query in queries.items()
                if (groups := expected_groups(query, tree))
            }
            non_empty += len(expected)
            for variant in variants:
                assert variant.process(tree) == expected, (
                    variant.name,
                    variant.optimisation,
                    message,
                )
    assert non_empty > 20
