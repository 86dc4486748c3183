"""Figures of placement as data: what each measures, at which sizes.

A definition lies in `lab/benchmarks/placement-figures.toml` of a clone.

Example:
    >>> PatternParameters(queries=1_000_000).partitions
    200

It runs nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from pathcast_lab.bench.definitions import SetName, Strict
from pathcast_lab.bench.figures.defined import PaperDefinition, PaperFigure

PlacementKind: TypeAlias = Literal["patterns", "realistic", "visits"]
"""Partitions by repetition of patterns; placements of a domain's queries; partition by
partition."""

PlacementDomain: TypeAlias = Literal["payments", "alerts"]


class PatternParameters(Strict):
    """The queries of Figure 9.

    Attributes:
        queries: How many.
        partitions: K.
        patterns: M.
        of_each: Patterns that a query has.
        values: V, values of a pattern, each as likely in queries and in messages.
    """

    queries: int = Field(ge=1)
    partitions: int = Field(default=200, ge=1)
    patterns: int = Field(default=10, ge=1)
    of_each: int = Field(default=2, ge=1)
    values: int = Field(default=200, ge=1)


class PlacementVariant(Strict):
    """A curve family of Figure 9.

    Attributes:
        label: As the figure names it.
        values: V.
        is_each: Whether every pattern is repeated so often, or all of them together.
    """

    label: str
    values: int = Field(ge=1)
    is_each: bool = True


class PlacementSet(Strict):
    """What one set runs of a figure.

    Attributes:
        queries: Standing queries.
        messages: Messages at each point.
        repeats: Places on the axis of Figure 9.
        variants: How many of the curve families.
        partitions: K of realistic queries and of visits.
        rounds: Alternations with the yardstick.
    """

    queries: int = Field(ge=1)
    messages: int = Field(ge=1)
    repeats: tuple[int, ...] = ()
    variants: int = Field(default=1, ge=1)
    partitions: int = Field(default=50, ge=1)
    rounds: int = Field(default=3, ge=1)


class PlacementFigure(PaperFigure):
    """One figure.

    Attributes:
        kind: What is measured.
        domains: Of realistic queries and visits.
        variants: Curve families of Figure 9, the paper's first.
    """

    room = "placement"

    kind: PlacementKind
    domains: tuple[PlacementDomain, ...] = ()
    variants: tuple[PlacementVariant, ...] = ()
    sets: dict[SetName, PlacementSet]

    @property
    def file_stem(self) -> str:
        """Of its files: `placement-9`."""
        return f"placement-{self.name}"

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> PlacementFigure:
        if self.kind == "patterns" and not self.variants:
            raise ValueError(f"{self.caption}: variants are missing")
        if self.kind != "patterns" and not self.domains:
            raise ValueError(f"{self.caption}: domains are missing")
        return self


class PlacementFigures(PaperDefinition[PlacementFigure]):
    """`lab/benchmarks/placement-figures.toml`."""
