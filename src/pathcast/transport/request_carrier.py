"""A carrier of nodes that ask and answer: those of the registration service, and what asks them.

A node's `Send` of a request is a call, and what comes back is given to it as an event; its `Send`
of an answer ends the call of whoever asked. A request that nobody answers is not repeated here:
nodes do that. Events go into the node one after another, in a thread of their own, because such a
node waits for a database: whatever else runs in this process does not.

`Deliver` is handed to whoever made the carrier. There is no disk: what has to outlive the process
is in the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pathcast.errors import PathcastError, UnavailableError
from pathcast.protocol import Cancel, Deliver, Effect, Node, Send, Wake
from pathcast.transport.events import RareEvents, log_event, reason_of

CALLS_MAX: Final = 1024
"""Calls that are under way from here; more are left to the next repetition."""

Call = Callable[[str, object], Awaitable[object]]
"""Sends a message to an address and gives the answer; raises PathcastError."""

Key = Callable[[object], object]
"""What a request and its answer have in common; None for what is no answer."""


class RequestCarrier:
    """A node, run in this event loop.

    Args:
        name: Of the node.
        node: The node.
        call: How it asks others.
        key: Which answer belongs to which request.
        is_request: Whether a message that the node sends asks for something.
        deliver: Takes what the node delivers; in the loop.
    """

    def __init__(
        self,
        name: str,
        node: Node,
        call: Call,
        key: Key,
        is_request: Callable[[object], bool],
        deliver: Callable[[str, object], None],
    ) -> None:
        self.name = name
        self._node = node
        self._call = call
        self._key = key
        self._is_request = is_request
        self._deliver = deliver
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"node-{name}")
        self._turn = asyncio.Lock()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[tuple[str, object], list[asyncio.Future[object]]] = {}
        self._events = RareEvents()
        self._calls: set[tuple[str, object]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock = time.time() - time.monotonic()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[RequestCarrier]:
        """Starts the node; ends timers and calls at the end."""
        await self.event(self._node.start)
        try:
            yield self
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._failure.cancel()
            self._thread.shutdown(wait=True)

    async def run(self) -> None:
        """Returns never; raises what the node ended with, if it did."""
        await asyncio.shield(self._failure)

    @property
    def now(self) -> float:
        """What events are given as the time."""
        return self._clock + time.monotonic()

    async def ask(self, sender: str, message: object, seconds: float) -> object:
        """Gives the node a request of `sender`, and waits for its answer.

        Raises:
            UnavailableError: There was none in time.
        """
        key = sender, self._key(message)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        try:
            async with asyncio.timeout(seconds):
                await self.event(self._node.receive, sender, message)
                return await future
        except TimeoutError as error:
            raise UnavailableError("peer.silent", name=self.name, seconds=seconds) from error
        finally:
            waiting = self._waiting.get(key, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._waiting.pop(key, None)

    async def event(self, handler: Callable[..., Sequence[Effect]], *event: object) -> None:
        """Gives the node an event, after those before it, and begins what it wants done."""
        async with self._turn:
            now = self.now
            loop = asyncio.get_running_loop()
            try:
                effects = await loop.run_in_executor(self._thread, lambda: handler(*event, now))
            except Exception as error:
                # A bug of the node: what it holds in memory is not to be trusted any more.
                log_event("process.failed", exc_info=True, name=self.name, reason=repr(error))
                if not self._failure.done():
                    self._failure.set_exception(error)
                raise
            for effect in effects:
                self._do(effect)

    def begin(self, handler: Callable[..., Sequence[Effect]], *event: object) -> None:
        """As `event`, without waiting for it."""
        self._spawn(self.event(handler, *event))

    def _do(self, effect: Effect) -> None:
        match effect:
            case Wake(timer, after):
                self._stop_timer(timer)
                loop = asyncio.get_running_loop()
                self._timers[timer] = loop.call_later(max(after, 0.0), self._wake, timer)
            case Cancel(timer):
                self._stop_timer(timer)
            case Deliver(to, what):
                self._deliver(to, what)
            case Send(to, message) if self._is_request(message):
                self._begin_call(to, message)
            case Send(to, message):
                self._answer(to, message)
            case _:
                raise TypeError(f"this kind of node keeps nothing, and was about to do {effect!r}")

    def _answer(self, to: str, message: object) -> None:
        # Nobody waits for one that comes late: whoever asked asks again.
        for future in self._waiting.pop((to, self._key(message)), ()):
            if not future.done():
                future.set_result(message)

    def _begin_call(self, to: str, message: object) -> None:
        call = to, self._key(message)
        if call not in self._calls and len(self._calls) < CALLS_MAX:
            self._calls.add(call)
            self._spawn(self._called(call, to, message))

    async def _called(self, call: tuple[str, object], to: str, message: object) -> None:
        try:
            answer = await self._call(to, message)
        except PathcastError as error:
            cause = to, error.code
            self._events.log("request.failed", cause, name=self.name, to=to, **reason_of(error))
            return
        finally:
            self._calls.discard(call)
        await self.event(self._node.receive, to, answer)

    def _wake(self, timer: str) -> None:
        del self._timers[timer]
        self.begin(self._node.wake, timer)

    def _stop_timer(self, timer: str) -> None:
        handle = self._timers.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Said by `event`, and raised by `run`.
            task.exception()
