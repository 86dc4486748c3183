"""Bounds on what callers hold of a listener: connections, calls and bytes of unfinished calls.

A connection *has introduced itself* when a call over it was admitted. Until then it belongs to a
stranger: it is ended after some seconds, and earlier when its address or all strangers together
have too many. gRPC ends connections that do not speak HTTP/2 at all, and takes no more than
`connections_max` together. Clients never get the last connections: those are for neighbours,
operators and the registration service, whom bounds on clients do not concern.

gRPC gives no access to its connections. The guard finds them among the open files of this process,
by the port that they came to, and shuts down a duplicate of the file, which gRPC notices as it
notices a caller who hangs up.

Example:
    >>> bounds = ConnectionBounds(strangers_max=4)
    >>> places = [RemoteAddress(f"10.0.0.{host}", port) for host in (1, 2) for port in (1, 2, 3)]
    >>> ages = {place: float(place.port) for place in places}
    >>> for place in surplus(ages, bounds):
    ...     print(place.host, place.port)
    10.0.0.2 3
    10.0.0.1 3
    10.0.0.2 2
    10.0.0.1 2
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import resource
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from pathcast.errors import UnavailableError
from pathcast.transport.events import log_event
from pathcast.transport.pieces import WHOLE_BYTES_MAX, PieceBudget

LOOK_SECONDS: Final = 0.25
"""Pause between two looks at the connections; about 5 µs a connection."""

FILES_RESERVED: Final = 256
"""Open files that a process keeps for other things than connections."""

ADDRESS_SHARE: Final = 4
"""One address may have a quarter of the connections of strangers."""

READING_MAX: Final = 8
"""Requests of one client that are received at a time; each may be as long as a frame."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """Bounds of one listener.

    Attributes:
        connections_max: Connections in all.
        strangers_max: Connections that have not introduced themselves.
        stranger_seconds: A connection that has not introduced itself is ended after so long.
        client_connections_max: Connections of one client.
        client_calls_max: Calls of one client that are under way.
        unfinished_bytes_max: Bytes of calls of which not everything has come yet; half of them
            for one client.
    """

    connections_max: int = 4096
    strangers_max: int = 512
    stranger_seconds: float = 10.0
    client_connections_max: int = 256
    client_calls_max: int = 256
    unfinished_bytes_max: int = 2 * WHOLE_BYTES_MAX

    @property
    def clients_max(self) -> int:
        """Connections of all clients together, beside strangers and who is privileged."""
        return max(1, self.connections_max - self.strangers_max - self.connections_max // 8)


class RemoteAddress(NamedTuple):
    """The other end of a connection."""

    host: str
    port: int


def surplus(
    strangers: Mapping[RemoteAddress, float], bounds: ConnectionBounds
) -> list[RemoteAddress]:
    """Connections of strangers that are to be ended.

    Of an address with too many, and of all together, the oldest are: a caller who has just come
    has time to introduce itself.

    Args:
        strangers: Connection -> for how many seconds it has been known.
        bounds: See there.
    """
    ended: list[RemoteAddress] = []
    kept = Counter[str]()
    of_address = max(1, bounds.strangers_max // ADDRESS_SHARE)
    left = 0
    for place in sorted(strangers, key=lambda each: (strangers[each], each)):
        is_too_old = strangers[place] > bounds.stranger_seconds
        if is_too_old or left >= bounds.strangers_max or kept[place.host] >= of_address:
            ended.append(place)
        else:
            kept[place.host] += 1
            left += 1
    return ended[::-1]


DEFAULT: Final = ConnectionBounds()


@dataclass(slots=True)
class Caller:
    """A client that has calls under way.

    Attributes:
        name: Its name.
        calls: How many they are.
        reading: Taken while a request is received.
    """

    name: str
    calls: int = 0
    reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READING_MAX))


class ConnectionGuard:
    """The peers connected to a listener, and the unfinished bytes of each.

    Args:
        bounds: See there.
    """

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.bounds = bounds
        self.pieces = PieceBudget(bounds.unfinished_bytes_max)
        # Connection -> client, whether bounds of clients concern it, and when that was known.
        self._introduced: dict[RemoteAddress, tuple[str, bool, float]] = {}
        self._first_seen: dict[RemoteAddress, float] = {}
        self._clients: dict[str, Caller] = {}

    @contextlib.contextmanager
    def call(self, peer: str, client: str, *, is_privileged: bool) -> Iterator[Caller]:
        """A call of an admitted client is under way meanwhile.

        Args:
            peer: Where it comes from, in the words of gRPC.
            client: Who calls.
            is_privileged: Whether bounds of clients do not concern it.

        Raises:
            UnavailableError: The client, or all clients together, have too much here.
        """
        self._introduce(peer, client, is_privileged=is_privileged)
        held = self._clients.setdefault(client, Caller(client))
        if not is_privileged:
            _check(client, "calls under way", held.calls, self.bounds.client_calls_max)
        held.calls += 1
        try:
            yield held
        finally:
            held.calls -= 1
            if not held.calls:
                self._clients.pop(client, None)

    def _introduce(self, peer: str, client: str, *, is_privileged: bool) -> None:
        place = place_of(peer)
        if place is None:
            return
        known = self._introduced.get(place)
        if not is_privileged and (known is None or known[0] != client):
            theirs = [name for name, privileged, _ in self._introduced.values() if not privileged]
            most = self.bounds.client_connections_max
            _check(client, "connections", theirs.count(client), most)
            _check("all clients together", "connections", len(theirs), self.bounds.clients_max)
        self._introduced[place] = (client, is_privileged, time.monotonic())

    @contextlib.asynccontextmanager
    async def watching(self, port: int) -> AsyncIterator[None]:
        """Ends connections of strangers to a port meanwhile."""
        task = asyncio.create_task(self._watch(port))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self, port: int) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            began = time.monotonic()
            try:
                found = await asyncio.to_thread(_connections, port)
                if ended := self._to_end(found, began):
                    log_event("connections.ended", count=len(ended))
                    await asyncio.to_thread(_connections, port, frozenset(ended))
            except OSError as error:
                log_event("connections.unseen", reason=str(error))

    def _to_end(self, found: Iterable[RemoteAddress], began: float) -> list[RemoteAddress]:
        present = set(found)
        self._introduced = {
            place: each
            for place, each in self._introduced.items()
            if place in present or each[2] >= began
        }
        strangers = present - self._introduced.keys()
        self._first_seen = {place: self._first_seen.get(place, began) for place in strangers}
        ages = {place: began - first for place, first in self._first_seen.items()}
        return surplus(ages, self.bounds)


def _check(name: str, what: str, given: int, maximum: int) -> None:
    if given >= maximum:
        raise UnavailableError(
            "broker.busy", name=name, what=what, given=given + 1, maximum=maximum
        )


def place_of(peer: str) -> RemoteAddress | None:
    """The other end of a call in the words of gRPC; None for one without an address.

    Example:
        >>> place_of("ipv4:127.0.0.1:5000"), place_of("ipv6:%5Bfe80::1%25eth0%5D:80")
        (RemoteAddress(host='127.0.0.1', port=5000), RemoteAddress(host='fe80::1', port=80))
        >>> place_of("unix:/run/broker")
    """
    kind, _, rest = unquote(peer).partition(":")
    host, _, port = rest.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    return RemoteAddress(_canonical(host.strip("[]")), int(port))


def _canonical(host: str) -> str:
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address)


def _connections(port: int, ended: frozenset[RemoteAddress] = frozenset()) -> list[RemoteAddress]:
    """Connections of this process that came to a port; of these, some are ended.

    No file is duplicated and closed here: a process that closes a second handle of a file gives
    back its locks of that file (fcntl(2)), and SQLite's would be among them. So a connection that
    is made while another one with its number ends can be ended instead; its client calls again.
    """
    found: list[RemoteAddress] = []
    for file in Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):  # it is no socket, or was closed meanwhile
            each = socket.socket(fileno=int(file.name))
            try:
                place = _caller_to(each, port)
                if place is not None:
                    found.append(place)
                    if place in ended:
                        each.shutdown(socket.SHUT_RDWR)
            finally:
                each.detach()
    return found


def _caller_to(connection: socket.socket, port: int) -> RemoteAddress | None:
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    if connection.getsockname()[1] != port:
        return None
    # Raises OSError for one that listens.
    host, its_port = connection.getpeername()[:2]
    return RemoteAddress(_canonical(host), its_port)


def take_files(connections_max: int) -> int:
    """Lets this process have as many open files as it may; how many connections that is room for.

    Args:
        connections_max: More are not wanted.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return connections_max
    return max(1, min(connections_max, soft - FILES_RESERVED))
