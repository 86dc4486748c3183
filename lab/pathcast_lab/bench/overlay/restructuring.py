"""Bytes on the links of a tree of brokers with and without early restructuring.

The tree, and what is asked for, are those of `projection`; orders have an image besides, which
profiles drop before they look at them, and most of them call the items a list. They are given
the batch after the steps, or what they make of its orders. Beside them the same profiles without
steps say what is saved by cutting alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from pathcast.overlay.content import DeliveryProfile
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.projection import Tree, batch, check_alike, profile

STEPS: Final = ("drop /batch/order/image", "rename /batch/order/items list")

IMAGE: Final = b"<image>" + b"iVBORw0KGgoAAAANSUhEUgAAA" * 8 + b"</image>"

POPULATIONS: Final = {
    "the same steps": (0.0, 0.0),
    "half of them one step": (0.5, 0.0),
    "0.1% without": (0.0, 0.001),
    "1.0% without": (0.0, 0.01),
}
"""Share of profiles that begin with the first step alone, and of those that have none."""


def run_restructuring(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Populations, by what they are given and which steps they have in common.

    Raises:
        WrongCountError: A leaf's profiles are given other results than the batches give.
    """
    leaves = chosen.links
    messages = [
        batch(Random(f"{seed} {n}"), n).replace(b"<items>", IMAGE + b"<items>")
        for n in range(chosen.messages)
    ]
    flooded = sum(map(len, messages)) * (2 * leaves - 2)
    for deliver in ("fragment", "message"):
        for name, shares in POPULATIONS.items():
            draw = Random(f"{seed} {deliver}")
            asked = [
                [
                    profile(draw, leaf, leaves, "own cities", float(deliver == "message"))
                    for _ in range(chosen.profiles // leaves)
                ]
                for leaf in range(leaves)
            ]
            with_steps = [[stepped(draw, one, *shares) for one in each] for each in asked]
            say(f"{deliver}, {name}")
            cut, routed = Tree(asked, projection=True), Tree(with_steps, projection=False)
            early = Tree(with_steps, projection=True)
            cut.send(messages)
            check_alike(with_steps, routed, early, messages, f"{deliver}, {name}")
            place = Place(figure.name, deliver, name, 0.0, chosen.profiles)
            yield [
                place.value("routed", "%", 100 * routed.sent / flooded),
                place.value("cut, without steps", "%", 100 * cut.sent / flooded),
                place.value("restructured and cut", "%", 100 * early.sent / flooded),
                place.value("saved", "%", 100 * (1 - early.sent / routed.sent)),
            ]


def stepped(draw: Random, asked: DeliveryProfile, first: float, none: float) -> DeliveryProfile:
    """The same profile, after steps."""
    kind = draw.random()
    if kind < none:
        return asked
    if kind < none + first:
        return DeliveryProfile(asked.query, asked.deliver, steps=STEPS[:1])
    return DeliveryProfile(asked.query.replace("$o/items", "$o/list"), asked.deliver, steps=STEPS)
