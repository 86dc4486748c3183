"""Bare paths as subscriptions: the nodes they select, in document order, as lxml selects them.

If one of these fails, somebody who subscribed with a path gets other nodes than the path selects,
in another order, or not as they stand in the message.
"""

from __future__ import annotations

import random
from typing import Any
from xml.sax.saxutils import escape

import pytest

from customised_cases import GENEROUS, Opinion, by_broker
from every_engine import engines
from generators import (
    ALPHABET,
    ALPHABET_WITH_NAMESPACES,
    Alphabet,
    MessageShape,
    random_message,
    random_query,
)
from oracles import lxml_tree
from oracles.engines import EngineName, made_by
from oracles.lxml_differences import may_differ
from pathcast.message.canonical import canonical
from pathcast.model import DeliverMode, Subscription
from pathcast.registry import Registry

pytest.importorskip("lxml")

ALPHABETS = {"plain": ALPHABET, "namespaces": ALPHABET_WITH_NAMESPACES}

alphabets = pytest.mark.parametrize("alphabet", sorted(ALPHABETS))

ENDS: tuple[str, ...] = (
    *("", "", "", "/@x", "//@y", "/text()", "//text()", "/..", "/*", "/ancestor::*", "/node()"),
    *("/following::a", "/preceding-sibling::*", "//comment()", "/descendant-or-self::node()"),
)


ESCAPED = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;", "'": "&apos;"}


def absolute_query(generator: random.Random, alphabet: Alphabet) -> str:
    """A path that does not begin at the root element, where lxml would read it from."""
    while True:
        text = random_query(generator, alphabet)
        if text.startswith("/"):
            return text


def random_path(generator: random.Random, alphabet: Alphabet) -> str:
    """A path from the document node, or several of them."""
    path = absolute_query(generator, alphabet) + generator.choice(ENDS)
    match generator.randrange(8):
        case 0:
            return f"{path} | {absolute_query(generator, alphabet)}{generator.choice(ENDS)}"
        case 1:
            return f"({path})[{generator.choice(('1', '2', 'last()', 'position() > 1'))}]"
        case _:
            return path


def by_lxml(text: str, tree: Any, namespaces: dict[str, str]) -> Opinion:
    """What lxml selects, each node as a delivery would carry it."""
    from lxml import etree

    found = etree.XPath(text, namespaces=namespaces or None)(tree.getroottree())
    assert isinstance(found, list)
    return (
        tuple(
            canonical(
                escape(node, {"\r": "&#13;"}).encode()
                if isinstance(node, str)
                else etree.tostring(node, encoding="UTF-8", with_tail=False)
            )
            for node in found
        )
        or None
    )


def check(engine: EngineName, alphabet: str, seed: int, queries: int, messages: int) -> int:
    """Compares all pairs; returns how many results there were."""
    chosen = ALPHABETS[alphabet]
    generator = random.Random(f"paths {alphabet} {seed}")
    namespaces = dict(chosen.namespaces)
    texts = {f"q{number}": random_path(generator, chosen) for number in range(queries)}
    registry = made_by(engine, Registry, limits=GENEROUS, threads=1)
    report = registry.add(
        Subscription(name, "", text, namespaces=namespaces) for name, text in texts.items()
    )
    assert not report.rejected, {texts[name]: str(it) for name, it in report.rejected.items()}
    batch = [
        random_message(generator, chosen, MessageShape(has_markup=True)) for _ in range(messages)
    ]
    results = 0
    for message, found in zip(batch, by_broker(registry, batch), strict=True):
        tree = lxml_tree(message)
        for name, text in texts.items():
            if may_differ(text) is not None:
                continue
            wanted = by_lxml(text, tree, namespaces)
            assert found.get(name) == wanted, f"{text}\n{message.decode()}"
            results += len(wanted) if isinstance(wanted, tuple) else 0
    return results


@engines
@alphabets
def test_paths_deliver_the_nodes_they_select(engine: EngineName, alphabet: str) -> None:
    assert check(engine, alphabet, 1, queries=60, messages=12) > 80


LITERALS = (
    *("&", "&amp;", "&amp;amp;", "&lt;", "&#10;", "x&#x58;", "&", "a&b", "&nothing;"),
    *("\r", "\n", "\r\n", "x\ry", "x\r\ny", "\t", "(: c :)", "(:", "{x}", "<b/>", ""),
)


@engines
@pytest.mark.parametrize("shape", ["//a[. = '{}']", "/r/a[@k != '{}']", "//a['{}' = @k]/b"])
def test_literals_are_those_of_xpath(engine: EngineName, shape: str) -> None:
    """What would be a reference or a line end in XQuery is characters in XPath."""
    values = [escape(it, ESCAPED) for it in LITERALS]
    parts = (f"<a k='{value}'>{value}</a><a k='{value}'><b/></a>" for value in values)
    message = f"<r>{''.join(parts)}</r>".encode()
    texts = {str(number): shape.format(it) for number, it in enumerate(LITERALS)}
    registry = made_by(engine, Registry, limits=GENEROUS)
    assert not registry.add(Subscription(name, "", it) for name, it in texts.items()).rejected
    (found,) = by_broker(registry, [message])
    for name, text in texts.items():
        assert found.get(name) == by_lxml(text, lxml_tree(message), {}), text


@engines
def test_no_prefix_is_predeclared_in_xpath(engine: EngineName) -> None:
    """The same path as a notice is refused, and an answer must not depend on what is delivered."""
    for prefix in ("xs", "xsi", "fn", "local"):
        ways: tuple[DeliverMode, ...] = ("fragment", "ids")
        for deliver in ways:
            registry = made_by(engine, Registry)
            report = registry.add([Subscription("q", "", f"//{prefix}:a", deliver)])
            assert report.rejected["q"].code == "XPST0081"


@pytest.mark.nightly
@engines
@alphabets
def test_paths_at_length(engine: EngineName, alphabet: str) -> None:
    seeds = 3 if engine == "reference" else 20
    assert sum(check(engine, alphabet, 100 + seed, 100, 20) for seed in range(seeds)) > 1000
