"""Wider entries: nothing that was wanted is lost, and tables fit what they are given."""

from __future__ import annotations

import itertools
import random

import pytest

from every_engine import engines
from generators import FamilyShape, random_family, random_message, random_valued_message
from oracles.engines import made_by
from overlay_reference import Network, collect
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.generalisation import (
    LEVELS,
    Optimiser,
    Sample,
    at_level,
    shape_of,
)
from pathcast.overlay.reasons import entries_that_hold
from pathcast.overlay.table import Table
from pathcast.query import conjunction_of
from pathcast_lab.bench.overlay.byte_budgets import ENTRY_BYTES, Generalisation, table_bytes, within
from pathcast_lab.bench.overlay.common_paths import common_entry


def _entries(seed: int, count: int = 8) -> list[str]:
    shape = FamilyShape(has_alternatives=seed % 2 == 0)
    texts = random_family(random.Random(seed), count, shape)
    return sorted({entry for text in texts for entry in disjuncts_of(text, deliver="ids")})


def test_a_level_covers_and_is_canonical() -> None:
    changed = dict.fromkeys(LEVELS, 0)
    for seed in range(4):
        for entry in _entries(seed):
            special = conjunction_of(entry)
            for level in LEVELS:
                general = at_level(entry, level)
                assert conjunction_of(general).text == general
                assert conjunction_of(general).covers(special), (level, entry, general)
                changed[level] += general != entry
    assert all(changed.values())


@engines
def test_whoever_wanted_a_message_still_gets_it(engine: str) -> None:
    """On messages, for every level: what holds of an entry holds of what it became."""
    chosen, wanted = random.Random(5), 0
    for seed in range(2):
        entries = _entries(seed, 6)
        messages = [random_valued_message(chosen) for _ in range(12)]
        messages += [random_message(chosen) for _ in range(12)]
        table = made_by(engine, Table)
        table.set("exact", entries, [])
        for level in LEVELS:
            table.set(level, sorted({at_level(entry, level) for entry in entries}), [])
        for origins in table.route(messages):
            if "exact" in origins:
                wanted += 1
                assert origins == {"exact", *LEVELS}
    assert wanted > 0


def test_the_common_paths_of_all_disjuncts_are_the_paper_s_method() -> None:
    entries = ["/a/b and /c", "/a/b and /d", "/a/b and /c and /e"]
    assert common_entry(map(conjunction_of, entries)).text == "/a/b"
    assert common_entry(map(conjunction_of, ["/a", "/b"])).text == "/*"
    # Figure 6, (c) to (d), as the operator network does it.
    profiles = [
        f"/nitf[head/pubdata[@edition.area='SF']]//{each}"
        for each in ("tobject.subject[@a='Stock']", "tobject.subject[@b='fishing']", "series[@c]")
    ]
    (line,) = collect(Network.of({"q": each}).map() for each in profiles).common().describe()
    entries = [entry for profile in profiles for entry in disjuncts_of(profile)]
    assert line == f"{common_entry(map(conjunction_of, entries)).text} -> q"
    assert line == "/nitf/head/pubdata[@edition.area='SF'] -> q"


def test_a_curve_goes_down_to_any_message_and_says_what_it_costs() -> None:
    chosen = random.Random(2)
    entries = [f"/m/q[@sym='{n}']/bid[.>{n}] and /m/z" for n in range(20)] + ["/m/x[@y='1']"]
    messages = [b"<m><q sym='%d'><bid>%d</bid></q><z/></m>" % (n, n + 1) for n in range(10, 30)]
    messages += [b"<m><w/></m>", b"<m><q sym='3'/></m>", b"<m><x y='2'/></m>"]
    chosen.shuffle(messages)
    sample = Sample(messages)
    optimiser = Optimiser([entries], sample, ENTRY_BYTES)
    curve = list(optimiser.curve())
    assert (curve[0].table_bytes, curve[0].wrong_bytes) == (table_bytes(entries), 0)
    assert curve[-1].table_bytes == table_bytes(["/*"])
    for before, after in itertools.pairwise(curve):
        assert after.table_bytes < before.table_bytes
        assert after.wrong_bytes >= before.wrong_bytes
    table = Table()
    table.set("exact", entries, [])
    exact = [bool(origins) for origins in table.route(messages)]
    budgets = (curve[0].table_bytes, 500, 200, 100, 30)
    for budget, generalise in zip(budgets, within(optimiser, *budgets), strict=True):
        made = {generalise(entry) for entry in entries}
        point = next(each for each in curve if each.table_bytes <= budget)
        assert table_bytes(made) == point.table_bytes <= budget
        general = Table()
        general.set("general", sorted(made), [])
        forwarded = [bool(origins) for origins in general.route(messages)]
        wrong = [len(m) for m, e, f in zip(messages, exact, forwarded, strict=True) if f and not e]
        assert sum(wrong) == point.wrong_bytes
        assert all(f >= e for e, f in zip(exact, forwarded, strict=True))


def test_entries_of_shapes_that_have_no_level_stay_as_they_are() -> None:
    generalise = Generalisation({shape_of("/m/q[@sym='3']"): "existence"})
    assert generalise("/m/q[@sym='4']") == "/m/q[@sym]"
    assert generalise("/m/q[@sym='4']/x") == "/m/q[@sym='4']/x"


@pytest.mark.nightly
def test_levels_cover_on_many_populations() -> None:
    for seed in range(100, 400):
        for entry in _entries(seed):
            special = conjunction_of(entry)
            for level in LEVELS:
                assert conjunction_of(at_level(entry, level)).covers(special), (level, entry)


def test_entries_that_are_no_xpath_are_read() -> None:
    """Lists and casts are what canonical text has and XPath 1.0 has not."""
    entries = ["//a[@x=('1','2')]", "//a[double(@x)=3]", "//a[date(@x)>='2026-12-31Z']"]
    messages = [b"<a x='2'/>", b"<a x='3e0'/>", b"<a x='2027-01-01'/>", b"<a x='4'/>"]
    sample = Sample(messages)
    sample.read(entries)
    assert [sample.rows(entry) for entry in entries] == [0b001, 0b010, 0b100]
    assert [entries_that_hold(entries, message) for message in messages] == [
        [entry] for entry in entries
    ] + [[]]
