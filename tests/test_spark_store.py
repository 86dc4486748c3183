"""Subscriptions of a pipeline in a profile database: taken up by position, while it runs."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from oracles.engines import made_by

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")
pytest.importorskip("sqlalchemy", reason="the store is not installed: pip install 'pathcast[net]'")

from typer.testing import CliRunner

from pathcast import Registry, Subscription
from pathcast.cli.app import build_app
from pathcast.errors import ConfigError
from pathcast.spark.ledger import BatchLedger, Commit
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.schemas import body_of
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.subscription_places import StorePlace
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from pathcast.store import ProfileRecord, Removal, Store
from silent_progress import Silent

KINDS = ("a", "b", "c")


class Watching(Silent):
    """Does something after a micro-batch, and keeps notes."""

    def __init__(self, after: Callable[[int], object] = lambda number: None) -> None:
        self.notes: list[str] = []
        self._after = after

    def batch(self, commit: object) -> None:
        assert isinstance(commit, Commit)
        self._after(commit.batch_id)

    def note(self, text: str) -> None:
        self.notes.append(text)


def settings_in(root: Path, url: str, *more: str) -> PipelineSettings:
    """Messages of three kinds, one a micro-batch, oldest first."""
    (root / "in").mkdir(exist_ok=True)
    path = root / "pipeline.toml"
    path.write_text(
        f'[source]\npath = "in"\n[subscriptions]\nstore = "{url}"\nshrink_max = 1\n'
        '[output]\npath = "out"\nmatches = "none"\n[mode]\nfiles_per_batch_max = 1\n'
    )
    return load_settings(path, more)


def put(root: Path, number: int, text: str | None = None) -> None:
    path = root / "in" / f"{number:03d}.xml"
    path.write_text(text or f"<m><{KINDS[number % 3]}/></m>")


def pipe(settings: PipelineSettings, progress: Watching | None = None) -> Summary:
    return run(settings, progress=progress or Watching(), workers=InProcess())


def inboxes(root: Path) -> set[tuple[Any, ...]]:
    columns = ("subscriber", "subscription_id", "message_id")
    return {
        (*(row[c] for c in columns), body_of(row))
        for row in read_output(root / "out", "inboxes").to_pylist()
    }


def test_what_the_log_says_counts_from_the_next_micro_batch_on(
    tmp_path: Path, store_url: str
) -> None:
    settings = settings_in(tmp_path, store_url)
    for number in range(6):
        put(tmp_path, number, "<m><a/></m>")
    with Store.open(store_url) as store:
        store.write([ProfileRecord("p1", "ann", "/m/a", "ids")])
        history: dict[int, list[Any]] = {
            1: [ProfileRecord("p2", "bob", "/m/a", "ids")],
            2: [ProfileRecord("p1", "ann", "/m/a", "ids", state="paused")],
            # What another micro-batch does not notice: it is nobody's subscription.
            3: [Removal("profile", "p9")],
            4: [ProfileRecord("p1", "ann", "/m/a", "message"), Removal("profile", "p2")],
        }
        progress = Watching(lambda number: store.write(history.get(number, [])))
        pipe(settings, progress)
    whole = b"<m><a/></m>"
    ids = [f"{number:03d}.xml" for number in range(6)]
    assert inboxes(tmp_path) == {
        *(("ann", "p1", id, None) for id in ids[:2]),
        *(("bob", "p2", id, None) for id in ids[1:4]),
        *(("ann", "p1", id, whole) for id in ids[4:]),
    }
    ledger = BatchLedger(settings.output.storage, settings.checkpoint)
    pins = [ledger.pin(number) for number in range(1, 7)]
    assert [pin and pin.position for pin in pins] == [1, 2, 3, 3, 5, 5]
    assert "subscriptions taken up: 1 -> 2, position 2" in progress.notes


def test_profiles_mean_what_they_mean_to_a_broker(tmp_path: Path) -> None:
    """With prefixes of their own, labels, hosts and states."""
    url = f"sqlite:///{tmp_path / 'profiles.db'}"
    wanted = [
        ProfileRecord("own", "ann", "/x:m/x:a", "ids", {"x": "urn:1"}),
        ProfileRecord("other", "ann", "/x:m/x:a", "ids", {"x": "urn:2"}),
        ProfileRecord("given", "bob", "/g:m/g:a", "message"),
        ProfileRecord(
            "made", "bob", "for $a in /x:m return <r>{$a/g:a}</r>", "fragment", {"x": "urn:1"}
        ),
        ProfileRecord(
            "stepped", "ann", "/x:m/x:b", "ids", {"x": "urn:2"}, steps=("rename //x:a b",)
        ),
        ProfileRecord(
            "reshaped", "ann", "/g:m", "message", steps=("rename //g:a b", "unwrap //g:b")
        ),
    ]
    with Store.open(url) as store:
        store.write(
            [
                ProfileRecord(
                    each.id,
                    each.owner,
                    each.query,
                    each.deliver,
                    each.namespaces,
                    {"tier": "gold"},
                    host="h1",
                    steps=each.steps,
                )
                for each in wanted
            ]
            + [
                ProfileRecord("silver", "eve", "//*", "ids", labels={"tier": "silver"}, host="h1"),
                ProfileRecord("far", "eve", "//*", "ids", labels={"tier": "gold"}, host="h2"),
                ProfileRecord(
                    "asleep",
                    "eve",
                    "//*",
                    "ids",
                    labels={"tier": "gold"},
                    host="h1",
                    state="paused",
                ),
            ]
        )
    settings = settings_in(
        tmp_path,
        url,
        'subscriptions.namespaces={g = "urn:1"}',
        'subscriptions.labels={tier = "gold"}',
        "subscriptions.host=h1",
        "mode.files_per_batch_max=9",
    )
    bodies = {f"{n:03d}.xml": f"<m xmlns='urn:{n}'><a>{n}</a></m>" for n in range(3)}
    for number, text in enumerate(bodies.values()):
        put(tmp_path, number, text)
    summary = pipe(settings)
    one = made_by("reference", Registry, namespaces={"g": "urn:1"})
    one.add(each.subscription() for each in wanted)
    expected = {
        (each.subscriber, each.subscription_id, id, each.fragment, each.delivery_id)
        for id, text in bodies.items()
        for each in one.deliver(text.encode(), id)
    }
    assert len(expected) == 6
    assert summary.subscriptions == 6
    rows = read_output(tmp_path / "out", "inboxes").to_pylist()
    names = ("subscriber", "subscription_id", "message_id")
    assert {(*(row[name] for name in names), body_of(row), row["delivery_id"]) for row in rows} == {
        (*row[:4], bytes.fromhex(row[4]) if isinstance(row[4], str) else row[4]) for row in expected
    }


def a_change(chance: random.Random, names: list[str]) -> ProfileRecord | Removal:
    name = chance.choice(names)
    if chance.random() < 0.3:
        return Removal("profile", name)
    return ProfileRecord(
        name,
        chance.choice(["ann", "bob"]),
        f"//{chance.choice('abc')}",
        chance.choice(["ids", "message", "fragment"]),
        labels={"tier": chance.choice(["gold", "silver"])},
        state=chance.choice(["active", "active", "paused"]),
        host=chance.choice(["h1", "h2"]),
        valid_from=chance.choice(["", "", second(chance.randrange(50))]),
        valid_until=chance.choice(["", "", second(chance.randrange(50, 100))]),
    )


def second(number: int) -> str:
    """The moment so many seconds after 1970 began, as a profile has it."""
    return datetime.fromtimestamp(number, UTC).isoformat()


def is_valid(profile: ProfileRecord, seconds: int) -> bool:
    """Whether a profile is valid at a moment, by its texts alone."""
    at = second(seconds)
    return profile.valid_from <= at and (not profile.valid_until or at < profile.valid_until)


@pytest.mark.parametrize("seed", range(2))
def test_a_follower_has_what_the_database_has_whatever_happens_to_the_log(
    store_url: str, seed: int
) -> None:
    chance = random.Random(seed)
    names = [f"p{number}" for number in range(12)]
    labels = {"tier": "gold"}
    looks = came_of_time = 0
    state: object = None
    rows: Sequence[Subscription] = ()
    with (
        closing(StorePlace(store_url, labels=labels, host="h1")) as place,
        Store.open(store_url) as store,
    ):
        for step in range(300):
            seconds = step // 3
            changed = chance.sample(names, chance.randrange(3))
            store.write([a_change(chance, [name]) for name in changed])
            if chance.random() < 0.1:
                store.compact(chance.randint(0, store.position))
            if chance.random() < 0.5:
                continue
            before, known = rows, state
            state = place.state(seconds * 1_000_000)
            kept = store.find(ProfileRecord, labels=labels, host="h1", state="active")
            wanted = [each for each in kept if is_valid(each, seconds)]
            came_of_time += len(wanted) != len(kept)
            found = place.rows("ids")
            rows = found.rows
            assert rows == before or state != known
            assert rows == [each.subscription() for each in wanted]
            assert [each.line for each in found.places] == [each.version for each in wanted]
            assert place.position == store.position
            assert place.state(seconds * 1_000_000) == state, "nothing was written since"
            looks += rows != before
    assert looks > 10
    assert came_of_time > 10


class Clock:
    """A clock that a test sets, in seconds since 1970."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
        self.seconds = seconds
        monkeypatch.setattr(time, "time_ns", lambda: self.seconds * 1_000_000_000)


