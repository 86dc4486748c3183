"""Trees of brokers, and what lies behind each of their links.

Three shapes: *random* (a broker joins any that has room), *preferential* (it joins those that have
many already) and *regions* (one broker of each region in a backbone with long links, the others in
a tree of their region with short ones). Sets are whole numbers, a bit a member, so that a link's
set is the union of what is behind it, whatever the members are: entries, messages, brokers.

Example:
    >>> line = Tree((-1, 0, 1), (0.0, 0.005, 0.002), (0, 0, 0))
    >>> behind(range(3), line.parent, [0b001, 0b010, 0b100])
    ([7, 6, 4], [0, 1, 3])
    >>> line.farthest(1), line.farthest(0)
    (0.005, 0.007)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Final, Literal, TypeAlias

import numpy as np

from pathcast_lab.bench.wrong_count import WrongCountError

FOLLOWED: Final = 20
"""Messages of each point that are followed from broker to broker."""

Shape: TypeAlias = Literal["random", "preferential", "regions"]

REGIONS: Final = 16
"""Regions of a network; fewer where there are not four brokers for each."""

NEAR: Final = (0.001, 0.005)
ANY: Final = (0.001, 0.020)
FAR: Final = (0.020, 0.080)
"""Least and most seconds on a link: within a region, anywhere, between regions."""


@dataclass(frozen=True)
class Tree:
    """A tree of brokers.

    Attributes:
        parent: For each broker one with a lower number; -1 for broker 0.
        seconds: Delay of the link to the parent, either way.
        regions: Number of each broker's region; every region is connected.
    """

    parent: tuple[int, ...]
    seconds: tuple[float, ...]
    regions: tuple[int, ...]

    def __len__(self) -> int:
        """Brokers."""
        return len(self.parent)

    @property
    def links(self) -> list[tuple[int, int]]:
        """Each broker but 0 with its parent."""
        return [(at, self.parent[at]) for at in range(1, len(self))]

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """Of each broker."""
        found: list[list[int]] = [[] for _ in self.parent]
        for at, above in self.links:
            found[at].append(above)
            found[above].append(at)
        return found

    @cached_property
    def subtrees(self) -> list[int]:
        """For each broker the set of those whose way to broker 0 leads over it, itself too."""
        return below(range(len(self)), self.parent, [1 << at for at in range(len(self))])

    def side(self, start: int, to: int) -> int:
        """The brokers behind a link, seen from one of its ends."""
        if self.parent[to] == start:
            return self.subtrees[to]
        return self.subtrees[0] & ~self.subtrees[start]

    def delay(self, one: int, other: int) -> float:
        """Seconds of a link."""
        return self.seconds[one if self.parent[one] == other else other]

    def delays_from(self, start: int) -> list[float]:
        """Seconds from a broker to each."""
        found = [-1.0] * len(self)
        found[start] = 0.0
        waiting = [start]
        for at in waiting:
            for other in self.neighbours[at]:
                if found[other] < 0:
                    found[other] = found[at] + self.delay(at, other)
                    waiting.append(other)
        return found

    def farthest(self, start: int) -> float:
        """Seconds to the broker that is farthest away."""
        return max(self.delays_from(start))


def tree_of(shape: Shape, brokers: int, fan_out: int, random: Random) -> Tree:
    """A tree of a shape.

    Args:
        shape: One of the three.
        brokers: How many.
        fan_out: Children that a broker may have; in a backbone as many, and as many in its region.
        random: Draws.
    """
    count = max(1, min(REGIONS, brokers // 4))
    parent, seconds, regions = [-1], [0.0], [0]
    children, begun = [0] * brokers, [0] * brokers
    for at in range(1, brokers):
        is_first = at < count
        having = begun if is_first and shape == "regions" else children
        room = [
            other
            for other in range(at)
            if having[other] < fan_out
            and (shape != "regions" or is_first or regions[other] == at % count)
        ]
        if shape == "preferential":
            [chosen] = random.choices(room, [1 + children[other] for other in room])
        else:
            chosen = random.choice(room)
        span = ANY if shape != "regions" else FAR if is_first else NEAR
        having[chosen] += 1
        parent.append(chosen)
        seconds.append(random.uniform(*span))
        regions.append(at if is_first else regions[chosen])
    return Tree(tuple(parent), tuple(seconds), tuple(regions))


def breadth_first(neighbours: list[set[int]], root: int) -> tuple[list[int], list[int]]:
    """The brokers of any network in order of distance from one, and the parent of each."""
    parent = [-1] * len(neighbours)
    order = [root]
    seen = {root}
    for at in order:
        for other in sorted(neighbours[at] - seen):
            seen.add(other)
            parent[other] = at
            order.append(other)
    return order, parent


def below(order: Sequence[int], parent: Sequence[int], own: Sequence[int]) -> list[int]:
    """For each broker the union of its own set and of those behind it, away from the root.

    Args:
        order: Brokers, each after its parent.
        parent: Of each; -1 for the first.
        own: The set of each.
    """
    found = list(own)
    for at in reversed(order[1:]):
        found[parent[at]] |= found[at]
    return found


def behind(
    order: Sequence[int], parent: Sequence[int], own: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What lies behind the link to the parent of each broker: seen from the parent, and from it.

    Arguments as of `below`.
    """
    downwards = below(order, parent, own)
    upwards = [0] * len(own)
    children: list[list[int]] = [[] for _ in own]
    for at in order[1:]:
        children[parent[at]].append(at)
    for at in order:
        # For each child, what lies behind all others: of those before it, and of those after it.
        before = [upwards[at] | own[at]]
        for child in children[at]:
            before.append(before[-1] | downwards[child])
        after = 0
        for place in range(len(children[at]) - 1, -1, -1):
            child = children[at][place]
            upwards[child] = before[place] | after
            after |= downwards[child]
    return downwards, upwards


