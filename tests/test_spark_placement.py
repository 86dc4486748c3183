"""Partitioned delivery writes the rows that broadcast writes: ids, numbers, letters, exactly once.

If one of these fails, what a subscriber gets depends on where queries are matched.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from typer.testing import CliRunner

from generators import (
    FamilyShape,
    random_expression,
    random_family,
    random_query,
    random_valued_message,
)
from generators.flwr_messages import random_flwr_message
from generators.flwr_text import random_flwr
from generators.flwr_vocabulary import VOCABULARIES
from pathcast import Query, QueryIndex, Registry, Subscription
from pathcast.cli.app import build_app
from pathcast.errors import SnapshotFormatError
from pathcast.spark import answering_partitions, assigning, merging, placing, sections
from pathcast.spark.answering import Answerer
from pathcast.spark.costs import Costs, choose
from pathcast.spark.ledger import BatchLedger, Commit
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.routed import ROUTED, remove_routed
from pathcast.spark.schemas import body_of
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONED = ("placement.kind=partitioned", "placement.partitions=5")
OUTPUTS: tuple[Any, ...] = ("inboxes", "matches", "dead_letters")


SUBSCRIPTIONS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("subscriber", "query_id", "query", "deliver")),
        pa.field("steps", pa.list_(pa.string())),
    ]
)
SERIES = (
    (),
    ("drop //b",),
    ("drop //b", "rename //c a"),
    ("unwrap //book/author", "drop //title[@* = 'x;y']"),
    ("unwrap //book/author", "rename //book c"),
)
"""Steps that change messages, of which several begin alike."""


def random_path(chosen: random.Random) -> str:
    """A path that steps make a difference to."""
    first, second = chosen.choices(("a", "b", "c", "book", "last", "title"), k=2)
    return chosen.choice((f"//{first}", f"//{first}/{second}", f"//{first}[.//{second}]"))


class Notes:
    """A progress report that keeps what it is told."""

    def __init__(self, on_batch: Callable[[Commit], None] | None = None) -> None:
        self.commits: list[Commit] = []
        self.notes: list[str] = []
        self._on_batch = on_batch

    def begin(self, text: str, messages: int | None) -> None:
        """Nothing to keep."""

    def batch(self, commit: Commit) -> None:
        self.commits.append(commit)
        if self._on_batch:
            self._on_batch(commit)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> None:
        """Nothing to close."""


def put_subscriptions(root: Path, chosen: random.Random, count: int, name: str = "s") -> None:
    """Filter queries and queries with results, some of several subscribers, one that is none."""
    texts = random_family(chosen, count, FamilyShape(has_alternatives=True))
    texts += [random_query(chosen) for _ in range(count // 2)]
    texts += [random_expression(chosen) for _ in range(count // 3)]
    rows = [(f"{name}{at}", text, "ids") for at, text in enumerate(texts)]
    vocabulary = VOCABULARIES["bib"]
    rows += [
        (
            f"{name}r{at}",
            random_flwr(chosen, vocabulary).text,
            chosen.choice(("fragment", "message")),
        )
        for at in range(count // 2)
    ]
    rows += [(f"{name}bad", "/a[", "ids")]
    rows += [(f"{name}a{at}", random_path(chosen), "ids") for at in range(count // 2)]
    table: list[dict[str, Any]] = []
    for query_id, text, deliver in rows:
        steps = list(chosen.choice(SERIES)) if query_id.startswith((f"{name}r", f"{name}a")) else []
        for subscriber in chosen.sample(("ann", "bob", "cid"), chosen.choice((1, 1, 2))):
            row = [subscriber, query_id, text, deliver, steps]
            table.append(dict(zip(SUBSCRIPTIONS.names, row, strict=True)))
    pq.write_table(pa.Table.from_pylist(table, SUBSCRIPTIONS), root / ".s.parquet")
    (root / ".s.parquet").rename(root / "subscriptions.parquet")


def some_messages(chosen: random.Random, count: int) -> list[bytes | None]:
    """Messages that queries meet; some are refused, some missing, some there twice."""
    found: list[bytes | None] = []
    for at in range(count):
        if at % 3 == 2:
            message = random_flwr_message(chosen, VOCABULARIES["bib"])
        else:
            message = random_valued_message(chosen)
        found.append(message[:-2] if at % 8 == 3 else None if at % 13 == 7 else message)
    return [*found, *found[:3]]


def put_directory(root: Path, messages: Sequence[bytes | None], first: int = 0) -> None:
    folder = root / "in"
    folder.mkdir(exist_ok=True)
    for at, message in enumerate(messages, first):
        (folder / f"{at}.xml").write_bytes(message or b"")


def put_parquet(root: Path, messages: Sequence[bytes | None]) -> None:
    """Two files of three row groups, some ids missing, with a column that is passed through."""
    (root / "in").mkdir()
    for part in range(2):
        rows = messages[part::2]
        ids = [None if at % 9 == 4 else f"{part}-{at}" for at in range(len(rows))]
        shown = [f"region {at % 3}" for at in range(len(rows))]
        table = pa.table({"message_id": ids, "message": rows, "region": shown})
        group = max(1, len(rows) // 3)
        pq.write_table(table, root / "in" / f"{part}.parquet", row_group_size=group)


def settings(root: Path, out: str, *overrides: str) -> PipelineSettings:
    path = root / "pipeline.toml"
    path.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "subscriptions.parquet"\n'
        "shrink_max = 1.0\n"
        f'[output]\npath = "{out}"\n[mode]\nfiles_per_batch_max = 20\n'
    )
    return load_settings(path, overrides)


def go(root: Path, out: str, *overrides: str, report: Notes | None = None) -> Summary:
    """A run in this process."""
    chosen = settings(root, out, *overrides)
    return run(chosen, workers=InProcess(), progress=report or Notes())


def rows_in(output: Path) -> dict[str, Counter[Any]]:
    """All rows of all outputs that are written, every column but the time of the run."""
    return {
        name: Counter(
            tuple(tuple(v) if isinstance(v, list) else v for v in row.values())
            for row in read_output(output, name).drop_columns(["processed_at"]).to_pylist()
        )
        for name in OUTPUTS
        if (output / name).is_dir()
    }


def check_same(root: Path, one: Summary, other: Summary) -> dict[str, Counter[Any]]:
    """The same rows and the same counts; gives the rows."""
    found = rows_in(root / "broadcast")
    assert rows_in(root / "partitioned") == found
    names = ["messages", "bytes", "matches", "deliveries", "refused", "undecided", "batches"]
    names += ["top_subscribers", "queries", "subscriptions"]
    for name in names:
        assert getattr(one, name) == getattr(other, name), name
    assert not list((root / "partitioned" / ROUTED).glob("*")), "files are left on the way"
    return found


@pytest.mark.parametrize(
    ("kind", "matches", "scheme", "exact_max"),
    [
        ("directory", "ids", "pep", 2000),
        ("directory", "numbers", "hash", 2000),
        ("directory", "none", "pep", 0),
        ("parquet", "ids", "cost", 2000),
        ("parquet", "numbers", "pep", 0),
        ("parquet", "none", "prefix", 0),
    ],
)
def test_partitioned_delivery_writes_what_broadcast_writes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    matches: str,
    scheme: str,
    exact_max: int,
) -> None:
    monkeypatch.setattr(assigning, "EXACT_MAX", exact_max)
    chosen = random.Random(f"{kind} {matches}")
    put_subscriptions(tmp_path, chosen, 12)
    put = put_directory if kind == "directory" else put_parquet
    put(tmp_path, some_messages(chosen, 40))
    more = [f"source.kind={kind}", f"output.matches={matches}"]
    if kind == "parquet":
        more.append('source.columns=["region"]')
    if chosen.random() < 0.5:
        more.append("output.format=jsonl")
    one = go(tmp_path, "broadcast", *more)
    report = Notes()
    more.append(f"placement.scheme={scheme}")
    other = go(tmp_path, "partitioned", *more, *PARTITIONED, report=report)
    found = check_same(tmp_path, one, other)
    assert len(found["inboxes"]) > 50
    assert len(found["dead_letters"]) > 3
    assert bool(found.get("matches")) == (matches != "none")
    assert any(note.startswith("partitioned: ") for note in report.notes)


@pytest.mark.parametrize(("kind", "scheme"), [("text", "pep"), ("parquet", "cost")])
def test_sections_take_up_reject_and_deliver_what_one_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, scheme: str
) -> None:
    """However small the sections are, and the ranges in which their takers are merged."""
    monkeypatch.setattr(sections, "SECTION_ROWS", 7)
    monkeypatch.setattr(merging, "RANGE_ROWS", 5)
    monkeypatch.setattr(assigning, "EXACT_MAX", 0)
    chosen = random.Random(f"sections {kind}")
    put_subscriptions(tmp_path, chosen, 14)
    add_faults(tmp_path, chosen)
    more = ["output.matches=ids", f"placement.scheme={scheme}"]
    if kind == "text":
        write_as_text(tmp_path)
        more.append(f"subscriptions.path={tmp_path}/subscriptions.tsv")
    put_directory(tmp_path, some_messages(chosen, 40))
    one = go(tmp_path, "broadcast", *more)
    other = go(tmp_path, "partitioned", *more, *PARTITIONED)
    found = check_same(tmp_path, one, other)
    assert len(found["inboxes"]) > 50
    assert one.rejected_queries == other.rejected_queries
    assert len(one.rejected_queries) > 2
    rejected = [
        Counter(map(str, pq.read_table(tmp_path / out / "rejected_queries").to_pylist()))
        for out in ("broadcast", "partitioned")
    ]
    assert rejected[0] == rejected[1]
    assert sum(rejected[0].values()) > 5
    takers = [
        pa.ipc.open_file(path).read_all()
        for out in ("broadcast", "partitioned")
        for path in (tmp_path / out / "_snapshots").glob("*/takers.arrow")
    ]
    assert takers[0].equals(takers[1].combine_chunks()), "the same ranks"
    assert takers[1].column(0).num_chunks > 3


def add_faults(root: Path, chosen: random.Random) -> None:
    """Rows that are none, and rows that another has taken the id of."""
    path = root / "subscriptions.parquet"
    rows = pq.read_table(path).to_pylist()
    taken = chosen.sample(rows, 4)
    rows += [{**row, "query": "/other", "subscriber": "dan"} for row in taken]
    rows += [dict(row) for row in taken]
    for name in ("subscriber", "query_id", "query"):
        rows.insert(chosen.randrange(len(rows)), {**chosen.choice(rows), name: ""})
    rows.insert(chosen.randrange(len(rows)), {**rows[0], "query_id": "mode", "deliver": "pigeon"})
    pq.write_table(pa.Table.from_pylist(rows, SUBSCRIPTIONS), path)


def write_as_text(root: Path) -> None:
    """The table as text, where every field is quoted."""
    table = pq.read_table(root / "subscriptions.parquet")
    rows = [table.column_names]
    rows += [[*values, "; ".join(steps)] for *values, steps in map(dict.values, table.to_pylist())]
    text = "".join(
        "\t".join('"' + field.replace('"', '""') + '"' for field in row) + "\n" for row in rows
    )
    (root / "subscriptions.tsv").write_text(text)


def test_an_output_goes_from_sections_to_one_whole_and_back(tmp_path: Path) -> None:
    """The same subscriptions have one version, whoever took them up."""
    put_subscriptions(tmp_path, random.Random(25), 6)
    messages = some_messages(random.Random(26), 30)
    kinds = [PARTITIONED, (), PARTITIONED, ("placement.kind=auto",), PARTITIONED]
    for at, more in enumerate(kinds):
        put_directory(tmp_path, messages[6 * at : 6 * at + 6], first=6 * at)
        for out in ("partitioned", "broadcast"):
            go(tmp_path, out, *(more if out == "partitioned" else ()), "output.matches=ids")
    found = rows_in(tmp_path / "partitioned")
    assert found == rows_in(tmp_path / "broadcast")
    assert len(found["inboxes"]) > 20


def test_partitions_are_opened_within_the_memory_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that may hold two of them closes what it served longest ago, and opens it again."""
    lines = [f"ann\tq{n}\t/m/k{n}\tids\n" for n in range(40)]
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\tdeliver\n" + "".join(lines))
    put_directory(tmp_path, [f"<m>{''.join(f'<k{n}/>' for n in range(40))}</m>".encode()])
    opened: list[int] = []
    held: list[int] = []
    partitions = answering_partitions._Partitions
    make = partitions._opened

    def counted(self: Any, number: int) -> Any:
        held.append(sum(map(self._placed.open_bytes, self._open)) + self._placed.open_bytes(number))
        opened.append(number)
        return make(self, number)

    monkeypatch.setattr(partitions, "_opened", counted)
    more: tuple[str, ...] = (f"subscriptions.path={tmp_path}/s.tsv", "placement.partitions=40")
    more += ("placement.scheme=hash",)
    allowed = 20_000
    go(tmp_path, "out", *PARTITIONED[:1], *more, f"placement.worker_bytes_max={allowed}")
    assert len(opened) > 20
    assert max(held) <= allowed
    opened.clear()
    held.clear()
    go(tmp_path, "less", *PARTITIONED[:1], *more, "placement.worker_bytes_max=1")
    assert len(opened) == len(set(opened)) > 20, "what is larger than all of it is open alone"


