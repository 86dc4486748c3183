"""Every kind of source and every kind of output, here and at a URL: what one process gives.

The same generated messages, some of them broken, lie in each kind of source; `Registry` and
`Registry` say in this process what has to come of them. Where a message lies changes its id and
nothing else; where a delivery goes changes nothing.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")
pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")

import deltalake

from pathcast import Query, Registry, Subscription
from pathcast.spark.outputs import files_of, follow, inbox, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.schemas import body_of
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess, Workers
from pathcast.workload.demo import write_demo
from s3_server import S3Server
from silent_progress import Silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = 24
HALF = MESSAGES // 2

SOURCES = ("directory", "parquet", "zip", "tar", "tar.gz", "gz", "delta")
SINKS = ("parquet", "jsonl", "delta")
PLACES = ("here", "there")

Expected = Mapping[str, Counter[Any]]


@dataclass(frozen=True)
class World:
    """The messages in every kind of source, and what has to come of them."""

    root: Path
    server: S3Server
    messages: Mapping[str, bytes]
    subscriptions: Mapping[str, list[Subscription]]
    known: dict[tuple[str, str], Expected] = field(default_factory=dict)

    def source(self, kind: str, place: str) -> list[str]:
        """Settings of a source."""
        name = kind if kind in ("directory", "parquet", "delta") else "archive"
        found = [f"source.kind={name}", f"source.path={self._place(f'in/{kind}', kind, place)}"]
        return found + self._options("source", kind, place)

    def sink(self, format: str, place: str, name: str) -> list[str]:
        """Settings of an output."""
        where = self._place(f"out/{name}", format, place)
        found = [f"output.format={format}", f"output.path={where}"]
        return found + self._options("output", format, place)

    def settings(self, wants: str, *overrides: str) -> PipelineSettings:
        """A pipeline over a set of subscriptions."""
        path = self.root / f"{wants}.toml"
        path.write_text(
            f'[source]\npath = "in"\n[subscriptions]\npath = "{wants}.tsv"\n'
            '[output]\npath = "out"\nmatches = "ids"\ncompact_files = 0\n'
            f"[mode]\nfiles_per_batch_max = {HALF}\n"
        )
        return load_settings(path, overrides)

    def expected(self, wants: str, kind: str) -> Expected:
        """What one process gives, by output."""
        if (wants, kind) not in self.known:
            self.known[wants, kind] = self._computed(wants, kind)
        return self.known[wants, kind]

    def _computed(self, wants: str, kind: str) -> Expected:
        rows = self.subscriptions[wants]
        registry = Registry(threads=1)
        assert not registry.add(rows).rejected
        index = Registry()
        ids = [row for row in rows if row.deliver == "ids"]
        declined = index.add([Query(row.id, row.query) for row in ids]).rejected
        assert not declined
        matcher = index.freeze()
        found: dict[str, Counter[Any]] = {name: Counter() for name in NAMES}
        for name, content in self.messages.items():
            message_id = ID_OF[kind](name)
            deliveries = registry.deliver(content, message_id)
            if deliveries.error is not None:
                found["dead_letters"][message_id, deliveries.error.code] += 1
                continue
            if ids:  # without a filter query there are no matches, empty ones neither
                (result,) = matcher.match([content])
                found["matches"][message_id, tuple(sorted(result.query_ids))] += 1
            for one in deliveries:
                fragment = None if one.fragment is None else bytes(one.fragment)
                key = (one.subscriber, one.subscription_id, message_id, fragment, one.delivery_id)
                found["inboxes"][key] += 1
        return found

    def _place(self, name: str, kind: str, place: str) -> str:
        if place == "here":
            return str(self.root / name)
        # A table is opened by `deltalake` too, which knows no protocols but its own.
        return self.server.url(name) if kind == "delta" else f"objects://{self.root}/{name}"

    def _options(self, section: str, kind: str, place: str) -> list[str]:
        if kind != "delta" or place == "here":
            return []
        return [
            *(f"{section}.storage_options.{k}={v}" for k, v in self.server.options.items()),
            *(f"{section}.delta_options.{k}={v!r}" for k, v in self.server.delta_options.items()),
        ]


NAMES: tuple[Any, ...] = ("inboxes", "matches", "dead_letters")

ID_OF: Mapping[str, Callable[[str], str]] = {
    "directory": lambda name: name,
    "parquet": lambda name: name,
    "delta": lambda name: name,
    "zip": lambda name: f"{half_of(name)}.zip!{name}",
    "tar": lambda name: f"{half_of(name)}.tar!{name}",
    "tar.gz": lambda name: f"{half_of(name)}.tar.gz!{name}",
    "gz": lambda name: f"{name}.gz!{name}",
}
"""Kind of source -> the id that it gives to a message of a name."""


def half_of(name: str) -> int:
    """Which of the two files of a source a message lies in."""
    return int(name.removesuffix(".xml")) // HALF


def put_sources(root: Path, messages: Mapping[str, bytes]) -> None:
    for kind in SOURCES:
        (root / kind).mkdir(parents=True)
    for name, content in messages.items():
        (root / "directory" / name).write_bytes(content)
        (root / "gz" / f"{name}.gz").write_bytes(gzip.compress(content))
    for half in range(2):
        mine = {name: c for name, c in messages.items() if half_of(name) == half}
        table = pa.table({"message_id": list(mine), "message": list(mine.values())})
        pq.write_table(table, root / "parquet" / f"{half}.parquet", row_group_size=5)
        deltalake.write_deltalake(root / "delta", table, mode="append")
        with zipfile.ZipFile(root / "zip" / f"{half}.zip", "w") as packed:
            for name, content in mine.items():
                packed.writestr(name, content)
        for ending in ("tar", "tar.gz"):
            mode: Any = "w:gz" if ending == "tar.gz" else "w"
            with tarfile.open(root / ending / f"{half}.{ending}", mode) as archive:
                for name, content in mine.items():
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("world")
    written = write_demo(
        root / "demo", messages=MESSAGES, queries=90, subscribers=7, shaped=0.4, broken_ratio=0.3
    )
    files = sorted(written.messages.iterdir())
    messages = {f"{n}.xml": path.read_bytes() for n, path in enumerate(files)}
    put_sources(root / "in", messages)
    lines = [line.split("\t") for line in written.subscriptions.read_text().splitlines()[1:]]
    rows = [Subscription(name, who, text, mode) for who, name, text, mode in lines]  # type: ignore[arg-type]
    rows += broad(messages)
    notices = [row for row in rows if row.deliver == "ids"]
    shaped = [row for row in rows if row.deliver == "fragment"]
    # Some take the message, and some what an XPath finds.
    notices = [
        row._replace(deliver=("ids", "ids", "message", "fragment")[n % 4])
        for n, row in enumerate(notices)
    ]
    wants = {
        "both": notices + shaped,
        "filters": [row for row in notices if row.deliver == "ids"],
        "flwr": shaped,
    }
    for name, chosen in wants.items():
        table = "".join(f"{r.subscriber}\t{r.id}\t{r.query}\t{r.deliver}\n" for r in chosen)
        (root / f"{name}.tsv").write_text(f"subscriber\tquery_id\tquery\tdeliver\n{table}")
    with S3Server(root) as server:
        yield World(root, server, messages, wants)


def broad(messages: Mapping[str, bytes]) -> list[Subscription]:
    """Subscriptions that have much to deliver: elements of the messages by name."""
    names = sorted({name for text in messages.values() for name in re.findall(rb"<([a-z]+)", text)})
    rows = []
    for number, name in enumerate(names):
        path, who = f"//{name.decode()}", f"s{number % 5}"
        rows.append(Subscription(f"n{number}", who, path, "ids"))
        if number % 4 == 0:
            text = f"for $e in {path} return <found>{{$e}}</found>"
            rows.append(Subscription(f"e{number}", who, text, "fragment"))
    return rows


def found_in(output: Storage) -> Expected:
    """What the readers of an output see."""
    inboxes: Counter[Any] = Counter()
    for row in read_output(output, "inboxes").to_pylist():
        key = (row["subscriber"], row["subscription_id"], row["message_id"], body_of(row))
        inboxes[*key, row["delivery_id"].hex()] += 1
    matches = read_output(output, "matches").to_pylist()
    letters = read_output(output, "dead_letters").to_pylist()
    return {
        "inboxes": inboxes,
        "matches": Counter((r["message_id"], tuple(sorted(r["query_ids"]))) for r in matches),
        "dead_letters": Counter((r["message_id"], r["code"]) for r in letters),
    }


def deliver(
    world: World, wants: str, source: list[str], sink: list[str], workers: Workers | None = None
) -> tuple[Summary, Storage]:
    chosen = world.settings(wants, *source, *sink)
    summary = run(chosen, workers=workers or InProcess(), progress=Silent())
    return summary, chosen.output.storage


def test_the_messages_are_worth_the_test(world: World) -> None:
    found = world.expected("both", "directory")
    assert len(found["matches"]) + len(found["dead_letters"]) == MESSAGES
    assert len(found["dead_letters"]) >= 2
    assert sum(1 for row in found["inboxes"] if row[3] is None) > 20
    assert sum(1 for row in found["inboxes"] if row[3] is not None) > 20
    assert max(found["inboxes"].values()) == 1


@pytest.mark.parametrize(
    ("source_place", "sink_place"),
    [
        ("here", "here"),
        ("there", "there"),
        pytest.param("here", "there", marks=pytest.mark.nightly),
        pytest.param("there", "here", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_and_every_output_give_what_one_process_gives(
    world: World, source: str, source_place: str, sink: str, sink_place: str
) -> None:
    name = f"{source}-{source_place}-{sink}-{sink_place}"
    summary, output = deliver(
        world, "both", world.source(source, source_place), world.sink(sink, sink_place, name)
    )
    expected = world.expected("both", source)
    assert found_in(output) == expected
    assert summary.messages == MESSAGES
    assert summary.deliveries == expected["inboxes"].total()
    assert sum(summary.refused.values()) == expected["dead_letters"].total()


@pytest.mark.parametrize("wants", ["filters", "flwr"])
@pytest.mark.parametrize("source", SOURCES)
def test_filter_queries_and_flwr_by_themselves(world: World, source: str, wants: str) -> None:
    sink = SINKS[SOURCES.index(source) % len(SINKS)]
    name = f"{wants}-{source}"
    _, output = deliver(world, wants, world.source(source, "here"), world.sink(sink, "here", name))
    assert found_in(output) == world.expected(wants, source)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sink", SINKS)
def test_one_inbox_and_who_follows_it(world: World, sink: str, place: str) -> None:
    where = world.sink(sink, place, f"inbox-{sink}-{place}")
    _, output = deliver(world, "both", world.source("directory", "here"), where)
    rows = [row for row in world.expected("both", "directory")["inboxes"] if row[0]]
    who = Counter(row[0] for row in rows).most_common(1)[0][0]
    want = Counter(row[2] for row in rows if row[0] == who)
    assert Counter(inbox(output, who).column("message_id").to_pylist()) == want
    assert files_of(output, "inboxes", subscriber=who)
    seen: Counter[str] = Counter()
    for batch_id, found in follow(output, "inboxes", subscriber=who, poll_seconds=0.01):
        seen.update(found.column("message_id").to_pylist())
        if batch_id == 2 or seen.total() >= want.total():
            break
    assert seen == want


@pytest.mark.spark
@pytest.mark.parametrize(
    ("source", "sink"), [("directory", "jsonl"), ("tar.gz", "parquet"), ("delta", "delta")]
)
def test_spark_gives_it_too(spark: SparkSession, world: World, source: str, sink: str) -> None:
    chosen = world.settings(
        "both", *world.source(source, "here"), *world.sink(sink, "here", f"spark-{source}")
    )
    run(chosen, spark=spark, progress=Silent())
    assert found_in(chosen.output.storage) == world.expected("both", source)
