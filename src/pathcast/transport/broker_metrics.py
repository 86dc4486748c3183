"""Metrics of a broker, and its readiness: all links complete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.xml_content import XmlInterests
from pathcast.protocol import Node


def broker_metrics(node: Node, connected: Collection[str]) -> Iterable[Metric]:
    """Its subscriptions, tables, sessions, streams and log.

    Cost: a pass over links, members and roots; none over subscriptions or messages.
    """
    assert isinstance(node, BrokerNode)
    broker = node.broker
    count = len(broker.subscriptions)
    yield GaugeMetricFamily("pathcast_subscriptions", "Subscriptions at this broker.", value=count)
    tables = GaugeMetricFamily(
        "pathcast_table_entries", "Entries of a table for one tree.", labels=["tree"]
    )
    failures = CounterMetricFamily(
        "pathcast_table_failures",
        "Reviews of a table with a budget that went wrong; it stays as it was.",
        labels=["tree"],
    )
    for tree, plane in broker.planes.items():
        if isinstance(plane.interests, XmlInterests):
            tables.add_metric([tree], len(plane.interests))
            if (budgeted := plane.interests.budgeted) is not None:
                failures.add_metric([tree], budgeted.failures)
    yield tables
    yield failures
    sessions = CounterMetricFamily(
        "pathcast_sessions", "Sessions with a neighbour since the start.", labels=["neighbour"]
    )
    resent = CounterMetricFamily(
        "pathcast_resent_frames", "Frames that a neighbour was sent again.", labels=["neighbour"]
    )
    up = GaugeMetricFamily(
        "pathcast_neighbour_up", "Whether there is a connection.", labels=["neighbour"]
    )
    for peer, (begun, again) in node.link_counts().items():
        up.add_metric([peer], peer in connected)
        sessions.add_metric([peer], begun)
        resent.add_metric([peer], again)
    yield up
    yield sessions
    yield resent
    members = broker.announcements.members
    text = "Brokers that messages are kept for, this one included."
    yield GaugeMetricFamily("pathcast_members", text, value=len(members))
    yield CounterMetricFamily(
        "pathcast_messages_taken_bytes",
        "Bytes of messages taken from publishers since the start.",
        value=broker.taken_bytes,
    )
    cursors = GaugeMetricFamily(
        "pathcast_stream_position",
        "Position up to which this broker has everything of a root.",
        labels=["root"],
    )
    for root, stream in broker.streams.items():
        cursors.add_metric([root], stream.cursor)
    yield cursors
    yield from _log(node, members)


def _log(node: BrokerNode, members: Collection[str]) -> Iterable[Metric]:
    """Metrics of this root's log, and each member's lag."""
    own = node.broker.streams.get(node.broker.name)
    held, size = (0, 0) if own is None else (len(own.held), own.held_bytes)
    yield GaugeMetricFamily(
        "pathcast_log_messages", "Messages published here that are kept for others.", value=held
    )
    yield GaugeMetricFamily("pathcast_log_bytes", "Bytes of these messages.", value=size)
    behind = GaugeMetricFamily(
        "pathcast_log_behind_messages",
        "Positions of this root's stream that a member has not had; the slowest has most.",
        labels=["member"],
    )
    if own is not None:
        for member in members:
            behind.add_metric([member], own.at - own.positions.get(member, 0))
    yield behind


def missing_links(node: Node, connected: Collection[str]) -> Mapping[str, str]:
    """Neighbours that there is no connection to."""
    assert isinstance(node, BrokerNode)
    missing = sorted(node.link_counts().keys() - set(connected))
    return {f"link to {peer}": "there is no connection" for peer in missing}
