"""The matcher: batches of messages in, satisfied queries out.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> report = index.register([Query("q1", "/a/b"), Query("q2", "//c")])
    >>> batch = index.matcher().match_batch([b"<a><b/></a>", b"<a", b"<b/>"])
    >>> [list(result.query_ids) for result in batch]
    [['q1'], [], []]
    >>> batch[1].error.family
    'IllFormedMessageError'

It does not match; the kernel does. A message that is refused is reported in its own result and
disturbs no other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import pyarrow as pa

from pathcast.engine.messages import Messages, joined, message_column, refused_rows
from pathcast.engine.results import (
    ERROR_TYPE,
    MATCHES_TYPE,
    ArrowBatch,
    BatchResult,
    error_array,
    first_rows,
    total_stats,
)
from pathcast.engine.verdicts import verdict_table
from pathcast.errors import ConfigError, NotPicklableError
from pathcast.kernel.matcher import KernelMatcher
from pathcast.limits import Limits
from pathcast.model import BatchAnswer, FewMatches, MatcherOptions


class Matcher:
    """Matches batches of messages against the queries of an index or a snapshot.

    May be called from several threads.

    Attributes:
        options: How it runs.
    """

    def __init__(
        self, backend: KernelMatcher, options: MatcherOptions, *, is_live: bool = False
    ) -> None:
        self._backend = backend
        self._is_live = is_live
        self.options = options

    def match_batch(self, messages: Messages) -> BatchResult:
        """Matches every message.

        Args:
            messages: Bytes-like objects or str, or an Arrow array of binary or string; None or null
                for a missing message, which has no matches and no error. Any other object is
                refused in its own place, as a message is that is not well-formed.

        Returns:
            One result a message, in order, and the counters of the batch.

        Raises:
            TypeError: `messages` is nothing of this kind, a single message, or mixes bytes and str.
        """
        return BatchResult(self._answers(messages), self.options.limits)

    def match_arrow(self, array: pa.Array | pa.ChunkedArray) -> ArrowBatch:
        """Matches every message of an Arrow array; the answer is a column of the same length.

        Args:
            array: `binary`, `large_binary`, `string` or `large_string`; slices and chunked arrays
                included. Its buffers are read where they lie, except that a matcher over an index
                first joins the chunks of a chunked array.

        Returns:
            Numbers of the satisfied queries, errors, verdicts and counters; matches and errors are
            chunked if the input was.

        Raises:
            TypeError: `array` is nothing of this kind.
        """
        if not isinstance(array, pa.Array | pa.ChunkedArray):
            raise TypeError(f"match_arrow takes an Arrow array, not {type(array).__name__}")
        answers = self._answers(array)
        matches = [answer.matches for answer in answers]
        errors = [error_array(len(answer.matches), answer.refusals) for answer in answers]
        verdicts = verdict_table(
            [answer.over_budget for answer in answers],
            first_rows(answers),
            self.options.limits,
        )
        is_chunked = isinstance(array, pa.ChunkedArray)
        return ArrowBatch(
            matches=pa.chunked_array(matches, MATCHES_TYPE) if is_chunked else matches[0],
            errors=pa.chunked_array(errors, ERROR_TYPE) if is_chunked else errors[0],
            verdicts=verdicts,
            stats=total_stats(answers),
            query_ids=answers[0].query_ids,
        )

    def match_few(self, messages: Sequence[bytes]) -> FewMatches:
        """Matches a few messages at once: the answer is lists, and no counters are kept.

        Args:
            messages: So few that arrays would take longer than they do: some hundreds, of a KB.

        Example:
            >>> from pathcast import Query, QueryIndex
            >>> index = QueryIndex()
            >>> report = index.register([Query("q1", "/a/b")])
            >>> index.matcher().match_few([b"<a><b/></a>", b"<b/>"]).numbers
            [[0], []]
        """
        return self._backend.match_few(list(messages))

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="Matcher",
            instead="send the Snapshot, which pickles, and call its matcher() where it arrives",
        )

    def _answers(self, messages: Messages) -> list[BatchAnswer]:
        """One answer a chunk, at least one; all with the same numbering of queries."""
        chunks, encoding, refusals = message_column(messages)
        if self._is_live and len(chunks) > 1:
            # An index may renumber its queries between two calls.
            chunks = [joined(chunks)]
        answers = [
            self._backend.match(chunk, encoding=encoding)
            for chunk in chunks or [pa.array([], pa.binary())]
        ]
        if refusals:
            # Objects come in one chunk.
            [answer] = answers
            answers = [replace(answer, refusals=refused_rows(answer.refusals, refusals))]
        return answers


def matcher_options(
    limits: Limits,
    threads: int | None,
    cache_bytes_max: int,
) -> MatcherOptions:
    """Options with their values checked.

    Args:
        limits: What one message may cost.
        threads: From 1 on; None for all processors that the process may use.
        cache_bytes_max: From 1 on.

    Raises:
        ConfigError: A value cannot be used.
    """
    chosen = available_threads() if threads is None else threads
    for key, value in (("threads", chosen), ("cache_bytes_max", cache_bytes_max)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(
                "config.invalid", key=key, reason=f"{value!r} is not a whole number from 1 on"
            )
    return MatcherOptions(
        limits=limits,
        threads=chosen,
        cache_bytes_max=cache_bytes_max,
    )


def available_threads() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
