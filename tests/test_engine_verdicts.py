"""Verdicts: what an engine could not decide within its steps is said, by pair, and nothing else is
touched."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pyarrow as pa
import pytest

from every_engine import engines, kernel_engines
from generators import (
    ALPHABET_WITH_NAMESPACES,
    MessageShape,
    in_some_encoding,
    random_expression,
    random_message,
)
from oracles.engines import EngineName, made_by, running
from pathcast import Limits, Query, Registry, Snapshot
from pathcast.engine import VERDICTS_SCHEMA
from pathcast.errors import EvaluationBudgetError, LimitExceededError, MessageBudgetError
from pathcast.query import CompiledQuery, compile_query

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


def index_of(engine: EngineName) -> Registry:
    index = made_by(engine, Registry, limits=Limits(evaluation_steps_max=STEPS_MAX))
    assert not index.add(QUERIES).rejected
    return index


@kernel_engines
def test_a_pair_over_budget_has_a_verdict_and_the_rest_is_answered(engine: EngineName) -> None:
    batch = index_of(engine).match([FEW, MANY, b"<order>", None, NONE])
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
    batch = running(index_of(engine).freeze(), Limits()).match([MANY, FEW])
    assert [list(result.verdicts) for result in batch] == [[], []]
    assert [("heavy" in result.query_ids) for result in batch] == [True, False]
    assert batch.stats.verdicts == 0


@engines
def test_verdicts_do_not_depend_on_what_is_asked_beside(engine: EngineName) -> None:
    """Steps are counted, never timed: the same pair has the same verdict in any batch."""
    matcher = index_of(engine).freeze()
    alone = [matcher.match([message])[0] for message in (FEW, MANY, NONE)]
    batch = matcher.match([FEW, MANY, NONE] * 50)
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
    index = made_by(
        engine,
        Registry,
        limits=Limits(evaluation_steps_max=30),
        namespaces=alphabet.namespaces,
    )
    assert not index.add([Query(text, text) for text in set(texts)]).rejected
    snapshot = index.freeze()
    batch = [
        in_some_encoding(generator, random_message(generator, alphabet, shape)) for _ in range(12)
    ]
    together = snapshot.match(batch)
    verdicts = 0
    for message, result in zip(batch, together, strict=True):
        [alone] = snapshot.match([message])
        assert list(result.verdicts) == list(alone.verdicts), message
        assert list(result.query_ids) == list(alone.query_ids), message
        verdicts += len(alone.verdicts)
    assert verdicts > 10


@kernel_engines
@pytest.mark.parametrize("is_chunked", [False, True])
def test_verdicts_as_a_table(engine: EngineName, is_chunked: bool) -> None:
    snapshot = index_of(engine).freeze()
    messages = [NONE, MANY, FEW, MANY]
    array = pa.chunked_array([messages[:2], messages[2:]]) if is_chunked else pa.array(messages)
    found = snapshot.match(array)
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
    found = index_of(engine).match(pa.array([FEW, NONE], pa.binary()))
    assert found.verdicts.num_rows == 0
    assert found.verdicts.schema == VERDICTS_SCHEMA


@kernel_engines
def test_a_removed_query_has_no_verdict(engine: EngineName) -> None:
    index = index_of(engine)
    index.freeze()
    index.add([Query("heavy late", HEAVY)])
    assert list(index.match([MANY])[0].verdicts) == ["heavy", "heavy late", "heavy too"]
    index.remove(["heavy", "heavy late"])
    assert list(index.match([MANY])[0].verdicts) == ["heavy too"]
    index.freeze()
    assert list(index.match([MANY])[0].verdicts) == ["heavy too"]


@engines
def test_verdicts_travel_between_processes(engine: EngineName) -> None:
    verdict = index_of(engine).match([MANY])[0].verdicts["heavy"]
    again = pickle.loads(pickle.dumps(verdict))
    assert (type(again), again.code, again.params) == (type(verdict), verdict.code, verdict.params)


@engines
def test_plans_say_what_became_of_a_query(engine: EngineName) -> None:
    index = index_of(engine)
    index.add([Query("absent", "not(//p:x)", {"p": "urn:p"})])

    def plan(name: str) -> CompiledQuery:
        asked = index.get(name)
        return compile_query(asked.query, asked.namespaces)

    assert (plan("plain").texts, plan("plain").cost.value) == (["/order/item"], "indexed")
    assert plan("either").texts == ["/order/item", "/order/note"]
    assert plan("union").expression is None
    assert plan("heavy").cost.value == "candidate-checked"
    assert plan("heavy").expression is not None
    assert plan("absent").cost.value == "scan"
    assert plan("absent").texts == ["/*"]
    assert "Q{urn:p}x" in str(plan("absent").expression)
    assert all(str(reason) for reason in plan("absent").reasons)


@kernel_engines
def test_an_opened_snapshot_has_the_same_verdicts(engine: EngineName, tmp_path: Path) -> None:
    index_of(engine).freeze().save(tmp_path / "s")
    matcher = made_by(engine, Snapshot.open, tmp_path / "s", Limits(evaluation_steps_max=STEPS_MAX))
    batch = matcher.match([FEW, MANY])
    assert [list(result.verdicts) for result in batch] == [[], ["heavy", "heavy too"]]
    assert list(batch[0].query_ids) == ["either", "plain", "union"]


def chains(count: int, depth: int = 200) -> bytes:
    """Chains of nested elements, each with something of every number at its end."""
    ends = b"".join(b'<b y="%d"/>' % number for number in range(20))
    chain = b'<a x="1">' * depth + ends + b"</a>" * depth
    return b"<r>" + chain * count + b"</r>"


RECURSIVE = [Query(f"q{n}", f'//a[@x="{n % 3}"]//a[@x!="{n}"]//b[@y="{n}"]') for n in range(30)]
"""Those that 3 divides with a remainder of 1 hold in `chains`, from q4 to q19."""


@kernel_engines
def test_what_a_message_has_no_steps_left_for_is_named(engine: EngineName) -> None:
    """One evaluation uses up what all may take: its verdict is the message's."""
    limits = Limits(message_steps_max=STEPS_MAX)
    index = made_by(engine, Registry, limits=limits)
    index.add(QUERIES)
    batch = index.match([FEW, MANY, NONE])
    assert [list(result.query_ids) for result in batch][1:] == [["either", "plain", "union"], []]
    assert not batch[0].verdicts
    verdicts = batch[1].verdicts
    assert list(verdicts) == ["heavy", "heavy too"]
    assert isinstance(verdicts["heavy"], MessageBudgetError)
    assert verdicts["heavy"].params == {
        "limit": "message_steps_max",
        "maximum": STEPS_MAX,
        "id": "heavy",
    }
    rows = index.match(pa.array([FEW, MANY, NONE])).verdicts.to_pylist()
    assert {(row["row"], row["code"]) for row in rows} == {(1, "limit.message_steps")}
    assert all("message_steps_max" in row["message"] for row in rows)


