"""Metrics of a carrier: connections, inboxes, its database, and its node.

All of it is read when somebody asks, in the event loop, from counts that exist anyway. Subscribers
are named for the fullest inboxes only, so that the number of time series has a bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from prometheus_client.core import Metric

from pathcast.transport.carrier import Carrier
from pathcast.transport.database_file import DATABASE
from pathcast.transport.inbox_bounds import InboxState
from pathcast.transport.meters import CallMeters, call_metrics, counter, gauge

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
            gauge("dead_letters", "Dead letters of all webhooks.", sum(letters.values())),
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


def _neighbours(carrier: Carrier) -> Iterable[Metric]:
    totals = carrier.neighbours.totals()
    yield counter(
        "neighbour_connections",
        "Connections that there have been; all but the first are reconnections.",
        {peer: traffic.connections for peer, traffic in totals.items()},
        "neighbour",
    )
    for what in ("sent", "received"):
        sizes = {
            (peer, flow.lower()): size
            for peer, traffic in totals.items()
            for flow, size in getattr(traffic, f"{what}_by_flow").items()
        }
        text = f"Bytes of packets {what}."
        yield counter(f"neighbour_{what}_bytes", text, sizes, "neighbour", "flow")
    yield counter(
        "neighbour_dropped_packets",
        "Packets that a full queue did not take; the node sends them again.",
        {peer: traffic.packets_dropped for peer, traffic in totals.items()},
        "neighbour",
    )
    text = "Messages that wait for a neighbour."
    yield gauge("backlog_messages", text, carrier.backlog(), "neighbour")


def _inboxes(inboxes: Mapping[str, InboxState]) -> Iterable[Metric]:
    full = sum(state.is_full for state in inboxes.values())
    yield gauge("inboxes", "Inboxes that ever had a delivery.", len(inboxes))
    yield gauge("inboxes_full", "Inboxes that drop deliveries.", full)
    for what, text in (
        ("waiting", "Deliveries that wait"),
        ("bytes", "Bytes of deliveries that wait"),
        ("dropped", "Deliveries that were dropped and are not acknowledged"),
    ):
        values = {name: getattr(state, what) for name, state in inboxes.items()}
        most = heapq.nlargest(INBOXES_NAMED_MAX, values, key=values.__getitem__)
        yield gauge(f"inbox_{what}", f"{text}, in all inboxes.", sum(values.values()))
        yield gauge(
            f"inbox_{what}_of_subscriber",
            f"{text}, in the {INBOXES_NAMED_MAX} inboxes that have most.",
            {name: values[name] for name in most if values[name]},
            "subscriber",
        )


def _database(directory: Path | None) -> Metric:
    """Bytes of the database and of the log that SQLite has beside it."""
    size = 0
    for path in () if directory is None else directory.glob(f"{DATABASE}*"):
        size += path.stat().st_size if path.exists() else 0
    return gauge("database_bytes", "Bytes of the database, with its log.", size)
