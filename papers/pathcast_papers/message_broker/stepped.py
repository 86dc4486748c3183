"""Subscriptions with and without steps by the reference: an engine for each series of steps.

Subscriptions without steps are served first, then series after series in the order of their texts,
within what is left to the message. A series is served if the message has what has to be there
before its steps, which decides who is undecided where the steps cannot be done.

It is the oracle of `pathcast.kernel.registry`, whose methods it has.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import NamedTuple

import pyarrow as pa

from pathcast.errors import (
    DuplicateQueryError,
    PathcastError,
    UnknownQueryError,
    UnsupportedQueryError,
    error_for,
)
from pathcast.limits import STEP_SERIES_MAX, Limits
from pathcast.model import (
    BatchStats,
    DeliveredNode,
    Recipient,
    RegisterReport,
    StepData,
    StoredDeliveries,
    Subscription,
)
from pathcast.registry.before_steps import conjunctions_before
from pathcast.registry.steps import parse_steps
from pathcast_papers.filtering.index import ReferenceIndex
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.dissemination import (
    ROWS_SCHEMA,
    ReferenceDissemination,
    nodes_batch,
    places_of,
)
from pathcast_papers.message_broker.restructuring import (
    MessageBudget,
    MessageRestructuring,
    Steps,
)
from pathcast_papers.message_broker.set_version import sum_of_digests


class _Stepped(NamedTuple):
    """A subscription with steps.

    Attributes:
        steps: The steps.
        texts: The same as they were given.
        gate: Queries of which a message has one before the steps.
    """

    steps: Steps
    texts: tuple[str, ...]
    gate: tuple[str, ...]


class _Served:
    """What a batch has given so far."""

    def __init__(self) -> None:
        self.deliveries: list[tuple[int, str, int, bytes | DeliveredNode | None]] = []
        self.verdicts: list[tuple[int, str, PathcastError]] = []
        self.refusals: list[tuple[int, PathcastError]] = []
        self.stats = BatchStats()


class SteppedReference:
    """Subscriptions that come and go.

    Args:
        limits: What one message may cost, and what its results may.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._plain = ReferenceDissemination(limits)
        self._series: dict[Steps, ReferenceDissemination] = {}
        self._stepped: dict[str, _Stepped] = {}
        self._order: dict[str, None] = {}

    def subscribe(
        self,
        subscriptions: Sequence[Subscription],
        namespaces: Mapping[str, str],
        steps: Mapping[int, Sequence[StepData]] | None = None,
        taken: Container[str] = (),
    ) -> RegisterReport:
        """Adds subscriptions whose ids are not taken."""
        errors: dict[int, PathcastError] = {}
        for place, row in enumerate(subscriptions):
            bound = {**namespaces, **(row.namespaces or {})} or None
            read = tuple((steps or {}).get(place, ()))
            try:
                if row.id in self or row.id in taken:
                    raise DuplicateQueryError("query.duplicate", id=row.id)
                self._take(row._replace(namespaces=bound), read)
                self._order[row.id] = None
            except PathcastError as error:
                errors[place] = error
        return RegisterReport.of(subscriptions, errors)

    def _take(self, row: Subscription, steps: Steps) -> None:
        engine = self._series.get(steps) if steps else self._plain
        gate: tuple[str, ...] = ()
        if steps:
            # Who is concerned by steps that cannot be done is for the product to say.
            parsed = parse_steps(row.steps, row.namespaces)
            gate = tuple(paths.text for paths in conjunctions_before(row, parsed))
            if engine is None and len(self._series) >= STEP_SERIES_MAX:
                raise UnsupportedQueryError("subscription.step_series", maximum=STEP_SERIES_MAX)
        if engine is None:
            engine = ReferenceDissemination(self._limits)
        for error in engine.subscribe([row], {}).errors.values():
            raise error
        if steps:
            self._series[steps] = engine
            self._stepped[row.id] = _Stepped(steps, row.steps, gate)

    def unsubscribe(self, ids: Sequence[str]) -> None:
        """Takes subscriptions out, all or none."""
        for name in ids:
            if name not in self:
                raise UnknownQueryError("query.unknown", id=name)
        for name in dict.fromkeys(ids):
            del self._order[name]
            stepped = self._stepped.pop(name, None)
            engine = self._plain if stepped is None else self._series[stepped.steps]
            engine.unsubscribe([name])
            if stepped is not None and not len(engine):
                del self._series[stepped.steps]

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription as it was made, with all namespaces it may use."""
        stepped = self._stepped.get(subscription_id)
        if stepped is None:
            return self._plain.subscription(subscription_id)
        found = self._series[stepped.steps].subscription(subscription_id)
        return found._replace(steps=stepped.texts)

    def steps(self, subscription_id: str) -> Steps:
        """The steps of a subscription, as they were read."""
        stepped = self._stepped.get(subscription_id)
        return () if stepped is None else stepped.steps

    def ids(self) -> list[str]:
        """The ids of all."""
        return list(self._order)

    def process(
        self,
        messages: pa.Array | list[bytes | None],
        *,
        encoding: str | None = None,
        done: Sequence[int] = (),
        times: Sequence[int] = (),
    ) -> StoredDeliveries:
        """The results of every message of a batch, to which so many steps were done before."""
        bodies = messages if isinstance(messages, list) else messages.to_pylist()
        served = self._served(bodies, done, encoding, times or (time.time_ns() // 1000,))
        ids = list(self._order)
        numbers = {name: number for number, name in enumerate(ids)}
        fragments: dict[tuple[int, bytes], int] = {}
        rows = sorted(
            (row, numbers[name], result, made) for row, name, result, made in served.deliveries
        )
        places = [
            fragments.setdefault((row, made), len(fragments)) if isinstance(made, bytes) else None
            for row, _, _, made in rows
        ]
        nodes = {at: made for at, (*_, made) in enumerate(rows) if isinstance(made, DeliveredNode)}
        columns = [
            *(pa.array([each[column] for each in rows], pa.uint32()) for column in range(3)),
            pa.array(places, pa.uint32()),
        ]
        verdicts = [(row, numbers[name], error) for row, name, error in served.verdicts]
        return StoredDeliveries(
            rows=pa.RecordBatch.from_arrays(columns, schema=ROWS_SCHEMA),
            nodes=nodes_batch(nodes),
            fragments=pa.array([made for _, made in fragments], pa.large_binary()),
            refusals=served.refusals,
            verdicts=sorted(verdicts, key=lambda each: each[:2]),
            stats=served.stats,
            subscription_ids=ids,
            known_recipients=dict(enumerate(map(self._recipient, ids))),
        )

    def _recipient(self, name: str) -> Recipient:
        subscription = self.subscription(name)
        return Recipient(subscription.subscriber, sum_of_digests([subscription])[:16])

    def _served(
        self,
        messages: Sequence[bytes | None],
        done: Sequence[int],
        encoding: str | None,
        times: Sequence[int],
    ) -> _Served:
        served = _Served()
        texts = list(dict.fromkeys(text for each in self._stepped.values() for text in each.gate))
        gates = ReferenceIndex({}, self._limits)
        gates.register_gates(texts)
        for row, message in enumerate(messages):
            if message is not None:
                came = done[row] if done else 0, encoding, times[row % len(times)]
                self._serve(served, row, message, came, (gates, texts))
        return served

    def _serve(
        self,
        served: _Served,
        row: int,
        message: bytes,
        came: tuple[int, str | None, int],
        gate: tuple[ReferenceIndex, Sequence[str]],
    ) -> None:
        done, encoding, at = came
        budget = MessageBudget(self._limits)
        refusals = self._answer(served, row, self._plain, message, (encoding, at), budget)
        served.refusals += [(row, error) for error in refusals]
        if refusals or not self._series:
            return
        gates, texts = gate
        [found], _ = gates.match([parse_message(message, self._limits, encoding)], self._limits)
        numbers = (*found.numbers, *found.over_budget, *found.undecided)
        holding = {texts[number] for number in numbers}
        one = MessageRestructuring(message, done, self._limits, encoding, budget)
        for steps in sorted(self._series):
            may_satisfy = [
                name
                for name, each in self._stepped.items()
                if each.steps == steps and holding & {*each.gate}
            ]
            if len(steps) < done or not may_satisfy:
                continue
            made = one.after(steps)
            error = made if isinstance(made, PathcastError) else budget.used_up()
            if error is None and isinstance(made, bytes):
                budget.spend_text(made)
                engine = self._series[steps]
                for refused in self._answer(
                    served, row, engine, made, (encoding, at), budget, True
                ):
                    error = refused
            if error is not None:
                served.verdicts += [
                    (row, name, error_for(error.code, {**error.params, "id": name}))
                    for name in may_satisfy
                ]
                served.stats += BatchStats(verdicts=len(may_satisfy))
        served.stats += BatchStats(steps=budget.restructuring_steps)

    def _answer(
        self,
        served: _Served,
        row: int,
        engine: ReferenceDissemination,
        message: bytes,
        came: tuple[str | None, int],
        budget: MessageBudget,
        is_changed: bool = False,
    ) -> list[PathcastError]:
        """Adds what an engine gives; why it refuses the message."""
        left = max(0, budget.steps), max(0, budget.result_bytes)
        encoding, at = came
        column = pa.array([message], pa.binary())
        answer, spent = engine.spending(column, encoding, [left], [at])
        ids, fragments = answer.subscription_ids, answer.fragments.to_pylist()
        nodes = places_of(answer.nodes)
        for place, each in enumerate(answer.rows.to_pylist()):
            at = each["fragment"]
            made = nodes.get(place) if at is None else fragments[at]
            served.deliveries.append((row, ids[each["subscription"]], each["result"], made))
        served.verdicts += [(row, ids[number], error) for _, number, error in answer.verdicts]
        for taken in spent:
            budget.steps -= taken.steps
            budget.result_bytes -= taken.result_bytes
            if taken.has_message and is_changed:
                budget.result_bytes -= len(message)
        stats = answer.stats
        if is_changed:
            stats = replace(stats, messages=0, bytes=0, refused=0, nodes=0)
        served.stats = reduce(add, [served.stats, stats])
        return [error for _, error in answer.refusals]

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, subscription_id: object) -> bool:
        return subscription_id in self._order
