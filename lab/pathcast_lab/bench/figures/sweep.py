"""MQPT against a parameter: figures 11 to 18, 22 to 24, 26 and 27.

At each place of the axis all reference algorithms of the figure, and the kernel, answer the same
messages for the same queries, list by list, before a clock runs. The kernel is then measured at
sizes of its own, where the plain NFA and the reference engine answer a sample.

It keeps nothing; values come out as soon as they are there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.figures.defined import FigureSet
from pathcast_lab.bench.figures.definition import (
    FigureDefinition,
    FiguresDefinition,
    Parameters,
    Variant,
)
from pathcast_lab.bench.figures.inputs import Inputs
from pathcast_lab.bench.figures.kernel_subject import KernelRun, kernel_answers, measure_kernel
from pathcast_lab.bench.figures.point import FIRST_PASS, KERNEL, Place, Value
from pathcast_lab.bench.figures.reference_subject import (
    NormalForms,
    Pass,
    ReferenceSubject,
    plans_of,
    processor_ns,
)
from pathcast_lab.bench.rounds import Round
from pathcast_lab.bench.timing import Spread, undisturbed, yardstick
from pathcast_papers import parse
from pathcast_papers.filtering.algorithm import Algorithm

YARDSTICK_PASSES = 5
"""Passes of the yardstick for one of a reference algorithm, which is much slower."""


@dataclass(kw_only=True)
class SweepExperiment:
    """A figure of reference algorithms and the kernel that is being measured.

    Attributes:
        seconds_max: Of a point, roughly.
        say: Takes a line on what is being done.
        checks: What was compared before times were taken, a line each.
        notes: What was left out, and why.
    """

    seconds_max: float
    say: Callable[[str], None]
    checks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Says what is left out, and keeps it for the record."""
        self.notes.append(text)
        self.say(text)


@dataclass(kw_only=True)
class Experiment(SweepExperiment):
    """A figure on filtering that is being measured.

    Attributes:
        figure: Its definition.
        chosen: Its sizes.
        definition: What holds for all figures.
        inputs: Queries and messages.
    """

    figure: FigureDefinition
    chosen: FigureSet
    definition: FiguresDefinition
    inputs: Inputs

    def texts(self, parameters: Parameters, most: int) -> list[str] | None:
        """Queries; None, with a note, if the DTD does not give so many."""
        try:
            return self.inputs.queries(self.figure.workload, parameters, most)
        except ConfigError as error:
            self.note(f"{self.figure.caption}, Q={parameters.queries:,}: left out, {error}")
            return None

    def most(self, fixed: Sequence[int]) -> int:
        """The most queries that will be asked for with parameters that differ in Q only."""
        if self.figure.x == "queries":
            return int(max((*self.chosen.reference, *self.chosen.kernel), default=1))
        return max(fixed, default=1)


def run_sweep(experiment: Experiment) -> Iterator[list[Value]]:
    """The points of a figure, one after the other.

    Raises:
        WrongCountError: Two that are compared answer differently.
    """
    for variant in experiment.figure.variants:
        yield from _references(experiment, variant)
        yield from _kernel(experiment, variant)


def _references(experiment: Experiment, variant: Variant) -> Iterator[list[Value]]:
    figure, chosen = experiment.figure, experiment.chosen
    live = list(figure.algorithms)
    known: NormalForms = {}
    for x in chosen.reference:
        queries = chosen.reference_queries if figure.x != "queries" else int(x)
        base = variant.of(figure.base).model_copy(update={"queries": queries})
        parameters = base.changed(figure.x, x)
        texts = experiment.texts(parameters, experiment.most([parameters.queries]))
        if texts is None or not live:
            continue
        label = f" {variant.label}" if variant.label else ""
        experiment.say(f"{figure.caption}{label}: {figure.x}={x:g}, Q={len(texts):,}")
        if figure.x != "queries":
            known.clear()
        point = ReferencePoint(experiment, variant, x, parameters, texts, known)
        values, slow = point.run(live)
        yield values
        for algorithm in slow:
            live.remove(algorithm)
            experiment.note(
                f"{figure.caption}{label}: {algorithm.value} ends at {figure.x}={x:g}, where a "
                f"pass took more than {experiment.seconds_max:g} s"
            )


