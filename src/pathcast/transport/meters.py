"""Counters that a process increments as it works, once for each call or commit.

What a node knows of itself anyway is no counter here: it is read when somebody asks
(`pathcast.transport.broker_metrics`, `pathcast.transport.peer_metrics`).

Example:
    >>> calls = CallMeters()
    >>> calls.ended["peer.token"] += 1
    >>> [(one.name, one.samples[0].value) for one in call_metrics([calls]) if one.samples]
    [('pathcast_messages_received', 0), ('pathcast_calls_refused', 1)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client import Counter as CounterMetric
from prometheus_client.core import CounterMetricFamily, Metric

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of histograms of times."""


class CallMeters:
    """Of the methods that a listener offers.

    Attributes:
        messages: Messages that publishers gave, those that were refused among them.
        refused: Messages, profiles and ids that were refused in their own place, by code.
        ended: Calls that ended with an error, by code.
    """

    def __init__(self) -> None:
        self.messages = 0
        self.refused: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()


def call_metrics(meters: Iterable[CallMeters]) -> list[Metric]:
    """Merge the counters of all listeners."""
    found = list(meters)
    refused = CounterMetricFamily(
        "pathcast_refusals",
        "Messages, profiles and ids refused in their own place, by the code of the error.",
        labels=["code"],
    )
    ended = CounterMetricFamily(
        "pathcast_calls_refused",
        "Calls that ended with an error, by the code of the error.",
        labels=["code"],
    )
    for metric, counts in (
        (refused, sum((each.refused for each in found), Counter[str]())),
        (ended, sum((each.ended for each in found), Counter[str]())),
    ):
        for code, count in sorted(counts.items()):
            metric.add_metric([code], count)
    received = CounterMetricFamily(
        "pathcast_messages_received",
        "Messages that publishers gave to this process, refused ones included.",
        value=sum(each.messages for each in found),
    )
    return [received, refused, ended]


class CarrierMeters:
    """Of one carrier.

    Attributes:
        registry: All of them.
        delivered: Deliveries and notices that were put into inboxes.
        commits: Seconds from a group of changes being handed to the disk until it is on the disk.

    Cost: about a microsecond an increment.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.delivered = CounterMetric(
            "pathcast_deliveries",
            "Deliveries and notices that were put into inboxes.",
            registry=self.registry,
        )
        self.commits = Histogram(
            "pathcast_commit_seconds",
            "Time that a group of changes takes to be on the disk.",
            buckets=SECONDS,
            registry=self.registry,
        )
