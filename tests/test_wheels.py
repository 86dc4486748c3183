"""The wheels, installed into empty environments without Rust, and for each extra a part of that.

Only here is Pathcast met as a user meets it: with the libraries that its metadata names and none
that the tests need. A library that is imported and not declared fails these tests and no other.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from test_packaging_readme import README, ROOT, blocks

pytestmark = [
    pytest.mark.skipif(
        not (ROOT / "Makefile").is_file(),
        reason="not in a clone: there is no Makefile beside the tests",
    ),
    pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust: no wheel of the kernel"),
    pytest.mark.skipif(bool(os.environ.get("PIP_NO_INDEX")), reason="no package index"),
]

ROOMS: Final = {
    "base": ("cli", "engine", "kernel", "lint", "query", "records", "registry"),
    "workload": ("workload",),
    "xsd": ("schema",),
    "spark": ("spark",),
    "delta": (),
    "net": ("dht", "overlay", "store", "transport"),
    "postgresql": (),
}
"""Extra -> rooms of which every module is imported where that extra alone is installed."""

ALSO: Final = {"delta": "net"}

IMPORTS: Final = """
import importlib, json, pkgutil, sys
import pathcast
missing = {}
for module in pkgutil.walk_packages(pathcast.__path__, "pathcast."):
    if not module.name.endswith("__main__") and ".migrations." not in module.name:
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            missing[module.name] = error.name
        except pathcast.PathcastError as error:
            missing[module.name] = error.params["module"]
