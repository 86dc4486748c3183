"""A lock under which batches run together and a change runs alone.

A registry changes while messages flow. Every delivery of a batch names the version of the
subscriptions that made it, so a batch must see one state from its beginning to its end; and
whoever has unsubscribed must get nothing afterwards. Hence a change waits for the batches that
run, and batches that come after it wait for the change.

Example:
    >>> turns = Turns()
    >>> with turns.shared(), turns.shared():
    ...     pass
    >>> with turns.alone():
    ...     pass
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Final

INSIDE: Final = (
    "the registry is used inside a call of it on the same thread, as by the handler of a signal, "
    "and one of the two changes it; do it after that call, or on another thread"
)


class Turns:
    """A lock that many may hold together, or one alone.

    One who wants it alone goes before those who come later, and then all who have waited to share
    go before the next one who wants it alone: neither a stream of batches nor one of changes keeps
    anybody waiting for ever. Those who want it alone have their turns in the order in which they
    came.

    A thread that shares may share again, as the handler of a signal does that matches inside a
    batch. Anything else inside a turn of the same thread is refused: it would wait for itself.
    """

    def __init__(self) -> None:
        # Its lock is reentrant: the handler of a signal may match where this thread is in here.
        self._condition = threading.Condition()
        self._sharing: dict[int, int] = {}
        # Those who wait to be alone, in their order; and to share, before and after `_ended`.
        self._queue: deque[object] = deque()
        self._waiting = self._admitted = 0
        # Turns alone that have ended.
        self._ended = 0
        self._alone: int | None = None
        self._shared = _SharedTurn(self)

    def shared(self) -> AbstractContextManager[None]:
        """Runs together with others that share. Cost: 1 µs."""
        return self._shared

    def _enter(self) -> None:
        thread = threading.get_ident()
        with self._condition:
            if thread not in self._sharing:
                if self._alone == thread:
                    raise RuntimeError(INSIDE)
                if self._alone is not None or self._queue:
                    self._wait_to_share()
            self._sharing[thread] = self._sharing.get(thread, 0) + 1

    def _wait_to_share(self) -> None:
        """Waits until nobody is alone or comes first, or one who was alone has let this one in."""
        ended = self._ended
        self._waiting += 1
        try:
            while (self._alone is not None or self._queue) and self._ended == ended:
                self._condition.wait()
        finally:
            if self._ended == ended:
                self._waiting -= 1
            else:
                self._admitted -= 1
                self._condition.notify_all()

    def _leave(self) -> None:
        thread = threading.get_ident()
        with self._condition:
            if self._sharing[thread] > 1:
                self._sharing[thread] -= 1
            else:
                del self._sharing[thread]
                # Only those who want it alone wait for one that shares.
                if self._queue and not self._sharing:
                    self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Runs when nobody else does.

        Raises:
            RuntimeError: This thread has a turn.
        """
        thread = threading.get_ident()
        with self._condition:
            if self._alone == thread or thread in self._sharing:
                raise RuntimeError(INSIDE)
            self._queue.append(turn := object())
            try:
                while self._is_taken() or self._queue[0] is not turn:
                    self._condition.wait()
                self._alone = thread
            finally:
                self._queue.remove(turn)
                # If the wait was interrupted, those behind must not wait for this one.
                self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._alone = None
                self._ended += 1
                self._admitted += self._waiting
                self._waiting = 0
                self._condition.notify_all()

    def _is_taken(self) -> bool:
        return self._alone is not None or bool(self._sharing) or self._admitted > 0


class _SharedTurn(AbstractContextManager[None]):
    """A turn that others share, of any thread: it has no state. A generator would cost twice."""

    __slots__ = ("_turns",)

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __enter__(self) -> None:
        self._turns._enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._turns._leave()
