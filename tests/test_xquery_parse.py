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
from pathcast.query.xquery import Program, parse
from pathcast.query.xquery.syntax import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Axis,
    Call,
    Comparator,
    Comparison,
    Context,
    ContextItem,
    Element,
    Enclosed,
    Expr,
    Filter,
    Flwor,
    For,
    KindTest,
    Let,
    Literal,
    LiteralKind,
    Name,
    NameTest,
    Negation,
    NodeKind,
    Or,
    OrderKey,
    Path,
    Quantified,
    Root,
    Sequence,
    Step,
    Text,
    Union,
    Variable,
)
from xquery_cases import ACCEPTED, NAMESPACES

DOUBLE_SLASH = Step(Axis.DESCENDANT_OR_SELF, KindTest(NodeKind.NODE))


def child(name: str, *predicates: Expr) -> Step:
    return Step(Axis.CHILD, NameTest("", name), predicates)


def body(text: str) -> Expr:
    return parse(text, NAMESPACES).body


def descendants(name: str) -> Path:
    return Path(Root(), (DOUBLE_SLASH, child(name)))


def string(value: str) -> Literal:
    return Literal(value, LiteralKind.STRING)


def integer(value: int) -> Literal:
    return Literal(value, LiteralKind.INTEGER)


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
        a, b = Variable("a"), Variable("b")
        assert body(text) == Flwor(
            (
                For("a", "i", descendants("a")),
                For("b", None, Path(a, (child("b"),))),
                Let("c", b),
            ),
            Variable("c"),
            (OrderKey(Variable("i"), True, False), OrderKey(Variable("c"), False, True)),
            Variable("c"),
        )

    def test_quantifiers_bind_in_order(self) -> None:
        assert body("some $a in //a, $b in $a/b satisfies $b") == Quantified(
            False,
            (For("a", None, descendants("a")), For("b", None, Path(Variable("a"), (child("b"),)))),
            Variable("b"),
        )

    def test_the_innermost_binding_is_meant_and_the_message_can_be_shadowed(self) -> None:
        assert body("$msg/a, 1") == Sequence((Path(Root(), (child("a"),)), integer(1)))
        assert body("let $msg := 1 return ($msg, //a)") == Flwor(
            (Let("msg", integer(1)),), None, (), Sequence((Variable("msg"), descendants("a")))
        )

    def test_variables_have_namespaces(self) -> None:
        assert body("let $p:x := //a return $p:x") == Flwor(
            (Let("Q{urn:p}x", descendants("a")),), None, (), Variable("Q{urn:p}x")
        )


class TestOperators:
    def test_precedence(self) -> None:
        one, two, a, b = integer(1), integer(2), descendants("a"), descendants("b")
        product = Arithmetic(ArithmeticOperator.MULTIPLY, two, Negation(a))
        assert body("1 + 2 * -//a or 1 = 2 and //a | //b") == Or(
            (
                Arithmetic(ArithmeticOperator.PLUS, one, product),
                And((Comparison(Comparator.EQ, False, one, two), Union((a, b)))),
            )
        )

    def test_left_to_right(self) -> None:
        minus, one = ArithmeticOperator.MINUS, integer(1)
        expected = Arithmetic(minus, Arithmetic(minus, one, integer(2)), integer(3))
        assert body("(1 - 2 - 3, //a)") == Sequence((expected, descendants("a")))

    def test_plus_makes_a_number_as_two_minuses_do(self) -> None:
        a = descendants("a")
        assert body("+//a") == body("--//a") == Negation(Negation(a))
        assert body("-+-  -//a") == Negation(a)

    def test_runs_of_and_or_and_union_are_flat(self) -> None:
        a, b, c = (descendants(name) for name in "abc")
        assert body("//a and (//b and //c)") == And((a, b, c))
        assert body("(//a or //b) or //c") == Or((a, b, c))
        assert body("//a | (//b union //c)") == Union((a, b, c))

    def test_value_comparisons_are_marked(self) -> None:
        assert body("//a le 'x'") == Comparison(Comparator.LE, True, descendants("a"), string("x"))


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
        assert body(text) == Path(Root(), (child("a"),))

    def test_the_context_item_is_that_of_the_predicate(self) -> None:
        context = Path(Context(), (child("b"),))
        assert body("//a[b]") == Path(Root(), (DOUBLE_SLASH, child("a", context)))
        assert body("//a[./b]") == body("//a[b]")
        assert body("//a[/b]") == Path(
            Root(), (DOUBLE_SLASH, child("a", Path(Root(), (child("b"),))))
        )
        assert body("//a[.]") == Path(Root(), (DOUBLE_SLASH, child("a", ContextItem())))
        inner = body("//a[for $x in b return c]")
        assert isinstance(inner, Path)
        flwor = inner.steps[-1].predicates[0]
        assert isinstance(flwor, Flwor)
        assert flwor.body == Path(Context(), (child("c"),))

    def test_parentheses_leave_no_node_and_paths_are_one(self) -> None:
        assert body("(//a)/b") == body("//a/b")
        assert body("(//a)[1]/b") == Path(Filter(descendants("a"), (integer(1),)), (child("b"),))
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
        assert isinstance(last, Path)
        assert last.steps[-1].predicates == (Call("last", ()),)

    def test_kind_tests(self) -> None:
        assert body("//element(a)") == body("//a")
        assert body("//attribute(a)") == body("//@a")
        assert body("//a/attribute()") == Path(
            Root(),
            (DOUBLE_SLASH, child("a"), Step(Axis.ATTRIBUTE, KindTest(NodeKind.ATTRIBUTE))),
        )

    def test_names_are_resolved_and_attributes_have_no_default(self) -> None:
        text = 'declare default element namespace "urn:d"; //a/@b, //p:c, //*:d, //p:*, //Q{}e'
        found = body(text)
        assert isinstance(found, Sequence)
        tests = [path.steps[-1].node_test for path in found.items if isinstance(path, Path)]
        assert tests == [
            NameTest("", "b"),
            NameTest("urn:p", "c"),
            NameTest(None, "d"),
            NameTest("urn:p", None),
            NameTest("", "e"),
        ]

    def test_constructors_declare_names_for_what_is_in_them(self) -> None:
        found = body("<a xmlns='urn:x' b='{//c}'>{//d}</a>")
        assert isinstance(found, Element)
        assert found.name == Name("", "urn:x", "a")
        assert found.namespaces == (("", "urn:x"),)
        assert found.attributes[0].name == Name("", "", "b")
        for part in (found.attributes[0].parts[0], found.content[0]):
            assert isinstance(part, Enclosed)
            assert isinstance(part.expr, Path)
            test = part.expr.steps[-1].node_test
            assert isinstance(test, NameTest)
            assert test.uri == "urn:x"
        after = body("<a xmlns='urn:x'/>, //b")
        assert isinstance(after, Sequence)
        assert after.items[1] == descendants("b")