def test_a_profile_is_answered_while_it_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken up and left by the first micro-batch that begins at the moment or after it."""
    url = f"sqlite:///{tmp_path / 'profiles.db'}"
    settings = settings_in(tmp_path, url)
    for number in range(6):
        put(tmp_path, number, "<m><a/></m>")
    clock = Clock(monkeypatch, 1_000)
    with Store.open(url) as store:
        store.write(
            [
                ProfileRecord("always", "ann", "/m/a", "ids"),
                ProfileRecord("from", "bob", "/m/a", "ids", valid_from=second(1_015)),
                ProfileRecord("until", "cleo", "/m/a", "ids", valid_until=second(1_020)),
                ProfileRecord(
                    "both",
                    "dan",
                    "/m/a",
                    "ids",
                    valid_from=second(1_030),
                    valid_until=second(1_045),
                ),
                ProfileRecord("over", "eve", "/m/a", "ids", valid_until=second(999)),
            ]
        )

    def pass_time(number: int) -> None:
        clock.seconds += 10

    progress = Watching(pass_time)
    pipe(settings, progress)
    ids = [f"{number:03d}.xml" for number in range(6)]
    assert inboxes(tmp_path) == {
        *(("ann", "always", id, None) for id in ids),
        *(("bob", "from", id, None) for id in ids[2:]),
        *(("cleo", "until", id, None) for id in ids[:2]),
        *(("dan", "both", id, None) for id in ids[3:5]),
    }
    pins = [
        BatchLedger(settings.output.storage, settings.checkpoint).pin(number)
        for number in range(1, 7)
    ]
    assert [pin and pin.begun_us for pin in pins] == [n * 10**6 for n in range(1_000, 1_060, 10)]
    versions = [pin and pin.snapshot_version for pin in pins]
    assert [versions.index(version) for version in versions] == [0, 0, 2, 3, 3, 2]
    assert "subscriptions taken up: 2 -> 3, position 5" in progress.notes


def test_profiles_that_expire_all_at_once_have_not_shrunk_by_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others that go at once are not believed to have gone, in this run and at the next start."""
    url = f"sqlite:///{tmp_path / 'profiles.db'}"
    settings = settings_in(tmp_path, url, "subscriptions.shrink_max=0.5")
    clock = Clock(monkeypatch, 1_000)
    stays = [ProfileRecord(f"s{n}", "ann", "/m/a", "ids") for n in range(3)]
    ends = [
        ProfileRecord(f"e{at}{n}", "bob", "/m/a", "ids", valid_until=second(at))
        for at in (1_001, 1_003)
        for n in range(9)
    ]
    with Store.open(url) as store:
        store.write([*stays, *ends])
        steps: dict[int, Callable[[], object]] = {
            1: lambda: setattr(clock, "seconds", 1_002),
            2: lambda: store.write([Removal("profile", each.id) for each in (*ends[9:], stays[0])]),
            3: lambda: store.write(ends[9:] + stays),
        }
        progress = Watching(lambda number: steps.get(number, int)())
        for number in range(4):
            put(tmp_path, number, "<m><a/></m>")
        pipe(settings, progress)
    counts = Counter(row[2] for row in inboxes(tmp_path))
    assert counts == {"000.xml": 21, "001.xml": 12, "002.xml": 12, "003.xml": 12}
    told = [note for note in progress.notes if "the earlier ones stay" in note]
    assert [": there are 2, and were 12: more than 50% have gone" in note for note in told] == [
        True
    ]
    clock.seconds = 1_004
    put(tmp_path, 4, "<m><a/></m>")
    again = Watching()
    pipe(settings, again)
    assert Counter(row[2] for row in inboxes(tmp_path))["004.xml"] == 3
    assert not any("the earlier ones stay" in note for note in again.notes)


