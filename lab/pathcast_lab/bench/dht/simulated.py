"""States and pieces side by side: simulated peers, with the same queries and documents.

What is counted elsewhere by arithmetic is sent here, with matches, and between peers of pieces with
credits and acknowledgements; every publication is compared with one process. Look-ups are those of
a ring that never changes, so they are hops and no messages.

Source: 000, section 6, Figure 3, for what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathcast.dht.filtering import FilteringPeer, FilteringSettings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_lab.sim.filtering_world import FilteringWorld, LostMatch
from pathcast_lab.sim.static_ring import StaticRing
from pathcast_papers.dht.state_ring import StateRing

__all__ = ["Sent", "of_states", "simulated"]

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
    pieces: PieceSettings,
    records: Mapping[str, bytes] | None = None,
    sample: int = 0,
) -> Sent:
    """Publish documents to peers of pieces, one after another, and count.

    Args:
        queries: XPath.
        documents: Messages.
        peers: How many.
        pieces: When they are cut.
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
        asked["RunPieces"] / count,
        asked.total() / count,
        (bytes_after - bytes_before) / count / 1e6,
        sum(one.hops for one in outcomes) / count,
        sum(one.way for one in outcomes) / count,
        sum(peer.cutting.cuts for peer in _peers(world)),
    )


def of_states(queries: Sequence[str], documents: Sequence[bytes], peers: int) -> Sent:
    """Publish documents to peers of states, recursively, and count; as `simulated`.

    Of a document the elements that a visit can see travel. The paper has no credits and no
    acknowledgements, so none are counted.
    """
    names = [f"p{number}" for number in range(peers)]
    ring = StateRing(names, StaticRing(names), whole=False)
    index = Registry()
    index.add(Query(f"s{number}", query) for number, query in enumerate(queries))
    for number, query in enumerate(queries):
        ring.subscribe(names[number % peers], f"s{number}", query)
    ring.sent.clear()
    bytes_before = ring.bytes
    executions = [
        ring.publish(names[number % peers], document) for number, document in enumerate(documents)
    ]
    answers = index.freeze().match(documents)
    for execution, answer in zip(executions, answers, strict=True):
        if execution.matched != set(answer.query_ids):
            raise LostMatch(f"{execution.matched ^ set(answer.query_ids)}")
    count = len(executions)
    return Sent(
        ring.sent["RecExpandState"] / count,
        (ring.sent.total() - ring.sent["Body"]) / count,
        (ring.bytes - bytes_before) / count / 1e6,
        sum(one.hops for one in executions) / count,
        sum(one.way for one in executions) / count,
        0,
    )


def _asked(world: FilteringWorld) -> Counter[str]:
    found = Counter[str]()
    for peer in _peers(world):
        found.update(peer.courier.sent)
    return found


def _peers(world: FilteringWorld) -> list[FilteringPeer]:
    return [node for node in world.network.nodes.values() if isinstance(node, FilteringPeer)]
