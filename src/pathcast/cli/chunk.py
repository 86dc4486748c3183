"""`pathcast chunk`: messages of any size, cut by what queries ask for and answered piece by piece.

Source: Lehner and Irmert, BTW 2003, section 5: PREPTOOL (with TRANSTOOL) is `prepare`, CHUNKTOOL
`cut`, FILTERTOOL `filter`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, NamedTuple

import typer

from pathcast.chunking import (
    CHUNKS_MAX,
    REST,
    Chunking,
    CutFolder,
    FilteringScheme,
    SchemeFile,
    cut_message,
    evaluated,
    open_cut,
    open_scheme,
    path_text,
    save_scheme,
)
from pathcast.cli.console import answers, say, say_error, say_warning, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import STANDARD_INPUT, check_standard_input
from pathcast.cli.options import (
    Format,
    FormatOption,
    LimitOption,
    NamespaceOption,
    QueryOptions,
    ThreadsOption,
    ValuesOption,
    read_limits,
)
from pathcast.cli.queries import QueriesArgument, read_queries
from pathcast.errors import (
    ConfigError,
    PathcastError,
    UnreadableMessageError,
    UnsupportedQueryError,
    shown,
)
from pathcast.limits import Limits
from pathcast.query.xquery import is_xquery
from pathcast.schema import ElementPaths, read_dtd, read_xsd

UNBOUNDED: Final = 2**31 - 1
"""Bytes and elements of a chunk, where no `--limit` says otherwise."""

SchemeArgument = Annotated[
    Path,
    typer.Argument(metavar="SCHEME", exists=True, dir_okay=False, help="Written by prepare."),
]
MessagesArgument = Annotated[
    list[Path],
    typer.Argument(metavar="MESSAGE...", help="XML files or pipes; - for standard input."),
]


def prepare(
    queries: QueriesArgument,
    out: Annotated[Path, typer.Option("--out", metavar="SCHEME", help="The file to write.")],
    chunks: Annotated[
        int, typer.Option("--chunks", min=1, max=CHUNKS_MAX, help="Chunks at most.")
    ] = 4,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            exists=True,
            dir_okay=False,
            help="DTD (.dtd) or XML Schema (.xsd) of the messages: // and * become the paths that "
            "they can mean, so that fewer queries need the whole message.",
            show_default=False,
        ),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            "--root",
            metavar="NAME",
            help="Root element, as the schema writes it. Default: the element that stands in no "
            "other one.",
            show_default=False,
        ),
    ] = None,
    namespace: NamespaceOption = None,
    values: ValuesOption = None,
) -> ExitCode:
    """Choose chunks from queries and a schema.

    A chunk is a label path, whose elements it has with their content, and
    what the conditions of its queries look at besides. Queries that no
    chunk can answer are evaluated on the whole message.

        pathcast chunk prepare queries.txt --schema news.dtd --out news.scheme
        pathcast chunk filter news.scheme large.xml
    """
    check_standard_input(str(queries))
    source = read_queries(queries, QueryOptions(namespace, values=values))
    chunking = Chunking(chunks, None if schema is None else _paths(schema, root))
    refused = len(source.rows.rejected)
    for rejected in source.rows.rejected:
        say_error(f"{rejected.place}: {rejected.reason}")
    for row, place in zip(source.rows.rows, source.rows.places, strict=True):
        try:
            if row.steps or row.deliver != "ids" or is_xquery(row.query, row.language):
                raise UnsupportedQueryError("query.not_chunked")
            names = {**source.namespaces, **(row.namespaces or {})}
            chunking.register(row.id, row.query, names)
        except PathcastError as error:
            refused += 1
            say_error(f"{place}: {error}")
    if not len(chunking):
        say_error(f"{source.path}: no query that can be used")
        return ExitCode.REFUSED
    scheme = chunking.scheme()
    save_scheme(scheme, out)
    everywhere = len(_ids(scheme.potpourri.queries.values()))
    say(
        f"{out}: {len(chunking)} queries, {len(scheme.chunks)} chunks; "
        f"{everywhere} queries need the whole message"
    )
    return ExitCode.REFUSED if refused else ExitCode.OK


def cut(
    scheme: SchemeArgument,
    messages: MessagesArgument,
    into: Annotated[
        Path,
        typer.Option("--into", metavar="FOLDER", help="Gets a folder for each message."),
    ],
    limit: LimitOption = None,
) -> ExitCode:
    """Cut messages into files, a file a chunk.

    A message is read once, in blocks: its size does not matter. The folder
    of a message is called as its file is, and is complete when it has a
    cut.json. Prints one line of JSON a message: message, folder, bytes of
    the message and of each chunk, fault (why its chunks cannot be used:
    filter evaluates the whole message then) and error.

        pathcast chunk cut news.scheme large.xml --into chunks
        pathcast chunk filter news.scheme chunks/large.xml
    """
    check_standard_input(*map(str, messages))
    opened = open_scheme(scheme)
    limits = _limits(limit)
    names = [_folder_name(message) for message in messages]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                "config.invalid", key="MESSAGE", reason=f"two messages are called {name}"
            )
    refused = 0
    for message, name in zip(messages, names, strict=True):
        folder = into / name
        line: dict[str, object] = {"message": shown(str(message)), "folder": shown(str(folder))}
        try:
            made = cut_message(opened, message, folder, limits)
        except (PathcastError, OSError) as error:
            if isinstance(error, ConfigError):
                raise
            refused += 1
            found: dict[str, object] = {"bytes": None, "chunks": [], "fault": ""}
            write_json_line({**line, **found, "error": _told(error)})
            continue
        found = {"bytes": made.size, "chunks": made.bytes, "fault": made.fault, "error": None}
        write_json_line({**line, **found})
    return ExitCode.REFUSED if refused else ExitCode.OK


def filter_chunks(
    scheme: SchemeArgument,
    messages: Annotated[
        list[Path],
        typer.Argument(
            metavar="MESSAGE...",
            help="Folders that cut has made, or messages, which are cut on the way.",
        ),
    ],
    chunk: Annotated[
        str | None,
        typer.Option(
            "--chunk",
            metavar="NUMBER|rest",
            help="Evaluate one chunk only, from 0 on, or what needs the whole message (rest), as "
            "one of several machines does: a query holds if one of them says so.",
            show_default=False,
        ),
    ] = None,
    threads: ThreadsOption = None,
    limit: LimitOption = None,
) -> ExitCode:
    """Say which queries the messages satisfy, chunk by chunk.

    Chunks of a message are evaluated side by side, each for its queries.
    Prints what pathcast match prints: one line of JSON a message, with
    matches, undecided and error. The matches are those of the whole message.
    """
    check_standard_input(*map(str, messages))
    opened = open_scheme(scheme)
    part = _part(chunk, len(opened.scheme.chunks))
    limits = _limits(limit)
    bad = 0
    for message in messages:
        error: Exception | None = None
        matches: tuple[str, ...] = ()
        undecided: list[str] = []
        try:
            with _cut(message, opened, limits) as made:
                if made.fault:
                    say_warning(f"{message}: evaluated whole: {made.fault}")
                [answer] = evaluated(
                    [made],
                    opened,
                    limits=limits,
                    threads=threads or os.cpu_count() or 1,
                    part=part,
                )
        except (PathcastError, OSError) as caught:
            if isinstance(caught, ConfigError):
                raise
            error = caught
        else:
            matches, undecided = answer.query_ids, list(answer.undecided)
            for query_id, why in answer.undecided.items():
                say_warning(f"{message}: query {query_id}: {why}")
        bad += error is not None or bool(undecided)
        write_json_line(
            {
                "message": shown(str(message)),
                "matches": matches,
                "undecided": undecided,
                "error": None if error is None else _told(error),
            }
        )
    return ExitCode.REFUSED if bad else ExitCode.OK


def report(
    scheme: SchemeArgument,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER...",
            help="Folders that cut has made: how large the chunks are.",
            show_default=False,
        ),
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> ExitCode:
    """Show the chunks of a scheme, and how much of messages they have.

    A chunk pays if it is much smaller than the message and many queries are
    evaluated on it; queries that need the whole message gain nothing.
    """
    opened = open_scheme(scheme)
    cuts = [open_cut(folder, opened) for folder in folders or []]
    rows = list(_rows(opened.scheme, cuts))
    if format_ is Format.JSON:
        write_json_line({"chunks": [row._asdict() for row in rows], "messages": len(cuts)})
        return ExitCode.OK
    whole = sum(cut.size for cut in cuts)
    out = answers()
    for row in rows:
        size = "" if row.bytes is None else f", {row.bytes:,} bytes, {row.bytes / whole:.1%}"
        out.print(f"{row.prefix}: {row.queries} queries, {row.texts} distinct{size}")
        for need in row.filters:
            out.print(f"  and {need}")
    for cut in cuts:
        if cut.fault:
            say_warning(f"{cut.folder}: its chunks cannot be used: {cut.fault}")
    return ExitCode.OK


class _Row(NamedTuple):
    """The row of a chunk in the report.

    Attributes:
        prefix: Its label path; of the rest, words.
        filters: What it has besides.
        queries: Evaluated on it.
        texts: Distinct ones.
        bytes: What it has of all messages; None if there are none.
    """

    prefix: str
    filters: list[str]
    queries: int
    texts: int
    bytes: int | None


def _rows(scheme: FilteringScheme, cuts: list[CutFolder]) -> Iterator[_Row]:
    """A row for each chunk, and one for the queries that need the whole message."""
    for number, chunk in enumerate(scheme.chunks):
        ids, filters = _ids(chunk.queries.queries.values()), [str(need) for need in chunk.filters]
        size = sum(cut.bytes[number] for cut in cuts) if cuts else None
        yield _Row(path_text(chunk.prefix), filters, len(ids), len(chunk.queries), size)
    if scheme.potpourri:
        ids = _ids(scheme.potpourri.queries.values())
        size = sum(cut.size for cut in cuts) if cuts else None
        yield _Row("the whole message", [], len(ids), len(scheme.potpourri), size)


def _part(given: str | None, chunks: int) -> int | None:
    """The number of a chunk, or that of the rest; None for all."""
    if given is None:
        return None
    if given == "rest":
        return REST
    if given.isascii() and given.isdigit() and int(given) < chunks:
        return int(given)
    reason = f"{given!r} is not rest, or a number below {chunks}: the scheme has so many chunks"
    raise ConfigError("config.invalid", key="--chunk", reason=reason)


def _paths(schema: Path, root: str | None) -> ElementPaths:
    """The paths of a schema from its root element on."""
    names: dict[str, str] = {}
    if schema.suffix == ".xsd":
        read = read_xsd(schema)
        graph, names = read.graph, dict(read.namespaces)
    else:
        graph = read_dtd(schema)
    candidates = graph.root_candidates
    if root is None and len(candidates) != 1:
        known = ", ".join(candidates[:10]) or "none stands in no other one"
        reason = f"the schema does not say which element is the root: {known}"
        raise ConfigError("config.invalid", key="--root", reason=reason)
    return ElementPaths(graph, root=root or candidates[0], namespaces=names)


def _limits(given: list[str] | None) -> Limits:
    """The limits of a chunk; its size is what a message of any size has."""
    base = Limits(
        message_bytes_max=UNBOUNDED, elements_max=UNBOUNDED, entity_expansion_bytes_max=UNBOUNDED
    )
    return read_limits(given, base)


def _folder_name(message: Path) -> str:
    return "standard-input" if str(message) == STANDARD_INPUT else message.name


@contextmanager
def _cut(message: Path, opened: SchemeFile, limits: Limits) -> Iterator[CutFolder]:
    """A message that was cut before, or is now."""
    if message.is_dir():
        yield open_cut(message, opened)
        return
    with TemporaryDirectory(prefix="pathcast-chunks-") as folder:
        yield cut_message(opened, message, Path(folder), limits)


def _told(error: Exception) -> Mapping[str, object]:
    if isinstance(error, PathcastError):
        return error.to_dict()
    assert isinstance(error, OSError)
    reason = error.strerror or str(error)
    return UnreadableMessageError(
        "message.unreadable", path=str(error.filename), reason=reason
    ).to_dict()


def _ids(sets: Iterable[Sequence[str]]) -> set[str]:
    return {each for ids in sets for each in ids}


COMMANDS: Final = {
    "prepare": prepare,
    "cut": cut,
    "filter": filter_chunks,
    "report": report,
}
"""Name -> command."""
