"""What is recommended for a function that is not there can be written, and says the same.

If one of these fails, an error sends somebody from one refusal to the next, or to a wrong answer.
"""

from __future__ import annotations

import re

import pytest

from oracles.engines import made_by
from pathcast import Query, Registry, Subscription
from pathcast.errors import QuerySyntaxError
from pathcast.query import compile_query, compile_subscription
from pathcast.query.refused_functions import (
    INSTEAD,
    NOWHERE,
    TYPES,
    for_function,
    in_xquery,
    refused_functions,
)

TEMPLATES = sorted({*INSTEAD.values(), *TYPES.values()})

MOMENT = "<x>2026-06-03T04:05:06Z</x>"

HOLDS = {
    # What is compared with what, and a value of which it holds and one of which it does not.
    "exists": ("exists(x)", "{}", "<x/>", ""),
    "empty": ("empty(x)", "{}", "", "<x/>"),
    "data": ("data(x) = 'b'", "{} = 'b'", "<x>b</x>", "<x>c</x>"),
    "avg": ("avg(x) > 2", "{} > 2", "<x>1</x><x>4</x>", "<x>1</x><x>2</x>"),
    "min": ("min(x) > 2", "{} > 2", "<x>9</x><x>3</x>", "<x>9</x><x>2</x>"),
    "max": ("max(x) < 5", "{} < 5", "<x>1</x><x>4</x>", "<x>1</x><x>5</x>"),
    "distinct-values": (
        "count(distinct-values(x)) = 2",
        "count({}) = 2",
        "<x>1</x><x>4</x><x>1</x>",
        "<x>1</x><x>1</x>",
    ),
    "string-join": ("string-join((x, x), ',') = 'a,a'", "{} = 'a,a'", "<x>a</x>", "<x>b</x>"),
    "ends-with": ("ends-with(x, 's')", "{}", "<x>ts</x>", "<x>st</x>"),
    "upper-case": ("upper-case(x) = 'AZB'", "{} = 'AZB'", "<x>aZb</x>", "<x>azc</x>"),
    "lower-case": ("lower-case(x) = 'azb'", "{} = 'azb'", "<x>aZB</x>", "<x>azc</x>"),
    "abs": ("abs(x) = 3", "{} = 3", "<x>-3</x>", "<x>-4</x>"),
    "compare": ("compare(x, 's') = 0", "{} = 0", "<x>s</x>", "<x>t</x>"),
    "codepoint-equal": ("codepoint-equal(x, 's')", "{}", "<x>s</x>", "<x>t</x>"),
    "contains-token": ("contains-token(x, 's')", "{}", "<x>a s b</x>", "<x>as</x>"),
    "day-from-date": ("day-from-date(x) = 3", "{} = 3", "<x>2026-06-03</x>", "<x>2026-03-06</x>"),
    "day-from-dateTime": (
        "day-from-dateTime(x) = 3",
        "{} = 3",
        "<x>2026-06-03T01:02:04Z</x>",
        "<x>2026-03-06T</x>",
    ),
    "exactly-one": (None, "{}", "<x/>", "<x/><x/>"),
    "has-children": (None, "{}", "<x>t</x>", "<x/>"),
    "head": ("head(x) = 'a'", "{} = 'a'", "<x>a</x><x>b</x>", "<x>b</x><x>a</x>"),
    "hours-from-dateTime": (
        "hours-from-dateTime(x) = 4",
        "{} = 4",
        MOMENT,
        "<x>2026-06-04T05</x>",
    ),
    "hours-from-time": ("hours-from-time(x) = 4", "{} = 4", "<x>04:05:06</x>", "<x>05:04:06</x>"),
    "matches": ("matches(x, 's')", "{}", "<x>is</x>", "<x>it</x>"),
    "minutes-from-dateTime": (
        "minutes-from-dateTime(x) = 5",
        "{} = 5",
        MOMENT,
        "<x>2026-06-05T05:04</x>",
    ),
    "minutes-from-time": (
        "minutes-from-time(x) = 5",
        "{} = 5",
        "<x>04:05:06</x>",
        "<x>05:04:05</x>",
    ),
    "month-from-date": (
        "month-from-date(x) = 6",
        "{} = 6",
        "<x>2026-06-03</x>",
        "<x>2026-03-06</x>",
    ),
    "month-from-dateTime": (
        "month-from-dateTime(x) = 6",
        "{} = 6",
        "<x>2026-06-03T01:02:04Z</x>",
        "<x>2026-03-06T06</x>",
    ),
    "node-name": (None, "{} = 'x'", "<x/>", "<y/>"),
    "replace": (
        "replace(replace(x, 'a', 'x'), 'b', 'y') = 'xyc'",
        "{} = 'xyc'",
        "<x>abc</x>",
        "<x>bac</x>",
    ),
    "round-half-to-even": ("round-half-to-even(x) = 3", "{} = 3", "<x>2.7</x>", "<x>2.2</x>"),
    "seconds-from-dateTime": (
        "seconds-from-dateTime(x) = 6",
        "{} = 6",
        MOMENT,
        "<x>2026-06-06T06:06</x>",
    ),
    "seconds-from-time": (
        "seconds-from-time(x) = 6",
        "{} = 6",
        "<x>04:05:06</x>",
        "<x>06:06:05</x>",
    ),
    "subsequence": (
        "subsequence(x, 2, 2) = 'b'",
        "{} = 'b'",
        "<x>a</x><x>b</x>",
        "<x>b</x><x>a</x>",
    ),
    "tail": ("tail(x) = 'b'", "{} = 'b'", "<x>a</x><x>b</x>", "<x>b</x><x>a</x>"),
    "tokenize": ("tokenize(x)[1] = 'a'", "{} = 'a'", "<x> a s b</x>", "<x>as</x>"),
    "year-from-date": (
        "year-from-date(x) = 2026",
        "{} = 2026",
        "<x>2026-06-03</x>",
        "<x>2025-06-03</x>",
    ),
    "year-from-dateTime": (
        "year-from-dateTime(x) = 2026",
        "{} = 2026",
        MOMENT,
        "<x>2025-06-03T01</x>",
    ),
}