def crossings(tree: Tree, wanted: Sequence[int], rooted: Sequence[int]) -> list[int]:
    """The messages that go over the link to the parent of each broker.

    A message goes over a link, away from its root, if somebody behind the link wants it.

    Args:
        tree: The brokers.
        wanted: For each broker the set of messages that it wants.
        rooted: For each broker the set of messages that it is the root of.
    """
    order = range(len(tree))
    downwards, upwards = behind(order, tree.parent, wanted)
    inside = below(order, tree.parent, rooted)
    return [
        (up & within) | (down & ~within)
        for down, up, within in zip(downwards[1:], upwards[1:], inside[1:], strict=True)
    ]


def check_reached(
    case: str, tree: Tree, wanted: Sequence[int], rooted: Sequence[int], crossed: Sequence[int]
) -> None:
    """Follows messages from their roots, link by link, and looks at where they come.

    Args:
        case: What is looked at.
        tree: The brokers.
        wanted: As of `crossings`.
        rooted: Likewise.
        crossed: What it gave.

    Raises:
        WrongCountError: A message does not come to all who want it, or goes on behind the last one.
    """
    for message in range(FOLLOWED):
        bit = 1 << message
        ends = [at for at, rows in enumerate(rooted) if rows & bit]
        came = set(ends)
        for at in ends:  # grows on the way
            on = [
                other
                for other in tree.neighbours[at]
                if other not in came and crossed[max(at, other) - 1] & bit
            ]
            if not on and not wanted[at] & bit and not rooted[at] & bit:
                raise _wrong(f"{case}: links to one more", 1, 0)
            ends += on
            came |= set(on)
        wants = {at for at, rows in enumerate(wanted) if rows & bit}
        if ends and not wants <= came:
            raise _wrong(f"{case}: brokers reached", len(wants & came), len(wants))


def _wrong(case: str, found: int, expected: int) -> WrongCountError:
    return WrongCountError(case=case, found=found, expected=expected, oracle="the tree")


def members(rows: int, count: int) -> np.ndarray:
    """A set as an array of `count` truth values."""
    packed = np.frombuffer(rows.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little").astype(bool)


def set_of(members: np.ndarray) -> int:
    """Truth values as a set."""
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")


def weight(sets: Sequence[int], weights: np.ndarray) -> float:
    """The weights of all members of all sets together."""
    return float(sum(weights[members(each, len(weights))].sum() for each in sets))
