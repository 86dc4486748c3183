"""A row of the subscriptions that is not valid any more: its last valid version stays in force.

If these fail, a typo ends what somebody relies on, or nobody is told of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pathcast.cli.app import build_app
from pathcast.spark.ledger import Commit
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from patience import PATIENCE_SECONDS
from silent_progress import Silent

STAYS = "its row is not valid, the last valid version stays in force"


class Noting(Silent):
    """Keeps what is told, and does something after each micro-batch and note."""

    def __init__(self, react: Callable[[str], object] = lambda text: None) -> None:
        self.notes: list[str] = []
        self._react = react

    def batch(self, commit: object) -> None:
        assert isinstance(commit, Commit)
        self._react(f"batch {commit.batch_id}")

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._react(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
        "[mode]\nseconds_between_batches = 0.01\n"
    )
    subscribe(tmp_path, "ann\tprice\t/m/price", "bob\tprice\t/m/price", "bob\tall\t/m\tmessage")
    return tmp_path


def subscribe(root: Path, *rows: str) -> None:
    lines = [f"{row}\tids" if row.count("\t") == 2 else row for row in rows]
    text = "\n".join(("subscriber\tquery_id\tquery\tdeliver", *lines)) + "\n"
    # Renamed in, as a stream wants it.
    (root / "s.new").write_text(text)
    (root / "s.new").replace(root / "s.tsv")


def go(root: Path, message: str, *overrides: str) -> tuple[Summary, list[str]]:
    """One more message, and a run; what it came to, and what it said."""
    (root / "in" / f"{message}.xml").write_text("<m><price>7</price></m>")
    told = Noting()
    settings = load_settings(root / "pipeline.toml", overrides)
    return run(settings, workers=InProcess(), progress=told), told.notes


def pathcast(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(build_app(), arguments)
    return result.exit_code, result.stdout, result.stderr


def received(root: Path, subscriber: str, message: str) -> list[str]:
    """Ids of the subscriptions for which a subscriber got a message."""
    code, out, _ = pathcast("inbox", subscriber, "--output", str(root / "out"))
    assert code == 0
    rows: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    return sorted(row["subscription_id"] for row in rows if row["message_id"] == f"{message}.xml")


@pytest.mark.parametrize(
    "broken",
    [
        "bob\tall\t/m[\tmessage",  # no XPath
        "bob\tall\t//n:m\tmessage",  # a prefix that nothing binds
        "bob\tall\t/m\twhole",  # no way to deliver
        "bob\tall\t\tmessage",  # no query
        "bob\tall",  # no row
    ],
)
def test_a_typo_ends_nothing_and_everybody_is_told(root: Path, broken: str) -> None:
    go(root, "1")
    subscribe(root, "ann\tprice\t/m/price", "bob\tprice\t/m/price")
    (root / "s.tsv").write_text((root / "s.tsv").read_text() + broken + "\n")
    pipeline = str(root / "pipeline.toml")
    code, out, err = pathcast("check", pipeline)
    assert code == 0
    assert f"{root / 's.tsv'}:4" in out
    assert "the last valid version stays in force: /m" in out
    assert "rejected: 1, in force as they were last valid: 1" in err
    # From one run to the next, and to the one after it.
    for message in ("2", "3"):
        summary, notes = go(root, message)
        assert (summary.subscriptions, summary.last_valid) == (3, 1)
        assert sum(summary.rejected_queries.values()) == 1
        assert "last valid:       1 subscriptions" in summary.to_text()
        assert any(note.startswith(f"bob all: {STAYS}: {root / 's.tsv'}:4") for note in notes)
        assert received(root, "bob", message) == ["all", "price"]
    code, _, err = pathcast("inbox", "bob", "--output", str(root / "out"))
    assert f"warning: all: {STAYS}: /m; {root / 's.tsv'}:4" in err
    assert STAYS not in pathcast("inbox", "ann", "--output", str(root / "out"))[2]
    asked = ("--message", "3.xml")
    _, out, _ = pathcast("why", pipeline, "--subscriber", "bob", *asked)
    assert f"all: delivered\n  {STAYS}: {root / 's.tsv'}:4" in out
    assert STAYS not in pathcast("why", pipeline, "--subscriber", "ann", *asked)[1]
    # Mended: the new version counts, and nothing is told any more.
    subscribe(root, "ann\tprice\t/m/price", "bob\tall\t/m/other\tmessage")
    summary, notes = go(root, "4")
    assert (summary.subscriptions, summary.last_valid, summary.rejected_queries) == (2, 0, {})
    assert not any(STAYS in note for note in notes)
    assert received(root, "bob", "4") == []
    assert STAYS not in pathcast("inbox", "bob", "--output", str(root / "out"))[2]


def test_a_row_that_is_taken_out_ends_and_one_that_never_was_valid_is_none(root: Path) -> None:
    go(root, "1")
    subscribe(root, "ann\tprice\t/m/price", "bob\tprice\t/m/price", "eve\tnew\t//[")
    summary, _ = go(root, "2")
    assert (summary.subscriptions, summary.last_valid) == (2, 0)
    assert received(root, "bob", "2") == ["price"]
    asked = ("--message", "2.xml")
    _, out, _ = pathcast("why", str(root / "pipeline.toml"), "--subscriber", "eve", *asked)
    assert "rejected: new: " in out, "nobody tells why nothing ever comes"


def test_a_typo_in_a_query_that_two_share_costs_neither_of_them(root: Path) -> None:
    go(root, "1")
    subscribe(root, "ann\tprice\t/m/price[", "bob\tprice\t/m/price", "bob\tall\t/m\tmessage")
    summary, _ = go(root, "2")
    assert summary.subscriptions == 3
    assert received(root, "ann", "2") == ["price"]
    assert received(root, "bob", "2") == ["all", "price"]


def test_an_id_that_has_another_query_now_ends_the_version_that_it_had(root: Path) -> None:
    """One id is one query: ann's new one and bob's last valid one cannot both be answered."""
    go(root, "1")
    subscribe(root, "ann\tprice\t/m/other", "bob\tprice\t/m/price", "bob\tall\t/m\tmessage")
    summary, _ = go(root, "2")
    assert (summary.subscriptions, summary.last_valid) == (2, 0)
    assert summary.rejected_queries == {"query.duplicate": 1}
    assert received(root, "bob", "2") == ["all"]


def test_whoever_wants_it_otherwise_says_so(root: Path) -> None:
    go(root, "1")
    subscribe(root, "ann\tprice\t/m/price", "bob\tprice\t/m/price", "bob\tall\t/m[\tmessage")
    summary, _ = go(root, "2", "subscriptions.invalid=end")
    assert (summary.subscriptions, summary.last_valid) == (2, 0)
    assert sum(summary.rejected_queries.values()) == 1
    assert received(root, "bob", "2") == ["price"]


def test_namespaces_of_the_pipeline_are_those_of_the_last_valid_version(root: Path) -> None:
    bound = 'subscriptions.namespaces={ n = "urn:n" }'
    subscribe(root, "ann\tn\t//n:a | /m", "bob\tn\t//n:a | /m")
    first, _ = go(root, "1", bound)
    subscribe(root, "ann\tn\t//n:a | /m", "bob\tn\t//n:a | /m[")
    summary, _ = go(root, "2", bound)
    assert (first.subscriptions, summary.subscriptions, summary.last_valid) == (2, 2, 1)
    assert received(root, "bob", "2") == ["n"]


def test_files_and_parquet_keep_their_last_valid_versions(root: Path) -> None:
    folder = root / "wanted" / "ann"
    folder.mkdir(parents=True)
    (folder / "p.xq").write_text("for $p in //price return <p>{$p/text()}</p>")
    go(root, "1", "subscriptions.path=wanted")
    (folder / "p.xq").write_text("(: @delivr message :) for $p in")
    summary, _ = go(root, "2", "subscriptions.path=wanted")
    assert (summary.subscriptions, summary.last_valid) == (1, 1)
    assert received(root, "ann", "2") == ["ann/p"]


def test_a_table_of_columns_keeps_its_last_valid_versions(root: Path) -> None:
    columns = {"subscriber": ["ann"], "query_id": ["p"], "query": ["//price"]}
    pq.write_table(pa.table(columns), root / "s.parquet")
    go(root, "1", "subscriptions.path=s.parquet")
    pq.write_table(pa.table(columns | {"query": [None]}).cast(
        pa.schema([(name, pa.string()) for name in columns])
    ), root / "s.parquet")  # fmt: skip
    summary, _ = go(root, "2", "subscriptions.path=s.parquet")
    assert (summary.subscriptions, summary.last_valid) == (1, 1)
    assert received(root, "ann", "2") == ["p"]


def test_a_stream_tells_of_rejected_rows_although_nothing_else_has_changed(root: Path) -> None:
    (root / "in" / "1.xml").write_text("<m><price>7</price></m>")
    stop = threading.Event()

    def react(text: str) -> None:
        if text == "batch 1":
            # No accepted subscription is another one.
            rows = ("ann\tprice\t/m/price", "bob\tprice\t/m/price", "bob\tall\t/m\tmessage")
            subscribe(root, *rows, "eve\tnew\t//[")
        elif "1 subscriptions were rejected" in text:
            stop.set()

    told = Noting(react)
    guard = threading.Timer(PATIENCE_SECONDS, stop.set)
    guard.start()
    settings = load_settings(root / "pipeline.toml", ["mode.kind=stream"])
    summary = run(settings, workers=InProcess(), progress=told, stop=stop)
    guard.cancel()
    assert sum("1 subscriptions were rejected" in note for note in told.notes) == 1
    assert sum(summary.rejected_queries.values()) == 1
    (written,) = (root / "out" / "rejected_queries").iterdir()
    assert pq.read_table(written).column("subscriber").to_pylist() == ["eve"]
