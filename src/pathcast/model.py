"""The few values that every room speaks of.

Example:
    >>> Query("q1", "/nitf/head//tobject[@type='news']").id
    'q1'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, get_args

from pathcast.errors import PathcastError, caret, shown
from pathcast.limits import MIB, Limits

if TYPE_CHECKING:
    import pyarrow as pa


QueryLanguage: TypeAlias = Literal["xpath1", "xquery"]
"""A language that a subscriber chooses for a text."""

QUERY_LANGUAGES: tuple[QueryLanguage, ...] = get_args(QueryLanguage)


class Query(NamedTuple):
    """A standing query.

    Attributes:
        id: Chosen by the caller, unique in a registry.
        text: An XPath 1.0 expression, or an XQuery where `language` says so.
        namespaces: Prefix -> namespace URI for this query; the key "" is the default element
            namespace. Falls back to the namespaces of the registry.
        language: "xpath1", which is taken where none is chosen; said, no warning asks which
            language is meant. Or "xquery".
    """

    id: str
    text: str
    namespaces: Mapping[str, str] | None = None
    language: QueryLanguage | None = None


DeliverMode: TypeAlias = Literal["fragment", "message", "ids"]
"""What a subscriber gets of a message that its subscription is satisfied by: the results of the
query, the message as it arrived, or the bare notice."""

DELIVER_MODES: tuple[DeliverMode, ...] = get_args(DeliverMode)

LocalDeliverMode: TypeAlias = DeliverMode | Literal["nodes"]
"""The same, and the places of the nodes that the query gives, which a `Registry` tells and no
network, Spark, file or database carries."""

LOCAL_DELIVER_MODES: tuple[LocalDeliverMode, ...] = (*DELIVER_MODES, "nodes")

SHOWN_MAX = 5
"""Rejected ids that the `repr` of a report shows."""

STEPS_MAX = 64
"""Steps of a subscription."""

STEP_LENGTH_MAX = 4_096
"""Characters of a step."""


class Subscription(NamedTuple):
    """A standing query whose results go to somebody.

    Attributes:
        id: Chosen by the caller, unique in a registry.
        subscriber: Whom the results go to; may have many subscriptions.
        query: An XQuery FLWR expression with constructors, or an XPath 1.0 expression.
        deliver: "fragment": every item of the query's value is one delivery (a bare XPath: every
            node it selects). "message": the message as it arrived, one delivery. "ids": one
            delivery without a payload. "nodes": as "fragment", of a query that gives nodes of the
            message, and of each its place instead of its text; asked of a `Registry` only.
        namespaces: Prefix -> namespace URI for this query; the key "" is the default element
            namespace. Falls back to the namespaces of the registry.
        steps: What is done to a message before the query sees it, in order: `drop PATH`,
            `unwrap PATH`, `rename PATH NAME` (`pathcast.registry.steps`). What is delivered is of
            the message after them.
        language: "xpath1" or "xquery", the only one that the query is read as; None leaves it to
            the text: XPath 1.0 where its grammar takes it, XQuery otherwise. Falls back to the
            language of the registry.

    Example:
        >>> Subscription("s1", "desk", "for $b in //book return <title>{$b/title}</title>").deliver
        'fragment'
    """

    id: str
    subscriber: str
    query: str
    deliver: LocalDeliverMode = "fragment"
    namespaces: Mapping[str, str] | None = None
    steps: tuple[str, ...] = ()
    language: QueryLanguage | None = None


@dataclass(frozen=True, slots=True)
class RoutingEntry:
    """Paths that must all hold, and where a message of which they do is to go.

    Attributes:
        paths: Location paths in canonical text (`pathcast.query.canonical_form`), one at least.
        targets: A bit for each target: a link of a broker, a partition.

    Example:
        >>> RoutingEntry(("/nitf/head", "/nitf//series"), 0b101).targets.bit_count()
        2
    """

    paths: tuple[str, ...]
    targets: int


class DeliveredNode(NamedTuple):
    """A result of which the place in its message is told.

    Attributes:
        kind: "document", "element", "attribute", "text", "comment", "processing-instruction" or
            "namespace".
        number: How many nodes of its kind come before it in the message; of a namespace node, the
            number of its element.
        start: Byte of the message at which it begins: an element at its start tag, an attribute at
            its value. None where it lies nowhere in the bytes: of comments, instructions and
            namespace nodes, of what an entity or a declaration gives, of a value with references
            or line ends that were changed, after steps, in another encoding than UTF-8.
        end: One past its last byte; None where `start` is.
    """

    kind: str
    number: int
    start: int | None
    end: int | None


class Delivery(NamedTuple):
    """One result of one subscription for one message.

    Attributes:
        delivery_id: Digest of what identifies it: the subscription as it is, message and result
            number. Whoever gets a delivery twice knows it by this, whoever else has subscribed or
            left in between.
        message_id: The publisher's, or a digest of the message.
        subscription_id: Which subscription.
        subscriber: Whom it goes to.
        subscription_version: Digest of the subscription: the same as long as it is the same.
        snapshot_version: Version of all subscriptions that answered.
        result_number: Place among the results of this subscription for this message, from 0.
        fragment: UTF-8 bytes of the result; the bytes of the message for deliver="message"; None
            for deliver="ids" and deliver="nodes".
        node: Which node the result is, for deliver="nodes"; None otherwise.
    """

    delivery_id: str
    message_id: str
    subscription_id: str
    subscriber: str
    subscription_version: str
    snapshot_version: str
    result_number: int
    fragment: bytes | None
    node: DeliveredNode | None = None


@dataclass(frozen=True, slots=True)
class QueryWarning:
    """A part of a query that was taken up and may not say what is meant.

    Attributes:
        query_id: The query.
        query: Its text.
        code: "PL201" where a condition never holds, "PL202" where it always does, "PL204" where
            the meaning depends on the language; as `pathcast lint` calls it.
        is_hopeless: Whether no message can satisfy the query because of it.
        offset: Where the part stands in the text, in characters from 0.
        reason: Why, as a sentence.
        fix: What may be meant, as a sentence; None if there is nothing sure to say.

    Example:
        >>> warning = QueryWarning("q1", "//a[0]", "PL201", True, 4, "positions begin with 1")
        >>> print(warning)
        PL201: no message can satisfy the query: positions begin with 1
          //a[0]
              ^
    """

    query_id: str
    query: str
    code: str
    is_hopeless: bool
    offset: int
    reason: str
    fix: str | None = None

    @property
    def message(self) -> str:
        """The warning's text, on one line."""
        if self.is_hopeless:
            return f"{self.code}: no message can satisfy the query: {self.reason}"
        if self.code == "PL204":
            return f"{self.code}: {self.reason}"
        truth = "never" if self.code == "PL201" else "always"
        return f"{self.code}: a condition {truth} holds: {self.reason}"

    def __str__(self) -> str:
        tail = "" if self.fix is None else f"\n  {self.fix}"
        return shown(f"{self.message}\n{caret(self.query, self.offset)}{tail}")


