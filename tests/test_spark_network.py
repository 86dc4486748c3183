"""A pipeline as the root of a network of brokers, and as its archive: each message once.

    files -> pipeline -> root -> host -> pipeline -> Parquet

Brokers are real processes on loopback. Most pipelines run their tasks in this process and are
"killed" by an exception between two of their steps; nightly, they are processes with Spark, and
SIGKILL comes when it comes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")
pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from broker_processes import BrokerProcesses
from pathcast.errors import ConfigError, PeerRefusedError
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.schemas import body_of
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from pathcast.transport.client import BrokerClient
from patience import SPARK_SECONDS, wait_until
from silent_progress import Silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it, nothing is cleaned up."""


class Notes(Silent):
    """Keeps what a run tells."""

    def __init__(self, on_note: Callable[[str], None] = lambda text: None) -> None:
        self.notes: list[str] = []
        self._on_note = on_note

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._on_note(text)


class World:
    """Two brokers, and the files of two pipelines."""

    def __init__(self, root: Path, names: str, *, are_started: bool = True) -> None:
        self.root = root
        self.names = names
        self.brokers = BrokerProcesses(root, names, are_started=are_started)
        (root / "in").mkdir()
        (root / "wanted.tsv").write_text(
            "subscriber\tquery_id\tquery\tdeliver\n"
            "network\tn1\t/m[not(@skip)]\tmessage\nann\ta1\t/m\tids\n"
        )
        (root / "all.tsv").write_text("subscriber\tquery_id\tquery\tdeliver\nall\tq\t/*\tmessage\n")
        (root / "loader.toml").write_text(
            '[source]\npath = "in"\n[subscriptions]\npath = "wanted.tsv"\n'
            '[output]\npath = "loaded"\n[mode]\nfiles_per_batch_max = 7\n'
            '[publish]\nsource = "orders"\n' + self._network("loader", names[0])
        )
        (root / "archive.toml").write_text(
            '[source]\nkind = "broker"\npath = "arrivals"\nprofile = "/*"\n'
            'columns = ["root", "position"]\n[subscriptions]\npath = "all.tsv"\n'
            '[output]\npath = "archived"\n' + self._network("archive", names[-1])
        )

    def _network(self, client: str, broker: str) -> str:
        return (
            f'[network]\naddress = "{self.brokers.addresses[broker]}"\nclient = "{client}"\n'
            f'token = "{client}!"\nbroker = "{broker}"\n'
        )

    def settings(self, name: str, *more: str) -> PipelineSettings:
        return load_settings(self.root / f"{name}.toml", more)

    def run(self, name: str, *more: str, progress: Silent | None = None) -> Summary:
        return run(self.settings(name, *more), progress=progress or Silent(), workers=InProcess())

    def put(self, numbers: range) -> dict[str, str]:
        """Writes messages; gives those that are to come through the network."""
        wanted = {}
        for number in numbers:
            text = f"<m n='{number}'/>"
            if number % 5 == 0:
                text = f"<m skip='{number}'/>" if number % 2 else "<m>"
            else:
                wanted[f"{number:04d}.xml"] = text
            (self.root / "in" / f"{number:04d}.xml").write_text(text)
        return wanted

    def begin(self) -> None:
        """Runs the archive until its profile is in force."""
        progress = Notes()

        def is_in_force() -> bool:
            self.run("archive", progress=progress)
            return any("is in force" in note for note in progress.notes)

        wait_until(is_in_force)

    def archived(self) -> list[dict[str, Any]]:
        """What the archive has, in the order of the root."""
        if not (self.root / "archived" / "_pathcast.json").exists():
            return []
        rows: list[dict[str, Any]] = read_output(self.root / "archived", "inboxes").to_pylist()
        return sorted(rows, key=lambda row: row["position"])

    def archive_all(self, wanted: dict[str, str], attempt: Callable[[], object]) -> None:
        """Runs the archive until it has so many messages, and then once more; checks each."""

        def has_all() -> bool:
            attempt()
            return len(self.archived()) >= len(wanted)

        wait_until(has_all)
        attempt()
        rows = self.archived()
        assert {row["message_id"]: row["fragment"] for row in rows} == wanted
        assert len(rows) == len(wanted), "a message is there twice"


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """One broker, root and host; nightly two."""
    found = World(tmp_path, "ab" if request.node.get_closest_marker("nightly") else "a")
    yield found
    found.brokers.stop()


