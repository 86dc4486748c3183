"""A broker process: a carrier that listens, until somebody wants it to end.

At SIGHUP it reads its settings again (`reread`).

The operator of the machine speaks to it at a port of loopback with a token that is made anew for
each life of the process; both are in the file `control` of its directory, which only its owner can
read.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from pathcast.errors import UnavailableError
from pathcast.overlay.deliveries import OPERATOR
from pathcast.transport.carrier import Carrier, NodeAdapter
from pathcast.transport.carrier_metrics import CarrierWatch
from pathcast.transport.client import BrokerClient
from pathcast.transport.connection import ByteStream
from pathcast.transport.contacts import Contacts
from pathcast.transport.disk import Disk
from pathcast.transport.endings import has_ended
from pathcast.transport.frames import Codec
from pathcast.transport.grpc_streams import Address, open_stream
from pathcast.transport.monitor import Monitor, monitored
from pathcast.transport.reread import Admission, LiveSettings, WebhookPosts, rereading
from pathcast.transport.security import Authenticator, KnownCaller
from pathcast.transport.service import GuardedMethods, Service, listen
from pathcast.transport.settings import BrokerSettings, secret_of
from pathcast.transport.starting import Starting
from pathcast.transport.watching import Watch, improving, watching

CONTROL: Final = "control"
STOP_SECONDS: Final = 2.0

GARBAGE_THRESHOLDS: Final = (10_000, 50, 1_000)
"""Of Python's collector: a pass over all objects of 100,000 profiles holds messages up for some
tenths of a second, and finds next to nothing; young objects are looked at as ever."""


SWITCH_SECONDS: Final = 0.0001
"""For how long a thread keeps the interpreter that another one waits for. With Python's 5 ms the
event loop would be so late after each wait for the disk, and the disk after each call of it."""


class Control(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file `control` of a directory: how to reach the process that has it.

    Attributes:
        name: Of the broker.
        process: Its process id.
        listen: HOST:PORT where it listens.
        control: HOST:PORT for its operator.
        token: That the operator has to give.
        is_starting: Whether the node is still made from what it keeps; only its operator is
            answered until then.
    """

    name: str
    process: int
    listen: str
    control: str
    token: str
    is_starting: bool = False


@dataclass(frozen=True)
class Discovery:
    """How a process finds others of its kind that its settings do not name.

    Attributes:
        token: That they give each other; None: certificates say who they are.
        known: Name -> HOST:PORT of those that it is told of.
        address: HOST:PORT where they call it; None: where it listens.
    """

    token: str | None
    known: Mapping[str, str]
    address: str | None = None


Locate = Callable[[Address], Awaitable[Address]]
"""Where a neighbour is now, of which the settings know where it was."""


Reread = Callable[[], BrokerSettings]
"""Reads the settings of a process again; raises ConfigError."""


async def _as_told(address: Address) -> Address:
    return address


@contextlib.asynccontextmanager
async def running(
    settings: BrokerSettings,
    kind: NodeAdapter[Any],
    *,
    disk: Disk | None = None,
    locate: Locate = _as_told,
    beside: Sequence[GuardedMethods] = (),
    reread: Reread | None = None,
    listening: Mapping[str, str] | None = None,
    discovery: Discovery | None = None,
    monitor: Monitor | None = None,
    is_new: bool | None = None,
    check: Callable[[], None] = lambda: None,
) -> AsyncIterator[Carrier]:
    """A broker that is ready; it is stopped gracefully at the end.

    It listens before that, while its node is made from what it keeps: the operator is told how far
    it is, others that they are to try again (`broker.starting`).

    Args:
        settings: What it is told.
        kind: Its node.
        disk: Its directory, if it is open already.
        locate: Says where neighbours are that move.
        beside: What else is offered where it listens.
        reread: Reads the settings again, at SIGHUP.
        listening: Where neighbours listen, HOST:PORT; their end is noticed at once. None: nobody
            looks.
        discovery: How it finds others; None: it knows all.
        monitor: Shows the broker to monitoring; None: nobody looks.
        is_new: Whether its directory must have no database yet (True), must have one (False), or
            either (None).
        check: As of `Carrier`.

    Raises:
        ConfigError: It cannot listen there.
        DiskError: Its directory cannot be had.
    """
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    sys.setswitchinterval(SWITCH_SECONDS)
    name, addresses = settings.broker.name, settings.addresses

    async def dial(peer: str) -> ByteStream:
        return await open_stream(name, await locate(addresses[peer]))

    places = dict(listening or {})

    async def find_out(peer: str) -> bool:
        return listening is not None and peer in places and await has_ended(places[peer])

    starting = Starting(name)
    anybody = None if discovery is None else KnownCaller("", discovery.token)
    gate = Authenticator(
        settings.peers, with_certificates=settings.tls is not None, anybody=anybody
    )
    contacts = None
    if discovery is not None:
        contacts = _contacts(starting, gate, settings, discovery, addresses, places)
    token = secrets.token_urlsafe(24)
    operator = KnownCaller(OPERATOR, token, frozenset({"publish", "subscribe", "operate"}))
    path = settings.broker.directory / CONTROL
    async with contextlib.AsyncExitStack() as stack:
        section = settings.broker
        kept = disk or Disk(section.directory, section.inbox_bounds, name=name, is_new=is_new)
        closing = stack.enter_context(contextlib.ExitStack())
        closing.callback(kept.close)
        services = [Service(starting, gate), *beside, *([] if contacts is None else [contacts])]
        admission = Admission(services, settings.certificates)
        outside = await listen(
            services,
            settings.broker.listen,
            admission.certificates,
            allow_plain=settings.broker.allow_plain,
            bounds=settings.broker.connection_bounds,
        )
        stack.push_async_callback(outside.stop, STOP_SECONDS)
        inside = await listen(
            [Service(starting, Authenticator([operator], with_certificates=False))], "127.0.0.1:0"
        )
        stack.push_async_callback(inside.stop, STOP_SECONDS)
        host = settings.broker.listen.rpartition(":")[0]
        control = Control(
            name,
            os.getpid(),
            f"{host}:{outside.port}",
            f"127.0.0.1:{inside.port}",
            token,
            is_starting=True,
        )
        stack.callback(_remove_control, settings.broker.directory)
        _write_control(path, control)
        with contextlib.nullcontext() if monitor is None else monitor.watching(starting):
            carrier = await asyncio.to_thread(
                Carrier,
                name,
                kind,
                kept,
                dial,
                backlog_max=settings.broker.backlog_max,
                has_ended=find_out,
                counted=starting.counted,
                check=check,
            )
        closing.pop_all()
        stack.push_async_callback(carrier.stop)
        await carrier.start(list(addresses))
        starting.end(carrier)
        posts = WebhookPosts(carrier)
        stack.push_async_callback(posts.close)
        await posts.set(settings.webhooks)
        live = LiveSettings(settings, carrier, admission, addresses, posts)
        await stack.enter_async_context(rereading(name, settings, reread, live.take_up))
        _write_control(path, msgspec.structs.replace(control, is_starting=False))
        watch = Watch(name, lambda: live.certificates, lambda: kind.fullness(carrier.node))
        await stack.enter_async_context(watching(watch))
        pause = settings.broker.table_review_seconds
        stack.push_async_callback(carrier.improve, is_last=True)
        await stack.enter_async_context(improving(carrier.improve, pause))
        if contacts is not None and discovery is not None:
            mine = discovery.address or control.listen
            await stack.enter_async_context(contacts.greeting(mine, discovery.known))
        if monitor is not None:
            shown = CarrierWatch(carrier, [each.meters for each in services])
            stack.enter_context(monitor.watching(shown))
        yield carrier


