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
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client import Counter as CounterMetric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

_Labels = TypeVar("_Labels", str, tuple[str, str])

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
    return [
        counter(
            "messages_received",
            "Messages that publishers gave to this process, refused ones included.",
            sum(each.messages for each in found),
        ),
        counter(
            "refusals",
            "Messages, profiles and ids refused in their own place, by the code of the error.",
            sum((each.refused for each in found), Counter[str]()),
            "code",
        ),
        counter(
            "calls_refused",
            "Calls that ended with an error, by the code of the error.",
            sum((each.ended for each in found), Counter[str]()),
            "code",
        ),
    ]


def counter(name: str, text: str, values: float | Mapping[_Labels, float], *labels: str) -> Metric:
    """A count since the start; or one for each value of the labels.

    Example:
        >>> sent = counter("sent_bytes", "Bytes.", {("east", "query"): 3}, "neighbour", "flow")
        >>> sent.samples[0].labels, sent.samples[0].value
        ({'neighbour': 'east', 'flow': 'query'}, 3)
    """
    return _family(CounterMetricFamily, name, text, values, labels)


def gauge(name: str, text: str, values: float | Mapping[_Labels, float], *labels: str) -> Metric:
    """A value of now; or one for each value of the labels."""
    return _family(GaugeMetricFamily, name, text, values, labels)


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    values: float | Mapping[_Labels, float],
    labels: Sequence[str],
) -> Metric:
    if not isinstance(values, Mapping):
        return kind(f"pathcast_{name}", text, value=values)
    found = kind(f"pathcast_{name}", text, labels=labels)
    for key, value in values.items():
        found.add_metric([key] if isinstance(key, str) else key, value)
    return found


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
