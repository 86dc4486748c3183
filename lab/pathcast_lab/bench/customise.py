"""`customise`: FLWR subscriptions by the hundred thousand, from a message to finished results.

Three workloads: the books and bibliographies of the literature, with unique queries of its form,
and the sample domains with realistic subscriptions, of which a quarter goes beyond that form.

Two answers are timed: groups of node ids (groupSequence-listSequence form) and serialised results,
and how fast subscriptions enter and leave a running registry. Results are compared with the
reference engine on a sample first; every timed call must give as many as the one that was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from pathcast import Registry
from pathcast.workload import DemoParameters, ShapedParameters, demo_messages, generate_shaped
from pathcast_lab.bench.broker.inputs import flwr_queries
from pathcast_lab.bench.checking import THREADS, wrong_count
from pathcast_lab.bench.customising import (
    CustomisingPart,
    CustomisingRound,
    CustomisingRounds,
    Dissemination,
    Process,
    both_clocks,
    check_groups,
    check_results,
    counting_groups,
    customising_round,
    mixed_sample,
    new_engine,
    rounds_spread,
    serialising,
    subscribe_all,
    subscriptions_of,
)
from pathcast_lab.bench.definitions import BenchmarkDefinition, Expected, SetName, Strict
from pathcast_lab.bench.filtering import single, spread_messages
from pathcast_lab.bench.inputs import inputs_digest
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.memory import broker_bytes
from pathcast_lab.bench.rounds import binary_array
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed, yardstick
from pathcast_lab.workload import BROKER_WORKLOADS, FlwrParameters, FlwrQuery

CustomiseWorkload: TypeAlias = Literal["book", "bib", "domains"]

Clocks: TypeAlias = tuple[tuple[int, int], ...]
"""Wall times and processor times in ns."""

VALUES_MAX = 100
"""MaxValue of books and bibliographies: enough for 100,000 unique queries (002, 6.4)."""


class CustomiseSet(Strict):
    """What one set of `customise` runs.

    Attributes:
        queries: Workload -> Q, each a case of its own.
        messages: Messages of a case.
        rounds: Alternations with the yardstick.
        changes: Subscriptions that enter and leave the running registry.
        change_rounds: How often they do.
        check_queries: Subscriptions that the reference engine answers too.
        check_messages: Messages on which it does.
    """

    queries: dict[CustomiseWorkload, tuple[int, ...]]
    messages: int = Field(ge=1)
    rounds: int = Field(ge=1)
    changes: int = Field(ge=1)
    change_rounds: int = Field(ge=1)
    check_queries: int = Field(ge=1)
    check_messages: int = Field(ge=1)


class CustomiseDefinition(BenchmarkDefinition[CustomiseSet]):
    """`lab/benchmarks/customise.toml`.

    Attributes:
        expected: Known counts of results.
    """

    expected: tuple[Expected, ...] = ()


@dataclass(frozen=True)
class CustomiseChecks:
    """What was compared, and with what outcome: agreement, for else there is no result.

    Attributes:
        inputs: Digest of queries and messages.
        results: Results of all messages.
        reference_queries: Subscriptions that the reference engine was asked about.
        reference_messages: Messages that it was asked about.
        reference_results: Their results, equal in canonical XML.
        reference_groups: Their groups by PathSharing-FWR, the same number.
        reference_nodes: Nodes in the lists of these, the same number.
        is_expected: Whether `results` is the count of the definition; None if it has none for
            these inputs.
    """

    inputs: str
    results: int
    reference_queries: int
    reference_messages: int
    reference_results: int
    reference_groups: int
    reference_nodes: int
    is_expected: bool | None

    def __str__(self) -> str:
        known = "as known" if self.is_expected else "no known count for these inputs"
        groups = (
            f" with {self.reference_groups:,} groups of {self.reference_nodes:,} nodes"
            if self.reference_groups
            else ""
        )
        return (
            f"{self.results:,} results ({known}); reference engine: the same "
            f"{self.reference_results:,}{groups}, of {self.reference_queries:,} subscriptions in "
            f"{self.reference_messages} messages"
        )


@dataclass(frozen=True, kw_only=True)
class CustomiseResult:
    """What one case gave.

    Attributes:
        case: Its name.
        queries: Q.
        message_bytes: Of a message.
        checks: What was compared.
        build_ns: Subscribing all of them.
        memory_bytes: Growth of a process that restores the registry and answers; None if unknown.
        groups: Passes that stop at groups of node ids; none if the engine does not offer it.
        serialised: Passes with serialised results.
        rows: Wall times, in ns, of passes through the registry with rows and delivery ids, and of
            passes without.
        changes: Subscriptions that entered and left.
        entering: Wall time and processor time, in ns, of their entering.
        leaving: The same of their leaving.
    """

    case: str
    queries: int
    message_bytes: float
    checks: CustomiseChecks
    build_ns: int
    memory_bytes: int | None
    groups: CustomisingRounds
    serialised: CustomisingRounds
    rows: tuple[tuple[int, int], ...]
    changes: int
    entering: Clocks
    leaving: Clocks

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, value: Spread) -> Measure:
            return Measure("customise", self.case, name, unit, value, self.queries)

        def parts(
            name: str, rounds: CustomisingRounds, *chosen: CustomisingPart
        ) -> Iterator[Measure]:
            for part in chosen:
                label = name if part == "total" else f"{name}, {part}"
                times = [one.microseconds(part) for one in rounds]
                yield figure(label, "us", Spread.of(times))
            yield figure(f"{name} by lxml", "x lxml", rounds_spread(rounds, lambda one: one.ratio))
            busy = rounds_spread(rounds, lambda one: one.processor_ratio)
            yield figure(f"{name}, processor by lxml", "x lxml", busy)

        first = self.serialised[0]
        yield figure("results", "1/message", single(first.deliveries / first.messages))
        yield figure("subscribe", "1/s", single(self.queries / self.build_ns * 1e9))
        if self.memory_bytes is not None:
            yield figure("memory", "MB", single(self.memory_bytes / 1e6))
        if self.groups:
            yield from parts("groups", self.groups, "total", "processor", "parsing", "matching")
        yield from parts(
            "serialised", self.serialised, "total", "processor", "matching", "customising"
        )
        output = single(first.result_bytes / first.messages / 1e3)
        yield figure("output", "KB/message", output)
        distinct = single(first.distinct_bytes / first.messages / 1e3)
        yield figure("distinct output", "KB/message", distinct)
        rate = rounds_spread(self.serialised, lambda one: one.output_megabytes_per_second)
        yield figure("output rate", "MB/s", rate)
        busy = rounds_spread(self.serialised, lambda one: one.output_rate_of_processor)
        yield figure("output rate, processor", "MB/s", busy)
        written = [one.distinct_bytes / one.total_ns * 1e3 for one in self.serialised]
        yield figure("distinct output rate", "MB/s", Spread.of(written))
        rows = Spread.of([ns / first.messages / 1e3 for ns, _ in self.rows])
        yield figure("with delivery rows", "us", rows)
        ratios = Spread.of([with_rows / alone for with_rows, alone in self.rows])
        yield figure("rows by results alone", "x", ratios)
        for name, times in (("entering", self.entering), ("leaving", self.leaving)):
            for clock, label in enumerate((name, f"{name}, processor")):
                rates = [self.changes / both[clock] * 1e9 for both in times]
                yield figure(label, "1/s", Spread.of(rates))


def run_customise(
    definition: CustomiseDefinition,
    set_name: SetName,
    say: Callable[[str], None],
    work: Path | None = None,
) -> Iterator[CustomiseResult]:
    """The cases, workload by workload.

    Args:
        definition: What is measured.
        set_name: How much of it.
        say: Takes progress.
        work: Where generated queries are kept; None for nowhere.

    Raises:
        WrongCountError: Engines disagree.
        MissingDependencyError: lxml is not installed.
    """
    chosen = definition.sets[set_name]
    for workload, sizes in chosen.queries.items():
        messages = customise_messages(workload, chosen.messages, seed=definition.seed)
        for size in sizes:
            case = f"{workload} Q={size:,}"
            say(case)
            count = size + chosen.changes
            queries = customise_queries(workload, count, seed=definition.seed, work=work)
            texts = [query.text() for query in queries] or customise_texts(
                count, seed=definition.seed
            )
            yield CustomiseCase(case, texts, queries, messages, chosen, definition.expected).run()


def customise_messages(workload: CustomiseWorkload, count: int, *, seed: int) -> list[bytes]:
    """Messages of a workload; those of the domains in turn.

    Raises:
        MissingDependencyError: lxml, which reads DTDs, is not installed.
    """
    if workload == "domains":
        parameters = DemoParameters(messages=count, seed=seed, broken_ratio=0)
        return [message.message for message in demo_messages(parameters)]
    return list(BROKER_WORKLOADS[workload].messages(count, seed, VALUES_MAX))


def customise_texts(count: int, *, seed: int) -> list[str]:
    """FLWR subscriptions to the sample domains; popular ones occur several times."""
    return [row.query for row in generate_shaped(ShapedParameters(queries=count, seed=seed))]


def customise_queries(
    workload: CustomiseWorkload, count: int, *, seed: int, work: Path | None = None
) -> list[FlwrQuery]:
    """Unique queries of the paper's form; none for the domains."""
    if workload == "domains":
        return []
    chosen = BROKER_WORKLOADS[workload]
    parameters = FlwrParameters(
        count=count,
        seed=seed,
        binding_depth_max=chosen.binding_depth_max,
        values_max=VALUES_MAX,
    )
    return flwr_queries(workload, parameters, work)


