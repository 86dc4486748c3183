"""Metrics of a peer of a ring, and its readiness: it is on the ring."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from prometheus_client.core import Metric

from pathcast.transport.meters import counter, gauge
from pathcast.transport.peer import ServedPeer
from pathcast.transport.virtual_peers import VirtualPeers


def peer_metrics(node: ServedPeer | VirtualPeers, connected: Collection[str]) -> Iterable[Metric]:
    """Its records, visits, publications and subscriptions.

    Cost: a pass over the members of the process. No record is read.
    """
    served = _members(node)
    peers = [each.peer for each in served]
    on_ring = sum(each.ring.ring.is_member for each in served)
    visits = sum(peer.running.done for peer in peers)
    for name, text, value in (
        ("neighbours_connected", "Peers that there is a connection to.", len(connected)),
        ("ring_members", "Members of this process that are on the ring.", on_ring),
        (
            "records",
            "Records that this process holds, copies included.",
            sum(len(each.ring.records.held) for each in served),
        ),
        (
            "surplus_records",
            "Copies that this process may drop when the owners of their keys say so.",
            sum(each.ring.surplus.count for each in served),
        ),
        (
            "publications_under_way",
            "Publications of this process that have no outcome yet.",
            sum(peer.under_way for peer in peers),
        ),
        (
            "subscriptions",
            "Subscriptions at this peer.",
            sum(peer.subscription_count for peer in peers),
        ),
    ):
        yield gauge(name, text, value)
    yield counter("visits", "Visits of publications at this process.", visits)
    yield counter(
        "repeated_questions",
        "Questions that were put again.",
        sum(peer.repeated for peer in peers),
    )


def missing_members(node: ServedPeer | VirtualPeers, _: Collection[str]) -> Mapping[str, str]:
    """Members of the process that are not on the ring. Neighbours come and go with the ring."""
    names = [each.ring.me.name for each in _members(node) if not each.ring.ring.is_member]
    return {f"member {name}": "it is not on the ring" for name in names}


def _members(node: ServedPeer | VirtualPeers) -> list[ServedPeer]:
    return node.served if isinstance(node, VirtualPeers) else [node]
