"""Regular expressions and collations: kernel = papers = Saxon, and what is refused.

If these fail, a subscriber misses messages whose text fits the pattern, gets others', or a pattern
takes a broker's time or memory.
"""

from __future__ import annotations

import bisect
import random
import re
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

import pytest

from customised_cases import GENEROUS, by_broker, by_reference
from oracles import SaxonOracle, saxon_missing_reason
from pathcast.errors import QuerySyntaxError
from pathcast.limits import Limits
from pathcast.message.canonical import canonical
from pathcast.model import Subscription
from pathcast.query import compile_subscription
from pathcast.registry import Registry
from pathcast_papers.language.regular_expressions import PatternError, read_pattern
from pathcast_papers.language.xquery import parse as parse_by_papers
from pattern_writer import TEXTS, pattern

needs_saxon = pytest.mark.skipif(
    saxon_missing_reason() is not None, reason=str(saxon_missing_reason())
)
COLLATIONS = "http://www.w3.org/2005/xpath-functions/collation/"
CASE_BLIND = f"'{COLLATIONS}html-ascii-case-insensitive'"


def message_of(texts: Sequence[str]) -> bytes:
    """A message with an element `v` for each text, which is its attribute `t`."""
    escaped = [quoteattr(text, {"\n": "&#10;", "\r": "&#13;"}) for text in texts]
    return f"<m>{''.join(f'<v t={text}/>' for text in escaped)}</m>".encode()


MESSAGE = message_of(TEXTS)


def answers(text: str, message: bytes = MESSAGE) -> bytes:
    """The one result of a subscription, on which kernel and papers agree."""
    registry = Registry(limits=GENEROUS)
    report = registry.add([Subscription("s", "u", text)])
    assert not report.rejected, report.rejected
    (said,) = by_broker(registry, [message])
    expected = by_reference(text, message, None)
    assert said == {"s": expected}, text
    assert isinstance(expected, tuple)
    return expected[0]


def by_saxon(text: str, message: bytes = MESSAGE) -> bytes:
    (result,) = SaxonOracle.shared().evaluate(text, message)
    return canonical(result)


def called(written: str, flags: str = "") -> str:
    """What a pattern does to all texts."""
    literal = "'" + written.replace("&", "&amp;").replace("<", "&lt;") + "'"
    shown = [f"<m>{{matches($t, {literal}{flags})}}</m>"]
    if not read_pattern(written, flags.strip(", '")).is_match(""):
        shown.append(f"<r>{{replace($t, {literal}, '[$0]'{flags})}}</r>")
        shown.append(f"{{for $p in tokenize($t, {literal}{flags}) return <p>{{$p}}</p>}}")
    return f"<r>{{for $v in //v let $t := $v/@t return <v>{''.join(shown)}</v>}}</r>"


WRITTEN = (
    *("a", "^a", "c$", "^abc$", "a|B", "(a)(b)?", "a+?b", "[a-c]+", "[^a-c]", "[a-z-[b]]+", "\\d+"),
    *("\\s", "\\S+", "\\w+", "\\W", "\\i\\c*", "\\I", "\\C", "\\p{Lu}", "\\P{L}", "\\p{Nd}", ".+"),
    *("a.b", "a\\.b", "\\^", "[\\^$.]", "[.\\-]", "[-a]", "[a-]", "a{2}", "a{2,3}?", "a{0}b"),
    "(?:ab)+",
    *("\u00e9", "\u00df", "[\u00e0-\u00ff]", "\\\\", "a b", "x_y", "\\p{Zs}", "\\p{S}"),
    "price: (\\d+)",
)  # fmt: skip


