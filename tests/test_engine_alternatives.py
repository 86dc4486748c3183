"""Queries of several paths and with an expression, through histories of an index.

If one of these fails, a query that ends at several places is lost, reported twice or stays behind
when others come and go, or its expression is mixed up with that of another.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from every_engine import engines
from oracles.engines import EngineName, made_by
from pathcast import Query, Registry, Snapshot
from pathcast.query import CostClass, compile_query

TEXTS = [
    "/a",
    "//b",
    "/a/b[@x = 1]",
    "//c[. > 2]",
    "/a | /c",
    "//b | /a/c | //d[@x]",
    "/c | /a",
    "/a[b or c]",
    "/a[b or @x = '2']//c",
    "//b[@x = 1 or @x = 2 or c]",
    "/a/b[c] | //d[not(c)]",
    "//b[last()]",
    "//b[last()] | //zzz",
    "not(//d)",
    "count(//b) > 1",
    "count( //b ) > 1",
    "//c[preceding-sibling::b]/@x",
    "//comment()",
    "//b[contains(concat(@x, '-'), '1-')]",
    "//d[../@x = @x]",
    "string-length(//c) > 0 and //b",
    "boolean(//a//processing-instruction('p'))",
    "sum(//@x) > 3",
    "//b[c = //d]",
]
"""Some are one query in two notations; all together end at few states, so that they share plans."""

MESSAGES = [
    b"<a/>",
    b"<a><b x='1'/><c x='2'>3</c></a>",
    b"<a x='2'><b x='2'><c>5</c></b><b/><d x='2'>5</d></a>",
    b"<c><b x='1'><c/></b><!-- note --></c>",
    b"<d><a><?p?><b/></a><c/></d>",
    b"<a><c/><b><d x='1'><c>1</c></d></b></a>",
]


def truth() -> dict[str, list[bool]]:
    """Text -> whether it holds, message by message, asked alone."""
    table = {}
    for text in TEXTS:
        index = made_by("reference", Registry)
        assert not index.add([Query("only", text)]).rejected, text
        batch = index.match(MESSAGES)
        table[text] = [len(result.query_ids) == 1 for result in batch]
    return table


@pytest.fixture(scope="module")
def holds() -> dict[str, list[bool]]:
    """The truth, which no history changes."""
    table = truth()
    for text, row in table.items():
        assert any(row), f"{text} holds nowhere: it proves nothing"
    return table


def test_texts_are_of_every_kind() -> None:
    compiled = [compile_query(text) for text in TEXTS]
    assert {plan.cost for plan in compiled} == set(CostClass)
    assert any(len(plan.alternatives) > 2 and plan.expression is None for plan in compiled)
    assert any(len(plan.alternatives) > 1 and plan.expression is not None for plan in compiled)


def check(
    matcher: Registry | Snapshot, queries: dict[str, str], holds: dict[str, list[bool]]
) -> None:
    for position, result in enumerate(matcher.match(MESSAGES)):
        wanted = sorted(name for name, text in queries.items() if holds[text][position])
        assert list(result.query_ids) == wanted, MESSAGES[position]
        numbers = list(result.query_numbers)
        assert numbers == sorted(set(numbers)), "a query is reported twice"
        assert not result.verdicts


@engines
@pytest.mark.parametrize("seed", range(4))
def test_histories(
    engine: EngineName, seed: int, holds: dict[str, list[bool]], tmp_path: Path
) -> None:
    rng = random.Random(seed)
    index = made_by(engine, Registry)
    queries: dict[str, str] = {}
    for step in range(40):
        match rng.randrange(6):
            case 0 | 1 | 2:
                new = {f"q{step}-{n}": rng.choice(TEXTS) for n in range(rng.randrange(1, 12))}
                assert not index.add([Query(*pair) for pair in new.items()]).rejected
                queries |= new
            case 3:
                gone = [name for name in queries if rng.random() < 0.3]
                index.remove(gone)
                for name in gone:
                    del queries[name]
            case 4:
                index.freeze()
            case 5:
                snapshot = index.freeze()
                check(snapshot, queries, holds)
                snapshot.save(tmp_path / "file")
                opened = made_by(engine, Snapshot.open, tmp_path / "file")
                assert opened.version == snapshot.version
                check(opened, queries, holds)
        check(index, queries, holds)
    assert len(index) == len(queries)


def test_the_papers_read_files_of_the_kernel(holds: dict[str, list[bool]], tmp_path: Path) -> None:
    pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")
    queries = {f"q{number}": text for number, text in enumerate(TEXTS)}
    index = made_by("kernel", Registry)
    index.add([Query(*pair) for pair in queries.items()])
    index.freeze().save(tmp_path / "file")
    check(made_by("reference", Snapshot.open, tmp_path / "file"), queries, holds)