class ReferencePoint:
    """All reference algorithms of a figure at one place.

    Args:
        experiment: The figure.
        variant: The curve family.
        x: The place.
        parameters: Of queries and messages.
        texts: The queries.
        known: Normal forms that were made before; is added to.
    """

    def __init__(
        self,
        experiment: Experiment,
        variant: Variant,
        x: float,
        parameters: Parameters,
        texts: Sequence[str],
        known: NormalForms,
    ) -> None:
        self._experiment = experiment
        self._variant = variant
        self._x = x
        self._texts = texts
        workload, count = experiment.figure.workload, experiment.chosen.messages
        self._messages = experiment.inputs.messages(workload, parameters, count)
        self._trees = [parse(message, Limits()) for message in self._messages]
        self._plans = plans_of(texts, known)

    def run(self, algorithms: Sequence[Algorithm]) -> tuple[list[Value], list[Algorithm]]:
        """Checks, then measures.

        Returns:
            The values, and the algorithms that are too slow to go on.

        Raises:
            WrongCountError: Two of them, or one and the kernel, answer differently.
        """
        subjects = [ReferenceSubject(algorithm, self._plans) for algorithm in algorithms]
        took = self._checked(subjects)
        limit = self._experiment.seconds_max
        slowest = max(took.values(), default=0.0)
        rounds = max(1, min(self._experiment.chosen.rounds, int(limit / max(slowest, 1e-9))))
        passes: dict[Algorithm, list[tuple[Pass, float]]] = {one: [] for one in algorithms}
        parse_messages = yardstick(self._messages)
        parse_messages()

        def parse_often() -> None:
            for _ in range(YARDSTICK_PASSES):
                parse_messages()

        with undisturbed():
            for number in range(rounds):
                # The order changes, so that none is always the first after a pause.
                for subject in subjects if number % 2 else reversed(subjects):
                    parsing = processor_ns(parse_often) / YARDSTICK_PASSES
                    passes[subject.algorithm].append((subject.run(self._trees), parsing))
        values = [value for one in subjects for value in self._values(one, passes[one.algorithm])]
        return values, [one for one in algorithms if took[one] > limit]

    def _checked(self, subjects: Sequence[ReferenceSubject]) -> dict[Algorithm, float]:
        """Compares all answers, and gives the seconds of each first pass."""
        family = f" {self._variant.label}" if self._variant.label else ""
        case = f"{self._experiment.figure.caption}{family} x={self._x:g}"
        expected = kernel_answers(self._texts, self._messages)
        took: dict[Algorithm, float] = {}
        for subject in subjects:
            started = time.thread_time()
            found = subject.answers(self._trees)
            took[subject.algorithm] = time.thread_time() - started
            if subject.algorithm is Algorithm.YFILTER_SORTED:
                # Statistics are counted on the first messages, then on a sample: the paper had them
                # before its run.
                subject.run(self._trees)
            for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
                if mine != theirs:
                    place = f"{case}, {subject.algorithm.value}, message {number}"
                    raise wrong_count(place, len(mine), len(theirs), "the kernel")
        self._matches = sum(map(len, expected))
        names = ", ".join(subject.algorithm.value for subject in subjects)
        self._experiment.checks.append(
            f"{case}, Q={len(self._texts):,}: {names} and the kernel gave the same "
            f"{self._matches:,} matches in {len(self._messages)} messages"
        )
        return took

    def _values(
        self, subject: ReferenceSubject, passes: Sequence[tuple[Pass, float]]
    ) -> Iterator[Value]:
        count = len(self._messages)
        place = Place(
            self._experiment.figure.name,
            self._variant.label,
            subject.algorithm.value,
            self._x,
            len(self._texts),
        )
        each = 1e-3 / count

        def spread(of: Callable[[Pass, float], float]) -> Spread:
            return Spread.of([of(one, parsing) for one, parsing in passes])

        yield place.value("mqpt", "us", spread(lambda one, _: one.total_ns * each))
        yield place.value("by lxml", "x lxml", spread(lambda one, by: one.total_ns / by))
        yield place.value("lxml", "us", spread(lambda _, parsing: parsing * each))
        yield place.value("navigation", "us", spread(lambda one, _: one.navigation_ns * each))
        yield place.value("collection", "us", spread(lambda one, _: one.collection_ns * each))
        yield place.value("matches", "1/message", self._matches / count)
        yield place.value("distinct queries", "1", len(self._plans))
        yield place.value("machine size", "1", subject.filter.size)
        yield place.value("transitions", "1/message", subject.transitions / count)
        if "[" in "".join(self._texts[:10]):
            written = sum(text.count("[") for text in self._texts) / len(self._texts)
            yield place.value("predicates a query", "1", written)
        if subject.predicates_tried:
            tried = subject.predicates_tried / count
            yield place.value("predicates tried", "1/message", tried)


