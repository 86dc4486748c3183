"""The snapshot of a registry: subscriptions that do not change, with a version, as a file.

Example:
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pathcast import Registry, Subscription
    >>> registry = Registry()
    >>> report = registry.add(Subscription("s1", "ann", "for $b in //b return <c>{$b/@d}</c>"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "subscriptions.snapshot"
    ...     registry.freeze().save(path)
    ...     opened = SubscriptionSnapshot.open(path)
    >>> opened.version == registry.version, len(opened)
    (True, 1)
    >>> [delivery] = Registry.of(opened).deliver(b"<a><b d='1'/></a>")
    >>> delivery.fragment
    b'<c d="1"></c>'

It is safe to use from many threads and, once saved, from many processes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from pathcast.engine.snapshot import errors_named
from pathcast.errors import PathcastError, SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.registry.snapshot_file import (
    SnapshotContent,
    read_snapshot,
    subscriptions_of,
    table_of,
    write_snapshot,
)


class SubscriptionSnapshot:
    """Subscriptions that do not change. Made by `Registry.freeze` or `SubscriptionSnapshot.open`.

    Pickled, a snapshot is its table, also where it was opened from a file: another machine need not
    have that file. About as many bytes as the file has; `open` in processes of one machine shares
    its pages, which unpickling does not. A copy is the snapshot itself, since nothing changes it.
    """

    def __init__(
        self,
        content: SnapshotContent,
        path: Path | None = None,
    ) -> None:
        self._content = content
        self._path = path

    @classmethod
    def of(
        cls,
        subscriptions: Sequence[Subscription],
        version: str,
        limits: Limits,
    ) -> SubscriptionSnapshot:
        """A snapshot of subscriptions in the order of their ids.

        Args:
            subscriptions: Each with all namespaces it may use.
            version: Digest of subscriptions and limits.
            limits: What one message may cost, and what its results may.
        """
        return cls(SnapshotContent(table_of(subscriptions), version, limits))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> SubscriptionSnapshot:
        """Opens a snapshot file.

        Args:
            path: The file.

        Raises:
            SnapshotFormatError: The file is foreign, of another version or damaged.
            OSError: The file cannot be read.

        Cost: a pass over the file. Subscriptions are made ready by `Registry.of`.
        """
        file = Path(path)
        with errors_named(path):
            return cls(read_snapshot(file), file)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the snapshot file; a file of that name is replaced at once or not at all.

        Raises:
            OSError: The file cannot be written.
        """
        with errors_named(path):
            write_snapshot(Path(path), self._content)

    @property
    def version(self) -> str:
        """Hexadecimal digest: the same for the same subscriptions under the same limits."""
        return self._content.version

    @property
    def limits(self) -> Limits:
        """The limits of one message and of its results, as they were when frozen."""
        return self._content.limits

    @property
    def table(self) -> pa.Table:
        """The subscriptions as rows, ordered by id."""
        return self._content.table

    @property
    def subscriptions(self) -> Sequence[Subscription]:
        """The subscriptions, ordered by id, each with all namespaces it may use."""
        return list(subscriptions_of(self._content.table))

    def refused(self, rejected: Mapping[str, PathcastError]) -> SnapshotFormatError:
        """The error of a snapshot whose subscriptions are not all taken."""
        name, error = next(iter(rejected.items()))
        return SnapshotFormatError(
            "snapshot.damaged",
            path=str(self._path or "the snapshot"),
            reason=f"its subscription {name} is refused ({error})",
        )

    def __copy__(self) -> SubscriptionSnapshot:
        return self

    def __deepcopy__(self, memo: object) -> SubscriptionSnapshot:
        return self

    def __len__(self) -> int:
        return int(self._content.table.num_rows)

    def __repr__(self) -> str:
        return f"SubscriptionSnapshot({len(self)} subscriptions, version={self.version!r})"
