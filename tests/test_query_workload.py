"""The published filtering workload: every query is read, by both compilers alike.

If these fail, queries that the field measures with are refused, or two of them are taken for equal.
"""

from __future__ import annotations

import gzip
import importlib

import pytest

from pathcast.query import canonical_form
from shared_data import shared_path


def queries_of(name: str) -> list[str]:
    """The lines of a query file of the shared data."""
    path = shared_path(f"workloads/yfilter/queries/{name}")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line.strip() for line in data.decode().splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("name", "count"),
    [("queries.txt", 196), ("queries1.txt", 10), ("queries2.txt", 10), ("queries3.txt", 10)],
)
def test_mixed_queries(name: str, count: int) -> None:
    queries = queries_of(name)
    assert len(queries) == count
    for query in queries:
        canonical = canonical_form(query)
        assert canonical_form(canonical) == canonical


def test_linear_queries() -> None:
    """They are distinct, and written as we write them."""
    queries = queries_of("queries-153928-d.txt.gz")
    assert len(set(queries)) == 153_928
    for query in queries[::20]:
        assert canonical_form(query) == query


def test_kernel_on_linear_queries() -> None:
    try:
        kernel = importlib.import_module("pathcast_kernel")
    except ImportError as error:
        pytest.skip(f"the native kernel is not installed: {error}")
    queries = queries_of("queries-153928-d.txt.gz")
    assert [kernel.canonical_form(query, {}) for query in queries] == queries


@pytest.mark.nightly
def test_every_linear_query() -> None:
    queries = queries_of("queries-153928-d.txt.gz")
    assert [canonical_form(query) for query in queries] == queries
