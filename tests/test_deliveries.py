"""Deliveries as Arrow columns, their ids, and that they depend on nothing but what they are of."""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from broker_engines import broker_engines, missing
from pathcast import Broker, Subscription, SubscriptionSnapshot
from pathcast.customize import DELIVERIES_SCHEMA, delivery_id, delivery_ids, message_id
from pathcast.model import DELIVER_MODES, EngineName
from pathcast.testing import (
    ENGINES,
    VOCABULARIES,
    canonical,
    random_flwr,
    random_flwr_message,
    random_split,
)

MESSAGES = [b"<a><b c='1'/><b c='2'/></a>", None, b"<a>", b"<a><b c='1'/></a>", b"<x/>"]
SUBSCRIPTIONS = [
    Subscription("one", "ann", "//b"),
    Subscription("two", "bob", "for $b in //b return <d>{$b/@c}</d>"),
    Subscription("three", "bob", "//b"),
    Subscription("four", "cem", "/a", "message"),
    Subscription("five", "cem", "/a", "ids"),
]


def filled(engine: EngineName, subscriptions: Sequence[Subscription] = SUBSCRIPTIONS) -> Broker:
    broker = Broker(engine, threads=1)
    report = broker.subscribe(subscriptions)
    assert not report.rejected
    return broker


class TestIds:
    def test_a_delivery_id_is_what_the_documentation_says(self) -> None:
        # Receivers that compute it themselves, and the kernel, rely on exactly this.
        def piece(text: str) -> bytes:
            return struct.pack("<I", len(text.encode())) + text.encode()

        content = piece("v1") + piece("mé") + piece("s") + struct.pack("<I", 7)
        expected = hashlib.blake2b(content, digest_size=16).hexdigest()
        assert delivery_id("v1", "mé", "s", 7) == expected
        assert message_id(b"<a/>") == hashlib.blake2b(b"<a/>", digest_size=16).hexdigest()

    def test_parts_do_not_run_into_one_another(self) -> None:
        ids = [
            delivery_id("v", "ab", "c", 0),
            delivery_id("v", "a", "bc", 0),
            delivery_id("va", "b", "c", 0),
            delivery_id("v", "ab", "c", 1),
            delivery_id("v", "c", "ab", 0),
            delivery_id("", "vab", "c", 0),
        ]
        assert len(set(ids)) == len(ids)

    def test_many_ids_are_those_of_each(self) -> None:
        many = delivery_ids("v", ["m1", "m2"], [0, 1, 1], ["s1", "s2"], [1, 0, 1], [0, 3, 70_000])
        assert many == [
            delivery_id("v", "m1", "s2", 0),
            delivery_id("v", "m2", "s1", 3),
            delivery_id("v", "m2", "s2", 70_000),
        ]


