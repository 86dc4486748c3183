"""Word lists of the sample domains, and values made of them.

Example:
    >>> draw = Draw(3)
    >>> amount(draw).count("."), iban(draw)[:2] in COUNTRIES, len(day(draw))
    (1, True, 10)

All names are made up or common; none stands for a real person, bank or firm.
"""

from __future__ import annotations

from collections.abc import Callable

from pathcast.workload.values import Draw


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COUNTRIES = _listed(
    "DE FR GB US CH AT IT ES NL BE PL SE NO DK FI PT IE CZ GR HU RO JP CN IN BR MX CA AU ZA KE TR "
    "AE SG KR ID"
)
CURRENCIES = _listed("EUR USD GBP CHF JPY SEK NOK DKK PLN CZK CNY AUD CAD SGD ZAR BRL")
CITIES = _listed(
    "Amsterdam Athens Basel Bergen Berlin Bilbao Bologna Bordeaux Bremen Brno Bruges Budapest "
    "Cologne Copenhagen Cork Dresden Dublin Dundee Espoo Florence Geneva Genoa Ghent Graz Hamburg "
    "Helsinki Innsbruck Krakow Leeds Leipzig Lille Linz Lisbon Ljubljana London Lyon Madrid Malmo "
    "Marseille Milan Munich Nantes Naples Oslo Padua Paris Porto Prague Rome Rotterdam Salzburg "
    "Seville Sheffield Stockholm Stuttgart Tampere Toulouse Trieste Turin Utrecht Valencia Vienna "
    "Warsaw Zurich"
)
REGIONS = (
    "North Coast", "South Coast", "Lake District", "High Moor", "Upper Valley", "Lower Valley",
    "River Plain", "East Hills", "West Hills", "Granite Range", "Pine Forest", "Salt Marshes",
    "Island Chain", "Central Basin", "Northern Isles", "Amber Bay", "Chalk Downs", "Long Fjord",
    "Dry Steppe", "Old Harbour", "Green Belt", "Vineyard Slopes", "Iron Ridge", "Silver Sound",
)  # fmt: skip
GIVEN_NAMES = _listed(
    "Ada Alma Amir Ana Anton Bela Carla Cem Clara Dana Dario Edda Elif Emil Enzo Eva Felix Finn "
    "Greta Hana Hugo Ida Ines Ivan Jana Jonas Karim Lara Leo Lena Luca Maja Marek Mila Nadia Nils "
    "Noor Olga Oskar Pia Rafael Rosa Samir Selma Sofia Tariq Theo Vera Yara Zoe"
)
FAMILY_NAMES = _listed(
    "Almeida Andersson Bakker Becker Bianchi Borg Castel Danko Dumont Eriksen Farkas Fischer Gallo "
    "Haas Hansen Holm Ivanov Jensen Kaya Keller Kowal Lang Larsen Lind Marin Martens Meyer Moreau "
    "Novak Olsen Ortega Petrov Quinn Rinaldi Rossi Santos Sato Schmid Silva Sorel Stone Takacs "
    "Tanaka Urban Vidal Vogel Weber Wolf Yilmaz Zeman"
)
FIRM_WORDS = _listed(
    "Alder Anchor Arc Beacon Birch Bridge Cedar Cobalt Compass Crown Delta Ember Falcon Field "
    "Flint Harbour Helix Heron Horizon Ivory Juniper Lantern Linden Maple Meridian Mill Nordic "
    "Oak Orion Pillar Quarry Raven Ridge Sable Signal Spruce Sterling Summit Tidal Vale"
)
FIRM_KINDS = ("Energy", "Foods", "Freight", "Labs", "Motors", "Partners", "Steel", "Systems",
              "Textiles", "Trading", "Works", "Media", "Pharma", "Chemicals", "Marine")  # fmt: skip
BANK_KINDS = ("Bank", "Savings", "Trust", "Mutual", "Credit Union")
SECTORS = ("agriculture", "aviation", "banking", "chemicals", "construction", "education",
           "energy", "fishing", "health", "hospitality", "insurance", "logistics", "media",
           "mining", "retail", "software", "steel", "telecoms", "tourism", "water")  # fmt: skip
TOPICS = (
    "elections", "central banks", "inflation", "labour market", "trade policy", "energy prices",
    "climate", "floods", "wildfire", "public health", "vaccines", "football", "tennis", "cycling",
    "film", "music", "books", "museums", "space", "computing", "privacy", "courts", "migration",
    "defence", "diplomacy", "railways", "aviation", "shipping", "farming", "fisheries", "housing",
    "pensions", "schools", "universities", "chess", "food", "travel", "mergers", "bonds", "gold",
)  # fmt: skip
DESKS = ("politics", "economy", "markets", "world", "science", "culture", "sport", "weather",
         "justice", "technology")  # fmt: skip
SUBJECTS = ("The council", "The ministry", "A court", "The central bank", "The operator",
            "The union", "A committee", "The team", "The museum", "The regulator", "The senate",
            "A village", "An investor", "A school", "The port", "A jury")  # fmt: skip
VERBS = ("approves", "rejects", "delays", "welcomes", "questions", "reviews", "opens", "closes",
         "expands", "cuts", "defends", "announces", "suspends", "renews")  # fmt: skip
OBJECTS = ("a new budget", "the ferry line", "higher tariffs", "the rescue plan", "a wage deal",
           "the harbour tunnel", "stricter rules", "a record harvest", "the night trains",
           "an early vote", "the merger", "a heat plan", "the old theatre", "its forecast",
           "the water price", "a research reactor")  # fmt: skip
