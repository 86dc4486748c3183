"""`pathcast lint`: what is likely wrong with the queries of a file?"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from pathcast.cli.console import answers, say, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import MESSAGES_HELP, check_standard_input, read_batches
from pathcast.cli.options import (
    Format,
    FormatOption,
    QueryOptions,
)
from pathcast.cli.queries import QueriesArgument, QuerySource, read_queries
from pathcast.errors import ConfigError, PathcastError, caret, shown
from pathcast.kernel import parse
from pathcast.limits import Limits
from pathcast.lint import (
    CODES,
    COMPARISONS_MAX,
    Finding,
    LintReport,
    Structure,
    lint,
    structure_of_sample,
)
from pathcast.message import MessageTree
from pathcast.model import Subscription
from pathcast.registry.delimited import TextPlace
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


SampleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sample",
        metavar="MESSAGES",
        help="Messages like those that will come: " + MESSAGES_HELP + " Names, paths and values of "
        "the queries are looked up in them. Repeatable.",
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
    options: QueryOptions,
    sample: SampleOption = None,
    dtd: DtdOption = None,
    root: RootOption = None,
    format_: FormatOption = Format.TEXT,
    severity: SeverityOption = Level.INFO,
    ignore: IgnoreOption = None,
    fail_on: FailOnOption = FailOn.WARNING,
    comparisons: ComparisonsOption = COMPARISONS_MAX,
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
    Of a pipeline:       pathcast lint pipeline.toml --sample messages/

    docs/lint.md shows an example of each code.
    """
    _check_codes(ignore or [])
    check_standard_input(str(queries), *(sample or ()))
    source = read_queries(queries, options)
    lines = _lines(source)
    structure = None
    if sample:
        structure = _read_sample(sample, source.limits)
    report = lint(
        [line.row for line in lines],
        refused={n: line.error for n, line in enumerate(lines) if line.error is not None},
        sample=structure,
        dtd=None if dtd is None else read_dtd(dtd),
        roots=root or (),
        namespaces=source.namespaces,
        comparisons_max=comparisons,
    )
    shown = _chosen(report, ignore or [], severity)
    if format_ is Format.JSON:
        write_json_line(_as_json(shown, source.path, lines))
    else:
        _print_text(shown, source.path, lines)
    if fail_on is FailOn.NEVER:
        return ExitCode.OK
    failing = _chosen(report, ignore or [], Level(fail_on.value))
    return ExitCode.REFUSED if failing.findings else ExitCode.OK


class _Line(NamedTuple):
    """A query that is looked at.

    Attributes:
        row: The query, of the first who takes it.
        place: Where it stands.
        error: Why it is not taken up; None where it is.
    """

    row: Subscription
    place: TextPlace
    error: PathcastError | None


def _lines(source: QuerySource) -> list[_Line]:
    """Each query once, and all that a run would reject, in the order of their places."""
    _, taken = source.take_up()
    first: dict[str, _Line] = {}
    for row, place in taken.takers.values():
        first.setdefault(row.id, _Line(row, place, None))
    lines = [*first.values(), *(_Line(each.row, each.place, each.error) for each in taken.rejected)]
    return sorted(lines, key=lambda line: (line.place.path, line.place.line))


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


def _read_sample(names: list[str], limits: Limits) -> Structure:
    """Read the structure of a sample's messages; note and skip refused messages."""
    notes: list[str] = []

    def trees() -> Iterator[MessageTree]:
        for batch in read_batches(names, limits):
            for message in batch:
                try:
                    if isinstance(message.content, PathcastError):
                        raise message.content
                    yield parse(message.content, limits)
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


def _as_json(report: LintReport, path: str, lines: list[_Line]) -> dict[str, object]:
    """The report with files, lines and columns."""
    findings = []
    for finding in report.findings:
        file, line, column = _place(finding, path, lines)
        related = [lines[number].place for number in finding.related]
        findings.append(
            {
                **finding.to_dict(),
                "file": shown(file),
                "line": line,
                "column": column,
                "related_files": [shown(place.path) for place in related],
                "related_lines": [place.line for place in related],
            }
        )
    return {**report.to_dict(), "file": shown(path), "findings": findings}


def _print_text(report: LintReport, path: str, lines: list[_Line]) -> None:
    out = answers()
    for finding in report.findings:
        place = ":".join(str(part) for part in _place(finding, path, lines) if part is not None)
        out.print(f"{place}: {finding.code} {finding.severity}: {finding.message}")
        text = "" if finding.query is None else lines[finding.query].row.query
        if text and not finding.related:
            out.print(caret(text, finding.offset))
        if finding.fix is not None:
            out.print(f"  {finding.fix}")
        if finding.replacement is not None:
            change = finding.replacement
            after = text[change.offset + change.length :]
            out.print(f"  -> {text[: change.offset]}{change.text}{after}")
    for note in report.notes:
        say(note)
    counts = ", ".join(f"{severity}: {count}" for severity, count in report.counts().items())
    say(f"queries: {report.queries}, {counts}")


def _place(finding: Finding, path: str, lines: list[_Line]) -> tuple[str, int | None, int | None]:
    """File, line and column, from 1; the last two only as far as there are any."""
    if finding.query is None:
        return path, None, None
    found = lines[finding.query]
    return found.place.path, *found.place.at(found.row.query, finding.offset)
