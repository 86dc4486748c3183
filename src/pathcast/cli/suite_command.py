"""`pathcast test`: do subscriptions deliver what their authors expect?"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated, Final
from xml.etree import ElementTree

import typer
from rich.text import Text

from pathcast.cli.console import answers, say
from pathcast.cli.exits import ExitCode
from pathcast.cli.suite import CaseOutcome, CaseResult, read_suite, run_suite

_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

TEST_EPILOG = (
    'Example of a case: [[case]] name = "cheap" '
    "query = 'for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>' "
    "message = '<bib><book><title>Sand</title><price>20</price></book></bib>' "
    "expect = '<hit><title>Sand</title></hit>' (one key a line). All keys: docs/command-line.md. "
    "Exit codes: 0 every case passed; 1 a case failed; 2 a suite cannot be used; 3 something is "
    "missing on this machine; 130 interrupted; 141 the reader of the output went away."
)


def run_suites(
    suites: Annotated[
        list[Path],
        typer.Argument(metavar="SUITE.toml...", exists=True, dir_okay=False),
    ],
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit",
            metavar="FILE",
            help="Also writes the results as JUnit XML.",
            show_default=False,
        ),
    ] = None,
) -> ExitCode:
    """Run cases of query, message and what has to be delivered.

    Results are compared as canonical XML. For a case that fails, a diff
    shows what was expected and what was delivered; where there are too few or
    too many results, what pathcast explain says of the query follows.
    """
    started = time.monotonic()
    # All are read before the first is run: a fault in the last one is told at once.
    read = [(path, read_suite(path)) for path in suites]
    results: list[CaseResult] = []
    for path, suite in read:
        found = run_suite(path, suite)
        for result in found:
            _show(result)
        results += found
    seconds = time.monotonic() - started
    failed = sum(result.outcome is CaseOutcome.FAILED for result in results)
    if junit is not None:
        _write_junit(junit, results, seconds)
    say(f"{len(results) - failed} passed, {failed} failed, in {seconds:.1f} s")
    return ExitCode.REFUSED if failed else ExitCode.OK


def _show(result: CaseResult) -> None:
    out = answers()
    is_fine = result.outcome is CaseOutcome.PASSED
    head = ("passed", "green") if is_fine else ("FAILED", "bold red")
    out.print(Text.assemble(head, f"  {result.suite}: {result.name}"))
    if not is_fine:
        out.print(Text("\n".join(f"  {line}" for line in result.reason.splitlines())))
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in result.difference:
        out.print(Text(f"    {line}", style=colours.get(line[:1], "")))
    for line in result.explanation.splitlines():
        out.print(Text(f"    {line}"))


def _xml(text: str) -> str:
    """The text, with what is no character of XML written out."""
    return _NO_XML.sub(lambda found: ascii(found[0])[1:-1], text)


def _write_junit(path: Path, results: list[CaseResult], seconds: float) -> None:
    """The results in the form that continuous integration systems read."""
    failed = sum(result.outcome is CaseOutcome.FAILED for result in results)
    root = ElementTree.Element(
        "testsuite",
        name="pathcast test",
        tests=str(len(results)),
        failures=str(failed),
        time=f"{seconds:.3f}",
    )
    for result in results:
        case = ElementTree.SubElement(
            root, "testcase", classname=_xml(str(result.suite)), name=_xml(result.name)
        )
        if result.outcome is CaseOutcome.FAILED:
            failure = ElementTree.SubElement(case, "failure", message=_xml(result.reason))
            told = [*result.difference, *result.explanation.splitlines()]
            failure.text = _xml("\n".join(told))
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
