"""Tables with a budget: they fit, forward no message too few, and follow their stream."""

from __future__ import annotations

import random

import pytest

from generators import FamilyShape, random_family, random_message, random_valued_message
from pathcast.errors import QuerySyntaxError
from pathcast.overlay.budgeted_table import BudgetedTable
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.table import Table


def _reviewed(table: BudgetedTable) -> bool:
    """Whether a review was due; it is done."""
    review = table.review()
    if review is not None:
        table.adopt(review.choose())
    return review is not None


def _order(town: str, item: int) -> bytes:
    return f"<order><to>{town}</to><item no='{item}'/></order>".encode()


@pytest.mark.parametrize("seed", [0, 2])
def test_no_message_is_lost_while_tables_are_made_anew(seed: int) -> None:
    """Whatever comes between a review and its end: what was wanted is sent, the table fits."""
    draw = random.Random(seed)
    texts = random_family(draw, 40, FamilyShape(has_alternatives=True))
    entries = sorted({entry for text in texts for entry in disjuncts_of(text, deliver="ids")})
    exact, table = Table(), BudgetedTable(12)
    told: dict[str, set[str]] = {"east": set(), "west": set()}
    wanted = reviews = 0
    for _ in range(12):
        review = table.review()
        for _ in range(2):
            origin = draw.choice(sorted(told))
            added = draw.sample(entries, min(10, len(entries)))
            removed = [entry for entry in told[origin] if draw.random() < 0.3]
            exact.set(origin, added, removed)
            table.set(origin, added, removed)
            told[origin] = (told[origin] | set(added)) - set(removed)
        if review is not None:
            table.adopt(review.choose())
            reviews += 1
        messages = [random_valued_message(draw) for _ in range(8)]
        messages += [random_message(draw) for _ in range(8)]
        for needed, sent in zip(exact.route(messages), table.route(messages), strict=True):
            wanted += bool(needed)
            assert needed <= sent
    assert wanted
    assert reviews > 1
    while _reviewed(table):
        pass
    assert len(table) <= 12
    for origin, own in told.items():
        table.set(origin, [], sorted(own))
    assert (len(table), table.route([b"<a/>"])) == (0, [frozenset()])


def test_a_pattern_stays_whole_and_keeps_what_all_entries_say() -> None:
    """The linear paths of the entries hold of batches in which another order has items."""
    table = BudgetedTable(2)
    table.set("east", [f"//order[to='Bern']/item[@no='{n}']" for n in range(30)], [])
    table.set("east", ["//recall"], [])
    wanted = [b"<batch>%s</batch>" % _order("Bern", n % 30) for n in range(20)]
    others = [
        b"<batch><order><to>Bern</to></order>%s</batch>" % _order("Rome", n) for n in range(80)
    ]
    table.route([*wanted, *others])
    assert _reviewed(table)
    assert table.entries("east") == {"//order[to[.='Bern']]/item[@no]", "//recall"}
    assert table.in_vain == 0
    assert not any(table.route(others))


def test_a_table_is_exact_again_when_it_fits_without_being_wide() -> None:
    table = BudgetedTable(5)
    entries = [f"//order/item[@no='{n}']" for n in range(20)]
    table.set("east", entries, [])
    table.route([_order("Bern", n) for n in range(100)])
    assert _reviewed(table)
    assert len(table) == 1
    assert table.route([_order("Bern", 99)]) == [{"east"}]
    table.set("east", [], entries[4:])
    assert _reviewed(table)
    assert (len(table), table.in_vain) == (4, 0.0)
    assert table.route([_order("Bern", 99), _order("Bern", 3)]) == [frozenset(), {"east"}]


def test_a_choice_is_made_anew_when_the_stream_has_drifted() -> None:
    """All bills have a sum that somebody asks for at first; later nobody wants most of them."""
    table = BudgetedTable(24)
    table.set("east", [f"/bill[@in='CHF']/sum[.={n}]" for n in range(20)], [])
    table.set("east", [f"/order[@to='Bern']/no[.={n}]" for n in range(20)], [])

    def bills(first: int, count: int) -> list[bytes]:
        lines = "<line/>" * 40
        sums = range(first, first + count)
        return [f"<bill in='CHF'><sum>{n}</sum>{lines}</bill>".encode() for n in sums]

    orders = [f"<order to='Bern'><no>{n}</no></order>".encode() for n in range(200)]
    table.route([*(bills(0, 20) * 5), *orders])
    assert _reviewed(table)
    assert table.in_vain < 0.05
    table.route(bills(1000, 200))
    assert len(table.route(bills(2000, 1))[0]) == 1, "a bill is sent in vain"
    table.route(bills(3000, 4000))
    assert _reviewed(table)
    assert table.route(bills(2000, 1)) == [frozenset()]
    assert len(table) <= 24


def test_without_messages_nothing_is_chosen_and_what_is_no_entry_changes_nothing() -> None:
    table = BudgetedTable(1)
    table.set("east", ["/a", "/b"], [])
    assert table.review() is None
    with pytest.raises(QuerySyntaxError):
        table.set("east", ["/c", "/c["], ["/a"])
    assert table.entries("east") == {"/a", "/b"}
    assert table.told == 2


def _wide_order(*, fails: bool) -> BudgetedTable:
    """A table over its budget whose first review has ended, well or not."""
    table = BudgetedTable(3)
    table.set("east", [f"/order/to[.='t{n}']" for n in range(9)], [])
    table.route([_order(f"t{n}", n) for n in range(64)])
    review = table.review()
    assert review is not None
    table.set("east", ["/order/item[@no=70]"], ["/order/to[.='t1']"])
    if fails:
        table.fail()
    else:
        table.adopt(review.choose())
    return table


def test_a_review_that_fails_leaves_the_table_whole_and_is_due_again() -> None:
    """Whatever came meanwhile counts, and nothing has to change before it is made anew."""
    table = _wide_order(fails=True)
    assert table.failures == 1
    assert len(table) == 9
    messages = [_order("t0", 70), _order("t1", 1), _order("t2", 2)]
    assert list(map(sorted, table.route(messages))) == [["east"], [], ["east"]]
    assert _reviewed(table)
    assert len(table) <= 3
    assert not _reviewed(table)


def test_a_change_that_a_new_table_does_not_take_fails_its_review_alone() -> None:
    table = _wide_order(fails=False)
    assert len(table) <= 3
    table.route([_order(f"t{n}", n) for n in range(4096)])
    table.set("east", [f"/order/item[@no='{n}']" for n in range(9)], [])
    review = table.review()
    assert review is not None
    made = review.choose()
    table.set("west", ["/order/to[.='t5']"], [])
    assert made is not None
    made.table = None  # type: ignore[assignment]  # it takes nothing any more
    with pytest.raises(AttributeError):
        table.adopt(made)
    table.fail()
    assert table.route([_order("t5", 5)])[0] >= {"west"}
    assert _reviewed(table)
    assert len(table) <= 3
    assert table.route([_order("t5", 5)])[0] >= {"west"}
