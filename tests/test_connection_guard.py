"""Callers that hold more than their share: idle connections, calls, bytes of unfinished calls.

If these fail, somebody who knows an address, or one client, keeps clients, neighbours and the
operator of a broker out, or takes its memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

import grpc.aio

from flooding import CODEC, Count, Publish, flooding
from pathcast.errors import FrameError, PathcastError, UnavailableError
from pathcast.transport.client import BrokerClient
from pathcast.transport.connection_guard import ConnectionBounds, RemoteAddress, place_of, surplus
from pathcast.transport.database_file import DATABASE
from pathcast.transport.frames import ConnectionHello, encode_frame
from pathcast.transport.grpc_streams import SERVICE, Address, ClientStream, open_stream
from pathcast.transport.pieces import PIECE_BYTES
from pathcast.transport.process import operator_of, read_control, running
from pathcast.transport.security import Authenticator, KnownCaller
from pathcast.transport.service import GuardedMethods, listen
from pathcast.transport.settings import BrokerSettings
from patience import eventually

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""Of HTTP/2, with no settings: gRPC waits for calls over such a connection for ever."""


def settings_for(directory: Path, **broker: object) -> BrokerSettings:
    return BrokerSettings(
        broker={"name": "b", "directory": directory / "b", **broker},  # type: ignore[arg-type]
        neighbours=({"name": "a"},),  # type: ignore[arg-type]
        clients=({"name": "ann"}, {"name": "bob"}),  # type: ignore[arg-type]
    )


def address_of(settings: BrokerSettings) -> Address:
    return Address("b", read_control(settings.broker.directory).listen)


@contextlib.contextmanager
def idle_connections(target: str, count: int) -> Iterator[list[socket.socket]]:
    """Every other one says that it speaks HTTP/2; none says anything else."""
    host, _, port = target.rpartition(":")
    with contextlib.ExitStack() as stack:
        opened: list[socket.socket] = []
        for number in range(count):
            each = stack.enter_context(socket.create_connection((host, int(port))))
            if number % 2:
                with contextlib.suppress(OSError):
                    each.sendall(PREFACE)
            opened.append(each)
        yield opened


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


async def all_get_in(settings: BrokerSettings) -> None:
    """A neighbour, a client and the operator."""

    async def neighbour() -> bool:
        stream = await open_stream("a", address_of(settings))
        await stream.send(encode_frame(ConnectionHello("a", 10)))
        answer = await stream.receive()
        await stream.close()
        return answer is not None

    async def client() -> bool:
        async with BrokerClient("ann", address_of(settings), CODEC) as ann:
            await ann.publish([Publish("m", b"x")])
        return True

    async def operator() -> bool:
        async with operator_of(settings.broker.directory, CODEC) as asked:
            return bool((await asked.status())["name"] == "b")

    for each in (neighbour, client, operator):
        await eventually(each)


async def idle_connections_keep_nobody_out(settings: BrokerSettings, count: int) -> None:
    bounds = settings.broker.connection_bounds
    async with running(settings, flooding("b", ["a"])):
        with idle_connections(address_of(settings).target, count) as opened:
            await all_get_in(settings)

            def few_are_left() -> bool:
                return sum(map(is_open, opened)) <= bounds.strangers_max // 4

            await eventually(few_are_left)
            await asyncio.to_thread(read_elsewhere, settings.broker.directory)
            await all_get_in(settings)


def read_elsewhere(directory: Path) -> None:
    """Another process closes the database; if no other has locks on it, it takes its log away."""
    read = """if True:
        import sqlite3, sys
        base = sqlite3.connect(sys.argv[1])
        print(base.execute("select count(*) from about").fetchone())
        base.close()
    """
    subprocess.run([sys.executable, "-c", read, str(directory / DATABASE)], check=True)
    assert (directory / f"{DATABASE}-wal").exists(), "the broker has lost its locks"


def test_idle_connections_keep_nobody_out(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, connections_max=96, strangers_max=16)
    asyncio.run(idle_connections_keep_nobody_out(settings, 300))


