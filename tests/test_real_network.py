"""Seven broker processes for as long as it is wanted: killed, cut off, slowed, and none the worse.

Some that are killed go on from a backup; some ids that are withdrawn are used again at once.

What happens comes from a seed, which each run prints; processes and machines are not seeded, so a
seed tells what happened to a network, and not what it made of it. PATHCAST_REAL_SECONDS says how
long the nightly run lasts, PATHCAST_REAL_SEED which it is.

Memory is flat: of each broker that is never killed, the median of its resident memory over the last
quarter of the run is no more than a tenth and 16 MB above the median over the second quarter.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from delivery_judge import Known
from real_network import Backup, RealNetwork
from tcp_proxy import LinkFaults
from wires import Loopback, Pair, Wires, wires

SECONDS: Final = 1_800.0
"""Of the nightly run; half an hour."""

RING: Final[list[Pair]] = [
    *(("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "g"), ("a", "g")),
    *(("b", "f"), ("c", "g")),
]
"""Seven brokers in a ring with two short cuts."""

UNKIND: Final[list[Pair]] = [("b", "c"), ("e", "f"), ("c", "g")]
"""Links that are slow, late or lossy now and then."""

ROOTS: Final = "ade"
UNTOUCHED: Final = "dg"
"""Never killed: a root and an inner broker, whose memory is looked at."""


class Cut(NamedTuple):
    """How links are cut.

    Attributes:
        pause: Seconds before each, from and to.
        brokers: How many are cut off from all others, from and to; 0 for a single link.
        seconds: For how long, one of these.
    """

    pause: tuple[float, float]
    brokers: tuple[int, int]
    seconds: tuple[float, ...]


CUTS: Final = {
    "cut links": Cut((1.0, 8.0), (0, 0), (0.0, 0.3, 2.0, 7.0)),
    "partitions": Cut((1.0, 8.0), (1, 3), (0.0, 0.3, 2.0, 7.0)),
    # Mostly longer than a session lives: each half gives the other one up.
    "splits": Cut((20.0, 60.0), (3, 4), (5.0, 10.0, 20.0, 40.0)),
}

SUBSCRIPTIONS: Final = 40
"""At a time."""

BATCHES: Final = "efg"
"""Hosts of profiles of batches only: messages are cut down on links that lead to them alone."""

PLACES: Final = ("Basel", "Bern", "Chur", "Genf", "Thun", "Zug")
SKUS: Final = tuple(f"{letter}{number}" for letter in "ABC" for number in range(4))

KEPT_MB: Final = 16.0


LONG_BYTES: Final = 300_000
LONG_EVERY: Final = 300
"""Messages of a root of which one is long: it travels in parts."""


def a_query(chance: random.Random, *, of_batches: bool) -> str:
    """A profile; of batches if messages may be cut down for it."""
    place, sku, least = chance.choice(PLACES), chance.choice(SKUS), chance.randrange(0, 100, 10)
    if of_batches:
        return chance.choice(
            [
                f"/batch/order[to = '{place}']",
                f"/batch/order[item/@sku = '{sku}']/to",
                f"for $o in /batch/order where $o/total > {least} return <dear>{{$o/to}}</dear>",
            ]
        )
    return chance.choice(
        [
            f"/order[to = '{place}']",
            f"//item[@sku = '{sku}']",
            f"/order[item/@sku = '{sku}'][to = '{place}']",
            f"/order[total > {least}]/to",
            f"//recall | /order[total > {least}]",
            f"for $o in /order where $o/total > {least} return <dear>{{$o/to}}</dear>",
            "/order[not(item)]",
        ]
    )


def a_message(chance: random.Random, *, is_long: bool = False) -> bytes:
    """An order, a batch of them, or a recall; a long one is an order or a batch with a note."""
    if chance.random() < 0.05 and not is_long:
        return b"<recall/>"
    orders = [an_order(chance) for _ in range(chance.choice([1, 1, 1, 6]))]
    if is_long:
        note = f"<note>{'.' * LONG_BYTES}</note>"
        where = chance.choice(["<order>", "</order>"])  # what decides stands after it, or before
        both = where + note if where == "<order>" else note + where
        at = chance.randrange(len(orders))
        orders[at] = orders[at].replace(where, both)
    body = "".join(orders)
    return (f"<batch>{body}</batch>" if len(orders) > 1 else body).encode()


def an_order(chance: random.Random) -> str:
    items = "".join(
        f'<item sku="{chance.choice(SKUS)}"/>' for _ in range(chance.choice([0, 1, 1, 2]))
    )
    place, total = chance.choice(PLACES), chance.randrange(100)
    return f"<order>{items}<to>{place}</to><total>{total}</total></order>"


class Run:
    """What happens to a network, by a seed.

    Args:
        network: Which.
        seed: Draws it.
        untouched: Brokers that are never killed.
        unkind: Links that lead through proxies.
        pace: All pauses and disasters are so much shorter.
    """

    def __init__(
        self,
        network: RealNetwork,
        seed: int,
        untouched: str,
        unkind: Sequence[Pair],
        pace: float = 1.0,
    ) -> None:
        self.network, self._pace = network, pace
        self.untouched, self.unkind = untouched, unkind
        self.memory: dict[str, list[float]] = {name: [] for name in untouched}
        self.done: Counter[str] = Counter()
        self._seed = seed
        self._wanted: list[str] = []
        self._free: list[str] = []
        self._until = 0.0
        self._cut: Counter[Pair] = Counter()

    async def last(self, seconds: float, sources: Sequence[str]) -> None:
        """Everything at once, for so long; then all is mended."""
        subscribing = self._chance("subscribe")
        for _ in range(10):
            await self._subscribe(subscribing)
        await self.network.in_force()
        self._until = time.monotonic() + seconds
        tasks = [
            *(self._publishes(root) for root in sources),
            self._subscribes(subscribing),
            self._is_killed(),
            *(self._is_cut(kind) for kind in CUTS),
            self._is_unkind(),
            self._is_watched(self._pace * seconds / 400),
        ]
        async with asyncio.TaskGroup() as group:
            for each in tasks:
                group.create_task(each)
        for link in self.unkind:
            self.network.wires.become(*link, LinkFaults())

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{self._seed} {what}")

    async def _pause(self, seconds: float) -> bool:
        """Whether there is time left after a pause."""
        left = max(0.0, self._until - time.monotonic())
        await asyncio.sleep(min(seconds / self._pace, left))
        return time.monotonic() < self._until

    async def _publishes(self, root: str) -> None:
        chance, numbers = self._chance(f"publish {root}"), count()
        while await self._pause(chance.expovariate(5.0)):
            bodies = []
            for _ in range(chance.choice([1, 1, 2, 8])):
                number = next(numbers)
                bodies.append(a_message(chance, is_long=number % LONG_EVERY == LONG_EVERY // 10))
            await self.network.publish(root, *bodies)
            self.done["messages"] += len(bodies)
            self.done["long messages"] += sum(len(each) > LONG_BYTES for each in bodies)

    async def _subscribe(self, chance: random.Random) -> None:
        """A new id, or one that was withdrawn, with its profile or another one."""
        is_reused = bool(self._free) and chance.random() < 0.6
        host, query = chance.choice(self.network.names), ""
        id = f"s{len(self.network.subscriptions)}"
        if is_reused:
            id = self._free.pop()
            former = self.network.subscriptions[id]
            host, query = former.host, former.query if chance.random() < 0.5 else ""
        query = query or a_query(chance, of_batches=host in BATCHES)
        await self.network.subscribe(host, id, query)
        self._wanted.append(id)
        self.done["reused ids"] += is_reused

    async def _subscribes(self, chance: random.Random) -> None:
        while await self._pause(0.4):
            if len(self._wanted) >= SUBSCRIPTIONS or chance.random() < 0.4:
                gone = self._wanted.pop(chance.randrange(len(self._wanted)))
                await self.network.unsubscribe(gone)
                self._free.append(gone)
                if chance.random() < 0.3:  # at once, while others are still told that it is gone
                    await self._subscribe(chance)
            else:
                await self._subscribe(chance)
            self.done["changes of subscriptions"] += 1

    async def _is_killed(self) -> None:
        """Some go on from a backup; one at a time, and none from before its last restore."""
        chance = self._chance("kill")
        names = [name for name in self.network.names if name not in self.untouched]
        backups: dict[str, Backup] = {}
        while await self._pause(chance.uniform(1.0, 6.0)):
            name, drawn = chance.choice(names), chance.random()
            away = chance.choice([0.0, 0.5, 2.0, 6.0]) / self._pace
            if name not in backups and drawn < 0.4:
                backups[name] = await self.network.back_up(name)
                self.done["backups"] += 1
                continue
            if name in backups and drawn < 0.4:
                await self.network.restore(name, backups.pop(name), away)
                self.done["restores"] += 1
            else:
                await self.network.restart(name, away)
                self.done["kills"] += 1
            # Some are killed again before they have begun; on a busy machine not all of them.
            if chance.random() < 0.7:
                await self.network.until(partial(self.network.brokers.is_up, name))

    async def _is_cut(self, kind: str) -> None:
        """One link, or all between some brokers and the others."""
        chance, cut = self._chance(kind), CUTS[kind]
        while await self._pause(chance.uniform(*cut.pause)):
            side = chance.sample(self.network.names, chance.randint(*cut.brokers))
            across = [link for link in self.network.links if (link[0] in side) != (link[1] in side)]
            chosen = across or [chance.choice(self.network.links)]
            for link in chosen:
                self._cut[link] += 1
                await self.network.cut(*link)
            await self._pause(chance.choice(cut.seconds))
            for link in chosen:
                self._cut[link] -= 1
                if not self._cut[link]:
                    await self.network.mend(*link)
            self.done[kind] += 1

    async def _is_unkind(self) -> None:
        chance = self._chance("unkind")
        while self.unkind and await self._pause(chance.uniform(1.0, 6.0)):
            faults = LinkFaults(
                chance.choice([0.0, 0.01, 0.2]),
                chance.choice([None, None, 20_000.0]),
                chance.choice([0.0, 0.3]),
                0.3,
                chance.choice([0.0, 0.0, 0.02]),
            )
            self.network.wires.become(*chance.choice(self.unkind), faults)
            self.done["changes of links"] += 1

    async def _is_watched(self, pause_seconds: float) -> None:
        while await self._pause(pause_seconds):
            processes = self.network.brokers.processes
            for name, found in self.memory.items():
                found.append(resident_mb(processes[name]))


def resident_mb(process: int) -> float:
    """Memory that a process has."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def check_memory(name: str, found: Sequence[float]) -> str:
    """See the module; says what was seen."""
    quarter = len(found) // 4
    before, after = median(found[quarter : 2 * quarter]), median(found[-quarter:])
    seen = f"{name}: {before:.1f} MB, then {after:.1f} MB"
    assert after <= 1.1 * before + KEPT_MB, f"memory of {seen}"
    return seen


