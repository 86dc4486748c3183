"""`pathcast sub import` and `export`: all subscriptions of a database, from and to a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from pathcast.cli.console import say, say_error
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import (
    LanguageOption,
    NamespaceOption,
    ValuesOption,
    read_language,
    read_namespaces,
)
from pathcast.cli.queries import told
from pathcast.cli.stores import opened_store
from pathcast.cli.sub_store import (
    COMMAND,
    Dear,
    DearOption,
    FromOption,
    LabelFilter,
    NewOption,
    OwnerFilter,
    StateFilter,
    StoreOption,
    UntilOption,
    found_in,
    take_up,
    with_period,
)
from pathcast.engine import carried_mode
from pathcast.errors import ConfigError
from pathcast.model import Subscription
from pathcast.registry import rows_with_values
from pathcast.registry.delimited import TextPlace, read_text
from pathcast.registry.subscription_rows import (
    RejectedSubscription,
    SubscriptionRows,
    read_rows,
)

if TYPE_CHECKING:
    from pathcast.store import ProfileRecord

RECORDS_SUFFIX: Final = ".jsonl"


def import_file(
    file: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="A table (.tsv, .csv, .parquet), a .xq file or a folder of them, as pathcast run "
            f"reads them; or {RECORDS_SUFFIX}, as pathcast sub export writes it.",
        ),
    ],
    store: StoreOption,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Remove the subscriptions that the file does not have."),
    ] = False,
    skip: Annotated[
        bool,
        typer.Option("--skip-rejected", help="Take in the others where some are rejected."),
    ] = False,
    namespace: NamespaceOption = None,
    language: LanguageOption = None,
    values: ValuesOption = None,
    start: FromOption = None,
    end: UntilOption = None,
    dear: DearOption = Dear.WARN,
    new: NewOption = False,
) -> ExitCode:
    """Take in a file of subscriptions: all of it, or nothing.

    What is rejected is told with file, line and reason.

    A subscription whose id is known is changed; labels, namespaces, a state and
    times that a table cannot say stay. Times that are given are those of all of
    the file. What is as it was is not written:

        pathcast sub import subscriptions.tsv --replace
        pathcast sub import all.jsonl --store postgresql://pathcast@db.example/profiles
    """
    bound = read_namespaces(namespace)
    with opened_store(store, COMMAND, is_new=new) as opened:
        from pathcast.store import ProfileRecord, Removal

        kept = {each.id: each for each in opened.state(ProfileRecord)[1]}
        if file.suffix == RECORDS_SUFFIX:
            found = _of_records(file)
        else:
            read = read_rows(file, "fragment", read_language(language))
            found = _of_rows(rows_with_values(read, values), kept, bound)
        profiles, places, rejected = _once(found, kept)
        profiles = [with_period(each, start, end) for each in profiles]
        taken = take_up(profiles, places, dear)
        rejected += taken.rejected
        for each in rejected:
            say_error(told(each))
        if rejected and not skip:
            say(f"{len(rejected):,} are rejected, and nothing is taken in")
            return ExitCode.REFUSED
        wanted = [each for each in taken.profiles if each != kept.get(each.id)]
        named = {each.id for each in profiles} | {each.row.id for each in rejected}
        gone = [
            each.id for each in kept.values() if replace and each.id not in named and not each.host
        ]
        opened.write([*wanted, *(Removal("profile", id) for id in gone)], check=True)
    added = sum(each.id not in kept for each in wanted)
    say(
        f"{added:,} added, {len(wanted) - added:,} changed, {len(gone):,} removed, "
        f"{len(taken.profiles) - len(wanted):,} as they were, {len(rejected):,} rejected"
    )
    return ExitCode.REFUSED if rejected else ExitCode.OK


class _Read(NamedTuple):
    """Subscriptions of a file.

    Attributes:
        profiles: As the database is to have them.
        places: Where each stands.
        rejected: What is none.
    """

    profiles: list[ProfileRecord]
    places: list[TextPlace]
    rejected: list[RejectedSubscription]


def _of_rows(
    rows: SubscriptionRows, kept: Mapping[str, ProfileRecord], bound: dict[str, str]
) -> _Read:
    """Rows as profiles, with what they cannot say as the database has it."""
    from msgspec.structs import replace

    from pathcast.store import ProfileRecord

    profiles = []
    for row in rows.rows:
        made = ProfileRecord(
            row.id,
            row.subscriber,
            row.query,
            carried_mode(row.deliver),
            bound,
            steps=row.steps,
            language=row.language,
        )
        before = kept.get(row.id)
        if before is not None:
            namespaces = bound or before.namespaces
            made = replace(
                made,
                namespaces=namespaces,
                labels=before.labels,
                state=before.state,
                valid_from=before.valid_from,
                valid_until=before.valid_until,
            )
        profiles.append(made)
    return _Read(profiles, rows.places, rows.rejected)


def _of_records(file: Path) -> _Read:
    """Profiles as they were exported."""
    import msgspec

    from pathcast.store import ProfileRecord

    decode = msgspec.json.Decoder(ProfileRecord).decode
    found = _Read([], [], [])
    for number, line in enumerate(read_text(file, keep_bytes=True).split("\n"), 1):
        if not line.strip():
            continue
        place = TextPlace(str(file), number)
        try:
            profile = decode(line.encode(errors="surrogateescape"))
            found.profiles.append(_at_nobody(profile))
            found.places.append(place)
        except msgspec.MsgspecError as error:
            reason = f"no line of JSON as pathcast sub export writes it: {error}"
            fault = ConfigError("config.invalid", key="subscription", reason=reason)
            found.rejected.append(RejectedSubscription(Subscription("", "", line), fault, place))
    return found


def _once(found: _Read, kept: Mapping[str, ProfileRecord]) -> _Read:
    """Rejects ids that the file has twice, and those of profiles that a broker hosts."""
    from msgspec.structs import replace

    checked = _Read([], [], list(found.rejected))
    seen: set[str] = set()
    for profile, place in zip(found.profiles, found.places, strict=True):
        before = kept.get(profile.id)
        if profile.id in seen:
            reason = "the file has this id twice; a database has each id once"
        elif before is not None and before.host:
            reason = f"the broker {before.host} hosts the subscription of this id"
        else:
            seen.add(profile.id)
            version = 0 if before is None else before.version
            checked.profiles.append(replace(profile, version=version))
            checked.places.append(place)
            continue
        error = ConfigError("config.invalid", key=profile.id, reason=reason)
        checked.rejected.append(RejectedSubscription(profile.subscription(), error, place))
    return checked


def _at_nobody(profile: ProfileRecord) -> ProfileRecord:
    """A profile as no database has it and no broker hosts it."""
    from msgspec.structs import replace

    return replace(profile, host="", pending=False, address="", version=0, former="", handed={})


def export_all(
    store: StoreOption,
    owner: OwnerFilter = None,
    state: StateFilter = None,
    label: LabelFilter = None,
) -> ExitCode:
    """Print subscriptions as lines of JSON, which import takes in elsewhere."""
    import msgspec

    encode = msgspec.json.Encoder().encode
    found = found_in(store, owner, state, label)
    for each in found:
        sys.stdout.write(encode(_at_nobody(each)).decode() + "\n")
    say(f"{len(found):,} subscriptions")
    return ExitCode.OK
