"""A generation cut into partitions, as files: what a worker needs of them, it opens alone.

    _snapshots/VERSION/NAME/            NAME says how it was cut: scheme, number, budget
        routing.snapshot                paths that say which partitions a message can concern
        routing.targets                 and the partitions of each
        partition-N/
            takers.arrow                who takes what of it, with the place in the whole table
            notices.snapshot            its filter queries; absent if there are none
            numbers.arrow               number there -> number in the whole snapshot, if any
            results.subscriptions       its queries whose results are delivered; likewise
        partitions.json                 what there is; written last

Equal queries are one query and lie in one partition, so each pair of message and query has one
place where it is decided. Files of a name never change.

`cutting` writes them; nothing is matched here.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from pathcast.errors import SnapshotFormatError
from pathcast.partition.routing import FILE, RoutingIndex
from pathcast.spark.generations import TAKERS, Generation, PartFiles
from pathcast.spark.merging import RANK
from pathcast.spark.taking_up import read_ipc

if TYPE_CHECKING:
    from pathcast.spark.storage import Storage

PARTITIONS: Final = "partitions.json"
NUMBERS: Final = "numbers.arrow"

RESULTS_BYTES: Final = 12
"""Bytes in memory for each byte of the file of subscriptions whose results are delivered; filter
queries are mapped as they are."""


@dataclass(frozen=True, slots=True)
class PartitionedGeneration:
    """A generation and how it was cut.

    Attributes:
        generation: The whole.
        name: How it was cut.
        partitions: By number.
        routes: Paths of the routing index.
        routing_bytes: Size of its files.
    """

    generation: Generation
    name: str
    partitions: tuple[PartFiles, ...]
    routes: int
    routing_bytes: int

    @property
    def folder(self) -> str:
        """Where its files lie in the output."""
        return f"{self.generation.folder}/{self.name}"

    def partition(self, number: int) -> Generation:
        """A partition as a generation of its own."""
        return self.generation.piece(self.partitions[number], f"{self.name}/partition-{number}")

    def open_bytes(self, number: int) -> int:
        """Memory that a partition takes where it is open, about."""
        held = self.partitions[number]
        return held.bytes * (RESULTS_BYTES if held.has_results else 1)

    def numbers(self, storage: Storage, number: int) -> np.ndarray:
        """For the filter queries of a partition, their numbers in the whole snapshot."""
        with self.partition(number).local(storage, [NUMBERS]) as [path]:
            numbers: np.ndarray = read_ipc(path).column("number").to_numpy()
            return numbers

    def ranks(self, storage: Storage, number: int) -> np.ndarray:
        """For the rows of a partition's table of takers, their places in the whole table."""
        with self.partition(number).local(storage, [TAKERS]) as [path]:
            ranks: np.ndarray = read_ipc(path).column(RANK).to_numpy()
            return ranks

    def routing(self, storage: Storage) -> RoutingIndex:
        """The routing index."""
        routing = replace(self.generation, part=self.name)
        with routing.local(storage, [FILE]) as [path]:
            return RoutingIndex.open(path.parent)

    def to_json(self) -> bytes:
        """Return the content of `partitions.json`."""
        row = asdict(replace(self, generation=None))  # type: ignore[arg-type]
        del row["generation"]
        return (json.dumps(row, sort_keys=True) + "\n").encode()

    @classmethod
    def read(
        cls, storage: Storage, generation: Generation, name: str
    ) -> PartitionedGeneration | None:
        """A cut that was written before; None if there is none.

        Raises:
            SnapshotFormatError: What is there is none.
        """
        path = f"{generation.folder}/{name}/{PARTITIONS}"
        try:
            row = json.loads(storage.read(path))
            parts = tuple(PartFiles(**each) for each in row.pop("partitions"))
            return cls(generation, partitions=parts, **row)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise SnapshotFormatError(
                "snapshot.damaged", path=storage.url(path), reason=str(error)
            ) from error
