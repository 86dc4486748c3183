"""What an engine has to offer, as protocols.

Five kinds of thing: an index that changes, a snapshot that does not, a routing table, a matcher
made by any of them, and paths that are found in parts of messages.
`pathcast_papers` and `pathcast.kernel` each are a module of the shape `EngineModule`; the
facades of this room speak to nothing else, so that an engine can be exchanged without their notice.

This module decides nothing and computes nothing.

Example:
    >>> import pathcast_papers as reference
    >>> from pathcast.engine.backend import EngineModule
    >>> engine: EngineModule = reference
    >>> len(engine.new_index({}, Limits()))
    0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pathcast.limits import Limits, StreamBounds
from pathcast.message import MessageTree
from pathcast.model import (
    BatchAnswer,
    FewMatches,
    MatcherOptions,
    Query,
    RegisterReport,
    RoutingEntry,
)
from pathcast.query import Population

if TYPE_CHECKING:
    import pyarrow as pa

    from pathcast.errors import PathcastError
    from pathcast.message.dictionaries import Dictionaries, Dictionary

__all__ = [
    "BatchAnswer",
    "EngineModule",
    "IndexBackend",
    "MatcherBackend",
    "MatcherOptions",
    "PathFinderBackend",
    "RoutingBackend",
    "RoutingStreamBackend",
    "SnapshotBackend",
]


class MatcherBackend(Protocol):
    """Matches batches of messages; may be called from several threads, one after another."""

    def match(self, messages: pa.Array, *, encoding: str | None = None) -> BatchAnswer:
        """Matches every message of a `binary` or `large_binary` array, slices included.

        Args:
            messages: The messages as they arrived; a null has no matches and no error.
            encoding: Encoding of all messages where the caller knows it better than their
                declarations; "UTF-8" for what was text before.
        """

    def match_few(self, messages: list[bytes]) -> FewMatches:
        """As `match`, of so few messages that arrays would take longer than they do."""


class SnapshotBackend(Protocol):
    """An immutable set of queries."""

    @property
    def query_ids(self) -> Sequence[str]:
        """Number of a query -> its id."""

    @property
    def version(self) -> str:
        """Hexadecimal digest of the content; equal for a file and what was opened from it."""

    @property
    def limits(self) -> Limits:
        """What a message may cost, as agreed where it was frozen."""

    def query(self, query_id: str) -> Query:
        """The query as it was registered, with all namespaces it may use.

        Raises:
            UnknownQueryError: No query has this id.
        """

    def population(self) -> Population:
        """What the queries ask for, under their numbers in this snapshot."""

    def save(self, path: Path) -> None:
        """Writes the snapshot file; a file of that name is replaced at once or not at all."""

    def matcher(self, options: MatcherOptions) -> MatcherBackend:
        """A matcher over this snapshot."""

    def __len__(self) -> int:
        """Number of queries."""


class IndexBackend(Protocol):
    """A set of queries that changes while messages flow."""

    def register(self, queries: Sequence[Query], namespaces: Mapping[str, str]) -> RegisterReport:
        """Adds queries. They count from the next batch on.

        Args:
            queries: Their fields were looked at (`pathcast.engine.rows`). One with a bad text
                is reported and leaves no trace.
            namespaces: Bindings of the index, for prefixes that a query does not bind itself.
        """

    def remove(self, ids: Sequence[str]) -> None:
        """Takes queries out, lazily. All of them or, if an id is unknown, none.

        Raises:
            UnknownQueryError: No query has one of the ids.
        """

    def query(self, query_id: str) -> Query:
        """The query as it was registered, with all namespaces it may use.

        Raises:
            UnknownQueryError: No query has this id.
        """

    def compact(self) -> None:
        """Gives back what removed queries still occupy. Numbers of queries may change."""

    def freeze(self) -> SnapshotBackend:
        """The queries as they are now, immutable."""

    def matcher(self, options: MatcherOptions) -> MatcherBackend:
        """A matcher that sees every change of the index from its next batch on."""

    def __len__(self) -> int:
        """Number of queries, removed ones not counted."""

    def __contains__(self, query_id: object) -> bool:
        """Whether a query has this id."""


class RoutingStreamBackend(Protocol):
    """Routes messages that arrive in blocks; see `pathcast.engine.routing.RoutingStream`."""

    def begin(self, encoding: str | None) -> None:
        """A message begins, whatever has become of the one before."""

    def feed(self, block: bytes) -> None:
        """Takes in the next bytes of the message.

        Raises:
            MessageError: The message is refused.
        """

    def finish(self) -> None:
        """The message ends here.

        Raises:
            MessageError: It is refused.
        """

    @property
    def targets(self) -> list[int]:
        """The targets reached so far, ascending."""

    @property
    def decided_at(self) -> int | None:
        """Bytes that had arrived when the decision was final; None while it is not."""

    @property
    def memory(self) -> int:
        """Bytes of memory held for the message, about."""


class RoutingBackend(Protocol):
    """An immutable routing table."""

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, about."""

    def matcher(self, options: MatcherOptions) -> MatcherBackend:
        """A matcher whose numbers are targets.

        It has no verdicts: what has not been decided of a message may hold, and its targets are
        among those of the message.
        """

    def stream(self, options: MatcherOptions, bounds: StreamBounds) -> RoutingStreamBackend:
        """What routes one message after another as it arrives."""


