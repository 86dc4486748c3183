"""DTDs of messages: internal subset, external file, catalog; as untrusted input.

If these fail, a DTD is not found where it lies, or a message chooses which files are read.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from pathcast.errors import SchemaError
from pathcast.schema import (
    DocumentType,
    read_catalog,
    read_doctype,
    read_document_schema,
    read_dtd,
)
from pathcast.schema.catalog import CATALOG_BYTES_MAX, CATALOGS_MAX, Catalog, parse_catalog
from pathcast.schema.external import DTD_BYTES_MAX

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

OASIS = 'xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog"'


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("<a/>", None),
        ("", None),
        ("<!-- <!DOCTYPE a> --><a/>", None),
        ("<!DOCTYPE a><a/>", DocumentType("a", None, None, "")),
        (
            "<?xml version='1.0'?>\n<!-- c --><?p i?>\n<!DOCTYPE  n:a\n SYSTEM 'x.dtd' ><a/>",
            DocumentType("n:a", None, "x.dtd", ""),
        ),
        (
            '<!DOCTYPE a PUBLIC " -//X//EN " "x.dtd" [ ]><a/>',
            DocumentType("a", "-//X//EN", "x.dtd", " "),
        ),
        (
            """<!DOCTYPE a [<!ENTITY e "]>"><!-- ]> ' --><?p ]> ?>%pe;<!ELEMENT a EMPTY>\n] >x""",
            DocumentType(
                "a",
                None,
                None,
                """<!ENTITY e "]>"><!-- ]> ' --><?p ]> ?>%pe;<!ELEMENT a EMPTY>\n""",
            ),
        ),
    ],
)
def test_document_type_declarations(message: str, expected: DocumentType | None) -> None:
    assert read_doctype(message) == expected
    assert read_doctype("\ufeff" + message) == expected
    assert read_doctype(("\ufeff" + message).encode("utf-16-le")) == expected


@pytest.mark.parametrize(
    "message",
    [
        "<!DOCTYPE",
        "<!DOCTYPE >",
        "<!DOCTYPE a",
        "<!DOCTYPE a SYSTEM>",
        "<!DOCTYPE a PUBLIC 'x'>",
        "<!DOCTYPE a [<!ELEMENT a EMPTY>",
        "<!DOCTYPE a [<!ELEMENT a EMPTY]>",
        "<!DOCTYPE a [ text ]>",
        "<!DOCTYPE a [<![INCLUDE[<!ELEMENT a EMPTY>]]>]>",
        "<!DOCTYPE a [<!-- ]>",
        "<!DOCTYPE a [" + "<!" * 50_000,
        "<!DOCTYPE a [" + "<!a '" * 50_000,
        "<!DOCTYPE a " + " " * 100_000,
    ],
)
def test_declarations_that_cannot_be_read_are_refused(message: str) -> None:
    with pytest.raises(SchemaError, match="the message cannot be read"):
        read_doctype(message)


def test_messages_that_are_too_large_are_refused() -> None:
    with pytest.raises(SchemaError, match="more than"):
        read_doctype("<!DOCTYPE a>" + " " * DTD_BYTES_MAX)


def test_internal_subset() -> None:
    schema = read_document_schema("<!DOCTYPE a [<!ELEMENT a (b*)><!ELEMENT b EMPTY>]><a/>")
    assert schema is not None
    assert schema.graph is not None
    assert schema.is_complete
    paths = schema.paths()
    assert paths is not None
    assert (paths.root, paths.children(("", "a"))) == (("", "a"), (("", "b"),))


@pytest.mark.parametrize(
    "message",
    [
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a/>",
        "<!DOCTYPE a [<!ENTITY % e SYSTEM 'http://127.0.0.1:9/e'>%e;]><a/>",
        "<!DOCTYPE a SYSTEM 'a.dtd'><a/>",
    ],
)
def test_without_declared_elements_there_is_no_graph(message: str) -> None:
    schema = read_document_schema(message)
    assert schema is not None
    assert schema.graph is None
    assert schema.paths() is None


def test_a_root_that_is_not_declared_gives_no_paths() -> None:
    schema = read_document_schema("<!DOCTYPE z [<!ELEMENT a EMPTY>]><a/>")
    assert schema is not None
    assert schema.graph is not None
    assert schema.paths() is None


def test_external_subset_comes_after_the_internal_one(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.dtd").write_text(
        '<!ENTITY % content "b"><!ENTITY % m SYSTEM "m.mod">%m;<!ELEMENT a (%content;)>'
    )
    (tmp_path / "sub" / "m.mod").write_text("<!ELEMENT b EMPTY><!ELEMENT c EMPTY>")
    message = "<!DOCTYPE a SYSTEM 'sub/a.dtd' [<!ENTITY % content 'c'>]><a/>"
    schema = read_document_schema(message, directory=tmp_path)
    assert schema is not None
    assert schema.graph is not None
    assert schema.is_complete
    assert [child.name for child in schema.graph["a"].children] == ["c"]
    unread = read_document_schema(message)
    assert unread is not None
    assert not unread.is_complete


