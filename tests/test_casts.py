"""XQuery's cast of a value to a number: one condition, exact in gates, sound in coverings.

If these fail, a registry keeps a message from a subscriber who asked for it, or sends messages over
links to where nobody wants them. What is expected is computed here, from lxml's nodes.
"""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pytest
from lxml import etree

from oracles import ENGINES
from oracles.engines import EngineName, made_by
from pathcast import Registry
from pathcast.engine import RoutingTable, gates_that_hold
from pathcast.errors import QuerySyntaxError
from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import Query, RoutingEntry, Subscription
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.query import compile_query, compile_subscription, conjunction_of
from pathcast.registry.steps import parse_steps

pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")

VALUES: Final = (
    *("3", " 3 ", "3.0", "03", "+3", "-3", "3e0", "30E-1", ".3e1", "3.", "-+3", "3e", "e3", "3 3"),
    *("5", "0", "-0", "1e3", "1000", "1e999", "INF", "-INF", "+INF", "inf", "NaN", "x", "", "0x3"),
    *("\u0663", "3\u00a0", "1_000", "Infinity", "9007199254740993", "9007199254740992"),
)
CONSTANTS: Final = ("3", "-3", "0", "1000", "3.0", "2.5", "1e3", "9007199254740993")
OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def cast(text: str) -> float:
    """A text as `xs:double` (XML Schema, part 2, 3.2.5); NaN for what is none."""
    text = text.strip(" \t\r\n")
    if text in ("INF", "+INF", "-INF"):
        return -math.inf if text[0] == "-" else math.inf
    if not text or set(text) - set("0123456789+-.eE"):
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def message_of(*elements: tuple[str, str, Sequence[str]]) -> bytes:
    """A message of elements `a`: value of `@x`, text, and values of the children `b`."""
    root = etree.Element("r")
    for value, text, children in elements:
        element = etree.SubElement(root, "a", x=value)
        element.text = text
        for child in children:
            etree.SubElement(element, "b", y=child).text = child
    return bytes(etree.tostring(root))


def delivered(texts: Sequence[str], messages: Sequence[bytes]) -> list[set[int]]:
    """The subscriptions from which each message delivers something, by number."""
    engine = KernelRegistry(Limits(), threads=1, cache_bytes_max=1 << 24)
    subscriptions = [Subscription(str(at), "s", text) for at, text in enumerate(texts)]
    assert engine.subscribe(subscriptions, {}).accepted == len(texts)
    answer = engine.process(pa.array(messages))
    assert not answer.refusals
    found: list[set[int]] = [set() for _ in messages]
    for row in answer.rows.to_pylist():
        found[row["message"]].add(int(answer.subscription_ids[row["subscription"]]))
    return found


def routed(entries: Sequence[Sequence[str]], messages: Sequence[bytes]) -> list[set[int]]:
    """The profiles of which each message satisfies an entry."""
    rows = [
        RoutingEntry(tuple(text.split(" and ")), 1 << target)
        for target, texts in enumerate(entries)
        for text in texts
    ]
    return list(map(set, RoutingTable(rows, len(entries)).router().route(messages).lists()))


@pytest.mark.parametrize("place", ["$a/@x", "$a/b", "$a/b/@y", "$a/text()"])
def test_a_gate_holds_where_a_comparison_with_a_number_delivers_and_nowhere_else(
    place: str,
) -> None:
    cases = list(itertools.product(OPERATORS, CONSTANTS))
    texts = [f"for $a in //a where {place} {sign} {number} return $a" for sign, number in cases]
    entries = [disjuncts_of(text) for text in texts]
    assert all(len(each) == 1 for each in entries), "one comparison is one entry"
    messages = [message_of((value, value, [value])) for value in VALUES]
    answers = zip(VALUES, delivered(texts, messages), routed(entries, messages), strict=True)
    for value, given, passed in answers:
        # lxml writes no text node for an empty text.
        is_there = bool(value) or not place.endswith("text()")
        expected = {
            number
            for number, (sign, constant) in enumerate(cases)
            if is_there and OPERATORS[sign](cast(value), float(constant))
        }
        assert given == expected, (place, value)
        assert passed == expected, (place, value)


