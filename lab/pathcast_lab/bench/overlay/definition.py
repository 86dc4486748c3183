"""Figures of networks of brokers as data.

A definition lies in `lab/benchmarks/overlay-figures.toml` of a clone. It runs nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from pathcast_lab.bench.definitions import SetName, Strict
from pathcast_lab.bench.figures.defined import PaperDefinition, PaperFigure
from pathcast_lab.bench.overlay.topology import Shape

OverlayKind: TypeAlias = Literal[
    "budgets",
    "forms",
    "state",
    "projection",
    "restructuring",
    "links",
    "pareto",
    "changes",
    "in_force",
    "host_brokers",
    "capacity",
    "hops",
]
Where: TypeAlias = Literal["random", "location", "content"]
"""At the broker where the user lives, who lives anywhere, or in a region; or by content."""

OverlayWorkload: TypeAlias = Literal["payments", "alerts", "nitf", "quotes"]


class OverlaySet(Strict):
    """What one set runs of a figure.

    Attributes:
        profiles: Profiles of all brokers together; for `state`, of each broker; where there are
            `populations`, those that distinct profiles and their frequencies are drawn by.
        messages: Messages that are counted.
        sample: Messages that levels are chosen by; none of those that are counted.
        links: Links that the profiles lie behind; for `projection` and `restructuring`, leaves of
            the tree of brokers, a power of 2.
        budgets: Table bytes in per cent of those of the exact table.
        brokers: Sizes of networks.
        hops: Links that a message passes, ascending.
        megabits: Widths of links, a second.
        delay_ms: On each link, beside its width.
        sizes: Bytes of messages, about.
        populations: Profiles of all brokers together, equal ones among them.
        repeats: Places on the axis of Figure 9.
        changes: Changes that are measured.
    """

    profiles: int = Field(ge=1)
    messages: int = Field(default=1, ge=1)
    sample: int = Field(default=1, ge=1)
    links: int = Field(default=8, ge=1)
    budgets: tuple[float, ...] = ()
    brokers: tuple[int, ...] = ()
    hops: tuple[int, ...] = ()
    megabits: tuple[int, ...] = ()
    delay_ms: float = Field(default=0.1, ge=0)
    sizes: tuple[int, ...] = ()
    populations: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()
    changes: int = Field(default=1, ge=1)


class OverlayFigure(PaperFigure):
    """One figure.

    Attributes:
        kind: What is measured.
        workloads: Where profiles and messages come from.
        trees: Shapes of trees of brokers, with the children that a broker may have.
        hosts: How hosts are chosen.
    """

    room = "overlay"

    kind: OverlayKind
    workloads: tuple[OverlayWorkload, ...] = ()
    trees: tuple[tuple[Shape, int], ...] = ()
    hosts: tuple[Where, ...] = ()
    sets: dict[SetName, OverlaySet]

    @property
    def file_stem(self) -> str:
        """Of its files."""
        return f"overlay-{self.name}"


class OverlayFigures(PaperDefinition[OverlayFigure]):
    """`lab/benchmarks/overlay-figures.toml`."""
