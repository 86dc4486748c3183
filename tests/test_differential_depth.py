"""Deeply recursive messages, recursive queries with conditions: the native engines against lxml.

Nested paths of such messages are found from the leaves upwards, string-values overlap, and an
element has hundreds of ancestors: what holds in ordinary messages by one algorithm must hold here
by another.
"""

from __future__ import annotations

import random

import pytest
from lxml import etree

from oracles import missing_reason
from oracles.engines import made_by
from pathcast import Limits, Query, Registry

pytestmark = pytest.mark.skipif(
    missing_reason("kernel") is not None, reason=str(missing_reason("kernel"))
)

NAMES = "aaab"
RARE = "c"
VALUES = ("1", "2", "3")


def deep_message(seed: random.Random, *, elements: int = 1500, depth_max: int = 250) -> bytes:
    """A walk that mostly goes down, with attributes and text on the way."""
    parts = ["<r>"]
    open_names: list[str] = []
    while elements or open_names:
        goes_down = elements and len(open_names) < depth_max and seed.random() < 0.97
        if goes_down or not open_names:
            name = RARE if seed.random() < 0.02 else seed.choice(NAMES)
            attributes = "".join(
                f' {key}="{seed.choice(VALUES)}"' for key in "xy" if seed.random() < 0.15
            )
            parts.append(f"<{name}{attributes}>")
            open_names.append(name)
            elements -= 1
        else:
            run = len(open_names) if seed.random() < 0.1 else seed.randint(1, len(open_names))
            parts += [f"</{open_names.pop()}>" for _ in range(run)]
        if seed.random() < 0.1:
            parts.append(seed.choice(("t", "1", "20", " ", "tt")))
    return "".join([*parts, "</r>"]).encode()


def recursive_query(seed: random.Random, levels: int = 2) -> str:
    """Steps over `//` and `/` with conditions, nested ones included."""
    return "/" + _path(seed, levels) if seed.random() < 0.9 else "/r" + "/" + _path(seed, levels)


def _path(seed: random.Random, levels: int) -> str:
    steps = []
    for _ in range(seed.randint(1, 3)):
        axis = "/" if seed.random() < 0.75 else ""
        name = seed.choice((*NAMES, RARE, "*"))
        predicates = [_predicate(seed, levels) for _ in range(seed.choice((0, 0, 1, 1, 2)))]
        steps.append(f"{axis}{name}{''.join(predicates)}")
    return "/".join(steps) if steps[0].startswith("/") else "/" + "/".join(steps)


def _predicate(seed: random.Random, levels: int) -> str:
    value = seed.choice(VALUES)
    key = seed.choice("xy")
    choices = [
        f"[@{key}]",
        f'[@{key}="{value}"]',
        f'[@{key}!="{value}"]',
        f"[@{key}>{value}]",
        f"[{value}]",
        f"[position()<{value}]",
        '[text()="t"]',
        "[text()>5]",
        '[.="t"]',
        '[.!="t"]',
        "[.>5]",
        '[contains(.,"tt1")]',
        '[contains(.,"0t")]',
        '[starts-with(.,"t")]',
        f"[.//@{key}]",
        f"[@{key}][1]",
        "[@*>2]",
    ]
    if levels:
        choices += [f"[.{_nested(seed, levels - 1)}]" for _ in range(6)]
    return seed.choice(choices)


def _nested(seed: random.Random, levels: int) -> str:
    path = _path(seed, levels)
    return "/" + path if seed.random() < 0.8 else path


def selects(tree: etree._Element, query: str) -> bool:
    return bool(tree.xpath(f"boolean({query})"))


@pytest.mark.parametrize("seed", range(8))
def test_deep_messages_are_answered_as_lxml_does(seed: int) -> None:
    numbers = random.Random(seed)
    messages = [deep_message(numbers) for _ in range(2)] + [deep_message(numbers, elements=60)]
    queries = {f"q{n}": recursive_query(numbers) for n in range(24)}
    trees = [etree.fromstring(message, etree.XMLParser(huge_tree=True)) for message in messages]
    expected = [
        sorted(name for name, query in queries.items() if selects(tree, query)) for tree in trees
    ]
    for engine in ("kernel", "nfa"):
        index = made_by(engine, Registry, limits=Limits())
        report = index.add([Query(name, query) for name, query in queries.items()])
        assert not report.rejected
        found = index.match(messages)
        for place, result in enumerate(found):
            assert not result.verdicts
            differing = set(result.query_ids) ^ set(expected[place])
            assert not differing, {name: queries[name] for name in differing}


@pytest.mark.parametrize("engine", ["kernel", "nfa"])
def test_an_attribute_at_or_below_an_element_may_be_its_own(engine: str) -> None:
    depth = 900
    message = b"<b>" * depth + b'<c x="1" y="1"/>' + b"</b>" * depth
    index = made_by(engine, Registry, limits=Limits(depth_max=depth + 1))
    index.add([Query(name, f"//{name}[.//@x][.//@y]") for name in "bc"])
    for matcher in (index, index.freeze()):
        (result,) = matcher.match([message])
        assert sorted(result.query_ids) == ["b", "c"]
