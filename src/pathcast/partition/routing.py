"""The routing index: which partitions a message can concern, asked once instead of everywhere.

It holds what the queries of each partition have in common, within a budget of bytes
(`pathcast.partition.routes`), as a routing table whose targets are the partitions. A message that
satisfies a query satisfies one of the paths whose targets its partition is among; so it is never
kept from a partition that wants it, and is sent to some in vain. The index is small and is a file
that every worker reads.

Example:
    >>> from pathcast.query import normalise
    >>> routes = Routes()
    >>> for target, text in enumerate(["/m/a[@x = 1]", "/m/a[@x = 2]", "//b"]):
    ...     routes.add([normalise(text)], target)
    >>> index = RoutingIndex.of(routes, partitions=3)
    >>> marker = index.marker()
    >>> marker.mark(pa.array([b"<m><a x='2'/><b/></m>", b"<m/>", b"<m"])).partitions.to_pylist()
    [[1, 2], [], []]

What a path cannot say (an expression, a program) is decided in the partition.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 4.2.1 and 4.4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from pathcast.boundary import native
from pathcast.engine import QueryIndex, Router, RoutingTable
from pathcast.errors import ConfigError, SnapshotFormatError
from pathcast.limits import Limits
from pathcast.model import (
    BatchStats,
    DeliverMode,
    QueryLanguage,
    RoutingEntry,
    Subscription,
)
from pathcast.partition.routes import Frequency, Routes, bits_of, fitted
from pathcast.registry.before_steps import gate_paths
from pathcast.registry.steps import parse_steps

BUDGET_BYTES: Final = 8 << 20
"""Bytes that a routing index may take where nothing else is said: what a processor's cache holds
of it is what makes it quick, and 8 MiB are the routes of some 20,000 paths."""

FILE: Final = "routing.arrow"
"""Name of its file."""

_FORMAT: Final = b"1"
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

    def rows_of(self, partition: int) -> np.ndarray:
        """The messages that go to a partition."""
        parents = self.partitions.value_parent_indices().to_numpy()
        rows: np.ndarray = parents[self.partitions.flatten().to_numpy() == partition]
        return rows


class RoutingIndex:
    """Paths with the partitions that they lead to.

    Args:
        table: A routing table whose targets are the partitions.
    """

    def __init__(self, table: RoutingTable) -> None:
        self._table = table

    @classmethod
    def of(
        cls,
        routes: Routes,
        partitions: int,
        *,
        budget_bytes: int = BUDGET_BYTES,
        limits: Limits | None = None,
        dont_care: int | None = None,
        sample: pa.Array | None = None,
    ) -> RoutingIndex:
        """An index within a budget.

        Args:
            routes: The paths of the queries of each partition; generalised as far as is needed.
            partitions: How many there are; targets of routes are below.
            budget_bytes: Bytes of its file, about.
            limits: What a message may cost; those under which the queries are matched.
            dont_care: The partition that every message may go to before others lose anything.
            sample: Messages; what is generalised is then chosen by how often paths occur in them.

        Cost: `fitted`, and what a `RoutingTable` costs.
        """
        words = words_for(partitions)
        frequency = None if sample is None else _frequency_in(sample)
        given_up = 0 if dont_care is None else 1 << dont_care
        kept = fitted(routes, budget_bytes, words=words, given_up=given_up, frequency=frequency)
        entries = [RoutingEntry((each.path.text,), each.targets) for each in kept]
        return cls(RoutingTable(entries, partitions, limits=limits))

    @classmethod
    def open(cls, folder: Path) -> RoutingIndex:
        """The index that was saved in a folder.

        Raises:
            SnapshotFormatError: The file is foreign or damaged.
            OSError: The file cannot be read.

        Cost: some microseconds a path.
        """
        path = folder / FILE
        content = path.read_bytes()
        try:
            table = pa.ipc.open_file(content).read_all()
            told = table.schema.metadata or {}
            masks = table.column("targets").cast(pa.binary()).to_pylist()
            rows = zip(table.column("paths").to_pylist(), masks, strict=True)
            entries = [RoutingEntry(tuple(paths), int.from_bytes(m, "little")) for paths, m in rows]
            partitions, limits = int(told[b"partitions"]), told[b"limits"].decode()
            if told[b"format"] != _FORMAT or told[b"digest"] != _digest(entries, told):
                raise ValueError("it is of another version, or not as it was written")
            agreed = Limits.from_json(limits, str(path))
            return cls(RoutingTable(entries, partitions, limits=agreed))
        except (pa.ArrowException, KeyError, ValueError, TypeError, ConfigError) as error:
            raise SnapshotFormatError(
                "snapshot.damaged", path=str(path), reason=str(error)
            ) from error

    def save(self, folder: Path) -> None:
        """Writes its file.

        Raises:
            OSError: It cannot be written.
        """
        table = self._table
        told = {
            b"format": _FORMAT,
            b"partitions": str(table.targets).encode(),
            b"limits": table.limits.to_json().encode(),
        }
        told[b"digest"] = _digest(table.entries, told)
        width = 8 * words_for(table.targets)
        masks = [entry.targets.to_bytes(width, "little") for entry in table.entries]
        columns = {
            "paths": pa.array([entry.paths for entry in table.entries], pa.list_(pa.string())),
            "targets": pa.array(masks, pa.binary(width)),
        }
        written = pa.table(columns).replace_schema_metadata(told)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, written.schema) as writer:
            writer.write_table(written)
        (folder / FILE).write_bytes(sink.getvalue())

    @property
    def partitions(self) -> int:
        """How many there are."""
        return self._table.targets

    def marker(self, *, threads: int = 1) -> RoutingMarker:
        """Make a marker of messages."""
        return RoutingMarker(self._table.router(threads=threads))

    def reached(self, message: bytes) -> Mapping[str, Sequence[int]]:
        """The paths that hold of a message, or were not decided, and where each leads.

        Raises:
            MessageError: The message is refused.

        Cost: what a `RoutingTable` of the paths costs, and a match.
        """
        limits = self._table.limits
        index = QueryIndex(limits=limits)
        refused = index.matcher(threads=1).match(message).error
        if refused is not None:
            raise refused
        entries = self._table.entries
        apart = [RoutingEntry(entry.paths, 1 << number) for number, entry in enumerate(entries)]
        table = RoutingTable(apart, len(apart), limits=limits)
        routed = table.router(threads=1).route(pa.array([message]))
        held = routed.targets[0].as_py()
        found = {" and ".join(entries[n].paths): bits_of(entries[n].targets) for n in held}
        return dict(sorted(found.items()))

    def routes(self) -> Mapping[str, Sequence[int]]:
        """Canonical path -> the partitions that it leads to."""
        entries = sorted(self._table.entries, key=lambda entry: entry.paths)
        return {" and ".join(entry.paths): bits_of(entry.targets) for entry in entries}

    def __len__(self) -> int:
        """Number of paths."""
        return len(self._table)


class RoutingMarker:
    """Marks batches of messages. May be called from several threads."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def mark(self, messages: pa.Array) -> Marks:
        """Which partitions each message can concern.

        Args:
            messages: `binary` or `large_binary`; a null concerns none.

        Cost: that of `Router.route`.
        """
        routed = self._router.route(messages)
        targets = routed.targets
        partitions = pa.ListArray.from_arrays(targets.offsets, targets.values)
        return Marks(partitions, routed.errors, routed.stats)


