"""What is asked of each deployment, and how it becomes rows of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from pathcast_lab.bench.figures.point import Place, Value

NODES: Final = "nodes"
MESSAGES: Final = "messages published"
RATE: Final = "messages a second"
LATENCY: Final = "latency, median"
SENT: Final = "bytes between nodes, a message"
LARGEST: Final = "memory, largest node"
ALL: Final = "memory, all nodes"
READY: Final = "ready after"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One deployment.

    Attributes:
        nodes: Processes that hold subscriptions.
        messages: That were published as fast as they were taken.
        seconds: From the first publish to the last delivery of these.
        latencies: Seconds from publish to delivery of messages that were published one by one; of
            Spark, seconds of micro-batches.
        sent_bytes: Between nodes, for each of the messages; None where the machine does not tell.
        memory_bytes: Most that each node had.
        ready_seconds: From nothing to all subscriptions in force.
    """

    nodes: int
    messages: int
    seconds: float
    latencies: Sequence[float]
    sent_bytes: float | None
    memory_bytes: Sequence[int]
    ready_seconds: float

    def values(self, place: Place) -> Iterator[Value]:
        """Its rows."""
        yield place.value(NODES, "", self.nodes)
        yield place.value(MESSAGES, "", self.messages)
        yield place.value(RATE, "/s", self.messages / self.seconds)
        yield place.value(LATENCY, "ms", median(self.latencies) * 1e3)
        if self.sent_bytes is not None:
            yield place.value(SENT, "kB", self.sent_bytes / 1e3)
        if self.memory_bytes:
            yield place.value(LARGEST, "MB", max(self.memory_bytes) / 1e6)
            yield place.value(ALL, "MB", sum(self.memory_bytes) / 1e6)
        yield place.value(READY, "s", self.ready_seconds)
