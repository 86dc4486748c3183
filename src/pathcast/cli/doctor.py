"""`pathcast doctor`: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from typing import Annotated, Final, NamedTuple

import typer
from rich.text import Text

from pathcast.boundary import ENGINE_VARIABLE, is_plain_nfa
from pathcast.cli.console import answers, extra, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.errors import PathcastError
from pathcast.model import Query
from pathcast.registry import Registry


class Diagnosis(NamedTuple):
    """One thing that was looked at.

    Attributes:
        part: What it is.
        found: Its version or state; None if it is missing or does not work.
        remark: What it is for, or how to get it.
        is_needed: Whether nothing can run without it.
    """

    part: str
    found: str | None
    remark: str
    is_needed: bool = False


BASE: Final = "base"
"""The group of libraries that every installation has."""

PURPOSES: Final = {
    BASE: "every use",
    "kernel": "the native engine",
    "workload": "DTDs: schemas, generators",
    "xsd": "XML Schema files",
    "spark": "pipelines (pathcast run)",
    "delta": "Delta tables as sources and outputs",
    "net": "brokers, peers and the registration service",
    "postgresql": "the profile database on PostgreSQL",
    "saxon": "the oracle of the tests",
}
"""Extra of the distribution -> its use."""


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON for each part, for programs.")
    ] = False,
) -> ExitCode:
    """Say what is installed, what is missing and how to get it.

    Ends with 3 if the native kernel cannot answer.
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


def _findings() -> Iterator[Diagnosis]:
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    yield Diagnosis(
        "pathcast", distribution_version("pathcast") or "not installed, run in place", ""
    )
    yield Diagnosis("python", platform.python_version(), system)
    yield _kernel()
    yield _java()
    with suppress(metadata.PackageNotFoundError):
        yield from _libraries(metadata.requires("pathcast") or ())


def _libraries(requirements: Iterable[str]) -> Iterator[Diagnosis]:
    """Every library that the distribution or one of its extras names, with the use it has.

    Args:
        requirements: In the notation of the distribution's metadata.
    """
    extras: dict[str, list[str]] = {}
    for requirement in requirements:
        name = re.match(r"[\w.-]+", requirement)
        extra_ = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        group = extra_[1] if extra_ else BASE
        if name is not None and group in PURPOSES:
            extras.setdefault(name[0], []).append(group)
    for library, groups in extras.items():
        found = distribution_version(library)
        source = "pathcast" if BASE in groups else f"'pathcast[{groups[0]}]'"
        purpose = "; ".join(PURPOSES[group] for group in groups)
        remark = purpose if found else f"{purpose}: pip install {source}"
        yield Diagnosis(library, found, remark, is_needed=BASE in groups)


def _kernel() -> Diagnosis:
    """Whether the native engine answers a small question rightly."""
    part = "engine kernel"
    try:
        registry = Registry(threads=1)
        registry.add(Query("q", "/a//b[@c = 1]"))
        result = registry.match(b"<a><b c='1'/></a>")
        if list(result.query_ids) != ["q"]:
            return Diagnosis(part, None, "gives a wrong answer; install it again", True)
        remark = f"its plain NFA, by {ENGINE_VARIABLE}" if is_plain_nfa() else ""
    except PathcastError as error:
        return Diagnosis(part, None, str(error), True)
    return Diagnosis(part, distribution_version("pathcast-kernel") or "works", remark, True)


def _java() -> Diagnosis:
    """The Java that pipelines would use."""
    try:
        with extra("spark", "Java"):
            from pathcast.spark import find_java
        java = find_java()
    except PathcastError as error:
        return Diagnosis("java", None, str(error))
    return Diagnosis("java", str(java.version), f"{java.origin}: {java.home}")


def _print(findings: Iterable[Diagnosis]) -> None:
    out = answers()
    for finding in findings:
        is_there = finding.found is not None
        mark = "ok     " if is_there else "MISSING"
        style = "green" if is_there else ("bold red" if finding.is_needed else "yellow")
        line = f" {finding.part:<18} {finding.found or '-':<12} {finding.remark}"
        out.print(Text.assemble((mark, style), line.rstrip()))
