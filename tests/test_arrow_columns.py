"""Messages come as columns of any library that speaks Arrow, and results go to any.

If one of these fails, a column is refused that holds messages, or is read as something else: a
table as its columns, a view as its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest

from pathcast import Query, Registry, Subscription

LONG = b"<a><b>" + b"longer than a view holds in place" + b"</b></a>"
MESSAGES: list[bytes | None] = [b"<a><b/></a>", b"<a", None, b"<c/>", b"", LONG]


def index_of() -> Registry:
    index = Registry()
    index.add([Query("q3", "//b"), Query("q2", "//c"), Query("q1", "/a/b")])
    return index


def broker_of() -> Registry:
    registry = Registry()
    registry.add(Subscription("s", "ann", "//b"))
    return registry


TEXTS = [None if message is None else message.decode() for message in MESSAGES]

COLUMNS: dict[str, Callable[[], Any]] = {
    "string": lambda: pa.array(TEXTS, pa.string()),
    "large_string": lambda: pa.array(TEXTS, pa.large_string()),
    "string_view": lambda: pa.array(TEXTS, pa.string_view()),
    "binary_view": lambda: pa.array(MESSAGES, pa.binary_view()),
    "slice of a view": lambda: pa.array([b"<zz/>", *MESSAGES], pa.binary_view()).slice(1),
    "dictionary": lambda: pa.array(MESSAGES).dictionary_encode(),
    "dictionary of text": lambda: pa.chunked_array([TEXTS[:2], TEXTS[2:]]).dictionary_encode(),
    "table": lambda: pa.table({"message": TEXTS}),
    "record batch": lambda: pa.record_batch({"message": MESSAGES}),
    "polars series": lambda: polars.Series(TEXTS),
    "polars chunks": lambda: polars.Series(TEXTS[:4]).append(polars.Series(TEXTS[4:])),
    "polars bytes": lambda: polars.Series(MESSAGES),
    "polars frame": lambda: polars.DataFrame({"message": MESSAGES}),
    "duckdb": lambda: duckdb.from_arrow(pa.table({"message": TEXTS})),
}
"""The messages in the layouts of Arrow, and as other libraries have them."""


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_any_library(column: str) -> None:
    index, registry = index_of(), broker_of()
    expected = index.freeze().match(MESSAGES)
    delivered = registry.deliver(MESSAGES, list("abcdef")).table.to_pydict()
    for matcher in (index, index.freeze()):
        batch = matcher.match(COLUMNS[column]())
        assert batch.matches.to_pylist() == expected.matches.to_pylist()
        assert batch.errors.to_pylist() == expected.errors.to_pylist()
        assert batch.stats.refused == expected.stats.refused
    found = registry.deliver(COLUMNS[column](), list("abcdef"))
    assert found.table.to_pydict() == delivered
    assert len(found) > 0
    with_wrong_id = registry.deliver(COLUMNS[column](), [3, *"bcdef"])
    assert [place for place, _ in with_wrong_id.refusals] == sorted(
        {0, *(place for place, _ in found.refusals)}
    )


@pytest.mark.parametrize(
    "wrong",
    [
        pa.table({"id": ["1"], "message": ["<a/>"]}),
        polars.DataFrame({"id": ["1"], "message": ["<a/>"]}),
        pa.table({}),
        pa.array([1, 2]),
        pa.array([["<a/>"]]),
    ],
    ids=["two columns", "polars frame", "no column", "numbers", "lists"],
)
def test_columns_that_are_no_messages(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"messages must be"):
        index_of().match(wrong)


def test_results_are_read_by_other_libraries() -> None:
    batch = index_of().freeze().match(MESSAGES)
    frame = polars.DataFrame(batch.table)
    assert frame["matches"].to_list() == batch.matches.to_pylist()
    counted = duckdb.sql("select count(errors) from batch").fetchall()
    assert counted == [(batch.stats.refused,)]
    deliveries = broker_of().deliver(MESSAGES)
    assert polars.DataFrame(deliveries)["fragment"].to_list() == [b"<b/>", LONG[3:-4]]
    assert duckdb.sql("select distinct subscriber from deliveries").fetchall() == [("ann",)]


def test_notebooks_show_what_came() -> None:
    shown = index_of().freeze().match(MESSAGES * 3)._repr_html_()
    assert "and 8 more" in shown
    assert "q1, q3" in shown
    assert "<td>&lt;b/&gt;</td>" in broker_of().deliver([b"<a><b/></a>"])._repr_html_()
