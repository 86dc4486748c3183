"""Connections to neighbours: made, kept, and made again.

Between two brokers there is one connection, whoever made it. Where both try at the same time, the
one that the broker with the smaller name made stays, which both ends find out by themselves. A
neighbour that cannot be reached is tried again after a pause that doubles, with jitter, so that
brokers that went down together do not come back together.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from pathcast.errors import FrameError, PathcastError, PeerRefusedError
from pathcast.transport.connection import ByteStream, Connection, Take, Traffic
from pathcast.transport.events import log_event, reason_of
from pathcast.transport.frames import Codec, Packet

PAUSE_SECONDS: Final = 0.05
PAUSE_SECONDS_MAX: Final = 5.0
"""Pauses before a neighbour is tried again: the first, and what doubling ends with."""

REASONS_MAX: Final = 8
"""Reasons that are logged for one neighbour before there is a connection to it again."""

Dial = Callable[[str], Awaitable[ByteStream]]
"""Makes a stream to a neighbour by name; raises UnavailableError or PeerRefusedError."""


class Neighbours:
    """The connections of one broker.

    Args:
        name: Its name.
        codec: Of the protocol.
        take: Takes what neighbours send.
        changed: Called with a name and whether there is a connection to it now.
        has_room: Whether messages may come from a neighbour.
        dial: Makes streams.
    """

    def __init__(
        self,
        name: str,
        codec: Codec,
        take: Take,
        changed: Callable[[str, bool], None],
        has_room: Callable[[str], bool],
        dial: Dial,
    ) -> None:
        self._name = name
        self._codec = codec
        self._take = take
        self._changed = changed
        self._has_room = has_room
        self._dial = dial
        self._open: dict[str, tuple[Connection, bool]] = {}
        self._dialling: dict[str, asyncio.Task[None]] = {}
        self._gone: dict[str, asyncio.Event] = {}
        self._is_stopped = False
        # Neighbour -> why there was no connection, as it was logged since there was one.
        self._said: dict[str, set[str]] = {}
        # Neighbour -> what went over connections that have ended.
        self._ended: dict[str, Traffic] = {}
        self.refusals: dict[str, PathcastError] = {}
        """Neighbour -> why its last connection, or try of one, ended."""

    @property
    def connections(self) -> dict[str, Connection]:
        """Neighbours that there is a connection to."""
        return {peer: connection for peer, (connection, _) in self._open.items()}

    def totals(self) -> dict[str, Traffic]:
        """Neighbour -> what went over all connections that there have been; none yet: zeros."""
        found = {peer: Traffic(connections=0) for peer in self._dialling} | self._ended
        for peer, connection in self.connections.items():
            before = found.get(peer)
            found[peer] = connection.traffic if before is None else before + connection.traffic
        return found

    def connect(self, peers: Iterable[str]) -> None:
        """Begins to make, and to keep, connections to these neighbours; known ones stay."""
        for peer in peers:
            if peer not in self._dialling and not self._is_stopped:
                self._dialling[peer] = asyncio.create_task(self._keep(peer))

    async def disconnect(self, peer: str) -> None:
        """Ends the connection to a neighbour, and makes no other one."""
        task = self._dialling.pop(peer, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if peer in self._open:
            await self._open[peer][0].close()

    def offer(self, peer: str, packet: Packet) -> bool:
        """Queues a packet for a neighbour; False if it is not connected or its queue is full."""
        if peer not in self._open:
            return False
        try:
            return self._open[peer][0].offer(packet)
        except FrameError as error:
            log_event("packet.refused", name=self._name, neighbour=peer, **reason_of(error))
            return False

    def grant(self) -> None:
        """Gives credit to all who may have some by now."""
        for connection, _ in self._open.values():
            connection.grant()

    async def serve(self, peer: str, stream: ByteStream) -> None:
        """Runs a stream that `peer` made, until it ends.

        Raises:
            PathcastError: Why it ended, if not by the other end's wish.
        """
        await self._run(peer, stream, is_ours=False)

    async def stop(self) -> None:
        """Ends everything; what is urgent is sent before, if that does not take long."""
        self._is_stopped = True
        flushing = [connection.flushed() for connection, _ in self._open.values()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(*flushing)
        tasks = list(self._dialling.values())
        for task in tasks:
            task.cancel()
        for connection, _ in list(self._open.values()):
            await connection.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, peer: str) -> None:
        clock = asyncio.get_running_loop()
        pause = PAUSE_SECONDS
        while True:
            if peer in self._open:
                gone = self._gone.setdefault(peer, asyncio.Event())
                gone.clear()
                await gone.wait()
            began = clock.time()
            try:
                stream = await self._dial(peer)
            except PathcastError as error:
                self._note(peer, error)
            else:
                with contextlib.suppress(PathcastError):
                    await self._run(peer, stream, is_ours=True)
            if clock.time() - began > PAUSE_SECONDS_MAX:
                pause = PAUSE_SECONDS
            # Jitter needs no seed: nothing that a node decides depends on it.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    async def _run(self, peer: str, stream: ByteStream, *, is_ours: bool) -> None:
        connection = Connection(self._name, peer, stream, self._codec, self._take, self._has_room)
        error: PathcastError | None = None
        try:
            await connection.open()
            if not await self._replaces(peer, is_ours=is_ours):
                return
            self._open[peer] = (connection, is_ours)
            self._changed(peer, True)
            self._said.pop(peer, None)
            log_event("neighbour.connected", name=self._name, neighbour=peer)
            await connection.run()
        except PathcastError as found:
            error = found
            self._note(peer, found)
            raise
        finally:
            await stream.close(error)
            if self._open.get(peer, (None,))[0] is connection:
                self._close(peer)
                self._changed(peer, False)
                if not self._is_stopped:
                    log_event("neighbour.lost", name=self._name, neighbour=peer)
                self._gone.setdefault(peer, asyncio.Event()).set()

    async def _replaces(self, peer: str, *, is_ours: bool) -> bool:
        """Whether a new connection takes the place of the one that there may be."""
        if self._is_stopped:
            return False
        if peer not in self._open:
            return True
        connection, was_ours = self._open[peer]
        if was_ours != is_ours and is_ours != (self._name < peer):
            return False
        # Of the same kind: the earlier one is dead, or the peer would not have made another.
        self._close(peer)
        self._changed(peer, False)
        await connection.close()
        return True

    def _close(self, peer: str) -> None:
        """Its connection is not one any more; what went over it counts."""
        connection, _ = self._open.pop(peer)
        before = self._ended.get(peer, Traffic(connections=0))
        self._ended[peer] = before + connection.traffic

    def _note(self, peer: str, error: PathcastError) -> None:
        self.refusals[peer] = error
        said = self._said.setdefault(peer, set())
        if str(error) not in said and len(said) < REASONS_MAX:
            said.add(str(error))
            is_fault = isinstance(error, PeerRefusedError | FrameError)
            event = "neighbour.refused" if is_fault else "neighbour.unreachable"
            log_event(event, name=self._name, neighbour=peer, **reason_of(error))
