"""`pathcast net sources`, `interests` and the like: what a network or a client has registered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pathcast.cli.console import say, say_error, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.net_client import brokers_of, root_of
from pathcast.cli.reach import CallOptions
from pathcast.errors import ConfigError

if TYPE_CHECKING:
    from pathcast.transport.client import BrokerClient

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="Id of the source, as messages name it.")
]
SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", metavar="FILE", help="Its schema: a DTD, or an XML Schema."),
]
ValidateOption = Annotated[
    bool | None,
    typer.Option(
        "--validate/--no-validate", help="Whether its root takes only messages valid by the schema."
    ),
]


async def sources(reach: CallOptions) -> ExitCode:
    """List the sources of the network, a line of JSON for each.

    A line has the source's id, its root broker, where its messages are
    published, the number and length of its schema, and whether its messages
    are validated. The client needs the role publish.
    """
    brokers = brokers_of(reach)
    from pathcast.transport.broker_requests import ListSources

    async with brokers.connect() as client:
        async for row in all_rows(client, ListSources):
            write_json_line(
                {
                    "source": row.source,
                    "root": row.root,
                    "schema_version": row.schema_version,
                    "schema_length": row.schema_size,
                    "validated": row.validated,
                }
            )
    return ExitCode.OK


async def all_rows(client: BrokerClient, ask: Callable[[str], object]) -> AsyncIterator[Any]:
    """All rows of a list that a broker gives in parts."""
    from pathcast.transport.broker_requests import SourcesListed, SubscriptionsListed

    after: str | None = ""
    while after is not None:
        listed = await client.ask(ask(after))
        assert isinstance(listed, SourcesListed | SubscriptionsListed)
        for row in listed.rows:
            yield row
        after = listed.more_after or None


async def interests(reach: CallOptions) -> ExitCode:
    """List the subscriptions of a client at a broker, a line of JSON for each.

    A line has the name that deliveries give, which the client's own name begins.
    """
    brokers = brokers_of(reach)
    from pathcast.transport.broker_requests import ListSubscriptions

    async with brokers.connect() as client:
        async for row in all_rows(client, ListSubscriptions):
            profile = row.profile
            write_json_line(
                {
                    "subscription": row.subscription,
                    "query": profile.query,
                    "deliver": profile.deliver,
                    "namespaces": dict(profile.namespaces),
                    "steps": list(profile.steps),
                    "language": profile.language,
                    "version": row.version,
                }
            )
    return ExitCode.OK


async def register(
    source: SourceArgument,
    reach: CallOptions,
    schema: SchemaOption = None,
    validate: ValidateOption = None,
) -> ExitCode:
    """Register a source at a broker, its root, or give it another schema.

    Only the client that registers a source publishes for it. The schema is
    announced to all brokers. With --validate the root refuses each message
    that is not valid by it (publication.invalid), and takes the others:

        pathcast net register-source orders --schema orders.dtd --validate --at basel
    """
    brokers, validated = brokers_of(reach), bool(validate)
    from pathcast.overlay.messages import TEXT_MAX, SourceEntry
    from pathcast.overlay.schemas import check_schema
    from pathcast.transport.broker_requests import FindSource, RegisterSourceRequest, SourceFound

    text = read_schema(schema)
    if len(text) > TEXT_MAX:
        reason = f"it has {len(text):,} characters; brokers tell each other {TEXT_MAX:,} at most"
        raise ConfigError("config.invalid", key="--schema", reason=reason)
    check_schema(text, validated=validated)
    async with brokers.connect() as client:
        await root_of(client, source)
        found = await client.ask(FindSource(source))
        assert isinstance(found, SourceFound)
        number = found.entry.schema_version + 1
        await client.ask(
            RegisterSourceRequest(source, SourceEntry(text, number, validated=validated))
        )
    say(f"{source} is registered; its schema has number {number}")
    return ExitCode.OK


def read_schema(path: Path | None) -> str:
    """The text of a schema; empty for none.

    Raises:
        ConfigError: The file is not UTF-8.
        OSError: The file cannot be read.
    """
    try:
        return "" if path is None else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("config.invalid", key="--schema", reason=f"{path}: {error}") from error


async def withdraw(source: SourceArgument, reach: CallOptions) -> ExitCode:
    """Withdraw a source from the network: nothing is published for it from now on."""
    brokers = brokers_of(reach)
    from pathcast.overlay.messages import SourceEntry
    from pathcast.transport.broker_requests import RegisterSourceRequest

    async with brokers.connect() as client:
        if await root_of(client, source) is None:
            say_error(f"the network has no source {source}")
            return ExitCode.REFUSED
        await client.ask(RegisterSourceRequest(source, SourceEntry(withdrawn=True)))
    say(f"{source} is withdrawn")
    return ExitCode.OK


SOURCES: Final = {
    "sources": sources,
    "interests": interests,
    "register-source": register,
    "withdraw-source": withdraw,
}
"""Name -> command about sources and interests."""