@dataclass(frozen=True, slots=True, repr=False)
class RegisterReport:
    """The outcome of a registration: accepted, rejected, and why.

    Attributes:
        accepted: Number of queries that were registered.
        rejected: Id -> error, for the others. Nothing of a rejected query is kept. When an id
            occurs twice in a call, the first is registered and the error belongs to the second.
            A row without an id that is text is called by its place: "row 3".
        errors: Place in the call (from 0) -> error, for every row that was rejected, ascending.
            Of several rows with one id, `rejected` has the last error only; here are all.
        warnings: Conditions of accepted queries that never or always hold. They are looked for
            when they are read first, so that registering costs nothing for them; until then the
            report keeps the rows of the call.

    Example:
        >>> rows = [Query("q1", "/a"), Query("q2", "/a["), None]
        >>> errors = {1: PathcastError("XPST0003"), 2: PathcastError("row.type")}
        >>> report = RegisterReport.of(rows, errors)
        >>> report.accepted, list(report.rejected)
        (1, ['q2', 'row 2'])
        >>> report
        RegisterReport(accepted=1, rejected=['q2', 'row 2'])
    """

    accepted: int
    rejected: Mapping[str, PathcastError] = field(default_factory=dict)
    errors: Mapping[int, PathcastError] = field(default_factory=dict)
    warnings: Sequence[QueryWarning] = field(default=(), compare=False)

    def __repr__(self) -> str:
        names = [*islice(self.rejected, SHOWN_MAX)]
        more = "" if len(self.errors) <= SHOWN_MAX else f" and {len(self.errors) - SHOWN_MAX} more"
        return f"RegisterReport(accepted={self.accepted}, rejected={names}{more})"

    @classmethod
    def of(cls, rows: Sequence[object], errors: Mapping[int, PathcastError]) -> RegisterReport:
        """The report on rows, of which some have an error at their place."""
        if not errors:
            return cls(len(rows))
        ascending = dict(sorted(errors.items()))
        rejected = {}
        for place, error in ascending.items():
            name = getattr(rows[place], "id", None)
            rejected[name if isinstance(name, str) else f"row {place}"] = error
        return cls(len(rows) - len(ascending), rejected, ascending)