@pytest.mark.parametrize("engine", ["kernel", "nfa"])
@pytest.mark.parametrize("steps_max", [10, 2_000, 20_000, 100_000, 2_000_000])
def test_conditions_are_decided_or_named(engine: EngineName, steps_max: int) -> None:
    """Never a wrong no: a query holds, does not hold, or is named, whatever the limit is."""
    pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")
    messages = [chains(1), chains(10), chains(40), b"<r><a/></r>"]
    index = made_by(engine, Registry)
    index.add([*RECURSIVE, Query("bare", "//b")])
    known = [set(result.query_ids) for result in index.match(messages)]
    assert known[1] == {"bare", "q4", "q7", "q10", "q13", "q16", "q19"}
    limits = Limits(message_steps_max=steps_max)
    snapshot = running(index.freeze(), limits, threads=2)
    alone = [snapshot.match([each])[0] for each in messages]
    together = snapshot.match(messages * 3)
    for place, result in enumerate(together):
        found, undecided = set(result.query_ids), set(result.verdicts)
        assert found <= known[place % 4] <= found | undecided
        assert not found & undecided
        # Neither the batch nor what the worker has seen before has a part in it.
        assert (found, undecided) == (
            set(alone[place % 4].query_ids),
            set(alone[place % 4].verdicts),
        )
        # Structure costs the plain NFA steps as well.
        assert "bare" in found or place % 4 == 3 or engine == "nfa"
    if steps_max < 2_000:
        assert len(together[2].verdicts) > 20
    if steps_max == 2_000_000:
        assert not together[1].verdicts


@pytest.mark.parametrize("engine", ["kernel", "nfa"])
def test_steps_grow_with_the_message_and_not_with_its_square(engine: EngineName) -> None:
    """Four times as many chains take four times the steps; three times as deep ones three times."""
    pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")
    index = made_by(engine, Registry)
    index.add([*RECURSIVE, Query("position", "//a[2]//a[1]//b"), Query("value", '//*[.="1"]')])
    limits = Limits(depth_max=100_000)

    def steps(*shape: int) -> int:
        return running(index.freeze(), limits).match([chains(*shape)]).stats.steps

    assert 3.6 < steps(400) / steps(100) < 4.4
    assert 2.8 < steps(30, 6_000) / steps(30, 2_000) < 3.2
    # Queries that ask for a name which the message does not have cost nothing, if they do not come
    # between the others in the order of nested paths: 64 of these are looked at together, and what
    # does not fit any more is looked at once more.
    before = steps(100)
    for name, most in (("z", 1.1), ("absent", 1.2)):
        for start, count in ((0, 10), (10, 90)):
            index.add(
                Query(f"{name}{n}", f"//a[@x]//a[{n + 1}]//{name}{n}")
                for n in range(start, start + count)
            )
            assert steps(100) < most * before
