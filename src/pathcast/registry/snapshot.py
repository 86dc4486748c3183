"""The snapshot of a registry: queries and subscriptions that do not change, with a version.

Example:
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pathcast import Query, Registry, Snapshot, Subscription
    >>> registry = Registry()
    >>> report = registry.add(Query("q1", "/a/b[@c=1]"))
    >>> report = registry.add(Subscription("s1", "ann", "for $b in //b return <d>{$b/@c}</d>"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "registry.snapshot"
    ...     registry.freeze().save(path)
    ...     opened = Snapshot.open(path)
    >>> opened.version == registry.version, opened.query("q1").text
    (True, '/a/b[@c=1]')
    >>> sorted(opened.match(b'<a><b c="1"/></a>').query_ids)
    ['q1', 's1']
    >>> [found.fragment for found in Registry.of(opened).deliver(b'<a><b c="1"/></a>')]
    [None, b'<d c="1"></d>']

It is safe to use from many threads and, once saved, from many processes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import overload

from pathcast.boundary import native
from pathcast.engine.matcher import matched, matcher_options
from pathcast.engine.messages import Messages
from pathcast.engine.results import BatchResult, MatchResult
from pathcast.engine.rows import usable_ids
from pathcast.kernel import KernelSnapshot, open_snapshot
from pathcast.kernel.matcher import KernelMatcher
from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, MatcherOptions, MessageBytes, Query, Subscription
from pathcast.query import Population, population_of
from pathcast.registry.before_steps import gate_paths
from pathcast.registry.steps import parse_steps


class Snapshot:
    """Standing queries of all kinds that do not change. Made by `Registry.freeze` or `open`.

    Pickled, a snapshot is the bytes of its file, also where it was opened from a file: another
    machine need not have that file. It opens there as a file does, and fails with
    `KernelMissingError` where the kernel is not installed. A copy is the snapshot
    itself, since nothing changes it.

    Cost of pickling: the file is written to the temporary directory and read, about 100 B a query;
    of unpickling: the same, and `open`; the bytes stay mapped, without a name, for as long as the
    snapshot is used. Processes of one machine that `open` a file that was saved share its pages,
    which unpickled snapshots do not.
    """

    def __init__(self, backend: KernelSnapshot, options: MatcherOptions) -> None:
        self._backend = backend
        self._options = options

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        limits: Limits | None = None,
        *,
        threads: int | None = None,
        cache_bytes_max: int = CACHE_BYTES_MAX,
    ) -> Snapshot:
        """Opens a snapshot file.

        Args:
            path: The file.
            limits: What one message may cost; None for those of the registry it was frozen from,
                which the file keeps.
            threads: Threads of one batch; None for all processors.
            cache_bytes_max: Bytes that compiled label paths may take.

        Raises:
            ConfigError: A value cannot be used.
            SnapshotFormatError: The file is foreign, of another version or damaged.
            OSError: The file cannot be read.
        """
        with errors_named(path):
            backend = open_snapshot(Path(path))
        options = matcher_options(limits or backend.limits, threads, cache_bytes_max)
        return cls(backend, options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the snapshot file; a file of that name is replaced at once or not at all.

        Raises:
            OSError: The file cannot be written.
        """
        with errors_named(path):
            self._backend.save(Path(path))

    @property
    def version(self) -> str:
        """Hexadecimal digest: the same for the same subscriptions under the same limits."""
        return self._backend.version

    @property
    def sum(self) -> bytes:
        """The digests of the subscriptions, added up (`pathcast.registry.identity`)."""
        return self._backend.sum

    @property
    def limits(self) -> Limits:
        """The limits of one message and of its results, as they were when frozen."""
        return self._backend.limits

    @property
    def query_ids(self) -> Sequence[str]:
        """Number of a query -> its id."""
        return self._backend.query_ids

    @property
    def has_filters_only(self) -> bool:
        """Whether all are filter queries, nobody's and delivered as ids."""
        return self._backend.has_filters_only

    def query(self, query_id: str) -> Query:
        """The query of an id, as it was registered.

        Raises:
            UnknownQueryError: No query has this id.
        """
        found = self.get(query_id)
        return Query(found.id, found.query, found.namespaces, found.language)

    def get(self, subscription_id: str) -> Subscription:
        """The subscription of an id, with all namespaces it may use (`Registry.get`).

        Raises:
            UnknownQueryError: No subscription has this id.

        Cost: about 5 µs.
        """
        return self._backend.subscription(*usable_ids([subscription_id]))

    @property
    def subscriptions(self) -> Sequence[Subscription]:
        """All subscriptions, ordered by id. Cost: as `get`, of each."""
        return [self._backend.subscription(name) for name in sorted(self.query_ids)]

    def population(self) -> Population:
        """Describe the queries as columns: where their paths end, what they compare there.

        An alternative is a path of which one has to hold for anything to be delivered.

        Cost: about 1 µs a distinct query; a compilation of each where not all are filter queries.

        Example:
            >>> from pathcast import Query, Registry
            >>> registry = Registry()
            >>> report = registry.add([Query("q1", "/a[@b = 1]"), Query("q2", "/a[@b = 2]/c")])
            >>> sorted(map(str, registry.freeze().population().places))
            ['/a', '/a/@b', '/a/c']
        """
        if self.has_filters_only:
            return self._backend.population()
        known: dict[tuple[object, ...], list[native.NormalPath]] = {}
        found: list[list[native.NormalPath]] = []
        asked = self.subscriptions
        for each in asked:
            bound = tuple(sorted((each.namespaces or {}).items()))
            key = (each.query, each.language, each.deliver, bound, each.steps)
            if key not in known:
                known[key] = gate_paths(each, parse_steps(each.steps, each.namespaces))
            found.append(known[key])
        return population_of([each.id for each in asked], found)

    def begin(self, options: MatcherOptions) -> KernelRegistry:
        """A registry of the kernel that goes on from this snapshot; nothing is compiled."""
        return self._backend.begin(options)

    @overload
    def match(  # type: ignore[overload-overlap]  # str is an iterable of str
        self, messages: MessageBytes | str
    ) -> MatchResult: ...

    @overload
    def match(self, messages: Messages) -> BatchResult: ...

    def match(self, messages: MessageBytes | str | Messages) -> MatchResult | BatchResult:
        """Which queries hold of one message or of many, as `Registry.match` says it.

        Numbers mean the same in every batch, and chunks of a column are not joined.
        """
        return matched(self._matcher.match, messages, self._options.limits, is_live=False)

    @cached_property
    def _matcher(self) -> KernelMatcher:
        return self._backend.matcher(self._options)

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
