"""Deployments as data.

A definition lies in `lab/benchmarks/deployments.toml` of a clone. It runs nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from pathcast_lab.bench.definitions import SetName, Strict
from pathcast_lab.bench.figures.defined import PaperDefinition, PaperFigure

DeploymentKind: TypeAlias = Literal["one", "spark", "brokers", "ring"]
DomainName: TypeAlias = Literal["alerts", "news", "payments"]


class DeploymentSet(Strict):
    """What one set runs.

    Attributes:
        subscriptions: Distinct queries, the same everywhere.
        distinct: Distinct messages; they are published in turn.
        messages: Deployment -> messages that are published as fast as they are taken.
        single: Messages that are published one by one, for the latency.
        batches: Micro-batches of Spark.
        brokers: Broker processes, in a ring with a short cut.
        peers: Peer processes.
    """

    subscriptions: int = Field(ge=10)
    distinct: int = Field(ge=1)
    messages: dict[DeploymentKind, int]
    single: int = Field(ge=1)
    batches: int = Field(ge=1)
    brokers: int = Field(ge=3)
    peers: int = Field(ge=4)


class Deployment(Strict):
    """A way to run the engine.

    Attributes:
        name: Heading of its column.
        kind: What is run.
        node_dies: What happens when a node dies.
        is_for: What it is for.
    """

    name: str
    kind: DeploymentKind
    node_dies: str
    is_for: str


class DeploymentTable(PaperFigure):
    """The table.

    Attributes:
        domain: Of queries and messages.
        depth_max: Most steps of a query.
        share_max: Of the messages, that a query may match.
        cores: Threads of one process, and of Spark.
        batch: Messages that are published into brokers with one call.
        under_way: Messages that peers have under way at a time.
        deployments: Its columns.
    """

    domain: DomainName
    depth_max: int = Field(ge=1)
    share_max: float = Field(gt=0, le=1)
    cores: int = Field(ge=1)
    batch: int = Field(ge=1)
    under_way: int = Field(ge=1)
    deployments: tuple[Deployment, ...]
    sets: dict[SetName, DeploymentSet]


class DeploymentFigures(PaperDefinition[DeploymentTable]):
    """`lab/benchmarks/deployments.toml`."""
