"""The unit and the container file: what they name exists, and does what they rely on.

If these fail, a service or a container does not start, or is restarted although it is healthy.
"""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from typer.testing import CliRunner

from pathcast.cli.app import build_app
from pathcast.transport.local_processes import free_ports
from pathcast.transport.monitor import monitored

ROOT = Path(__file__).resolve().parent.parent
UNIT = ROOT / "deploy" / "pathcast-broker@.service"
CONTAINER = ROOT / "deploy" / "Containerfile"

pytestmark = pytest.mark.skipif(
    not UNIT.is_file(), reason="not in a clone: there are no files of services beside the tests"
)


def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(UNIT)
    return parser["Service"]


def instruction(name: str) -> str:
    """The arguments of the last such instruction of the container file."""
    text = CONTAINER.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(rf"^{name}\s+(.*)$", text, re.MULTILINE)
    assert found, f"there is no {name}"
    return str(found[-1])


def check_command(words: list[str]) -> None:
    """A command of `pathcast` exists; its last word is a file."""
    result = CliRunner().invoke(build_app(), [*words[:-1], "--help"])
    assert result.exit_code == 0, result.output
    assert words[-1].startswith("/etc/pathcast/")
    assert words[-1].endswith(".toml")


def test_the_service_runs_a_command_that_exists() -> None:
    program, *words = unit()["ExecStart"].split()
    assert Path(program).name == "pathcast"
    check_command(words)


def test_the_service_keeps_its_state_to_itself_and_ends_gracefully() -> None:
    service = unit()
    assert service["StateDirectoryMode"] == "0700"
    assert service["KillSignal"] == "SIGTERM"
    assert service["Restart"] == "always"
    assert service["User"] == "pathcast"
    assert service["ExecReload"].endswith("-HUP $MAINPID")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    program = unit()["ExecStart"].split()[0]
    text = UNIT.read_text(encoding="utf-8").replace(program, sys.executable)
    path = tmp_path / "pathcast-broker@bern.service"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    # What it says of other units of this machine is not about ours.
    assert [line for line in done.stderr.splitlines() if path.name in line] == []


def test_the_image_runs_a_command_that_exists() -> None:
    assert Path(json.loads(instruction("ENTRYPOINT"))[0]).name == "pathcast"
    check_command(json.loads(instruction("CMD")))


def test_the_image_installs_extras_that_exist_from_a_target_that_exists() -> None:
    text = CONTAINER.read_text(encoding="utf-8")
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    (named,) = re.findall(r"'pathcast\[([\w,]+)\]'", text)
    assert set(named.split(",")) <= extras.keys()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"RUN make (\w+) DIST=", text):
        assert f"\n{target}:" in makefile
    assert "\nDIST " in makefile
    assert instruction("USER") == "pathcast"
    assert instruction("VOLUME") == "/var/lib/pathcast"


def test_the_health_check_passes_while_the_process_is_healthy_and_fails_when_it_is_gone() -> None:
    command = json.loads(instruction("HEALTHCHECK").partition("CMD")[2])
    (port,) = free_ports(1)
    assert "127.0.0.1:9464/healthz" in command[-1]
    code = command[-1].replace("9464", str(port))

    def check() -> int:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        return done.returncode

    async def main() -> None:
        async with monitored(f"127.0.0.1:{port}"):
            assert await asyncio.to_thread(check) == 0
        assert await asyncio.to_thread(check) != 0

    asyncio.run(main())
