"""`pathcast sub`: subscriptions in a profile database, which pipelines read.

What a command has acknowledged is on disk, and counts from the next micro-batch of the pipelines
that read the database (`subscriptions.store`). A query is checked before it is written; where it is
refused, the version of before stays.

Profiles that a broker hosts are listed and not changed: the registration service changes them,
which tells the broker.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from pathcast.cli.asked_query import QueryArgument, SubscribeOptions
from pathcast.cli.columns import print_columns
from pathcast.cli.console import answers, extra, say, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import (
    Format,
    FormatOption,
    LabelOption,
    LimitOption,
    NamespaceOption,
    read_labels,
    read_language,
    read_limits,
    read_namespaces,
)
from pathcast.cli.preview import LastOption, SourcesArgument, preview_of
from pathcast.cli.stores import opened_store
from pathcast.cli.sub_files import export_all, import_file
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
    changeable,
    found_in,
    profile_of,
    standing_of,
    take_up,
    unknown,
    with_period,
)
from pathcast.engine import carried_mode
from pathcast.errors import ConfigError, PathcastError, invalid_setting
from pathcast.query import CostClass, compile_subscription
from pathcast.registry import Registry
from pathcast.registry.delimited import TextPlace

if TYPE_CHECKING:
    from pathcast.store import ProfileRecord

QUERY_WIDTH: Final = 60
"""Characters of a query in a column."""

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Of the subscription.")]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID...", help="Of subscriptions.")]


def add(
    query: QueryArgument,
    store: StoreOption,
    owner: Annotated[
        str, typer.Option("--owner", metavar="NAME", help="Subscriber that deliveries go to.")
    ],
    options: SubscribeOptions,
    id: Annotated[
        str | None,
        typer.Option("--id", help="Of the subscription. Default: one that is made and printed."),
    ] = None,
    namespace: NamespaceOption = None,
    label: LabelOption = None,
    start: FromOption = None,
    end: UntilOption = None,
    dear: DearOption = Dear.WARN,
    new: NewOption = False,
) -> ExitCode:
    """Add a subscription, and print its id, version and cost class as JSON.

    It is checked as a pipeline would check it; conditions that never or always
    hold are warned of. It counts from the next micro-batch on:

        export PATHCAST_STORE=sqlite:////var/lib/pathcast/profiles.db
        pathcast sub add '//order[total > 100]' --owner ann --new
        pathcast sub add @cheap.xq --owner bob --id cheap --label tier=gold
        pathcast sub add //offer --owner cleo --until 2026-12-31T18:00+01:00
    """
    asked = options.read(query)
    with extra("net", COMMAND):
        from pathcast.store import ProfileRecord
    made = ProfileRecord(
        id or uuid.uuid4().hex,
        owner,
        asked.query,
        carried_mode(asked.deliver),
        read_namespaces(namespace),
        read_labels(label),
        steps=asked.steps,
        language=asked.language,
    )
    made = with_period(made, start, end)
    cost = _checked(made, dear)
    with opened_store(store, COMMAND, is_new=new) as opened:
        if opened.get(ProfileRecord, made.id) is not None:
            reason = "there is a subscription of this id; pathcast sub edit changes it"
            raise ConfigError("config.invalid", key=made.id, reason=reason)
        version = opened.write([made], check=True)
    write_json_line({"id": made.id, "version": version, "cost": cost.value})
    return ExitCode.OK


def list_all(
    store: StoreOption,
    owner: OwnerFilter = None,
    state: StateFilter = None,
    label: LabelFilter = None,
    format_: FormatOption = Format.TEXT,
) -> ExitCode:
    """List subscriptions by id, with their cost classes.

    One that has expired, or is not valid yet, is told so in place of its state.
    """
    found = found_in(store, owner, state, label)
    if format_ is Format.JSON:
        for each in found:
            write_json_line(_shown(each))
        return ExitCode.OK
    head = ("id", "owner", "state", "from", "until", "deliver", "cost", "query")
    print_columns(
        head,
        [
            (
                each.id,
                each.owner,
                standing_of(each),
                each.valid_from,
                each.valid_until,
                each.deliver,
                _cost(each),
                _short(each.query),
            )
            for each in found
        ],
    )
    return ExitCode.OK


def show(id: IdArgument, store: StoreOption, format_: FormatOption = Format.TEXT) -> ExitCode:
    """Show one subscription: what is kept of it, and its plan."""
    with opened_store(store, COMMAND) as opened:
        profile = profile_of(opened, id)
    if format_ is Format.JSON:
        write_json_line(_shown(profile))
        return ExitCode.OK
    out = answers()
    out.print(f"version {profile.version}, {standing_of(profile)}, {_cost(profile)}")
    if profile.valid_from:
        out.print(f"valid from {profile.valid_from}")
    if profile.valid_until:
        out.print(f"valid until {profile.valid_until}")
    for name, value in sorted(profile.labels.items()):
        out.print(f"label {name}={value}")
    if profile.host:
        out.print(f"hosted by the broker {profile.host}")
    for step in profile.steps:
        out.print(f"step {step}")
    out.print(Registry().explain(profile.subscription()).to_text())
    return ExitCode.OK


def preview(
    id: IdArgument,
    sources: SourcesArgument,
    store: StoreOption,
    last: LastOption = 1_000,
    limit: LimitOption = None,
    format_: FormatOption = Format.TEXT,
) -> ExitCode:
    """Say what a subscription would have delivered of archived messages, as pathcast preview."""
    with opened_store(store, COMMAND) as opened:
        row = profile_of(opened, id).subscription()
    return preview_of(row, sources, last, read_limits(limit), {}, threads=None, format_=format_)


def edit(
    id: IdArgument,
    store: StoreOption,
    options: SubscribeOptions,
    query: Annotated[
        str | None,
        typer.Argument(metavar="[QUERY]", help="The new query, or @FILE; @- for standard input."),
    ] = None,
    namespace: NamespaceOption = None,
    label: LabelOption = None,
    start: FromOption = None,
    end: UntilOption = None,
    dear: DearOption = Dear.WARN,
) -> ExitCode:
    """Change a subscription; what is not given stays.

    A version that is refused changes nothing: the one of before stays in force.
    Labels that are given are set beside the others; NAME= takes one away.
    """
    from msgspec.structs import replace

    with opened_store(store, COMMAND) as opened:
        before = changeable(opened, id)
        after = before
        if query is not None:
            asked = options.read(query)
            after = replace(after, query=asked.query, language=asked.language)
            if asked.steps or options.step is not None:
                after = replace(after, steps=asked.steps)
        else:
            if options.values is not None:
                raise invalid_setting("--values", "needs QUERY, whose lists it gives")
            if options.step is not None:
                after = replace(after, steps=tuple(options.step))
            if options.language is not None:
                after = replace(after, language=read_language(options.language))
        if options.deliver is not None:
            after = replace(after, deliver=options.deliver.value)
        if namespace is not None:
            after = replace(after, namespaces=read_namespaces(namespace))
        if label is not None:
            labels = {**before.labels, **read_labels(label)}
            after = replace(after, labels={name: value for name, value in labels.items() if value})
        after = with_period(after, start, end)
        if after == before:
            say(f"{id} is that already, at version {before.version}")
            return ExitCode.OK
        cost = _checked(after, dear)
        version = opened.write([after], check=True)
    write_json_line({"id": id, "version": version, "cost": cost.value})
    return ExitCode.OK


def pause(ids: IdsArgument, store: StoreOption) -> ExitCode:
    """Pause subscriptions: they are kept, and nothing is delivered for them."""
    return _set_state(ids, store, "paused")


def resume(ids: IdsArgument, store: StoreOption) -> ExitCode:
    """Have paused subscriptions delivered again; what came meanwhile is not."""
    return _set_state(ids, store, "active")


def remove(ids: IdsArgument, store: StoreOption) -> ExitCode:
    """Remove subscriptions; their history stays until the log is compacted."""
    with opened_store(store, COMMAND) as opened:
        from pathcast.store import Removal

        gone = [changeable(opened, id) for id in dict.fromkeys(ids)]
        opened.write([Removal("profile", each.id) for each in gone])
    say(f"{len(gone):,} removed")
    return ExitCode.OK


def history(
    id: IdArgument,
    store: StoreOption,
    most: Annotated[int, typer.Option("--most", min=1, help="Changes, the last ones.")] = 100,
    format_: FormatOption = Format.TEXT,
) -> ExitCode:
    """List what has become of a subscription, the last change first.

    The log has it from where it was compacted; a version is the position of
    its change, which pins of a pipeline name (_checkpoint/_pins).
    """
    with opened_store(store, COMMAND) as opened:
        from pathcast.store import ProfileRecord

        found = opened.history(ProfileRecord, id, most)
        is_there = bool(found) or opened.get(ProfileRecord, id) is not None
    if not is_there:
        raise unknown(id)
    rows = []
    for at, change in found:
        profile = change.record
        assert profile is None or isinstance(profile, ProfileRecord)
        state = "removed" if profile is None else profile.state
        when = "" if at == 0 else datetime.fromtimestamp(at // 1_000_000, UTC).isoformat()
        if format_ is Format.JSON:
            kept = None if profile is None else _shown(profile)
            line = {"version": change.position, "at": when or None, "state": state}
            write_json_line({**line, "subscription": kept})
        query = "" if profile is None else _short(profile.query)
        deliver = "" if profile is None else profile.deliver
        starts = "" if profile is None else profile.valid_from
        ends = "" if profile is None else profile.valid_until
        rows.append((f"{change.position:,}", when, state, starts, ends, deliver, query))
    if format_ is Format.TEXT:
        print_columns(("version", "at", "state", "from", "until", "deliver", "query"), rows)
    return ExitCode.OK


def _set_state(ids: Sequence[str], store: str, state: Literal["active", "paused"]) -> ExitCode:
    from msgspec.structs import replace

    with opened_store(store, COMMAND) as opened:
        found = [changeable(opened, id) for id in dict.fromkeys(ids)]
        changed = [replace(each, state=state) for each in found if each.state != state]
        if changed:
            opened.write(changed, check=True)
    say(f"{len(changed):,} {state}, {len(found) - len(changed):,} were before")
    return ExitCode.OK


def _checked(profile: ProfileRecord, dear: Dear) -> CostClass:
    """The cost class of a profile that can be subscribed to; warns of what is likely wrong.

    Raises:
        PathcastError: It cannot be, or it is too dear.
    """
    taken = take_up([profile], [TextPlace("query", 1)], dear)
    if taken.rejected:
        raise taken.rejected[0].error
    return taken.costs[0]


def _shown(profile: ProfileRecord) -> dict[str, object]:
    return {
        "id": profile.id,
        "owner": profile.owner,
        "query": profile.query,
        "deliver": profile.deliver,
        "namespaces": profile.namespaces,
        "labels": profile.labels,
        "steps": list(profile.steps),
        "language": profile.language,
        "state": profile.state,
        "standing": standing_of(profile),
        "valid_from": profile.valid_from,
        "valid_until": profile.valid_until,
        "host": profile.host,
        "version": profile.version,
        "cost": _cost(profile),
    }


def _cost(profile: ProfileRecord) -> str:
    """Its cost class; of a query that this Pathcast refuses, that it is refused."""
    row = profile.subscription()
    try:
        return compile_subscription(row.query, row.namespaces, row.deliver, row.language).cost.value
    except PathcastError:
        return "refused"


def _short(query: str) -> str:
    text = " ".join(query.split())
    return text if len(text) <= QUERY_WIDTH else text[: QUERY_WIDTH - 3] + "..."


COMMANDS: Final = {
    "add": add,
    "ls": list_all,
    "show": show,
    "preview": preview,
    "edit": edit,
    "pause": pause,
    "resume": resume,
    "rm": remove,
    "history": history,
    "import": import_file,
    "export": export_all,
}
"""Name -> command."""
