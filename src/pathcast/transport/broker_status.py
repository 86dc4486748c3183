"""Status of a broker, for its operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pathcast.overlay.broker import BrokerState
from pathcast.overlay.broker_node import BrokerNode
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.xml_content import XmlInterests
from pathcast.transport.broker_reviews import budgeted_tables


def described(node: BrokerNode) -> Mapping[str, object]:
    """Describe a broker, as JSON."""
    broker = node.broker
    tables = {
        tree: len(plane.interests)
        for tree, plane in broker.planes.items()
        if isinstance(plane.interests, XmlInterests)
    }
    saved: Counter[str] = Counter()
    for plane in broker.planes.values():
        if isinstance(plane.interests, XmlInterests):
            saved.update(plane.interests.saved)
    links = broker.announcements.presences()
    return {
        "sessions": {peer: counts[0] for peer, counts in node.link_counts().items()},
        "resent": {peer: counts[1] for peer, counts in node.link_counts().items()},
        "members": broker.announcements.members,
        "has_left": broker.announcements.has_left(broker.name),
        "links": {name: [peer for peer, _ in each.links] for name, each in links.items()},
        "costs": dict(links[broker.name].links),
        "tree": {
            tree: sorted(peer for peer in dict(links[broker.name].links) if plane.is_active(peer))
            for tree, plane in broker.planes.items()
        },
        "tables": tables,
        "budgeted_tables": {
            tree: {
                "told": table.told,
                "held": len(table),
                "in_vain": table.in_vain,
                "failures": table.failures,
            }
            for tree, table in budgeted_tables(broker).items()
        },
        "taken_bytes": broker.taken_bytes,
        "log": _described_log(broker),
        "cut_bytes": dict(saved),
        "cut_through": sum(stream.parts.cut_through for stream in broker.streams.values()),
        "formats": {
            peer: {
                "format": each.format,
                "text_bytes": each.text_bytes,
                "sent_bytes": each.sent_bytes,
            }
            for peer, each in node.compressions.items()
        },
        "arrivals": [each._asdict() for each in broker.arrivals],
        "subscriptions": len(broker.subscriptions.names()),
        "streams": {root: stream.cursor for root, stream in broker.streams.items()},
        "sources": {key: owner for key, (owner, _) in broker.announcements.sources().items()},
    }


def _described_log(broker: BrokerState) -> Mapping[str, object]:
    """Describe a root's log: its size, its bounds, and the members that hold it."""
    own = broker.streams.get(broker.name)
    settings = broker.settings
    return {
        "messages": 0 if own is None else len(own.held),
        "messages_max": settings.log_messages_max,
        "bytes": 0 if own is None else own.held_bytes,
        "bytes_max": settings.log_bytes_max,
        "lags": [lag._asdict() for lag in broker.lags],
    }


def log_fullness(settings: ProtocolSettings, node: BrokerNode) -> float:
    """The share of the room of its log that a root has filled."""
    own = node.broker.streams.get(node.broker.name)
    if own is None:
        return 0.0
    messages = len(own.held) / settings.log_messages_max
    return max(messages, own.held_bytes / settings.log_bytes_max)
