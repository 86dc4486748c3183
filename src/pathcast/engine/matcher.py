"""The matcher: batches of messages in, satisfied queries out.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> report = index.register([Query("q1", "/a/b"), Query("q2", "//c")])
    >>> batch = index.matcher().match([b"<a><b/></a>", b"<a", b"<b/>"])
    >>> [list(result.query_ids) for result in batch]
    [['q1'], [], []]
    >>> batch[1].error.family
    'IllFormedMessageError'

It does not match; the kernel does. A message that is refused is reported in its own result and
disturbs no other.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NoReturn, Protocol, overload

import pyarrow as pa

from pathcast.engine.messages import Messages, joined, message_column, refused_rows
from pathcast.engine.results import BatchResult, MatchResult, stored
from pathcast.errors import ConfigError, NotPicklableError
from pathcast.kernel.matcher import KernelMatcher
from pathcast.limits import Limits
from pathcast.model import BatchAnswer, MatcherOptions, MessageBytes


class Matcher:
    """Matches messages against the queries of an index or a snapshot.

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

    @overload
    def match(  # type: ignore[overload-overlap]  # str is an iterable of str
        self, messages: MessageBytes | str
    ) -> MatchResult: ...

    @overload
    def match(self, messages: Messages) -> BatchResult: ...

    def match(self, messages: MessageBytes | str | Messages) -> MatchResult | BatchResult:
        """Matches one message or many.

        Args:
            messages: A message: a bytes-like object or str. Or many: such objects, or a column of
                binary or string as Arrow has it, of whatever library and in whatever layout
                (`pathcast.engine.messages`); None or null for a missing message, which has no
                matches and no error. Any other object is refused in its own place, as a message is
                that is not well-formed. Bytes and columns are read where they lie, except that
                values of dictionaries are spread, and that a matcher over an index first joins the
                chunks of a chunked column.

        Returns:
            Of one message its result; of many one result a message, in order, which are columns
            too.

        Raises:
            TypeError: `messages` is nothing of this kind, such as a table with several columns, or
                mixes bytes and str.

        Example:
            >>> from pathcast import Query, QueryIndex
            >>> index = QueryIndex()
            >>> report = index.register([Query("q1", "/a/b")])
            >>> list(index.matcher().match("<a><b/></a>").query_ids)
            ['q1']
            >>> index.matcher().match(pa.array(["<a><b/></a>", None, "<b/>"])).matches.to_pylist()
            [[0], None, []]

        Cost: a call some microseconds beside what its messages cost.
        """
        return matched(self._backend.match, messages, self.options.limits, is_live=self._is_live)

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="Matcher",
            instead="send the Snapshot, which pickles, and call its matcher() where it arrives",
        )

    def __repr__(self) -> str:
        source = "an index" if self._is_live else "a snapshot"
        return f"Matcher({source}, threads={self.options.threads})"


class Matching(Protocol):
    """Answers one batch, a list or an array."""

    def __call__(
        self, messages: pa.Array | list[bytes | None], *, encoding: str | None
    ) -> BatchAnswer:
        """The answer."""


def matched(
    answer_of: Matching,
    messages: MessageBytes | str | Messages,
    limits: Limits,
    *,
    is_live: bool,
) -> MatchResult | BatchResult:
    """The result of one message, or of many.

    Args:
        answer_of: Answers a batch.
        messages: As for `Registry.match`.
        limits: What one message may cost.
        is_live: Whether queries may get other numbers between two calls.

    Raises:
        TypeError: `messages` is nothing of this kind.
    """
    is_one = isinstance(messages, bytes | str | bytearray | memoryview)
    chunks, encoding, refusals = message_column([messages] if is_one else messages)
    if is_live and len(chunks) > 1:
        chunks = [joined(chunks)]
    answers = [
        answer_of(chunk, encoding=encoding) for chunk in chunks or [pa.array([], pa.binary())]
    ]
    if refusals:
        # Objects come in one chunk.
        [answer] = map(stored, answers)
        answers = [replace(answer, refusals=refused_rows(answer.refusals, refusals))]
    if is_one:
        return MatchResult(answers[0], 0, dict(answers[0].refusals).get(0), limits)
    return BatchResult(answers, limits, is_chunked=hasattr(messages, "__arrow_c_stream__"))


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
