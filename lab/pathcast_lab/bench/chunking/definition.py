"""Figures of the paper on chunking as data.

A definition lies in `lab/benchmarks/chunking-figures.toml` of a clone.

Example:
    >>> ChunkingFigure(name="A3", title="t", kind="sizes", sets={}).block
    'chunking_A3'

It runs nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.definition import PaperPoint

ChunkingKind: TypeAlias = Literal["distribution", "times", "sizes", "schemes", "memory"]
"""Queries by chunk; times of chunked and whole evaluation; sizes of chunks; greedy and optimal;
memory of workers."""

ScenarioName: TypeAlias = Literal["university", "ejb"]


class _Strict(BaseModel):
    """Unknown keys are mistakes, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ChunkingSet(_Strict):
    """What one set runs of a figure.

    Attributes:
        queries: Q, one family each.
        chunks: Degrees of the scheme.
        rounds: How often times are taken.
        copies: How many times the content of the message's root is in it, where memory is measured.
    """

    queries: tuple[int, ...]
    chunks: tuple[int, ...]
    rounds: int = Field(default=1, ge=1)
    copies: int = Field(default=1, ge=1)


class ChunkingFigure(_Strict):
    """One figure or table.

    Attributes:
        name: "10", or "A1" for a table of the appendix, "greedy" for what is not the paper's.
        title: Caption.
        kind: What is measured.
        scenario: Of the paper.
        evaluators: "lxml" evaluates one XPath after another, "kernel" all together.
        sets: Sizes.
        paper: Numbers from the paper's text; `x` is the number of chunks, `series` the measure.
    """

    name: str
    title: str
    kind: ChunkingKind
    scenario: ScenarioName = "university"
    evaluators: tuple[Literal["lxml", "kernel"], ...] = ("lxml",)
    sets: dict[SetName, ChunkingSet]
    paper: tuple[PaperPoint, ...] = ()

    @property
    def caption(self) -> str:
        """`Figure 11`, `Table A3`."""
        if self.name.isalpha():
            return self.name.capitalize()
        return f"Table {self.name}" if self.name.startswith("A") else f"Figure {self.name}"

    @property
    def file_stem(self) -> str:
        """Of its files: `chunking-figure-11`."""
        return "chunking-" + self.caption.lower().replace(" ", "-")

    @property
    def block(self) -> str:
        """Of its place in the page: `chunking_11`."""
        return f"chunking_{self.name}"


class ChunkingFigures(_Strict):
    """`lab/benchmarks/chunking-figures.toml`.

    Attributes:
        title: One line.
        bound: What the figures should come near, and why.
        seed: Of queries and messages.
        figures: The figures.
    """

    title: str
    bound: str
    seed: int
    figures: tuple[ChunkingFigure, ...]

    @model_validator(mode="after")
    def _has_no_name_twice(self) -> ChunkingFigures:
        names = [figure.name for figure in self.figures]
        if len(set(names)) != len(names):
            raise ValueError("a figure is defined twice")
        return self
