"""`pathcast net subscribe`, `publish` and the like: what clients of a network ask for.

They speak to a network on this machine, as its operator or as a client that its topology names, or
to brokers elsewhere (`reach`). A program speaks to brokers by `pathcast.transport.client`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pathcast.cli.asked_query import QueryArgument, SubscribeOptions
from pathcast.cli.clients import (
    AfterOption,
    FollowOption,
    IdArgument,
    MessagesArgument,
    SettleOption,
    dropped_row,
    last_position,
    print_own_inbox,
    publish_files,
    say_warnings,
    until_told,
    withdraw,
)
from pathcast.cli.console import extra, say, say_error, say_warning
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import moment_given
from pathcast.cli.reach import CallOptions, Reached, reached
from pathcast.engine import carried_mode
from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.moments import us_of

if TYPE_CHECKING:
    from pathcast.transport.client import BrokerClient
    from pathcast.transport.network import LocalNetwork

NETWORK: Final = Path("network")

DirectoryOption = Annotated[
    Path, typer.Option("--directory", help="Directory of the network, as its topology names it.")
]


def network_in(directory: Path) -> LocalNetwork:
    """The network of a directory; ConfigError if there is none."""
    with extra("net", "pathcast net"):
        from pathcast.transport.network import LocalNetwork
    network = LocalNetwork(directory)
    network.names  # noqa: B018  (refuses a directory without one)
    return network


def brokers_of(reach: CallOptions) -> Reached:
    """The brokers that options name, here or elsewhere; ConfigError if there are none."""
    with extra("net", "pathcast net"):
        from pathcast.transport.broker_requests import CODEC
    return reached(reach, "brokers", CODEC, network_in, NETWORK)


async def subscribe(
    id: IdArgument,
    query: QueryArgument,
    reach: CallOptions,
    options: SubscribeOptions,
) -> ExitCode:
    """Register a subscription at a broker, and wait until it is in force.

    From then on every message that is published anywhere in the network and
    satisfies it comes into the inbox of the client at that broker. An id that
    is known gets the new query:

        pathcast net subscribe dear '//order[total > 100]' --at bern
        pathcast net subscribe books @cheap.xq --at bern
    """
    brokers = brokers_of(reach)
    from pathcast.overlay.content import DeliveryProfile, asked_query
    from pathcast.overlay.deliveries import Dropped, InForce
    from pathcast.transport.broker_requests import DELIVERIES, RequestAccepted, Subscribe
    from pathcast.transport.security import own_id

    asked = options.read(query)
    text = asked_query(asked.query, asked.language)
    profile = DeliveryProfile(text, carried_mode(asked.deliver), steps=asked.steps)
    is_full, version, name = False, 0, brokers.client

    def is_awaited(body: bytes) -> bool:
        nonlocal is_full
        told = DELIVERIES.decode(body)
        is_full = isinstance(told, Dropped)
        if not isinstance(told, InForce) or told.subscription != own_id(name, id):
            return is_full
        return told.version == version  # else it is of a life of this id that is over

    async with brokers.connect() as client:
        after = await last_position(client, name)
        answer = await client.ask(Subscribe(((id, profile),)))
        assert isinstance(answer, RequestAccepted)
        for _, _, sentence in answer.refused:
            say_error(sentence)
        if answer.refused:
            return ExitCode.REFUSED
        say_warnings(id, profile.query, profile.language)
        version = answer.versions[id]
        is_told = await until_told(client, name, after, is_awaited)
    if is_full:
        say_warning(f"{id} is registered; when it is in force finds no room in the inbox of {name}")
        return ExitCode.REFUSED
    if is_told:
        say(f"{id} is in force")
        return ExitCode.OK
    say_warning(f"{id} is registered and not in force yet: some broker cannot be reached")
    return ExitCode.REFUSED


async def unsubscribe(id: IdArgument, reach: CallOptions) -> ExitCode:
    """Take a subscription out; nothing is delivered for it from now on."""
    nodes = brokers_of(reach)
    from pathcast.transport.broker_requests import Unsubscribe

    return await withdraw(nodes, Unsubscribe((id,)))


async def publish(
    messages: MessagesArgument,
    reach: CallOptions,
    source: Annotated[
        str, typer.Option("--source", help="Source of the messages; registered if it is new.")
    ] = "messages",
    trace: Annotated[
        bool, typer.Option("--trace", help="Brokers remember the way: pathcast net way ID.")
    ] = False,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", help="When the messages were, ISO 8601; when they arrive, if not given."
        ),
    ] = None,
) -> ExitCode:
    """Publish messages at a broker: a line of JSON for each, when it is on the broker's disk.

    A message that is not well-formed or too long is refused alone:

        pathcast net publish orders/ --at basel
    """
    brokers = brokers_of(reach)
    when = None if time is None else us_of(moment_given("--time", time))
    from pathcast.overlay.messages import MESSAGE_BYTES_MAX, SourceEntry
    from pathcast.transport.broker_requests import NotTaken, PublishRequest, RegisterSourceRequest

    async with brokers.connect() as client:
        if await root_of(client, source) is None:
            await client.ask(RegisterSourceRequest(source, SourceEntry()))

        async def send(rows: Sequence[tuple[str, bytes]]) -> dict[str, str]:
            made = [PublishRequest(source, id, body, trace=trace, time=when) for id, body in rows]
            answers = await client.publish(made)
            return {each.message: each.reason for each in answers if isinstance(each, NotTaken)}

        return await publish_files(messages, Limits(message_bytes_max=MESSAGE_BYTES_MAX), send)


async def root_of(client: BrokerClient, source: str) -> str | None:
    """The root broker of a source, which is the one that is asked; None: there is no such source.

    Raises:
        ConfigError: It is a source of another broker.
    """
    from pathcast.transport.broker_requests import FindSource, SourceFound

    found = await client.ask(FindSource(source))
    assert isinstance(found, SourceFound)
    if found.root is not None and found.root != found.broker:
        reason = f"{source} is a source of {found.root}: publish there, or name another"
        raise ConfigError("config.invalid", key="--source", reason=reason)
    return found.root


async def inbox(
    reach: CallOptions,
    after: AfterOption = "0",
    follow: FollowOption = False,
    settle: SettleOption = False,
) -> ExitCode:
    """Print what waits for a client at a broker, a line of JSON a delivery.

    Who keeps the position and the life of the last line goes on with --after, and
    sees each once. A broker with an older disk refuses a position that it did not
    give:

        pathcast net inbox --at bern --follow
        pathcast net inbox --at bern --after 35:1234567
    """
    return await print_own_inbox(brokers_of(reach), delivery_row, after, follow, settle)


def delivery_row(body: bytes) -> dict[str, Any]:
    """The row that is printed for an entry of an inbox."""
    from pathcast.overlay.deliveries import (
        Dropped,
        InboxDelivery,
        InForce,
        Lapsed,
        Moved,
        Undecided,
    )
    from pathcast.transport.broker_requests import DELIVERIES

    told = DELIVERIES.decode(body)
    match told:
        case InboxDelivery():
            results = [each.decode(errors="backslashreplace") for each in told.results]
            return {"subscription": told.subscription, "message": told.message, "results": results}
        case Undecided():
            error = {"code": told.code, "reason": told.reason}
            return {"subscription": told.subscription, "message": told.message, "undecided": error}
        case InForce(subscription):
            return {"subscription": subscription, "notice": "in force"}
        case Lapsed(subscription):
            notice = f"messages may be lost to it: {told.reason}"
            row: dict[str, Any] = {"subscription": subscription, "notice": notice}
            if told.root:
                row |= {"root": told.root, "first": told.first, "last": told.last}
            return row
        case Dropped():
            return dropped_row(told)
        case Moved(subscription):
            notice = f"what follows waits at {told.host}, its host from now on"
            return {"subscription": subscription, "notice": notice, "host": told.host}
    return {"peer": told.peer, "notice": "refused", "code": told.code, "reason": told.reason}


CLIENTS: Final = {
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "publish": publish,
    "inbox": inbox,
}
"""Name -> command of clients."""
