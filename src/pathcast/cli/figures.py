"""`pathcast bench figures`: the paper's figures and tables, measured again."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from pathcast.bench.definitions import SetName, default_directory, read_definition
from pathcast.bench.figures.definition import FiguresDefinition
from pathcast.bench.figures.output import Output, read_run, run_directory
from pathcast.bench.figures.page import table, write_page
from pathcast.bench.figures.plot import draw
from pathcast.bench.figures.run import FigureOutcome, FiguresPlan, chosen_names, run_figures
from pathcast.bench.figures.statements import judge
from pathcast.bench.figures.verdicts import statements_table
from pathcast.bench.machine import describe_machine
from pathcast.cli.console import answers, say, say_error
from pathcast.cli.exits import ExitCode


def figures(
    set_name: SetName,
    *,
    names: str | None,
    out: Path | None,
    work: Path | None,
    definitions: Path | None,
    page: Path | None,
    earlier: Path | None,
) -> ExitCode:
    """Runs figures, and writes plots, CSV and a record; or writes a page from an earlier run.

    Args:
        set_name: Which sizes.
        names: Figures, separated by commas; None for all.
        out: Where the directory of the run is made.
        work: Where generated queries are kept.
        definitions: Where the definitions lie.
        page: A page whose blocks are written.
        earlier: Directory of a run to take instead of running.

    Raises:
        ConfigError: There is no such figure, page or run.
    """
    directory = definitions or default_directory()
    definition = read_definition(directory, "figures", FiguresDefinition)
    if earlier is not None:
        return _written(page, earlier, definition)
    chosen = chosen_names(names, [figure.name for figure in definition.figures])
    plan = FiguresPlan(definition, chosen, set_name, work or directory / ".work")
    started, before = datetime.now(UTC), describe_machine()
    output = Output(run_directory(out or directory / "records", set_name, started), draw)
    load = before["load"]
    say(f"figures {', '.join(chosen)}; set {set_name}, {before['cpu']}, load {load and load[0]}")
    outcomes: list[FigureOutcome] = []

    def tell(text: str) -> None:
        say(f"[{(datetime.now(UTC) - started).seconds:4d} s] {text}")

    try:
        run_figures(plan, outcomes, output.keep, tell)
    finally:
        # What was measured before an interruption is kept, drawn and recorded.
        output.finish(
            outcomes,
            set_name=set_name,
            command=sys.argv[1:],
            started=started,
            before=before,
        )
        _print(outcomes)
        say(f"plots, CSV and record: {output.directory}")
    if page is not None:
        _written(page, output.directory, definition)
    return ExitCode.REFUSED if any(outcome.failure for outcome in outcomes) else ExitCode.OK


def _print(outcomes: list[FigureOutcome]) -> None:
    out = answers()
    for outcome in outcomes:
        figure = outcome.figure
        out.print(f"{figure.caption}: {figure.title} ({outcome.workload})")
        if outcome.values:
            out.print(table(figure, outcome.values))
            if verdicts := judge(figure.name, outcome.values, figure.paper):
                out.print(statements_table(verdicts))
        for check in outcome.checks:
            out.print(f"checked {check}")
        for note in outcome.notes:
            out.print(f"note: {note}")
        out.print()
        if outcome.failure is not None:
            say_error(outcome.failure)


def _written(page: Path | None, run: Path, definition: FiguresDefinition) -> ExitCode:
    record, values = read_run(run)
    if page is not None:
        names = write_page(page, run, record, values, definition)
        say(f"{page}: wrote {', '.join(names)}")
    return ExitCode.OK
