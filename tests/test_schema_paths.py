"""Loops and single paths of element graphs, and messages that keep to them.

If these fail, a plan believes of a DTD what is not so, or a message that breaks it is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from pathcast.errors import SchemaError
from pathcast.limits import Limits
from pathcast.schema import parse_dtd, read_dtd
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths
from shared_data import shared_dtd

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

NAMES = "abcde"


def dtd_text(children: dict[str, str], any_names: str = "") -> str:
    def content(name: str) -> str:
        if name in any_names:
            return "ANY"
        return f"({'|'.join(children[name])})*" if children[name] else "EMPTY"

    return "".join(f"<!ELEMENT {name} {content(name)}>" for name in children)


def ways(children: dict[str, str], above: str, below: str, steps_max: int) -> Iterator[str]:
    """Every way down from one element to another, by trying."""
    waiting = [(above, "")]
    while waiting:
        here, way = waiting.pop()
        for child in children[here]:
            if child == below:
                yield way + child
            if len(way) < steps_max:
                waiting.append((child, way + child))


@pytest.mark.parametrize("seed", range(60))
def test_loops_and_single_paths_are_those_found_by_trying(seed: int) -> None:
    random = Random(seed)
    density = random.choice((0.15, 0.25, 0.4))
    children = {
        name: "".join(child for child in NAMES if random.random() < density) for name in NAMES
    }
    any_names = "c" if random.random() < 0.2 else ""
    elements = SchemaPaths(parse_dtd(dtd_text(children, any_names)))
    if any_names:
        children["c"] = NAMES
    below = {name: set(children[name]) for name in NAMES}
    for _ in NAMES:
        for inner in below.values():
            inner |= {deeper for name in inner for deeper in below[name]}
    for one in NAMES:
        assert elements.is_on_loop(("", one)) == (one in below[one])
        for other in NAMES:
            there = ("", other) in elements.children(("", one))
            assert there == (other in children[one])
            is_same = other in below[one] and one in below[other]
            assert elements.is_on_same_loop(("", one), ("", other)) == is_same
            found = list(ways(children, one, other, len(NAMES)))
            expected = None
            if len(found) == 1 and one != other:
                expected = tuple(("", name) for name in found[0])
            assert elements.single_path(("", one), ("", other)) == expected, (children, one, other)


def test_paths_from_the_document_node_need_the_root() -> None:
    text = "<!ELEMENT a (b)><!ELEMENT b (c?, d*)><!ELEMENT c EMPTY><!ELEMENT d (d?)>"
    rooted = SchemaPaths(parse_dtd(text), root="a")
    assert rooted.single_path(None, ("", "c")) == (("", "a"), ("", "b"), ("", "c"))
    assert rooted.single_path(None, ("", "a")) == (("", "a"),)
    assert rooted.single_path(None, ("", "d")) is None
    assert SchemaPaths(parse_dtd(text)).single_path(None, ("", "c")) is None


def test_a_root_on_a_loop_is_no_single_path() -> None:
    elements = SchemaPaths(parse_dtd("<!ELEMENT a (a?, b)><!ELEMENT b EMPTY>"), root="a")
    assert elements.single_path(None, ("", "a")) is None
    assert elements.single_path(None, ("", "b")) is None
    assert elements.single_path(("", "a"), ("", "b")) is None


def test_what_the_root_does_not_reach_does_not_count() -> None:
    text = "<!ELEMENT a (b)><!ELEMENT b EMPTY><!ELEMENT other (b, other?)>"
    assert SchemaPaths(parse_dtd(text)).looped == {("", "other")}
    rooted = SchemaPaths(parse_dtd(text), root="a")
    assert not rooted.looped
    assert ("", "b") not in rooted.children(("", "other"))


def test_root_must_be_declared() -> None:
    with pytest.raises(SchemaError, match="declares no element z"):
        SchemaPaths(parse_dtd("<!ELEMENT a (z?)>"), root="z")


def test_names_are_expanded() -> None:
    graph = parse_dtd(
        "<!ELEMENT n:a (b)*><!ATTLIST n:a xmlns:n CDATA #FIXED 'urn:n'>"
        "<!ELEMENT b (n:a?, x:c?)><!ATTLIST b xmlns CDATA #FIXED 'urn:b'><!ELEMENT x:c EMPTY>"
    )
    elements = SchemaPaths(graph)
    assert elements.is_on_same_loop(("urn:n", "a"), ("urn:b", "b"))
    assert not elements.is_on_loop(("", "b"))
    # Nothing binds x, so no message has such an element as far as this DTD knows.
    assert ("", "c") not in elements.children(("urn:b", "b"))
    given = SchemaPaths(graph, namespaces={"x": "urn:x", "n": "urn:other"})
    assert ("urn:x", "c") in given.children(("urn:b", "b"))
    assert given.is_on_loop(("urn:other", "a"))


@pytest.mark.parametrize(
    ("message", "conforms"),
    [
        (b"<book><section><section><p/></section></section></book>", True),
        (b"<book/>", True),
        (b"<section/>", False),
        (b"<book><p/></book>", False),
        (b"<book><section><p><section/></p></section></book>", False),
        (b"<book><other/></book>", False),
        (b"<book><section xmlns='urn:x'/></book>", False),
        # No validation: order and number are nobody's business here.
        (b"<book><section/><section/>text</book>", True),
    ],
)
def test_conforming_messages(message: bytes, conforms: bool) -> None:
    elements = SchemaPaths(
        parse_dtd("<!ELEMENT book (section)><!ELEMENT section (p|section)*><!ELEMENT p EMPTY>"),
        root="book",
    )
    tree = parse_message(message, Limits())
    assert elements.conforms(tree.name, tree.parent) is conforms


def test_without_a_root_any_element_may_be_it() -> None:
    elements = SchemaPaths(parse_dtd("<!ELEMENT a (b)><!ELEMENT b EMPTY>"))
    tree = parse_message(b"<b/>", Limits())
    assert elements.conforms(tree.name, tree.parent)


def test_any_content_takes_declared_elements_only() -> None:
    elements = SchemaPaths(parse_dtd("<!ELEMENT a ANY><!ELEMENT b EMPTY>"))
    for message, conforms in ((b"<a><a><b/></a></a>", True), (b"<a><c/></a>", False)):
        tree = parse_message(message, Limits())
        assert elements.conforms(tree.name, tree.parent) is conforms


def test_large_graphs_take_linear_time() -> None:
    # Elements declared ANY have as many edges as there are pairs; a chain is as deep as it is long.
    names = [f"e{number}" for number in range(4000)]
    chain = "".join(
        f"<!ELEMENT {name} ({below})>" for name, below in zip(names, [*names[1:], "z"], strict=True)
    )
    elements = SchemaPaths(parse_dtd(chain + "<!ELEMENT z EMPTY>"), root="e0")
    way = elements.single_path(("", "e0"), ("", "z"))
    assert way is not None
    assert len(way) == 4000
    free = "".join(f"<!ELEMENT {name} ANY>" for name in names)
    assert len(SchemaPaths(parse_dtd(free)).looped) == 4000


@pytest.mark.parametrize(
    ("name", "looped", "single"),
    [
        ("usecases/book.dtd", {"section"}, ("figure", "image")),
        ("usecases/bib.dtd", set(), ("book", "publisher")),
        ("play.dtd", set(), ("SPEECH", "SPEAKER")),
    ],
)
def test_public_dtds(name: str, looped: set[str], single: tuple[str, str]) -> None:
    graph = read_dtd(shared_dtd(name))
    elements = SchemaPaths(graph, root=graph.root().name)
    assert {local for _, local in elements.looped} == looped
    above, below = single
    assert elements.single_path(("", above), ("", below)) == (("", below),)


def test_loops_are_the_recursive_elements_of_the_graph() -> None:
    graph = read_dtd(shared_dtd("nitf-2-5.dtd"))
    assert {local for _, local in SchemaPaths(graph).looped} == graph.recursive_elements


@pytest.mark.parametrize(
    ("message", "above", "below", "way", "expected"),
    [
        (b"<a><b><c/></b></a>", "a", "c", "bc", True),
        (b"<a><b><c/></b><c/></a>", "a", "c", "bc", False),
        (b"<a><b/></a>", "a", "c", "bc", True),  # No way at all.
        (b"<x><c/></x>", "a", "c", "bc", True),  # No such element at all.
        (b"<a><b><c/></b></a>", None, "c", "abc", True),
        (b"<b><c/></b>", None, "c", "abc", False),
        (b"<c/>", None, "c", "abc", False),
        (b"<a/>", None, "a", "a", True),
        (b"<a><a/></a>", None, "a", "a", False),
        (b"<a><b><a><b><c/></b></a></b></a>", "a", "c", "bc", False),
    ],
)
def test_ways_of_a_message(
    message: bytes, above: str | None, below: str, way: str, expected: bool
) -> None:
    tree = parse_message(message, Limits())
    paths = SchemaPaths.of_message(tree.name, tree.parent)
    names = tuple(("", name) for name in way)
    start = None if above is None else ("", above)
    assert paths.has_no_other_way(start, ("", below), names) is expected
    assert paths.conforms(tree.name, tree.parent)
