"""The table of deployments in a page: a column each, what was measured and what was learnt.

Example:
    >>> from pathcast_lab.bench.deployments.measured import LATENCY
    >>> cell(Place("deployments", "", "one", 0, 10).value(LATENCY, "ms", 0.25))
    '0.25 ms'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.deployments.definition import DeploymentTable
from pathcast_lab.bench.figures.page import BLANK, FigurePage
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.figures.verdicts import markdown

__all__ = ["PAGE", "Place", "cell", "deployments_table"]


def deployments_table(table: DeploymentTable, values: Sequence[Value]) -> str:
    """A row for each measure, then the words of the definition."""
    shown = [
        column
        for column in table.deployments
        if any(value.series == column.name for value in values)
    ]
    by_key = {(value.series, value.measure): value for value in values}
    queries = {value.series: value.queries for value in values}
    rows = [
        ["", *(column.name for column in shown)],
        ["subscriptions", *(f"{queries[column.name]:,}" for column in shown)],
    ]
    for measure in dict.fromkeys(value.measure for value in values):
        rows.append([measure, *(cell(by_key.get((one.name, measure))) for one in shown)])
    rows.append(["a node dies", *(column.node_dies for column in shown)])
    rows.append(["for", *(column.is_for for column in shown)])
    return markdown(rows)


def cell(value: Value | None) -> str:
    """A value with its unit."""
    if value is None:
        return BLANK
    median = value.spread.median
    return f"{number(median)} {value.unit}" if value.unit else f"{median:,.0f}"


PAGE: Final = FigurePage[DeploymentTable](
    run=lambda figure: "deployments_run",
    table=deployments_table,
    judge=lambda figure, found: [],
)
