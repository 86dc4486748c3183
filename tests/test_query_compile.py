"""What a query is split into: necessary conditions, expression, reasons, limits.

If these fail, a message that satisfies a query may be passed over, or a query is answered by its
conditions alone where they do not say all of it. Answers are the reference evaluator's here, so
nothing has to be left out; `test_differential_compile.py` asks lxml.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expression_cases import ALTERNATIVES_MAX
from generators import (
    ALPHABET,
    ALPHABET_WITH_NAMESPACES,
    Alphabet,
    MessageShape,
    random_expression,
    random_message,
)
from oracles.paths import of_papers, read_by_papers
from pathcast.errors import QuerySyntaxError
from pathcast.message import MessageTree
from pathcast.query import (
    CostClass,
    compile_query,
)
from pathcast.query.reader import parse
from pathcast_papers import language
from pathcast_papers.evaluation.xpath import Evaluator
from pathcast_papers.filtering import oracle
from pathcast_papers.language.expression import EXPRESSION_BYTES_MAX
from pathcast_papers.language.parser import TEXT_BYTES_MAX
from pathcast_papers.message import parse_message

ALPHABETS = (ALPHABET, ALPHABET_WITH_NAMESPACES)


def check(text: str, alphabet: Alphabet, trees: list[MessageTree]) -> None:
    """The claim of the kernel's `compile/weakening.rs`, and that an exact split says all."""
    compiled = compile_query(text, alphabet.namespaces)
    whole = read_by_papers(text, alphabet.namespaces)
    for tree in trees:
        expected = Evaluator(tree).holds(whole)
        paths = oracle.Oracle(tree)
        found = any(paths.select(of_papers(each).steps) for each in compiled.alternatives)
        if compiled.expression is None:
            assert found == expected, (text, compiled.texts)
        else:
            assert found or not expected, (text, compiled.texts)
            assert oracle.holds(language.compile_query(text, alphabet.namespaces), tree) == expected


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_conditions_are_necessary(alphabet: Alphabet) -> None:
    generator = random.Random(17)
    shape = MessageShape(has_markup=True)
    for _ in range(25):
        trees = [parse_message(random_message(generator, alphabet, shape)) for _ in range(8)]
        for _ in range(16):
            check(random_expression(generator, alphabet), alphabet, trees)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_conditions_are_necessary_and_shrink(generator: random.Random) -> None:
    shape = MessageShape(has_markup=True)
    trees = [parse_message(random_message(generator, ALPHABET, shape)) for _ in range(2)]
    text = random_expression(generator, ALPHABET)
    try:
        parse(text)
    except QuerySyntaxError as error:
        # What steers the generator can make a query larger than one may be.
        if error.code.startswith("query.too_"):
            return
        raise
    check(text, ALPHABET, trees)


IDIOMS = """
//a[substring(@x, 1, 2) = '72'] | //a[substring(@x, 1, 3) = '72'] | //b[substring(., 2, 1) = 'u']
//a[substring-before(@x, '-') = '7'] | //b[substring-after(., '-') = '1']
//a[contains(concat(' ', @x, ' '), ' u ')]
//a[concat(@x, '-', 'u') = '7-u'] | //b[starts-with(concat('v', .), 'vu')]
//a[normalize-space(b) = 'u v'] | //a[starts-with(normalize-space(.), 'u')]
//*[local-name() = 'a' and @x > 3]/..
//*[starts-with(name(), 'a')][2]
//a[count(b) >= 2][@x] | //a[count(b[@x]) > 1]
//a[not(b) or not(@x)]/c
//a[not(not(b/@x = 7))]
//a[. = 'u' and not(. != 'u')]
//a[position() = last()]/b[position() != 1]
//b[preceding-sibling::a/@x = 7]/..//c
//c[ancestor::a[@x]/b = 'u']
//text()[contains(., 'u')]/../@x
//@x[. > 3]/ancestor::b
//a[@x = //b/@x] | //a[//b[2]]
(//a | //b)[2]/c | (//b)[last()]
//a[sum(b) > 7] | //a[b * 2 > 10]
//a[string-length(@x) > 1 and translate(@x, 'uv', 'UV') = 'UU']
.//.[@x and . > 5] | .//.[. = 'u']
//a[boolean(b) = not(c)] | //a[(b > 3) = (c > 3)]
//a[true() = b] | //a[b = (@x > 3)]
//a[self::a or self::b][1]/self::*[@x]
//node()[self::a or self::text()]/following::b
""".strip().splitlines()


