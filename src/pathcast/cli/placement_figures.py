"""`pathcast bench placement-figures`: Figure 9 of the paper on dissemination, and placements."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from pathcast.bench.definitions import SetName, default_directory, read_definition
from pathcast.bench.figures.output import Output, read_run, run_directory
from pathcast.bench.figures.run import chosen_names
from pathcast.bench.figures.verdicts import statements_table
from pathcast.bench.machine import describe_machine
from pathcast.bench.placement.definition import PlacementFigures
from pathcast.bench.placement.page import placement_table, write_placement_page
from pathcast.bench.placement.plot import draw_placement
from pathcast.bench.placement.run import PlacementOutcome, run_placement_figures
from pathcast.bench.placement.statements import judge
from pathcast.cli.console import answers, say, say_error
from pathcast.cli.exits import ExitCode


def placement_figures(
    set_name: SetName,
    *,
    names: str | None,
    out: Path | None,
    definitions: Path | None,
    page: Path | None,
    earlier: Path | None,
) -> ExitCode:
    """Runs figures, and writes plots, CSV and a record; or writes a page from an earlier run.

    Args:
        set_name: Which sizes.
        names: Figures, separated by commas; None for all.
        out: Where the directory of the run is made.
        definitions: Where the definitions lie.
        page: A page whose blocks are written.
        earlier: Directory of a run to take instead of running.

    Raises:
        ConfigError: There is no such figure, page or run.
    """
    directory = definitions or default_directory()
    definition = read_definition(directory, "placement-figures", PlacementFigures)
    if earlier is not None:
        return _written(page, earlier, definition)
    chosen = chosen_names(names, [figure.name for figure in definition.figures])
    started, before = datetime.now(UTC), describe_machine()
    place = run_directory(out or directory / "records", set_name, started, "placement-figures")
    output = Output(place, draw_placement)
    load = before["load"]
    say(f"figures {', '.join(chosen)}; set {set_name}, {before['cpu']}, load {load and load[0]}")
    outcomes: list[PlacementOutcome] = []

    def tell(text: str) -> None:
        say(f"[{(datetime.now(UTC) - started).seconds:4d} s] {text}")

    try:
        run_placement_figures(definition, chosen, set_name, outcomes, output.keep, tell)
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


def _print(outcomes: list[PlacementOutcome]) -> None:
    out = answers()
    for outcome in outcomes:
        figure = outcome.figure
        out.print(f"{figure.caption}: {figure.title} ({outcome.workload})")
        if outcome.values:
            out.print(placement_table(outcome.values))
            if verdicts := judge(figure.name, outcome.values):
                out.print(statements_table(verdicts))
        for check in outcome.checks:
            out.print(f"checked {check}")
        for note in outcome.notes:
            out.print(f"note: {note}")
        out.print()
        if outcome.failure is not None:
            say_error(outcome.failure)


def _written(page: Path | None, run: Path, definition: PlacementFigures) -> ExitCode:
    record, values = read_run(run)
    if page is not None:
        names = write_placement_page(page, run, record, values, definition)
        say(f"{page}: wrote {', '.join(names)}")
    return ExitCode.OK
