"""A PostgreSQL server of the tests' own, on a socket in a folder of its own, and its databases.

The server is ended by its process id. Where PostgreSQL is not installed, or there is nobody but
root to run it as, tests that want it are skipped with that reason.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def binary(name: str) -> Path:
    """A program of PostgreSQL; the test is skipped without it."""
    found = shutil.which(name)
    places = [Path(found)] if found else sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if not places:
        pytest.skip(f"PostgreSQL is not installed: no program {name}")
    return places[-1]


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
        for _ in range(600):
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, "the server has ended"
                time.sleep(0.05)
        raise AssertionError("the server takes no connections")

    def stop(self) -> None:
        """Ends it at once, connections and all, as a crash does."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)
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
