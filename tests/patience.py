"""How long tests wait for what must come about: far longer than it takes on any machine.

Machines that run tests do other things too: no test says how long something takes, and none sleeps
and hopes. It waits until something holds, and fails when there is no hope any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pathcast.errors import UnavailableError

T = TypeVar("T")

PATIENCE_SECONDS: Final = 300.0
"""Longer than a hundred times what anything takes that is waited for."""

SPARK_SECONDS: Final = 900.0
"""For a process that starts Java and Spark; at its limit, a machine has taken six minutes."""


async def eventually(
    holds: Callable[[], bool | Awaitable[bool]], seconds: float = PATIENCE_SECONDS
) -> None:
    """Returns when something holds; while somebody cannot be reached it does not."""
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(UnavailableError):
            found = holds()
            if found if isinstance(found, bool) else await found:
                return
        assert time.monotonic() < until, "it did not come about in time"
        await asyncio.sleep(0.01)


def wait_until(find: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """`eventually` without an event loop; gives the first that is true."""
    until = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < until, "it did not come about in time"
        time.sleep(0.02)
    return found
