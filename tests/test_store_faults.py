"""The store where things go wrong: writers side by side, kills, full disks, locks, other schemas.

If these fail, something that was acknowledged is gone, a reader skips a change, or an operator is
told nothing that helps.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from pathcast.errors import ConfigError, StoreError
from pathcast.store import ProfileRecord, Removal, Store
from pathcast.store.database import Database
from pathcast.store.tables import metadata
from patience import PATIENCE_SECONDS, wait_until
from postgresql_server import PostgresqlServer, postgresql_server
from store_cases import check_whole, profile


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(StoreError) as found:
        yield
    assert found.value.code == code, str(found.value)


def execute(url: str, *statements: str) -> None:
    database = Database(url)
    with database.writing() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    database.close()


def test_a_reader_misses_nothing_while_many_write(store_url: str) -> None:
    # Each writer has transactions of different lengths, some of which fail.
    stop = threading.Event()

    def writes(number: int) -> None:
        with Store.open(store_url, wait_seconds=PATIENCE_SECONDS) as store:
            for n in range(12):
                names = [f"w{number}-{n}-{part}" for part in range(1 + (number + n) % 4)]
                store.write([profile(name) for name in names])
                if n % 3 == 0:
                    with refused("store.conflict"):
                        store.write([profile(f"lost{number}"), profile(names[0])], check=True)
                if n % 4 == 0:
                    store.write([Removal("profile", names[0])])

    seen: list[int] = []

    def reads() -> None:
        with Store.open(store_url) as store:
            while True:
                is_last = stop.is_set()
                found = [change.position for change in store.changes(len(seen), 5)]
                assert found == list(range(len(seen) + 1, len(seen) + 1 + len(found)))
                seen.extend(found)
                if is_last and not found:
                    return

    with Store.open(store_url) as store:
        failures: list[BaseException] = []

        def guarded(work: object, *arguments: object) -> None:
            try:
                work(*arguments)  # type: ignore[operator]
            except BaseException as error:
                failures.append(error)

        reader = threading.Thread(target=guarded, args=(reads,))
        writers = [threading.Thread(target=guarded, args=(writes, n)) for n in range(4)]
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        stop.set()
        reader.join()
        assert failures == []
        changes = check_whole(store)
        assert len(seen) == len(changes) > 100
        assert not [change for change in changes if change.id.startswith("lost")]


KILLED = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from pathcast.store import ProfileRecord, Removal, Store

url = sys.argv[1]
for fatal in range(0, 1000, int(sys.argv[2])):
    child = os.fork()
    if not child:
        done = 0
        def count(*_):
            global done
            done += 1
            if done > fatal:
                os.kill(os.getpid(), signal.SIGKILL)
        for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
            event.listen(Engine, name, count)
        def said(text):
            os.write(1, f"{fatal} {text}\\n".encode())
        store = Store.open(url)
        said("open")
        store.write([ProfileRecord(f"a{fatal}", "ann", "//a"), ProfileRecord("x", "ann",
        f"//x{fatal}")],
                    request=f"r{fatal}")
        said("written")
        lease = store.take("l", str(fatal), 0.0)
        store.write([Removal("profile", f"a{fatal}")], lease=lease)
        said("removed")
        store.compact(store.position - 2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        os.write(1, f"{fatal} end\\n".encode())
        break
    assert status == signal.SIGKILL, status
"""


