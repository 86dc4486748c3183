"""Figures of the automaton on a ring in docs: tables, plots, statements, between marks.

The marks are those of the other figures (`bench.figures.page`), with names such as `dht_3`.

Example:
    >>> dht_table(DhtFigure(name="3", title="t", kind="methods", sets={}), [])
    ''
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast_lab.bench.dht.definition import DhtFigure
from pathcast_lab.bench.dht.loads import BY_RANK
from pathcast_lab.bench.dht.statements import judge
from pathcast_lab.bench.figures.page import FigurePage, places_table
from pathcast_lab.bench.figures.point import Value

_UNITS: Final = {"%": " %", "x": "x", "MB": " MB"}


def dht_table(figure: DhtFigure, values: Sequence[Value]) -> str:
    """The values of a figure as a Markdown table; curves by rank are in its plot only."""
    del figure
    return places_table([value for value in values if value.measure != BY_RANK], _UNITS)


PAGE: Final = FigurePage[DhtFigure](
    run=lambda figure: "dht_run",
    table=dht_table,
    judge=lambda figure, found: judge(figure.name, found),
)
