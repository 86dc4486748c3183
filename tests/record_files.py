"""Files of records: hostile ones by generator, and what lxml makes of them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
from lxml import etree

from pathcast.records import RECORDS, split_records

PATH = "/l/m/r"

_TEXTS = ("", "", "\n  ", " x ", "é€😀", "&amp;", "]]", "x>", "'\"", "&#60;r>", "a=b")
_MARKUP = (
    "<!-- <r> </m> ' \" ]]> -->",
    "<!---->",
    "<![CDATA[<r>]] ]> </r> <!-- ]]]>",
    "<?p <r a='?> ",
    "<?p?>",
    "<?q <r> ?>",
)
_RECORDS = (
    "<r/>",
    "<r />",
    "<r></r>",
    "<r a='>' b=\"'/\">x</r >",
    "<r><r>in<r/></r></r>",
    "<r><![CDATA[</r>]]></r>",
    "<r>\n<!-- </r> --><?p </r>?>é</r>",
    "<r xmlns=''/>",
    "<r n:x='1'/>",
    "<r xml:lang='de'\n>&gt;</r>",
)
_OTHERS = (
    "<x/>",
    "<x><r/><m><r>no</r></m></x>",
    "<n:r/>",
    "<r xmlns='urn:d'>no</r>",
    "<r2 r='>'/>",
    "<R/>",
)
_TOPS = ("<r/>", "<x><m><r/></m></x>", "<m/>", "<n:m><r>no</r></n:m>", "<mm><r/></mm>")

pieces = st.lists(st.sampled_from(_TEXTS + _MARKUP + _OTHERS + 3 * _RECORDS), max_size=5)
parents = st.builds(
    lambda attributes, inside: f"<m{attributes}>{''.join(inside)}</m >",
    st.sampled_from(("", " a='1'", " b='>' xml:lang='en'", " xmlns:n='urn:o'", " c='&lt;&#9;é'")),
    pieces,
)
tops = st.lists(st.one_of(parents, st.sampled_from(_TOPS + _MARKUP + _TEXTS)), max_size=3)
_DOCTYPE = (
    "<!DOCTYPE l [<!ENTITY e 'x>y'> <!ATTLIST m d CDATA 'é'> <!ATTLIST r d NMTOKEN ' 7 '>"
    " <!-- <r> ]> --> <?p ]> ?>]>"
)
prologs = st.sampled_from(
    (
        "",
        "\ufeff",
        "<?xml version='1.0'?>\n",
        "<!-- <l> --><?p <l>?> ",
        _DOCTYPE,
        "\ufeff" + _DOCTYPE,
    )
)
texts = st.builds(
    lambda prolog, attributes, inside, epilog: (
        f"{prolog}<l xmlns:n='urn:n'{attributes}>{''.join(inside)}</l>{epilog}"
    ),
    prologs,
    st.sampled_from(("", " a='>'", " xml:base='http://b/'")),
    tops,
    st.sampled_from(("", "\n", "<!-- <r/> -->\n", "<?p <r/>?>")),
)
"""Well-formed files with records at `PATH`, and much that looks like them."""

files = texts.map(lambda text: text.encode())


def rows_of(
    content: bytes | Path, record: str = PATH, *, ranges: int | None = None, **options: Any
) -> list[dict[str, Any]]:
    """What a file is cut into."""
    source: Any = content
    if isinstance(content, bytes):
        assert ranges is None, "ranges are of a file"
        source = io.BytesIO(content)
    batches = split_records(source, record=record, ranges=ranges, **options)
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, RECORDS).to_pylist()
    return rows


def messages_of(rows: list[dict[str, Any]]) -> list[bytes]:
    return [row["message"] for row in rows if row["message"] is not None]


def faults_of(rows: list[dict[str, Any]]) -> list[tuple[int, str, int]]:
    return [
        (row["offset"], row["code"], row["fault_offset"]) for row in rows if row["message"] is None
    ]


def expected(content: bytes, path: str = PATH) -> Iterator[bytes]:
    """Each record that lxml finds, with empty copies of its ancestors around it, canonically."""
    parser = etree.XMLParser(attribute_defaults=True, resolve_entities=True, no_network=True)
    for record in etree.fromstring(content, parser).xpath(path):
        whole = deepcopy(record)
        whole.tail = None
        # lxml leaves out what only outer elements declare, and nobody inside uses.
        for ancestor in record.iterancestors():
            shell = etree.Element(ancestor.tag, ancestor.attrib, ancestor.nsmap)
            shell.append(whole)
            whole = shell
        yield canonical(etree.tostring(whole))


def canonical(message: bytes) -> bytes:
    """Canonical form, prefixes by use, so that it does not matter where they are declared."""
    parser = etree.XMLParser(attribute_defaults=True, resolve_entities=True, no_network=True)
    tree = etree.fromstring(message, parser)
    text: bytes = etree.tostring(tree, method="c14n", exclusive=True, with_comments=True)
    return text
