"""Completion of interests: contexts, attributes, values, prefixes, what is not complete at all."""

from __future__ import annotations

import pytest

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

from pathcast.errors import QuerySyntaxError
from pathcast.lint import Completion, complete, structure_of_dtd
from pathcast.overlay.completing import completion
from pathcast.schema import parse_dtd
from pathcast.store import SampleRecord

ORDERS = """
<!ELEMENT orders (order*)><!ELEMENT order (to, item*, note?)><!ELEMENT to (#PCDATA)>
<!ELEMENT item (part*)><!ELEMENT part EMPTY><!ELEMENT note (#PCDATA|to)*>
<!ATTLIST order id ID #REQUIRED state (open|paid) "open">
<!ATTLIST item sku CDATA #IMPLIED size (s|m) #IMPLIED>
"""


def texts(found: Completion) -> list[str]:
    return [each.text for each in found.proposals]


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("", ["orders"]),
        ("/", ["orders"]),
        ("/or", ["orders"]),
        ("//or", ["order", "orders"]),
        ("//order/", ["item", "note", "to"]),
        ("/orders/order/t", ["to"]),
        ("/orders/*/item/", ["part"]),
        ("//order//", ["item", "note", "part", "to"]),
        ("//order/@", ["id", "state"]),
        ("//order//@s", ["size", "sku", "state"]),
        ("//order[", ["item", "note", "to"]),
        ("//order[to = 'Bern'][item/@", ["size", "sku"]),
        ("//order[to = 'Bern' and no", ["note"]),
        ("//order[to='x']/item[@sku='[']/", ["part"]),
        ("//order[item[@size='s']/pa", ["part"]),
        ("//order[count(it", ["item"]),
        ("//order[not(note) and @", ["id", "state"]),
        ("//order[./item/", ["part"]),
        ("//order[.//pa", ["part"]),
        ("//order[//par", ["part"]),
        ("//note/to/..", []),
        ("//note/to/../t", ["to"]),
        ("//order | //it", ["item"]),
        ("//order[@state = '", ["open", "paid"]),
        ('//order[@state="p', ["paid"]),
        ("//order[to = 'B", []),
        ("//item[@size != 's' and @size = '", ["m", "s"]),
        ("//nothing/", []),
        ("//*:or", ["*:order", "*:orders"]),
    ],
)
def test_proposals_are_those_of_the_context(begun: str, expected: list[str]) -> None:
    found = complete(begun, [structure_of_dtd(parse_dtd(ORDERS))])
    assert texts(found) == expected
    for each in found.proposals:
        assert (begun[: found.offset] + each.text).startswith(begun)


def test_names_of_namespaces_are_written_as_the_interest_binds_them() -> None:
    sample = SampleRecord("s", ("<o xmlns='urn:o'><no xmlns='' k='1'/><sum/></o>",))

    def proposed(begun: str, **namespaces: str) -> list[str]:
        return texts(completion(begun, (), [sample], namespaces))

    assert proposed("/") == ["Q{urn:o}o"]
    assert proposed("/", o="urn:o") == ["o:o"]
    assert proposed("/o:o/", o="urn:o") == ["no", "o:sum"]
    assert proposed("/o:o/o:s", o="urn:o") == ["o:sum"]
    assert proposed("/*:") == ["*:o"]
    assert proposed("//no/@") == ["k"]


def test_samples_and_schemas_of_all_sources_are_joined() -> None:
    sample = SampleRecord("s", ("<order state='lost'><carrier/></order>", "no message"))
    schemas = [ORDERS, "<!ELEMENT", ""]
    assert texts(completion("//order/", schemas, [sample])) == ["carrier", "item", "note", "to"]
    assert texts(completion("//order[@state = '", schemas, [sample])) == ["lost", "open", "paid"]
    assert completion("//order/", [], []).proposals == ()


def test_what_is_complete_has_to_be_xpath() -> None:
    with pytest.raises(QuerySyntaxError):
        complete("//order/::/", [structure_of_dtd(parse_dtd(ORDERS))])
