"""Profiles of a database that `pathcast sub` finds, checks and may change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from pathcast.cli.console import say_warning
from pathcast.cli.options import moment_given, read_labels
from pathcast.cli.stores import opened_store
from pathcast.errors import (
    ConfigError,
    UnsupportedQueryError,
    UnusableRowError,
)
from pathcast.limits import Limits
from pathcast.query import CostClass, compile_subscription
from pathcast.registry.delimited import TextPlace
from pathcast.registry.subscription_engines import SubscriptionEngines
from pathcast.registry.subscription_rows import RejectedSubscription, SubscriptionRows

if TYPE_CHECKING:
    from pathcast.store import ProfileRecord, Store

COMMAND: Final = "pathcast sub"


class Dear(StrEnum):
    """Choices of `--dear`."""

    ALLOW = "allow"
    WARN = "warn"
    REFUSE = "refuse"


class ProfileState(StrEnum):
    """Choices of `--state`."""

    ACTIVE = "active"
    PAUSED = "paused"


StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="PATHCAST_STORE",
        metavar="URL",
        help="The profile database: a SQLite file, sqlite:////PATH or postgresql://USER@HOST/NAME.",
    ),
]
NewOption = Annotated[
    bool, typer.Option("--new", help="Make the profile database, if it is not there.")
]
DearOption = Annotated[
    Dear,
    typer.Option(
        "--dear",
        envvar="PATHCAST_DEAR",
        help="For queries that are evaluated for every message, since they name nothing that has "
        "to be in it.",
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Valid from this moment on: ISO 8601, UTC unless it says otherwise; '' for no such.",
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Not valid any more from this moment on."),
]
OwnerFilter = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Only those of one subscriber.")
]
StateFilter = Annotated[
    ProfileState | None,
    typer.Option("--state", help="Only those in this state.", show_default=False),
]
LabelFilter = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="Only those that have it. Repeatable."),
]


def found_in(
    place: str, owner: str | None, state: ProfileState | None, label: list[str] | None
) -> list[ProfileRecord]:
    """The profiles of a database that have what the options ask for, by id."""
    fields = {"owner": owner, "state": None if state is None else state.value}
    with opened_store(place, COMMAND) as opened:
        from pathcast.store import ProfileRecord

        asked = {name: value for name, value in fields.items() if value is not None}
        return opened.find(ProfileRecord, labels=read_labels(label), **asked)


def profile_of(store: Store, id: str) -> ProfileRecord:
    """The profile of an id.

    Raises:
        ConfigError: There is none.
    """
    from pathcast.store import ProfileRecord

    found = store.get(ProfileRecord, id)
    if found is None:
        raise unknown(id)
    return found


def changeable(store: Store, id: str) -> ProfileRecord:
    """The profile of an id, which no broker hosts.

    Raises:
        ConfigError: There is none, or a broker hosts it.
    """
    found = profile_of(store, id)
    if found.host:
        reason = (
            f"the broker {found.host} hosts it; change it with pathcast registry change-interest, "
            "which tells the broker"
        )
        raise ConfigError("config.invalid", key=id, reason=reason)
    return found


def with_period(profile: ProfileRecord, start: str | None, end: str | None) -> ProfileRecord:
    """A profile with the moments that options give, in UTC; None leaves what it has.

    Raises:
        ConfigError: A text is no moment.
    """
    from msgspec.structs import replace

    if start is not None:
        profile = replace(profile, valid_from=_moment("--from", start))
    if end is not None:
        profile = replace(profile, valid_until=_moment("--until", end))
    return profile


def _moment(option: str, text: str) -> str:
    return moment_given(option, text).isoformat() if text else ""


def standing_of(profile: ProfileRecord) -> str:
    """Its state as pipelines see it now: "expired" and "not yet" come before the kept state."""
    starts, ends = profile.period_us()
    now = time.time_ns() // 1000
    if now >= ends:
        return "expired"
    return "not yet" if now < starts else profile.state


def unknown(id: str) -> ConfigError:
    """The error of an id that no subscription has."""
    reason = "there is no subscription of this id; pathcast sub ls lists all"
    return ConfigError("config.invalid", key=id, reason=reason)


class TakenProfiles(NamedTuple):
    """The outcome of checking profiles.

    Attributes:
        profiles: Those that can be subscribed to.
        costs: Their cost classes.
        rejected: The others.
    """

    profiles: list[ProfileRecord]
    costs: list[CostClass]
    rejected: list[RejectedSubscription]


def take_up(
    profiles: Sequence[ProfileRecord], places: Sequence[TextPlace], dear: Dear
) -> TakenProfiles:
    """Checks profiles as the database and a pipeline check them; warns of what is likely wrong.

    Args:
        profiles: Each of another id.
        places: Where each stands, for rejections.
        dear: What becomes of those that are evaluated for every message.

    Cost: 10 to 50 µs each.
    """
    from pathcast.store import check_record

    found = TakenProfiles([], [], [])
    kept, rows = [], SubscriptionRows([], [], [])
    for profile, place in zip(profiles, places, strict=True):
        row = profile.subscription()
        try:
            check_record(profile)
        except UnusableRowError as unusable:
            found.rejected.append(RejectedSubscription(row, unusable, place))
            continue
        kept.append(profile)
        rows.rows.append(row)
        rows.places.append(place)
    engines = SubscriptionEngines(Limits(), {})
    taken = engines.take_up(rows)
    for warned in engines.warnings(taken):
        say_warning(str(warned))
    found.rejected.extend(taken.rejected)
    for profile, row, place in zip(kept, rows.rows, rows.places, strict=True):
        if (row.subscriber, row.id) not in taken.takers:
            continue
        compiled = compile_subscription(row.query, row.namespaces, row.deliver, row.language)
        if compiled.cost is CostClass.SCAN and dear is not Dear.ALLOW:
            reason = str(compiled.reasons[0]) if compiled.reasons else "nothing has to be there"
            error = UnsupportedQueryError("subscription.dear", id=row.id, reason=reason)
            if dear is Dear.REFUSE:
                found.rejected.append(RejectedSubscription(row, error, place))
                continue
            say_warning(f"{place}: {error}")
        found.profiles.append(profile)
        found.costs.append(compiled.cost)
    return found