class PathFinderBackend(Protocol):
    """Paths found in parts of messages; see `pathcast.engine.path_finder`."""

    def number(self, labels: Sequence[tuple[str | None, str | None] | None]) -> int:
        """The number of a path, new or known, by the labels of its transitions."""

    def find(
        self,
        names: Sequence[tuple[str, str]],
        name: Sequence[int],
        depth: Sequence[int],
        entries: Sequence[tuple[int, int]],
    ) -> tuple[list[tuple[int, int]], int]:
        """Where paths end, by place and path; and how many places something was active at."""

    def __len__(self) -> int:
        """Number of paths."""


class EngineModule(Protocol):
    """The module of an engine."""

    def new_path_finder(self) -> PathFinderBackend:
        """No paths."""

    def new_index(self, namespaces: Mapping[str, str], limits: Limits) -> IndexBackend:
        """An empty index with default bindings of prefixes; its snapshots keep the limits."""

    def new_routing_table(self, entries: Sequence[RoutingEntry], targets: int) -> RoutingBackend:
        """A table of entries that were looked at (`pathcast.engine.routing`).

        Raises:
            ConfigError: A path is not in canonical text.
        """

    def open_snapshot(self, path: Path) -> SnapshotBackend:
        """Opens a snapshot file.

        Raises:
            SnapshotFormatError: The file is foreign, of another version or damaged.
        """

    def parse(self, message: bytes, limits: Limits, encoding: str | None = None) -> MessageTree:
        """The tree of one message, with details, through this engine's door.

        Raises:
            MessageError: The door refused the message.
        """

    def encode_streams(self, messages: pa.Array, dictionary: Dictionary | None = None) -> pa.Array:
        """The element streams of messages, as a `large_binary` array.

        One that cannot be a stream, or would not be shorter, stays as it is; a null stays null.

        Args:
            messages: `binary` or `large_binary` array.
            dictionary: Names that the streams may name by number.
        """

    def decode_streams(
        self, streams: pa.Array, known: Dictionaries, limits: Limits
    ) -> tuple[pa.Array, list[tuple[int, PathcastError]]]:
        """The messages that streams stand for, byte for byte, as a `large_binary` array.

        What is no stream stays as it is. A stream that is refused is null, and has its place and
        error in the list. The messages are not parsed.

        Args:
            streams: `binary` or `large_binary` array.
            known: Dictionaries that the streams may name.
            limits: How long a message may be.
        """

    def version(self) -> str:
        """Name and version of the engine."""
