"""Filtering peers as a kind of node: made of what a process is told, and what it says of itself."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.hosting import disk_of, virtual_names
from pathcast.dht.identifiers import identifier
from pathcast.dht.peer import RingPeer, Settings
from pathcast.dht.piece_records import decoded_piece
from pathcast.dht.subscriptions import Matched
from pathcast.dht.substrate import Asked
from pathcast.overlay.deliveries import Dropped
from pathcast.transport.calls import one_by_one
from pathcast.transport.carrier import NodeAdapter
from pathcast.transport.peer import CODEC, LeaveRing, PeerPublish, Register, ServedPeer, Withdraw
from pathcast.transport.peer_metrics import missing_members, peer_metrics
from pathcast.transport.virtual_peers import VirtualPeers


def peer_kind(
    name: str,
    base: Sequence[str],
    ring: Settings,
    filtering: FilteringSettings,
    *,
    virtual_nodes: int = 1,
) -> NodeAdapter[ServedPeer | VirtualPeers]:
    """Peers of a ring.

    Args:
        name: Of the peer.
        base: Names of the stable base, the same for all.
        ring: What all agree on.
        filtering: Likewise.
        virtual_nodes: Members of the ring that each process has, likewise; one is named as the
            process is.
    """

    def served(
        member: str, its_base: Sequence[str], saved: Mapping[str, bytes], life: int
    ) -> ServedPeer:
        made: list[RingPeer] = []

        def below(asked: Asked) -> RingPeer:
            made.append(RingPeer(member, life, its_base, ring, asked))
            return made[0]

        return ServedPeer(FilteringPeer(below, life, saved, filtering), made[0])

    def make(saved: Mapping[str, bytes], life: int) -> ServedPeer | VirtualPeers:
        if virtual_nodes == 1:
            return served(name, base, saved, life)
        first = [virtual_names(host, 1)[0] for host in base]
        members = virtual_names(name, virtual_nodes)
        return VirtualPeers(
            name, {each: served(each, first, disk_of(saved, each), life) for each in members}
        )

    return NodeAdapter(
        make,
        CODEC,
        delivery=_delivery,
        gap=lambda gap: msgspec.msgpack.encode(Dropped(*gap)),
        request=one_by_one(lambda node, client, messages, now: node.request(client, messages, now)),
        roles={
            Register: "subscribe",
            Withdraw: "subscribe",
            PeerPublish: "publish",
            LeaveRing: "operate",
        },
        describe=_described,
        ended=lambda node, name, now: node.ended(name, now),
        metrics=peer_metrics,
        unready=missing_members,
    )


def _delivery(what: object) -> tuple[str, bytes]:
    body = msgspec.msgpack.encode(what)
    if isinstance(what, Matched):
        return f"{what.subscription}\t{what.publication}", body
    # A notice, which may be given twice: there is nothing that the second would do again.
    return f"notice\t{secrets.token_hex(12)}", body


def _described(node: ServedPeer | VirtualPeers) -> Mapping[str, object]:
    served = node.served if isinstance(node, VirtualPeers) else [node]
    members = {each.ring.me.name: _of_member(each) for each in served}
    peers = [each.peer for each in served]
    totals = ("records", "pieces", "links", "queries", "visits")
    sent: Counter[str] = Counter()
    for peer in peers:
        sent.update(peer.courier.sent)
    return {
        "is_member": all(each["is_member"] for each in members.values()),
        "members": members,
        **{key: sum(each[key] for each in members.values()) for key in totals},
        "under_way": sum(peer.under_way for peer in peers),
        "subscriptions": sum(peer.subscription_count for peer in peers),
        "repeated": sum(peer.repeated for peer in peers),
        "sent": dict(sent),
    }


def _of_member(served: ServedPeer) -> dict[str, Any]:
    peer, ring = served.peer, served.ring.ring
    pieces = [
        decoded_piece(record.key, record.value)
        for record in served.ring.records.held.values()
        if record.value is not None and ring.owns(identifier(record.key))
    ]
    return {
        "place": served.ring.me.identifier / 2**160,
        "is_member": ring.is_member and served.ring.membership.has_lease,
        "predecessor": None if ring.predecessor is None else ring.predecessor.name,
        "successors": [each.name for each in ring.successors],
        "fingers": sorted({each.name for each in ring.fingers.values()}),
        "records": len(served.ring.records.held),
        "pieces": len(pieces),
        "links": sum(len(piece.links) for piece in pieces),
        "queries": sum(len(each) for piece in pieces for each in piece.entries.values()),
        "visits": peer.running.done,
    }
