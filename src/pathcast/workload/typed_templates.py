"""FLWR subscriptions to the sample domains that compare dates, lists and text, as templates.

Example:
    >>> sorted(TYPED_TEMPLATES) == ["alerts", "news", "payments"]
    True

They call functions of their own, build elements by name, and write numbers and dates for people.
Nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_NEWS = (
    '<coming>{ for $e in $msg//occasion where xs:date($e/begins) >= xs:date("[[day]]") '
    'return <event on="{ format-date($e/begins, "[D] [MNn]") }">{ $e/title }</event> }</coming>',
    '<picked>{ for $s in $msg/story where $s/topic = ("[[topic]]", "[[topic]]", "[[topic]]") '
    "return element story { attribute id { $s/@id }, $s/headline } }</picked>",
    "declare function local:says($s as element(), $word as xs:string) as xs:boolean "
    "{ contains(lower-case(string-join(($s/headline | $s/lead), ' ')), $word) }; "
    '<found>{ for $s in $msg/story where local:says($s, lower-case("[[topic]]")) '
    "return $s/headline }</found>",
    "<quoted>{ for $s in $msg//security where matches($s/ticker, '^[A-M]') and "
    "$s/quotation > [[price]] return element { 'price' } { attribute of { $s/ticker }, "
    'text { format-number($s/quotation, "#,##0.00") } } }</quoted>',
)

_PAYMENTS = (
    '<due>{ for $p in $msg//payment where $p/value-date cast as xs:date? >= xs:date("[[day]]") and '
    "$p/amount > [[amount]] return element payment { attribute on "
    '{ format-date($p/value-date, "[D1o] [MNn] [Y]") }, '
    'text { $p/@currency, format-number($p/amount, "#,##0.00") } } }</due>',
    'declare variable $watched as xs:string* := ("[[country]]", "[[country]]", "[[country]]"); '
    "<watched>{ for $p in $msg//payment where $p//country = $watched and $p/amount > [[large]] "
    "return <payment>{ $p/reference, $p/amount }</payment> }</watched>",
    "declare function local:days($p as element()) as xs:integer? { days-from-duration("
    "xs:date($p/due) - xs:date($p/issued)) }; <slow>{ for $i in $msg//invoice "
    "where local:days($i) > 60 return <invoice days='{ local:days($i) }'>{ $i/line/product }"
    "</invoice> }</slow>",
    "<codes>{ for $p in $msg//payment where matches($p/reference, '^[0-9A-Z]') and "
    '$p/purpose/@code = ("[[purpose]]", "[[purpose]]") return $p/purpose }</codes>',
)

_ALERTS = (
    "<since>{ for $h in $msg//hazard where xs:date(substring($h/onset, 1, 10)) "
    '>= xs:date("[[day]]") return element hazard { attribute level { $h/@level }, $h/danger, '
    "text { $h/summary } } }</since>",
    '<kinds>{ for $h in $msg//hazard where $h/danger = ("[[danger]]", "[[danger]]") and '
    'compare($h/@severity, "SEVERE", "http://www.w3.org/2005/xpath-functions/collation/'
    'html-ascii-case-insensitive") = 0 return $h/danger }</kinds>',
    "declare function local:people($z as element()*) as xs:string "
    '{ format-number(sum($z/population), "#,##0") }; '
    "<people>{ for $h in $msg//hazard where $h/danger = '[[danger]]' "
    "return element affected { local:people($h//zone) } }</people>",
    "<roads>{ for $c in $msg//closure where contains-token(lower-case($c/route), '[[level]]') or "
    "matches($c/route, '^A[0-9]') return $c/route }</roads>",
)

TYPED_TEMPLATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"alerts": _ALERTS, "news": _NEWS, "payments": _PAYMENTS}
)
"""Domain -> templates; slots in double brackets."""