def satisfies(query: str, inside: str) -> bool:
    registry = made_by("reference", Registry)
    registry.add(Subscription("q", "ann", query, "ids"))
    return bool(list(registry.deliver(f"<r><a>{inside}</a></r>".encode())))


def test_every_function_of_xquery_has_what_says_the_same() -> None:
    there = set(in_xquery())
    assert INSTEAD.keys() <= refused_functions() | there
    assert HOLDS.keys() == INSTEAD.keys()
    assert {name for name, (is_there, *_) in HOLDS.items() if is_there} == INSTEAD.keys() & there


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_is_recommended_is_in_both_languages(template: str) -> None:
    compile_query(f"//a[{template}]")
    assert compile_subscription(f"<r>{{//a[{template}]}}</r>").kind == "xquery"


@pytest.mark.parametrize("name", sorted(HOLDS))
def test_what_is_recommended_says_the_same(name: str) -> None:
    in_xquery, compared, value, other = HOLDS[name]
    text = f"//a[{compared.format(INSTEAD[name])}]"
    texts = [text] if in_xquery is None else [text, f"//a[{in_xquery}]"]
    assert made_by("reference", Registry).add(Query("q", text)).accepted == 1
    for each in texts:
        assert (satisfies(each, value), satisfies(each, other)) == (True, False), each


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("date", "2026-05-31T23:00:00Z", "2026-06-01"),
        ("dateTime", "2026-06-01T08:00:00Z", "2026-06-01T08:00:01Z"),
        ("time", "08:00:00", "08:00:01Z"),
        ("integer", "9", "10"),
        ("double", "-1", "1.5"),
    ],
)
def test_what_is_recommended_for_a_type_orders_as_it_does(
    name: str, before: str, after: str
) -> None:
    second = re.sub(r"\bx\b", "y", TYPES[name])
    text = f"//a[{TYPES[name]} < {second}]"
    assert satisfies(text, f"<x>{before}</x><y>{after}</y>")
    assert not satisfies(text, f"<x>{after}</x><y>{before}</y>")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("//a[lower-case(@b) = 'x']", "in a Subscription, lower-case() is there, as XQuery"),
        ("//a[fn:lower-case(@b) = 'x']", "write `translate(x, 'ABC"),
        (
            "//a[lowercase(@b) = 'x']",
            "did you mean lower-case()? for a path x write `tran",
        ),
        ("//a[node-name(b) = 'x']", f"{NOWHERE}; for most uses write `name("),
        ("//a[contains-token(@b, 'x')]", "in a Subscription, contains-token() is there"),
        ("//a[parse-json(@b)]", NOWHERE),
        ("//a[xs:date(@b) > 1]", "write `number(translate(substring(x, 1, 10), '-', ''))`"),
        ("//a[xs:anyURI(@b) > 1]", NOWHERE),
        ("//a[postion() = 1]", "did you mean position()?"),
        ("//a[element()]", "write * for any element, @* for any attribute"),
    ],
)
def test_an_unknown_function_in_xpath(text: str, hint: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        made_by("reference", Registry).add(Query("q", text))
    assert caught.value.code == "XPST0017"
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("<r>{//a[exactly-one(b)]}</r>", "for most uses write `count("),
        ("<r>{//a[xs:long(@b) > 1]}</r>", "write `number(x)`"),
        ("<r>{node-name(//a)}</r>", NOWHERE),
    ],
)
def test_a_function_that_is_refused_in_xquery(text: str, hint: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        made_by("reference", Registry).add(Subscription("q", "ann", text))
    assert hint in str(caught.value)


def test_what_is_no_function_anywhere_has_no_recommendation() -> None:
    assert for_function("no-such-thing") is None