def test_partitions_are_written_to_delta_tables(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed")
    put_subscriptions(tmp_path, random.Random(97), 6)
    put_directory(tmp_path, some_messages(random.Random(98), 30))
    one = go(tmp_path, "broadcast", "output.format=delta")
    other = go(tmp_path, "partitioned", "output.format=delta", *PARTITIONED)
    assert sum(check_same(tmp_path, one, other)["inboxes"].values()) > 20


def test_every_delivery_is_one_that_a_process_of_its_own_makes(tmp_path: Path) -> None:
    """Not only the same as broadcast: as `QueryIndex` and `Registry` say."""
    chosen = random.Random(11)
    put_subscriptions(tmp_path, chosen, 12)
    messages = [message for message in some_messages(chosen, 40) if message is not None]
    put_directory(tmp_path, messages)
    go(tmp_path, "out", *PARTITIONED, "output.matches=ids")
    rows = pq.read_table(tmp_path / "subscriptions.parquet").to_pylist()
    taken = {row["query_id"]: row for row in rows}
    index, registry = QueryIndex(), Registry()
    are_notices = [row for row in taken.values() if row["deliver"] == "ids" and not row["steps"]]
    declined = index.register(Query(r["query_id"], r["query"]) for r in are_notices).rejected
    registry.add(
        Subscription(row["query_id"], "x", row["query"], row["deliver"], steps=tuple(row["steps"]))
        for row in taken.values()
        if row not in are_notices or row["query_id"] in declined
    )
    assert sum(bool(row["steps"]) for row in taken.values()) > 4
    expected: Counter[Any] = Counter()
    matches: Counter[Any] = Counter()
    takers: dict[str, list[str]] = {}
    for row in rows:
        takers.setdefault(row["query_id"], []).append(row["subscriber"])
    results = index.matcher().match(messages)
    for at, result in enumerate(results):
        name = f"{at}.xml"
        if result.error is None:
            matches[name, tuple(result.query_ids)] += 1
        for query_id in result.query_ids:
            for who in takers[query_id]:
                expected[who, query_id, name, 0, None] += 1
        for each in registry.deliver(messages[at], name):
            for who in takers[each.subscription_id]:
                made = (each.subscription_id, name, each.result_number, each.fragment)
                expected[(who, *made)] += 1
    found = read_output(tmp_path / "out", "inboxes").to_pylist()
    columns = ("subscriber", "subscription_id", "message_id", "result_number")
    got = Counter((*(row[name] for name in columns), body_of(row)) for row in found)
    assert got == expected
    assert len({row["delivery_id"] for row in found}) == len(found) > 50
    written = read_output(tmp_path / "out", "matches").to_pylist()
    assert Counter((row["message_id"], tuple(row["query_ids"])) for row in written) == matches


def test_subscriptions_change_between_micro_batches(tmp_path: Path) -> None:
    """Each micro-batch has the partitions of the generation that it is pinned to."""

    def change(out: str) -> Callable[[Commit], None]:
        def changed(commit: Commit) -> None:
            if commit.batch_id == 1:
                put_subscriptions(tmp_path, random.Random(22), 9, name="later")

        return changed

    seen = []
    for out, more in (("broadcast", ()), ("partitioned", PARTITIONED)):
        put_subscriptions(tmp_path, random.Random(21), 9)
        chosen = random.Random(23)
        put_directory(tmp_path, some_messages(chosen, 40))
        report = Notes(change(out))
        seen.append(go(tmp_path, out, *more, "output.matches=ids", report=report))
        assert len({commit.snapshot_version for commit in report.commits}) == 2
    check_same(tmp_path, *seen)


class Killed(Exception):
    """Stands for SIGKILL: nothing catches it, nothing is cleaned up."""


class Dying(InProcess):
    """Dies once so many calls, or so many tasks of one, are done."""

    def __init__(self, calls: int, tasks: int) -> None:
        self._calls, self._tasks = calls, tasks

    def run(self, task: Any, shares: Any) -> Any:
        if self._calls > 0:
            self._calls -= 1
            return super().run(task, shares)
        super().run(task, shares[: self._tasks])
        raise Killed


CUTTING = 3
"""Calls before the first messages are marked: sections are taken up, placed, and compiled."""


@pytest.mark.parametrize(
    ("calls", "tasks"),
    [(0, 1), (1, 1), (2, 1)]
    + [(CUTTING + calls, tasks) for calls in range(3) for tasks in range(2)]
    + [(CUTTING + 2, 2), (CUTTING + 4, 1)],
)
def test_a_kill_at_any_stage_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, tasks: int
) -> None:
    """Before, in the middle of and after each stage of cutting and of delivering."""
    monkeypatch.setattr(sections, "SECTION_ROWS", 8)
    put_subscriptions(tmp_path, random.Random(31), 6)
    put_directory(tmp_path, some_messages(random.Random(32), 30))
    chosen = settings(tmp_path, "partitioned", *PARTITIONED, "output.matches=ids")
    # A process that is killed takes nothing out.
    monkeypatch.setattr(placing, "remove_routed", lambda storage: None)
    with pytest.raises(Killed):
        run(chosen, workers=Dying(calls, tasks), progress=Notes())
    left = list((tmp_path / "partitioned" / ROUTED).glob("*"))
    assert bool(left) == ((calls, tasks) > (CUTTING, 0))
    monkeypatch.setattr(placing, "remove_routed", remove_routed)
    go(tmp_path, "partitioned", *PARTITIONED, "output.matches=ids")
    go(tmp_path, "broadcast", "output.matches=ids")
    assert rows_in(tmp_path / "partitioned") == rows_in(tmp_path / "broadcast")
    assert not list((tmp_path / "partitioned" / ROUTED).glob("*"))


