"""Deliveries as Arrow columns, their ids, and that they depend on nothing but what they are of."""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_engines import broker_engines, missing
from generators import VOCABULARIES, random_flwr, random_flwr_message, random_split
from oracles import ENGINES
from oracles.engines import EngineName, made_by
from pathcast import Registry, Snapshot, Subscription
from pathcast.limits import Limits
from pathcast.message.canonical import canonical
from pathcast.model import DELIVER_MODES
from pathcast.registry import DELIVERIES_SCHEMA, delivery_id, message_id, subscription_version
from pathcast.registry.identity import delivery_ids

MESSAGES = [b"<a><b c='1'/><b c='2'/></a>", None, b"<a>", b"<a><b c='1'/></a>", b"<x/>"]
SUBSCRIPTIONS = [
    Subscription("one", "ann", "//b"),
    Subscription("two", "bob", "for $b in //b return <d>{$b/@c}</d>"),
    Subscription("three", "bob", "//b"),
    Subscription("four", "cem", "/a", "message"),
    Subscription("five", "cem", "/a", "ids"),
]


def filled(engine: EngineName, subscriptions: Sequence[Subscription] = SUBSCRIPTIONS) -> Registry:
    registry = made_by(engine, Registry, threads=1)
    report = registry.add(subscriptions)
    assert not report.rejected
    return registry


def version_of(**changes: Any) -> str:
    return subscription_version(Subscription("s", "ann", "//a")._replace(**changes))


class TestIds:
    def test_an_id_is_what_the_documentation_says(self) -> None:
        # Receivers that compute it themselves, and the kernel, rely on exactly this.
        subscription = Subscription("sé", "ann", "//p:a", "ids", {"q": "é", "p": "urn:p"})
        content = '2:sé3:ann5://p:a3:ids21:{"p":"urn:p","q":"é"}'
        version = hashlib.blake2b(content.encode(), digest_size=32).digest()[:16]
        assert subscription_version(subscription) == version.hex()
        digest = hashlib.blake2b(struct.pack("<I", 7) + "mé".encode(), digest_size=16).digest()
        total = int.from_bytes(version, "little") + int.from_bytes(digest, "little")
        made = (total % (1 << 128)).to_bytes(16, "little")
        assert delivery_id(version.hex(), "mé", 7) == made.hex()
        assert message_id(b"<a/>") == hashlib.blake2b(b"<a/>", digest_size=16).hexdigest()

    def test_whatever_a_subscription_is_changes_its_version(self) -> None:
        versions = [
            version_of(),
            version_of(id="t"),
            version_of(subscriber="bob"),
            version_of(query="//a "),
            version_of(deliver="ids"),
            version_of(namespaces={"": "urn:a"}),
            version_of(namespaces={"a": "urn:a"}),
            # Parts do not run into one another.
            version_of(id="s3", subscriber="ann"),
            version_of(id="", subscriber="sann"),
        ]
        assert len(set(versions)) == len(versions)
        assert version_of(namespaces={}) == version_of()
        assert version_of(namespaces={"a": "1", "b": "2"}) == version_of(
            namespaces={"b": "2", "a": "1"}
        )

    def test_whatever_a_delivery_is_changes_its_id(self) -> None:
        one, other = version_of(), version_of(id="t")
        ids = [delivery_id(one, "m", 0), delivery_id(other, "m", 0), delivery_id(one, "m", 1)]
        ids += [delivery_id(one, "", 0), delivery_id(one, "m\0", 0), delivery_id(one, "m", 1 << 31)]
        assert len(set(ids)) == len(ids)

    def test_many_ids_are_those_of_each(self) -> None:
        rng = random.Random(3)
        versions = [version_of(id=str(number)) for number in range(5)]
        messages = [rng.randbytes(rng.choice([0, 1, 54, 55, 200])).hex() + "é" for _ in range(9)]
        rows = [
            (rng.randrange(5), rng.randrange(9), rng.choice([0, 1, 70_000, 2**32 - 1]))
            for _ in range(200)
        ]
        of_versions, of_messages, results = (
            pa.array(column, pa.uint32()) for column in zip(*rows, strict=True)
        )
        held = pa.array([bytes.fromhex(text) for text in versions], pa.binary(16))
        made = delivery_ids(held, of_versions, messages, of_messages, results)
        assert made.type == pa.binary(16)
        expected = [delivery_id(versions[v], messages[m], result) for v, m, result in rows]
        assert [each.hex() for each in made.to_pylist()] == expected