def _kernel(experiment: Experiment, variant: Variant) -> Iterator[list[Value]]:
    figure, chosen = experiment.figure, experiment.chosen
    families: tuple[int | None, ...] = chosen.kernel_queries if figure.x != "queries" else (None,)
    for family in families:
        for x in chosen.kernel:
            queries = int(x) if family is None else family
            base = variant.of(figure.base).model_copy(update={"queries": queries})
            parameters = base.changed(figure.x, x)
            texts = experiment.texts(parameters, experiment.most([queries]))
            if texts is None:
                continue
            label = f"{figure.caption} {variant.label}".rstrip()
            case = f"{label} kernel {figure.x}={x:g} Q={queries:,}"
            experiment.say(case)
            messages = experiment.inputs.messages(
                figure.workload, parameters, chosen.kernel_messages
            )
            run = measure_kernel(
                case,
                texts,
                messages,
                experiment.definition,
                rounds=chosen.kernel_rounds,
                seconds_max=experiment.seconds_max,
                say=experiment.note,
            )
            experiment.checks.append(f"{case}: {run.checked}")
            yield list(kernel_values(figure.name, variant.label, x, run))
            if run.first.total_ns > experiment.seconds_max * 1e9:
                experiment.note(
                    f"{label}: the kernel with Q={queries:,} ends at {figure.x}={x:g}, where a "
                    f"pass took more than {experiment.seconds_max:g} s"
                )
                break


def kernel_values(figure: str, variant: str, x: float, run: KernelRun) -> Iterator[Value]:
    """The values of a point of the kernel: warm, and in the first pass."""
    for series, rounds in ((KERNEL, run.warm), (FIRST_PASS, (run.first,))):
        place = Place(figure, variant, series, x, run.queries)

        def spread(of: Callable[[Round], float], rounds: Sequence[Round] = rounds) -> Spread:
            return Spread.of([of(one) for one in rounds])

        yield place.value(
            "mqpt", "us", spread(lambda one: one.microseconds("total") - _parsing(one))
        )
        yield place.value("by lxml", "x lxml", spread(_by_lxml))
        yield place.value("lxml", "us", spread(lambda one: one.microseconds("yardstick")))
        yield place.value("parsing", "us", spread(_parsing))
        yield place.value("navigation", "us", spread(lambda one: one.microseconds("matching")))
        yield place.value("collection", "us", spread(lambda one: one.microseconds("collecting")))
        yield place.value("matches", "1/message", run.matches / run.first.messages)
    place = Place(figure, variant, KERNEL, x, run.queries)
    yield place.value("build", "s", run.build_ns / 1e9)
    yield place.value("snapshot", "B", run.snapshot_bytes)


def _parsing(one: Round) -> float:
    return one.microseconds("parsing")


def _by_lxml(one: Round) -> float:
    """MQPT as a multiple of the yardstick."""
    return one.ratio_of("total") - one.ratio_of("parsing")
