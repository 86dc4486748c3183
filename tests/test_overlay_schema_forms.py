"""Entries by schemas: nothing is lost whatever they say; of valid messages nothing is in vain."""

from __future__ import annotations

import pytest

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

from pathcast.overlay.budgeted_table import BudgetedTable
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.reasons import entries_that_hold
from pathcast.overlay.schema_forms import SchemaForms
from pathcast.query import conjunction_of
from pathcast.workload import DOMAINS, QueryParameters, generate_documents, generate_queries

ORDERS = (
    "<!ELEMENT orders (order*)><!ELEMENT order (to, item*, from?)><!ELEMENT to (#PCDATA)>"
    "<!ELEMENT item (no, part*)><!ELEMENT part (no)><!ELEMENT no (#PCDATA)>"
    "<!ELEMENT from (address)><!ELEMENT address (to)><!ATTLIST item sku CDATA #IMPLIED>"
)


@pytest.mark.parametrize(
    ("entry", "form"),
    [
        ("/orders/order/item[@sku='A7']", "//item[@sku='A7']"),
        ("//order/*[@sku='A7']", "//order/*[@sku='A7']"),
        ("/orders/order/to[.='Bern']", "//order/to[.='Bern']"),
        ("/orders/*/from/address/to", "//address//to"),
        ("//order//to", "//to"),
        ("//item/no[.=3]", "//item/no[.=3]"),
        ("//item//no[.=3]", "//no[.=3]"),
        ("/orders/*/item/part/no", "//part//no"),
        ("/orders/order[to='Bern']/item", "//order[.//item]/to[.='Bern']"),
        ("/orders[order/to='Bern']/order/item", "//item and //order/to[.='Bern']"),
        ("//order[.//sum=3]/item", "//order[.//item]//sum[.=3]"),
        ("//a[@x=('1','2')]", "//a[@x=('1','2')]"),
    ],
)
def test_an_entry_has_the_widest_form_that_says_the_same(entry: str, form: str) -> None:
    forms = SchemaForms([ORDERS])
    assert forms.of(entry) == form
    assert conjunction_of(form).covers(conjunction_of(entry))


def test_a_form_holds_by_the_schemas_of_all_sources() -> None:
    """Elsewhere an item stands in a bill: `//item` would forward bills in vain."""
    bills = "<!ELEMENT bill (item)><!ELEMENT item EMPTY>"
    assert SchemaForms([ORDERS]).of("/orders/order/item") == "//item"
    assert SchemaForms([ORDERS, bills]).of("/orders/order/item") == "//order//item"
    assert SchemaForms(["<!ELEMENT", bills]).of("/bill/item") == "//item"
    assert not SchemaForms(["", "<!ELEMENT"])


def test_a_document_type_that_contains_itself_is_looked_through() -> None:
    parts = "<!ELEMENT part (name, part*)><!ELEMENT name (#PCDATA)>"
    forms = SchemaForms([parts])
    assert forms.of("/part/name") == "/part/name"
    assert forms.of("//part/name") == forms.of("//part//name") == "//name"
    assert forms.of("//part/part/name") == "//part/part/name"


@pytest.mark.parametrize("domain", ["alerts", "news", "payments"])
def test_random_queries_are_fewer_entries_and_forward_nothing_in_vain(domain: str) -> None:
    """The papers' queries, with `*` and `//` in one of five steps each."""
    source = DOMAINS[domain]
    parameters = QueryParameters(count=300, seed=1)
    texts = list(generate_queries(source.graph(), parameters))
    entries = sorted({entry for text in texts for entry in disjuncts_of(text, deliver="ids")})
    merged = SchemaForms([source.dtd()]).merged(entries)
    held = {merged.get(entry, entry) for entry in entries}
    assert len(held) < 0.7 * len(entries)
    hold = 0
    for message in generate_documents(source.graph(), source.documents(10, 3)):
        exact = entries_that_hold(entries, message)
        expected = {merged.get(entry, entry) for entry in exact}
        assert set(entries_that_hold(held, message)) == expected
        hold += len(exact)
    assert hold > 0


def test_a_table_merges_by_schema_before_it_is_wider_unless_messages_do_not_keep_to_it() -> None:
    entries = [f"{path}[.={n}]" for n in range(9) for path in ("/orders/order/no", "//no")]
    schema = "<!ELEMENT orders (order*)><!ELEMENT order (no)><!ELEMENT no (#PCDATA)>"
    valid = [b"<orders><order><no>%d</no></order></orders>" % n for n in range(40)]
    table = BudgetedTable(9)
    table.set("east", entries[::2], [])
    table.set("west", entries[1::2], [])
    table.route(valid)
    review = table.review([schema])
    assert review is not None
    table.adopt(review.choose())
    assert table.entries("east") == {f"//no[.={n}]" for n in range(9)}
    assert (len(table), table.in_vain) == (9, 0.0)
    other = BudgetedTable(17)
    other.set("east", entries[::2], [])
    other.set("west", entries[1::2], [])
    other.route([*valid, *(b"<bill><no>%d</no></bill>" % n for n in range(9))])
    review = other.review([schema])
    assert review is not None
    other.adopt(review.choose())
    assert "//no[.=3]" not in other.entries("east")
    assert len(other) <= 17
