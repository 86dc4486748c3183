"""Texts in one case, lists of keywords and patterns as conditions of the index: kernel = papers.

If these fail, a subscriber who asks for a word without regard to case, for one of many words or for
a pattern misses messages or gets others', a broker drops what somebody behind it wants, or a list
of words takes a broker's time. What is expected is computed by the papers, subscription by
subscription; here thousands of them share one index.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pytest

from customised_cases import GENEROUS, by_reference
from pathcast.boundary import native
from pathcast.errors import PathcastError
from pathcast.model import Subscription
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.query import compile_subscription, conjunction_of
from pathcast.registry import Registry
from pattern_writer import TEXTS, pattern
from test_casts import routed

pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")

CASE_BLIND = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive"
WORDS = (
    *("a", "abc", "ABC", "b1", "été", "ÉTÉ", "straße", "STRASSE", "ß", "ss", "i̇stanbul", "i", "ı"),
    *(
        "σς",
        "σσ",
        "ΣΣΣ",
        "k",
        "\u212a",
        "e\u0301",
        "tcp-ip",
        "price: 1",
        "line",
        " a",
        "",
        "x" * 600,
    ),
)
PLACES = ("$v/@t", "$v", "$v/w", "$v/@*", "$v/text()", "string($v/@t)", "normalize-space($v)")


def message_of(texts: Sequence[str]) -> bytes:
    """A message with an element `v` for each text: as attribute, as text and in parts."""
    elements = []
    for text in texts:
        quoted = quoteattr(text, {"\n": "&#10;", "\r": "&#13;"})
        shown = escape(text, {"\r": "&#13;"})
        middle = len(text) // 2
        parts = [escape(part, {"\r": "&#13;"}) for part in (text[:middle], text[middle:])]
        elements.append(f"<v t={quoted}>{shown}</v><v>{parts[0]}<w>{parts[1]}</w></v>")
    return f"<m>{''.join(elements)}</m>".encode()


def literal(text: str) -> str:
    return "'" + text.replace("&", "&amp;").replace("'", "''") + "'"


def condition(draw: random.Random) -> str:
    place = draw.choice(PLACES)
    folded = draw.choice(("{}", "lower-case({})", "upper-case({})")).format(place)
    word = literal(draw.choice(WORDS))
    words = ", ".join(map(literal, draw.sample(WORDS, draw.randint(2, 6))))
    function = draw.choice(("contains", "starts-with", "ends-with"))
    match draw.randrange(8):
        case 0:
            return f"{folded} = {word}"
        case 1:
            return f"{folded} = ({words})"
        case 2:
            return f"{function}({place}, {word}, '{CASE_BLIND}')"
        case 3 | 4:
            return f"some $k in ({words}) satisfies {function}({folded}, $k)"
        case 5:
            return f"{function}({folded}, {word})"
        case _:
            flags = draw.choice(("", "", ", 'i'", ", 'm'", ", 'q'", ", 'im'"))
            return f"matches({folded}, {literal(pattern(draw))}{flags})"


def is_taken(text: str) -> bool:
    try:
        compile_subscription(text)
    except PathcastError:
        return False
    return True


def held(texts: Sequence[str], messages: Sequence[bytes]) -> list[set[int]]:
    """The subscriptions that each message satisfies, by number."""
    registry = Registry(limits=GENEROUS, threads=1)
    rows = [Subscription(str(at), "u", text, "ids") for at, text in enumerate(texts)]
    assert not registry.add(rows).rejected
    # The first messages make tables of texts and groups of patterns, the next ones use them.
    array = pa.array([*messages, *messages], pa.binary())
    found = [{int(id) for id in answer.query_ids} for answer in registry.match(array)]
    assert found[: len(messages)] == found[len(messages) :]
    frozen = registry.freeze().match(array)
    assert [{int(id) for id in answer.query_ids} for answer in frozen] == found
    return found[: len(messages)]


def test_what_is_indexed_holds_where_the_papers_say() -> None:
    draw = random.Random(11)
    made = [condition(draw) for _ in range(420)]
    for negated in range(0, len(made), 9):
        made[negated] = f"not({made[negated]})"
    texts = [f"for $v in //v where {each} return $v" for each in made]
    texts = [text for text in texts if is_taken(text)]
    assert len(texts) > 350
    long = "x" * 700
    messages = [message_of([text]) for text in (*TEXTS, f"{long}STRASSE straße", f"İ{long}ABC")]
    messages.append(message_of(draw.choices(TEXTS, k=3)))
    answers = 0
    for message, found in zip(messages, held(texts, messages), strict=True):
        # Papers go back in patterns, and would not come to an end in long texts.
        asked = [
            at for at, text in enumerate(texts) if len(message) < 1_000 or "matches(" not in text
        ]
        expected = {at for at in asked if by_reference(texts[at], message, None) is not None}
        different = sorted(found.intersection(asked) ^ expected)
        assert not different, (message, [texts[at] for at in different][:3])
        answers += len(expected)
    assert answers > 1_500


CASES = (
    ("contains(lower-case($v), 'abc')", "//v[contains(lower-case(.),'abc')]", True),
    ("lower-case($v/@t) = 'abc'", "//v[lower-case(@t)='abc']", True),
    ("upper-case($v/@t) = ('A', 'B')", "//v[upper-case(@t)=('A','B')]", True),
    ("'A' = upper-case(string($v/@t))", "//v[upper-case(@t)='A']", True),
    ("contains($v, 'ABC', '{blind}')", "//v[contains(ascii-case(.),'abc')]", True),
    ("starts-with($v/@t, 'É', '{blind}')", "//v[starts-with(ascii-case(@t),'É')]", True),
    ("some $k in ('b', 'a') satisfies contains($v, $k)", "//v[contains(.,('a','b'))]", True),
    (
        "some $k in ('b', 'a') satisfies starts-with(upper-case($v/@t), $k)",
        "//v[starts-with(upper-case(@t),('a','b'))]",
        True,
    ),
    (
        "contains(lower-case($v), 'a') or contains(lower-case($v), 'b')",
        "//v[contains(lower-case(.),('a','b'))]",
        True,
    ),
    ("contains($v/@t, 'x')", "//v[contains(@t,'x')]", True),
    ("matches($v, 'disk \\d+ full')", "//v[matches(.,'disk \\d+ full')]", True),
    ("matches($v/@t, '^err', 'i')", "//v[matches(@t,'(?i)^err')]", True),
    ("matches($v/@t, 'error')", "//v[contains(@t,'error')]", True),
    ("matches($v/@t, '^(disk|tape)$')", "//v[@t=('disk','tape')]", True),
    ("matches($v/@t, '^err')", "//v[starts-with(@t,'err')]", True),
    ("xs:date($v/@t) > xs:date('2026-01-01')", "//v[date(@t)>'2026-01-01Z']", True),
    ("xs:date($v/@t) gt xs:date('2026-01-01')", "//v[date(@t)>'2026-01-01Z']", True),
    # Of several nodes the first is meant; the gate asks for any.
    ("contains(lower-case($v/w), 'abc')", "//v/w[contains(lower-case(.),'abc')]", False),
    ("ends-with(lower-case($v), 'abc')", "//v[contains(lower-case(.),'abc')]", False),
    ("matches(lower-case($v), 'ab+c')", "//v[contains(lower-case(.),'ab')]", False),
    ("xs:decimal($v/@t) > 1", "//v[double(@t)>1]", False),
    (
        "contains(lower-case(normalize-space($v)), 'a bcd')",
        "//v[contains(lower-case(.),'bcd')]",
        False,
    ),
    # No node has the empty text, too.
    ("lower-case($v/@t) = ('', 'a')", "//v", False),
    ("matches($v/@t, 'a*')", "//v", False),
    ("contains(lower-case(replace($v, 'a', 'b')), 'abc')", "//v", False),
)


@pytest.mark.parametrize(("asked", "path", "is_all"), CASES, ids=[asked for asked, *_ in CASES])
def test_what_a_condition_is_in_the_index(asked: str, path: str, is_all: bool) -> None:
    asked = asked.replace("{blind}", CASE_BLIND)
    text = f"for $v in //v where {asked} return $v"
    compiled = compile_subscription(text, deliver="ids")
    assert list(compiled.alternatives) == [path]
    assert native.NormalPath(path).text == path
    assert compiled.way == ("filtering" if is_all else "gated")
    assert compile_subscription(text).way in ("gated", "shared")


def test_a_broker_passes_on_what_somebody_behind_it_wants() -> None:
    draw = random.Random(12)
    texts = [f"for $v in //v where {condition(draw)} return $v" for _ in range(120)]
    texts = [text for text in texts if is_taken(text)]
    messages = [message_of([text]) for text in TEXTS]
    passed = routed([disjuncts_of(text) for text in texts], messages)
    wanted = held(texts, messages)
    assert all(given <= sent for given, sent in zip(wanted, passed, strict=True))
    assert sum(map(len, passed)) < 2 * sum(map(len, wanted)) + len(messages) * 30


def test_what_covers_another_entry_holds_wherever_that_holds() -> None:
    def path(condition: str) -> native.NormalPath:
        return native.NormalPath(f"//v[{condition}]")

    wide = path("contains(lower-case(@t),('a','b','c'))")
    for narrow in (
        *("contains(lower-case(@t),'a')", "contains(lower-case(@t),('a','c'))", "@t='xA'"),
        "@t=('A','Bx')",
    ):
        assert wide.covers(path(narrow)), narrow
    for other in (
        *("contains(lower-case(@t),'d')", "contains(upper-case(@t),'a')", "contains(@t,'a')"),
        *("starts-with(lower-case(@t),'a')", "lower-case(@t)='a'", "@t", "@t=('A','D')"),
    ):
        assert not wide.covers(path(other)), other
    assert path("@t").covers(wide)
    assert path("matches(@t,'a+')").covers(path("@t='caat'"))
    assert not path("matches(@t,'a+')").covers(path("matches(@t,'a{2}')"))
    assert conjunction_of("//v[matches(@t,'a+')]").text == "//v[matches(@t,'a+')]"


def test_thousands_of_keywords_and_patterns_that_all_begin_alike() -> None:
    words = [f"aaaaaaaaaaaa{'a' * (number % 60)}{number}" for number in range(20_000)]
    listed = ", ".join(map(literal, words))
    texts = [
        f"//v[some $k in ({listed}) satisfies contains(lower-case(.), $k)]",
        *(f"//v[matches(., 'a{{{number % 50 + 1}}}[0-9]{number}')]" for number in range(1_000)),
    ]
    message = f"<m><v>{'A' * 40_000}</v><v>{'a' * 20_000}</v><v>{'A' * 100}9{'a' * 99}17</v></m>"
    (found,) = held(texts, [message.encode()])
    # Of the patterns, "a{8}[0-9]7" alone has a digit before its number.
    assert found == {0, 8}