@broker_engines
class TestBatch:
    def test_columns(self, engine: EngineName) -> None:
        batch = filled(engine).process_batch(MESSAGES, ["m0", "m1", "m2", None, "m4"])
        table = batch.table
        table.validate(full=True)
        assert table.schema == DELIVERIES_SCHEMA
        assert len(set(table.column("delivery_id").to_pylist())) == len(table) == len(batch)
        digest = message_id(MESSAGES[3] or b"")
        rows = [
            (row["message_id"], row["subscription_id"], row["subscriber"], row["result_number"])
            for row in table.to_pylist()
        ]
        assert rows == [
            ("m0", "one", "ann", 0),
            ("m0", "one", "ann", 1),
            ("m0", "two", "bob", 0),
            ("m0", "two", "bob", 1),
            ("m0", "three", "bob", 0),
            ("m0", "three", "bob", 1),
            ("m0", "four", "cem", 0),
            ("m0", "five", "cem", 0),
            (digest, "one", "ann", 0),
            (digest, "two", "bob", 0),
            (digest, "three", "bob", 0),
            (digest, "four", "cem", 0),
            (digest, "five", "cem", 0),
        ]
        assert batch.stats.messages == 4
        assert batch.stats.refused == 1

    def test_equal_results_exist_once(self, engine: EngineName) -> None:
        table = filled(engine).process_batch(MESSAGES).table
        dictionary = table.column("fragment").combine_chunks().dictionary.to_pylist()
        assert len(set(dictionary)) == len(dictionary), "a pandas Categorical would refuse it"
        # Two elements b, what they are turned into, and two whole messages.
        assert len(dictionary) == 6
        assert len(table.to_pandas()) == len(table)

    def test_errors_and_deliveries_of_a_row(self, engine: EngineName) -> None:
        batch = filled(engine).process_batch(MESSAGES, ["m0", "m1", "m2", "m3", "m4"])
        (error,) = batch.errors.to_pylist()
        assert (error["row"], error["message_id"], error["code"]) == (2, "m2", "xml.end")
        assert [len(batch.deliveries(row)) for row in range(5)] == [8, 0, 0, 5, 0]
        refused = batch.deliveries(2)
        assert refused.error is not None
        with pytest.raises(IndexError):
            batch.deliveries(5)
        table = batch.table.to_pylist()
        made = [d._asdict() for row in range(5) for d in batch.deliveries(row)]
        assert made == table, "the objects and the columns differ"

    def test_slices_and_chunks_of_arrow(self, engine: EngineName) -> None:
        broker = filled(engine)
        array = pa.array(MESSAGES, pa.binary())
        whole = broker.process_batch(array, pa.array(list("abcde")))
        chunked = pa.chunked_array([array.slice(0, 1), array.slice(1, 0), array.slice(1)])
        assert broker.process_batch(chunked, list("abcde")).table.equals(whole.table)
        sliced = broker.process_batch(array.slice(2, 2), ["c", "d"])
        ids = whole.table.column("delivery_id").to_pylist()
        assert sliced.table.column("delivery_id").to_pylist() == ids[8:]
        assert len(broker.process_batch([])) == 0

    def test_verdicts(self, engine: EngineName) -> None:
        bad = Subscription("bad", "eve", "for $b in //b return <d>text{$b/@c}</d>")
        broker = filled(engine, [*SUBSCRIPTIONS, bad])
        batch = broker.process_batch(MESSAGES, list("abcde"))
        assert [
            (row["row"], row["message_id"], row["subscription_id"], row["subscriber"], row["code"])
            for row in batch.verdicts.to_pylist()
        ] == [(0, "a", "bad", "eve", "XQTY0024"), (3, "d", "bad", "eve", "XQTY0024")]
        assert batch.stats.verdicts == 2

    def test_text_is_utf_8_whatever_it_declares(self, engine: EngineName) -> None:
        text = "<?xml version='1.0' encoding='latin-1'?><a><b>é</b></a>"
        found = filled(engine).process_batch([text]).deliveries(0)
        assert found[0].fragment == "<b>é</b>".encode()


class TestSnapshot:
    def test_a_snapshot_answers_as_its_broker(self, tmp_path: Path) -> None:
        broker = filled("reference")
        path = tmp_path / "s.snapshot"
        broker.freeze().save(path)
        opened = SubscriptionSnapshot.open(path, engine="reference")
        assert (opened.version, len(opened)) == (broker.version, 5)
        assert sorted(opened.subscriptions) == sorted(SUBSCRIPTIONS)
        there = opened.matcher().process_batch(MESSAGES).table.sort_by("delivery_id")
        here = broker.process_batch(MESSAGES).table.sort_by("delivery_id")
        assert there.to_pylist() == here.to_pylist()

    def test_equal_content_is_equal_bytes(self, tmp_path: Path) -> None:
        filled("reference").freeze().save(tmp_path / "one")
        filled("reference", SUBSCRIPTIONS[::-1]).freeze().save(tmp_path / "two")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()

    def test_a_snapshot_does_not_change(self) -> None:
        broker = filled("reference")
        snapshot = broker.freeze()
        version = snapshot.version
        broker.unsubscribe("one")
        assert snapshot.version == version != broker.version
        assert len(snapshot.matcher().process_batch(MESSAGES)) == 13

    def test_a_broker_goes_on_from_a_snapshot(self, tmp_path: Path) -> None:
        broker = filled("reference")
        restored = Broker.restored(broker.freeze(), namespaces={"p": "urn:p"})
        assert restored.version == broker.version
        restored.unsubscribe(["one", "two", "three", "four", "five"])
        assert restored.version == Broker("reference").version

    def test_an_empty_snapshot(self, tmp_path: Path) -> None:
        Broker("reference").freeze().save(tmp_path / "s")
        opened = SubscriptionSnapshot.open(tmp_path / "s", engine="reference")
        assert (len(opened), len(opened.matcher().process_batch(MESSAGES))) == (0, 0)

    @pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))
    @pytest.mark.parametrize(
        ("writer", "reader"), [("kernel", "reference"), ("reference", "kernel")]
    )
    def test_every_engine_reads_what_another_has_written(
        self, tmp_path: Path, writer: EngineName, reader: EngineName
    ) -> None:
        broker = filled(writer)
        broker.freeze().save(tmp_path / "s")
        opened = SubscriptionSnapshot.open(tmp_path / "s", engine=reader)
        assert opened.version == broker.version
        assert ids_of(opened.matcher(), MESSAGES) == ids_of(broker.matcher(), MESSAGES)


