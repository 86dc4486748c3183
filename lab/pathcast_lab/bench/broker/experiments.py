"""The experiments: MQPT of algorithms and kernel, costs of operators, operators of plans.

At each place of the axis all algorithms with all optimisations give the same groups for the same
messages and queries before a clock runs, and the kernel the same results as the reference engine on
a sample.

It keeps nothing; values come out as soon as they are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_lab.bench.broker.definition import (
    BrokerAlgorithm,
    BrokerFigure,
    BrokerParameters,
    BrokerSet,
    OptimisationName,
)
from pathcast_lab.bench.broker.inputs import BrokerInputs
from pathcast_lab.bench.broker.kernel_subject import measure_kernel
from pathcast_lab.bench.broker.reference_subject import BrokerSubject, Groups
from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.figures.reference_subject import processor_ns
from pathcast_lab.bench.figures.sweep import YARDSTICK_PASSES, SweepExperiment
from pathcast_lab.bench.timing import Spread, undisturbed, yardstick
from pathcast_lab.workload import FlwrQuery
from pathcast_papers import parse
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths


@dataclass(kw_only=True)
class BrokerExperiment(SweepExperiment):
    """A figure that is being measured.

    Attributes:
        figure: Its definition.
        chosen: Its sizes.
        check_queries: Queries whose results of the kernel are compared with the reference's.
        check_messages: Messages on which they are.
        inputs: Queries and messages.
    """

    figure: BrokerFigure
    chosen: BrokerSet
    check_queries: int
    check_messages: int
    inputs: BrokerInputs

    def queries(self, parameters: BrokerParameters, most: int) -> list[FlwrQuery] | None:
        """Queries; None, with a note, if the DTD does not give so many."""
        try:
            return self.inputs.queries(self.figure.workload, parameters, most)
        except ConfigError as error:
            self.note(f"{self.figure.caption}, Q={parameters.queries:,}: left out, {error}")
            return None

    def parameters(self, x: int, queries: int | None) -> BrokerParameters:
        """Of a place on the axis."""
        base = self.figure.base
        if queries is not None:
            base = base.changed("queries", queries)
        return base.changed(self.figure.x, x)

    def elements(self) -> SchemaPaths:
        """What the DTD says."""
        workload = self.figure.workload
        return SchemaPaths(self.inputs.graph(workload), root=workload)


def run_experiment(experiment: BrokerExperiment) -> Iterator[list[Value]]:
    """The points of a figure or table.

    Raises:
        WrongCountError: Two that are compared answer differently.
    """
    figure, chosen = experiment.figure, experiment.chosen
    live = [(one, how) for how in figure.optimisations for one in figure.algorithms]
    most = max((*chosen.reference, *chosen.kernel), default=1) if figure.x == "queries" else 1
    for x in chosen.reference:
        parameters = experiment.parameters(x, chosen.reference_queries)
        queries = experiment.queries(parameters, most)
        if queries is None or not live:
            continue
        experiment.say(f"{figure.caption}: {figure.x}={x:,}, Q={len(queries):,}")
        point = ReferencePoint(experiment, x, parameters, queries)
        match figure.kind:
            case "plans":
                yield point.plans(live)
            case "operators":
                yield point.operators(live)
            case "mqpt":
                values, slow = point.times(live)
                yield values
                for one, how in slow:
                    live.remove((one, how))
                    experiment.note(
                        f"{figure.caption}: {one.value} {how} ends at {figure.x}={x:,}, where a "
                        f"pass took more than {experiment.seconds_max:g} s"
                    )
    yield from _kernel(experiment, most)


class ReferencePoint:
    """All reference algorithms of a figure at one place.

    Args:
        experiment: The figure.
        x: The place.
        parameters: Of queries and messages.
        queries: The queries.
    """

    def __init__(
        self,
        experiment: BrokerExperiment,
        x: int,
        parameters: BrokerParameters,
        queries: Sequence[FlwrQuery],
    ) -> None:
        self._experiment = experiment
        self._x = x
        self._queries = queries
        workload, count = experiment.figure.workload, experiment.chosen.messages
        self._messages = experiment.inputs.messages(workload, count, parameters.values_max)
        self._trees: list[MessageTree] = [parse(one, Limits()) for one in self._messages]

    def plans(self, chosen: Sequence[tuple[BrokerAlgorithm, OptimisationName]]) -> list[Value]:
        """How many operators of each kind the plans have."""
        values: list[Value] = []
        for subject in self._subjects(chosen):
            statistics = subject.statistics
            place = self._place(subject)
            values.append(place.value("plans", "1", statistics.plans))
            values.append(place.value("paths", "1", statistics.paths))
            for kind, count in statistics.operators.items():
                values.append(place.value(kind.value, "1", count))
        return values

    def operators(self, chosen: Sequence[tuple[BrokerAlgorithm, OptimisationName]]) -> list[Value]:
        """What each kind of operator costs.

        Raises:
            WrongCountError: Two algorithms answer differently.
        """
        values: list[Value] = []
        expected: list[Groups] | None = None
        each = 1e6 / len(self._trees)
        for subject in self._subjects(chosen):
            expected = self._checked(subject, expected)
            with undisturbed():
                passes = [
                    subject.profile(self._trees) for _ in range(self._experiment.chosen.rounds)
                ]
            place = self._place(subject)
            for measure in passes[0]:
                costs = [one.get(measure, 0.0) * each for one in passes]
                values.append(place.value(measure, "us", Spread.of(costs)))
            totals = [sum(one.values()) * each for one in passes]
            values.append(place.value("total", "us", Spread.of(totals)))
            values += self._counted(place, expected, subject)
        self._say_checked(chosen, expected or [])
        return values

    def times(
        self, chosen: Sequence[tuple[BrokerAlgorithm, OptimisationName]]
    ) -> tuple[list[Value], list[tuple[BrokerAlgorithm, OptimisationName]]]:
        """MQPT.

        Returns:
            The values, and those that are too slow to go on.

        Raises:
            WrongCountError: Two algorithms answer differently.
        """
        values: list[Value] = []
        slow: list[tuple[BrokerAlgorithm, OptimisationName]] = []
        expected: list[Groups] | None = None
        limit = self._experiment.seconds_max
        parse_messages = yardstick(self._messages)
        parse_messages()

        def parse_often() -> None:
            for _ in range(YARDSTICK_PASSES):
                parse_messages()

        # One after the other, "each algorithm was run individually" (6.1): plans of several at once
        # would only fill the memory.
        for subject in self._subjects(chosen):
            expected = self._checked(subject, expected)
            passes: list[tuple[int, float]] = []
            with undisturbed():
                spent = 0
                for _ in range(self._experiment.chosen.rounds):
                    parsing = processor_ns(parse_often) / YARDSTICK_PASSES
                    took = subject.run(self._trees)
                    passes.append((took, parsing))
                    spent += took
                    if spent > limit * 1e9:
                        break
            if passes[0][0] > limit * 1e9:
                slow.append((subject.algorithm, subject.optimisation))
            each = 1e-3 / len(self._trees)
            place = self._place(subject)
            values += [
                place.value("mqpt", "us", Spread.of([one * each for one, _ in passes])),
                place.value("by lxml", "x lxml", Spread.of([one / by for one, by in passes])),
                place.value("lxml", "us", Spread.of([by * each for _, by in passes])),
                *self._counted(place, expected, subject),
            ]
        self._say_checked(chosen, expected or [])
        return values, slow

    def _subjects(
        self, chosen: Sequence[tuple[BrokerAlgorithm, OptimisationName]]
    ) -> Iterator[BrokerSubject]:
        elements = self._experiment.elements()
        for algorithm, optimisation in chosen:
            yield BrokerSubject(algorithm, optimisation, self._queries, elements)

    def _place(self, subject: BrokerSubject) -> Place:
        return Place(
            self._experiment.figure.name,
            subject.optimisation,
            subject.algorithm.value,
            self._x,
            len(self._queries),
        )

    def _case(self) -> str:
        return f"{self._experiment.figure.caption} x={self._x:,}"

    def _checked(self, subject: BrokerSubject, expected: list[Groups] | None) -> list[Groups]:
        """Compares all groups with those of the first algorithm."""
        found = subject.answers(self._trees)
        if expected is None:
            return found
        for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
            if mine != theirs:
                name = f"{subject.algorithm.value} {subject.optimisation}"
                place = f"{self._case()}, {name}, message {number}"
                raise wrong_count(place, len(mine), len(theirs), "the first algorithm, differs")
        return expected

    def _say_checked(
        self,
        chosen: Sequence[tuple[BrokerAlgorithm, OptimisationName]],
        expected: Sequence[Groups],
    ) -> None:
        names = ", ".join(f"{one.value} {how}" for one, how in chosen)
        self._experiment.checks.append(
            f"{self._case()}, Q={len(self._queries):,}: {names} gave the same {_count(expected):,} "
            f"groups in {len(self._trees)} messages"
        )

    def _counted(
        self, place: Place, expected: Sequence[Groups], subject: BrokerSubject
    ) -> Iterator[Value]:
        count = len(self._trees)
        yield place.value("queries satisfied", "1/message", sum(map(len, expected)) / count)
        yield place.value("groups", "1/message", _count(expected) / count)
        yield place.value("plans", "1", subject.statistics.plans)


def _count(answers: Sequence[Groups]) -> int:
    return sum(len(groups) for answer in answers for groups in answer.values())


def _kernel(experiment: BrokerExperiment, most: int) -> Iterator[list[Value]]:
    figure, chosen = experiment.figure, experiment.chosen
    families: tuple[int | None, ...] = chosen.kernel_queries if figure.x != "queries" else (None,)
    for family in families:
        for x in chosen.kernel:
            parameters = experiment.parameters(x, family)
            queries = experiment.queries(parameters, most)
            if queries is None:
                continue
            case = f"{figure.caption} kernel {figure.x}={x:,} Q={len(queries):,}"
            experiment.say(case)
            messages = experiment.inputs.messages(
                figure.workload, chosen.kernel_messages, parameters.values_max
            )
            values, checked = measure_kernel(
                Place(figure.name, "", "kernel", x, len(queries)),
                case,
                queries,
                messages,
                check_queries=experiment.check_queries,
                check_messages=experiment.check_messages,
                rounds=chosen.kernel_rounds,
                seconds_max=experiment.seconds_max,
            )
            experiment.checks.append(f"{case}: {checked}")
            yield values
