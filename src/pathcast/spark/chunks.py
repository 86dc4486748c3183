"""Chunks of one large message, evaluated side by side: (chunk, alternatives) pairs as tasks.

The message is cut where it is read; each worker gets a chunk and what is asked of it, and hands
back ids. So no worker needs memory for the whole message, unless there is a potpourri, and the
first answers are there when the smallest chunk is done.

Example:
    >>> from pathcast.chunking import Chunking, StreamingChunker
    >>> from pathcast.spark.workers import InProcess
    >>> chunking = Chunking(2)
    >>> for query_id, text in {"q1": "/a/b[x]", "q2": "/a/c", "q3": "/a/c/d"}.items():
    ...     _ = chunking.register(query_id, text)
    >>> message = b"<a><b><x/></b><c/></a>"
    >>> scheme = chunking.scheme()
    >>> answer = evaluate_chunks(
    ...     InProcess(), scheme, message, StreamingChunker(scheme).cut([message]))
    >>> answer.query_ids
    ('q1', 'q2')

It is a function for programs that have large messages; the pipeline matches messages whole.

Source: Lehner and Irmert, BTW 2003, section 5 ("naive parallel environment").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pathcast.chunking import (
    ChunkAnswer,
    ChunkEvaluator,
    ChunkTask,
    Cut,
    FilteringScheme,
    merged,
    tasks_of,
)
from pathcast.limits import Limits
from pathcast.spark.workers import Workers


@dataclass(frozen=True, slots=True)
class EvaluateChunks:
    """The task: evaluates the pairs of its share.

    Attributes:
        limits: What one chunk may cost.
    """

    limits: Limits | None

    def __call__(self, tasks: Iterable[ChunkTask]) -> Iterator[ChunkAnswer]:
        """Evaluates pairs, one after another."""
        evaluator = ChunkEvaluator(limits=self.limits)
        return map(evaluator.evaluate, tasks)


def evaluate_chunks(
    workers: Workers,
    scheme: FilteringScheme,
    message: bytes,
    cut: Cut,
    *,
    limits: Limits | None = None,
) -> ChunkAnswer:
    """Evaluates a message that was cut, on workers.

    Args:
        workers: Who runs tasks: `SparkWorkers(session.sparkContext)`, or `InProcess()`.
        scheme: What it was cut by.
        message: All of it; it is sent to a worker only for the potpourri, or if it has a fault.
        cut: Its chunks.
        limits: What one chunk may cost.

    Returns:
        The answer for the message: that of one process which does not cut it.

    Cost: one job of as many tasks as there are chunks that have something, each with the bytes of
        its chunk; the largest is the first.
    """
    return evaluate_tasks(workers, tasks_of(scheme, message, cut), limits=limits)


def evaluate_tasks(
    workers: Workers,
    tasks: Iterable[ChunkTask],
    *,
    limits: Limits | None = None,
) -> ChunkAnswer:
    """Evaluates the tasks of a message on workers: `tasks_of`, or `pathcast.chunking.pair_tasks`.

    Args:
        workers: Who runs them.
        tasks: Chunks, or pairs of chunk and partition, with what is asked of them.
        limits: What one of them may cost.

    Returns:
        The answer for the message.
    """
    ordered = sorted(tasks, key=lambda task: -len(task.message))
    shares: Sequence[Sequence[ChunkTask]] = [[task] for task in ordered]
    return merged(workers.run(EvaluateChunks(limits), shares) if shares else ())
