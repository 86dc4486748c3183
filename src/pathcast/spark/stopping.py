"""SIGTERM and Ctrl-C as a request to stop, which a run looks at when nothing is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[list[signal.Signals]]:
    """While inside, SIGTERM and the first Ctrl-C set `stop`; a second Ctrl-C interrupts.

    Yields:
        The signals that came, in their order. In another thread than the main one nothing is
        changed and none comes: only the main thread may handle signals.
    """
    received: list[signal.Signals] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def request(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(signal.Signals(number))
        stop.set()

    before = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
