"""Broker figures in docs/figures.md: tables, plots and the paper's statements, between marks.

The marks are those of the other figures (`bench.figures.page`), with names such as `broker_7`.

Example:
    >>> broker_table(BrokerFigure.model_construct(name="7", paper=()), [])
    ''
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.broker.definition import BrokerFigure
from pathcast_lab.bench.broker.kernel_subject import KERNEL, SERIALISED
from pathcast_lab.bench.broker.statements import OPERATORS, judge
from pathcast_lab.bench.figures.page import BLANK, FigurePage, time_text
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import markdown

AXES = {"queries": "Q", "predicates": "PP", "returns": "RP"}


def broker_table(figure: BrokerFigure, values: Sequence[Value]) -> str:
    """A figure as Markdown tables: the reference algorithms, then the kernel."""
    tables = []
    reference = [value for value in values if value.series not in (KERNEL, SERIALISED)]
    kernel = [value for value in values if value.series in (KERNEL, SERIALISED)]
    if reference:
        made = _times(figure, reference) if figure.kind == "mqpt" else _measures(figure, reference)
        tables.append(markdown(made))
    if kernel:
        tables.append(markdown(_kernel(figure, kernel)))
    paper = [
        [
            f"{point.series} {point.variant}".strip(),
            f"{point.x:,g}",
            f"{number(point.value)}{'' if point.unit == '1' else ' ' + point.unit}",
            point.where,
        ]
        for point in figure.paper
    ]
    if paper:
        tables.append(markdown([["paper", AXES[figure.x], "says", "where"], *paper]))
    return "\n\n".join(tables)


def _times(figure: BrokerFigure, values: Sequence[Value]) -> list[list[str]]:
    """MQPT of every algorithm, and as a multiple of the yardstick in parentheses."""
    series = [one.value for one in figure.algorithms]
    by_key = {(v.series, v.variant, v.x, v.measure): v.spread.median for v in values}
    rows = [[AXES[figure.x], "", *series, "queries satisfied", "groups", "plans"]]
    for x in sorted({value.x for value in values}):
        for how in figure.optimisations:
            row = [f"{x:,g}", how]
            for one in series:
                mqpt = by_key.get((one, how, x, "mqpt"))
                ratio = by_key.get((one, how, x, "by lxml"), 0.0)
                row.append(BLANK if mqpt is None else f"{time_text(mqpt)} ({number(ratio)})")
            for measure in ("queries satisfied", "groups", "plans"):
                known = [by_key[key] for one in series if (key := (one, how, x, measure)) in by_key]
                row.append(number(known[-1]) if known else BLANK)
            rows.append(row)
    return rows


def _measures(figure: BrokerFigure, values: Sequence[Value]) -> list[list[str]]:
    """A profile, or the operators of plans: a row for each algorithm and optimisation."""
    order = [*OPERATORS, "total"] if figure.kind == "operators" else ["plans", "paths"]
    present = dict.fromkeys(value.measure for value in values)
    skipped = ("queries satisfied", "groups", "plans") if figure.kind == "operators" else ()
    measures = [one for one in order if one in present]
    measures += sorted(one for one in present if one not in measures and one not in skipped)
    by_key = {(v.series, v.variant, v.x, v.measure): v for v in values}
    rows = [["", "", AXES[figure.x], *measures]]
    for algorithm in figure.algorithms:
        for how in figure.optimisations:
            for x in sorted({value.x for value in values}):
                found = [by_key.get((algorithm.value, how, x, one)) for one in measures]
                if any(found):
                    rows.append([algorithm.value, how, f"{x:,g}", *map(_cell, found)])
    return rows


def _kernel(figure: BrokerFigure, values: Sequence[Value]) -> list[list[str]]:
    """The kernel: groups alone and serialised, a row for each size."""
    by_key = {(v.series, v.queries, v.x, v.measure): v for v in values}
    columns = [
        ("MQPT, groups", KERNEL, "mqpt"),
        ("by lxml", KERNEL, "by lxml"),
        ("with parsing", KERNEL, "total"),
        ("by lxml", KERNEL, "total by lxml"),
        ("serialised, with parsing", SERIALISED, "total"),
        ("by lxml", SERIALISED, "total by lxml"),
        ("output", SERIALISED, "output"),
        ("output rate", SERIALISED, "output rate"),
        ("queries satisfied", SERIALISED, "queries satisfied"),
    ]
    has_families = figure.x != "queries"
    head = ["kernel: Q", *([AXES[figure.x]] if has_families else [])]
    rows = [[*head, *(title for title, _, _ in columns)]]
    for queries, x in sorted({(value.queries, value.x) for value in values}):
        place = [f"{queries:,}", *([f"{x:,g}"] if has_families else [])]
        cells = [_cell(by_key.get((series, queries, x, one))) for _, series, one in columns]
        rows.append([*place, *cells])
    return rows


def _cell(value: Value | None) -> str:
    if value is None:
        return BLANK
    median = value.spread.median
    match value.unit:
        case "us":
            return time_text(median)
        case "B/message":
            return f"{number(median / 1e3)} KB"
        case "MB/s":
            return f"{number(median)} MB/s"
    return number(median)


PAGE: Final = FigurePage[BrokerFigure](
    run=lambda figure: "broker_run",
    table=broker_table,
    judge=lambda figure, found: judge(figure.name, found),
)
