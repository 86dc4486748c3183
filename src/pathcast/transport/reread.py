"""Settings that change while a process runs: at SIGHUP it reads its file again.

Clients with their tokens, roles and webhooks, neighbours with their tokens and addresses, and
certificates count from then on. Of all else the log says that it counts when the process is started
anew. A file with a fault changes nothing, and the log says which.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel

from pathcast.errors import PathcastError
from pathcast.settings import FileSettings
from pathcast.transport.carrier import Carrier
from pathcast.transport.events import log_event, reason_of
from pathcast.transport.grpc_streams import Address
from pathcast.transport.security import Authenticator, Certificates, KnownCaller, ServerCertificates
from pathcast.transport.service import GuardedMethods
from pathcast.transport.settings import BrokerSettings
from pathcast.transport.webhooks import Webhook, WebhookSender, post_inbox

if TYPE_CHECKING:
    import httpx

S = TypeVar("S", bound=FileSettings)

LIVE: Final = frozenset({"clients", "neighbours", "tls"})
"""Sections of a file that count as soon as they have been read again."""


class Admission:
    """The callers that a process admits, and the certificates with which it listens.

    Args:
        services: What it offers, each with the gate that admits to it.
        certificates: Its own; None for plain text.

    Raises:
        ConfigError: The certificates cannot be used.
    """

    def __init__(
        self, services: Sequence[GuardedMethods], certificates: Certificates | None
    ) -> None:
        self._services = services
        self.certificates = None if certificates is None else ServerCertificates(certificates)

    def take_up(self, peers: Iterable[KnownCaller], certificates: Certificates | None) -> None:
        """Other callers, whose calls end if they may do less than before; other certificates.

        Raises:
            ConfigError: The certificates cannot be used; nothing has changed then. Those of a
                process that listens without any are not looked at.
        """
        if self.certificates is not None and certificates is not None:
            self.certificates.take_up(certificates)
        allowed = list(peers)
        gates: list[Authenticator] = []
        for service in self._services:
            if service.gate not in gates:
                gates.append(service.gate)
        gone = {name for gate in gates for name in gate.replace(allowed)}
        for service in self._services:
            service.end_calls(gone)


class WebhookPosts:
    """Posts the inboxes of clients that have a webhook.

    Args:
        carrier: The node with the inboxes.
    """

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._client: httpx.AsyncClient | None = None
        self._tasks: dict[str, tuple[Webhook, asyncio.Task[None]]] = {}

    async def set(self, hooks: Mapping[str, Webhook]) -> None:
        """From now on these are posted to: subscriber -> webhook."""
        changed = [name for name, (hook, _) in self._tasks.items() if hooks.get(name) != hook]
        ended = [self._tasks.pop(name)[1] for name in changed]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        if hooks and self._client is None:
            import httpx

            self._client = httpx.AsyncClient()
        for name, hook in hooks.items():
            if name not in self._tasks:
                assert self._client is not None
                sender = WebhookSender(hook, self._client)
                task = asyncio.create_task(post_inbox(self._carrier, name, sender))
                self._tasks[name] = hook, task

    async def close(self) -> None:
        """Nothing is posted any more."""
        await self.set({})
        if self._client is not None:
            await self._client.aclose()


class LiveSettings:
    """The settings of a node's process as they count now.

    Args:
        settings: With which it began.
        carrier: Its node.
        admission: Who may call it.
        addresses: Neighbours that it calls; changed in place.
        posts: Its webhooks.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        carrier: Carrier,
        admission: Admission,
        addresses: dict[str, Address],
        posts: WebhookPosts,
    ) -> None:
        self._begun_with = settings
        self._now = settings
        self._carrier = carrier
        self._admission = admission
        self._addresses = addresses
        self._posts = posts

    @property
    def certificates(self) -> Certificates | None:
        """Certificates of the process."""
        return self._now.certificates

    async def take_up(self, settings: BrokerSettings) -> None:
        """Changes what can be changed, and says the rest.

        Raises:
            ConfigError: The new settings cannot be used; nothing has changed then.
        """
        name, before = self._carrier.name, self._now
        self._admission.take_up(settings.peers, settings.certificates)
        self._now = settings
        await self._posts.set(settings.webhooks)
        await self._take_up_neighbours(before, settings)
        tell_changes(name, self._begun_with, before, settings)

    async def _take_up_neighbours(self, before: BrokerSettings, now: BrokerSettings) -> None:
        known = {each.name for each in before.neighbours}
        named = {each.name for each in now.neighbours}
        for peer in sorted(known - named):
            self._addresses.pop(peer, None)
            await self._carrier.neighbours.disconnect(peer)
        for peer in sorted(known & named):
            if peer not in now.addresses and self._addresses.pop(peer, None) is not None:
                await self._carrier.neighbours.disconnect(peer)
        self._addresses.update(now.addresses)
        for peer, cost in sorted(now.costs.items()):
            if before.costs.get(peer) != cost:
                self._carrier.set_link(peer, cost)
        self._carrier.neighbours.connect(now.addresses)


