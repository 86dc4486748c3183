"""What a matcher, or a broker, takes of memory, measured in a process of its own.

The process opens a snapshot, matches messages, and says by how much its resident size has grown:
the pages of the snapshot that were read, the compiled label paths, and what answering needs. In the
process of a benchmark the allocator would hand out again what earlier work has given back.

Example:
    >>> resident_bytes() is None or resident_bytes() > 0
    True

It says nothing where there is no `/proc` (the figure is left out then).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.registry import Snapshot


def resident_bytes(process: int | Literal["self"] = "self") -> int | None:
    """Memory of a process that is in use now; None where the system does not say."""
    return _kept(process, "VmRSS:")


def peak_bytes(process: int | Literal["self"] = "self") -> int | None:
    """The most that it had in use at a time; None where the system does not say."""
    return _kept(process, "VmHWM:")


def _kept(process: int | Literal["self"], key: str) -> int | None:
    try:
        # A name may be in any encoding.
        lines = Path(f"/proc/{process}/status").read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), None)


def matcher_bytes(snapshot: Path, messages: pa.Array) -> int | None:
    """Growth of a new process that opens the snapshot and matches the messages on one thread.

    Args:
        snapshot: File of a snapshot; the messages are written beside it for a moment.
        messages: What is matched, twice.

    Returns:
        Bytes; None where the system does not say.

    Cost: The start of a Python process, and the passes.
    """
    return _measured("matcher", snapshot, messages)


def broker_bytes(snapshot: Snapshot, messages: pa.Array) -> int | None:
    """Growth of a new process that restores a broker and answers the messages on one thread.

    Args:
        snapshot: The subscriptions.
        messages: What is answered, twice.

    Returns:
        Bytes; None where the system does not say.

    Cost: The start of a Python process, the restoring and the passes.
    """
    with TemporaryDirectory(prefix="pathcast-bench-") as directory:
        file = Path(directory) / "subscriptions.snapshot"
        snapshot.save(file)
        return _measured("broker", file, messages)


def _measured(what: str, snapshot: Path, messages: pa.Array) -> int | None:
    if resident_bytes() is None:
        return None
    file = snapshot.with_suffix(".messages.parquet")
    pq.write_table(pa.table({"message": messages}), file)
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__, what, str(snapshot), str(file)],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        file.unlink()
    return int(done.stdout)


def _grow(what: str, snapshot: str, messages: str) -> int:
    array = pq.read_table(messages).column("message").combine_chunks()
    return (_grow_broker if what == "broker" else _grow_matcher)(snapshot, array)


def _grow_matcher(snapshot: str, array: pa.Array) -> int:
    first, *_ = array.slice(0, 1).to_pylist()
    # What every matcher needs once, however few its queries: code pages, pools, tables of names.
    from pathcast.model import Query
    from pathcast.registry import Registry

    index = Registry(threads=1)
    index.add([Query("nothing", "/no-message-has-this-root")])
    index.match(pa.array([first], pa.binary()))
    before = resident_bytes() or 0
    matcher = Snapshot.open(snapshot, threads=1)
    for _ in range(2):
        matcher.match(array)
    return (resident_bytes() or 0) - before


def _grow_broker(snapshot: str, array: pa.Array) -> int:
    from pathcast import Registry, Subscription

    few = Registry(threads=1)
    few.add(Subscription("s", "s", "for $a in /no-message-has-this-root return <a>{$a}</a>"))
    few.deliver(array.slice(0, 1))
    before = resident_bytes() or 0
    opened = Snapshot.open(snapshot, threads=1)
    registry = Registry.of(opened, threads=1)
    for _ in range(2):
        registry.deliver(array)
    return (resident_bytes() or 0) - before


if __name__ == "__main__":
    print(_grow(*sys.argv[1:]))