@broker_engines
class TestBatch:
    def test_columns(self, engine: EngineName) -> None:
        batch = filled(engine).deliver(MESSAGES, ["m0", "m1", "m2", None, "m4"])
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
        table = filled(engine).deliver(MESSAGES).table
        dictionary = table.column("fragment").combine_chunks().dictionary.to_pylist()
        assert len(set(dictionary)) == len(dictionary), "a pandas Categorical would refuse it"
        # Two elements b, what they are turned into, and two whole messages.
        assert len(dictionary) == 6
        assert len(table.to_pandas()) == len(table)

    def test_errors_and_deliveries_of_a_row(self, engine: EngineName) -> None:
        batch = filled(engine).deliver(MESSAGES, ["m0", "m1", "m2", "m3", "m4"])
        (error,) = batch.errors.to_pylist()
        assert (error["row"], error["message_id"], error["code"]) == (2, "m2", "xml.end")
        assert [len(batch.deliveries(row)) for row in range(5)] == [8, 0, 0, 5, 0]
        refused = batch.deliveries(2)
        assert refused.error is not None
        with pytest.raises(IndexError):
            batch.deliveries(5)
        table = batch.table.to_pylist()
        for delivery in table:
            for name in ("delivery_id", "subscription_version"):
                delivery[name] = delivery[name].hex()
        made = [d._asdict() for row in range(5) for d in batch.deliveries(row)]
        assert all(each.pop("node") is None for each in made)
        assert made == table, "the objects and the columns differ"

    def test_what_is_read_after_a_change_is_what_was_delivered(self, engine: EngineName) -> None:
        registry = filled(engine)
        ids = [f"m{row}" for row in range(len(MESSAGES))]
        early = registry.deliver(MESSAGES, ids)
        expected, version = early.table, early.snapshot_version
        late, one = registry.deliver(MESSAGES, ids), registry.deliver("<a><b c='1'/></a>", "m3")
        registry.update(Subscription("one", "eve", "//b"))
        registry.remove(["two", "three"])
        assert late.table.equals(expected)
        assert late.snapshot_version == version != registry.version
        assert one == early.deliveries(3)

    def test_numbers_that_mean_others_now_are_read_as_they_were(self, engine: EngineName) -> None:
        # A frozen registry gives new numbers; steps belong to what a version is made of.
        ids = [f"m{row}" for row in range(len(MESSAGES))]
        stepped = Subscription("six", "dan", "//b", steps=("drop //x",))
        fresh = [Subscription(f"t{n}", "eve", "//b", "ids") for n in range(9)]
        batches, tables = [], []
        for is_read in (True, False):
            registry = filled(engine, [*SUBSCRIPTIONS, stepped])
            batch = registry.deliver(MESSAGES, ids)
            if is_read:
                tables.append(batch.table)
            registry.remove(["one", "six"])
            registry.freeze()
            registry.add(fresh)
            batches.append(registry.deliver(MESSAGES, ids))
            registry.remove("two")
            registry.freeze()
            tables += [batch.table] * (not is_read)
        assert tables[0].equals(tables[1])
        found = {
            row["subscription_id"]: row["subscription_version"].hex()
            for row in tables[0].to_pylist()
        }
        assert found == {each.id: subscription_version(each) for each in [*SUBSCRIPTIONS, stepped]}
        assert batches[0].table.equals(batches[1].table)

    def test_slices_and_chunks_of_arrow(self, engine: EngineName) -> None:
        registry = filled(engine)
        array = pa.array(MESSAGES, pa.binary())
        whole = registry.deliver(array, pa.array(list("abcde")))
        chunked = pa.chunked_array([array.slice(0, 1), array.slice(1, 0), array.slice(1)])
        assert registry.deliver(chunked, list("abcde")).table.equals(whole.table)
        sliced = registry.deliver(array.slice(2, 2), ["c", "d"])
        ids = whole.table.column("delivery_id").to_pylist()
        assert sliced.table.column("delivery_id").to_pylist() == ids[8:]
        assert len(registry.deliver([])) == 0

    def test_verdicts(self, engine: EngineName) -> None:
        bad = Subscription("bad", "eve", "for $b in //b return <d>text{$b/@c}</d>")
        registry = filled(engine, [*SUBSCRIPTIONS, bad])
        batch = registry.deliver(MESSAGES, list("abcde"))
        assert [
            (row["row"], row["message_id"], row["subscription_id"], row["subscriber"], row["code"])
            for row in batch.verdicts.to_pylist()
        ] == [(0, "a", "bad", "eve", "XQTY0024"), (3, "d", "bad", "eve", "XQTY0024")]
        assert batch.stats.verdicts == 2

    def test_text_is_utf_8_whatever_it_declares(self, engine: EngineName) -> None:
        text = "<?xml version='1.0' encoding='latin-1'?><a><b>é</b></a>"
        found = filled(engine).deliver([text]).deliveries(0)
        assert found[0].fragment == "<b>é</b>".encode()


