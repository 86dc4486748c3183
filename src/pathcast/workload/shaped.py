"""FLWR subscriptions to the sample domains, drawn from templates.

Example:
    >>> rows = list(generate_shaped(ShapedParameters(queries=3, subscribers=2)))
    >>> [row.query_id for row in rows]
    ['f000001', 'f000002', 'f000003']
    >>> rows[0].query.startswith("<")
    True

Half of them have the paper's form with one condition, a quarter has several conditions, a quarter
goes beyond it (`pathcast.workload.shaped_templates`). As many as asked for compare dates, lists and
text (`pathcast.workload.typed_templates`). Popular texts occur under several ids. Plain
XPath subscriptions are `pathcast.workload.subscriptions`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from pathcast.errors import ConfigError
from pathcast.workload.parameters import check_share, check_whole
from pathcast.workload.shaped_templates import SHAPED_KINDS, SHAPED_SHARES, SHAPED_TEMPLATES
from pathcast.workload.subscriptions import GeneratedSubscription
from pathcast.workload.templates import SLOTS
from pathcast.workload.typed_templates import TYPED_TEMPLATES
from pathcast.workload.values import Draw

_SLOT: Final = re.compile(r"\[\[(\w+)\]\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedParameters:
    """How the subscriptions are generated.

    Attributes:
        queries: Rows, 0 to 10,000,000.
        subscribers: Subscribers, 1 to 10,000,000.
        seed: Any whole number; the same seed gives the same rows everywhere.
        domains: Which domains, in equal shares.
        typed: Share of rows that compare dates, lists and text, 0 to 1.
    """

    queries: int = 10_000
    subscribers: int = 1_000
    seed: int = 0
    domains: tuple[str, ...] = ("alerts", "news", "payments")
    typed: float = 0.0

    def __post_init__(self) -> None:
        check_whole(self, "queries", 0, 10_000_000)
        check_whole(self, "subscribers", 1, 10_000_000)
        check_whole(self, "seed", None, None)
        check_share(self, "typed")
        if not self.domains or not set(self.domains) <= SHAPED_TEMPLATES.keys():
            raise ConfigError(
                "config.invalid",
                key="domains",
                reason=f"{self.domains!r} are not all among {', '.join(SHAPED_TEMPLATES)}",
            )


def generate_shaped(parameters: ShapedParameters) -> Iterator[GeneratedSubscription]:
    """The rows, by ascending query id.

    Cost: About 10 µs a row.
    """
    draw = Draw(f"shaped/{parameters.seed}")
    bounds = list(accumulate(SHAPED_SHARES[kind] for kind in SHAPED_KINDS))
    digits = max(4, len(str(parameters.subscribers)))
    for number in range(1, parameters.queries + 1):
        domain = draw.pick(parameters.domains)
        kind = SHAPED_KINDS[min(bisect_right(bounds, draw.random()), len(bounds) - 1)]
        is_typed = parameters.typed > 0 and draw.random() < parameters.typed
        templates = TYPED_TEMPLATES[domain] if is_typed else SHAPED_TEMPLATES[domain][kind]
        text = filled(draw.pick(templates), draw)
        subscriber = draw.whole(1, parameters.subscribers)
        yield GeneratedSubscription(f"s{subscriber:0{digits}d}", f"f{number:06d}", text)


def filled(template: str, draw: Draw) -> str:
    """A template of `shaped_templates` with its slots filled."""

    def fill(match: re.Match[str]) -> str:
        values = SLOTS[match[1]]
        return draw.pick(values) if isinstance(values, tuple) else values(draw)

    return _SLOT.sub(fill, template)
