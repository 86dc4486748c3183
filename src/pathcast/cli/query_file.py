r"""Query files: one standing query a line.

A line is a query, whose id is then the number of the line (from 1), or an id, a tab and a query.
Blank lines and lines that begin with `#` are skipped, but counted. The file is UTF-8, and a line
that is not is a query that is refused, alone; `-` is not accepted, because messages may come from
standard input.

Example:
    >>> lines = ["# prices", "/quote[price > 300]", "", "news\t/nitf//tobject"]
    >>> for found in query_lines(lines):
    ...     print(found.line, found.query.id, found.query.text)
    2 2 /quote[price > 300]
    4 news /nitf//tobject
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from pathcast.errors import ConfigError, PathcastError
from pathcast.model import Query, RegisterReport


class QueryLine(NamedTuple):
    """A query and where it stands.

    Attributes:
        line: Number of the line, from 1.
        query: The query.
        column: Where the query's text begins in the line, in characters from 1.
    """

    line: int
    query: Query
    column: int = 1


class QueryFault(NamedTuple):
    """A query that was refused.

    Attributes:
        line: Number of its line, from 1.
        error: Why it was refused.
    """

    line: int
    error: PathcastError


class Register(Protocol):
    """What takes queries: `QueryIndex.register`."""

    def __call__(self, queries: Iterable[Query]) -> RegisterReport:
        """Registers queries and reports on each that is refused."""


def query_lines(lines: Iterable[str]) -> Iterator[QueryLine]:
    """The queries of a file's lines, in order."""
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        query_id, tab, query = text.partition("\t")
        # What is left after the query's text is stripped stands at the end of the line.
        column = len(line.rstrip()) - len((query if tab else text).lstrip()) + 1
        if tab:
            yield QueryLine(number, Query(query_id.strip(), query.strip()), column)
        else:
            yield QueryLine(number, Query(str(number), text), column)


def read_query_file(path: Path) -> list[QueryLine]:
    """The queries of a file, in order.

    Bytes that are not UTF-8 become lone surrogates, which no index takes in an id or a query: the
    line is refused where it is registered, and the others are not.

    Raises:
        ConfigError: The file is UTF-16.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            reason = "is UTF-16; save it as UTF-8"
            raise ConfigError("config.invalid", key=str(path), reason=reason)
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        return list(query_lines(file))


def register_lines(register: Register, lines: Iterable[QueryLine]) -> list[QueryFault]:
    """Registers the queries of a file.

    Args:
        register: What takes them.
        lines: The queries.

    Returns:
        The refused ones, in the order of their lines.
    """
    found = list(lines)
    report = register([each.query for each in found])
    return [QueryFault(found[place].line, error) for place, error in report.errors.items()]