def test_a_replay_uses_the_partitions_that_the_batch_was_begun_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    put_subscriptions(tmp_path, random.Random(41), 6)
    put_directory(tmp_path, some_messages(random.Random(42), 12))
    monkeypatch.setattr(BatchLedger, "write_commit", killed)
    for out, more in (("broadcast", ()), ("partitioned", PARTITIONED), ("begun", ())):
        with pytest.raises(Killed):
            go(tmp_path, out, *more, "output.matches=ids")
    monkeypatch.undo()
    put_subscriptions(tmp_path, random.Random(43), 6, name="later")
    go(tmp_path, "broadcast", "output.matches=ids")
    go(tmp_path, "partitioned", *PARTITIONED, "output.matches=ids")
    # Begun as broadcast: its queries are gone, so nobody can cut them now.
    report = Notes()
    go(tmp_path, "begun", *PARTITIONED, "output.matches=ids", report=report)
    expected = rows_in(tmp_path / "broadcast")
    assert rows_in(tmp_path / "partitioned") == rows_in(tmp_path / "begun") == expected
    assert any(note.startswith("broadcast: this generation") for note in report.notes)


def test_attempts_that_are_not_reported_do_not_count(tmp_path: Path) -> None:
    class Speculating(InProcess):
        """Runs every task twice, and hears of the second one only."""

        def run(self, task: Any, shares: Any) -> Any:
            super().run(task, shares)
            return super().run(task, shares)

    put_subscriptions(tmp_path, random.Random(51), 6)
    put_directory(tmp_path, some_messages(random.Random(52), 20))
    chosen = settings(tmp_path, "partitioned", *PARTITIONED, "output.matches=ids")
    one = run(chosen, workers=Speculating(), progress=Notes())
    check_same(tmp_path, go(tmp_path, "broadcast", "output.matches=ids"), one)


