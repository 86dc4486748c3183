"""A network drawn: brokers, links, the tree, what tables hold and what went over links; SVG.

Example:
    >>> statuses = {"a": None, "b": None}
    >>> drawing = network_map(statuses, [("a", "b")])
    >>> drawing.count("<circle"), drawing.count("<line")
    (2, 1)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final
from xml.sax.saxutils import escape

SIZE: Final = 720
RADIUS: Final = 260
_STYLE: Final = (
    "text{font:13px sans-serif;text-anchor:middle}.small{font-size:11px;fill:#555}"
    "circle{fill:#dbe9f6;stroke:#2b5c8a;stroke-width:2}.down{fill:#eee;stroke:#b33}"
    "line{stroke:#bbb;stroke-width:2;stroke-dasharray:5 4}"
    ".tree{stroke:#2b5c8a;stroke-width:3;stroke-dasharray:none}"
)


def network_map(
    statuses: Mapping[str, Mapping[str, Any] | None], links: Sequence[tuple[str, str]]
) -> str:
    """The drawing.

    Args:
        statuses: Broker -> what it says of itself; None where none runs.
        links: Pairs that may be connected; those of the tree are drawn through.
    """
    names = sorted(statuses)
    place = {name: _place(number, len(names)) for number, name in enumerate(names)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" '
        f'height="{SIZE}"><style>{_STYLE}</style>'
    ]
    for one, other in links:
        (x1, y1), (x2, y2) = place[one], place[other]
        is_tree = other in _tree(statuses[one]) and one in _tree(statuses[other])
        kind = ' class="tree"' if is_tree else ""
        parts.append(f'<line{kind} x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')
        sent = _sent(statuses[one], other) + _sent(statuses[other], one)
        parts.append(
            f'<text class="small" x="{(x1 + x2) // 2}" y="{(y1 + y2) // 2}">'
            f"{sent / 1e6:.1f} MB</text>"
        )
    for name in names:
        x, y = place[name]
        status = statuses[name]
        kind = ' class="down"' if status is None else ""
        parts.append(f'<circle{kind} cx="{x}" cy="{y}" r="38"/>')
        parts.append(f'<text x="{x}" y="{y - 4}">{escape(name)}</text>')
        parts.append(f'<text class="small" x="{x}" y="{y + 12}">{_told(status)}</text>')
    parts.append("</svg>\n")
    return "\n".join(parts)


def _place(number: int, count: int) -> tuple[int, int]:
    turn = 2 * math.pi * number / count - math.pi / 2
    middle = SIZE / 2
    return round(middle + RADIUS * math.cos(turn)), round(middle + RADIUS * math.sin(turn))


def _tree(status: Mapping[str, Any] | None) -> set[str]:
    if status is None:
        return set()
    return {peer for peers in status["node"]["tree"].values() for peer in peers}


def _sent(status: Mapping[str, Any] | None, peer: str) -> int:
    traffic = None if status is None else status["neighbours"].get(peer)
    return 0 if traffic is None else int(traffic["bytes_sent"])


def _told(status: Mapping[str, Any] | None) -> str:
    if status is None:
        return "down"
    node = status["node"]
    return f"{node['subscriptions']:,} here, {sum(node['tables'].values()):,}"
