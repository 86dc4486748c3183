"""Metrics of a broker, and its readiness: all links complete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from prometheus_client.core import Metric

from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.xml_content import XmlInterests
from pathcast.transport.meters import counter, gauge


def broker_metrics(node: BrokerNode, connected: Collection[str]) -> Iterable[Metric]:
    """Its subscriptions, tables, sessions, streams and log.

    Cost: a pass over links, members and roots; none over subscriptions or messages.
    """
    broker = node.broker
    tables = {
        tree: plane.interests
        for tree, plane in broker.planes.items()
        if isinstance(plane.interests, XmlInterests)
    }
    budgeted = {tree: table.budgeted for tree, table in tables.items()}
    links, members = node.link_counts(), broker.announcements.members
    yield gauge("subscriptions", "Subscriptions at this broker.", len(broker.subscriptions))
    entries = {tree: len(table) for tree, table in tables.items()}
    yield gauge("table_entries", "Entries of a table for one tree.", entries, "tree")
    yield counter(
        "table_failures",
        "Reviews of a table with a budget that went wrong; it stays as it was.",
        {tree: table.failures for tree, table in budgeted.items() if table is not None},
        "tree",
    )
    up = {peer: peer in connected for peer in links}
    yield gauge("neighbour_up", "Whether there is a connection.", up, "neighbour")
    begun = {peer: counts[0] for peer, counts in links.items()}
    yield counter("sessions", "Sessions with a neighbour since the start.", begun, "neighbour")
    again = {peer: counts[1] for peer, counts in links.items()}
    yield counter("resent_frames", "Frames that a neighbour was sent again.", again, "neighbour")
    text = "Brokers that messages are kept for, this one included."
    yield gauge("members", text, len(members))
    yield counter(
        "messages_taken_bytes",
        "Bytes of messages taken from publishers since the start.",
        broker.taken_bytes,
    )
    yield gauge(
        "stream_position",
        "Position up to which this broker has everything of a root.",
        {root: stream.cursor for root, stream in broker.streams.items()},
        "root",
    )
    yield from _log(node, members)


def _log(node: BrokerNode, members: Collection[str]) -> Iterable[Metric]:
    """Metrics of this root's log, and each member's lag."""
    own = node.broker.streams.get(node.broker.name)
    held, size = (0, 0) if own is None else (len(own.held), own.held_bytes)
    yield gauge("log_messages", "Messages published here that are kept for others.", held)
    yield gauge("log_bytes", "Bytes of these messages.", size)
    yield gauge(
        "log_behind_messages",
        "Positions of this root's stream that a member has not had; the slowest has most.",
        {}
        if own is None
        else {member: own.at - own.positions.get(member, 0) for member in members},
        "member",
    )


def missing_links(node: BrokerNode, connected: Collection[str]) -> Mapping[str, str]:
    """Neighbours that there is no connection to."""
    missing = sorted(node.link_counts().keys() - set(connected))
    return {f"link to {peer}": "there is no connection" for peer in missing}
