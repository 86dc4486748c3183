"""States and pieces side by side: simulated peers, with the same queries and documents.

What is counted elsewhere by arithmetic is sent here, with credits, matches and acknowledgements,
and every publication is compared with one process. Look-ups are those of a ring that never changes,
so they are hops and no messages.

Source: 000, section 6, Figure 3, for what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast_lab.sim.filtering_world import FilteringWorld

__all__ = ["Sent", "simulated"]

_IN_FORCE_SECONDS = 60.0
_OVER_SECONDS = 600.0


@dataclass(frozen=True)
class Sent:
    """Means over publications.

    Attributes:
        entering: Messages that ask for a visit or enter pieces.
        questions: All questions to other peers.
        megabytes: Of all that was sent, answers and repetitions too.
        chain: Messages in the longest chain.
        chain_looked_up: The same with the hops of look-ups.
        cuts: Pieces that were cut off, before and meanwhile.
    """

    entering: float
    questions: float
    megabytes: float
    chain: float
    chain_looked_up: float
    cuts: int


def simulated(
    queries: Sequence[str],
    documents: Sequence[bytes],
    peers: int,
    pieces: PieceSettings | None,
    records: Mapping[str, bytes] | None = None,
    sample: int = 0,
) -> Sent:
    """Publish documents, one after another, and count.

    Args:
        queries: XPath.
        documents: Messages.
        peers: How many.
        pieces: None: the paper's method, with what a visit can see of a document.
        records: What is cut beforehand.
        sample: Documents that are published first, and not counted.

    Raises:
        LostMatch: What was told is not what one process says.
    """
    settings = FilteringSettings(pieces=pieces, patience_seconds=30.0)
    world = FilteringWorld.on_static_ring(1, peers, settings, records=records)
    for number, query in enumerate(queries):
        world.subscribe(world.names[number % peers], f"s{number}", query)
    world.run(_IN_FORCE_SECONDS)
    if world.not_in_force():
        raise AssertionError("a subscription is not in force")
    before, bytes_before = Counter[str](), 0
    for number, document in enumerate(documents):
        if number == sample:
            before, bytes_before = _asked(world), world.counted.bytes.total()
        world.publish(world.names[number % peers], document)
        until = world.network.now + _OVER_SECONDS
        while world.publications[-1].outcome is None and world.network.now < until:
            world.run(0.25)
    after, bytes_after = _asked(world), world.counted.bytes.total()
    world.check()
    outcomes = [one.outcome for one in world.publications[sample:] if one.outcome]
    if len(outcomes) < len(documents) - sample or not all(one.is_proved for one in outcomes):
        raise AssertionError("a publication is not proved")
    asked = after - before
    count = len(outcomes)
    return Sent(
        (asked["RecExpandState"] + asked["RunPieces"]) / count,
        asked.total() / count,
        (bytes_after - bytes_before) / count / 1e6,
        sum(one.hops for one in outcomes) / count,
        sum(one.way for one in outcomes) / count,
        sum(peer.pieces.cutting.cuts for peer in _peers(world) if peer.pieces),
    )


def _asked(world: FilteringWorld) -> Counter[str]:
    found = Counter[str]()
    for peer in _peers(world):
        found.update(peer.courier.sent)
    return found


def _peers(world: FilteringWorld) -> list[FilteringPeer]:
    return [node for node in world.network.nodes.values() if isinstance(node, FilteringPeer)]
