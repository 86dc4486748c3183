"""Deliveries by webhook: an inbox posted to an address of the subscriber's, signed, in order.

Each delivery is one POST with these headers; the receiver checks the signature over the time stamp,
a dot and the body, refuses time stamps of long ago, and takes each id once:

    Pathcast-Delivery: ID
    Pathcast-Timestamp: SECONDS
    Pathcast-Signature: sha256=HEX

An answer of 2xx acknowledges; 408, 425, 429 and 5xx, and no answer, are tried again with pauses
that double; anything else, and what was tried too often, is a dead letter, and the next is sent
(`pathcast.transport.dead_letters`).

The address is the subscriber's choice, so it is not trusted: it is resolved here, every address
that it resolves to has to be a public one unless the operator allows its network, the connection
goes to exactly the address that was checked, and redirects are not followed. So neither a name that
resolves to something else the second time nor a redirect reaches into the operator's network.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import random
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pathcast.errors import PeerRefusedError, UnavailableError
from pathcast.transport.disk import Waiting
from pathcast.transport.events import log_event

if TYPE_CHECKING:
    import httpx

    from pathcast.transport.carrier import Carrier


Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""IP addresses of a host."""

ATTEMPTS_MAX: Final = 8
PAUSE_SECONDS: Final = 0.5
PAUSE_SECONDS_MAX: Final = 300.0
ANSWER_SECONDS: Final = 10.0
ROOM_SECONDS: Final = 1.0
"""Pause before it is seen anew whether there is room for a dead letter."""

_AGAIN: Final = frozenset({408, 425, 429})


@dataclass(frozen=True)
class Webhook:
    """Where the deliveries of a subscriber go.

    Attributes:
        url: http or https.
        secret: That both know; signs.
        allowed: Networks that are not public, and allowed all the same.
    """

    url: str
    secret: bytes = field(repr=False)
    allowed: tuple[Network, ...] = ()


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """The value of `Pathcast-Signature`; a receiver compares with `hmac.compare_digest`.

    Example:
        >>> signature(b"secret", "1700000000", b"<a/>")[:20]
        'sha256=af9750a1961c7'
    """
    digest = hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


async def resolve(host: str, port: int) -> Sequence[str]:
    """All IP addresses of a host, by the system's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def is_allowed(address: str, allowed: Sequence[Network]) -> bool:
    """Whether deliveries may be posted to an IP address.

    Example:
        >>> [is_allowed(each, ()) for each in ("8.8.8.8", "10.0.0.1", "::1", "::ffff:127.0.0.1")]
        [True, False, False, False]
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if any(ip.version == network.version and ip in network for network in allowed):
        return True
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


async def checked_address(hook: Webhook, look_up: Resolve = resolve) -> tuple[httpx.URL, str]:
    """The URL of a webhook, and the one IP address that is connected to.

    Raises:
        PeerRefusedError: It may not be posted to; no other address of it is tried.
        UnavailableError: It cannot be resolved now.
    """
    import httpx  # with its client a tenth of a second, which a node without webhooks does not pay

    try:
        url = httpx.URL(hook.url)
    except httpx.InvalidURL as error:
        raise _refused(hook, str(error)) from error
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise _refused(hook, "http or https, a host and no password are expected")
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        addresses = await look_up(url.host, port)
    except OSError as error:
        reason = f"{url.host} cannot be resolved"
        raise UnavailableError("peer.unreachable", name=url.host, reason=reason) from error
    for address in addresses:
        if not is_allowed(address, hook.allowed):
            raise _refused(hook, f"{address} is not public, and not among the networks allowed")
    if not addresses:
        raise UnavailableError("peer.unreachable", name=url.host, reason="it has no address")
    return url, addresses[0]


def _refused(hook: Webhook, reason: str) -> PeerRefusedError:
    return PeerRefusedError("peer.refused", name=hook.url, reason=f"no webhook: {reason}")


async def post_inbox(carrier: Carrier, subscriber: str, sender: WebhookSender) -> None:
    """Posts what comes into an inbox, in order, for as long as it is not cancelled.

    What was posted and not yet acknowledged when the process ended is posted again, with its id.

    Args:
        carrier: Whose inboxes.
        subscriber: Whose inbox.
        sender: Posts it.
    """
    disk = carrier.disk
    with carrier.listening(subscriber) as arrivals:
        while True:
            after = await carrier.on_disk(disk.cursor, subscriber)
            found = await carrier.inbox(subscriber, after, arrivals, 256)
            if not found:
                await arrivals.wait()
            for delivery in found:
                reason = await sender.send(delivery)
                if reason is None:
                    carrier.acknowledge(subscriber, delivery.position)
                    await carrier.kept()
                else:
                    log_event("webhook.refused", subscriber=subscriber, reason=reason)
                    await _set_aside(carrier, subscriber, delivery, reason)


async def _set_aside(carrier: Carrier, subscriber: str, delivery: Waiting, reason: str) -> None:
    """Returns when there was room for a dead letter."""
    is_said = False
    while not await carrier.on_disk(carrier.disk.set_aside, subscriber, delivery, reason):
        if not is_said:
            log_event("webhook.stopped", subscriber=subscriber)
            is_said = True
        await asyncio.sleep(ROOM_SECONDS)


class WebhookSender:
    """Posts deliveries of one subscriber, one after the other.

    Args:
        hook: Where to.
        client: Connections are kept in; with `follow_redirects` off, as it is.
        look_up: Resolves names.
        pause_seconds: Before the second attempt.
    """

    def __init__(
        self,
        hook: Webhook,
        client: httpx.AsyncClient,
        look_up: Resolve = resolve,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._hook = hook
        self._client = client
        self._look_up = look_up
        self._pause = pause_seconds

    async def send(self, delivery: Waiting) -> str | None:
        """Posts a delivery until it is taken, refused, or was tried too often.

        Returns:
            None if it was taken; otherwise why it is a dead letter.
        """
        import httpx

        pause = self._pause
        reason = ""
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, PAUSE_SECONDS_MAX)
            try:
                status = await self._post(delivery)
            except PeerRefusedError as error:
                return error.message
            except (UnavailableError, httpx.HTTPError) as error:
                reason = str(error) or type(error).__name__
                continue
            if 200 <= status < 300:
                return None
            reason = f"the answer was {status}"
            if status < 500 and status not in _AGAIN:
                return reason
        return f"{reason}, after {ATTEMPTS_MAX} attempts"

    async def _post(self, delivery: Waiting) -> int:
        # Checked anew each time, and connected to by number: what is checked is what is reached.
        url, address = await checked_address(self._hook, self._look_up)
        timestamp = str(int(time.time()))
        response = await self._client.post(
            url.copy_with(host=address),
            content=delivery.body,
            headers={
                "Host": url.netloc.decode("ascii"),
                "Content-Type": "application/octet-stream",
                "Pathcast-Delivery": delivery.delivery_id.encode("unicode_escape").decode(),
                "Pathcast-Timestamp": timestamp,
                "Pathcast-Signature": signature(self._hook.secret, timestamp, delivery.body),
            },
            # The certificate is the host's, not its number's.
            extensions={"sni_hostname": url.host},
            timeout=ANSWER_SECONDS,
            follow_redirects=False,
        )
        return response.status_code
