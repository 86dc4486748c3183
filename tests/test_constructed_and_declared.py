"""Computed constructors, functions and variables of the prolog: kernel = papers = Saxon.

If these fail, a subscription that is written with `element` or `declare function` is delivered
something else than the one with tags, or than what the functions say.
"""

from __future__ import annotations

import bisect
import random

import pytest

from customised_cases import GENEROUS, Opinion, Skipped, by_broker, by_reference, by_saxon
from generators.constructed_text import (
    NAMESPACES,
    random_constructor,
    random_named,
    random_prolog,
)
from oracles import saxon_missing_reason
from pathcast.errors import QuerySyntaxError
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.query import compile_subscription
from pathcast.query.xquery import parse, text_of
from pathcast.registry import Registry
from pathcast_papers.language.xquery import parse as parse_by_papers

MESSAGES = (
    b"<m><b k='x'>1</b><b k='2'><c k='y'>t</c></b></m>",
    b"<m><c k='1'/><b/></m>",
    b"<m xmlns:p='urn:p'><b k=' x '/><c>u<b k='9'/></c></m>",
)
needs_saxon = pytest.mark.skipif(
    saxon_missing_reason() is not None, reason=str(saxon_missing_reason())
)


def answers(text: str) -> list[Opinion]:
    """What a subscription gives for each message; kernel and papers agree."""
    registry = Registry(limits=GENEROUS, namespaces=NAMESPACES)
    report = registry.add([Subscription("s", "u", text)])
    assert not report.rejected, (text, report.rejected)
    found = [said.get("s") for said in by_broker(registry, MESSAGES)]
    assert found == [by_reference(text, message, NAMESPACES) for message in MESSAGES], text
    return found


CONSTRUCTED = (
    "for $b in //b return element item {attribute k {$b/@k, 1}, attribute e {}, $b/c, 'x', 2}",
    "element r {//b}",
    "element {'r'} {attribute {'p:k'} {count(//b)}, element p:s {//c}, element t {}}",
    "<r>{element s {text {//b/@k}, text {'-'}, text {}, text {()}, 1, text {2}, 3}}</r>",
    "<p:r xmlns:p='urn:q'>{for $c in //c return element p:s {attribute p:k {$c}, $c/node()}}</p:r>",
    "element text {//text}, element element {//b}, (element attribute {//c})[1]",
    "<r>{count((element a {}, //b))}</r>",
    "let $e := element e {attribute n {count(//b)}} return ($e, $e[1])",
    "element r {element s {//b/@k}}",
    "element r {text {//b[1]}, //b[1]/@k}",
    "let $e := <e>{1, (let $f := <f>{//c}</f> return ($f, $f)), //b[1]}</e> return ($e, $e)",
)
DECLARED = (
    "declare function local:short($b as element()) { element s {string($b/@k)} }; "
    "<r>{for $b in $msg//b return local:short($b)}</r>",
    "declare variable $local:keys := ('x', '2'); $msg//b[@k = $local:keys]",
    "declare function local:a($x as xs:string?) as xs:string { upper-case($x) }; "
    "declare function local:a($x, $y) { local:a($x), local:a($y) }; "
    "<r>{for $b in $msg//b return local:a($b/@k, 'q')}</r>",
    "declare namespace q = 'urn:q'; declare variable $q:n as xs:integer := 2; "
    "declare function q:first($x as node()*) as node()* { $x[position() <= $q:n] }; "
    "<r>{$msg//b => q:first()}</r>",
    "declare function local:f($x) { for $y in $x return $y/@k }; "
    "declare function local:g($y, $x) { local:f($x), local:f($y) }; "
    "let $x := $msg//b, $y := $msg//c return <r>{local:g($x, $y)[2]}</r>",
    "declare function local:is-late($b as node(), $d as xs:integer) as xs:boolean "
    "{ $b/@k castable as xs:integer and xs:integer($b/@k) > $d }; $msg//b[local:is-late(., 1)]",
    "declare function local:f($x as xs:string*) { string-join($x, '|') }; "
    "<r>{local:f($msg//@k)}</r>",
    "declare function local:c() { 'c' }; <r>{local:c()}{$msg//c}</r>",
)


