"""Generated queries.

If these fail, generated queries are refused, cannot be true, repeat themselves, or differ from
machine to machine.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from typing import Any

import pytest

from pathcast.errors import ConfigError
from pathcast.query import canonical_form
from pathcast.schema import ElementGraph, parse_dtd, read_dtd
from pathcast.workload import (
    DOMAINS,
    DocumentParameters,
    PredicateMix,
    QueryGenerator,
    QueryParameters,
    generate_documents,
    generate_queries,
)
from pathcast.workload.queries import GeneratedStep, clean_up
from shared_data import shared_dtd

etree = pytest.importorskip(
    "lxml.etree", reason="lxml is not installed: pip install 'pathcast[workload]'"
)

SHAPES: list[dict[str, Any]] = [
    {},
    {"wildcard": 0.6, "descendant": 0.6},
    {"wildcard": 1.0, "descendant": 1.0, "distinct": False},
    {"predicates": 2, "mix": PredicateMix(attribute_compare=1, attribute_exists=1)},
    {"predicates": 5, "nested_paths": 2, "descendant": 0.5},
    {"nested_paths": 3, "wildcard": 0.5},
    {"name_skew": 1.0, "stop_odds": 0.3},
]


def news() -> ElementGraph:
    """A DTD with recursion."""
    return DOMAINS["news"].graph()


def steps_of(path: str) -> list[GeneratedStep]:
    """`//*/a` as steps; each stands for the level of its place."""
    parts = re.findall(r"(//?)([^/]+)", path)
    return [
        GeneratedStep(operator == "//", name == "*", place)
        for place, (operator, name) in enumerate(parts)
    ]


def text_of(steps: list[GeneratedStep], path: str) -> str:
    """Steps as a path, with the names of the path that they were made from."""
    names = re.findall(r"[^/]+", path)
    return "".join(
        ("//" if step.is_descendant else "/") + ("*" if step.is_wildcard else names[step.level])
        for step in steps
    )


@pytest.mark.parametrize(
    ("path", "cleaned"),
    [
        ("/a/b", "/a/b"),
        ("/a/*/b", "/a/*/b"),
        ("/*//b", "/*//b"),
        ("//*/a", "/*//a"),  # Rule 1.
        ("//*//a", "/*//a"),
        ("/a//*/b", "/a/*//b"),
        ("//*//*//a", "/*//a"),  # Rule 2.
        ("/a//*//*//*/b", "/a/*//b"),
        ("//*", "/*"),  # Rule 3.
        ("/a//*", "/a/*"),
        ("/a//*//*", "/a/*"),
        ("//*/*/a", "/*/*//a"),  # What rule 1 moves makes another //*.
        ("//a//*/b//*/c", "//a/*//b/*//c"),
    ],
)
def test_clean_up_rules(path: str, cleaned: str) -> None:
    assert text_of(clean_up(steps_of(path)), path) == cleaned


def satisfies(graph: ElementGraph, root: str, query: str) -> bool:
    """Some path of labels that the DTD allows is selected by a query without predicates."""
    here: set[str | None] = {None}
    for operator, name in re.findall(r"(//?)([^/]+)", query):
        reached: set[str] = set()
        waiting = set(here)
        while waiting:
            below = {
                child
                for label in waiting
                for child in ((root,) if label is None else graph.child_names[label])
            }
            waiting = set(below - reached) if operator == "//" else set()
            reached |= below
        here = {label for label in reached if name in ("*", label)}
    return bool(here)


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[1], SHAPES[2], SHAPES[6]])
def test_linear_queries_can_be_true(shape: dict[str, Any]) -> None:
    graph = news()
    queries = list(generate_queries(graph, QueryParameters(count=1500, **shape)))
    assert len(queries) == 1500
    assert all(satisfies(graph, "story", query) for query in queries)
    assert not satisfies(graph, "story", "/story/payment"), "the check itself can fail"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_queries_are_accepted(shape: dict[str, Any]) -> None:
    for domain in DOMAINS.values():
        for values in ("integers", "plausible"):
            parameters = QueryParameters(count=500, values=values, **shape)
            for query in generate_queries(domain.graph(), parameters):
                canonical_form(query)
                etree.XPath(query)


def test_nitf_queries_are_accepted() -> None:
    graph = read_dtd(shared_dtd("nitf-2-5.dtd"))
    mix = PredicateMix(attribute_compare=1, attribute_exists=1)
    parameters = QueryParameters(count=4000, predicates=2, nested_paths=1, mix=mix)
    for query in generate_queries(graph, parameters):
        canonical_form(query)
        etree.XPath(query)


@pytest.mark.parametrize(
    ("query", "shape"),
    [
        ("predicates", {"predicates": 1}),
        ("compared", {"predicates": 2, "mix": PredicateMix(attribute_compare=5)}),
        ("nested", {"nested_paths": 1}),
        ("paths", {}),
    ],
)
def test_queries_are_true_of_documents(query: str, shape: dict[str, Any]) -> None:
    graph = news()
    documents = [
        etree.fromstring(document)
        for document in generate_documents(graph, DocumentParameters(count=150, depth_max=7))
    ]
    queries = list(generate_queries(graph, QueryParameters(count=200, depth_max=5, **shape)))
    matched = sum(any(etree.XPath(text)(tree) for tree in documents) for text in queries)
    assert matched > 100, f"{matched} of 200 queries with {query} match in 150 documents"


def test_predicates_and_nested_paths_are_counted() -> None:
    parameters = QueryParameters(count=300, predicates=3, nested_paths=2, mix=PredicateMix())
    for query in generate_queries(news(), parameters):
        assert len(re.findall(r"\[(?:@|text\(\)|\d)", query)) == 3
        assert query.count("[") == 5


def test_predicates_do_not_contradict_each_other() -> None:
    graph = parse_dtd("<!ELEMENT a EMPTY><!ATTLIST a k CDATA #REQUIRED l CDATA #REQUIRED>")
    mix = PredicateMix(attribute_compare=2, text=0, position=0)
    documents = [
        etree.fromstring(document)
        for document in generate_documents(graph, DocumentParameters(count=2000, seed=1))
    ]
    parameters = QueryParameters(count=100, predicates=4, mix=mix, seed=2, statistics_seed=1)
    for query in generate_queries(graph, parameters):
        select = etree.XPath(query)
        assert any(select(tree) for tree in documents), query


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("attribute_equal", r"\[@[\w.:-]+=\d+\]"),
        ("attribute_compare", r"\[@[\w.:-]+(?:[<>]=?|!=)-?\d+\]"),
        ("attribute_exists", r"\[@[\w.:-]+\]"),
        ("text", r"\[text\(\)=\d+\]"),
        ("position", r"\[\d\]"),
    ],
)
def test_mix_of_predicates(kind: str, pattern: str) -> None:
    weights = dict.fromkeys(PredicateMix.__slots__, 0.0)
    mix = PredicateMix(**{**weights, kind: 1.0})
    for query in generate_queries(news(), QueryParameters(count=200, predicates=1, mix=mix)):
        assert len(re.findall(pattern, query)) == 1, query


def test_wildcard_and_descendant_odds() -> None:
    graph = news()
    plain = QueryParameters(count=3000, wildcard=0, descendant=0, distinct=False)
    assert not any("*" in query or "//" in query for query in generate_queries(graph, plain))
    parameters = QueryParameters(count=5000, wildcard=0.2, descendant=0, distinct=False)
    steps = [step for query in generate_queries(graph, parameters) for step in query[1:].split("/")]
    assert steps.count("*") / len(steps) == pytest.approx(0.2, abs=0.02)
    parameters = QueryParameters(count=5000, wildcard=0, descendant=0.3, distinct=False)
    found = [re.findall(r"//?", query) for query in generate_queries(graph, parameters)]
    operators = Counter(operator for operators in found for operator in operators)
    assert operators["//"] / operators.total() == pytest.approx(0.35, abs=0.08)


def test_depth_and_levels() -> None:
    graph = parse_dtd("<!ELEMENT a (b)><!ELEMENT b (c)><!ELEMENT c (d)><!ELEMENT d (a?)>")
    parameters = QueryParameters(count=2000, depth_max=3, levels_max=4, distinct=False)
    queries = set(generate_queries(graph, parameters))
    assert max(len(re.findall(r"[^/]+", query)) for query in queries) == 3
    assert any(query.endswith("d") for query in queries), "// reaches level 4"
    parameters = QueryParameters(count=2000, depth_max=6, levels_max=3, distinct=False)
    assert not any("d" in query for query in generate_queries(graph, parameters))


def test_name_skew_prefers_some_names() -> None:
    def share_of_first(skew: float) -> float:
        parameters = QueryParameters(
            count=3000, name_skew=skew, distinct=False, wildcard=0, descendant=0, stop_odds=0
        )
        names = Counter(query.split("/")[2] for query in generate_queries(news(), parameters))
        return names.most_common(1)[0][1] / names.total()

    uniform, skewed = share_of_first(0), share_of_first(2)
    assert uniform < 0.15
    assert skewed > 0.3


def test_distinct_and_repeated() -> None:
    parameters = QueryParameters(count=3000)
    queries = list(generate_queries(news(), parameters))
    assert len(set(queries)) == 3000
    repeated = list(generate_queries(news(), QueryParameters(count=3000, distinct=False)))
    assert len(set(repeated)) < 3000 == len(repeated)


def test_all_queries_of_a_small_dtd_are_found() -> None:
    graph = parse_dtd("<!ELEMENT a (b*, c*)><!ELEMENT b (c*)><!ELEMENT c EMPTY>")
    parameters = QueryParameters(count=4, wildcard=0, descendant=0)
    assert set(generate_queries(graph, parameters)) == {"/a", "/a/b", "/a/c", "/a/b/c"}


def test_exhausted_dtd_says_how_many_were_found() -> None:
    graph = parse_dtd("<!ELEMENT a (b*)><!ELEMENT b EMPTY>")
    found: list[str] = []
    queries = generate_queries(graph, QueryParameters(count=1000))
    with pytest.raises(ConfigError) as caught:
        found.extend(queries)
    assert caught.value.code == "workload.exhausted"
    assert caught.value.params["found"] == len(found) == len(set(found))
    assert caught.value.params["requested"] == 1000


def test_impossible_wishes_are_refused() -> None:
    bare = parse_dtd("<!ELEMENT a EMPTY>")
    mix = PredicateMix(position=0)
    with pytest.raises(ConfigError, match="predicates"):
        generate_queries(bare, QueryParameters(predicates=1, mix=mix))
    with pytest.raises(ConfigError, match="nested_paths"):
        generate_queries(bare, QueryParameters(nested_paths=1))


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[1], SHAPES[6]])
def test_fast_path_agrees_with_the_general_one(shape: dict[str, Any]) -> None:
    parameters = QueryParameters(count=1, **shape)
    fast, general = QueryGenerator(news(), parameters), QueryGenerator(news(), parameters)
    for number in range(2000):
        if number == 1000:
            fast.diversify()
            general.diversify()
        walk, steps = general._walk([general._root_number], parameters.depth_max)
        assert fast.generate() == general._text(steps, walk)


def test_texts_do_not_change() -> None:
    # A record names a seed: were this to change, old measurements could not be repeated.
    parameters = QueryParameters(count=2000, seed=1, predicates=1, nested_paths=1)
    text = "\n".join(generate_queries(news(), parameters))
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "d7025268200abadcc0859c02a3a116fe632878689eb663ff3b2dafc810e2e117"
    )
    assert list(generate_queries(news(), parameters)) == text.split("\n")


def test_many_distinct_queries_take_little_time() -> None:
    graph = read_dtd(shared_dtd("nitf-2-5.dtd"))
    started = time.process_time()
    queries = list(generate_queries(graph, QueryParameters(count=100_000)))
    assert len(set(queries)) == 100_000
    assert time.process_time() - started < 15, "about 1 s on a quiet machine"


@pytest.mark.nightly
def test_a_million_distinct_queries() -> None:
    graph = read_dtd(shared_dtd("nitf-2-5.dtd"))
    started = time.process_time()
    assert len(set(generate_queries(graph, QueryParameters(count=1_000_000)))) == 1_000_000
    assert time.process_time() - started < 60


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", -1),
        ("seed", 1.0),
        ("depth_max", 0),
        ("levels_max", 129),
        ("wildcard", 1.01),
        ("descendant", -1),
        ("predicates", -1),
        ("nested_paths", 21),
        ("name_skew", -0.5),
        ("name_skew", float("nan")),
        ("stop_odds", "x"),
        ("values", "none"),
        ("repeats_max", 0),
        ("statistics_seed", "a"),
    ],
)
def test_parameters_are_checked(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        QueryParameters(**{name: value})


def test_mix_is_checked() -> None:
    with pytest.raises(ConfigError, match="text"):
        PredicateMix(text=-1)
    with pytest.raises(ConfigError, match="all weights"):
        PredicateMix(attribute_equal=0, text=0, position=0)


def test_more_predicates_than_a_step_may_have() -> None:
    """A step may have 16: with twenty on one step a query is still accepted and says them all."""
    parameters = QueryParameters(
        count=200, predicates=20, depth_max=1, mix=PredicateMix(text=0, position=0), distinct=False
    )
    attributes = " ".join(f"a{number} CDATA #IMPLIED" for number in range(40))
    graph = parse_dtd(f"<!ELEMENT a EMPTY><!ATTLIST a {attributes}>")
    texts = list(generate_queries(graph, parameters))
    assert any(" and " in text for text in texts)
    for text in texts:
        canonical_form(text)
        assert text.count("[") <= 16
        assert 10 < len(set(re.findall(r"@a\d+", text))) <= 20
