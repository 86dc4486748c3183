"""Scenarios from a seed: brokers, links, subscriptions, messages, and what goes wrong meanwhile.

Example:
    >>> scenario = random_scenario(7, brokers=(3, 5), seconds=10.0)
    >>> scenario == random_scenario(7, brokers=(3, 5), seconds=10.0)
    True
    >>> len(scenario.brokers) in (3, 4, 5), scenario.steps[0].action
    (True, 'source')
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from pathcast.overlay.broker_settings import Trees
from pathcast_lab.sim.broker_world import Scenario, are_connected
from pathcast_lab.sim.faults import NO_FAULTS, Faults
from pathcast_lab.sim.steps import Step

__all__ = [
    "absent_scenario",
    "connection_faults",
    "long_toy_body",
    "random_faults",
    "random_scenario",
    "stepped_toy_profile",
    "toy_body",
    "toy_profile",
]

AT_ONCE: Final = 0.3
"""Share of changes of subscriptions that are followed by others of the same id soon."""

SAME_QUERY: Final = 0.6
"""Share of ids that come back with the query that they had."""


def random_faults(draw: random.Random) -> Faults:
    """A network that is unkind in some ways."""

    def some(most: float) -> float:
        return draw.choice([0.0, draw.uniform(0, most)])

    is_far = draw.random() < 0.25
    return Faults(
        loss=some(0.3),
        duplicate=some(0.3),
        reorder=some(0.5),
        reorder_seconds=draw.choice([0.05, 0.5, 3.0]),
        delay_seconds=(0.3, 1.5) if is_far else (0.001, 0.02),
        slow=0.0 if is_far else some(0.3),
        skew=some(0.1),
        unnoticed=some(1.0),
    )


def connection_faults(draw: random.Random) -> Faults:
    """A network of connections that are unkind in some ways: in order, and cut anywhere."""

    def some(most: float) -> float:
        return draw.choice([0.0, draw.uniform(0, most)])

    is_far = draw.random() < 0.25
    return Faults(
        delay_seconds=(0.3, 1.5) if is_far else (0.001, 0.02),
        slow=0.0 if is_far else some(0.3),
        skew=some(0.1),
        unnoticed=some(1.0),
        breaks=draw.choice([0.0, draw.uniform(0, 0.02), draw.uniform(0, 0.1)]),
        remains=some(1.0),
        remains_seconds=draw.choice([0.02, 1.0, 5.0]),
        half_open=some(0.3),
    )


def toy_profile(draw: random.Random) -> str:
    """A profile of `pathcast_lab.sim.toy_content`."""
    some = []
    for _ in range(draw.randint(1, 2)):
        entry = draw.choice([f"a{draw.randrange(20)}", f"a{draw.randrange(3)}*", "a*"])
        some.append(entry + draw.choice(["", "", "&x"]))
    return "|".join(some) + draw.choice(["", "", "", "!"])


def stepped_toy_profile(draw: random.Random) -> str:
    """Likewise, most of them with steps, of which many have some in common."""
    steps = draw.choice(
        [[], ["4:3"], ["4:3", "3:1"], ["4:3", "3:1", "5:"], ["4:3", "1:4"], ["1:4"]]
    )
    return (f"{','.join(steps)}>" if steps else "") + toy_profile(draw)


def toy_body(draw: random.Random) -> str:
    """A message of `pathcast_lab.sim.toy_content`."""
    words = [str(draw.randrange(20)) for _ in range(draw.randint(1, 4))]
    return " ".join([*words, draw.choice("xy")])


def long_toy_body(draw: random.Random) -> str:
    """A message of `pathcast_lab.sim.toy_content`, of one word or of many."""
    words = [str(draw.randrange(20)) for _ in range(draw.choice([1, 3, 8, 40]))]
    return " ".join([*words, draw.choice("xy")])


def random_scenario(
    seed: int,
    *,
    brokers: tuple[int, int] = (3, 6),
    seconds: float = 20.0,
    steps_a_second: float = 2.0,
    disasters: float = 0.35,
    older: float = 0.0,
    profile: Callable[[random.Random], str] = toy_profile,
    body: Callable[[random.Random], str] = toy_body,
    faults: Callable[[random.Random], Faults] = random_faults,
) -> Scenario:
    """A scenario.

    Args:
        seed: Draws it.
        brokers: Least and most.
        seconds: From the first step to the last.
        steps_a_second: Of all kinds.
        disasters: Share of steps at which something goes wrong.
        older: Share of disasters that are about disks of before: a copy of one takes its place, or
            another process begins from it, under the same name.
        profile: Draws a profile; toy content by default.
        body: Draws a message.
        faults: Draws how unkind the network is.
    """
    draw = random.Random(f"scenario {seed}")
    count = draw.randint(*brokers)
    names = [chr(ord("a") + n) if n < 26 else f"n{n}" for n in range(count)]
    links = _links(draw, names)
    roots = draw.sample(names, draw.randint(1, min(3, count)))
    steps = [Step(0.0, "source", (root,)) for root in roots]
    if draw.random() < 0.8:
        steps.append(Step(0.0, "become", (faults(draw),)))
    maker = _Maker(draw, list(names), list(links), roots, profile, body, faults)
    times = sorted(draw.uniform(0.5, seconds) for _ in range(int(seconds * steps_a_second)))
    for time in times:
        if draw.random() >= disasters:
            action, args = maker.business()
        else:
            is_older = bool(older) and draw.random() < older
            action, args = maker.older_disk() if is_older else maker.disaster()
        steps.append(Step(time, action, args))
        if action in ("subscribe", "unsubscribe"):
            steps += maker.followed(time, action, str(args[-2 if action == "subscribe" else 0]))
    steps.sort(key=lambda step: step.at)
    return Scenario(tuple(names), tuple(links), tuple(steps), trees=maker.trees)


def absent_scenario(
    seed: int,
    *,
    messages: int,
    away_seconds: float = 8.0,
    seconds: float = 30.0,
    disasters: float = 0.1,
    older: float = 0.0,
) -> Scenario:
    """A scenario of `random_scenario` in which members are away while many messages are published.

    Each is away once or more: it crashes, or hears nobody. For a log of few messages, and a lag of
    few seconds, that is beyond retention.

    Args:
        seed: Draws it.
        messages: Published while a member is away, by one root.
        away_seconds: How long it is away; messages begin after a quarter of that.
        seconds: As of `random_scenario`.
        disasters: As of `random_scenario`, beside absences.
        older: As of `random_scenario`.
    """
    made = random_scenario(seed, seconds=seconds, disasters=disasters, older=older)
    draw = random.Random(f"absences {seed}")
    roots = [str(step.args[0]) for step in made.steps if step.action == "source"]
    steps = list(made.steps)
    begins = draw.uniform(3, 6)
    while begins + away_seconds < seconds:
        away, root = draw.choice(made.brokers), draw.choice(roots)
        lost, back = draw.choice(
            [
                (("crash", (away,)), ("restart", (away,))),
                (("split", ((away,),)), ("heal", ())),
            ]
        )
        steps += [Step(begins, *lost), Step(begins + away_seconds, *back)]
        first = begins + away_seconds / 4
        apart = (begins + away_seconds - first) / messages
        steps += [
            Step(first + n * apart, "publish", (root, toy_body(draw))) for n in range(messages)
        ]
        begins += away_seconds + draw.uniform(2, 6)
    return made.with_steps(sorted(steps, key=lambda step: step.at))


class _Maker:
    """Draws steps one after the other."""

    def __init__(
        self,
        draw: random.Random,
        names: list[str],
        links: list[tuple[str, str]],
        roots: list[str],
        profile: Callable[[random.Random], str],
        body: Callable[[random.Random], str],
        faults: Callable[[random.Random], Faults],
    ) -> None:
        self.profile, self.body, self.faults = profile, body, faults
        self.draw, self.names, self.links, self.roots = draw, names, links, roots
        self.trees: Trees = draw.choice(["spanning", "spanning", "broadcast"])
        self.subscriptions: list[str] = []
        self.withdrawn: list[str] = []
        self.host: dict[str, str] = {}
        self.last: dict[str, str] = {}
        self.joined = 0

    def business(self) -> tuple[str, tuple[object, ...]]:
        draw = self.draw
        kind = draw.random()
        if kind < 0.5:
            return "publish", (draw.choice(self.roots), self.body(draw))
        if self.withdrawn and kind < 0.6:
            return self.subscribe_again(draw.choice(self.withdrawn))
        if kind < 0.75 or not self.subscriptions:
            name = f"s{len(self.host)}"
            self.subscriptions.append(name)
            self.host[name] = draw.choice(self.names)
            return self.subscribe(name)
        name = draw.choice(self.subscriptions)
        if kind < 0.85:
            return self.subscribe(name)
        return "unsubscribe", (self.withdraw(name),)

    def followed(self, time: float, action: str, name: str) -> list[Step]:
        """A subscriber who changes its mind: it withdraws what it asked for, and asks again."""
        draw = self.draw
        steps: list[Step] = []
        if action == "subscribe" and draw.random() < AT_ONCE:
            time += draw.uniform(0, 1)
            steps.append(Step(time, "unsubscribe", (self.withdraw(name),)))
        if (steps or action == "unsubscribe") and draw.random() < 2 * AT_ONCE:
            again = self.subscribe_again(name)
            steps.append(Step(time + draw.uniform(0, 3), *again))
        return steps

    def withdraw(self, name: str) -> str:
        """A subscription goes; its id is used again."""
        self.subscriptions.remove(name)
        self.withdrawn.append(name)
        return name

    def subscribe(self, name: str) -> tuple[str, tuple[object, ...]]:
        """With a query of its own."""
        self.last[name] = self.profile(self.draw)
        return "subscribe", (self.host[name], name, self.last[name])

    def subscribe_again(self, name: str) -> tuple[str, tuple[object, ...]]:
        """An id comes back that was withdrawn, with the query that it had or another one."""
        self.withdrawn.remove(name)
        self.subscriptions.append(name)
        if self.draw.random() < SAME_QUERY:
            return "subscribe", (self.host[name], name, self.last[name])
        return self.subscribe(name)

    def disaster(self) -> tuple[str, tuple[object, ...]]:
        draw = self.draw
        kind = draw.randrange(13)
        if kind <= 2:
            disk = draw.random() < 0.8
            return "crash", (draw.choice(self.names), disk, draw.choice([0, 0, 1, 2, 3, 5, 8]))
        if kind <= 6:
            return "restart", (draw.choice(self.names),)
        if kind == 7:
            return "cut", draw.choice(self.links)
        if kind == 8:
            return "reset", draw.choice(self.links)
        if kind == 9:
            side = frozenset(draw.sample(self.names, draw.randint(1, len(self.names) - 1)))
            return "split", (tuple(sorted(side)),)
        if kind == 10:
            return "heal", ()
        if kind == 11:
            return self.membership()
        return "become", (draw.choice([NO_FAULTS, self.faults(draw)]),)

    def older_disk(self) -> tuple[str, tuple[object, ...]]:
        draw = self.draw
        kind, name = draw.randrange(8), draw.choice(self.names)
        if kind < 2:
            return "back_up", (name,)
        if kind < 4:
            return "roll_back", (name,)
        if kind == 4:
            return "twin", (draw.choice(self.roots),)
        if kind == 5:
            return "untwin", (draw.choice(self.roots),)
        if kind == 6:
            root = draw.choice(self.roots)
            return "publish", (root, self.body(draw), True)
        root, other = draw.choice([*self.links, *((b, a) for a, b in self.links)])
        return "wire", (root, other, draw.random() < 0.5)

    def membership(self) -> tuple[str, tuple[object, ...]]:
        draw = self.draw
        kind = draw.random()
        if kind < 0.6 or len(self.names) < 3:
            name = f"z{self.joined}"
            self.joined += 1
            near = draw.sample(self.names, min(len(self.names), draw.randint(1, 2)))
            self.names.append(name)
            self.links += [(other, name) for other in near]
            return "join", (name, *near)
        if kind < 0.8:
            return "expel", tuple(draw.sample(self.names, 2))
        idle = [
            name
            for name in self.names
            if name not in self.roots
            and are_connected([one for one in self.names if one != name], self.links)
        ]
        if not idle:
            return "heal", ()
        gone = draw.choice(idle)
        self.names.remove(gone)
        self.links = [pair for pair in self.links if gone not in pair]
        return "leave", (gone,)


def _links(draw: random.Random, names: list[str]) -> list[tuple[str, str]]:
    shuffled = draw.sample(names, len(names))
    pairs = {
        tuple(sorted((name, draw.choice(shuffled[:n])))) for n, name in enumerate(shuffled) if n
    }
    for _ in range(draw.randrange(len(names))):
        pairs.add(tuple(sorted(draw.sample(names, 2))))
    return sorted((a, b) for a, b in pairs)
