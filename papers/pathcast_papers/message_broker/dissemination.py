"""Customised delivery by the reference: every subscription is evaluated on every message.

Nothing is shared and nothing is left out by a gate, so that a difference between it and another
engine is the other engine's fault. What is delivered is made by `standing_subscription`: the nodes
of a bare XPath by the evaluator of XPath 1.0, a FLWR by `xquery`, a message or a notice if the
oracle says that the query holds. A subscription that is stopped on a message gets a verdict; the
others get their results.

Example:
    >>> import pyarrow as pa
    >>> from pathcast.limits import Limits
    >>> engine = ReferenceDissemination(Limits())
    >>> engine.subscribe([Subscription("s1", "desk", "<r>{//b[. > 1]}</r>")], {}).accepted
    1
    >>> answer = engine.process(pa.array([b"<a><b>1</b><b>2</b></a>"]))
    >>> answer.rows.to_pylist(), answer.fragments.to_pylist()
    ([{'message': 0, 'subscription': 0, 'result': 0, 'fragment': 0}], [b'<r><b>2</b></r>'])

It runs on the caller's thread, reads each subscription once, and keeps nothing between messages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa

from pathcast.errors import (
    ConstructionError,
    DuplicateQueryError,
    LimitExceededError,
    MessageError,
    PathcastError,
    ResultLimitError,
    UnknownQueryError,
)
from pathcast.limits import Limits
from pathcast.model import (
    BatchStats,
    DeliveredNode,
    RegisterReport,
    StoredDeliveries,
    Subscription,
)
from pathcast_papers.language import compile_subscription
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.standing_subscription import MessageView, StandingSubscription
from pathcast_papers.message_broker.xquery.evaluation import PLACE_BYTES

ROWS_SCHEMA: Final = pa.schema(
    [
        pa.field("message", pa.uint32(), nullable=False),
        pa.field("subscription", pa.uint32(), nullable=False),
        pa.field("result", pa.uint32(), nullable=False),
        pa.field("fragment", pa.uint32()),
    ]
)
"""One row a delivery; see `pathcast.kernel.registry.KernelDeliveries`."""

NODES_SCHEMA: Final = pa.schema(
    [
        pa.field("delivery", pa.uint32(), nullable=False),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("number", pa.uint32(), nullable=False),
        pa.field("start", pa.uint32()),
        pa.field("end", pa.uint32()),
    ]
)
"""One row a delivery of a node; likewise."""


def nodes_batch(places: Mapping[int, DeliveredNode]) -> pa.RecordBatch:
    """Delivery -> place as rows of `NODES_SCHEMA`."""
    rows = [{"delivery": at, **place._asdict()} for at, place in sorted(places.items())]
    return pa.RecordBatch.from_pylist(rows, NODES_SCHEMA)


def places_of(nodes: pa.RecordBatch) -> dict[int, DeliveredNode]:
    """The way back."""
    return {row.pop("delivery"): DeliveredNode(**row) for row in nodes.to_pylist()}


class Spent(NamedTuple):
    """The part of its budget that a message has used.

    Attributes:
        message: Its position in the batch.
        steps: Steps, as `Limits.message_steps_max` counts them.
        result_bytes: Bytes of results, as `Limits.message_result_bytes_max` counts them.
        has_message: Whether the message itself is delivered, which is not among the results.
    """

    message: int
    steps: int
    result_bytes: int
    has_message: bool


class _Standing(NamedTuple):
    """The subscriptions as one batch sees them."""

    subscriptions: tuple[StandingSubscription, ...]
    ids: tuple[str, ...]


class ReferenceDissemination:
    """Subscriptions that come and go.

    Args:
        limits: What one message may cost, and what its results may.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._by_id: dict[str, StandingSubscription] = {}
        self._standing: _Standing | None = None

    def subscribe(
        self, subscriptions: Sequence[Subscription], namespaces: Mapping[str, str]
    ) -> RegisterReport:
        """Adds subscriptions."""
        errors: dict[int, PathcastError] = {}
        with self._lock:
            for place, subscription in enumerate(subscriptions):
                bindings = {**namespaces, **(subscription.namespaces or {})}
                try:
                    self._subscribe(subscription._replace(namespaces=bindings or None))
                except PathcastError as error:
                    errors[place] = error
            self._standing = None
        return RegisterReport.of(subscriptions, errors)

    def _subscribe(self, subscription: Subscription) -> None:
        if subscription.id in self._by_id:
            raise DuplicateQueryError("query.duplicate", id=subscription.id)
        compiled = compile_subscription(
            subscription.query,
            subscription.namespaces,
            subscription.deliver,
            subscription.language,
        )
        self._by_id[subscription.id] = StandingSubscription(subscription, compiled)

    def unsubscribe(self, ids: Sequence[str]) -> None:
        """Takes subscriptions out, all or none."""
        with self._lock:
            for subscription_id in ids:
                self._found(subscription_id)
            for subscription_id in dict.fromkeys(ids):
                del self._by_id[subscription_id]
            self._standing = None

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription as it was made, with all namespaces it may use."""
        return self._found(subscription_id).subscription

    def _found(self, subscription_id: str) -> StandingSubscription:
        try:
            return self._by_id[subscription_id]
        except KeyError:
            raise UnknownQueryError("query.unknown", id=subscription_id) from None

    def process(self, messages: pa.Array, *, encoding: str | None = None) -> StoredDeliveries:
        """The results of every message of a batch."""
        answer, _ = self.spending(messages, encoding)
        return answer

    def spending(
        self,
        messages: pa.Array,
        encoding: str | None = None,
        budgets: list[tuple[int, int]] | None = None,
        times: Sequence[int] = (0,),
    ) -> tuple[StoredDeliveries, list[Spent]]:
        """The same within budgets, and what is taken of these.

        Args:
            messages: A batch.
            encoding: Of all messages, where it is known.
            budgets: For each message, steps and bytes of results that it may take.
            times: When each message was, or when all were (`Document`).
        """
        with self._lock:
            standing = self._standing
            if standing is None:
                ids = tuple(self._by_id)
                standing = self._standing = _Standing(tuple(self._by_id.values()), ids)
        batch = _Batch(standing.subscriptions, self._limits, encoding)
        for place, value in enumerate(messages):
            message: bytes | None = value.as_py()
            if message is not None:
                budget = None if budgets is None else budgets[place]
                batch.add(place, message, budget, times[place % len(times)])
        return batch.answer(standing.ids), batch.spent

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, subscription_id: object) -> bool:
        return subscription_id in self._by_id


DELIVERY_BYTES: Final = 64
"""What the delivery of a result takes besides its bytes: a row of the answer, in the kernel."""


class _Room:
    """What the results of all subscriptions may take together for one message.

    Args:
        bytes_max: The limit.
        left: What is left of it.
    """

    def __init__(self, bytes_max: int, left: int) -> None:
        self._bytes_max = bytes_max
        self._left = left
        self._known: set[bytes] = set()
        self._spent = 0
        self.is_full = False

    def takes(self, results: Sequence[bytes | DeliveredNode]) -> bool:
        """Whether there is room for results; if there is not, there is for none that follow.

        Equal fragments take room once, places every time.
        """
        fragments = [result for result in results if isinstance(result, bytes)]
        new = set(fragments) - self._known
        self._spent += PLACE_BYTES * (len(results) - len(fragments))
        self._spent += DELIVERY_BYTES * len(results) + sum(map(len, new))
        self._known |= new
        self.is_full = self._spent > self._left
        return not self.is_full

    def verdict(self, standing: StandingSubscription) -> PathcastError:
        """Why a subscription is not served."""
        return ResultLimitError(
            "limit.message_result_bytes",
            limit="message_result_bytes_max",
            maximum=self._bytes_max,
            id=standing.subscription.id,
        )


_Outcome: TypeAlias = Sequence[bytes | DeliveredNode | None] | PathcastError


def _outcome(standing: StandingSubscription, view: MessageView, room: _Room) -> _Outcome:
    """What one subscription gets as long as there is room.

    Raises:
        LimitExceededError: It takes too many steps, or its results are too long.
        ConstructionError: A constructor would make what is no element.
    """
    if not standing.is_results:
        return standing.payloads(view)
    if room.is_full:
        return room.verdict(standing) if standing.has_result(view) else ()
    results = standing.results(view)
    return results if room.takes(results) else room.verdict(standing)


class _Batch:
    """One batch in the making."""

    def __init__(
        self,
        subscriptions: Sequence[StandingSubscription],
        limits: Limits,
        encoding: str | None,
    ) -> None:
        self._subscriptions = subscriptions
        self._limits = limits
        self._encoding = encoding
        self._rows: tuple[list[int], list[int], list[int], list[int | None]] = ([], [], [], [])
        self._fragments: list[bytes] = []
        self._places: dict[int, DeliveredNode] = {}
        self._refusals: list[tuple[int, PathcastError]] = []
        self._verdicts: list[tuple[int, int, PathcastError]] = []
        self._stats = BatchStats()
        self.spent: list[Spent] = []
        self._order = sorted(
            range(len(subscriptions)), key=lambda number: subscriptions[number].subscription.id
        )

    def add(self, place: int, arrived: bytes, budget: tuple[int, int] | None, at: int) -> None:
        """Evaluates every subscription on a message, within its budget."""
        started = time.perf_counter_ns()
        try:
            tree = parse_message(arrived, self._limits, self._encoding)
        except MessageError as error:
            self._refusals.append((place, error))
            parsing = time.perf_counter_ns() - started
            self._stats += BatchStats(messages=1, bytes=len(arrived), refused=1, parsing_ns=parsing)
            return
        parsed = time.perf_counter_ns()
        view = MessageView(arrived, tree, self._limits, at)
        steps_max, bytes_max = self._limits.message_steps_max, self._limits.message_result_bytes_max
        steps_left, bytes_left = budget or (steps_max, bytes_max)
        # Others have taken the rest.
        view.steps = before = max(0, steps_max - steps_left)
        room = _Room(bytes_max, min(bytes_max, bytes_left))
        known: dict[bytes, int] = {}
        verdicts, deliveries, matches, size = len(self._verdicts), len(self._rows[0]), 0, 0
        places = len(self._places)
        for number, outcome in enumerate(self._outcomes(view, room)):
            if isinstance(outcome, PathcastError):
                self._verdicts.append((place, number, outcome))
                continue
            matches += bool(outcome)
            for result, payload in enumerate(outcome):
                self._add_row(place, number, result, payload, known)
                size += len(payload) if isinstance(payload, bytes) else 0
        of_places = PLACE_BYTES * (len(self._places) - places)
        self._stats += BatchStats(
            messages=1,
            bytes=len(arrived),
            matches=matches,
            nodes=len(tree) + len(tree.attribute_name),
            evaluations=len(self._subscriptions),
            steps=min(view.steps, steps_max) - before,
            verdicts=len(self._verdicts) - verdicts,
            deliveries=len(self._rows[0]) - deliveries,
            result_bytes=size + of_places,
            parsing_ns=parsed - started,
            customising_ns=time.perf_counter_ns() - parsed,
        )

        if budget is not None:
            rows = len(self._rows[0]) - deliveries
            results = sum(len(fragment) for fragment in known if fragment != arrived)
            taken = view.steps - before, DELIVERY_BYTES * rows + results + of_places
            self.spent.append(Spent(place, *taken, arrived in known))

    def _outcomes(self, view: MessageView, room: _Room) -> list[_Outcome]:
        """What each subscription gets, or why it gets nothing; by number."""
        outcomes: dict[int, _Outcome] = {}
        for number in self._order:
            try:
                outcomes[number] = _outcome(self._subscriptions[number], view, room)
            except (LimitExceededError, ConstructionError) as error:
                outcomes[number] = error
        return [outcomes[number] for number in range(len(outcomes))]

    def _add_row(
        self,
        place: int,
        number: int,
        result: int,
        payload: bytes | DeliveredNode | None,
        known: dict[bytes, int],
    ) -> None:
        at: int | None = None
        if isinstance(payload, DeliveredNode):
            self._places[len(self._rows[0])] = payload
        elif payload is not None:
            if payload not in known:
                known[payload] = len(self._fragments)
                self._fragments.append(payload)
            at = known[payload]
        for column, value in zip(self._rows[:3], (place, number, result), strict=True):
            column.append(value)
        self._rows[3].append(at)

    def answer(self, ids: Sequence[str]) -> StoredDeliveries:
        """What the batch gives."""
        columns = [pa.array(column, pa.uint32()) for column in self._rows]
        return StoredDeliveries(
            rows=pa.RecordBatch.from_arrays(columns, schema=ROWS_SCHEMA),
            nodes=nodes_batch(self._places),
            fragments=pa.array(self._fragments, pa.large_binary()),
            refusals=self._refusals,
            verdicts=self._verdicts,
            stats=self._stats,
            subscription_ids=ids,
            known_recipients={},
        )
