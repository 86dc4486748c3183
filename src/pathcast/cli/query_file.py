r"""Query files: one standing query a line.

A line is a query, whose id is then the number of the line (from 1), or an id, a tab and a query.
Either may be quoted as in CSV (`delimited`). Blank lines and lines that begin with `#` are skipped,
but counted. The file is UTF-8, and a line that is not is a query that is refused, alone; `-` is not
accepted, because messages may come from standard input.

Example:
    >>> lines = ["# prices", "/quote[price > 300]", "", "news\t/nitf//tobject"]
    >>> for found in query_lines("\n".join(lines)):
    ...     print(found.line, found.query.id, found.query.text)
    2 2 /quote[price > 300]
    4 news /nitf//tobject
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from pathcast.customize.delimited import read_text, records
from pathcast.errors import ConfigError, PathcastError
from pathcast.model import Query, RegisterReport


class QueryLine(NamedTuple):
    """A query and where it stands.

    Attributes:
        line: Number of the line, from 1.
        query: The query.
        column: Where the query's text begins in the line, in characters from 1.
        is_quoted: Whether the quotes in it are doubled in the file.
        fault: Why the line has no query; None where it has.
    """

    line: int
    query: Query
    column: int = 1
    is_quoted: bool = False
    fault: PathcastError | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column in the file of a character of the query's text, counted from 0."""
        before = self.query.text[:offset]
        start = before.rfind("\n") + 1
        doubled = before.count('"', start) if self.is_quoted else 0
        column = (1 if start else self.column) + len(before) - start + doubled
        return self.line + before.count("\n"), column


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


def query_lines(text: str) -> Iterator[QueryLine]:
    """The queries of a file's text, in order."""
    for record in records(text, fields_max=2):
        if not record.text.strip() or record.text.lstrip().startswith("#"):
            continue
        told = record.fields[-1]
        begin = record.quoted.get(len(record.fields) - 1, len(record.text) - len(told))
        column = begin + len(told) - len(told.lstrip()) + 1
        query_id = record.fields[0].strip() if len(record.fields) == 2 else ""
        query = Query(query_id or str(record.line), told.strip())
        fault = record.fault
        if fault is None and not query.text:
            fault = "there is no query"
        yield QueryLine(
            record.line,
            query,
            column,
            is_quoted=len(record.fields) - 1 in record.quoted,
            fault=None if fault is None else _fault(query.id, fault),
        )


def _fault(query_id: str, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=query_id, reason=reason)


def read_query_file(path: Path) -> list[QueryLine]:
    """The queries of a file, in order.

    Bytes that are not UTF-8 become lone surrogates, which no index takes in an id or a query: the
    line is refused where it is registered, and the others are not.

    Raises:
        ConfigError: The file is UTF-16.
        OSError: The file cannot be read.
    """
    return list(query_lines(read_text(path, keep_bytes=True)))


def register_lines(register: Register, lines: Iterable[QueryLine]) -> list[QueryFault]:
    """Registers the queries of a file.

    Args:
        register: What takes them.
        lines: The queries.

    Returns:
        The refused ones, in the order of their lines.
    """
    found = list(lines)
    faults = [QueryFault(each.line, each.fault) for each in found if each.fault is not None]
    fine = [each for each in found if each.fault is None]
    report = register([each.query for each in fine])
    faults += [QueryFault(fine[place].line, error) for place, error in report.errors.items()]
    return sorted(faults, key=lambda fault: fault.line)
