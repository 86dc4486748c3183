"""Section 2.2's arithmetic with measured figures: how many brokers it takes today.

The paper: 5,000 messages a second of 1 KB, 10 million users, of whom a message concerns 0.001 %.
That is 100 results a message and 4 Gb a second, "prohibitively expensive" for one server. What a
broker needs for each step is measured here, in processor time, and the rest is arithmetic.

Two brokers of the product run in this process over the carrier in memory: no bytes leave it, and
no disk is waited for. One is the root and hosts nobody; the other hosts all. Messages that one user
wants and messages that ten want say what a delivery costs. What each further broker costs that a
message concerns is measured apart: a frame of messages is written and read, they are routed, and
matched with the profiles of a host. The rest is what it takes to take a message.

Example:
    >>> load = Load()
    >>> round(load.matches_a_message), round(load.result_gigabits)
    (100, 4)
    >>> costs = Costs(take=50e-6, hop=100e-6, delivery=10e-6, engine=5e-6)
    >>> [brokers_needed(load, costs, each) for each in (reached_at_random(load), reached_one)]
    [11, 6]

Source: Diao, Rizvi and Franklin, VLDB 2004, section 2.2.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, expm1, log1p

from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.messages import (
    Forward,
    SessionFrame,
    SourceEntry,
    StreamMessage,
    decoded,
    encoded,
)
from pathcast.overlay.xml_content import xml_content
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import PublishRequest, RegisterSourceRequest, Subscribe
from pathcast.transport.carrier import Carrier
from pathcast.transport.disk import Disk
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.inputs import messages_of, profiles_of
from pathcast_lab.bench.timing import undisturbed
from pathcast_lab.bench.wrong_count import WrongCountError
from pathcast_lab.sim.memory_streams import MemoryNetwork

BATCH = 100
"""Messages that are published, or given to the engine, together."""

MANY = 10
"""Users who want each message of the second kind."""

ROUNDS = 3
"""Of which the least counts."""

WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class Load:
    """What comes in and who wants it; the paper's."""

    messages_a_second: float = 5_000.0
    message_bytes: int = 1_000
    users: int = 10_000_000
    selectivity: float = 1e-5

    @property
    def matches_a_message(self) -> float:
        """Users whom a message concerns."""
        return self.users * self.selectivity

    @property
    def deliveries_a_second(self) -> float:
        """Results for all users."""
        return self.messages_a_second * self.matches_a_message

    @property
    def result_gigabits(self) -> float:
        """Gigabits of them a second."""
        return self.deliveries_a_second * self.message_bytes * 8 / 1e9


@dataclass(frozen=True)
class Costs:
    """Processor seconds.

    Attributes:
        take: A root takes a message, keeps it and finds out who wants it.
        hop: A message goes to one broker more: framed, read, routed and matched.
        delivery: A result is in a user's inbox.
        engine: Part of a hop: a message is routed, and matched with a host's profiles.
    """

    take: float
    hop: float
    delivery: float
    engine: float


def reached_at_random(load: Load) -> Callable[[int], float]:
    """Brokers that a message concerns, if users are anywhere: by how many brokers there are."""

    def reached(brokers: int) -> float:
        return -brokers * expm1(load.users / brokers * log1p(-load.selectivity))

    return reached


def reached_one(brokers: int) -> float:
    """Likewise, if all whom a message concerns have one broker."""
    del brokers
    return 1.0


def brokers_needed(load: Load, costs: Costs, reached: Callable[[int], float]) -> int:
    """How many brokers of one core have the processor time for a load, shared evenly.

    Args:
        load: What comes in.
        costs: What it costs.
        reached: Brokers that a message concerns, by how many there are; each over a link.
    """

    def seconds(brokers: int) -> float:
        hops = load.messages_a_second * reached(brokers)
        taken = load.messages_a_second * costs.take
        return taken + hops * costs.hop + load.deliveries_a_second * costs.delivery

    # Each pass asks for as many as the one before needed; more brokers are never reached less.
    brokers = 1
    while (needed := ceil(seconds(brokers))) > brokers:
        brokers = needed
    return brokers


