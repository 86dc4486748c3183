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
    ".link{paint-order:stroke;stroke:#fff;stroke-width:4}"
)
_LEGEND: Final = (
    "through: the tree; dashed: other links; grey: does not run. Numbers at links: what was sent "
    "both ways over the connections of now"
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
            f'<text class="small link" x="{(x1 + x2) // 2}" y="{(y1 + y2) // 2}">'
            f"{_bytes(sent)}</text>"
        )
    for name in names:
        x, y = place[name]
        status = statuses[name]
        kind = ' class="down"' if status is None else ""
        parts.append(f'<circle{kind} cx="{x}" cy="{y}" r="44"/>')
        parts.append(f'<text x="{x}" y="{y - 8}">{escape(name)}</text>')
        for number, line in enumerate(_told(status)):
            parts.append(f'<text class="small" x="{x}" y="{y + 7 + 13 * number}">{line}</text>')
    parts.append(f'<text class="small" x="{SIZE // 2}" y="{SIZE - 12}">{_LEGEND}</text>')
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


def _told(status: Mapping[str, Any] | None) -> tuple[str, ...]:
    if status is None:
        return ("down",)
    node = status["node"]
    entries = sum(node["tables"].values())
    return (f"{node['subscriptions']:,} subscr.", f"{entries:,} entries")


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"
