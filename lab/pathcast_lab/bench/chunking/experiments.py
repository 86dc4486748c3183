"""What is measured for each figure of the paper on chunking.

Every experiment gives values, a point at a time. Times are of the filtering phase: the message is
parsed, and its queries are evaluated; queries were compiled before, in the prepare phase.

Source: Lehner and Irmert, BTW 2003, section 5.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from pathcast.chunking import StreamingChunker, generate_chunking_scheme
from pathcast.chunking.names import path_text
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_lab.bench.chunking.definition import ChunkingFigure, ChunkingSet
from pathcast_lab.bench.chunking.inputs import Prepared, element_sizes
from pathcast_lab.bench.chunking.memory import measured
from pathcast_lab.bench.chunking.optimal import Goal, cost, optimal_scheme
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.timing import Spread, undisturbed
from pathcast_lab.bench.wrong_count import WrongCountError

WHOLE: Final = "whole"
"""The measure of evaluation on the whole message, queries as they were registered."""

CLEANED: Final = "whole, cleaned"
"""The measure of evaluation on the whole message, of the alternatives that queries were cleaned to:
what is gained without cutting."""

Counts: TypeAlias = dict[str, int]
"""Query -> how many nodes it selects, or whether it holds."""


_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ChunkingExperiment:
    """A figure, one of its sets, and where to report.

    Attributes:
        figure: Its definition.
        chosen: Sizes.
        seed: Of queries and messages.
        say: Takes one line on what is being done.
        checks: Takes what was compared.
    """

    figure: ChunkingFigure
    chosen: ChunkingSet
    seed: int
    say: Callable[[str], None]
    checks: list[str]

    def prepared(self, queries: int, chunks: int) -> Prepared:
        """The scenario at a point."""
        return Prepared.of(self.figure.scenario, queries=queries, chunks=chunks, seed=self.seed)


def run_experiment(experiment: ChunkingExperiment) -> Iterator[list[Value]]:
    """The values of a figure, a point at a time.

    Raises:
        WrongCountError: Chunked and whole evaluation have not selected the same.
    """
    measured = {
        "distribution": _distribution,
        "times": _times,
        "sizes": _sizes,
        "schemes": _schemes,
        "memory": _memory,
    }[experiment.figure.kind]
    for queries in experiment.chosen.queries:
        for chunks in experiment.chosen.chunks:
            experiment.say(f"{experiment.figure.caption}: {queries:,} queries, {chunks} chunks")
            yield list(measured(experiment, queries, chunks))


def _place(experiment: ChunkingExperiment, series: str, chunks: int, queries: int) -> Place:
    return Place(experiment.figure.name, "", series, chunks, queries)


def _distribution(experiment: ChunkingExperiment, queries: int, chunks: int) -> Iterator[Value]:
    """Share of the alternatives that each prefix has, and of the potpourri (Figure 10)."""
    prepared = experiment.prepared(queries, chunks)
    parts = {path_text(chunk.prefix): chunk.queries for chunk in prepared.scheme.chunks}
    parts["potpourri"] = prepared.scheme.potpourri
    counts = {name: sum(map(len, part.queries.values())) for name, part in parts.items()}
    for name, count in counts.items():
        place = _place(experiment, name, chunks, queries)
        yield place.value("share", "%", 100 * count / sum(counts.values()))


def _sizes(experiment: ChunkingExperiment, queries: int, chunks: int) -> Iterator[Value]:
    """Elements and bytes of every chunk, and its share of queries (Tables A1 and A3)."""
    prepared = experiment.prepared(queries, chunks)
    yield from _distribution(experiment, queries, chunks)
    for chunk, content, elements in zip(
        prepared.scheme.chunks, prepared.cut.chunks, prepared.cut.elements, strict=True
    ):
        place = _place(experiment, path_text(chunk.prefix), chunks, queries)
        yield place.value("elements", "1", elements)
        yield place.value("size", "KB", len(content) / 1e3)
    place = _place(experiment, "potpourri", chunks, queries)
    yield place.value("size", "KB", len(prepared.message) / 1e3 * bool(prepared.scheme.potpourri))


def _schemes(experiment: ChunkingExperiment, queries: int, chunks: int) -> Iterator[Value]:
    """What the greedy and the optimal scheme cost, as shares of the message uncut."""
    prepared = experiment.prepared(queries, chunks)
    tree, sizes = prepared.chunking.tree, element_sizes(prepared.message)
    uncut = cost(tree, sizes, ()).total
    schemes = {"greedy": generate_chunking_scheme(tree, chunks)}
    for goal in Goal:
        schemes[f"optimal, {goal.value}"] = optimal_scheme(tree, sizes, chunks, goal)
    for name, prefixes in schemes.items():
        found = cost(tree, sizes, prefixes)
        place = _place(experiment, name, chunks, queries)
        for goal in Goal:
            yield place.value(goal.value, "%", 100 * found.by(goal) / uncut)


def _memory(experiment: ChunkingExperiment, queries: int, chunks: int) -> Iterator[Value]:
    """The memory of processes that have a piece of a large message each."""
    prepared = experiment.prepared(queries, chunks)
    with tempfile.TemporaryDirectory(prefix="pathcast-memory-") as folder:
        for held in measured(prepared, experiment.chosen.copies, Path(folder)):
            place = _place(experiment, held.name, chunks, queries)
            yield place.value("size", "MB", held.bytes / 1e6)
            yield place.value("before", "MiB", held.base)
            yield place.value("peak", "MiB", held.peak)
    experiment.checks.append(
        f"{experiment.figure.caption}: {queries:,} queries have the same answer in {chunks} chunks"
    )


def _times(experiment: ChunkingExperiment, queries: int, chunks: int) -> Iterator[Value]:
    """Chunking, every chunk, the potpourri, and the whole message (Figures 11 and 12)."""
    prepared = experiment.prepared(queries, chunks)
    chunker = StreamingChunker(prepared.scheme)
    for evaluator in experiment.figure.evaluators:
        compiled = _lxml if evaluator == "lxml" else _kernel
        pieces = {WHOLE: (compiled(_by_text(prepared.queries)), prepared.message)}
        cleaned: dict[str, tuple[str, ...]] = {}
        for name, ids, content in prepared.pieces():
            pieces[name] = (compiled(ids), content)
            cleaned |= ids
        parts = [name for name in pieces if name != WHOLE]
        pieces[CLEANED] = (compiled(cleaned), prepared.message)
        times: dict[str, list[float]] = {}
        # What the kernel builds at its first sight of a message is not of the filtering phase.
        for evaluate, content in pieces.values() if evaluator == "kernel" else ():
            evaluate(content)
        with undisturbed():
            for _ in range(experiment.chosen.rounds):
                _timed(times, "chunking", partial(chunker.cut, [prepared.message]))
                counts = {
                    name: _timed(times, name, partial(evaluate, content))
                    for name, (evaluate, content) in pieces.items()
                }
                _check(experiment, prepared, evaluator, counts, parts)
                _check(experiment, prepared, evaluator, counts, [CLEANED])
        place = _place(experiment, evaluator, chunks, queries)
        # The least of the rounds: what disturbs a shared machine only adds.
        spreads = {name: Spread(min(each), min(each), max(each)) for name, each in times.items()}
        for measure, spread in {**spreads, **_derived(spreads, parts)}.items():
            yield place.value(measure, "ms", spread.scaled(1e3))
        yield place.value("message", "KB", len(prepared.message) / 1e3)
        largest = max(len(pieces[name][1]) for name in parts)
        yield place.value("largest piece", "KB", largest / 1e3)


def _by_text(queries: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    ids: dict[str, tuple[str, ...]] = {}
    for query_id, text in queries.items():
        ids[text] = (*ids.get(text, ()), query_id)
    return ids


def _timed(times: dict[str, list[float]], name: str, action: Callable[[], _Result]) -> _Result:
    started = time.perf_counter()
    result = action()
    times.setdefault(name, []).append(time.perf_counter() - started)
    return result


def _derived(times: Mapping[str, Spread], parts: list[str]) -> dict[str, Spread]:
    """All one after another, the first delivery, and the last one side by side."""
    least = [times[part].median for part in parts]
    cut = times["chunking"].median
    sums = {
        "sum": cut + sum(least),
        "first": cut + min(least),
        "last in parallel": cut + max(least),
    }
    return {name: Spread(value, value, value) for name, value in sums.items()}


def _check(
    experiment: ChunkingExperiment,
    prepared: Prepared,
    evaluator: str,
    counts: Mapping[str, Counts],
    parts: list[str],
) -> None:
    """Chunks and the whole message must have given the same for every query."""
    expected = counts[WHOLE]
    found = dict.fromkeys(expected, 0)
    for name in parts:
        for query_id, count in counts[name].items():
            found[query_id] += count
    if evaluator == "kernel":
        found = {query_id: min(count, 1) for query_id, count in found.items()}
    if found != expected:
        differing = next(key for key, count in expected.items() if found[key] != count)
        raise WrongCountError(
            case=f"{experiment.figure.caption}, {prepared.queries[differing]}",
            found=found[differing],
            expected=expected[differing],
            oracle=f"{evaluator} on the whole message",
        )
    check = (
        f"{experiment.figure.caption}, {evaluator}: {len(expected):,} queries select the same "
        f"{sum(expected.values()):,} in {len(prepared.scheme.chunks)} chunks"
    )
    if check not in experiment.checks:
        experiment.checks.append(check)


def _lxml(ids: Mapping[str, tuple[str, ...]]) -> Callable[[bytes], Counts]:
    """One XPath after another; every query is evaluated, equal ones as well.

    Nodes are counted, not handed over: the paper, too, leaves results out.
    """
    from lxml import etree

    compiled: list[tuple[str, Any]] = [
        (query_id, etree.XPath(f"count({text})")) for text, each in ids.items() for query_id in each
    ]

    def evaluate(message: bytes) -> Counts:
        tree = etree.fromstring(message).getroottree()
        counts: Counts = {}
        for query_id, path in compiled:
            counts[query_id] = counts.get(query_id, 0) + int(path(tree))
        return counts

    return evaluate


def _kernel(ids: Mapping[str, tuple[str, ...]]) -> Callable[[bytes], Counts]:
    """All queries together."""
    index = Registry()
    index.add(Query(text, text) for text in ids)
    matcher = index.freeze()

    def evaluate(message: bytes) -> Counts:
        result = matcher.match([message])[0]
        if result.error is not None:
            raise result.error
        held = set(result.query_ids)
        return {query_id: int(text in held) for text, each in ids.items() for query_id in each}

    return evaluate
