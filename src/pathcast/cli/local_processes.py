"""What commands do with processes of this machine, whatever node they run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from pathcast.cli.console import say
from pathcast.errors import UnavailableError

if TYPE_CHECKING:
    import msgspec

    from pathcast.transport.local_processes import LocalProcesses

PATIENCE_SECONDS = 120.0


def start_gone(processes: LocalProcesses) -> None:
    """Starts those that do not run."""
    gone = [name for name in processes.names if not processes.is_running(name)]
    processes.start(gone)
    say(f"started: {', '.join(gone) or 'nothing, all run'}")


def end_all(processes: LocalProcesses) -> None:
    """Ends all, gracefully."""
    processes.stop(processes.names)
    say(f"{len(processes.names)} processes have ended")


async def until(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until something holds.

    Raises:
        TimeoutError: It does not.
    """
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)


async def followed(
    processes: LocalProcesses, name: str, decoder: msgspec.msgpack.Decoder[Any]
) -> AsyncIterator[Any]:
    """What the operator is told in its inbox at one process, over lost connections, each once."""
    from pathcast.transport.process import OPERATOR

    after = 0
    while True:
        with contextlib.suppress(UnavailableError):
            async with processes.operator(name) as client:
                async for group in client.deliveries(OPERATOR, after):
                    for each in group:
                        yield decoder.decode(each.body)
                    after = group[-1].position
                    await client.acknowledge(after)
        await asyncio.sleep(0.1)
