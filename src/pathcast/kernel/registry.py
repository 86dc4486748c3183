"""The registry of the native kernel, whose own class is called `Dissemination`.

The kernel reads and compiles every subscription from its text. Of a text that it refuses,
`pathcast.query` makes the error that the subscriber sees.

Example:
    >>> import pyarrow as pa
    >>> from pathcast.limits import Limits
    >>> registry = KernelRegistry(Limits(), threads=1, cache_bytes_max=1 << 20)
    >>> registry.subscribe([Subscription("s1", "desk", "<r>{//b[. > 1]}</r>")], {}).accepted
    1
    >>> answer = registry.process(pa.array([b"<a><b>1</b><b>2</b></a>"]))
    >>> answer.rows.to_pylist(), answer.fragments.to_pylist()
    ([{'message': 0, 'subscription': 0, 'result': 0, 'fragment': 0}], [b'<r><b>2</b></r>'])

It decides nothing about subscriptions or messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import pyarrow as pa

from pathcast.boundary import cache_bytes, native, native_errors
from pathcast.errors import (
    DuplicateQueryError,
    PathcastError,
    UnknownQueryError,
    UnsupportedQueryError,
    error_for,
)
from pathcast.kernel.matcher import KernelAnswer, KernelIds, verdicts_of
from pathcast.kernel.plan import plan_lines
from pathcast.limits import STEP_SERIES_MAX, Limits
from pathcast.model import (
    BatchStats,
    DeliveredNode,
    LocalDeliverMode,
    MatcherOptions,
    Query,
    QueryLanguage,
    Recipient,
    RegisterReport,
    StepData,
    StoredDeliveries,
    Subscription,
)
from pathcast.query import CompiledSubscription, CostClass, compile_subscription
from pathcast.query.refusals import Refusal, error_of
from pathcast.query.xquery import refusal_of

if TYPE_CHECKING:
    from pathcast.kernel import KernelSnapshot

_RECIPIENTS: Final = ["subscription_id", "subscriber", "version"]
_ROWS: Final = pa.schema(
    [
        pa.field("message", pa.uint32(), nullable=False),
        pa.field("subscription", pa.uint32(), nullable=False),
        pa.field("result", pa.uint32(), nullable=False),
        pa.field("fragment", pa.uint32()),
    ]
)


def error_of_query(query: Query, namespaces: Mapping[str, str], refusal: Refusal) -> PathcastError:
    """The error of a filter query that the kernel refuses."""
    if refusal.code == "query.duplicate":
        return DuplicateQueryError("query.duplicate", id=query.id)
    if refusal.reason == "NoGate":
        more = "a gate that asks for more than paths"
        return UnsupportedQueryError(
            refusal.code, query=query.text, offset=0, construct=more, reason=f"{more} is refused"
        )
    return error_of(refusal, query.text, {**namespaces, **(query.namespaces or {})})


def _compiled(subscription: Subscription) -> CompiledSubscription:
    _, _, query, deliver, namespaces, _, language = subscription
    return compile_subscription(query, namespaces, deliver, language)


class KernelDeliveries:
    """The kernel's deliveries of one batch; nothing of them is made before it is asked for.

    Of refusals and verdicts there are few, and each reading makes them anew.
    """

    def __init__(self, answer: native.DeliveryAnswer) -> None:
        self._answer = answer

    def __len__(self) -> int:
        return len(self._answer)

    def places(self, message: int) -> range:
        """Places of the deliveries of a message, by its place in the batch."""
        return range(*self._answer.places(message))

    def deliveries(self, places: range) -> list[tuple[int, str, int, bytes | None]]:
        """Deliveries by their places.

        Each is the place of its message, the id of its subscription, its number among the results
        of the subscription for the message, and the result: None for deliver="ids". Ascending by
        message, then by number of subscription, then by result.

        Args:
            places: Consecutive.
        """
        return self._answer.deliveries(places.start, places.stop)

    def recipient(self, place: int) -> tuple[Recipient, DeliveredNode | None]:
        """Whom the delivery at a place goes to, and the node of one for deliver="nodes"."""
        subscriber, version, node = self._answer.recipient(place)
        return Recipient(subscriber, version), None if node is None else DeliveredNode(*node)

    @cached_property
    def rows(self) -> pa.RecordBatch:
        """One row a delivery, in their order, columns `uint32`.

        They are `message` (place in the batch), `subscription` (number), `result` (from 0) and
        `fragment` (place in `fragments`; null for deliver="ids" and deliver="nodes").
        """
        with native_errors():
            return pa.RecordBatch.from_arrays(self._answer.rows(), schema=_ROWS)

    @cached_property
    def nodes(self) -> pa.RecordBatch:
        """One row a delivery of a node, in their order.

        They are `delivery` (place in `rows`), `kind` (a dictionary), `number`, `start` and `end`
        (`uint32`), as `DeliveredNode` says.
        """
        with native_errors():
            row, kind, number, start, end = self._answer.nodes()
            kinds = pa.array(self._answer.kinds())
        kind = pa.DictionaryArray.from_arrays(kind.view(pa.int8()), kinds)
        columns = [row, kind, number, start, end]
        return pa.RecordBatch.from_arrays(columns, ["delivery", "kind", "number", "start", "end"])

    @cached_property
    def fragments(self) -> pa.Array:
        """`large_binary` array without nulls: the results, each distinct one once in a message.

        For deliver="message" the message is one of them.
        """
        with native_errors():
            return self._answer.fragments()

    def subscribed(self) -> tuple[pa.Array, pa.Array]:
        """The numbers of the subscriptions that got something, ascending, as a `uint32` array.

        And of each delivery the place of its subscription among them, likewise.
        """
        with native_errors():
            numbers, places = self._answer.subscribed()
        return numbers, places

    def recipients(self, numbers: pa.Array) -> pa.RecordBatch:
        """Whom the results of subscriptions go to.

        Columns are `subscription_id`, `subscriber` (both `string`) and `version` (16 bytes), as
        they were when the batch was answered, whatever has changed since.

        Args:
            numbers: Of the subscriptions, a `uint32` array.

        Cost: 0.1 µs each; 0.5 µs for those whose version was not asked for before.
        """
        with native_errors():
            ids, subscribers, versions = self._answer.entries().recipients(numbers)
        columns = [ids.cast(pa.string()), subscribers.cast(pa.string()), versions]
        return pa.RecordBatch.from_arrays(columns, _RECIPIENTS)

    @property
    def refusals(self) -> list[tuple[int, PathcastError]]:
        """Position in the batch and error, ascending by position."""
        return [(row, error_for(code, params)) for row, code, params in self._answer.refusals()]

    @property
    def verdicts(self) -> list[tuple[int, int, PathcastError]]:
        """Position, number of the subscription and error, ascending; such a pair has no row."""
        return verdicts_of(self._answer.verdicts(), self._answer.entries())

    @cached_property
    def work(self) -> list[tuple[int, int]]:
        """Number and steps of the subscriptions that took the most, as of `KernelAnswer.work`."""
        return self._answer.work()

    @cached_property
    def stats(self) -> BatchStats:
        """Counters of the batch."""
        return BatchStats(**self._answer.stats())

    @cached_property
    def subscription_ids(self) -> KernelIds:
        """Number of a subscription -> its id. Does not change after it was handed out."""
        return KernelIds(self._answer.entries())


DeliveryAnswer: TypeAlias = KernelDeliveries | StoredDeliveries
"""The deliveries of one batch, as the kernel gave them or as they are kept."""


class KernelRegistry:
    """Queries and subscriptions that come and go while messages flow."""

    def __init__(
        self,
        limits: Limits,
        threads: int,
        cache_bytes_max: int,
    ) -> None:
        self._limits = limits
        with native_errors():
            self._native = native.Dissemination(limits, threads, cache_bytes(cache_bytes_max))

    @classmethod
    def of(cls, snapshot: native.Snapshot, options: MatcherOptions) -> KernelRegistry:
        """The subscriptions of a snapshot, which go on from there; nothing is compiled."""
        made = cls.__new__(cls)
        made._limits = options.limits
        with native_errors():
            made._native = native.Dissemination.of_snapshot(
                snapshot, options.limits, options.threads, cache_bytes(options.cache_bytes_max)
            )
        return made

    def subscribe(
        self,
        subscriptions: Sequence[Subscription],
        namespaces: Mapping[str, str],
        steps: Mapping[int, Sequence[StepData]] | None = None,
    ) -> RegisterReport:
        """Adds subscriptions, each whole or not at all.

        Args:
            subscriptions: One or more.
            namespaces: For all of them.
            steps: Place of each that has steps -> these, read: edit, path, name, namespaces.

        Cost: about 5 µs each in the shared class; some tens of microseconds with a gate, or with
        steps.
        """
        rows = subscriptions if isinstance(subscriptions, list) else list(subscriptions)
        bindings = dict(namespaces)
        with native_errors():
            refused = dict(self._native.subscribe(rows, bindings, steps))
        errors: dict[int, PathcastError] = {}
        for row, subscription in enumerate(rows):
            if row not in refused:
                continue
            if refused[row] == "query.duplicate":
                errors[row] = DuplicateQueryError("query.duplicate", id=subscription.id)
            elif refused[row] == "subscription.step_series":
                errors[row] = UnsupportedQueryError(
                    "subscription.step_series", maximum=STEP_SERIES_MAX
                )
            else:
                bound = {**bindings, **(subscription.namespaces or {})}
                errors[row] = refusal_of(
                    subscription.query, bound, subscription.deliver, subscription.language
                )
        return RegisterReport.of(rows, errors)

    def register(self, queries: Sequence[Query], namespaces: Mapping[str, str]) -> RegisterReport:
        """Adds filter queries, each whole or not at all: subscriptions of nobody, for ids alone.

        Cost: about 1 µs a query in the usual notation; some 10 µs in any other.
        """
        rows = queries if isinstance(queries, list) else list(queries)
        with native_errors():
            refused = self._native.register(rows, dict(namespaces))
        errors = {row: error_of_query(rows[row], namespaces, Refusal(*why)) for row, why in refused}
        return RegisterReport.of(rows, errors)

    def register_gates(self, texts: Sequence[str]) -> None:
        """Adds gates: paths in canonical text, with "and" between them; the id is the text.

        Where the paths of one cannot be told together, messages that have not all pass too.

        Raises:
            DuplicateQueryError: One is there.
            QuerySyntaxError: One is no canonical text.
        """
        with native_errors():
            refused = self._native.register_gates(list(texts))
        for row, why in refused:
            raise error_of_query(Query(texts[row], texts[row]), {}, Refusal(*why))

    def unsubscribe(self, ids: Sequence[str]) -> None:
        """Takes subscriptions out, all or none.

        Cost: about 1 µs each. What they leave behind goes later, in the background.
        """
        wanted = list(ids)
        try:
            with native_errors():
                self._native.unsubscribe(wanted)
        except KeyError as error:
            raise UnknownQueryError("query.unknown", id=wanted[error.args[0]]) from None

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription as it was made, with all namespaces it may use.

        Raises:
            UnknownQueryError: No subscription has this id.
        """
        with native_errors():
            found = self._native.subscription(subscription_id)
        if found is None:
            raise UnknownQueryError("query.unknown", id=subscription_id)
        subscriber, query, deliver, namespaces, language, steps = found
        return Subscription(
            subscription_id,
            subscriber,
            query,
            cast(LocalDeliverMode, deliver),
            namespaces or None,
            tuple(steps),
            cast(QueryLanguage | None, language),
        )

    def process(
        self,
        messages: pa.Array | list[bytes | None],
        *,
        encoding: str | None = None,
        done: Sequence[int] = (),
        times: Sequence[int] = (),
    ) -> KernelDeliveries:
        """The results of every message of a batch, read where it lies.

        Args:
            messages: `binary`, `large_binary` or `binary_view` array, or a list.
            encoding: Of all messages, where it is known.
            done: How many steps were done to each before; none to any when empty.
            times: When each was, or when all were, in microseconds since the beginning of 1970;
                now when empty.
        """
        with native_errors():
            return KernelDeliveries(self._native.process(messages, encoding, done, times))

    def match(
        self,
        messages: pa.Array | list[bytes | None],
        *,
        encoding: str | None = None,
        times: Sequence[int] = (),
    ) -> KernelAnswer:
        """The subscriptions that are delivered something of each message; nothing is written.

        Limits of the length of results say nothing here.
        """
        with native_errors():
            return KernelAnswer(self._native.match(messages, encoding, times))

    def ids(self) -> list[str]:
        """The ids of all."""
        with native_errors():
            known = self._native.match([], None).entries()
        names = known.take(list(range(len(known))))
        # Those that have left keep their numbers for a while.
        return [name for name in dict.fromkeys(names) if name in self._native]

    def sum_of(self, ids: Sequence[str]) -> bytes:
        """The digests of some subscriptions, added up (`pathcast.registry.identity`).

        Cost: about 1 µs each.
        """
        with native_errors():
            return self._native.sum_of(list(ids))

    def freeze(self) -> KernelSnapshot:
        """The subscriptions as they are now.

        Cost: about 2 µs a filter query, more of others; nothing if nothing has changed.

        Raises:
            SnapshotFormatError: The opened snapshot says something else of a text of its own.
        """
        from pathcast.kernel import KernelSnapshot  # which imports this module

        with native_errors("the opened snapshot"):
            frozen = self._native.freeze()
        return KernelSnapshot(frozen, self._limits)

    def count_groups(self, messages: pa.Array, *, visits: bool = False) -> dict[str, int]:
        """Runs the shared plans to groupSequence-listSequence and writes nothing: counters.

        Args:
            messages: `binary` or `large_binary`; refused messages are passed over.
            visits: Reads every node id of every list of every group, as a consumer would.

        Returns:
            The counters of a batch, and "subscriptions" (pairs of message and subscription),
            "groups", "lists", "list_nodes" (the last three with `visits` only).
        """
        with native_errors():
            return self._native.count_groups(messages, visits)

    def explain(self, subscription_id: str) -> Mapping[str, object]:
        """The plan of a subscription and what it shares."""
        subscription = self.subscription(subscription_id)
        compiled = _compiled(subscription)
        told = self._told(subscription_id)
        lines, shared = plan_lines(subscription, compiled, told)
        return {
            "kind": compiled.kind,
            "deliver": subscription.deliver,
            "query": subscription.query,
            "plan": lines,
            "gate": list(compiled.alternatives),
            "expression": compiled.expression,
            "reasons": [str(reason) for reason in compiled.reasons],
            "shared": shared,
            "cost": compiled.cost,
            "steps": told["steps"],
        }

    def cost(self, subscription_id: str) -> CostClass:
        """The cost of a subscription for one message. Cost: as compiling it."""
        return _compiled(self.subscription(subscription_id)).cost

    def _told(self, subscription_id: str) -> dict[str, Any]:
        """How the kernel serves a subscription.

        Raises:
            UnknownQueryError: No subscription has this id.
        """
        with native_errors():
            told = self._native.explain(subscription_id)
        if told is None:
            raise UnknownQueryError("query.unknown", id=subscription_id)
        return told

    def __len__(self) -> int:
        return len(self._native)

    def __contains__(self, subscription_id: object) -> bool:
        return isinstance(subscription_id, str) and subscription_id in self._native
