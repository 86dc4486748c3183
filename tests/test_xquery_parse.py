"""XQuery becomes a syntax tree that says each thing in one way.

If these fail, good XQuery is called broken, or the interpreters run something other than what was
written.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import pathcast.query.xquery
from pathcast.query.syntax import (
    AttributeConstructor,
    Axis,
    BinaryExpr,
    BinaryOperator,
    ConstructedName,
    ContextItem,
    ElementConstructor,
    Enclosed,
    Expr,
    FilterExpr,
    Flwor,
    For,
    FunctionCall,
    KindTest,
    Let,
    Literal,
    LocationPath,
    NameTest,
    NodeKind,
    Number,
    NumberKind,
    OrderKey,
    PathExpr,
    Program,
    Quantified,
    Sequence,
    Step,
    Text,
    UnaryExpr,
    VariableReference,
)
from pathcast.query.xquery import parse
from xquery_cases import ACCEPTED, NAMESPACES

DOUBLE_SLASH = Step(Axis.DESCENDANT_OR_SELF, KindTest(NodeKind.NODE))


def child(name: str, *predicates: Expr) -> Step:
    return Step(Axis.CHILD, NameTest("", name), predicates)


def body(text: str) -> Expr:
    return parse(text, NAMESPACES).body


def descendants(name: str) -> LocationPath:
    return LocationPath(True, (DOUBLE_SLASH, child(name)))


def string(value: str) -> Literal:
    return Literal(value)


def integer(value: int) -> Number:
    return Number(value, NumberKind.INTEGER)


def binary(operator: BinaryOperator, *operands: Expr) -> BinaryExpr:
    return BinaryExpr((operator,) * (len(operands) - 1), operands)


def test_docstrings() -> None:
    attempted = 0
    package = pathcast.query.xquery
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        result = doctest.testmod(importlib.import_module(module.name))
        assert result.failed == 0, module.name
        attempted += result.attempted
    assert attempted >= 15


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    assert isinstance(parse(text, NAMESPACES), Program)


class TestClauses:
    def test_every_clause_of_a_flwor(self) -> None:
        text = (
            "for $a at $i in //a, $b in $a/b let $c := $b where $c stable order by $i descending, "
            "$c empty greatest return $c"
        )
        a, b = VariableReference("a"), VariableReference("b")
        assert body(text) == Flwor(
            (
                For("a", "i", descendants("a")),
                For("b", None, PathExpr(a, (child("b"),))),
                Let("c", b),
            ),
            VariableReference("c"),
            (
                OrderKey(VariableReference("i"), True, False),
                OrderKey(VariableReference("c"), False, True),
            ),
            VariableReference("c"),
        )

    def test_quantifiers_bind_in_order(self) -> None:
        assert body("some $a in //a, $b in $a/b satisfies $b") == Quantified(
            False,
            (
                For("a", None, descendants("a")),
                For("b", None, PathExpr(VariableReference("a"), (child("b"),))),
            ),
            VariableReference("b"),
        )

    def test_the_innermost_binding_is_meant_and_the_message_can_be_shadowed(self) -> None:
        assert body("$msg/a, 1") == Sequence((LocationPath(True, (child("a"),)), integer(1)))
        assert body("let $msg := 1 return ($msg, //a)") == Flwor(
            (Let("msg", integer(1)),),
            None,
            (),
            Sequence((VariableReference("msg"), descendants("a"))),
        )

    def test_variables_have_namespaces(self) -> None:
        assert body("let $p:x := //a return $p:x") == Flwor(
            (Let("Q{urn:p}x", descendants("a")),), None, (), VariableReference("Q{urn:p}x")
        )


class TestOperators:
    def test_precedence(self) -> None:
        one, two, a, b = integer(1), integer(2), descendants("a"), descendants("b")
        product = binary(BinaryOperator.MULTIPLY, two, UnaryExpr(1, a))
        assert body("1 + 2 * -//a or 1 = 2 and //a | //b") == binary(
            BinaryOperator.OR,
            binary(BinaryOperator.PLUS, one, product),
            binary(
                BinaryOperator.AND,
                binary(BinaryOperator.EQ, one, two),
                binary(BinaryOperator.UNION, a, b),
            ),
        )

    def test_left_to_right(self) -> None:
        minus, one = BinaryOperator.MINUS, integer(1)
        expected = binary(minus, binary(minus, one, integer(2)), integer(3))
        assert body("(1 - 2 - 3, //a)") == Sequence((expected, descendants("a")))

    def test_plus_makes_a_number_as_two_minuses_do(self) -> None:
        a = descendants("a")
        assert body("+//a") == body("--//a") == UnaryExpr(1, UnaryExpr(1, a))
        assert body("-+-  -//a") == UnaryExpr(1, a)

    def test_runs_of_and_or_and_union_are_flat(self) -> None:
        a, b, c = (descendants(name) for name in "abc")
        assert body("//a and (//b and //c)") == binary(BinaryOperator.AND, a, b, c)
        assert body("(//a or //b) or //c") == binary(BinaryOperator.OR, a, b, c)
        assert body("//a | (//b union //c)") == binary(BinaryOperator.UNION, a, b, c)

    def test_value_comparisons_are_marked(self) -> None:
        assert body("//a le 'x'") == binary(BinaryOperator.VALUE_LE, descendants("a"), string("x"))


class TestPaths:
    @pytest.mark.parametrize(
        "text",
        [
            "/a",
            "a",
            "$msg/a",
            "doc('x')/a",
            "fn:doc('y')/a",
            "document('z')/child::a",
            "./a",
            "(/)/a",
        ],
    )
    def test_ways_to_say_the_message(self, text: str) -> None:
        assert body(text) == LocationPath(True, (child("a"),))

    def test_the_context_item_is_that_of_the_predicate(self) -> None:
        context = LocationPath(False, (child("b"),))
        assert body("//a[b]") == LocationPath(True, (DOUBLE_SLASH, child("a", context)))
        assert body("//a[./b]") == body("//a[b]")
        assert body("//a[/b]") == LocationPath(
            True, (DOUBLE_SLASH, child("a", LocationPath(True, (child("b"),))))
        )
        assert body("//a[.]") == LocationPath(True, (DOUBLE_SLASH, child("a", ContextItem())))
        inner = body("//a[for $x in b return c]")
        assert isinstance(inner, LocationPath)
        flwor = inner.steps[-1].predicates[0]
        assert isinstance(flwor, Flwor)
        assert flwor.body == LocationPath(False, (child("c"),))

    def test_parentheses_leave_no_node_and_paths_are_one(self) -> None:
        assert body("(//a)/b") == body("//a/b")
        assert body("(//a)[1]/b") == PathExpr(
            FilterExpr(descendants("a"), (integer(1),)), (child("b"),)
        )
        assert body("(//a, (1, (), (2, 3)))") == Sequence(
            (descendants("a"), integer(1), integer(2), integer(3))
        )

    def test_functions_of_the_context_item_have_it_as_argument(self) -> None:
        assert body("//a[string() = 'x']") == body("//a[string(.) = 'x']")
        assert body("(name(), //a)") == body("(name(/), //a)")
        assert body("(position(), last(), //a)") == Sequence(
            (integer(1), integer(1), descendants("a"))
        )
        last = body("//a[last()]")
        assert isinstance(last, LocationPath)
        assert last.steps[-1].predicates == (FunctionCall("last", ()),)

    def test_kind_tests(self) -> None:
        assert body("//element(a)") == body("//a")
        assert body("//attribute(a)") == body("//@a")
        assert body("//a/attribute()") == LocationPath(
            True,
            (DOUBLE_SLASH, child("a"), Step(Axis.ATTRIBUTE, KindTest(NodeKind.ATTRIBUTE))),
        )

    def test_names_are_resolved_and_attributes_have_no_default(self) -> None:
        text = 'declare default element namespace "urn:d"; //a/@b, //p:c, //*:d, //p:*, //Q{}e'
        found = body(text)
        assert isinstance(found, Sequence)
        tests = [path.steps[-1].test for path in found.items if isinstance(path, LocationPath)]
        assert tests == [
            NameTest("", "b"),
            NameTest("urn:p", "c"),
            NameTest(None, "d"),
            NameTest("urn:p", None),
            NameTest("", "e"),
        ]

    def test_constructors_declare_names_for_what_is_in_them(self) -> None:
        found = body("<a xmlns='urn:x' b='{//c}'>{//d}</a>")
        assert isinstance(found, ElementConstructor)
        assert found.name == ConstructedName("", "urn:x", "a")
        assert found.namespaces == (("", "urn:x"),)
        assert found.attributes[0].name == ConstructedName("", "", "b")
        for part in (found.attributes[0].parts[0], found.content[0]):
            assert isinstance(part, Enclosed)
            assert isinstance(part.expr, LocationPath)
            test = part.expr.steps[-1].test
            assert isinstance(test, NameTest)
            assert test.uri == "urn:x"
        after = body("<a xmlns='urn:x'/>, //b")
        assert isinstance(after, Sequence)
        assert after.items[1] == descendants("b")


class TestLiterals:
    @pytest.mark.parametrize(
        ("text", "value", "kind"),
        [
            ("1", 1, NumberKind.INTEGER),
            ("007", 7, NumberKind.INTEGER),
            ("123456789012345678", 123456789012345678, NumberKind.INTEGER),
            ("1.0", 1.0, NumberKind.DECIMAL),
            (".5", 0.5, NumberKind.DECIMAL),
            ("5.", 5.0, NumberKind.DECIMAL),
            ("1e3", 1000.0, NumberKind.DOUBLE),
            (".5E-1", 0.05, NumberKind.DOUBLE),
            ("'it''s'", "it's", None),
            ('"a""b"', 'a"b', None),
            ("'&lt;&#65;&#x42;&amp;'", "<AB&", None),
            ("'a\r\nb\rc'", "a\nb\nc", None),
            ("'&#13;'", "\r", None),
        ],
    )
    def test_value_and_kind(self, text: str, value: str | float, kind: NumberKind | None) -> None:
        found = body(f"{text}, //a")
        assert isinstance(found, Sequence)
        item = found.items[0]
        assert isinstance(item, Literal | Number)
        assert getattr(item, "kind", None) is kind
        assert (item.value, type(item.value)) == (value, type(value))


class TestConstructors:
    def content(self, text: str) -> list[object]:
        element = body(f"<e>{text}{{//x}}</e>")
        assert isinstance(element, ElementConstructor)
        return [
            part.value if isinstance(part, Text) else type(part).__name__
            for part in element.content[:-1]
        ]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a", ["a"]),
            (" a ", [" a "]),
            (" \n\t", []),
            (" {1} <b/> ", ["Enclosed", "ElementConstructor"]),
            (" &#32;", ["  "]),
            (" &#32;{1}", ["  ", "Enclosed"]),
            ("<![CDATA[ ]]>", [" "]),
            (" <![CDATA[]]> ", ["  "]),
            ("<![CDATA[]]>", []),
            ("{{ }}", ["{ }"]),
            ("a&lt;<![CDATA[&lt;{}]]>b", ["a<&lt;{}b"]),
            ("a\r\nb", ["a\nb"]),
            ("]]>", ["]]>"]),
            ("<!---->", None),
        ],
    )
    def test_text_and_boundary_space(self, text: str, expected: list[object] | None) -> None:
        if expected is None:
            with pytest.raises(ValueError, match="comment constructor"):
                self.content(text)
        else:
            assert self.content(text) == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("''", ()),
            ("'a'", (Text("a"),)),
            ("'it''s \"x\"'", (Text('it\'s "x"'),)),
            ('"say ""x"""', (Text('say "x"'),)),
            ("'a\tb\nc\r\nd&#9;&#10;'", (Text("a b c d\t\n"),)),
            ("'{1}{{2}}{3}'", (Enclosed(integer(1)), Text("{2}"), Enclosed(integer(3)))),
            ("'{\"}\"}'", (Enclosed(string("}")),)),
            ("' {1} '", (Text(" "), Enclosed(integer(1)), Text(" "))),
        ],
    )
    def test_attribute_values(self, text: str, expected: tuple[Text | Enclosed, ...]) -> None:
        element = body(f"<e a={text}>{{//x}}</e>")
        assert isinstance(element, ElementConstructor)
        assert element.attributes == (AttributeConstructor(ConstructedName("", "", "a"), expected),)

    def test_prefixes_of_constructed_names_are_kept(self) -> None:
        element = body("<p:a p:b='' xml:lang='x'>{//c}</p:a>")
        assert isinstance(element, ElementConstructor)
        assert element.name == ConstructedName("p", "urn:p", "a")
        xml = "http://www.w3.org/XML/1998/namespace"
        names = [attribute.name for attribute in element.attributes]
        assert names == [ConstructedName("p", "urn:p", "b"), ConstructedName("xml", xml, "lang")]

    def test_nested_constructors_and_enclosed_ones_differ(self) -> None:
        inner = ElementConstructor(ConstructedName("", "", "b"), (), (), ())
        element = body("<a><b/>{<b/>}{//c}</a>")
        assert isinstance(element, ElementConstructor)
        assert element.content[:2] == (inner, Enclosed(inner))


def test_offsets_point_into_the_text_and_do_not_count_in_comparisons() -> None:
    text = "<r>{for $a in //a\nwhere $a/b = 1 return $a}</r>"
    found = body(text)
    assert isinstance(found, ElementConstructor)
    enclosed = found.content[0]
    assert isinstance(enclosed, Enclosed)
    assert isinstance(enclosed.expr, Flwor)
    assert text[enclosed.expr.offset :].startswith("for $a")
    assert enclosed.expr.where is not None
    assert text[enclosed.expr.where.offset :].startswith("$a/b = 1")
    assert body(text.replace("\n", "  ")) == found
