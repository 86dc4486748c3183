"""Subscriptions: what a file may hold, what is rejected, and the generations made of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from oracles.engines import EngineName, made_by
from pathcast.cli.app import build_app
from pathcast.errors import ConfigError
from pathcast.kernel.registry import KernelRegistry
from pathcast.model import Subscription
from pathcast.registry import Snapshot
from pathcast.registry.subscription_rows import read_rows
from pathcast.spark.answering import NO_FRAGMENT, Answerer
from pathcast.spark.book import SubscriptionBook
from pathcast.spark.generations import Generation
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.subscription_places import FilePlace
from pathcast.spark.workers import InProcess

HEADER = "subscriber\tquery_id\tquery\n"


def book(path: Path, **options: str) -> SubscriptionBook:
    return made_by("reference", SubscriptionBook, FilePlace(path), store(path), namespaces=options)


def store(path: Path) -> Storage:
    return Storage(path.parent / "store")


def write(path: Path, *lines: str) -> Path:
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return path


def pairs(path: Path, generation: Generation) -> list[tuple[str, str]]:
    with generation.files(store(path)) as files:
        table = files.table()
    return list(zip(table.subscribers.to_pylist(), table.ids.to_pylist(), strict=True))


def notices(path: Path, generation: Generation, engine: EngineName = "reference") -> Snapshot:
    with generation.files(store(path)) as files:
        return made_by(engine, Snapshot.open, files.queries)


def test_a_query_of_several_subscribers_is_registered_once(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a", "bob\tq1\t//a", "bob\tq2\t//b")
    taken = book(path).current()
    generation = taken.generation
    assert (generation.queries, generation.subscriptions) == (2, 3)
    assert pairs(path, generation) == [("ann", "q1"), ("bob", "q1"), ("bob", "q2")]
    assert len(notices(path, generation)) == 2
    assert taken.rejected == ()


def test_queries_that_are_delivered_as_an_id_and_others_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "s.tsv"
    rows = ["ann\tq0\t//p:a\tids", "ann\tq1\t/p:a\tids", "bob\tr0\t//p:b\tfragment"]
    rows += ["bob\tr1\t//p:b\tmessage", "bob\tr2\tfor $b in //p:b return <r/>\tids"]
    path.write_text("\n".join(["subscriber\tquery_id\tquery\tdeliver", *rows]) + "\n")
    made = SubscriptionBook(FilePlace(path), store(path), namespaces={"p": "urn:p"})
    message = b"<a xmlns='urn:p'><b/></a>"
    batch = pa.record_batch({"message": [message, b"<p/>"], "message_id": ["m", "n"]})
    with made.current().generation.files(store(path)) as files:
        answerer = Answerer(files)
        (answer,) = answerer.answer(batch, with_matches=True)
        opened = Snapshot.open(files.queries)
    ids = answerer.table.ids.take(pa.array(answer.ranks)).to_pylist()
    assert answer.rows.tolist() == [0] * 5
    assert sorted(ids) == ["q0", "q1", "r0", "r1", "r2"]
    assert {ids[n] for n in np.flatnonzero(answer.fragments != NO_FRAGMENT)} == {"r0", "r1"}
    assert answer.matches is not None
    found = [[opened.query_ids[number] for number in row] for row in answer.matches.to_pylist()]
    assert sorted(found[0]) == ["q0", "q1", "r2"]
    assert answer.matches.to_pylist()[0] == sorted(answer.matches.to_pylist()[0])
    assert found[1] == []
    assert answer.satisfied == 5


def test_takers_of_a_query_are_found_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "zoe\tz\t//a", "ann\ty\t//b", "bob\tz\t//a", "ann\tx\t//c")
    generation = book(path).current().generation
    with generation.files(store(path)) as files:
        table = files.table()
    ids = list(notices(path, generation).query_ids)
    takers = table.takers_of(pa.array(ids))
    for number, query_id in enumerate(ids):
        places, ranks = takers.expand(np.array([number]))
        found = [(table.subscribers[int(r)].as_py(), table.ids[int(r)].as_py()) for r in ranks]
        want = [("bob", "z"), ("zoe", "z")] if query_id == "z" else [("ann", query_id)]
        assert found == want
        assert places is not None
        assert places.tolist() == [0] * len(want)


def test_bad_rows_are_rejected_with_their_reason_and_cost_no_other(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.tsv",
        "ann\tgood\t//a",
        "ann\tbad\t//[",
        "bob\tgood\t//b",  # the same id with another text
        "no tabs",
        "ann\t\t//c",
        "a\tb\tc\td",
        "ann\tgood\t//a",  # the same pair again
    )
    taken = book(path).current()
    assert pairs(path, taken.generation) == [("ann", "good")]
    rejected = {(r.row.subscriber, r.row.id): r for r in taken.rejected}
    assert rejected["ann", "bad"].code.startswith("XPST")
    assert rejected["bob", "good"].code == "query.duplicate"
    assert "empty" in rejected["ann", ""].reason
    malformed = [r for r in taken.rejected if not r.row.subscriber]
    assert [r.row.query for r in malformed] == ["no tabs", "a\tb\tc\td"]
    assert "line 5: 1 columns, 3 expected" in malformed[0].reason


def test_rows_say_what_is_delivered_or_the_pipeline_does(tmp_path: Path) -> None:
    path = tmp_path / "s.tsv"
    path.write_text("subscriber\tquery_id\tquery\tdeliver\nann\ta\t//a\t\nann\tb\t//b\tmessage\n")
    rows, places, malformed = read_rows(path, "fragment")
    assert [str(place) for place in places] == [f"{path}:2", f"{path}:3"]
    assert rows == [
        Subscription("a", "ann", "//a", "fragment"),
        Subscription("b", "ann", "//b", "message"),
    ]
    assert malformed == []


def test_parquet_and_tsv_give_the_same_generation(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a", "bob\tq2\t//b")
    table = pa.table(
        {"query": ["//a", "//b"], "subscriber": ["ann", "bob"], "query_id": ["q1", "q2"]}
    )
    pq.write_table(table, tmp_path / "s.parquet")
    one, two = book(path).current(), book(tmp_path / "s.parquet").current()
    assert one == two


def test_a_change_of_the_file_is_seen_and_the_old_generation_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a")
    subscriptions = book(path)
    first = subscriptions.current()
    assert subscriptions.current() is first, "an unchanged file is compiled again"
    write(path, "ann\tq1\t//a", "bob\tq1\t//a")
    second = subscriptions.current()
    assert second.generation.version != first.generation.version
    assert pairs(path, subscriptions.pinned(first.generation.version)) == [("ann", "q1")]


@pytest.mark.parametrize("engine", ["reference", "kernel"])
def test_generations_of_a_changing_file_are_those_of_a_new_book(
    tmp_path: Path, engine: EngineName
) -> None:
    """Queries that go, change, come back or are mended must leave nothing of what they were."""
    if engine == "kernel":
        pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")
    path = tmp_path / "s.tsv"
    subscriptions = made_by(engine, SubscriptionBook, FilePlace(path), store(path))
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
        fresh = made_by(
            engine, SubscriptionBook, FilePlace(path), Storage(tmp_path / f"{number}")
        ).current()
        assert replace(changed.generation, written="") == replace(fresh.generation, written="")
        assert [r.row.id for r in changed.rejected] == [r.row.id for r in fresh.rejected]
        found = []
        for place, taken in ((store(path), changed), (Storage(tmp_path / f"{number}"), fresh)):
            with taken.generation.files(place) as files:
                opened = made_by(engine, Snapshot.open, files.queries)
            (result,) = opened.match([message])
            found.append(list(result.query_ids))
        assert found[0] == found[1]


def test_a_query_that_stays_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    subscribe = KernelRegistry.subscribe

    def counting(registry: KernelRegistry, rows: Sequence[Subscription], *more: Any) -> object:
        compiled.extend(row.query for row in rows)
        return subscribe(registry, rows, *more)

    monkeypatch.setattr(KernelRegistry, "subscribe", counting)
    path = write(tmp_path / "s.tsv", "ann\tq1\t//b[last()]", "bob\tq2\t//a[last()]")
    subscriptions = SubscriptionBook(FilePlace(path), store(path))
    subscriptions.current()
    write(path, "ann\tq1\t//b[last()]", "bob\tq2\t//a[last() > 1]", "bob\tq3\t//c[last()]")
    assert subscriptions.current().generation.queries == 3
    assert compiled == ["//b[last()]", "//a[last()]", "//a[last() > 1]", "//c[last()]"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        ("subscriber\tid\tquery\n", "no column query_id"),
        ("", "it is empty"),
        ("subscriber\tquery_id\tqu\udcff\n", "has subscriber, query_id, qu\\xff"),
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
    assert subscriptions.current().generation.queries == 1


def test_namespaces_of_the_pipeline_serve_all_queries(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//n:a")
    assert book(path).current().generation.queries == 0
    assert book(path, n="urn:n").current().generation.queries == 1


def test_a_pinned_generation_serves_another_engine(tmp_path: Path) -> None:
    # Killed on one engine and started on the other: what is done again must not fail.
    pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")
    path = write(tmp_path / "s.tsv", "ann\tq1\t//a")
    first = made_by("nfa", SubscriptionBook, FilePlace(path), store(path)).current().generation
    other = SubscriptionBook(FilePlace(path), store(path))
    pinned = other.pinned(first.version)
    assert pinned == first == other.current().generation
    assert list(notices(path, pinned, "kernel").query_ids) == ["q1"]


def test_a_file_and_a_folder_of_subscriptions_give_results(tmp_path: Path) -> None:
    folder = tmp_path / "wanted"
    (folder / "ann").mkdir(parents=True)
    (folder / "ann/hit.xq").write_text("for $a in //a return <hit>{$a}</hit>")
    (folder / "ann/bad.xq").write_text("for $a in")
    path = tmp_path / "wanted"
    taken = made_by(
        "reference", SubscriptionBook, FilePlace(path), Storage(tmp_path / "store")
    ).current()
    assert not taken.generation.has_notices
    assert [each.row.id for each in taken.rejected] == ["ann/bad"]


def test_pathcast_check_lists_what_a_run_would_reject(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tsv", "ann\tq1\t//n:a", "bob\tq2\t//[", "eve\t\t//b")
    pipeline = tmp_path / "p.toml"
    settings = '[source]\npath = "in"\n[output]\npath = "out"\n'
    wanted = '[subscriptions]\npath = "s.tsv"\nnamespaces = { n = "urn:n" }\n'
    pipeline.write_text(settings + wanted)
    call = CliRunner().invoke
    result = call(build_app(), ["check", str(pipeline)])
    assert result.exit_code == 0
    places = [line.split(": ")[0] for line in result.stdout.splitlines() if str(path) in line]
    assert sorted(places) == [f"{path}:3", f"{path}:4"]
    assert "subscriptions: 3, rejected: 2" in result.stderr
    assert call(build_app(), ["check", str(pipeline), "--strict"]).exit_code == 1
    pipeline.write_text(settings + wanted + "rejected_max = 0.5\n")
    assert call(build_app(), ["check", str(pipeline)]).exit_code == 1
    (tmp_path / "in").mkdir()
    with pytest.raises(ConfigError, match=r"rejected_max.*2 rows are rejected.*s\.tsv:4"):
        run(load_settings(pipeline), workers=InProcess())
    assert not (tmp_path / "out/_commits").exists()
