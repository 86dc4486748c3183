"""Whether the process of a neighbour has ended, once its connection is lost.

A lost connection says nothing: the way may be broken. But where a process has listened for all its
life and nobody listens now, it is over, and nobody has to ask it until patience ends. Whoever does
not answer at all may be there: that is left to patience.
"""

from __future__ import annotations

import asyncio
from typing import Final

PAUSES_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Before each try: a process that ends loses connections shortly before, or after, its port."""

TRY_SECONDS: Final = 1.0


async def has_ended(address: str) -> bool:
    """Whether nobody listens at HOST:PORT any more, where somebody did until a moment ago.

    False if somebody does, perhaps another process, or if that cannot be known.

    Example:
        >>> asyncio.run(has_ended("127.0.0.1:1"))
        True
    """
    host, _, port = address.rpartition(":")
    for pause in PAUSES_SECONDS:
        await asyncio.sleep(pause)
        try:
            async with asyncio.timeout(TRY_SECONDS):
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        except ConnectionRefusedError:
            return True
        except (OSError, TimeoutError):
            return False
        writer.close()
    return False
