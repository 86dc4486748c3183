"""The few values that every room speaks of.

Example:
    >>> Query("q1", "/nitf/head//tobject[@type='news']").id
    'q1'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pathcast.errors import PathcastError
from pathcast.limits import MIB, Limits

if TYPE_CHECKING:
    import pyarrow as pa

EngineName: TypeAlias = Literal["kernel", "nfa", "reference"]
"""Which engine answers: the kernel with its lazy DFA, the kernel's plain NFA, or plain Python."""


class Query(NamedTuple):
    """A standing query.

    Attributes:
        id: Chosen by the caller, unique in an index.
        text: An XPath 1.0 expression.
        namespaces: Prefix -> namespace URI for this query; the key "" is the default element
            namespace. Falls back to the namespaces of the index.
    """

    id: str
    text: str
    namespaces: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RegisterReport:
    """What became of the queries of one call.

    Attributes:
        accepted: Number of queries that were registered.
        rejected: Id -> error, for the others. Nothing of a rejected query is kept. When an id
            occurs twice in a call, the first is registered and the error belongs to the second.
    """

    accepted: int
    rejected: Mapping[str, PathcastError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchStats:
    """Counters of one batch; they add up over batches.

    Attributes:
        messages: Messages seen; missing ones (null) are not counted.
        bytes: Bytes of all messages.
        refused: Messages that the door refused.
        matches: Pairs of message and query.
        nodes: Elements and attributes of the messages that were not refused.
        cache_hits: Elements whose label path was compiled already.
        cache_misses: Elements whose label path had to be compiled.
        cache_resets: Times the cache was dropped because its memory bound was reached.
        nfa_messages: Messages run on the plain NFA, by choice or because the cache thrashed.
        evaluations: Exact evaluations of an expression on a message that passed its conditions.
        verdicts: Pairs of message and query that went over `Limits.evaluation_steps_max`.
        parsing_ns: Time in the door, summed over threads.
        matching_ns: Time in path matching and post-processing, summed over threads.
        collecting_ns: Time in collecting query numbers, summed over threads.
    """

    messages: int = 0
    bytes: int = 0
    refused: int = 0
    matches: int = 0
    nodes: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    cache_resets: int = 0
    nfa_messages: int = 0
    evaluations: int = 0
    verdicts: int = 0
    parsing_ns: int = 0
    matching_ns: int = 0
    collecting_ns: int = 0

    def __add__(self, other: BatchStats) -> BatchStats:
        mine, theirs = self.to_dict(), other.to_dict()
        return BatchStats(**{name: mine[name] + theirs[name] for name in mine})

    def to_dict(self) -> dict[str, int]:
        """Name of each counter -> its value."""
        return {name: getattr(self, name) for name in self.__slots__}


MessageBytes: TypeAlias = bytes | bytearray | memoryview
"""One message as it arrived."""

Queries: TypeAlias = Iterable[Query]
"""Queries to register."""

QueryNumbers: TypeAlias = Sequence[int]
"""Numbers of queries in one snapshot (0-based, ascending)."""


CACHE_BYTES_MAX = 256 * MIB
"""Default bound of what one matcher keeps compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatcherOptions:
    """How a matcher runs.

    Attributes:
        limits: What one message may cost.
        threads: Threads of a batch call, from 1 on. The reference engine uses the caller's only.
        cache_bytes_max: Bytes that compiled label paths may take, over all threads. The reference
            engine compiles nothing and has no use for it.
        engine: Which engine answers.
    """

    limits: Limits
    threads: int
    cache_bytes_max: int
    engine: EngineName


class OverBudget(NamedTuple):
    """The pairs of message and query that used up `Limits.evaluation_steps_max`, ascending.

    Attributes:
        rows: `int64` array: place of the message in the batch.
        query_numbers: `uint32` array of the same length.
    """

    rows: pa.Array
    query_numbers: pa.Array


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """What an engine answers to one batch.

    Attributes:
        matches: `list<uint32>` array: per message the numbers of the satisfied queries, ascending;
            null for a message that was null, empty for one that was refused.
        refusals: Position in the batch and error, ascending by position.
        over_budget: Pairs that could not be decided; their queries are not in `matches`.
        stats: Counters of the batch.
        query_ids: Number of a query -> its id. Does not change after it was handed out.
    """

    matches: pa.Array
    refusals: Sequence[tuple[int, PathcastError]]
    over_budget: OverBudget
    stats: BatchStats
    query_ids: Sequence[str]
