"""The registry: queries and subscriptions that come and go, messages in, answers out.

A filter query is a subscription of nobody that is delivered as an id. `match` says which of all
hold of a message, `deliver` what everybody gets of it.

Example:
    >>> from pathcast import Query, Registry, Subscription
    >>> registry = Registry()
    >>> report = registry.add(Query("any", "//book/title"))
    >>> report = registry.add(
    ...     Subscription(
    ...         "cheap", "ann", "for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>"
    ...     )
    ... )
    >>> message = b"<bib><book><title>Sand</title><price>20</price></book></bib>"
    >>> list(registry.match(message).query_ids)
    ['any', 'cheap']
    >>> for delivery in registry.deliver(message, "m1"):
    ...     print(delivery.subscription_id, delivery.subscriber, delivery.fragment)
    any  None
    cheap ann b'<hit><title>Sand</title></hit>'

It evaluates nothing; the kernel does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import NoReturn, cast, overload

from pathcast.engine.explanation import Explanation
from pathcast.engine.matcher import matched, matcher_options
from pathcast.engine.messages import (
    Messages,
    message_column,
    without_messages,
)
from pathcast.engine.results import BatchResult, MatchResult
from pathcast.engine.rows import (
    Row,
    one_or_many,
    report_on,
    subscription_of,
    usable_ids,
    usable_language,
    usable_namespaces,
    usable_row,
    usable_rows,
    with_language,
)
from pathcast.errors import NotPicklableError, PathcastError, UnknownQueryError
from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import (
    CACHE_BYTES_MAX,
    MessageBytes,
    Query,
    QueryLanguage,
    RegisterReport,
    StepData,
    Subscription,
)
from pathcast.query import CostClass, Population
from pathcast.query.names import is_text
from pathcast.registry.deliveries import Deliveries, DeliveryBatch
from pathcast.registry.identity import SetVersion
from pathcast.registry.message_ids import ManyIds, MessageIds
from pathcast.registry.message_time import ArrivalTimes, micros_of
from pathcast.registry.plan import SubscriptionPlan
from pathcast.registry.snapshot import Snapshot
from pathcast.registry.steps import parse_steps, step_data
from pathcast.registry.turns import Turns
from pathcast.registry.versions import RegistryVersion


class Registry:
    """Standing queries of all kinds, and the messages that they are asked of.

    It may be used from several threads: batches run together, a change waits for the batches that
    run. Once `remove` has returned, nothing more is delivered.

    Args:
        limits: What one message may cost, and what its results may.
        namespaces: Prefix -> namespace URI for all queries; the key "" is the default element
            namespace. A query's own bindings come first.
        language: Of queries that choose none (`Subscription.language`).
        threads: Threads of one batch; None for all processors.
        cache_bytes_max: Bytes that compiled label paths may take; those of messages after steps as
            many again, for each series.

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
        *,
        language: QueryLanguage | None = None,
        threads: int | None = None,
        cache_bytes_max: int = CACHE_BYTES_MAX,
    ) -> None:
        self._namespaces = usable_namespaces(namespaces)
        self._language = usable_language(language)
        self._options = matcher_options(limits or Limits(), threads, cache_bytes_max)
        self._backend = KernelRegistry(self._options.limits, self._options.threads, cache_bytes_max)
        self._turns = Turns()
        self._set_version = RegistryVersion(self._backend, self._options.limits, self._turns)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        limits: Limits | None = None,
        namespaces: Mapping[str, str] | None = None,
        *,
        language: QueryLanguage | None = None,
        threads: int | None = None,
        cache_bytes_max: int = CACHE_BYTES_MAX,
    ) -> Registry:
        """A registry with the subscriptions of a snapshot, which goes on from there.

        Args:
            snapshot: From `freeze` or `Snapshot.open`.
            limits: As for `Registry`; None for those of the registry it was frozen from.
            namespaces: For subscriptions that come later.
            language: For subscriptions that come later.
            threads: As for `Registry`.
            cache_bytes_max: As for `Registry`.

        Raises:
            ConfigError: A value cannot be used.

        Cost: that of the distinct paths and steps of the subscriptions; nothing is compiled. What
        comes or leaves later stands beside the snapshot, whose pages processes share.
        """
        registry = cls(
            limits or snapshot.limits,
            namespaces,
            language=language,
            threads=threads,
            cache_bytes_max=cache_bytes_max,
        )
        registry._backend = snapshot.begin(registry._options)
        chosen = registry._options.limits
        version = SetVersion(chosen, snapshot.sum, len(snapshot))
        registry._set_version = RegistryVersion(registry._backend, chosen, registry._turns, version)
        return registry

    @property
    def version(self) -> str:
        """Version of the subscriptions as they are now: a digest of them and of the limits.

        It changes with every change, and is the same for the same subscriptions under the same
        limits, in whatever order they came.
        """
        with self._turns.shared():
            return self._set_version.text

    def add(self, queries: Row | Iterable[Row]) -> RegisterReport:
        """Adds queries and subscriptions; they count from the next message on.

        Args:
            queries: One or many, with ids that are not taken.

        Returns:
            How many were accepted, and of many id -> error for those that were not. A rejected one
            leaves no trace and disturbs no other. So does a row that is neither a `Query` nor a
            `Subscription`, or one whose id, subscriber or query is not text, whose `deliver` or
            `language` does not exist, or whose namespaces are no mapping: `RegisterReport.errors`
            has its place in the call.

        Raises:
            QuerySyntaxError: One row was given by itself, and cannot be used.
            DuplicateQueryError: Likewise, and its id is taken.
            UnusableRowError: Likewise, and a field is not what it has to be.
            TypeError: `queries` are neither one nor many: a text, a number.

        Cost: of a query, a parse and a walk down the automaton, about 2 µs. When more than 16,384
        have come, and more than half as many as there were, the next batch begins to merge them on
        a thread of its own, about 1.5 µs for each; until that is done there are two of them.

        Example:
            >>> registry = Registry()
            >>> registry.add([Subscription("s1", "ann", "<a/>")]).rejected["s1"].code
            'subscription.constant'
            >>> registry.add(Query("q1", "/a/"))
            Traceback (most recent call last):
            ...
            pathcast.errors.QuerySyntaxError: XPST0003: found the end where a location step is \
expected
              /a/
                 ^
              leave out the / at the end, or write /* for any child element
        """
        rows, is_one = one_or_many(queries)
        with self._changing():
            return self._add(rows, is_one=is_one)

    def update(self, queries: Row | Iterable[Row]) -> RegisterReport:
        """Adds queries and subscriptions; one whose id is taken replaces the one that has it.

        No message sees a state between. What replaces another counts as having come now.

        Args:
            queries: One or many.

        Returns:
            A report like that of `add`. In place of a rejected one stays what had its id before.

        Raises:
            QuerySyntaxError: One row was given by itself, and cannot be used.
            UnusableRowError: Likewise, and a field is not what it has to be.
            TypeError: `queries` are neither one nor many: a text, a number.

        Example:
            >>> registry = Registry()
            >>> report = registry.add(Subscription("s1", "ann", "//a", "ids"))
            >>> report = registry.update(
            ...     [Subscription("s1", "bob", "//b", "ids"), Subscription("s2", "c", "//a", "ids")]
            ... )
            >>> [found.subscriber for found in registry.deliver(b"<a><b/></a>")]
            ['bob', 'c']
        """
        rows, is_one = one_or_many(queries)
        with self._changing():
            return self._add(rows, is_one=is_one, is_update=True)

    def remove(self, ids: str | Iterable[str]) -> None:
        """Takes queries out; what comes from now on is not matched by them, nor delivered.

        Args:
            ids: One id or many; all are taken out or, if one is unknown, none.

        Raises:
            UnknownQueryError: No query has one of the ids.

        Cost: a few µs each, after the batches that run. Shared paths that nobody uses any more stay
        until they outnumber those in use; then the next batch begins to build everything anew on a
        thread of its own, which takes as long as subscribing all that stay, and until it is done as
        much memory again.
        """
        wanted = list(dict.fromkeys(usable_ids([ids] if isinstance(ids, str) else list(ids))))
        with self._changing():
            for subscription_id in wanted:
                self._check_known(subscription_id)
            self._take_out([self._backend.subscription(name) for name in wanted])

    def get(self, subscription_id: str) -> Subscription:
        """The subscription of an id, with all namespaces it may use, in the language chosen for it.

        Of a `Query`, the subscription that it is: of nobody, delivered as an id.

        Raises:
            UnknownQueryError: No subscription has this id.
        """
        with self._turns.shared():
            self._check_known(subscription_id)
            return self._backend.subscription(subscription_id)

    @overload
    def match(  # type: ignore[overload-overlap]  # str is an iterable of str
        self, messages: MessageBytes | str
    ) -> MatchResult: ...

    @overload
    def match(self, messages: Messages) -> BatchResult: ...

    def match(self, messages: MessageBytes | str | Messages) -> MatchResult | BatchResult:
        """Which queries hold of one message or of many; nothing is made of the messages.

        They are those that `deliver` gives something to now; limits of the length of results say
        nothing here.

        Args:
            messages: A message: a bytes-like object or str. Or many: such objects, or a column of
                binary or string as Arrow has it, of whatever library and in whatever layout
                (`pathcast.engine.messages`); None or null for a missing message, which has no
                matches and no error. Any other object is refused in its own place, as a message is
                that is not well-formed. Bytes and columns are read where they lie, except that
                values of dictionaries are spread, and chunks of a chunked column are joined.

        Returns:
            Of one message its result; of many one result a message, in order, which are columns
            too. Numbers of queries mean the same for a whole batch, and may mean others in the
            next.

        Raises:
            TypeError: `messages` is nothing of this kind, such as a table with several columns, or
                mixes bytes and str.

        Example:
            >>> registry = Registry()
            >>> report = registry.add([Query("q1", "/a/b"), Subscription("s1", "ann", "//b")])
            >>> list(registry.match("<a><b/></a>").query_ids)
            ['q1', 's1']
            >>> [list(found.query_ids) for found in registry.match([b"<b/>", b"<b", None])]
            [['s1'], [], []]

        Cost: a call some microseconds beside what its messages cost.
        """
        with self._turns.shared():
            return matched(self._backend.match, messages, self._options.limits, is_live=True)

    @overload
    def deliver(  # type: ignore[overload-overlap]  # str is an iterable of str
        self,
        messages: MessageBytes | str,
        message_ids: str | None = None,
        *,
        done: Sequence[int] = (),
        times: ArrivalTimes | None = None,
    ) -> Deliveries: ...

    @overload
    def deliver(
        self,
        messages: Messages,
        message_ids: ManyIds | None = None,
        *,
        done: Sequence[int] = (),
        times: ArrivalTimes | None = None,
    ) -> DeliveryBatch: ...

    def deliver(
        self,
        messages: MessageBytes | str | Messages,
        message_ids: str | ManyIds | None = None,
        *,
        done: Sequence[int] = (),
        times: ArrivalTimes | None = None,
    ) -> Deliveries | DeliveryBatch:
        """Sends one message or many to all subscriptions, all of them to the same state.

        Args:
            messages: A message: a bytes-like object or str. Or many: such objects, or an Arrow
                column of binary or string; None or null for a missing message, which has no
                deliveries and no error. A message that is refused, and an object that is no
                message, is reported in its own place, not raised.
            message_ids: Of one message its id, of many an id for each; None where a digest of the
                bytes shall serve, so that the same message gives the same deliveries. A message
                whose id is no text is refused in its own place, since its deliveries could not be
                told apart.
            done: Of each message, how many steps were done to it on its way, which the steps of all
                subscriptions that are meant begin with; none to any when empty.
            times: When the messages were, which is what `current-dateTime()` says; a time of all,
                or one of each. The same times give the same deliveries again; None for now.

        Returns:
            Of one message its deliveries, of many a batch, which is columns too. All is made as it
            is read.

        Raises:
            TypeError: `messages` or `message_ids` is nothing of this kind, or bytes and str are
                mixed.
            ConfigError: There are not as many ids or times as messages.

        Example:
            >>> from datetime import datetime
            >>> registry = Registry()
            >>> late = "//job[xs:dateTime(@until) < current-dateTime()] ! <late>{@id}</late>"
            >>> report = registry.add(Subscription("s1", "ann", late))
            >>> message = "<m><job id='7' until='2026-01-31T12:00:00Z'/></m>"
            >>> for found in registry.deliver(message, times=datetime(2026, 2, 1)):
            ...     print(found.fragment.decode())
            <late id="7"/>
            >>> len(registry.deliver(message, times=datetime(2026, 1, 1)))
            0
        """
        if isinstance(messages, bytes | str | bytearray | memoryview):
            ids = None if message_ids is None else [message_ids]
            return self._deliver([messages], ids, done, times).deliveries(0)
        return self._deliver(messages, message_ids, done, times)

    def find(
        self,
        *,
        subscriber: str | None = None,
        cost: CostClass | None = None,
        text: str | None = None,
    ) -> Iterator[Subscription]:
        """The subscriptions of which all holds that is given, as `get` has them.

        They come in the order of their numbers: as they came, until they are frozen or merged.

        Args:
            subscriber: Whom it is of.
            cost: Its cost class.
            text: What its query has in it, letter by letter.

        Cost: a look at each; of a cost class, a compilation of each that is left.

        Example:
            >>> registry = Registry()
            >>> report = registry.add(
            ...     [Subscription("s1", "ann", "//a"), Subscription("s2", "bob", "//a[last()]")]
            ... )
            >>> [found.id for found in registry.find(text="//a", cost=CostClass.CANDIDATE_CHECKED)]
            ['s2']
        """
        with self._turns.shared():
            ids = self._backend.ids()
        return self._found(ids, subscriber, cost, text)

    @overload
    def explain(self, asked: str | Row, message: None = None) -> SubscriptionPlan: ...

    @overload
    def explain(self, asked: str | Row, message: MessageBytes | str) -> Explanation: ...

    @overload
    def explain(
        self, asked: str | Row, message: MessageBytes | str | None
    ) -> SubscriptionPlan | Explanation: ...

    def explain(
        self, asked: str | Row, message: MessageBytes | str | None = None
    ) -> SubscriptionPlan | Explanation:
        """The plan of a subscription, or why a message satisfies it or where it first fails.

        Args:
            asked: Id of a subscription; or one that need not be registered, which is asked alone.
            message: A message, to be told how the query holds of it; None for the plan. A refusal
                by the door is explained, not raised.

        Raises:
            UnknownQueryError: No subscription has this id.
            QuerySyntaxError: One that is not registered cannot be read.
            UnusableRowError: It has a field that is not what it has to be.

        Example:
            >>> registry = Registry()
            >>> asked = Subscription("s1", "ann", "//a[@b = 'x']", "ids")
            >>> registry.explain(asked).cost.value
            'indexed'
            >>> registry.explain(asked, "<a b='y'/>").failure.near_misses
            ("`@b` is 'y', the query wants 'x'",)
        """
        if isinstance(asked, Query | Subscription):
            [row] = with_language([usable_row(asked)], self._language)
            alone = Registry(self._options.limits, self._namespaces, threads=1)
            alone.add(row)
            return alone.explain(row.id, message)
        subscription = self.get(asked)
        if message is not None:
            # It takes as long to import as the engine.
            from pathcast.registry.explained import explain_subscription

            return explain_subscription(subscription, message, self._options.limits, self.match)
        with self._turns.shared():
            return SubscriptionPlan.of(subscription, self._backend.explain(asked))

    def population(self) -> Population:
        """Describe the subscriptions as columns (`Snapshot.population`).

        An alternative is a path of which one has to hold for anything to be delivered.

        Cost: a compilation of each distinct query.

        Example:
            >>> registry = Registry()
            >>> report = registry.add(Subscription("s1", "ann", "<r>{//a[@b = 1]/c}</r>"))
            >>> [str(place) for place in registry.population().places]
            ['//a/@b', '//a/c']
        """
        return self.freeze().population()

    def freeze(self) -> Snapshot:
        """The queries and subscriptions as they are now, compiled, immutable.

        It matches as this registry does, and can be saved, and opened elsewhere.

        Cost: about 2 µs a filter query and 6 µs a subscription; nothing if nothing has changed.
        """
        with self._turns.shared():
            frozen = self._backend.freeze()
            version = SetVersion(self._options.limits, frozen.sum, len(frozen))
            self._set_version.counted(version)
        return Snapshot(frozen, self._options)

    def _found(
        self,
        ids: Sequence[str],
        subscriber: str | None,
        cost: CostClass | None,
        text: str | None,
    ) -> Iterator[Subscription]:
        for name in ids:
            with self._turns.shared():
                if name not in self._backend:
                    continue
                found = self._backend.subscription(name)
                is_asked = (
                    (subscriber is None or found.subscriber == subscriber)
                    and (text is None or text in found.query)
                    and (cost is None or self._backend.cost(name) is cost)
                )
            if is_asked:
                yield found

    def _deliver(
        self,
        messages: Messages,
        message_ids: object,
        done: Sequence[int],
        times: ArrivalTimes | None,
    ) -> DeliveryBatch:
        column = message_column(messages)
        whole = column.whole
        ids = MessageIds(whole, message_ids)
        errors = {**ids.errors, **column.refusals}
        whole = without_messages(whole, ids.errors)
        at = micros_of(times, len(whole))
        with self._turns.shared():
            answer = self._backend.process(whole, encoding=column.encoding, done=done, times=at)
            version = self._set_version.of_batch()
        return DeliveryBatch(answer, ids, version, errors)

    def _add(self, rows: list[object], *, is_one: bool, is_update: bool = False) -> RegisterReport:
        rows = with_language(rows, self._language)
        usable, errors = usable_rows(rows)
        there: dict[str, Subscription] = {}
        if is_update:
            names = {row.id for row in usable if row.id in self._backend}
            there = {name: self._backend.subscription(name) for name in names}
        # Replaced one by one: if one is put back, no other row has taken its series of steps.
        alone = {name for name, found in there.items() if found.steps}
        failed: dict[int, PathcastError] = {}
        start = 0
        kind: Callable[[Row], object] = partial(_kind, alone) if alone else _is_filter_query
        for _, run in groupby(usable, kind):
            part = list(run)
            refused = self._replace(part, there)
            failed |= {start + place: error for place, error in refused.items()}
            start += len(part)
        taken = RegisterReport.of(usable, failed)
        return report_on(rows, errors, taken, self._namespaces, is_one=is_one)

    def _replace(
        self, rows: Sequence[Row], there: dict[str, Subscription]
    ) -> Mapping[int, PathcastError]:
        """Adds rows of one kind in place of those that have their ids; gives the refused, by place.

        Args:
            rows: The rows.
            there: Id -> what may be replaced; what was is taken out of it.
        """
        names = dict.fromkeys(row.id for row in rows) if there else ()
        leaving = [there.pop(name) for name in names if name in there]
        try:
            if leaving:
                self._take_out(leaving)
            if _is_filter_query(rows[0]):
                return self._add_queries(cast("Sequence[Query]", rows))
            return self._add_subscriptions(list(map(subscription_of, rows)), self._namespaces)
        finally:
            if back := [found for found in leaving if found.id not in self._backend]:
                there.update((found.id, found) for found in back)
                self._add_subscriptions(back, {})

    def _add_queries(self, rows: Sequence[Query]) -> Mapping[int, PathcastError]:
        """Adds filter queries; gives those that are refused, by place."""
        errors = self._backend.register(rows, self._namespaces).errors
        self._set_version.came(row.id for place, row in enumerate(rows) if place not in errors)
        return errors

    def _add_subscriptions(
        self, rows: Sequence[Subscription], namespaces: Mapping[str, str]
    ) -> Mapping[int, PathcastError]:
        """Adds subscriptions; gives those that are refused, by place."""
        steps: dict[int, list[StepData]] = {}
        errors: dict[int, PathcastError] = {}
        places: Sequence[int] = range(len(rows))
        if any(row.steps for row in rows):
            rows, steps, errors = _with_steps(rows, namespaces)
            places = [place for place in places if place not in errors]
        there = {row.id for row in rows if row.id in self._backend}
        try:
            refused = self._backend.subscribe(rows, namespaces, steps).errors
        except BaseException:
            # Interrupted (Ctrl-C): those that have come are taken out again.
            fresh = {row.id for row in rows} - there
            self._backend.unsubscribe([name for name in fresh if name in self._backend])
            raise
        self._set_version.came(row.id for place, row in enumerate(rows) if place not in refused)
        return errors | {places[at]: error for at, error in refused.items()}

    def _take_out(self, leaving: Sequence[Subscription]) -> None:
        self._backend.unsubscribe([subscription.id for subscription in leaving])
        for subscription in leaving:
            self._set_version.left(subscription)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Waits for the batches that run; a change that is interrupted leaves the books right."""
        with self._turns.alone():
            self._set_version.settle()
            try:
                yield
            except PathcastError:
                raise
            except BaseException:
                # Interrupted (Ctrl-C): some have come or left of which nothing was said.
                self._set_version.counted(None)
                raise

    def _check_known(self, subscription_id: str) -> None:
        usable_ids([subscription_id])
        if subscription_id not in self._backend:
            raise UnknownQueryError("query.unknown", id=subscription_id)

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="Registry",
            instead="send registry.freeze(), which pickles, and give it to Registry.of",
        )

    def __len__(self) -> int:
        return len(self._backend)

    def __contains__(self, subscription_id: object) -> bool:
        return is_text(subscription_id) and subscription_id in self._backend

    def __repr__(self) -> str:
        return f"Registry({len(self)} queries)"


def _is_filter_query(row: Row) -> bool:
    """Whether it is read as XPath 1.0, by itself."""
    return isinstance(row, Query) and row.language != "xquery"


def _kind(alone: Collection[str], row: Row) -> tuple[bool, str | None]:
    """Whether it is a filter query, and its id if it is replaced by itself."""
    return _is_filter_query(row), row.id if row.id in alone else None


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
