"""Batches of messages in, satisfied queries out.

It does not match; the kernel does. A message that is refused is reported in its own result and
disturbs no other.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from pathcast.engine.messages import Messages, joined, message_column, refused_rows
from pathcast.engine.results import BatchResult, MatchResult, stored
from pathcast.errors import ConfigError
from pathcast.kernel.matcher import BatchAnswer
from pathcast.limits import Limits
from pathcast.model import MatcherOptions, MessageBytes


class BatchMatcher(Protocol):
    """Answers one batch, a list or an array."""

    def __call__(
        self, messages: pa.Array | list[bytes | None], *, encoding: str | None
    ) -> BatchAnswer:
        """The answer."""


def matched(
    answer_of: BatchMatcher,
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
