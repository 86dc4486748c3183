"""Conditions on values and nested paths, many at a place: engine == oracle == lxml.

If one of these fails, queries that share a structure and differ in constants disturb each other: a
look-up finds the wrong constants, a nested path is taken for another one or for one at another
anchor, or answers depend on what was registered, removed or matched before.

PATHCAST_CONTENT=<cases> makes every test of this module longer (default 12 cases; 500 take some
minutes); `make nightly` runs the random families at length, as PATHCAST_NIGHTLY says.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from xml.sax.saxutils import escape, quoteattr

import pytest

from every_engine import engines
from pathcast.engine import Matcher, QueryIndex, Snapshot
from pathcast.limits import Limits
from pathcast.model import EngineName, Query
from pathcast.query import normalise
from pathcast.reference import parse
from pathcast.reference.oracle import Oracle
from pathcast.testing import LxmlQuery, assert_same_matches, lxml_tree, random_split
from pathcast.testing.content import (
    NUMBERS,
    STRINGS,
    VALUES,
    FamilyShape,
    random_family,
    random_valued_message,
)

CASES = int(os.environ.get("PATHCAST_CONTENT", "12"))
NIGHTLY_CASES = int(os.environ.get("PATHCAST_NIGHTLY", "20000")) // 100

SHAPES = {
    "values": FamilyShape(nesting_max=0, has_positions=False),
    "linear-positions": FamilyShape(nesting_max=0, steps_max=3),
    "nested": FamilyShape(nesting_max=2, has_positions=False, conditions_max=2),
    "everything": FamilyShape(nesting_max=3),
}

shapes = pytest.mark.parametrize("shape", sorted(SHAPES))


class Content:
    """Queries, messages and, by lxml or the oracle, which messages satisfy which query."""

    def __init__(
        self, texts: Iterable[str], messages: Sequence[bytes], *, with_oracle: bool = False
    ) -> None:
        self.texts = {f"q{number}": text for number, text in enumerate(texts)}
        self.queries = [Query(query_id, text) for query_id, text in self.texts.items()]
        self.messages = messages
        self.truth: dict[str, frozenset[int]] = self.by_oracle() if with_oracle else self.by_lxml()

    def by_lxml(self) -> dict[str, frozenset[int]]:
        trees = [lxml_tree(message) for message in self.messages]
        truth = {}
        for query in self.queries:
            compiled = LxmlQuery(query)
            truth[query.id] = frozenset(
                number for number, tree in enumerate(trees) if compiled.matches(tree)
            )
        return truth

    def by_oracle(self) -> dict[str, frozenset[int]]:
        oracles = [Oracle(parse(message, Limits())) for message in self.messages]
        normal = {query.id: normalise(query.text).steps for query in self.queries}
        return {
            query_id: frozenset(
                number for number, oracle in enumerate(oracles) if oracle.select(steps)
            )
            for query_id, steps in normal.items()
        }

    @classmethod
    def random(cls, shape: str, seed: int, families: int = 10) -> Content:
        generator = random.Random(f"content {shape} {seed}")
        texts = [
            text for _ in range(families) for text in random_family(generator, 24, SHAPES[shape])
        ]
        return cls(texts, [random_valued_message(generator) for _ in range(16)])

    @property
    def matches(self) -> int:
        return sum(map(len, self.truth.values()))

    def index(self, engine: EngineName, ids: Iterable[str] | None = None) -> QueryIndex:
        index = QueryIndex(engine=engine)
        self.register(index, self.texts if ids is None else ids)
        return index

    def register(self, index: QueryIndex, ids: Iterable[str]) -> None:
        report = index.register([Query(query_id, self.texts[query_id]) for query_id in ids])
        assert not report.rejected, {
            self.texts[query_id]: str(error) for query_id, error in report.rejected.items()
        }

    def check(
        self,
        matcher: Matcher,
        ids: Iterable[str] | None = None,
        messages: Sequence[int] | None = None,
    ) -> None:
        """Asks for some messages, by number, with some of the queries registered."""
        wanted_ids = self.texts if ids is None else set(ids)
        numbers = range(len(self.messages)) if messages is None else messages
        results = matcher.match_batch([self.messages[number] for number in numbers])
        for number, result in zip(numbers, results, strict=True):
            assert result.error is None
            wanted = [query_id for query_id in wanted_ids if number in self.truth[query_id]]
            assert_same_matches(
                result.query_ids, wanted, "engine", "lxml", self.texts, self.messages[number]
            )


def cases(engine: EngineName, fewest: int = 3) -> range:
    """Seeds to be tried; the reference engine is slow and sees fewer."""
    return range(max(fewest, CASES // 6) if engine == "reference" else CASES)


# --- Random families --------------------------------------------------------------------------


@engines
@shapes
def test_families_of_queries(engine: EngineName, shape: str) -> None:
    matches = 0
    for seed in cases(engine):
        content = Content.random(shape, seed)
        content.check(content.index(engine).freeze().matcher(threads=1))
        matches += content.matches
    assert matches > 60 * len(cases(engine)), "the families match too little to prove anything"


@shapes
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
        content = Content.random(shape, seed)
        content.check(content.index(engine).freeze().matcher(threads=1))


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


def literal(value: str) -> str:
    return f'"{value}"' if "'" in value else f"'{value}'"


@cache
def cross_product(subject: str) -> Content:
    frame, asked = SUBJECTS[subject]
    constants = [*NUMBERS, *map(literal, dict.fromkeys((*STRINGS, *VALUES)))]
    texts = [
        frame.format(f"{asked} {operator} {constant}")
        for operator, constant in product(OPERATORS, constants)
    ]
    if subject in ("attribute", "value"):
        texts += [
            frame.format(f"{function}({asked}, {literal(constant)})")
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
    content.check(index.matcher(threads=1))
    content.check(index.freeze().matcher(threads=2))


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
    content.check(content.index(engine).matcher())


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
    content.check(content.index(engine).matcher())


# --- Where conditions and nested paths stand ----------------------------------------------------


@engines
def test_conditions_with_recursion(engine: EngineName) -> None:
    """The same attribute at several steps of a recursion: each step needs its own element."""
    values = ("1", "2", "3")
    texts = [
        f"//a[@x='{one}']{axis}a[@x='{two}']{last}"
        for one, two, axis, last in product(
            values, values, ("/", "//", "/*/", "//*//"), ("", "//b", "/b", "//b[@x='1']")
        )
    ]
    texts += [f"//a//a[@x={one}]//a[@y<{two}]//a" for one, two in product(values, values)]
    texts += [
        f"//a[@x='{one}'][.//a[@x='{two}']//a[@y]]//a" for one, two in product(values, values)
    ]
    texts += [f"//a[a[@x='{one}']/a[@x='{two}']]" for one, two in product(values, values)]
    texts += [f"//*[@x='{one}']//*[@x='{two}']//*[@x='1']" for one, two in product(values, values)]
    generator = random.Random(3)
    messages = []
    for depth in (1, 2, 3, 4, 6, 9, 14, 20) * 3:
        text = "<b x='1'/>" if generator.randrange(2) else ""
        for _ in range(depth):
            name = generator.choice("aaab")
            attributes = "".join(
                f" {key}='{generator.choice(values)}'" for key in "xy" if generator.randrange(3)
            )
            text = f"<{name}{attributes}>{text}</{name}>"
        messages.append(text.encode())
    content = Content(texts, messages)
    assert content.matches > 100
    content.check(content.index(engine).matcher(threads=1))


ANCHORS = (
    # Two nested paths that hold, but not at one element; equal ones at different anchors; chains.
    "/r/a[b][c]/d",
    "/r/a[b/c][d/c]",
    "/r/a[b]/e[b]",
    "/r/a[.//b][.//c]//d",
    "/r//a[b][c]",
    "//a[b[@x='1']][b[@x='2']]",
    "//a[b[@x='1'][@y='2']]",
    "//a[b[@x='1']]/b[@y='2']",
    "//a[b[@x='1']]//a[b[@x='2']]",
    "//a[b[@x='1']]//a[b[@x='1']]",
    "/r[a[b]]/a[c]",
    "/r[a[b][c]]",
    "/r[.//a[b]][.//a[c]]",
    "/r[.//a[b][c]]",
    "//a[e/b][e/c]",
    "//a[e[b][c]]",
    "//a[e[b]/c]",
    "//*[b]//*[c]",
    "//*[b[@x]]/*[b[@x]]",
    "//a[.//e[.//b]]//e[.//c]",
    "//a[b = 5][c = 5]",
    "//a[b = 5]/d[. = 5]",
    "//a[.//b/@x = 1][.//c/@x = 1]",
    "/r/*[b[@x='1']/c]/d[@y]",
    "/r/*[a[b[@x='1']]]",
    "//a[b][2]",
    "//a[2][b]",
    "//a[b[2]][c]",
    "//a[b[c][1]][d]",
    "//e[b][position() > 1]/c",
    # The anchor itself may be what the nested path asks for.
    "//e[b]//@x",
    "//a[@x]//@y",
    "//a[.//@y][b]",
    "//a[2]//text()",
    "//b[.//text()='5']/c",
)


@engines
def test_nested_paths_at_their_anchors(engine: EngineName) -> None:
    """Nested paths that hold at different elements only must not match together."""
    generator = random.Random(4)

    def element(depth: int) -> str:
        name = generator.choice("aaebcd")
        attributes = "".join(
            f" {key}='{generator.choice('12')}'" for key in "xy" if not generator.randrange(3)
        )
        inside = "" if generator.randrange(4) else "5"
        if depth:
            inside += "".join(element(depth - 1) for _ in range(generator.randrange(5)))
        return f"<{name}{attributes}>{inside}</{name}>"

    messages = [
        f"<r>{''.join(element(3) for _ in range(generator.randrange(1, 5)))}</r>".encode()
        for _ in range(250 * max(1, CASES // 12))
    ]
    content = Content(ANCHORS, messages)
    assert all(0 < len(rows) < len(messages) for rows in content.truth.values()), {
        content.texts[query_id]: len(rows) for query_id, rows in content.truth.items()
    }
    content.check(content.index(engine).matcher(threads=1))


@engines
def test_nested_paths_that_hold_apart(engine: EngineName) -> None:
    """The smallest such messages, so that a failure is readable."""
    queries = {
        "both": "/r/a[b][c]",
        "apart": "/r[a/b][a/c]",
        "deep": "//a[.//b][.//c]",
        "chain": "/r/a[b]/a[c]",
        "values": "//a[b='1'][c='2']",
        "same": "//a[b='1'][b='2']",
        "one": "//a[b[@x][@y]]",
        "two": "//a[b[@x]][b[@y]]",
    }
    expected = {
        "<r><a><b/></a><a><c/></a></r>": {"apart"},
        "<r><a><b/><c/></a></r>": {"both", "apart", "deep"},
        "<r><a><b/><a><c/></a></a></r>": {"deep", "chain"},
        "<r><a><b>1</b></a><a><c>2</c></a></r>": {"apart"},
        "<r><a><b>1</b><c>2</c></a></r>": {"both", "apart", "deep", "values"},
        "<r><a><b>1</b><b>2</b></a></r>": {"same"},
        "<r><a><b>1</b></a><a><b>2</b></a></r>": set(),
        "<r><a><b x=''/><b y=''/></a></r>": {"two"},
        "<r><a><b x='' y=''/></a></r>": {"one", "two"},
        "<r><a><b x=''/></a><a><b y=''/></a></r>": set(),
    }
    index = QueryIndex(engine=engine)
    index.register([Query(query_id, text) for query_id, text in queries.items()])
    results = index.matcher().match_batch([message.encode() for message in expected])
    for (message, wanted), result in zip(expected.items(), results, strict=True):
        assert_same_matches(result.query_ids, wanted, engine, "the case", queries, message.encode())


# --- What was registered, removed and matched before ---------------------------------------------


@engines
@shapes
def test_histories_of_families(engine: EngineName, shape: str) -> None:
    """Base and delta, removal, registration anew under the same id, compact: answers stay."""
    for seed in cases(engine, 2):
        content = Content.random(shape, 500 + seed, families=6)
        generator = random.Random(seed)
        ids = list(content.texts)
        generator.shuffle(ids)
        base = set(ids[: len(ids) // 2])
        index = content.index(engine, sorted(base))
        matcher = index.matcher(threads=1)
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
                index.compact()
            else:
                snapshots.append((index.freeze(), set(registered)))
            batch = generator.sample(range(len(content.messages)), 5)
            content.check(matcher, registered, batch)
        for snapshot, then in snapshots:
            content.check(snapshot.matcher(threads=1), then)


@engines
@shapes
def test_batches_change_no_answer(engine: EngineName, shape: str) -> None:
    """Statistics of the stream may order the work; they may not show in an answer."""
    for seed in cases(engine, 2):
        content = Content.random(shape, 900 + seed, families=6)
        generator = random.Random(seed)
        matcher = content.index(engine).freeze().matcher(threads=generator.choice((1, 2)))
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
    matcher = content.index(engine).freeze().matcher(threads=1)
    for start in range(0, len(messages), 10):
        content.check(matcher, messages=range(start, start + 10))
    for start in range(0, len(messages), 30):
        content.check(matcher, messages=range(start, start + 30))
