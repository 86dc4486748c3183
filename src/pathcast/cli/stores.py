"""The profile database that a command is given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pathcast.cli.console import extra

if TYPE_CHECKING:
    from pathcast.store import Store


@contextmanager
def opened_store(place: str, command: str, *, is_new: bool = False) -> Iterator[Store]:
    """The database, whose schema stays as it is.

    Args:
        place: A SQLite file, or the URL of a database.
        command: Whoever needs the libraries of it, for an error.
        is_new: Whether it is made where there is none.

    Raises:
        MissingDependencyError: The extra "net" is not installed.
        StoreError: It cannot be opened.
    """
    with extra("net", command):
        from pathcast.store import Store
        from pathcast.transport.settings import database_of
    with Store.open(database_of(place), migrate=is_new, create=is_new) as opened:
        yield opened
