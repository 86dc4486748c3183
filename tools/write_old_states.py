"""Writes one state of each kind, with the code of a commit, for `testdata/old_states`.

The commit is a checkout of its own with its own native kernel, so that nothing of today's code has
a part in what is written:

    git clone . ../then && git -C ../then checkout COMMIT
    (cd ../then && python -m maturin build --release --manifest-path kernel/Cargo.toml --out .)
    unzip -d ../then/site ../then/*.whl
    python tools/write_old_states.py ../then --kernel ../then/site --out testdata/old_states/NAME

It needs the dependencies of that commit in the environment that runs it, and the archives that it
writes are what `tests/test_old_states.py` opens.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

ARRIVAL_SECONDS: Final = 120.0
"""Seconds that a delivery may take to come."""

QUERIES: Final = """
from pathcast import Query, Registry
registry = Registry()
registry.add([Query("dear", "/order[total > 100]"), Query("all", "//order"),
              Query("urgent", "/order[@urgent = 'yes']/total")])
registry.freeze().save("queries.snapshot")
"""

SUBSCRIPTIONS: Final = """
from pathcast import Registry, Subscription
registry = Registry()
registry.add(Subscription("dear", "ann", "/order[total > 100]/total"))
registry.add(Subscription("all", "bob", "//order", "ids"))
registry.add(Subscription("paid", "ann",
    "<sums>{ for $o in /order where $o/total > 100 return <s>{$o/total/text()}</s> }</sums>"))
registry.freeze().save("subscriptions.snapshot")
"""

REGISTRY: Final = """
from pathcast.store import Broker, Catalog, Profile, Removal, Source, Store
with Store.open("sqlite:///registry.sqlite") as store:
    store.write([
        Broker("bern", "10.0.0.7:7400", "eu/ch", 1e6, 1000, (0, 1)),
        Source("orders", "10.0.0.9:80", "eu/ch", 1, 5.0, 900.0, "bern"),
        Catalog("orders@1", "orders", 1, "<!ELEMENT order (total)>"),
        Profile("dear", "ann", "/order[total > 100]", labels={"tier": "gold"}, host="bern"),
        Profile("gone", "bob", "//order"),
    ], request="first")
    store.write([Removal("profile", "gone")])
"""

TOPOLOGY: Final = """
[network]
directory = "network"
links = [["basel", "bern"]]
clients = ["ann"]
"""

PIPELINE: Final = """
[source]
kind = "directory"
path = "incoming"

[subscriptions]
path = "subscriptions.tsv"

[mode]
kind = "batch"

[output]
path = "delivered"
"""

Kind = Callable[["Then", Path], None]


class Then:
    """The code of a commit.

    Args:
        checkout: Its files.
        kernel: Directory that holds its package `pathcast_kernel`.
    """

    def __init__(self, checkout: Path, kernel: Path) -> None:
        paths = [str(checkout / "src"), str(kernel)]
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

    def python(self, folder: Path, *arguments: str) -> str:
        """Runs Python in a folder; gives what it wrote.

        Raises:
            SystemExit: It failed; the message is what it said.
        """
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def pathcast(self, folder: Path, *arguments: str) -> str:
        """Runs a command of Pathcast, as `python`."""
        return self.python(folder, "-m", "pathcast", *arguments)

    def rows(self, folder: Path, *arguments: str) -> Iterator[dict[str, Any]]:
        """What a command writes as lines of JSON."""
        yield from map(json.loads, self.pathcast(folder, *arguments).splitlines())


def main() -> None:
    """Writes an archive for each kind that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="files of the commit")
    parser.add_argument("--kernel", type=Path, required=True, help="holds its pathcast_kernel")
    parser.add_argument("--out", type=Path, required=True, help="folder for the archives")
    parser.add_argument("kinds", nargs="*", help=f"some of {', '.join(KINDS)}; all if none")
    given = parser.parse_args()
    then = Then(given.checkout.resolve(), given.kernel.resolve())
    given.out.mkdir(parents=True, exist_ok=True)
    for kind in given.kinds or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            KINDS[kind](then, Path(folder))
            pack(Path(folder), given.out / f"{kind}.tar.xz")
        print(kind, (given.out / f"{kind}.tar.xz").stat().st_size, "bytes")


