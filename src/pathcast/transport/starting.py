"""A process that listens already while its node is made from what it keeps.

Example:
    >>> starting = Starting("b")
    >>> saved = starting.counted({"members": b"", "term": b""})
    >>> _ = saved["term"]
    >>> starting.carrier
    Traceback (most recent call last):
    ...
    pathcast.errors.UnavailableError: b starts: 1 of 2 things that it keeps are restored; try again
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from pathcast.errors import UnavailableError
from pathcast.protocol import SavedRecords, records_under

if TYPE_CHECKING:
    from pathcast.transport.carrier import Carrier


class Starting:
    """The carrier of a process, as soon as there is one.

    Args:
        name: Of the process.

    Attributes:
        done: How much of what the node saved it has read again.
        total: How much that is.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = 0
        self.total = 0
        self._carrier: Carrier | None = None

    @property
    def carrier(self) -> Carrier:
        """The carrier.

        Raises:
            UnavailableError: There is none yet; it says how far it is.
        """
        if self._carrier is None:
            raise UnavailableError(
                "broker.starting", name=self.name, done=self.done, total=self.total
            )
        return self._carrier

    @property
    def is_over(self) -> bool:
        """Whether there is a carrier, whose node has begun."""
        return self._carrier is not None

    def end(self, carrier: Carrier) -> None:
        """There is one; calls are taken from now on."""
        self._carrier = carrier

    async def metrics(self) -> list[Metric]:
        """The metrics of `Watched`: there are none yet."""
        return []

    async def unready(self) -> Mapping[str, str]:
        """Implement `Watched.unready`."""
        return {"profiles": f"{self.done:,} of {self.total:,} things that are kept are restored"}

    def counted(self, saved: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Iterate over a node's saved records and count those that were read."""
        self.total = len(saved)
        return _Counted(saved, self)


class _Counted(SavedRecords):
    def __init__(self, saved: Mapping[str, bytes], starting: Starting) -> None:
        self._saved = saved
        self._starting = starting

    def __getitem__(self, key: str) -> bytes:
        value = self._saved[key]
        self._starting.done += 1
        return value

    def under(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Implement `SavedRecords.under`."""
        for found in records_under(self._saved, prefix):
            yield found
            self._starting.done += 1

    def __iter__(self) -> Iterator[str]:
        return iter(self._saved)

    def __len__(self) -> int:
        return len(self._saved)