def test_a_file_that_breaks_off_is_done_without_in_both(tmp_path: Path) -> None:
    """Marking has read some of its rows by then: none of them counts."""
    put_subscriptions(tmp_path, random.Random(61), 6)
    put_parquet(tmp_path, some_messages(random.Random(62), 40))
    damaged = tmp_path / "in" / "1.parquet"
    content = bytearray(damaged.read_bytes())
    place = content.index(b"<", len(content) // 2)
    content[place - 40 : place + 200] = b"\0" * 240
    damaged.write_bytes(content)
    one = go(tmp_path, "broadcast", "source.kind=parquet")
    assert one.unread == 1
    check_same(tmp_path, one, go(tmp_path, "partitioned", "source.kind=parquet", *PARTITIONED))


def test_a_worker_opens_only_the_partitions_that_messages_go_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"ann\tq{n}\t/m/k{n}\tids\n" for n in range(40)]
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\tdeliver\n" + "".join(lines))
    put_directory(tmp_path, [b"<m><k7/></m>", b"<m><k7/><k8/></m>", b"<n/>"])
    opened: list[int] = []
    answerer = Answerer

    def counted(files: Any, **options: Any) -> Any:
        opened.append(int(str(files.takers.parent).rpartition("-")[2]))
        return answerer(files, **options)

    monkeypatch.setattr(answering_partitions, "Answerer", counted)
    more = (f"subscriptions.path={tmp_path}/s.tsv", "placement.partitions=40")
    go(tmp_path, "out", *PARTITIONED[:1], *more, "output.matches=ids")
    found = read_output(tmp_path / "out", "matches").to_pylist()
    assert sorted(tuple(row["query_ids"]) for row in found) == [(), ("q7",), ("q7", "q8")]
    assert 1 <= len(set(opened)) <= 2
    assert len(opened) == len(set(opened))


