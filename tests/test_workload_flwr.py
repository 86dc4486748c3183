"""Generated FLWR queries and the messages that they are meant for.

If these fail, measurements of customised delivery are made on queries that repeat each other, that
no message of their DTD could satisfy, or that differ from machine to machine.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from itertools import islice
from statistics import mean

import pytest

from pathcast.errors import ConfigError
from pathcast.schema import parse_dtd
from pathcast_lab.workload import (
    BIB,
    BOOK,
    BROKER_WORKLOADS,
    BrokerWorkload,
    FlwrParameters,
    FlwrQuery,
    RepeatParameters,
    Repeats,
    generate_flwrs,
    generate_repeating,
)

etree = pytest.importorskip(
    "lxml.etree", reason="lxml is not installed: pip install 'pathcast[workload]'"
)

EITHER = pytest.mark.parametrize("workload", BROKER_WORKLOADS.values(), ids=lambda one: one.name)


def queries(workload: BrokerWorkload, count: int, **changes: object) -> list[FlwrQuery]:
    parameters = {"binding_depth_max": workload.binding_depth_max, **changes}
    return list(workload.queries(FlwrParameters(count=count, **parameters)))  # type: ignore[arg-type]


def steps(path: str) -> list[str]:
    """Element steps of a path, each with its slashes."""
    return re.findall(r"//?[a-z]\w*", path)


@EITHER
def test_messages_follow_their_dtd_and_the_papers_lengths(workload: BrokerWorkload) -> None:
    dtd = etree.DTD(io.StringIO(workload.dtd()))
    trees = [etree.fromstring(message) for message in workload.messages(400)]
    assert all(dtd.validate(tree) for tree in trees), dtd.error_log.filter_from_errors()
    paper = {"bib": 149, "book": 83}[workload.name]
    assert mean(len(list(tree.iter())) for tree in trees) == pytest.approx(paper, rel=0.06)


def test_bibliographies_have_four_levels_and_twenty_books() -> None:
    for message in BIB.messages(50):
        tree = etree.fromstring(message)
        assert len(tree) == 20
        for book in tree:
            people = book.findall("author") or book.findall("editor")
            assert 1 <= len(people) <= 5
        assert max(len(list(one.iterancestors())) for one in tree.iter()) == 3
    assert not BIB.graph().recursive_elements


def test_books_have_sections_in_sections_down_to_the_fourth_level() -> None:
    nesting = set()
    for message in BOOK.messages(100):
        tree = etree.fromstring(message)
        assert len(tree.findall("section")) == 12
        for section in tree.iter("section"):
            nesting.add(1 + len(list(section.iterancestors("section"))))
            for name in ("p", "figure", "section"):
                assert len(section.findall(name)) <= 4
    assert nesting == {1, 2, 3, 4}
    assert BOOK.graph().recursive_elements == {"section"}


@pytest.mark.parametrize("values_max", [1, 10, 100])
def test_values_of_messages_and_queries_stay_in_their_range(values_max: int) -> None:
    drawn: set[int] = set()
    for message in BOOK.messages(30, values_max=values_max):
        for element in etree.fromstring(message).iter():
            drawn |= {int(value) for value in element.attrib.values()}
            drawn |= {int(element.text)} if (element.text or "").strip() else set()
    assert drawn <= set(range(1, values_max + 1))
    assert max(drawn) == values_max
    for query in queries(BOOK, 300, values_max=values_max):
        assert all(1 <= int(predicate.constant) <= values_max for predicate in query.predicates)


@EITHER
def test_the_seed_decides_everything(workload: BrokerWorkload) -> None:
    first = list(workload.messages(3, seed=5))
    assert first == list(islice(workload.messages(9, seed=5), 3))
    assert first != list(workload.messages(3, seed=6))
    texts = [query.text() for query in queries(workload, 50, seed=5)]
    assert texts == [query.text() for query in queries(workload, 90, seed=5)][:50]
    assert texts != [query.text() for query in queries(workload, 50, seed=6)]


def test_bytes_and_texts_are_the_same_everywhere() -> None:
    # Known counts of benchmarks rest on this; a change is one on purpose.
    digest = hashlib.sha256()
    for workload in BROKER_WORKLOADS.values():
        for message in workload.messages(20, values_max=100):
            digest.update(message)
        for query in queries(workload, 200, values_max=100):
            digest.update(query.text().encode())
    assert digest.hexdigest()[:16] == "60b5c0cc804c9242"


@EITHER
def test_queries_are_unique_whatever_the_order_of_their_parts(workload: BrokerWorkload) -> None:
    found = queries(workload, 5_000, predicates=2, returns=3)
    keys = {
        (query.binding, frozenset(query.predicates), frozenset(query.returns)) for query in found
    }
    assert len(keys) == len({query.key for query in found}) == len(found) == 5_000


@EITHER
@pytest.mark.parametrize(
    ("d1", "d2", "predicates", "returns"), [(2, 1, 1, 1), (2, 2, 3, 4), (4, 3, 2, 2)]
)
def test_parameters_of_table_1_are_kept(
    workload: BrokerWorkload, d1: int, d2: int, predicates: int, returns: int
) -> None:
    found = queries(
        workload,
        300,
        binding_depth_max=d1,
        relative_depth_max=d2,
        predicates=predicates,
        returns=returns,
        values_max=50,
    )
    # Nothing below a book of a bibliography is bound, so its paths are no longer than two steps.
    longest = min(d1, 2) if workload is BIB else d1
    assert max(len(steps(query.binding)) for query in found) == longest
    assert max(len(steps(path)) for query in found for path in query.returns) <= d2
    for query in found:
        assert len(query.predicates) == predicates
        assert 1 <= len(set(query.returns)) == len(query.returns) <= returns
        assert all(1 <= len(steps(predicate.path)) <= d2 for predicate in query.predicates)
        assert list(query.predicates) == sorted(query.predicates)


@pytest.mark.parametrize("odds", [0.0, 0.2, 1.0])
def test_descendant_steps_are_as_frequent_as_asked(odds: float) -> None:
    found = queries(BOOK, 1_000, descendant=odds, values_max=1_000)
    paths = [path for query in found for path in (query.binding, *query.returns)]
    written = [step for path in paths for step in steps(path)]
    assert mean(step.startswith("//") for step in written) == pytest.approx(odds, abs=0.06)


def test_what_is_bound_is_what_the_paper_binds() -> None:
    assert {query.element for query in queries(BIB, 500)} == {"book"}
    bound = {query.element for query in queries(BOOK, 2_000, values_max=100)}
    assert bound == {"section", "figure", "p"}


@EITHER
def test_every_path_leads_somewhere(workload: BrokerWorkload) -> None:
    # A path that no message of the DTD has would make a workload look faster than it is.
    trees = [etree.fromstring(message) for message in workload.messages(200, values_max=3)]
    paths = set()
    for query in queries(workload, 400, values_max=3):
        paths |= {query.binding + predicate.path for predicate in query.predicates}
        paths |= {query.binding + path for path in query.returns}
    for path in paths:
        assert any(tree.xpath(path) for tree in trees), path


def test_text_is_the_papers_form() -> None:
    [query] = queries(BOOK, 1)
    expected = (
        r"<(?P<e>\w+)s>\{ for \$(?P<v>\w) in doc\(\"doc\.xml\"\)/[/\w]+ "
        r"where \$(?P=v)[/\w@]+ = \"\d+\" "
        r"return <(?P=e)>(\{ \$(?P=v)[/\w]+ \})+</(?P=e)> \}</(?P=e)s>"
    )
    assert re.fullmatch(expected, query.text()), query.text()
    assert query.text(opening='n="1"').startswith(f'<{query.element}s n="1">')


def test_exhausted_dtd_says_how_many_there_are() -> None:
    graph = parse_dtd(
        "<!ELEMENT a (b*)><!ELEMENT b (c)><!ATTLIST b k CDATA #REQUIRED><!ELEMENT c (#PCDATA)>"
    )
    parameters = FlwrParameters(count=10, returns=1, descendant=0, values_max=3)
    with pytest.raises(ConfigError, match="3") as caught:
        list(generate_flwrs(graph, parameters))
    assert caught.value.code == "workload.exhausted"


def test_dtd_without_anything_to_bind_is_refused() -> None:
    graph = parse_dtd("<!ELEMENT a (b)><!ELEMENT b (#PCDATA)>")
    with pytest.raises(ConfigError, match="binding_depth_max"):
        next(generate_flwrs(graph, FlwrParameters(count=1)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": -1},
        {"binding_depth_max": 0},
        {"predicates": 17},
        {"returns": 0},
        {"descendant": 1.5},
        {"values_max": 0},
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        FlwrParameters(**wrong)  # type: ignore[arg-type]


def repeating(dtd: str, **parameters: object) -> Iterator[bytes]:
    chosen = RepeatParameters(count=200, **parameters)  # type: ignore[arg-type]
    return generate_repeating(parse_dtd(dtd), chosen)


def test_every_kind_of_content_model_is_followed() -> None:
    dtd = (
        "<!ELEMENT a (b?, (c, d)+, (e | (f, g))*, h*, (i | j)?)><!ELEMENT b (#PCDATA)>"
        "<!ELEMENT c EMPTY><!ELEMENT d (#PCDATA | b | c)*><!ELEMENT e ANY><!ELEMENT f (b+)>"
        "<!ELEMENT g (h | i)+><!ELEMENT h EMPTY><!ELEMENT i (a?)><!ELEMENT j (#PCDATA)>"
        "<!ATTLIST c x CDATA #REQUIRED y CDATA #IMPLIED z CDATA #FIXED 'z' w (u | v) 'u'>"
    )
    checker = etree.DTD(io.StringIO(dtd))
    names = set()
    for message in repeating(dtd, depth_max=5, root="a"):
        tree = etree.fromstring(message)
        assert checker.validate(tree), (message, checker.error_log)
        names |= {element.tag for element in tree.iter()}
    assert names == set("abcdefghij"), "some particle is never written"


def test_depth_bounds_elements_in_themselves_only() -> None:
    dtd = "<!ELEMENT a (a | b)*><!ELEMENT b (c)><!ELEMENT c (d)><!ELEMENT d (#PCDATA)>"
    deepest = {"a": 0, "d": 0}
    for message in repeating(dtd, depth_max=3, others=Repeats(0, 2)):
        for element in etree.fromstring(message).iter("a", "d"):
            level = 1 + len(list(element.iterancestors()))
            deepest[element.tag] = max(deepest[element.tag], level)
    assert deepest == {"a": 3, "d": 6}


def test_repetition_is_bounded_by_element_and_by_parent() -> None:
    dtd = "<!ELEMENT a (b, c+)><!ELEMENT b (c*)><!ELEMENT c EMPTY>"
    counts: dict[str, set[int]] = {"a": set(), "b": set()}
    repeats = {"c": Repeats(0, 3), "a/c": Repeats(5, 6)}
    for message in repeating(dtd, repeats=repeats):
        for element in etree.fromstring(message).iter("a", "b"):
            counts[element.tag].add(len(element.findall("c")))
    assert counts == {"a": {5, 6}, "b": {0, 1, 2, 3}}


@pytest.mark.parametrize("wrong", [(3, 2, None), (-1, 2, None), (0, 1, 1.5)])
def test_impossible_repetition_is_refused(wrong: tuple[int, int, float | None]) -> None:
    with pytest.raises(ConfigError, match="repeats"):
        Repeats(*wrong)
