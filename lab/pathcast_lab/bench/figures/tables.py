"""The tables of the paper, 3 to 6.

Distinct queries among random ones (3), what documents and queries are like (4), insertion (5), and
the profile of nested path processing (6).

Example:
    >>> steps_in("/a//b/*")
    3

Source: 003, 4.3.1, 4.4, 4.6 and 6.4.1.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import fmean
from typing import Final

from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.registry import Registry
from pathcast_lab.bench.checking import THREADS, wrong_count
from pathcast_lab.bench.figures.kernel_subject import kernel_answers, measure_kernel
from pathcast_lab.bench.figures.point import KERNEL, Place, Value
from pathcast_lab.bench.figures.reference_subject import plans_of, processor_ns, visits
from pathcast_lab.bench.figures.sweep import Experiment, kernel_values
from pathcast_lab.bench.inputs import standing_queries
from pathcast_lab.bench.timing import Spread, undisturbed, yardstick
from pathcast_papers import parse
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.yfilter import YFilter
from pathcast_papers.language import normalise

INSERTED: Final = 1_000
"""Queries whose insertion is timed (Table 5)."""

YFILTER: Final = "yfilter"


def run_distinct(experiment: Experiment) -> Iterator[list[Value]]:
    """Table 3: distinct ones among random queries."""
    figure, chosen = experiment.figure, experiment.chosen
    texts = experiment.texts(figure.base.model_copy(update={"queries": int(max(chosen.kernel))}), 1)
    for x in chosen.kernel:
        if texts is not None:
            distinct = len(set(texts[: int(x)]))
            place = Place(figure.name, "", "distinct queries", x, int(x))
            yield [place.value("distinct queries", "1", distinct)]


def run_characteristics(experiment: Experiment) -> Iterator[list[Value]]:
    """Table 4: depth of documents and queries, length of documents."""
    figure, chosen = experiment.figure, experiment.chosen
    for x in chosen.reference:
        base = figure.base.model_copy(update={"queries": chosen.reference_queries or 1})
        parameters = base.changed(figure.x, x)
        texts = experiment.texts(parameters, parameters.queries)
        messages = experiment.inputs.messages(figure.workload, parameters, chosen.messages)
        trees = [parse(message, Limits()) for message in messages]
        values = {
            "document depth": ("levels", fmean(path_depth(tree) for tree in trees)),
            "document length": ("elements", fmean(len(tree) for tree in trees)),
        }
        if texts is not None:
            values["query depth"] = ("steps", fmean(map(steps_in, texts)))
        experiment.say(f"{figure.caption}: D={x:g}")
        yield [
            Place(figure.name, "", series, x, parameters.queries).value(series, unit, value)
            for series, (unit, value) in values.items()
        ]


def steps_in(text: str) -> int:
    """Location steps of a linear path."""
    return len([step for step in text.split("/") if step])


def path_depth(tree: MessageTree) -> float:
    """Average depth of the paths from the root to an element without child elements."""
    return fmean(
        tree.depth[element] + 1
        for element in range(len(tree))
        if tree.element_end[element] == element + 1
    )


def run_insertion(experiment: Experiment) -> Iterator[list[Value]]:
    """Table 5: inserting 1,000 queries where Q are.

    The reference inserts queries that are parsed already; the kernel is given their texts.
    """
    figure, chosen = experiment.figure, experiment.chosen
    most = experiment.most([]) + INSERTED * chosen.kernel_rounds
    texts = experiment.texts(figure.base.model_copy(update={"queries": most}), most)
    if texts is None:
        return
    for x in chosen.reference:
        experiment.say(f"{figure.caption}: yfilter, Q={x:g}")
        yield [_reference_insertion(experiment, texts[: int(x) + INSERTED], x)]
    for x in chosen.kernel:
        experiment.say(f"{figure.caption}: kernel, Q={x:g}")
        index = Registry(threads=THREADS)
        index.add(standing_queries(texts[: int(x)]))
        times = []
        for number in range(chosen.kernel_rounds):
            first = int(x) + number * INSERTED
            more = standing_queries(texts[first : first + INSERTED], first)
            with undisturbed():
                started = time.perf_counter_ns()
                index.add(more)
                times.append((time.perf_counter_ns() - started) / 1e6)
        place = Place(figure.name, "", KERNEL, x, int(x))
        yield [place.value("insertion", "ms", Spread.of(times))]
        if len(index) != int(x) + INSERTED * chosen.kernel_rounds:
            raise wrong_count(figure.caption, len(index), int(x), "what was registered")


def _reference_insertion(experiment: Experiment, texts: list[str], x: float) -> Value:
    normal = {text: normalise(text) for text in set(texts)}
    times = []
    for _ in range(experiment.chosen.rounds):
        # Equal queries are plans of their own: the paper inserts each by a walk of its own.
        plans = [QueryPlan(normal[text]) for text in texts]
        yfilter = YFilter()
        for plan in plans[: int(x)]:
            yfilter.insert(plan)
        with undisturbed():
            started = time.thread_time_ns()
            for plan in plans[int(x) :]:
                yfilter.insert(plan)
            times.append((time.thread_time_ns() - started) / 1e6)
    place = Place(experiment.figure.name, "", YFILTER, x, int(x))
    return place.value("insertion", "ms", Spread.of(times))


def run_profile(experiment: Experiment) -> Iterator[list[Value]]:
    """Table 6: engine and NP-Filters apart, and what explains their cost.

    Raises:
        WrongCountError: YFilter and the kernel answer differently.
    """
    figure, chosen = experiment.figure, experiment.chosen
    for x in chosen.reference:
        base = figure.base.model_copy(update={"queries": chosen.reference_queries or 1})
        parameters = base.changed(figure.x, x)
        texts = experiment.texts(parameters, parameters.queries)
        if texts is None:
            continue
        experiment.say(f"{figure.caption}: yfilter, {figure.x}={x:g}, Q={len(texts):,}")
        messages = experiment.inputs.messages(figure.workload, parameters, chosen.messages)
        yield _profiled(experiment, texts, messages, x)
    for queries in chosen.kernel_queries:
        for x in chosen.kernel:
            parameters = figure.base.model_copy(update={"queries": queries}).changed(figure.x, x)
            texts = experiment.texts(parameters, queries)
            if texts is None:
                continue
            case = f"{figure.caption} kernel {figure.x}={x:g} Q={queries:,}"
            experiment.say(case)
            run = measure_kernel(
                case,
                texts,
                experiment.inputs.messages(figure.workload, parameters, chosen.kernel_messages),
                experiment.definition,
                rounds=chosen.kernel_rounds,
                seconds_max=experiment.seconds_max,
                say=experiment.note,
            )
            experiment.checks.append(f"{case}: {run.checked}")
            yield list(kernel_values(figure.name, "", x, run))


def _profiled(
    experiment: Experiment, texts: list[str], messages: list[bytes], x: float
) -> list[Value]:
    trees = [parse(message, Limits()) for message in messages]
    plans = plans_of(texts)
    yfilter = YFilter()
    for plan in plans:
        yfilter.insert(plan)
    found = [sorted(n for plan in yfilter.match(tree) for n in plan.numbers) for tree in trees]
    if found != kernel_answers(texts, messages):
        case = f"{experiment.figure.caption} x={x:g}"
        raise wrong_count(case, sum(map(len, found)), -1, "the kernel, which differs")
    parse_messages = yardstick(messages)
    engine_ns, filters_ns, parsing_ns = [], [], []
    with undisturbed():
        for _ in range(experiment.chosen.rounds):
            parsing_ns.append(processor_ns(parse_messages))
            engine = filters = 0
            for tree in trees:
                started = time.thread_time_ns()
                matched = yfilter.match_paths(tree)
                between = time.thread_time_ns()
                yfilter.filter_nested_paths(matched)
                filters += time.thread_time_ns() - between
                engine += between - started
            engine_ns.append(engine)
            filters_ns.append(filters)
    place = Place(experiment.figure.name, "", YFILTER, x, len(texts))
    each = 1e-3 / len(messages)
    hits = sum(visits(yfilter, tree)[1] for tree in trees)
    return [
        place.value("engine", "us", Spread.of(engine_ns).scaled(each)),
        place.value("NP-Filter", "us", Spread.of(filters_ns).scaled(each)),
        place.value("lxml", "us", Spread.of(parsing_ns).scaled(each)),
        place.value("machine size", "1", yfilter.size),
        place.value("accepting states hit", "1/message", hits / len(messages)),
        place.value("matches", "1/message", sum(map(len, found)) / len(messages)),
    ]
