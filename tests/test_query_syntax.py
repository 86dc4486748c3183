"""The whole grammar of XPath 1.0 becomes a syntax tree; bounds hold.

If these fail, good XPath is called broken, or operators bind otherwise than the recommendation
says, or a hostile query exhausts the stack.
"""

from __future__ import annotations

import re

import pytest

from expression_cases import ALTERNATIVES_MAX
from pathcast.errors import QuerySyntaxError
from pathcast.query import (
    NODES_MAX,
    PREDICATES_MAX,
    canonical_form,
    compile_query,
    parse,
)
from pathcast.query.functions import CORE_FUNCTIONS
from pathcast.query.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    KindTest,
    Literal,
    LocationPath,
    NameTest,
    NodeKind,
    Number,
    PathExpr,
    UnaryExpr,
    VariableReference,
)
from pathcast_papers.language.parser import DEPTH_MAX, TEXT_BYTES_MAX

GOOD = """
/ | . | .. | * | @* | a:b | a:* | *:a | //a | .//a | ../a | ../../a/@b
child::para[position()=last()-1]
/descendant::olist/child::item
preceding-sibling::chapter[position()=1]
chapter[title="Introduction"][5]
employee[@secretary and @assistant]
para[@type="warning" or not(@type='x')]
processing-instruction('xml-stylesheet')/comment()/node()/text()
id("foo")/child::para[position()=5]
(preceding::foo)[1]
$x/y[$z = 2]
-a | b
--- 3 * -2 div (4 mod 2) - -1
1 < 2 <= 3 > 4 >= 5 != 6 = 7
concat('a', "b", 1, .5, 2., 3.25)
* * * * *
div div div mod mod
and and or or mod
a/and/or
self::node()[.//a]
namespace::n/following::b/ancestor-or-self::*
substring-before("1999/04/01","/")
count(//a[count(b) > count(c)]) = sum(//d)
string-length(normalize-space(.)) > 10
text () | node ( ) | comment( )
((((a))))[((1))]
'it"s' = "it's"
""".strip().splitlines()


@pytest.mark.parametrize("text", GOOD)
def test_good_xpath_parses(text: str) -> None:
    parse(text)


def test_every_axis() -> None:
    for axis in Axis:
        path = parse(f"/{axis.value}::a")
        assert isinstance(path, LocationPath)
        assert [step.axis for step in path.steps] == [axis]


def test_every_function_by_its_argument_counts() -> None:
    for name, (fewest, most, _) in CORE_FUNCTIONS.items():
        for count in {fewest, min(most, 4)}:
            call = parse(f"{name}({','.join('a' * count)})")
            assert isinstance(call, FunctionCall)
            assert len(call.arguments) == count
        with pytest.raises(QuerySyntaxError) as raised:
            parse(f"{name}({','.join('a' * (most + 1))})" if most < 4 else f"{name}(a)")
        assert raised.value.code == "XPST0017"


def test_abbreviations_are_expanded() -> None:
    short, full = (
        parse("//a/../@b/."),
        parse("/descendant-or-self::node()/child::a/parent::node()/attribute::b/self::node()"),
    )
    assert isinstance(short, LocationPath)
    assert isinstance(full, LocationPath)
    assert [step.axis for step in short.steps] == [step.axis for step in full.steps]
    tests = [(type(step.test), getattr(step.test, "local", None)) for step in short.steps]
    assert tests == [(type(step.test), getattr(step.test, "local", None)) for step in full.steps]


def shape(expr: Expr) -> object:
    """An expression as nested tuples."""
    match expr:
        case BinaryExpr():
            operators = [operator.value for operator in expr.operators]
            return (*operators, *(shape(operand) for operand in expr.operands))
        case UnaryExpr():
            return ("minus", expr.minuses, shape(expr.operand))
        case Number() | Literal():
            return expr.value
        case VariableReference():
            return f"${expr.name}"
        case FunctionCall():
            return (f"{expr.name}()", *(shape(argument) for argument in expr.arguments))
        case FilterExpr():
            return ("filter", shape(expr.primary), len(expr.predicates))
        case PathExpr():
            return ("path", shape(expr.start), len(expr.steps))
        case LocationPath():
            return "/" * expr.is_absolute + "/".join(
                (step.test.local or "*")
                if isinstance(step.test, NameTest)
                else step.test.kind.value
                for step in expr.steps
            )
    raise AssertionError(expr)