def killing(
    monkeypatch: pytest.MonkeyPatch, chance: random.Random, share: float
) -> Callable[[Callable[[], object]], int]:
    """Runs something again and again, killed now and then before or after a step, until it ends.

    Steps are what can be seen from outside: a file is written or taken out, the broker is told.
    """
    steps = {"kills": 0}

    def may_kill() -> None:
        if chance.random() < share:
            steps["kills"] += 1
            raise Killed

    def wrapped(original: Any, is_async: bool) -> Any:
        def step(*args: Any) -> Any:
            may_kill()
            result = original(*args)
            may_kill()
            return result

        async def async_step(*args: Any) -> Any:
            may_kill()
            result = await original(*args)
            may_kill()
            return result

        return async_step if is_async else step

    for owner, name, is_async in (
        (Storage, "write", False),
        (Storage, "delete", False),
        (BrokerClient, "publish", True),
        (BrokerClient, "settle", True),
    ):
        monkeypatch.setattr(owner, name, wrapped(getattr(owner, name), is_async))

    def until_done(attempt: Callable[[], object]) -> int:
        while True:
            try:
                attempt()
            except Killed:
                continue
            return steps["kills"]

    return until_done


def through_and_killed(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    *,
    seed: int,
    messages: int,
    share: float,
    broker_kills: int,
) -> None:
    chance = random.Random(seed)
    world.begin()
    wanted = world.put(range(messages))
    until_done = killing(monkeypatch, chance, share)
    kills = 0
    for _ in range(broker_kills):
        broker = chance.choice(world.names)
        kills += until_done(lambda: world.run("loader", "mode.files_per_batch_max=5"))
        world.brokers.kill(broker)
        world.brokers.start(broker, is_awaited=False)
        more = world.put(range(messages, messages + 10))
        messages += 10
        wanted |= more
    kills += until_done(lambda: world.run("loader"))
    assert kills, "nobody was killed: nothing was tested"
    world.archive_all(wanted, lambda: until_done(lambda: world.run("archive")))
    # The root has the order of each micro-batch, in which files come oldest first.
    assert [row["message_id"] for row in world.archived()] == sorted(wanted)
    assert {row["root"] for row in world.archived()} == {"a"}
    assert not list((world.root / "arrivals").iterdir()), "what is committed is taken out"


