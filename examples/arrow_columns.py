"""A column of messages in, a column of query numbers out: no Python object for a match.

The snapshot is saved and opened again, as another process would do it; numbers mean the same
in both.
"""

import tempfile
from pathlib import Path

import pyarrow as pa

from pathcast import Query, Registry, Snapshot


def main() -> None:
    registry = Registry()
    registry.add(Query(f"above-{limit}", f"/quote[price > {limit}]") for limit in range(0, 50, 10))
    messages = pa.array(
        [f"<quote><price>{price}</price></quote>".encode() for price in (5, 25, 45)] + [b"<quote>"],
        pa.binary(),
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "queries.snapshot"
        registry.freeze().save(path)
        snapshot = Snapshot.open(path)
        batch = snapshot.match(messages)
        for matches, error in zip(batch.matches, batch.errors, strict=True):
            ids = sorted(snapshot.query_ids[number.as_py()] for number in matches)
            print(ids, error["code"])
        print(f"{batch.stats.messages} messages, {batch.stats.matches} matches")


if __name__ == "__main__":
    main()
