"""A state of the subscriptions as files, which everybody who answers reads.

    _snapshots/VERSION/
        takers.arrow            who takes which query: subscriber, subscription id, own version
        subscriptions.snapshot  the queries, mapped into memory
        generation.json         what it holds; written last

Equal queries of several subscribers are one query; `takers.arrow` says who gets what it finds.
Files of a version never change: a micro-batch that is done again finds what it was begun with.

It reads files and answers nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import SnapshotFormatError
from pathcast.limits import Limits
from pathcast.spark.copies import local_files

if TYPE_CHECKING:
    from pathcast.registry import Snapshot
    from pathcast.spark.storage import Storage

SNAPSHOTS: Final = "_snapshots"
TAKERS: Final = "takers.arrow"
QUERIES: Final = "subscriptions.snapshot"
DESCRIPTION: Final = "generation.json"

TAKERS_SCHEMA: Final = pa.schema(
    [
        pa.field("subscriber", pa.string()),
        pa.field("subscription_id", pa.string(), nullable=False),
        pa.field("version", pa.binary(16), nullable=False),
    ]
)
"""One row a pair of subscriber and query, ascending by both; nobody is null, and comes first."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A state of the subscriptions.

    Attributes:
        version: Digest of the subscriptions.
        queries: Distinct queries.
        subscriptions: Pairs of subscriber and query.
        has_notices: Whether some are delivered as an id.
        written: Names this writing of it, as nothing else: equal subscriptions have one version
            everywhere, but not the same files.
        limits: Names and values of limits on a message that are not the defaults.
    """

    version: str
    queries: int
    subscriptions: int
    has_notices: bool
    written: str
    limits: tuple[tuple[str, int | str], ...] = ()

    def message_limits(self) -> Limits:
        """Return the limits of a message, which are fixed when the generation is made."""
        return Limits(**dict(self.limits))  # type: ignore[arg-type]

    @property
    def folder(self) -> str:
        """Where its files lie in the output."""
        return f"{SNAPSHOTS}/{self.version}"

    @classmethod
    def read(cls, storage: Storage, version: str) -> Generation:
        """A generation that was written before.

        Raises:
            SnapshotFormatError: It is not there.
        """
        name = f"{SNAPSHOTS}/{version}/{DESCRIPTION}"
        try:
            row = json.loads(storage.read(name))
            row["limits"] = tuple((key, value) for key, value in row["limits"])
            found = cls(**{field: row[field] for field in cls.__dataclass_fields__})
        except (FileNotFoundError, ValueError, TypeError, KeyError) as error:
            raise SnapshotFormatError(
                "snapshot.damaged", path=storage.url(name), reason=str(error)
            ) from error
        if row.get("sections"):
            raise SnapshotFormatError("snapshot.sections", path=storage.url(name))
        return found

    @contextmanager
    def files(self, storage: Storage) -> Iterator[GenerationFiles]:
        """Its files on this machine, to be opened inside; copied, once, where they lie elsewhere.

        Raises:
            SnapshotFormatError: An earlier version of Pathcast wrote them.
        """
        there = f"{self.folder}/{QUERIES}"
        if not storage.exists(there):
            reason = "it is not there; an earlier version of Pathcast wrote others"
            raise SnapshotFormatError("snapshot.damaged", path=storage.url(there), reason=reason)
        paths = [f"{self.folder}/{name}" for name in (TAKERS, QUERIES)]
        with local_files(storage, paths, self.written) as (takers, queries):
            yield GenerationFiles(self.version, takers, queries, self.has_notices)


@dataclass(frozen=True, slots=True)
class GenerationFiles:
    """Where the files of a generation lie on this machine, and whether it delivers ids."""

    version: str
    takers: Path
    queries: Path
    has_notices: bool

    def table(self) -> TakerTable:
        """Return the takers of all queries, mapped into memory."""
        with pa.memory_map(str(self.takers)) as source:
            return TakerTable(pa.ipc.open_file(source).read_all())


class TakerRows(NamedTuple):
    """Some rows of a table of takers, as `TakerTable` has them."""

    subscribers: pa.Array
    ids: pa.Array
    versions: pa.Array


class TakerTable:
    """The pairs of subscriber and query; the place of a pair is its *rank*.

    Args:
        table: `TAKERS_SCHEMA`, ascending by subscriber and then by the id of the query. It stays
            where it is: a table of millions is mapped, and few of its rows are looked at.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table.select(TAKERS_SCHEMA.names)

    def __len__(self) -> int:
        return len(self._table)

    @cached_property
    def ids(self) -> pa.Array:
        """Ids of the queries by rank."""
        return self._table.column("subscription_id").combine_chunks()

    @cached_property
    def subscribers(self) -> pa.Array:
        """Subscribers by rank."""
        return self._table.column("subscriber").combine_chunks()

    def rows(self, ranks: np.ndarray) -> TakerRows:
        """The rows of some ranks."""
        taken = self._table.take(pa.array(ranks))
        return TakerRows(*(column.combine_chunks() for column in taken.columns))

    def takers_of(self, query_ids: pa.Array | pa.ChunkedArray) -> Takers:
        """Return the takers of each of some queries.

        Cost: a hash of the ids and a sort of integers: 20 ms for 100,000.
        """
        ids = query_ids.combine_chunks() if isinstance(query_ids, pa.ChunkedArray) else query_ids
        numbers = pc.index_in(self.ids, value_set=ids)
        ranks = np.flatnonzero(numbers.is_valid().to_numpy(zero_copy_only=False))
        taken = pc.drop_null(numbers).to_numpy()
        order = np.argsort(taken, kind="stable")
        counts = np.bincount(taken, minlength=len(ids))
        return Takers(ranks[order].astype(np.uint32), counts)


class Takers:
    """Number of a query -> ranks of those who take it."""

    def __init__(self, ranks: np.ndarray, counts: np.ndarray) -> None:
        self._ranks = ranks
        self._counts = counts
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._is_single = bool((counts == 1).all())

    def expand(self, numbers: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the takers of the queries of a list.

        Returns:
            For every taker the place in `numbers` that it comes from, ascending (None where every
            query has one taker, and the places are those of `numbers`), and its rank.
        """
        if self._is_single:
            return None, self._ranks[numbers]
        counts = self._counts[numbers]
        taken = np.repeat(np.arange(len(numbers)), counts)
        ends = np.cumsum(counts)
        within = np.arange(len(taken)) - np.repeat(ends - counts, counts)
        return taken, self._ranks[np.repeat(self._starts[numbers], counts) + within]


def ids_of(snapshot: Snapshot) -> pa.Array:
    """Ids of queries by number. The kernel has them as an array, the reference as a list."""
    ids: Sequence[str] = snapshot.query_ids
    array = ids.to_arrow() if hasattr(ids, "to_arrow") else pa.array(ids, pa.string())
    return array.cast(pa.string())
