"""`pathcast lint`: what is likely wrong with the queries of a file?"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.console import answers, say, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import message_names, read_batches
from pathcast.cli.options import (
    EngineOption,
    Format,
    FormatOption,
    LimitOption,
    NamespaceOption,
    engine_name,
    read_limits,
    read_namespaces,
)
from pathcast.cli.query_file import QueryLine, read_query_file
from pathcast.engine import select_engine
from pathcast.errors import ConfigError, PathcastError, caret, shown
from pathcast.limits import Limits
from pathcast.lint import CODES, Finding, LintReport, Structure, lint, structure_of_sample
from pathcast.message import MessageTree
from pathcast.model import EngineName
from pathcast.query.covering import COMPARISONS_MAX
from pathcast.schema import read_dtd


class Level(StrEnum):
    """Choices of `--severity`."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class FailOn(StrEnum):
    """Choices of `--fail-on`."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    NEVER = "never"


LINT_EPILOG = (
    "Exit codes: 0 nothing found that --fail-on asks for; 1 something found, or an input could "
    "not be read; 2 the command line cannot be used; 3 something is missing on this machine; 130 "
    "interrupted; 141 the reader of the output went away."
)


QueriesArgument = Annotated[
    Path,
    typer.Argument(
        metavar="QUERIES",
        exists=True,
        dir_okay=False,
        help="One query a line, or id<TAB>query.",
    ),
]
SampleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sample",
        metavar="DIR",
        help="Messages like those that will come: a file, or a directory with its *.xml files "
        "at any depth. Names, paths and values of the queries are looked up in them. "
        "Repeatable.",
        show_default=False,
    ),
]
DtdOption = Annotated[
    Path | None,
    typer.Option(
        "--dtd",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="The DTD of the messages: names, paths, enumerated values.",
        show_default=False,
    ),
]
RootOption = Annotated[
    list[str] | None,
    typer.Option(
        "--root",
        metavar="NAME",
        help="A root element that the DTD is used with. Repeatable. Default: the elements "
        "that stand in no other one.",
        show_default=False,
    ),
]
SeverityOption = Annotated[
    Level, typer.Option("--severity", help="Print findings of this severity and worse.")
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="CODE",
        help="Leave out findings whose code begins so: PL302, or PL3 for all about other "
        "queries. Repeatable.",
        show_default=False,
    ),
]
FailOnOption = Annotated[
    FailOn,
    typer.Option("--fail-on", help="Exit with 1 if a finding is as severe as this."),
]
ComparisonsOption = Annotated[
    int,
    typer.Option(
        "--comparisons",
        min=0,
        help="Compare so many pairs of queries at most; what is left out is counted.",
    ),
]


def lint_queries(
    queries: QueriesArgument,
    sample: SampleOption = None,
    dtd: DtdOption = None,
    root: RootOption = None,
    format_: FormatOption = Format.TEXT,
    severity: SeverityOption = Level.INFO,
    ignore: IgnoreOption = None,
    fail_on: FailOnOption = FailOn.WARNING,
    comparisons: ComparisonsOption = COMPARISONS_MAX,
    engine: EngineOption = None,
    namespace: NamespaceOption = None,
    limit: LimitOption = None,
) -> ExitCode:
    """Find what is likely wrong with queries, before a message is missed.

    Codes: PL001 cannot be registered; PL101 to PL109 names, paths and values
    that do not occur, with what may be meant (they need --sample or --dtd);
    PL201 conditions that cannot hold; PL202 and PL203 conditions that always
    do; PL301 to PL303 queries equal to or covered by others; PL401 queries
    that are evaluated for every message.

    A first look:        pathcast lint queries.txt --sample messages/
    In a build:          pathcast lint queries.txt --dtd news.dtd --severity
                         warning --ignore PL3
    For a program:       pathcast lint queries.txt --format json

    docs/lint.md shows an example of each code.
    """
    limits = read_limits(limit)
    _check_codes(ignore or [])
    lines = read_query_file(queries)
    structure = None
    if sample:
        structure = _read_sample(sample, engine_name(engine), limits)
    report = lint(
        [line.query for line in lines],
        sample=structure,
        dtd=None if dtd is None else read_dtd(dtd),
        roots=root or (),
        namespaces=read_namespaces(namespace),
        comparisons_max=comparisons,
    )
    shown = _chosen(report, ignore or [], severity)
    if format_ is Format.JSON:
        write_json_line(_as_json(shown, queries, lines))
    else:
        _print_text(shown, queries, lines)
    if fail_on is FailOn.NEVER:
        return ExitCode.OK
    failing = _chosen(report, ignore or [], Level(fail_on.value))
    return ExitCode.REFUSED if failing.findings else ExitCode.OK


def _check_codes(begins: list[str]) -> None:
    for begin in begins:
        if not any(code.startswith(begin) for code in CODES):
            raise ConfigError(
                "config.invalid", key="--ignore", reason=f"no code begins with {begin!r}"
            )


def _chosen(report: LintReport, ignored: list[str], severity: Level) -> LintReport:
    """The findings that are asked for."""
    found = tuple(
        finding
        for finding in report.findings
        if not finding.code.startswith(tuple(ignored))
        and list(Level).index(Level(finding.severity)) >= list(Level).index(severity)
    )
    return LintReport(report.queries, found, report.notes)


def _read_sample(names: list[str], engine: EngineName | None, limits: Limits) -> Structure:
    """What the messages of a sample look like; those that are refused are left out and noted."""
    _, door = select_engine(engine)
    notes: list[str] = []

    def trees() -> Iterator[MessageTree]:
        for batch in read_batches(message_names(names), bytes_max=limits.message_bytes_max):
            for message in batch:
                try:
                    if isinstance(message.content, PathcastError):
                        raise message.content
                    yield door.parse(message.content, limits)
                except PathcastError as error:
                    notes.append(f"{message.name} is left out of the sample: {error}")

    structure = structure_of_sample(trees())
    return Structure(
        structure.source,
        structure.places,
        structure.messages,
        structure.roots,
        (*structure.notes, *notes),
    )


def _as_json(report: LintReport, queries: Path, lines: list[QueryLine]) -> dict[str, object]:
    """The report with lines and columns of the file."""
    findings = []
    for finding in report.findings:
        line, column = _place(finding, lines)
        related = [lines[number].line for number in finding.related]
        findings.append(
            {**finding.to_dict(), "line": line, "column": column, "related_lines": related}
        )
    return {**report.to_dict(), "file": shown(str(queries)), "findings": findings}


def _print_text(report: LintReport, queries: Path, lines: list[QueryLine]) -> None:
    out = answers()
    for finding in report.findings:
        line, column = _place(finding, lines)
        place = str(queries) if line is None else f"{queries}:{line}:{column}"
        out.print(f"{place}: {finding.code} {finding.severity}: {finding.message}")
        if finding.query is not None and not finding.related:
            out.print(caret(lines[finding.query].query.text, finding.offset))
        if finding.fix is not None:
            out.print(f"  {finding.fix}")
        if finding.replacement is not None and finding.query is not None:
            text, change = lines[finding.query].query.text, finding.replacement
            after = text[change.offset + change.length :]
            out.print(f"  -> {text[: change.offset]}{change.text}{after}")
    for note in report.notes:
        say(note)
    counts = ", ".join(f"{severity}: {count}" for severity, count in report.counts().items())
    say(f"queries: {report.queries}, {counts}")


def _place(finding: Finding, lines: list[QueryLine]) -> tuple[int | None, int | None]:
    """Line and column in the file, from 1."""
    if finding.query is None:
        return None, None
    return lines[finding.query].place(finding.offset)
