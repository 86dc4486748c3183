"""Broker processes on loopback: kills, certificates, tokens, garbage, subscribers' cursors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

import grpc
import msgspec
from typer.testing import CliRunner

from flooding import CODEC, Count, Item, Publish, flooding
from pathcast.cli.app import build_app
from pathcast.errors import (
    ConfigError,
    FrameError,
    PathcastError,
    PeerRefusedError,
    SourceError,
    UnavailableError,
)
from pathcast.settings import read_settings
from pathcast.transport.client import BrokerClient
from pathcast.transport.frames import VERSION, ConnectionHello, decode_hello, encode_frame
from pathcast.transport.grpc_streams import Address, ClientStream, ServerStream, open_stream
from pathcast.transport.local_processes import free_ports
from pathcast.transport.process import operator_of, read_control, running
from pathcast.transport.security import Authenticator, Certificates, KnownCaller
from pathcast.transport.service import GuardedMethods, listen
from pathcast.transport.settings import BrokerSettings
from patience import PATIENCE_SECONDS, eventually

HERE = Path(__file__).parent
LINE = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}


class Processes:
    """Flooding brokers in a line."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = dict(zip(LINE, free_ports(len(LINE)), strict=True))
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name, neighbours in LINE.items():
            listed = "".join(
                f'[[neighbours]]\nname = "{each}"\ntoken = "{"".join(sorted(name + each))}"\n'
                + (f'address = "127.0.0.1:{self.ports[each]}"\n' if name < each else "")
                for each in neighbours
            )
            (directory / f"{name}.toml").write_text(
                f'[broker]\nname = "{name}"\ndirectory = "{name}"\n'
                f'listen = "127.0.0.1:{self.ports[name]}"\n'
                f'{listed}[[clients]]\nname = "reader"\ntoken = "ours"\n'
            )

    def start(self, name: str) -> None:
        self.running[name] = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "flooding_process.py"),
                str(self.directory / f"{name}.toml"),
            ]
        )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def operator(self, name: str) -> BrokerClient:
        return operator_of(self.directory / name, CODEC)

    def address(self, name: str) -> Address:
        return Address(name, f"127.0.0.1:{self.ports[name]}", "ours")

    async def seen(self, name: str) -> int:
        async with self.operator(name) as client:
            answer = await client.ask(Count())
            assert isinstance(answer, Count)
            return answer.seen


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    for process in found.running.values():
        process.kill()
        process.wait()


async def publish_all(processes: Processes, name: str, ids: list[str]) -> None:
    """Publishes in groups, again until a receipt came."""
    groups = [ids[start : start + 20] for start in range(0, len(ids), 20)]
    while groups:
        with contextlib.suppress(UnavailableError):
            async with BrokerClient("reader", processes.address(name), CODEC) as client:
                while groups:
                    await client.publish([Publish(id, b"x" * 200) for id in groups[0]])
                    groups.pop(0)
        await asyncio.sleep(0.02)


async def follow(processes: Processes, name: str, count: int) -> list[str]:
    """Delivery ids as a subscriber sees them who keeps its cursor, over lost connections."""
    got: list[str] = []
    after = 0
    while len(got) < count:
        with contextlib.suppress(UnavailableError):
            async with BrokerClient("reader", processes.address(name), CODEC) as client:
                async for deliveries in client.deliveries("reader", after):
                    got += [each.delivery_id for each in deliveries]
                    after = deliveries[-1].position
                    await client.acknowledge(after)
                    if len(got) >= count:
                        return got
        await asyncio.sleep(0.02)
    return got


def kill_and_restart(processes: Processes, kills: int, messages: int, seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        for name in LINE:
            processes.start(name)
        ids = [f"m{number}" for number in range(messages)]
        publishing = asyncio.create_task(publish_all(processes, "a", ids))
        following = asyncio.create_task(follow(processes, "c", messages))
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.2, 1.0))
            name = chance.choice("abc")
            await asyncio.to_thread(processes.kill, name)
            processes.start(name)
        async with asyncio.timeout(PATIENCE_SECONDS + messages / 100):
            await publishing
            got = await following
            assert sorted(got) == sorted(ids)
            assert await follow(processes, "b", messages) != []
            for name in LINE:

                async def all_seen(name: str = name) -> bool:
                    return await processes.seen(name) == messages

                await eventually(all_seen)

    asyncio.run(main())


