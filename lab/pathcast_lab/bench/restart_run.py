"""The broker process of `restart`, its profiles, and its starts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from itertools import count, islice
from pathlib import Path

from pathcast.errors import UnavailableError
from pathcast.overlay.content import DeliveryProfile
from pathcast.transport.broker_requests import CODEC, FindSource
from pathcast.transport.client import BrokerClient
from pathcast.transport.grpc_streams import Address
from pathcast.transport.local_processes import free_ports
from pathcast.transport.process import read_control
from pathcast.workload.subscriptions import SubscriptionParameters, generate_subscriptions
from pathcast_lab.bench.broker_node_run import processor_seconds
from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.restart import RestartResult, RestartSet

NAME, CLIENT = "broker", "client"
PATIENCE_SECONDS = 600.0
LOOK_SECONDS = 0.005


def profiles_of(wanted: int, seed: int) -> list[str]:
    """Distinct profiles of the three domains; every second one that is a path is a FLWR."""
    found: dict[str, None] = {}
    for draw in count(seed):
        parameters = SubscriptionParameters(
            queries=2 * wanted, subscribers=1, seed=draw, skew=0.0, distinct_share=1.0
        )
        found |= dict.fromkeys(row.query for row in generate_subscriptions(parameters))
        if len(found) >= wanted:
            break
    return [
        f"for $x in {text} return <hit n='{number}'>{{$x}}</hit>"
        if number % 2 and text.startswith("/") and "|" not in text
        else text
        for number, text in enumerate(islice(found, wanted))
    ]


class BrokerStarts:
    """A broker process that is started and killed.

    Args:
        directory: Of its file, its log and what it keeps.
    """

    def __init__(self, directory: Path) -> None:
        self.kept = directory / NAME
        (port,) = free_ports(1)
        self._file = directory / f"{NAME}.toml"
        self._file.write_text(
            f'[broker]\nname = "{NAME}"\ndirectory = "{self.kept}"\nlisten = "127.0.0.1:{port}"\n'
            f'[[clients]]\nname = "{CLIENT}"\ntoken = "{CLIENT}"\n'
        )
        self.address = Address(NAME, f"127.0.0.1:{port}", CLIENT)
        self._process: subprocess.Popen[bytes] | None = None

    def client(self) -> BrokerClient:
        """A client of it."""
        return BrokerClient(CLIENT, self.address, CODEC)

    async def start(self, *, is_new: bool = False) -> tuple[float, float]:
        """Seconds until it answers, and those of a core that it took."""
        command = [sys.executable, "-m", "pathcast", "broker", "run", str(self._file)]
        began = time.perf_counter()
        with self._file.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *(["--new"] if is_new else [])], stdout=log, stderr=log
            )
        while not self._listens(self._process.pid):
            await asyncio.sleep(LOOK_SECONDS)
        async with self.client() as client:
            while True:
                with suppress(UnavailableError):
                    await client.ask(FindSource("none"))
                    break
                await asyncio.sleep(LOOK_SECONDS)
        return time.perf_counter() - began, processor_seconds(self._process.pid)

    def snapshots(self) -> list[Path]:
        """Its snapshots; the last one is in force, and one before may still be there."""
        return sorted(self.kept.glob("*.snapshot"), key=lambda file: file.stat().st_mtime)

    def _listens(self, process: int) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._file.with_suffix(".log").read_text()
        with suppress(UnavailableError):
            return read_control(self.kept).process == process
        return False

    def end(self, *, is_killed: bool) -> None:
        """Kill it, or have it end in order, which writes a snapshot."""
        if self._process is not None:
            (self._process.kill if is_killed else self._process.terminate)()
            self._process.wait()
            self._process = None


async def measured(chosen: RestartSet, seed: int, directory: Path) -> list[RestartResult]:
    """All rounds.

    Raises:
        WrongCountError: A profile is missing after a start.
    """
    kinds = ("with the snapshot", "without", "no profiles")
    answers: dict[str, list[float]] = defaultdict(list)
    processor: dict[str, list[float]] = defaultdict(list)
    for name in ("full", "empty"):
        (directory / name).mkdir()
    full, empty = BrokerStarts(directory / "full"), BrokerStarts(directory / "empty")
    try:
        await empty.start(is_new=True)
        empty.end(is_killed=True)
        await full.start(is_new=True)
        profiles = profiles_of(chosen.profiles, seed)
        async with full.client() as client:
            rows = ((f"p{n}", DeliveryProfile(text)) for n, text in enumerate(profiles))
            refused = await client.subscribe_many(rows, PATIENCE_SECONDS)
        if refused:
            found = chosen.profiles - len(refused)
            raise wrong_count("profiles", found, chosen.profiles, "what was asked for")
        full.end(is_killed=False)
        version = full.snapshots()[-1].name
        for _ in range(chosen.rounds):
            for kind in kinds:
                broker = empty if kind == kinds[2] else full
                if kind == kinds[1]:
                    for file in full.snapshots():
                        file.unlink()
                taken = await broker.start()
                answers[kind].append(taken[0])
                processor[kind].append(taken[1])
                broker.end(is_killed=kind != kinds[1])
            if full.snapshots()[-1].name != version:
                raise wrong_count("versions of the profiles", 2, 1, "what was asked for")
    finally:
        for broker in (full, empty):
            broker.end(is_killed=True)
    return [
        RestartResult(
            kind,
            0 if kind == kinds[2] else chosen.profiles,
            tuple(answers[kind]),
            tuple(processor[kind]),
        )
        for kind in kinds
    ]