def test_a_micro_batch_that_is_done_again_has_the_profiles_of_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'profiles.db'}"
    settings = settings_in(tmp_path, url)
    for number in range(2):
        put(tmp_path, number, "<m><a/></m>")
    clock = Clock(monkeypatch, 1_000)
    with Store.open(url) as store:
        store.write(
            [
                ProfileRecord("until", "ann", "/m/a", "ids", valid_until=second(1_001)),
                ProfileRecord("from", "bob", "/m/a", "ids", valid_from=second(1_001)),
            ]
        )

    class KilledError(Exception):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(BatchLedger, "write_commit", killed)
        with pytest.raises(KilledError):
            pipe(settings)
    clock.seconds = 1_001
    pipe(settings)
    assert inboxes(tmp_path) == {
        ("ann", "until", "000.xml", None),
        ("bob", "from", "001.xml", None),
    }


def test_a_database_that_is_an_older_copy_is_read_anew(tmp_path: Path) -> None:
    file, copy = tmp_path / "profiles.db", tmp_path / "copy.db"
    url = f"sqlite:///{file}"
    with Store.open(url) as store:
        store.write([ProfileRecord("p1", "ann", "//a")])
    shutil.copy(file, copy)
    with closing(StorePlace(url)) as place:
        with Store.open(url) as store:
            store.write([ProfileRecord("p2", "ann", "//b")])
        assert [row.id for row in place.rows("ids").rows] == ["p1", "p2"]
        place.close()
        shutil.copy(copy, file)
        state = place.state()
        assert [row.id for row in place.rows("ids").rows] == ["p1"]
        assert (place.position, place.state()) == (1, state)


