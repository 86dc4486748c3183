"""How a process is seen from outside, over HTTP at an address of its own.

| path | answer |
|---|---|
| /metrics | metrics in the format of Prometheus, or OpenMetrics if asked for |
| /healthz | 200 while the event loop turns, 503 when it has stood still for `STALL_SECONDS` |
| /readyz | 200 when nothing is missing; else 503, with a line for each thing that is |

The listener has threads of its own, so it answers when the event loop does not. Metrics are read in
the event loop when somebody asks; between two scrapes nothing is done but a look at the clock four
times a second. There are no certificates and no tokens: the address is one of loopback, or of a
network whose members may read names of neighbours and subscribers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, make_wsgi_app
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from pathcast.errors import ConfigError, PathcastError
from pathcast.transport.meters import SECONDS
from pathcast.transport.security import is_local

LOG = logging.getLogger("pathcast.transport")

BEAT_SECONDS: Final = 0.25
"""Between two looks at how late the event loop is."""

STALL_SECONDS: Final = 5.0
"""So long without a beat the event loop counts as stalled; a large commit or table takes less."""

ANSWER_SECONDS: Final = 5.0
"""How long the event loop may take to say what it knows."""

CONNECTION_SECONDS: Final = 10.0
"""How long a caller may take to ask, and to take the answer."""

CONNECTIONS_MAX: Final = 16
"""Callers at once; more are hung up on."""


class Watched(Protocol):
    """The state that a process shows to monitoring; called in the event loop."""

    async def metrics(self) -> list[Metric]:
        """All metrics, at this moment; raises PathcastError if it has stopped."""
        ...

    async def unready(self) -> Mapping[str, str]:
        """Each thing that is missing before it can do all of its work, and what of it."""
        ...


class Monitor:
    """Liveness, readiness and metrics of one process.

    Args:
        stall_seconds: See `STALL_SECONDS`.

    Example:
        >>> monitor = Monitor()
        >>> monitor.hold("profiles", "12,000 of 50,000 are restored")
        >>> asyncio.run(monitor.unready())
        {'profiles': '12,000 of 50,000 are restored'}
    """

    def __init__(self, stall_seconds: float = STALL_SECONDS) -> None:
        self._stall_seconds = stall_seconds
        self._watched: Watched | None = None
        self._held: dict[str, str] = {}
        self._beat: float | None = None
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._lag = Histogram(
            "pathcast_event_loop_lag_seconds",
            "How late the event loop is for what is due.",
            buckets=SECONDS,
            registry=self._registry,
        )

    def hold(self, name: str, reason: str) -> None:
        """The process is not ready, until `release` of the same name; a later reason counts."""
        self._held[name] = reason

    def release(self, name: str) -> None:
        """Clear the reason that was given as missing."""
        self._held.pop(name, None)

    @contextlib.contextmanager
    def watching(self, watched: Watched) -> Iterator[None]:
        """Shows what is watched, meanwhile."""
        self._watched = watched
        try:
            yield
        finally:
            self._watched = None

    async def beats(self) -> None:
        """Looks how late the event loop is, for ever."""
        clock = time.monotonic
        self._beat = clock()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            now = clock()
            self._lag.observe(max(0.0, now - self._beat - BEAT_SECONDS))
            self._beat = now

    @property
    def stalled_seconds(self) -> float:
        """For how long the event loop has stood still; 0 if it turns, or has not begun."""
        late = 0.0 if self._beat is None else time.monotonic() - self._beat
        return late if late > self._stall_seconds else 0.0

    async def unready(self) -> dict[str, str]:
        """Each thing that is missing before the process can do all of its work, and why."""
        if self._watched is None:
            return self._held or {"process": "it has not started yet, or it is ending"}
        return {**self._held, **await self._watched.unready()}

    async def metrics(self) -> list[Metric]:
        """All metrics of the process, at this moment.

        Raises:
            PathcastError: What is watched has stopped.
        """
        watched = [] if self._watched is None else await self._watched.metrics()
        return [*self._registry.collect(), *watched]


class _Pages:
    """The three pages, as a WSGI application; called in threads of the listener."""

    def __init__(self, monitor: Monitor, loop: asyncio.AbstractEventLoop) -> None:
        self._monitor = monitor
        self._loop = loop

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        page = {"/metrics": None, "/healthz": self._health, "/readyz": self._readiness}
        path = environ.get("PATH_INFO", "")
        if path not in page or environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _text(start_response, "404 Not Found", "/metrics, /healthz and /readyz are here")
        answer = page[path]
        try:
            if answer is not None:
                return _text(start_response, *answer())
            found: list[Metric] = self._ask(self._monitor.metrics)
        except (FutureTimeoutError, PathcastError, RuntimeError) as error:
            reason = str(error) or "the event loop does not answer"
            return _text(start_response, "503 Service Unavailable", reason)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Found(found))
        pages: Iterable[bytes] = make_wsgi_app(registry)(environ, start_response)
        return pages

    def _ask(self, what: Callable[[], Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(what(), self._loop)
        try:
            return future.result(ANSWER_SECONDS)
        except FutureTimeoutError:
            future.cancel()
            raise

    def _health(self) -> tuple[str, str]:
        if late := self._monitor.stalled_seconds:
            return "503 Service Unavailable", f"the event loop has stood still for {late:.1f} s"
        return "200 OK", "the event loop turns"

    def _readiness(self) -> tuple[str, str]:
        missing = self._ask(self._monitor.unready)
        if not missing:
            return "200 OK", "ready"
        lines = [f"{name}: {reason}" for name, reason in missing.items()]
        return "503 Service Unavailable", "\n".join(lines)


def _text(start_response: Any, status: str, text: str) -> list[bytes]:
    data = f"{text}\n".encode()
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(data))),
        ("Cache-Control", "no-store"),
    ]
    start_response(status, headers)
    return [data]


class _Found(Collector):
    """Metrics that have been read already."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


class _Handler(WSGIRequestHandler):
    timeout = CONNECTION_SECONDS

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are nothing to write down."""


class _Listener(ThreadingMixIn, WSGIServer):
    """Answers callers in threads, so many at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, host: str, port: int) -> None:
        self._room = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without asking a name server for the name of the address, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # there is no thread that would give the place back
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.debug("monitoring: a caller was lost", exc_info=True)


@contextlib.asynccontextmanager
async def monitored(address: str | None, monitor: Monitor | None = None) -> AsyncIterator[Monitor]:
    """A monitor that listens meanwhile.

    Args:
        address: HOST:PORT; None: nobody listens, and nothing is looked at.
        monitor: Which; a new one when not given.

    Raises:
        ConfigError: It cannot listen there.
    """
    found = monitor or Monitor()
    if address is None:
        yield found
        return
    host, _, port = address.rpartition(":")
    try:
        listener = _Listener(host.strip("[]"), int(port))
    except OSError as error:
        reason = f"nothing can listen at {address}: {error.strerror or error}"
        raise ConfigError("config.invalid", key="metrics", reason=reason) from error
    listener.set_app(_Pages(found, asyncio.get_running_loop()))
    serving = threading.Thread(target=listener.serve_forever, name="monitoring", daemon=True)
    serving.start()
    beating = asyncio.create_task(found.beats())
    shown = f"{host}:{listener.server_port}"
    LOG.info("metrics, health and readiness are at http://%s", shown)
    if not is_local(shown):
        LOG.warning("%s can be read by whoever reaches it: there is no token", shown)
    try:
        yield found
    finally:
        beating.cancel()
        await asyncio.to_thread(listener.shutdown)
        listener.server_close()
        await asyncio.gather(beating, return_exceptions=True)
