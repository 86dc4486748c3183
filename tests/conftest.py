"""Fixtures that are shared by test modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import leftovers
from pathcast.errors import JavaMissingError
from patience import PATIENCE_SECONDS
from postgresql_server import PostgresqlServer, postgresql_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session", autouse=True)
def busy_machine() -> Iterator[None]:
    """Whoever is called or started may be late; that nobody is there is said at once."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            ("pathcast.transport.grpc_streams", "CONNECT_SECONDS"),
            ("pathcast.transport.local_processes", "START_SECONDS"),
        ):
            if module in sys.modules:
                patch.setattr(sys.modules[module], name, PATIENCE_SECONDS)
        yield


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """What tests of a module have started has ended with them, also where one failed."""
    with leftovers.ended():
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session for all Spark tests; they are skipped, with the reason, without Java."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")
    from pathcast.spark.java import find_java
    from pathcast.spark.session import JVM_OPTIONS, local_session

    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    session = local_session(
        "local[2]",
        conf={"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))},
        # Tests are short: code that is compiled once, quickly, beats code that is compiled well.
        jvm_options=(*JVM_OPTIONS, "-XX:TieredStopAtLevel=1"),
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """One server for all tests of databases; they are skipped, with the reason, without it."""
    with postgresql_server() as server:
        leftovers.keep(server.process)
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'profiles.db'}"
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    return server.database()