def tell_changes(name: str, begun_with: S, before: S, now: S) -> None:
    """Logs which settings count from now on, and which when the process is started anew.

    Args:
        name: Of the process.
        begun_with: The settings with which it began.
        before: Those that counted until now.
        now: Those that have been read.
    """
    if restart := sorted(_fixed_keys(begun_with, now)):
        log_event("settings.restart", name=name, keys=", ".join(restart))
    live = sorted(LIVE & type(now).model_fields.keys())
    changed = [key for key in live if getattr(before, key) != getattr(now, key)]
    told = ", ".join(changed) or f"of {', '.join(live)} nothing has changed"
    log_event("settings.taken", name=name, changed=told)


def _fixed_keys(begun_with: FileSettings, now: FileSettings) -> Iterator[str]:
    """Keys that have other values than those that the process began with, and cannot change."""
    for section in type(now).model_fields.keys() - LIVE:
        yield from _changed_keys(section, getattr(begun_with, section), getattr(now, section))
    if (getattr(begun_with, "tls", None) is None) != (getattr(now, "tls", None) is None):
        yield "tls"
    old = {each.name: each for each in getattr(begun_with, "neighbours", ())}
    for each in getattr(now, "neighbours", ()):
        was = old.get(each.name)
        for key in ("projection", "format"):
            if was is not None and getattr(was, key) != getattr(each, key):
                yield f"neighbours.{each.name}.{key}"


def _changed_keys(section: str, before: BaseModel | None, now: BaseModel | None) -> Iterator[str]:
    if before is None or now is None:
        if before is not now:
            yield section
        return
    for key in type(now).model_fields:
        if getattr(before, key) != getattr(now, key):
            yield f"{section}.{key}"


@contextlib.asynccontextmanager
async def rereading(
    name: str,
    begun_with: S,
    reread: Callable[[], S] | None,
    take_up: Callable[[S], Awaitable[None]],
) -> AsyncIterator[None]:
    """At every SIGHUP meanwhile settings are read again, and once at the beginning.

    Args:
        name: Of the process.
        begun_with: The settings as they were read first.
        reread: Reads them again, and raises ConfigError; None: they do not change.
        take_up: Changes what can be changed, and raises ConfigError where nothing was.
    """
    if reread is None:
        yield
        return
    # The file may have changed between its first reading and now.
    asked = asyncio.Event()
    asked.set()

    async def follow() -> None:
        is_first = True
        while True:
            await asked.wait()
            asked.clear()
            try:
                found = reread()
                if not is_first or found != begun_with:
                    await take_up(found)
            except PathcastError as error:
                log_event("settings.refused", name=name, **reason_of(error))
            except Exception as error:
                log_event("settings.refused", exc_info=True, name=name, reason=repr(error))
            is_first = False

    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGHUP)
    loop.add_signal_handler(signal.SIGHUP, asked.set)
    following = asyncio.create_task(follow())
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        # Without it the signal would end a process that waits for its turn to run again.
        signal.signal(signal.SIGHUP, before)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
