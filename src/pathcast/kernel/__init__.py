"""The native kernel, entered through `pathcast.boundary`.

It hands batches over and turns what comes back into Pathcast's own values and errors.

It decides nothing about queries or messages.

Example:
    >>> from pathcast.model import Query
    >>> index = KernelIndex(Limits())
    >>> index.register([Query("q1", "/a/b"), Query("q2", "/a[")], {}).accepted
    1
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pathcast.boundary import native, native_errors
from pathcast.errors import (
    SnapshotFormatError,
    UnknownQueryError,
    error_for,
)
from pathcast.kernel.dissemination import error_of_query
from pathcast.kernel.matcher import KernelIds, KernelMatcher
from pathcast.kernel.streams import PushParser as PushParser
from pathcast.kernel.streams import StreamSummary as StreamSummary
from pathcast.kernel.streams import check_stream as check_stream
from pathcast.limits import Limits
from pathcast.message import MessageTree, TreeDetails
from pathcast.model import MatcherOptions, Query, RegisterReport
from pathcast.query import Population, population_of_columns
from pathcast.query.refusals import Refusal


def version() -> str:
    """Name and version of the engine."""
    return f"pathcast-kernel {native.__version__}"


def open_snapshot(path: Path) -> KernelSnapshot:
    """Opens a snapshot file by memory map.

    A file that holds queries only (the reference engine writes such) has its automaton rebuilt.

    Cost: one pass over the file for its checksum; a tenth of a microsecond a query.

    Raises:
        SnapshotFormatError: The file is foreign, of another version or damaged.
        OSError: The file cannot be read.
    """
    with native_errors(path):
        snapshot = native.Snapshot.open(path)
    if snapshot is None:
        return _rebuilt(path)
    return KernelSnapshot(snapshot, Limits.from_json(snapshot.limits, str(path)))


def _rebuilt(path: Path) -> KernelSnapshot:
    with native_errors(path):
        limits, rows = native.read_queries(path)
    queries = [Query(*row) for row in rows]
    index = KernelIndex(Limits.from_json(limits, str(path)))
    for query_id, error in index.register(queries, {}).rejected.items():
        reason = f"its query {query_id} is refused ({error})"
        raise SnapshotFormatError("snapshot.damaged", path=str(path), reason=reason)
    return index.freeze()


def parse(message: bytes, limits: Limits, encoding: str | None = None) -> MessageTree:
    """The tree of one message, with details.

    Raises:
        MessageError: The door refused the message.
    """
    with native_errors():
        answer = native.parse(message, limits, encoding)
    if isinstance(answer, tuple):
        code, params = answer
        raise error_for(code, params)
    return MessageTree(**{**answer, "details": TreeDetails(**answer["details"])})


class KernelIndex:
    """A set of queries that changes while messages flow."""

    def __init__(self, limits: Limits) -> None:
        with native_errors():
            self._index = native.Dissemination(limits, 1, 0)
        self._limits = limits

    def register(self, queries: Sequence[Query], namespaces: Mapping[str, str]) -> RegisterReport:
        """Adds queries, each whole or not at all.

        Cost: about 1 µs a query in the usual notation; some 10 µs in any other.
        """
        rows = queries if isinstance(queries, list) else list(queries)
        with native_errors():
            refused = self._index.register(rows, dict(namespaces))
        errors = {row: error_of_query(rows[row], namespaces, Refusal(*why)) for row, why in refused}
        return RegisterReport.of(rows, errors)

    def register_gates(self, texts: Sequence[str]) -> RegisterReport:
        """Adds gates: paths in canonical text, with "and" between them; the id is the text."""
        rows = [Query(text, text) for text in texts]
        with native_errors():
            refused = self._index.register_gates(list(texts))
        errors = {row: error_of_query(rows[row], {}, Refusal(*why)) for row, why in refused}
        return RegisterReport.of(rows, errors)

    def remove(self, ids: Sequence[str]) -> None:
        """Takes queries out: a bit each; what they occupy goes with the next freeze or compact."""
        wanted = list(ids)
        try:
            with native_errors():
                self._index.unsubscribe(wanted)
        except KeyError as error:
            raise UnknownQueryError("query.unknown", id=wanted[error.args[0]]) from None

    def query(self, query_id: str) -> Query:
        """The query as it was registered.

        Raises:
            UnknownQueryError: No query has this id.
        """
        with native_errors():
            found = self._index.subscription(query_id)
        if found is None:
            raise UnknownQueryError("query.unknown", id=query_id)
        _, text, _, namespaces, _, _ = found
        return Query(query_id, text, namespaces or None)

    def compact(self) -> None:
        """Rebuilds without the removed queries. Cost: about 1.5 µs a query that stays."""
        self.freeze()

    def freeze(self) -> KernelSnapshot:
        """The queries as they are now. Cost: as `compact`; nothing if nothing has changed."""
        with native_errors():
            return KernelSnapshot(self._index.freeze(), self._limits)

    def matcher(self, options: MatcherOptions) -> KernelMatcher:
        """A matcher that sees every change from its next message on."""
        return KernelMatcher(self._index, options)

    @property
    def nbytes(self) -> int:
        """Bytes that the queries registered since the last freeze occupy."""
        return self._index.memory()

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, query_id: object) -> bool:
        return isinstance(query_id, str) and query_id in self._index


class KernelSnapshot:
    """An immutable set of queries."""

    def __init__(self, snapshot: native.Snapshot, limits: Limits) -> None:
        self._snapshot = snapshot
        self._version = str(json.loads(snapshot.metadata)["version"])
        self._limits = limits

    @property
    def query_ids(self) -> Sequence[str]:
        """Number of a query -> its id, read from the file when asked for."""
        return KernelIds(self._snapshot.ids)

    @property
    def version(self) -> str:
        """Digest of the queries: equal sets of queries have equal versions."""
        return self._version

    @property
    def limits(self) -> Limits:
        """The limits of one message, as they were when the snapshot was frozen."""
        return self._limits

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self._snapshot.bytes

    def query(self, query_id: str) -> Query:
        """The query as it was registered.

        Raises:
            UnknownQueryError: No query has this id.
        """
        with native_errors():
            found = self._snapshot.query(query_id)
        if found is None:
            raise UnknownQueryError("query.unknown", id=query_id)
        _, text, namespaces = found
        return Query(query_id, text, namespaces or None)

    def population(self) -> Population:
        """Describe the queries. Cost: about 1 µs a distinct query, and a sort."""
        with native_errors():
            columns = self._snapshot.population()
        return population_of_columns(self.query_ids, columns)

    def save(self, path: Path) -> None:
        """Writes the file beside its place and renames it."""
        with native_errors(path):
            self._snapshot.save(path)

    def matcher(self, options: MatcherOptions) -> KernelMatcher:
        """A matcher over this snapshot."""
        return KernelMatcher(self._snapshot, options)

    def __len__(self) -> int:
        return len(self._snapshot)
