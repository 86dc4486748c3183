"""`broker-node`: what one broker process takes of a core for each message.

Two broker processes on this machine: the one that is measured, pinned to a core, and a neighbour
that takes what profiles behind it want. This process publishes and follows both inboxes. All
deliveries are compared with those of one process before a time is reported.

It needs the extra `net`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pydantic import Field

from pathcast.cli.console import extra
from pathcast.model import Query, Subscription
from pathcast.registry import Registry
from pathcast.workload import SubscriptionParameters, generate_subscriptions
from pathcast.workload.documents import generate_documents
from pathcast.workload.domains import DOMAINS
from pathcast_lab.bench.checking import THREADS
from pathcast_lab.bench.definitions import BenchmarkDefinition, Strict
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.pipeline.inputs import selective
from pathcast_lab.bench.timing import Spread

SURPLUS = 4
"""Profiles that are generated for each that is wanted: half of the texts are equal to others."""


class BrokerNodeSet(Strict):
    """What one set runs.

    Attributes:
        profiles: At the broker that is measured.
        behind: At its neighbour.
        messages: Of a round.
        sample: Distinct messages, by which profiles are chosen.
        rounds: Of the throughput.
        rate: Messages a second, by the clock.
        seconds: How long.
    """

    profiles: int = Field(ge=10)
    behind: int = Field(ge=10)
    messages: int = Field(ge=1)
    sample: int = Field(ge=30)
    rounds: int = Field(ge=1)
    rate: int = Field(ge=1)
    seconds: float = Field(gt=0)


class BrokerNodeDefinition(BenchmarkDefinition[BrokerNodeSet]):
    """`lab/benchmarks/broker-node.toml`.

    Attributes:
        selectivity: Share of the profiles that a message of the sample satisfies.
        batch: Messages that are published with one call.
    """

    selectivity: float
    batch: int = Field(ge=1)


@dataclass(frozen=True)
class Load:
    """Profiles and messages.

    Attributes:
        here: Profiles of the broker that is measured.
        behind: Profiles of its neighbour.
        messages: Distinct messages.
    """

    here: list[Subscription]
    behind: list[Subscription]
    messages: list[bytes]


@dataclass(frozen=True)
class RoundTimes:
    """One round of throughput.

    Attributes:
        messages: How many were published.
        deliveries: At both brokers.
        wall_s: From the first to the last delivery.
        processor_s: Time of the measured process.
    """

    messages: int
    deliveries: int
    wall_s: float
    processor_s: float


@dataclass(frozen=True)
class BrokerNodeResult:
    """What one case gave.

    Attributes:
        case: Its name.
        profiles: At the broker.
        message_bytes: Mean length.
        deliveries_a_message: At the broker, and at its neighbour.
        registered_s: Seconds until all profiles of the broker were in force.
        rounds: Throughput.
        rate: Messages a second of the paced run.
        paced_s: Time of the measured process in it, a message.
        hops_ms: Latencies at the broker's own subscriber, from when a message was due.
        onward_ms: At the neighbour's.
        bound_us: Part -> microseconds a message, alone.
        commits_ms: How long commits of a few deliveries take, alone: median, 99 % and worst.
        memory_bytes: Resident size of the process at the end.
        sent: Flow -> bytes sent to the neighbour.
        checks: Pairs of message and subscription that are as one process gives them.
    """

    case: str
    profiles: int
    message_bytes: float
    deliveries_a_message: tuple[float, float]
    registered_s: float
    rounds: tuple[RoundTimes, ...]
    rate: int
    paced_s: float
    hops_ms: tuple[float, float, float]
    onward_ms: tuple[float, float, float]
    bound_us: dict[str, float]
    commits_ms: tuple[float, float, float]
    memory_bytes: int | None
    sent: dict[str, int]
    checks: int

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, *values: float) -> Measure:
            spread = Spread.of(values)
            return Measure("broker-node", self.case, name, unit, spread, self.profiles)

        rounds = self.rounds
        yield figure("messages", "/s", *(one.messages / one.wall_s for one in rounds))
        yield figure("deliveries", "/s", *(one.deliveries / one.wall_s for one in rounds))
        each = [one.processor_s / one.messages * 1e6 for one in rounds]
        yield figure("processor", "us/message", *each)
        yield figure("messages a core", "/s", *(1e6 / one for one in each))
        yield figure("bound", "us/message", sum(self.bound_us.values()))
        for part, value in self.bound_us.items():
            yield figure(f"of that {part}", "us/message", value)
        at = f"at {self.rate:,}/s"
        yield figure(f"processor {at}", "us/message", self.paced_s * 1e6)
        for name, unit, found in (
            ("hop", f"ms {at}", self.hops_ms),
            ("to the next broker", f"ms {at}", self.onward_ms),
            ("a commit alone", "ms", self.commits_ms),
        ):
            for share, value in zip(("50 %", "99 %", "worst"), found, strict=True):
                yield figure(f"{name}, {share}", unit, value)
        yield figure("registered", "profiles/s", self.profiles / self.registered_s)
        if self.memory_bytes is not None:
            yield figure("memory", "MB", self.memory_bytes / 1e6)
        yield figure("sent onward", "MB", sum(self.sent.values()) / 1e6)


def run_broker_node(
    definition: BrokerNodeDefinition, chosen: BrokerNodeSet, say: Callable[[str], None]
) -> Iterator[BrokerNodeResult]:
    """The one case.

    Raises:
        WrongCountError: A delivery is lost, doubled or foreign.
        MissingDependencyError: The extra `net`, or lxml, is not installed.
    """
    with extra("net", "pathcast-lab bench broker-node"):
        from pathcast_lab.bench.broker_node_run import commits_alone, parts_alone, run_load
    say(f"{chosen.profiles:,} profiles here, {chosen.behind:,} behind a neighbour")
    load = made_load(definition, chosen)
    with TemporaryDirectory(prefix="pathcast-bench-") as directory:
        bound = parts_alone(load, definition.batch, Path(directory) / "alone")
        say("; ".join(f"{part} {value:.1f} us" for part, value in bound.items()))
        commits = commits_alone(load, Path(directory) / "commits")
        network = Path(directory) / "network"
        found = asyncio.run(run_load(definition, chosen, load, network, say))
    yield replace(found, bound_us=bound, commits_ms=commits)


def made_load(definition: BrokerNodeDefinition, chosen: BrokerNodeSet) -> Load:
    """Messages of 1 KB of the three domains, and distinct profiles that few of them satisfy."""
    seed, each = definition.seed, -(-chosen.sample // len(DOMAINS))
    by_domain = [
        generate_documents(
            domain.graph(), replace(domain.documents(each, seed), repeats_max=1, optional_odds=0.1)
        )
        for domain in DOMAINS.values()
    ]
    messages = list(chain.from_iterable(zip(*by_domain, strict=True)))
    wanted = chosen.profiles + chosen.behind
    rows = generate_subscriptions(
        SubscriptionParameters(
            queries=SURPLUS * wanted, subscribers=1, seed=seed, skew=0.0, distinct_share=1.0
        )
    )
    texts = list(dict.fromkeys(row.query for row in rows))
    index = Registry(threads=THREADS)
    index.add([Query(str(number), text) for number, text in enumerate(texts)])
    snapshot = index.freeze()
    found = snapshot.match(pa.array(messages, pa.binary()))
    hits = np.bincount(found.matches.values.to_numpy(), minlength=len(texts))
    total = definition.selectivity * wanted * len(messages)
    kept = selective(hits, wanted=wanted, total=total)
    chance = np.random.default_rng(seed)
    numbers = chance.permutation(kept).tolist()
    profiles = [
        Subscription(f"p{number}", "operator", texts[int(snapshot.query_ids[number])], "message")
        for number in numbers
    ]
    return Load(profiles[: chosen.profiles], profiles[chosen.profiles :], messages)
