"""Where the queries of a pipeline are matched, told for people: `pathcast explain pipeline.toml`.

It says what a run would do and what that costs, which partition a query is in, and which partitions
a message would go to, with the paths of the routing index that lead there. Nothing of it is written
to the pipeline's output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import UnknownQueryError
from pathcast.kernel import parse
from pathcast.registry.subscription_engines import SubscriptionEngines
from pathcast.registry.subscription_rows import SubscriptionRows
from pathcast.spark.placing import Choice, choice_of
from pathcast.spark.storage import Storage
from pathcast.spark.subscription_places import place_of

if TYPE_CHECKING:
    from pathcast.spark.partitions import PartitionedGeneration
    from pathcast.spark.settings import PipelineSettings

ROUTES_SHOWN: Final = 3
"""Paths that are shown of those that lead a message to a partition."""


@dataclass(frozen=True, slots=True)
class PlacementExplanation:
    """Where queries are, and where a message goes.

    Attributes:
        choice: What a run would do.
        queries: Id of each query that was asked about -> its partition; null on every worker.
        routes: Partition that the message goes to -> paths that lead there; None without one.
    """

    choice: Choice
    queries: Mapping[str, int | None]
    routes: Mapping[int, Sequence[str]] | None

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        placed = self.choice.placed
        goes = None
        if self.routes is not None and placed is not None:
            goes = [
                {"partition": at, "queries": placed.partitions[at].queries, "routes": list(paths)}
                for at, paths in self.routes.items()
            ]
        return {
            "placement": self.choice.kind,
            "why": self.choice.why,
            "partitions": None if placed is None else len(placed.partitions),
            "queries": dict(self.queries),
            "message": goes,
        }

    def to_text(self) -> str:
        """For people."""
        lines = [f"placement: {self.choice}"]
        for name, at in self.queries.items():
            if at is None:
                lines.append(f"{name}: on every worker")
                continue
            goes = ""
            if self.routes is not None:
                goes = ", where the message goes" if at in self.routes else ", where it does not go"
            lines.append(f"{name}: partition {at}{goes}")
        placed = self.choice.placed
        if self.routes is None or placed is None:
            return "\n".join(lines)
        lines.append(f"the message goes to {len(self.routes)} of {len(placed.partitions)}:")
        for at, paths in self.routes.items():
            more = len(paths) - ROUTES_SHOWN
            told = ", ".join(paths[:ROUTES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
            lines.append(f"  partition {at}, {placed.partitions[at].queries:,} queries: by {told}")
        return "\n".join(lines)


def explain_placement(
    settings: PipelineSettings,
    *,
    query_ids: Sequence[str] = (),
    message: bytes | None = None,
) -> PlacementExplanation:
    """Where a pipeline would match its queries, and why.

    Args:
        settings: The pipeline.
        query_ids: Queries whose partition is asked for.
        message: A message, or None.

    Raises:
        ConfigError: The subscriptions cannot be read.
        UnknownQueryError: There is no such query, or it is rejected.
        MessageError: The message is refused.

    Cost: that of `choice_of`.
    """
    with TemporaryDirectory() as folder:
        storage = Storage(folder)
        choice = choice_of(settings, storage)
        if choice.placed is None:
            _check_known(settings, query_ids)
            if message is not None:
                parse(message, settings.engine.message_limits())
            return PlacementExplanation(choice, dict.fromkeys(query_ids), None)
        queries = _partitions_of(choice.placed, storage, query_ids)
        routes: dict[int, list[str]] | None = None
        if message is not None:
            routes = {}
            index = choice.placed.routing(storage)
            for path, targets in index.reached(message).items():
                for at in targets:
                    routes.setdefault(at, []).append(path)
        return PlacementExplanation(
            choice, queries, None if routes is None else dict(sorted(routes.items()))
        )


def _check_known(settings: PipelineSettings, query_ids: Sequence[str]) -> None:
    """Refuses ids that no query has which a run would take.

    Raises:
        ConfigError: The subscriptions cannot be read.
        UnknownQueryError: There is no such query, or it is rejected.

    Cost: reads all subscriptions, and compiles those that are asked for.
    """
    if not query_ids:
        return
    wanted = settings.subscriptions
    with closing(place_of(wanted)) as place:
        found = place.rows(wanted.deliver)
    asked = [
        (row, at) for row, at in zip(found.rows, found.places, strict=True) if row.id in query_ids
    ]
    rows = SubscriptionRows([row for row, _ in asked], [at for _, at in asked], [])
    limits = settings.engine.message_limits()
    engines = SubscriptionEngines(limits, wanted.namespaces)
    engines.take_up(rows)
    for name in query_ids:
        if name not in engines.queries:
            raise UnknownQueryError("query.unknown", id=name)


def _partitions_of(
    placed: PartitionedGeneration, storage: Storage, query_ids: Sequence[str]
) -> dict[str, int | None]:
    """The partition of each query."""
    wanted = pa.array(query_ids, pa.string())
    found: dict[str, int] = {}
    for number, part in enumerate(placed.partitions):
        if part.queries and len(found) < len(wanted):
            with placed.partition(number).files(storage) as files:
                ids = files.table().ids
            here = ids.filter(pc.is_in(ids, value_set=wanted)).to_pylist()
            found |= dict.fromkeys(here, number)
    for name in query_ids:
        if name not in found:
            raise UnknownQueryError("query.unknown", id=name)
    return {name: found[name] for name in query_ids}
