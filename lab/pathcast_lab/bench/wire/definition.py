"""Figures on wire formats as data.

A definition lies in `lab/benchmarks/wire-figures.toml` of a clone.

Example:
    >>> WireFigure(name="links", title="t", kind="links", sets={}).block
    'wire_links'

It runs nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pathcast_lab.bench.definitions import SetName

WireKind: TypeAlias = Literal["size", "delay", "links", "connections"]
"""Bytes on the wire; time to write and read; both on a link; TCP connections kept or not."""


class _Strict(BaseModel):
    """Unknown keys are mistakes, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WireSet(_Strict):
    """What one set runs of a figure.

    Attributes:
        messages: Of each complexity.
        rounds: How often times are taken.
    """

    messages: int = Field(ge=1)
    rounds: int = Field(default=5, ge=1)


class WireFigure(_Strict):
    """One figure.

    Attributes:
        name: "7", or "links" for what is not the paper's.
        title: Caption.
        kind: What is measured.
        sets: Sizes.
        bandwidths: Of links, in Mb/s (kind "links").
    """

    name: str
    title: str
    kind: WireKind
    sets: dict[SetName, WireSet]
    bandwidths: tuple[float, ...] = ()

    @property
    def caption(self) -> str:
        """`Figure 7`, `Links`."""
        return self.name.capitalize() if self.name.isalpha() else f"Figure {self.name}"

    @property
    def file_stem(self) -> str:
        """Of its files: `wire-figure-7`."""
        return "wire-" + self.caption.lower().replace(" ", "-")

    @property
    def block(self) -> str:
        """Of its place in the page: `wire_7`."""
        return f"wire_{self.name}"


class WireFigures(_Strict):
    """`lab/benchmarks/wire-figures.toml`.

    Attributes:
        title: One line.
        bound: What the figures should come near, and why.
        seed: Of messages.
        dtd: In the shared data.
        stand_in: Domain of Pathcast where that is not at hand.
        complexities: DocDepth and MaxRepeats of the messages.
        figures: The figures.
    """

    title: str
    bound: str
    seed: int
    dtd: str
    stand_in: str
    complexities: tuple[tuple[int, int], ...]
    figures: tuple[WireFigure, ...]

    @model_validator(mode="after")
    def _has_no_name_twice(self) -> WireFigures:
        names = [figure.name for figure in self.figures]
        if len(set(names)) != len(names):
            raise ValueError("a figure is defined twice")
        return self