@pytest.mark.parametrize(
    "stride", [5, pytest.param(1, marks=pytest.mark.nightly)], ids=["some", "every"]
)
def test_a_kill_between_any_two_statements_loses_nothing_acknowledged(
    store_url: str, stride: int
) -> None:
    # The first runs die while the schema is made. Every run goes so many statements further.
    told = subprocess.run(
        [sys.executable, "-c", KILLED, store_url, str(stride)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout.split("\n")
    said: dict[int, list[str]] = {}
    for line in filter(None, told):
        number, text = line.split()
        said.setdefault(int(number), []).append(text)
    last = max(said)
    assert said[last][-1] == "end"
    assert last > 40, "it was killed hardly anywhere"
    with Store.open(store_url) as store:
        profiles = {each.id: each for each in store.state(ProfileRecord)[1]}
        with pytest.raises(StoreError) as compacted:
            store.changes(0)
        start = int(str(compacted.value.params["start"]))
        changes = store.changes(start)
        positions = [change.position for change in changes]
        assert positions == list(range(start + 1, store.position + 1))
        for run, texts in said.items():
            if "written" in texts:
                assert store.done(f"r{run}") == ("profile", f"a{run}") or "removed" in texts
            if "removed" in texts:
                assert f"a{run}" not in profiles
            elif "written" in texts:
                # Killed before the removal was acknowledged: it was done or it was not.
                removed = any(each.id == f"a{run}" and not each.record for each in changes)
                assert f"a{run}" in profiles or removed or start > 0
        acknowledged = [number for number, texts in said.items() if "written" in texts]
        assert profiles["x"].query in {f"//x{number}" for number in range(max(acknowledged), 1000)}


def test_a_lock_of_somebody_else_is_waited_for_and_told(store_url: str) -> None:
    with Store.open(store_url, wait_seconds=0.3) as store:
        other = Database(store_url)
        with other.writing() as connection:
            connection.exec_driver_sql("UPDATE head SET position = position")
            with refused("store.locked"):
                store.write([profile("a")])
            assert store.changes(0) == [], "a reader waits for writers"
        other.close()
        assert store.write([profile("a")]) == 1
    assert StoreError("store.locked").retry


def test_a_schema_of_a_newer_pathcast_is_refused(store_url: str) -> None:
    Store.open(store_url).close()
    execute(store_url, "UPDATE alembic_version SET version_num = '9999'")
    with refused("store.newer"):
        Store.open(store_url)


def test_an_older_schema_is_brought_up_to_date_if_that_is_allowed(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(store_url) as store:
        store.write([profile("a")])
    execute(store_url, "ALTER TABLE profiles DROP COLUMN steps")
    execute(store_url, "ALTER TABLE profiles DROP COLUMN language")
    execute(store_url, "ALTER TABLE profiles DROP COLUMN former")
    execute(store_url, "ALTER TABLE profiles DROP COLUMN handed")
    execute(store_url, "ALTER TABLE profiles DROP COLUMN valid_from")
    execute(store_url, "ALTER TABLE profiles DROP COLUMN valid_until")
    execute(store_url, "DROP TABLE placements")
    execute(store_url, "DROP TABLE samples")
    execute(store_url, "ALTER TABLE catalogs DROP COLUMN validated")
    execute(store_url, "DROP INDEX ix_log_id")
    execute(store_url, "ALTER TABLE log DROP COLUMN at")
    execute(store_url, "UPDATE alembic_version SET version_num = '0001'")
    with refused("store.older"):
        Store.open(store_url, migrate=False)
    with Store.open(store_url) as store:  # as it was before profiles had steps
        assert [(each.id, each.steps) for each in store.state(ProfileRecord)[1]] == [("a", ())]
    steps = tmp_path / "steps"
    steps.mkdir()
    migrations = Path(sys.modules["pathcast.store"].__file__ or "").parent / "migrations"
    for name in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh"):
        (steps / f"{name}.py").write_text((migrations / f"{name}.py").read_text())
    (steps / "eighth.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\nrevision='0008'\ndown_revision='0007'\n"
        "def upgrade():\n    op.add_column('brokers', sa.Column('more', sa.String))\n"
    )
    monkeypatch.setattr("pathcast.store.migrating._MIGRATIONS", steps)
    with refused("store.older"):
        Store.open(store_url, migrate=False)
    with Store.open(store_url) as store:
        assert [each.id for each in store.state(ProfileRecord)[1]] == ["a"]
    monkeypatch.undo()
    with refused("store.newer"):
        Store.open(store_url)


def test_many_that_open_an_empty_database_at_once_make_one_schema(store_url: str) -> None:
    failures: list[BaseException] = []

    def opens(number: int) -> None:
        try:
            with Store.open(store_url, wait_seconds=PATIENCE_SECONDS) as store:
                store.write([profile(f"p{number}")])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=opens, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Store.open(store_url) as store:
        assert len(check_whole(store)) == 6


def test_the_migrations_make_the_tables_that_the_code_knows(store_url: str) -> None:
    Store.open(store_url).close()
    database = Database(store_url)
    with database.reading() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
        assert sa.inspect(connection).get_table_names(), "nothing was compared"
    database.close()
    assert differences == []


class TestSqlite:
    def test_every_commit_is_synced(self, tmp_path: Path) -> None:
        Store.open(tmp_path / "a.db").close()
        database = Database(tmp_path / "a.db")
        with database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        database.close()

    def test_a_full_disk_is_told_and_costs_nothing_that_was_written(self, tmp_path: Path) -> None:
        with Store.open(tmp_path / "a.db") as store:
            store.write([profile("a")])

            @sa.event.listens_for(store._database.engine, "checkout")
            def small(connection: sqlite3.Connection, *_: object) -> None:
                connection.execute("PRAGMA max_page_count = 60")

            with refused("store.full"):
                store.write([profile(f"p{n}", "x" * 10_000) for n in range(50)])
            assert [change.id for change in check_whole(store)] == ["a"]
            store.write([profile("b")])

    def test_what_is_no_database_is_refused_and_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        path.write_bytes(b"not a database at all, but quite a long text" * 100)
        before = path.read_bytes()
        with refused("store.damaged"):
            Store.open(path)
        assert path.read_bytes() == before

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with refused("store.away"):
            Store.open(tmp_path / "none" / "a.db")

    def test_a_damaged_page_is_told(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with Store.open(path) as store:
            store.write([profile(f"p{n}") for n in range(2000)])
        content = bytearray(path.read_bytes())
        content[4096 * 8 :] = b"\xff" * (len(content) - 4096 * 8)
        path.write_bytes(content)
        with refused("store.damaged"), Store.open(path) as store:
            store.changes(0, 10_000)


class TestPostgresql:
    def test_a_full_disk_is_told(self, postgresql: PostgresqlServer) -> None:
        # The server says so where the disk is full; here a trigger says it in its place.
        url = postgresql.database()
        with Store.open(url) as store:
            store.write([profile("a")])
            execute(
                url,
                "CREATE FUNCTION full_() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "RAISE SQLSTATE '53100' USING MESSAGE = 'could not extend file'; END $$",
                "CREATE TRIGGER full_ BEFORE INSERT ON log EXECUTE FUNCTION full_()",
            )
            with refused("store.full"):
                store.write([profile("b")])
            assert [change.id for change in check_whole(store)] == ["a"]

    def test_a_server_that_goes_and_comes_again(self) -> None:
        with postgresql_server() as server:
            url = server.database()
            with Store.open(url) as store:
                store.write([profile("a")])
                lease = store.take("l", "me", 60.0)
                assert lease is not None
                server.stop()
                for call in (
                    lambda: store.write([profile("b")]),
                    lambda: store.changes(0),
                    lambda: store.take("l", "me", 60.0, lease),
                    lambda: Store.open(url),
                ):
                    with refused("store.away"):
                        call()
                server.start()
                assert store.take("l", "me", 60.0, lease) == lease
                store.write([profile("b")], lease=lease)
                assert [change.id for change in check_whole(store)] == ["a", "b"]
        assert StoreError("store.away").retry

    def test_a_password_is_not_shown(self) -> None:
        with pytest.raises(StoreError) as found:
            Store.open("postgresql://ann:secret@/x?host=/nowhere/at/all")
        assert found.value.code == "store.away"
        assert "secret" not in str(found.value)


@pytest.mark.parametrize("url", ["", "mysql://x/y", "sqlite://", "sqlite:///:memory:", "nonsense"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        Store.open(url)


class TestLeases:
    def test_one_holds_it_and_the_next_has_the_next_token(self, store_url: str) -> None:
        with Store.open(store_url) as one, Store.open(store_url) as other:
            first = one.take("l", "one", 60.0)
            assert first is not None
            assert other.take("l", "other", 60.0) is None
            assert other.take("elsewhere", "other", 60.0) is not None
            assert one.take("l", "one", 60.0, first) == first
            # A process of the same name that has been started again is another holder.
            assert one.take("l", "one", 60.0) is None
            one.give_back(first)
            second = other.take("l", "other", 60.0)
            assert second is not None
            assert second.token > first.token
            assert one.take("l", "one", 60.0, first) is None

    def test_a_deposed_holder_writes_nothing_any_more(self, store_url: str) -> None:
        with Store.open(store_url) as one, Store.open(store_url) as other:
            first = one.take("l", "one", 0.0)
            assert first is not None
            one.write([profile("a")], lease=first)
            second = other.take("l", "other", 60.0)
            assert second is not None
            with refused("store.deposed"):
                one.write([profile("b")], lease=first)
            one.give_back(first)
            other.write([profile("c")], lease=second)
            assert [change.id for change in check_whole(one)] == ["a", "c"]

    def test_a_lease_that_nobody_took_over_can_be_renewed_late(self, store_url: str) -> None:
        with Store.open(store_url) as store:
            held = store.take("l", "me", 0.0)
            assert store.take("l", "me", 60.0, held) == held

    def test_candidates_at_once_and_one_gets_it(self, store_url: str) -> None:
        for _ in range(5):
            won: list[object] = []
            barrier = threading.Barrier(4, timeout=PATIENCE_SECONDS)

            def tries(number: int, won: list[object], barrier: threading.Barrier) -> None:
                with Store.open(store_url, wait_seconds=PATIENCE_SECONDS) as store:
                    barrier.wait()
                    lease = store.take("l", f"n{number}", 60.0)
                    won.append(lease)
                    barrier.wait()
                    if lease is not None:
                        store.give_back(lease)

            threads = [threading.Thread(target=tries, args=(n, won, barrier)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sum(lease is not None for lease in won) == 1

    def test_postgresql_tells_at_once_that_a_holder_is_gone(
        self, postgresql: PostgresqlServer
    ) -> None:
        url = postgresql.database()
        code = (
            "import sys, time\nfrom pathcast.store import Store\n"
            f"store = Store.open({url!r})\nprint(store.take('l', 'child', 600.0).token, flush=True)"
            "\ntime.sleep(600)"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert child.stdout is not None
        with child, Store.open(url) as store:
            token = int(child.stdout.readline())
            assert store.take("l", "me", 60.0) is None
            child.send_signal(signal.SIGKILL)
            child.wait()
            # The server hears that the connection is gone, in its own time.
            lease = wait_until(lambda: store.take("l", "me", 60.0))
            assert lease is not None
            assert lease.token == token + 1