def _contacts(
    starting: Starting,
    gate: Authenticator,
    settings: BrokerSettings,
    discovery: Discovery,
    addresses: dict[str, Address],
    places: dict[str, str],
) -> Contacts:
    """Finds others; of two, the one with the lesser name calls."""
    tokens = {each.name: secret_of(each.token) for each in settings.neighbours}

    def address(peer: str, target: str) -> Address:
        token = tokens.get(peer, discovery.token)
        return Address(peer, target, token, settings.certificates, settings.broker.allow_plain)

    def take_up(peer: str, target: str) -> None:
        carrier = starting.carrier
        places[peer] = target
        if carrier.name < peer:
            addresses[peer] = address(peer, target)
            carrier.neighbours.connect([peer])

    return Contacts(starting.name, gate, settings.broker.directory, address, take_up)


async def run_broker(
    settings: BrokerSettings,
    kind: NodeAdapter[Any],
    ready: Callable[[str], None] = lambda _: None,
    reread: Reread | None = None,
    listening: Mapping[str, str] | None = None,
    discovery: Discovery | None = None,
    *,
    is_new: bool | None = False,
) -> None:
    """Runs a broker until SIGTERM or Ctrl-C.

    Args:
        settings: What it is told.
        kind: Its node.
        ready: Called with the address where it listens, as soon as it does.
        reread: Reads the settings again, at SIGHUP.
        listening: As of `running`.
        discovery: As of `running`.
        is_new: As of `running`.

    Raises:
        ConfigError: It cannot listen there.
        DiskError: Its directory cannot be had, or it could not keep what it was told.
        PeerRefusedError: Another process of its name began later.
    """
    async with (
        monitored(settings.broker.metrics) as monitor,
        running(
            settings,
            kind,
            reread=reread,
            listening=listening,
            discovery=discovery,
            monitor=monitor,
            is_new=is_new,
        ) as carrier,
    ):
        ready(read_control(settings.broker.directory).listen)
        await until_ended(carrier.run)


async def until_ended(*runs: Callable[[], Awaitable[None]]) -> None:
    """Returns at SIGTERM or Ctrl-C, or when one of these returns.

    Raises:
        Exception: What one of them ended with.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    tasks = [asyncio.ensure_future(each) for each in (ended.wait(), *(run() for run in runs))]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


def read_control(directory: Path) -> Control:
    """How to reach the process of a directory.

    Raises:
        UnavailableError: None is running there.
    """
    try:
        return msgspec.json.decode((directory / CONTROL).read_bytes(), type=Control)
    except (OSError, msgspec.DecodeError) as error:
        raise UnavailableError(
            "peer.unreachable", name=directory.name, reason=f"no broker runs in {directory}"
        ) from error


def operator_of(directory: Path, codec: Codec) -> BrokerClient:
    """A client with which the operator speaks to the process of a directory.

    Raises:
        UnavailableError: None is running there.
    """
    control = read_control(directory)
    address = Address(control.name, control.control, control.token)
    return BrokerClient(OPERATOR, address, codec)


def _write_control(path: Path, control: Control) -> None:
    """Others find the file as it was before, or as it is now."""
    new = path.with_name(f"{CONTROL}.new")
    new.unlink(missing_ok=True)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(control))
    new.replace(path)


def _remove_control(directory: Path) -> None:
    """Of this process; another one may have taken the directory over."""
    with contextlib.suppress(UnavailableError):
        if read_control(directory).process == os.getpid():
            (directory / CONTROL).unlink(missing_ok=True)
