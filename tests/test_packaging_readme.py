"""The README and the examples are run: what they show is what comes out."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

pytestmark = pytest.mark.skipif(
    not README.is_file(), reason="not in a clone: there is no README beside the tests"
)


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language in the README, in order."""
    text = README.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def environment() -> dict[str, str]:
    """The README's commands, found in the environment that runs this; any engine will do."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {
        **os.environ,
        "PATH": path,
    }


def test_python_of_the_readme_prints_what_the_readme_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    examples = list(zip(blocks("python"), blocks("text"), strict=True))
    assert examples
    for code, expected in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(README), "exec"), {})
        assert out.getvalue() == expected


def test_commands_of_the_readme_print_what_the_readme_shows(tmp_path: Path) -> None:
    transcripts = blocks("console")
    assert transcripts
    for transcript in transcripts:
        # A command is a line that begins with "$ ", its output the lines up to the next one.
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", transcript, re.M):
            done = subprocess.run(
                command,
                shell=True,
                cwd=tmp_path,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert done.stdout == expected, command


def test_the_network_file_of_the_readme_can_be_used(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
    from pathcast.transport.network import load_topology

    [text] = [block for block in blocks("toml") if "[network]" in block]
    path = tmp_path / "topology.toml"
    path.write_text(text, encoding="utf-8")
    assert load_topology(path).network.brokers == ["basel", "bern", "chur"]


def test_the_pipeline_file_of_the_readme_can_be_used(tmp_path: Path) -> None:
    settings = pytest.importorskip("pathcast.spark.settings")
    [text] = [block for block in blocks("toml") if "[source]" in block]
    path = tmp_path / "pipeline.toml"
    path.write_text(text, encoding="utf-8")
    assert Path(settings.load_settings(path).output.path).is_relative_to(tmp_path)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, env=environment()
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