@pytest.mark.parametrize("engine", ["reference", "kernel"])
class TestSnapshot:
    def test_a_snapshot_answers_as_its_broker(self, engine: EngineName, tmp_path: Path) -> None:
        registry = filled(engine)
        path = tmp_path / "s.snapshot"
        registry.freeze().save(path)
        opened = made_by(engine, Snapshot.open, path)
        assert (opened.version, len(opened)) == (registry.version, 5)
        assert sorted(opened.subscriptions) == sorted(SUBSCRIPTIONS)
        again = made_by(engine, Registry.of, opened)
        there = again.deliver(MESSAGES).table.sort_by("delivery_id")
        here = registry.deliver(MESSAGES).table.sort_by("delivery_id")
        assert there.to_pylist() == here.to_pylist()
        found = [sorted(result.query_ids) for result in opened.match(MESSAGES)]
        assert found == [sorted(result.query_ids) for result in registry.match(MESSAGES)]

    def test_equal_content_is_equal_bytes(self, engine: EngineName, tmp_path: Path) -> None:
        filled(engine).freeze().save(tmp_path / "one")
        filled(engine, SUBSCRIPTIONS[::-1]).freeze().save(tmp_path / "two")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()

    def test_a_snapshot_does_not_change(self, engine: EngineName) -> None:
        registry = filled(engine)
        snapshot = registry.freeze()
        version = snapshot.version
        registry.remove("one")
        assert snapshot.version == version != registry.version
        assert len(made_by(engine, Registry.of, snapshot).deliver(MESSAGES)) == 13

    def test_a_broker_goes_on_from_a_snapshot(self, engine: EngineName, tmp_path: Path) -> None:
        """What changes has the version that a registry has which was always so."""
        registry = filled(engine)
        restored = made_by(engine, Registry.of, registry.freeze(), namespaces={"p": "urn:p"})
        assert restored.version == registry.version
        restored.remove(["one", "two"])
        restored.add(Subscription("new", "eve", "//p:a"))
        rows = [row for row in SUBSCRIPTIONS if row.id not in ("one", "two")]
        rows.append(Subscription("new", "eve", "//p:a", namespaces={"p": "urn:p"}))
        other = filled(engine, rows)
        assert restored.version == other.version == restored.freeze().version
        restored.remove(["new", "three", "four", "five"])
        assert restored.version == made_by(engine, Registry).version

    def test_limits_that_are_given_are_those_of_the_next_snapshot(
        self, engine: EngineName, tmp_path: Path
    ) -> None:
        frozen = filled(engine).freeze()
        limits = Limits(result_bytes_max=7)
        restored = made_by(engine, Registry.of, frozen, limits)
        restored.freeze().save(tmp_path / "s")
        opened = made_by(engine, Snapshot.open, tmp_path / "s")
        assert opened.limits == limits != frozen.limits
        assert opened.version == restored.version != frozen.version

    def test_an_empty_snapshot(self, engine: EngineName, tmp_path: Path) -> None:
        made_by(engine, Registry).freeze().save(tmp_path / "s")
        opened = made_by(engine, Snapshot.open, tmp_path / "s")
        restored = made_by(engine, Registry.of, opened)
        assert (len(opened), len(restored.deliver(MESSAGES))) == (0, 0)


def test_the_kernel_and_the_papers_give_a_set_the_same_version() -> None:
    versions = {filled(engine).freeze().version for engine in ("kernel", "reference")}
    assert versions == {filled("reference").version}


def ids_of(matcher: object, messages: Sequence[bytes | None]) -> list[str]:
    table = matcher.deliver(messages).table  # type: ignore[attr-defined]
    return sorted(table.column("delivery_id").to_pylist())


Row = tuple[str, str, str, str, int, bytes | None]


