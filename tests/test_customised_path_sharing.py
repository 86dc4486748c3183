"""PathSharing F == FW == FWR == with plan sharing == exact interpreter, to the finished message.

Every optimisation switch, generated queries of the paper's class, messages that keep to the DTD and
messages that break it, queries that enter and leave. If one of these fails, a plan or the message
factory gives a subscriber something else than the query says.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from customised_cases import GENEROUS, by_reference, by_saxon
from generators import (
    VOCABULARIES,
    FlwrWidth,
    GeneratedFlwr,
    MessageTemper,
    Vocabulary,
    random_flwr,
    random_flwr_message,
)
from oracles import saxon_missing_reason
from pathcast.errors import ConstructionError
from pathcast.message.canonical import canonical
from pathcast.schema import parse_dtd
from pathcast_papers.language.xquery import PaperQuery, paper_form, parse
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.pathsharing import (
    Optimisation,
    PathSharing,
    PathSharingF,
    PathSharingFW,
    PathSharingFWR,
    PlanSharing,
    results,
)
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths

pytest.importorskip("lxml", reason="lxml reads DTDs: pip install 'pathcast[workload]'")

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

ALGORITHMS: tuple[type[PathSharing], ...] = (
    PathSharingF,
    PathSharingFW,
    PathSharingFWR,
    PlanSharing,
)

vocabularies = pytest.mark.parametrize("vocabulary", sorted(VOCABULARIES))


def dtd_of(vocabulary: Vocabulary) -> str:
    """What stands in what, as a DTD without order."""
    text = ""
    for name, kind in vocabulary.elements.items():
        parts = ["#PCDATA"] if kind.content else []
        parts += dict.fromkeys(kind.children)
        model = f"({' | '.join(parts)})*" if parts else "EMPTY"
        text += f"<!ELEMENT {name} {model}>\n"
        for attribute in kind.attributes:
            text += f"<!ATTLIST {name} {attribute} CDATA #IMPLIED>\n"
    return text


def variants(vocabulary: Vocabulary) -> Iterator[PathSharing]:
    """Each algorithm with each optimisation; those of a DTD where there are no namespaces."""
    elements = None
    if not vocabulary.namespaces:
        elements = SchemaPaths(parse_dtd(dtd_of(vocabulary)), root=vocabulary.root)
    for algorithm in ALGORITHMS:
        for optimisation in Optimisation:
            if elements is not None or optimisation is not Optimisation.QUERY_AND_DTD:
                yield algorithm(optimisation, elements)


def paper_queries(
    generator: random.Random, vocabulary: Vocabulary, count: int
) -> dict[str, tuple[GeneratedFlwr, PaperQuery]]:
    found = {}
    for number in range(count):
        flwr = random_flwr(generator, vocabulary, FlwrWidth.PAPER)
        query = paper_form(parse(flwr.text, flwr.namespaces))
        assert query is not None, flwr.text
        found[f"q{number}"] = (flwr, query)
    return found


def check(vocabulary: str, seed: int, queries: int, messages: int) -> int:
    """Compares every variant on every pair; returns how many pairs were delivered."""
    chosen = VOCABULARIES[vocabulary]
    generator = random.Random(f"path sharing {vocabulary} {seed}")
    asked = paper_queries(generator, chosen, queries)
    engines = list(variants(chosen))
    assert len(engines) == (8 if chosen.namespaces else 12)
    delivered = 0
    for number in range(messages):
        hostility = (0.0, 0.3)[number % 2]
        message = random_flwr_message(generator, chosen, MessageTemper(hostility=hostility))
        tree = parse_message(message, GENEROUS)
        present = set(generator.sample(sorted(asked), queries * 2 // 3))
        for engine in engines:
            for query_id in sorted(asked):
                if (query_id in engine) is not (query_id in present):
                    if query_id in present:
                        engine.subscribe(query_id, asked[query_id][1])
                    else:
                        engine.unsubscribe(query_id)
        truth = {
            name: by_reference(flwr.text, message, flwr.namespaces)
            for name, (flwr, _) in asked.items()
            if name in present
        }
        delivered += sum(said is not None for said in truth.values())
        for engine in engines:
            groups = engine.process(tree)
            for name in sorted(present):
                query = asked[name][1]
                said: object
                try:
                    made = results(query, groups.get(name, ()), tree, GENEROUS)
                    said = tuple(map(canonical, made)) or None
                except ConstructionError as error:
                    said = error.code
                assert said == truth[name], (
                    f"{engine.name} {engine.optimisation.value}\n{asked[name][0].text}\n"
                    f"message {message.decode()}\nwanted {truth[name]!r}\nfound {said!r}"
                )
    return delivered


@vocabularies
def test_every_variant_gives_the_same_messages(vocabulary: str) -> None:
    assert check(vocabulary, 1, queries=30, messages=4) > 5


@pytest.mark.nightly
@vocabularies
def test_every_variant_gives_the_same_messages_at_length(vocabulary: str) -> None:
    """More than ten thousand pairs, each by all variants."""
    pairs = seed = 0
    while pairs < max(10_000, NIGHTLY_EXAMPLES) // len(VOCABULARIES):
        check(vocabulary, 1000 + seed, queries=60, messages=8)
        pairs += 40 * 8
        seed += 1


@pytest.mark.skipif(saxon_missing_reason() is not None, reason=str(saxon_missing_reason()))
def test_the_message_factory_agrees_with_saxon() -> None:
    """Groups and template against another implementation, without our interpreter between."""
    compared = 0
    for vocabulary, chosen in VOCABULARIES.items():
        generator = random.Random(f"factory {vocabulary}")
        asked = paper_queries(generator, chosen, 30)
        engine = PlanSharing(Optimisation.QUERY)
        for name, (_, query) in asked.items():
            engine.subscribe(name, query)
        for _ in range(3):
            message = random_flwr_message(generator, chosen, MessageTemper(hostility=0.1))
            tree = parse_message(message, GENEROUS)
            for name, groups in engine.process(tree).items():
                flwr, query = asked[name]
                saxons = by_saxon(flwr.text, message, flwr.namespaces, flwr.delivered)
                if isinstance(saxons, tuple):
                    made = results(query, groups, tree, GENEROUS)
                    assert tuple(map(canonical, made)) == saxons, (flwr.text, message)
                    compared += 1
    assert compared > 50
