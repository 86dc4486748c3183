"""At SIGHUP a process takes up clients, tokens, neighbours and certificates, and says the rest."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from flooding import CODEC, Publish, flooding
from pathcast.errors import PathcastError, PeerRefusedError, UnavailableError
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from pathcast.transport.monitor import Monitor
from pathcast.transport.process import read_control, running
from pathcast.transport.registry_process import serving
from pathcast.transport.registry_settings import RegistrySettings
from pathcast.transport.security import Certificates
from pathcast.transport.settings import BrokerSettings
from patience import PATIENCE_SECONDS, eventually
from test_broker_process import address_of, certificates, settings_for


class Reread:
    """The file of a process, as a test changes it."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings
        self.fault: PathcastError | None = None

    def __call__(self) -> BrokerSettings:
        if self.fault is not None:
            raise self.fault
        return self.settings

    async def change(self, caplog: pytest.LogCaptureFixture, settings: BrokerSettings) -> None:
        """Another file; returns when it is taken up."""
        self.settings = settings
        await hang_up(caplog, "settings.taken")


async def hang_up(caplog: pytest.LogCaptureFixture, event: str) -> None:
    """SIGHUP; returns when this event is logged."""
    caplog.clear()
    signal.raise_signal(signal.SIGHUP)
    await eventually(lambda: event in logged(caplog))


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Names of events so far."""
    return [getattr(record, "event", "") for record in caplog.records]


async def publish(name: str, address: Address) -> None:
    async with BrokerClient(name, address, CODEC) as client:
        await client.publish([Publish("m", b"")])


@asynccontextmanager
async def following(name: str, address: Address) -> AsyncIterator[asyncio.Task[None]]:
    """A client that follows its inbox, until its connection ends."""

    async def follow() -> None:
        async with BrokerClient(name, address, CODEC) as client:
            async for _ in client.deliveries(name):
                pass

    task = asyncio.create_task(follow())
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_connections_of_a_client_that_is_removed_end_and_a_new_token_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def main() -> None:
        before = settings_for(
            tmp_path, clients=[{"name": "ann", "token": "old"}, {"name": "bob"}, {"name": "carl"}]
        )
        file = Reread(before)
        async with running(before, flooding("b", []), reread=file) as carrier:
            bob = address_of(before)
            async with following("bob", bob) as of_bob, following("carl", bob) as of_carl:
                await eventually(lambda: set(carrier._listeners) == {"bob", "carl"})
                after = settings_for(
                    tmp_path,
                    clients=[{"name": "ann", "token": "new"}, {"name": "carl"}, {"name": "dora"}],
                )
                await file.change(caplog, after)
                with pytest.raises(PeerRefusedError) as caught:
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        await of_bob
                assert caught.value.code == "peer.unknown"
                assert not of_carl.done()
                with pytest.raises(PeerRefusedError):
                    await publish("ann", address_of(before, "old"))
                await publish("ann", address_of(before, "new"))
                await publish("dora", bob)
                # Who may not subscribe any more is told so.
                may_not = settings_for(tmp_path, clients=[{"name": "carl", "subscribe": False}])
                await file.change(caplog, may_not)
                with pytest.raises(PeerRefusedError):
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        await of_carl
                await publish("carl", bob)

    asyncio.run(main())


def test_a_neighbour_that_is_removed_is_disconnected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def main() -> None:
        called = settings_for(
            tmp_path, broker={"name": "c", "directory": tmp_path / "c"}, neighbours=[{"name": "b"}]
        )
        async with running(called, flooding("c", ["b"])):
            target = read_control(called.broker.directory).listen
            calling = settings_for(tmp_path, neighbours=[{"name": "c", "address": target}])
            alone = settings_for(tmp_path)
            file = Reread(calling)
            async with running(calling, flooding("b", ["c"]), reread=file) as carrier:
                await eventually(lambda: "c" in carrier.neighbours.connections)
                assert "neighbour.connected" in logged(caplog)
                await file.change(caplog, alone)
                await eventually(lambda: not carrier.neighbours.connections)
                assert "neighbour.lost" in logged(caplog)
                await file.change(caplog, calling)
                await eventually(lambda: "c" in carrier.neighbours.connections)

    asyncio.run(main())


def test_certificates_are_read_anew_and_bad_ones_change_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trustme = pytest.importorskip("trustme")
    caplog.set_level("INFO")
    folders = {}
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        authority = trustme.CA()
        folders[name] = {
            each: certificates(tmp_path / name, authority, each) for each in ("b", "ann")
        }

    def settings(of: Certificates) -> BrokerSettings:
        tls = {"certificate": of.certificate, "key": of.key, "authority": of.authority}
        return settings_for(tmp_path, tls=tls, clients=[{"name": "ann"}])

    async def main() -> None:
        old = settings(folders["old"]["b"])
        file = Reread(old)
        async with running(old, flooding("b", []), reread=file):
            target = read_control(old.broker.directory).listen
            ann = {name: Address("b", target, None, of["ann"]) for name, of in folders.items()}
            await publish("ann", ann["old"])
            with pytest.raises(UnavailableError):
                await publish("ann", ann["new"])
            mixed = Certificates(
                folders["old"]["b"].certificate,
                folders["new"]["b"].key,
                folders["new"]["b"].authority,
            )
            file.settings = settings(mixed)
            await hang_up(caplog, "settings.refused")
            assert "cannot be used together" in caplog.text
            await publish("ann", ann["old"])
            await file.change(caplog, settings(folders["new"]["b"]))
            await publish("ann", ann["new"])
            with pytest.raises(UnavailableError):
                await publish("ann", ann["old"])

    asyncio.run(main())


def test_what_counts_after_a_restart_is_named_and_a_fault_keeps_what_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def main() -> None:
        before = settings_for(tmp_path, clients=[{"name": "ann"}], neighbours=[{"name": "c"}])
        file = Reread(before)
        async with running(before, flooding("b", ["c"]), reread=file):
            after = settings_for(
                tmp_path,
                broker={"subscriptions_max": 5},
                clients=[{"name": "ann"}],
                neighbours=[{"name": "c", "projection": False}],
            )
            await file.change(caplog, after)
            assert "settings.restart" in logged(caplog)
            assert "broker.subscriptions_max, neighbours.c.projection: b takes" in caplog.text
            file.fault = PeerRefusedError("peer.unknown", name="any error of the catalogue")
            await hang_up(caplog, "settings.refused")
            await publish("ann", address_of(before))

    asyncio.run(main())


def test_what_the_signal_did_before_it_does_afterwards(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that waits for its lease ignores SIGHUP, and would be ended by it otherwise."""
    caplog.set_level("INFO")

    async def main() -> None:
        settings = settings_for(tmp_path)
        async with running(settings, flooding("b", []), reread=Reread(settings)):
            await hang_up(caplog, "settings.taken")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.raise_signal(signal.SIGHUP)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        asyncio.run(main())
    finally:
        signal.signal(signal.SIGHUP, before)


