"""XML Schema as an element graph: what may stand in what, in which namespace.

If these fail, queries are cleaned by a schema that says something else, and answers get lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("xmlschema", reason="xmlschema is not installed: pip install 'pathcast[xsd]'")

from pathcast.chunking import clean
from pathcast.errors import SchemaError
from pathcast.schema import ContentKind, XsdSchema, parse_xsd, read_xsd
from pathcast_papers.message import parse_message
from shared_data import shared_path

HEAD = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:n" targetNamespace="urn:n"'
)

FIGURE_4 = f"""{HEAD} elementFormDefault="qualified">
  <xs:element name="a" type="A"/>
  <xs:complexType name="A"><xs:sequence>
    <xs:element name="b" maxOccurs="unbounded"><xs:complexType><xs:sequence>
      <xs:element name="l" type="L" minOccurs="0" maxOccurs="unbounded"/>
      <xs:element name="m" minOccurs="0"><xs:complexType><xs:choice maxOccurs="unbounded">
        <xs:element name="c" type="xs:string"/><xs:element ref="a"/></xs:choice>
        </xs:complexType></xs:element>
      <xs:element name="k"><xs:complexType><xs:all>
        <xs:element name="d" type="xs:string"/></xs:all></xs:complexType></xs:element>
    </xs:sequence></xs:complexType></xs:element>
  </xs:sequence></xs:complexType>
  <xs:complexType name="L"><xs:sequence>
    <xs:element name="c" minOccurs="0" form="unqualified" type="xs:int"/>
  </xs:sequence><xs:attribute name="x" type="xs:ID" use="required"/></xs:complexType>
</xs:schema>"""


def children(schema: XsdSchema, local: str) -> list[str]:
    paths = schema.paths()
    return [name for _, name in paths.children(("urn:n", local))]


def test_queries_are_cleaned_by_it() -> None:
    paths = parse_xsd(FIGURE_4).paths(root=("urn:n", "a"))
    found = [each.text for each in clean("//*:c", paths).alternatives]
    n = "Q{urn:n}"
    assert found == [f"/{n}a/{n}b/{n}l/c", f"/{n}a/{n}b/{n}m//*:c"]
    assert clean("/n:a/n:d", paths, {"n": "urn:n"}).alternatives == ()


def test_content_models() -> None:
    graph = parse_xsd(FIGURE_4).graph
    shown = {
        name: [
            (child.name, child.required, child.repeatable) for child in graph[f"n1:{name}"].children
        ]
        for name in ("a", "b", "m", "k", "l")
    }
    assert shown == {
        "a": [("n1:b", True, True)],
        "b": [("n1:l", False, True), ("n1:m", False, False), ("n1:k", True, False)],
        "m": [("n1:c", False, True), ("n1:a", False, True)],
        "k": [("n1:d", True, False)],
        "l": [("c", False, False)],
    }
    assert graph["c"].kind is ContentKind.TEXT
    [attribute] = graph["n1:l"].attributes
    assert (attribute.name, attribute.type.name, attribute.default.name) == ("x", "ID", "REQUIRED")


def test_one_name_with_several_types_may_hold_what_any_of_them_may() -> None:
    schema = parse_xsd(f"""{HEAD} elementFormDefault="qualified">
      <xs:element name="r"><xs:complexType><xs:sequence>
        <xs:element name="one"><xs:complexType><xs:sequence><xs:element name="x"><xs:complexType>
          <xs:sequence><xs:element name="p" type="xs:int"/></xs:sequence>
          </xs:complexType></xs:element>
        </xs:sequence></xs:complexType></xs:element>
        <xs:element name="two"><xs:complexType><xs:sequence><xs:element name="x" type="xs:int"/>
        </xs:sequence></xs:complexType></xs:element>
      </xs:sequence></xs:complexType></xs:element></xs:schema>""")
    assert children(schema, "x") == ["p"]
    assert schema.graph["n1:x"].kind is ContentKind.MIXED
    assert not schema.graph["n1:x"].children[0].required


def test_substitutes_and_wildcards() -> None:
    schema = parse_xsd(f"""{HEAD} elementFormDefault="qualified">
      <xs:element name="head" type="xs:string"/>
      <xs:element name="other" type="xs:string" substitutionGroup="head"/>
      <xs:element name="r"><xs:complexType><xs:sequence><xs:element ref="head"/></xs:sequence>
        </xs:complexType></xs:element>
      <xs:element name="open"><xs:complexType><xs:sequence>
        <xs:element name="inside"/><xs:any processContents="lax"/></xs:sequence></xs:complexType>
      </xs:element></xs:schema>""")
    assert children(schema, "r") == ["head", "other"]
    assert schema.graph["n1:open"].kind is ContentKind.ANY
    assert "inside" in children(schema, "open")


@pytest.mark.parametrize("text", ["<a/>", "<xs:schema", "", "no/such/file.xsd"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_xsd(text)
    assert caught.value.code == "schema.xsd"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        read_xsd(tmp_path / "missing.xsd")


@pytest.mark.nightly
def test_real_messages_conform_to_their_schema() -> None:
    """FpML: hundreds of types, imports, substitution groups."""
    folder = shared_path("docs/fpml")
    schema = read_xsd(next(folder.glob("schema-*/fpml-main-*.xsd")))
    paths = schema.paths()
    looked = 0
    for message in sorted(folder.rglob("*.xml"))[:20]:
        tree = parse_message(message.read_bytes())
        if tree.name[0] not in paths.names:
            continue
        own = schema.paths(root=tree.name[0])
        pairs = zip(tree.name, tree.parent, strict=True)
        looked += all(name in own.children(tree.name[at]) for name, at in pairs if at >= 0)
    assert looked > 3
