"""Subscriptions: what a file may hold, what is rejected, and the generations made of it."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pathcast.engine import Snapshot
from pathcast.errors import ConfigError
from pathcast.model import EngineName
from pathcast.spark.subscriptions import Generation, SubscriptionBook, read_subscriptions

HEADER = "subscriber\tquery_id\tquery\n"


def book(path: Path, **options: str) -> SubscriptionBook:
    return SubscriptionBook(path, path.parent / "store", engine="reference", namespaces=options)


def write(path: Path, *lines: str) -> Path:
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return path


def pairs(generation: Generation) -> list[tuple[str, str]]:
    rows = pq.read_table(generation.table).to_pylist()
    return [(row["subscriber"], row["query_id"]) for row in rows]


def test_a_query_of_several_subscribers_is_registered_once(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a", "bob\tq1\t//a", "bob\tq2\t//b", "ann\tq1\t//a")
    generation = book(path).current()
    assert (generation.queries, generation.subscriptions) == (2, 3)
    assert pairs(generation) == [("ann", "q1"), ("bob", "q1"), ("bob", "q2")]
    assert generation.rejected == ()


def test_numbers_in_the_table_are_those_of_the_snapshot(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tz\t//a", "ann\ty\t//b", "ann\tx\t//c")
    generation = book(path).current()
    ids = Snapshot.open(generation.snapshot, engine="reference").query_ids
    for row in pq.read_table(generation.table).to_pylist():
        assert ids[row["query_number"]] == row["query_id"]


def test_bad_rows_are_rejected_with_their_reason_and_cost_no_other(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.tsv",
        "ann\tgood\t//a",
        "ann\tbad\t//[",
        "bob\tgood\t//b",  # the same id with another text
        "no tabs",
        "ann\t\t//c",
        "a\tb\tc\td",
    )
    generation = book(path).current()
    assert pairs(generation) == [("ann", "good")]
    rejected = {(r.subscriber, r.query_id): r for r in generation.rejected}
    assert rejected["ann", "bad"].code.startswith("XPST")
    assert rejected["bob", "good"].code == "query.duplicate"
    assert "empty" in rejected["ann", ""].reason
    malformed = [r for r in generation.rejected if not r.subscriber]
    assert [r.query for r in malformed] == ["no tabs", "a\tb\tc\td"]
    assert "1 columns, 3 expected" in malformed[0].reason


def test_quotes_that_nobody_meant_for_csv_are_text(tmp_path: Path) -> None:
    # A CSV reader would take them for the marks of a quoted field and swallow lines.
    lines = ['ann\tq1\t"x', "ann\tq2\t//a[@b='c']", 'ann\tq3\t"x" = //a', 'b"b\tq4\t//a = "x"']
    rows, malformed = read_subscriptions(write(tmp_path / "s.tsv", *lines))
    assert rows == [tuple(line.split("\t")) for line in lines]
    assert malformed == []


HOSTILE = [
    'ann "the boss"',
    '"ann"',
    "ann,bob",
    "a\tb",
    "",
    " ",
    "é\u2028",
    "#1",
    "x\r\ny",
    '"',
    "'",
]
"""Ids and queries as a spreadsheet may hold them; not those that look like several lines."""


@pytest.mark.parametrize("kind", ["tsv", "csv"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("writer", ["csv", "pandas"])
def test_tables_written_by_csv_and_pandas_are_read_as_they_were(
    tmp_path: Path, kind: str, quoting: Literal[0, 1], writer: str
) -> None:
    path = tmp_path / f"s.{kind}"
    delimiter = "\t" if kind == "tsv" else ","
    rows = [
        (who, f"q{n}-{m}", what) for n, who in enumerate(HOSTILE) for m, what in enumerate(HOSTILE)
    ]
    if writer == "pandas":
        frame = pytest.importorskip("pandas").DataFrame(
            rows, columns=["subscriber", "query_id", "query"]
        )
        frame.to_csv(path, sep=delimiter, quoting=quoting)
    else:
        with path.open("w", newline="") as handle:
            written = csv.writer(handle, delimiter=delimiter, quoting=quoting)
            written.writerows([("subscriber", "query_id", "query"), *rows])
    found, malformed = read_subscriptions(path)
    assert found == [row for row in rows if row[0] and row[2]]
    assert len(malformed) == len([row for row in rows if not (row[0] and row[2])])


def test_a_line_without_a_query_is_rejected_with_its_number(tmp_path: Path) -> None:
    rows, malformed = read_subscriptions(write(tmp_path / "s.tsv", "ann\tq1\t//a", "ann\tq2"))
    assert rows == [("ann", "q1", "//a")]
    assert ["line 3: 2 columns, 3 expected" in found.reason for found in malformed] == [True]


def test_parquet_and_tsv_give_the_same_generation(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a", "bob\tq2\t//b")
    table = pa.table(
        {"query": ["//a", "//b"], "subscriber": ["ann", "bob"], "query_id": ["q1", "q2"]}
    )
    pq.write_table(table, tmp_path / "s.parquet")
    one, two = book(path).current(), book(tmp_path / "s.parquet").current()
    assert (one.snapshot_version, one.digest) == (two.snapshot_version, two.digest)


def test_a_change_of_the_file_is_seen_and_the_old_generation_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a")
    subscriptions = book(path)
    first = subscriptions.current()
    assert subscriptions.current() is first, "an unchanged file is compiled again"
    # One more subscriber: the queries, and so the snapshot, are the same; the table is not.
    write(path, "ann\tq1\t//a", "bob\tq1\t//a")
    second = subscriptions.current()
    assert second.snapshot_version == first.snapshot_version
    assert second.digest != first.digest
    assert pairs(subscriptions.pinned(first.snapshot_version, first.digest)) == [("ann", "q1")]


@pytest.mark.parametrize("engine", ["reference", "kernel"])
def test_generations_of_a_changing_file_are_those_of_a_new_book(
    tmp_path: Path, engine: EngineName
) -> None:
    """Queries that go, change, come back or are mended must leave nothing of what they were."""
    if engine == "kernel":
        pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")
    path = tmp_path / "s.tsv"
    subscriptions = SubscriptionBook(path, tmp_path / "store", engine=engine)
    message = b"<a><b/><c>1</c></a>"
    states = [
        ["ann\tq1\t//b", "bob\tq2\t//b[last()]", "bob\tq3\t//["],
        ["ann\tq1\t//z", "bob\tq2\t//b[last()]", "bob\tq3\t//c | //z"],
        ["bob\tq2\t//b[last()]"],
        ["ann\tq1\t//b", "bob\tq2\tnot(//b)", "bob\tq3\t//c[. = 1 or @x]"],
    ]
    for number, lines in enumerate(states):
        write(path, *lines)
        os.utime(path, ns=(number + 1, number + 1))
        changed = subscriptions.current()
        fresh = SubscriptionBook(path, tmp_path / f"store{number}", engine=engine).current()
        assert pairs(changed) == pairs(fresh)
        assert [r.query_id for r in changed.rejected] == [r.query_id for r in fresh.rejected]
        found = []
        for generation in (changed, fresh):
            opened = Snapshot.open(generation.snapshot, engine=engine)
            assert len(opened) == generation.queries
            (result,) = opened.matcher().match_batch([message])
            found.append(list(result.query_ids))
            for row in pq.read_table(generation.table).to_pylist():
                assert opened.query_ids[row["query_number"]] == row["query_id"]
        assert found[0] == found[1]


def test_a_query_that_stays_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = pytest.importorskip("pathcast.kernel", reason="the native kernel is not installed")
    compiled: list[str] = []
    compile_query = kernel.compile_query

    def counting(text: str, namespaces: dict[str, str]) -> object:
        compiled.append(text)
        return compile_query(text, namespaces)

    monkeypatch.setattr(kernel, "compile_query", counting)
    path = write(tmp_path / "s.tsv", "ann\tq1\t//b[last()]", "bob\tq2\t//a[last()]")
    subscriptions = SubscriptionBook(path, tmp_path / "store", engine="kernel")
    subscriptions.current()
    write(path, "ann\tq1\t//b[last()]", "bob\tq2\t//a[last() > 1]", "bob\tq3\t//c[last()]")
    assert subscriptions.current().queries == 3
    assert compiled == ["//b[last()]", "//a[last()]", "//a[last() > 1]", "//c[last()]"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        ("subscriber\tid\tquery\n", "no column query_id"),
        ("", "it is empty"),
        (
            "subscriber\tquery_id\tquery\nann\tq\t\udcff\n",
            "not UTF-8: invalid start byte at byte 32",
        ),
        ("subscriber\tquery_id\tquery\tquery\n", "more than one column query"),
        ("\udcff\udcfes\0u\0", "UTF-16, or no text; save it as UTF-8"),
        ("s\0u\0b\0s\0", "UTF-16"),
    ],
)
def test_an_unusable_file_is_a_config_error(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "s.tsv"
    if content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError) as caught:
        book(path).current()
    assert "subscriptions.path" in str(caught.value)
    assert reason in str(caught.value)


def test_a_file_that_was_broken_for_a_while_is_looked_at_again(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a")
    subscriptions = book(path)
    subscriptions.current()
    good = path.read_bytes()
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(ConfigError):
            subscriptions.current()
    path.write_bytes(good)
    os.utime(path, ns=(1, 1))
    assert subscriptions.current().queries == 1


def test_namespaces_of_the_pipeline_serve_all_queries(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//n:a")
    assert book(path).current().queries == 0
    assert book(path, n="urn:n").current().queries == 1


def test_a_pinned_generation_serves_another_engine(tmp_path: Path) -> None:
    # Killed on one engine and started on the other: the replay must not fail on the version.
    pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a")
    first = book(path).current()
    other = SubscriptionBook(path, tmp_path / "store", engine="kernel")
    pinned = other.pinned(first.snapshot_version, first.digest)
    assert pinned.snapshot_version == Snapshot.open(first.snapshot, engine="kernel").version
    assert pinned.snapshot == first.snapshot
