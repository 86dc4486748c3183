"""Verdicts: what an engine could not decide within its steps is said, by pair, and nothing else is
touched."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pyarrow as pa
import pytest

from every_engine import engines
from pathcast import Limits, Query, QueryIndex, Snapshot
from pathcast.engine import VERDICTS_SCHEMA
from pathcast.errors import EvaluationBudgetError, LimitExceededError
from pathcast.model import EngineName
from pathcast.testing import (
    ALPHABET_WITH_NAMESPACES,
    MessageShape,
    in_some_encoding,
    random_expression,
    random_message,
)

HEAVY = "count(//item[position() = last()]/preceding::item) > 1"
QUERIES = [
    Query("heavy", HEAVY),
    Query("heavy too", f"{HEAVY}  "),
    Query("plain", "/order/item"),
    Query("union", "//item | //nothing"),
    Query("either", "/order[item or note]"),
]
FEW = b"<order><item/></order>"
MANY = b"<order>" + b"<item/>" * 40 + b"</order>"
NONE = b"<order/>"
STEPS_MAX = 100
"""Enough for a message of one item, not for one of forty."""


def index_of(engine: EngineName) -> QueryIndex:
    index = QueryIndex(engine=engine, limits=Limits(evaluation_steps_max=STEPS_MAX))
    assert not index.register(QUERIES).rejected
    return index


@engines
def test_a_pair_over_budget_has_a_verdict_and_the_rest_is_answered(engine: EngineName) -> None:
    batch = index_of(engine).matcher().match_batch([FEW, MANY, b"<order>", None, NONE])
    rest = ["either", "plain", "union"]
    assert [list(result.query_ids) for result in batch] == [rest, rest, [], [], []]
    assert [list(result.verdicts) for result in batch] == [[], ["heavy", "heavy too"], [], [], []]
    assert [result.error is None for result in batch] == [True, True, False, True, True]
    verdict = batch[1].verdicts["heavy"]
    assert isinstance(verdict, EvaluationBudgetError)
    assert isinstance(verdict, LimitExceededError)
    assert verdict.code == "limit.evaluation_steps"
    assert verdict.params == {
        "limit": "evaluation_steps_max",
        "maximum": STEPS_MAX,
        "id": "heavy",
    }
    assert str(STEPS_MAX) in str(verdict)
    assert batch.stats.verdicts == 2
    # Both texts are one expression; the message without items has no candidate.
    assert batch.stats.evaluations == 2


@engines
def test_a_larger_budget_decides(engine: EngineName) -> None:
    batch = index_of(engine).freeze().matcher(limits=Limits()).match_batch([MANY, FEW])
    assert [list(result.verdicts) for result in batch] == [[], []]
    assert [("heavy" in result.query_ids) for result in batch] == [True, False]
    assert batch.stats.verdicts == 0


@engines
def test_verdicts_do_not_depend_on_what_is_asked_beside(engine: EngineName) -> None:
    """Steps are counted, never timed: the same pair has the same verdict in any batch."""
    matcher = index_of(engine).freeze().matcher()
    alone = [matcher.match_batch([message])[0] for message in (FEW, MANY, NONE)]
    batch = matcher.match_batch([FEW, MANY, NONE] * 50)
    for position, result in enumerate(batch):
        assert list(result.verdicts) == list(alone[position % 3].verdicts)
        assert list(result.query_ids) == list(alone[position % 3].query_ids)


@engines
@pytest.mark.parametrize("seed", range(4))
def test_verdicts_do_not_depend_on_the_messages_before(engine: EngineName, seed: int) -> None:
    """Nor do answers: an engine remembers names and paths, which must not change what it counts."""
    generator = random.Random(6100 + seed)
    alphabet = ALPHABET_WITH_NAMESPACES
    shape = MessageShape(has_markup=True, has_defaults=True)
    texts = ["//*[lang('en')]", "id('i1')/..", "//namespace::*[last()]", "//p:*[last()]"]
    texts += [random_expression(generator, alphabet) for _ in range(40)]
    index = QueryIndex(
        engine=engine,
        limits=Limits(evaluation_steps_max=30),
        namespaces=alphabet.namespaces,
    )
    assert not index.register([Query(text, text) for text in set(texts)]).rejected
    snapshot = index.freeze()
    batch = [
        in_some_encoding(generator, random_message(generator, alphabet, shape)) for _ in range(12)
    ]
    together = snapshot.matcher(threads=1).match_batch(batch)
    verdicts = 0
    for message, result in zip(batch, together, strict=True):
        [alone] = snapshot.matcher(threads=1).match_batch([message])
        assert list(result.verdicts) == list(alone.verdicts), message
        assert list(result.query_ids) == list(alone.query_ids), message
        verdicts += len(alone.verdicts)
    assert verdicts > 10


@engines
@pytest.mark.parametrize("is_chunked", [False, True])
def test_verdicts_as_a_table(engine: EngineName, is_chunked: bool) -> None:
    snapshot = index_of(engine).freeze()
    messages = [NONE, MANY, FEW, MANY]
    array = pa.chunked_array([messages[:2], messages[2:]]) if is_chunked else pa.array(messages)
    found = snapshot.matcher().match_arrow(array)
    assert found.verdicts.schema == VERDICTS_SCHEMA
    rows = found.verdicts.to_pylist()
    heavy = sorted(list(snapshot.query_ids).index(name) for name in ("heavy", "heavy too"))
    assert [(row["row"], row["query_number"]) for row in rows] == [
        (row, number) for row in (1, 3) for number in heavy
    ]
    assert {row["code"] for row in rows} == {"limit.evaluation_steps"}
    assert all(str(STEPS_MAX) in row["message"] for row in rows)
    assert len(found.matches) == len(found.errors) == 4


@engines
def test_no_verdicts_is_an_empty_table(engine: EngineName) -> None:
    found = index_of(engine).matcher().match_arrow(pa.array([FEW, NONE], pa.binary()))
    assert found.verdicts.num_rows == 0
    assert found.verdicts.schema == VERDICTS_SCHEMA


@engines
def test_a_removed_query_has_no_verdict(engine: EngineName) -> None:
    index = index_of(engine)
    matcher = index.matcher()
    index.freeze()
    index.register([Query("heavy late", HEAVY)])
    assert list(matcher.match_batch([MANY])[0].verdicts) == ["heavy", "heavy late", "heavy too"]
    index.remove(["heavy", "heavy late"])
    assert list(matcher.match_batch([MANY])[0].verdicts) == ["heavy too"]
    index.compact()
    assert list(matcher.match_batch([MANY])[0].verdicts) == ["heavy too"]


@engines
def test_verdicts_travel_between_processes(engine: EngineName) -> None:
    verdict = index_of(engine).matcher().match_batch([MANY])[0].verdicts["heavy"]
    again = pickle.loads(pickle.dumps(verdict))
    assert (type(again), again.code, again.params) == (type(verdict), verdict.code, verdict.params)


@engines
def test_plans_say_what_became_of_a_query(engine: EngineName) -> None:
    index = index_of(engine)
    index.register([Query("absent", "not(//p:x)", {"p": "urn:p"})])
    for plan in (index.plan, index.freeze().plan):
        assert (plan("plain").texts, plan("plain").cost.value) == (["/order/item"], "indexed")
        assert plan("either").texts == ["/order/item", "/order/note"]
        assert plan("union").expression is None
        assert plan("heavy").cost.value == "candidate-checked"
        assert plan("heavy").expression is not None
        assert plan("absent").cost.value == "scan"
        assert plan("absent").texts == ["/*"]
        assert "Q{urn:p}x" in str(plan("absent").expression)
        assert all(str(reason) for reason in plan("absent").reasons)


def test_a_snapshot_of_the_other_engine_has_the_same_verdicts(tmp_path: Path) -> None:
    pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")
    for writer, reader in (("kernel", "reference"), ("reference", "kernel")):
        path = tmp_path / writer
        index_of(writer).freeze().save(path)  # type: ignore[arg-type]
        matcher = Snapshot.open(path, engine=reader).matcher(
            limits=Limits(evaluation_steps_max=STEPS_MAX)
        )
        batch = matcher.match_batch([FEW, MANY])
        assert [list(result.verdicts) for result in batch] == [[], ["heavy", "heavy too"]]
        assert list(batch[0].query_ids) == ["either", "plain", "union"]
