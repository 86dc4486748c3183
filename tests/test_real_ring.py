"""Peers in network namespaces: what is told is what one process tells, or it is said not to be."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pathcast.transport.ring_map import rings_of
from pathcast.workload.documents import generate_documents
from pathcast.workload.domains import DOMAINS
from pathcast.workload.parameters import QueryParameters
from pathcast.workload.queries import generate_queries
from patience import PATIENCE_SECONDS, eventually
from real_ring import BASE, RealRing

NEWS = DOMAINS["news"]


def queries(count: int) -> dict[str, str]:
    parameters = QueryParameters(count=count, seed=5, depth_max=6, predicates=count % 2)
    texts = generate_queries(NEWS.graph(), parameters)
    return {f"q{number}": text for number, text in enumerate(texts)}


def messages(count: int) -> list[bytes]:
    return list(generate_documents(NEWS.graph(), NEWS.documents(count, 5)))


async def registered(ring: RealRing, names: list[str], count: int) -> None:
    rows = list(queries(count).items())
    for place, name in enumerate(names):
        await ring.register(name, dict(rows[place :: len(names)]))
    await eventually(lambda: len(ring.subscribed) == count)


def test_a_peer_that_is_cut_off_and_killed_loses_nothing(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(6)]
    away = names[-1]

    async def main() -> None:
        settings = {"tick_seconds": 0.3, "patience_seconds": 0.1, "attempts": 15}
        ring = RealRing(tmp_path, names, settings)
        async with asyncio.timeout(2 * PATIENCE_SECONDS), ring.running(names):
            await registered(ring, names[:BASE], 40)
            bodies = messages(6)
            for body in bodies[:3]:
                await ring.published(names[:BASE], body)
            for other in names[:-1]:
                ring.wires.cut(away, other)
            # Out there nothing can be proved, and it says so.
            alone = await ring.publish(away, bodies[3])
            for body in bodies[3:]:
                await ring.published(names[:BASE], body)
            await eventually(lambda: ring.has_outcome(alone))
            ring.peers.kill(away)
            outcome = ring.outcome_of(alone)
            assert outcome is not None
            assert not outcome.published.is_proved
            matches, unproved = ring.check()
            assert matches > 10
            assert unproved >= 1

    asyncio.run(main())


@pytest.mark.nightly
def test_twenty_peers_through_kills_partitions_and_comings_and_goings(tmp_path: Path) -> None:
    names = [f"p{number:02d}" for number in range(20)]
    chance = random.Random(20)
    stay = names[:10]
    killed, leaves, away, late = names[10], names[11], names[12], names[17:]

    async def main() -> None:
        settings = {"piece_queries_max": 20, "patience_seconds": 1.5, "attempts": 4}
        ring = RealRing(tmp_path, names, settings)

        async def publish_all() -> None:
            for body in messages(60):
                await ring.published(chance.sample(stay, len(stay)), body)

        async def disasters() -> str:
            await asyncio.sleep(2)
            ring.peers.kill(killed)
            for name in late:
                ring.peers.start(name, is_awaited=False)
            await ring.leave(leaves)
            for name in late:
                await ring.until_member(name)
            # Shorter than it takes to be taken for dead: two halves that do not hear each other.
            halves = [(one, other) for one in names[:6] for other in names[6:17]]
            for one, other in halves:
                ring.wires.cut(one, other)
            await asyncio.sleep(2)
            for one, other in halves:
                ring.wires.mend(one, other)
            # Longer: it is taken for dead, and comes back.
            for other in names:
                if other != away:
                    ring.wires.cut(away, other)
            alone = await ring.publish(away, messages(1)[0])
            await eventually(lambda: ring.has_outcome(alone))
            await ring.until_member(away, False)
            for other in names:
                if other != away:
                    ring.wires.mend(away, other)
            await ring.until_member(away)
            return alone

        async with asyncio.timeout(900), ring.running(names[:17]):
            await registered(ring, stay, 300)
            publishing = asyncio.create_task(publish_all())
            alone = ring.outcome_of(await disasters())
            await publishing
            assert alone is not None
            assert not alone.published.is_proved
            for name in (away, *late):
                await ring.published([name], messages(1)[0])
            matches, unproved = ring.check()
            assert matches > 1000
            assert unproved >= 1

    asyncio.run(main())


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_a_ring_that_was_split_for_long_is_one_again(seed: int, tmp_path: Path) -> None:
    """Halves, or the base and others, for much longer than it takes to be silent."""
    chance = random.Random(seed)
    names = [f"p{number:02d}" for number in range(12)]
    settings = {
        "piece_queries_max": 1_000 if seed % 2 else 5,
        "tick_seconds": 0.5,
        "patience_seconds": 0.5,
        "attempts": 4,
    }
    away = chance.sample(names if seed % 3 else names[BASE:], 6)
    here = [name for name in names if name not in away]

    async def main() -> None:
        ring = RealRing(tmp_path, names, settings)
        async with asyncio.timeout(2 * PATIENCE_SECONDS), ring.running(names):
            await registered(ring, names, 60)
            bodies = messages(20)
            for body in bodies[:3]:
                await ring.published(names, body)
            links = [(one, other) for one in away for other in here]
            for one, other in links:
                ring.wires.cut(one, other)
            until = time.monotonic() + chance.uniform(5, 40)
            while time.monotonic() < until:
                await ring.publish(chance.choice(names), chance.choice(bodies))
                await asyncio.sleep(1)
            for one, other in links:
                ring.wires.mend(one, other)
            for name in names:
                await ring.until_member(name)
            # By way of each, though not at once.
            for name in names:
                await ring.published([name], chance.choice(bodies))
            await eventually(lambda: len(ring.outcomes) == len(ring.messages))
            matches, _ = ring.check()
            assert matches > 10
            rings = rings_of({name: {"node": await ring.node(name)} for name in names})
            assert rings == [names]

    asyncio.run(main())