def rows_of(registry: Registry, parts: Sequence[Sequence[tuple[str, bytes]]]) -> set[Row]:
    """Deliveries of all parts, the results in canonical form; verdicts among them by their code."""
    rows: set[Row] = set()
    for part in parts:
        batch = registry.deliver([text for _, text in part], [name for name, _ in part])
        for row in batch.table.to_pylist():
            fragment = row["fragment"]
            # A result may be the same text as the message, and is written anew by some engines.
            deliver = registry.get(row["subscription_id"]).deliver
            if fragment is not None and deliver == "fragment":
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
    first = made_by("reference", Registry, threads=1)
    rejected = set(first.add(subscriptions).rejected)
    kept = [subscription for subscription in subscriptions if subscription.id not in rejected]
    expected = rows_of(first, [messages])
    for engine in ENGINES:
        if missing(engine) is not None:
            continue
        registry = made_by(engine, Registry, threads=rng.choice([1, 2]))
        extra = [Subscription(f"x{i}", "nobody", "//*") for i in range(3)]
        for part in random_split(rng, rng.sample(kept + extra, len(kept) + 3)):
            assert not registry.add(part).rejected
        registry.remove(subscription.id for subscription in extra)
        assert rows_of(registry, random_split(rng, messages)) == expected, engine
        path = tmp_path / f"{engine}.snapshot"
        registry.freeze().save(path)
        restored = made_by(engine, Registry.of, made_by(engine, Snapshot.open, path))
        assert rows_of(restored, random_split(rng, messages)) == expected, engine


HISTORY_MESSAGES = {f"m{n}": b"<a><b c='1'/><b/><c/></a>" for n in range(3)}
WATCHED = [
    Subscription("w1", "ann", "//b"),
    Subscription("w1", "bob", "//b"),
    Subscription("w1", "ann", "//b[@c]"),
    Subscription("w1", "ann", "//b", "ids"),
    Subscription("w1", "ann", "//b", namespaces={"n": "urn:n"}),
    Subscription("w2", "ann", "//b"),
    Subscription("w2", "ann", "<r>{for $b in //b return <s>{$b}</s>}</r>"),
    Subscription("w2", "ann", "for $b in //b where count($b/@c) > 0 return $b"),
]


@pytest.mark.parametrize(
    "seed",
    [*range(6), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(6, 100))],
)
def test_an_id_means_one_delivery_through_any_history(seed: int, tmp_path: Path) -> None:
    # Who else comes and goes must not change it, or a redelivery is not recognised; a subscription
    # that has changed must, or a new delivery is taken for an old one.
    rng = random.Random(seed)
    meaning: dict[str, tuple[object, ...]] = {}
    name: dict[tuple[object, ...], str] = {}
    # Files of the papers are read by the papers alone.
    engines: list[EngineName] = rng.choice([["reference"], ["kernel", "nfa"]])
    registry = made_by(rng.choice(engines), Registry, threads=1)
    others = 0
    for step in range(25):
        choice = rng.randrange(5)
        if choice == 0 and len(registry):
            registry.remove(rng.choice(sorted(s.id for s in registry.freeze().subscriptions)))
        elif choice == 1:
            others += 1
            query = rng.choice(["//b", "//*", "//nothing", "<r>{//c}</r>"])
            assert not registry.add(Subscription(f"o{others}", "eve", query)).rejected
        elif choice == 2:
            wanted = rng.choice(WATCHED)
            if wanted.id in registry:
                registry.remove(wanted.id)
            assert not registry.add(wanted).rejected
        elif choice == 3:
            registry.freeze().save(tmp_path / "s")
            engine = rng.choice(engines)
            opened = made_by(engine, Snapshot.open, tmp_path / "s")
            registry = made_by(engine, Registry.of, opened, threads=1)
        chosen = dict(rng.sample(sorted(HISTORY_MESSAGES.items()), 2))
        for delivery in registry.deliver(chosen.values(), chosen).table.to_pylist():
            subscription = registry.get(delivery["subscription_id"])
            assert delivery["subscription_version"].hex() == subscription_version(subscription)
            key = (
                *subscription[:4],
                tuple(sorted((subscription.namespaces or {}).items())),
                delivery["message_id"],
                delivery["result_number"],
            )
            assert meaning.setdefault(delivery["delivery_id"], key) == key, step
            assert name.setdefault(key, delivery["delivery_id"]) == delivery["delivery_id"], step
    assert len(meaning) > 5
