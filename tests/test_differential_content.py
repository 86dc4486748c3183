"""Conditions on values and nested paths, many at a place: engine == oracle == lxml.

If one of these fails, queries that share a structure and differ in constants disturb each other: a
look-up finds the wrong constants, or answers depend on what was registered, removed or matched
before. See test_differential_anchors.py for where conditions and nested paths stand.

PATHCAST_CONTENT=<cases> makes every test of this module longer (default 8 cases; 500 take some
minutes); `make nightly` runs the random families at length, as PATHCAST_NIGHTLY says.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import product
from xml.sax.saxutils import escape, quoteattr

import pytest

from content_cases import CASES, NIGHTLY_CASES, Content, cases, families, paths, shapes
from every_engine import engines
from generators import random_split
from generators.content import NUMBERS, STRINGS, VALUES
from oracles import assert_same_matches
from oracles.engines import EngineName
from pathcast.query.canonical import literal_text
from pathcast.registry import Snapshot

# --- Random families --------------------------------------------------------------------------


@engines
@shapes
def test_families_of_queries(engine: EngineName, shape: str) -> None:
    matches = 0
    for seed in cases(engine):
        content = Content.random(shape, seed, families(engine))
        content.check(content.index(engine).freeze())
        matches += content.matches
    least = 5 if engine == "reference" else 30
    assert matches > least * len(cases(engine)), "the families match too little to prove anything"


@paths
def test_oracle_agrees_with_lxml(shape: str) -> None:
    for seed in range(100, 100 + max(2, CASES // 6)):
        content = Content.random(shape, seed, families=4)
        content.messages = list(content.messages)[:6]
        by_lxml, by_oracle = content.by_lxml(), content.by_oracle()
        for number, message in enumerate(content.messages):
            found, wanted = (
                [query_id for query_id, rows in truth.items() if number in rows]
                for truth in (by_oracle, by_lxml)
            )
            assert_same_matches(found, wanted, "oracle", "lxml", content.texts, message)


@pytest.mark.nightly
@engines
@shapes
def test_families_of_queries_at_length(engine: EngineName, shape: str) -> None:
    for seed in range(10_000, 10_000 + NIGHTLY_CASES // (10 if engine == "reference" else 1)):
        content = Content.random(shape, seed, families(engine))
        content.check(content.index(engine).freeze())


# --- Every subject, operator and constant against every value ----------------------------------

SUBJECTS = {
    # Where the value stands in the message, and who is asked.
    "attribute": ("/a/b[{}]", "@x"),
    "attribute below": ("/a[{}]", "b/@x"),
    "any attribute": ("//b[{}]", "@*"),
    "text": ("//b[{}]", "text()"),
    "value": ("/a/b[{}]", "."),
    "child value": ("/a[{}]", "b"),
    "descendant value": ("//a[{}]/b", ".//b"),
    "end of the path": ("/a[{}]", "*//text()"),
}

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@cache
def cross_product(subject: str) -> Content:
    frame, asked = SUBJECTS[subject]
    constants = [*NUMBERS, *map(literal_text, dict.fromkeys((*STRINGS, *VALUES)))]
    texts = [
        frame.format(f"{asked} {operator} {constant}")
        for operator, constant in product(OPERATORS, constants)
    ]
    if subject in ("attribute", "value"):
        texts += [
            frame.format(f"{function}({asked}, {literal_text(constant)})")
            for function in ("starts-with", "contains")
            for constant in dict.fromkeys((*STRINGS, *VALUES))
        ]
    return Content(texts, [*map(one_value, VALUES), *several_values(), *divided_values()])


def one_value(value: str) -> bytes:
    return f"<a><b x={quoteattr(value)}>{escape(value)}</b></a>".encode()


def several_values() -> Iterator[bytes]:
    """Two and three values: a comparison holds if it holds for one of them."""
    generator = random.Random(8)
    for count in (2, 2, 2, 2, 3, 3, 3, 5):
        rows = "".join(
            f"<b x={quoteattr(value)} y={quoteattr(other)}>{escape(value)}<i/>{escape(other)}</b>"
            for value, other in zip(
                generator.sample(VALUES, count), generator.sample(VALUES, count), strict=True
            )
        )
        yield f"<a>{rows}</a>".encode()


def divided_values() -> Iterator[bytes]:
    """Values in parts: `.` is all the text inside, `text()` each part by itself."""
    yield b"<a x='5'><b x='5'/><b>5<i>.</i>0</b></a>"
    yield b"<a><b x='us'>u<i>s</i>e</b></a>"
    yield b"<a><b><i>5</i></b></a>"
    yield b"<a><b x='5'> <i/>5</b></a>"
    yield b"<a><b/></a>"
    yield b"<a/>"
    yield "<a><b>日<i/>本<i>語</i></b></a>".encode()
    yield b"<a><b><![CDATA[5]]><!-- c --><![CDATA[.0]]></b></a>"


@engines
@pytest.mark.parametrize("subject", sorted(SUBJECTS))
def test_every_comparison_of_every_value(engine: EngineName, subject: str) -> None:
    content = cross_product(subject)
    assert content.matches > 1000
    index = content.index(engine)
    content.check(index)
    content.check(index.freeze())


@engines
def test_thresholds_that_meet(engine: EngineName) -> None:
    """Ranges on one attribute: each threshold and operator at, between, beside values."""
    constants = [f"{number / 4:g}" for number in range(-20, 60)]
    constants += [f"1{'0' * 308}", f"-1{'0' * 308}", ".0000001", "-.0000001", "0", "-0"]
    texts = [
        f"//r[@v {operator} {constant}]" for operator, constant in product(OPERATORS, constants)
    ]
    texts += [f"//r[@v > {low} and @v <= {low}]" for low in constants]
    texts += [
        f"//r[@v >= {low}][{high} > @v]/t"
        for low, high in zip(constants, constants[3:], strict=False)
    ]
    values = [*(f"{number / 8:g}" for number in range(-24, 64)), "1" + "0" * 400, "-1" + "0" * 400]
    values += ["", "x", "-0", "00", "1 1", " 1 ", "1.", ".25", "-.25"]
    messages = [f"<m><r v='{value}'><t/></r></m>".encode() for value in values]
    generator = random.Random(2)
    for count in (2, 3, 10):
        rows = "".join(f"<r v='{value}'/>" for value in generator.sample(values, count))
        messages.append(f"<m>{rows}<r><t/></r></m>".encode())
    content = Content(texts, messages)
    content.check(content.index(engine))


@engines
def test_numbers_that_only_the_last_bit_tells_apart(engine: EngineName) -> None:
    """Numbers are doubles, rounded to the nearest as written. libxml2 rounds digit by digit."""
    written = [
        *("9007199254740992", "9007199254740993", "9007199254740993.0000001", "9007199254740994"),
        *("0.1", "0.10000000000000001", "0.10000000000000002", "0.30000000000000004", ".3"),
        *("1.7976931348623157" + "0" * 20, "4.9999999999999991", "4.9999999999999998", "5"),
        *("17976931348623157" + "0" * 292, "17976931348623158" + "0" * 292, "2" + "0" * 308),
        *("." + "0" * 323 + "5", "." + "0" * 323 + "2", "." + "0" * 400 + "1", "0", "-0"),
        *("." + "0" * 307 + "22250738585072014", "3" * 40, "3" * 41, "3" * 40 + ".5"),
    ]
    finite = [number for number in written if abs(float(number)) != float("inf")]
    texts = [
        f"//r[{subject} {operator} {constant}]"
        for subject, operator, constant in product(("@v", "."), OPERATORS, finite)
    ]
    messages = [f"<m><r v='{value}'>{value}</r></m>".encode() for value in written]
    content = Content(texts, messages, with_oracle=True)
    assert content.matches > 1000
    content.check(content.index(engine))


@engines
def test_prefixes_of_prefixes(engine: EngineName) -> None:
    """Constants that begin each other, and end within what another has as one character."""
    whole = "日本語usé5😀15us"
    pieces = [whole[start:end] for start in range(4) for end in range(start, len(whole) + 1)]
    pieces += ["日本語u ", "日木", "us", "é", "e", "\U0001f601", "u" * 300, "u" * 299 + "v"]
    texts = [
        f"//r[{function}({subject}, '{piece}')]"
        for function in ("starts-with", "contains")
        for subject in ("@v", ".")
        for piece in dict.fromkeys(pieces)
    ]
    texts += [
        f"//r[starts-with(@v, '{one}') and contains(@v, '{two}')]"
        for one in pieces[:9]
        for two in pieces[-9:]
    ]
    values = [
        *dict.fromkeys(pieces),
        "x" + whole,
        whole + whole,
        "u" * 60_000,
        "v" * 60_000 + whole,
    ]
    messages = [f"<m><r v='{value}'>{value}</r></m>".encode() for value in values]
    rows = "".join(f'<r v="{value}"/>' for value in values[:9])
    messages.append(f"<m>{rows}<r/></m>".encode())
    content = Content(texts, messages)
    assert content.matches > 1000
    content.check(content.index(engine))


# --- What was registered, removed and matched before ---------------------------------------------


@engines
@shapes
def test_histories_of_families(engine: EngineName, shape: str) -> None:
    """Base and delta, removal, registration anew under the same id, compact: answers stay."""
    for seed in cases(engine):
        content = Content.random(shape, 500 + seed, families(engine))
        generator = random.Random(seed)
        ids = list(content.texts)
        generator.shuffle(ids)
        base = set(ids[: len(ids) // 2])
        index = content.index(engine, sorted(base))
        snapshots: list[tuple[Snapshot, set[str]]] = []
        registered = set(base)
        for _ in range(8):
            action = generator.choice(("add", "add", "remove", "remove", "compact", "freeze"))
            if action == "add":
                free = [query_id for query_id in ids if query_id not in registered]
                chosen = generator.sample(free, min(len(free), generator.randrange(1, 40)))
                content.register(index, chosen)
                registered |= set(chosen)
            elif action == "remove":
                chosen = generator.sample(
                    sorted(registered), min(len(registered), generator.randrange(1, 60))
                )
                index.remove(chosen)
                registered -= set(chosen)
            elif action == "compact":
                index.freeze()
            else:
                snapshots.append((index.freeze(), set(registered)))
            batch = generator.sample(range(len(content.messages)), 5)
            content.check(index, registered, batch)
        for snapshot, then in snapshots:
            content.check(snapshot, then)


@engines
@shapes
def test_batches_change_no_answer(engine: EngineName, shape: str) -> None:
    """Statistics of the stream may order the work; they may not show in an answer."""
    for seed in cases(engine):
        content = Content.random(shape, 900 + seed, families(engine))
        generator = random.Random(seed)
        matcher = content.index(engine).freeze()
        numbers = list(range(len(content.messages)))
        # A stream that is all alike, then all different, then all alike in another way.
        for stream in (
            [numbers[0]] * 30,
            generator.choices(numbers, k=40),
            [numbers[-1]] * 30,
            numbers,
        ):
            for batch in random_split(generator, stream):
                content.check(matcher, messages=batch)


@engines
def test_selectivity_that_turns_round(engine: EngineName) -> None:
    """What was rare becomes common: the condition that finds candidates may change, answers not."""
    texts = [
        f"//r[@x='{x}'][@y='{y}'][@z > {z}]" for x, y, z in product(range(8), range(8), range(4))
    ]
    texts += [
        f"//r[@x='{x}'][s[@k='{y}']][starts-with(@t, '{x}')]"
        for x, y in product(range(8), range(8))
    ]
    generator = random.Random(9)
    messages = []
    for phase in range(6):
        for _ in range(20):
            x, y, z = (
                generator.randrange(8) if (phase + attribute) % 3 else phase
                for attribute in range(3)
            )
            s = "".join(f"<s k='{generator.randrange(8)}'/>" for _ in range(generator.randrange(3)))
            messages.append(f"<m><r x='{x}' y='{y}' z='{z}' t='{x}{y}'>{s}</r></m>".encode())
    content = Content(texts, messages)
    assert content.matches > 200
    matcher = content.index(engine).freeze()
    for start in range(0, len(messages), 10):
        content.check(matcher, messages=range(start, start + 10))
    for start in range(0, len(messages), 30):
        content.check(matcher, messages=range(start, start + 30))
