"""`pathcast peer`: peers of a ring that hold one automaton together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pathcast.cli.console import answers, extra, say
from pathcast.cli.exits import ExitCode
from pathcast.cli.local_processes import end_all, start_gone
from pathcast.cli.node_command import Ready, RunOptions, run_node
from pathcast.cli.options import NewOption
from pathcast.cli.peer_client import CLIENTS, RING, DirectoryOption, peers_of, ring_in
from pathcast.cli.reach import CallOptions
from pathcast.errors import ConfigError


def run_a_peer(options: RunOptions, new: NewOption = False) -> ExitCode:
    """Run a peer until SIGTERM or Ctrl-C.

    It joins the ring by way of the base, holds the pieces of the automaton
    whose keys are its own, and copies of those of its neighbours. Killed,
    nothing is lost that others hold; its subscriptions are in its directory,
    which is empty the first time, and must not be afterwards:

        pathcast peer run peer.toml --new
        pathcast peer run peer.toml
    """
    with extra("net", "pathcast peer run"):
        from pathcast.transport.peer_kind import peer_kind
        from pathcast.transport.peer_settings import PeerSettings
        from pathcast.transport.process import run_broker

    async def run(settings: PeerSettings, ready: Ready, reread: Callable[[], PeerSettings]) -> None:
        kind = peer_kind(
            settings.peer.name,
            settings.ring.base,
            settings.ring_settings,
            settings.filtering_settings,
            virtual_nodes=settings.ring.virtual_nodes,
        )
        await run_broker(
            settings.process,
            kind,
            ready,
            lambda: reread().process,
            settings.listening,
            settings.discovery,
            is_new=new,
        )

    return run_node(PeerSettings, options, lambda settings: settings.peer.name, run)


def up(
    peers: Annotated[
        int, typer.Argument(min=4, max=200, help="Peers; the base is four, or five.")
    ] = 8,
    directory: DirectoryOption = RING,
    virtual_nodes: Annotated[
        int,
        typer.Option(
            min=1, max=3, help="Members of the ring in each process: loads are more even."
        ),
    ] = 3,
) -> ExitCode:
    """Start a ring on this machine, a process for each peer.

    The processes stay when the command has ended; pathcast peer down ends them.
    """
    with extra("net", "pathcast peer"):
        from pathcast.transport.local_ring import LocalRing, with_virtual_nodes
    ring = LocalRing.write(directory, peers, with_virtual_nodes(virtual_nodes))
    ring.start(ring.names, are_new=True)
    say(f"{len(ring.names)} peers run; their files are in {directory}")
    return ExitCode.OK


def ls(reach: CallOptions) -> ExitCode:
    """List peers: neighbours on the ring, what they hold, what they did.

    The last line counts rings. While the network is split, or shortly after,
    members of one ring can stand in two; the exit code is then that of a peer
    that does not run. Elsewhere than on this machine the client needs the role
    operate.
    """
    peers = peers_of(reach)
    from pathcast.transport.ring_map import rings_of

    statuses = asyncio.run(peers.statuses())
    for name, status in statuses.items():
        answers().print(f"{name}: {peers.nodes.ABSENT if status is None else _line(status)}")
    rings = rings_of(statuses)
    counted = "; ".join(f"{len(each):,} members from {each[0]}" for each in rings)
    answers().print(f"{len(rings)} {'ring' if len(rings) == 1 else 'rings'}: {counted or 'nobody'}")
    are_well = all(statuses.values()) and len(rings) == 1
    return ExitCode.OK if are_well else ExitCode.REFUSED


def _line(status: dict[str, Any]) -> str:
    node = status["node"]
    if not node["is_member"]:
        return "is not on the ring now"
    sent = sum(each["bytes_sent"] for each in status["neighbours"].values())
    places = "; ".join(
        f"after {each['predecessor']}, before {', '.join(each['successors'])}"
        for each in node["members"].values()
    )
    return (
        f"{places}; {node['pieces']:,} pieces, {node['queries']:,} queries in them, "
        f"{node['records']:,} records with copies; {node['visits']:,} visits, "
        f"{node['subscriptions']:,} subscriptions, {sent / 1e6:.2f} MB sent"
    )


def draw(
    out: Annotated[Path, typer.Argument(help="SVG file to write.")] = Path("ring.svg"),
    directory: DirectoryOption = RING,
) -> ExitCode:
    """Draw the ring: where peers stand, what they hold, what they did."""
    ring = ring_in(directory)
    from pathcast.transport.ring_map import ring_map

    out.write_text(ring_map(asyncio.run(ring.statuses())), encoding="utf-8")
    say(f"{out} is written")
    return ExitCode.OK


def kill(
    peer: Annotated[str, typer.Argument(help="Name of the peer; not one of the base.")],
    directory: DirectoryOption = RING,
) -> ExitCode:
    """Kill a peer, as a failure of power would."""
    ring = ring_in(directory)
    if peer in ring.base:
        reason = f"{peer} is of the base ({', '.join(ring.base)}), which has to stay"
        raise ConfigError("config.invalid", key="peer", reason=reason)
    ring.kill(peer)
    say(f"{peer} is killed; pathcast peer heal starts it again")
    return ExitCode.OK


async def leave(
    peer: Annotated[str, typer.Argument(help="Name of the peer; not one of the base.")],
    directory: DirectoryOption = RING,
) -> ExitCode:
    """Let a peer leave the ring: it hands its pieces over, then its process ends."""
    ring = ring_in(directory)
    from pathcast.transport.peer import LeaveRing, PeerAccepted

    async with ring.operator(peer) as client:
        answer = await client.ask(LeaveRing())
        assert isinstance(answer, PeerAccepted)
        for _, _, why in answer.refused:
            raise ConfigError("config.invalid", key="peer", reason=why)
        while any(
            each["is_member"] for each in (await client.status())["node"]["members"].values()
        ):
            await asyncio.sleep(0.1)
    ring.stop([peer])
    say(f"{peer} has left; pathcast peer heal starts it again")
    return ExitCode.OK


def heal(directory: DirectoryOption = RING) -> ExitCode:
    """Start the peers that do not run; they join again."""
    start_gone(ring_in(directory))
    return ExitCode.OK


def down(directory: DirectoryOption = RING) -> ExitCode:
    """End all peers, and with them the ring: what it held is gone, subscriptions stay."""
    end_all(ring_in(directory))
    return ExitCode.OK


COMMANDS: Final = {
    "run": run_a_peer,
    "up": up,
    "ls": ls,
    "map": draw,
    "kill": kill,
    "leave": leave,
    "heal": heal,
    "down": down,
    **CLIENTS,
}
"""Name -> command."""