def run_capacity(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Measures the costs, and says how many brokers they make.

    Raises:
        WrongCountError: A message was not delivered as often as it is wanted.
    """
    load = Load()
    profiles = profiles_of("quotes", chosen.profiles, seed)
    messages = messages_of("quotes", chosen.messages, seed)
    say(f"{len(profiles):,} profiles on one broker, {len(messages):,} messages")
    engine = _engine(profiles, messages)
    hop = _framed(messages) + engine
    there, delivery = asyncio.run(_measured(profiles, messages))
    costs = Costs(there - hop, hop, delivery, engine)
    for name, seconds in (
        ("a root takes a message", costs.take),
        ("a message over a link", costs.hop),
        ("a delivery", costs.delivery),
        ("of it the engine, a message", costs.engine),
    ):
        own = Place(figure.name, "measured", name, 0.0, len(profiles))
        yield [own.value("time", "us", 1e6 * seconds), own.value("a second", "", 1 / seconds)]
    arithmetic = Place(figure.name, "the paper's load", "results", 0.0, load.users)
    yield [
        arithmetic.value("a second", "", load.deliveries_a_second),
        arithmetic.value("Gb/s", "", load.result_gigabits),
    ]
    for series, reached in (("at random", reached_at_random(load)), ("by content", reached_one)):
        brokers = brokers_needed(load, costs, reached)
        place = Place(figure.name, "brokers that it takes", series, 0.0, load.users)
        yield [
            place.value("brokers", "", float(brokers)),
            place.value("reached by a message", "", reached(brokers)),
            place.value("Gb/s a broker", "", load.result_gigabits / brokers),
        ]


async def _measured(profiles: list[str], messages: list[bytes]) -> tuple[float, float]:
    """Processor seconds until a message is at its host, and for a delivery."""
    network = MemoryNetwork()
    for name, other in (("root", "host"), ("host", "root")):
        node = broker_kind(name, [other], members=[other])
        network.add(Carrier(name, node, Disk(None), network.dial_from(name)))
    root, host = network.carriers["root"], network.carriers["host"]
    await root.start(["host"])
    await host.start()
    await root.ask("source", RegisterSourceRequest("quotes", SourceEntry()), WAIT_SECONDS)
    wanted = [("one", "/quote[@symbol='ONE!']")]
    wanted += [(f"ten{n}", "/quote[@symbol='TEN!']") for n in range(MANY)]
    wanted += [(f"p{n}", text) for n, text in enumerate(profiles)]
    for at in range(0, len(wanted), BATCH):
        asked = tuple((name, DeliveryProfile(text)) for name, text in wanted[at : at + BATCH])
        await host.ask("ann", Subscribe(asked), WAIT_SECONDS)
    there = len(wanted)
    await _filled(host, there)
    kinds = (("ONE!", 1), ("TEN!", MANY))
    least = [float("inf")] * len(kinds)
    for turn in range(ROUNDS + 1):
        for kind, (symbol, each) in enumerate(kinds):
            there += each * len(messages)
            taken = await _published(network, f"{symbol}/{turn}", symbol, messages, there)
            if turn:  # the first is for what is made when it is first needed
                least[kind] = min(least[kind], taken)
    await network.stop()
    one, many = least
    delivery = (many - one) / (MANY - 1)
    return one - delivery, delivery


async def _published(
    network: MemoryNetwork, run: str, symbol: str, messages: list[bytes], there: int
) -> float:
    """Processor seconds for each of some messages about a symbol, until an inbox has so many."""
    root, host = network.carriers["root"], network.carriers["host"]
    bodies = [b'<quote symbol="%s"%s' % (symbol.encode(), body[20:]) for body in messages]
    with undisturbed():
        started = time.process_time()
        for at in range(0, len(bodies), BATCH):
            published = [
                PublishRequest("quotes", f"{run}/{number}", body)
                for number, body in enumerate(bodies[at : at + BATCH], at)
            ]
            await root.submit("source", published)
        await _filled(host, there)
        return (time.process_time() - started) / len(bodies)


async def _filled(carrier: Carrier, count: int) -> None:
    """Returns when an inbox has so many deliveries."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while (found := carrier.disk.last("ann")) < count:
                await asyncio.sleep(0.05)
    except TimeoutError:
        pass
    if found != count:
        raise WrongCountError(
            case="deliveries of two brokers",
            found=found,
            expected=count,
            oracle="profiles",
        )


def _framed(messages: list[bytes]) -> float:
    """Processor seconds to write and read a message in a frame of many."""
    body = tuple(
        StreamMessage(at, "quotes", f"m{at}", 0, "", False, 0, message)
        for at, message in enumerate(messages, 1)
    )
    times = []
    for _ in range(ROUNDS):
        with undisturbed():
            started = time.process_time()
            for at in range(0, len(body), BATCH):
                some = body[at : at + BATCH]
                said = Forward("root", 1, 1, at, at + len(some), some)
                assert decoded(encoded(SessionFrame(1, 1, 1, 1, (said,))))
            times.append((time.process_time() - started) / len(body))
    return min(times)


def _engine(profiles: list[str], messages: list[bytes]) -> float:
    """Processor seconds that routing a message, and matching it at its host, take."""
    plans, tables = XmlProfiles(), xml_content().interests()
    tables.set_neighbours(["host"])
    for number, text in enumerate(profiles):
        plans.add(f"p{number}", DeliveryProfile(text))
    tables.update(
        "host",
        sorted({entry for text in profiles for entry in plans.entries(DeliveryProfile(text))}),
        [],
    )
    times = []
    for _ in range(ROUNDS):
        with undisturbed():
            started = time.process_time()
            for at in range(0, len(messages), BATCH):
                tables.route(messages[at : at + BATCH])
                plans.answers(messages[at : at + BATCH])
            times.append((time.process_time() - started) / len(messages))
    return min(times)
