"""Micro-batches that are older than an output shall keep: `output.keep_days`.

    rows of them -> a compaction, or a version of a Delta table, without these
    commits, pins, journal, subscriptions that none of the others ran with -> deleted

Rows go first, beside the run (`compacting`): whoever reads meanwhile finds what was there, or what
stays. The rest goes between two micro-batches, a commit once a sum has its counters and all that
follows commits has had it. What remembers which files of the source were handed on stays.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from pathcast.spark.generations import DESCRIPTION, SNAPSHOTS
from pathcast.spark.journal import JOURNAL, SUM_ENTRIES
from pathcast.spark.ledger import (
    COMMITS,
    PINS,
    BatchLedger,
    committed_batches,
    days_of,
    numbers_in,
)
from pathcast.spark.listing import file_at
from pathcast.spark.schemas import DAY, OUTPUTS
from pathcast.spark.storage import Storage
from pathcast.spark.writing import day_of

DAY_SECONDS: Final = 86_400

CLOCKS_SECONDS: Final = 3600
"""So far the clock of the storage may be from that of the driver."""


class KeptBatches:
    """Micro-batches that an output keeps.

    Args:
        output: The output.
        checkpoint: Of its pipeline.
        keep_days: Micro-batches that were begun longer ago go, the last one excepted.
        through: Gives the last micro-batch that all that follows commits has had; None for all.
        by_day: Whether micro-batches go by whole days: none is read again to be cut.
    """

    def __init__(
        self,
        output: Storage,
        checkpoint: Storage,
        keep_days: float,
        through: Callable[[], int | None] = lambda: None,
        *,
        by_day: bool = False,
    ) -> None:
        self._output = output
        self._checkpoint = checkpoint
        self._keep_seconds = keep_days * DAY_SECONDS
        self._through = through
        self._by_day = by_day
        self._ledger = BatchLedger(output, checkpoint)

    def first_kept(self) -> int:
        """Number of the first micro-batch that stays; 0 where all do.

        Cost: a listing, and a small file for each micro-batch that goes.
        """
        seconds = time.time() - self._keep_seconds
        oldest = (seconds - seconds % DAY_SECONDS if self._by_day else seconds) * 1e6
        through = self._through()
        first = 0
        for number, following in pairwise(committed_batches(self._output)):
            is_had = through is None or number <= through
            if not is_had or self._ledger.begun_us(number) >= oldest:
                break
            first = following
        return self._first_of_day(first) if self._by_day else first

    def _first_of_day(self, number: int) -> int:
        """The first micro-batch of the day of one: a day goes whole, whatever kept it so far."""
        day = day_of(self._ledger.begun_us(number))
        earlier = [each for each in committed_batches(self._output) if each < number]
        for each in reversed(earlier):
            if day_of(self._ledger.begun_us(each)) != day:
                break
            number = each
        return number

    def forget(self, first: int) -> None:
        """Deletes what is said of micro-batches whose rows are gone: those before the first kept.

        To be called by the sole writer, while no micro-batch is under way.
        """
        self._forget_subscriptions(first)
        if self._by_day:
            self._forget_days(first)
        summed = self._ledger.summed()
        numbers = committed_batches(self._output)
        self._output.delete(f"{COMMITS}/{n}.json" for n in numbers if n < min(first, summed + 1))
        # Entries that no sum has say which files were handed on.
        in_sums = summed - summed % SUM_ENTRIES
        for folder, end in ((PINS, first), (JOURNAL, min(first, in_sums + 1))):
            numbers = numbers_in(self._checkpoint, folder)
            # The last one says where numbers go on.
            self._checkpoint.delete(f"{folder}/{n}.json" for n in numbers[:-1] if n < end)

    def _forget_days(self, first: int) -> None:
        """Takes out the folders of days before one whose files are gone."""
        for name in OUTPUTS:
            last = f"{name}/{DAY}={day_of(self._ledger.begun_us(first))}"
            for folder in days_of(self._output, name):
                if folder < last and not self._output.names(folder):
                    self._output.delete_folder(folder)

    def _forget_subscriptions(self, first: int) -> None:
        """Deletes generations that no micro-batch runs with any more.

        One that was taken up before the first micro-batch that stays was begun, and is not that
        one's, had been followed by another by then.
        """
        pins = (self._ledger.pin(n) for n in numbers_in(self._checkpoint, PINS) if n >= first)
        pin = next(pins, None)
        needed = {self._ledger.in_force(), pin and pin.snapshot_version}
        begun_ns = math.inf if pin is None else pin.begun_us * 1000 - CLOCKS_SECONDS * 10**9
        for version in self._output.names(SNAPSHOTS):
            about = file_at(self._output, f"{SNAPSHOTS}/{version}/{DESCRIPTION}")
            if version in needed or about is None or about.modified_ns >= begun_ns:
                continue
            self._output.delete_folder(f"{SNAPSHOTS}/{version}")
            self._output.delete(f"rejected_queries/{version}.{e}" for e in ("parquet", "jsonl"))
