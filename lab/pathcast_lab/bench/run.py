"""A run: which benchmarks, in which order, and what becomes of one that fails.

Example:
    >>> BENCHMARKS[0], BENCHMARKS[-1]
    ('filter', 'capacity')

A wrong answer voids the benchmark that gave it and no other; the run as a whole has then failed. It
prints nothing; `report` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pathcast.errors import JavaMissingError, MissingDependencyError
from pathcast_lab.bench.adversarial import run_adversarial
from pathcast_lab.bench.broker_node import BrokerNodeDefinition, BrokerNodeResult, run_broker_node
from pathcast_lab.bench.capacity import CapacityDefinition, CapacityResult, run_capacity
from pathcast_lab.bench.cases import CaseResult
from pathcast_lab.bench.compression import CompressionResult, run_compression
from pathcast_lab.bench.conditions import run_conditions
from pathcast_lab.bench.customise import CustomiseDefinition, CustomiseResult, run_customise
from pathcast_lab.bench.definitions import (
    AdversarialDefinition,
    Aim,
    CompressionDefinition,
    ConditionsDefinition,
    DoorDefinition,
    FilterDefinition,
    FilterSet,
    MixedDefinition,
    RecordsDefinition,
    SetName,
    ThreadsDefinition,
    read_definition,
)
from pathcast_lab.bench.door import DoorResult, run_door
from pathcast_lab.bench.filtering import FilterResult, run_filter
from pathcast_lab.bench.hop import HopDefinition, HopResult, run_hop
from pathcast_lab.bench.inputs import Source
from pathcast_lab.bench.measures import Measure, with_aims
from pathcast_lab.bench.mixed import run_mixed
from pathcast_lab.bench.pipeline.definition import PipelineDefinition
from pathcast_lab.bench.pipeline.run import PipelineResult, run_pipeline
from pathcast_lab.bench.records import RecordsResult, run_records
from pathcast_lab.bench.registration import (
    RegistrationDefinition,
    RegistrationResult,
    run_registration,
)
from pathcast_lab.bench.restart import RestartDefinition, RestartResult, run_restart
from pathcast_lab.bench.threads import ThreadsResult, run_threads
from pathcast_lab.bench.wrong_count import WrongCountError

BenchmarkName: TypeAlias = Literal[
    "filter",
    "door",
    "records",
    "compression",
    "registration",
    "threads",
    "conditions",
    "mixed",
    "adversarial",
    "customise",
    "pipeline",
    "hop",
    "broker-node",
    "restart",
    "capacity",
]

BENCHMARKS: tuple[BenchmarkName, ...] = get_args(BenchmarkName)
"""In the order in which they run."""

Result: TypeAlias = (
    FilterResult
    | DoorResult
    | RecordsResult
    | CompressionResult
    | RegistrationResult
    | ThreadsResult
    | CaseResult
    | CustomiseResult
    | PipelineResult
    | HopResult
    | RestartResult
    | CapacityResult
    | BrokerNodeResult
)


@dataclass
class Outcome:
    """What one benchmark gave.

    Attributes:
        name: Its name.
        title: Its title.
        bound: What its figures should come near, and why.
        results: One for each case that was finished.
        measures: Their figures, with aims.
        failure: Why there are no more; times of the case that failed are not kept.
        skipped: Why it did not run at all.
    """

    name: BenchmarkName
    title: str
    bound: str
    results: list[Result] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    failure: str | None = None
    skipped: str | None = None


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        source: Queries and messages.
        definitions: Directory of the definitions.
        set_name: Which set of each.
        names: Benchmarks, in order.
        is_named: Whether the caller named them: then one that cannot run is an error.
        sizes: Numbers of queries of `filter`, `mixed` and `adversarial`, instead of the set's.
        rounds: Rounds of the same, instead of the set's.
    """

    source: Source
    definitions: Path
    set_name: SetName
    names: Sequence[BenchmarkName] = BENCHMARKS
    is_named: bool = False
    sizes: tuple[int, ...] | None = None
    rounds: int | None = None