def routes_of(subscriptions: Iterable[Subscription], partition_of: Mapping[str, int]) -> Routes:
    """The exact routes of some subscriptions or filter queries: the paths of which one must hold.

    Args:
        subscriptions: Queries in XPath or XQuery, with all the namespaces they may use. Those that
            deliver ids are filter queries.
        partition_of: Id -> partition.

    Cost: a compilation for each distinct text, some 10 µs.
    """
    routes = Routes()
    paths = lru_cache(maxsize=None)(_paths_of)
    for row in subscriptions:
        bound = tuple(sorted((row.namespaces or {}).items()))
        found = paths(row.query, bound, row.deliver, row.steps, row.language)
        routes.add(found, partition_of[row.id])
    return routes


def words_for(partitions: int) -> int:
    """64-bit words that have a bit for each partition."""
    return max(1, -(-partitions // _WORD))


def _paths_of(
    text: str,
    namespaces: tuple[tuple[str, str], ...],
    deliver: DeliverMode,
    steps: tuple[str, ...],
    language: QueryLanguage | None,
) -> Sequence[native.NormalPath]:
    row = Subscription("", "", text, deliver, dict(namespaces), steps, language)
    return gate_paths(row, parse_steps(steps, row.namespaces))


def _digest(entries: Iterable[RoutingEntry], told: Mapping[bytes, bytes]) -> bytes:
    digest = hashlib.sha256(b"\0".join((told[b"format"], told[b"partitions"], told[b"limits"])))
    for entry in entries:
        digest.update("\0".join((*entry.paths, f"{entry.targets:x}\n")).encode())
    return digest.hexdigest().encode()


def _frequency_in(sample: pa.Array) -> Frequency:
    """Shares of the messages of a sample."""

    def shares(paths: Sequence[native.NormalPath]) -> list[float]:
        distinct = {path: path.text for path in paths}
        index = QueryIndex()
        index.register_gates(dict.fromkeys(distinct.values()))
        matched = index.matcher().match(sample)
        counts = np.bincount(matched.matches.flatten().to_numpy(), minlength=len(distinct))
        by_name = dict(zip(matched.query_ids, counts.tolist(), strict=True))
        return [by_name[distinct[path]] / max(1, len(sample)) for path in paths]

    return shares
