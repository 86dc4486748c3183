"""Query templates of the sample domains' subscribers, and the values that fill them.

Example:
    >>> sorted(TEMPLATES) == ["alerts", "news", "payments"]
    True
    >>> round(sum(SHARES.values()), 9), SHARES["exact"]
    (1.0, 0.01)

Kinds say what a query turns on: structure alone; a value that is equal, in a range, begins or
contains; a nested path with a value; alternatives with `or`; or what only exact evaluation decides.
Values come from the lists that messages are written from, some of few words and some of very many,
so that a few subscriptions match often and most hardly ever. Nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from pathcast.workload import words
from pathcast.workload.values import Draw, Values

Kind: TypeAlias = Literal[
    "structure", "equality", "range", "prefix", "substring", "nested", "either", "exact"
]
"""What a query turns on."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

SHARES: Mapping[Kind, float] = MappingProxyType(
    {
        "structure": 0.04,
        "equality": 0.36,
        "range": 0.20,
        "prefix": 0.10,
        "substring": 0.07,
        "nested": 0.17,
        "either": 0.05,
        "exact": 0.01,
    }
)
"""Kind -> its share of all subscriptions."""


def _numbers(low: int, high: int, step: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(low, high + 1, step))


def _begin(make: Values, least: int, most: int) -> Values:
    """The first so many characters of a value."""

    def begin(draw: Draw) -> str:
        value = draw.pick(make) if isinstance(make, tuple) else make(draw)
        return value[: draw.whole(least, most)].rstrip()

    return begin


def _threshold(draw: Draw) -> str:
    """An amount with two digits that count; large ones are asked for more often."""
    power = 10 ** draw.whole(2, 4)
    return str(draw.whole(10, 99) * power)


def _deed(draw: Draw) -> str:
    return f"{draw.pick(words.VERBS)} {draw.pick(words.OBJECTS)}"


def _scene(draw: Draw) -> str:
    return f"{draw.pick(words.OBJECTS)} in {draw.pick(words.CITIES)}"


def _event(draw: Draw) -> str:
    return f"{draw.pick(words.SUBJECTS)} {_deed(draw)}"


SLOTS: Mapping[str, Values] = MappingProxyType(
    {
        "account": words.iban,
        "account_begin": _begin(words.iban, 3, 7),
        "amount": _threshold,
        "bank": words.falling(words.BANK_CODES),
        "bank_begin": _begin(words.BANK_CODES, 2, 6),
        "batch_priority": ("urgent", "instant", "normal"),
        "birth": _numbers(1945, 2000, 5),
        "bytes": _numbers(1_000_000, 9_990_000, 10_000),
        "charge": _numbers(100, 5000, 100),
        "city": words.CITIES,
        "closure": ("road", "rail", "air", "ferry", "border"),
        "code": _numbers(10000, 10400, 1),
        "confidence": ("0.6", "0.7", "0.8", "0.9", "0.95"),
        "count": ("2", "3", "4", "5"),
        "country": words.falling(words.COUNTRIES),
        "currency": words.falling(words.CURRENCIES),
        "danger": words.DANGERS,
        "day": words.day,
        "deed": _deed,
        "desk": words.DESKS,
        "email": words.email,
        "event": _event,
        "firm": words.FIRMS,
        "firm_begin": words.FIRM_WORDS,
        "form": ("limited", "public", "partnership", "charity", "state"),
        "genre": ("report", "analysis", "interview", "comment", "brief", "obituary"),
        "given": words.GIVEN_NAMES,
        "group": ("weather", "flood", "fire", "quake", "health", "transport", "sea"),
        "issuer": ("weather", "civil-protection", "geology", "health", "police", "coastguard"),
        "large": _numbers(50_000, 950_000, 10_000),
        "latitude": _numbers(40, 66, 1),
        "level": ("3", "4", "5"),
        "likelihood": ("observed", "likely", "possible"),
        "list": ("sanctions", "fraud", "limits", "embargo"),
        "month": _begin(words.day, 7, 7),
        "name": words.person,
        "outcome": ("review", "hit"),
        "percent": _numbers(60, 99, 1),
        "phone_begin": _begin(words.phone, 3, 6),
        "population": _numbers(300_000, 890_000, 10_000),
        "position": ("1", "2", "3"),
        "postcode": words.whole(10000, 99999),
        "postcode_begin": _begin(words.whole(10000, 99999), 2, 4),
        "price": _numbers(500, 890, 10),
        "product": words.PRODUCTS,
        "purpose": words.falling(words.PURPOSES),
        "quantity": words.QUANTITIES,
        "reading": _numbers(100, 195, 5),
        "reason": words.REASONS,
        "reference": words.reference,
        "reference_begin": _begin(words.reference, 3, 7),
        "region": words.REGIONS,
        "registration": words.whole(1000000, 9999999),
        "registration_begin": _begin(words.whole(1000000, 9999999), 2, 4),
        "relevance": _numbers(50, 95, 5),
        "route": words.ROUTES,
        "scale": ("high", "critical"),
        "scene": _scene,
        "scheme": ("credit", "debit", "card", "cash"),
        "score": _numbers(70, 98, 2),
        "sector": words.SECTORS,
        "severity": ("severe", "extreme", "moderate"),
        "status": ("booked", "rejected", "returned", "held"),
        "story": words.whole(10000, 99999),
        "story_status": ("corrected", "withdrawn", "draft"),
        "street": words.STREETS,
        "ticker": words.TICKERS,
        "ticker_begin": _begin(words.TICKERS, 2, 3),
        "topic": words.TOPICS,
        "unit": words.UNITS,
        "urgency": ("1", "2", "3"),
    }
)
"""Name of a slot in a template -> what fills it."""

