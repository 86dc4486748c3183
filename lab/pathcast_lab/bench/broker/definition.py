"""Figures of the broker paper as data: what each sweeps, at which sizes, what the paper says.

A definition lies in `lab/benchmarks/broker-figures.toml` of a clone.

Example:
    >>> BrokerParameters(queries=10).flwr("book", seed=1).binding_depth_max
    3

It runs nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from pathcast_lab.bench.definitions import SetName, Strict
from pathcast_lab.bench.figures.defined import FigureSet, PaperDefinition, SweptFigure
from pathcast_lab.workload import BROKER_WORKLOADS, FlwrParameters

BrokerKind: TypeAlias = Literal["mqpt", "operators", "plans"]
"""MQPT of algorithms; what each operator costs; how many operators of each kind plans have."""

BrokerAxis: TypeAlias = Literal["queries", "predicates", "returns"]
"""The parameter that a figure varies."""

BrokerWorkloadName: TypeAlias = Literal["bib", "book"]

OptimisationName: TypeAlias = Literal["NoOpt", "Opt(q)", "Opt(q+dtd)"]


class BrokerAlgorithm(Enum):
    """What is measured in Python; the value is its name in figures."""

    F = "PathSharing-F"
    FW = "PathSharing-FW"
    FWR = "PathSharing-FWR"
    SHARED = "plan sharing"
    """FWR with shared post-processing."""


class BrokerParameters(Strict):
    """Workload parameters of one point (002, Table 1).

    Attributes:
        queries: Q.
        predicates: PP.
        returns: RP.
        relative_depth_max: D2.
        descendant: DSProb.
        values_max: MaxValue, of queries and messages.
    """

    queries: int = Field(default=1, ge=1)
    predicates: int = Field(default=1, ge=0)
    returns: int = Field(default=2, ge=1)
    relative_depth_max: int = Field(default=2, ge=1)
    descendant: Annotated[float, Field(ge=0, le=1)] = 0.2
    values_max: int = Field(default=10, ge=1)

    def changed(self, x: BrokerAxis, value: int) -> BrokerParameters:
        """The same at another point of an axis."""
        return self.model_copy(update={x: value})

    def flwr(self, workload: str, seed: int) -> FlwrParameters:
        """What the generator is given; D1 is the workload's."""
        return FlwrParameters(
            count=self.queries,
            seed=seed,
            binding_depth_max=BROKER_WORKLOADS[workload].binding_depth_max,
            predicates=self.predicates,
            returns=self.returns,
            relative_depth_max=self.relative_depth_max,
            descendant=self.descendant,
            values_max=self.values_max,
        )


class BrokerSet(FigureSet):
    """What one set runs of a figure; attributes as in `FigureSet`, places being whole numbers."""

    reference: tuple[int, ...] = ()
    kernel: tuple[int, ...] = ()
    messages: int = Field(default=10, ge=1)


class BrokerFigure(SweptFigure):
    """One figure or table.

    Attributes:
        kind: What is measured.
        x: Parameter that varies.
        workload: DTD.
        algorithms: Reference algorithms.
        optimisations: Of each of them; every one is a curve family.
        base: Parameters that do not vary.
    """

    room = "broker"

    kind: BrokerKind = "mqpt"
    x: BrokerAxis = "queries"
    workload: BrokerWorkloadName = "bib"
    algorithms: tuple[BrokerAlgorithm, ...] = ()
    optimisations: tuple[OptimisationName, ...] = ("Opt(q+dtd)",)
    base: BrokerParameters = BrokerParameters()
    sets: dict[SetName, BrokerSet]


class BrokerFigures(PaperDefinition[BrokerFigure]):
    """`lab/benchmarks/broker-figures.toml`.

    Attributes:
        check_queries: Queries whose results of the kernel are compared with the reference's.
        check_messages: Messages on which they are.
        point_seconds_max: A point ends early, with fewer rounds, after about this time; a series
            ends when one pass of a point took longer.
    """

    check_queries: dict[SetName, int]
    check_messages: int = Field(ge=1)
    point_seconds_max: dict[SetName, float]
