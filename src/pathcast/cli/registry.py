"""`pathcast registry`: the registration service of a network."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import typer

from pathcast.cli.console import (
    answers,
    extra,
    say,
    write_json_line,
)
from pathcast.cli.exits import ExitCode
from pathcast.cli.node_command import RunOptions, run_node
from pathcast.cli.registry_clients import CLIENTS
from pathcast.cli.stores import opened_store
from pathcast.errors import ConfigError


def run_a_node(
    options: RunOptions,
    new: Annotated[
        bool, typer.Option("--new", help="Make the profile database, if it is not there.")
    ] = False,
) -> ExitCode:
    """Run a node of the registration service until SIGTERM or Ctrl-C.

    Several run over one profile database; one of them leads, and another
    takes over when it is gone. The first time the database is made; an empty
    one that nobody asked for is one that was lost:

        pathcast registry run registry.toml --new
        pathcast registry run registry.toml
    """
    with extra("net", "pathcast registry run"):
        from pathcast.transport.registry_process import run_registry
        from pathcast.transport.registry_settings import RegistrySettings
    run = partial(run_registry, is_new=new)
    return run_node(RegistrySettings, options, lambda settings: settings.registry.name, run)


StoreArgument = Annotated[
    str, typer.Argument(help="The profile database: a SQLite file, or the URL of a PostgreSQL.")
]


def list_brokers(store: StoreArgument) -> ExitCode:
    """Show brokers: where each is played, and what it is the host and the root of."""
    with extra("net", "pathcast registry ls"):
        from pathcast.overlay.registry_view import RegistryView
    view = RegistryView()
    with opened_store(store, "pathcast registry") as opened:
        view.follow(opened)
    for name, broker in sorted(view.brokers.items()):
        sources = sum(each.root == name for each in view.sources.values())
        answers().print(
            f"{name}: {broker.state}, {broker.address or 'nowhere'}, "
            f"{broker.location or 'no location'}, {view.hosted[name]} profiles, {sources} sources"
        )
    if not view.brokers:
        say("there are no brokers yet")
    if view.pending:
        answers().print(f"{len(view.pending)} are pending: their brokers have not answered yet")
    return ExitCode.OK


def show_placement(store: StoreArgument) -> ExitCode:
    """Show how profiles are placed by content, and how good that is, as a line of JSON.

    Each pattern has the profiles that had it, and the values that a message had
    there, when the placement was made. A message goes to `touched` partitions,
    which have the share `visited` of the profiles; by a placement made now it
    would be `visited_anew`. The difference is `drift`: above hosts.drift_max the
    service makes the placement anew, and profiles move.
    """
    with extra("net", "pathcast registry status"):
        from pathcast.overlay.placing import read_placement
        from pathcast.overlay.registry_view import RegistryView
    view = RegistryView()
    with opened_store(store, "pathcast registry") as opened:
        view.follow(opened)
    record = view.placement
    if record is None or not record.content:
        say("there is no placement yet: hosts are chosen by location")
        return ExitCode.OK
    placement = read_placement(record.content)
    patterns = [
        {"pattern": str(each.place), "profiles": each.queries, "values_a_message": each.rate}
        for each in placement.patterns
    ]
    brokers = {
        name: {"partitions": list(each.partitions), "profiles": view.hosted[name]}
        for name, each in sorted(view.brokers.items())
    }
    write_json_line(
        {
            "patterns": patterns,
            "partitions": placement.buckets,
            "unplaced": record.unplaced,
            "touched": record.touched,
            "visited": record.visited,
            "visited_anew": record.anew,
            "drift": record.drift,
            "measured_on": {"profiles": record.profiles, "messages": record.messages},
            "measured_at": record.measured_at,
            "made_at": record.made_at,
            "position": view.position,
            "moving": len(view.formers),
            "pending": len(view.pending),
            "brokers": brokers,
        }
    )
    return ExitCode.OK


def place_anew(store: StoreArgument) -> ExitCode:
    """Have the placement of profiles made anew, however good it is."""
    with extra("net", "pathcast registry place"):
        import msgspec

        from pathcast.overlay.placing import PLACEMENT
        from pathcast.store import PlacementRecord
    with opened_store(store, "pathcast registry") as opened:
        kept = opened.get(PlacementRecord, PLACEMENT) or PlacementRecord(PLACEMENT)
        opened.write([msgspec.structs.replace(kept, wanted=True)], check=True)
    say("the service makes the placement anew at its next review")
    return ExitCode.OK


def mark_as_gone(
    store: StoreArgument,
    name: Annotated[str, typer.Argument(help="Name of the broker.")],
    back: Annotated[bool, typer.Option("--back", help="It is there again.")] = False,
) -> ExitCode:
    """Say that a broker will not come back: others get its profiles and sources.

    The network still keeps messages for it, until it is expelled.
    """
    with extra("net", "pathcast registry gone"):
        import msgspec

        from pathcast.store import BrokerRecord
    with opened_store(store, "pathcast registry") as opened:
        broker = opened.get(BrokerRecord, name)
        if broker is None:
            known = ", ".join(sorted(each.id for each in opened.state(BrokerRecord)[1])) or "none"
            reason = f"no broker of that name has registered; there are: {known}"
            raise ConfigError("config.invalid", key=name, reason=reason)
        state = "active" if back else "gone"
        opened.write([msgspec.structs.replace(broker, state=state)], check=True)
    say(f"{name} is {state}")
    return ExitCode.OK


def list_sources(store: StoreArgument) -> ExitCode:
    """List the sources that have registered, a line of JSON for each.

    A line has the number of the schema, whether messages are validated by it,
    what is expected of the source, and its root broker; a pending one is not
    known to its root broker yet.
    """
    with extra("net", "pathcast registry sources"):
        from pathcast.store import CatalogRecord, SourceRecord
    with opened_store(store, "pathcast registry") as opened:
        validated = {each.id for each in opened.state(CatalogRecord)[1] if each.validated}
        for source in sorted(opened.state(SourceRecord)[1], key=lambda each: each.id):
            write_json_line(
                {
                    "source": source.id,
                    "owner": source.address,
                    "location": source.location,
                    "root": source.root,
                    "schema_version": source.catalog,
                    "validated": f"{source.id}@{source.catalog}" in validated,
                    "messages_a_second": source.messages_a_second,
                    "message_bytes": source.message_bytes,
                    "pending": source.pending,
                }
            )
    return ExitCode.OK


def list_interests(
    store: StoreArgument,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="NAME", help="Only those of one client.")
    ] = None,
) -> ExitCode:
    """List the interests that have registered, a line of JSON for each."""
    with extra("net", "pathcast registry interests"):
        from pathcast.store import ProfileRecord
    with opened_store(store, "pathcast registry") as opened:
        for profile in sorted(opened.state(ProfileRecord)[1], key=lambda each: each.id):
            if owner in (None, profile.owner):
                write_json_line(
                    {
                        "interest": profile.id,
                        "owner": profile.owner,
                        "query": profile.query,
                        "deliver": profile.deliver,
                        "steps": list(profile.steps),
                        "language": profile.language,
                        "labels": profile.labels,
                        "state": profile.state,
                        "host": profile.host,
                        "pending": profile.pending,
                    }
                )
    return ExitCode.OK


def lint_interests(store: StoreArgument) -> ExitCode:
    """Find names, paths and values in interests that no source has by its schema.

    A line of JSON for each finding, with the code of pathcast lint (PL101 to
    PL109). A name is found only if the schemas of all sources lack it. Sources
    without a schema may have anything, and are left out.
    """
    with extra("net", "pathcast registry lint"):
        from pathcast.lint import lint
        from pathcast.overlay.schemas import read_schema
        from pathcast.store import CatalogRecord, ProfileRecord, SourceRecord
    with opened_store(store, "pathcast registry") as opened:
        sources = opened.state(SourceRecord)[1]
        current = {f"{each.id}@{each.catalog}" for each in sources}
        catalogs = [each for each in opened.state(CatalogRecord)[1] if each.id in current]
        profiles = sorted(opened.state(ProfileRecord)[1], key=lambda each: each.id)
    schemas = sorted({each.schema for each in catalogs if each.schema})
    if silent := sum(not each.schema for each in catalogs):
        say(f"{silent} of {len(sources)} sources have no schema, and are left out")
    rows = [each.subscription() for each in profiles]
    by_schema = []
    for text in schemas:
        graph, namespaces = read_schema(text)
        report = lint(rows, dtd=graph, namespaces=namespaces, comparisons_max=0)
        by_schema.append({(each.code, each.query, each.offset): each for each in report.findings})
    found = by_schema[0] if by_schema else {}
    everywhere = [
        each
        for key, each in found.items()
        if each.code.startswith("PL1") and all(key in others for others in by_schema)
    ]
    for each in everywhere:
        told = {"interest": each.query_id, "code": each.code, "severity": each.severity}
        write_json_line({**told, "message": each.message, "fix": each.fix})
    return ExitCode.REFUSED if everywhere else ExitCode.OK


def withdraw_source(
    store: StoreArgument,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Id of the source.")],
) -> ExitCode:
    """Withdraw a source from the network: its root broker takes no messages of it any more."""
    with extra("net", "pathcast registry withdraw-source"):
        from pathcast.store import Removal, SourceRecord
    with opened_store(store, "pathcast registry") as opened:
        if opened.get(SourceRecord, source) is None:
            raise ConfigError("config.invalid", key=source, reason="no source of that id is there")
        opened.write([Removal("source", source)])
    say(f"{source} is withdrawn")
    return ExitCode.OK


COMMANDS: Final = {
    "run": run_a_node,
    "ls": list_brokers,
    "status": show_placement,
    "place": place_anew,
    "gone": mark_as_gone,
    "sources": list_sources,
    "interests": list_interests,
    "withdraw-source": withdraw_source,
    "lint": lint_interests,
    **CLIENTS,
}
"""Name -> command."""