class CustomiseCase:
    """One set of subscriptions over some messages.

    Args:
        case: Its name.
        texts: The subscriptions; the last `chosen.changes` are those that enter and leave.
        queries: The same, where they have the paper's form; else none.
        messages: The messages.
        chosen: How much is done.
        expected: Known counts.
    """

    def __init__(
        self,
        case: str,
        texts: Sequence[str],
        queries: Sequence[FlwrQuery],
        messages: Sequence[bytes],
        chosen: CustomiseSet,
        expected: Sequence[Expected] = (),
    ) -> None:
        self._case = case
        self._messages = messages
        self._array = binary_array(messages)
        self._chosen = chosen
        self._expected = expected
        count = len(texts) - chosen.changes
        self._texts = list(texts[:count])
        self._queries = queries[:count]
        self._subscriptions = subscriptions_of(self._texts)
        self._later = subscriptions_of(texts[count:], first=count)

    def run(self) -> CustomiseResult:
        """Subscribes, checks, then measures.

        Raises:
            WrongCountError: The kernel disagrees with the reference engine or with itself.
        """
        build_ns, checks, groups, serialised = self._engine()
        registry = Registry(threads=THREADS)
        registry.add(self._subscriptions)
        rows = self._rows(registry, checks.results)
        entering, leaving = self._changes(registry, checks.results)
        return CustomiseResult(
            case=self._case,
            queries=len(self._subscriptions),
            message_bytes=sum(map(len, self._messages)) / len(self._messages),
            checks=checks,
            build_ns=build_ns,
            memory_bytes=broker_bytes(registry.freeze(), self._array),
            groups=groups,
            serialised=serialised,
            rows=rows,
            changes=len(self._later),
            entering=entering,
            leaving=leaving,
        )

    def _engine(self) -> tuple[int, CustomiseChecks, CustomisingRounds, CustomisingRounds]:
        """What the bare engine costs, which is dropped before a registry is made."""
        engine = new_engine()
        with undisturbed():
            build_ns = elapsed_ns(lambda: subscribe_all(engine, self._subscriptions))
        checks = self._checked(engine)
        # Groups are those of the paper's form; of other queries there are none to count.
        counting = counting_groups(engine) if self._queries else None
        groups = () if counting is None else self._rounds(counting, checks.results)
        return build_ns, checks, groups, self._rounds(serialising(engine), checks.results)

    def _checked(self, engine: Dissemination) -> CustomiseChecks:
        few = spread_messages(self._messages, self._chosen.check_messages)
        most = self._chosen.check_queries
        places = mixed_sample(engine, len(self._subscriptions), binary_array(few), most)
        sample = [self._subscriptions[place] for place in places]
        compared = check_results(self._case, engine, sample, binary_array(few))
        groups, nodes = 0, 0
        if self._queries:
            groups, nodes = check_groups(self._case, [self._queries[at] for at in places], few)
        results = serialising(engine)(self._array).deliveries
        inputs = inputs_digest(self._texts, self._messages)
        known = next(
            (
                one.matches
                for one in self._expected
                if (one.case, one.inputs) == (self._case, inputs)
            ),
            None,
        )
        if known is not None and known != results:
            raise wrong_count(self._case, results, known, "the definition")
        return CustomiseChecks(
            inputs=inputs,
            results=results,
            reference_queries=len(sample),
            reference_messages=len(few),
            reference_results=compared,
            reference_groups=groups,
            reference_nodes=nodes,
            is_expected=None if known is None else True,
        )

    def _rounds(self, process: Process, results: int) -> CustomisingRounds:
        parse = yardstick(self._messages)
        for _ in range(2):
            process(self._array)
            parse()
        rounds: list[CustomisingRound] = []
        with undisturbed():
            for number in range(self._chosen.rounds):
                one = customising_round(process, self._array, parse, parse_first=bool(number % 2))
                self._confirm(one.deliveries, results)
                rounds.append(one)
        return tuple(rounds)

    def _rows(self, registry: Registry, results: int) -> tuple[tuple[int, int], ...]:
        """Passes that make everything a subscriber is sent, and of results alone, in turn."""
        times: list[tuple[int, int]] = []
        with undisturbed():
            for _ in range(self._chosen.change_rounds):
                found: list[int] = []

                def publish(found: list[int] = found) -> None:
                    found.append(registry.deliver(self._array).rows.num_rows)

                def answer(found: list[int] = found) -> None:
                    found.append(len(registry.deliver(self._array)))

                times.append((elapsed_ns(publish), elapsed_ns(answer)))
                for count in found:
                    self._confirm(count, results)
        return tuple(times)

    def _changes(self, registry: Registry, results: int) -> tuple[Clocks, Clocks]:
        entering: list[tuple[int, int]] = []
        leaving: list[tuple[int, int]] = []
        ids = [subscription.id for subscription in self._later]
        for number in range(self._chosen.change_rounds):
            with undisturbed():
                entering.append(both_clocks(lambda: registry.add(self._later)))
            if number == 0:
                self._check_later(registry)
            with undisturbed():
                leaving.append(both_clocks(lambda: registry.remove(ids)))
            self._confirm(len(registry.deliver(self._array)), results)
        return tuple(entering), tuple(leaving)

    def _check_later(self, registry: Registry) -> None:
        """Those that have entered get what an engine gives them that knows no others."""
        few = binary_array(spread_messages(self._messages, self._chosen.check_messages))
        alone = new_engine()
        subscribe_all(alone, self._later)
        expected = serialising(alone)(few).deliveries
        wanted = {subscription.id for subscription in self._later}
        found = sum(
            delivery.subscription_id in wanted
            for number in range(len(few))
            for delivery in registry.deliver(few).deliveries(number)
        )
        if found != expected or len(registry) != len(self._subscriptions) + len(self._later):
            raise wrong_count(f"{self._case}, entering", found, expected, "an engine of their own")

    def _confirm(self, found: int, expected: int) -> None:
        if found != expected:
            raise wrong_count(self._case, found, expected, "the checked pass")
