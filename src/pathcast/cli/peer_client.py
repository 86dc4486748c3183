"""`pathcast peer subscribe`, `publish` and the like: what clients of a ring ask for.

They speak to a ring on this machine, as the operator or as a client that a peer's file names, or to
peers elsewhere (`reach`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pathcast.cli.asked_query import AskOptions
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
    say_refused,
    say_warnings,
    until_told,
    withdraw,
)
from pathcast.cli.console import extra, say, say_warning
from pathcast.cli.exits import ExitCode
from pathcast.cli.reach import CallOptions, Reached, reached
from pathcast.errors import ConfigError
from pathcast.limits import Limits

if TYPE_CHECKING:
    from pathcast.transport.local_ring import LocalRing

RING: Final = Path("ring")

DirectoryOption = Annotated[
    Path, typer.Option("--directory", help="Directory of the ring, as it was begun.")
]


def ring_in(directory: Path) -> LocalRing:
    """The ring of a directory; ConfigError if there is none."""
    with extra("net", "pathcast peer"):
        from pathcast.transport.local_ring import LocalRing
    ring = LocalRing(directory)
    ring.names  # noqa: B018  (refuses a directory without one)
    return ring


def peers_of(reach: CallOptions) -> Reached:
    """The peers that options name, on this machine or elsewhere; ConfigError if there are none."""
    with extra("net", "pathcast peer"):
        from pathcast.transport.peer import CODEC
    return reached(reach, "peers", CODEC, ring_in, RING)


async def subscribe(
    id: IdArgument,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="XPath, or @FILE for the one in FILE.")
    ],
    reach: CallOptions,
) -> ExitCode:
    """Register a query at a peer, and wait until it is indexed on the ring.

    From then on every message that is published at any peer and satisfies it
    comes into the inbox of the client at that peer, as its name:

        pathcast peer subscribe dear '//order[total > 100]' --at p04
    """
    asked = AskOptions().read(query)
    if asked.steps:
        reason = "a ring does no steps; net subscribe does"
        raise ConfigError("config.invalid", key=query, reason=reason)
    if asked.language == "xquery":
        reason = "a ring reads XPath 1.0 only; net subscribe takes XQuery"
        raise ConfigError("config.invalid", key=query, reason=reason)
    peers = peers_of(reach)
    from pathcast.dht.subscriptions import Subscribed
    from pathcast.transport.peer import TOLD, PeerAccepted, Register, StandingQuery
    from pathcast.transport.security import own_id

    name = peers.client
    async with peers.connect() as client:
        after = await last_position(client, name)
        answer = await client.ask(Register((StandingQuery(id, asked.query),)))
        assert isinstance(answer, PeerAccepted)
        if say_refused(answer.refused) is ExitCode.REFUSED:
            return ExitCode.REFUSED
        say_warnings(id, asked.query, "xpath1")
        if await until_told(
            client, name, after, lambda body: TOLD.decode(body) == Subscribed(own_id(name, id))
        ):
            say(f"{id} is indexed")
            return ExitCode.OK
    say_warning(f"{id} is registered and not indexed yet; the peer goes on trying")
    return ExitCode.REFUSED


async def unsubscribe(id: IdArgument, reach: CallOptions) -> ExitCode:
    """Take a query out; nothing is told of it from now on."""
    nodes = peers_of(reach)
    from pathcast.transport.peer import Withdraw

    return await withdraw(nodes, Withdraw((id,)))


async def publish(
    messages: MessagesArgument,
    reach: CallOptions,
) -> ExitCode:
    """Publish messages at a peer: a line of JSON for each that is taken or refused.

    What became of a message, and whether all are proved to have been told who
    had to be, comes into the publisher's inbox:

        pathcast peer publish orders/ --at p05
        pathcast peer inbox --at p05
    """
    peers = peers_of(reach)
    from pathcast.transport.peer import PeerAccepted, PeerPublish

    async with peers.connect() as client:

        async def send(rows: Sequence[tuple[str, bytes]]) -> dict[str, str]:
            answers = await client.publish([PeerPublish(id, body) for id, body in rows])
            told = [each for each in answers if isinstance(each, PeerAccepted)]
            return {id: sentence for each in told for id, _, sentence in each.refused}

        return await publish_files(messages, Limits(), send)


async def inbox(
    reach: CallOptions,
    after: AfterOption = "0",
    follow: FollowOption = False,
    settle: SettleOption = False,
) -> ExitCode:
    """Print what waits for a client at a peer, a line of JSON a match or outcome.

    A match names the publication, the outcome of which says to its publisher
    which message that was:

        pathcast peer inbox --at p04 --follow
    """
    return await print_own_inbox(peers_of(reach), _told, after, follow, settle)


def _told(body: bytes) -> dict[str, Any]:
    from pathcast.dht.subscriptions import Matched, Subscribed, Unsubscribed
    from pathcast.overlay.deliveries import Dropped
    from pathcast.transport.peer import TOLD, Left, PublicationReport

    told = TOLD.decode(body)
    match told:
        case Matched(subscription, publication):
            return {"subscription": subscription, "publication": publication}
        case PublicationReport(message, published):
            return {
                "message": message,
                "publication": published.publication,
                "proved": published.is_proved,
                "unproved": len(published.unproved),
                "problems": [each.subscription for each in published.problems],
            }
        case Subscribed(subscription):
            return {"subscription": subscription, "notice": "indexed"}
        case Unsubscribed(subscription):
            return {"subscription": subscription, "notice": "taken out"}
        case Left(peer):
            return {"peer": peer, "notice": "has left the ring"}
        case Dropped():
            return dropped_row(told)
    return {"subscription": told.subscription, "notice": "not acknowledged yet"}


CLIENTS: Final = {
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "publish": publish,
    "inbox": inbox,
}
"""Name -> command of clients."""
