"""Streams without sockets: carriers of one event loop, connected as they are by gRPC.

Example:
    >>> import msgspec
    >>> from pathcast.protocol import Send
    >>> from pathcast.transport.carrier import Carrier, NodeAdapter
    >>> from pathcast.transport.disk import Disk
    >>> from pathcast.transport.frames import Codec
    >>> class Ping(msgspec.Struct, frozen=True, tag=True):
    ...     number: int
    >>> class Counter:
    ...     def __init__(self, saved, life):
    ...         self.heard = []
    ...     def start(self, now):
    ...         return []
    ...     def receive(self, sender, message, now):
    ...         self.heard.append((sender, message.number))
    ...         return []
    ...     def wake(self, timer, now):
    ...         return []
    ...     def neighbour(self, name, up, now):
    ...         return [Send(name, Ping(7))] if up else []
    >>> kind = NodeAdapter(Counter, Codec([Ping]))
    >>> async def main():
    ...     network = MemoryNetwork()
    ...     for name in "ab":
    ...         network.add(
    ...             Carrier(name, kind, Disk(None), network.dial_from(name))
    ...         )
    ...     await network.carriers["a"].start(["b"])
    ...     await network.carriers["b"].start()
    ...     await asyncio.sleep(0.2)
    ...     print(network.carriers["b"].node.heard)
    ...     await network.stop()
    >>> asyncio.run(main())
    [('a', 7)]
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pathcast.errors import PathcastError, UnavailableError

if TYPE_CHECKING:
    from pathcast.transport.carrier import Carrier
    from pathcast.transport.neighbours import Dial

T = TypeVar("T")

FRAMES_UNDER_WAY: Final = 2
"""Frames that one end may be ahead of the other; more would hide that it is slow."""


class MemoryStream:
    """One end of a stream; `pair` makes both."""

    def __init__(
        self, incoming: asyncio.Queue[bytes], outgoing: asyncio.Queue[bytes], end: asyncio.Event
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._end = end

    @classmethod
    def pair(cls) -> tuple[MemoryStream, MemoryStream]:
        """Two ends."""
        there: asyncio.Queue[bytes] = asyncio.Queue(FRAMES_UNDER_WAY)
        back: asyncio.Queue[bytes] = asyncio.Queue(FRAMES_UNDER_WAY)
        end = asyncio.Event()
        return cls(back, there, end), cls(there, back, end)

    async def send(self, data: bytes) -> None:
        """Waits for room.

        Raises:
            UnavailableError: The stream has ended.
        """
        await self._or_end(self._outgoing.put(data))
        if self._end.is_set():
            raise UnavailableError("peer.unreachable", name="stream", reason="it has ended")

    async def receive(self) -> bytes | None:
        """The next frame, or None at the end."""
        return await self._or_end(self._incoming.get())

    async def close(self, error: PathcastError | None = None) -> None:
        """Ends both ways."""
        self._end.set()

    async def _or_end(self, call: Coroutine[Any, Any, T]) -> T | None:
        doing = asyncio.ensure_future(call)
        ending = asyncio.ensure_future(self._end.wait())
        try:
            await asyncio.wait({doing, ending}, return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else None
        finally:
            doing.cancel()
            ending.cancel()


class MemoryNetwork:
    """Carriers that reach each other by name."""

    def __init__(self) -> None:
        self.carriers: dict[str, Carrier] = {}
        self._cut: set[frozenset[str]] = set()
        self._serving: dict[frozenset[str], set[asyncio.Task[None]]] = {}
        self._streams: dict[frozenset[str], list[MemoryStream]] = {}

    def add(self, carrier: Carrier) -> None:
        """Makes a carrier reachable; one of the same name before is so no longer."""
        self.carriers[carrier.name] = carrier

    def dial_from(self, name: str) -> Dial:
        """What a carrier of this name makes its streams with."""

        async def dial(peer: str) -> MemoryStream:
            link = frozenset((name, peer))
            if link in self._cut or peer not in self.carriers:
                raise UnavailableError("peer.unreachable", name=peer, reason="no way there")
            ours, theirs = MemoryStream.pair()
            serving = asyncio.ensure_future(self._serve(peer, name, theirs))
            tasks = self._serving.setdefault(link, set())
            tasks.add(serving)
            serving.add_done_callback(tasks.discard)
            self._streams.setdefault(link, []).append(ours)
            return ours

        return dial

    async def _serve(self, name: str, caller: str, stream: MemoryStream) -> None:
        # Why it ended is in the refusals of the one that was called.
        with contextlib.suppress(PathcastError):
            await self.carriers[name].serve(caller, stream)

    async def cut(self, one: str, other: str) -> None:
        """Ends the connection between two, and lets them have no other."""
        link = frozenset((one, other))
        self._cut.add(link)
        for stream in self._streams.pop(link, []):
            await stream.close()

    def heal(self, one: str, other: str) -> None:
        """Lets two be connected again."""
        self._cut.discard(frozenset((one, other)))

    async def stop(self) -> None:
        """Stops all carriers."""
        for carrier in self.carriers.values():
            await carrier.stop()
        await asyncio.gather(
            *(task for tasks in self._serving.values() for task in tasks), return_exceptions=True
        )
