"""`testdata/matching.toml`: every case on every engine, on the oracle and on lxml.

Each case names the section that lays its behaviour down; a failure means that section is broken.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from every_engine import engines
from oracles import assert_same_matches, lxml_matches, number_differs, oracle_matches
from oracles.engines import EngineName, made_by
from pathcast.errors import MessageError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_papers import parse

CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent.parent / "testdata" / "matching.toml").read_text("utf-8")
)["case"]

cases = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def queries_of(case: dict[str, Any]) -> list[Query]:
    namespaces = case.get("namespaces")
    return [Query(query_id, text, namespaces) for query_id, text in case["queries"].items()]


def test_there_are_cases_of_every_kind() -> None:
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names)) >= 80
    assert all(case["source"] for case in CASES)
    assert any(case.get("refused") for case in CASES)
    assert any(case.get("rejected") for case in CASES)


@cases
@engines
def test_engine(engine: EngineName, case: dict[str, Any]) -> None:
    index = made_by(engine, Registry)
    report = index.add(queries_of(case))
    assert {query_id: error.code for query_id, error in report.rejected.items()} == case.get(
        "rejected", {}
    )
    for matcher in (index, index.freeze()):
        (result,) = matcher.match([case["message"].encode()])
        assert isinstance(result.error, MessageError) == case.get("refused", False)
        assert_same_matches(result.query_ids, case["expected"], engine, "the case", case["queries"])


@cases
def test_oracle(case: dict[str, Any]) -> None:
    if case.get("refused"):
        with pytest.raises(MessageError):
            parse(case["message"].encode(), Limits())
        return
    message = case["message"].encode()
    rejected = case.get("rejected", {})
    found = [
        query.id
        for query in queries_of(case)
        if query.id not in rejected and oracle_matches(query, message)
    ]
    assert_same_matches(found, case["expected"], "oracle", "the case", case["queries"])


@cases
def test_lxml(case: dict[str, Any]) -> None:
    """The expectations are XPath's and not our own."""
    pytest.importorskip("lxml")
    if case.get("refused"):
        pytest.skip("the message is refused")
    if number_differs("1e3") and "1e3" in case["message"]:
        pytest.skip("libxml2 reads exponents as numbers, XPath 1.0 does not")
    message = case["message"].encode()
    rejected = case.get("rejected", {})
    found = [
        query.id
        for query in queries_of(case)
        if query.id not in rejected and lxml_matches(query, message)
    ]
    assert_same_matches(found, case["expected"], "lxml", "the case", case["queries"])
