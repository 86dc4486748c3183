"""Standing queries of subscribers to the sample domains, as they might really be written.

Example:
    >>> rows = list(generate_subscriptions(SubscriptionParameters(queries=3, subscribers=2)))
    >>> [row.query_id for row in rows]
    ['q000001', 'q000002', 'q000003']

Every row is a standing query of its own, so query ids are unique; popular queries occur with equal
texts under several ids. The texts come from templates and stay within the evaluated language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from types import MappingProxyType
from typing import NamedTuple

from pathcast.errors import ConfigError
from pathcast.workload import words
from pathcast.workload.values import Draw, Values


class Subscription(NamedTuple):
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


def generate_subscriptions(parameters: SubscriptionParameters) -> Iterator[Subscription]:
    """The rows, by ascending query id.

    Cost: About 10 µs a row; the pool of texts stays in memory.
    """
    draw = Draw(f"subscriptions/{parameters.seed}")
    share = max(1, round(parameters.queries * parameters.distinct_share / len(parameters.domains)))
    pools = [_pool(name, share, draw) for name in parameters.domains]
    text_rank = _zipf(parameters.skew, max(len(pool) for pool in pools))
    subscriber_rank = _zipf(parameters.skew, parameters.subscribers)
    digits = max(4, len(str(parameters.subscribers)))
    for number in range(1, parameters.queries + 1):
        rank = subscriber_rank(draw.random())
        # A subscriber has a favourite domain, and now and then looks into another.
        favourite = rank if draw.is_lucky(0.8) else int(draw.random() * len(pools))
        pool = pools[favourite % len(pools)]
        text = pool[text_rank(draw.random()) % len(pool)]
        yield Subscription(f"s{rank + 1:0{digits}d}", f"q{number:06d}", text)


def _pool(domain: str, count: int, draw: Draw) -> list[str]:
    """Distinct texts; fewer than `count` if the templates do not give so many."""
    templates = TEMPLATES[domain]
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


def _numbers(low: int, high: int, step: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(low, high + 1, step))


SLOTS: Mapping[str, Values] = MappingProxyType(
    {
        "bank": words.falling(words.BANK_CODES),
        "batch_priority": ("urgent", "instant", "normal"),
        "birth": _numbers(1945, 2000, 5),
        "charge": _numbers(100, 5000, 100),
        "city": words.CITIES,
        "closure": ("road", "rail", "air", "ferry", "border"),
        "code": _numbers(10000, 10400, 1),
        "confidence": ("0.6", "0.7", "0.8", "0.9", "0.95"),
        "country": words.falling(words.COUNTRIES),
        "currency": words.falling(words.CURRENCIES),
        "danger": words.DANGERS,
        "day": words.day,
        "desk": words.DESKS,
        "firm": words.FIRMS,
        "form": ("limited", "public", "partnership", "charity", "state"),
        "genre": ("report", "analysis", "interview", "comment", "brief", "obituary"),
        "group": ("weather", "flood", "fire", "quake", "health", "transport", "sea"),
        "issuer": ("weather", "civil-protection", "geology", "health", "police", "coastguard"),
        "large": _numbers(50_000, 950_000, 10_000),
        "latitude": _numbers(40, 66, 1),
        "level": ("3", "4", "5"),
        "likelihood": ("observed", "likely", "possible"),
        "list": ("sanctions", "fraud", "limits", "embargo"),
        "name": words.person,
        "office": ("mayor", "minister", "governor", "chair", "judge", "coach", "envoy"),
        "outcome": ("review", "hit"),
        "population": _numbers(300_000, 890_000, 10_000),
        "position": ("1", "2", "3"),
        "price": _numbers(500, 890, 10),
        "product": words.PRODUCTS,
        "purpose": words.falling(words.PURPOSES),
        "quantity": words.QUANTITIES,
        "reading": _numbers(100, 195, 5),
        "reason": words.REASONS,
        "region": words.REGIONS,
        "relevance": _numbers(50, 95, 5),
        "route": words.ROUTES,
        "scale": ("high", "critical"),
        "scheme": ("credit", "debit", "card", "cash"),
        "score": _numbers(70, 98, 2),
        "sector": words.SECTORS,
        "severity": ("severe", "extreme", "moderate"),
        "small": _numbers(20, 200, 10),
        "status": ("booked", "rejected", "returned", "held"),
        "story_status": ("corrected", "withdrawn", "draft"),
        "ticker": words.TICKERS,
        "topic": words.TOPICS,
        "unit": words.UNITS,
        "urgency": ("1", "2", "3"),
    }
)
"""Name of a slot in a template -> what fills it."""

TEMPLATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "news": (
            "/story/topic[. = '{topic}']",
            "/story[@genre='{genre}']/topic[text() = '{topic}']",
            "/story[admin/desk = '{desk}' and admin/urgency <= {urgency}]/headline",
            "/story[@status='{story_status}'][topic = '{topic}']",
            "/story[topic = '{topic}' and dateline/place/city = '{city}']",
            "//mention[@confidence > {confidence}]/company[trade-name = '{firm}']",
            "//mention[@confidence > {confidence}]//ticker[text() = '{ticker}']",
            "//security/quotation[@currency='{currency}' and . > {price}]",
            "//company[sector = '{sector}']/country[@code='{country}']",
            "/story[dateline//country/@code = '{country}']/topic[@relevance >= {relevance}]",
            "//person[office = '{office}']/name",
            "/story/byline/author[name = '{name}']",
            "/story/*/keyword[. = '{topic}']",
            "//section//money[@currency='{currency}'][. > {large}]",
            "//section[@kind='background']//grid//cell[@head='yes']/percent",
            "/story[admin/urgency = {urgency}]//attribution/person[office = '{office}']",
            "//factbox//list/item[{position}]",
            "/story[usage/territory = '{country}']/media[@medium='video']",
            "/story/mention/occasion[venue = '{city}']",
            "//quote[attribution/company/sector = '{sector}']",
        ),
        "payments": (
            "//payment[amount > {large} and @currency='{currency}']/payee//country",
            "//payment[@status='{status}'][amount > {large}]",
            "//payment[@reason='{reason}']/payer/party[@rating='high']",
            "/remittance/batch[@scheme='{scheme}']/payment[purpose/@code = '{purpose}']/amount",
            "/remittance/envelope[sender//bank-code = '{bank}']",
            "/remittance[envelope/recipient/institution/bank-code = '{bank}']//payment[@currency='"
            "{currency}']",
            "//payee[agent/institution/country = '{country}']//company[@form='{form}']",
            "//check[@against='{list}' and @outcome='{outcome}']/score[. >= {score}]",
            "//payment[screening/check[@outcome='{outcome}']][payer//country = '{country}']",
            "//party[name = '{firm}']",
            "//payer/party[name = '{name}']/address/city",
            "//invoice/line[product = '{product}'][price > {price}]",
            "//payment[charge[@bearer='payee']/amount > {charge}]/exchange[@to='{currency}']",
            "//exchange[@from='{currency}' and @to='{currency}']/rate",
            "//batch[@priority='{batch_priority}']/payment[{position}][@currency='{currency}']",
            "//payment[value-date = '{day}']",
            "//intermediary/institution[bank-code='{bank}']/branch[city = '{city}']",
            "//company[sector = '{sector}']/registration",
            "/remittance/*/payment[payee/party/individual/born < {birth}]/amount[. < {small}]",
            "//standing-order[@every='year']/first[text() = '{day}']",
        ),
        "alerts": (
            "/warning/hazard[danger = '{danger}' and @severity='{severity}']",
            "//hazard[@level >= {level}]//zone[@country='{country}']/name",
            "//hazard[@group='{group}'][@likelihood='{likelihood}']/zone[@country='{country}']",
            "//zone[code = {code}]",
            "//zone[name = '{region}']//shelter[@open='yes']/places",
            "/warning[header/issuer[@role='{issuer}']/country = '{country}']",
            "//measurement[quantity = '{quantity}']/value[@unit='{unit}'][. > {reading}]",
            "//measurement[value[@trend='rising'] > {reading}]/station",
            "//impact[@scale='{scale}']/sector[text() = '{sector}']",
            "//closure[@mode='{closure}']/route[. = '{route}']",
            "//zone/polygon/point[@lat > {latitude} and @lat < 67 and @lon < 0]",
            "/warning[@kind='real'][@phase='cancel']/hazard[danger = '{danger}']",
            "//hazard[danger = '{danger}'][.//population > {population}]/advice",
            "//advice[@for='schools'][. = 'stay indoors']",
            "//hazard[outlook/period/@level = {level}]/zone//zone[name = '{region}']",
            "/warning/hazard[{position}]/zone[@country='{country}'][name = '{region}']",
            "//zone//zone[@type='city' and population >= {population}]",
            "//hazard[trigger = '{danger}']//corridor",
            "/warning/hazard[@severity='extreme'][zone/@country = '{country}']",
            "/warning[attachment/@media = 'map']/hazard[danger = '{danger}']//circle/radius",
        ),
    }
)
"""Domain -> templates of standing queries; slots in braces."""