PRECEDENCE = {
    "a or b and c": ("or", "a", ("and", "b", "c")),
    "a and b or c": ("or", ("and", "a", "b"), "c"),
    "a = b < c": ("=", "a", ("<", "b", "c")),
    "a < b + c * d": ("<", "a", ("+", "b", ("*", "c", "d"))),
    "a - b - c": ("-", "-", "a", "b", "c"),
    "a - b + c": ("-", "+", "a", "b", "c"),
    "-a|b": ("minus", 1, ("|", "a", "b")),
    "--a * b": ("*", ("minus", 2, "a"), "b"),
    "(a or b) and c": ("and", ("or", "a", "b"), "c"),
    "* * *": ("*", "*", "*"),
    "a div b mod c": ("div", "mod", "a", "b", "c"),
    "$x/a[1]": ("path", "$x", 1),
    "(a)[1][2]": ("filter", "a", 2),
    "id('x')//b": ("path", ("id()", "x"), 2),
    "a-b": "a-b",
    "a -b": ("-", "a", "b"),
    "a<>b": ("!=", "a", "b"),
    "/": "/",
    "/ * 3": None,
}


@pytest.mark.parametrize("text", [text for text, tree in PRECEDENCE.items() if tree is not None])
def test_precedence(text: str) -> None:
    assert shape(parse(text)) == PRECEDENCE[text]


def test_star_after_a_slash_is_a_name_test() -> None:
    with pytest.raises(QuerySyntaxError):
        parse("/ * 3")


def test_offsets_count_characters() -> None:
    path = parse("/é/日本[ @x = '𝄞' ]/c")
    assert isinstance(path, LocationPath)
    assert [step.offset for step in path.steps] == [1, 3, 18]
    predicate = path.steps[1].predicates[0]
    assert isinstance(predicate, BinaryExpr)
    assert [predicate.offset, *(each.offset for each in predicate.operands)] == [7, 7, 12]
    assert predicate.operators == (BinaryOperator.EQ,)


def test_processing_instruction_target() -> None:
    path = parse("processing-instruction('x')")
    assert isinstance(path, LocationPath)
    assert path.steps[0].test == KindTest(NodeKind.PROCESSING_INSTRUCTION, "x")


NESTINGS = {
    "predicates": ("a[", "]"),
    "parentheses": ("(", ")"),
    "calls": ("not(", ")"),
    "predicates of attributes": ("@a[", "]"),
    "alternating": ("a[(", ")]"),
    "minus and parentheses": ("-(", ")"),
}