class Conditions:
    """Random conditions on an `a`, each with what it means for an element of lxml."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def condition(self, depth: int) -> tuple[str, Callable[[etree._Element], bool]]:
        kind = self.random.randrange(6) if depth else 0
        if kind < 3:
            return self.comparison()
        if kind == 3:
            text, holds = self.condition(depth - 1)
            return f"not({text})", lambda element: not holds(element)
        (left, first), (right, second) = self.condition(depth - 1), self.condition(depth - 1)
        if kind == 4:
            return f"({left} and {right})", lambda element: first(element) and second(element)
        return f"({left} or {right})", lambda element: first(element) or second(element)

    def comparison(self) -> tuple[str, Callable[[etree._Element], bool]]:
        place = self.random.choice(("@x", "b", "b/@y", "text()", "."))
        sign = self.random.choice(tuple(OPERATORS))
        compares = OPERATORS[sign]
        constants = self.random.choices(CONSTANTS, k=self.random.choice((1, 1, 1, 2)))
        numbers = [float(constant) for constant in constants]
        right = constants[0] if len(constants) == 1 else f"({', '.join(constants)})"

        def holds(element: etree._Element) -> bool:
            texts = list(map(_text, element.xpath(place)))
            return any(compares(cast(text), number) for text in texts for number in numbers)

        return f"{place} {sign} {right}", holds

    def message(self) -> bytes:
        def value() -> str:
            return self.random.choice(VALUES)

        elements = self.random.choice((1, 1, 2))
        return message_of(
            *(
                (value(), value(), [value() for _ in range(self.random.randrange(3))])
                for _ in range(elements)
            )
        )


def _text(node: etree._Element | str) -> str:
    return node if isinstance(node, str) else "".join(node.itertext())


@pytest.mark.parametrize("seed", range(3))
def test_what_is_delivered_passes_its_gate_whatever_conditions_are_asked(seed: int) -> None:
    draw = Conditions(seed)
    asked = [draw.condition(2) for _ in range(150)]
    texts = [f"for $a in //a[{text}] return $a" for text, _ in asked]
    messages = [draw.message() for _ in range(40)]
    expected = []
    for source in messages:
        elements = etree.fromstring(source).findall("a")
        holds = (any(map(each, elements)) for _, each in asked)
        expected.append({number for number, found in enumerate(holds) if found})
    assert delivered(texts, messages) == expected
    entries = [disjuncts_of(text) for text in texts]
    linear = [tuple(conjunction_of(entry).linear().text for entry in each) for each in entries]
    exact, wide = routed(entries, messages), routed(linear, messages)
    wrong = 0
    for number, wanted in enumerate(expected):
        assert wanted <= exact[number] <= wide[number], messages[number]
        wrong += len(exact[number] - wanted)
    # Gates are of use: most of what they let pass is delivered.
    assert wrong < sum(map(len, expected)) * 0.25, wrong


def test_numbers_in_every_notation_are_read_alike_beyond_one_text_node() -> None:
    text = "for $a in //a where $a = 1000 return $a"
    (entry,) = disjuncts_of(text)
    pieces = (
        ("1", "e3"),
        ("+", "1000"),
        ("10", "00."),
        ("1e", "3x"),
        ("-", "1e3"),
    )
    messages = [f"<a>{one}<b/>{two}</a>".encode() for one, two in pieces]
    wanted = [{0}, {0}, {0}, set(), set()]
    assert delivered([text], messages) == wanted
    assert routed([[entry]], messages) == wanted


def _conditions() -> Iterator[str]:
    for sign, number in itertools.product(OPERATORS, ("3", "5", "-3")):
        yield f"[double(@x){sign}{number}]"
        yield f"[@x{sign}{number}]"
    for text in ("3", "+3", "3e0", "x"):
        yield f"[@x='{text}']"
        yield f"[starts-with(@x,'{text}')]"
    yield "[@x!='3']"
    yield "[@x]"


def test_what_covers_another_entry_holds_wherever_that_holds() -> None:
    alone = list(_conditions())
    draw = random.Random(1)
    pairs = ["".join(sorted(draw.sample(alone, 2))) for _ in range(60)]
    texts = [f"//a{condition}" for condition in dict.fromkeys((*alone, *pairs))]
    entries = [conjunction_of(text) for text in texts]
    values = (*VALUES, "3x", "+3x", "4", "4e0", "30")
    messages = [message_of((value, "", [])) for value in values]
    holding: list[set[int]] = [set() for _ in texts]
    for number, found in enumerate(routed([[entry.text] for entry in entries], messages)):
        for at in found:
            holding[at].add(number)
    covered = 0
    for general, special in itertools.permutations(range(len(texts)), 2):
        if entries[general].covers(entries[special]):
            assert holding[special] <= holding[general], (texts[general], texts[special])
            covered += 1
    assert covered > 300
    for one, other in (
        ("[double(@x)=3]", "[@x=3]"),
        ("[double(@x)>3]", "[double(@x)>5]"),
        ("[double(@x)!=5]", "[double(@x)=3]"),
        ("[double(@x)=3]", "[@x='+3']"),
        ("[@x]", "[double(@x)<=3]"),
    ):
        wide, narrow = conjunction_of(f"//a{one}"), conjunction_of(f"//a{other}")
        assert wide.covers(narrow), (one, other)
        assert not narrow.covers(wide), (one, other)


@pytest.mark.parametrize("text", ["//a[double(@x)=3]", "//a[double(.) > 3]", "double(//a) = 3"])
def test_no_query_calls_a_function_of_that_name(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as refused:
        compile_query(text)
    assert refused.value.code == "XPST0017"
    with pytest.raises(QuerySyntaxError):
        compile_subscription(f"for $a in //a where {text} return $a")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_index_of_gates_reads_casts_with_other_paths_beside_them(engine: EngineName) -> None:
    gate = "//a[double(@x)=3][double(text())>1] and //b[double(.)!=2]"
    gates = [gate, "//a[@x='3']"]
    messages = {
        b"<r><a x='+3'>2<c/>0</a><b>2</b><b/></r>": {gate},
        b"<r><a x='3'>1e1</a><b>x</b></r>": {gate, "//a[@x='3']"},
        b"<r><a x='3'>1e0</a><b>x</b></r>": {"//a[@x='3']"},
        b"<r><a x='3e'>5</a><b>x</b></r>": set(),
        b"<r><a x='3.0'>5</a><b>+2</b></r>": set(),
    }
    found = made_by(engine, gates_that_hold, gates, list(messages))
    assert [set(each.query_ids) for each in found] == list(messages.values())
    with pytest.raises(QuerySyntaxError):
        made_by(engine, gates_that_hold, ["//a[double(@x)=3"], [b"<a/>"])
    assert made_by(engine, Registry).add([Query("q", "//a[double(@x)=3]")]).rejected


def test_a_gate_may_be_longer_than_a_query() -> None:
    names = [f"a{number}" for number in range(100)]
    gate = " and ".join(f"/r/{name}[.='{name * 50}']" for name in names)
    with pytest.raises(QuerySyntaxError):
        compile_query(gate)
    elements = "".join(f"<{name}>{name * 50}</{name}>" for name in names)
    messages = [f"<r>{elements}</r>".encode(), b"<s/>"]
    found = gates_that_hold([gate], messages)
    assert [list(each.query_ids) for each in found] == [[gate], []]


def test_gates_before_steps_keep_the_cast() -> None:
    asked = Subscription("s", "ann", "for $l in //list where $l/@n = 3 return $l")
    steps = parse_steps(["rename //ol list"])
    registry = Registry()
    assert registry.add(asked._replace(steps=tuple(map(str, steps)))).accepted == 1
    found = registry.explain(asked.id).gate
    values = ("3", "+3", "3e0", "4", "x", "")
    answer = gates_that_hold(found, [f"<r><ol n='{value}'/></r>" for value in values])
    held = [value for value, each in zip(values, answer, strict=True) if each.query_ids]
    assert held == ["3", "+3", "3e0"]
    delivered = [value for value in values if len(registry.deliver(f"<r><ol n='{value}'/></r>"))]
    assert delivered == held