class TestLiterals:
    @pytest.mark.parametrize(
        ("text", "value", "kind"),
        [
            ("1", 1, LiteralKind.INTEGER),
            ("007", 7, LiteralKind.INTEGER),
            ("123456789012345678", 123456789012345678, LiteralKind.INTEGER),
            ("1.0", 1.0, LiteralKind.DECIMAL),
            (".5", 0.5, LiteralKind.DECIMAL),
            ("5.", 5.0, LiteralKind.DECIMAL),
            ("1e3", 1000.0, LiteralKind.DOUBLE),
            (".5E-1", 0.05, LiteralKind.DOUBLE),
            ("'it''s'", "it's", LiteralKind.STRING),
            ('"a""b"', 'a"b', LiteralKind.STRING),
            ("'&lt;&#65;&#x42;&amp;'", "<AB&", LiteralKind.STRING),
            ("'a\r\nb\rc'", "a\nb\nc", LiteralKind.STRING),
            ("'&#13;'", "\r", LiteralKind.STRING),
        ],
    )
    def test_value_and_kind(self, text: str, value: str | float, kind: LiteralKind) -> None:
        found = body(f"{text}, //a")
        assert isinstance(found, Sequence)
        assert found.items[0] == Literal(value, kind)
        assert type(found.items[0].value) is type(value)


class TestConstructors:
    def content(self, text: str) -> list[object]:
        element = body(f"<e>{text}{{//x}}</e>")
        assert isinstance(element, Element)
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
            (" {1} <b/> ", ["Enclosed", "Element"]),
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
        assert isinstance(element, Element)
        assert element.attributes == (Attribute(Name("", "", "a"), expected),)

    def test_prefixes_of_constructed_names_are_kept(self) -> None:
        element = body("<p:a p:b='' xml:lang='x'>{//c}</p:a>")
        assert isinstance(element, Element)
        assert element.name == Name("p", "urn:p", "a")
        xml = "http://www.w3.org/XML/1998/namespace"
        names = [attribute.name for attribute in element.attributes]
        assert names == [Name("p", "urn:p", "b"), Name("xml", xml, "lang")]

    def test_nested_constructors_and_enclosed_ones_differ(self) -> None:
        inner = Element(Name("", "", "b"), (), (), ())
        element = body("<a><b/>{<b/>}{//c}</a>")
        assert isinstance(element, Element)
        assert element.content[:2] == (inner, Enclosed(inner))


def test_offsets_point_into_the_text_and_do_not_count_in_comparisons() -> None:
    text = "<r>{for $a in //a\nwhere $a/b = 1 return $a}</r>"
    found = body(text)
    assert isinstance(found, Element)
    enclosed = found.content[0]
    assert isinstance(enclosed, Enclosed)
    assert isinstance(enclosed.expr, Flwor)
    assert text[enclosed.expr.offset :].startswith("for $a")
    assert enclosed.expr.where is not None
    assert text[enclosed.expr.where.offset :].startswith("$a/b = 1")
    assert body(text.replace("\n", "  ")) == found