print(json.dumps(missing))
"""
"""Prints the modules that cannot be imported, each with the library that it misses."""


class Environment:
    """A virtual environment with nothing in it but some wheels and what they ask for.

    Args:
        directory: Where it is made.
    """

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "bin"
        self._libraries = directory / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.packages = self._libraries / "site-packages"

    @classmethod
    def installed(
        cls, directory: Path, wheels: Path, requirements: Sequence[str], *options: str
    ) -> Environment:
        """One into which pip installs.

        Args:
            directory: Where it is made.
            wheels: Directory of the two wheels.
            requirements: For pip.
            options: For pip.
        """
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        there = cls(directory)
        options = ("--quiet", "--disable-pip-version-check", *options)
        done = there.run("pip", "install", *options, "--find-links", str(wheels), *requirements)
        assert done.returncode == 0, done.stderr
        return there

    def part(self, directory: Path, requirement: str) -> Environment:
        """One that has of the distributions of this one what a requirement asks for, itself
        included: the same files, under links.
        """
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
        there = Environment(directory)
        known: dict[str, Distribution] = {
            canonicalize_name(found.name): found
            for found in distributions(path=[str(self.packages)])
        }
        for name in _asked_for(known, Requirement(requirement)):
            for file in known[name].files or ():
                source = Path(str(file.locate()))
                there._link(source, self)
        return there

    def _link(self, source: Path, other: Environment) -> None:
        if other.packages in source.parents:
            target = self.packages / source.relative_to(other.packages)
            target.parent.mkdir(parents=True, exist_ok=True)
            # Distributions share __init__ files of a namespace.
            if not target.exists():
                os.link(source, target)
        elif source.resolve().parent == other.bin.resolve():
            text = source.read_bytes().replace(bytes(other.bin), bytes(self.bin))
            (self.bin / source.name).write_bytes(text)
            (self.bin / source.name).chmod(0o755)

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of the environment, on a PATH that has no Rust."""
        return subprocess.run(
            [str(self.bin / command), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=self._variables(),
            cwd=self.bin.parent,
        )

    def shell(self, line: str) -> str:
        """What a line of README's examples prints."""
        done = subprocess.run(
            line,
            shell=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=self._variables(),
            cwd=self.bin.parent,
        )
        return done.stdout

    def _variables(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PATHCAST", "VIRTUAL_ENV", "COV_"))
        }
        return {**kept, "PATH": os.pathsep.join([str(self.bin), "/usr/bin", "/bin"])}


def _asked_for(known: Mapping[str, Distribution], wanted: Requirement) -> set[str]:
    """Names of the distributions that a requirement brings here, those of its extras included."""
    found: set[tuple[str, str]] = set()
    rest: list[tuple[str, str]] = [
        (canonicalize_name(wanted.name), extra) for extra in ("", *wanted.extras)
    ]
    while rest:
        name, extra = rest.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for line in known[name].requires or ():
            asked = Requirement(line)
            if asked.marker is None or asked.marker.evaluate({"extra": extra}):
                rest += [(canonicalize_name(asked.name), each) for each in ("", *asked.extras)]
    return {name for name, _ in found}


@pytest.fixture(scope="module")
def whole(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with all extras; one for all processes that run these tests side by side."""
    extras = ",".join(["kernel", *(extra for extra in ROOMS if extra != "base")])
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    directory, is_made = shared / "whole", shared / "whole.made"
    with (shared / "whole.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_made.exists():
            return Environment(directory)
        there = Environment.installed(directory, wheels, [f"pathcast[{extras}]"])
        is_made.touch()
    return there


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both wheels, as `make wheels` writes them."""
    directory = tmp_path_factory.mktemp("wheels")
    done = subprocess.run(
        ["make", "wheels", f"DIST={directory}", f"VENV={sys.prefix}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def project() -> dict[str, dict[str, list[str]]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: dict[str, dict[str, list[str]]] = tomllib.load(file)["project"]
    return found


def test_two_wheels_that_old_systems_take(wheels: Path) -> None:
    python, native = sorted(path.name for path in wheels.glob("*.whl"))
    assert python.endswith("-py3-none-any.whl")
    assert "-cp311-abi3-" in native
    if sys.platform.startswith("linux"):
        assert "manylinux_2_17" in native


def test_every_extra_has_its_environment() -> None:
    # "kernel" is in all of them; "saxon" and "dev" are for tests.
    extras = set(project()["optional-dependencies"])
    assert extras - {"kernel", "saxon", "dev"} == ROOMS.keys() - {"base"}


@pytest.mark.parametrize("extra", ROOMS)
def test_an_extra_brings_what_its_rooms_import(
    extra: str, whole: Environment, tmp_path: Path
) -> None:
    extras = ",".join(["kernel", extra, ALSO.get(extra, extra)]).replace(",base", "")
    there = whole.part(tmp_path / "e", f"pathcast[{extras}]")

    done = there.run("python", "-W", "error", "-c", IMPORTS)
    assert done.returncode == 0, done.stderr
    missing: dict[str, str] = json.loads(done.stdout)
    rooms = tuple(f"pathcast.{room}" for room in (*ROOMS["base"], *ROOMS[extra]))
    assert {name: lib for name, lib in missing.items() if name.startswith(rooms)} == {}
    extras_as_modules = json.dumps(project()["optional-dependencies"]).replace("-", "_")
    declared = re.findall(r"\w+", extras_as_modules)
    # grpc is of grpcio, py4j of pyspark; strategies of hypothesis are imported by tests alone.
    assert {lib.split(".")[0] for lib in missing.values()} <= {*declared, "grpc", "py4j"}

    done = there.run("pathcast", "doctor", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    parts = {found["part"]: found for found in map(json.loads, done.stdout.splitlines())}
    assert parts["engine kernel"]["found"]
    for name, requirements in project()["optional-dependencies"].items():
        for requirement in requirements if name != "dev" else ():
            library = re.match(r"[\w.-]+", requirement)
            assert library is not None
            is_there = parts[library[0]]["found"] is not None
            assert is_there or re.search(
                r"pip install 'pathcast\[\w+\]'", parts[library[0]]["remark"]
            )
            assert is_there or name not in ("kernel", extra)

    for code, expected in zip(blocks("python"), blocks("text"), strict=True):
        assert there.run("python", "-c", code).stdout == expected
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks("console")[0], re.M)
    assert commands
    for command, expected in commands:
        assert there.shell(command) == expected


def test_without_the_kernel_one_sentence_says_what_to_install(wheels: Path, tmp_path: Path) -> None:
    there = Environment.installed(tmp_path / "e", wheels, ["pathcast"], "--no-compile")
    assert there.run("python", "-W", "error", "-c", "import pathcast").stderr == ""

    done = there.run("pathcast", "doctor")
    assert done.returncode == 3
    assert "pip install pathcast-kernel" in done.stdout

    done = there.run("python", "-c", "import pathcast; pathcast.Registry()")
    assert "KernelMissingError: the native kernel cannot be imported" in done.stderr
    assert "frozen importlib" not in done.stderr

    (tmp_path / "e" / "q.txt").write_text("//a\n", encoding="utf-8")
    done = there.run("pathcast", "match", "--queries", "q.txt", "q.txt")
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1


def test_the_readme_begins_with_pip() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.index("pip install") < text.index("```python")
