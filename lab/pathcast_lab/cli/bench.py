"""`pathcast-lab bench`: what the engine costs, beside lxml's bare parse."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathcast.cli.console import answers, extra, say, say_error
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError

if TYPE_CHECKING:
    from pathcast_lab.bench.machine import Machine
    from pathcast_lab.bench.run import BenchmarkName, Outcome, Plan


FIGURES = frozenset(
    (
        "figures",
        "broker-figures",
        "placement-figures",
        "chunking-figures",
        "overlay-figures",
        "wire-figures",
        "dht-figures",
        "deployments",
    )
)
"""What is run alone, and has sizes and workloads of its own."""


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BENCHMARK]...",
            help="filter, door, records, compression, registration, threads, conditions, mixed, "
            "adversarial, customise, pipeline, hop, broker-node, restart or capacity. Default: all "
            "of them. Or, alone, figures, broker-figures, placement-figures, chunking-figures, "
            "overlay-figures, wire-figures or dht-figures: the figures and tables of the papers; "
            "or deployments: one load in each.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few seconds: whether it runs.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Up to a million queries.")] = False,
    workload: Annotated[
        str | None,
        typer.Option(
            help="nitf (its DTD is found through PATHCAST_SHARED_DATA), news, payments or alerts. "
            "Default: nitf where it is found, else news.",
            show_default=False,
        ),
    ] = None,
    dtd: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="A DTD to use instead."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Linear queries to use instead of generated ones, one a line; .gz is read.",
        ),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            exists=True,
            file_okay=False,
            help="Directory of *.xml to use instead of generated messages.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="Q,Q,...",
            help="Numbers of queries of filter, mixed and adversarial, such as 10k,500k,1m.",
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of the same three.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Where the record and the plot go. Default: records/ beside the definitions.",
            show_default=False,
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Where generated queries are kept. Default: .work/ beside the definitions.",
            show_default=False,
        ),
    ] = None,
    definitions: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Where the definitions lie. Default: benchmarks/ of the clone.",
            show_default=False,
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="figures and the like: only these, such as 11,12,T3 (T for a table).",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The same: write tables and plots into this page, such as docs/figures.md.",
            show_default=False,
        ),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIRECTORY",
            help="The same, with --page: take this earlier run instead of a new one.",
            show_default=False,
        ),
    ] = None,
) -> ExitCode:
    """Measure the engine, each time as a ratio to lxml's bare parse of the same messages.

    Matches are compared with the plain NFA and the reference engine first; if they differ, no time
    is reported and the exit code is 1. A missed aim is no failure.
    """
    _require()
    with extra("bench", "pathcast-lab bench"):
        from pathcast_lab.bench.definitions import (
            FilterDefinition,
            SetName,
            default_directory,
            read_definition,
        )
        from pathcast_lab.bench.inputs import open_source
        from pathcast_lab.bench.machine import describe_machine
        from pathcast_lab.bench.run import BENCHMARKS, Plan
    if quick and full:
        raise _refused("--quick, --full", "only one of the two can be given")
    set_name: SetName = "quick" if quick else "full" if full else "short"
    if names and set(names) & FIGURES:
        others = {
            "--workload": workload,
            "--dtd": dtd,
            "--queries": queries,
            "--documents": documents,
            "--sizes": sizes,
            "--rounds": rounds,
        }
        _check_alone(names, others, earlier, page)
        from pathcast_lab.cli.figures import run_paper_figures

        return run_paper_figures(
            names[0],
            set_name,
            names=figure,
            out=out,
            work=work,
            definitions=definitions,
            page=page,
            earlier=earlier,
        )
    if figure is not None or page is not None or earlier is not None:
        raise _refused(
            "--figure, --page, --from", "they belong to pathcast-lab bench figures and its like"
        )
    directory = definitions or default_directory()
    depths = read_definition(directory, "filter", FilterDefinition).depth_max
    source = open_source(
        workload,
        dtd=dtd,
        query_file=queries,
        message_directory=documents,
        work=work or directory / ".work",
        depth_max=depths,
    )
    plan = Plan(
        source=source,
        definitions=directory,
        set_name=set_name,
        names=_names(names, BENCHMARKS),
        is_named=bool(names),
        sizes=None if sizes is None else read_sizes(sizes),
        rounds=rounds,
    )
    started, before = datetime.now(UTC), describe_machine()
    load = before["load"]
    say(f"workload {source.name}, set {set_name}, {before['cpu']}, load {load and load[0]}")
    outcomes: list[Outcome] = []
    try:
        _run(plan, outcomes)
    finally:
        # What was measured before an interruption is kept.
        if outcomes:
            _write(plan, outcomes, out or directory / "records", started, before)
    return ExitCode.REFUSED if any(outcome.failure for outcome in outcomes) else ExitCode.OK


def read_sizes(text: str) -> tuple[int, ...]:
    """Numbers with k for a thousand and m for a million.

    Raises:
        ConfigError: It is something else.

    Example:
        >>> read_sizes("500,10k,1m")
        (500, 10000, 1000000)
    """
    units = {"k": 1_000, "m": 1_000_000}
    sizes: list[int] = []
    for part in text.lower().replace("_", "").split(","):
        digits, unit = (part[:-1], units[part[-1]]) if part[-1:] in units else (part, 1)
        if not (digits.isascii() and digits.isdigit() and int(digits)):
            raise _refused("--sizes", f"{part!r} is no number from 1 on, such as 500 or 10k")
        sizes.append(int(digits) * unit)
    return tuple(sizes)


def _check_alone(
    names: list[str], others: Mapping[str, object], earlier: Path | None, page: Path | None
) -> None:
    """Says what does not go together with `figures`."""
    if len(names) > 1:
        raise _refused("benchmark", "figures are run alone, not with other benchmarks")
    for option, value in others.items():
        if value is not None:
            raise _refused(option, "the figures have workloads and sizes of their own")
    if earlier is not None and page is None:
        raise _refused("--from", "needs --page, the page to write")


def _require() -> None:
    """Says what is missing before anything is measured, not after."""
    with extra("bench", "pathcast-lab bench"):
        for module in ("lxml.etree", "matplotlib"):
            importlib.import_module(module)


def _names(names: list[str] | None, known: tuple[BenchmarkName, ...]) -> tuple[BenchmarkName, ...]:
    """The benchmarks that were named, in the order in which they run."""
    for name in names or []:
        if name not in known:
            raise _refused("benchmark", f"{name!r} is none of {', '.join(known)}")
    return tuple(name for name in known if not names or name in names)


def _run(plan: Plan, outcomes: list[Outcome]) -> None:
    """Runs each benchmark, and prints and keeps what it gave as soon as it is done."""
    from pathcast_lab.bench.report import checked, plain, table
    from pathcast_lab.bench.run import run_plan

    out = answers()
    for outcome in run_plan(plan, say):
        outcomes.append(outcome)
        if outcome.measures:
            out.print(table(outcome) if out.is_terminal else plain(outcome))
            for line in checked(outcome):
                out.print(line)
            out.print()
        if outcome.failure is not None:
            say_error(outcome.failure)
        if outcome.skipped is not None:
            say(f"{outcome.name} is SKIPPED: {outcome.skipped}")


def _write(
    plan: Plan, outcomes: list[Outcome], directory: Path, started: datetime, before: Machine
) -> None:
    """The record, and its plot where there is something to draw."""
    from pathcast_lab.bench.plot import draw
    from pathcast_lab.bench.record import make_record, write_record

    record = make_record(plan, outcomes, command=sys.argv[1:], started=started, before=before)
    path = write_record(record, directory)
    plot = path.with_suffix(".png")
    drawn = f" and {plot.name}" if draw(record, plot) else ""
    say(f"record: {path}{drawn}")


def _refused(key: str, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=key, reason=reason)
