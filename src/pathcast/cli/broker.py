"""`pathcast broker`: one broker of a network, as a process, and what its operator asks of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from pathcast.cli.columns import in_bytes
from pathcast.cli.console import extra, say
from pathcast.cli.dead_letters import dead_letters
from pathcast.cli.exits import ExitCode
from pathcast.cli.node_command import Ready, RunOptions, run_node
from pathcast.cli.options import NewOption


def run_a_broker(options: RunOptions, new: NewOption = False) -> ExitCode:
    """Run a broker until SIGTERM or Ctrl-C.

    It keeps what it has to know in its directory, connects to its neighbours
    for as long as both live, and ends gracefully; killed, it goes on where it
    was when it is started again. At SIGHUP it reads its file again: clients,
    tokens, neighbours and certificates change while it runs.

    The first time it is told that its directory is empty. Afterwards an empty
    directory is one that was lost: it does not start without what it kept.

        pathcast broker run broker.toml --new
        pathcast broker run broker.toml
    """
    with extra("net", "pathcast broker run"):
        from pathcast.overlay.xml_content import limits_of, xml_content
        from pathcast.transport.broker import broker_kind
        from pathcast.transport.process import run_broker
        from pathcast.transport.settings import BrokerSettings, node_settings

    async def run(
        settings: BrokerSettings, ready: Ready, reread: Callable[[], BrokerSettings]
    ) -> None:
        limits = limits_of(settings.broker.message_bytes_max)
        kind = broker_kind(
            settings.broker.name,
            [each.name for each in settings.neighbours],
            members=settings.broker.members,
            content=xml_content(
                limits,
                covering=settings.broker.covering,
                table_entries_max=settings.broker.table_entries_max,
                projection=settings.broker.projection,
                whole_links=[each.name for each in settings.neighbours if not each.projection],
                snapshots=settings.broker.directory,
            ),
            settings=node_settings(settings),
            limits=limits,
            costs=settings.costs,
        )
        if settings.registration is None:
            await run_broker(settings, kind, ready, reread, is_new=new)
            return
        with extra("net", "pathcast broker run"):
            # What speaks to the profile database takes a quarter of a second to be imported.
            from pathcast.transport.hosted import run_hosted_broker
        await run_hosted_broker(settings, kind, ready, reread, is_new=new)

    return run_node(BrokerSettings, options, lambda settings: settings.broker.name, run)


KeptArgument = Annotated[
    Path, typer.Argument(metavar="DIRECTORY", help="What a broker that runs here keeps.")
]


def backup(
    directory: KeptArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Copy that is written.")],
) -> ExitCode:
    """Copy what a broker keeps, while it runs.

    The copy is of one moment: subscriptions, its log, inboxes, dead letters.
    What it takes afterwards is not in it. Only you can read the file:

        pathcast broker backup network/bern bern.backup
    """
    with extra("net", "pathcast broker backup"):
        from pathcast.transport.database_file import back_up
    copied = back_up(directory, file)
    say(f"{file} is a copy of what {copied.name} keeps, {in_bytes(copied.size)}")
    return ExitCode.OK


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Copy that a backup wrote.")],
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Of the broker; without a database.")
    ],
) -> ExitCode:
    """Put a copy into the directory of a broker, which does not run.

    The broker goes on from there when it is started. Whatever was published
    or delivered there since the copy may be lost, so subscribers of this
    broker, and of its sources everywhere, are told (Lapsed):

        pathcast broker restore bern.backup network/bern
        pathcast broker run bern.toml
    """
    with extra("net", "pathcast broker restore"):
        from pathcast.transport.database_file import restore as put_back
    copied = put_back(file, directory)
    say(f"{directory} holds what {copied.name} kept, {in_bytes(copied.size)}; start it as ever")
    return ExitCode.OK


async def leave(directory: KeptArgument) -> ExitCode:
    """Let a broker go for good, and wait until it may be ended.

    Its subscriptions end, and nothing is published there any more. It has
    left when all others have had what was; then nothing is kept for it:

        pathcast broker leave network/chur
    """
    with extra("net", "pathcast broker leave"):
        from pathcast.transport.broker_requests import CODEC, LeaveRequest
        from pathcast.transport.process import operator_of
    async with operator_of(directory, CODEC) as client:
        await client.ask(LeaveRequest())
        while not (await client.status())["node"]["has_left"]:
            await asyncio.sleep(0.1)
    say(f"{directory.name} has left the network, and can be ended")
    return ExitCode.OK


async def expel(
    directory: KeptArgument,
    name: Annotated[str, typer.Argument(help="Broker that does not come back.")],
) -> ExitCode:
    """Take a broker out of the network that will not come back.

    Nothing is kept for it from now on, and nobody waits for it. If it comes
    back all the same, its subscribers are told that they missed something:

        pathcast broker expel network/basel chur
    """
    with extra("net", "pathcast broker expel"):
        from pathcast.transport.broker_requests import CODEC, ExpelRequest
        from pathcast.transport.process import operator_of
    async with operator_of(directory, CODEC) as client:
        await client.ask(ExpelRequest(name))
    say(f"{name} is expelled")
    return ExitCode.OK


COMMANDS: Final = {
    "run": run_a_broker,
    "backup": backup,
    "restore": restore,
    "leave": leave,
    "expel": expel,
    "dead-letters": dead_letters,
}
"""Name -> command."""