def test_what_is_cheaper_is_chosen_and_said(tmp_path: Path) -> None:
    put_subscriptions(tmp_path, random.Random(71), 6)
    put_directory(tmp_path, some_messages(random.Random(72), 20))
    one = go(tmp_path, "broadcast", "output.matches=ids")
    for out, bytes_max in (("either", 10**9), ("partitioned", 10)):
        report = Notes()
        more = ("placement.kind=auto", f"placement.worker_bytes_max={bytes_max}")
        shutil.rmtree(tmp_path / out, ignore_errors=True)
        other = go(tmp_path, out, *more, "output.matches=ids", report=report)
        told = [note for note in report.notes if note.startswith(("broadcast", "partitioned"))]
        assert len(told) == 1
        assert told[0].startswith(out) or out == "either"
        assert "µs a message with all queries" in told[0] or out != "either"
        assert rows_in(tmp_path / out)["inboxes"]
        assert other.deliveries == one.deliveries
    # Where both can be, both were measured.
    assert "allowed on a worker" in told[0]


def test_costs_decide() -> None:
    known = Costs(
        queries_bytes=10**6,
        worker_bytes_max=10**9,
        message_bytes=4000,
        messages=256,
        answer_us=50.0,
        mark_us=12.0,
        part_us=13.0,
        touched=2.0,
        partitions=10,
    )
    # 12 to mark, 12,000 bytes at 500 a microsecond, 2 times 13.
    assert known.partitioned_us == 12 + 24 + 26
    assert choose(known)[0] == "broadcast"
    assert choose(replace(known, answer_us=63.0))[0] == "partitioned"
    assert choose(replace(known, touched=0.1))[0] == "partitioned"
    kind, why = choose(replace(known, answer_us=None))
    assert (kind, why) == ("partitioned", "1 MB of queries, 1,000 MB allowed on a worker")


