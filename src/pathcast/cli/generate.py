"""`pathcast generate`: documents and queries by a DTD, subscriptions to the sample domains."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from pathcast.cli.console import extra, say
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError
from pathcast.workload import (
    DOMAINS,
    DocumentParameters,
    QueryParameters,
    ShapedParameters,
    domain_graph,
    generate_messages,
    generate_queries,
    generate_shaped,
    write_message_files,
    write_message_parquet,
)

if TYPE_CHECKING:
    from pathcast.schema import ElementGraph

T = TypeVar("T", DocumentParameters, QueryParameters)

DtdOption = Annotated[
    Path | None,
    typer.Option("--dtd", metavar="FILE", exists=True, dir_okay=False, help="The DTD."),
]
DomainOption = Annotated[
    str | None,
    typer.Option("--domain", help=f"A DTD of Pathcast's own: {', '.join(DOMAINS)}."),
]
RootOption = Annotated[
    str | None,
    typer.Option("--root", help="Root element. Default: the best candidate of the DTD."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="The same seed gives the same bytes.")]
DepthOption = Annotated[int, typer.Option("--depth", "-D", help="D: levels at most.")]


def _set_option(parameters: type[DocumentParameters] | type[QueryParameters]) -> Any:
    names = ", ".join(sorted(settable(parameters)))
    return typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help=f"Any other parameter: {names}. Repeatable.",
        show_default=False,
    )


def settable(parameters: type[DocumentParameters] | type[QueryParameters]) -> dict[str, type]:
    """Name -> type of the parameters that `--set` takes: numbers, truth values and words."""
    hints = typing.get_type_hints(parameters)
    simple: dict[str, type] = {}
    for field in fields(parameters):
        hint = hints[field.name]
        if isinstance(hint, types.UnionType):
            hint = next(part for part in typing.get_args(hint) if part is not types.NoneType)
        if typing.get_origin(hint) is typing.Literal:
            hint = str
        if hint in (bool, int, float, str):
            simple[field.name] = hint
    return simple


def documents(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIRECTORY|FILE.parquet",
            help="Where to write: one file a document, or all of them as rows of a Parquet file.",
        ),
    ],
    dtd: DtdOption = None,
    domain: DomainOption = None,
    count: Annotated[int, typer.Option("--count", "-n", help="Documents.")] = 200,
    seed: SeedOption = 0,
    depth: DepthOption = 6,
    root: RootOption = None,
    settings: Annotated[list[str] | None, _set_option(DocumentParameters)] = None,
) -> ExitCode:
    """Generate XML documents that follow the content models of a DTD."""
    graph = _graph(dtd, domain)
    chosen = {"count": count, "seed": seed, "depth_max": depth, "root": root}
    parameters = _parameters(DocumentParameters, chosen, domain, settings)
    write = write_message_parquet if out.suffix == ".parquet" else write_message_files
    written = write(generate_messages(graph, parameters), out)
    say(f"{written} documents in {out}")
    return ExitCode.OK


def queries(
    dtd: DtdOption = None,
    domain: DomainOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write. Default: standard output."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", "-Q", help="Q: queries.")] = 1000,
    seed: SeedOption = 0,
    depth: DepthOption = 6,
    wildcard: Annotated[float, typer.Option("--wildcard", "-W", help="W: odds of *.")] = 0.2,
    descendant: Annotated[float, typer.Option("--descendant", "-S", help="DS: odds of //.")] = 0.2,
    predicates: Annotated[
        int, typer.Option("--predicates", "-P", help="P: value predicates in each query.")
    ] = 0,
    nested_paths: Annotated[
        int, typer.Option("--nested-paths", "-N", help="NP: nested paths in each query.")
    ] = 0,
    root: RootOption = None,
    settings: Annotated[list[str] | None, _set_option(QueryParameters)] = None,
) -> ExitCode:
    """Generate standing queries by a DTD, one a line, as `pathcast match` reads them."""
    graph = _graph(dtd, domain)
    chosen = {
        "count": count,
        "seed": seed,
        "depth_max": depth,
        "wildcard": wildcard,
        "descendant": descendant,
        "predicates": predicates,
        "nested_paths": nested_paths,
        "root": root,
    }
    parameters = _parameters(QueryParameters, chosen, domain, settings)
    _write_lines(generate_queries(graph, parameters), out)
    return ExitCode.OK


def subscriptions(
    domain: Annotated[
        list[str] | None,
        typer.Option("--domain", help=f"Of {', '.join(DOMAINS)}; default: all. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.tsv", help="Where to write. Default: standard output."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", help="Subscriptions.")] = 1000,
    subscribers: Annotated[int, typer.Option("--subscribers", help="Whose they are.")] = 100,
    typed: Annotated[
        float,
        typer.Option(
            "--typed",
            help="Share of those that compare dates, lists and text without regard to case, and "
            "declare functions.",
        ),
    ] = 0.25,
    seed: SeedOption = 0,
) -> ExitCode:
    """Generate XQuery subscriptions to the sample domains, a table as `pathcast run` reads it."""
    parameters = ShapedParameters(
        queries=count,
        subscribers=subscribers,
        seed=seed,
        domains=tuple(domain or sorted(DOMAINS)),
        typed=typed,
    )
    rows = ("\t".join(row) for row in generate_shaped(parameters))
    _write_lines(chain(("subscriber\tquery_id\tquery",), rows), out)
    return ExitCode.OK


def _graph(dtd: Path | None, domain: str | None) -> ElementGraph:
    if (dtd is None) == (domain is None):
        raise ConfigError(
            "config.invalid", key="--dtd, --domain", reason="exactly one of the two is needed"
        )
    with extra("workload", "reading a DTD"):
        from pathcast.schema import read_dtd

        if dtd is not None:
            return read_dtd(dtd)
        assert domain is not None
        return domain_graph(domain)


def _parameters(
    kind: type[T], chosen: dict[str, Any], domain: str | None, settings: list[str] | None
) -> T:
    """The parameters of a command line; `--set` comes last."""
    if domain is not None:
        chosen["values"] = "plausible"
    types_by_name = settable(kind)
    for setting in settings or []:
        name, equals, text = setting.partition("=")
        if not equals or name not in types_by_name:
            known = ", ".join(sorted(types_by_name))
            raise ConfigError(
                "config.invalid",
                key="--set",
                reason=f"{setting!r} is not NAME=VALUE with one of the names {known}",
            )
        chosen[name] = _value(name, text, types_by_name[name])
    return kind(**chosen)


def _value(name: str, text: str, kind: type) -> object:
    if kind is bool and text in ("true", "false"):
        return text == "true"
    try:
        return {int: int, float: float, str: str}[kind](text)
    except (KeyError, ValueError):
        expected = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
        raise ConfigError(
            "config.invalid", key=name, reason=f"{text!r} is not {expected}"
        ) from None


def _write_lines(lines: Iterable[str], out: Path | None) -> None:
    with ExitStack() as stack:
        file = sys.stdout if out is None else stack.enter_context(out.open("w", encoding="utf-8"))
        for line in lines:
            file.write(line + "\n")


COMMANDS: Final = {
    "documents": documents,
    "queries": queries,
    "subscriptions": subscriptions,
}
"""Name -> command."""