@pytest.mark.parametrize("host", "ab")
def test_a_broker_is_restored_whose_clients_went_on(tmp_path: Path, host: str) -> None:
    """The root, or another host: its backup has some ids, lacks some, and has some otherwise."""
    links: list[Pair] = [("a", "b")]
    network = RealNetwork(tmp_path, "ab", links, Loopback("ab", links))
    orders = (f"<order n='{number}'/>".encode() for number in count(1))

    async def publish() -> None:
        await network.publish("a", next(orders), b"<recall/>")

    async def scenario() -> None:
        for id in ("stays", "away", "other"):
            await network.subscribe(host, id, "/order")
        await network.subscribe("b" if host == "a" else "a", "there", "/order")
        await network.in_force()
        await publish()
        backup = await network.back_up(host)
        await network.unsubscribe("away")
        await network.unsubscribe("other")
        await network.subscribe(host, "other", "/recall")
        await network.subscribe(host, "later", "/order")
        await network.in_force()
        await publish()
        await network.until(lambda: not network.judge.missing())
        stays, there = network.subscriptions["stays"], network.subscriptions["there"]
        await network.restore(host, backup)
        await network.until(lambda: stays.lapsed >= 0 and (there.lapsed >= 0) == (host == "a"))
        await network.in_force()
        await publish()
        ids = [id for id, one in network.subscriptions.items() if one.is_wanted]
        assert sorted(ids) == ["later", "other", "stays", "there"]
        assert network.subscriptions["stays"] is stays
        await network.until(lambda: all(network.subscriptions[id].got for id in ids))
        await network.until(lambda: not network.judge.missing())
        check_judge(there)

    def check_judge(there: Known) -> None:
        """The judge misses a delivery, but not one that `Lapsed` was told of."""
        kept = dict(there.got)
        there.got.clear()
        excused = {"a3"} if host == "a" else set()
        assert len(network.judge.missing()) == len(kept.keys() - excused) == 3 - len(excused)
        there.got |= kept

    asyncio.run(lived_through(network, scenario, "a"))


