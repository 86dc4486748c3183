"""The native kernel, entered through `pathcast.boundary`.

It hands batches over and turns what comes back into Pathcast's own values and errors.

It decides nothing about queries or messages.

Example:
    >>> parse(b"<a><b/></a>", Limits()).__class__.__name__
    'MessageTree'
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from pathcast.boundary import native, native_errors
from pathcast.errors import error_for
from pathcast.kernel.matcher import KernelIds, KernelMatcher
from pathcast.kernel.registry import KernelRegistry
from pathcast.kernel.streams import PushParser as PushParser
from pathcast.kernel.streams import StreamSummary as StreamSummary
from pathcast.kernel.streams import check_stream as check_stream
from pathcast.limits import Limits
from pathcast.message import MessageTree, TreeDetails
from pathcast.model import CACHE_BYTES_MAX, MatcherOptions, Subscription
from pathcast.query import Population, population_of_columns


def version() -> str:
    """Name and version of the engine."""
    return f"pathcast-kernel {native.__version__}"


def open_snapshot(path: Path) -> KernelSnapshot:
    """Opens a snapshot file by memory map.

    Cost: one pass over the file for its checksum; a tenth of a microsecond a query.

    Raises:
        SnapshotFormatError: The file is foreign, of another version or damaged.
        OSError: The file cannot be read.
    """
    with native_errors(path):
        snapshot = native.Snapshot.open(path)
    return KernelSnapshot(snapshot, Limits.from_json(snapshot.limits, str(path)))


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


class KernelSnapshot:
    """An immutable set of subscriptions of all kinds."""

    def __init__(self, snapshot: native.Snapshot, limits: Limits) -> None:
        self._snapshot = snapshot
        self._limits = limits
        metadata = json.loads(snapshot.metadata)
        self.version: str = metadata["version"]
        """Digest of subscriptions and limits (`pathcast.registry.identity.SetVersion`)."""
        self.sum = bytes.fromhex(metadata["sum"])
        """The digests of the subscriptions, added up."""

    @property
    def query_ids(self) -> Sequence[str]:
        """Number of a query -> its id, read from the file when asked for."""
        return KernelIds(self._snapshot.entries)

    @property
    def limits(self) -> Limits:
        """The limits of one message, as they were when the snapshot was frozen."""
        return self._limits

    @property
    def has_filters_only(self) -> bool:
        """Whether there is nothing but filter queries."""
        return not self._snapshot.others

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self._snapshot.bytes

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription as it was made, with all namespaces it may use.

        Raises:
            UnknownQueryError: No subscription has this id.
        """
        return self._opened.subscription(subscription_id)

    def population(self) -> Population:
        """Describe the filter queries. Cost: about 1 µs a distinct query, and a sort."""
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

    def begin(self, options: MatcherOptions) -> KernelRegistry:
        """A registry that goes on from it; nothing is compiled."""
        return KernelRegistry.of(self._snapshot, options)

    @cached_property
    def _opened(self) -> KernelRegistry:
        return self.begin(
            MatcherOptions(limits=self._limits, threads=1, cache_bytes_max=CACHE_BYTES_MAX)
        )

    def __len__(self) -> int:
        return len(self._snapshot)
