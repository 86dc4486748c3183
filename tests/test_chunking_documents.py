"""Real messages and generated ones of real DTDs, chunked and unchunked: the same answers.

If these fail, cutting works on the messages of tests only.
"""

from __future__ import annotations

import pytest

from oracles.engines import EngineName, made_by

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

from oracles.engines import ENGINES, missing_reason
from pathcast import Query, Registry
from pathcast.chunking import (
    ChunkEvaluator,
    Chunking,
    Cut,
    FilteringScheme,
    StreamingChunker,
    merged,
    tasks_of,
)
from pathcast.schema import ElementPaths, read_dtd
from pathcast.workload import (
    DocumentParameters,
    QueryParameters,
    generate_documents,
    generate_queries,
)
from pathcast_lab.workload.scenarios import SCENARIOS
from pathcast_papers.chunking.plain import cut_plainly
from shared_data import shared_dtd


def cut_both_ways(scheme: FilteringScheme, message: bytes) -> Cut:
    cut = cut_plainly(scheme, message)
    if missing_reason("kernel") is None:
        streamed = StreamingChunker(scheme).cut([message])
        assert (streamed.elements, streamed.fault) == (cut.elements, cut.fault)
    return cut


def check(chunking: Chunking, texts: list[str], messages: list[bytes], engine: EngineName) -> int:
    """Whether chunks give the answers of the whole; how many queries were found in chunks."""
    index = made_by(engine, Registry)
    index.add(Query(str(number), text) for number, text in enumerate(texts))
    scheme = chunking.scheme()
    evaluator = made_by(engine, ChunkEvaluator)
    found = 0
    for message in messages:
        tasks = tasks_of(scheme, message, cut_both_ways(scheme, message))
        answers = [evaluator.evaluate(task) for task in tasks]
        expected = index.match([message])[0]
        assert merged(answers).query_ids == tuple(expected.query_ids)
        found += sum(len(answer.query_ids) for answer in answers if answer.prefix)
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_nitf(engine: EngineName) -> None:
    """123 elements, most of them on loops."""
    if missing_reason(engine):
        pytest.skip(f"{missing_reason(engine)}")
    graph = read_dtd(shared_dtd("nitf-2-5.dtd"))
    chunking = Chunking(5, ElementPaths(graph, root="nitf"))
    count = 30 if engine == "reference" else 100
    parameters = QueryParameters(count=count, seed=3, predicates=1, wildcard=0.2, descendant=0.2)
    texts = [str(text) for text in generate_queries(graph, parameters)]
    for number, text in enumerate(texts):
        chunking.register(str(number), text)
    messages = list(generate_documents(graph, DocumentParameters(count=3, seed=4)))
    assert check(chunking, texts, messages, engine) > 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunks", [2, 6])
def test_the_descriptor_of_the_paper(engine: EngineName, chunks: int) -> None:
    if missing_reason(engine):
        pytest.skip(f"{missing_reason(engine)}")
    scenario = SCENARIOS["ejb"]
    chunking = Chunking(chunks, scenario.paths())
    texts = scenario.queries(60, seed=1)
    for number, text in enumerate(texts):
        chunking.register(str(number), text)
    assert not chunking.scheme().potpourri
    assert check(chunking, texts, [scenario.message(seed=1)], engine) > 30
