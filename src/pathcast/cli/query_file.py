r"""Query files: one standing query a line.

A line is a query, whose id is then the number of the line (from 1), or an id, a tab and a query.
Blank lines and lines that begin with `#` are skipped, but counted. The file is UTF-8; `-` is not
accepted, because messages may come from standard input.

Example:
    >>> lines = ["# prices", "/quote[price > 300]", "", "news\t/nitf//tobject"]
    >>> for found in query_lines(lines):
    ...     print(found.line, found.query.id, found.query.text)
    2 2 /quote[price > 300]
    4 news /nitf//tobject
"""

from __future__ import annotations

from collections import Counter
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

    Raises:
        ConfigError: The file is not UTF-8.
        OSError: The file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            return list(query_lines(file))
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: {error.reason} at byte {error.start}"
        raise ConfigError("config.invalid", key=str(path), reason=reason) from error


def register_lines(register: Register, lines: Iterable[QueryLine]) -> list[QueryFault]:
    """Registers the queries of a file.

    Args:
        register: What takes them.
        lines: The queries.

    Returns:
        The refused ones, in the order of their lines.
    """
    # A report names ids; so that an id names one line, repeated ids go into calls of their own.
    rounds: list[dict[str, QueryLine]] = []
    seen: Counter[str] = Counter()
    for found in lines:
        turn = seen[found.query.id]
        seen[found.query.id] += 1
        if turn == len(rounds):
            rounds.append({})
        rounds[turn][found.query.id] = found
    faults: list[QueryFault] = []
    for by_id in rounds:
        report = register([found.query for found in by_id.values()])
        faults += [QueryFault(by_id[name].line, error) for name, error in report.rejected.items()]
    return sorted(faults, key=lambda fault: fault.line)