def pack(folder: Path, archive: Path) -> None:
    """Packs what a folder has; locks, sockets and logs of processes are no state."""
    with tarfile.open(archive, "w:xz") as packed:
        for path in sorted(folder.rglob("*")):
            is_state = path.is_file() and path.suffix != ".log" and path.name not in LEFT_OUT
            if is_state:
                packed.add(path, str(path.relative_to(folder)), filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _message(folder: Path, name: str, total: int) -> str:
    path = folder / f"{name}.xml"
    path.write_text(f"<order><total>{total}</total></order>")
    return path.name


def write_queries(then: Then, folder: Path) -> None:
    """A snapshot file of queries."""
    then.python(folder, "-c", QUERIES)


def write_subscriptions(then: Then, folder: Path) -> None:
    """A snapshot file of subscriptions."""
    then.python(folder, "-c", SUBSCRIPTIONS)


def write_registry(then: Then, folder: Path) -> None:
    """A profile database in SQLite."""
    then.python(folder, "-c", REGISTRY)


def write_network(then: Then, folder: Path) -> None:
    """Two brokers: a log that one of them has not had, subscriptions, inboxes, an operator's file.

    m1 and m2 are in the inboxes that want them, m3 is not at bern yet, which was killed.
    """
    (folder / "topology.toml").write_text(TOPOLOGY)
    then.pathcast(folder, "net", "up", "topology.toml")
    try:
        who = ("--as", "ann")
        wanted = (("bern", "dear", "//order[total > 100]"), ("basel", "all", "//order"))
        for at, id, query in wanted:
            then.pathcast(folder, "net", "subscribe", id, query, "--at", at, *who)
        for name, total in (("m1", 150), ("m2", 50)):
            _publish(then, folder, name, total)
        _await(lambda: _count(then, folder, "bern") == 1)
        _await(lambda: _count(then, folder, "basel") == 2)
        then.pathcast(folder, "net", "kill", "bern")
        _publish(then, folder, "m3", 300)
        _await(lambda: _count(then, folder, "basel") == 3)
    finally:
        then.pathcast(folder, "net", "down")


def _publish(then: Then, folder: Path, name: str, total: int) -> None:
    then.pathcast(
        folder, "net", "publish", _message(folder, name, total), "--at", "basel", "--as", "ann"
    )


def _count(then: Then, folder: Path, broker: str) -> int:
    """Messages in the inbox of ann at a broker."""
    rows = then.rows(folder, "net", "inbox", "--at", broker, "--as", "ann")
    return sum("message" in row for row in rows)


def write_ring(then: Then, folder: Path) -> None:
    """Four peers: a query that is indexed, and a match in its owner's inbox."""
    then.pathcast(folder, "peer", "up", "4")
    try:
        then.pathcast(folder, "peer", "subscribe", "dear", "//order[total > 100]", "--at", "p01")
        then.pathcast(folder, "peer", "publish", _message(folder, "m1", 150), "--at", "p02")
        _await(
            lambda: any(
                "subscription" in row and "publication" in row
                for row in then.rows(folder, "peer", "inbox", "--at", "p01")
            )
        )
    finally:
        then.pathcast(folder, "peer", "down")


def write_pipeline(then: Then, folder: Path) -> None:
    """A pipeline that has answered two messages and refused one: output and checkpoint."""
    (folder / "incoming").mkdir()
    (folder / "pipeline.toml").write_text(PIPELINE)
    (folder / "subscriptions.tsv").write_text(
        "subscriber\tquery_id\tquery\tdeliver\n"
        "ann\tdear\t/order[total > 100]/total\tfragment\n"
        "bob\tall\t//order\tids\n"
    )
    _message(folder / "incoming", "m1", 150)
    _message(folder / "incoming", "m2", 50)
    (folder / "incoming" / "broken.xml").write_text("<order>")
    then.pathcast(folder, "run", "pipeline.toml")


def _await(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + ARRIVAL_SECONDS
    while not holds():
        if time.monotonic() > until:
            raise SystemExit("what was published did not come")
        time.sleep(0.2)


LEFT_OUT: Final = {"control", "lock", "_lock"}

KINDS: Final[dict[str, Kind]] = {
    "queries": write_queries,
    "subscriptions": write_subscriptions,
    "registry": write_registry,
    "network": write_network,
    "ring": write_ring,
    "pipeline": write_pipeline,
}
"""Kind -> how one is written."""


if __name__ == "__main__":
    main()
