"""A directory that is taken over from a process that stands still.

If these fail, a broker whose player was stopped is played by nobody, or somebody is told that
something is kept which the next player does not know.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from pathcast.errors import DiskError
from pathcast.transport.database_file import DATABASE
from pathcast.transport.disk import Disk
from pathcast.transport.fencing import Fence
from pathcast.transport.inbox_bounds import DEFAULT

PLAYER = """
import sys
from pathlib import Path
from pathcast.errors import DiskError
from pathcast.transport.disk import Disk
from pathcast.transport.fencing import Fence
from pathcast.transport.inbox_bounds import DEFAULT
fence = Fence(Path(sys.argv[1]), int(sys.argv[2]))
fence.raise_up()
disk = Disk(fence.place, DEFAULT, check=fence.check)
fence.use(fence.place)
for number, _ in enumerate(sys.stdin):
    try:
        disk.commit({f"key{number}": b"x" * 5000}, [("ann", f"d{number}", b"body")])
    except DiskError as error:
        print(error.code, flush=True)
    else:
        print("kept", flush=True)
disk.close()
"""


class Player:
    """A process that commits for each line that it is told."""

    def __init__(self, directory: Path, token: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PLAYER, str(directory), str(token)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def commit(self) -> str:
        self.begin_commit()
        return self.answer()

    def begin_commit(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for each in (self.process.stdin, self.process.stdout):
            assert each is not None
            each.close()


@pytest.fixture
def player(tmp_path: Path) -> Iterator[Player]:
    found = Player(tmp_path / "b", 4)
    yield found
    found.end()


def played(directory: Path, token: int) -> tuple[Fence, Disk]:
    """As a player does, who finds the directory free or has a copy."""
    fence = Fence(directory, token)
    fence.raise_up()
    place = fence.place
    disk = Disk(place, DEFAULT, check=fence.check)
    fence.use(place)
    fence.clear()
    return fence, disk


def test_a_player_that_stands_still_is_taken_over_from_and_finds_out_before_it_speaks(
    tmp_path: Path, player: Player
) -> None:
    directory = tmp_path / "b"
    assert [player.commit() for _ in range(20)] == ["kept"] * 20
    player.process.send_signal(signal.SIGSTOP)
    player.begin_commit()
    fence = Fence(directory, 5)
    fence.raise_up()
    with pytest.raises(DiskError) as taken:
        Disk(fence.place)
    assert taken.value.code == "disk.taken"
    fence.copy()
    fence, disk = played(directory, 5)
    assert len(disk.saved()) == 20
    assert disk.last("ann") == 20
    disk.commit({"new": b""}, [("ann", "new", b"")])
    player.process.send_signal(signal.SIGCONT)
    assert player.answer() == "disk.fenced"
    assert player.commit() == "disk.fenced"
    assert player.process.stdin is not None
    player.process.stdin.close()
    assert player.process.wait() == 0
    # What it did, and its end, made no difference.
    disk.commit({"newer": b""})
    disk.close()
    _, again = played(directory, 6)
    assert {"new", "newer", "key19"} <= again.saved().keys()
    assert "key20" not in again.saved()
    again.close()
    assert not list(directory.glob(f"{DATABASE}*")), "what nobody uses is there still"


def test_a_player_that_stands_still_anywhere_has_told_of_nothing_that_is_lost(
    tmp_path: Path,
) -> None:
    """Stopped between any two commits that are under way, and taken over from by copies."""
    directory = tmp_path / "b"
    tokens = itertools.count(1)
    kept = 0
    for _ in range(4):
        player = Player(directory, next(tokens))
        try:
            assert player.commit() == "kept"
            for _ in range(10):
                player.begin_commit()
            player.process.send_signal(signal.SIGSTOP)
            fence = Fence(directory, next(tokens))
            fence.raise_up()
            fence.copy()
            disk = Disk(fence.place, DEFAULT, check=fence.check)
            saved = disk.saved()
            disk.close()
            player.process.send_signal(signal.SIGCONT)
            told = [player.answer() for _ in range(10)]
            kept = 1 + told.count("kept")
            assert told == ["kept"] * (kept - 1) + ["disk.fenced"] * (11 - kept)
            assert {f"key{number}" for number in range(kept)} <= saved.keys()
        finally:
            player.end()


def test_a_copy_that_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    """A player stood still while it copied; the one after it found the directory free."""
    directory = tmp_path / "b"
    _, disk = played(directory, 1)
    disk.commit({"first": b""})
    late = Fence(directory, 2)
    late.raise_up()
    disk.close()
    _, disk = played(directory, 3)
    disk.commit({"third": b""})
    with pytest.raises(DiskError) as fenced:
        late.copy()
    assert fenced.value.code == "disk.fenced"
    disk.close()
    _, disk = played(directory, 4)
    assert disk.saved().keys() == {"first", "third"}
    assert [each.name for each in directory.glob("taken-*")] == []
    disk.close()
    with pytest.raises(DiskError) as fenced:
        late.raise_up()
    assert fenced.value.code == "disk.fenced"
