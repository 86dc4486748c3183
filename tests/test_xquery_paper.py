"""Which subscriptions are of the paper's class, and what they are in it.

If these fail, plans are shared that must not be, or a subscription of the class is run on its own.
"""

from __future__ import annotations

import random

import pytest

from generators import VOCABULARIES, FlwrWidth, random_flwr
from pathcast.query.syntax import NameTest
from pathcast.query.xquery import BindingStep, binding_of, parse

NAMESPACES = {"p": "urn:p"}

# Query 1 of Diao and Franklin, section 2.1.
QUERY_1 = """<sections> { for $s in document("doc.xml")//section
  where $s//figure/title = "XML processing"
  return <section> { $s/title } { $s//figure } </section> } </sections>"""

INSIDE = (
    "for $a in //a return $a",
    "for $a in /a/b//c return <x/>",
    "for $a in $msg//p:a/*//*:b return $a",
    "for $a in /descendant::a/child::b return $a/descendant::c",
    "for $a in //a return ($a/b, $a//c)",
    "for $a in //a return <x y='{$a/@z}-{$a}'>{$a/b/text(), $a/@c}<z>{$a//d}</z>text</x>",
    "<r>text<h k='v'/>{for $a in //a return $a}</r>",
    "<r><h>{for $a in //a return $a}</h></r>",
    "for $a in //a where $a/b and $a/@c and $a/text() return $a",
    "for $a in //a where $a = 1 and -2.5 < $a/b and 'x' != $a/@c return $a",
    "for $a in //a where $a/b <= 'x' return $a",
    "for $a in //a[b]/c[@d = 1 and e//f != 'x'][. > 2] return $a",
    "for $a in //a where $a/element()/b/text() = 'x' return $a",
)

OUTSIDE = (
    "//a, //b",
    "<r>{//a}</r>",
    "<r>{count(for $a in //a return $a)}</r>",
    "<r>{for $a in //a return $a}{//b}</r>",
    "<r>{for $a in //a return $a}{for $a in //a return $a}</r>",
    "<r k='{//b}'>{for $a in //a return $a}</r>",
    "<r>{for $a in //a return $a, 1}</r>",
    "for $a in //a return $a, 1",
    "for $a at $i in //a return $a",
    "for $a in //a, $b in $a/b return $b",
    "for $a in //a let $b := $a/b return $b",
    "for $a in //a order by $a return $a",
    "for $a in //a[1] return $a",
    "for $a in //a[last()] return $a",
    "for $a in //a[not(b)] return $a",
    "for $a in //a[b or c] return $a",
    "for $a in //a[b[c]] return $a",
    "for $a in //a[b = c] return $a",
    "for $a in //a/@b return $a",
    "for $a in //a/text() return $a",
    "for $a in //a/.. return $a",
    "for $a in //a/. return $a",
    "for $a in //node() return $a",
    "for $a in (//a, //b) return $a",
    "for $a in //a | //b return $a",
    "for $a in (//a)[b] return $a",
    "for $a in (/) return $a",
    "for $a in //a where $a return $a",
    "for $a in //a where $a/b = $a/c return $a",
    "for $a in //a where $a/b eq 'x' return $a",
    "for $a in //a where $a//@b = 'x' return $a",
    "for $a in //a where $a/b[1] = 'x' return $a",
    "for $a in //a where $a/b = ('x', 1) return $a",
    "for $a in //a where $a/b != ('x', 'y') return $a",
    "for $a in //a where /b = 'x' return $a",
    "for $a in //a where count($a/b) > 1 return $a",
    "for $a in //a where $a/b = 'x' or $a/c return $a",
    "for $a in //a return $a/b[c]",
    "for $a in //a return count($a)",
    "for $a in //a return <b>{1, $a}</b>",
    "for $a in //a return /b",
    "for $a in //a return $a/..",
    "for $a in //a return $a/comment()",
    "for $a in //a return for $b in $a/b return $b",
)


@pytest.mark.parametrize("text", INSIDE)
def test_inside(text: str) -> None:
    assert binding_of(parse(text, NAMESPACES)) is not None


@pytest.mark.parametrize("text", OUTSIDE)
def test_outside(text: str) -> None:
    assert binding_of(parse(text, NAMESPACES)) is None


def test_the_binding_path_is_that_of_the_for_clause() -> None:
    assert binding_of(parse(QUERY_1)) == (BindingStep(True, NameTest("", "section")),)
    found = binding_of(parse("for $a in /p:a//*/descendant::b return $a", NAMESPACES))
    assert found == (
        BindingStep(False, NameTest("urn:p", "a")),
        BindingStep(True, NameTest(None, None)),
        BindingStep(True, NameTest("", "b")),
    )


@pytest.mark.parametrize(
    ("predicates", "asks_attributes"),
    [
        ("", True),
        ("[@x]", True),
        ("[@x = 1][2 > @y and @z = ('a', 'b')]", True),
        ("[@x = 1][b]", False),
        ("[@x and . = 'y']", False),
        ("[c/@x]", False),
        ("[text() = 'x']", False),
    ],
)
def test_what_is_asked_of_a_step_are_attributes_or_more(
    predicates: str, asks_attributes: bool
) -> None:
    """If one were missed, an element that a profile looks at could be cut out on the way."""
    binding = binding_of(parse(f"for $a in /a{predicates}/b where $a/c = 1 return $a"))
    assert binding is not None
    assert [step.asks_attributes for step in binding] == [asks_attributes, True]


def test_generated_queries_of_the_class_are_in_it() -> None:
    rng = random.Random(3)
    for number in range(150):
        vocabulary = list(VOCABULARIES.values())[number % len(VOCABULARIES)]
        generated = random_flwr(rng, vocabulary, FlwrWidth.PAPER)
        found = binding_of(parse(generated.text, generated.namespaces))
        assert found is not None, generated.text
