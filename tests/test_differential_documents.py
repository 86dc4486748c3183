"""Real messages of many domains: engines == oracle == lxml on queries made from each message.

They bring what generated messages do not: default namespaces, many prefixes, encodings, internal
subsets, long text, deep nesting. Skipped, with the reason, where the shared data is absent.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from every_engine import engines
from generators import random_query_for
from oracles import LxmlQuery, assert_same_matches, lxml_tree
from oracles.engines import EngineName, made_by
from pathcast.errors import MessageError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_papers import parse
from pathcast_papers.filtering.oracle import Oracle
from pathcast_papers.language import compile_query
from shared_data import SHARED_DATA

DOCUMENTS = SHARED_DATA / "docs"

pytestmark = pytest.mark.skipif(
    not DOCUMENTS.is_dir(),
    reason=f"shared data is not here: {DOCUMENTS} (set PATHCAST_SHARED_DATA)",
)


DOMAINS = sorted(path.name for path in DOCUMENTS.iterdir()) if DOCUMENTS.is_dir() else []
SIZE_MAX = 60_000
PER_DOMAIN = 4
NIGHTLY_QUERIES = int(os.environ.get("PATHCAST_NIGHTLY", "20000")) // 100


def messages_of(domain: str) -> list[Path]:
    """Messages of a domain that are not too large, or its smallest one; smallest first."""
    found = sorted(
        (
            path
            for path in (DOCUMENTS / domain).rglob("*")
            if path.is_file()
            and path.suffix.lower() not in (".xsd", ".dtd", ".md", ".tsv", ".txt")
            and "not-well-formed" not in path.parts
        ),
        key=lambda path: (path.stat().st_size, path.name),
    )
    return [path for path in found if path.stat().st_size <= SIZE_MAX] or found[:1]


def check(path: Path, seed: str, count: int, engine: EngineName) -> int:
    """Compares on one message; gives the number of matches, 0 for a message that is refused."""
    message = path.read_bytes()
    try:
        tree = parse(message, Limits())
    except MessageError:
        (refused,) = made_by(engine, Registry).match([message])
        assert isinstance(refused.error, MessageError), path.name
        return 0
    root = tree_by_lxml(message)
    generator = random.Random(seed + path.name)
    queries = [random_query_for(generator, tree, f"q{number}") for number in range(count)]
    texts = {query.id: query.text for query in queries}
    oracle = Oracle(tree)
    by_oracle = [
        query.id
        for query in queries
        if oracle.satisfies(compile_query(query.text, query.namespaces))
    ]
    if root is not None:
        by_lxml = [query.id for query in queries if LxmlQuery(query).matches(root)]
        assert_same_matches(by_oracle, by_lxml, f"oracle on {path.name}", "lxml", texts)
    index = made_by(engine, Registry)
    report = index.add(queries)
    assert not report.rejected
    (result,) = index.match([message])
    assert result.error is None
    assert_same_matches(result.query_ids, by_oracle, f"{engine} on {path.name}", "oracle", texts)
    return len(by_oracle)


def tree_by_lxml(message: bytes) -> Any:
    """The tree; None where libxml2 refuses what XML 1.0 allows.

    Seen: a reference to an entity that only an external subset could declare, and a namespace name
    with a blank in it.
    """
    from lxml import etree

    try:
        return lxml_tree(message)
    except etree.XMLSyntaxError as error:
        if "not defined" in str(error) or "not a valid URI" in str(error):
            return None
        raise


@engines
@pytest.mark.parametrize("domain", DOMAINS)
def test_domain(engine: EngineName, domain: str) -> None:
    pytest.importorskip("lxml")
    paths = messages_of(domain)
    assert paths, "no message was looked at"
    chosen = paths[:: max(1, len(paths) // PER_DOMAIN)]
    matches = [check(path, "documents", 30, engine) for path in chosen]
    assert sum(matches) > 20, "too little matches to prove much"


@pytest.mark.nightly
@engines
@pytest.mark.parametrize("domain", DOMAINS)
def test_domain_at_length(engine: EngineName, domain: str) -> None:
    pytest.importorskip("lxml")
    for path in messages_of(domain):
        check(path, "nightly", NIGHTLY_QUERIES, engine)


@engines
def test_queries_of_one_domain_among_messages_of_all(engine: EngineName) -> None:
    """One index for every domain: names of one vocabulary must not disturb another."""
    pytest.importorskip("lxml")
    generator = random.Random(3)
    batch: list[bytes] = []
    queries: list[Query] = []
    for domain in DOMAINS:
        for path in messages_of(domain)[:2]:
            message = path.read_bytes()
            try:
                tree = parse(message, Limits())
            except MessageError:
                continue
            batch.append(message)
            queries += [
                random_query_for(generator, tree, f"{domain}-{len(queries) + number}")
                for number in range(10)
            ]
    assert len(batch) >= len(DOMAINS)
    compiled = {query.id: compile_query(query.text, query.namespaces) for query in queries}
    index = made_by(engine, Registry)
    assert not index.add(queries).rejected
    results = index.freeze().match(batch)
    for message, result in zip(batch, results, strict=True):
        oracle = Oracle(parse(message, Limits()))
        wanted = [query_id for query_id, each in compiled.items() if oracle.satisfies(each)]
        assert_same_matches(result.query_ids, wanted, engine, "oracle")
