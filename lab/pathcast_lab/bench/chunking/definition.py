"""Figures of the paper on chunking as data.

A definition lies in `lab/benchmarks/chunking-figures.toml` of a clone.

Example:
    >>> ChunkingFigure(name="A3", title="t", kind="sizes", sets={}).block
    'chunking_A3'

It runs nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from pathcast_lab.bench.definitions import SetName, Strict
from pathcast_lab.bench.figures.defined import PaperDefinition, PaperFigure

ChunkingKind: TypeAlias = Literal["distribution", "times", "sizes", "schemes", "memory"]
"""Queries by chunk; times of chunked and whole evaluation; sizes of chunks; greedy and optimal;
memory of workers."""

ScenarioName: TypeAlias = Literal["university", "ejb"]


class ChunkingSet(Strict):
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


class ChunkingFigure(PaperFigure):
    """One figure or table.

    Attributes:
        kind: What is measured.
        scenario: Of the paper.
        evaluators: "lxml" evaluates one XPath after another, "kernel" all together.
        paper: Numbers from the paper's text; `x` is the number of chunks, `series` the measure.
    """

    room = "chunking"

    kind: ChunkingKind
    scenario: ScenarioName = "university"
    evaluators: tuple[Literal["lxml", "kernel"], ...] = ("lxml",)
    sets: dict[SetName, ChunkingSet]


class ChunkingFigures(PaperDefinition[ChunkingFigure]):
    """`lab/benchmarks/chunking-figures.toml`."""
