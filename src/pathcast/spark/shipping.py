"""Pathcast's own files, sent with the job to workers that need not have it installed.

Workers of a cluster run the Pathcast that the driver runs, kernel included: an archive is unpacked
where PySpark looks for modules first, before what is installed. They need the same Python, and
pyarrow, numpy and (for places that are URLs) fsspec; and a machine on which the driver's kernel
runs.

Example:
    >>> [name for name, _ in packages() if name == "pathcast"]
    ['pathcast']

It does not start Spark, and sends nothing by itself.
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast.boundary import ENGINE_VARIABLE, is_plain_nfa
from pathcast.spark.bounded_memory import MEMORY_ENVIRONMENT

if TYPE_CHECKING:
    from pyspark import SparkContext


def prepare_environment(context: SparkContext) -> None:
    """Have the workers of a context run the plain NFA if this process does, and bound their memory.

    Python workers that run already go on with what they were started with; jobs that come later
    get workers of their own.

    Raises:
        ConfigError: `PATHCAST_ENGINE` says something else than "kernel" or "nfa".
    """
    context.environment.update(MEMORY_ENVIRONMENT)
    context.environment[ENGINE_VARIABLE] = "nfa" if is_plain_nfa() else "kernel"


_LEFT_OUT = frozenset({"__pycache__"})


def ship(context: SparkContext) -> None:
    """Send Pathcast with all jobs of a context, unless it is this machine's or has been sent it.

    Cost: about 4 MB to each executor, once.
    """
    if context.master.startswith("local") or _was_sent(context):
        return
    folder = Path(tempfile.mkdtemp(prefix="pathcast-ship-"))
    # The driver serves them for as long as it runs.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, place in packages():
        if place.is_dir():
            archive = folder / f"{name}.zip"
            _pack(place, archive)
            context.addArchive(f"{archive}#{name}")
        else:
            context.addFile(str(place))


def _was_sent(context: SparkContext) -> bool:
    """Whether a context, which may have run pipelines before, sends Pathcast already."""
    return any(name.endswith("#pathcast") for name in context.listArchives)


def packages() -> Iterator[tuple[str, Path]]:
    """Name and place of what a worker imports of ours: a folder, or the file of a module."""
    for name in ("pathcast", "pathcast_kernel"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            yield name, origin.parent if spec.submodule_search_locations else origin


def _pack(folder: Path, archive: Path) -> None:
    """The files of a package as they lie in its folder."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not _LEFT_OUT.intersection(path.parts):
                packed.write(path, path.relative_to(folder))
