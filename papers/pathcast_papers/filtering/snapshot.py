"""The snapshot of the reference engine: queries that do not change, numbered in their order.

Example:
    >>> snapshot = ReferenceSnapshot([Query("q1", "/a/b")])
    >>> list(snapshot.query_ids), snapshot.query("q1").text
    (['q1'], '/a/b')

It builds its automaton from the queries; the file holds no automaton.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pathcast.errors import QuerySyntaxError, SnapshotFormatError, UnknownQueryError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.model import MatcherOptions, Query
from pathcast_papers.filtering.matcher import ReferenceMatcher
from pathcast_papers.filtering.query_table import QueryTable, Satisfied
from pathcast_papers.filtering.snapshot_file import (
    SnapshotContent,
    read_snapshot,
    version_of,
    write_snapshot,
)
from pathcast_papers.filtering.yfilter import Selection, YFilter
from pathcast_papers.language import compile_query


class ReferenceSnapshot:
    """Immutable standing queries in a YFilter.

    Args:
        queries: The queries in the order of their numbers, each with all namespaces it may use.
        limits: What a message may cost, as agreed where it was frozen.
        version: Digest of the content; computed when empty.
        selection: How value-based predicates are tried.

    Raises:
        QuerySyntaxError: A query cannot be read.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        limits: Limits | None = None,
        *,
        version: str = "",
        selection: Selection = Selection.POSTPONED,
    ) -> None:
        self._queries = tuple(queries)
        self._ids = tuple(query.id for query in queries)
        self._numbers = {query_id: number for number, query_id in enumerate(self._ids)}
        self._limits = limits or Limits()
        self._version = version or version_of(self._queries, self._limits)
        # Not changed after this loop, so threads may run it at the same time.
        self._table = QueryTable(YFilter(selection))
        for number, query in enumerate(self._queries):
            self._table.insert(compile_query(query.text, query.namespaces), number)

    @classmethod
    def open(cls, path: Path) -> ReferenceSnapshot:
        """Opens a snapshot file.

        Raises:
            SnapshotFormatError: The file is foreign, of another version or damaged.
        """
        content = read_snapshot(path)
        try:
            return cls(content.queries, content.limits, version=content.version)
        except QuerySyntaxError as error:
            raise SnapshotFormatError(
                "snapshot.damaged", path=str(path), reason=f"a query cannot be read: {error}"
            ) from error

    @property
    def query_ids(self) -> Sequence[str]:
        """Number of a query -> its id."""
        return self._ids

    @property
    def version(self) -> str:
        """Hexadecimal digest of the content."""
        return self._version

    @property
    def limits(self) -> Limits:
        """What a message may cost, as agreed where it was frozen."""
        return self._limits

    def query(self, query_id: str) -> Query:
        """The query of an id.

        Raises:
            UnknownQueryError: No query has this id.
        """
        number = self._numbers.get(query_id)
        if number is None:
            raise UnknownQueryError("query.unknown", id=query_id)
        return self._queries[number]

    def save(self, path: Path) -> None:
        """Writes the snapshot file."""
        write_snapshot(path, SnapshotContent(self._queries, self._limits, self._version))

    def matcher(self, options: MatcherOptions) -> ReferenceMatcher:
        """A matcher over this snapshot."""
        return ReferenceMatcher(self, options.limits)

    def match(
        self, trees: Sequence[MessageTree], limits: Limits
    ) -> tuple[list[Satisfied], Sequence[str]]:
        """What each message satisfies, and what the numbers stand for."""
        return [self._table.match(tree, limits) for tree in trees], self._ids

    def __len__(self) -> int:
        return len(self._queries)