@needs_saxon
@pytest.mark.parametrize("written", WRITTEN)
def test_patterns_do_what_they_do_in_saxon(written: str) -> None:
    for flags in ("", ", 'i'", ", 's'", ", 'x'", ", 'q'"):
        texts: Sequence[str] = TEXTS
        if flags == ", 'i'":
            # Whether the case of a category counts is left open; `hyphen-at-the-end-of-a-class`.
            if "\\p" in written.lower() or written == "[a-]":
                continue
            # `case-of-the-dotted-capital-i`.
            texts = tuple(text for text in TEXTS if "\u0130" not in text)
        text, message = called(written, flags), message_of(texts)
        assert answers(text, message) == by_saxon(text, message), text


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_do_what_the_papers_say(seed: int) -> None:
    draw = random.Random(seed)
    matched = 0
    for _ in range(60):
        matched += answers(
            called(pattern(draw), draw.choice(("", ", 'i'", ", 's'", ", 'm'")))
        ).count(b"<m>true")
    assert matched > 200


def test_letters_are_folded_one_by_one() -> None:
    letters = "iI\u0130\u0131s\u017fk\u212a\u00df\u1e9e\u03c3\u03c2\u1f88\u1f80\u01c4\u01c5"
    message = message_of(letters)
    for letter in letters:
        answers(called(letter, ", 'i'"), message)
        answers(called(f"[{letter}-{chr(ord(letter) + 1)}]", ", 'i'"), message)
    assert answers(called("\u0131", ", 'i'"), message).count(b"<m>true") == 3


@needs_saxon
@pytest.mark.parametrize("seed", range(2))
def test_random_patterns_do_what_saxon_says(seed: int) -> None:
    draw = random.Random(100 + seed)
    for _ in range(60):
        written = pattern(draw)
        # `beginning-after-something-optional`, `few-repeats-of-a-group`; no `^?` either.
        if re.search(r"[?*}]\^|[$^][?*+{]|\)([?*+]|\{\S+\})\?", written):
            continue
        text = called(written)
        assert answers(text) == by_saxon(text), text


@needs_saxon
@pytest.mark.parametrize(
    "call",
    [
        *(f"{name}($t, 'A'{uri})" for name in ("contains", "starts-with", "ends-with")
          for uri in ("", f", '{COLLATIONS}codepoint'", f", {CASE_BLIND}")),
        *(f"contains('xABCx', $t, {CASE_BLIND})", f"ends-with($t, $t, {CASE_BLIND})"),
        *("compare($t, 'abc')", f"compare($t, 'Abc', {CASE_BLIND})"),
        f"compare('\u00e9', $t, {CASE_BLIND})",
        *(f"substring-{side}($t, '{mark}', {CASE_BLIND})"
          for side in ("before", "after") for mark in ("B", "\u00df", "\u0130S", "T", "")),
        *(f"substring-{side}('x\u0130ABC', $t, {CASE_BLIND})" for side in ("before", "after")),
        *("compare($t, '\U00010000')", "compare('\ufffd', '\U00010000')", "compare((), $t)"),
        *("lower-case($t)", "upper-case($t)", "string-join(($t, 'x', $t))", "string-join((), 'x')"),
        *("tokenize($t)", "tokenize((), 'a')", "replace((), 'a', 'b')", "matches((), 'a')"),
        *("replace($t, '(a)(b)', '$2$1')", "replace($t, 'a', '\\$\\\\')"),
        "replace($t, '(a)b', '$10$2')",
        *("matches($t, '')", "matches($t, '^')", "replace($t, '\\.', '$0', 'q')"),
        "ends-with($t, 'e')",
        *("replace($t, 'a(b)?', '[$1]')", "tokenize($t, 'A', 'i')", "matches($t, '^one$', 'm')"),
    ],
)  # fmt: skip
def test_functions_of_text_do_what_they_do_in_saxon(call: str) -> None:
    text = f"<r>{{for $v in //v let $t := $v/@t return <v>{{{call}}}</v>}}</r>"
    assert answers(text) == by_saxon(text), text