def test_each_message_comes_through_once_whatever_is_killed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    through_and_killed(world, monkeypatch, seed=1, messages=40, share=0.06, broker_kills=1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 8))
def test_each_message_comes_through_once_whatever_is_killed_often(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    through_and_killed(world, monkeypatch, seed=seed, messages=100, share=0.08, broker_kills=4)


@pytest.mark.spark
def test_spark_does_what_this_process_does(world: World, spark: SparkSession) -> None:
    world.begin()
    wanted = world.put(range(30))
    loaded = run(world.settings("loader"), progress=Silent(), spark=spark)
    assert (loaded.published, loaded.deliveries) == (len(wanted), len(wanted) + 27)
    arrive = world.settings("archive")
    world.archive_all(wanted, lambda: run(arrive, progress=Silent(), spark=spark))
    assert Counter(row["batch_id"] for row in world.archived())


@pytest.mark.nightly
def test_a_root_that_takes_no_more_makes_a_pipeline_wait_and_a_stop_costs_nothing(
    tmp_path: Path,
) -> None:
    """The broker knows of a member that never comes: it joins no network, and keeps all."""
    world = World(tmp_path, "a")
    try:
        text = (tmp_path / "a.toml").read_text()
        world.brokers.kill("a")
        (tmp_path / "a.toml").write_text(text.replace("members = []", 'members = ["ghost"]'))
        world.brokers.start("a")
        wanted = world.put(range(10))
        stop = threading.Event()
        progress = Notes(lambda text: stop.set() if "waits to be published" in text else None)
        summary = run(world.settings("loader"), progress=progress, workers=InProcess(), stop=stop)
        assert (summary.batches, summary.published, summary.was_stopped) == (1, 0, True)
        assert any("has not heard of any other member" in note for note in progress.notes)
        world.brokers.kill("a")
        world.brokers.lose_disk("a")
        (tmp_path / "a.toml").write_text(text)
        world.brokers.start("a")
        world.begin()
        summary = world.run("loader")
        assert (summary.batches, summary.published) == (1, len(wanted))
        world.archive_all(wanted, lambda: world.run("archive"))
    finally:
        world.brokers.stop()


@pytest.mark.nightly
def test_a_broker_that_has_lost_its_disk_gives_nothing_twice(world: World) -> None:
    world.begin()
    wanted = world.put(range(10))
    world.run("loader")
    world.archive_all(wanted, lambda: world.run("archive"))
    world.brokers.kill("b")
    world.brokers.lose_disk("b")
    world.brokers.start("b")
    progress = Notes()
    wait_until(lambda: not world.run("archive", progress=progress).unlisted)
    assert any("is another one" in note for note in progress.notes)
    # Once its new profile is in force, of the new inbox nothing comes that was had.
    wait_until(
        lambda: (
            bool(world.run("archive", progress=progress))
            and sum("is in force" in note for note in progress.notes) > 0
        )
    )
    wanted |= world.put(range(10, 20))
    assert world.run("loader").published == 8
    rows = world.archived()
    wait_until(lambda: bool(world.run("archive")) and len(world.archived()) >= len(rows) + 8)
    world.run("archive")
    assert sorted(row["message_id"] for row in world.archived()) == sorted(wanted)


@pytest.mark.nightly
def test_what_cannot_be_published_is_told(world: World) -> None:
    (world.root / "wanted.tsv").write_text(
        "subscriber\tquery_id\tquery\tdeliver\nnetwork\tn1\t//a\tids\n"
        "network\tn2\tfor $b in /m/b return <c>{$b/text()}</c>\tfragment\n"
    )
    long = "x" * 150
    (world.root / "in" / f"{long}.xml").write_text("<m><a/><b>1</b><b>2</b></m>")
    (world.root / "in" / "short.xml").write_text("<m><b>3</b><b>4</b></m>")
    world.begin()
    progress = Notes()
    assert world.run("loader", progress=progress).published == 4
    assert any("1 deliveries of micro-batch 1 cannot be published" in n for n in progress.notes)
    told = (world.root / "loaded" / "unpublished" / "1.jsonl").read_text()
    assert json.loads(told)["message_id"] == f"{long}.xml"
    wait_until(lambda: bool(world.run("archive")) and len(world.archived()) == 4)
    found = {row["message_id"]: body_of(row) for row in world.archived()}
    assert found["short.xml"] == b"<c>3</c>"
    assert found["short.xml#1"] == b"<c>4</c>"
    assert len(found) == 4
    assert set(found.values()) == {b"<c>1</c>", b"<c>2</c>", b"<c>3</c>", b"<c>4</c>"}
    with pytest.raises(ConfigError, match=r"publish\.subscriber"):
        world.run("loader", "publish.subscriber=ann")


def test_who_is_not_let_in_is_told_so(world: World) -> None:
    world.put(range(2))
    summary = world.run("archive", "network.token=wrong")
    assert "did not give its token" in str(summary.unlisted)
    with pytest.raises(PeerRefusedError):
        world.run("loader", "network.token=wrong")
    with pytest.raises(ConfigError, match=r"source\.profile"):
        world.run("archive", "source.profile=/*[")
    assert world.run("loader").published == 1


@pytest.mark.parametrize(
    ("name", "more", "reason"),
    [
        ("loader", ["output.inboxes=false"], "publish needs output.inboxes"),
        ("loader", ["source.profile=/*"], 'for kind = "broker"'),
        ("archive", ["network.key=k.pem"], "given together"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    tmp_path: Path, name: str, more: list[str], reason: str
) -> None:
    world = World(tmp_path, "a", are_started=False)
    with pytest.raises(ConfigError, match=reason):
        world.settings(name, *more)


def killed_and_run(world: World, name: str, kills: int, chance: random.Random) -> int:
    """Runs a pipeline with Spark in a process of its own, which SIGKILL ends so often before."""
    command = [sys.executable, "-m", "pathcast", "run", str(world.root / f"{name}.toml")]
    command += ["--set", "spark.master=local[2]"]
    hits = 0
    with (world.root / f"{name}.log").open("ab") as log:
        for number in range(kills + 1):
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            if number < kills:
                steps = files_below(world.root) + chance.randint(1, 6)
                wait_until(
                    lambda process=process, steps=steps: (  # type: ignore[misc]
                        process.poll() is not None or files_below(world.root) >= steps
                    ),
                    SPARK_SECONDS,
                )
                hits += process.poll() is None
                process.kill()
            process.wait(SPARK_SECONDS)
    assert process.returncode == 0, (world.root / f"{name}.log").read_text()[-4000:]
    return hits


def files_below(root: Path) -> int:
    return sum(1 for path in root.rglob("*.json"))


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_processes_that_are_killed_lose_and_double_nothing(world: World, seed: int) -> None:
    chance = random.Random(seed)
    world.begin()
    wanted = world.put(range(120))
    assert killed_and_run(world, "loader", 3, chance), "no kill found a pipeline at work"
    world.brokers.kill("b")
    world.brokers.start("b")
    killed_and_run(world, "archive", 2, chance)
    world.archive_all(wanted, lambda: world.run("archive"))
