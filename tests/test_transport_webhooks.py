"""Webhooks: signatures, attempts, dead letters, and addresses that may not be reached."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

import httpx

from flooding import Publish, flooding
from pathcast.errors import PeerRefusedError, UnavailableError
from pathcast.transport.carrier import Carrier
from pathcast.transport.dead_letters import DeadLetter
from pathcast.transport.disk import Disk, Waiting
from pathcast.transport.inbox_bounds import InboxBounds
from pathcast.transport.process import running
from pathcast.transport.settings import BrokerSettings
from pathcast.transport.webhooks import (
    ATTEMPTS_MAX,
    Webhook,
    WebhookSender,
    checked_address,
    post_inbox,
    signature,
)
from pathcast_lab.sim.memory_streams import MemoryNetwork
from patience import PATIENCE_SECONDS, eventually

DELIVERY = Waiting(1, "s1\t1\tb1\t7\t3", b"<hit/>")
SECRET = b"shared"


def resolving(*answers: Sequence[str]) -> Callable[[str, int], object]:
    """A resolver that gives these answers in turn, and the last for ever."""
    given = list(answers)

    async def look_up(host: str, port: int) -> Sequence[str]:
        return given.pop(0) if len(given) > 1 else given[0]

    return look_up


def sent(statuses: Sequence[int], url: str = "https://hook.example/in?x=1") -> tuple[object, list]:  # type: ignore
    """What `send` says, and the requests that were made, for these answers in turn."""
    requests = []
    answers = list(statuses)

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(answers.pop(0), headers={"Location": "http://169.254.169.254/latest"})

    async def main() -> object:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            hook = Webhook(url, SECRET)
            sender = WebhookSender(hook, client, resolving(["93.184.216.34"]), 0.001)  # type: ignore
            return await sender.send(DELIVERY)

    return asyncio.run(main()), requests


def test_a_delivery_is_signed_and_goes_to_the_address_that_was_checked() -> None:
    result, (request,) = sent([204])
    assert result is None
    assert str(request.url) == "https://93.184.216.34/in?x=1"
    assert request.headers["Host"] == "hook.example"
    assert request.extensions["sni_hostname"] == "hook.example"
    stamp = request.headers["Pathcast-Timestamp"]
    assert abs(int(stamp) - time.time()) < 60
    expected = signature(SECRET, stamp, request.content)
    assert hmac.compare_digest(request.headers["Pathcast-Signature"], expected)
    assert signature(SECRET, str(int(stamp) + 1), request.content) != expected
    assert request.headers["Pathcast-Delivery"] == r"s1\t1\tb1\t7\t3"


def test_what_may_pass_is_tried_again_and_what_will_not_is_a_dead_letter() -> None:
    result, requests = sent([503, 429, 200])
    assert (result, len(requests)) == (None, 3)
    result, requests = sent([410])
    assert (result, len(requests)) == ("the answer was 410", 1)
    result, requests = sent([500] * ATTEMPTS_MAX)
    assert result == f"the answer was 500, after {ATTEMPTS_MAX} attempts"
    assert len(requests) == ATTEMPTS_MAX


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    result, requests = sent([status])
    assert (result, len(requests)) == (f"the answer was {status}", 1)


INSIDE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1%eth0",
    "fc00::1",
    "::ffff:10.0.0.1",
]


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_are_refused_even_beside_a_public_one(address: str) -> None:
    hook = Webhook("https://hook.example/", SECRET)
    for answer in ([address], ["93.184.216.34", address]):
        with pytest.raises(PeerRefusedError, match="not public"):
            asyncio.run(checked_address(hook, resolving(answer)))  # type: ignore


@pytest.mark.parametrize(
    "url", ["ftp://hook.example/", "file:///etc/passwd", "https://", "https://ann:pw@h/", "\x00"]
)
def test_what_is_no_webhook_is_refused(url: str) -> None:
    with pytest.raises(PeerRefusedError, match="no webhook"):
        asyncio.run(checked_address(Webhook(url, SECRET), resolving(["93.184.216.34"])))  # type: ignore


def test_a_number_as_host_is_looked_at_like_a_name() -> None:
    # Names and numbers go through the resolver: 2130706433 and 0x7f.1 are 127.0.0.1 to it.
    for host in ("127.0.0.1", "[::1]", "2130706433", "0x7f.1"):
        with pytest.raises((PeerRefusedError, UnavailableError)):
            asyncio.run(checked_address(Webhook(f"http://{host}/", SECRET)))


def test_a_name_that_resolves_to_something_else_later_is_refused_then() -> None:
    reached = []

    def answer(request: httpx.Request) -> httpx.Response:
        reached.append(request.url.host)
        return httpx.Response(503)

    async def main() -> object:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            look_up = resolving(["93.184.216.34"], ["127.0.0.1"])
            hook = Webhook("http://hook.example/", SECRET)
            return await WebhookSender(hook, client, look_up, 0.001).send(DELIVERY)  # type: ignore

    assert "not public" in str(asyncio.run(main()))
    assert reached == ["93.184.216.34"]


def test_the_operator_can_allow_a_network() -> None:
    hook = Webhook("http://inside/", SECRET, (ipaddress.ip_network("10.1.0.0/16"),))
    _, address = asyncio.run(checked_address(hook, resolving(["10.1.2.3"])))  # type: ignore
    assert address == "10.1.2.3"
    with pytest.raises(PeerRefusedError):
        asyncio.run(checked_address(hook, resolving(["10.2.0.1"])))  # type: ignore


def test_an_inbox_is_posted_in_order_and_dead_letters_are_kept() -> None:
    async def main() -> None:
        taken: list[bytes] = []

        def answer(request: httpx.Request) -> httpx.Response:
            if request.content == b"bad":
                return httpx.Response(400)
            taken.append(request.content)
            return httpx.Response(200)

        network = MemoryNetwork()
        carrier = Carrier("a", flooding("a", []), Disk(None), network.dial_from("a"))
        await carrier.start()
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            look_up = resolving(["93.184.216.34"])
            sender = WebhookSender(Webhook("http://hook.example/", SECRET), client, look_up)  # type: ignore
            task = asyncio.create_task(post_inbox(carrier, "reader", sender))
            for number, body in enumerate([b"one", b"bad", b"two"]):
                await carrier.submit("p", [Publish(f"m{number}", body)])
            await eventually(lambda: carrier.disk.cursor("reader") >= 3)
            task.cancel()
        assert taken == [b"one", b"two"]
        (letter,) = carrier.disk.dead_letters()
        assert letter == DeadLetter("reader", 2, "m1", b"bad", "the answer was 400")
        await carrier.stop()

    asyncio.run(main())


def test_a_client_of_a_broker_has_its_deliveries_posted(tmp_path: Path) -> None:
    async def main() -> None:
        got: asyncio.Queue[bytes] = asyncio.Queue()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            got.put_nowait(await reader.readexactly(length))
            writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        settings = BrokerSettings(
            broker={"name": "b", "directory": tmp_path / "b"},  # type: ignore[arg-type]
            clients=[  # type: ignore[arg-type]
                {
                    "name": "reader",
                    "webhook": f"http://127.0.0.1:{port}/in",
                    "webhook_secret": "shared",
                    "webhook_networks": ["127.0.0.0/8"],
                }
            ],
        )
        async with running(settings, flooding("b", [])) as carrier:
            await carrier.submit("p", [Publish("m", b"<hit/>")])
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await got.get() == b"<hit/>"
        server.close()

    asyncio.run(main())


def test_dead_letters_are_posted_again_behind_what_waits_or_dropped() -> None:
    """With the ids that they had; while there is no room for another one nothing is posted."""

    async def main() -> None:
        taken: list[str] = []
        refused = {b"bad0", b"bad1", b"bad2", b"bad3"}

        def answer(request: httpx.Request) -> httpx.Response:
            if request.content in refused:
                return httpx.Response(400)
            taken.append(request.headers["Pathcast-Delivery"])
            return httpx.Response(200)

        network = MemoryNetwork()
        disk = Disk(None, InboxBounds(deliveries_max=5, dead_letters_max=3))
        carrier = Carrier("a", flooding("a", []), disk, network.dial_from("a"))
        await carrier.start()

        async def until(cursor: int) -> None:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while disk.cursor("reader") < cursor:
                    await asyncio.sleep(0.01)

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            look_up = resolving(["93.184.216.34"])
            sender = WebhookSender(Webhook("http://hook.example/", SECRET), client, look_up)  # type: ignore
            task = asyncio.create_task(post_inbox(carrier, "reader", sender))
            for number in range(4):
                await carrier.submit("p", [Publish(f"m{number}", b"bad%d" % number)])
            await carrier.submit("p", [Publish("m4", b"good")])
            await until(3)
            await asyncio.sleep(0.1)
            assert (disk.cursor("reader"), taken) == (3, [])
            assert disk.dead_letter_counts() == {"reader": 3}
            assert await carrier.settle_letters("drop", "reader", [2, 99]) == 1
            await until(5)
            assert taken == ["m4"]
            assert [each.position for each in disk.dead_letters()] == [1, 3, 4]
            assert disk.dead_letters(("reader", 1), 1) == [
                DeadLetter("reader", 3, "m2", b"bad2", "the answer was 400")
            ]
            refused.remove(b"bad2")
            assert await carrier.settle_letters("retry", "reader", [4, 3, 3]) == 2
            await until(7)
            assert taken == ["m4", "m2"]
            assert [each[:3] for each in disk.dead_letters()] == [
                ("reader", 1, "m0"),
                ("reader", 7, "m3"),
            ]
            # A double of one that was taken up is still known.
            assert disk.commit({}, [("reader", "m2", b"bad2")]) == {}
            task.cancel()
        # Where the inbox has no room, what does not fit stays a dead letter.
        disk.commit({}, [("reader", f"n{number}", b"x") for number in range(4)])
        assert disk.retry_letters("reader", [1, 7]) == 1
        assert [each.position for each in disk.dead_letters()] == [7]
        assert disk.retry_letters("reader", [7]) == 0
        assert [each.delivery_id for each in disk.waiting("reader", 0, 99)] == [
            *(f"n{number}" for number in range(4)),
            "m0",
        ]
        assert disk.inboxes()["reader"].dropped == 0
        await carrier.stop()

    asyncio.run(main())