@pytest.mark.parametrize(
    "system",
    ["../secret.dtd", "{absolute}", "file://{absolute}", "link.dtd", "sub/../../secret.dtd"],
)
def test_a_message_does_not_choose_files(tmp_path: Path, system: str) -> None:
    secret = tmp_path / "secret.dtd"
    secret.write_text("<!ELEMENT leaked EMPTY>")
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "link.dtd").symlink_to(secret)
    system = system.replace("{absolute}", str(secret))
    for message in (
        f"<!DOCTYPE leaked SYSTEM '{system}'><a/>",
        f"<!DOCTYPE leaked [<!ENTITY % m SYSTEM '{system}'>%m;]><a/>",
    ):
        schema = read_document_schema(message, directory=inside)
        assert schema is not None
        assert schema.graph is None
        assert not schema.is_complete
    dtd = inside / "x.dtd"
    dtd.write_text(f"<!ENTITY % m SYSTEM '{system}'>%m;<!ELEMENT a EMPTY>")
    assert read_dtd(dtd).unread_entities == ("m",)


@pytest.mark.parametrize(
    "text",
    [
        # Parameter entities that grow ten times at each of eight levels.
        '<!ENTITY % a0 "b">'
        + "".join(f'<!ENTITY % a{n} "{",".join([f"%a{n - 1};"] * 10)}">' for n in range(1, 9))
        + "<!ELEMENT a (%a8;)>",
        "<!ELEMENT a " + "(" * 5000 + "b" + ")" * 5000 + ">",
        "<!ELEMENT a (b,(b," * 3000,
    ],
)
def test_hostile_declarations_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.dtd"
    path.write_text(text)
    with pytest.raises(SchemaError):
        read_dtd(path)


# Catalogs.


def catalog_of(entries: str, attributes: str = "") -> Catalog:
    return parse_catalog(f"<catalog {OASIS} {attributes}>{entries}</catalog>".encode(), Path("/c"))


def found(catalog: Catalog, public: str | None, system: str | None) -> str | None:
    path = catalog.find(public, system)
    return None if path is None else path.as_posix()


def test_system_entries_come_before_public_ones() -> None:
    catalog = catalog_of(
        '<public publicId="-//P//EN" uri="p.dtd"/><system systemId="urn:s" uri="s.dtd"/>'
        '<systemSuffix systemIdSuffix="tail.dtd" uri="short.dtd"/>'
        '<systemSuffix systemIdSuffix="/long-tail.dtd" uri="long.dtd"/>'
    )
    assert found(catalog, "-//P//EN", "urn:s") == "/c/s.dtd"
    assert found(catalog, " -//P//EN\n", "urn:other") == "/c/p.dtd"
    assert found(catalog, "-//P//EN", None) == "/c/p.dtd"
    assert found(catalog, None, "http://x/long-tail.dtd") == "/c/long.dtd"
    assert found(catalog, None, "urn:other") is None
    assert found(catalog, None, None) is None


def test_the_longest_rewrite_holds() -> None:
    catalog = catalog_of(
        '<rewriteSystem systemIdStartString="http://x/" rewritePrefix="short/"/>'
        '<rewriteSystem systemIdStartString="http://x/y/" rewritePrefix="file:///long/"/>'
    )
    assert found(catalog, None, "http://x/y/a.dtd") == "/long/a.dtd"
    assert found(catalog, None, "http://x/a%20b.dtd") == "/c/short/a b.dtd"
    for system in ("http://x/../a", "http://x/y/../../etc/passwd", "http://x/%2e%2e/a"):
        assert found(catalog, None, system) is None, "what is rewritten stays below its prefix"


def test_public_identifiers_beside_system_identifiers_as_preferred() -> None:
    entry = '<public publicId="P" uri="p.dtd"/>'
    system = catalog_of(entry, 'prefer="system"')
    assert found(system, "P", "urn:x") is None
    assert found(system, "P", None) == "/c/p.dtd"
    group = catalog_of(f'<group prefer="public" xml:base="g/">{entry}</group>', 'prefer="system"')
    assert found(group, "P", "urn:x") == "/c/g/p.dtd"


def test_the_first_entry_holds() -> None:
    catalog = catalog_of('<public publicId="P" uri="one.dtd"/><public publicId="P" uri="two.dtd"/>')
    assert found(catalog, "P", None) == "/c/one.dtd"


@pytest.mark.parametrize("uri", ["http://x/a.dtd", "https://x/", "file://host/a.dtd", "ftp:x"])
def test_what_is_not_local_is_not_found(uri: str) -> None:
    assert found(catalog_of(f'<public publicId="P" uri="{uri}"/>'), "P", None) is None


