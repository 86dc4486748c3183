"""Processes that are forked from one interpreter are processes of their own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from pathcast.errors import UnavailableError
from pathcast.transport.forked_start import start_forked
from patience import PATIENCE_SECONDS


def until_ended(process: int) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.02)
    raise AssertionError(f"{process} is there")


def test_each_has_a_session_a_log_and_arguments_of_its_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(f"none_of_{name} = 1")
    started = start_forked(tmp_path, ["peer", "run"], ["pathcast.cli.app"], ["a", "b"])
    assert sorted(started) == ["a", "b"]
    assert len({os.getpid(), *started.values()}) == 3
    for name, process in started.items():
        until_ended(process)
        assert f"none_of_{name}: is not a setting" in (tmp_path / f"{name}.log").read_text()


def test_what_cannot_be_imported_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no_such_module"):
        start_forked(tmp_path, ["peer", "run"], ["no_such_module"], ["a"])


def test_who_is_interrupted_leaves_nobody_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'process')!r}).write_text(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    path = filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))

    def interrupt(*_: object) -> None:
        if not (tmp_path / "process").exists():
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            return
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            start_forked(tmp_path, ["peer", "run"], ["slow"], ["a", "b"])
    finally:
        signal.signal(signal.SIGALRM, before)
    until_ended(int((tmp_path / "process").read_text()))
    assert not list(tmp_path.glob("*.log"))
