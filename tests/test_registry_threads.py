"""Four threads publish and four change a registry; children that are forked and spawned answer too.

If these fail, a message is answered by subscriptions that were not there, or not by those that
were, while others come and go. lxml says which queries hold.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from broker_engines import missing
from pathcast import Registry, Snapshot, Subscription
from patience import PATIENCE_SECONDS

etree = pytest.importorskip("lxml.etree", reason="lxml is not installed")
pytestmark = pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))

THREADS = 4
STABLE = 300
IDS = 40
LEAST = 20
"""What each thread does at least, whatever the others do."""

TEXTS = [
    *(f"//item[@n = {n}]" for n in range(8)),
    *(f"/list/item[@n > {n}]/name" for n in range(8)),
    *(f"//name[contains(., '{letter}')]" for letter in "abcdefgh"),
    *(f"/list[item[@n = {n}]]//name[. = '{letter}a']" for n in range(4) for letter in "abcd"),
    "//item[count(name) = 2]",
    "/list[not(item)]",
    "//item[last()]",
]


def message_of(draw: random.Random) -> bytes:
    items = []
    for _ in range(draw.randrange(5)):
        names = "".join(
            f"<name>{draw.choice('abcdefgh')}{draw.choice('ab')}</name>"
            for _ in range(draw.randrange(3))
        )
        items.append(f'<item n="{draw.randrange(10)}">{names}</item>')
    return f"<list>{''.join(items)}</list>".encode()


MESSAGES = [message_of(random.Random(seed)) for seed in range(60)]
HOLDS = [
    {text for text in TEXTS if etree.XPath(text)(etree.fromstring(message).getroottree())}
    for message in MESSAGES
]


@dataclass
class Life:
    """A text that an id had: surely from `since` to `until`, perhaps from `asked` to `gone`."""

    text: str
    asked: int
    since: float = float("inf")
    until: float = float("inf")
    gone: float = float("inf")


@dataclass
class History:
    """What a changing thread has done; each id has its lives in order."""

    lives: dict[str, list[Life]] = field(default_factory=lambda: defaultdict(list))

    def wrong(self, number: int, found: set[str], begin: int, end: int) -> list[str]:
        """Ids of which an answer between two moments says what cannot be."""
        faults = []
        for name, lives in self.lives.items():
            held = [life for life in list(lives) if life.text in HOLDS[number]]
            if name in found:
                if not any(life.asked <= end and life.gone >= begin for life in held):
                    faults.append(f"{name} is delivered")
            elif any(life.since <= begin and life.until >= end for life in held):
                faults.append(f"{name} is missed")
        return faults


def change(registry: Registry, names: list[str], seed: int, history: History, end: float) -> None:
    draw = random.Random(seed)
    while time.monotonic() < end:
        chosen = draw.sample(names, draw.randrange(1, 9))
        rows = [Subscription(name, "ann", draw.choice(TEXTS), "ids") for name in chosen]
        leaving = {}
        for name in chosen:
            lives = history.lives[name]
            if lives and lives[-1].gone == float("inf"):
                leaving[name] = lives[-1]
        is_removal = bool(leaving) and draw.random() < 0.4
        asked = time.monotonic_ns()
        for life in leaving.values():
            life.until = asked
        made = [] if is_removal else [Life(row.query, asked) for row in rows]
        for row, life in zip(rows, made, strict=False):
            history.lives[row.id].append(life)
        if is_removal:
            registry.remove(list(leaving))
        else:
            assert not registry.update(rows).rejected
        done = time.monotonic_ns()
        for life in leaving.values():
            life.gone = done
        for life in made:
            life.since = done


def publish(
    registry: Registry, seed: int, histories: list[History], end: float, faults: list[str]
) -> None:
    draw = random.Random(seed)
    published = 0
    while time.monotonic() < end and not faults:
        numbers = [draw.randrange(len(MESSAGES)) for _ in range(draw.choice((1, 1, 5, 30)))]
        begin = time.monotonic_ns()
        if draw.random() < 0.5:
            batch = registry.match([MESSAGES[number] for number in numbers])
            found = [set(result.query_ids) for result in batch]
        else:
            deliveries = registry.deliver([MESSAGES[number] for number in numbers])
            found = [
                {each.subscription_id for each in deliveries.deliveries(row)}
                for row in range(len(numbers))
            ]
        until = time.monotonic_ns()
        for number, names in zip(numbers, found, strict=True):
            stable = {name for name in names if name.startswith("stable")}
            if stable != expected_stable(number):
                faults.append(f"message {number}: {sorted(stable ^ expected_stable(number))[:5]}")
            for history in histories:
                faults += history.wrong(number, names, begin, until)
        published += len(numbers)
    if published < LEAST:
        faults.append(f"only {published} messages were answered")


def expected_stable(number: int) -> set[str]:
    return {
        f"stable-{place}" for place in range(STABLE) if TEXTS[place % len(TEXTS)] in HOLDS[number]
    }


def answers_of(path: str) -> list[list[str]]:
    """What a process that opens the file answers to all messages."""
    return [sorted(result.query_ids) for result in Snapshot.open(path).match(MESSAGES)]


def forked_answers_equal(path: str, expected: Iterable[list[str]]) -> bool:
    child = os.fork()
    if not child:
        try:
            os._exit(0 if answers_of(path) == list(expected) else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    "seconds", [4.0, pytest.param(600.0, marks=pytest.mark.nightly)], ids=["short", "ten minutes"]
)
def test_answers_are_those_of_the_subscriptions_that_are_there(
    tmp_path: Path, seconds: float
) -> None:
    registry = Registry(threads=2)
    stable = [Subscription(f"stable-{n}", "u", TEXTS[n % len(TEXTS)], "ids") for n in range(STABLE)]
    assert not registry.add(stable).rejected
    histories = [History() for _ in range(THREADS)]
    faults: list[str] = []
    end = time.monotonic() + seconds
    threads = []
    for n, history in enumerate(histories):
        names = [f"c{n}-{each}" for each in range(IDS)]
        # A key is there before anybody looks.
        history.lives.update({name: [] for name in names})
        threads.append(threading.Thread(target=change, args=(registry, names, n, history, end)))
        arguments = (registry, 100 + n, histories, end, faults)
        threads.append(threading.Thread(target=publish, args=arguments))
    for thread in threads:
        thread.start()
    asked = 0
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        while time.monotonic() < end and not faults:
            asked += 1
            path = str(tmp_path / f"{asked % 2}.snapshot")
            snapshot = registry.freeze()
            snapshot.save(path)
            expected = [sorted(result.query_ids) for result in snapshot.match(MESSAGES)]
            for number, names in enumerate(expected):
                assert expected_stable(number) <= set(names)
            assert forked_answers_equal(path, expected)
            assert pool.submit(answers_of, path).result(PATIENCE_SECONDS) == expected
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
    assert not faults, faults[:5]
    assert asked
    for history in histories:
        assert sum(map(len, history.lives.values())) >= LEAST
