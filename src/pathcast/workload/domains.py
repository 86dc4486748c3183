"""The sample domains: their DTDs, plausible values and what their messages look like.

Example:
    >>> sorted(DOMAINS)
    ['alerts', 'news', 'payments']
    >>> domain = DOMAINS["payments"]
    >>> from pathcast.workload.documents import generate_documents
    >>> message = next(generate_documents(domain.graph(), domain.documents(count=1)))
    >>> b"<payment " in message
    True

The DTDs lie in the package. Values of one message do not depend on each other: a city need not lie
in the country beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from pathcast.errors import ConfigError
from pathcast.schema import ElementGraph, parse_dtd
from pathcast.workload import words
from pathcast.workload.parameters import DocumentParameters
from pathcast.workload.values import PlausibleValues, Values


@dataclass(frozen=True)
class Domain:
    """A domain that the project ships.

    Attributes:
        name: Also the name of its DTD and the beginning of its messages' ids.
        root: Root element.
        table: Values, for `PlausibleValues`.
        depth_max: Levels of its messages.
        repeats_max: Repetitions in its messages.
    """

    name: str
    root: str
    table: Mapping[str, Values]
    depth_max: int
    repeats_max: int

    def dtd(self) -> str:
        """The text of its DTD."""
        return files("pathcast.workload").joinpath(f"dtd/{self.name}.dtd").read_text("utf-8")

    def graph(self) -> ElementGraph:
        """The element graph of its DTD; needs lxml."""
        return parse_dtd(self.dtd(), name=f"{self.name}.dtd")

    def values(self) -> PlausibleValues:
        """Its values."""
        return PlausibleValues(self.table, words.PLAIN_WORDS)

    def documents(self, count: int, seed: int = 0, broken_ratio: float = 0.0) -> DocumentParameters:
        """Parameters for messages of this domain."""
        return DocumentParameters(
            count=count,
            seed=seed,
            depth_max=self.depth_max,
            repeats_max=self.repeats_max,
            values="plausible",
            broken_ratio=broken_ratio,
            root=self.root,
        )


_NEWS: dict[str, Values] = {
    "story/@version": words.whole(1, 9),
    "slug": tuple(topic.replace(" ", "-") for topic in words.TOPICS),
    "desk": words.falling(words.DESKS),
    "@bureau": words.CITIES,
    "edition": ("morning", "noon", "evening", "weekend"),
    "urgency": words.whole(1, 8),
    "until": words.moment,
    "keyword": words.TOPICS,
    "headline": words.sentence,
    "subheadline": words.sentence,
    "name": words.person,
    "role": ("correspondent", "editor", "reporter", "columnist", "photographer"),
    "email": words.email,
    "filed": words.moment,
    "city": words.CITIES,
    "region": words.REGIONS,
    "country": words.COUNTRIES,
    "country/@code": words.falling(words.COUNTRIES),
    "topic": words.TOPICS,
    "topic/@code": tuple(f"t{number:02d}" for number in range(1, len(words.TOPICS) + 1)),
    "@relevance": words.whole(1, 100),
    "@confidence": words.share,
    "office": ("mayor", "minister", "governor", "chair", "judge", "coach", "envoy", "director"),
    "trade-name": words.FIRMS,
    "sector": words.SECTORS,
    "title": words.sentence,
    "begins": words.day,
    "venue": words.CITIES,
    "ticker": words.TICKERS,
    "quotation": words.decimal(1, 900),
    "@currency": words.falling(words.CURRENCIES),
    "@change": words.decimal(-9, 9),
    "heading": words.sentence,
    "para": words.paragraph,
    "emphasis": words.OBJECTS,
    "link": words.CITIES,
    "@target": tuple(f"https://example.org/{desk}" for desk in words.DESKS),
    "figures": words.whole(1, 9999),
    "money": words.amount,
    "percent": words.decimal(0, 100, 1),
    "quoted": words.OBJECTS,
    "item": words.sentence,
    "@width": ("320", "640", "1280", "1920"),
    "caption": words.sentence,
    "credit": words.person,
    "cell": words.whole(1, 999),
    "@bytes": words.whole(1000, 9999999),
    "@href": tuple(f"https://media.example.org/{word.lower()}" for word in words.FIRM_WORDS),
    "related/@story": words.whole(10000, 99999),
    "holder": words.FIRMS,
    "territory": words.COUNTRIES,
    "expiry": words.day,
    "change": ("typo", "headline", "figures", "names", "withdrawn quote", "new lead"),
    "@at": words.moment,
    "@by": words.person,
}

_PAYMENTS: dict[str, Values] = {
    "remittance/@release": ("3", "4", "5"),
    "reference": words.reference,
    "created": words.moment,
    "channel": ("branch", "web", "app", "file", "terminal"),
    "remark": words.PRODUCTS,
    "bank-name": words.falling(words.BANKS),
    "bank-code": words.falling(words.BANK_CODES),
    "country": words.falling(words.COUNTRIES),
    "city": words.CITIES,
    "sort-code": words.whole(100000, 999999),
    "booking-date": words.day,
    "payment/@currency": words.falling(words.CURRENCIES),
    "@currency": words.falling(words.CURRENCIES),
    "@reason": words.REASONS,
    "amount": words.amount,
    "value-date": words.day,
    "purpose": words.PRODUCTS,
    "purpose/@code": words.falling(words.PURPOSES),
    "@hop": words.whole(1, 4),
    "name": words.payer_or_payee,
    "born": words.whole(1940, 2006),
    "nationality": words.COUNTRIES,
    "registration": words.whole(1000000, 9999999),
    "sector": words.SECTORS,
    "street": words.STREETS,
    "postcode": words.whole(10000, 99999),
    "email": words.email,
    "phone": words.phone,
    "number": words.iban,
    "holder": words.payer_or_payee,
    "rate": words.decimal(0, 2, 4),
    "contract": words.reference,
    "exchange/@from": words.CURRENCIES,
    "exchange/@to": words.CURRENCIES,
    "issued": words.day,
    "due": words.day,
    "product": words.PRODUCTS,
    "@sku": words.whole(1000, 9999),
    "quantity": words.whole(1, 500),
    "price": words.decimal(1, 900),
    "authority": tuple(f"{city} revenue" for city in words.CITIES),
    "first": words.day,
    "last": words.day,
    "score": words.whole(0, 100),
    "analyst": words.person,
    "message": words.PRODUCTS,
    "count": words.whole(1, 99),
    "sum": words.amount,
    "seal": words.reference,
}

_ALERTS: dict[str, Values] = {
    "number": words.reference,
    "name": words.REGIONS,
    "office": words.CITIES,
    "country": words.falling(words.COUNTRIES),
    "hotline": words.phone,
    "issued": words.moment,
    "ends": words.moment,
    "audience": ("public", "authorities", "operators", "schools", "shipping"),
    "replaces": words.reference,
    "danger": words.DANGERS,
    "trigger": words.DANGERS,
    "onset": words.moment,
    "until": words.moment,
    "summary": words.paragraph,
    "hazard/@level": words.falling(("1", "2", "3", "4", "5")),
    "hazard/@severity": words.falling(("minor", "moderate", "severe", "extreme")),
    "advice": words.ADVICE,
    "do": words.ADVICE,
    "avoid": ("cellars", "forests", "beaches", "bridges", "mountain roads", "open water"),
    "quantity": words.QUANTITIES,
    "value": words.decimal(0, 200, 1),
    "@unit": words.UNITS,
    "station/@code": tuple(f"S{number}" for number in range(100, 180)),
    "operator": words.FIRMS,
    "taken": words.moment,
    "sector": words.SECTORS,
    "extent": ("local", "regional", "national"),
    "zone/@country": words.falling(words.COUNTRIES),
    "code": words.whole(10000, 10400),
    "@lat": words.decimal(35, 70, 3),
    "@lon": words.decimal(-10, 30, 3),
    "radius": words.whole(1, 80),
    "population": words.whole(100, 900000),
    "from": words.whole(0, 500),
    "to": words.whole(500, 3000),
    "street": words.STREETS,
    "places": words.whole(10, 2000),
    "tendency": ("rising", "steady", "easing", "uncertain"),
    "route": words.ROUTES,
    "reopens": words.moment,
    "reference": words.OBJECTS,
    "reference/@number": words.reference,
    "title": words.sentence,
    "@href": tuple(f"https://alerts.example.org/{word.lower()}" for word in words.FIRM_WORDS),
    "@bytes": words.whole(1000, 9999999),
    "checksum": words.whole(10**8, 10**9 - 1),
}

DOMAINS: Mapping[str, Domain] = MappingProxyType(
    {
        domain.name: domain
        for domain in (
            Domain("news", "story", _NEWS, depth_max=5, repeats_max=3),
            Domain("payments", "remittance", _PAYMENTS, depth_max=8, repeats_max=2),
            Domain("alerts", "warning", _ALERTS, depth_max=5, repeats_max=2),
        )
    }
)
"""Name -> domain."""


def domain_named(name: str) -> Domain:
    """The domain with this name.

    Raises:
        ConfigError: There is none.
    """
    if name not in DOMAINS:
        raise ConfigError(
            "config.invalid", key="domain", reason=f"{name!r} is none of {', '.join(DOMAINS)}"
        )
    return DOMAINS[name]


def domain_graph(name: str) -> ElementGraph:
    """The element graph of the domain with this name; needs lxml.

    Raises:
        ConfigError: There is no such domain.
        MissingDependencyError: lxml is not installed.
    """
    return domain_named(name).graph()


def plausible_values(graph: ElementGraph) -> PlausibleValues:
    """The values of the domain that the DTD belongs to; for other DTDs what follows from them."""
    for domain in DOMAINS.values():
        if graph.root_candidates[:1] == (domain.root,):
            return domain.values()
    return PlausibleValues({}, words.PLAIN_WORDS)
