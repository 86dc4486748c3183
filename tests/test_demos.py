"""Demonstrations of deployments as processes: nothing is lost, doubled or foreign."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pathcast_lab.cli import build_app
from pathcast_lab.demos import registry


def test_a_demonstration_shows_what_placement_saves_on_links(tmp_path: Path) -> None:
    """Messages take 1.2 times the bytes of the ideal at most, and less when profiles are placed."""
    arguments = ["demo", "registry", "--out", str(tmp_path / "d"), "--profiles", "8"]
    result = CliRunner().invoke(build_app(), [*arguments, "--messages", "100"])
    assert result.exit_code == 0, result.output
    assert "lost: 0, doubled: 0, foreign: 0" in result.output
    found = re.findall(
        r"hosts by (\w+): ([0-9.]+) MB sent, ([0-9.]+) times the ideal", result.output
    )
    (first, before, _), (second, after, _) = found
    assert (first, second) == ("location", "content")
    assert float(after) < float(before)
    assert all(float(times) <= 1.2 for *_, times in found)


@pytest.mark.nightly
def test_the_demonstration_accounts_for_every_delivery(tmp_path: Path) -> None:
    arguments = ["demo", "net", "--out", str(tmp_path / "d"), "--profiles", "2000"]
    result = CliRunner().invoke(build_app(), [*arguments, "--messages", "150"])
    assert result.exit_code == 0, result.output
    assert "lost: 0, doubled: 0, foreign: 0" in result.output


@pytest.mark.nightly
def test_processes_find_what_one_process_finds_although_one_is_killed(tmp_path: Path) -> None:
    arguments = ["demo", "ring", "--out", str(tmp_path / "d"), "--peers=6", "--queries=300"]
    called = CliRunner().invoke(build_app(), [*arguments, "--messages=20"])
    assert called.exit_code == 0, called.output
    assert "lost: 0, doubled: 0, foreign: 0" in called.output
    assert "without a proof: 0" in called.output
    assert (tmp_path / "d" / "ring.svg").is_file()


def test_the_service_of_the_demo_is_killed_when_it_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignoring = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)\n"
        "time.sleep(600)"
    )
    service = registry._Service(tmp_path)
    monkeypatch.setattr(registry, "STOP_SECONDS", 0.1)
    with subprocess.Popen([sys.executable, "-c", ignoring], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        monkeypatch.setattr(service, "_process", process)
        service._stop()
        assert process.returncode == -signal.SIGKILL
