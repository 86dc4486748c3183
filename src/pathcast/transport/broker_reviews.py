"""A broker reviews, beside all else, tables with a budget and the snapshot of its profiles.

A review runs in another thread; the event that takes what it made runs in the node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pathcast.errors import (
    PathcastError,
    SnapshotFormatError,
)
from pathcast.overlay.broker import BrokerState
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.budgeted_table import BudgetedTable, HeldEntries, TableReview
from pathcast.overlay.subscription_snapshots import SnapshotReview
from pathcast.overlay.xml_content import XmlInterests
from pathcast.protocol import Effect
from pathcast.transport.carrier import Improvement
from pathcast.transport.events import log_event, reason_of


def improvement(node: BrokerNode, is_last: bool) -> Improvement | None:
    """Makes tables with a budget anew, and the snapshot of profiles (`NodeAdapter.improve`)."""
    broker = node.broker
    snapshot = broker.snapshots.review(is_last=is_last)
    schemas = [entry.schema for _, entry in broker.announcements.sources().values()]
    tables = [
        (table, review)
        for table in (() if is_last else budgeted_tables(broker).values())
        if (review := table.review(filter(None, schemas))) is not None
    ]
    if not tables and snapshot is None:
        return None

    def work() -> Callable[[float], Sequence[Effect]]:
        made = [(table, _chosen(broker.name, review)) for table, review in tables]
        kept = None if snapshot is None else _kept(broker.name, snapshot)

        def adopt(now: float) -> Sequence[Effect]:
            for table, held in made:
                _adopt(broker.name, table, held)
            if kept is not None:
                broker.snapshots.adopt(kept.made, is_base_lost=kept.is_base_lost)
            return node.done(now)

        return adopt

    return work


class _KeptSnapshot(NamedTuple):
    """The outcome of a review of the snapshot, as `SubscriptionSnapshots.adopt` takes it."""

    made: tuple[str, bytes] | None
    is_base_lost: bool = False


def _kept(name: str, review: SnapshotReview) -> _KeptSnapshot:
    """Make a snapshot; what fails is logged, and changes go on to be counted."""
    began = time.monotonic()
    try:
        made = review.make()
    except Exception as error:
        log_event("profiles.unkept", name=name, **_reason_of(error))
        return _KeptSnapshot(None, isinstance(error, SnapshotFormatError | FileNotFoundError))
    seconds = round(time.monotonic() - began, 1)
    log_event("profiles.kept", name=name, changed=len(review.changed), seconds=seconds)
    return _KeptSnapshot(made)


def _reason_of(error: Exception) -> Mapping[str, Any]:
    """Code and words of any error, for the log."""
    if isinstance(error, PathcastError):
        return reason_of(error)
    return {"code": type(error).__name__, "reason": str(error)}


def _chosen(name: str, review: TableReview) -> HeldEntries | Exception | None:
    """The table to adopt, made without the schemas if these are what goes wrong."""
    without = [replace(review, schemas=())] if review.schemas else []
    for tried in (review, *without):
        try:
            return tried.choose()
        except Exception as error:
            failure = error
            log_event("table.kept", name=name, **_reason_of(error))
    return failure


def _adopt(name: str, table: BudgetedTable, made: HeldEntries | Exception | None) -> None:
    """End the review of a table; whatever goes wrong, the table stays whole."""
    if isinstance(made, Exception):
        table.fail()
        return
    try:
        table.adopt(made)
    except Exception as error:
        log_event("table.kept", name=name, **_reason_of(error))
        table.fail()
        return
    if made is not None:
        _log_table(name, table)


def _log_table(name: str, table: BudgetedTable) -> None:
    in_vain = table.in_vain
    log_event("table.made", name=name, told=table.told, held=len(table), in_vain=in_vain)


def budgeted_tables(broker: BrokerState) -> dict[str, BudgetedTable]:
    """Tree -> its table, of those with a budget."""
    return {
        tree: plane.interests.budgeted
        for tree, plane in broker.planes.items()
        if isinstance(plane.interests, XmlInterests) and plane.interests.budgeted is not None
    }
