"""Chunks of one large message, evaluated side by side.

Example:
    >>> from pathcast.chunking import Chunking, StreamingChunker, tasks_of
    >>> from pathcast.spark.workers import InProcess
    >>> chunking = Chunking(2)
    >>> for query_id, text in {"q1": "/a/b[x]", "q2": "/a/c", "q3": "/a/c/d"}.items():
    ...     _ = chunking.register(query_id, text)
    >>> message = b"<a><b><x/></b><c/></a>"
    >>> scheme = chunking.scheme()
    >>> cut = StreamingChunker(scheme).cut([message])
    >>> evaluate_tasks(InProcess(), tasks_of(scheme, message, cut)).query_ids
    ('q1', 'q2')

The pipeline does not call it: it matches messages whole.

Source: Lehner and Irmert, BTW 2003, section 5 ("naive parallel environment").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from pathcast.chunking import ChunkAnswer, ChunkEvaluator, ChunkTask, merged
from pathcast.limits import Limits
from pathcast.spark.workers import Workers


def evaluate_tasks(
    workers: Workers, tasks: Iterable[ChunkTask], *, limits: Limits | None = None
) -> ChunkAnswer:
    """Evaluates the tasks of a message on workers.

    Args:
        workers: Who runs tasks: `SparkWorkers(session.sparkContext)`, or `InProcess()`.
        tasks: `pathcast.chunking.tasks_of`.
        limits: Bounds on one chunk.

    Returns:
        The answer of one process that does not cut the message.

    Cost: one job with a task a chunk, the largest first, each with the bytes of its chunk.
    """
    ordered = sorted(tasks, key=lambda task: -len(task.message))
    evaluate = partial(_evaluated, limits)
    return merged(workers.run(evaluate, [[task] for task in ordered]) if ordered else ())


def _evaluated(limits: Limits | None, tasks: Iterable[ChunkTask]) -> Iterator[ChunkAnswer]:
    return map(ChunkEvaluator(limits=limits).evaluate, tasks)
