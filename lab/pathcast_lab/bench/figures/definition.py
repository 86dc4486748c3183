"""Figures as data: what each one sweeps, at which sizes, and what the paper says.

A definition lies in `lab/benchmarks/figures.toml` of a clone.

Example:
    >>> Parameters(queries=10).changed("wildcard", 0.5).wildcard
    0.5

It runs nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from pathcast_lab.bench.definitions import SetName, Strict
from pathcast_lab.bench.figures.defined import FigureSet, PaperDefinition, SweptFigure
from pathcast_papers.filtering.algorithm import Algorithm

Kind: TypeAlias = Literal["sweep", "distinct", "characteristics", "insertion", "profile"]
"""MQPT against a parameter; Table 3; Table 4; Table 5; Table 6."""

Axis: TypeAlias = Literal[
    "queries", "depth_max", "wildcard", "descendant", "predicates", "nested_paths"
]
"""The parameter that a figure varies."""

Workload: TypeAlias = Literal["nitf", "auction", "dblp"]

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class Parameters(Strict):
    """Workload parameters of one point (003, Table 2).

    Attributes:
        queries: Q.
        depth_max: D, of queries and documents.
        repeats_max: RP.
        wildcard: W.
        descendant: DS.
        predicates: P.
        nested_paths: NP.
        distinct: Whether query strings are required to be unique.
        is_derived: Queries are made of distinct ones with W = DS = 0 by replacing names by `*` and
            `/` by `//` (4.5).
    """

    queries: int = Field(default=1, ge=1)
    depth_max: int = Field(default=6, ge=1)
    repeats_max: int = Field(default=3, ge=1)
    wildcard: Share = 0.2
    descendant: Share = 0.2
    predicates: int = Field(default=0, ge=0)
    nested_paths: int = Field(default=0, ge=0)
    distinct: bool = True
    is_derived: bool = False

    def changed(self, x: Axis, value: float) -> Parameters:
        """The same at another point of an axis."""
        whole = x not in ("wildcard", "descendant")
        return self.model_copy(update={x: int(value) if whole else float(value)})


class Variant(Strict):
    """A curve family of a figure: P=1 and P=2, say.

    Attributes:
        label: As the figure names it; empty where there is only one.
        predicates: Instead of that of the figure.
        nested_paths: Likewise.
    """

    label: str = ""
    predicates: int | None = None
    nested_paths: int | None = None

    def of(self, parameters: Parameters) -> Parameters:
        """The parameters of this family."""
        update = {
            name: value
            for name in ("predicates", "nested_paths")
            if (value := getattr(self, name)) is not None
        }
        return parameters.model_copy(update=update)


class FigureDefinition(SweptFigure):
    """One figure or table on filtering.

    Attributes:
        kind: How it is measured.
        x: Parameter that varies.
        workload: DTD.
        algorithms: Reference algorithms, by name.
        base: Parameters that do not vary.
        variants: Curve families.
        view: What the plot shows on the right: the kernel, the parts of MQPT, or how many
            predicates were tried.
        same_as: Figure whose values these are; empty where it is measured for itself.
        shown: Further measures of YFilter that the page shows.
    """

    kind: Kind = "sweep"
    x: Axis = "queries"
    workload: Workload = "nitf"
    algorithms: tuple[Algorithm, ...] = ()
    base: Parameters = Parameters()
    variants: tuple[Variant, ...] = (Variant(),)
    view: Literal["kernel", "components", "tried"] = "kernel"
    same_as: str = ""
    shown: tuple[str, ...] = ()
    sets: dict[SetName, FigureSet]


class FiguresDefinition(PaperDefinition[FigureDefinition]):
    """`lab/benchmarks/figures.toml`.

    Attributes:
        dtds: Workload -> place of its DTD in the shared data.
        stand_ins: Workload -> Pathcast's own domain that is taken where the DTD is not at hand.
        check_messages: Messages that the plain NFA answers as well as the kernel.
        check_queries: Queries that the reference engine answers too, on `check_sample` messages.
        check_sample: See `check_queries`.
        point_seconds_max: A point ends early, with fewer rounds, after about this time; a series
            ends when one pass of a point took longer.
    """

    dtds: dict[Workload, str]
    stand_ins: dict[Workload, str]
    check_messages: int = Field(ge=1)
    check_queries: int = Field(ge=1)
    check_sample: int = Field(ge=1)
    point_seconds_max: dict[SetName, float]

    @model_validator(mode="after")
    def _copies_what_is_there(self) -> FiguresDefinition:
        names = [figure.name for figure in self.figures]
        if not {figure.same_as for figure in self.figures} <= {"", *names}:
            raise ValueError("same_as names a figure that is not defined")
        return self