@pytest.mark.parametrize("kind", NESTINGS)
def test_nesting_is_bounded(kind: str) -> None:
    before, after = NESTINGS[kind]
    per_level = before.count("[") + before.count("(")
    good = DEPTH_MAX // per_level
    parse(before * good + "a" + after * good)
    for levels in (good + 1, TEXT_BYTES_MAX // len(before + after) - 1):
        with pytest.raises(QuerySyntaxError) as raised:
            parse(before * levels + "a" + after * levels)
        assert raised.value.code == "query.too_deep"
        assert raised.value.params["maximum"] == DEPTH_MAX


def test_operators_of_every_level_may_nest() -> None:
    """Each level of operators is a level of the tree: recursion must still be bounded."""
    before, levels = "a or a and a = a < a + a * - (", 24
    text = before * levels + "a" + ")" * levels
    parse(text)
    with pytest.raises(QuerySyntaxError) as raised:
        compile_query(text)
    assert raised.value.code == "query.too_deep"


def test_syntax_nodes_are_bounded() -> None:
    # A step each; the last one has a predicate, a step and a constant and an operator in it.
    text = "/a" * (NODES_MAX - 4) + "[b=1]"
    assert canonical_form(text) == "/a" * (NODES_MAX - 4) + "/b[.=1]"
    for too_large in ("/a" + text, text[:-1] + "0 and c]", "-" * NODES_MAX + "1", "1+" * 512 + "1"):
        with pytest.raises(QuerySyntaxError) as raised:
            parse(too_large)
        assert raised.value.code == "query.too_large"
        assert raised.value.params["maximum"] == NODES_MAX


def test_predicates_of_a_step_are_bounded() -> None:
    most = "[b]" * PREDICATES_MAX
    for text in (f"/a{most}", f"/a/{most}", f"(/a){most}/c{most}", f"/a{most}/@x{most}"):
        parse(text)
        with pytest.raises(QuerySyntaxError) as raised:
            parse(f"{text}[c]")
        assert raised.value.code == "query.too_many_predicates"
        assert raised.value.params["maximum"] == PREDICATES_MAX
    names = " and ".join(f"@a{number:02}" for number in range(40))
    assert canonical_form(f"/a[{names}]").count("[") == 40


HOSTILE = {
    "descendants or self": (".//.[", "]"),
    "unions": ("(a | b)[", "]"),
    "ancestors": ("ancestor-or-self::*[", "]"),
    "up and down": ("a/..//b[", "]"),
    "any node": ("node()[", "]"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_alternatives_do_not_multiply_without_end(kind: str) -> None:
    """One short query must not keep registration busy for hours."""
    before, after = HOSTILE[kind]
    for levels in (8, DEPTH_MAX // (before.count("[") + before.count("("))):
        compiled = compile_query(before * levels + "a" + after * levels)
        assert 1 <= len(compiled.texts) <= ALTERNATIVES_MAX


def test_canonical_form_is_bounded_as_well() -> None:
    """A comparison on a nested path adds a bracket: what has no room for it is refused."""
    before, after = "a[" * DEPTH_MAX, "][1]" * DEPTH_MAX  # a position keeps a branch where it is
    deepest = canonical_form(before + "@b=1" + after)
    assert canonical_form(deepest) == deepest
    with pytest.raises(QuerySyntaxError) as raised:
        canonical_form(before + "b=1" + after)
    assert raised.value.code == "query.too_deep"


def test_branches_become_steps_as_deep_as_they_may_stand() -> None:
    deepest = "a[" * DEPTH_MAX + "b=1" + "]" * DEPTH_MAX
    assert canonical_form(deepest) == "/a" * DEPTH_MAX + "/b[.=1]"


def test_choosing_among_branches_nests_no_deeper() -> None:
    """What is as deep as it may be leads on, whatever stands beside it at any level."""
    fixed = "b[" * (DEPTH_MAX - 1) + "b" + "][1]" * (DEPTH_MAX - 1)
    expected = "b[" * (DEPTH_MAX - 1) + "b" + "][position()=1]" * (DEPTH_MAX - 1)
    for query in (f"/a[{fixed}]/a", f"/a[a]/{fixed}", f"/a[a][{fixed}]"):
        assert canonical_form(query) == f"/a[a]/{expected}"


def test_length_is_bounded() -> None:
    text = "/" + "a" * (TEXT_BYTES_MAX - 1)
    assert canonical_form(text) == text
    for too_long in (text + "a", "/" + "é" * (TEXT_BYTES_MAX // 2)):
        with pytest.raises(QuerySyntaxError) as raised:
            parse(too_long)
        assert raised.value.code == "query.too_long"
        assert raised.value.params["given"] == TEXT_BYTES_MAX + 1
    with pytest.raises(QuerySyntaxError) as raised:
        canonical_form("/a" * 100, {"": "u" * 100})
    assert raised.value.code == "query.too_long"


LONG_CHAINS = (
    "a or ",
    "a and ",
    "a|",
    "1 + ",
    "1 - 1 + ",
    "- ",
    "a = ",
    "a/",
    "a//",
    "a[b]/",
    "a[b][c]/",
    "a[c[d]/e]/",
    "*[a]//",
    "*//",
    "../",
)


@pytest.mark.parametrize("link", LONG_CHAINS)
def test_long_chains_do_not_exhaust_the_stack(link: str) -> None:
    nodes = len(re.findall(r"//|\w+|[-+=|*\[]|\.\.", link))
    text = link * ((NODES_MAX - 3) // nodes) + "a"
    parse(text)
    for query in (text, f"a[{text}]"):
        compile_query(query)


def test_long_chains_are_refused_before_they_are_read() -> None:
    for link in LONG_CHAINS:
        with pytest.raises(QuerySyntaxError) as raised:
            parse(link * (TEXT_BYTES_MAX // len(link) - 4) + "a")
        assert raised.value.code == "query.too_large"


def test_many_conditions_are_sorted_once() -> None:
    names = [f"a{index % 200:03}" for index in range(250)]
    conditions = " and ".join(f"@{name}" for name in reversed(names))
    expected = "/b" + "".join(f"[@{name}]" for name in sorted(set(names)))
    assert canonical_form(f"/b[{conditions}]") == expected


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        parse("/a\ud800b")
    assert raised.value.code == "XPST0003"
    str(raised.value).encode()
