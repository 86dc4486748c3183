"""`pathcast net`: a network of brokers, on this machine or elsewhere."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pathcast.cli.columns import in_bytes, print_columns
from pathcast.cli.console import (
    answers,
    extra,
    print_settings,
    say,
    say_warning,
    write_json_line,
)
from pathcast.cli.exits import ExitCode
from pathcast.cli.local_processes import end_all, start_gone
from pathcast.cli.net_client import (
    CLIENTS,
    NETWORK,
    DirectoryOption,
    brokers_of,
    network_in,
)
from pathcast.cli.net_sources import SOURCES
from pathcast.cli.reach import CallOptions


def up(
    topology: Annotated[Path, typer.Argument(help="TOML file with the links of the network.")],
) -> ExitCode:
    """Start a network, a process for each broker.

    The processes stay when the command has ended; pathcast net down ends them.
    A topology names the links:

        [network]
        directory = "network"
        links = [["berlin", "bonn"], ["bonn", "bern"], ["berlin", "bern", 40]]
        clients = ["ann"]

    A link may have a cost; messages go over those that cost least.
    """
    with extra("net", "pathcast net"):
        from pathcast.transport.network import LocalNetwork, load_topology
    network = LocalNetwork.write(load_topology(topology))
    network.start(network.names, are_new=True)
    say(f"{len(network.names)} brokers run; their files are in {network.directory}")
    say("what is next: pathcast net subscribe, publish, inbox, ls, map, trace")
    return ExitCode.OK


def ls(
    reach: CallOptions,
    wide: Annotated[
        bool, typer.Option("--wide", help="With what was cut out, cut through and sent again.")
    ] = False,
) -> ExitCode:
    """List brokers: connections, tree, tables, subscriptions, what was sent, waits and is kept.

    Sent is what a broker sent to others over the connections that it has now,
    waiting are deliveries that no subscriber has taken. The log is what was
    published there and some broker has not had: how full it is, and which
    broker is furthest behind. Cut out is what sent
    would be more if messages went whole, cut through are messages that were
    sent on before all of them was there, sent again are frames. What wants to
    be seen to is said below: full inboxes, dead letters, brokers that do not
    come forward, neighbours that are refused. Elsewhere than on this machine
    the client needs the role operate.
    """
    brokers = brokers_of(reach)
    statuses = asyncio.run(brokers.statuses())
    head = (*COLUMNS, *WIDE_COLUMNS) if wide else COLUMNS
    rows = [
        (name, *([brokers.nodes.ABSENT] if status is None else _row(status)))[: len(head)]
        for name, status in statuses.items()
    ]
    print_columns(head, rows)
    sent = sent_by_flow(statuses.values())
    flows = ", ".join(f"{flow.lower()} {in_bytes(count)}" for flow, count in sent.items())
    answers().print(f"sent between brokers, over the connections of now: {flows or 'nothing'}")
    taken = sum(each["node"]["taken_bytes"] for each in statuses.values() if each is not None)
    flooded = taken * (len(statuses) - 1)
    if flooded:
        share = 100 * sent.get("MESSAGE", 0) / flooded
        answers().print(
            f"published since they run: {in_bytes(taken)}; to all brokers that would be "
            f"{in_bytes(flooded)}, and messages sent are {share:,.0f} % of it"
        )
    gone = {name for name, status in statuses.items() if status is None}
    for name, status in statuses.items():
        for notice in () if status is None else _notices(status, brokers.kept_at(name), gone):
            say_warning(f"{name}: {notice}")
    return ExitCode.OK if all(statuses.values()) else ExitCode.REFUSED


def sent_by_flow(statuses: Iterable[Mapping[str, Any] | None]) -> dict[str, int]:
    """Flow -> bytes that brokers have sent over the connections that they have now."""
    total: Counter[str] = Counter()
    for status in statuses:
        for each in status["neighbours"].values() if status is not None else ():
            total.update(each["sent_by_flow"])
    return dict(total)


def _notices(status: dict[str, Any], directory: str, gone: Collection[str]) -> Iterator[str]:
    """Conditions that need an operator's action."""
    for subscriber, inbox in sorted(status["inboxes"].items()):
        if inbox["dropped"]:
            yield (
                f"{inbox['dropped']:,} deliveries did not fit into the inbox of {subscriber}, "
                f"where {inbox['waiting']:,} wait ({in_bytes(inbox['bytes'])})"
            )
    for lag in status["node"]["log"]["lags"]:
        if lag["missed"] or not lag["is_waited_for"]:
            yield lag_notice(lag)
    for subscriber, count in sorted(status["dead_letters"].items()):
        yield f"{count:,} dead letters of {subscriber}: pathcast broker dead-letters {directory}"
    for peer, error in sorted(status["refusals"].items()):
        if peer not in gone and peer not in status["neighbours"]:
            yield f"no connection to {peer}: {error['message']}"


