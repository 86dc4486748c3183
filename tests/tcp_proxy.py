"""A proxy between two brokers that makes a link slow, late, lossy or dead, for tests.

It carries bytes and knows no frames. TCP hides loss as time, so loss is what TCP makes of it: a
stall of `stall_seconds`, or, with `reset_share`, a connection that is reset.

Example:
    >>> async def main():
    ...     proxy = await Proxy.start("127.0.0.1", 7001, LinkFaults(delay_seconds=0.02))
    ...     print(proxy.port)
    ...     proxy.cut()
    ...     proxy.heal()
    ...     await proxy.stop()
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Any, Final

BLOCK: Final = 64 * 1024
BLOCK_SECONDS: Final = 0.1
"""What a slow link carries in it is a block."""


@dataclass(frozen=True)
class LinkFaults:
    """How unkind a link is; each way by itself.

    Attributes:
        delay_seconds: Time on the way.
        bytes_per_second: Width; None for no bound.
        stall_share: Share of blocks that are lost and come `stall_seconds` late.
        stall_seconds: See there.
        reset_share: Share of blocks at which the connection is reset.
    """

    delay_seconds: float = 0.0
    bytes_per_second: float | None = None
    stall_share: float = 0.0
    stall_seconds: float = 0.2
    reset_share: float = 0.0


NO_FAULTS: Final = LinkFaults()


class Proxy:
    """A port that stands for another; `start` makes one."""

    def __init__(self, host: str, port: int, faults: LinkFaults, seed: int) -> None:
        self._target = (host, port)
        self._chance = random.Random(seed)
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: Any = None
        self.faults = faults
        """May be changed while connections are open."""

    @classmethod
    async def start(
        cls, host: str, port: int, faults: LinkFaults = NO_FAULTS, seed: int = 0
    ) -> Proxy:
        """Begins to listen at a free port of loopback.

        Args:
            host: What it stands for.
            port: See there.
            faults: Of the link.
            seed: Of what happens by chance.
        """
        proxy = cls(host, port, faults, seed)
        proxy._server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        return proxy

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        """Resets all connections and lets nobody through."""
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def heal(self) -> None:
        """Lets connections through again."""
        self._is_cut = False

    async def stop(self) -> None:
        """Ends everything."""
        self._server.close()
        self.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        other: asyncio.StreamWriter | None = None
        try:
            if self._is_cut:
                return
            there, other = await asyncio.open_connection(*self._target)
            self._writers.add(other)
            await asyncio.gather(self._carry(reader, other), self._carry(there, writer))
        except OSError:
            return
        finally:
            for each in (writer, other):
                if each is not None:
                    self._writers.discard(each)
                    each.transport.abort()

    @property
    def _block(self) -> int:
        """Bytes that arrive together: a slow link brings the first of them before the last."""
        width = self.faults.bytes_per_second
        return BLOCK if width is None else min(BLOCK, max(256, int(width * BLOCK_SECONDS)))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop()
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(256)
        arriving = asyncio.create_task(self._arrive(under_way, writer))
        free_at = clock.time()
        try:
            while data := await reader.read(self._block):
                faults = self.faults
                if self._chance.random() < faults.reset_share:
                    raise ConnectionResetError
                late = faults.stall_seconds if self._chance.random() < faults.stall_share else 0.0
                width = faults.bytes_per_second
                # Blocks wait for those before them: a byte stream stays in order.
                free_at = max(free_at, clock.time()) + late + (len(data) / width if width else 0.0)
                await under_way.put((free_at + faults.delay_seconds, data))
            await under_way.put((free_at, b""))
            await arriving
        finally:
            arriving.cancel()

    async def _arrive(
        self, under_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        clock = asyncio.get_running_loop()
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(max(0.0, due - clock.time()))
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()
