"""Trees over the links that brokers announce: the same at every broker that knows the same.

A link counts if both ends announce it, so that no broker can claim neighbours that it has not. The
one *spanning tree* (a forest, where the network is in parts) is that of least cost, by Kruskal:
a link that fails is replaced by at most one, and a link that is new takes the place of at most one.
The *broadcast tree* of a root is that of shortest ways from it.

Example:
    >>> links = {"a": {"b": 1, "c": 1}, "b": {"a": 1, "c": 5}, "c": {"a": 1, "b": 5}, "d": {"a": 1}}
    >>> spanning_tree(links)
    [('a', 'b'), ('a', 'c')]
    >>> neighbours([("a", "b"), ("a", "c")], "a")
    ['b', 'c']
    >>> broadcast_tree(links, "b")
    [('a', 'b'), ('a', 'c')]
    >>> towards([("a", "b"), ("a", "c")], "b")  # a broker -> the neighbour that leads to it
    {'a': 'a', 'c': 'a'}

Source: 001, section 3.2: a broadcast tree for each broker; how it is made is left to others there.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

Links = Mapping[str, Mapping[str, int]]
"""Broker -> neighbours that it hears -> cost of the link."""

Edge = tuple[str, str]
"""Two brokers, the lesser name first."""


def spanning_tree(links: Links) -> list[Edge]:
    """The edges of the tree of least cost, ties by name. Cost: O(E log E)."""
    part: dict[str, str] = {}

    def find(name: str) -> str:
        while (above := part.get(name, name)) != name:
            part[name] = part.get(above, above)
            name = above
        return name

    tree = []
    for _, a, b in sorted(_edges(links)):
        left, right = find(a), find(b)
        if left != right:
            part[max(left, right)] = min(left, right)
            tree.append((a, b))
    return sorted(tree)


def broadcast_tree(links: Links, root: str) -> list[Edge]:
    """The edges of shortest ways from the root, ties by name; those that reach nobody are none."""
    near: dict[str, list[tuple[str, int]]] = {}
    for cost, a, b in _edges(links):
        near.setdefault(a, []).append((b, cost))
        near.setdefault(b, []).append((a, cost))
    tree, reached = [], set()
    queue: list[tuple[int, str, str]] = [(0, root, root)]
    while queue:
        distance, name, parent = heapq.heappop(queue)
        if name in reached:
            continue
        reached.add(name)
        if name != parent:
            tree.append((min(name, parent), max(name, parent)))
        for other, cost in near.get(name, ()):
            if other not in reached:
                heapq.heappush(queue, (distance + cost, other, name))
    return sorted(tree)


def neighbours(tree: Sequence[Edge], broker: str) -> list[str]:
    """Return the brokers that share an edge of the tree with a broker, by name."""
    return sorted({b if a == broker else a for a, b in tree if broker in (a, b)})


def towards(tree: Sequence[Edge], broker: str) -> dict[str, str]:
    """For each broker that the tree connects with this one, its neighbour on the way there.

    Read from the other side: the neighbour of each of them, seen from here, that leads to it.
    """
    near: dict[str, list[str]] = {}
    for a, b in tree:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    way: dict[str, str] = {}
    for first in sorted(near.get(broker, ())):
        open_ends = [first]
        way[first] = first
        while open_ends:
            name = open_ends.pop()
            for other in near[name]:
                if other != broker and other not in way:
                    way[other] = first
                    open_ends.append(other)
    return way


def _edges(links: Links) -> list[tuple[int, str, str]]:
    return [
        (max(cost, links[b][a]), a, b)
        for a in sorted(links)
        for b, cost in sorted(links[a].items())
        if a < b and a in links.get(b, {})
    ]