def lag_notice(lag: Mapping[str, Any]) -> str:
    """A member that does not come forward."""
    missed = f", {lag['missed']:,} of them for good" if lag["missed"] else ""
    return (
        f"{lag['member']} lacks {lag['behind']:,} messages{missed}, and has had nothing new for "
        f"{lag['seconds']:,.0f} s"
    )


def log_column(log: Mapping[str, Any]) -> str:
    """How full a log is, and who holds it."""
    share = max(log["messages"] / log["messages_max"], log["bytes"] / log["bytes_max"])
    if not log["lags"]:
        return f"{share:.0%}"
    first, *others = (lag["member"] for lag in log["lags"])
    return f"{share:.0%}, {first}" + (f" and {len(others)} more" if others else "")


COLUMNS = (
    "broker",
    "connected to",
    "tree",
    "subscriptions",
    "table entries",
    "sent",
    "waiting",
    "log",
)
WIDE_COLUMNS = ("cut out", "cut through", "sent again")


def _row(status: dict[str, Any]) -> tuple[str, ...]:
    node = status["node"]
    tree = sorted({peer for peers in node["tree"].values() for peer in peers})
    return (
        ", ".join(sorted(status["neighbours"])) or "nobody",
        "has left" if node["has_left"] else ", ".join(tree) or "nobody",
        f"{node['subscriptions']:,}",
        f"{sum(node['tables'].values()):,}",
        in_bytes(sum(sent_by_flow([status]).values())),
        f"{sum(each['waiting'] for each in status['inboxes'].values()):,}",
        log_column(node["log"]),
        in_bytes(sum(node["cut_bytes"].values())),
        f"{node['cut_through']:,}",
        f"{sum(node['resent'].values()):,}",
    )


async def status(reach: CallOptions) -> ExitCode:
    """Print all that a broker says of itself, as JSON.

    The client needs the role operate; the operator of this machine has it:

        pathcast net status --broker 10.0.0.7:7400 --as ann --token-file ann.token
    """
    brokers = brokers_of(reach)
    async with brokers.nodes.operator(brokers.node) as client:
        write_json_line(await client.status())
    return ExitCode.OK


def context() -> ExitCode:
    """List every key of a context file, by which commands reach nodes elsewhere.

    PATHCAST_CONTEXT or --context names the file:

        [client]
        name = "ann"
        token_file = "ann.token"

        [[brokers]]
        name = "bern"
        address = "10.0.0.7:7400"
    """
    with extra("net", "pathcast net context"):
        from pathcast.settings import described
        from pathcast.transport.contexts import CallContext
    print_settings(described(CallContext))
    return ExitCode.OK


