"""How often a path can occur in a message of a DTD.

If these fail, a pattern that a message has twice is taken for one that it has once: placements get
worse, though never wrong.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from pathcast.errors import SchemaError
from pathcast.schema import MANY, PathOccurrences, SchemaStep, parse_dtd
from pathcast.workload import DOMAINS, DocumentParameters, generate_documents

etree = pytest.importorskip(
    "lxml.etree", reason="lxml is not installed: pip install 'pathcast[workload]'"
)


def steps_of(path: str) -> list[SchemaStep]:
    """As written: a normal form may ask for less (`//*` for `/*`), as it asks for existence."""
    return [
        SchemaStep(axis, None, None) if name == "*" else SchemaStep(axis, "", name)
        for axis, name in re.findall("(//?)([^/]+)", path)
    ]


@pytest.mark.parametrize(
    ("path", "times"),
    [
        ("/remittance", 1),
        ("/payment", 0),
        ("/remittance/envelope/sender/institution/bank-code", 1),
        ("//sender//bank-code", 1),
        ("//bank-code", MANY),
        ("/remittance/batch", MANY),
        ("/remittance/*/count", 1),
        ("/remittance/control/*", MANY),
        ("//seal", 1),
        ("//*//*//seal", 1),
        ("//*//*//*//seal", 0),
        ("//control//*", MANY),
        ("//control/seal/*", 0),
        ("//nothing", 0),
    ],
)
def test_payments(path: str, times: int) -> None:
    counts = PathOccurrences(DOMAINS["payments"].graph(), root="remittance")
    assert counts.max_occurrences(steps_of(path)) == times


def test_recursion_and_anything() -> None:
    graph = parse_dtd(
        "<!ELEMENT a (b?, c?)><!ELEMENT b (b?, d)><!ELEMENT c ANY><!ELEMENT d EMPTY>"
        "<!ELEMENT e (e)>"
    )
    counts = PathOccurrences(graph, root="a")
    asked = {"/a/b": 1, "//b": MANY, "/a/b/d": 1, "/a//d": MANY, "/a/c": MANY, "/a/c/e": 0}
    asked |= {"/a/e": 0, "/b": 0, "//c//a": MANY}
    # An `a` may stand in `c`, but the root is one.
    asked["/a/c"] = 1
    assert {path: counts.max_occurrences(steps_of(path)) for path in asked} == asked
    assert PathOccurrences(graph).max_occurrences(steps_of("/b")) == 1
    or_self = [SchemaStep("/", "", "a"), SchemaStep("/", "", "b"), SchemaStep("//.", None, None)]
    assert counts.max_occurrences(or_self) == MANY
    with pytest.raises(SchemaError):
        PathOccurrences(graph, root="f")


def test_names_with_namespaces() -> None:
    graph = parse_dtd(
        "<!ELEMENT n:a (b)><!ATTLIST n:a xmlns:n CDATA #FIXED 'urn:n'><!ELEMENT b EMPTY>"
    )
    counts = PathOccurrences(graph, root="n:a")
    assert counts.max_occurrences([SchemaStep("/", "urn:n", "a"), SchemaStep("/", "", "b")]) == 1
    assert counts.max_occurrences([SchemaStep("/", "", "a")]) == 0
    assert counts.max_occurrences([SchemaStep("/", "urn:n", None)]) == 1


@pytest.mark.parametrize("name", DOMAINS)
def test_documents_never_have_more(name: str) -> None:
    """Random paths, counted by lxml in documents that are valid."""
    domain = DOMAINS[name]
    graph = domain.graph()
    counts = PathOccurrences(graph, root=domain.root)
    parameters = DocumentParameters(count=15, seed=4, depth_max=7, repeats_max=2, root=domain.root)
    random = Random(name)
    said = {1: 0, MANY: 0}
    for document in generate_documents(graph, parameters):
        tree = etree.fromstring(document)
        for _ in range(40):
            path = random_path(random, random.choice([*tree.iter(etree.Element)]))
            most = counts.max_occurrences(steps_of(path))
            found = len(tree.xpath(path))
            assert found >= 1
            assert most == MANY or found <= most, path
            said[most] += 1
    assert min(said.values()) > 20


def random_path(random: Random, element: Any) -> str:
    """A path that leads to an element, and perhaps to others."""
    names = [each.tag for each in (*reversed([*element.iterancestors()]), element)]
    path, axis = "", "/"
    for place, name in enumerate(names):
        is_last = place == len(names) - 1
        lot = random.random()
        if lot < 0.3 and not is_last:
            axis = "//"
            continue
        path += axis + ("*" if lot > 0.85 else name)
        axis = "/"
    return path