@pytest.mark.spark
def test_spark_writes_what_this_process_writes(tmp_path: Path, spark: SparkSession) -> None:
    put_subscriptions(tmp_path, random.Random(81), 8)
    put_directory(tmp_path, some_messages(random.Random(82), 40))
    one = go(tmp_path, "broadcast", "output.matches=numbers")
    chosen = settings(tmp_path, "partitioned", *PARTITIONED, "output.matches=numbers")
    other = run(chosen, spark=spark, progress=Notes())
    check_same(tmp_path, one, other)


def test_check_tells_where_queries_would_be_matched_and_writes_nothing(tmp_path: Path) -> None:
    put_subscriptions(tmp_path, random.Random(91), 6)
    put_directory(tmp_path, some_messages(random.Random(92), 12))
    for kind, expected in (
        ("auto", "placement: (broadcast|partitioned): [0-9]"),
        ("partitioned", r"placement: partitioned: as placement.kind says \([a-z]+ would be"),
    ):
        settings(tmp_path, "out")
        with (tmp_path / "pipeline.toml").open("a") as handle:
            handle.write(f'[placement]\nkind = "{kind}"\npartitions = 3\n')
        result = CliRunner().invoke(build_app(), ["check", str(tmp_path / "pipeline.toml")])
        assert result.exit_code == 0, result.output
        told = " ".join(result.output.split())
        assert re.search(expected, told), told
        assert "µs a message with all queries" in told
        assert "in 4 partitions" in told
    assert not (tmp_path / "out").exists()


