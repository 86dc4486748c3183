"""Realistic subscriptions of eight domains on real messages: engine == lxml on every one.

`testdata/subscriptions/<domain>.toml` holds what somebody who waits for such messages would ask. If
one of these fails, a subscriber loses a message or gets a wrong one. The messages are data beside
the project; without them the comparison is skipped, with the reason.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from every_engine import engines
from oracles import LxmlQuery, assert_same_matches, lxml_tree
from oracles.engines import EngineName, made_by
from oracles.lxml_differences import may_differ
from pathcast.errors import MessageError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.query import CostClass, compile_query
from pathcast.registry import Registry
from pathcast_papers.message import parse_message
from shared_data import shared_path

FILES = sorted((Path(__file__).parent.parent / "testdata" / "subscriptions").glob("*.toml"))
SIZE_MAX = 450_000

domains = pytest.mark.parametrize("domain", [path.stem for path in FILES])


@cache
def load(domain: str) -> dict[str, Any]:
    (path,) = (path for path in FILES if path.stem == domain)
    return tomllib.loads(path.read_text("utf-8"))


def queries_of(domain: str) -> list[Query]:
    data = load(domain)
    namespaces: dict[str, str] = data["namespaces"]
    return [
        Query(subscription["id"], subscription["text"], namespaces)
        for subscription in data["subscription"]
    ]


@cache
def messages_of(domain: str) -> tuple[list[bytes], list[Any]]:
    """The messages of a domain that the door lets in, and what lxml makes of them."""
    from lxml import etree

    messages, trees = [], []
    for path in sorted(shared_path(f"docs/{domain}").rglob("*")):
        if (
            not path.is_file()
            or path.suffix.lower() in (".xsd", ".dtd", ".md", ".tsv", ".txt")
            or "not-well-formed" in path.parts
            or path.stat().st_size > SIZE_MAX
        ):
            continue
        message = path.read_bytes()
        try:
            parse_message(message, Limits())
        except MessageError:
            continue
        try:
            trees.append(lxml_tree(message))
        except etree.XMLSyntaxError:
            # Namespace names with blanks; see test_differential_documents.py.
            continue
        messages.append(message)
    return messages, trees


@cache
def truth(domain: str) -> tuple[frozenset[str], ...]:
    """For each message, the subscriptions that it satisfies, by lxml."""
    compiled = [(query.id, LxmlQuery(query)) for query in queries_of(domain)]
    return tuple(
        frozenset(query_id for query_id, query in compiled if query.matches(tree))
        for tree in messages_of(domain)[1]
    )


def check(engine: EngineName, domain: str, *, every: int = 1) -> None:
    messages, _ = messages_of(domain)
    queries = queries_of(domain)
    index = made_by(engine, Registry)
    report = index.add(queries)
    assert not report.rejected, {
        query_id: str(error) for query_id, error in report.rejected.items()
    }
    texts = {query.id: query.text for query in queries}
    results = index.freeze().match(messages[::every])
    for result, wanted in zip(results, truth(domain)[::every], strict=True):
        assert result.error is None
        assert not result.verdicts
        assert_same_matches(result.query_ids, wanted, f"{engine} on {domain}", "lxml", texts)


@domains
@engines
def test_subscriptions(engine: EngineName, domain: str) -> None:
    """Every message by the kernel, a sample by the reference engine."""
    pytest.importorskip("lxml")
    check(engine, domain, every=5 if engine == "reference" else 1)


@pytest.mark.nightly
@domains
def test_subscriptions_by_the_reference_engine(domain: str) -> None:
    pytest.importorskip("lxml")
    check("reference", domain)


@domains
def test_each_subscription_meets_some_message(domain: str) -> None:
    """Or says why none; a subscription that nothing satisfies proves little."""
    pytest.importorskip("lxml")
    messages, _ = messages_of(domain)
    assert len(messages) >= 30, "too few messages were looked at"
    met = frozenset().union(*truth(domain))
    for subscription in load(domain)["subscription"]:
        reason = subscription.get("absent", "")
        assert (subscription["id"] in met) is not bool(reason), (subscription["id"], reason)
    everywhere = frozenset.intersection(*truth(domain))
    assert not everywhere, f"{everywhere} tell no messages apart"


def test_there_are_ten_for_each_domain() -> None:
    assert len(FILES) >= 8
    seen: set[str] = set()
    for path in FILES:
        data = load(path.stem)
        assert data["domain"] == path.stem
        assert len(data["subscription"]) >= 10
        for subscription in data["subscription"]:
            assert subscription["id"] not in seen
            seen.add(subscription["id"])
            assert subscription["asks"].endswith(".")
            assert may_differ(subscription["text"]) is None


def test_they_ask_in_many_ways() -> None:
    """Structure, values, functions, positions, axes: a set that dropped one would prove less."""
    texts = "\n".join(query.text for path in FILES for query in queries_of(path.stem))
    wanted = [
        "starts-with(",
        "contains(",
        "count(",
        "sum(",
        "not(",
        " or ",
        " and ",
        " | ",
        "lang(",
    ]
    wanted += ["following-sibling::", "ancestor::", "position()", "last()", "[1]", "..//", "*:"]
    wanted += ["substring", "string-length(", "normalize-space(", "local-name(", "round(", "/*["]
    wanted += [" >= ", " > ", " < ", " <= ", "!=", "[@"]
    assert [construct for construct in wanted if construct not in texts] == []


def test_their_cost_classes_are_mixed() -> None:
    """Most are indexed at least in part: what a service would live on."""
    costs = [
        compile_query(query.text, query.namespaces).cost
        for path in FILES
        for query in queries_of(path.stem)
    ]
    assert costs.count(CostClass.CANDIDATE_CHECKED) >= len(costs) // 8
    assert costs.count(CostClass.INDEXED) >= len(costs) // 4
    assert costs.count(CostClass.SCAN) <= len(costs) // 8
