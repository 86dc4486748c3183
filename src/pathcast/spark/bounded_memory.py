"""A bound on the memory that a call takes, kept by the operating system.

A library unpacks a page of a file as a whole, and some kilobytes may be gigabytes of rows. Its
allocations beyond the bound fail here, as those of any process with `ulimit -d` do, and Arrow
raises that as a `MemoryError`.

Example:
    >>> file = pq.ParquetFile("messages.parquet")                           # doctest: +SKIP
    >>> with bounded_memory(100_000_000):                                   # doctest: +SKIP
    ...     rows = file.read_row_group(0)

Linux keeps it (`RLIMIT_DATA` counts what is mapped); elsewhere there is none. It is one of the
process: a thread that runs beside is bounded meanwhile as well. Arrow's allocator maps a gigabyte
ahead, within which nothing is bounded, unless `MEMORY_ENVIRONMENT` is set when a process begins, as
it is for workers and commands.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MEMORY_ENVIRONMENT: Final = {"MIMALLOC_ARENA_EAGER_COMMIT": "0"}
"""Variables with which Arrow takes memory as it needs it."""

_STATUS: Final = Path("/proc/self/status")


@contextmanager
def bounded_memory(bytes_max: int) -> Iterator[None]:
    """Have allocations inside fail that go so many bytes beyond what the process has now."""
    taken = _taken()
    if taken is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    known = [each for each in before if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([taken + bytes_max, *known]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _taken() -> int | None:
    """Bytes of data that this process has mapped; None where nobody tells."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:")), None)