def test_refused_callers_are_in_the_log_with_name_reason_and_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        settings = settings_for(tmp_path, clients=[{"name": "ann", "token": "hers"}])
        async with running(settings, flooding("b", [])):
            for _ in range(3):
                for name in ("ann", "stranger"):
                    with pytest.raises(PeerRefusedError):
                        await publish(name, address_of(settings, "wrong"))
        told = [each.args for each in caplog.records if "caller.refused" in str(vars(each))]
        assert [(each["caller"], each["code"]) for each in told] == [  # type: ignore[index, call-overload]
            ("ann", "peer.token"),
            ("stranger", "peer.unknown"),
        ]
        assert "127.0.0.1" in str(told[0])

    asyncio.run(main())


def test_a_node_of_the_service_takes_up_clients(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    def settings(*clients: str) -> RegistrySettings:
        return RegistrySettings(
            registry={"name": "r", "store": str(tmp_path / "profiles.db")},  # type: ignore[arg-type]
            clients=[{"name": each} for each in clients],  # type: ignore[arg-type]
        )

    async def main() -> None:
        from pathcast.overlay.registration_messages import Locate
        from pathcast.transport.registration import Callers

        now = [settings("ann")]
        async with serving(now[0], Monitor(), lambda: now[0], is_new=True) as (_, target):
            callers = Callers("bob", lambda to: Address("r", to))
            with pytest.raises(PeerRefusedError):
                await callers.call(target, Locate("1.1", "p"))
            now[0] = settings("ann", "bob")
            await hang_up(caplog, "settings.taken")
            await callers.call(target, Locate("1.2", "p"))
            await callers.close()

    asyncio.run(main())