_NEWS: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "structure": (
            "/story/usage/expiry",
            "/story/admin/embargo/until",
            "/story//factbox/factbox",
            "//section//list/item/list",
            "//section/section//grid/caption",
            "/story/mention/security/quotation/@change",
            "//quote/attribution/company/country",
            "/story/byline/author/email",
        ),
        "equality": (
            "/story/topic[. = '{topic}']",
            "/story[@genre='{genre}']/topic[text() = '{topic}']",
            "/story[@status='{story_status}'][topic = '{topic}']",
            "/story/byline/author[name = '{name}']",
            "//mention/person[name = '{name}']",
            "//company[trade-name = '{firm}']",
            "//security[ticker = '{ticker}']",
            "//company[sector = '{sector}']/country[@code='{country}']",
            "/story/*/keyword[. = '{topic}']",
            "//author/email[. = '{email}']",
            "/story/related[@story='{story}']",
            "/story/usage[holder = '{firm}']",
            "/story/dateline/place[city = '{city}']",
            "//figure[credit = '{name}']",
            "/story/history/change[@by='{name}']",
        ),
        "range": (
            "//security/quotation[@currency='{currency}' and . > {price}]",
            "/story/topic[@relevance >= {relevance}][. = '{topic}']",
            "//section//money[@currency='{currency}'][. > {large}]",
            "//section[@kind='background']//grid//cell[@head='yes']/percent[. > {percent}]",
            "//mention[@confidence > {confidence}]/company[trade-name = '{firm}']",
            "//mention[@confidence > {confidence}]//ticker[text() = '{ticker}']",
            "/story/media[@medium='video'][@bytes > {bytes}]",
            "/story[admin/desk = '{desk}' and admin/urgency <= {urgency}]/topic[. = '{topic}']",
            "//quotation[@change > 8][@currency='{currency}']",
        ),
        "prefix": (
            "//ticker[starts-with(., '{ticker_begin}')]",
            "//trade-name[starts-with(., '{firm_begin} ')]",
            "/story/byline/author/name[starts-with(., '{given} ')]",
            "//occasion/begins[starts-with(., '{month}')]",
            "/story/usage/expiry[starts-with(., '{month}')]",
            "/story/dateline/filed[starts-with(., '{day}')]",
            "/story/history/change[starts-with(@at, '{day}')]",
        ),
        "substring": (
            "/story/headline[contains(., '{scene}')]",
            "/story/headline[contains(., '{deed}')]",
            "/story/lead/para[contains(., '{event}')]",
            "//section/para[contains(., '{scene}')]",
            "//quote/para[contains(., '{event}')]",
            "//caption[contains(., '{scene}')]",
        ),
        "nested": (
            "/story[topic = '{topic}' and dateline/place/city = '{city}']",
            "/story[dateline//country/@code = '{country}']/topic[. = '{topic}']",
            "/story[admin/urgency = {urgency}]//attribution/person[name = '{name}']",
            "/story[usage/territory = '{country}']/media[@medium='video'][credit = '{name}']",
            "/story[mention/occasion/venue = '{city}'][topic = '{topic}']",
            "//quote[attribution/company/sector = '{sector}']/para[contains(., '{scene}')]",
            "/story[byline/author/name = '{name}']/headline",
            "/story[mention/company[trade-name = '{firm}']/country/@code = '{country}']",
            "/story[admin/desk = '{desk}'][mention/security/ticker = '{ticker}']/headline",
        ),
        "either": (
            "/story[topic = '{topic}' or admin/keyword = '{topic}'][@genre='{genre}']",
            "//mention[company/trade-name = '{firm}' or security/ticker = '{ticker}']",
            "/story/dateline/place[city = '{city}' or city = '{city}']",
            "/story/byline/author[name = '{name}' or email = '{email}']",
        ),
        "exact": (
            "/story[count(topic[@relevance > {relevance}]) = {count}][admin/desk = '{desk}']",
            "/story[not(usage)][topic = '{topic}'][admin/desk = '{desk}']",
            "/story/topic[last()][. = '{topic}']",
            "/story/topic[. = '{topic}']/following-sibling::topic[. = '{topic}']",
            "/story[admin/desk = '{desk}'][sum(topic/@relevance) > 150]",
            "/story[not(mention/@confidence < {confidence})]/topic[. = '{topic}']",
        ),
    }
)

