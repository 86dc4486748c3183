"""A ring drawn: peers where they stand on the circle, what they hold and what they did; SVG.

Example:
    >>> drawing = ring_map({"a": None, "b": None})
    >>> drawing.count("<circle")
    3
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final
from xml.sax.saxutils import escape

SIZE: Final = 760
RADIUS: Final = 260
PEER: Final = (7.0, 26.0)
"""Radius of a peer that holds nothing, and of the one that holds most."""

_STYLE: Final = (
    "text{font:12px sans-serif;text-anchor:middle}.small{font-size:10px;fill:#555}"
    ".way{fill:none;stroke:#bbb;stroke-width:2}.peer{stroke:#2b5c8a;stroke-width:2}"
    ".down{fill:#eee;stroke:#b33;stroke-width:2}"
)


def rings_of(statuses: Mapping[str, Mapping[str, Any] | None]) -> list[list[str]]:
    """Members by the ring that they are on: the nearest successors that run lead round it.

    Args:
        statuses: Peer -> what it says of itself; None where none runs.

    Returns:
        Each ring, the largest first, its members sorted; a ring that works is the only one.

    Example:
        >>> def status(name, *successors):
        ...     return {"node": {"members": {name: {"successors": list(successors)}}}}
        >>> rings_of({"a": status("a", "b"), "b": status("b", "x", "a"), "c": status("c", "a")})
        [['a', 'b', 'c']]
        >>> rings_of({"a": status("a", "b"), "b": status("b", "a"), "c": status("c", "c")})
        [['a', 'b'], ['c']]
    """
    running = [status["node"]["members"] for status in statuses.values() if status is not None]
    members = {name: its["successors"] for each in running for name, its in each.items()}
    after = {
        name: next((each for each in successors if each in members), name)
        for name, successors in members.items()
        if successors
    }
    rings: dict[str, list[str]] = {}
    for name in sorted(after):
        at = name
        # After as many steps as there are members it is on a ring.
        for _ in after:
            at = after.get(at, at)
        way = [at]
        while (at := after.get(at, at)) != way[0]:
            way.append(at)
        rings.setdefault(min(way), []).append(name)
    return sorted(rings.values(), key=lambda ring: (-len(ring), ring))


def ring_map(statuses: Mapping[str, Mapping[str, Any] | None]) -> str:
    """The drawing: a larger circle holds more queries and links, a darker one did more visits.

    Args:
        statuses: Peer -> what it says of itself; None where none runs, drawn in the middle. Of a
            process of several members each is drawn.
    """
    running = [status["node"] for status in statuses.values() if status is not None]
    nodes = {name: its for node in running for name, its in node["members"].items()}
    most_held = max([_held(node) for node in nodes.values()], default=0) or 1
    most_done = max([node["visits"] for node in nodes.values()], default=0) or 1
    middle = SIZE // 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" '
        f'height="{SIZE}"><style>{_STYLE}</style>',
        f'<circle class="way" cx="{middle}" cy="{middle}" r="{RADIUS}"/>',
    ]
    down = sorted(name for name, status in statuses.items() if status is None)
    for number, name in enumerate(down):
        y = middle + 40 * (number - (len(down) - 1) / 2)
        parts.append(f'<circle class="down" cx="{middle}" cy="{y:.0f}" r="{PEER[0]:.0f}"/>')
        parts.append(f'<text x="{middle}" y="{y + 22:.0f}">{escape(name)} is down</text>')
    for name, node in sorted(nodes.items()):
        turn = 2 * math.pi * node["place"] - math.pi / 2
        x, y = middle + RADIUS * math.cos(turn), middle + RADIUS * math.sin(turn)
        radius = PEER[0] + (PEER[1] - PEER[0]) * math.sqrt(_held(node) / most_held)
        shade = 92 - 52 * node["visits"] / most_done
        parts.append(
            f'<circle class="peer" cx="{x:.0f}" cy="{y:.0f}" r="{radius:.1f}" '
            f'fill="hsl(210 60% {shade:.0f}%)"/>'
        )
        x, y = middle + (RADIUS + 64) * math.cos(turn), middle + (RADIUS + 64) * math.sin(turn)
        parts.append(f'<text x="{x:.0f}" y="{y:.0f}">{escape(name)}</text>')
        parts.append(
            f'<text class="small" x="{x:.0f}" y="{y + 13:.0f}">{node["pieces"]:,} pieces, '
            f"{node['visits']:,} visits</text>"
        )
    parts.append("</svg>\n")
    return "\n".join(parts)


def _held(node: Mapping[str, Any]) -> int:
    """Queries and links in the pieces of a member."""
    held: int = node["queries"] + node["links"]
    return held
