"""Metrics of a carrier: connections, inboxes, its database, and its node.

All of it is read when somebody asks, in the event loop, from counts that exist anyway. Subscribers
are named for the fullest inboxes only, so that the number of time series has a bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pathcast.transport.carrier import Carrier
from pathcast.transport.database_file import DATABASE
from pathcast.transport.inbox_bounds import InboxState
from pathcast.transport.meters import CallMeters, call_metrics

INBOXES_NAMED_MAX: Final = 20
"""Inboxes that are shown by name: those in which most waits."""


class CarrierWatch:
    """A carrier as monitoring sees it.

    Args:
        carrier: The carrier.
        calls: Of the methods that the process offers.
    """

    def __init__(self, carrier: Carrier, calls: Iterable[CallMeters] = ()) -> None:
        self._carrier = carrier
        self._calls = list(calls)

    async def metrics(self) -> list[Metric]:
        """All metrics, at this moment.

        Raises:
            UnavailableError: The carrier has stopped.

        Cost: a pass over neighbours and inboxes. The first call counts what waits in each inbox.
        """
        carrier = self._carrier
        inboxes = await carrier.on_disk(carrier.disk.inboxes)
        letters = await carrier.on_disk(carrier.disk.dead_letter_counts)
        return [
            *carrier.meters.registry.collect(),
            *call_metrics(self._calls),
            *_neighbours(carrier),
            *_inboxes(inboxes),
            _gauge("pathcast_dead_letters", "Dead letters of all webhooks.", sum(letters.values())),
            _database(carrier.disk.directory),
            *carrier.kind.metrics(carrier.node, carrier.neighbours.connections.keys()),
        ]

    async def unready(self) -> Mapping[str, str]:
        """Each thing that is missing before it can do all of its work, and what of it."""
        carrier = self._carrier
        if carrier.failure is None:
            return {"node": "it has not begun yet"}
        if carrier.failure.done():
            return {"node": "it has failed; the log says why"}
        return carrier.kind.unready(carrier.node, carrier.neighbours.connections.keys())


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _neighbours(carrier: Carrier) -> Iterable[Metric]:
    opened = CounterMetricFamily(
        "pathcast_neighbour_connections",
        "Connections that there have been; all but the first are reconnections.",
        labels=["neighbour"],
    )
    sent = CounterMetricFamily(
        "pathcast_neighbour_sent_bytes", "Bytes of packets sent.", labels=["neighbour", "flow"]
    )
    received = CounterMetricFamily(
        "pathcast_neighbour_received_bytes",
        "Bytes of packets received.",
        labels=["neighbour", "flow"],
    )
    dropped = CounterMetricFamily(
        "pathcast_neighbour_dropped_packets",
        "Packets that a full queue did not take; the node sends them again.",
        labels=["neighbour"],
    )
    for peer, traffic in carrier.neighbours.totals().items():
        opened.add_metric([peer], traffic.connections)
        dropped.add_metric([peer], traffic.packets_dropped)
        for flow, size in traffic.sent_by_flow.items():
            sent.add_metric([peer, flow.lower()], size)
        for flow, size in traffic.received_by_flow.items():
            received.add_metric([peer, flow.lower()], size)
    backlog = GaugeMetricFamily(
        "pathcast_backlog_messages", "Messages that wait for a neighbour.", labels=["neighbour"]
    )
    for peer, count in carrier.backlog().items():
        backlog.add_metric([peer], count)
    return opened, sent, received, dropped, backlog


def _inboxes(inboxes: Mapping[str, InboxState]) -> Iterable[Metric]:
    states = inboxes.values()
    yield _gauge("pathcast_inboxes", "Inboxes that ever had a delivery.", len(inboxes))
    yield _gauge(
        "pathcast_inboxes_full", "Inboxes that drop deliveries.", sum(one.is_full for one in states)
    )
    for what, text in (
        ("waiting", "Deliveries that wait"),
        ("bytes", "Bytes of deliveries that wait"),
        ("dropped", "Deliveries that were dropped and are not acknowledged"),
    ):
        values = {name: getattr(state, what) for name, state in inboxes.items()}
        yield _gauge(f"pathcast_inbox_{what}", f"{text}, in all inboxes.", sum(values.values()))
        named = GaugeMetricFamily(
            f"pathcast_inbox_{what}_of_subscriber",
            f"{text}, in the {INBOXES_NAMED_MAX} inboxes that have most.",
            labels=["subscriber"],
        )
        for name in heapq.nlargest(INBOXES_NAMED_MAX, values, key=values.__getitem__):
            if values[name]:
                named.add_metric([name], values[name])
        yield named


def _database(directory: Path | None) -> Metric:
    """Bytes of the database and of the log that SQLite has beside it."""
    size = 0
    for path in () if directory is None else directory.glob(f"{DATABASE}*"):
        size += path.stat().st_size if path.exists() else 0
    return _gauge("pathcast_database_bytes", "Bytes of the database, with its log.", size)
