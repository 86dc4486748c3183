"""Chunks evaluated by workers: the answer of one process that does not cut the message.

If these fail, where a chunk is evaluated decides who gets a delivery.
"""

from __future__ import annotations

import pickle
from random import Random
from typing import TYPE_CHECKING

import pytest

from oracles.engines import EngineName, made_by

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

from generators.chunking_cases import Case
from oracles.engines import ENGINES, missing_reason
from pathcast import Query, Registry
from pathcast.chunking import (
    ChunkAnswer,
    ChunkEvaluator,
    Chunking,
    Cut,
    FilteringScheme,
    merged,
    tasks_of,
)
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast_papers.chunking.plain import cut_plainly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def evaluated(
    scheme: FilteringScheme, message: bytes, cut: Cut, *, limits: Limits | None = None
) -> ChunkAnswer:
    """The answer of workers that get tasks as executors do: pickled; in another order."""
    evaluate, answers = pickle.dumps(ChunkEvaluator(limits=limits).evaluate), []
    for task in reversed(list(tasks_of(scheme, message, cut))):
        there = pickle.loads(evaluate)(pickle.loads(pickle.dumps(task)))
        answers.append(pickle.loads(pickle.dumps(there)))
    return merged(answers)


@pytest.mark.parametrize("engine", ENGINES)
def test_workers_give_the_answer_of_one_process(engine: EngineName) -> None:
    if missing_reason(engine):
        pytest.skip(f"{missing_reason(engine)}")
    matches = 0
    for seed in range(4):
        case = Case(Random(seed), has_namespaces=seed == 1)
        chunking, index = Chunking(3, case.paths), made_by(engine, Registry)
        for number in range(30):
            text = case.query()
            if not index.add([Query(str(number), text, case.namespaces)]).accepted:
                continue
            try:
                chunking.register(str(number), text, case.namespaces)
            except PathcastError:
                index.remove([str(number)])
        message = case.message()
        scheme = chunking.scheme()
        cut = cut_plainly(scheme, message)
        expected = tuple(index.match([message])[0].query_ids)
        answer = made_by(engine, evaluated, scheme, message, cut)
        assert (answer.query_ids, answer.undecided) == (expected, {})
        matches += len(expected)
    assert matches > 10


def test_executors_of_a_session_give_it_too(spark: SparkSession) -> None:
    case = Case(Random(3), has_namespaces=True)
    queries = [case.query() for _ in range(30)]
    chunking, index = Chunking(3, case.paths), made_by("reference", Registry)
    index.add([Query(str(n), text, case.namespaces) for n, text in enumerate(queries)])
    for number in index.freeze().query_ids:
        chunking.register(number, queries[int(number)], case.namespaces)
    message, scheme = case.message(), chunking.scheme()
    expected = tuple(index.match([message])[0].query_ids)
    tasks = list(tasks_of(scheme, message, cut_plainly(scheme, message)))
    executors = spark.sparkContext.parallelize(tasks, len(tasks))
    answer = merged(executors.map(ChunkEvaluator().evaluate).collect())
    assert expected
    assert (answer.query_ids, answer.undecided) == (expected, {})


def test_what_a_worker_cannot_hold_is_said_of_the_queries_that_need_it() -> None:
    chunking = Chunking(1)
    chunking.register("in a chunk", "/a/b")
    chunking.register("in the potpourri", "//c")
    message = b"<a><b/>" + b"<c/>" * 100 + b"</a>"
    scheme = chunking.scheme()
    answer = made_by(
        "reference",
        evaluated,
        scheme,
        message,
        cut_plainly(scheme, message),
        limits=Limits(message_bytes_max=100),
    )
    assert answer.query_ids == ("in a chunk",)
    assert {key: error.code for key, error in answer.undecided.items()} == {
        "in the potpourri": "limit.message_bytes"
    }


def test_queries_that_cannot_be_decided_have_a_verdict() -> None:
    chunking = Chunking(1)
    chunking.register("dear", "/a/b[count(c[count(../c[. = ../c]) > 1]) > 1]")
    chunking.register("cheap", "/a/b/c")
    message = b"<a><b>" + b"<c>1</c>" * 60 + b"</b></a>"
    scheme = chunking.scheme()
    answer = made_by(
        "reference",
        evaluated,
        scheme,
        message,
        cut_plainly(scheme, message),
        limits=Limits(evaluation_steps_max=500),
    )
    assert answer.query_ids == ("cheap",)
    assert {key: error.code for key, error in answer.undecided.items()} == {
        "dear": "limit.evaluation_steps"
    }


def test_nothing_to_evaluate_is_an_answer() -> None:
    chunking = Chunking(1)
    chunking.register("q", "/a/b")
    scheme = chunking.scheme()
    answer = made_by("reference", evaluated, scheme, b"<x/>", cut_plainly(scheme, b"<x/>"))
    assert (answer.query_ids, answer.undecided) == ((), {})
