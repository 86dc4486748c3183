"""The snapshot: an immutable set of standing queries with a version.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> report = index.register([Query("q1", "/a/b[@c=1]")])
    >>> snapshot = index.freeze()
    >>> list(snapshot.query_ids), snapshot.query("q1").text
    (['q1'], '/a/b[@c=1]')
    >>> snapshot.explain("q1", b'<a><b c="2"/></a>').is_match
    False

It is safe to use from many threads and, once saved, from many processes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pathcast.engine.explanation import Explanation
from pathcast.engine.matcher import Matcher, matcher_options
from pathcast.engine.rows import usable_ids, usable_query
from pathcast.kernel import KernelSnapshot, open_snapshot
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, MessageBytes, Query
from pathcast.query import CompiledQuery, Population, compile_query


class Snapshot:
    """Standing queries that do not change. Made by `QueryIndex.freeze` or `Snapshot.open`.

    Pickled, a snapshot is the bytes of its file, also where it was opened from a file: another
    machine need not have that file. It opens there as a file does, and fails with
    `KernelMissingError` where the kernel is not installed. A copy is the snapshot
    itself, since nothing changes it.

    Cost of pickling: the file is written to the temporary directory and read, about 100 B a query;
    of unpickling: the same, and `open`; the bytes stay mapped, without a name, for as long as the
    snapshot is used. Processes of one machine that `open` a file that was saved share its pages,
    which unpickled snapshots do not.
    """

    def __init__(
        self,
        backend: KernelSnapshot,
    ) -> None:
        self._backend = backend

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Snapshot:
        """Opens a snapshot file.

        Args:
            path: The file.

        Raises:
            SnapshotFormatError: The file is foreign, of another version or damaged.
            OSError: The file cannot be read.
        """
        with errors_named(path):
            return cls(open_snapshot(Path(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the snapshot file; a file of that name is replaced at once or not at all.

        Raises:
            OSError: The file cannot be written.
        """
        with errors_named(path):
            self._backend.save(Path(path))

    @property
    def version(self) -> str:
        """Hexadecimal digest of queries and limits."""
        return self._backend.version

    @property
    def limits(self) -> Limits:
        """The limits of one message, as they were when frozen; the file has them."""
        return self._backend.limits

    @property
    def query_ids(self) -> Sequence[str]:
        """Number of a query -> its id."""
        return self._backend.query_ids

    def query(self, query_id: str) -> Query:
        """The query of an id, as it was registered.

        Raises:
            UnknownQueryError: No query has this id.
        """
        return self._backend.query(*usable_ids([query_id]))

    def plan(self, query_id: str) -> CompiledQuery:
        """The compiled form of a query: its indexed paths, its expression, its cost and why.

        Raises:
            UnknownQueryError: No query has this id.

        Example:
            >>> from pathcast import Query, QueryIndex
            >>> index = QueryIndex()
            >>> report = index.register([Query("q1", "/a[b]")])
            >>> plan = index.freeze().plan("q1")
            >>> plan.texts, plan.expression, plan.cost.value
            (['/a/b'], None, 'indexed')
        """
        return plan_of(self.query(query_id))

    def population(self) -> Population:
        """Describe the queries as columns: where their paths end, what they compare there.

        Cost: about 1 µs a distinct query.

        Example:
            >>> from pathcast import Query, QueryIndex
            >>> index = QueryIndex()
            >>> report = index.register([Query("q1", "/a[@b = 1]"), Query("q2", "/a[@b = 2]/c")])
            >>> sorted(map(str, index.freeze().population().places))
            ['/a', '/a/@b', '/a/c']
        """
        return self._backend.population()

    def matcher(
        self,
        *,
        threads: int | None = None,
        limits: Limits | None = None,
        cache_bytes_max: int = CACHE_BYTES_MAX,
    ) -> Matcher:
        """A matcher over these queries.

        Args:
            threads: Threads of one batch call; None for all processors.
            limits: What one message may cost; None for those of the index it was frozen from,
                which the file keeps.
            cache_bytes_max: Bytes that compiled label paths may take.

        Raises:
            ConfigError: A value cannot be used.
        """
        options = matcher_options(limits or self.limits, threads, cache_bytes_max)
        return Matcher(self._backend.matcher(options), options)

    def explain(
        self, query: str | Query, message: MessageBytes | str, *, limits: Limits | None = None
    ) -> Explanation:
        """Why a message satisfies a query, or at which step and condition it first fails.

        Args:
            query: Id of a query, which is asked among the others; or any query, registered or not,
                with the prefixes it uses, which is asked alone.
            message: The message; a refusal by the door is explained, not raised.
            limits: What the message may cost; None as for `matcher`.

        Raises:
            UnknownQueryError: No query has this id.
            QuerySyntaxError: A query that is not registered cannot be read.
            UnusableRowError: It has a field that is not what it has to be.
        """
        asked = self.query(query) if isinstance(query, str) else usable_query(query)
        options = matcher_options(limits or self.limits, 1, CACHE_BYTES_MAX)
        queries = self._backend if isinstance(query, str) else None
        from pathcast.engine.explain import explain_query  # takes as long to import as the engine

        return explain_query(asked, message, options, queries)

    def __copy__(self) -> Snapshot:
        return self

    def __deepcopy__(self, memo: object) -> Snapshot:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        with TemporaryDirectory() as folder:
            file = Path(folder, "pickled.snapshot")
            self.save(file)
            return _unpickled, (file.read_bytes(),)

    def __len__(self) -> int:
        return len(self._backend)

    def __repr__(self) -> str:
        return f"Snapshot({len(self)} queries, version={self.version!r})"


@contextmanager
def errors_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the system inside name this file, and no other that is made on the way.

    Args:
        path: As the caller knows it.

    Raises:
        OSError: With `errno` and `filename`.

    Example:
        >>> with errors_named("q.snapshot"):
        ...     raise OSError(2, "not found (os error 2)")
        Traceback (most recent call last):
        ...
        FileNotFoundError: [Errno 2] No such file or directory: 'q.snapshot'
    """
    try:
        yield
    except OSError as error:
        # Libraries that map files say something else of a folder.
        code = errno.EISDIR if Path(path).is_dir() else error.errno
        if code is None:
            raise
        raise OSError(code, os.strerror(code), os.fspath(path)) from error


def _unpickled(content: bytes) -> Snapshot:
    with TemporaryDirectory() as folder:
        file = Path(folder, "unpickled.snapshot")
        file.write_bytes(content)
        return Snapshot.open(file)


def plan_of(query: Query) -> CompiledQuery:
    """The plan of a query; it follows from the text, so that nothing has to be kept for it."""
    return compile_query(query.text, query.namespaces)
