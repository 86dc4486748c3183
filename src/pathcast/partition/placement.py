"""Placements: the partition of each query, and the partitions that a message can match.

Partitions are numbered from 0. A placement may have a *don't-care* partition, the last one, for
queries that it knows nothing to tell apart by; every message goes there.

It holds no queries.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from pathcast.errors import ConfigError, PathcastError

PARTITIONS_MAX: Final = 1 << 20
"""Partitions of one placement."""


@dataclass(frozen=True)
class Touched:
    """Which partitions each message of a batch can match.

    Attributes:
        partitions: `list<uint32>`: numbers, ascending; empty for a message that was refused, null
            for a missing one. A message matches nothing in a partition that is not among them.
        errors: Place in the batch -> refusal by the door, so that a message is refused once and not
            by every partition it would go to. Empty where the messages were not looked at.
    """

    partitions: pa.ListArray
    errors: Mapping[int, PathcastError] = field(default_factory=dict)

    def rows_of(self, partition: int) -> np.ndarray:
        """The messages that go to a partition: places in the batch, ascending."""
        offsets = self.partitions.offsets.to_numpy()
        values = self.partitions.values.to_numpy()
        at = np.flatnonzero(values[offsets[0] : offsets[-1]] == partition) + offsets[0]
        rows: np.ndarray = np.searchsorted(offsets, at, side="right") - 1
        return rows


def check_partitions(partitions: int) -> None:
    """Refuses a number of partitions that cannot be used.

    Raises:
        ConfigError: It is no whole number from 1 to `PARTITIONS_MAX`.
    """
    is_whole = isinstance(partitions, int) and not isinstance(partitions, bool)
    if not is_whole or not 1 <= partitions <= PARTITIONS_MAX:
        reason = f"{partitions!r} is not a whole number from 1 to {PARTITIONS_MAX}"
        raise ConfigError("config.invalid", key="partitions", reason=reason)


def missing_of(chunks: Sequence[pa.Array]) -> np.ndarray:
    """For each message of a batch, whether it is a null."""
    nulls = [chunk.is_null().to_numpy(zero_copy_only=False) for chunk in chunks]
    return np.concatenate(nulls) if nulls else np.zeros(0, dtype=bool)


def touched_lists(
    rows: np.ndarray, partitions: np.ndarray, every: int, is_missing: np.ndarray
) -> pa.ListArray:
    """Pairs of message and partition as one list a message.

    Args:
        rows: Places of messages, in any order and with repetitions.
        partitions: Where each of them goes.
        every: Number of partitions.
        is_missing: For each message of the batch, whether it is a null; no pair has such a one.
    """
    pairs = np.unique(rows.astype(np.int64) * every + partitions)
    lengths = np.bincount(pairs // every, minlength=len(is_missing))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    numbers = pa.array((pairs % every).astype(np.uint32))
    mask = pa.array(is_missing) if is_missing.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets), numbers, mask=mask)


def stable_hashes(ids: Sequence[str], seed: int) -> np.ndarray:
    """A hash of each id, the same everywhere: `uint32`. Cost: 0.3 µs each."""
    start = zlib.crc32(str(seed).encode())
    raw = [zlib.crc32(each.encode(), start) for each in ids]
    # Sums of check bits of ids that are counted up are alike in their low bits.
    mixed = np.array(raw, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hashes: np.ndarray = (mixed >> np.uint64(32)).astype(np.uint32)
    return hashes