@pytest.mark.nightly
def test_three_thousand_idle_connections_keep_nobody_out(tmp_path: Path) -> None:
    asyncio.run(idle_connections_keep_nobody_out(settings_for(tmp_path), 3_000))


class Answering(GuardedMethods):
    """A method that answers with what it is asked."""

    METHOD = "/test/Answer"

    def __init__(self) -> None:
        super().__init__(Authenticator([KnownCaller("ann", "hers")], with_certificates=False))
        self.asked: list[bytes] = []
        self._offer_answer(self.METHOD, self._answer)

    async def _answer(self, data: bytes, context: Any) -> bytes:
        self.asked.append(data)
        return data


def test_a_connection_stays_once_a_call_over_it_was_admitted() -> None:
    """One whose calls are all refused is that of a stranger, and is ended in time."""

    async def main() -> None:
        bounds = ConnectionBounds(strangers_max=4, stranger_seconds=1.0)
        methods = Answering()
        listener = await listen([methods], "127.0.0.1:0", bounds=bounds)
        async with contextlib.AsyncExitStack() as stack:
            channels = {}
            for token in ("hers", "wrong"):
                address = Address("b", f"127.0.0.1:{listener.port}", token)
                channels[token] = await stack.enter_async_context(address.channel())

            async def call(token: str) -> bool:
                metadata = (("pathcast-name", "ann"), ("pathcast-token", token))
                try:
                    await channels[token].unary_unary(Answering.METHOD)(b"?", metadata=metadata)
                except grpc.aio.AioRpcError:
                    return False
                return True

            await eventually(lambda: call("hers"))
            assert not await call("wrong")
            assert methods.asked == [b"?"]
            await eventually(lambda: channels["wrong"].get_state().name != "READY")
            assert channels["hers"].get_state().name == "READY"
        await listener.stop(0)

    asyncio.run(main())


@contextlib.asynccontextmanager
async def a_broker(
    directory: Path, **broker: object
) -> AsyncIterator[tuple[BrokerSettings, Address]]:
    settings = settings_for(directory, **broker)
    async with running(settings, flooding("b", ["a"])):
        yield settings, address_of(settings)


def test_a_client_has_so_many_calls_and_others_have_theirs(tmp_path: Path) -> None:
    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            settings, address = await stack.enter_async_context(
                a_broker(tmp_path, client_calls_max=3)
            )
            ann = [
                await stack.enter_async_context(BrokerClient("ann", address, CODEC))
                for _ in range(4)
            ]
            for number, each in enumerate(ann[:3]):
                await each.publish([Publish(f"m{number}", b"")])
            with pytest.raises(UnavailableError) as refused:
                await ann[3].publish([Publish("one more", b"")])
            assert refused.value.code == "broker.busy"
            assert refused.value.params["what"] == "calls under way"
            async with BrokerClient("bob", address, CODEC) as bob:
                await bob.publish([Publish("his", b"")])
            await all_get_in_but_ann(settings)
            await ann[0].__aexit__(None, None, None)

            async def gets_in() -> bool:
                async with BrokerClient("ann", address, CODEC) as again:
                    await again.publish([Publish("again", b"")])
                return True

            await eventually(gets_in)

    asyncio.run(main())


async def all_get_in_but_ann(settings: BrokerSettings) -> None:
    stream = await open_stream("a", address_of(settings))
    await stream.send(encode_frame(ConnectionHello("a", 10)))
    assert await stream.receive() is not None
    await stream.close()
    async with operator_of(settings.broker.directory, CODEC) as operator:
        await operator.ask(Count())


def test_a_client_has_so_many_connections_and_others_have_theirs(tmp_path: Path) -> None:
    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            _, address = await stack.enter_async_context(
                a_broker(tmp_path, client_connections_max=2)
            )
            for number in range(3):
                ann = await stack.enter_async_context(BrokerClient("ann", address, CODEC))
                if number < 2:
                    await ann.publish([Publish(f"m{number}", b"")])
                    await ann.publish([Publish(f"n{number}", b"")])
            with pytest.raises(UnavailableError) as refused:
                await ann.publish([Publish("one more", b"")])
            assert refused.value.params["what"] == "connections"
            async with BrokerClient("bob", address, CODEC) as bob:
                await bob.publish([Publish("his", b"")])

    asyncio.run(main())


