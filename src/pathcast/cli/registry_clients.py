"""`pathcast registry register-source`, `register-interest` and the like: sources and users.

They speak to the registration service by the messages of `overlay.registration_messages`; where the
nodes of the service are, a context says (`[[registry]]`), or `--registry HOST:PORT`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pathcast.cli.asked_query import QueryArgument, SubscribeOptions
from pathcast.cli.console import extra, say, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.net_sources import SchemaOption, ValidateOption, read_schema
from pathcast.cli.options import LabelOption, read_labels
from pathcast.cli.reach import CallOptions
from pathcast.errors import ConfigError

if TYPE_CHECKING:
    from pathcast.transport.registration_client import RegistrationClient

ANSWER_SECONDS: Final = 30.0
"""How long a command waits: for a node of the service to lead, and for a profile to be in force."""

Location = Annotated[
    str,
    typer.Option(
        "--location", help='Names from the widest to the narrowest, such as "eu/ch/bern".'
    ),
]
SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="Id, as register-source printed it.")
]
InterestArgument = Annotated[
    str, typer.Argument(metavar="INTEREST", help="Id, as register-interest printed it.")
]
RateOption = Annotated[
    float | None, typer.Option("--rate", min=0.0, help="Messages a second that are expected.")
]
BytesOption = Annotated[
    float | None, typer.Option("--bytes", min=0.0, help="Bytes of a message, as expected.")
]


@contextlib.asynccontextmanager
async def _registrant(reach: CallOptions) -> AsyncIterator[RegistrationClient]:
    """A client of the service that options name.

    Raises:
        ConfigError: They name none, or cannot be used.
    """
    with extra("net", "pathcast registry"):
        from pathcast.transport.grpc_streams import Address
        from pathcast.transport.registration_client import RegistrationClient
    context = reach.remote()
    if context is None:
        reason = "say where the service is: --registry HOST:PORT, or --context with [[registry]]"
        raise ConfigError("config.invalid", key="--registry", reason=reason)
    service = list(reach.addresses("registry", context).values())
    client = context.client
    broker = Address("", "", client.secret, client.certificates, client.allow_plain)
    async with RegistrationClient(client.name, service, broker) as registrant:
        yield registrant


async def register_source(
    reach: CallOptions,
    location: Location = "",
    schema: SchemaOption = None,
    validate: ValidateOption = None,
    rate: RateOption = None,
    size: BytesOption = None,
) -> ExitCode:
    """Register a source of messages, and print its id and its root broker as JSON.

    The service chooses the root broker by the location, and by the bytes a
    second that are expected (rate x bytes). Messages are published there; with
    --validate each that is not valid by the schema is refused:

        pathcast registry register-source --location eu/ch --schema orders.dtd --validate
        pathcast net publish orders/ --source ID --broker HOST:PORT
    """
    text = read_schema(schema)

    async with _registrant(reach) as client:
        made = await client.register_source(
            location,
            text,
            messages_a_second=1.0 if rate is None else rate,
            message_bytes=4096.0 if size is None else size,
            validated=bool(validate),
            seconds=ANSWER_SECONDS,
        )
        write_json_line({"source": made.source, "root": made.root, "address": made.address})
    return ExitCode.OK


async def update_source(
    source: SourceArgument,
    reach: CallOptions,
    schema: SchemaOption = None,
    validate: ValidateOption = None,
    rate: RateOption = None,
    size: BytesOption = None,
) -> ExitCode:
    """Give a source another schema, or other expectations; what is not given stays."""
    if schema is None and validate is None and rate is None and size is None:
        raise typer.BadParameter("give --schema, --validate, --rate or --bytes")
    text = None if schema is None else read_schema(schema)

    async with _registrant(reach) as client:
        number = await client.update_source(
            source,
            schema=text,
            messages_a_second=rate,
            message_bytes=size,
            validated=validate,
            seconds=ANSWER_SECONDS,
        )
        say(f"{source} is updated; its schema has number {number}")
    return ExitCode.OK


async def register_interest(
    query: QueryArgument,
    reach: CallOptions,
    options: SubscribeOptions,
    location: Location = "",
    label: LabelOption = None,
) -> ExitCode:
    """Register an interest, and print its id and its host broker as JSON, when it is in force.

    The service chooses the host broker. Deliveries wait there for the client:

        pathcast registry register-interest '/order[total > 100]' --location eu/ch/bern
        pathcast net inbox --broker HOST:PORT
    """
    asked = options.read(query)
    labels = read_labels(label)

    async with _registrant(reach) as client:
        made = await client.register_interest(
            asked.query,
            deliver=asked.deliver,
            location=location,
            labels=labels,
            steps=asked.steps,
            language=asked.language,
            seconds=ANSWER_SECONDS,
        )
        write_json_line({"interest": made.profile, "host": made.host, "address": made.address})
    return ExitCode.OK


async def change_interest(
    interest: InterestArgument,
    query: QueryArgument,
    reach: CallOptions,
    options: SubscribeOptions,
    label: LabelOption = None,
    pause: Annotated[
        bool, typer.Option("--pause", help="Nothing is delivered until it is changed again.")
    ] = False,
) -> ExitCode:
    """Put another query in the place of an interest's, with its labels and steps.

    When that is in force, a notice comes into the inbox.
    """
    asked = options.read(query)
    labels = read_labels(label)

    async with _registrant(reach) as client:
        await client.change_interest(
            interest,
            asked.query,
            deliver=asked.deliver,
            labels=labels,
            paused=pause,
            steps=asked.steps,
            language=asked.language,
            seconds=ANSWER_SECONDS,
        )
        say(f"{interest} is changed")
    return ExitCode.OK


async def delete_interest(interest: InterestArgument, reach: CallOptions) -> ExitCode:
    """Delete an interest; nothing is delivered for it from now on."""
    async with _registrant(reach) as client:
        await client.delete_interest(interest, ANSWER_SECONDS)
        say(f"{interest} is deleted")
    return ExitCode.OK


async def locate(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a source or an interest.")],
    reach: CallOptions,
) -> ExitCode:
    """Print which broker serves a source or an interest of the client now, as JSON."""
    async with _registrant(reach) as client:
        found = await client.locate(id, ANSWER_SECONDS)
        write_json_line({"id": found.id, "broker": found.broker, "address": found.address})
    return ExitCode.OK


async def complete_interest(
    interest: Annotated[
        str, typer.Argument(metavar="XPATH", help="An interest, up to where it is written.")
    ],
    reach: CallOptions,
) -> ExitCode:
    """Propose the names and values that can come next in an interest.

    They are those of the schemas of all sources, and of samples of their
    messages. A line of JSON for each: the interest with the proposal, and
    whether that is an element, an attribute or a value. Nothing is printed
    where nothing fits:

        pathcast registry complete '//order/'
        pathcast registry complete '//order[item/@s'
        pathcast registry complete "//order[@state = '"
    """
    async with _registrant(reach) as client:
        found = await client.complete(interest, seconds=ANSWER_SECONDS)
        for each in found.proposals:
            text = interest[: found.offset] + each.text
            write_json_line({"interest": text, "kind": each.kind})
    return ExitCode.OK


CLIENTS: Final = {
    "register-source": register_source,
    "update-source": update_source,
    "register-interest": register_interest,
    "change-interest": change_interest,
    "delete-interest": delete_interest,
    "locate": locate,
    "complete": complete_interest,
}
"""Name -> command of sources and users."""
