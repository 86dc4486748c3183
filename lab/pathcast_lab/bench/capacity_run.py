"""The two processes of `capacity`: one registers and saves, one opens and answers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from lxml import etree

from pathcast import Query, Registry, Snapshot
from pathcast.workload import SubscriptionParameters, generate_subscriptions
from pathcast_lab.bench.capacity import CapacitySet, Opened, Registered
from pathcast_lab.bench.memory import peak_bytes, resident_bytes
from pathcast_lab.bench.mixed import mixed_messages
from pathcast_lab.bench.rounds import binary_array
from pathcast_lab.bench.timing import elapsed_ns, undisturbed, yardstick

CHUNK = 100_000
CHECKED_MESSAGES = 9


def chunks(size: int, seed: int) -> Iterator[list[Query]]:
    """The subscriptions, so many at a time; popular texts occur several times in each chunk."""
    for first in range(0, size, CHUNK):
        parameters = SubscriptionParameters(
            queries=min(CHUNK, size - first), seed=seed + first // CHUNK, distinct_share=1.0
        )
        yield [
            Query(f"q{first + number}", row.query)
            for number, row in enumerate(generate_subscriptions(parameters))
        ]


def register(file: Path, size: int, seed: int) -> Registered:
    """Registers, freezes and saves them.

    Raises:
        PathcastError: A text was rejected.
    """
    few = Registry(threads=1)
    few.add(Query("nothing", "/no-message-has-this-root"))
    few.freeze().save(file)
    before, registry = resident_bytes() or 0, Registry(threads=1)
    text_bytes, registering_s = 0, 0.0
    for rows in chunks(size, seed):
        began = time.perf_counter()
        rejected = registry.add(rows).rejected
        registering_s += time.perf_counter() - began
        for error in rejected.values():
            raise error
        text_bytes += sum(len(row.text) for row in rows)
    held = (resident_bytes() or 0) - before
    began = time.perf_counter()
    snapshot = registry.freeze()
    frozen = time.perf_counter()
    snapshot.save(file)
    saved = time.perf_counter()
    return Registered(
        text_bytes,
        registering_s,
        held,
        (peak_bytes() or 0) - before,
        frozen - began,
        saved - frozen,
        file.stat().st_size,
    )


def answer(file: Path, size: int, seed: int, chosen: CapacitySet) -> dict[str, object]:
    """Opens the file and answers; `wrong` is what lxml says otherwise, and None if nothing."""
    messages = mixed_messages(chosen.messages, seed=seed)
    array, parse = binary_array(messages), yardstick(messages)
    Registry(threads=1).match(array)
    before = resident_bytes() or 0
    began = time.perf_counter()
    snapshot = Snapshot.open(file, threads=1)
    opening = [time.perf_counter() - began]
    opened = (resident_bytes() or 0) - before
    with undisturbed():
        first_ns = elapsed_ns(lambda: snapshot.match(array))
        lxml_ns = elapsed_ns(parse)
        warm_ns = elapsed_ns(lambda: snapshot.match(array))
    answered = (resident_bytes() or 0) - before
    for _ in range(chosen.opened - 1):
        began = time.perf_counter()
        Snapshot.open(file, threads=1)
        opening.append(time.perf_counter() - began)
    step = max(1, size // chosen.check_sample)
    sample, digests = [], []
    for rows in chunks(size, seed):
        sample += [row for row in rows if int(row.id[1:]) % step == 0]
        digests.append(np.unique([hash(row.text) for row in rows]))
    shown = messages[:CHECKED_MESSAGES]
    checked, wrong = check(snapshot, shown, sample)
    found = Opened(
        tuple(opening),
        opened,
        answered,
        first_ns / 1e9,
        warm_ns / 1e9,
        lxml_ns / 1e9,
        snapshot.match(array).stats.matches,
        len(shown) * len(sample),
        checked,
        len(np.unique(np.concatenate(digests))),
    )
    return {**asdict(found), "wrong": wrong}


def check(
    snapshot: Snapshot, messages: list[bytes], sample: list[Query]
) -> tuple[int, dict[str, object] | None]:
    """Matches of the sample by lxml, and where the snapshot has others."""
    compiled = [(row.id, etree.XPath(row.text)) for row in sample]
    wanted, total = {row.id for row in sample}, 0
    for number, message in enumerate(messages):
        tree = etree.fromstring(message).getroottree()
        expected = {name for name, path in compiled if path(tree)}
        found = wanted.intersection(snapshot.match(message).query_ids)
        if found != expected:
            case = f"capacity Q={len(snapshot):,}, message {number}"
            counts = {"found": len(found), "expected": len(expected)}
            return total, {"case": case, **counts, "oracle": "lxml"}
        total += len(expected)
    return total, None


if __name__ == "__main__":
    part, path, size, seed, chosen = sys.argv[1:]
    if part == "register":
        print(json.dumps(asdict(register(Path(path), int(size), int(seed)))))
    else:
        given = CapacitySet.model_validate_json(chosen)
        print(json.dumps(answer(Path(path), int(size), int(seed), given)))