def test_kill_9_anywhere_loses_nothing_and_doubles_nothing(processes: Processes) -> None:
    kill_and_restart(processes, kills=3, messages=600, seed=1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_kill_9_many_times_loses_nothing_and_doubles_nothing(
    processes: Processes, seed: int
) -> None:
    kill_and_restart(processes, kills=20, messages=20_000, seed=seed)


def test_a_subscriber_that_never_reads_fills_its_inbox_and_no_more_over_kill_9(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it finds at last, and what it is told that it missed, is all that was published."""
    monkeypatch.setenv("PATHCAST__BROKER__INBOX_DELIVERIES_MAX", "45")

    async def main() -> None:
        for name in LINE:
            processes.start(name)
        ids = [f"m{number}" for number in range(300)]
        publishing = asyncio.create_task(publish_all(processes, "a", ids))
        for _ in range(2):
            await eventually(lambda: _is_up(processes, "c"))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(processes.kill, "c")
            processes.start("c")
        await publishing

        async def all_seen() -> bool:
            return await processes.seen("c") == len(ids)

        await eventually(all_seen)
        async with processes.operator("c") as operator:
            inbox = (await operator.status())["inboxes"]["reader"]
        assert (inbox["waiting"], inbox["dropped"]) == (45, len(ids) - 45)
        async with BrokerClient("reader", processes.address("c"), CODEC) as client:
            read = [each async for group in client.waiting("reader", 0) for each in group]
            assert [each.position for each in read] == [*range(1, 46), 300]
            assert {each.delivery_id for each in read[:45]} < set(ids)
            assert read[45].body == b"46 to 300 were dropped"
            await client.settle("reader", 300)
        # Those beside it have their own bounds, and messages went on.
        assert await processes.seen("a") == await processes.seen("b") == len(ids)

    asyncio.run(main())


def test_who_follows_and_does_not_acknowledge_is_told_at_once_what_is_dropped(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        settings = settings_for(
            tmp_path, broker={"inbox_deliveries_max": 4}, clients=[{"name": "reader"}]
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(running(settings, flooding("b", [])))
            address = address_of(settings)
            client = await stack.enter_async_context(BrokerClient("reader", address, CODEC))
            follower = await stack.enter_async_context(BrokerClient("reader", address, CODEC))
            following = follower.deliveries("reader")
            got: dict[int, bytes] = {}
            for number in range(1, 9):
                await client.publish([Publish(f"m{number}", b"%d" % number)])
                while number not in got:
                    got |= {each.position: each.body for each in await anext(following)}
                if number == 6:
                    await follower.acknowledge(6)
                    await client.settle("reader", 6)
        assert got == {
            **{number: b"%d" % number for number in (1, 2, 3, 4, 7, 8)},
            **{number: b"%d to %d were dropped" % (number, number) for number in (5, 6)},
        }

    asyncio.run(main())


def test_sigterm_ends_a_process_and_gives_its_directory_back(processes: Processes) -> None:
    async def main() -> None:
        processes.start("c")
        await eventually(lambda: _is_up(processes, "c"))
        async with BrokerClient("reader", processes.address("c"), CODEC) as client:
            await client.publish([Publish("m", b"x")])
        process = processes.running.pop("c")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, PATIENCE_SECONDS) == 0
        assert not (processes.directory / "c" / "control").exists()
        with pytest.raises(UnavailableError):
            processes.operator("c")
        processes.start("c")
        await eventually(lambda: _is_up(processes, "c"))
        assert await processes.seen("c") == 1

    asyncio.run(main())


async def _is_up(processes: Processes, name: str) -> bool:
    async with processes.operator(name) as client:
        return bool((await client.status())["name"] == name)


def settings_for(directory: Path, **sections: object) -> BrokerSettings:
    broker = {"name": "b", "directory": directory / "b", **sections.pop("broker", {})}  # type: ignore
    return BrokerSettings(broker=broker, **sections)  # type: ignore[arg-type]


def address_of(settings: BrokerSettings, token: str | None = None) -> Address:
    control = read_control(settings.broker.directory)
    return Address("b", control.listen, token, settings.certificates)


REFUSED = [
    ("stranger", None, "peer.unknown"),
    ("ann", None, "peer.token"),
    ("ann", "wrong", "peer.token"),
    ("a", "secret", "peer.role"),
]


@pytest.mark.parametrize(("name", "token", "code"), REFUSED)
def test_who_may_not_publish_is_refused(
    tmp_path: Path, name: str, token: str | None, code: str
) -> None:
    async def main() -> None:
        settings = settings_for(
            tmp_path,
            clients=[{"name": "ann", "token": "hers"}],
            neighbours=[{"name": "a", "token": "secret"}],
        )
        async with running(settings, flooding("b", ["a"])):
            async with BrokerClient(name, address_of(settings, token), CODEC) as client:
                with pytest.raises(PeerRefusedError) as caught:
                    await client.publish([Publish("m", b"")])
                assert caught.value.code == code
                with pytest.raises(PathcastError):
                    await client.status()
            async with BrokerClient("ann", address_of(settings, "hers"), CODEC) as client:
                await client.publish([Publish("m", b"")])
                with pytest.raises(PeerRefusedError, match="operate"):
                    await client.ask(Count())
            async with BrokerClient("ann", address_of(settings, "hers"), CODEC) as client:
                with pytest.raises(PeerRefusedError, match="send Item"):
                    await client.publish([Item("forged", b"")])
            async with BrokerClient("ann", address_of(settings, "hers"), CODEC) as client:
                with pytest.raises(PeerRefusedError, match="bob"):
                    async for _ in client.deliveries("bob"):
                        pass
            async with BrokerClient("ann", address_of(settings, "hers"), CODEC) as client:
                with pytest.raises(ConfigError, match="is empty"):
                    await client.publish([Publish("", b"")])

    asyncio.run(main())


class EndedWhileWritten:
    """A call that the other end refuses at its first write, as gRPC shows that."""

    said = json.dumps({"code": "peer.unknown", "params": {"name": "ann"}})

    def add_done_callback(self, told: Callable[[object], None]) -> None:
        self._told = told

    async def details(self) -> str:
        return self.said

    async def write(self, data: bytes) -> None:
        self._told(self)
        self.said = "Internal error from Core"
        await self.read()

    async def read(self) -> bytes:
        none = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, none, none, self.said)


def test_why_a_call_was_refused_outlives_the_write_that_fails() -> None:
    async def main() -> None:
        stream = ClientStream("b", None, EndedWhileWritten())
        for ended in (stream.send(b""), stream.receive()):
            with pytest.raises(PeerRefusedError) as caught:
                await ended
            assert caught.value.code == "peer.unknown"

    asyncio.run(main())


def test_garbage_over_grpc_is_refused_with_its_reason_and_others_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        settings = settings_for(
            tmp_path, clients=[{"name": "ann"}], neighbours=[{"name": "a"}, {"name": "z"}]
        )
        async with running(settings, flooding("b", ["a", "z"])) as carrier:
            kept = await open_stream("z", address_of(settings))
            await kept.send(encode_frame(ConnectionHello("z", 10)))
            await kept.receive()
            stream = await open_stream("a", address_of(settings))
            await stream.send(encode_frame(ConnectionHello("a", 10)))
            await stream.receive()
            await stream.send(b"garbage")
            with pytest.raises(FrameError) as caught:
                await until_its_end(stream)
            assert caught.value.code == "frame.unreadable"
            other = await open_stream("a", address_of(settings))
            await other.send(encode_frame(ConnectionHello("somebody", 10)))
            with pytest.raises(PeerRefusedError):
                await until_its_end(other)
            async with BrokerClient("ann", address_of(settings), CODEC) as client:
                await client.publish([Publish("m", b"")])
            await eventually(lambda: list(carrier.neighbours.connections) == ["z"])
            for each in (kept, stream, other):
                await each.close()

    asyncio.run(main())


class OfAnotherVersion(GuardedMethods):
    """What listens for a neighbour whose protocol is a later one."""

    def __init__(self, name: str, caller: str) -> None:
        super().__init__(Authenticator([KnownCaller(caller, None)], with_certificates=False))
        self._offer_stream("/pathcast.Broker/Frames", self._frames)
        self._name = name
        self.heard: list[list[object]] = []

    async def _frames(self, context: object) -> None:
        stream = ServerStream("b", context)
        await stream.send(msgspec.msgpack.encode([self._name, 10, VERSION + 1, {"new": True}]))
        self.heard.append(msgspec.msgpack.decode(await stream.receive() or b""))
        raise FrameError(
            "frame.version",
            peer="b",
            found=VERSION,
            name=self._name,
            expected=VERSION + 1,
            older="b",
        )


def test_neighbours_of_another_version_are_refused_on_both_sides_and_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Both say which versions there are, the operator is told, and the log says it once."""

    async def main() -> None:
        later = OfAnotherVersion("a", "b")
        listener = await listen([later], "127.0.0.1:0")
        settings = settings_for(
            tmp_path,
            neighbours=[
                {"name": "a", "address": f"127.0.0.1:{listener.port}"},
                {"name": "c"},
                {"name": "z"},
            ],
        )
        async with running(settings, flooding("b", ["a", "c", "z"])) as carrier:
            kept = await open_stream("z", address_of(settings))
            await kept.send(encode_frame(ConnectionHello("z", 10)))
            await kept.receive()
            calling = await open_stream("c", address_of(settings))
            await calling.send(msgspec.msgpack.encode(["c", 10, VERSION + 1, {"new": True}]))
            assert decode_hello(await calling.receive() or b"", "b", "c") == ConnectionHello(
                "b", 2048
            )
            with pytest.raises(FrameError) as caught:
                await until_its_end(calling)
            assert caught.value.params == {
                "peer": "c",
                "found": VERSION + 1,
                "name": "b",
                "expected": VERSION,
                "older": "b",
            }
            async with operator_of(settings.broker.directory, CODEC) as operator:

                async def both_are_refused() -> bool:
                    told = (await operator.status())["refusals"]
                    return {name: each["code"] for name, each in told.items()} == {
                        "a": "frame.version",
                        "c": "frame.version",
                    }

                await eventually(both_are_refused)
                assert (await operator.status())["refusals"]["a"]["message"] == (
                    f"a speaks version {VERSION + 1} of the protocol between neighbours, "
                    f"and b {VERSION}; upgrade b: what is for the other one waits on disk until "
                    "then"
                )
            assert later.heard[0][:3] == ["b", 2048, VERSION]
            await eventually(lambda: len(later.heard) > 2)
            lines = [line for line in caplog.messages if "of the protocol between" in line]
            assert len(lines) == len(set(lines)) > 1, "however often both try again"
            assert list(carrier.neighbours.connections) == ["z"]
            for each in (kept, calling):
                await each.close()
        await listener.stop(0)

    asyncio.run(main())


async def until_its_end(stream: ClientStream) -> None:
    while await stream.receive() is not None:
        pass


def certificates(directory: Path, authority: object, name: str) -> Certificates:
    cert = authority.issue_cert(name)  # type: ignore[attr-defined]
    files = Certificates(
        directory / f"{name}.pem", directory / f"{name}.key", directory / "authority.pem"
    )
    cert.cert_chain_pems[0].write_to_path(files.certificate)
    cert.private_key_pem.write_to_path(files.key)
    authority.cert_pem.write_to_path(files.authority)  # type: ignore[attr-defined]
    return files


def test_with_certificates_a_peer_is_who_its_certificate_says(tmp_path: Path) -> None:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    of = {name: certificates(tmp_path, authority, name) for name in ("b", "ann", "bob")}
    (tmp_path / "strange").mkdir()
    stranger = certificates(tmp_path / "strange", trustme.CA(), "ann")

    async def main() -> None:
        tls = {"certificate": of["b"].certificate, "key": of["b"].key}
        tls["authority"] = of["b"].authority
        settings = settings_for(
            tmp_path, tls=tls, clients=[{"name": "ann", "token": "hers"}, {"name": "bob"}]
        )
        async with running(settings, flooding("b", [])):
            target = read_control(settings.broker.directory).listen

            async def publish(name: str, address: Address) -> None:
                async with BrokerClient(name, address, CODEC) as client:
                    await client.publish([Publish("m", b"")])

            await publish("ann", Address("b", target, "hers", of["ann"]))
            with pytest.raises(PeerRefusedError) as caught:
                await publish("ann", Address("b", target, "hers", of["bob"]))
            assert caught.value.code == "peer.certificate"
            with pytest.raises(PeerRefusedError) as caught:
                await publish("ann", Address("b", target, None, of["ann"]))
            assert caught.value.code == "peer.token"
            # Another name than the one that the broker's certificate is made out to.
            for address in (
                Address("c", target, "hers", of["ann"]),
                Address("b", target, "hers", stranger),
                Address("b", target, "hers"),
            ):
                with pytest.raises(UnavailableError):
                    await publish("ann", address)

    asyncio.run(main())


def test_plain_text_stays_on_this_machine(tmp_path: Path) -> None:
    async def main() -> None:
        settings = settings_for(tmp_path, broker={"listen": "0.0.0.0:0"})
        with pytest.raises(ConfigError, match="allow_plain"):
            async with running(settings, flooding("b", [])):
                pass
        with pytest.raises(PeerRefusedError, match="allow_plain"):
            await open_stream("a", Address("b", "192.0.2.1:7000"))
        settings = settings_for(tmp_path, broker={"listen": "0.0.0.0:0", "allow_plain": True})
        async with running(settings, flooding("b", [])):
            pass

    asyncio.run(main())


def test_at_sighup_new_neighbours_are_taken_up_and_a_bad_file_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        settings = settings_for(tmp_path)
        now = [settings]

        def reread() -> BrokerSettings:
            if not now:
                raise ConfigError("config.invalid", key="broker", reason="it is not to be read")
            return now[0]

        async def hello() -> None:
            stream = await open_stream("a", address_of(settings))
            await stream.send(encode_frame(ConnectionHello("a", 10)))
            assert await stream.receive() is not None
            await stream.close()

        async def is_known() -> bool:
            with contextlib.suppress(PeerRefusedError):
                await hello()
                return True
            return False

        async with running(settings, flooding("b", ["a"]), reread=reread):
            with pytest.raises(PeerRefusedError, match="a is not known"):
                await hello()
            now.clear()
            signal.raise_signal(signal.SIGHUP)
            await eventually(lambda: "it is not to be read" in caplog.text)
            now.append(settings_for(tmp_path, neighbours=[{"name": "a"}]))
            signal.raise_signal(signal.SIGHUP)
            await eventually(is_known)

    asyncio.run(main())


REFUSED_SETTINGS = [
    ('[broker]\nname = "a"', "broker.directory"),
    ('[broker]\nname = "a"\ndirectory = "d"\nlisten = "here"', "broker.listen"),
    ('[broker]\nname = "a"\ndirectory = "d"\nlisten = "h:99999"', "broker.listen"),
    ('[broker]\nname = "a"\ndirectory = "d"\n[[neighbours]]\nname = "a"', "two have this name"),
    ('[broker]\nname = "a"\ndirectory = "d"\n[[neighbours]]\nname = "b"\nadress = "h:1"', "adress"),
]


@pytest.mark.parametrize(("text", "told"), REFUSED_SETTINGS)
def test_refusals_of_settings_name_the_key(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "broker.toml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        read_settings(BrokerSettings, tmp_path / "broker.toml")


def test_status_says_who_is_connected_and_what_waits(tmp_path: Path) -> None:
    async def main() -> None:
        settings = settings_for(tmp_path, neighbours=[{"name": "a"}])
        kind = flooding("b", ["a"])
        async with running(settings, kind), operator_of(settings.broker.directory, CODEC) as client:
            await client.publish([Publish("m", b"")])
            status = await client.status()
        assert json.loads(json.dumps(status)) == {
            "name": "b",
            "neighbours": {},
            "refusals": {},
            "backlog": {"a": 1},
            "node": {"seen": 1},
            "inboxes": {"reader": {"waiting": 1, "bytes": 0, "dropped": 0}},
            "dead_letters": {},
        }

    asyncio.run(main())


def test_every_key_is_described() -> None:
    result = CliRunner().invoke(build_app(), ["broker", "run", "--describe"])
    assert result.exit_code == 0
    for key in ("[broker]", "  listen  (", "[tls]", "  token  (", "  webhook_networks  ("):
        assert key in result.output


def test_an_inbox_is_read_up_to_now_settled_and_its_frames_fit(tmp_path: Path) -> None:
    """Deliveries that are more than one frame holds; a reader that does not follow."""

    async def main() -> None:
        settings = settings_for(tmp_path, clients=[{"name": "reader"}])
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(running(settings, flooding("b", [])))
            address = address_of(settings)
            client = await stack.enter_async_context(BrokerClient("reader", address, CODEC))
            for number in range(24):
                await client.publish([Publish(f"m{number}", b"x" * 1_000_000)])
            assert sum([len(group) async for group in client.waiting("reader", 0)]) == 24
            rest = [each.position async for group in client.waiting("reader", 20) for each in group]
            assert rest == [21, 22, 23, 24]
            await client.settle("reader", 22)
            rest = [each.position async for group in client.waiting("reader", 0) for each in group]
            assert rest == [23, 24]
            assert [group async for group in client.waiting("reader", 24)] == []
            with pytest.raises(SourceError) as caught:
                assert [group async for group in client.waiting("reader", 25)]
            assert caught.value.code == "inbox.ahead"
            with pytest.raises(PeerRefusedError):
                await client.settle("somebody else", 1)

    asyncio.run(main())
