"""Nodes of the registration service and brokers that take their profiles from it, as processes.

Two nodes of the service, r1 and r2; brokers a and b; and `backup`, another process of b.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pathcast.store import BrokerRecord, ProfileRecord, Store
from pathcast.transport.grpc_streams import Address
from pathcast.transport.local_processes import free_ports
from pathcast.transport.registration_client import RegistrationClient
from pathcast.transport.security import Certificates
from patience import eventually
from test_broker_process import certificates

LEASE_SECONDS = 4.0
"""On a machine that is busy, one of two seconds is lost while it is renewed, again and again."""
SERVICE = ("r1", "r2")
CLIENTS = (
    '[[clients]]\nname = "ann"\ntoken = "hers"\npublish = false\n'
    '[[clients]]\nname = "shop"\n[[clients]]\nname = "bob"\n'
)


class RegistrationProcesses:
    """See the module.

    Args:
        directory: Where their files are.
        store: The profile database, as their files name it.
        authority: Of their certificates (trustme's); plain text without.
    """

    def __init__(self, directory: Path, store: str, authority: Any = None) -> None:
        self.directory = directory
        self.store = store
        self.ports = dict(zip([*SERVICE, "a", "b", "backup"], free_ports(5), strict=True))
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        names = [*SERVICE, "a", "b", "ann", "shop", "bob"] if authority else []
        self.certificates = {name: certificates(directory, authority, name) for name in names}
        for name in SERVICE:
            self._write(
                name,
                f'[registry]\nname = "{name}"\nstore = "{store}"\n'
                f'listen = "127.0.0.1:{self.ports[name]}"\ntoken = "of the service"\n'
                f"lease_seconds = {LEASE_SECONDS}\n{CLIENTS}",
                name,
            )
        self._write_broker("a", "a", "b")
        self._write_broker("b", "b", "a")
        self._write_broker("backup", "b", "a")

    def _write_broker(self, process: str, name: str, neighbour: str) -> None:
        # Where it is called is what the database says, and not this.
        address = 'address = "127.0.0.1:1"\nformat = "zstd"\n'
        self._write(
            process,
            f'[broker]\nname = "{name}"\ndirectory = "{name}"\nmembers = ["{neighbour}"]\n'
            f'listen = "127.0.0.1:{self.ports[process]}"\n'
            f'[[neighbours]]\nname = "{neighbour}"\n{address}{CLIENTS}'
            f'[registration]\nstore = "{self.store}"\nnodes = ["r1", "r2"]\n'
            f'token = "of the service"\nlocation = "eu/{name}"\n'
            f"lease_seconds = {LEASE_SECONDS}\n",
            name,
        )

    def _write(self, process: str, text: str, name: str) -> None:
        if files := self.certificates.get(name):
            text += (
                f'[tls]\ncertificate = "{files.certificate.name}"\nkey = "{files.key.name}"\n'
                f'authority = "{files.authority.name}"\n'
            )
        (self.directory / f"{process}.toml").write_text(text)

    def place_by_content(self, count: int) -> list[str]:
        """Profiles are placed by content; gives the names of so many clients that are admitted."""
        names = [f"user{number}" for number in range(count)]
        clients = "".join(f'[[clients]]\nname = "{name}"\npublish = false\n' for name in names)
        for file in self.directory.glob("*.toml"):
            with file.open("a") as out:
                out.write(clients)
                if file.stem in SERVICE:
                    out.write('[hosts]\nchoice = "content"\npartitions = 8\nreview_seconds = 1\n')
        return names

    def set(self, process: str, section: str, *lines: str) -> None:
        """Lines are added at the beginning of a section of a process's file."""
        file = self.directory / f"{process}.toml"
        head = f"[{section}]\n"
        text = file.read_text()
        assert head in text
        file.write_text(text.replace(head, head + "".join(f"{line}\n" for line in lines), 1))

    def hosts_some(self, broker: str) -> bool:
        """Whether a broker is the host of a profile, in force there or soon."""
        with self.open_store() as store:
            return bool(store.state(ProfileRecord, host=broker)[1])

    def are_moving(self) -> bool:
        """Whether a profile has not wholly come from its former host."""
        with self.open_store() as store:
            return any(each.former or each.pending for each in store.state(ProfileRecord)[1])

    def start(self, *processes: str) -> None:
        for name in processes:
            kind = "registry" if name in SERVICE else "broker"
            command = [sys.executable, "-m", "pathcast", kind, "run", f"{name}.toml", "--new"]
            with (self.directory / f"{name}.log").open("ab") as log:
                self.running[name] = subprocess.Popen(
                    command, cwd=self.directory, stdout=log, stderr=log
                )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for name in list(self.running):
            self.kill(name)

    def address(
        self, process: str, token: str | None = None, shown: Certificates | None = None
    ) -> Address:
        """How a process is called by who shows these certificates."""
        name = "b" if process == "backup" else process
        return Address(name, f"127.0.0.1:{self.ports[process]}", token, shown)

    def client(
        self, name: str, token: str | None = None, shown_as: str | None = None
    ) -> RegistrationClient:
        """A client, with its own certificate or with somebody else's."""
        shown = self.certificates.get(shown_as or name)
        service = [self.address(each, token, shown) for each in SERVICE]
        return RegistrationClient(name, service, Address("", "", token, shown))

    def open_store(self) -> Store:
        """The profile database."""
        return Store.open(self.store if "://" in self.store else self.directory / self.store)

    async def are_played(self, **players: str) -> None:
        """Waits until brokers are played by these processes, as the database says."""

        def played() -> dict[str, str]:
            with self.open_store() as store:
                brokers = store.state(BrokerRecord)[1]
            return {each.id: each.address for each in brokers}

        async def holds() -> bool:
            wanted = {id: self.address(each).target for id, each in players.items()}
            found = await asyncio.to_thread(played)
            return wanted.items() <= found.items()

        await eventually(holds)

    def leader(self) -> str:
        """The node of the service that has the lease."""
        with self.open_store() as store, store._database.reading() as connection:
            asked = "SELECT holder FROM leases WHERE name = 'registration'"
            return str(connection.exec_driver_sql(asked).scalar_one())


def order(number: int) -> tuple[str, bytes]:
    """Id and bytes of a message: every other one goes to Bern."""
    town = ["Bern", "Chur"][number % 2]
    return f"m{number}", f"<order><no>{number}</no><to>{town}</to></order>".encode()


def orders(numbers: Iterable[int]) -> list[tuple[str, bytes]]:
    """Messages with these numbers."""
    return [order(number) for number in numbers]
