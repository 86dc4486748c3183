"""`testdata/flwr.toml`: the queries of the papers and the rules of the language, on every engine.

A failure means that the rule named is broken. Saxon is asked the same, so that the table is not our
opinion alone.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from customised_cases import GENEROUS, Opinion, Skipped, by_broker, by_saxon
from every_engine import engines
from oracles import saxon_missing_reason
from oracles.engines import EngineName, made_by
from oracles.saxon_differences import DIFFERENCES
from pathcast import Registry
from pathcast.engine import gates_that_hold
from pathcast.errors import PathcastError
from pathcast.message.canonical import canonical
from pathcast.model import Subscription
from pathcast.query import compile_subscription

ROOT = Path(__file__).parent.parent
CASES: list[dict[str, Any]] = tomllib.loads((ROOT / "testdata" / "flwr.toml").read_text("utf-8"))[
    "case"
]

cases = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def expected(message: dict[str, Any]) -> Opinion:
    if "error" in message:
        assert "results" not in message
        return str(message["error"])
    if "results" not in message:
        return None
    return tuple(canonical(result.encode()) for result in message["results"])


@cases
@engines
def test_engine(engine: EngineName, case: dict[str, Any]) -> None:
    registry = made_by(engine, Registry, limits=GENEROUS)
    row = Subscription("s", "subscriber", case["query"], namespaces=case.get("namespaces"))
    report = registry.add([row])
    if "refused" in case:
        assert report.rejected["s"].code == case["refused"]
        return
    assert not report.rejected, str(report.rejected)
    messages = [message["text"].encode() for message in case["messages"]]
    for found, message in zip(by_broker(registry, messages), case["messages"], strict=True):
        assert found.get("s") == expected(message), message["text"]


@pytest.mark.skipif(saxon_missing_reason() is not None, reason=str(saxon_missing_reason()))
@cases
def test_saxon(case: dict[str, Any]) -> None:
    """Saxon does not know what is delivered, so it is asked for the results alone."""
    for message in case["messages"]:
        wanted = expected(message)
        found = by_saxon(case["query"], message["text"].encode(), case.get("namespaces"))
        if "saxon" in message:
            assert message["saxon"] in DIFFERENCES
            assert found == Skipped(message["saxon"])
        elif wanted is not None:
            assert found == wanted, message["text"]


@cases
def test_the_gate_lets_through_what_is_delivered(case: dict[str, Any]) -> None:
    """The paths that are indexed for a subscription; a gate that is too narrow loses messages."""
    if "refused" in case:
        with pytest.raises(PathcastError):
            compile_subscription(case["query"], case.get("namespaces"))
        return
    compiled = compile_subscription(case["query"], case.get("namespaces"))
    assert compiled.alternatives
    for message in case["messages"]:
        if "results" in message or "error" in message:
            [found] = made_by(
                "reference", gates_that_hold, compiled.alternatives, [message["text"]]
            )
            assert len(found.query_ids) > 0, compiled.alternatives


def test_the_papers_are_there() -> None:
    sources = [case["source"] for case in CASES]
    assert sum(source.startswith("002") for source in sources) >= 3
    assert sum(source.startswith("001") for source in sources) >= 4
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names) >= 25
    delivered = sum("results" in message for case in CASES for message in case["messages"])
    assert delivered >= 30
