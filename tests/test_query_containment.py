"""Containment is sound, and complete where the module says so.

If one of these fails, `lint` tells a subscriber that a query is superfluous when it is not, and a
broker that routes by containment loses messages.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators import QueryShape, random_message, random_query
from oracles.paths import is_found, of_papers
from pathcast.boundary import native
from pathcast.limits import Limits
from pathcast.query import AnyName, Comparison, Name, Operator, PathAxis, normalise, steps_of
from pathcast.query.implication import (
    always_holds_for_count,
    can_hold,
    can_hold_for_count,
    holds,
    implies,
)
from pathcast.query.normal import Double
from pathcast.query.syntax import BinaryOperator
from pathcast.query.values import compare as compare_values
from pathcast.query.values import double_of
from pathcast_papers import language, parse


def is_covered(general: str, special: str) -> bool:
    return normalise(general).covers(normalise(special))


COVERED = [
    ("//a", "/a"),
    ("/*", "/a/b"),
    ("//*", "/a"),
    ("/a", "/a/b"),
    ("/a//*/b", "/a//c//d/b"),
    ("/a/*//b", "/a//c/b"),
    ("//a/*/b", "/x//a/y/b[c]"),
    ("/*/*/*", "/a//b/c"),
    ("//a[b]", "/a/b/c"),
    ("//a[.//c]/b", "/a[d/e/c]/b"),
    ("/a[*/c]", "/a/b[d]/c"),
    ("//quote[@price > 3]", "//quote[@price > 5]"),
    ("//quote[@price > 3]", "//quote[@price = '4']"),
    ("//quote[@price]", "//quote[@price = '4']"),
    ("//quote[@*]", "//quote[@price = '4']"),
    ("//quote[@price != 3]", "//quote[@price > 5 and @price < 9]"),
    ("//quote[@price < 9]", "//quote[@price > 5 and @price <= 7]"),
    ("//quote[. != 'x']", "//quote[. = 'y']"),
    ("//quote[text()]", "//quote[text() = 'y']"),
    ("//a[position() < 4]", "/b/a[2][@x]"),
    ("//a[@x][2]", "/b/a[@x][2]/c"),
    ("//@x", "/a/b[@x = 3]"),
    ("/a//@x", "/a[@x]"),
    ("/a//text()", "/a/b/text()"),
    ("//*:a", "/Q{u}a"),
    ("/Q{u}*/*:b", "/Q{u}a/Q{v}b"),
    ("/a", "/b[@x='1' and @x='2']"),
    ("//a[starts-with(@x,'a')]", "//a[starts-with(@x,'ab')]"),
    ("//a[contains(@x,'b')]", "//a[starts-with(@x,'abc')]"),
    ("//a[contains(.,'b')]", "//a[text()='abc']"),
    ("//a[starts-with(@x,'7')]", "//a[@x='72']"),
]

NOT_COVERED = [
    ("/a", "//a"),
    ("/a/b", "/a"),
    ("/a/*//b", "/a//b"),
    ("/a/*/b", "/a//c/b"),
    ("//x/*/x", "//x/x//x/x"),
    ("/a[b/c]", "/a[b][.//c]"),
    ("//quote[@price > 5]", "//quote[@price > 3]"),
    ("//quote[@price = 4]", "//quote[@price]"),
    ("//quote[@price = '4']", "//quote[@price = 4]"),
    ("//quote[@price]", "//quote[@*]"),
    ("//quote[@price < 9]", "//quote[@price != 3]"),
    ("//a[. = 'x']", "//a[text() = 'x']"),
    ("//a[text() = 'xy']", "//a[text() = 'x'][text() = 'y']"),
    ("//a[2]", "//a[@x][2]"),
    ("//a[2]", "//*[2]"),
    ("//a[b = '1' and c]", "//a[b = '1'][.//c]"),
    ("/a//@x", "/a"),
    ("/a/b//@x", "/a//.[@x]"),
    ("/Q{u}a", "/*:a"),
    ("//a[starts-with(@x,'ab')]", "//a[starts-with(@x,'a')]"),
    ("//a[@x < 9]", "//a[starts-with(@x,'1')]"),
]


@pytest.mark.parametrize(("general", "special"), COVERED)
def test_covered(general: str, special: str) -> None:
    assert is_covered(general, special)


@pytest.mark.parametrize(("general", "special"), NOT_COVERED)
def test_not_covered(general: str, special: str) -> None:
    assert not is_covered(general, special)


SHAPES = [
    QueryShape(steps_max=3, nesting_max=1, predicate_odds=25),
    QueryShape(steps_max=4, nesting_max=0, predicate_odds=0),
    QueryShape(steps_max=2, nesting_max=2, predicate_odds=45),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_match_of_a_covered_query_is_one_of_the_covering(shape: QueryShape) -> None:
    generator = random.Random(11)
    trees = [parse(random_message(generator), Limits()) for _ in range(150)]
    queries = {}
    for _ in range(110):
        query = normalise(random_query(generator, shape=shape))
        queries[query.text] = query
    matched = {
        text: {number for number, tree in enumerate(trees) if is_found(query, tree)}
        for text, query in queries.items()
    }
    covered = 0
    for general, special in itertools.permutations(queries, 2):
        if queries[general].covers(queries[special]):
            covered += 1
            assert matched[special] <= matched[general], (general, special)
    # A test that found nothing to check proves nothing.
    assert covered > 100
    for text, query in queries.items():
        assert query.can_match or not matched[text], text


def linear(random_: random.Random, length: int) -> native.NormalPath:
    """A path of names and wildcards, brought to canonical form."""
    text = "".join(
        random_.choice(("/", "//")) + random_.choice(("a", "b", "*", "*"))
        for _ in range(random_.randint(1, length))
    )
    return normalise(text)


def chain(labels: tuple[str, ...]) -> bytes:
    return (
        "".join(f"<{label}>" for label in labels)
        + "".join(f"</{label}>" for label in reversed(labels))
    ).encode()


def canonical_models(special: native.NormalPath, gap_max: int) -> list[tuple[str, ...]]:
    """The chains that decide: every `//` of every length up to a bound, wildcards fresh names."""
    steps = steps_of(special)
    gaps = [range(gap_max + 1) if axis is PathAxis.DESCENDANT else range(1) for axis, _ in steps]
    found = []
    for lengths in itertools.product(*gaps):
        labels: list[str] = []
        for (_, test), length in zip(steps, lengths, strict=True):
            labels += ["z"] * length
            labels.append(test.local if isinstance(test, Name) else "z")
        found.append(tuple(labels))
    return found


def matches_chain(query: native.NormalPath, labels: tuple[str, ...]) -> bool:
    """Brute force: all depths at which the path may stand after each step."""
    at = {0}
    for axis, test in steps_of(query):
        reached = set()
        for depth in at:
            ends = range(depth + 1, len(labels) + 1)
            for end in ends if axis is PathAxis.DESCENDANT else ends[:1]:
                if isinstance(test, AnyName) or test == Name("", labels[end - 1]):
                    reached.add(end)
        at = reached
    return bool(at)


def test_linear_containment_is_complete() -> None:
    """Against all chains that can tell two linear paths apart (Miklau and Suciu, 3.3)."""
    generator = random.Random(5)
    verdicts = {True: 0, False: 0}
    for _ in range(4000):
        general, special = linear(generator, 4), linear(generator, 4)
        # A gap longer than the wildcards of `general` in a row says no more than that.
        models = canonical_models(special, len(steps_of(general)) + 1)
        expected = all(matches_chain(general, model) for model in models)
        verdicts[expected] += 1
        assert general.covers(special) == expected, (
            general.text,
            special.text,
        )
    assert min(verdicts.values()) > 300


def test_linear_containment_on_all_small_documents() -> None:
    """The same, without trusting the theory: every document that is a chain of up to six."""
    generator = random.Random(6)
    chains = [
        labels for length in range(1, 7) for labels in itertools.product("abz", repeat=length)
    ]
    for _ in range(60):
        general, special = linear(generator, 3), linear(generator, 3)
        if general.covers(special):
            for labels in chains:
                assert not matches_chain(special, labels) or matches_chain(general, labels)


def test_brute_force_agrees_with_the_oracle() -> None:
    generator = random.Random(7)
    for _ in range(300):
        query = linear(generator, 4)
        labels = tuple(generator.choice("abz") for _ in range(generator.randint(1, 6)))
        assert matches_chain(query, labels) == is_found(query, parse(chain(labels), Limits()))


VALUES = [
    "",
    " ",
    "1",
    "2",
    "3",
    " 2 ",
    "2.0",
    "2.5",
    "-1",
    ".5",
    "u",
    "uv",
    "1u",
    "10",
    "é",
    "-",
    "+2",
    "1e1",
    "INF",
]
TEXTS = ["", "u", "uv", "1", "2", " ", "-", "1u", "2.5"]


def comparisons() -> st.SearchStrategy[Comparison]:
    numbers = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 10.0])
    orders = st.sampled_from(
        [Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE]
    )
    texts = st.sampled_from(
        [Operator.EQ, Operator.NE, Operator.STARTS_WITH, Operator.CONTAINS, Operator.LT]
    )
    return (
        st.builds(Comparison, orders, numbers)
        | st.builds(Comparison, orders, st.builds(Double, numbers))
        | st.builds(Comparison, texts, st.sampled_from(TEXTS))
    )


@settings(max_examples=1500, deadline=None)
@given(st.lists(comparisons(), max_size=4), comparisons())
def test_what_is_implied_holds(known: list[Comparison], wanted: Comparison) -> None:
    passing = [value for value in VALUES if all(holds(value, compare) for compare in known)]
    if implies(known, wanted):
        assert all(holds(value, wanted) for value in passing)
    if not can_hold(known):
        assert not passing
    assert implies(known, replace(wanted)) or wanted not in known


def counts() -> st.SearchStrategy[Comparison]:
    orders = [Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE]
    numbers = [-2.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 4.0]
    return st.builds(Comparison, st.sampled_from(orders), st.sampled_from(numbers))


@settings(max_examples=500, deadline=None)
@given(st.lists(counts(), max_size=4), st.integers(0, 1))
def test_counts_are_decided_exactly(known: list[Comparison], least: int) -> None:
    passing = [
        number
        for number in range(least, 20)
        if all(holds(str(number), compare) for compare in known)
    ]
    assert can_hold_for_count(known, least=least) == bool(passing)
    if known:
        always = all(holds(str(number), known[0]) for number in range(least, 20))
        assert always_holds_for_count(known[0], least=least) == always


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(VALUES), comparisons())
def test_values_compare_as_in_the_recommendation(value: str, compare: Comparison) -> None:
    """By the evaluator's comparison of values, and Python's of strings."""
    match compare:
        case Comparison(Operator.STARTS_WITH, str(part)):
            assert holds(value, compare) == value.startswith(part)
        case Comparison(Operator.CONTAINS, str(part)):
            assert holds(value, compare) == (part in value)
        case Comparison(operator, Double(number)):
            expected = compare_values(BinaryOperator(operator.value), double_of(value), number)
            assert holds(value, compare) == expected
        case Comparison(operator, (float() | str()) as constant):
            expected = compare_values(BinaryOperator(operator.value), value, constant)
            assert holds(value, compare) == expected


def test_conditions_that_exclude_each_other() -> None:
    for text in (
        "/a[@x='1' and @x='2']",
        "/a[@x > 3][2][@x < 3]",
        "//a[b[. = 'x' and . = 'y']]",
        "/a[position()=0]",
        "/a[position()=1 and position()=2]",
        "/a[@x = 'u' and @x > 1]",
        "/a[@x = 3 and @x != 3]",
        "/a[starts-with(@x,'a') and starts-with(@x,'b')]",
        "/a[starts-with(@x,'a') and @x > 3]",
        "/a[. < 'b']",
        "/a[1.5]",
    ):
        assert not normalise(text).can_match, text
    for text in ("/a[b='1' and b='2']", "/a[@*='1'][@*='2']", "/a[text()='1'][text()='2']"):
        assert normalise(text).can_match, text


def test_long_queries_are_compared_without_a_deep_stack() -> None:
    long = native.NormalPath("/a" * 4000)
    assert long.covers(long)
    assert normalise("//a/*/a").covers(long)
    assert not long.covers(normalise("//a"))


def tree_query(random_: random.Random, names: str, separators: str, depth: int = 3) -> str:
    """A path with nested paths, of some names and separators."""

    def path(levels: int) -> str:
        text = ""
        for _ in range(random_.randint(1, 2)):
            text += ("/" if random_.choice(separators) == "/" else "//") + random_.choice(names)
            while levels and random_.random() < 0.35:
                inner = path(levels - 1)
                text += f"[.{inner}]"
        return text

    return path(depth)


def canonical_document(query: language.NormalQuery, gap: str) -> bytes:
    """The document that has what a query asks for and nothing else; `//` is one level of `z`."""

    def element(step: language.Step, after: tuple[language.Step, ...]) -> str:
        name = step.test.local if isinstance(step.test, language.Name) else "z"
        inside = [
            condition.steps
            for stage in step.stages
            for condition in stage.conditions
            if isinstance(condition, language.NestedCondition)
        ]
        inside += [after] if after else []
        content = "".join(element(steps[0], steps[1:]) for steps in inside)
        text = f"<{name}>{content}</{name}>"
        return f"<{gap}>{text}</{gap}>" if step.axis is language.Axis.DESCENDANT else text

    return element(query.steps[0], query.steps[1:]).encode()


@pytest.mark.parametrize(("names", "separators"), [("ab", "/."), ("ab*", "/")])
def test_containment_of_trees_is_complete_without_wildcards_or_without_descendants(
    names: str, separators: str
) -> None:
    """One document decides: the smallest that satisfies the special query (Miklau and Suciu)."""
    generator = random.Random(31)
    verdicts = {True: 0, False: 0}
    for _ in range(1500):
        general = normalise(tree_query(generator, names, separators, 2))
        special = normalise(tree_query(generator, names, separators, 2))
        document = parse(canonical_document(of_papers(special), "z"), Limits())
        assert is_found(special, document)
        expected = is_found(general, document)
        verdicts[expected] += 1
        assert general.covers(special) == expected, (
            general.text,
            special.text,
        )
    assert min(verdicts.values()) > 100


def test_coverings_find_what_comparing_all_pairs_finds() -> None:
    generator = random.Random(37)
    queries = [
        [normalise(random_query(generator)) for _ in range(generator.choice((1, 1, 2)))]
        for _ in range(150)
    ]
    asked = [(paths, number % 7 != 0) for number, paths in enumerate(queries)]
    found, _, left_out = native.coverings(asked)
    covered_by = dict(found)
    assert left_out == 0
    for number, special in enumerate(queries):
        if not any(path.can_match for path in special):
            continue
        others = [
            other
            for other, (general, is_exact) in enumerate(asked)
            if other != number
            and is_exact
            and any(path.can_match for path in general)
            and all(any(mine.covers(theirs) for mine in general) for theirs in special)
        ]
        assert (covered_by.get(number) in others) == bool(others), (special, others)
    assert len(covered_by) > 30


def test_the_bounds_of_coverings_are_kept_and_counted() -> None:
    queries = [([normalise(f"//a[@x > {at} and @y < {at}]")], True) for at in range(1, 40)]
    _, comparisons, left_out = native.coverings(queries, 100, 10)
    assert comparisons == 100
    assert left_out >= 39 * 38 - 100
    assert native.coverings(queries)[2] == 0


@given(comparisons())
def test_what_always_holds_holds_of_every_value(compare: Comparison) -> None:
    if implies((), compare):
        assert all(holds(value, compare) for value in VALUES)
