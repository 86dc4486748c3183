"""When a delivery was made, when its message was, and results as text.

If these fail, "alerts of yesterday" is no question that SQL can answer, or an output that an
earlier version began is lost.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pathcast.cli.app import build_app
from pathcast.errors import ConfigError
from pathcast.spark.outputs import files_of, read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from silent_progress import Silent

FORMATS = ("parquet", "jsonl", "delta")
GUIDE = Path(__file__).resolve().parent.parent / "docs" / "pipeline.md"
LATIN = "<?xml version='1.0' encoding='ISO-8859-1'?><m at='2026-11-22'>Zürich</m>".encode("latin-1")


class Notes(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> str:
    if request.param == "delta":
        pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for name, at in {
        "1": "at='2026-11-22T23:30:00-02:00'",
        "2": "at='2026-11-22T10:00:00.123456Z'",
        "3": "at='2026-11-22'",
        "4": "at='yesterday'",
        "5": "",
        "6": "at=' 2026-11-23T00:00:00 '",
    }.items():
        (tmp_path / "in" / f"{name}.xml").write_text(f"<m {at}><a>Grüße &amp; {name}</a></m>")
    (tmp_path / "s.tsv").write_text(
        "subscriber\tquery_id\tquery\tdeliver\nann\tall\t/m\tmessage\nbob\ta\t//a\tfragment\n"
        "bob\ttold\t/m\tids\n"
    )
    (tmp_path / "pipeline.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
    )
    return tmp_path


def go(root: Path, *overrides: str, notes: Notes | None = None) -> Summary:
    settings = load_settings(root / "pipeline.toml", overrides)
    return run(settings, workers=InProcess(), progress=notes or Notes())


def inbox(root: Path, subscriber: str) -> list[dict[str, Any]]:
    """The rows of a subscriber, as the command prints them."""
    result = CliRunner().invoke(build_app(), ["inbox", subscriber, "--output", str(root / "out")])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_delivery_says_when_it_was_made_and_when_its_message_was(root: Path, format: str) -> None:
    notes = Notes()
    before = datetime.now(UTC)
    go(root, f"output.format={format}", "source.time=/m/@at", notes=notes)
    rows = inbox(root, "bob")
    times = {row["message_id"][0]: row["message_time"] for row in rows}
    assert times == {
        "1": "2026-11-23T01:30:00Z",
        "2": "2026-11-22T10:00:00.123456Z",
        "3": "2026-11-22T00:00:00Z",
        "4": None,
        "5": None,
        "6": "2026-11-23T00:00:00Z",
    }
    for row in rows:
        assert before <= datetime.fromisoformat(row["processed_at"]) <= datetime.now(UTC)
    assert any("2 messages of micro-batch 1 have no time at /m/@at" in n for n in notes.notes)
    table = read_output(root / "out", "inboxes")
    for name in ("message_time", "processed_at"):
        assert table.schema.field(name).type == pa.timestamp("us", "UTC")
    assert "processed_at" in read_output(root / "out", "matches").schema.names


def test_a_micro_batch_that_is_done_again_says_the_same_time(root: Path) -> None:
    go(root)
    first = {row["processed_at"] for row in inbox(root, "bob")}
    # As if a kill had come before the commit.
    (root / "out" / "_commits" / "1.json").unlink()
    go(root)
    assert {row["processed_at"] for row in inbox(root, "bob")} == first
    assert len(first) == 1


def test_the_current_time_is_that_of_the_micro_batch(root: Path) -> None:
    """So that what is answered again after a kill is what was answered before."""
    with (root / "s.tsv").open("a") as file:
        file.write("eve\tnow\t//m ! string(current-dateTime())\tfragment\n")
    go(root)
    first = inbox(root, "eve")
    (root / "out" / "_commits" / "1.json").unlink()
    go(root)
    again = inbox(root, "eve")
    assert [row["fragment"] for row in again] == [row["fragment"] for row in first]
    assert len(first) == 6
    for row in first:
        begun = datetime.fromisoformat(row["processed_at"])
        assert datetime.fromisoformat(row["fragment"]) == begun


def test_the_current_time_is_that_of_the_column(root: Path) -> None:
    with (root / "s.tsv").open("a") as file:
        file.write("eve\tnow\t//m ! string(current-dateTime())\tfragment\n")
    when = datetime(2020, 2, 29, 12, tzinfo=UTC)
    made = pa.array([when, None], pa.timestamp("ns", "Europe/Zurich"))
    columns = {"message_id": ["x", "y"], "message": [b"<m/>", b"<m/>"], "made": made}
    pq.write_table(pa.table(columns), root / "in" / "p.parquet")
    go(root, "source.kind=parquet", 'source.columns=["made"]', "source.time=made")
    one, other = (
        datetime.fromisoformat(row["fragment"])
        for row in sorted(inbox(root, "eve"), key=lambda row: row["message_id"])
    )
    assert one == when
    assert other > when


def test_a_column_says_when_a_message_was_made(root: Path) -> None:
    when = datetime(2026, 11, 22, 12, tzinfo=UTC)
    columns = {
        "message_id": ["x", "y"],
        "message": [b"<m/>", b"<m/>"],
        "made": pa.array([when, None], pa.timestamp("ns", "Europe/Zurich")),
        "said": ["2026-11-22", "soon"],
        "number": [1, 2],
    }
    pq.write_table(pa.table(columns), root / "in" / "p.parquet")
    for column, expected in (("made", "2026-11-22T12:00:00Z"), ("said", "2026-11-22T00:00:00Z")):
        out = f"output.path={column}/out"
        go(
            root,
            "source.kind=parquet",
            f'source.columns=["{column}"]',
            f"source.time={column}",
            out,
        )
        times = {row["message_id"]: row["message_time"] for row in inbox(root / column, "ann")}
        assert times == {"x": expected, "y": None}
    with pytest.raises(
        ConfigError, match=r"source\.time: column 'number' is int64, which is neithe"
    ):
        go(root, "source.kind=parquet", 'source.columns=["number"]', "source.time=number")


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        ("made", "name a column of source.columns, or an XPath such as //made"),
        ("/m[", "source.time"),
    ],
)
def test_a_time_that_cannot_be_found_is_refused(root: Path, time: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        go(root, f"source.time={time}")


def test_results_are_text_and_what_is_no_text_is_not_lost(root: Path, format: str) -> None:
    (root / "in" / "latin.xml").write_bytes(LATIN)
    go(root, f"output.format={format}")
    table = read_output(root / "out", "inboxes")
    assert table.schema.field("fragment").type == pa.string()
    rows = {(row["subscription_id"], row["message_id"]): row for row in table.to_pylist()}
    assert rows["a", "1.xml"]["fragment"] == "<a>Grüße &amp; 1</a>"
    assert rows["a", "1.xml"]["fragment_bytes"] is None
    assert rows["told", "1.xml"]["fragment"] is None
    assert rows["all", "latin.xml"]["fragment"] is None
    assert rows["all", "latin.xml"]["fragment_bytes"] == LATIN
    if format == "parquet":
        for written in files_of(root / "out", "inboxes"):
            assert pq.read_schema(written).field("fragment").type == pa.string()


def test_results_are_bytes_where_that_is_asked_for(root: Path, format: str) -> None:
    (root / "in" / "latin.xml").write_bytes(LATIN)
    go(root, f"output.format={format}", "output.fragments=binary")
    table = read_output(root / "out", "inboxes")
    assert table.schema.field("fragment").type == pa.binary()
    assert "fragment_bytes" not in table.schema.names
    found = {row["message_id"]: row["fragment"] for row in table.to_pylist() if row["fragment"]}
    assert found["latin.xml"] == LATIN
    with pytest.raises(ConfigError, match=r"was written with .*fragments 'binary'"):
        go(root, f"output.format={format}")


def test_an_output_that_an_earlier_version_began_is_refused_by_name(
    root: Path, format: str
) -> None:
    before = {"format": format, "matches": "numbers", "inboxes": True, "version": 2}
    Storage(root / "out").write("_pathcast.json", json.dumps(before).encode())
    with pytest.raises(ConfigError, match=r"was written with .*version 2.*choose a new directory"):
        go(root, f"output.format={format}")
    with pytest.raises(ConfigError, match="written by another version of Pathcast"):
        read_output(root / "out", "inboxes")


def sql_of_yesterday() -> str:
    section = GUIDE.read_text(encoding="utf-8").partition("*Alerts of yesterday.*")[2]
    found = re.search(r"```sql\n(.*?);\n```", section, re.DOTALL)
    assert found is not None, "the guide has no line of SQL"
    assert "\n" not in found[1], "it is more than a line"
    return found[1]


@pytest.mark.parametrize("how", ["parquet", "delta"])
def test_alerts_of_yesterday_are_a_line_of_sql(root: Path, how: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs: pip install duckdb")
    if how == "delta":
        deltalake = pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    for path in (root / "in").iterdir():
        path.unlink()
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    for day in (0, 1, 2):
        made = f"{yesterday - timedelta(days=day)}T08:00:00Z"
        (root / "in" / f"day-{day}.xml").write_text(f"<m at='{made}'><a/></m>")
    go(root, f"output.format={how}", "source.time=/m/@at")
    line = sql_of_yesterday()
    assert "current_date - 1" in line
    # Midnight may come between the messages and the question.
    line = line.replace("current_date - 1", f"DATE '{yesterday}'")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if how == "delta":
            rows = deltalake.DeltaTable(root / "out" / "inboxes").to_pyarrow_dataset()
        else:
            rows = connection.read_parquet(files_of(root / "out", "inboxes", subscriber="ann"))
        connection.register("rows", rows)
        found = connection.sql(line).to_arrow_table()
    assert found.column("message_id").to_pylist() == ["day-0.xml"]
    assert found.column("subscriber").to_pylist() == ["ann"]