_PAYMENTS: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "structure": (
            "//payment/standing-order/last",
            "//payment/tax/authority",
            "//payment/screening/check/analyst",
            "//intermediary/institution/branch/sort-code",
            "/remittance/control/seal",
            "//payment/exchange/contract",
            "//payee//individual/nationality",
            "//payment/invoice/line/product/@sku",
        ),
        "equality": (
            "//party[name = '{name}']",
            "//party[name = '{firm}']",
            "//payee/account[number = '{account}']",
            "//payer/account[number = '{account}']",
            "//payment[reference = '{reference}']",
            "//company[registration = '{registration}']",
            "//payment[@reason='{reason}'][@currency='{currency}']/payer/party[@rating='high']",
            "/remittance/batch[@scheme='{scheme}']/payment/purpose[@code = '{purpose}']",
            "/remittance/envelope/sender//bank-code[. = '{bank}']",
            "//address[city = '{city}'][postcode = '{postcode}']",
            "//address[street = '{street}'][city = '{city}'][country = '{country}']",
            "//contact/email[. = '{email}']",
            "//standing-order[@every='year']/first[text() = '{day}']",
            "//batch[@priority='{batch_priority}']/payment[{position}][@currency='{currency}']"
            "[@reason='{reason}']",
            "//check[@against='{list}' and @outcome='{outcome}']/analyst[. = '{name}']",
        ),
        "range": (
            "//payment[amount > {amount} and @currency='{currency}']/payee//country"
            "[. = '{country}']",
            "//payment[@status='{status}'][amount > {large}][@currency='{currency}']",
            "//check[@against='{list}' and @outcome='{outcome}']/score[. >= {score}]",
            "//invoice/line[product = '{product}'][price > {price}]",
            "//payment/charge[@bearer='payee']/amount[. > {amount}]",
            "//exchange[@from='{currency}' and @to='{currency}'][rate > 1.5]",
            "//payee/party/individual[born < {birth}][nationality = '{country}']",
            "//payment[@currency='{currency}'][amount >= {amount}][amount < {large}]",
            "//tax[rate < 0.2]/amount[. > {large}]",
        ),
        "prefix": (
            "//account/number[starts-with(., '{account_begin}')]",
            "//bank-code[starts-with(., '{bank_begin}')]",
            "//payment/reference[starts-with(., '{reference_begin}')]",
            "//payee//registration[starts-with(., '{registration_begin}')]",
            "//address/postcode[starts-with(., '{postcode_begin}')]",
            "//payment/value-date[starts-with(., '{month}')]",
            "//payment[starts-with(@reason, 'R0')][@currency='{currency}'][@status='{status}']",
            "//phone[starts-with(., '{phone_begin}')]",
        ),
        "substring": (
            "//payee/party/name[contains(., '{firm_begin}')]",
            "//payment/message[contains(., '{product}')]",
            "//account/number[contains(., '{postcode}')]",
            "//contact/email[contains(., '{given}@')]",
            "//analyst[contains(., '{given}')]",
            "/remittance/envelope/remark[contains(., '{product}')]",
        ),
        "nested": (
            "//payment[payer/party/name = '{name}']/amount[. > {amount}]",
            "//payment[payee/account/number = '{account}']/charge",
            "//payment[screening/check[@outcome='{outcome}']][payer//country = '{country}']"
            "[@currency='{currency}']",
            "/remittance[envelope/recipient/institution/bank-code = '{bank}']//payment"
            "[@currency='{currency}'][@reason='{reason}']",
            "//payee[agent/institution/country = '{country}']//company[@form='{form}']"
            "[sector = '{sector}']",
            "//payment[charge[@bearer='payee']/amount > {charge}]/exchange[@to='{currency}']",
            "//payer[account/number = '{account}'][party/@rating='high']",
            "//payment[invoice/line/product = '{product}'][payee//city = '{city}']",
            "//intermediary/institution[bank-code='{bank}']/branch[city = '{city}']",
            "//batch[payment/payee/party/name = '{firm}']/booking-date",
        ),
        "either": (
            "//payment[payer/party/name = '{name}' or payee/party/name = '{name}']",
            "//payment[@status='rejected' or @status='returned'][reference = '{reference}']",
            "//payment[payer/account/number = '{account}' or payee/account/number = '{account}']",
            "//party[name = '{firm}' or account/holder = '{firm}']",
            "//institution[bank-code = '{bank}' or bank-code = '{bank}']/branch[city = '{city}']",
        ),
        "exact": (
            "//batch[sum(payment/amount) > {large}][payment/@currency='{currency}']"
            "[@scheme='{scheme}']",
            "//batch[count(payment) = {count}]/payment[payee/party/name = '{firm}']",
            "//payment[not(screening)][@currency='{currency}'][amount > {large}]",
            "//batch/payment[last()][@currency='{currency}'][@reason='{reason}']",
            "//payment[@currency='{currency}']/following-sibling::payment[@reason='{reason}']",
            "//payment[not(payee//country = payer//country)][@reason='{reason}']"
            "[@currency='{currency}']",
        ),
    }
)

