"""`pathcast bench chunking-figures`: the figures of the paper on chunking, measured again."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from pathcast.bench.chunking.definition import ChunkingFigures
from pathcast.bench.chunking.page import chunking_table, write_chunking_page
from pathcast.bench.chunking.plot import draw_chunking
from pathcast.bench.chunking.run import ChunkingOutcome, run_chunking_figures
from pathcast.bench.chunking.statements import judge
from pathcast.bench.definitions import SetName, default_directory, read_definition
from pathcast.bench.figures.output import Output, read_run, run_directory
from pathcast.bench.figures.run import chosen_names
from pathcast.bench.figures.verdicts import statements_table
from pathcast.bench.machine import describe_machine
from pathcast.cli.console import answers, say, say_error
from pathcast.cli.exits import ExitCode


def chunking_figures(
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
    definition = read_definition(directory, "chunking-figures", ChunkingFigures)
    if earlier is not None:
        return _written(page, earlier, definition)
    chosen = chosen_names(names, [figure.name for figure in definition.figures])
    started, before = datetime.now(UTC), describe_machine()
    place = run_directory(out or directory / "records", set_name, started, "chunking-figures")
    output = Output(place, draw_chunking)
    outcomes: list[ChunkingOutcome] = []

    def tell(text: str) -> None:
        say(f"[{(datetime.now(UTC) - started).seconds:4d} s] {text}")

    try:
        run_chunking_figures(definition, chosen, set_name, outcomes, output.keep, tell)
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


def _print(outcomes: list[ChunkingOutcome]) -> None:
    out = answers()
    for outcome in outcomes:
        figure = outcome.figure
        out.print(f"{figure.caption}: {figure.title} ({outcome.workload})")
        if outcome.values:
            out.print(chunking_table(figure, outcome.values))
            if verdicts := judge(figure.name, outcome.values):
                out.print(statements_table(verdicts))
        for check in outcome.checks:
            out.print(f"checked {check}")
        out.print()
        if outcome.failure is not None:
            say_error(outcome.failure)


def _written(page: Path | None, run: Path, definition: ChunkingFigures) -> ExitCode:
    record, values = read_run(run)
    if page is not None:
        names = write_chunking_page(page, run, record, values, definition)
        say(f"{page}: wrote {', '.join(names)}")
    return ExitCode.OK
