"""What a record says of the machine and the software, so that it can be read later.

Example:
    >>> sorted(describe_software())[:2]
    ['kernel', 'libxml2']

It names no host, no user and no path.
"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import TypedDict

import pyarrow as pa

from pathcast.engine.matcher import available_threads


class Machine(TypedDict):
    """The processor and how busy it was."""

    cpu: str
    cores: int
    system: str
    memory_bytes: int | None
    load: tuple[float, float, float] | None


def describe_machine() -> Machine:
    """The machine as it is now."""
    return Machine(
        cpu=_cpu_model(),
        cores=available_threads(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        memory_bytes=_memory_bytes(),
        load=os.getloadavg() if hasattr(os, "getloadavg") else None,
    )


def describe_software() -> dict[str, str]:
    """Name -> version of what takes part."""
    versions = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "pathcast": _version("pathcast"),
        "kernel": _version("pathcast-kernel"),
        "pyarrow": pa.__version__,
        "lxml": _version("lxml"),
        "pyspark": _version("pyspark"),
    }
    try:
        from lxml.etree import LIBXML_VERSION
    except ModuleNotFoundError:
        versions["libxml2"] = "not installed"
    else:
        versions["libxml2"] = ".".join(map(str, LIBXML_VERSION))
    return versions


def commit() -> str | None:
    """Commit of the clone that this package lies in, with "+" for changes; None without git."""
    here = Path(__file__).resolve().parent
    try:
        head = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def _git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