def ids_of(matcher: object, messages: Sequence[bytes | None]) -> list[str]:
    table = matcher.process_batch(messages).table  # type: ignore[attr-defined]
    return sorted(table.column("delivery_id").to_pylist())


Row = tuple[str, str, str, str, int, bytes | None]


def rows_of(broker: Broker, parts: Sequence[Sequence[tuple[str, bytes]]]) -> set[Row]:
    """Deliveries of all parts, the results in canonical form; verdicts among them by their code."""
    rows: set[Row] = set()
    for part in parts:
        batch = broker.process_batch([text for _, text in part], [name for name, _ in part])
        whole = dict(part)
        for row in batch.table.to_pylist():
            fragment = row["fragment"]
            if fragment is not None and fragment != whole[row["message_id"]]:
                fragment = canonical(fragment)
            key = (row["delivery_id"], row["message_id"], row["subscription_id"])
            rows.add((*key, row["subscriber"], row["result_number"], fragment))
        for row in batch.verdicts.to_pylist():
            rows.add((row["code"], row["message_id"], row["subscription_id"], "", -1, None))
    return rows


@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(4, 60))],
)
def test_deliveries_depend_on_nothing_but_subscriptions_and_messages(
    seed: int, tmp_path: Path
) -> None:
    # Not on the engine, the order of subscription, what came and went, how messages are cut into
    # batches, or whether the subscriptions went through a file: a replay would not be one.
    rng = random.Random(seed)
    vocabulary = rng.choice(list(VOCABULARIES.values()))
    subscriptions = []
    for number in range(12):
        flwr = random_flwr(rng, vocabulary)
        deliver = rng.choices(DELIVER_MODES, (8, 1, 1))[0]
        subscriber = f"u{rng.randrange(4)}"
        subscriptions.append(
            Subscription(f"s{number}", subscriber, flwr.text, deliver, flwr.namespaces or None)
        )
    subscriptions.append(Subscription("path", "u0", "//*[2]"))
    messages = [(f"m{i}", random_flwr_message(rng, vocabulary)) for i in range(8)]
    first = Broker("reference", threads=1)
    rejected = set(first.subscribe(subscriptions).rejected)
    kept = [subscription for subscription in subscriptions if subscription.id not in rejected]
    expected = rows_of(first, [messages])
    for engine in ENGINES:
        if missing(engine) is not None:
            continue
        broker = Broker(engine, threads=rng.choice([1, 2]))
        extra = [Subscription(f"x{i}", "nobody", "//*") for i in range(3)]
        for part in random_split(rng, rng.sample(kept + extra, len(kept) + 3)):
            assert not broker.subscribe(part).rejected
        broker.unsubscribe(subscription.id for subscription in extra)
        assert rows_of(broker, random_split(rng, messages)) == expected, engine
        path = tmp_path / f"{engine}.snapshot"
        broker.freeze().save(path)
        restored = Broker.restored(SubscriptionSnapshot.open(path, engine=engine))
        assert rows_of(restored, random_split(rng, messages)) == expected, engine
