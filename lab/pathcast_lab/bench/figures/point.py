"""What is measured at one point of a figure, as rows of one shape.

Example:
    >>> point = Place("11", "", "yfilter", 1000.0, 1000)
    >>> point.value("mqpt", "us", Spread(12.0, 11.0, 14.0)).spread.median
    12.0

Rows are long, one for each value, so that every figure and table has the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pathcast_lab.bench.timing import Spread

KERNEL: Final = "kernel"
"""The series of the kernel on messages that it has seen."""

FIRST_PASS: Final = "kernel, first pass"
"""The series of a kernel's matcher that has seen nothing."""

COLUMNS: Final = (
    "figure",
    "variant",
    "series",
    "x",
    "queries",
    "measure",
    "unit",
    "median",
    "least",
    "most",
)
"""Of the CSV."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value.

    Attributes:
        figure: Name of the figure.
        variant: Of its curve family; empty where there is one only.
        series: Algorithm, or what else the row of a table is of.
        x: Place on the figure's axis.
        queries: Q.
        measure: What it is.
        unit: Its unit.
        spread: It, over rounds.
    """

    figure: str
    variant: str
    series: str
    x: float
    queries: int
    measure: str
    unit: str
    spread: Spread

    def row(self) -> tuple[str | int | float, ...]:
        """As a row of the CSV."""
        s = self.spread
        return (
            self.figure,
            self.variant,
            self.series,
            self.x,
            self.queries,
            self.measure,
            self.unit,
            *(float(f"{one:.6g}") for one in (s.median, s.least, s.most)),
        )

    @classmethod
    def of_row(cls, row: dict[str, str]) -> Value:
        """Back from a row of the CSV."""
        return cls(
            row["figure"],
            row["variant"],
            row["series"],
            float(row["x"]),
            int(row["queries"]),
            row["measure"],
            row["unit"],
            Spread(float(row["median"]), float(row["least"]), float(row["most"])),
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where values belong; attributes as in `Value`."""

    figure: str
    variant: str
    series: str
    x: float
    queries: int

    def value(self, measure: str, unit: str, spread: Spread | float) -> Value:
        """A value at this place."""
        if not isinstance(spread, Spread):
            spread = Spread(spread, spread, spread)
        return Value(
            self.figure, self.variant, self.series, self.x, self.queries, measure, unit, spread
        )

    def __str__(self) -> str:
        family = f" {self.variant}" if self.variant else ""
        return f"{self.figure}{family} {self.series} x={self.x:g} Q={self.queries:,}"
