"""The subscriptions of a generation as rows: who had asked for what, with the texts.

A subscription whose row is not valid any more is answered in its last valid version, which is the
one of the generation that is in force. `why` asks for the subscriptions of one subscriber.

Example:
    >>> kept = LastValidVersions(output, generation, {})                    # doctest: +SKIP
    >>> kept([("ann", "q1")])                                               # doctest: +SKIP

It compiles nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import SnapshotFormatError
from pathcast.model import Subscription
from pathcast.registry import Snapshot
from pathcast.registry.subscription_rows import SubscriptionKey
from pathcast.spark.generations import Generation, GenerationFiles
from pathcast.spark.ledger import BatchLedger

if TYPE_CHECKING:
    from pathcast.spark.settings import PipelineSettings
    from pathcast.spark.storage import Storage


@dataclass(frozen=True, slots=True)
class LastValidVersions:
    """The subscriptions of a generation, by subscriber and id of the query.

    Args:
        storage: The output that has the generation.
        generation: The generation.
        namespaces: Prefixes for all queries, which a row of it need not repeat.
    """

    storage: Storage
    generation: Generation
    namespaces: Mapping[str, str]

    def __call__(self, keys: Collection[SubscriptionKey]) -> Mapping[SubscriptionKey, Subscription]:
        """Returns those of some subscriptions that the generation has.

        Args:
            keys: Subscriber and id of the query of each.

        Cost: the ids of the generation are looked through; texts are read of those that are there.
        """
        ids = pa.array(sorted({name for _, name in keys}), pa.string())
        found: dict[SubscriptionKey, Subscription] = {}
        with self.generation.files(self.storage) as files:
            table = files.table()
            rows = table.rows(np.flatnonzero(pc.is_in(table.ids, value_set=ids)))
            pairs = zip(rows.subscribers.to_pylist(), rows.ids.to_pylist(), strict=True)
            wanted = set(pairs) & set(keys)
            texts = _texts_of(files, {name for _, name in wanted})
        for subscriber, name in wanted:
            row = texts[name]._replace(subscriber=subscriber)
            found[subscriber, name] = row._replace(namespaces=self._own(row.namespaces))
        return found

    def _own(self, namespaces: Mapping[str, str] | None) -> Mapping[str, str] | None:
        bound = dict(namespaces or {})
        return {k: v for k, v in bound.items() if self.namespaces.get(k) != v} or None


def last_valid_of(settings: PipelineSettings) -> LastValidVersions | None:
    """The last valid versions of the subscriptions of a pipeline, as its next run would find them.

    None where there are none: the pipeline has not run, or is told to end such subscriptions.
    """
    wanted = settings.subscriptions
    if wanted.invalid == "end":
        return None
    output = settings.output.storage
    version = BatchLedger(output, settings.checkpoint).in_force()
    if version is not None:
        with suppress(SnapshotFormatError):
            generation = Generation.read(output, version)
            return LastValidVersions(output, generation, wanted.namespaces)
    return None


def subscriptions_of(storage: Storage, version: str, subscriber: str) -> dict[str, Subscription]:
    """Returns what a subscriber had asked for in a generation, by id of the query."""
    with Generation.read(storage, version).files(storage) as files:
        table = files.table()
        mine = set(table.ids.filter(pc.equal(table.subscribers, subscriber)).to_pylist())
        return _texts_of(files, mine)


def _texts_of(files: GenerationFiles, wanted: set[str]) -> dict[str, Subscription]:
    """The queries of some ids."""
    if not wanted:
        return {}
    opened = Snapshot.open(files.queries)
    return {name: opened.get(name) for name in wanted.intersection(opened.query_ids)}
