"""A dissemination engine under the clock: subscriptions in, messages through it, results out.

Example:
    >>> one = CustomisingRound(
    ...     messages=2, bytes=4_000, total_ns=400_000, parsing_ns=100_000, matching_ns=200_000,
    ...     customising_ns=50_000, deliveries=10, result_bytes=2_000, yardstick_ns=100_000,
    ... )
    >>> one.ratio, one.microseconds("total"), one.microseconds("mqpt")
    (4.0, 200.0, 150.0)

Two answers are timed: results in groupSequence-listSequence form, where the engine counts the
groups and lists node ids but writes nothing, and serialised results. A pass whose deliveries are
not those that were checked before is an error, not a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pathcast.cli.console import extra
from pathcast.kernel.registry import DeliveryAnswer, KernelRegistry
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, Subscription
from pathcast_lab.bench.broker.definition import BrokerAlgorithm
from pathcast_lab.bench.broker.reference_subject import BrokerSubject
from pathcast_lab.bench.checking import THREADS, wrong_count
from pathcast_lab.bench.rounds import binary_array
from pathcast_lab.bench.timing import Spread
from pathcast_lab.workload import FlwrQuery
from pathcast_papers import parse
from pathcast_papers.message_broker.dissemination import ReferenceDissemination

CustomisingPart: TypeAlias = Literal[
    "total", "mqpt", "parsing", "matching", "customising", "rest", "yardstick", "processor"
]
"""What of a round: the wall time of the call; that less parsing (the paper's MQPT); what the engine
says of its parts; what it does not say; the yardstick; or the processor time of the call."""

Results: TypeAlias = Mapping[str, tuple[bytes, ...]]
"""Id of a subscription -> its results, in canonical XML."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomisingRound:
    """One pass over messages.

    Attributes:
        messages: How many.
        bytes: Of them all.
        total_ns: Wall time of `process`.
        parsing_ns: The engine's own account of the door.
        matching_ns: Of path matching, conditions and joins.
        customising_ns: Of building results.
        deliveries: Results.
        result_bytes: Of all results, a shared one counted every time.
        distinct_bytes: Of all results, a shared one counted once a message.
        groups: Groups of all deliveries, where they were counted.
        list_nodes: Node ids in their lists, where they were counted.
        yardstick_ns: `lxml.etree.fromstring` over the same messages.
        processor_ns: Processor time of `process`: what it takes on a machine without other work.
        yardstick_processor_ns: The same of the yardstick.
    """

    messages: int
    bytes: int
    total_ns: int
    parsing_ns: int
    matching_ns: int
    customising_ns: int
    deliveries: int
    result_bytes: int
    distinct_bytes: int = 0
    groups: int = 0
    list_nodes: int = 0
    yardstick_ns: int
    processor_ns: int = 0
    yardstick_processor_ns: int = 0

    def nanoseconds(self, part: CustomisingPart) -> int:
        """Time of a part."""
        if part == "mqpt":
            return self.total_ns - self.parsing_ns
        if part == "rest":
            return self.total_ns - self.parsing_ns - self.matching_ns - self.customising_ns
        time_ns: int = getattr(self, f"{part}_ns")
        return time_ns

    def microseconds(self, part: CustomisingPart) -> float:
        """Time of a part for one message."""
        return self.nanoseconds(part) / self.messages / 1e3

    def ratio_of(self, part: CustomisingPart) -> float:
        """Time of a part as a multiple of the yardstick's."""
        return self.nanoseconds(part) / self.yardstick_ns

    @property
    def ratio(self) -> float:
        """Wall time as a multiple of the yardstick's."""
        return self.ratio_of("total")

    @property
    def output_rate_of_processor(self) -> float:
        """Results, in 10^6 bytes, by the processor time of the whole call."""
        return self.result_bytes / self.processor_ns * 1e3

    @property
    def processor_ratio(self) -> float:
        """Processor time as a multiple of the yardstick's."""
        return self.processor_ns / self.yardstick_processor_ns

    @property
    def output_megabytes_per_second(self) -> float:
        """Results, in 10^6 bytes, by the wall time of the whole call."""
        return self.result_bytes / self.total_ns * 1e3


CustomisingRounds: TypeAlias = tuple[CustomisingRound, ...]


def rounds_spread(
    rounds: Sequence[CustomisingRound], value: Callable[[CustomisingRound], float]
) -> Spread:
    """Spread of a figure over rounds."""
    return Spread.of([value(one) for one in rounds])


def subscriptions_of(texts: Iterable[str], first: int = 0) -> list[Subscription]:
    """Subscriptions with the ids q0, q1, ... from `first` on, of a hundred subscribers."""
    return [
        Subscription(f"q{number}", f"s{number % 100}", text)
        for number, text in enumerate(texts, start=first)
    ]


Dissemination: TypeAlias = KernelRegistry | ReferenceDissemination
"""Subscriptions that come and go while messages flow."""


def new_engine() -> KernelRegistry:
    """An engine without subscriptions, on one thread.

    Raises:
        KernelMissingError: The kernel is not installed.
    """
    return KernelRegistry(Limits(), THREADS, CACHE_BYTES_MAX)


class Processed(NamedTuple):
    """What an engine says of a pass; attributes as in `CustomisingRound`."""

    messages: int
    bytes: int
    parsing_ns: int
    matching_ns: int
    customising_ns: int
    deliveries: int
    result_bytes: int
    distinct_bytes: int
    groups: int
    list_nodes: int


@dataclass(frozen=True, slots=True)
class Process:
    """A pass of an engine over messages, and what is read of its answer when no clock runs.

    Attributes:
        run: The pass.
        read: From what it gave.
    """

    run: Callable[[pa.Array], Any]
    read: Callable[[Any], Processed]

    def __call__(self, messages: pa.Array) -> Processed:
        """Both."""
        return self.read(self.run(messages))


def serialising(backend: Dissemination) -> Process:
    """Passes that give serialised results.

    Reading raises:
        WrongCountError: A message or a result was refused: its time is no time of customising.
    """
    return Process(backend.process, _read_answer)


def _read_answer(answer: DeliveryAnswer) -> Processed:
    stats = answer.stats
    _check_all_taken(stats.messages, stats.refused + len(answer.verdicts))
    lengths = pc.binary_length(answer.fragments)
    sent = pc.sum(lengths.take(answer.rows.column("fragment"))).as_py() or 0
    return Processed(
        messages=stats.messages,
        bytes=stats.bytes,
        parsing_ns=stats.parsing_ns,
        matching_ns=stats.matching_ns,
        customising_ns=stats.customising_ns + stats.collecting_ns,
        deliveries=answer.rows.num_rows,
        result_bytes=sent,
        distinct_bytes=pc.sum(lengths).as_py() or 0,
        groups=0,
        list_nodes=0,
    )


def counting_groups(backend: Dissemination) -> Process | None:
    """Passes that end in groupSequence-listSequence form, every node id of every list visited.

    None if the engine does not offer it: only the kernel does, for measurements, and for
    subscriptions of the paper's form.
    """
    count: Callable[..., Mapping[str, int]] | None = getattr(backend, "count_groups", None)
    return None if count is None else Process(partial(count, visits=True), _read_counts)


def _read_counts(found: Mapping[str, int]) -> Processed:
    _check_all_taken(found["messages"], found["refused"])
    return Processed(
        messages=found["messages"],
        bytes=found["bytes"],
        parsing_ns=found["parsing_ns"],
        matching_ns=found["matching_ns"],
        customising_ns=found["collecting_ns"],
        deliveries=found["subscriptions"],
        result_bytes=0,
        distinct_bytes=0,
        groups=found["groups"],
        list_nodes=found["list_nodes"],
    )


def _check_all_taken(messages: int, refused: int) -> None:
    if refused:
        raise wrong_count(
            "messages and results without refusal", messages - refused, messages, "the yardstick"
        )


def subscribe_all(backend: Dissemination, many: Sequence[Subscription]) -> None:
    """Adds subscriptions.

    Raises:
        PathcastError: One was rejected.
    """
    report = backend.subscribe(many, {})
    if report.rejected:
        raise next(iter(report.rejected.values()))


def customising_round(
    process: Process,
    messages: pa.Array,
    parse: Callable[[], None],
    *,
    parse_first: bool = False,
) -> CustomisingRound:
    """One pass of both. To be called while `undisturbed`."""
    before = both_clocks(parse) if parse_first else (0, 0)
    answers: list[Any] = []
    total, processor = both_clocks(lambda: answers.append(process.run(messages)))
    parsing, parsing_processor = before if parse_first else both_clocks(parse)
    return CustomisingRound(
        **process.read(answers[0])._asdict(),
        total_ns=total,
        yardstick_ns=parsing,
        processor_ns=processor,
        yardstick_processor_ns=parsing_processor,
    )


def both_clocks(action: Callable[[], object]) -> tuple[int, int]:
    """Wall time and processor time of one call."""
    wall, processor = time.perf_counter_ns(), time.process_time_ns()
    action()
    return time.perf_counter_ns() - wall, time.process_time_ns() - processor


def results_of(answer: DeliveryAnswer, wanted: frozenset[str] | None = None) -> list[Results]:
    """The results of each message of an answer, in canonical XML.

    Args:
        answer: Of an engine.
        wanted: Ids of the subscriptions that are looked at; None for all.

    Raises:
        MissingDependencyError: lxml is not installed.
    """
    canonical = _canonical()
    fragments: list[bytes] = answer.fragments.to_pylist()
    found: list[dict[str, list[bytes]]] = [{} for _ in range(answer.stats.messages)]
    columns = (
        answer.rows.column(name).to_pylist() for name in ("message", "subscription", "fragment")
    )
    known: dict[int, bytes] = {}
    for message, number, fragment in zip(*columns, strict=True):
        name = answer.subscription_ids[number]
        if wanted is None or name in wanted:
            if fragment is not None and fragment not in known:
                known[fragment] = canonical(fragments[fragment])
            result = b"" if fragment is None else known[fragment]
            found[message].setdefault(name, []).append(result)
    return [{name: tuple(results) for name, results in one.items()} for one in found]


def _canonical() -> Callable[[bytes], bytes]:
    with extra("bench", "pathcast-lab bench"):
        from lxml import etree

    def canonical(fragment: bytes) -> bytes:
        # A result may be text, or several nodes; a wrapper makes a document of any.
        try:
            tree = etree.fromstring(b"<r>" + fragment + b"</r>")
        except etree.XMLSyntaxError:
            return fragment
        written: bytes = etree.tostring(tree, method="c14n")
        return written

    return canonical


def mixed_sample(backend: Dissemination, count: int, messages: pa.Array, most: int) -> list[int]:
    """Places of subscriptions to compare: half of them of those with results, if so many have any.

    Args:
        backend: The engine, with subscriptions as `subscriptions_of` numbers them.
        count: How many it has.
        messages: On which they are compared.
        most: How many are wanted.
    """
    answer = backend.process(messages)
    numbers = answer.rows.column("subscription").unique().to_pylist()
    found = sorted(int(answer.subscription_ids[number][1:]) for number in numbers)
    half = max(1, most // 2)
    some = found[:: max(1, len(found) // half)][:half]
    spread = range(0, count, max(1, count // (most - len(some) or 1)))
    return sorted({*some, *spread[: most - len(some)]})


def check_results(
    case: str,
    backend: Dissemination,
    sample: Sequence[Subscription],
    messages: pa.Array,
) -> int:
    """Compares results with the reference engine's on a sample; the results of it.

    Raises:
        WrongCountError: A message's results differ.
    """
    reference = ReferenceDissemination(Limits())
    subscribe_all(reference, sample)
    wanted = frozenset(subscription.id for subscription in sample)
    expected = results_of(reference.process(messages))
    found = results_of(backend.process(messages), wanted)
    for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        if mine != theirs:
            differing = [name for name in wanted if mine.get(name) != theirs.get(name)]
            place = f"{case}, message {number}, {min(differing)} and {len(differing) - 1} others"
            raise wrong_count(place, _results(mine), _results(theirs), "the reference engine")
    return sum(map(_results, expected))


def check_groups(
    case: str, sample: Sequence[FlwrQuery], messages: Sequence[bytes]
) -> tuple[int, int]:
    """Compares what the kernel counts with the reference algorithm, for some queries.

    Args:
        case: What errors call it.
        sample: The queries.
        messages: The messages.

    Returns:
        Groups, and node ids in their lists; none if the kernel does not count them.

    Raises:
        WrongCountError: The kernel counts more or fewer.
    """
    engine = new_engine()
    subscribe_all(engine, subscriptions_of(query.text() for query in sample))
    count = counting_groups(engine)
    if count is None:
        return 0, 0
    subject = BrokerSubject(BrokerAlgorithm.FWR, "Opt(q)", sample, None)
    answers = subject.answers([parse(message, Limits()) for message in messages])
    sequences = [groups for answer in answers for groups in answer.values()]
    expected = (
        len(sequences),
        sum(map(len, sequences)),
        sum(len(nodes) for groups in sequences for group in groups for nodes in group),
    )
    found = count(binary_array(messages))
    for mine, theirs, what in zip(
        (found.deliveries, found.groups, found.list_nodes),
        expected,
        ("queries satisfied", "groups", "nodes in lists"),
        strict=True,
    ):
        if mine != theirs:
            raise wrong_count(f"{case}, {what}", mine, theirs, "PathSharing-FWR")
    return expected[1:]


def _results(found: Results) -> int:
    return sum(map(len, found.values()))
