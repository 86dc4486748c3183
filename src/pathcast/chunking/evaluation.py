"""Evaluating chunks: each set of alternatives on its chunk, and the answers put together.

A query holds if one of its alternatives does, wherever that was evaluated. Tasks know nothing of
each other, so they can be done anywhere, in any order; what comes first can be delivered first.

Example:
    >>> from pathcast.chunking.filtering_scheme import Chunking
    >>> from pathcast.chunking.streaming import StreamingChunker
    >>> chunking = Chunking(1)
    >>> for query_id, text in {"q1": "/a/b[c]/d", "q2": "/a/b/d/e", "q3": "//b"}.items():
    ...     _ = chunking.register(query_id, text)
    >>> message = b"<a><b><c/><d/></b></a>"
    >>> scheme = chunking.scheme()
    >>> evaluator = ChunkEvaluator()
    >>> tasks = tasks_of(scheme, message, StreamingChunker(scheme).cut([message]))
    >>> merged(evaluator.evaluate(task) for task in tasks).query_ids
    ('q1', 'q3')

Source: Lehner and Irmert, BTW 2003, section 5 (FILTERTOOL).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pathcast.chunking.cut import Cut
from pathcast.chunking.filtering_scheme import FilteringScheme, QuerySet
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast.schema import LabelPath


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """Alternatives, and the chunk that they are evaluated on.

    Attributes:
        prefix: Of the chunk; empty for the whole message.
        queries: The alternatives.
        message: Bytes of the chunk.
    """

    prefix: LabelPath
    queries: QuerySet
    message: bytes


@dataclass(frozen=True, slots=True)
class ChunkAnswer:
    """The answer of a task.

    Attributes:
        prefix: Of its chunk.
        query_ids: Queries of which an alternative holds, sorted.
        undecided: Queries of which an alternative could not be decided, and why: a verdict of the
            engine, or the chunk was refused.
    """

    prefix: LabelPath
    query_ids: tuple[str, ...]
    undecided: Mapping[str, PathcastError] = field(default_factory=dict)


def tasks_of(scheme: FilteringScheme, message: bytes, cut: Cut) -> list[ChunkTask]:
    """The tasks of a message: its chunks, and the whole message if there is a potpourri.

    Args:
        scheme: What the message was cut by.
        message: All of it.
        cut: Its chunks; with a fault, every query is evaluated on the whole message.
    """
    if cut.fault:
        return [ChunkTask((), scheme.whole, message)]
    tasks = [
        ChunkTask(chunk.prefix, chunk.queries, content)
        for chunk, content in zip(scheme.chunks, cut.chunks, strict=True)
        if content and chunk.queries
    ]
    if scheme.potpourri:
        tasks.append(ChunkTask((), scheme.potpourri, message))
    return tasks


def merged(answers: Iterable[ChunkAnswer]) -> ChunkAnswer:
    """The answers of all tasks of a message as one."""
    found: set[str] = set()
    undecided: dict[str, PathcastError] = {}
    for answer in answers:
        found.update(answer.query_ids)
        for query_id, error in answer.undecided.items():
            undecided.setdefault(query_id, error)
    left = {query_id: undecided[query_id] for query_id in sorted(undecided.keys() - found)}
    return ChunkAnswer((), tuple(sorted(found)), left)


class ChunkEvaluator:
    """Evaluates tasks; keeps the registry of each chunk from one message to the next.

    Args:
        limits: What one chunk may cost.
    """

    def __init__(self, *, limits: Limits | None = None) -> None:
        self._limits = limits
        self._registries: dict[LabelPath, tuple[Registry, QuerySet]] = {}

    def evaluate(self, task: ChunkTask) -> ChunkAnswer:
        """Evaluates a task.

        Raises:
            QuerySyntaxError: The engine does not take an alternative.

        Cost: that of matching the chunk; where the alternatives have changed since the last task of
            this prefix, of registering and removing what has.
        """
        result = self._registry(task).match(task.message)
        ids = task.queries.queries
        if result.error is not None:
            everyone = {query_id for each in ids.values() for query_id in each}
            return ChunkAnswer(task.prefix, (), dict.fromkeys(sorted(everyone), result.error))
        held = {query_id for text in result.query_ids for query_id in ids[text]}
        undecided = {
            query_id: error for text, error in result.verdicts.items() for query_id in ids[text]
        }
        return ChunkAnswer(task.prefix, tuple(sorted(held)), undecided)

    def _registry(self, task: ChunkTask) -> Registry:
        """The registry of a chunk, with just the alternatives of a task."""
        nothing = QuerySet({}, 0)
        registry, present = self._registries.get(task.prefix) or (
            Registry(self._limits, threads=1),
            nothing,
        )
        if present is not task.queries:
            wanted = task.queries.queries
            registry.remove([text for text in present.texts if text not in wanted])
            report = registry.add(
                Query(text, text) for text in wanted if text not in present.queries
            )
            for error in report.errors.values():
                raise error
            self._registries[task.prefix] = (registry, task.queries)
        return registry