def test_a_database_that_is_away_stops_no_stream_and_no_later_start(tmp_path: Path) -> None:
    file = tmp_path / "profiles.db"
    settings = settings_in(tmp_path, f"sqlite:///{file}")
    with pytest.raises(ConfigError, match=r"subscriptions\.store.*no profile database"):
        pipe(settings)
    assert not file.exists(), "a wrong URL makes no database"
    with Store.open(file) as store:
        store.write([ProfileRecord("p1", "ann", "/m/a", "ids")])
    put(tmp_path, 0)
    pipe(settings)
    file.rename(tmp_path / "elsewhere.db")
    put(tmp_path, 3)
    progress = Watching()
    summary = pipe(settings, progress)
    assert {row[2] for row in inboxes(tmp_path)} == {"000.xml", "003.xml"}
    assert "no profile database" in summary.subscriptions_kept
    assert sum("the earlier ones stay" in note for note in progress.notes) == 1
    ledger = BatchLedger(settings.output.storage, settings.checkpoint)
    assert [pin.position for pin in map(ledger.pin, (1, 2)) if pin] == [1, 0]


def test_commands_read_what_a_run_reads(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'profiles.db'}"
    settings_in(tmp_path, url)
    with Store.open(url) as store:
        store.write(
            [ProfileRecord("p1", "ann", "/m/a", "ids"), ProfileRecord("p2", "bob", "/m/[", "ids")]
        )
    put(tmp_path, 0)
    app, pipeline = build_app(), str(tmp_path / "pipeline.toml")
    checked = CliRunner().invoke(app, ["check", pipeline, "--strict"])
    assert checked.exit_code == 1
    assert f"{url}:2: p2:" in checked.output
    matched = CliRunner().invoke(app, ["match", str(tmp_path / "in"), "--queries", pipeline])
    assert "p1" in matched.output
    linted = CliRunner().invoke(app, ["lint", pipeline])
    assert "p2" in linted.output or "/m/[" in linted.output


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["subscriptions.path=s.tsv"], "path or store is given, and not both"),
        (['subscriptions.store="mysql://h/x"'], "neither sqlite"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    tmp_path: Path, more: list[str], reason: str
) -> None:
    url = f"sqlite:///{tmp_path / 'profiles.db'}"
    with pytest.raises(ConfigError, match=reason):
        pipe(settings_in(tmp_path, url, *more))


def test_labels_are_for_stores(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\nlabels = { tier = "gold" }\n'
        '[output]\npath = "out"\n'
    )
    with pytest.raises(ConfigError, match="labels and host"):
        load_settings(path)