DANGERS = (
    "heavy rain", "thunderstorm", "storm surge", "gale", "tornado", "snowfall", "black ice",
    "avalanche", "dense fog", "heat", "frost", "river flood", "flash flood", "dam seepage",
    "forest fire", "smoke", "earthquake", "tsunami", "landslide", "ash cloud", "chemical leak",
    "poor air", "water contamination", "rail disruption", "power cut",
)  # fmt: skip
ADVICE = ("stay indoors", "leave low ground", "close the windows", "boil drinking water",
          "keep off bridges", "work from home", "secure loose objects", "check on neighbours",
          "use public transport", "follow the wardens", "keep roads free",
          "moor the boats")  # fmt: skip
QUANTITIES = ("wind speed", "gust", "rainfall", "water level", "wave height", "snow depth",
              "temperature", "magnitude", "fine dust", "visibility")  # fmt: skip
UNITS = ("km/h", "mm", "cm", "m", "C", "ug/m3")
PURPOSES = _listed("RENT SALA TAXS SUPP INSU DIVI LOAN DONA TRAV ENRG MEDI EDUC GIFT PENS")
REASONS = _listed("R01 R02 R03 R07 R11 R12 R20 R31 R44 R50")
PRODUCTS = ("steel coil", "olive oil", "server rack", "cotton yarn", "paper rolls", "ball bearings",
            "wheat", "coffee", "solar panels", "pumps", "timber", "glass", "copper wire",
            "software licence", "freight", "legal advice")  # fmt: skip
STREETS = ("Mill Lane", "Station Road", "Harbour Street", "Market Square", "Garden Row",
           "School Hill", "Bridge Street", "Park Avenue", "Canal Side", "Old Town")  # fmt: skip
ROUTES = tuple(f"{kind}{number}" for kind in "ABEM" for number in range(1, 26))
PLAIN_WORDS = ("alpha", "bravo", "cedar", "delta", "ember", "field", "grove", "harbour", "inlet",
               "juniper", "kernel", "lagoon", "meadow", "north", "orchard", "prairie")  # fmt: skip

BANKS = tuple(
    f"{word} {BANK_KINDS[place % len(BANK_KINDS)]}" for place, word in enumerate(FIRM_WORDS)
)
BANK_CODES = tuple(
    f"{word[:4].upper():X<4}{COUNTRIES[place % 21]}2{chr(65 + place % 26)}"
    for place, word in enumerate(FIRM_WORDS)
)
FIRMS = tuple(
    f"{word} {FIRM_KINDS[(3 * place + step) % len(FIRM_KINDS)]}"
    for place, word in enumerate(FIRM_WORDS)
    for step in (0, 4)
)
TICKERS = tuple(f"{word[:3].upper()}{'XYZ'[place % 3]}" for place, word in enumerate(FIRM_WORDS))


def person(draw: Draw) -> str:
    """Given and family name."""
    return f"{draw.pick(GIVEN_NAMES)} {draw.pick(FAMILY_NAMES)}"


def payer_or_payee(draw: Draw) -> str:
    """A person or a firm."""
    return person(draw) if draw.is_lucky(0.4) else draw.pick(FIRMS)


def email(draw: Draw) -> str:
    """An address in a domain that is reserved for examples."""
    return f"{draw.pick(GIVEN_NAMES)}.{draw.pick(FAMILY_NAMES)}@example.org".lower()


def phone(draw: Draw) -> str:
    """A number."""
    return f"+{draw.whole(30, 99)} {draw.whole(100, 999)} {draw.whole(10000, 99999)}"


def day(draw: Draw) -> str:
    """A day of 2026, as ISO 8601 has it."""
    return f"2026-{draw.whole(1, 12):02d}-{draw.whole(1, 28):02d}"


def moment(draw: Draw) -> str:
    """A minute of 2026 in UTC, as ISO 8601 has it."""
    return f"{day(draw)}T{draw.whole(0, 23):02d}:{draw.whole(0, 59):02d}Z"


def amount(draw: Draw) -> str:
    """From 10.00 to a million; every power of ten is as likely."""
    return f"{draw.whole(100, 999) * 10 ** draw.whole(1, 5) / 100 + draw.whole(0, 99) / 100:.2f}"


def iban(draw: Draw) -> str:
    """Shaped like an IBAN; its check digits do not check."""
    digits = "".join(str(draw.whole(1000, 9999)) for _ in range(4))
    return f"{draw.pick(COUNTRIES)}{draw.whole(10, 98)}{digits}"


def reference(draw: Draw) -> str:
    """Letters and a number."""
    return f"{draw.pick(BANK_CODES)[:3]}-{draw.whole(100000, 999999)}"


def sentence(draw: Draw) -> str:
    """Subject, verb, object and place."""
    return f"{draw.pick(SUBJECTS)} {draw.pick(VERBS)} {draw.pick(OBJECTS)} in {draw.pick(CITIES)}"


def paragraph(draw: Draw) -> str:
    """One to three sentences."""
    return ". ".join(sentence(draw) for _ in range(draw.whole(1, 3))) + "."


def share(draw: Draw) -> str:
    """From 0.00 to 0.99."""
    return f"0.{draw.whole(0, 99):02d}"


def whole(low: int, high: int) -> Callable[[Draw], str]:
    """Whole numbers from `low` to `high`."""
    return lambda draw: str(draw.whole(low, high))


def decimal(low: int, high: int, places: int = 2) -> Callable[[Draw], str]:
    """Decimal numbers from `low` to `high`."""

    def make(draw: Draw) -> str:
        scale = 10**places
        return f"{draw.whole(low * scale, high * scale) / scale:.{places}f}"

    return make


def falling(choices: tuple[str, ...]) -> Callable[[Draw], str]:
    """The first ones are more likely than the last ones, as 1/rank or so."""
    size = len(choices)

    def make(draw: Draw) -> str:
        return choices[int(size * draw.random() * draw.random())]

    return make