@needs_saxon
@pytest.mark.parametrize("text", [*CONSTRUCTED, *DECLARED])
def test_results_are_those_of_saxon(text: str) -> None:
    found = answers(text)
    assert any(found)
    for opinion, message in zip(found, MESSAGES, strict=True):
        if opinion is not None:
            assert opinion == by_saxon(text, message, NAMESPACES), text


@pytest.mark.parametrize("seed", range(3))
def test_a_computed_constructor_is_the_one_with_tags(seed: int) -> None:
    """Trees are equal, of kernel and papers, so that plans are shared."""
    draw = random.Random(f"computed {seed}")
    for _ in range(100):
        tags, computed = random_constructor(draw)
        tags, computed = f"({tags}, //b)", f"({computed}, //b)"
        assert parse(computed, NAMESPACES) == parse(tags, NAMESPACES), computed
        by_papers = [parse_by_papers(each, NAMESPACES) for each in (computed, tags)]
        assert by_papers[0] == by_papers[1], computed
        answers(computed)


@needs_saxon
@pytest.mark.parametrize("seed", range(3))
def test_random_functions_do_what_saxon_says(seed: int) -> None:
    draw = random.Random(f"declared {seed}")
    compared = 0
    for _ in range(40):
        text = random_prolog(draw, "$msg//b")
        for opinion, message in zip(answers(text), MESSAGES, strict=True):
            saxons = by_saxon(text, message, NAMESPACES)
            if isinstance(saxons, tuple) and opinion is not None:
                assert opinion == saxons, text
                compared += 1
    assert compared > 40


@needs_saxon
@pytest.mark.parametrize("seed", range(3))
def test_random_names_are_those_of_saxon(seed: int) -> None:
    """The canonical text has the tree of the text, namespaces of names included."""
    draw = random.Random(f"named {seed}")
    built = failed = 0
    for _ in range(60):
        text = f"for $m in $msg/m return {random_named(draw)}"
        written = text_of(parse(text, NAMESPACES))
        assert text_of(parse(written)) == written, text
        for opinion, message in zip(answers(text), MESSAGES, strict=True):
            saxons = by_saxon(text, message, NAMESPACES)
            if isinstance(saxons, Skipped):
                continue
            # A constructor with several errors may name any of them.
            if isinstance(opinion, str) and isinstance(saxons, str):
                failed += 1
            else:
                assert opinion == saxons, text
                built += 1
    assert built > 60
    assert failed > 20


@needs_saxon
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("for $a in /a return element {$a/@none} {}", "XQDY0074"),
        ("for $a in /a return element {count($a)} {}", "XQDY0074"),
        ("for $a in /a return element {concat(name($a), ' b')} {}", "XQDY0074"),
        ("for $a in /a return element {concat('q:', name($a))} {}", "XQDY0074"),
        ("for $a in /a return element {concat('xmlns:', name($a))} {}", "XQDY0096"),
        ("for $a in /a return element r {attribute {concat('xml', 'ns')} {$a}}", "XQDY0044"),
        ("for $a in /a return element r {attribute {concat('xmlns:', name($a))} {}}", "XQDY0044"),
        ("for $a in /a return element r {attribute {name($a)} {}, attribute a {}}", "XQDY0025"),
        ("for $a in /a return element r {attribute {name($a)} {}, $a/@a}", "XQDY0025"),
    ],
)
def test_a_name_that_is_none_is_a_verdict(text: str, code: str) -> None:
    message = b"<a a='1'/>"
    registry = Registry(limits=GENEROUS)
    registry.add([Subscription("s", "u", text)])
    assert by_broker(registry, [message]) == [{"s": code}]
    assert by_reference(text, message, {}) == code
    saxons = by_saxon(text, message, {})
    # What is no string at all is an error of types there.
    assert saxons in (code, Skipped("one-item"))


@pytest.mark.parametrize("name", ["a b", "", "1", "a:", "a::b", " ", "a&#32;b", "x" * 100 + "!"])
def test_a_string_that_is_no_name_is_refused_at_registration(name: str) -> None:
    for text, place in (
        (f"for $a in /a return element {{'{name}'}} {{$a}}", 29),
        (f"<r>{{element r {{attribute {{ '{name}'}} {{//a}}}}}}</r>", 27),
    ):
        said = []
        for read in (parse, parse_by_papers):
            with pytest.raises(QuerySyntaxError) as refused:
                read(text)
            said.append((refused.value.code, refused.value.params["offset"], str(refused.value)))
        assert said[0] == said[1]
        assert said[0][:2] == ("FORG0001", place)
        assert "is no name of an element or attribute" in said[0][2]
    assert parse("element {' a\n'} {//b}") == parse("<a>{//b}</a>")


