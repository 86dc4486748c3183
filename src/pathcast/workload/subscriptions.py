"""Standing queries of subscribers to the sample domains, as they might really be written.

Example:
    >>> rows = list(generate_subscriptions(SubscriptionParameters(queries=3, subscribers=2)))
    >>> [row.query_id for row in rows]
    ['q000001', 'q000002', 'q000003']

Every row is a standing query of its own, so query ids are unique; popular queries occur with equal
texts under several ids. The texts come from templates of several kinds in fixed shares
(`pathcast.workload.templates`); one query in a hundred needs exact evaluation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from string import Formatter
from typing import NamedTuple

from pathcast.errors import ConfigError
from pathcast.workload.templates import KINDS, SHARES, SLOTS, TEMPLATES
from pathcast.workload.values import Draw


class GeneratedSubscription(NamedTuple):
    """A standing query of a subscriber.

    Attributes:
        subscriber: Its id.
        query_id: Unique.
        query: XPath.
    """

    subscriber: str
    query_id: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionParameters:
    """How subscriptions are generated.

    Attributes:
        queries: Rows, 0 to 10,000,000.
        subscribers: Subscribers, 1 to 10,000,000. With fewer queries than subscribers some have
            none.
        seed: Any whole number; the same seed gives the same rows everywhere.
        domains: Which domains, in equal shares.
        skew: Zipf exponent of the popularity of query texts and of the number of queries of a
            subscriber, 0 (uniform) to 10.
        distinct_share: Texts to choose from, as a share of `queries`, above 0 to 1.
    """

    queries: int = 10_000
    subscribers: int = 1_000
    seed: int = 0
    domains: tuple[str, ...] = ("alerts", "news", "payments")
    skew: float = 0.6
    distinct_share: float = 0.5

    def __post_init__(self) -> None:
        for key, value, low in (("queries", self.queries, 0), ("subscribers", self.subscribers, 1)):
            if not isinstance(value, int) or not low <= value <= 10_000_000:
                _refuse(key, f"{value!r} is not a whole number from {low} to 10000000")
        if not isinstance(self.seed, int):
            _refuse("seed", f"{self.seed!r} is not a whole number")
        if not self.domains or not set(self.domains) <= TEMPLATES.keys():
            _refuse("domains", f"{self.domains!r} are not all among {', '.join(TEMPLATES)}")
        if not 0 <= self.skew <= 10:
            _refuse("skew", f"{self.skew!r} is not a number from 0 to 10")
        if not 0 < self.distinct_share <= 1:
            _refuse("distinct_share", f"{self.distinct_share!r} is not above 0 and at most 1")


def _refuse(key: str, reason: str) -> None:
    raise ConfigError("config.invalid", key=key, reason=reason)


def generate_subscriptions(parameters: SubscriptionParameters) -> Iterator[GeneratedSubscription]:
    """The rows, by ascending query id.

    Cost: About 10 µs a row; the pool of texts stays in memory.
    """
    draw = Draw(f"subscriptions/{parameters.seed}")
    share = parameters.queries * parameters.distinct_share / len(parameters.domains)
    pools = [_Pools(name, share, parameters.skew, draw) for name in parameters.domains]
    subscriber_rank = _zipf(parameters.skew, parameters.subscribers)
    digits = max(4, len(str(parameters.subscribers)))
    for number in range(1, parameters.queries + 1):
        rank = subscriber_rank(draw.random())
        # A subscriber has a favourite domain, and now and then looks into another.
        favourite = rank if draw.is_lucky(0.8) else int(draw.random() * len(pools))
        text = pools[favourite % len(pools)].text(draw)
        yield GeneratedSubscription(f"s{rank + 1:0{digits}d}", f"q{number:06d}", text)


class _Pools:
    """The texts of a domain, a pool a kind; first in a pool means popular.

    Args:
        domain: Its name.
        count: Texts of all kinds together; fewer if the templates do not give so many.
        skew: Of the popularity of texts.
        draw: Random choices.
    """

    def __init__(self, domain: str, count: float, skew: float, draw: Draw) -> None:
        self._pools = [
            _pool(TEMPLATES[domain][kind], max(1, round(count * SHARES[kind])), draw)
            for kind in KINDS
        ]
        self._ranks = [_zipf(skew, len(pool)) for pool in self._pools]
        self._bounds = list(accumulate(SHARES[kind] for kind in KINDS))

    def text(self, draw: Draw) -> str:
        """A text of any kind."""
        at = min(bisect_right(self._bounds, draw.random()), len(self._pools) - 1)
        return self._pools[at][self._ranks[at](draw.random())]


def _pool(templates: tuple[str, ...], count: int, draw: Draw) -> list[str]:
    """Distinct texts; fewer than `count` if the templates do not give so many."""
    texts: dict[str, None] = {}
    attempts = 0
    while len(texts) < count and attempts < 20 * count:
        texts[_fill(draw.pick(templates), draw)] = None
        attempts += 1
    return list(texts)


def _fill(template: str, draw: Draw) -> str:
    out: list[str] = []
    for literal, slot, _, _ in Formatter().parse(template):
        out.append(literal)
        if slot is not None:
            values = SLOTS[slot]
            out.append(draw.pick(values) if isinstance(values, tuple) else values(draw))
    return "".join(out)


def _zipf(skew: float, size: int) -> Callable[[float], int]:
    """From a number in [0, 1) to a rank from 0 on, by the inverse of the continuous Zipf law."""

    def rank(lot: float) -> int:
        if skew == 1:
            drawn = float(size + 1) ** lot
        else:
            drawn = (1 + lot * ((size + 1) ** (1 - skew) - 1)) ** (1 / (1 - skew))
        return min(int(drawn) - 1, size - 1)

    return rank