_ALERTS: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "structure": (
            "/warning/header/replaces",
            "//hazard/outlook/period/tendency",
            "//zone/zone//corridor/point",
            "//zone/circle/radius",
            "//zone/shelter/street",
            "//measurement/station/operator",
            "/warning/hazard/closure/reopens",
            "/warning/attachment/checksum",
        ),
        "equality": (
            "/warning/hazard[danger = '{danger}' and @severity='{severity}']",
            "//zone[code = {code}]",
            "//zone[name = '{region}'][@country='{country}']",
            "//hazard[@group='{group}'][@likelihood='{likelihood}']/danger[. = '{danger}']",
            "//closure[@mode='{closure}']/route[. = '{route}']",
            "//impact[@scale='{scale}']/sector[text() = '{sector}']",
            "/warning[@kind='real'][@phase='cancel']/hazard[danger = '{danger}']",
            "/warning/header/number[. = '{reference}']",
            "/warning/reference[@number='{reference}']",
            "//station[name = '{region}'][operator = '{firm}']",
            "/warning/header/issuer[@role='{issuer}'][country = '{country}'][office = '{city}']",
            "//shelter[@open='yes'][street = '{street}'][name = '{region}']",
            "/warning/hazard[{position}]/zone[@country='{country}'][name = '{region}']",
        ),
        "range": (
            "//hazard[@level >= {level}]//zone[@country='{country}'][name = '{region}']",
            "//measurement[quantity = '{quantity}']/value[@unit='{unit}'][. > {reading}]",
            "//measurement[value[@trend='rising'] > {reading}]/station/operator[. = '{firm}']",
            "//zone/polygon/point[@lat > {latitude} and @lat < 67 and @lon < -9]",
            "//hazard[danger = '{danger}']//population[. > {population}]",
            "//zone//zone[@type='city' and population >= {population}]",
            "//shelter[@open='yes'][places > 1900][name = '{region}']",
            "//zone[code >= {code}][@country='{country}'][@type='coast']",
            "//hazard/outlook/period[@level >= {level}]/to[. > {bytes}]",
        ),
        "prefix": (
            "/warning/header/number[starts-with(., '{reference_begin}')]",
            "//closure/route[starts-with(., 'A1')]",
            "/warning/header/issued[starts-with(., '{day}')]",
            "//hazard/onset[starts-with(., '{month}')]",
            "/warning/reference[starts-with(@number, '{reference_begin}')]",
            "//issuer/hotline[starts-with(., '{phone_begin}')]",
        ),
        "substring": (
            "//hazard/summary[contains(., '{scene}')]",
            "//hazard/summary[contains(., '{event}')]",
            "/warning/attachment/title[contains(., '{scene}')]",
            "//station/operator[contains(., '{firm_begin}')]",
            "/warning/attachment[contains(@href, '{firm_begin}')]",
        ),
        "nested": (
            "/warning[header/issuer[@role='{issuer}']/country = '{country}']/hazard"
            "[danger = '{danger}']",
            "//hazard[outlook/period/@level = {level}]/zone//zone[name = '{region}']",
            "//hazard[trigger = '{danger}'][zone/@country='{country}']//corridor",
            "//zone[name = '{region}']//shelter[@open='yes']/places[. > 1500]",
            "/warning/hazard[@severity='extreme'][zone/@country = '{country}']"
            "[danger = '{danger}']",
            "/warning[attachment/@media = 'map']/hazard[danger = '{danger}']//circle/radius",
            "//hazard[zone/code = {code}]/advice[@for='schools']",
            "/warning[hazard/zone/code = {code}][header/issuer/@role = '{issuer}']",
            "//hazard[danger = '{danger}'][impact/sector = '{sector}']/closure[@mode='{closure}']",
        ),
        "either": (
            "//zone[code = {code} or code = {code}]",
            "//hazard[danger = '{danger}' or trigger = '{danger}'][zone/name = '{region}']",
            "//hazard[zone/@country='{country}' or zone/zone/@country='{country}']"
            "[danger = '{danger}']",
            "/warning/reference[@number='{reference}' or . = '{scene}']",
        ),
        "exact": (
            "/warning[count(hazard) = {count}]/hazard[danger = '{danger}']",
            "/warning[not(hazard/@severity='minor')]/hazard[danger = '{danger}']",
            "//hazard[danger = '{danger}'][sum(.//population) > {population}]",
            "/warning/hazard[last()][danger = '{danger}'][@level >= {level}]",
            "//zone[name = '{region}']/following-sibling::zone[@country='{country}']",
            "//zone[@country='{country}'][not(.//shelter)][name = '{region}']",
        ),
    }
)

TEMPLATES: Mapping[str, Mapping[Kind, tuple[str, ...]]] = MappingProxyType(
    {"news": _NEWS, "payments": _PAYMENTS, "alerts": _ALERTS}
)
"""Domain -> kind -> templates of standing queries; slots in braces."""