def test_explain_says_where_queries_are_and_where_a_message_goes(tmp_path: Path) -> None:
    """What it says is what a run does: the query is matched where the message is said to go."""
    lines = [f"ann\tq{n}\t/m/a[@x = {n}]\tids\n" for n in range(40)]
    lines += ["bob\tall\t//c[last()]\tids\n", "bob\tbad\t/a[\tids\n"]
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\tdeliver\n" + "".join(lines))
    put_directory(tmp_path, [f"<m><a x='{n}'/></m>".encode() for n in range(30)])
    message = tmp_path / "one.xml"
    message.write_bytes(b"<m><a x='7'/><a x='31'/></m>")

    def call(kind: str, *more: str) -> Any:
        settings(tmp_path, "out")
        with (tmp_path / "pipeline.toml").open("a") as handle:
            handle.write(f'[placement]\nkind = "{kind}"\npartitions = 5\n')
        text = (tmp_path / "pipeline.toml").read_text()
        (tmp_path / "pipeline.toml").write_text(text.replace("subscriptions.parquet", "s.tsv"))
        return CliRunner().invoke(build_app(), ["explain", f"{tmp_path}/pipeline.toml", *more])

    asked = [str(message), "--id", "q7", "--id", "q31", "--id", "all"]
    told = call("partitioned", *asked, "--format", "json")
    assert told.exit_code == 0, told.output
    found = json.loads(told.output)
    assert (found["placement"], found["partitions"]) == ("partitioned", 6)
    assert "would be chosen" in found["why"]
    assert "µs a message with all queries" in found["why"]
    goes = {each["partition"]: each for each in found["message"]}
    assert found["queries"]["q7"] in goes
    assert found["queries"]["q31"] in goes
    assert found["queries"]["all"] == 5
    assert 5 not in goes, "nothing in the message is named c"
    assert len(goes) == len({found["queries"]["q7"], found["queries"]["q31"]})
    assert goes[found["queries"]["q7"]]["routes"] == ["/m/a[@x=7]"]
    text = " ".join(call("auto", *asked).output.split())
    assert re.search(r"placement: (broadcast|partitioned): [0-9.,]+ µs a message", text), text
    assert f"q7: partition {found['queries']['q7']}, where the message goes" in text
    assert "all: partition 5, where it does not go" in text
    assert "the message goes to 2 of 6:" in text
    assert "by /m/a[@x=31]" in text
    assert "on every worker" in call("broadcast", *asked).output
    assert not (tmp_path / "out").exists()
    refused = call("partitioned", "--id", "bad")
    assert refused.exit_code != 0
    assert "bad" in refused.output
    message.write_bytes(b"<m>")
    assert call("partitioned", str(message)).exit_code != 0