StepData = tuple[str, str, str, tuple[tuple[str, str], ...]]
"""A step of a subscription, read: its edit, path, new name and namespaces of the path."""


@dataclass(frozen=True, slots=True)
class BatchStats:
    """Counters of one batch; they add up over batches.

    Attributes:
        messages: Messages seen; missing ones (null) are not counted.
        bytes: Bytes of all messages.
        refused: Messages that the door refused.
        matches: Pairs of message and query.
        nodes: Elements and attributes of the messages that were not refused.
        cache_hits: Elements whose label path was compiled already.
        cache_misses: Elements whose label path had to be compiled.
        cache_resets: Times the cache was dropped because its memory bound was reached.
        nfa_messages: Messages run on the plain NFA, by choice or because the cache thrashed.
        evaluations: Exact evaluations of an expression on a message that passed its conditions.
        steps: Steps of `Limits.message_steps_max` that the messages took. They depend on messages
            and queries alone, not on the machine, the threads or the batches. In customised
            delivery, those of the gates, of the subscriptions that are evaluated by themselves,
            and of changing messages for subscriptions with steps.
        work: Steps that single queries took (`SubscriptionWork`), added up.
        verdicts: Pairs of message and query that went over `Limits.evaluation_steps_max` or
            `Limits.message_steps_max`, or could not get their results for another reason.
        deliveries: Results that were delivered, those without a fragment included.
        result_bytes: Bytes of the fragments of all deliveries, a shared one counted every time.
        parsing_ns: Time in the door, summed over threads.
        matching_ns: Time in path matching and post-processing, summed over threads.
        collecting_ns: Time in collecting query numbers, summed over threads.
        customising_ns: Time in building results for subscriptions, summed over threads.
    """

    messages: int = 0
    bytes: int = 0
    refused: int = 0
    matches: int = 0
    nodes: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    cache_resets: int = 0
    nfa_messages: int = 0
    evaluations: int = 0
    steps: int = 0
    work: int = 0
    verdicts: int = 0
    deliveries: int = 0
    result_bytes: int = 0
    parsing_ns: int = 0
    matching_ns: int = 0
    collecting_ns: int = 0
    customising_ns: int = 0

    def __add__(self, other: BatchStats) -> BatchStats:
        mine, theirs = self.to_dict(), other.to_dict()
        return BatchStats(**{name: mine[name] + theirs[name] for name in mine})

    def to_dict(self) -> dict[str, int]:
        """Name of each counter -> its value."""
        return {name: getattr(self, name) for name in self.__slots__}


MessageBytes: TypeAlias = bytes | bytearray | memoryview
"""One message as it arrived."""

Queries: TypeAlias = Iterable[Query]
"""Queries to register."""

QueryNumbers: TypeAlias = Sequence[int]
"""Numbers of queries in one snapshot (0-based, ascending)."""