def draw(
    out: Annotated[Path, typer.Argument(help="SVG file to write.")] = Path("network.svg"),
    directory: DirectoryOption = NETWORK,
) -> ExitCode:
    """Draw the network: brokers, links, tree, bytes, tables."""
    network = network_in(directory)
    from pathcast.transport.network_map import network_map

    out.write_text(network_map(asyncio.run(network.statuses()), network.links), encoding="utf-8")
    say(f"{out} is written")
    return ExitCode.OK


def kill(
    broker: Annotated[str, typer.Argument(help="Name of the broker.")],
    directory: DirectoryOption = NETWORK,
) -> ExitCode:
    """Kill a broker, as a failure of power would."""
    network_in(directory).kill(broker)
    say(f"{broker} is killed; pathcast net heal starts it again")
    return ExitCode.OK


def heal(directory: DirectoryOption = NETWORK) -> ExitCode:
    """Start the brokers that do not run."""
    start_gone(network_in(directory))
    return ExitCode.OK


def link(
    one: Annotated[str, typer.Argument(help="Name of a broker.")],
    other: Annotated[str, typer.Argument(help="Name of its new neighbour.")],
    directory: DirectoryOption = NETWORK,
) -> ExitCode:
    """Make two brokers neighbours, while they run."""
    network_in(directory).link(one, other)
    say(f"{one} and {other} are neighbours")
    return ExitCode.OK


def trace(
    message: Annotated[Path, typer.Argument(help="File with a message.")], reach: CallOptions
) -> ExitCode:
    """Say where a message would go, hop by hop, why, and who would get it; nothing is sent.

    Why: entries of the tables that hold of the message, 20 for a hop at most.
    Elsewhere than on this machine the client needs the role operate, and
    brokers that the context does not list are not asked.
    """
    brokers = brokers_of(reach)
    from pathcast.transport.network import traced

    for hop in asyncio.run(traced(brokers.nodes, brokers.node, message.read_bytes())):
        who = f"from {hop.sender}" if hop.sender else "published here"
        answers().print(f"{'  ' * hop.depth}{hop.broker} ({who})")
        for entry in hop.reasons:
            answers().print(f"{'  ' * hop.depth}  wanted there: {entry}")
        for subscription in hop.subscriptions:
            answers().print(f"{'  ' * hop.depth}  delivered: {subscription}")
        if not hop.is_asked:
            answers().print(f"{'  ' * hop.depth}  not asked: the context does not list it")
            continue
        if not hop.subscriptions and not hop.neighbours:
            answers().print(f"{'  ' * hop.depth}  nobody here or further on wants it")
    return ExitCode.OK


def way(
    message: Annotated[str, typer.Argument(help="Id of a message, as net publish told it.")],
    reach: CallOptions,
) -> ExitCode:
    """Say which way a message went that was published with --trace.

    Each broker remembers its latest 1,000 while it runs. To say where a message
    would go before it is published: pathcast net trace. Elsewhere than on this
    machine the client needs the role operate.
    """
    brokers = brokers_of(reach)
    from pathcast.transport.network import way_of

    hops = way_of(message, asyncio.run(brokers.statuses()))
    for hop in hops:
        cut = ", cut" if hop.is_cut else ""
        steps = f", {hop.steps} steps done" if hop.steps else ""
        answers().print(f"{'  ' * hop.depth}{hop.broker}: {hop.size:,} bytes{cut}{steps}")
    if not hops:
        say_warning(f"no broker that runs remembers {message}; was it published with --trace?")
        return ExitCode.REFUSED
    return ExitCode.OK


def down(directory: DirectoryOption = NETWORK) -> ExitCode:
    """End all brokers; what they keep stays, and pathcast net heal goes on with it."""
    end_all(network_in(directory))
    return ExitCode.OK


COMMANDS: Final = {
    "up": up,
    "ls": ls,
    "status": status,
    "map": draw,
    "kill": kill,
    "heal": heal,
    "link": link,
    "trace": trace,
    "way": way,
    "down": down,
    **CLIENTS,
    **SOURCES,
    "context": context,
}
"""Name -> command."""
