"""Customised delivery on Spark: the same rows as in one process, and each exactly once."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from broker_engines import broker_engines
from pathcast import Broker, Subscription, SubscriptionSnapshot
from pathcast.errors import ConfigError, SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import EngineName
from pathcast.spark import delivering, disseminate, schemas
from pathcast.spark.contents import layout_for
from pathcast.spark.customised import CustomisedBook, is_customised, read_customised
from pathcast.spark.delivering import DeliveryTask
from pathcast.spark.dissemination import result_inboxes
from pathcast.spark.ledger import Ledger, committed_batches
from pathcast.spark.outputs import StagedBatch, claim, inbox, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.testing import canonical

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SUBSCRIPTIONS = [
    Subscription(
        "titles", "ann", "for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>"
    ),
    Subscription("books", "bob", "//book"),
    Subscription("again", "cem", "//book"),
    Subscription("whole", "cem", "/bib", "message"),
    Subscription("notice", "dan", "/bib", "ids"),
    Subscription("broken", "eve", "for $b in //book[@bad] return <x>text{$b/@bad}</x>"),
]
MESSAGES: dict[str | None, bytes | None] = {
    "m0": b"<bib><book><title>Sand</title><price>20</price></book><book/></bib>",
    "m1": b"<bib>",
    "m2": None,
    "m3": b"<bib><book bad='1'><title>Gold</title><price>90</price></book></bib>",
    "m4": b"<other/>",
    "m5": "<?xml version='1.0' encoding='latin-1'?><bib>é</bib>".encode("latin-1"),
}


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    broker = Broker("reference")
    assert not broker.subscribe(SUBSCRIPTIONS).rejected
    path = tmp_path / "s.snapshot"
    broker.freeze().save(path)
    return path


def frame(spark: SparkSession, messages: dict[str | None, bytes | None]) -> DataFrame:
    return spark.createDataFrame(list(messages.items()), "id string, body binary").repartition(2)


def comparable(row: dict[str, Any]) -> tuple[Any, ...]:
    """A delivery such that equal ones are equal: engines may write a result in different ways."""
    fragment = None if row["fragment"] is None else bytes(row["fragment"])
    if fragment is not None and row["subscription_id"] != "whole":
        fragment = canonical(fragment)
    return tuple(fragment if name == "fragment" else row[name] for name in schemas.DELIVERIES.names)


def in_process(snapshot: Path) -> tuple[Counter[Any], Counter[Any]]:
    """Deliveries and dead letters without Spark."""
    opened = SubscriptionSnapshot.open(snapshot, engine="reference")
    batch = opened.matcher().process_batch(list(MESSAGES.values()), list(MESSAGES))
    deliveries = Counter(comparable(row) for row in batch.table.to_pylist())
    letters = Counter(
        (row["message_id"], row.get("subscription_id"), row["code"])
        for table in (batch.errors, batch.verdicts)
        for row in table.to_pylist()
    )
    letters["m2", None, "message.unreadable"] += 1
    return deliveries, letters


@broker_engines
def test_rows_are_those_of_one_process(
    spark: SparkSession, snapshot: Path, engine: EngineName
) -> None:
    found = disseminate(frame(spark, MESSAGES), snapshot, "body", "id", engine=engine)
    with found:
        assert found.rows.schema == schemas.DISSEMINATED
        assert found.deliveries.schema.names == schemas.DELIVERIES.names
        rows, letters = found.deliveries.collect(), found.dead_letters.collect()
        stage = found.rows.collect()
    names = [field.name for field in delivering.STAGE_SCHEMA]
    assert schemas.DISSEMINATED.names == names
    expected, expected_letters = in_process(snapshot)
    assert Counter(comparable(row.asDict()) for row in rows) == expected
    assert Counter((row.message_id, row.subscription_id, row.code) for row in letters) == (
        expected_letters
    )
    refused = next(row for row in letters if row.message_id == "m1")
    assert (refused.line, refused.column, refused.bytes) == (1, 6, 5)
    messages = [row for row in stage if row.subscription_id is None]
    assert sorted(row.message_id for row in messages) == sorted(str(name) for name in MESSAGES)
    assert sum(row.bytes for row in messages) == sum(len(m) for m in MESSAGES.values() if m)


def test_partitions_and_batches_make_no_difference(spark: SparkSession, snapshot: Path) -> None:
    messages: dict[str | None, bytes | None] = {
        f"m{n}": f"<bib><book n='{n}'><price>{n}</price></book></bib>".encode() for n in range(300)
    }
    ids = []
    for partitions, rows in ((1, "4096"), (7, "10")):
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", rows)
        try:
            there = frame(spark, messages).repartition(partitions)
            found = disseminate(there, snapshot, "body", "id", engine="reference")
            ids.append(sorted(row.delivery_id for row in found.deliveries.collect()))
        finally:
            spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "4096")
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(ids[0]) == 300 * 4 + 30


def test_a_message_without_an_id_is_named_by_its_bytes(spark: SparkSession, snapshot: Path) -> None:
    there = frame(spark, {None: b"<bib/>"})
    rows = disseminate(there, snapshot, "body", "id", engine="reference").deliveries.collect()
    expected = Broker("reference")
    expected.subscribe(SUBSCRIPTIONS)
    assert {row.delivery_id for row in rows} == {
        delivery.delivery_id for delivery in expected.publish(b"<bib/>")
    }


def test_limits_reach_the_workers(spark: SparkSession, snapshot: Path) -> None:
    message = b"<bib>" + b"<book>0123456789</book>" * 20 + b"</bib>"
    found = disseminate(
        frame(spark, {"m": message}),
        snapshot,
        "body",
        "id",
        engine="reference",
        limits=Limits(result_bytes_max=100),
    )
    letters = {row.subscription_id: row.code for row in found.dead_letters.collect()}
    assert letters == {"books": "limit.result_bytes", "again": "limit.result_bytes"}


def test_limits_of_the_snapshot_reach_the_workers(spark: SparkSession, tmp_path: Path) -> None:
    # A broker here and the workers there must answer alike.
    broker = Broker("reference", Limits(result_bytes_max=100))
    broker.subscribe(SUBSCRIPTIONS)
    broker.freeze().save(tmp_path / "s")
    message = b"<bib>" + b"<book>0123456789</book>" * 20 + b"</bib>"
    found = disseminate(
        frame(spark, {"m": message}), tmp_path / "s", "body", "id", engine="reference"
    )
    expected = broker.publish(message, "m")
    assert {row.delivery_id for row in found.deliveries.collect()} == {
        delivery.delivery_id for delivery in expected
    }
    letters = {row.subscription_id: row.code for row in found.dead_letters.collect()}
    assert letters == {name: error.code for name, error in expected.verdicts.items()}
    assert letters


def test_a_shipped_snapshot_and_one_of_another_version(
    spark: SparkSession, snapshot: Path, tmp_path: Path
) -> None:
    there = frame(spark, MESSAGES)
    plain = disseminate(there, snapshot, "body", "id", engine="reference")
    shipped = disseminate(there, snapshot, "body", "id", engine="reference", ship=True)
    ids = [
        sorted(row.delivery_id for row in found.deliveries.collect()) for found in (plain, shipped)
    ]
    assert ids[0] == ids[1]
    # Rows would otherwise carry the name of one snapshot and the results of another.
    task = DeliveryTask(str(snapshot), "0" * 32, False, "reference", Limits(), 1, None)
    with pytest.raises(SnapshotFormatError, match="was planned with"):
        list(task([]))


def test_columns_that_cannot_be_used(spark: SparkSession, snapshot: Path) -> None:
    with pytest.raises(ConfigError, match="message_col"):
        disseminate(frame(spark, MESSAGES), snapshot, "text", "id", engine="reference")
    with pytest.raises(SnapshotFormatError):
        disseminate(frame(spark, MESSAGES), __file__, "body", "id", engine="reference")


def test_long_results_go_in_several_batches(
    snapshot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A batch of Arrow text above 2 GB fails the job, so it is cut long before.
    monkeypatch.setattr(delivering, "FRAGMENT_BYTES_MAX", 100)
    version = SubscriptionSnapshot.open(snapshot, engine="reference").version
    task = DeliveryTask(str(snapshot), version, False, "reference", Limits(), 1, None)
    messages = [b"<bib>" + b"<book>0123456789</book>" * n + b"</bib>" for n in range(6)]
    ids = [f"m{n}" for n in range(6)]
    batch = pa.record_batch({"message_id": ids, "message": pa.array(messages, pa.binary())})
    parts = [part for part in task([batch]) if part.column("delivery_id").null_count == 0]
    assert len(parts) > 5
    for part in parts:
        sizes = [len(value or b"") for value in part.column("fragment").to_pylist()]
        assert sum(sizes) <= 100 or len(sizes) == 1
    whole = SubscriptionSnapshot.open(snapshot, engine="reference").matcher()
    expected = whole.process_batch(messages, ids).table.column("delivery_id").to_pylist()
    assert [name for part in parts for name in part.column("delivery_id").to_pylist()] == expected


def test_inboxes_lie_together(spark: SparkSession, snapshot: Path) -> None:
    found = disseminate(frame(spark, MESSAGES), snapshot, "body", "id", engine="reference")
    inboxes = result_inboxes(found.deliveries, buckets=3)
    assert inboxes.schema.names == schemas.RESULT_INBOXES.names
    buckets: dict[str, set[int]] = {}
    for row in inboxes.collect():
        buckets.setdefault(row.subscriber, set()).add(row.bucket)
    assert all(len(places) == 1 for places in buckets.values())


def as_text(fragment: str | bytes | bytearray | None) -> str | None:
    """A result as text, from either format."""
    if isinstance(fragment, bytes | bytearray):
        return bytes(fragment).decode("utf-8", "replace")
    return fragment


class TestPipeline:
    """`pathcast run` with subscriptions that ask for results."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        folder = tmp_path / "in"
        folder.mkdir()
        for number in range(30):
            text = f"<m><{'ab'[number % 2]} n='{number}'/></m>" if number % 10 else "<m><a>"
            (folder / f"{number}.xml").write_text(text)
        for name, text in {
            "ann/a.xq": "for $a in //a return <seen n='{$a/@n}'/>",
            "bob/all.xq": "(: @deliver message :) /m",
            "bob/bad.xq": "for $a in //a retur $a",
            "_draft.xq": "//nothing",
        }.items():
            (tmp_path / "subscriptions" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "subscriptions" / name).write_text(text)
        return tmp_path

    def settings(self, root: Path, *overrides: str) -> PipelineSettings:
        path = root / "pipeline.toml"
        path.write_text(
            '[source]\npath = "in"\n[subscriptions]\npath = "subscriptions"\n'
            '[output]\npath = "out"\ninbox_buckets = 3\n[mode]\nfiles_per_batch_max = 12\n'
            '[engine]\nengine = "reference"\n'
        )
        return load_settings(path, overrides)

    def expected(self) -> Counter[Any]:
        rows: Counter[Any] = Counter()
        for number in range(30):
            if not number % 10:
                continue
            kind = "ab"[number % 2]
            if kind == "a":
                rows["ann", "ann/a", f"{number}.xml", 0, f'<seen n="{number}"/>'] += 1
            text = f"<m><{kind} n='{number}'/></m>"
            rows["bob", "bob/all", f"{number}.xml", 0, text] += 1
        return rows

    def found(self, spark: SparkSession, root: Path) -> Counter[Any]:
        rows = read_output(spark, root / "out", "inboxes").collect()
        ids = {row.delivery_id for row in rows}
        assert len(ids) == len(rows), "a delivery id occurs twice"
        return Counter(
            (
                row.subscriber,
                row.subscription_id,
                row.message_id,
                row.result_number,
                as_text(row.fragment),
            )
            for row in rows
        )

    @pytest.mark.parametrize("form", ["parquet", "jsonl"])
    def test_every_subscriber_gets_what_its_query_says(
        self, spark: SparkSession, root: Path, form: str
    ) -> None:
        # The last message is what JSON cannot hold as text.
        latin = "<?xml version='1.0' encoding='latin-1'?><m>é</m>".encode("latin-1")
        (root / "in" / "latin.xml").write_bytes(latin)
        summary = run(self.settings(root, f"output.format={form}"), spark=spark)
        whole = read_output(spark, root / "out", "inboxes").where("message_id = 'latin.xml'")
        (row,) = whole.collect()
        if form == "jsonl":
            assert (row.fragment, base64.b64decode(row.fragment_base64)) == (None, latin)
        else:
            assert row.fragment == latin
        found = self.found(spark, root)
        assert {key: n for key, n in found.items() if key[2] != "latin.xml"} == self.expected()
        letters = read_output(spark, root / "out", "dead_letters").collect()
        assert {row.message_id for row in letters} == {"0.xml", "10.xml", "20.xml"}
        assert (summary.messages, summary.deliveries, summary.matches) == (31, 40, 40)
        assert (summary.queries, summary.subscriptions) == (2, 2)
        assert dict(summary.refused) == {"xml.end": 3}
        assert dict(summary.rejected_queries) == {"XPST0003": 1}
        mine = inbox(spark, root / "out", "ann").collect()
        assert {row.subscription_id for row in mine} == {"ann/a"}
        with pytest.raises(ConfigError, match="writes no matches"):
            read_output(spark, root / "out", "matches")

    @pytest.mark.parametrize(
        "step",
        [
            pytest.param("write", marks=pytest.mark.nightly),
            "publish",
            pytest.param("write_commit", marks=pytest.mark.nightly),
        ],
    )
    def test_killed_at_a_step_and_run_again(
        self, spark: SparkSession, root: Path, step: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The replay has to give the same rows with the same ids, whatever was in place.
        class KilledError(Exception):
            pass

        owner: Any = Ledger if step == "write_commit" else StagedBatch
        whole = getattr(owner, step)
        calls = 0

        def killed(self: Any, *arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise KilledError
            return whole(self, *arguments)

        monkeypatch.setattr(owner, step, killed)
        with pytest.raises(KilledError):
            run(self.settings(root), spark=spark)
        monkeypatch.undo()
        run(self.settings(root), spark=spark)
        assert self.found(spark, root) == self.expected()
        assert committed_batches(root / "out") == [0, 1, 2]

    def test_changed_subscriptions_count_from_the_next_run_on(
        self, spark: SparkSession, root: Path
    ) -> None:
        run(self.settings(root), spark=spark)
        before = self.found(spark, root)
        (root / "subscriptions" / "ann" / "a.xq").unlink()
        (root / "subscriptions" / "cem.xq").write_text("//b/@n")
        (root / "in" / "new.xml").write_text("<m><a/><b n='7'/></m>")
        run(self.settings(root), spark=spark)
        new = self.found(spark, root) - before
        assert new == Counter(
            {
                ("cem", "cem", "new.xml", 0, "7"): 1,
                ("bob", "bob/all", "new.xml", 0, "<m><a/><b n='7'/></m>"): 1,
            }
        )

    def test_another_content_does_not_go_into_the_same_output(
        self, spark: SparkSession, root: Path
    ) -> None:
        claim(root / "out", layout_for(self.settings(root)))
        (root / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq\t//a\n")
        with pytest.raises(ConfigError, match="choose a new directory"):
            run(self.settings(root, f"subscriptions.path={root / 's.tsv'}"), spark=spark)


class TestBook:
    """Subscriptions as files, for a pipeline."""

    def test_a_table_says_by_its_columns_what_it_asks_for(self, tmp_path: Path) -> None:
        plain, rich = tmp_path / "plain.tsv", tmp_path / "rich.parquet"
        plain.write_text("subscriber\tquery_id\tquery\nann\tq\t//a\n")
        table = {"subscriber": ["ann", "bob"], "query_id": ["q", "r"], "query": ["//a", "//b"]}
        pq.write_table(pa.table({**table, "deliver": ["ids", None]}), rich)
        assert not is_customised(plain)
        assert is_customised(rich)
        assert is_customised(tmp_path)
        rows, rejected = read_customised(rich)
        assert rows == [
            Subscription("q", "ann", "//a", "ids"),
            Subscription("r", "bob", "//b", "fragment"),
        ]
        assert not rejected
        assert read_customised(plain)[0] == [Subscription("q", "ann", "//a")]

    def test_what_cannot_be_taken_up_is_told(self, tmp_path: Path) -> None:
        table = tmp_path / "s.tsv"
        table.write_text(
            "subscriber\tquery_id\tquery\tdeliver\n"
            "ann\tq1\t//a\tids\n"
            "bob\tq1\t//b\tids\n"
            "ann\tq2\t//a\tletter\n"
            "ann\t\t//a\tids\n"
            "ann\tq3\tcount(//a)\tfragment\n"
        )
        generation = CustomisedBook(table, tmp_path / "store", engine="reference").current()
        assert (generation.queries, generation.subscriptions) == (1, 1)
        assert Counter((r.query_id, r.code) for r in generation.rejected) == Counter(
            {
                ("q1", "query.duplicate"): 1,
                ("q2", "subscription.deliver"): 1,
                ("", "config.invalid"): 1,
                ("q3", "subscription.fragment"): 1,
            }
        )

    def test_a_change_is_taken_up_and_the_old_snapshot_stays(self, tmp_path: Path) -> None:
        folder = tmp_path / "s"
        folder.mkdir()
        (folder / "a.xq").write_text("//a")
        book = CustomisedBook(folder, tmp_path / "store", engine="reference")
        first = book.current()
        assert book.current() is first
        (folder / "b.xq").write_text("//b")
        second = book.current()
        assert (first.subscriptions, second.subscriptions) == (1, 2)
        assert first.snapshot.exists()
        assert first.snapshot != second.snapshot
        (folder / "b.xq").unlink()
        assert book.current().snapshot_version == first.snapshot_version
        again = CustomisedBook(folder, tmp_path / "store", engine="reference")
        assert again.pinned(second.snapshot_version, second.digest).snapshot == second.snapshot
        opened = SubscriptionSnapshot.open(second.snapshot, engine="reference")
        assert opened.version == second.snapshot_version

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError):
            CustomisedBook(tmp_path / "no.xq", tmp_path / "store", engine="reference").current()

    def test_a_file_that_is_no_text_disturbs_no_other(self, tmp_path: Path) -> None:
        (tmp_path / "a.xq").write_text("//a")
        (tmp_path / "b.xq").write_bytes(b"\xff\xfe")
        (tmp_path / "c.xq").write_text("(: @subscribr ann :) //a")
        rows, rejected = read_customised(tmp_path)
        assert [row.id for row in rows] == ["a"]
        assert [json.loads(json.dumps(r.reason))[:4] for r in rejected] == ["b.xq", "c.xq"]
        assert "@subscribr is not one of" in rejected[1].reason