def test_three_brokers_are_killed_and_cut_off(tmp_path: Path) -> None:
    """The long run in short; on loopback, so that this way is tried wherever tests run."""
    seed = 1
    print(f"seed {seed}")
    links: list[Pair] = [("a", "b"), ("b", "c"), ("a", "c")]
    network = RealNetwork(tmp_path, "abc", links, Loopback("abc", links))

    async def scenario() -> None:
        await Run(network, seed, "c", links, pace=3.0).last(2.0, "a")

    asyncio.run(lived_through(network, scenario, "a"))


@pytest.mark.nightly
def test_seven_brokers_for_half_an_hour(tmp_path: Path) -> None:
    seconds = float(os.environ.get("PATHCAST_REAL_SECONDS", SECONDS))
    seed = int(os.environ.get("PATHCAST_REAL_SEED", time.time_ns() % 1_000_000))
    joined: Wires = wires("abcdefg", RING, UNKIND)
    print(f"seed {seed}, {seconds:g} s, {type(joined).__name__}", flush=True)
    network = RealNetwork(tmp_path, "abcdefg", RING, joined)

    async def scenario() -> None:
        run = Run(network, seed, UNTOUCHED, UNKIND)
        await run.last(seconds, ROOTS)
        print(dict(run.done), flush=True)
        for name, found in run.memory.items():
            print(check_memory(name, found), flush=True)

    statuses = asyncio.run(lived_through(network, scenario, ROOTS))
    versions = network.judge.versions.values()
    got, lapsed = sum(len(one.got) for one in versions), sum(one.lapsed >= 0 for one in versions)
    print(f"{len(versions):,} versions of subscriptions, {lapsed:,} of them told Lapsed")
    print(f"{got:,} deliveries, {len(network.judge.due()):,} of them due", flush=True)
    nodes = [status["node"] for status in statuses.values()]
    cut_bytes = sum(sum(node["cut_bytes"].values()) for node in nodes)
    cut_through = sum(node["cut_through"] for node in nodes)
    print(f"since brokers began: {cut_bytes:,} bytes cut out, {cut_through:,} times cut through")
    assert cut_bytes
    assert cut_through


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "count"), [(20_000.0, 2), (4_000.0, 1)])
def test_long_messages_pass_a_slow_link(tmp_path: Path, width: float, count: int) -> None:
    """What is under way does not hold up the word that the other end lives; sessions go on."""
    links: list[Pair] = [("a", "b")]
    network = RealNetwork(tmp_path, "ab", links, Loopback("ab", links))

    async def scenario() -> None:
        await network.subscribe("b", "s", "//to")
        await network.in_force()
        before = await sessions()
        network.wires.become("a", "b", LinkFaults(bytes_per_second=width))
        chance = random.Random(1)
        for _ in range(count):
            await network.publish("a", a_message(chance, is_long=True))
        await network.until(lambda: len(network.subscriptions["s"].got) == count)
        assert await sessions() == before

    async def sessions() -> int:
        found: int = (await network.statuses())["a"]["node"]["sessions"]["b"]
        return found

    asyncio.run(lived_through(network, scenario, "a"))


async def lived_through(
    network: RealNetwork, scenario: Callable[[], Awaitable[None]], roots: str
) -> dict[str, dict[str, Any]]:
    """A scenario, and what must be so after it; gives what brokers say of themselves at the end."""
    async with network.running():
        for root in roots:
            await network.source(root)
        await scenario()
        await network.settled()
        assert any(one.got for one in network.subscriptions.values())
        return await network.statuses()