@pytest.mark.parametrize("text", IDIOMS)
def test_idioms_are_split_soundly(text: str) -> None:
    """Constructs that the compiler has rules for, on messages made to meet them half-way."""
    generator = random.Random(text)
    values = ["7", "72", "72u", "u", "u v", " u  v ", "7-u", "u-1", "UU", "uu", "10", "", "-7"]
    trees = []
    for _ in range(120):
        parts = []
        for _ in range(generator.randrange(1, 7)):
            name = generator.choice("abc")
            attribute = f' x="{generator.choice(values)}"' if generator.randrange(2) else ""
            inner = "".join(
                f'<{n} x="{generator.choice(values)}">{generator.choice(values)}</{n}>'
                for n in generator.choices("abc", k=generator.randrange(4))
            )
            parts.append(f"<{name}{attribute}>{generator.choice(values)}{inner}</{name}>")
        root = generator.choice("abr")
        trees.append(parse_message(f"<{root}>{''.join(parts)}</{root}>".encode()))
    check(text, ALPHABET, trees)


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_expression_text_reads_back(alphabet: Alphabet) -> None:
    generator = random.Random(5)
    read = 0
    for _ in range(800):
        compiled = compile_query(random_expression(generator, alphabet), alphabet.namespaces)
        if compiled.expression is not None:
            read += 1
            assert compile_query(compiled.expression).expression == compiled.expression
    assert read > 200


def test_reasons_name_what_is_lost() -> None:
    compiled = compile_query("//a[last()]/preceding-sibling::b[@x or not(c)]")
    assert compiled.cost is CostClass.CANDIDATE_CHECKED
    assert [str(reason) for reason in compiled.reasons] == [
        "uses last(), which only the evaluator knows",
        "uses the axis preceding-sibling, which only the evaluator knows",
        "asks by not() for what must be absent",
        f"candidates come from {compiled.texts[0]}",
    ]
    assert [reason.offset for reason in compiled.reasons[:3]] == [4, 12, 43]


@pytest.mark.parametrize("count", [2, 16, 17, 100])
def test_every_disjunct_that_is_written_is_an_alternative(count: int) -> None:
    values = " or ".join(f"@x{number} = 1" for number in range(count))
    for text in (
        f"//a[{values}][b]",
        f"//a[b][{values}]",
        " | ".join(f"/a/b{number}" for number in range(count)),
        " or ".join(f"//b{number} = 'x'" for number in range(count)),
    ):
        compiled = compile_query(text)
        assert (compiled.cost, len(compiled.texts)) == (CostClass.INDEXED, count)


def test_products_of_disjuncts_are_few() -> None:
    """A product keeps the operand with most alternatives, or else what all have in common."""
    pairs = " and ".join(f"(@x{n} or @y{n})" for n in range(9))
    compiled = compile_query(f"//a[@z][{pairs}]")
    assert compiled.cost is CostClass.CANDIDATE_CHECKED
    assert all("[@z]" in text for text in compiled.texts)
    assert 1 < len(compiled.texts) <= ALTERNATIVES_MAX
    pairs = "".join(f"[@x{n} or @y{n}]" for n in range(9))
    compiled = compile_query(f"//a[@z]{pairs}")
    assert compiled.cost is CostClass.CANDIDATE_CHECKED
    assert all("[@z]" in text for text in compiled.texts)
    assert 1 < len(compiled.texts) <= ALTERNATIVES_MAX
    roots = " and ".join(f"//{name}" for name in "abcdefghijklmnopq")
    compiled = compile_query(roots)
    assert compiled.cost is CostClass.CANDIDATE_CHECKED
    assert len(compiled.texts) == 1


def test_expression_may_be_longer_than_a_query() -> None:
    step = "a" * 60
    text = "|".join(f"//{step}{n:02}[last()]" for n in range(90))
    compiled = compile_query(text)
    assert len(text) < TEXT_BYTES_MAX < len(compiled.expression or "") < EXPRESSION_BYTES_MAX
    with pytest.raises(QuerySyntaxError) as raised:
        compile_query(text, {"": "u" * 700})
    assert raised.value.code == "query.too_long"
    assert raised.value.params["maximum"] == EXPRESSION_BYTES_MAX


def test_conditions_that_are_too_long_are_left_out() -> None:
    """A query is not refused for the length of what is only an aid."""
    conditions = "".join(f"[@n:attribute{n:02}]" for n in range(15))
    compiled = compile_query(f"//n:a[last()]{conditions}", {"n": "u" * 600})
    assert compiled.texts == [f"//Q{{{'u' * 600}}}a"]


@pytest.mark.parametrize(
    "text", ["/", "//.", "true()", "1 = 1", "'x'", "count(//a) >= 0", "not(false())"]
)
def test_what_always_holds_needs_no_evaluation(text: str) -> None:
    compiled = compile_query(text)
    assert (compiled.texts, compiled.expression) == (["/*"], None)
    assert compiled.cost is CostClass.INDEXED


@pytest.mark.parametrize(
    "text", ["/..", "@x", "false()", "''", "//a/self::b", "/a and /b", "//a[0 = 1]", "//@x/c"]
)
def test_what_never_holds_needs_no_evaluation(text: str) -> None:
    compiled = compile_query(text)
    assert (compiled.texts, compiled.expression) == (["/*[position()=2]"], None)