def run_plan(plan: Plan, say: Callable[[str], None]) -> Iterator[Outcome]:
    """The outcomes, each as soon as it is there.

    Args:
        plan: What to run.
        say: Takes one line on what is being done.

    Raises:
        PathcastError: A benchmark cannot run that the caller named.
    """
    for name in plan.names:
        outcome, aims, results = _started(plan, name, say)
        try:
            for result in results:
                outcome.results.append(result)
                outcome.measures += with_aims(result.measures(), aims)
        except WrongCountError as error:
            outcome.failure = str(error)
        except (MissingDependencyError, JavaMissingError) as error:
            if plan.is_named:
                raise
            outcome.skipped = str(error)
        yield outcome


def _started(
    plan: Plan, name: BenchmarkName, say: Callable[[str], None]
) -> tuple[Outcome, tuple[Aim, ...], Iterable[Result]]:
    """A benchmark whose cases have not run yet."""
    directory, chosen, source = plan.definitions, plan.set_name, plan.source

    def tell(text: str) -> None:
        say(f"{name}: {text}")

    linear = read_definition(directory, "filter", FilterDefinition)
    definition: (
        MixedDefinition
        | DoorDefinition
        | RecordsDefinition
        | CompressionDefinition
        | RegistrationDefinition
        | ThreadsDefinition
        | CustomiseDefinition
        | PipelineDefinition
        | HopDefinition
        | BrokerNodeDefinition
        | RestartDefinition
        | CapacityDefinition
    )
    results: Iterable[Result]
    match name:
        case "filter":
            definition = linear
            results = run_filter(linear, _changed(linear, plan), source, tell)
        case "door":
            definition = read_definition(directory, name, DoorDefinition)
            results = run_door(definition, definition.sets[chosen], source, tell)
        case "records":
            definition = read_definition(directory, name, RecordsDefinition)
            results = run_records(definition, definition.sets[chosen], source, tell)
        case "compression":
            definition = read_definition(directory, name, CompressionDefinition)
            results = run_compression(definition, definition.sets[chosen], tell)
        case "registration":
            definition = read_definition(directory, name, RegistrationDefinition)
            results = run_registration(definition, definition.sets[chosen], tell)
        case "threads":
            definition = read_definition(directory, name, ThreadsDefinition)
            results = run_threads(definition, definition.sets[chosen], linear, source, tell)
        case "conditions":
            definition = read_definition(directory, name, ConditionsDefinition)
            results = run_conditions(definition, chosen, source, tell)
        case "mixed":
            definition = read_definition(directory, name, MixedDefinition)
            results = run_mixed(definition, _changed(definition, plan), tell)
        case "adversarial":
            definition = read_definition(directory, name, AdversarialDefinition)
            results = run_adversarial(definition, _changed(definition, plan), tell)
        case "customise":
            definition = read_definition(directory, name, CustomiseDefinition)
            results = run_customise(definition, chosen, tell, source.work)
        case "pipeline":
            definition = read_definition(directory, name, PipelineDefinition)
            results = run_pipeline(definition, definition.sets[chosen], tell)
        case "hop":
            definition = read_definition(directory, name, HopDefinition)
            results = run_hop(definition, definition.sets[chosen], tell)
        case "broker-node":
            definition = read_definition(directory, name, BrokerNodeDefinition)
            results = run_broker_node(definition, definition.sets[chosen], tell)
        case "restart":
            definition = read_definition(directory, name, RestartDefinition)
            results = run_restart(definition, definition.sets[chosen], tell)
        case "capacity":
            definition = read_definition(directory, name, CapacityDefinition)
            results = run_capacity(definition, definition.sets[chosen], tell)
    return Outcome(name, definition.title, definition.bound.strip()), definition.aims, results


def _changed(definition: MixedDefinition, plan: Plan) -> FilterSet:
    """The set that was chosen, with what the caller wants otherwise."""
    update: dict[str, object] = {}
    if plan.sizes is not None:
        update["queries"] = plan.sizes
    if plan.rounds is not None:
        update["rounds"] = plan.rounds
    return definition.sets[plan.set_name].model_copy(update=update)


def has_failed(outcomes: Iterable[Outcome]) -> bool:
    """Whether some benchmark gave a wrong answer."""
    return any(outcome.failure is not None for outcome in outcomes)