async def begun(stream: ClientStream, pieces: int) -> None:
    """Sends so many pieces of a `Publish` call that does not end; returns when it is refused."""
    for _ in range(pieces):
        await stream.send(b"\x00" + bytes(PIECE_BYTES))
    await stream.receive()


def test_unfinished_calls_hold_so_many_bytes_and_keep_nobody_from_publishing(
    tmp_path: Path,
) -> None:
    most = 16 * PIECE_BYTES

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            _, address = await stack.enter_async_context(
                a_broker(tmp_path, unfinished_bytes_max=most, message_bytes_max=most // 4)
            )
            streams = {
                name: await open_stream(name, address, f"/{SERVICE}/Publish")
                for name in ("ann", "bob", "a")
            }
            other = await open_stream("ann", address, f"/{SERVICE}/Publish")
            # Of two calls of one client that are too much together, one is refused.
            calls = [
                asyncio.create_task(begun(each, count))
                for each, count in ((streams["ann"], 7), (other, 3))
            ]
            ended, held = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            assert (len(ended), len(held)) == (1, 1)
            with pytest.raises(UnavailableError) as caught:
                await ended.pop()
            assert caught.value.code == "broker.busy"
            assert caught.value.params["name"] == "ann"
            async with BrokerClient("ann", address, CODEC) as ann:
                await ann.publish([Publish("short", b"x")])
            async with BrokerClient("bob", address, CODEC) as bob:
                await bob.publish([Publish("long", bytes(3 * PIECE_BYTES))])
                await bob.publish([Publish("long too", bytes(6 * PIECE_BYTES))])
            held.add(asyncio.create_task(begun(streams["bob"], 8)))
            with pytest.raises(PathcastError):  # a neighbour may not publish
                await streams["a"].receive()
            # What an ended call held is there for others.
            for stream in (*streams.values(), other):
                await stream.close()
            await asyncio.gather(*held, return_exceptions=True)

            async def is_taken() -> bool:
                async with BrokerClient("ann", address, CODEC) as ann:
                    await ann.publish([Publish("long at last", bytes(6 * PIECE_BYTES))])
                return True

            await eventually(is_taken)

    asyncio.run(main())


def test_a_piece_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (_, address):
            stream = await open_stream("ann", address, f"/{SERVICE}/Publish")
            await stream.send(b"\x01" + bytes(PIECE_BYTES + 1))
            with pytest.raises(FrameError) as caught:
                await stream.receive()
            assert caught.value.code == "frame.too_large"

    asyncio.run(main())


def test_of_strangers_the_oldest_go_and_no_address_has_them_all() -> None:
    bounds = ConnectionBounds(strangers_max=8, stranger_seconds=10.0)
    many = {RemoteAddress("10.0.0.1", port): 1.0 + port / 1000 for port in range(100)}
    other = RemoteAddress("10.0.0.2", 1)
    gone = surplus({**many, other: 5.0}, bounds)
    assert other not in gone
    assert set(many) - set(gone) == {RemoteAddress("10.0.0.1", port) for port in range(2)}
    assert surplus({other: 11.0}, bounds) == [other]
    spread = {RemoteAddress(f"10.0.1.{host}", 1): float(host) / 100 for host in range(20)}
    assert len(surplus(spread, bounds)) == 20 - 8


@pytest.mark.parametrize(
    ("peer", "place"),
    [
        ("ipv4:10.0.0.1:80", RemoteAddress("10.0.0.1", 80)),
        ("ipv6:%5B::ffff:10.0.0.1%5D:80", RemoteAddress("10.0.0.1", 80)),
        ("ipv6:[::1]:80", RemoteAddress("::1", 80)),
        ("unix:", None),
        ("unix:/run/b", None),
    ],
)
def test_a_place_is_the_same_in_the_words_of_grpc_and_of_the_system(
    peer: str, place: RemoteAddress | None
) -> None:
    assert place_of(peer) == place
