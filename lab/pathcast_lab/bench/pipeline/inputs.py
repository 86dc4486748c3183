"""Messages of the payments domain and subscriptions to them, as files that a pipeline reads.

A subscription is selective if few messages satisfy it. Templates give all kinds, so more are
generated than wanted, and counted on a sample of messages; those are kept, neighbours in the order
of their counts, that together come near the wanted number of deliveries.

Example:
    >>> selective(np.array([9, 0, 1, 2, 500]), wanted=2, total=4).tolist()
    [2, 3]
    >>> selective(np.array([9, 0, 1, 2, 500]), wanted=3, total=1).tolist()
    [1, 2, 3]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from pathcast.model import Query, Subscription
from pathcast.registry import Registry
from pathcast.workload import (
    DemoParameters,
    ShapedParameters,
    SubscriptionParameters,
    demo_messages,
    generate_shaped,
    generate_subscriptions,
)
from pathcast.workload.documents import GeneratedMessage
from pathcast.workload.packing import write_message_parquet
from pathcast.workload.subscriptions import GeneratedSubscription as Row
from pathcast_lab.bench.checking import THREADS
from pathcast_lab.bench.rounds import binary_array

DOMAIN = ("payments",)

SUBSCRIBERS_SHARE = 10
"""Subscriptions of a subscriber, on average."""

SURPLUS = 1.6
"""Queries that are generated for each that is wanted; most are selective."""


def payments(count: int, *, seed: int) -> Iterator[GeneratedMessage]:
    """Messages of 4.5 KB, none of them broken; the first ones are the same whatever the count.

    Raises:
        MissingDependencyError: lxml, which reads the domain's DTD, is not installed.
    """
    parameters = DemoParameters(messages=count, seed=seed, broken_ratio=0, domains=DOMAIN)
    yield from demo_messages(parameters)


def write_parts(
    messages: Iterable[GeneratedMessage], count: int, folder: Path, parts: int = 1
) -> Path:
    """So many messages as so many Parquet files; their folder."""
    folder.mkdir(parents=True)
    source = iter(messages)
    for number in range(parts):
        size = count * (number + 1) // parts - count * number // parts
        write_message_parquet(islice(source, size), folder / f"part-{number:04d}.parquet")
    return folder


def repeated(messages: Sequence[GeneratedMessage], count: int) -> Iterator[GeneratedMessage]:
    """Messages in turn until there are enough; each has an id of its own."""
    for number in range(count):
        one = messages[number % len(messages)]
        yield one._replace(id=f"{one.id}-{number // len(messages)}")


def plain_queries(count: int, *, seed: int) -> list[Row]:
    """Filter queries as they are generated."""
    parameters = SubscriptionParameters(
        queries=count, subscribers=_subscribers(count), seed=seed, domains=DOMAIN
    )
    return list(generate_subscriptions(parameters))


def selective_queries(
    count: int, deliveries: float, sample: Sequence[GeneratedMessage], *, seed: int
) -> list[Row]:
    """Filter queries that together match about so often a message.

    Args:
        count: How many.
        deliveries: Matches of a message.
        sample: Messages on which they are counted.
        seed: Any whole number.
    """
    rows = plain_queries(round(count * SURPLUS), seed=seed)
    index = Registry(threads=THREADS)
    index.add([Query(row.query_id, row.query) for row in rows])
    snapshot = index.freeze()
    found = snapshot.match(_array(sample))
    hits = np.bincount(found.matches.values.to_numpy(), minlength=len(snapshot.query_ids))
    kept = selective(hits, wanted=count, total=deliveries * len(sample))
    ids = {snapshot.query_ids[number] for number in kept.tolist()}
    return [row for row in rows if row.query_id in ids]


def selective_results(
    count: int, deliveries: float, sample: Sequence[GeneratedMessage], *, seed: int
) -> list[Row]:
    """FLWR subscriptions that together give about so many results a message; as above."""
    generated = round(count * SURPLUS)
    parameters = ShapedParameters(
        queries=generated, subscribers=_subscribers(count), seed=seed, domains=DOMAIN
    )
    rows = list(generate_shaped(parameters))
    registry = Registry(threads=THREADS)
    registry.add(as_subscriptions(rows))
    hits = np.zeros(len(rows), dtype=np.int64)
    places = {row.query_id: place for place, row in enumerate(rows)}
    found = registry.deliver(_array(sample))
    counted = np.bincount(found.numbers.column("subscription").to_numpy())
    for name, total in zip(found.subscription_ids, counted.tolist(), strict=False):
        hits[places[name]] += total
    kept = selective(hits, wanted=count, total=deliveries * len(sample))
    return [rows[place] for place in sorted(kept.tolist())]


def as_subscriptions(rows: Iterable[Row]) -> list[Subscription]:
    """Rows as a registry takes them, to be delivered as results."""
    return [Subscription(row.query_id, row.subscriber, row.query) for row in rows]


def selective(hits: np.ndarray, *, wanted: int, total: float) -> np.ndarray:
    """Numbers of `wanted` neighbours in the order of hits that together come near a total."""
    order = np.argsort(hits, kind="stable")
    wanted = min(wanted, len(order))
    sums = np.concatenate(([0], np.cumsum(hits[order])))
    windows = sums[wanted:] - sums[: len(sums) - wanted]
    first = max(0, int(np.searchsorted(windows, total, side="right")) - 1)
    return np.sort(order[first : first + wanted])


def _array(sample: Sequence[GeneratedMessage]) -> pa.Array:
    return binary_array([message.message for message in sample])


def _subscribers(count: int) -> int:
    return max(1, count // SUBSCRIBERS_SHARE)
