"""Which subscriptions are of the paper's class, and what they are in it.

If these fail, plans are shared that must not be, or a subscription of the class is run on its own.
"""

from __future__ import annotations

import random

import pytest

from generators import VOCABULARIES, FlwrWidth, random_flwr
from pathcast.query.normal import Operator
from pathcast.query.syntax import ConstructedName, ElementConstructor, NameTest
from pathcast.query.xquery import PaperStep, Target, paper_form, parse
from pathcast.query.xquery.paper import PaperCondition, PaperQuery, PaperReturn

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


def steps(*names: str) -> tuple[PaperStep, ...]:
    """Steps; a name that begins with `//` is anywhere below."""
    return tuple(
        PaperStep(name.startswith("//"), NameTest("", name.removeprefix("//"))) for name in names
    )


def form(text: str) -> PaperQuery:
    found = paper_form(parse(text, NAMESPACES))
    assert found is not None
    return found


@pytest.mark.parametrize("text", INSIDE)
def test_inside(text: str) -> None:
    assert paper_form(parse(text, NAMESPACES)) is not None


@pytest.mark.parametrize("text", OUTSIDE)
def test_outside(text: str) -> None:
    assert paper_form(parse(text, NAMESPACES)) is None


def test_query_1() -> None:
    found = form(QUERY_1)
    assert found.binding == steps("//section")
    assert found.predicates == (
        PaperCondition(
            steps("//figure", "title"), Target.ELEMENT, None, Operator.EQ, "XML processing"
        ),
    )
    assert found.returns == (
        PaperReturn(steps("title"), Target.ELEMENT, None),
        PaperReturn(steps("//figure"), Target.ELEMENT, None),
    )
    assert isinstance(found.template, ElementConstructor)
    assert found.template.name == ConstructedName("", "", "section")
    assert found.outer is not None
    assert found.outer.name == ConstructedName("", "", "sections")
    assert found.variable == "s"


def test_conditions_have_the_path_on_the_left() -> None:
    conditions = form(
        "for $a in //a where $a/@id <= 2 and 5 > $a/b and 'x' = $a//c/text() and -1 != $a return $a"
    ).predicates
    assert conditions == (
        PaperCondition((), Target.ATTRIBUTE, NameTest("", "id"), Operator.LE, 2.0),
        PaperCondition(steps("b"), Target.ELEMENT, None, Operator.LT, 5.0),
        PaperCondition(steps("//c"), Target.TEXT, None, Operator.EQ, "x"),
        PaperCondition((), Target.ELEMENT, None, Operator.NE, -1.0),
    )


def test_predicates_stay_with_their_steps() -> None:
    binding = form("for $a in /a[@x = 1][b]/*[. = 'y' and c/d] return $a").binding
    assert [len(step.conditions) for step in binding] == [2, 2]
    assert binding[0].conditions[1] == PaperCondition(steps("b"), Target.ELEMENT, None, None, None)
    assert binding[1].name == NameTest(None, None)
    assert binding[1].conditions[0] == PaperCondition((), Target.ELEMENT, None, Operator.EQ, "y")


def test_returns_are_numbered_as_they_stand_attributes_first() -> None:
    found = form(
        "for $a in //a return <r><s t='{$a/@one}'>{$a/two}</s>{$a//three/text(), $a, $a/@five}</r>"
    )
    assert found.returns == (
        PaperReturn((), Target.ATTRIBUTE, NameTest("", "one")),
        PaperReturn(steps("two"), Target.ELEMENT, None),
        PaperReturn(steps("//three"), Target.TEXT, None),
        PaperReturn((), Target.ELEMENT, None),
        PaperReturn((), Target.ATTRIBUTE, NameTest("", "five")),
    )


def test_generated_queries_of_the_class_are_in_it() -> None:
    rng = random.Random(3)
    for number in range(150):
        vocabulary = list(VOCABULARIES.values())[number % len(VOCABULARIES)]
        generated = random_flwr(rng, vocabulary, FlwrWidth.PAPER)
        found = paper_form(parse(generated.text, generated.namespaces))
        assert found is not None, generated.text
