"""FLWR subscriptions to the sample domains, as templates: what a message is to be made into.

Example:
    >>> sorted(SHAPED_TEMPLATES) == ["alerts", "news", "payments"]
    True
    >>> sum(SHAPED_SHARES.values())
    1.0

A slot is a name of `templates.SLOTS` in double brackets; braces are XQuery's. "shared" templates
have the paper's form (one `for`, conjunctive conditions, return paths), so their plans can be
shared; "joined" ones as well, with several conditions; "beyond" ones use `let`, aggregates,
`order by`, alternatives, attribute value templates and nested FLWRs. Nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

ShapedKind: TypeAlias = Literal["shared", "joined", "beyond"]
"""What a subscription asks of its engine."""

SHAPED_KINDS: Final[tuple[ShapedKind, ...]] = get_args(ShapedKind)

SHAPED_SHARES: Mapping[ShapedKind, float] = MappingProxyType(
    {"shared": 0.5, "joined": 0.25, "beyond": 0.25}
)
"""Kind -> its share of all subscriptions."""

_NEWS: Mapping[ShapedKind, tuple[str, ...]] = MappingProxyType(
    {
        "shared": (
            '<alerts>{ for $s in doc("story.xml")/story where $s/topic = "[[topic]]" '
            "return <alert>{ $s/headline }{ $s/lead }</alert> }</alerts>",
            '<quotes>{ for $m in $msg//mention where $m/security/ticker = "[[ticker]]" '
            "return <quote>{ $m//ticker }{ $m//quotation }</quote> }</quotes>",
            '<people>{ for $a in $msg/story/byline/author where $a/name = "[[name]]" '
            "return <author>{ $a/name }{ $a/email }</author> }</people>",
            '<firms>{ for $c in $msg//company where $c/trade-name = "[[firm]]" '
            "return <firm>{ $c/sector }{ $c/country }</firm> }</firms>",
            '<pictures>{ for $m in $msg/story/media where $m/credit = "[[name]]" '
            "return <picture>{ $m/caption }</picture> }</pictures>",
            "<prices>{ for $s in $msg//security where $s/quotation > [[price]] "
            "return <price>{ $s/ticker }{ $s/quotation }</price> }</prices>",
        ),
        "joined": (
            '<alerts>{ for $s in $msg/story where $s/topic = "[[topic]]" and '
            '$s/admin/desk = "[[desk]]" return <alert>{ $s/headline }{ $s//place }</alert> }'
            "</alerts>",
            '<reports>{ for $s in $msg/story where $s/dateline/place/city = "[[city]]" and '
            '$s/@status = "[[story_status]]" return <report>{ $s/headline }</report> }</reports>',
            "<urgent>{ for $s in $msg/story where $s/admin/urgency <= [[urgency]] and "
            '$s/topic = "[[topic]]" return <story>{ $s/admin/slug }{ $s/lead/para }</story> }'
            "</urgent>",
        ),
        "beyond": (
            '<digest topic="[[topic]]">{ for $s in $msg/story let $p := $s//para '
            'where $s/topic = "[[topic]]" return <story id="{ $s/@id }" paragraphs="{ count($p) }">'
            "{ $s/headline/text() }</story> }</digest>",
            '<ranking>{ for $t in $msg/story[admin/desk = "[[desk]]"]/topic '
            "order by number($t/@relevance) descending "
            "return <topic>{ string($t) }</topic> }</ranking>",
            "<notice>{ for $s in $msg/story where some $a in $s/byline/author satisfies "
            '$a/name = "[[name]]" return if ($s/@status = "live") then <new>{ $s/headline }</new> '
            "else <old>{ $s/headline }</old> }</notice>",
            '<mentions>{ for $s in $msg/story[topic = "[[topic]]"] return <story>{ $s/headline }'
            "{ for $m in $s/mention where $m/@confidence > [[confidence]] return "
            "<mention>{ $m/* }</mention> }</story> }</mentions>",
        ),
    }
)

_PAYMENTS: Mapping[ShapedKind, tuple[str, ...]] = MappingProxyType(
    {
        "shared": (
            '<credits>{ for $p in $msg//payment where $p/payee/account/number = "[[account]]" '
            "return <credit>{ $p/amount }{ $p/value-date }</credit> }</credits>",
            '<debits>{ for $p in $msg//payment where $p/payer/party/name = "[[name]]" '
            "return <debit>{ $p/amount }{ $p/payee/party/name }</debit> }</debits>",
            "<arrivals>{ for $p in $msg/remittance/batch/payment where "
            '$p/payee/party/name = "[[firm]]" return <arrival>{ $p/reference }{ $p/amount }'
            "</arrival> }</arrivals>",
            "<large>{ for $p in $msg//payment where $p/amount > [[large]] "
            "return <payment>{ $p/reference }{ $p/amount }{ $p/payer//name }</payment> }</large>",
            '<checks>{ for $c in $msg//check where $c/analyst = "[[name]]" '
            "return <check>{ $c/score }</check> }</checks>",
            '<lines>{ for $l in $msg//invoice/line where $l/product = "[[product]]" '
            "return <line>{ $l/quantity }{ $l/price }</line> }</lines>",
        ),
        "joined": (
            '<exports>{ for $p in $msg//payment where $p/@currency = "[[currency]]" and '
            '$p/payee//country = "[[country]]" and $p/amount > [[amount]] '
            "return <export>{ $p/amount }{ $p/purpose }</export> }</exports>",
            '<returns>{ for $p in $msg//payment where $p/@status = "[[status]]" and '
            '$p/@reason = "[[reason]]" return <return>{ $p/reference }{ $p/message }</return> }'
            "</returns>",
            '<hits>{ for $p in $msg//payment where $p/screening/check/@outcome = "[[outcome]]" and '
            '$p/payer//country = "[[country]]" return <hit>{ $p/reference }{ $p/screening }</hit> }'
            "</hits>",
        ),
        "beyond": (
            '<summary>{ for $b in $msg//batch where $b/@scheme = "[[scheme]]" and '
            '$b/payment/payee/party/name = "[[firm]]" return '
            '<batch payments="{ count($b/payment) }" total="{ sum($b/payment/amount) }">'
            "{ $b/reference }</batch> }</summary>",
            '<top>{ for $p in $msg//payment[@currency = "[[currency]]"] '
            "where $p/amount > [[large]] order by number($p/amount) descending "
            "return <payment>{ $p/amount }{ $p/payee/party/name }</payment> }</top>",
            '<flags>{ for $p in $msg//payment where $p/payer/account/number = "[[account]]" or '
            '$p/payee/account/number = "[[account]]" return <flag status="{ $p/@status }">'
            "{ concat($p/@currency, ' ', $p/amount) }</flag> }</flags>",
            "<people>{ for $p in $msg//payment let $n := $p/payer/party/name where "
            '$n = "[[name]]" return <payer>{ $n/text() }{ for $c in $p/charge return '
            "<charge>{ $c/@bearer }{ $c/amount }</charge> }</payer> }</people>",
        ),
    }
)

_ALERTS: Mapping[ShapedKind, tuple[str, ...]] = MappingProxyType(
    {
        "shared": (
            '<dangers>{ for $h in $msg/warning/hazard where $h/danger = "[[danger]]" '
            "return <danger>{ $h/summary }{ $h/advice }</danger> }</dangers>",
            '<here>{ for $z in $msg//zone where $z/code = "[[code]]" '
            "return <zone>{ $z/name }{ $z/shelter }</zone> }</here>",
            '<regions>{ for $h in $msg//hazard where $h/zone/name = "[[region]]" '
            "return <region>{ $h/danger }{ $h/onset }{ $h//shelter }</region> }</regions>",
            '<roads>{ for $c in $msg//closure where $c/route = "[[route]]" '
            "return <road>{ $c/route }{ $c/reopens }</road> }</roads>",
            "<crowds>{ for $z in $msg//zone where $z/population > [[population]] "
            "return <crowd>{ $z/name }{ $z/population }</crowd> }</crowds>",
            '<stations>{ for $m in $msg//measurement where $m/station/name = "[[region]]" '
            "return <reading>{ $m/quantity }{ $m/value }</reading> }</stations>",
        ),
        "joined": (
            '<dangers>{ for $h in $msg//hazard where $h/danger = "[[danger]]" and '
            '$h/zone/@country = "[[country]]" return <danger>{ $h/summary }{ $h/zone/name }'
            "</danger> }</dangers>",
            '<closures>{ for $h in $msg//hazard where $h/closure/@mode = "[[closure]]" and '
            '$h/danger = "[[danger]]" return <closed>{ $h/closure }</closed> }</closures>',
            '<sectors>{ for $h in $msg//hazard where $h/@severity = "[[severity]]" and '
            '$h/impact/sector = "[[sector]]" return <impact>{ $h/danger }{ $h/impact }</impact> }'
            "</sectors>",
        ),
        "beyond": (
            '<bulletin>{ for $w in $msg/warning let $h := $w/hazard[danger = "[[danger]]"] '
            'where exists($h) return <warning zones="{ count($h//zone) }">{ $w/header/number }'
            "{ $h/summary }</warning> }</bulletin>",
            '<zones>{ for $z in $msg//zone[@country = "[[country]]"] where '
            '$z/name = "[[region]]" order by $z/name return '
            '<zone name="{ $z/name }">{ if ($z/shelter) then $z/shelter else <none/> }</zone> }'
            "</zones>",
            '<outlook>{ for $h in $msg//hazard where $h/danger = "[[danger]]" or '
            '$h/trigger = "[[danger]]" return <hazard level="{ $h/@level }">{ for $p in '
            "$h/outlook/period where $p/@level >= [[level]] return $p/tendency }</hazard> }"
            "</outlook>",
            '<population>{ for $h in $msg//hazard[danger = "[[danger]]"] return '
            "<affected>{ sum($h//population) }</affected> }</population>",
        ),
    }
)

SHAPED_TEMPLATES: Mapping[str, Mapping[ShapedKind, tuple[str, ...]]] = MappingProxyType(
    {"alerts": _ALERTS, "news": _NEWS, "payments": _PAYMENTS}
)
"""Domain -> kind -> templates; slots in double brackets."""
