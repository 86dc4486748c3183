"""Client commands that `pathcast net` and `pathcast peer` have in common.

A client is known to a node by its name; the operator of this machine is one everywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast.cli.console import say, say_error, say_warning, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import MESSAGES_HELP, read_batches
from pathcast.errors import PeerError, shown
from pathcast.limits import Limits
from pathcast.model import QueryLanguage
from pathcast.query.query_warnings import warnings_of
from pathcast.registry import message_id

if TYPE_CHECKING:
    from pathcast.cli.reach import Reached
    from pathcast.overlay.deliveries import Dropped
    from pathcast.transport.client import BrokerClient
    from pathcast.transport.disk import InboxCursor

IN_FORCE_SECONDS = 60.0
"""How long a command waits for what it asked for to be known everywhere."""

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The client's id of it.")]
MessagesArgument = Annotated[list[str], typer.Argument(metavar="MESSAGE...", help=MESSAGES_HELP)]
AfterOption = Annotated[
    str,
    typer.Option(
        "--after",
        metavar="POSITION[:LIFE]",
        help="Only what came after this one; with the life, an older inbox is refused.",
    ),
]
FollowOption = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
]
SettleOption = Annotated[
    bool, typer.Option("--settle", help="What is printed need not be kept any more.")
]


Publish = Callable[[Sequence[tuple[str, bytes]]], Awaitable[Mapping[str, str]]]
"""Publishes messages, each with its id; id -> reason of those that are refused."""


async def publish_files(names: Sequence[str], limits: Limits, publish: Publish) -> ExitCode:
    """Publishes files, and prints a line of JSON for each: its id, or why it is refused."""
    given = taken = 0
    for batch in read_batches(names, limits):
        ids = [message_id(body) if isinstance(body, bytes) else None for _, body in batch]
        # Messages of one content are one: they have one id.
        bodies = {
            id: each.content
            for id, each in zip(ids, batch, strict=True)
            if id is not None and isinstance(each.content, bytes)
        }
        refused = await publish(list(bodies.items()))
        for id, (name, content) in zip(ids, batch, strict=True):
            error = str(content) if id is None else refused.get(id)
            write_json_line({"message": shown(name), "id": id, "error": error})
            given, taken = given + 1, taken + (error is None)
    say(f"{taken:,} of {given:,} messages are taken")
    return ExitCode.OK if taken == given else ExitCode.REFUSED


def say_refused(refused: Sequence[tuple[str, str, str]]) -> ExitCode:
    """Says why a node has refused what a client asked for, if it has."""
    for _, _, sentence in refused:
        say_error(sentence)
    return ExitCode.REFUSED if refused else ExitCode.OK


async def withdraw(nodes: Reached, request: object) -> ExitCode:
    """Asks a node to take something out, and says why it refuses."""
    async with nodes.connect() as client:
        answer: Any = await client.ask(request)
    return say_refused(answer.refused)


def say_warnings(id: str, query: str, language: QueryLanguage | None) -> None:
    """Says which conditions of a query that a node has taken never or always hold.

    Args:
        id: The client's id of it.
        query: XPath or XQuery; what it names is in no namespace, or bound in it.
        language: As it was chosen.
    """
    for warning in warnings_of(id, query, {}, language):
        say_warning(f"{id}: {warning}")


async def last_position(client: BrokerClient, name: str) -> int:
    """Position of the last thing that waits in an inbox; 0 where nothing does."""
    last = 0
    async for group in client.waiting(name, 0):
        last = group[-1].position
    return last


async def until_told(
    client: BrokerClient, name: str, after: int, is_awaited: Callable[[bytes], bool]
) -> bool:
    """Waits for something in an inbox; whether it came in time."""
    try:
        async with asyncio.timeout(IN_FORCE_SECONDS):
            async for group in client.deliveries(name, after):
                if any(is_awaited(each.body) for each in group):
                    return True
    except TimeoutError:
        pass
    return False


def dropped_row(told: Dropped) -> dict[str, Any]:
    """The row that is printed for deliveries that a full inbox dropped."""
    notice = "the inbox was full, and these deliveries were dropped"
    return {"notice": notice, "dropped": told.count, "first": told.first, "last": told.last}


def cursor_of(after: str) -> int | InboxCursor:
    """Parse the value of `--after`.

    Raises:
        BadParameter: It is no position.
    """
    from pathcast.transport.disk import InboxCursor

    position, colon, life = after.partition(":")
    if not position.isdecimal() or (colon and not life.isdecimal()):
        reason = f"{after!r} is neither POSITION nor POSITION:LIFE"
        raise typer.BadParameter(reason, param_hint="--after")
    return InboxCursor(int(position), int(life)) if colon else int(position)


async def print_own_inbox(
    nodes: Reached,
    read: Callable[[bytes], dict[str, Any]],
    after: str,
    follow: bool,
    settle: bool,
) -> ExitCode:
    """Prints the inbox of the caller at the node that is asked: see `print_inbox`."""
    async with nodes.connect() as client:
        name = nodes.client
        await print_inbox(client, name, read, after=after, follow=follow, settle=settle)
    return ExitCode.OK


async def print_inbox(
    client: BrokerClient,
    name: str,
    read: Callable[[bytes], dict[str, Any]],
    *,
    after: str,
    follow: bool,
    settle: bool,
) -> None:
    """Prints an inbox, a line of JSON for each thing in it.

    Args:
        client: Of the node.
        name: Whose inbox.
        read: What to print of one.
        after: Where it begins: see `cursor_of`.
        follow: Whether to go on with what comes.
        settle: Whether to acknowledge what is printed, up to the first that cannot be read.
    """
    cursor = cursor_of(after)
    groups = client.deliveries(name, cursor) if follow else client.waiting(name, cursor)
    async for group in groups:
        for each in group:
            assert client.cursor is not None, "something was read"
            life = client.cursor.life
            try:
                row = read(each.body)
            except PeerError as error:
                row = {"notice": error.message}
                settle = False  # It stays in the inbox, and so does what follows.
            write_json_line({"position": each.position, "life": life, **row})
        typer.get_text_stream("stdout").flush()
        if settle:
            assert client.cursor is not None, "something was read"
            await client.settle(name, client.cursor)
