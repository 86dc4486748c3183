"""A run: which benchmarks, in which order, and what becomes of one that fails.

Example:
    >>> BENCHMARKS
    ('filter', 'door', 'threads', 'conditions', 'spark')

A wrong answer voids the benchmark that gave it and no other; the run as a whole has then failed. It
prints nothing; `report` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pathcast.bench.conditions import ConditionsResult, run_conditions
from pathcast.bench.definitions import (
    Aim,
    ConditionsDefinition,
    DoorDefinition,
    FilterDefinition,
    SetName,
    SparkDefinition,
    ThreadsDefinition,
    read_definition,
)
from pathcast.bench.door import DoorResult, run_door
from pathcast.bench.filtering import FilterResult, run_filter
from pathcast.bench.inputs import Source
from pathcast.bench.measures import Measure, with_aims
from pathcast.bench.pipeline import SparkResult, run_spark
from pathcast.bench.threads import ThreadsResult, run_threads
from pathcast.errors import JavaMissingError, MissingDependencyError, WrongCountError

BenchmarkName: TypeAlias = Literal["filter", "door", "threads", "conditions", "spark"]

BENCHMARKS: tuple[BenchmarkName, ...] = get_args(BenchmarkName)
"""In the order in which they run."""

Result: TypeAlias = FilterResult | DoorResult | ThreadsResult | ConditionsResult | SparkResult


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
        sizes: Numbers of queries of `filter`, instead of those of the set.
        rounds: Rounds, instead of those of the set.
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
    definition: FilterDefinition | DoorDefinition | ThreadsDefinition | SparkDefinition
    results: Iterable[Result]
    match name:
        case "filter":
            definition = linear
            changed = _changed(linear, plan)
            results = run_filter(definition, changed.sets[chosen], source, tell)
        case "door":
            definition = read_definition(directory, name, DoorDefinition)
            results = run_door(definition, definition.sets[chosen], source, tell)
        case "threads":
            definition = read_definition(directory, name, ThreadsDefinition)
            results = run_threads(definition, definition.sets[chosen], linear, source, tell)
        case "conditions":
            definition = read_definition(directory, name, ConditionsDefinition)
            results = run_conditions(definition, chosen, source, tell)
        case "spark":
            definition = read_definition(directory, name, SparkDefinition)
            results = run_spark(definition, definition.sets[chosen], linear, source, tell)
    return Outcome(name, definition.title, definition.bound.strip()), definition.aims, results


def _changed(definition: FilterDefinition, plan: Plan) -> FilterDefinition:
    """The definition with what the caller wants otherwise."""
    chosen = definition.sets[plan.set_name]
    update: dict[str, object] = {}
    if plan.sizes is not None:
        update["queries"] = plan.sizes
    if plan.rounds is not None:
        update["rounds"] = plan.rounds
    sets = {**definition.sets, plan.set_name: chosen.model_copy(update=update)}
    return definition.model_copy(update={"sets": sets})


def has_failed(outcomes: Iterable[Outcome]) -> bool:
    """Whether some benchmark gave a wrong answer."""
    return any(outcome.failure is not None for outcome in outcomes)
