"""A PostgreSQL server of the tests' own, on a socket in a folder of its own, and its databases.

The server is ended by its process id. Where PostgreSQL is not installed, or there is nobody but
root to run it as, tests that want it are skipped with that reason.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE_SECONDS, wait_until


def is_installed() -> bool:
    """Whether there is a server, and what speaks to it."""
    return bool(_found("postgres") and find_spec("psycopg"))


def binary(name: str) -> Path:
    """A program of PostgreSQL; the test is skipped without it."""
    found = _found(name)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: no program {name}")
    return found


def _found(name: str) -> Path | None:
    if found := shutil.which(name):
        return Path(found)
    return max(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), default=None)


class PostgresqlServer:
    """A server that is running, or was killed."""

    def __init__(self, folder: Path, user: dict[str, Any]) -> None:
        self.folder = folder
        self._user = user
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        import psycopg

        data = self.folder / "data"
        if not data.exists():
            command = f"{binary('initdb')} -D {data} --no-sync --auth=trust -U postgres".split()
            subprocess.run(command, check=True, capture_output=True, cwd="/", **self._user)
        options = ("fsync=off", "listen_addresses=", f"unix_socket_directories={self.folder}")
        self.process = subprocess.Popen(
            [binary("postgres"), "-D", data, *(part for each in options for part in ("-c", each))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **self._user,
        )
        process = self.process

        def takes_connections() -> bool:
            assert process.poll() is None, "the server has ended"
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url("postgres")).close()
                return True
            return False

        wait_until(takes_connections)

    def stop(self) -> None:
        """Ends it at once, connections and all, as a crash does."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(PATIENCE_SECONDS)
            self.process = None

    def url(self, name: str) -> str:
        """Of a database."""
        return f"postgresql:///{name}?host={self.folder}&user=postgres"

    def database(self) -> str:
        """URL of an empty database; one that was given out before is that no more."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self.url("postgres")


class SilentNetwork:
    """A port of loopback that stands for a server, and can stop carrying anything without a word.

    Args:
        server: What it stands for.
    """

    def __init__(self, server: PostgresqlServer) -> None:
        self._target = str(server.folder / ".s.PGSQL.5432")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self.carries = threading.Event()
        self.carries.set()
        self._begin(self._accept)

    @property
    def url(self) -> str:
        """Of the server's database, by this way."""
        return f"postgresql://postgres@127.0.0.1:{self._listener.getsockname()[1]}/postgres"

    def stop(self) -> None:
        """Ends all connections."""
        self.carries.set()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _begin(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        def until_closed() -> None:
            with suppress(OSError):
                work(*arguments)

        threading.Thread(target=until_closed, daemon=True).start()

    def _accept(self) -> None:
        while True:
            caller, _ = self._listener.accept()
            called = socket.socket(socket.AF_UNIX)
            called.connect(self._target)
            self._sockets += [caller, called]
            self._begin(self._carry, caller, called)
            self._begin(self._carry, called, caller)

    def _carry(self, from_: socket.socket, to: socket.socket) -> None:
        while data := from_.recv(65_536):
            self.carries.wait()
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)


@contextmanager
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A server that is up; it is gone afterwards, with all that it held."""
    pytest.importorskip("psycopg", reason="pip install 'pathcast[postgresql]'")
    for name in ("postgres", "initdb"):
        binary(name)
    folder = Path(tempfile.mkdtemp(prefix="pathcast-pg-"))
    user: dict[str, Any] = {}
    if os.getuid() == 0:
        try:
            found = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        os.chown(folder, found.pw_uid, found.pw_gid)
        user = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    server = PostgresqlServer(folder, user)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
