"""Bytes on the links of a tree of brokers with and without early projection.

Messages are batches of orders and enter at the root of a binary tree; profiles lie at its leaves.
A profile asks for the orders of a city, above a sum: either cities are asked for where they are
(each leaf has some of its own, and seldom asks for others), or anywhere alike. A share of the
profiles has to see messages whole. Brokers are tables (`XmlInterests`): what they tell is told, and
what they route and cut goes on; no protocol is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from pathcast.overlay.content import LOCAL, DeliveryProfile, Sent, Verdict
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.xml_content import XmlInterests
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.wrong_count import WrongCountError

CITIES: Final = 400
ORDERS: Final = 20
"""Orders of a batch."""

HERE: Final = 0.98
"""Share of a leaf's profiles that ask for its own cities, where they do."""

WHOLE: Final = (0.0, 0.001, 0.01)
"""Shares of profiles that have to see messages whole."""

ABOVE: Final = "above"


def run_projection(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Populations, by where cities are asked for and how many profiles want messages whole.

    Raises:
        WrongCountError: A leaf's profiles are given other results than the batches give.
    """
    leaves = chosen.links
    messages = [batch(Random(f"{seed} {n}"), n) for n in range(chosen.messages)]
    for where in ("own cities", "any city"):
        for share in WHOLE:
            draw = Random(f"{seed} {where}")
            each = chosen.profiles // leaves
            profiles = [
                [profile(draw, leaf, leaves, where, share) for _ in range(each)]
                for leaf in range(leaves)
            ]
            say(f"{where}, {share:.1%} whole")
            routed, cut = Tree(profiles, projection=False), Tree(profiles, projection=True)
            check_alike(profiles, routed, cut, messages, f"{where}, {share:.1%} whole")
            flooded = sum(map(len, messages)) * (2 * leaves - 2)
            place = Place(figure.name, where, f"{share:.1%} whole", 0.0, chosen.profiles)
            yield [
                place.value("routed", "%", 100 * routed.sent / flooded),
                place.value("routed and cut", "%", 100 * cut.sent / flooded),
                # Of few messages none may be wanted.
                place.value("saved", "%", 100 * (1 - cut.sent / max(1, routed.sent))),
            ]


def check_alike(
    profiles: list[list[DeliveryProfile]], one: Tree, other: Tree, messages: list[bytes], case: str
) -> None:
    """Sends messages through two trees, which have to give the profiles of each leaf the same.

    Raises:
        WrongCountError: They do not.
    """
    for asked, whole, parts in zip(profiles, one.send(messages), other.send(messages), strict=True):
        expected, found = answered(asked, whole), answered(asked, parts)
        if found != expected:
            raise WrongCountError(
                case=case,
                found=len(found),
                expected=len(expected),
                oracle="whole batches",
            )


def batch(draw: Random, number: int) -> bytes:
    """A message."""
    orders = []
    for n in range(ORDERS):
        where, least = draw.randrange(CITIES), draw.randrange(1000)
        items = "<item>a thing that is on its way</item>" * draw.randrange(1, 8)
        head = f"<order no='{number}-{n}'><to>C{where}</to><sum>{least}</sum>"
        orders.append(f"{head}<items>{items}</items></order>")
    return f"<batch day='{number}'>{''.join(orders)}</batch>".encode()


def profile(draw: Random, leaf: int, leaves: int, where: str, share: float) -> DeliveryProfile:
    """What somebody at a leaf asks for."""
    city = draw.randrange(CITIES)
    if where == "own cities" and draw.random() < HERE:
        city = (city * leaves + leaf) % CITIES
    least = 100 * draw.randrange(10)
    condition = f"$o/to = 'C{city}' and $o/sum > {least}"
    text = f"for $o in /batch/order where {condition} return <hit>{{$o/@no}}{{$o/items}}</hit>"
    return DeliveryProfile(text, "message" if draw.random() < share else "fragment")


def answered(profiles: list[DeliveryProfile], messages: list[Sent]) -> list[tuple[str, str, bytes]]:
    """Every result that profiles are given, with the day of its batch."""
    plan = XmlProfiles()
    for n, asked in enumerate(profiles):
        plan.add(str(n), asked)
    bodies = [one.body for one in messages]
    every = plan.answers(bodies, [one.steps for one in messages])
    return [
        (name, body[:20].decode(), result)
        for body, answers in zip(bodies, every, strict=True)
        for name, results in answers.items()
        for result in ((results.code.encode(),) if isinstance(results, Verdict) else results)
    ]


class Tree:
    """Brokers in a binary tree, the root first, with profiles at the leaves."""

    def __init__(self, profiles: list[list[DeliveryProfile]], projection: bool) -> None:
        leaves = len(profiles)
        self.sent = 0
        self._inner = leaves - 1
        self._brokers = [XmlInterests(projection=projection) for _ in range(2 * leaves - 1)]
        plan = XmlProfiles()
        for at in reversed(range(len(self._brokers))):
            broker = self._brokers[at]
            below = [str(child) for child in self._children(at)]
            broker.set_neighbours([*([ABOVE] if at else []), *below])
            for child in below:
                broker.update(child, sorted(self._brokers[int(child)].told(ABOVE)), [])
            if not below:
                entries = {
                    entry for one in profiles[at - self._inner] for entry in plan.entries(one)
                }
                broker.update(LOCAL, sorted(entries), [])

    def send(self, messages: list[bytes]) -> list[list[Sent]]:
        """Messages from the root down. Returns what comes to each leaf."""
        arrived: list[list[Sent]] = [list(map(Sent, messages)), *([] for _ in self._brokers[1:])]
        for at in range(self._inner):
            bodies, done = [one.body for one in arrived[at]], [one.steps for one in arrived[at]]
            wants = self._brokers[at].route(bodies)
            rows = {
                str(child): [row for row, names in enumerate(wants) if str(child) in names]
                for child in self._children(at)
            }
            for child, sent in self._brokers[at].cut(bodies, rows, done).items():
                arrived[int(child)] = [one for one in sent if one is not None]
                self.sent += sum(len(one.body) for one in arrived[int(child)])
        return arrived[self._inner :]

    def _children(self, at: int) -> list[int]:
        return [2 * at + 1, 2 * at + 2] if at < self._inner else []