REFUSED = (
    *(("matches(//a, '(a')", "FORX0002"), ("matches(//a, 'a**')", "FORX0002")),
    *(("matches(//a, '[b-a]')", "FORX0002"), ("matches(//a, '[]')", "FORX0002")),
    *(("matches(//a, '\\z')", "FORX0002"), ("matches(//a, 'a{2,1}')", "FORX0002")),
    *(("matches(//a, '(?i)a')", "FORX0002"), ("matches(//a, '(?=a)')", "FORX0002")),
    *(("matches(//a, '}')", "FORX0002"), ("matches(//a, '\\p{Xx}')", "FORX0002")),
    *(("matches(//a, 'a', 'g')", "FORX0001"), ("replace(//a, 'a*', '')", "FORX0003")),
    *(("tokenize(//a, '^')", "FORX0003"), ("replace(//a, 'a', '$')", "FORX0004")),
    *(("replace(//a, 'a', '\\n')", "FORX0004"), ("matches(//a, '(a)\\1')", "query.unsupported")),
    ("matches(//a, '\\p{IsGreek}')", "query.unsupported"),
    ("matches(//a, //b)", "query.unsupported"),
    (f"contains(//a, 'b', '{COLLATIONS}x')", "FOCH0002"),
    ("contains(//a, 'b', //c)", "query.unsupported"),
)  # fmt: skip


@pytest.mark.parametrize(("call", "code"), REFUSED)
def test_what_is_no_pattern_is_refused_alike(call: str, code: str) -> None:
    text = f"for $a in //a where {call} = 'x' return $a"
    said = []
    for compiler in (compile_subscription, parse_by_papers):
        with pytest.raises(QuerySyntaxError) as refused:
            compiler(text)
        said.append((refused.value.code, str(refused.value)))
    assert said[0] == said[1]
    assert said[0][0] == code


@pytest.mark.parametrize(
    "written",
    [
        *("a" * 2000, "(a{100}){100}", "((a{20}){20}){20}", "(" * 40 + "a" + ")" * 40),
        *("a{5000}", "(\\p{L}{1,60}){60}", "[a-z]{4000}[a-z]{4000}"),
    ],
)
def test_hostile_patterns_are_refused_at_registration(written: str) -> None:
    with pytest.raises(QuerySyntaxError) as refused:
        compile_subscription(f"for $a in //a where matches($a, '{written}') return $a")
    assert refused.value.code == "query.unsupported"


def test_the_patterns_of_a_subscription_are_bounded_together() -> None:
    def call(place: int) -> str:
        return f"matches($a, '[a-z]{{{place + 1},400}}')"

    def registered(count: int) -> None:
        compile_subscription(
            f"for $a in //a where {' or '.join(map(call, range(count)))} return $a"
        )

    registered(10)
    with pytest.raises(QuerySyntaxError, match="repetitions or classes"):
        registered(200)


def test_what_is_refused_is_shown_as_it_is_written() -> None:
    for call, shown in (
        ("matches(//a, '\\d\\z')", "FORX0002: '\\d\\z' is no"),
        ("tokenize(//a, '')", "FORX0003: '' matches the empty text"),
        ("contains(//a, 'b', 'x')", "html-ascii-case-insensitive"),
    ):
        with pytest.raises(QuerySyntaxError) as refused:
            compile_subscription(f"for $a in //a where {call} = 'x' return $a")
        assert shown in str(refused.value)


@pytest.mark.parametrize("written", ["(a|aa)+$", "(a*)*b", "(.*a){30}y", "(x+x+)+y"])
def test_patterns_take_time_in_proportion_to_the_text(written: str) -> None:
    registry = Registry(limits=GENEROUS)
    text = f"for $a in //a where matches($a, '{written}') return $a"
    assert not registry.add([Subscription("s", "u", text)]).rejected
    content = "a" * 50_000 + "!" + "x" * 50_000
    assert not list(registry.deliver(f"<a>{content}</a>"))
    # Papers go back, and would not come to an end.
    assert read_pattern("(a|aa)+$", "").is_match("aaa")


