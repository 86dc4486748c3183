"""`pathcast-lab bench figures` and its like: the papers' figures and tables, measured again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from pathcast.cli.console import answers, say, say_error
from pathcast.cli.exits import ExitCode
from pathcast_lab.bench.definitions import SetName, default_directory, read_definition
from pathcast_lab.bench.figures.output import Output, read_run, run_directory
from pathcast_lab.bench.figures.run import PaperFigures, Request, chosen_names
from pathcast_lab.bench.figures.verdicts import statements_table
from pathcast_lab.bench.machine import describe_machine


def run_paper_figures(
    name: str,
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
        name: One of `PAPERS`.
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
    paper = PAPERS[name]()
    directory = definitions or default_directory()
    definition = read_definition(directory, name, paper.definition)
    if earlier is not None:
        return _written(paper, page, earlier, definition)
    chosen = chosen_names(names, [figure.name for figure in definition.figures])
    started, before = datetime.now(UTC), describe_machine()
    place = run_directory(out or directory / "records", set_name, started, name)
    output: Output[Any] = Output(place, paper.draw)
    load = before["load"]
    say(f"figures {', '.join(chosen)}; set {set_name}, {before['cpu']}, load {load and load[0]}")
    outcomes: list[Any] = []

    def tell(text: str) -> None:
        say(f"[{(datetime.now(UTC) - started).seconds:4d} s] {text}")

    try:
        paper.run(
            Request(
                definition=definition,
                names=chosen,
                set_name=set_name,
                work=work or directory / ".work",
                outcomes=outcomes,
                keep=output.keep,
                say=tell,
            )
        )
    finally:
        # What was measured before an interruption is kept, drawn and recorded.
        output.finish(
            outcomes,
            set_name=set_name,
            command=sys.argv[1:],
            started=started,
            before=before,
        )
        _print(paper, outcomes)
        say(f"plots, CSV and record: {output.directory}")
    if page is not None:
        _written(paper, page, output.directory, definition)
    return ExitCode.REFUSED if any(outcome.failure for outcome in outcomes) else ExitCode.OK


def _print(paper: PaperFigures, outcomes: Sequence[Any]) -> None:
    out = answers()
    for outcome in outcomes:
        figure = outcome.figure
        out.print(f"{figure.caption}: {figure.title} ({outcome.workload})")
        if outcome.values:
            out.print(paper.page.table(figure, outcome.values))
            if verdicts := paper.page.judge(figure, outcome.values):
                out.print(statements_table(verdicts))
        for check in outcome.checks:
            out.print(f"checked {check}")
        for note in outcome.notes:
            out.print(f"note: {note}")
        out.print()
        if outcome.failure is not None:
            say_error(outcome.failure)


def _written(paper: PaperFigures, page: Path | None, run: Path, definition: Any) -> ExitCode:
    record, values = read_run(run)
    if page is not None:
        names = paper.page.write(page, run, record, values, definition.figures)
        say(f"{page}: wrote {', '.join(names)}")
    return ExitCode.OK


def _from_room(room: str) -> Callable[[], PaperFigures]:
    """The figures of a room of `pathcast_lab.bench` that has, of each of these, its own.

    They are `definition.RoomFigures`, `run.run_room_figures`, `plot.draw_room` and `page.PAGE`,
    with the name of the room for `room`.

    Args:
        room: Its name, such as "wire".
    """

    def read() -> PaperFigures:
        definition, run, plot, page = (
            import_module(f"pathcast_lab.bench.{room}.{name}")
            for name in ("definition", "run", "plot", "page")
        )
        run_figures = getattr(run, f"run_{room}_figures")

        def run_all(ask: Request) -> None:
            run_figures(ask.definition, ask.names, ask.set_name, ask.outcomes, ask.keep, ask.say)

        return PaperFigures(
            definition=getattr(definition, f"{room.capitalize()}Figures"),
            run=run_all,
            draw=getattr(plot, f"draw_{room}"),
            page=page.PAGE,
        )

    return read


def _of(module: str) -> Callable[[], PaperFigures]:
    """The `PAPER` of a module of `pathcast_lab.bench`, which is imported when it is asked for."""
    return lambda: cast(PaperFigures, import_module(f"pathcast_lab.bench.{module}").PAPER)


PAPERS: Final[Mapping[str, Callable[[], PaperFigures]]] = {
    "figures": _of("figures.filtering"),
    "broker-figures": _of("broker.run"),
    "placement-figures": _of("placement.run"),
    "chunking-figures": _of("chunking.run"),
    "wire-figures": _from_room("wire"),
    "overlay-figures": _of("overlay.run"),
    "dht-figures": _from_room("dht"),
    "deployments": _of("deployments.run"),
}
"""Benchmark -> what it runs; each imports its own code only."""
