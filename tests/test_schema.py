"""DTD -> element graph.

If these fail, generated workloads do not follow their DTD, or reading one reaches for the network.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from pathcast.errors import MissingDependencyError, SchemaError
from pathcast.schema import (
    AttributeDefault,
    AttributeType,
    Child,
    ChoiceParticle,
    ContentKind,
    ElementGraph,
    NameParticle,
    Occurrence,
    SequenceParticle,
    parse_dtd,
    read_dtd,
)
from pathcast.schema.external import with_modules
from shared_data import shared_dtd

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")


@pytest.mark.parametrize(
    ("name", "elements", "attributes", "recursive", "root"),
    [
        ("nitf-2-5.dtd", 123, 513, 26, "nitf"),
        ("nitf-2-5-compact/nitf-2-5.dtd", 123, 513, 26, "nitf"),
        ("auction.dtd", 77, 16, 5, "site"),
        ("dblp.dtd", 37, 23, 4, "dblp"),
        ("NewsMLv1.2.dtd", 118, 498, 5, "NewsML"),
        ("SigmodRecord.dtd", 11, 1, 0, "SigmodRecord"),
        ("sigmod-1999/SigmodRecord.dtd", 11, 1, 0, "SigmodRecord"),
        ("mondial.dtd", 56, 77, 1, "mondial"),
        ("play.dtd", 21, 0, 0, "PLAY"),
        ("rss-0.91.dtd", 24, 1, 0, "rss"),
        ("usecases/bib.dtd", 10, 1, 0, "bib"),
        ("usecases/book.dtd", 7, 5, 1, "book"),
        ("usecases/bib-with-reviews.dtd", 14, 0, 0, "bib"),
        ("ejb-jar_2_0.dtd", 81, 81, 0, "ejb-jar"),
        ("web-app_2_3.dtd", 77, 77, 0, "web-app"),
        ("xhtml1-strict.dtd", 77, 1373, 56, "html"),
        ("xmlspec.dtd", 114, 304, 33, "spec"),
    ],
)
def test_public_dtds(name: str, elements: int, attributes: int, recursive: int, root: str) -> None:
    # Numbers of the paper's Table 1 (123, 77, 36 + 1 of a later version) and of the data's README.
    graph = read_dtd(shared_dtd(name))
    assert len(graph) == elements
    assert sum(len(element.attributes) for element in graph) == attributes
    assert len(graph.recursive_elements) == recursive
    assert graph.root().name == root
    assert not undeclared(graph)


def undeclared(graph: ElementGraph) -> set[str]:
    """Names that content models mention and nothing declares."""
    mentioned = {child.name for element in graph for child in element.children}
    return mentioned - {element.name for element in graph}


def test_two_texts_of_one_dtd_give_one_graph() -> None:
    full, compact = (
        read_dtd(shared_dtd(name)) for name in ("nitf-2-5.dtd", "nitf-2-5-compact/nitf-2-5.dtd")
    )
    assert full.declared == compact.declared


def test_content_models() -> None:
    graph = parse_dtd(
        "<!ELEMENT a (b, (c | (d, e)+ | f?), b)>"
        "<!ELEMENT b EMPTY><!ELEMENT c ANY><!ELEMENT d (#PCDATA)>"
        "<!ELEMENT e (#PCDATA | b | c)*><!ELEMENT f (b)*>"
    )
    once, many = Occurrence.ONCE, Occurrence.MANY
    b, c = NameParticle("b", once), NameParticle("c", once)
    pair = SequenceParticle((NameParticle("d", once), NameParticle("e", once)), many)
    choice = ChoiceParticle((c, pair, NameParticle("f", Occurrence.OPTIONAL)), once)
    assert graph["a"].content == SequenceParticle((b, choice, b), once)
    assert graph["a"].children == (
        Child("b", required=True, repeatable=True),
        Child("c", required=False, repeatable=False),
        Child("d", required=False, repeatable=True),
        Child("e", required=False, repeatable=True),
        Child("f", required=False, repeatable=False),
    )
    assert [graph[name].kind for name in "abcdef"] == [
        ContentKind.CHILDREN,
        ContentKind.EMPTY,
        ContentKind.ANY,
        ContentKind.TEXT,
        ContentKind.MIXED,
        ContentKind.CHILDREN,
    ]
    assert graph["e"].content == ChoiceParticle((b, c), Occurrence.ANY)
    assert graph["f"].children == (Child("b", required=False, repeatable=True),)


def test_long_choice_does_not_exhaust_the_stack() -> None:
    names = [f"e{number}" for number in range(3000)]
    text = f"<!ELEMENT a ({'|'.join(names)})*>" + "".join(f"<!ELEMENT {n} EMPTY>" for n in names)
    assert len(parse_dtd(text)["a"].children) == 3000


def test_attributes() -> None:
    graph = parse_dtd(
        "<!ELEMENT a EMPTY><!ATTLIST a one CDATA #REQUIRED two (x | y) 'y' "
        "three NMTOKEN #IMPLIED four CDATA #FIXED 'http://x' five ID #IMPLIED>"
    )
    found = {attribute.name: attribute for attribute in graph["a"].attributes}
    assert found["one"].default is AttributeDefault.REQUIRED
    assert found["two"].enumeration == ("x", "y")
    assert (found["two"].default, found["two"].value) == (AttributeDefault.VALUE, "y")
    assert found["three"].type is AttributeType.NMTOKEN
    assert (found["four"].default, found["four"].value) == (AttributeDefault.FIXED, "http://x")
    assert found["five"].type is AttributeType.ID


def test_prefixes_are_kept_in_content_models_and_attributes() -> None:
    graph = parse_dtd(
        "<!ELEMENT p:a (q:b, p:b)><!ELEMENT p:b EMPTY><!ELEMENT q:b (#PCDATA)>"
        "<!ATTLIST p:a xmlns:p CDATA #FIXED 'urn:p' q:k CDATA #IMPLIED>"
    )
    assert [child.name for child in graph["p:a"].children] == ["q:b", "p:b"]
    assert sorted(attribute.name for attribute in graph["p:a"].attributes) == ["q:k", "xmlns:p"]
    assert {a.value for a in graph["p:a"].attributes} == {"urn:p", None}


def test_recursion_roots_and_heights() -> None:
    graph = parse_dtd(
        "<!ELEMENT r (a?, z?)><!ELEMENT a (b)><!ELEMENT b (a | c)><!ELEMENT c EMPTY>"
        "<!ELEMENT z (z, missing)><!ELEMENT loner EMPTY>"
    )
    assert graph.recursive_elements == {"a", "b"}
    assert graph.root_candidates == ("r", "loner")
    assert graph.heights == {"r": 1, "a": 3, "b": 2, "c": 1, "loner": 1}
    assert graph.child_names["r"] == ("a",), "z demands itself and can stand in no valid document"
    assert undeclared(graph) == {"missing"}
    with pytest.raises(SchemaError, match="element z cannot be completed"):
        graph.root("z")
    with pytest.raises(SchemaError, match="declares no element nowhere"):
        graph.root("nowhere")


def test_every_element_in_another_one() -> None:
    graph = parse_dtd("<!ELEMENT a (b?, c?)><!ELEMENT b (a?)><!ELEMENT c EMPTY>")
    assert graph.root_candidates == ("a", "b")


def test_no_element_can_be_completed() -> None:
    with pytest.raises(SchemaError, match="can be completed"):
        parse_dtd("<!ELEMENT a (a)>").root()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<!ELEMENT a (b", "line 1"),
        ("", "cannot be read|declares no element"),
        ("<!-- nothing -->", "declares no element"),
        ("\u203f\u2040\u00b7<!ELEMENT a EMPTY>", "uses all of"),
    ],
)
def test_what_is_no_dtd_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason) as caught:
        parse_dtd(text, name="some.dtd")
    assert "some.dtd" in str(caught.value)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="No such file"):
        read_dtd(tmp_path / "nowhere.dtd")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    declaration = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n'
    path = tmp_path / "x.dtd"
    path.write_bytes((declaration + "<!ELEMENT größe (#PCDATA)>").encode(encoding))
    assert "größe" in read_dtd(path)


def test_wrong_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.dtd"
    path.write_bytes("<!ELEMENT größe EMPTY>".encode("latin-1"))
    with pytest.raises(SchemaError, match="utf-8"):
        read_dtd(path)


def test_missing_lxml_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pathcast\[workload\]'"):
        parse_dtd("<!ELEMENT a EMPTY>")


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a DTD opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    (tmp_path / "secret").write_text("<!ELEMENT leaked EMPTY>")
    text = "".join(
        f"<!ENTITY % m{number} {identifier}>%m{number};"
        for number, identifier in enumerate(
            [
                'SYSTEM "http://127.0.0.1:9/m.mod"',
                'PUBLIC "-//X//EN" "https://127.0.0.1:9/m.mod"',
                "SYSTEM 'ftp://127.0.0.1/m.mod'",
                "SYSTEM '//127.0.0.1/m.mod'",
                f"SYSTEM '{(tmp_path / 'secret').as_uri()}'",
                'SYSTEM "missing.mod"',
                'PUBLIC "no system identifier"',
            ]
        )
    )
    path = tmp_path / "x.dtd"
    path.write_text(text + "<!ELEMENT a EMPTY>")
    graph = read_dtd(path)
    assert [element.name for element in graph] == ["a"]
    assert graph.unread_entities == tuple(f"m{number}" for number in range(7))


def test_local_modules_are_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.mod").write_text('<!ENTITY % two SYSTEM "two.mod">%two;')
    (tmp_path / "sub" / "two.mod").write_text("<?xml encoding='utf-8'?><!ELEMENT b EMPTY>")
    path = tmp_path / "x.dtd"
    path.write_text(
        '<!ENTITY % kept "<!ELEMENT c EMPTY>"><!ENTITY % kept SYSTEM "sub/one.mod">'
        '<!-- %one; --><!ENTITY % one SYSTEM "sub/one.mod">%one;%kept;<!ELEMENT a (b, c)>'
    )
    graph = read_dtd(path)
    assert [element.name for element in graph] == ["b", "c", "a"]
    assert graph.unread_entities == ()
    assert undeclared(parse_dtd(path.read_text())) == {"b"}, "text reads no file"


def test_module_that_calls_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.dtd"
    path.write_text('<!ENTITY % me SYSTEM "x.dtd">%me;<!ELEMENT a EMPTY>')
    with pytest.raises(SchemaError, match="deep"):
        read_dtd(path)


def test_module_inside_a_declaration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text("b | c")
    path = tmp_path / "x.dtd"
    path.write_text('<!ENTITY % m SYSTEM "m.mod"><!ELEMENT a (%m;)>')
    with pytest.raises(SchemaError, match="inside a declaration"):
        read_dtd(path)


@pytest.mark.parametrize("text", ["<!" * 20000, "<!a '" * 20000, "%" * 50000, "<![" * 20000])
def test_odd_text_takes_linear_time(text: str) -> None:
    assert with_modules(text, None, "the DTD").unread == ()
    with pytest.raises(SchemaError):
        parse_dtd(text)


def test_graph_needs_an_element() -> None:
    with pytest.raises(SchemaError):
        ElementGraph(())
