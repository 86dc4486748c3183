"""The routing index: which partitions a message can concern, asked once instead of everywhere.

It holds what the queries of each partition have in common, within a budget of bytes
(`pathcast.partition.routes`), as a set of paths that is matched like any other. A message that
satisfies a query satisfies one of the paths whose targets its partition is among; so it is never
kept from a partition that wants it, and is sent to some in vain. The index is small, is a file, and
every worker maps it.

Example:
    >>> from pathcast.query import normalise
    >>> routes = Routes()
    >>> for target, text in enumerate(["/m/a[@x = 1]", "/m/a[@x = 2]", "//b"]):
    ...     routes.add([normalise(text)], target)
    >>> index = RoutingIndex.of(routes, partitions=3, engine="reference")
    >>> marker = index.marker()
    >>> marker.mark(pa.array([b"<m><a x='2'/><b/></m>", b"<m/>", b"<m"])).partitions.to_pylist()
    [[1, 2], [], []]

What a path cannot say (an expression, a program) is decided in the partition.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 4.2.1 and 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from pathcast.engine import QueryIndex, Snapshot
from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, BatchStats, EngineName, Query, Subscription
from pathcast.partition.routes import Frequency, Routes, fitted
from pathcast.query import NormalQuery, canonical_text, compile_subscription, normalise

if TYPE_CHECKING:
    from pathcast.engine import Matcher

BUDGET_BYTES: Final = 8 << 20
"""Bytes that a routing index may take where nothing else is said: what a processor's cache holds
of it is what makes it quick, and 8 MiB are the routes of some 20,000 paths."""

SNAPSHOT: Final = "routing.snapshot"
TARGETS: Final = "routing.targets"

_VERSION: Final = b"snapshot"
_PARTITIONS: Final = b"partitions"
_WORD: Final = 64


@dataclass(frozen=True, slots=True)
class Marks:
    """Which partitions each message of a batch can concern.

    Attributes:
        partitions: `list<uint32>` by row, ascending; empty for a refused message and for a missing
            one.
        errors: `pathcast.engine.results.ERROR_TYPE` by row; null where nothing was refused.
        stats: Counters of the pass.
    """

    partitions: pa.ListArray
    errors: pa.StructArray
    stats: BatchStats

    def fraction(self, partitions: int) -> float:
        """Share of the partitions that a message touches, on average."""
        return len(self.partitions.flatten()) / max(1, partitions * len(self.partitions))

    def rows_of(self, partition: int) -> np.ndarray:
        """The messages that go to a partition."""
        parents = self.partitions.value_parent_indices().to_numpy()
        rows: np.ndarray = parents[self.partitions.flatten().to_numpy() == partition]
        return rows


class RoutingIndex:
    """Paths with the partitions that they lead to.

    Args:
        snapshot: The paths.
        masks: For each path, by its number in the snapshot, a bit for each partition, 64-bit words.
        partitions: How many there are.
    """

    def __init__(self, snapshot: Snapshot, masks: np.ndarray, partitions: int) -> None:
        self._snapshot = snapshot
        self._masks = masks
        self.partitions = partitions

    @classmethod
    def of(
        cls,
        routes: Routes,
        partitions: int,
        *,
        budget_bytes: int = BUDGET_BYTES,
        engine: EngineName | None = None,
        limits: Limits | None = None,
        dont_care: int | None = None,
        sample: pa.Array | None = None,
    ) -> RoutingIndex:
        """An index within a budget.

        Args:
            routes: The paths of the queries of each partition; generalised as far as is needed.
            partitions: How many there are; targets of routes are below.
            budget_bytes: Bytes of its file, about.
            engine: Which engine answers.
            limits: What a message may cost; those under which the queries are matched.
            dont_care: The partition that every message may go to before others lose anything.
            sample: Messages; what is generalised is then chosen by how often paths occur in them.

        Cost: `fitted`, and a registration for each route.
        """
        words = words_for(partitions)
        frequency = None if sample is None else _frequency_in(sample, engine)
        given_up = 0 if dont_care is None else 1 << dont_care
        kept = list(
            fitted(routes, budget_bytes, words=words, given_up=given_up, frequency=frequency)
        )
        index = QueryIndex(engine=engine, limits=limits)
        texts = [Query(str(at), canonical_text(route.path)) for at, route in enumerate(kept)]
        for error in index.register(texts).rejected.values():
            raise error
        snapshot = index.freeze()
        masks = np.zeros((len(kept), words), dtype=np.uint64)
        for number, at in enumerate(snapshot.query_ids):
            masks[number] = _words(kept[int(at)].targets, words)
        return cls(snapshot, masks, partitions)

    @classmethod
    def open(cls, folder: Path, *, engine: EngineName | None = None) -> RoutingIndex:
        """The index that was saved in a folder; its paths are mapped.

        Raises:
            SnapshotFormatError: A file is foreign, damaged, or not of the other one.
            OSError: A file cannot be read.
        """
        snapshot = Snapshot.open(folder / SNAPSHOT, engine=engine)
        path = folder / TARGETS
        try:
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_file(source).read_all()
            told = table.schema.metadata or {}
            partitions = int(told[_PARTITIONS])
            column = table.column("targets").combine_chunks()
            words = words_for(partitions)
            buffer = column.cast(pa.binary(8 * words)).buffers()[1]
            masks = np.frombuffer(buffer, dtype="<u8", count=len(column) * words)
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise SnapshotFormatError(
                "snapshot.damaged", path=str(path), reason=str(error)
            ) from error
        if told.get(_VERSION) != snapshot.version.encode() or len(column) != len(snapshot):
            raise SnapshotFormatError(
                "snapshot.damaged", path=str(path), reason=f"it is not of {folder / SNAPSHOT}"
            )
        return cls(snapshot, masks.reshape(-1, words), partitions)

    def save(self, folder: Path) -> None:
        """Writes its two files.

        Raises:
            OSError: They cannot be written.
        """
        self._snapshot.save(folder / SNAPSHOT)
        (folder / TARGETS).write_bytes(self._targets_file())

    def _targets_file(self) -> bytes:
        told = {_VERSION: self._snapshot.version, _PARTITIONS: str(self.partitions)}
        width = 8 * self._masks.shape[1]
        buffer = pa.py_buffer(np.ascontiguousarray(self._masks, dtype="<u8"))
        column = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(width), len(self._masks), [None, buffer]
        )
        schema = pa.schema([("targets", column.type)], metadata=told)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_table(pa.table([column], schema=schema))
        return bytes(sink.getvalue())

    def marker(self, *, threads: int = 1, cache_bytes_max: int = CACHE_BYTES_MAX) -> RoutingMarker:
        """What marks messages."""
        matcher = self._snapshot.matcher(threads=threads, cache_bytes_max=cache_bytes_max)
        return RoutingMarker(matcher, self._masks, self.partitions)

    def reached(self, message: bytes) -> Mapping[str, Sequence[int]]:
        """The paths that hold of a message, or were not decided, and where each leads.

        Raises:
            MessageError: The message is refused.

        Cost: a match against the paths.
        """
        result = self._snapshot.matcher(threads=1).match_batch([message])[0]
        if result.error is not None:
            raise result.error
        names = {*result.query_ids, *result.verdicts}
        found = {}
        for number, name in enumerate(self._snapshot.query_ids):
            if name in names:
                targets = _bits(self._masks[number : number + 1])[1].tolist()
                found[self._snapshot.query(name).text] = targets
        return dict(sorted(found.items()))

    def routes(self) -> Mapping[str, Sequence[int]]:
        """Canonical path -> the partitions that it leads to."""
        found = {}
        for number, name in enumerate(self._snapshot.query_ids):
            found[self._snapshot.query(name).text] = _bits(self._masks[number : number + 1])[1]
        return {text: targets.tolist() for text, targets in sorted(found.items())}

    def __len__(self) -> int:
        """Number of paths."""
        return len(self._masks)


class RoutingMarker:
    """Marks batches of messages. May be called from several threads."""

    def __init__(self, matcher: Matcher, masks: np.ndarray, partitions: int) -> None:
        self._matcher = matcher
        self._masks = masks
        self._partitions = partitions

    def mark(self, messages: pa.Array) -> Marks:
        """Which partitions each message can concern.

        Args:
            messages: `binary` or `large_binary`; a null concerns none.

        Cost: a match against the paths, and some words for each that holds.
        """
        matched = self._matcher.match_arrow(messages)
        lists = matched.matches
        offsets = lists.offsets.to_numpy().astype(np.int64)
        numbers = lists.values.to_numpy()[offsets[0] : offsets[-1]]
        found = _united(self._masks, numbers, offsets - offsets[0])
        verdicts = matched.verdicts
        if len(verdicts):
            # What was not decided may hold.
            rows = verdicts.column("row").to_numpy()
            undecided = verdicts.column("query_number").to_numpy()
            np.bitwise_or.at(found, rows, self._masks[undecided])
        rows, targets = _bits(found)
        ends = np.searchsorted(rows, np.arange(len(messages) + 1)).astype(np.int32)
        partitions = pa.ListArray.from_arrays(pa.array(ends), pa.array(targets.astype(np.uint32)))
        return Marks(partitions, matched.errors, matched.stats)


def routes_of(subscriptions: Iterable[Subscription], partition_of: Mapping[str, int]) -> Routes:
    """The exact routes of some subscriptions or filter queries: the paths of which one must hold.

    Args:
        subscriptions: Queries in XPath or XQuery, with all the namespaces they may use. Those that
            deliver ids are filter queries.
        partition_of: Id -> partition.

    Cost: a compilation in Python for each distinct text, a few 100 µs.
    """
    routes = Routes()
    paths = lru_cache(maxsize=None)(_paths_of)
    for row in subscriptions:
        bound = tuple(sorted((row.namespaces or {}).items()))
        routes.add(paths(row.query, bound, row.deliver), partition_of[row.id])
    return routes


def words_for(partitions: int) -> int:
    """64-bit words that have a bit for each partition."""
    return max(1, -(-partitions // _WORD))


def _paths_of(
    text: str, namespaces: tuple[tuple[str, str], ...], deliver: str
) -> tuple[NormalQuery, ...]:
    compiled = compile_subscription(text, dict(namespaces), deliver)
    return tuple(normalise(path) for path in compiled.alternatives)


def _words(targets: int, words: int) -> np.ndarray:
    return np.frombuffer(targets.to_bytes(8 * words, "little"), dtype="<u8")


def _united(masks: np.ndarray, numbers: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """For each list of numbers, the union of their masks."""
    found = np.zeros((len(offsets) - 1, masks.shape[1]), dtype=np.uint64)
    starts = offsets[:-1]
    has_some = starts < offsets[1:]
    if has_some.any():
        # Lists that are empty have no place of their own: what stands there is of the next one.
        found[has_some] = np.bitwise_or.reduceat(masks[numbers], starts[has_some], axis=0)
    return found


def _bits(masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows and places of the bits that are set, row by row, ascending."""
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)
    rows, places = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    return rows, places


def _frequency_in(sample: pa.Array, engine: EngineName | None) -> Frequency:
    """Shares of the messages of a sample."""

    def shares(paths: Sequence[NormalQuery]) -> list[float]:
        distinct = {path: str(at) for at, path in enumerate(dict.fromkeys(paths))}
        index = QueryIndex(engine=engine)
        for error in index.register(
            [Query(name, canonical_text(path)) for path, name in distinct.items()]
        ).rejected.values():
            raise error
        matched = index.matcher().match_arrow(sample)
        counts = np.bincount(matched.matches.flatten().to_numpy(), minlength=len(distinct))
        by_name = dict(zip(matched.query_ids, counts.tolist(), strict=True))
        return [by_name[distinct[path]] / max(1, len(sample)) for path in paths]

    return shares