def test_bases_are_followed() -> None:
    catalog = catalog_of(
        '<group xml:base="file:///other/x.xml"><public publicId="P" uri="p.dtd"/></group>'
        '<group xml:base="deep/"><public publicId="Q" uri="/top.dtd"/></group>'
        '<public publicId="R" uri="../r.dtd"/>',
        'xml:base="base/"',
    )
    assert found(catalog, "P", None) == "/other/p.dtd"
    assert found(catalog, "Q", None) == "/top.dtd"
    assert found(catalog, "R", None) == "/c/r.dtd"


def test_next_catalogs_are_asked_in_order(tmp_path: Path) -> None:
    def write(name: str, entries: str) -> None:
        (tmp_path / name).write_text(f"<catalog {OASIS}>{entries}</catalog>")

    write("a.xml", '<public publicId="A" uri="a.dtd"/><nextCatalog catalog="b.xml"/>')
    write(
        "b.xml",
        '<public publicId="A" uri="b.dtd"/><public publicId="B" uri="b.dtd"/>'
        '<nextCatalog catalog="a.xml"/><nextCatalog catalog="http://127.0.0.1:9/c.xml"/>',
    )
    catalog = read_catalog(tmp_path / "a.xml")
    assert catalog.find("A", None) == tmp_path / "a.dtd"
    assert catalog.find("B", None) == tmp_path / "b.dtd"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no element found"),
        ("<catalog>", "root is catalog"),
        (f"<group {OASIS}/>", "root is group"),
        (f"<catalog {OASIS}><public publicId='P'/></catalog>", "has no uri"),
        (f"<catalog {OASIS}><system uri='x'/></catalog>", "has no systemId"),
        (f"<!DOCTYPE catalog [<!ENTITY e 'x'>]><catalog {OASIS}/>", "declares entities"),
        (f"<catalog {OASIS}>{' ' * CATALOG_BYTES_MAX}</catalog>", "more than"),
    ],
)
def test_what_is_no_catalog_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        parse_catalog(text.encode(), Path("/c"))


def test_endless_catalogs_are_refused(tmp_path: Path) -> None:
    for number in range(CATALOGS_MAX + 2):
        (tmp_path / f"{number}.xml").write_text(
            f'<catalog {OASIS}><nextCatalog catalog="{number + 1}.xml"/></catalog>'
        )
    with pytest.raises(SchemaError, match="leads to more than"):
        read_catalog(tmp_path / "0.xml")
    with pytest.raises(SchemaError, match="No such file"):
        read_catalog(tmp_path / "missing.xml")


def test_dtd_of_a_message_by_catalog(tmp_path: Path) -> None:
    (tmp_path / "dtd").mkdir()
    (tmp_path / "dtd" / "book.dtd").write_text(
        '<!ENTITY % m PUBLIC "-//M//EN" "http://x/m.mod">%m;<!ELEMENT book (section*)>'
    )
    (tmp_path / "dtd" / "m.mod").write_text("<!ELEMENT section (section*)>")
    (tmp_path / "catalog.xml").write_text(
        f'<catalog {OASIS}><public publicId="-//B//EN" uri="dtd/book.dtd"/>'
        '<rewriteSystem systemIdStartString="http://x/" rewritePrefix="dtd/"/></catalog>'
    )
    catalog = read_catalog(tmp_path / "catalog.xml")
    schema = read_document_schema(
        '<!DOCTYPE book PUBLIC "-//B//EN" "http://elsewhere/book.dtd"><book/>', catalog=catalog
    )
    assert schema is not None
    assert schema.is_complete
    paths = schema.paths()
    assert paths is not None
    assert [name for name in paths.names if name in paths.below(name)] == [("", "section")]
    by_file = read_dtd(tmp_path / "dtd" / "book.dtd", catalog=catalog)
    assert by_file.recursive_elements == {"section"}


_PIECES = (
    *("<!DOCTYPE ", "a", " SYSTEM 'x.dtd'", ' PUBLIC "p" "s"', " [", "]", ">", "]>", "<a/>"),
    *("<!ELEMENT a (b|c)*>", "<!ELEMENT ", "(#PCDATA|b)*", "ANY", "EMPTY", "((b,c)+|d?)", "<!--"),
    *("-->", "<!ENTITY % p 'b|c'>", "%p;", "<!ATTLIST a k CDATA #FIXED 'v'>", "<?x ?>", "'", '"'),
    *("<![INCLUDE[", "]]>", "&#0;", "\0", "\ud7ff", "é", ":", "b:c", "<!NOTATION n SYSTEM 'x'>"),
)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    read = 0
    for _ in range(300):
        pieces = random.choices(_PIECES, k=random.randrange(1, 12))
        text = "".join(pieces)
        if random.random() < 0.6:
            text = f"<!DOCTYPE a [<!ELEMENT a (b?)>{text}]><a/>"
        data = text.encode(random.choice(("utf-8", "utf-16", "latin-1")), "replace")
        try:
            schema = read_document_schema(data, directory=tmp_path)
        except SchemaError:
            continue
        if schema is not None:
            schema.paths()
            read += schema.graph is not None
    assert read > 5
