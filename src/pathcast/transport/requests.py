"""Requests whose answers come later: those of clients to a node, and those of the node to others.

A carrier answers a client with what its node sends because of the request. The node of a
registration service answers only when a broker has answered: its `Send` of an answer, in whichever
event, ends the call of the client who asked, and its `Send` of a request is a call whose answer the
node receives as an event. Nothing is repeated here: nodes and clients do that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Final

from pathcast.errors import PathcastError
from pathcast.transport.events import RareEvents, reason_of

CALLS_MAX: Final = 1024
"""Calls that are under way from here; the node repeats what is not called."""


class Requests:
    """The requests of one node that wait for an answer.

    Args:
        name: Name of the node.
        key: The value that a request and its answer have in common.
        calls: Types of the requests that the node sends to others.
        call: Sends a request to an address and gives the answer; raises PathcastError.
    """

    def __init__(
        self,
        name: str,
        key: Callable[[object], object],
        calls: Collection[type] = (),
        call: Callable[[str, object], Awaitable[object]] | None = None,
    ) -> None:
        self._name = name
        self._key = key
        self._types = frozenset(calls)
        self._call = call
        self._waiting: dict[tuple[str, object], list[asyncio.Future[object]]] = {}
        self._calls: set[tuple[str, object]] = set()
        self._events = RareEvents()

    def is_call(self, message: object) -> bool:
        """Whether a message that the node sends is a request of its own."""
        return type(message) in self._types

    @contextlib.contextmanager
    def awaited(self, client: str, message: object) -> Iterator[asyncio.Future[object]]:
        """The answer to a request of a client; nobody waits for it afterwards."""
        key = client, self._key(message)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        try:
            yield future
        finally:
            self._waiting[key].remove(future)
            if not self._waiting[key]:
                del self._waiting[key]

    def answer(self, client: str, message: object) -> None:
        """Ends the calls that wait for this answer; a late one is dropped: the client repeats."""
        for future in self._waiting.get((client, self._key(message)), ()):
            if not future.done():
                future.set_result(message)

    async def asked(self, to: str, message: object) -> object | None:
        """The answer of another node; None: the same request is under way, or it failed."""
        call = to, self._key(message)
        if call in self._calls or len(self._calls) >= CALLS_MAX or self._call is None:
            return None
        self._calls.add(call)
        try:
            return await self._call(to, message)
        except PathcastError as error:
            cause = to, error.code
            self._events.log("request.failed", cause, name=self._name, to=to, **reason_of(error))
            return None
        finally:
            self._calls.discard(call)
