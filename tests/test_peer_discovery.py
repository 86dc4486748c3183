"""Peers that know one of the ring find all others, and find them again without it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

import msgspec

from pathcast.errors import ConfigError, FrameError, PeerRefusedError, UnavailableError
from pathcast.settings import read_settings
from pathcast.transport import contacts
from pathcast.transport.carrier import Carrier
from pathcast.transport.contacts import Contact, Contacts
from pathcast.transport.grpc_streams import Address
from pathcast.transport.peer_kind import peer_kind
from pathcast.transport.peer_settings import PeerSettings
from pathcast.transport.process import read_control, running
from pathcast.transport.security import Authenticator
from pathcast.transport.service import described
from patience import PATIENCE_SECONDS

BASE = ["b", "c", "d", "e"]


def settings_of(
    directory: Path, name: str, known: Mapping[str, str], token: str = "ring!"
) -> PeerSettings:
    text = (
        f'[peer]\nname = "{name}"\ndirectory = "{name}"\n'
        f"[ring]\nbase = {BASE}\ntick_seconds = 0.1\npatience_seconds = 0.5\n"
        f'discovery = true\ntoken = "{token}"\n'
    )
    for peer, address in known.items():
        text += f'[[peers]]\nname = "{peer}"\naddress = "{address}"\n'
    file = directory / f"{name}.toml"
    file.write_text(text)
    return read_settings(PeerSettings, file)


async def begun(stack: AsyncExitStack, settings: PeerSettings) -> Carrier:
    name = settings.peer.name
    kind = peer_kind(name, BASE, settings.ring_settings, settings.filtering_settings)
    return await stack.enter_async_context(
        running(
            settings.process,
            kind,
            listening=settings.listening,
            discovery=settings.discovery,
        )
    )


def is_member(carrier: Carrier) -> bool:
    node = described(carrier)["node"]
    assert isinstance(node, dict)
    return bool(node["is_member"])


def address_of(settings: PeerSettings) -> str:
    return read_control(settings.peer.directory).listen


async def until_connected(carriers: Mapping[str, Carrier]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not all(
            is_member(each) and {*each.neighbours.connections, name} >= carriers.keys()
            for name, each in carriers.items()
        ):
            await asyncio.sleep(0.05)


def test_one_known_peer_is_enough_and_is_not_needed_any_more_once_others_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contacts, "PAUSE_SECONDS_MAX", 0.5)

    async def main() -> None:
        async with AsyncExitStack() as stack, AsyncExitStack() as seed:
            # It is told of somebody who is not there; all others are told of it.
            first = settings_of(tmp_path, "a", {"z": "127.0.0.1:1"})
            carriers = {"a": await begun(seed, first)}
            known = {"a": address_of(first)}
            for name in BASE:
                carriers[name] = await begun(stack, settings_of(tmp_path, name, known))
            newcomer = settings_of(tmp_path, "f", known)
            async with AsyncExitStack() as once:
                carriers["f"] = await begun(once, newcomer)
                await until_connected(carriers)
            del carriers["a"], carriers["f"]
            await seed.aclose()
            # It begins again at another port, and what its settings name is gone.
            carriers["f"] = await begun(stack, newcomer)
            await until_connected(carriers)
            saved = msgspec.json.decode((newcomer.peer.directory / "contacts.json").read_bytes())
            assert [name for name, _ in saved] == ["a", *BASE, "z"]

    asyncio.run(main())


def test_strangers_are_not_taken_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            settings = settings_of(tmp_path, "b", {})
            carrier = await begun(stack, settings)
            target = address_of(settings)

            gate = Authenticator([], with_certificates=False)

            async def greet(name: str, said: str, token: str | None, address: str) -> None:
                stranger = Contacts(
                    name, gate, tmp_path, lambda peer, at: Address(peer, at, token), lambda *_: None
                )
                stranger._mine = Contact(said, address)
                await stranger._call(Address("b", target, token))

            with pytest.raises(PeerRefusedError, match="token"):
                await greet("x", "x", "guess", "127.0.0.1:9")
            with pytest.raises(PeerRefusedError, match="x"):
                await greet("x", "c", "ring!", "127.0.0.1:9")
            with pytest.raises(FrameError):
                await greet("x", "x", "ring!", "nowhere")
            assert "c" not in carrier.neighbours._dialling
            await greet("x", "x", "ring!", "127.0.0.1:9")
            assert list(carrier.neighbours._dialling) == ["x"]

    asyncio.run(main())


def test_a_file_that_cannot_be_read_is_made_anew(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            settings = settings_of(tmp_path, "b", {"z": "127.0.0.1:1"})
            settings.peer.directory.mkdir()
            file = settings.peer.directory / "contacts.json"
            file.write_text('[["c"')
            await begun(stack, settings)
            assert msgspec.json.decode(file.read_bytes()) == [["z", "127.0.0.1:1"]]

    asyncio.run(main())


def test_settings_say_whom_they_would_take_for_a_peer(tmp_path: Path) -> None:
    settings_of(tmp_path, "b", {})
    with pytest.raises(ConfigError, match="no peer is known"):
        settings_of(tmp_path, "f", {})
    file = tmp_path / "b.toml"
    file.write_text(file.read_text().replace('token = "ring!"\n', ""))
    assert read_settings(PeerSettings, file).discovery is not None
    with pytest.raises(ConfigError, match="whoever has no token would be a peer"):
        read_settings(PeerSettings, file, ["peer.listen=10.0.0.1:7", "peer.allow_plain=true"])
    with pytest.raises(UnavailableError):
        read_control(tmp_path / "b")
