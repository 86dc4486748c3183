"""The schema of the store brought up to date, and refused where it is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from pathcast.errors import StoreError
from pathcast.store.database import Database

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_LOCK: Final = 0x70617468
"""Key of the lock that a migration holds in PostgreSQL."""


def bring_up_to_date(database: Database, *, migrate: bool, create: bool = True) -> None:
    """Makes sure that the database has the schema that this Pathcast knows.

    Args:
        database: Which.
        migrate: Whether an older schema is brought up to date. All steps are one transaction: a
            process that is killed meanwhile leaves the schema as it was.
        create: Whether an empty one gets the schema.

    Raises:
        StoreError: "store.newer", "store.older", "store.absent", or what the database says.
    """
    config = Config()
    # Options of Alembic are templates, where a percent sign is doubled.
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("version_locations", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)
    known = script.get_current_head()
    with database.reading() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    if found == known:
        return
    revisions = {each.revision for each in script.walk_revisions()}
    if found is not None and found not in revisions:
        raise StoreError("store.newer", url=database.shown, found=found, known=known)
    if found is not None and not migrate:
        raise StoreError("store.older", url=database.shown, found=found, known=known)
    if found is None and not create:
        raise StoreError("store.absent", url=database.shown)
    with database.writing() as connection:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        _upgrade(connection, config, script)


def _upgrade(connection: Connection, config: Config, script: ScriptDirectory) -> None:
    def steps(revision: Any, _: object) -> Any:
        # Read under the lock: somebody else may have been first.
        return script._upgrade_revs("head", revision)

    with EnvironmentContext(config, script, fn=steps) as environment:
        environment.configure(connection=connection, transactional_ddl=False)
        environment.run_migrations()
