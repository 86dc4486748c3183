"""The snapshot of the registry of the reference: subscriptions of all kinds that do not change.

Example:
    >>> rows = [Subscription("s1", "ann", "//a"), Subscription("q1", "", "/a[@b]", "ids")]
    >>> frozen = FrozenRegistry(rows, ["q1"], Limits())
    >>> list(frozen.query_ids), frozen.subscription("s1").subscriber, frozen.has_filters_only
    (['q1', 's1'], 'ann', False)

Filter queries alone are saved as `pathcast_papers.filtering.snapshot_file` has it, which the kernel
reads too; others as JSON, which it does not read. Nothing compiled is saved.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pathcast.errors import UnknownQueryError
from pathcast.limits import Limits
from pathcast.model import MatcherOptions, Query, StepData, Subscription
from pathcast_papers.filtering.matcher import ReferenceMatcher
from pathcast_papers.filtering.snapshot import ReferenceSnapshot
from pathcast_papers.message_broker.registry import ReferenceRegistry
from pathcast_papers.message_broker.set_version import set_version, sum_of_digests


class FrozenRegistry:
    """Subscriptions that do not change.

    Args:
        subscriptions: Each with all namespaces it may use.
        filters: Ids of those that are filter queries.
        limits: What a message may cost, as agreed where they were frozen.
        steps: Id -> the steps as they were read, of those that have some.
    """

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        filters: Collection[str],
        limits: Limits,
        steps: Mapping[str, Sequence[StepData]] | None = None,
    ) -> None:
        self.limits = limits
        self.query_ids = [
            *(row.id for row in subscriptions if row.id in filters),
            *(row.id for row in subscriptions if row.id not in filters),
        ]
        self.has_filters_only = len(filters) == len(subscriptions)
        self._filters = set(filters)
        self._rows = {row.id: row for row in subscriptions}
        self._steps = dict(steps or {})
        self.version = set_version(subscriptions, limits)
        self.sum = sum_of_digests(subscriptions)

    @classmethod
    def of(cls, registry: ReferenceRegistry) -> FrozenRegistry:
        """What is in a registry now."""
        rows = [registry.subscription(name) for name in registry.ids()]
        steps = {row.id: registry.steps(row.id) for row in rows if row.steps}
        return cls(rows, registry.filters(), registry.limits, steps)

    @classmethod
    def open(cls, path: Path) -> FrozenRegistry:
        """Opens a file of either form.

        Raises:
            SnapshotFormatError: The file is foreign, of another version or damaged.
        """
        content = path.read_bytes()
        if not content.startswith(b"{"):
            found = ReferenceSnapshot.open(path)
            queries = map(found.query, found.query_ids)
            rows = [Subscription(q.id, "", q.text, "ids", q.namespaces) for q in queries]
            return cls(rows, found.query_ids, found.limits)
        told = json.loads(content)
        rows = [Subscription(*row)._replace(steps=tuple(row[5])) for row in told["subscriptions"]]
        limits = Limits.from_json(told["limits"], str(path))
        steps = {
            name: [(edit, place, new, tuple(map(tuple, bound))) for edit, place, new, bound in read]
            for name, read in told["steps"].items()
        }
        return cls(rows, told["filters"], limits, steps)

    def save(self, path: Path) -> None:
        """Writes the file."""
        if self.has_filters_only:
            self._queries().save(path)
            return
        told = {
            "limits": self.limits.to_json(),
            "filters": sorted(self._filters),
            "steps": dict(sorted(self._steps.items())),
            "subscriptions": [self._rows[name] for name in sorted(self._rows)],
        }
        temporary = path.with_name(f".{path.name}.written")
        temporary.write_text(json.dumps(told))
        temporary.replace(path)

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription of an id.

        Raises:
            UnknownQueryError: No subscription has this id.
        """
        if subscription_id not in self._rows:
            raise UnknownQueryError("query.unknown", id=subscription_id)
        return self._rows[subscription_id]

    def matcher(self, options: MatcherOptions) -> ReferenceMatcher | ReferenceRegistry:
        """A matcher over this snapshot."""
        if self.has_filters_only:
            return self._queries().matcher(options)
        return self.begin(options)

    def begin(self, options: MatcherOptions) -> ReferenceRegistry:
        """A registry that goes on from it."""
        registry = ReferenceRegistry(options.limits)
        registry.register(self._filter_queries(), {})
        others = [self._rows[name] for name in self.query_ids if name not in self._filters]
        steps = {
            place: self._steps[row.id] for place, row in enumerate(others) if row.id in self._steps
        }
        registry.subscribe(others, {}, steps)
        return registry

    def _queries(self) -> ReferenceSnapshot:
        return ReferenceSnapshot(self._filter_queries(), self.limits, version=self.version)

    def _filter_queries(self) -> list[Query]:
        found = [self._rows[name] for name in self.query_ids if name in self._filters]
        return [Query(row.id, row.query, row.namespaces, row.language) for row in found]

    def __len__(self) -> int:
        return len(self._rows)
