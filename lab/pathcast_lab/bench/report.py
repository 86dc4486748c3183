"""The table of a benchmark, for a terminal or a pipe.

Example:
    >>> from pathcast_lab.bench.measures import Measure
    >>> from pathcast_lab.bench.timing import Spread
    >>> spread = Spread(0.25, 0.2, 0.3)
    >>> cells(Measure("door", "news", "by lxml", "x lxml", spread, aim="<= 0.35", is_met=True))
    ('news', 'by lxml', '0.25 x lxml', '0.20 .. 0.30', '<= 0.35', 'met')

It decides nothing; verdicts come with the figures.
"""

from __future__ import annotations

from rich.table import Table

from pathcast.cli.columns import number
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.run import Outcome

COLUMNS = ("case", "measure", "median", "spread", "aim", "")


def cells(measure: Measure) -> tuple[str, str, str, str, str, str]:
    """One figure as a row of text."""
    spread = measure.spread
    extremes = f"{number(spread.least)} .. {number(spread.most)}"
    verdict = {None: "", True: "met", False: "MISSED"}[measure.is_met]
    return (
        measure.case,
        measure.name,
        f"{number(spread.median)} {measure.unit}",
        "" if spread.least == spread.most else extremes,
        measure.aim or "",
        verdict,
    )


def table(outcome: Outcome) -> Table:
    """All figures, a block for each case."""
    made = Table(title=f"{outcome.name}: {outcome.title}", title_justify="left")
    for column in COLUMNS:
        made.add_column(
            column, justify="right" if column in ("median", "spread", "aim") else "left"
        )
    case = None
    for measure in outcome.measures:
        if case not in (None, measure.case):
            made.add_section()
        row = cells(measure)
        style = {None: None, True: "green", False: "bold red"}[measure.is_met]
        made.add_row("" if measure.case == case else row[0], *row[1:], style=style)
        case = measure.case
    return made


def checked(outcome: Outcome) -> list[str]:
    """What was compared before the times were taken, a line for each case that says so."""
    checks = [(result.case, getattr(result, "checks", None)) for result in outcome.results]
    return [f"checked {case}: {found}" for case, found in checks if found is not None]


def plain(outcome: Outcome) -> str:
    """The same for a pipe: one line a figure, columns of even width."""
    rows = [COLUMNS, *map(cells, outcome.measures)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    lines = [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([f"{outcome.name}: {outcome.title}", *lines])