NEAR = ("(a|aa)+$", "(a*)*b", "(.*a){30}y", "(a+a+)+y", "([a-z]+)*1", "(a?){60}a{60}y")
"""Patterns that nearly match a text of one letter, in many ways."""


def asks(pattern: str, text: str = "$v") -> str:
    return f"for $v in //v where matches({text}, '{pattern}') return string-length($v)"


@pytest.mark.parametrize("written", NEAR)
def test_near_matches_take_steps_in_proportion_to_the_text(written: str) -> None:
    def least(letters: int) -> int:
        """The steps that a program takes which looks for the pattern itself."""
        message = f"<m><v>{'a' * letters}!</v></m>"

        def is_enough(steps: int) -> bool:
            registry = Registry(limits=Limits(evaluation_steps_max=steps))
            assert not registry.add(
                [Subscription("s", "u", asks(written, "concat($v, '!')"))]
            ).rejected
            return not registry.deliver([message]).verdicts.to_pylist()

        return bisect.bisect_left(range(1, 1 << 17), True, key=is_enough)

    once = least(20_000)
    assert 20_000 // 64 < once < 20_000
    assert 1.9 < least(40_000) / once < 2.1


def test_near_matches_leave_other_subscriptions_alone() -> None:
    value = "a" * 200_000
    message = f"<m><v>{value}!</v><w>error 27 n</w></m>"
    others = {
        "indexed": "//w[matches(., 'error [0-9]+')]",
        "word": "//*[self::w][contains(., '27')]",
        "program": "for $w in //w where matches(concat($w, ''), 'r 27 ?n') return $w/..",
        "none": "//w[matches(., 'error [a-z]+')]",
    }
    wanted = {"indexed", "word", "program"}
    # In the index, each with an end of its own; and in programs.
    near = {
        f"near {at} {end}": asks(f"{each}{end}") for at, each in enumerate(NEAR) for end in "zZ"
    }
    near |= {f"own {at}": asks(each, "concat($v, '!')") for at, each in enumerate(NEAR)}
    for limits, spent in ((Limits(), set()), (Limits(evaluation_steps_max=2_000), {*near})):
        registry = Registry(limits=limits)
        rows = [Subscription(name, "u", text) for name, text in (others | near).items()]
        assert not registry.add(rows).rejected
        for _ in range(3):
            batch = registry.deliver([message])
            found = batch.table.column("subscription_id").to_pylist()
            assert sorted(found) == sorted(wanted)
            verdicts = batch.verdicts.to_pylist()
            assert {each["code"] for each in verdicts} <= {"limit.evaluation_steps"}
            over = {each["subscription_id"] for each in verdicts}
            assert over <= spent
            assert (over >= {name for name in near if name.startswith("own")}) == bool(spent)


def test_a_pattern_is_a_condition_of_the_gate() -> None:
    for written, flags, expected in (
        ("error", "", "[contains(@x,'error')]"),
        ("^error", "", "[starts-with(@x,'error')]"),
        ("^error \\d+", "", "[matches(@x,'^error \\d+')]"),
        ("a|b", "", "[contains(@x,('a','b'))]"),
        ("error", "i", "[matches(@x,'(?i)error')]"),
        # What is large is for the program; the gate knows texts that each match has.
        ("disk.*fulls?.{70}", "", "[contains(@x,'disk')]"),
        ("^(a|b)x{2}yz+.{70}", "", "[contains(@x,('axxyz','bxxyz'))]"),
        ("disks?.{70}", "i", "[contains(upper-case(@x),('DISK','DIS\u212a'))]"),
        ("\\d{70}", "", "[@x]"),
        ("\\d*", "", ""),
    ):
        compiled = compile_subscription(
            f"for $a in //a where matches($a/@x, '{written}', '{flags}') return $a"
        )
        assert list(compiled.alternatives) == [f"//a{expected}"], written
    with pytest.raises(PatternError):
        read_pattern("(", "")
