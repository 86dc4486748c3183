"""Copies of files that lie elsewhere: made once, bounded, never taken from whoever uses them."""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
import threading
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="needs: pip install 'pathcast[spark]'")

from object_store import ObjectStore
from pathcast.spark.copies import KEPT, PREFIX, local_files
from pathcast.spark.storage import Storage
from patience import PATIENCE_SECONDS

NAMES = ["there/a", "there/b"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of the machine, as this test has it."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Storage:
    (tmp_path / "objects/there").mkdir(parents=True)
    for name in NAMES:
        (tmp_path / "objects" / name).write_text(name)
    return Storage(f"objects://{tmp_path}/objects")


def keys(temporary: Path) -> set[str]:
    return {path.name.removeprefix(PREFIX) for path in temporary.iterdir()}


def use(store: Storage, key: str) -> list[str]:
    with local_files(store, NAMES, key) as paths:
        return [path.read_text() for path in paths]


def test_files_of_this_machine_are_not_copied(store: Storage, temporary: Path) -> None:
    local = Storage(store.place.removeprefix("objects://"))
    with local_files(local, NAMES, "k") as paths:
        assert [str(path) for path in paths] == [local.url(name) for name in NAMES]
    assert not list(temporary.iterdir())


def test_copies_are_made_once_and_those_that_nobody_uses_go(
    store: Storage, temporary: Path
) -> None:
    ObjectStore.requests.clear()
    assert use(store, "0") == use(store, "0") == NAMES
    assert len(ObjectStore.requests) == len(NAMES)
    with local_files(store, NAMES, "kept") as (first, *_):
        for number in range(3 * KEPT):
            use(store, f"{number}")
        assert first.read_text() == NAMES[0], "it was taken from whoever uses it"
        assert len(keys(temporary)) == KEPT + 1
    use(store, "last")
    newest = {f"{number}" for number in range(2 * KEPT + 1, 3 * KEPT)}
    assert keys(temporary) == newest | {"last"}
    # Others' folders, and what only looks like one, are left alone.
    (temporary / f"{PREFIX}file").write_text("x")
    (temporary / "other").mkdir()
    (temporary / f"{PREFIX}link").symlink_to(temporary / "other")
    for number in range(2 * KEPT):
        use(store, f"more{number}")
    assert {"file", "link", "other"} < keys(temporary)


def test_what_a_killed_process_left_is_made_whole_and_goes(store: Storage, temporary: Path) -> None:
    half = temporary / f"{PREFIX}half"
    half.mkdir()
    (half / "a").write_text(NAMES[0])
    (half / ".12345").write_text("cut sho")
    assert use(store, "half") == NAMES
    os.utime(half, (1, 1))
    for number in range(KEPT):
        use(store, f"{number}")
    assert "half" not in keys(temporary)


def work(place: str, temporary: str, seed: int, faults: multiprocessing.Queue[str]) -> None:
    tempfile.tempdir = temporary
    store, chance = Storage(place), random.Random(seed)
    try:
        for _ in range(60):
            key = f"{chance.randrange(3 * KEPT)}"
            with local_files(store, NAMES, key) as paths:
                found = [path.read_text() for path in paths]
                if found != NAMES or [path.read_text() for path in paths] != NAMES:
                    faults.put(f"{key}: {found}")
    except Exception as error:
        faults.put(repr(error))


def test_processes_share_copies_and_take_none_from_each_other(
    store: Storage, temporary: Path
) -> None:
    context = multiprocessing.get_context("fork")
    faults: multiprocessing.Queue[str] = context.Queue()
    workers = [
        context.Process(target=work, args=(str(store), str(temporary), seed, faults))
        for seed in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE_SECONDS)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert faults.empty(), faults.get()
    use(store, "last")
    assert len(keys(temporary)) <= KEPT


def test_threads_of_one_process_are_kept_apart_as_processes_are(
    store: Storage, temporary: Path
) -> None:
    faults: list[str] = []

    def many(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(40):
            if use(store, f"{chance.randrange(3 * KEPT)}") != NAMES:
                faults.append("cut")

    threads = [threading.Thread(target=many, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
