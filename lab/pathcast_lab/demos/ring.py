"""`pathcast-lab demo ring`: twenty peers, one automaton, a peer killed on the way, nothing lost.

Queries of the news domain, none of which more than a twentieth of the messages satisfy, are spread
over peers of a ring of processes on this machine, messages enter at all of them. Halfway one peer
is killed. What subscribers were told is compared with what one process with all queries says of
each message; a publication that is not proved to have reached all is published again, by another
peer.
It measures nothing: twenty processes share the cores of one machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.cli.console import answers, say, say_warning
from pathcast.cli.demo import clear_demo
from pathcast.cli.exits import ExitCode
from pathcast.dht.publishing import PublicationOutcome
from pathcast.dht.subscriptions import Matched, Subscribed
from pathcast.errors import ConfigError, UnavailableError
from pathcast.model import Query
from pathcast.overlay.deliveries import OPERATOR
from pathcast.registry import Registry
from pathcast.transport.local_ring import LocalRing
from pathcast.transport.peer import (
    TOLD,
    PeerAccepted,
    PeerPublish,
    PublicationReport,
    Register,
    StandingQuery,
)
from pathcast.transport.ring_map import ring_map
from pathcast.workload import DOMAINS, QueryParameters, generate_documents, generate_queries
from pathcast_lab.demos.running import (
    is_as_expected,
    running_anew,
    until,
    until_ended,
)

DOMAIN = "news"
MARKER = "p00.toml"
GROUP = 250
"""Queries of one call."""
SHARE_MAX = 0.05
"""Of the messages that satisfy a query."""
SURPLUS = 2
"""Queries that are made for each that is taken."""
TRIES = 3
"""A message that is not proved to have reached all is published so often."""
SETTINGS: Mapping[str, float | str] = {
    "piece_queries_max": 200,
    "tick_seconds": 1.0,
    "patience_seconds": 2.0,
    "gather_seconds": 0.1,
}


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIRECTORY", help="Files of the ring; replaced.")
    ] = Path("demo-dht"),
    peers: Annotated[int, typer.Option(min=6, max=200, help="Peers; four are the base.")] = 20,
    queries: Annotated[int, typer.Option(min=10, help="Distinct queries.")] = 10_000,
    messages: Annotated[int, typer.Option(min=4, help="Messages.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same input.")] = 0,
) -> ExitCode:
    """Show a ring: 20 peers, one of them killed, every match accounted for."""
    started = time.monotonic()
    clear_demo(out, MARKER)
    ring = LocalRing.write(out, peers, SETTINGS)
    source = DOMAINS[DOMAIN]
    graph = source.graph()
    parameters = QueryParameters(
        count=SURPLUS * queries, seed=seed, depth_max=8, wildcard=0.02, descendant=0.02
    )
    made = {f"q{number}": text for number, text in enumerate(generate_queries(graph, parameters))}
    stream = {
        f"m{number}": body
        for number, body in enumerate(generate_documents(graph, source.documents(messages, seed)))
    }
    found = _found(made, stream)
    rows = _selective(made, found, queries, len(stream))
    expected = {(id, message) for id, message in found if id in rows}
    say(f"{len(rows):,} queries, {len(stream):,} messages, {len(expected):,} matches expected")
    with running_anew(ring):
        say(f"{len(ring.names)} peers run")
        run = _Run(ring)
        asyncio.run(run.go(rows, stream))
        statuses = asyncio.run(ring.statuses())
        drawing = out / "ring.svg"
        drawing.write_text(ring_map(statuses), encoding="utf-8")
    is_well = is_as_expected("matches", run.matches(), expected)
    console = answers()
    console.print(f"messages without a proof: {len(stream.keys() - run.proved)}")
    console.print(_loads(statuses))
    console.print(f"map: {drawing}")
    say(f"{time.monotonic() - started:.0f} s in all")
    return ExitCode.OK if is_well and stream.keys() <= run.proved else ExitCode.REFUSED


def _selective(
    made: Mapping[str, str], found: Iterable[tuple[str, str]], count: int, messages: int
) -> dict[str, str]:
    """So many queries that few messages satisfy.

    Raises:
        ConfigError: There are not so many.
    """
    hits = Counter(id for id, _ in found)
    few = [id for id in made if hits[id] <= max(1, SHARE_MAX * messages)]
    if len(few) < count:
        reason = f"{len(few):,} of {len(made):,} queries are satisfied by few enough messages"
        raise ConfigError("config.invalid", key="queries", reason=reason)
    return {id: made[id] for id in few[:count]}


def _found(rows: Mapping[str, str], stream: Mapping[str, bytes]) -> set[tuple[str, str]]:
    """Query and message of each match, as one process with all queries has them."""
    registry = Registry()
    registry.add([Query(id, text) for id, text in rows.items()])
    results = registry.match(list(stream.values()))
    return {
        (id, message)
        for message, result in zip(stream, results, strict=True)
        for id in result.query_ids
    }


def _loads(statuses: Mapping[str, Mapping[str, Any] | None]) -> str:
    nodes = [status["node"] for status in statuses.values() if status is not None]
    held = sorted((node["queries"] for node in nodes), reverse=True)
    done = sorted((node["visits"] for node in nodes), reverse=True)
    return (
        f"queries a peer: {held[-1]:,} to {held[0]:,} of {sum(held):,}; "
        f"visits a peer: {done[-1]:,} to {done[0]:,} of {sum(done):,}"
    )


def _why(published: PublicationOutcome) -> str:
    """Why a publication is not proved."""
    if published.unproved:
        visit = published.unproved[0]
        return f"{len(published.unproved):,} visits are not known to be done, {visit.key} is one"
    problem = published.problems[0]
    return f"{len(published.problems):,} matches could not be told: {problem.reason}"


class _Run:
    """The events of the demonstration, and the deliveries seen."""

    def __init__(self, ring: LocalRing) -> None:
        self._ring = ring
        self._subscribed: set[str] = set()
        self._matched: Counter[tuple[str, str]] = Counter()
        self._message: dict[str, str] = {}
        self._waiting: set[str] = set()
        self._unproved: set[str] = set()
        self._why = ""
        self.proved: set[str] = set()

    def matches(self) -> Counter[tuple[str, str]]:
        """Query and message -> how often it was told of one publication, at most."""
        found: Counter[tuple[str, str]] = Counter()
        for (query, publication), count in self._matched.items():
            place = query, self._message[publication]
            found[place] = max(found[place], count)
        return found

    async def go(self, rows: Mapping[str, str], stream: Mapping[str, bytes]) -> None:
        """Everything, with a peer killed when half of the messages are out."""
        ring = self._ring
        killed = ring.names[-1]
        stay = [name for name in ring.names if name != killed]
        tasks = [asyncio.create_task(self._read(name)) for name in stay]
        begun = time.monotonic()
        await ring.until_whole()
        say(f"all peers are on the ring: {time.monotonic() - begun:.1f} s")
        begun = time.monotonic()
        await asyncio.gather(
            *(
                self._register(name, dict(list(rows.items())[place :: len(stay)]))
                for place, name in enumerate(stay)
            )
        )
        await until(lambda: len(self._subscribed) >= len(rows))
        say(f"all queries in force: {time.monotonic() - begun:.1f} s")
        begun = time.monotonic()
        publishing = asyncio.create_task(self._publish(stay, stream))
        await until(lambda: len(self.proved | self._unproved) >= len(stream) // 2)
        ring.kill(killed)
        say(f"{killed} is killed, and {len(self._waiting)} messages have no outcome yet")
        await publishing
        for left in range(TRIES, 0, -1):
            await until(lambda: not self._waiting)
            again = {id: stream[id] for id in sorted(self._unproved)}
            if not again or left == 1:
                break
            say_warning(
                f"{len(again)} messages without a proof are published again; of one, {self._why}"
            )
            self._unproved.clear()
            await self._publish(stay[::-1], again)
        say(f"all messages have an outcome: {time.monotonic() - begun:.1f} s")
        await until_ended(tasks)

    async def _register(self, name: str, rows: Mapping[str, str]) -> None:
        texts = [StandingQuery(id, text) for id, text in rows.items()]
        async with self._ring.operator(name) as client:
            for start in range(0, len(texts), GROUP):
                answer = await client.ask(Register(tuple(texts[start : start + GROUP])))
                assert isinstance(answer, PeerAccepted)
                for refused in answer.refused:
                    say_warning(": ".join(refused))

    async def _publish(self, names: Sequence[str], messages: Mapping[str, bytes]) -> None:
        shares: dict[str, list[PeerPublish]] = defaultdict(list)
        for number, (id, body) in enumerate(messages.items()):
            shares[names[number % len(names)]].append(PeerPublish(id, body))
        self._waiting |= messages.keys()
        for name, share in shares.items():
            await self._published(name, share)

    async def _published(self, name: str, share: Sequence[object]) -> None:
        """Publishes; again if the peer is too busy to say that it has all."""
        while True:
            with contextlib.suppress(UnavailableError):
                async with self._ring.operator(name) as client:
                    await client.publish(share)
                    return
            await asyncio.sleep(0.5)

    async def _read(self, name: str) -> None:
        async for told in self._ring.followed(name, TOLD):
            match told:
                case Subscribed(id):
                    self._subscribed.add(id)
                case Matched(id, publication):
                    self._matched[id.removeprefix(f"{OPERATOR}/"), publication] += 1
                case PublicationReport(message, published):
                    self._message[published.publication] = message
                    self._waiting.discard(message)
                    kept = self.proved if published.is_proved else self._unproved
                    kept.add(message)
                    if not published.is_proved:
                        self._why = _why(published)
