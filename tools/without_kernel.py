"""Runs Python where everything is installed but the native kernel.

    tools/without_kernel.py DIRECTORY ARGUMENTS...

DIRECTORY becomes a virtual environment of its own, whose packages are links to those of the
environment that runs this, the kernel left out; ARGUMENTS go to its Python. Nothing is hidden from
Python there: the kernel is not installed, as after a build that failed. The environment that runs
this is not touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

KERNEL = "pathcast_kernel"


def make_environment(directory: Path) -> Path:
    """Makes the environment anew; gives its Python."""
    shutil.rmtree(directory, ignore_errors=True)
    venv.create(directory, symlinks=True, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(directory)}))
    packages.mkdir(parents=True, exist_ok=True)
    for installed in dict.fromkeys(map(sysconfig.get_path, ("purelib", "platlib"))):
        for entry in Path(installed).iterdir():
            link = packages / entry.name
            if not entry.name.startswith(KERNEL) and not link.exists():
                link.symlink_to(entry)
    return Path(sysconfig.get_path("scripts", vars={"base": str(directory)}), "python")


def kernel_seen_by(python: Path) -> str:
    """Where a Python finds a kernel all the same; empty if it finds none."""
    code = f"import importlib.util as u; s = u.find_spec({KERNEL!r}); print(s.origin if s else '')"
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where the environment is made")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what its Python is given")
    given = parser.parse_args()
    python = make_environment(given.directory.absolute())
    if found := kernel_seen_by(python):
        print(f"there is a kernel all the same: {found} (is it on PYTHONPATH?)", file=sys.stderr)
        return 1
    environment = {**os.environ, "PATHCAST_ENGINE": "reference"}
    return subprocess.run([python, *given.arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
