"""The broker: subscriptions that come and go, messages in, deliveries out, in one process.

Example:
    >>> from pathcast import Broker, Subscription
    >>> broker = Broker()
    >>> report = broker.subscribe(
    ...     Subscription(
    ...         "cheap", "ann", "for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>"
    ...     )
    ... )
    >>> message = b"<bib><book><title>Sand</title><price>20</price></book></bib>"
    >>> for delivery in broker.publish(message, "m1"):
    ...     print(delivery.subscriber, delivery.result_number, delivery.fragment.decode())
    ann 0 <hit><title>Sand</title></hit>

It evaluates nothing; the kernel does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import pyarrow as pa

from pathcast.boundary import native
from pathcast.engine.matcher import matcher_options
from pathcast.engine.messages import (
    Messages,
    joined,
    message_column,
    refused_rows,
    without_messages,
)
from pathcast.engine.rows import (
    one_or_many,
    report_on,
    usable_ids,
    usable_language,
    usable_namespaces,
    usable_rows,
    with_language,
)
from pathcast.errors import NotPicklableError, PathcastError, UnknownQueryError
from pathcast.kernel.delivery_ids import delivery_ids
from pathcast.kernel.dissemination import KernelDissemination
from pathcast.limits import Limits
from pathcast.model import (
    CACHE_BYTES_MAX,
    FewDeliveries,
    MessageBytes,
    QueryLanguage,
    RegisterReport,
    StepData,
    Subscription,
)
from pathcast.query import CostClass, Population, population_of
from pathcast.registry.before_steps import gate_paths
from pathcast.registry.deliveries import Deliveries, DeliveryBatch, Recipient
from pathcast.registry.identity import SetVersion
from pathcast.registry.message_ids import MessageIds
from pathcast.registry.plan import SubscriptionPlan
from pathcast.registry.snapshot import SubscriptionSnapshot
from pathcast.registry.steps import parse_steps, step_data
from pathcast.registry.turns import Turns


class Broker:
    """Subscriptions, and the messages that are published to them.

    It may be used from several threads: batches run together, a change waits for the batches that
    run. Once `unsubscribe` has returned, nothing more is delivered.

    Args:
        limits: What one message may cost, and what its results may.
        namespaces: Prefix -> namespace URI for all subscriptions; the key "" is the default
            element namespace. A subscription's own bindings come first.
        threads: Threads of one batch; None for all processors.
        cache_bytes_max: Bytes that compiled label paths may take; those of messages after steps as
            many again, for each series.
        language: Of subscriptions that choose none (`Subscription.language`).

    Raises:
        ConfigError: A value cannot be used, such as
            `namespaces` that are no bindings of prefixes.
        UnsupportedQueryError: `language` does not exist.
        KernelMissingError: The kernel is not installed.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        namespaces: Mapping[str, str] | None = None,
        threads: int | None = None,
        *,
        cache_bytes_max: int = CACHE_BYTES_MAX,
        language: QueryLanguage | None = None,
    ) -> None:
        self._namespaces = usable_namespaces(namespaces)
        self._language = usable_language(language)
        self._options = matcher_options(limits or Limits(), threads, cache_bytes_max)
        self._backend = KernelDissemination(
            self._options.limits, self._options.threads, cache_bytes_max
        )
        self._recipients: dict[str, Recipient] = {}
        self._version = SetVersion(self._options.limits)
        self._turns = Turns()

    @property
    def version(self) -> str:
        """Version of the subscriptions as they are now: a digest of them and of the limits.

        It changes with every change, and is the same for the same subscriptions under the same
        limits, in whatever order they came.
        """
        with self._turns.shared():
            return self._version.text

    def subscribe(self, subscriptions: Subscription | Iterable[Subscription]) -> RegisterReport:
        """Adds subscriptions; they count from the next message on.

        Args:
            subscriptions: One or many, with ids that are not taken.

        Returns:
            How many were accepted, and of many id -> error for those that were not. A rejected one
            leaves no trace and disturbs no other. So does a row that is no `Subscription`, or one
            whose id, subscriber or query is not text, whose `deliver` or `language` does not exist,
            or whose namespaces are no mapping: `RegisterReport.errors` has its place in the call.

        Raises:
            QuerySyntaxError: One subscription was given by itself, and cannot be used.
            DuplicateQueryError: Likewise, and its id is taken.
            UnusableRowError: Likewise, and a field is not what it has to be.
            TypeError: `subscriptions` are neither one nor many: a text, a number.

        Example:
            >>> broker = Broker()
            >>> broker.subscribe([Subscription("s1", "ann", "<a/>")]).rejected["s1"].code
            'subscription.constant'
        """
        rows, is_one = one_or_many(subscriptions)
        with self._turns.alone():
            rows = with_language(rows, self._language)
            return self._subscribe(rows, self._namespaces, is_one=is_one)

    def unsubscribe(self, ids: str | Iterable[str]) -> None:
        """Takes subscriptions out; what is published from now on is not delivered to them.

        Args:
            ids: One id or many; all are taken out or, if one is unknown, none.

        Raises:
            UnknownQueryError: No subscription has one of the ids.

        Cost: a few µs each, after the batches that run. Shared paths that nobody uses any more stay
        until they outnumber those in use; then the next batch begins to build everything anew on a
        thread of its own, which takes as long as subscribing all that stay, and until it is done as
        much memory again.
        """
        wanted = list(dict.fromkeys(usable_ids([ids] if isinstance(ids, str) else list(ids))))
        with self._turns.alone():
            for subscription_id in wanted:
                self._check_known(subscription_id)
            leaving = [self._backend.subscription(subscription_id) for subscription_id in wanted]
            try:
                self._backend.unsubscribe(wanted)
            finally:
                # If that was interrupted (Ctrl-C), what has left is not left in the books.
                for subscription in leaving:
                    if subscription.id not in self._backend:
                        self._version.remove(subscription)
                        del self._recipients[subscription.id]

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription of an id, with all namespaces it may use, in the language chosen for it.

        Raises:
            UnknownQueryError: No subscription has this id.
        """
        with self._turns.shared():
            self._check_known(subscription_id)
            return self._backend.subscription(subscription_id)

    def publish(self, message: MessageBytes | str, message_id: str | None = None) -> Deliveries:
        """Sends one message to all subscriptions.

        Args:
            message: The message. One that is refused is reported in `Deliveries.error`, not raised;
                so is what is neither bytes nor text, and an id that is no text.
            message_id: Names it in its deliveries; a digest of its bytes where none is given, so
                that the same message gives the same deliveries.

        Returns:
            Its deliveries, made as they are read.
        """
        batch = self.process_batch([message], None if message_id is None else [message_id])
        return batch.deliveries(0)

    def process_batch(
        self,
        messages: Messages,
        message_ids: pa.Array | pa.ChunkedArray | Iterable[str | None] | None = None,
    ) -> DeliveryBatch:
        """Sends many messages to all subscriptions, all of them to the same state.

        Args:
            messages: Bytes-like objects or str, or an Arrow array of binary or string, plain or
                chunked; None or null for a missing message, which has no deliveries and no error.
                What is no message is refused in its own place.
            message_ids: An id for each; None where a digest shall serve. A message whose id is no
                text is refused in its own place, since its deliveries could not be told apart.

        Raises:
            TypeError: `messages` or `message_ids` is nothing of this kind, or bytes and str are
                mixed.
            ConfigError: There are not as many ids as messages.
        """
        column = message_column(messages)
        array = joined(column.arrays)
        ids = MessageIds(array, message_ids)
        refusals = {**ids.errors, **column.refusals}
        array = without_messages(array, ids.errors)
        with self._turns.shared():
            answer = self._backend.process(array, encoding=column.encoding)
            if refusals:
                answer = replace(answer, refusals=refused_rows(answer.refusals, refusals))
            return DeliveryBatch(answer, ids, self._recipients, self._version.text, delivery_ids)

    def process_few(self, messages: Sequence[bytes], done: Sequence[int] = ()) -> FewDeliveries:
        """Sends a few messages to all subscriptions, all of them to the same state.

        Args:
            messages: So few that arrays would take longer than they do: some hundreds, of a KB.
            done: How many steps were done to each on its way, which the steps of all subscriptions
                that are meant begin with; none to any when empty.

        Returns:
            Lists, without ids of deliveries and without counters.
        """
        with self._turns.shared():
            return self._backend.process_few(list(messages), done)

    def matcher(self) -> DeliveryMatcher:
        """Make a matcher of batches; it sees every change from its next batch on."""
        return DeliveryMatcher(self)

    def explain(self, subscription_id: str) -> SubscriptionPlan:
        """The plan of a subscription, and what it shares with others.

        Raises:
            UnknownQueryError: No subscription has this id.
        """
        with self._turns.shared():
            self._check_known(subscription_id)
            subscription = self._backend.subscription(subscription_id)
            return SubscriptionPlan.of(subscription, self._backend.explain(subscription_id))

    def cost(self, subscription_id: str) -> CostClass:
        """The cost class of a subscription's query; its steps are not counted.

        Raises:
            UnknownQueryError: No subscription has this id.

        Cost: some microseconds.

        Example:
            >>> broker = Broker()
            >>> report = broker.subscribe(Subscription("s1", "ann", "//a[last()]"))
            >>> broker.cost("s1").value
            'candidate-checked'
        """
        with self._turns.shared():
            self._check_known(subscription_id)
            return self._backend.cost(subscription_id)

    def population(self) -> Population:
        """Describe the subscriptions as columns (`Snapshot.population`).

        An alternative is a path of which one has to hold for anything to be delivered.
        Subscriptions are numbered in the order of their ids.

        Cost: a compilation of each distinct query.

        Example:
            >>> broker = Broker()
            >>> report = broker.subscribe(Subscription("s1", "ann", "<r>{//a[@b = 1]/c}</r>"))
            >>> [str(place) for place in broker.population().places]
            ['//a/@b', '//a/c']
        """
        known: dict[tuple[object, ...], list[native.NormalPath]] = {}
        found: list[list[native.NormalPath]] = []
        with self._turns.shared():
            ids = sorted(self._recipients)
            asked = [self._backend.subscription(name) for name in ids]
        for each in asked:
            bound = tuple(sorted((each.namespaces or {}).items()))
            key = (each.query, each.language, each.deliver, bound, each.steps)
            if key not in known:
                known[key] = gate_paths(each, parse_steps(each.steps, each.namespaces))
            found.append(known[key])
        return population_of(ids, found)

    def freeze(self) -> SubscriptionSnapshot:
        """The subscriptions as they are now, immutable; to be saved and opened elsewhere.

        Cost: about 3 µs a subscription.
        """
        with self._turns.shared():
            ids = sorted(self._recipients)
            return SubscriptionSnapshot.of(
                [self._backend.subscription(name) for name in ids],
                self._version.text,
                self._options.limits,
            )

    @classmethod
    def restored(
        cls,
        snapshot: SubscriptionSnapshot,
        limits: Limits | None = None,
        namespaces: Mapping[str, str] | None = None,
        threads: int | None = None,
        *,
        cache_bytes_max: int = CACHE_BYTES_MAX,
        language: QueryLanguage | None = None,
    ) -> Broker:
        """A broker with the subscriptions of a snapshot, which goes on from there.

        Args:
            snapshot: What `freeze` gave or `SubscriptionSnapshot.open` has read.
            limits: Likewise.
            namespaces: For subscriptions that come later.
            threads: As for `Broker`.
            cache_bytes_max: As for `Broker`.
            language: For subscriptions that come later.

        Raises:
            SnapshotFormatError: It holds a subscription that this Pathcast refuses.
        """
        broker = cls(
            limits or snapshot.limits,
            namespaces,
            threads,
            cache_bytes_max=cache_bytes_max,
            language=language,
        )
        report = broker._subscribe(snapshot.subscriptions, {})
        if report.rejected:
            raise snapshot.refused(report.rejected)
        return broker

    def _subscribe(
        self,
        rows: Sequence[object],
        namespaces: Mapping[str, str],
        *,
        is_one: bool = False,
    ) -> RegisterReport:
        usable, errors = usable_rows(rows, Subscription)
        steps: dict[int, list[StepData]] = {}
        if any(row.steps for row in usable):
            usable, steps, refused = _with_steps(usable, namespaces)
            places = [place for place in range(len(rows)) if place not in errors]
            errors |= {places[place]: error for place, error in refused.items()}
        try:
            taken = self._backend.subscribe(usable, namespaces, steps)
            for place, subscription in enumerate(usable):
                if place not in taken.errors:
                    version = self._version.add(_with_bindings(subscription, namespaces))
                    self._recipients[subscription.id] = Recipient(subscription.subscriber, version)
        except BaseException:
            # Interrupted (Ctrl-C): deliveries of what is in no book would be nobody's.
            names = {row.id for row in usable} - self._recipients.keys()
            self._backend.unsubscribe([name for name in names if name in self._backend])
            raise
        return report_on(rows, errors, taken, namespaces, is_one=is_one)

    def _check_known(self, subscription_id: str) -> None:
        usable_ids([subscription_id])
        if subscription_id not in self._recipients:
            raise UnknownQueryError("query.unknown", id=subscription_id)

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="Broker",
            instead="send broker.freeze(), which pickles, and give it to Broker.restored",
        )

    def __len__(self) -> int:
        return len(self._recipients)

    def __contains__(self, subscription_id: object) -> bool:
        return isinstance(subscription_id, str) and subscription_id in self._recipients

    def __repr__(self) -> str:
        return f"Broker({len(self)} subscriptions)"


class DeliveryMatcher:
    """Takes batches of messages for a broker. May be called from several threads."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def process_batch(
        self,
        messages: Messages,
        message_ids: pa.Array | pa.ChunkedArray | Iterable[str | None] | None = None,
    ) -> DeliveryBatch:
        """Process a batch (`Broker.process_batch`)."""
        return self._broker.process_batch(messages, message_ids)

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="DeliveryMatcher",
            instead="send the SubscriptionSnapshot, which pickles, and call its matcher() there",
        )


def _with_steps(
    rows: Sequence[Subscription], namespaces: Mapping[str, str]
) -> tuple[list[Subscription], dict[int, list[StepData]], dict[int, PathcastError]]:
    """Read the steps of subscriptions.

    Returns:
        The subscriptions whose steps can be used, the steps of those that have some by their place
        among them, and what is wrong with the others by their place in `rows`.
    """
    usable: list[Subscription] = []
    steps: dict[int, list[StepData]] = {}
    refused: dict[int, PathcastError] = {}
    for place, row in enumerate(rows):
        try:
            if row.steps:
                bound = {**namespaces, **(row.namespaces or {})}
                steps[len(usable)] = step_data(parse_steps(row.steps, bound))
        except PathcastError as error:
            refused[place] = error
        else:
            usable.append(row)
    return usable, steps, refused


def _with_bindings(subscription: Subscription, namespaces: Mapping[str, str]) -> Subscription:
    """The subscription with all namespaces it may use."""
    if not namespaces:
        return subscription
    return subscription._replace(namespaces={**namespaces, **(subscription.namespaces or {})})