@pytest.mark.parametrize("budget", [1, 4000])
def test_queries_that_nothing_tells_apart_have_a_partition_of_their_own(
    tmp_path: Path, budget: int
) -> None:
    """PEP's don't-care partition: it gets what its queries need, or where that is too much, all."""
    lines = [f"ann\tq{n}\t/m/a[@x = {n}]\tids\n" for n in range(40)]
    lines += ["bob\tall\t/m\tids\n", "bob\tc\t//c[last()]\tids\n"]
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\tdeliver\n" + "".join(lines))
    messages = [f"<m><a x='{n}'/><c/></m>".encode() for n in range(30)]
    put_directory(tmp_path, [*messages, b"<n><c/></n>", b"<n/>"])
    more = [f"subscriptions.path={tmp_path}/s.tsv", f"placement.routing_bytes_max={budget}"]
    one = go(tmp_path, "broadcast", *more, "output.matches=ids")
    report = Notes()
    other = go(tmp_path, "partitioned", *more, *PARTITIONED, "output.matches=ids", report=report)
    check_same(tmp_path, one, other)
    assert any("42 queries in 6 partitions" in note for note in report.notes), report.notes


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"partitions": [{"size": 1}]}'])
def test_a_description_that_is_damaged_is_refused(tmp_path: Path, content: bytes) -> None:
    put_subscriptions(tmp_path, random.Random(95), 4)
    put_directory(tmp_path, some_messages(random.Random(96), 4))
    go(tmp_path, "out", *PARTITIONED)
    [described] = (tmp_path / "out" / "_snapshots").glob("*/*/partitions.json")
    described.write_bytes(content)
    put_directory(tmp_path, [b"<m/>"], first=50)
    with pytest.raises(SnapshotFormatError, match=re.escape(str(described))):
        go(tmp_path, "out", *PARTITIONED)