CACHE_BYTES_MAX = 256 * MIB
"""Default bound of what one registry or snapshot keeps compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatcherOptions:
    """How messages are matched.

    Attributes:
        limits: What one message may cost.
        threads: Threads of a batch call, from 1 on.
        cache_bytes_max: Bytes that compiled label paths may take, over all threads.
    """

    limits: Limits
    threads: int
    cache_bytes_max: int


class IdsByNumber(Protocol):
    """Number of a query -> its id; a sequence of all ids, or a mapping that has some."""

    def __getitem__(self, number: int, /) -> str: ...


class SubscriptionWork(NamedTuple):
    """The steps of a batch that were one query's alone: counted, not timed.

    They are those of its expression or program, and of conditions that are told for it by itself;
    where results are delivered, also a step for each and for each 64 bytes of it. Of equal queries
    that are evaluated once, one has the steps of all.

    Sums can be too small, never too large: where subscriptions are merged in the middle of a batch,
    the steps of expressions of messages before that are counted for nobody; and a message whose
    results do not fit is answered again in the order of ids, and only that is counted.

    Attributes:
        subscription_id: Id of the query or subscription.
        steps: How many.
    """

    subscription_id: str
    steps: int


class OverBudget(NamedTuple):
    """The pairs of message and query that are undecided because steps were used up, ascending.

    Attributes:
        rows: `int64` array: place of the message in the batch.
        query_numbers: `uint32` array of the same length.
        by_message: `bool` array of the same length: whether `Limits.message_steps_max` was used
            up, and not `Limits.evaluation_steps_max`.
    """

    rows: pa.Array
    query_numbers: pa.Array
    by_message: pa.Array


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to one batch with its parts: it pickles, and needs no engine to be read."""

    matches: pa.Array
    refusals: Sequence[tuple[int, PathcastError]]
    over_budget: OverBudget | None
    stats: BatchStats
    query_ids: IdsByNumber
    verdicts: Sequence[tuple[int, int, PathcastError]] = ()
    work: Sequence[tuple[int, int]] = ()

    def __len__(self) -> int:
        return len(self.matches)

    def count(self, row: int) -> int:
        """How many queries a message satisfies."""
        return len(self.matches[row].values or ())

    def numbers(self, row: int) -> list[int]:
        """The numbers of the queries that a message satisfies, ascending."""
        return self.matches[row].as_py() or []


class Recipient(NamedTuple):
    """Whom the results of a subscription go to.

    Attributes:
        subscriber: As in the subscription.
        version: Of the subscription, 16 bytes.
    """

    subscriber: str
    version: bytes


@dataclass(frozen=True, slots=True)
class StoredDeliveries:
    """The deliveries of one batch with their parts: they pickle, and need no registry to read."""

    rows: pa.RecordBatch
    nodes: pa.RecordBatch
    fragments: pa.Array
    refusals: Sequence[tuple[int, PathcastError]]
    verdicts: Sequence[tuple[int, int, PathcastError]]
    stats: BatchStats
    subscription_ids: IdsByNumber
    known_recipients: Mapping[int, Recipient]
    work: Sequence[tuple[int, int]] = ()

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def places(self, message: int) -> range:
        """Places of the deliveries of a message."""
        of = self.rows.column("message").to_numpy()
        return range(*of.searchsorted([message, message + 1]).tolist())

    def deliveries(self, places: range) -> list[tuple[int, str, int, bytes | None]]:
        """Deliveries by their places."""
        rows = self.rows.slice(places.start, len(places)).to_pylist()
        return [
            (
                row["message"],
                self.subscription_ids[row["subscription"]],
                row["result"],
                None if row["fragment"] is None else self.fragments[row["fragment"]].as_py(),
            )
            for row in rows
        ]

    def recipient(self, place: int) -> tuple[Recipient, DeliveredNode | None]:
        """Whom the delivery at a place goes to, and its node."""
        to = self.known_recipients[self.rows.column("subscription")[place].as_py()]
        numbers = self.nodes.column("delivery").to_numpy()
        at = int(numbers.searchsorted(place))
        if at == len(numbers) or numbers[at] != place:
            return to, None
        names = DeliveredNode._fields
        return to, DeliveredNode(*(self.nodes.column(name)[at].as_py() for name in names))

    def subscribed(self) -> tuple[pa.Array, pa.Array]:
        """The numbers of the subscriptions that got something, and the place of each delivery."""
        import pyarrow as pa  # which most that read the model do without

        numbers = self.rows.column("subscription").to_pylist()
        distinct = sorted(set(numbers))
        place = {number: place for place, number in enumerate(distinct)}
        places = [place[number] for number in numbers]
        return pa.array(distinct, pa.uint32()), pa.array(places, pa.uint32())

    def recipients(self, numbers: pa.Array) -> pa.RecordBatch:
        """Whom the results of subscriptions go to."""
        import pyarrow as pa

        wanted = numbers.to_pylist()
        found = [self.known_recipients[number] for number in wanted]
        columns = [
            pa.array([self.subscription_ids[number] for number in wanted], pa.string()),
            pa.array([each.subscriber for each in found], pa.string()),
            pa.array([each.version for each in found], pa.binary(16)),
        ]
        return pa.RecordBatch.from_arrays(columns, ["subscription_id", "subscriber", "version"])