def test_what_a_computed_name_stands_around_is_evaluated_once() -> None:
    content = "{for $b in //b return count(//b[. = $b])}"
    message = b"<m>" + b"".join(b"<b>%d</b>" % number for number in range(60)) + b"</m>"

    def least(text: str) -> int:
        """The steps that a subscription takes."""

        def is_enough(steps: int) -> bool:
            registry = Registry(limits=Limits(evaluation_steps_max=steps))
            assert not registry.add([Subscription("s", "u", text)]).rejected
            return not registry.deliver([message]).verdicts.to_pylist()

        return bisect.bisect_left(range(1, 1 << 16), True, key=is_enough)

    constant = least(f"<m>{content}</m>")
    assert constant < least(f"element {{name(/*)}} {content}") < constant * 1.05


def test_a_name_in_the_frame_does_not_decide_on_delivery() -> None:
    found = answers("element {//c/@k} {//b[@k = 'x'], //c/b}")
    assert found[1] is None
    assert found[2] == "XQDY0074"
    assert found[0] == (b'<y><b k="x">1</b></y>',)


def test_a_mistaken_name_in_the_frame_takes_no_more_steps_than_there_are() -> None:
    asked = "for $b in //b where count(//b[. = $b]) > 1 return $b"
    text = f"<m>{{{asked}}}{{element {{name(/*) || ' b'}} {{//none}}}}</m>"
    message = b"<m>" + b"".join(b"<b>%d</b>" % number for number in range(60)) + b"</m>"

    def run(steps_max: int) -> tuple[int, list[str]]:
        registry = Registry(limits=Limits(evaluation_steps_max=steps_max))
        assert not registry.add([Subscription("s", "u", text)]).rejected
        found = registry.deliver([message], ["m"])
        return found.stats.steps, [each["code"] for each in found.verdicts.to_pylist()]

    taken, codes = run(1 << 20)
    # There is no result, which is looked for anew after the mistake.
    assert codes == []
    bound = taken * 3 // 4
    steps, codes = run(bound)
    assert codes == ["limit.evaluation_steps"]
    assert steps <= bound * 1.05


def test_a_long_name_counts_as_result_and_as_steps() -> None:
    text = "for $a in //a return element {$a/@k} {}"
    message = b"<m>" + b"<a k='%s'/>" % (b"n" * 4000) * 20 + b"</m>"
    for limits, code in (
        (Limits(result_bytes_max=70_000, result_ratio_max=1000), "limit.result_bytes"),
        (Limits(evaluation_steps_max=1000), "limit.evaluation_steps"),
    ):
        registry = Registry(limits=limits)
        registry.add([Subscription("s", "u", text)])
        verdicts = registry.deliver([message]).verdicts.to_pylist()
        assert [each["code"] for each in verdicts] == [code]


def test_the_canonical_text_has_neither() -> None:
    text = "declare function local:f($x) { element r {$x} }; for $b in //b return local:f($b/c)"
    written = text_of(parse(text))
    assert written == "for $v1 in //b return let $v2 := $v1/c return <r>{$v2}</r>"
    assert text_of(parse(written)) == written


def test_a_constant_list_is_a_list_in_the_gate() -> None:
    text = "declare variable $codes as xs:string* := ('A', 'B'); //a[@k = $codes]/b"
    assert compile_subscription(text).alternatives == ("//a[@k=('A','B')]/b",)


def test_growth_is_bounded() -> None:
    """Each function calls the one before twice: twenty of them would be a million calls."""
    functions = ["declare function local:f0($x) { $x };"]
    functions += [
        f"declare function local:f{n}($x) {{ local:f{n - 1}($x), local:f{n - 1}($x) }};"
        for n in range(1, 20)
    ]
    text = " ".join([*functions, "local:f19(//b)"])
    for read in (parse, parse_by_papers):
        with pytest.raises(QuerySyntaxError) as caught:
            read(text)
        assert caught.value.code == "query.too_large"
    # A function that nobody calls costs nothing.
    assert parse(text.replace("local:f19(//b)", "//b, 1")) == parse("//b, 1")
