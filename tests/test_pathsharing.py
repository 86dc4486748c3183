"""PathSharing-F, -FW, -FWR and plan sharing against the definition, with every optimisation.

If these fail, some plan gives a subscriber other nodes than the query selects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

import pytest

from path_sharing_queries import (
    BIB,
    BIB_DTD,
    BOOK,
    BOOK_DTD,
    Shape,
    disorderly,
    expected_groups,
    paper_query,
    random_message,
    random_query,
)
from pathcast.errors import (
    ConfigError,
    DuplicateQueryError,
    EvaluationBudgetError,
    UnknownQueryError,
)
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.schema import parse_dtd
from pathcast_papers.language.xquery import PaperQuery
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.pathsharing import (
    GroupSequence,
    Optimisation,
    PathSharing,
    PathSharingF,
    PathSharingFW,
    PathSharingFWR,
    PlanSharing,
)
from pathcast_papers.message_broker.pathsharing.paths import path_text
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

ALGORITHMS = (PathSharingF, PathSharingFW, PathSharingFWR, PlanSharing)
LIMITS = Limits()


def every_variant(elements: SchemaPaths) -> Iterator[PathSharing]:
    for algorithm in ALGORITHMS:
        for optimisation in Optimisation:
            yield algorithm(optimisation, elements)


def shapes() -> list[tuple[Shape, SchemaPaths]]:
    return [
        (BOOK, SchemaPaths(parse_dtd(BOOK_DTD), root="book")),
        (BIB, SchemaPaths(parse_dtd(BIB_DTD), root="bib")),
    ]


def agree(random: Random, shape: Shape, variants: Sequence[PathSharing], messages: int) -> int:
    """Whether all variants give what random queries select; how many results there were."""
    queries = {f"q{number}": random_query(random, shape) for number in range(25)}
    for variant in variants:
        for id, query in queries.items():
            variant.subscribe(id, query)
    found = 0
    for _ in range(messages):
        message = random_message(random, shape)
        expected = expected_results(queries, parse_message(message, LIMITS))
        found += len(expected)
        for variant in variants:
            given = variant.process(parse_message(message, LIMITS))
            assert given == expected, (variant.name, variant.optimisation, message)
    return found


def expected_results(
    queries: Mapping[str, PaperQuery], tree: MessageTree
) -> dict[str, GroupSequence]:
    return {id: groups for id, query in queries.items() if (groups := expected_groups(query, tree))}


@pytest.mark.parametrize("seed", range(6))
def test_every_variant_gives_what_the_query_selects(seed: int) -> None:
    random = Random(seed)
    found = 0
    for shape, elements in shapes():
        found += agree(random, shape, list(every_variant(elements)), messages=3)
    assert found > 20


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 220))
def test_every_variant_gives_what_many_queries_select(seed: int) -> None:
    random = Random(seed)
    for shape, elements in shapes():
        agree(random, shape, list(every_variant(elements)), messages=3)
        agree(random, disorderly(shape), list(every_variant(elements)), messages=3)


@pytest.mark.parametrize("seed", range(20, 24))
def test_messages_that_break_the_dtd_get_the_right_results(seed: int) -> None:
    random = Random(seed)
    for shape, elements in shapes():
        variants = [algorithm(Optimisation.QUERY_AND_DTD, elements) for algorithm in ALGORITHMS]
        assert agree(random, disorderly(shape), variants, messages=3) > 3


def test_without_the_conformance_check_plans_with_a_dtd_go_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The check is needed: without it some of the messages above get wrong results.
    monkeypatch.setattr(PathSharing, "_can_trust", lambda *_: True)
    shape, elements = shapes()[0]

    def is_right(algorithm: type[PathSharing], seed: int) -> bool:
        try:
            variants = [algorithm(Optimisation.QUERY_AND_DTD, elements)]
            agree(Random(seed), disorderly(shape), variants, messages=3)
        except AssertionError:
            return False
        return True

    for algorithm in ALGORITHMS:
        assert not all(is_right(algorithm, seed) for seed in range(20, 40))


def test_a_root_that_the_dtd_does_not_start_with_is_no_conforming_message() -> None:
    elements = SchemaPaths(parse_dtd(BOOK_DTD), root="book")
    paths = PathSharingFWR(Optimisation.QUERY_AND_DTD, elements)
    query = paper_query("//author", [], [()])
    paths.subscribe("authors", query)
    assert path_text(paths.plan("authors").query.binding) == "/book/author"
    assert paths.process(parse_message(b"<author/>", LIMITS)) == {"authors": (((0,),),)}
    assert paths.process(parse_message(b"<book><author/></book>", LIMITS)) == {
        "authors": (((1,),),)
    }


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("optimisation", Optimisation)
def test_subscriptions_enter_and_leave(
    algorithm: type[PathSharing], optimisation: Optimisation
) -> None:
    random = Random(7)
    shape, elements = shapes()[0]
    paths = algorithm(optimisation, elements)
    present: dict[str, PaperQuery] = {}
    known = [random_query(random, shape) for _ in range(12)]
    for number in range(120):
        if present and random.random() < 0.45:
            gone = random.choice(sorted(present))
            paths.unsubscribe(gone)
            del present[gone]
        else:
            id = f"q{number}"
            query = random.choice(known) if random.random() < 0.4 else random_query(random, shape)
            paths.subscribe(id, query)
            present[id] = query
        if number % 6 == 0:
            vocabulary = shape if number % 12 else disorderly(shape)
            tree = parse_message(random_message(random, vocabulary), LIMITS)
            assert paths.process(tree) == expected_results(present, tree)
    assert len(paths) == len(present)
    for id in present:
        paths.unsubscribe(id)
    # Whatever a query has brought leaves with it.
    statistics = paths.plan_statistics()
    assert (statistics.queries, statistics.plans, statistics.paths) == (0, 0, 0)
    assert statistics.states == 1
    assert not statistics.operators


def test_ids_are_taken_once_and_known() -> None:
    paths = PathSharingF(Optimisation.NONE)
    paths.subscribe("a", paper_query("//section", [], [()]))
    with pytest.raises(DuplicateQueryError):
        paths.subscribe("a", paper_query("//section", [], [()]))
    with pytest.raises(UnknownQueryError):
        paths.unsubscribe("b")
    assert "a" in paths
    assert len(paths) == 1


def test_a_dtd_is_needed_to_optimise_with_one() -> None:
    with pytest.raises(ConfigError, match="element graph"):
        PathSharingFWR(Optimisation.QUERY_AND_DTD)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_path_tuples_are_bounded(algorithm: type[PathSharing]) -> None:
    # A chain of 40 elements has C(40, 8) path tuples of eight steps.
    paths = algorithm(Optimisation.QUERY, tuples_max=10_000)
    paths.subscribe("many", paper_query("//a" * 8, [], [()]))
    with pytest.raises(EvaluationBudgetError):
        paths.process(parse_message(b"<a>" * 40 + b"</a>" * 40, LIMITS))
