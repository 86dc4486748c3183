"""The log of a Delta table, version by version: which files a version adds, and what else it does.

    _delta_log/00000000000000000007.json     version 7, an action a line
    _delta_log/_last_checkpoint              a version up to which the log is summed up

A version that is there never changes. Actions that move rows and change none (`optimize`) say so:
their `dataChange` is false, and they are no news to whoever has had the rows. Checkpoints are left
to the library `deltalake`.

Source: the Delta transaction log protocol, "Delta Log Entries" and "Actions".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from pathcast.errors import SourceError
from pathcast.spark.storage import Storage

LOG: Final = "_delta_log"
LAST_CHECKPOINT: Final = f"{LOG}/_last_checkpoint"

READER_VERSION_MAX: Final = 3
READER_FEATURES: Final = frozenset(
    {
        # Files that have deletion vectors are refused by themselves, tables with renamed columns
        # by the setting that says so.
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
    }
)
"""What a table may ask of its readers: nothing here changes what a file of rows says."""


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file of rows that a version adds, with the values of its partition as text.

    Attributes:
        has_deletions: Whether some of its rows do not count.
    """

    name: str
    partition: Mapping[str, str | None]
    has_deletions: bool = False


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The changes of one table version to the rows.

    Attributes:
        added: Files with rows that are new, in the order of the log.
        takes_rows_away: Whether it removes files with rows that were there, or writes them anew.
        table_id: Id of the table, where the version says it.
        told: What the version says of itself, such as "DELETE"; empty where it does not.
    """

    number: int
    added: tuple[AddedFile, ...]
    takes_rows_away: bool
    table_id: str | None = None
    told: str = ""


def read_version(storage: Storage, number: int) -> TableVersion | None:
    """A version of a table; None where the log does not have it.

    Raises:
        SourceError: It cannot be understood, or asks for what is not known here.
        OSError: It cannot be read.

    Cost: one small file.
    """
    name = f"{LOG}/{number:020}.json"
    try:
        content = storage.read(name)
    except FileNotFoundError:
        return None
    place = storage.url(name)
    try:
        return _version(number, content, place)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{place}: {type(error).__name__}: {error}"
        raise SourceError("delta.damaged", path=str(storage), reason=reason) from error


def _version(number: int, content: bytes, place: str) -> TableVersion:
    added: list[AddedFile] = []
    takes_rows_away, table_id, told = False, None, ""
    for line in content.splitlines():
        if not line.strip():
            continue
        (kind, action), *_ = json.loads(line).items()
        if kind == "add" and action["dataChange"]:
            has_deletions = action.get("deletionVector") is not None
            name = relative(action["path"], place)
            values = (action.get("partitionValues") or {}).items()
            partition = {key: None if value is None else str(value) for key, value in values}
            added.append(AddedFile(name, partition, has_deletions))
        elif kind == "remove":
            takes_rows_away = takes_rows_away or bool(action["dataChange"])
        elif kind == "protocol":
            features = action.get("readerFeatures") or ()
            check_protocol(place, action["minReaderVersion"], features)
        elif kind == "metaData":
            table_id = action["id"]
            check_configuration(place, action.get("configuration") or {})
        elif kind == "commitInfo":
            told = str(action.get("operation", ""))
    return TableVersion(number, tuple(added), takes_rows_away, table_id, told)


def relative(path: str, place: str) -> str:
    """The name of a file inside its table, as the log writes it.

    Raises:
        SourceError: It lies elsewhere, or would.

    Example:
        >>> relative("day=a%2520b/part-0.parquet", "t")
        'day=a%20b/part-0.parquet'
    """
    name = unquote(path)
    is_inside = not name.startswith(("/", "file:")) and ".." not in name.split("/")
    if "://" in name or "\0" in name or not is_inside:
        reason = f"it has a file outside of itself, {path}, as a shallow clone does"
        raise SourceError("delta.unsupported", path=place, reason=reason)
    return name


def check_protocol(place: str, reader_version: int, features: Any) -> None:
    """Refuses (SourceError) a table that asks more of its readers than is known here."""
    unknown = sorted(set(features) - READER_FEATURES)
    if unknown or reader_version > READER_VERSION_MAX:
        what = ", ".join(unknown) or f"version {reader_version} of the protocol"
        reason = f"its readers have to know {what}"
        raise SourceError("delta.unsupported", path=place, reason=reason)


def check_configuration(place: str, configuration: Mapping[str, str | None]) -> None:
    """Refuses (SourceError) a table whose files have other names for its columns."""
    mode = configuration.get("delta.columnMapping.mode") or "none"
    if mode != "none":
        reason = f"its columns have other names in its files (delta.columnMapping.mode = {mode})"
        raise SourceError("delta.unsupported", path=place, reason=reason)


def versions_there(storage: Storage) -> list[int]:
    """Versions that the log has by themselves, ascending. Cost: one listing."""
    stems = [name.removesuffix(".json") for name in storage.names(LOG) if name.endswith(".json")]
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdecimal())


def last_checkpoint(storage: Storage) -> int:
    """The version of the last checkpoint; -1 for none. What comes after it is in the log.

    Raises:
        OSError: It cannot be read.
    """
    try:
        found = json.loads(storage.read(LAST_CHECKPOINT))["version"]
    except FileNotFoundError:
        return -1
    except (ValueError, KeyError, TypeError):
        return -1  # a hint only, which its writer may be writing
    return found if isinstance(found, int) else -1
