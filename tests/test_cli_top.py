"""`pathcast top` and the metrics of a run: what they say is what commits say."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from command_line import run_command
from pathcast.errors import ConfigError
from pathcast.spark import OutputWatch, PipelineSettings, load_settings, run
from pathcast.spark.ledger import BatchLedger, Commit, Pin
from pathcast.spark.workers import InProcess
from silent_progress import Silent

httpx = pytest.importorskip("httpx", reason="the extra net is not installed")
pytest.importorskip("prometheus_client", reason="the extra net is not installed")


class Told(Silent):
    """Calls somebody after each micro-batch."""

    def __init__(self, then: Callable[[Any], None]) -> None:
        self._then = then

    def batch(self, commit: object) -> None:
        self._then(commit)


@pytest.fixture
def settings(tmp_path: Path) -> PipelineSettings:
    """A pipeline with six messages, one of them refused, in two micro-batches."""
    (tmp_path / "in").mkdir()
    for number in range(6):
        text = "<m>" if number == 3 else f"<m><n>{number}</n></m>"
        (tmp_path / "in" / f"{number}.xml").write_text(text)
    (tmp_path / "subscriptions.tsv").write_text("subscriber\tquery_id\tquery\nann\tq\t//n\n")
    (tmp_path / "pipeline.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "subscriptions.tsv"\n'
        '[mode]\nfiles_per_batch_max = 3\n[output]\npath = "out"\n'
    )
    return load_settings(tmp_path / "pipeline.toml")


def go(settings: PipelineSettings, then: Callable[[Any], None] = lambda _: None) -> None:
    run(settings, workers=InProcess(), progress=Told(then))


def watch_of(settings: PipelineSettings, window_seconds: float = 60.0) -> OutputWatch:
    return OutputWatch(settings.output.storage, settings.checkpoint, window_seconds)


def listening_at(port: int, settings: PipelineSettings) -> PipelineSettings:
    mode = settings.mode.model_copy(update={"metrics": f"127.0.0.1:{port}"})
    return settings.model_copy(update={"mode": mode})


@pytest.fixture
def port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_commits_of_the_window_are_counted_while_they_come(settings: PipelineSettings) -> None:
    seen: list[tuple[int | None, int, int]] = []
    watches: list[OutputWatch] = []

    def look(commit: Commit) -> None:
        if not watches:
            watches.append(watch_of(settings))
        found = watches[0].look()
        seen.append((found.batch_id, found.counted.messages, found.counted.deliveries))

    go(settings, look)
    assert seen == [(1, 3, 3), (2, 6, 5)]
    found = watch_of(settings).look()
    assert (found.counted.batches, found.counted.refused, found.running) == (
        2,
        {"xml.end": 1},
        None,
    )
    assert found.messages_per_second == pytest.approx(0.1)
    assert found.counted.bytes == sum(
        path.stat().st_size for path in (settings.source.storage.folder).iterdir()
    )
    assert found.generation is not None
    assert (found.generation.queries, found.generation.subscriptions) == (1, 1)
    assert found.generation_at is not None
    assert found.generation_at <= found.committed_at <= found.at
    assert found.lag_seconds is not None
    assert 0 < found.lag_seconds < 60
    assert set(found.stages) >= {"read", "answer"}


def test_earlier_micro_batches_are_not_in_the_window(settings: PipelineSettings) -> None:
    go(settings)
    time.sleep(0.3)
    found = watch_of(settings, 0.2).look()
    assert (found.batch_id, found.counted.batches, found.counted.messages) == (2, 0, 0)


def test_a_micro_batch_that_runs_is_shown(settings: PipelineSettings) -> None:
    go(settings)
    ledger = BatchLedger(settings.output.storage, settings.checkpoint)
    ledger.write_pin(Pin(3, "x", 0, time.time_ns() // 1000))
    found = watch_of(settings).look()
    assert found.running is not None
    assert found.running[0] == 3
    text = run_command("top", settings.output.storage.place, "--once").stdout
    assert "; 3 was begun 0." in text


def test_the_table_of_a_pipeline(settings: PipelineSettings, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not the output of a pipeline"):
        watch_of(settings)
    assert run_command("top", tmp_path / "pipeline.toml", "--once").exit_code == 2
    go(settings)
    for place in (tmp_path / "pipeline.toml", tmp_path / "out"):
        result = run_command("top", place, "--once")
        assert result.exit_code == 0, result.output
        lines = [line.split() for line in result.stdout.splitlines()]
        assert ["messages", "0.10", "6"] in lines
        assert ["deliveries", "0.0833", "5"] in lines
        assert ["refused:", "xml.end", "1"] in lines
        assert any(line[:2] == ["micro-batch", "2,"] for line in lines)
        assert any(line[:2] == ["subscriptions", "1"] for line in lines)


def test_a_run_shows_metrics_that_top_reads(settings: PipelineSettings, port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    pages: list[str] = []
    tables: list[list[list[str]]] = []

    def look(commit: Commit) -> None:
        pages.append(httpx.get(f"{url}/metrics").text)
        result = run_command("top", url, "--once", "--interval", "0.1")
        assert result.exit_code == 0, result.output
        tables.append([line.split() for line in result.stdout.splitlines()])

    go(listening_at(port, settings), look)
    assert "pathcast_messages_received_total 6.0" in pages[-1]
    assert 'pathcast_refusals_total{code="xml.end"} 1.0' in pages[-1]
    assert "pathcast_micro_batch_seconds_count 2.0" in pages[-1]
    assert 'pathcast_stage_seconds_total{stage="answer"}' in pages[-1]
    assert "pathcast_subscriptions 1.0" in pages[-1]
    assert "pathcast_lag_seconds nan" not in pages[-1].lower()
    assert ["messages_received_total", "0", "3.00"] in tables[0]
    assert ["deliveries_total", "0", "5.00"] in tables[1]
    assert ["micro_batch", "2.00"] in tables[1]
    # The run has ended, and so has its page.
    refused = run_command("top", url, "--once")
    assert refused.exit_code == 2
    assert "mode.metrics" in refused.stderr


def test_the_page_of_operations_has_every_metric(settings: PipelineSettings, port: int) -> None:
    page = Path(__file__).resolve().parent.parent / "docs" / "operations.md"
    if not page.is_file():
        pytest.skip("not in a clone: there is no docs/operations.md")
    table = page.read_text(encoding="utf-8").partition("| metric, after `pathcast_` |")[2]
    rows = table.partition("\n\n")[0].splitlines()[2:]
    listed = {
        name.partition("{")[0].removesuffix("_total")
        for row in rows
        for name in re.findall(r"`([\w{},]+)`", row.split("|")[1])
    }
    shown: set[str] = set()

    def look(commit: Commit) -> None:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        shown.update(re.findall(r"^# TYPE pathcast_(\w+?)(?:_total|_created)? ", text, re.M))

    go(listening_at(port, settings), look)
    assert listed == shown
    alerts = re.findall(r"pathcast_(\w+?)(?:_total)?\b", page.read_text(encoding="utf-8"))
    assert {each for each in alerts if each != "lab"} <= {*shown, ""}


def test_the_next_run_shows_the_last_commit_from_its_beginning(
    settings: PipelineSettings, port: int
) -> None:
    go(settings)
    pages: list[str] = []

    class Begun(Silent):
        def begin(self, text: str) -> None:
            pages.append(httpx.get(f"http://127.0.0.1:{port}/metrics").text)

    run(listening_at(port, settings), workers=InProcess(), progress=Begun())
    assert "pathcast_micro_batch 2.0" in pages[0]
    assert "pathcast_messages_received_total 0.0" in pages[0]


def test_an_address_that_is_taken_is_told(settings: PipelineSettings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match=r"mode.metrics.*nothing can listen"):
            go(listening_at(taken.getsockname()[1], settings))


DEAR = (
    "subscriber\tquery_id\tquery\n"
    "ann\tcheap\t//n\n"
    "ann\tdear\t//m[count(n) > count(o)]\n"
    "bob\tdear\t//m[count(n) > count(o)]\n"
    "bob\tdearest\t//m[count(n) + count(.//n) > count(o)]\n"
)


def test_the_dearest_subscriptions_are_told_by_commits_metrics_and_top(
    settings: PipelineSettings, port: int
) -> None:
    settings.subscriptions.path.write_text(DEAR)  # type: ignore[union-attr]
    pages: list[str] = []
    go(
        listening_at(port, settings),
        lambda _: pages.append(httpx.get(f"http://127.0.0.1:{port}/metrics").text),
    )
    output = settings.output.storage
    commits = [Commit.read(output, number) for number in (1, 2)]
    told = [(each.subscription_id, each.subscriber, each.takers) for each in commits[0].dearest]
    assert told == [("dearest", "bob", 1), ("dear", "ann", 2)]
    for commit in commits:
        assert commit.work == sum(each.steps for each in commit.dearest)
    # Of the second micro-batch one message is refused.
    first, second = (commit.dearest[0].steps for commit in commits)
    assert first * 2 == second * 3
    name = 'pathcast_dearest_steps{subscriber="bob",subscription_id="dearest"}'
    page = next(line for line in pages[-1].splitlines() if line.startswith(name))
    assert float(page.removeprefix(name)) == first + second
    text = run_command("top", output.place, "--once").stdout
    share = (first + second) / sum(commit.work for commit in commits)
    assert re.search(rf"dearest +{share:.1%} +bob\n", text)
    assert re.search(r"dear +\d+\.\d% +ann and 1 more\n", text)


def test_a_commit_tells_of_a_hundred_subscriptions_and_all_of_the_work(
    settings: PipelineSettings,
) -> None:
    rows = (f"ann\tq{at}\t//m[count(n) > count(o{at})]\n" for at in range(300))
    settings.subscriptions.path.write_text(  # type: ignore[union-attr]
        "subscriber\tquery_id\tquery\n" + "".join(rows)
    )
    go(settings)
    commit = Commit.read(settings.output.storage, 1)
    assert len(commit.dearest) == 100
    [steps] = {each.steps for each in commit.dearest}
    assert commit.work == 300 * steps
