r"""Records of the store: profiles, data sources, catalogs, brokers, the placement, and changes.

A record is a value; its `version` is the position of the change that made it, set by the store and
never used twice, so that who read a record can say which one. A record that has a text which no
database and no message could hold is refused before anything is written.

Example:
    >>> check_record(ProfileRecord("p1", "ann", "//book[price < 30]", labels={"tier": "gold"}))
    >>> check_record(ProfileRecord("p1", "a\0nn", "//book"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    pathcast.errors.UnusableRowError: the owner has the character U+0000 at character 1, which ...

It reads no query: whether a text is one is for the engine to say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, TypeVar, get_args

import msgspec

from pathcast.engine.rows import check_text
from pathcast.errors import UnusableRowError
from pathcast.limits import KIB, MIB
from pathcast.model import (
    DELIVER_MODES,
    QUERY_LANGUAGES,
    DeliverMode,
    QueryLanguage,
    Subscription,
)
from pathcast.moments import LONG_AGO_US, NEVER_US, moment_us

ID_BYTES_MAX: Final = 512
"""Bytes of an id, an address, a location, a name of a label."""

QUERY_BYTES_MAX: Final = 1088 * KIB
"""Bytes of the query of a profile; the engine takes fewer and may take more one day."""

SCHEMA_BYTES_MAX: Final = 8 * MIB
"""Bytes of a schema."""

LABELS_MAX: Final = 64
"""Labels of a profile, and namespaces, and steps."""

STEP_BYTES_MAX: Final = 4 * KIB
"""Bytes of a step of a profile."""

HANDED_MAX: Final = 10_000
"""Root brokers of `ProfileRecord.handed`."""

SAMPLE_BYTES_MAX: Final = 64 * KIB
"""Bytes of a message of a sample."""

NUMBER_MAX: Final = 2**53
"""Numbers are kept exactly up to here, in JSON too."""


class ProfileRecord(msgspec.Struct, frozen=True, tag="profile"):
    """A user's subscription, with its owner and the broker that serves it.

    Attributes:
        id: Unique in the store.
        owner: Whom deliveries go to.
        query: XPath or XQuery, as `Subscription` has it.
        deliver: Likewise.
        namespaces: Likewise; empty for none.
        labels: What the owner or an operator wants to find it by.
        state: "active", or "paused": kept, and nothing is delivered.
        host: Id of the host broker; empty for none.
        pending: Whether the host has not said yet that it knows.
        address: Where deliveries go in the network; empty for none.
        version: Position of the change that made it; 0 before it is written.
        steps: What is done to a message before the query sees it, in order.
        language: "xpath1" or "xquery"; None leaves it to the text.
        former: Id of the broker that hosted it before and still has deliveries of it; empty for
            none.
        handed: Once the host serves it: root broker -> number of its stream, and the position
            after which the host has everything of it; the former host goes on up to there.
        valid_from: Moment, ISO 8601, from which pipelines answer it; empty for no such moment.
        valid_until: Moment from which they do not any more; likewise.
    """

    id: str
    owner: str
    query: str
    deliver: DeliverMode = "fragment"
    namespaces: dict[str, str] = {}
    labels: dict[str, str] = {}
    state: Literal["active", "paused"] = "active"
    host: str = ""
    pending: bool = False
    address: str = ""
    version: int = 0
    steps: tuple[str, ...] = ()
    language: QueryLanguage | None = None
    former: str = ""
    handed: dict[str, tuple[int, int]] = {}
    valid_from: str = ""
    valid_until: str = ""

    def period_us(self) -> tuple[int, int]:
        """The moments from which and up to which it is valid, in microseconds since 1970.

        Example:
            >>> ProfileRecord("p1", "ann", "//a", valid_from="1970-01-01").period_us()
            (0, 9223372036854775807)

        Raises:
            ValueError: One of them is no moment.
        """
        starts = moment_us(self.valid_from) if self.valid_from else LONG_AGO_US
        return starts, moment_us(self.valid_until) if self.valid_until else NEVER_US

    def subscription(self) -> Subscription:
        """Convert the profile to a subscription for an engine."""
        bound, rest = dict(self.namespaces) or None, (self.steps, self.language)
        return Subscription(self.id, self.owner, self.query, self.deliver, bound, *rest)


class SourceRecord(msgspec.Struct, frozen=True, tag="source"):
    """A data source, as it registered.

    Attributes:
        id: Given by the registration service.
        address: Where it is in the network.
        location: Where it is on the map: names from the widest to the narrowest, "eu/ch/bern".
        catalog: Number of its current `CatalogRecord`.
        messages_a_second: Expected.
        message_bytes: Expected.
        root: Id of its root broker.
        pending: Whether the root broker has not said yet that it knows.
        version: As for `ProfileRecord`.
    """

    id: str
    address: str
    location: str
    catalog: int
    messages_a_second: float
    message_bytes: float
    root: str
    pending: bool = False
    version: int = 0


class CatalogRecord(msgspec.Struct, frozen=True, tag="catalog"):
    """One version of the schema of a data source; it never changes.

    Attributes:
        id: "SOURCE@NUMBER".
        source: Id of the source.
        number: From 1.
        schema: A DTD or an XML Schema; empty where the source has none.
        validated: Whether the root broker takes valid messages only.
        version: As for `ProfileRecord`.
    """

    id: str
    source: str
    number: int
    schema: str
    validated: bool = False
    version: int = 0


class BrokerRecord(msgspec.Struct, frozen=True, tag="broker"):
    """A broker, as a part that one node or another plays.

    Attributes:
        id: Of the part; a backup that takes over has the same.
        address: Of the node that plays it.
        location: As for `SourceRecord`.
        bandwidth: Bytes a second that sources may send it.
        profiles_max: Profiles that it may host.
        partitions: Partitions of the placement whose profiles it hosts.
        token: Of the lease under which the node plays it.
        state: "active", or "gone": it gets no more sources and profiles.
        version: As for `ProfileRecord`.
    """

    id: str
    address: str
    location: str
    bandwidth: float
    profiles_max: int
    partitions: tuple[int, ...] = ()
    token: int = 0
    state: Literal["active", "gone"] = "active"
    version: int = 0


class PlacementRecord(msgspec.Struct, frozen=True, tag="placement"):
    """Which partition a profile is in, and how good that was when it was measured last.

    Attributes:
        id: "hosts".
        content: The placement, as `pathcast.overlay.placing` writes it; empty while there is none.
        profiles: Profiles that it was measured on.
        messages: Messages that it was measured on; 0: on the values that profiles ask for.
        unplaced: Share of the profiles that have none of its patterns.
        touched: Partitions that a message goes to, on average.
        visited: Share of the profiles that are in these.
        anew: What `visited` would be with a placement made now.
        measured_at: Position of the log that it was measured at.
        made_at: Position of the log that it was made at.
        wanted: Whether an operator wants it made anew, however good it is.
        version: As for `ProfileRecord`.
    """

    id: str
    content: bytes = b""
    profiles: int = 0
    messages: int = 0
    unplaced: float = 0.0
    touched: float = 0.0
    visited: float = 0.0
    anew: float = 0.0
    measured_at: int = 0
    made_at: int = 0
    wanted: bool = False
    version: int = 0

    @property
    def drift(self) -> float:
        """Share of the profiles that a message visits in vain, compared with a placement of now."""
        return self.visited - self.anew


class SampleRecord(msgspec.Struct, frozen=True, tag="sample"):
    """Some of the messages that a source has published.

    Attributes:
        id: Of the source.
        messages: Their texts.
        version: As for `ProfileRecord`.
    """

    id: str
    messages: tuple[str, ...] = ()
    version: int = 0


Record: TypeAlias = (
    ProfileRecord | SourceRecord | CatalogRecord | BrokerRecord | PlacementRecord | SampleRecord
)

KINDS: Final[Mapping[str, type[Record]]] = {
    str(record.__struct_config__.tag): record for record in get_args(Record)
}
"""Name of a kind of record -> its class."""

SomeRecord = TypeVar("SomeRecord", bound=Record)
"""One of the kinds of records."""


class Removal(msgspec.Struct, frozen=True, tag="removal"):
    """A record is to go; nothing if it is not there.

    Attributes:
        kind: One of `KINDS`.
        id: Which.
    """

    kind: str
    id: str


class ChangeRecord(msgspec.Struct, frozen=True):
    """One entry of the log.

    Attributes:
        position: From 1, without gaps.
        kind: One of `KINDS`.
        id: Of the record.
        record: As it is from here on; None where it was removed.
    """

    position: int
    kind: str
    id: str
    record: Record | None


_MAXIMUM: Final = {
    "query": QUERY_BYTES_MAX,
    "schema": SCHEMA_BYTES_MAX,
    "content": SCHEMA_BYTES_MAX,
    "steps": STEP_BYTES_MAX,
    "messages": SAMPLE_BYTES_MAX,
}
_CHOICES: Final[Mapping[type[Record], Mapping[str, tuple[str | None, ...]]]] = {
    ProfileRecord: {
        "state": ("active", "paused"),
        "deliver": DELIVER_MODES,
        "language": (None, *QUERY_LANGUAGES),
    },
    BrokerRecord: {"state": ("active", "gone")},
}


def kind_of(record: Record | Removal) -> str:
    """The name of the kind of a record, or of what is removed."""
    if isinstance(record, Removal):
        return record.kind
    return str(record.__struct_config__.tag)


def check_record(record: object) -> None:
    """Refuses what cannot be kept as it is.

    Raises:
        UnusableRowError: It is no record, has a field of a wrong type, too long, or with characters
            that XML does not allow, or has no id or, a profile, no owner,
            or is never valid.

    Cost: about 3 µs.
    """
    if isinstance(record, Removal):
        if record.kind not in KINDS:
            raise _wrong("kind", f"one of {', '.join(KINDS)}", record.kind)
        check_short(record.id, "id")
        return
    if not isinstance(record, Record):
        raise UnusableRowError("row.type", expected="record", found=type(record).__name__)
    kind = type(record)
    choices = _CHOICES.get(kind, {})
    for name in kind.__struct_fields__:
        value = getattr(record, name)
        declared = kind.__annotations__[name]
        if name in choices:
            if value not in choices[name]:
                raise _wrong(name, f"one of {', '.join(map(str, choices[name]))}", value)
        elif declared == "bool":
            if not isinstance(value, bool):
                raise _wrong(name, "true or false", value)
        elif declared == "str":
            check_short(value, name, _MAXIMUM.get(name, ID_BYTES_MAX))
        elif declared == "bytes":
            if not isinstance(value, bytes) or len(value) > _MAXIMUM[name]:
                raise _wrong(name, f"at most {_MAXIMUM[name]} bytes", value)
        elif declared == "dict[str, str]":
            _check_texts(value, name)
        elif declared == "dict[str, tuple[int, int]]":
            _check_positions(value, name)
        elif declared in ("tuple[int, ...]", "tuple[str, ...]"):
            if not isinstance(value, tuple):
                raise _wrong(name, "a tuple", value)
            if declared == "tuple[str, ...]" and len(value) > LABELS_MAX:
                raise _wrong(name, f"at most {LABELS_MAX}", len(value))
            for each in value:
                if declared == "tuple[int, ...]":
                    _check_number(each, name, int)
                else:
                    check_short(each, name, _MAXIMUM[name])
        else:
            _check_number(value, name, int if declared == "int" else float)
    if not record.id:
        raise _wrong("id", "not empty", "")
    if isinstance(record, ProfileRecord) and not record.owner:
        raise _wrong("owner", "not empty", "")
    if isinstance(record, ProfileRecord) and (record.valid_from or record.valid_until):
        _check_period(record)


def checked_changes(
    changes: Iterable[Record | Removal], request: str | None
) -> list[Record | Removal]:
    """Check the changes of one write.

    Raises:
        UnusableRowError: A record cannot be kept, two are of one id, or the name of the request
            cannot be kept, or nothing is there that it could have made.
    """
    wanted = list(changes)
    seen: set[tuple[str, str]] = set()
    for change in wanted:
        check_record(change)
        key = (kind_of(change), change.id)
        if key in seen:
            raise _wrong("id", "in a write once", change.id)
        seen.add(key)
    if request is not None:
        check_short(request, "request")
        if not wanted:
            raise _wrong("changes", "not empty where there is a request", wanted)
    return wanted


def check_short(value: object, field: str, maximum: int = ID_BYTES_MAX) -> None:
    """Refuses what is no text, is too long, or has characters that XML does not allow."""
    if type(value) is str and value.isascii() and value.isprintable() and len(value) <= maximum:
        return
    if isinstance(value, str) and len(value) > maximum:
        raise UnusableRowError("row.length", field=field, given=len(value), maximum=maximum)
    check_text(value, field)
    assert isinstance(value, str)
    given = len(value) if value.isascii() else len(value.encode())
    if given > maximum:
        raise UnusableRowError("row.length", field=field, given=given, maximum=maximum)
    for at, character in enumerate(value if not value.isprintable() else ""):
        if (character < " " and character not in "\t\n\r") or character in "\ufffe\uffff":
            shown = f"U+{ord(character):04X}"
            raise UnusableRowError("row.character", field=field, character=shown, offset=at)


def _check_texts(value: object, name: str) -> None:
    if not isinstance(value, dict):
        raise _wrong(name, "a dictionary", value)
    if len(value) > LABELS_MAX:
        raise _wrong(name, f"at most {LABELS_MAX}", len(value))
    for key, each in value.items():
        check_short(key, name)
        check_short(each, name)


def _check_positions(value: object, name: str) -> None:
    if not isinstance(value, dict):
        raise _wrong(name, "a dictionary", value)
    if len(value) > HANDED_MAX:
        raise _wrong(name, f"at most {HANDED_MAX}", len(value))
    for key, each in value.items():
        check_short(key, name)
        if not isinstance(each, tuple) or len(each) != 2:
            raise _wrong(name, "a pair", each)
        for number in each:
            _check_number(number, name, int)


def _check_period(profile: ProfileRecord) -> None:
    for name in ("valid_from", "valid_until"):
        value = getattr(profile, name)
        try:
            moment_us(value or "1970-01-01")
        except ValueError as error:
            raise _wrong(name, "a moment such as 2026-03-01T12:00Z, or empty", value) from error
    starts, ends = profile.period_us()
    if starts >= ends:
        raise _wrong("valid_until", f"after {profile.valid_from}", profile.valid_until)


def _check_number(value: object, name: str, kind: type) -> None:
    kinds = (int,) if kind is int else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise _wrong(name, "a whole number" if kind is int else "a number", value)
    assert isinstance(value, (int, float))
    if not math.isfinite(value) or not 0 <= value <= NUMBER_MAX:
        raise _wrong(name, f"from 0 to {NUMBER_MAX}", value)


def _wrong(field: str, expected: str, value: object) -> UnusableRowError:
    found = repr(value) if len(repr(value)) <= 40 else type(value).__name__
    return UnusableRowError("row.field", field=field, expected=expected, found=found)
