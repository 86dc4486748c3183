"""FLWR use cases of nine domains on real messages: every engine == Saxon.

`testdata/use_cases/<domain>/*.xq` holds what somebody who waits for such messages would subscribe
to; each begins with a comment that says what is wanted. If one of these fails, a subscriber gets a
wrong message. The messages are data beside the project; without them the tests are skipped, with
the reason.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from customised_cases import GENEROUS, Opinion, Skipped, agree, by_broker, by_reference, by_saxon
from every_engine import engines
from oracles import lxml_tree, saxon_missing_reason
from oracles.engines import EngineName, made_by
from pathcast.errors import MessageError
from pathcast.model import Subscription
from pathcast.query import compile_subscription
from pathcast.registry import Registry
from pathcast_papers.message import parse_message
from shared_data import shared_path

FOLDER = Path(__file__).parent.parent / "testdata" / "use_cases"
DOMAINS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
SIZE_MAX = 120_000
"""Larger messages are for the nightly runs."""

EMPTY = re.compile(rb"<[^<>]*>\s*</[^<>]*>")
"""An element without content, as canonical XML writes it."""

domains = pytest.mark.parametrize("domain", DOMAINS)


@cache
def queries_of(domain: str) -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in sorted((FOLDER / domain).glob("*.xq"))}


@cache
def messages_of(domain: str, size_max: int = SIZE_MAX) -> list[tuple[str, bytes]]:
    """Names and messages of a domain, in UTF-8 and without DTD, as every reader gets them alike."""
    from lxml import etree

    found = []
    for path in sorted(shared_path(f"docs/{domain}").rglob("*")):
        if (
            not path.is_file()
            or path.suffix.lower() in (".xsd", ".dtd", ".md", ".tsv", ".txt")
            or "not-well-formed" in path.parts
            or path.stat().st_size > size_max
        ):
            continue
        message = path.read_bytes()
        try:
            parse_message(message, GENEROUS)
            tree = lxml_tree(message)
        except (MessageError, etree.XMLSyntaxError):
            continue
        found.append((path.name, etree.tostring(tree.getroottree(), encoding="UTF-8")))
    return found


def check(engine: EngineName, domain: str, messages: list[tuple[str, bytes]]) -> None:
    """All queries of a domain at once on each message."""
    registry = made_by(engine, Registry, limits=GENEROUS)
    report = registry.add(
        Subscription(name, f"of {name}", text) for name, text in queries_of(domain).items()
    )
    assert not report.rejected, {name: str(error) for name, error in report.rejected.items()}
    found = by_broker(registry, [message for _, message in messages])
    for (file, message), said in zip(messages, found, strict=True):
        for name in queries_of(domain):
            wanted = truth(domain, name, file, message)
            assert said.get(name) == wanted, (name, file, said.get(name), wanted)


@cache
def truth(domain: str, name: str, file: str, message: bytes) -> Opinion:
    return by_reference(queries_of(domain)[name], message, None)


@domains
@engines
def test_engine(engine: EngineName, domain: str) -> None:
    """The reference, which is slow, on every fourth message; its interpreter is asked of each."""
    messages = messages_of(domain)
    check(engine, domain, messages[::4] if engine == "reference" else messages)


@pytest.mark.nightly
@domains
@engines
def test_engine_on_large_messages(engine: EngineName, domain: str) -> None:
    check(engine, domain, messages_of(domain, size_max=2_000_000))


@domains
def test_every_query_meets_some_message(domain: str) -> None:
    for name in queries_of(domain):
        said = [truth(domain, name, file, message) for file, message in messages_of(domain)]
        assert any(said), f"{name}: a query that nothing satisfies proves little"
        assert len(set(said)) > 1, f"{name} tells no messages apart"


@pytest.mark.skipif(saxon_missing_reason() is not None, reason=str(saxon_missing_reason()))
@domains
def test_saxon(domain: str) -> None:
    """What is delivered is the same to the last result, on almost every pair."""
    pairs = skipped = 0
    for file, message in messages_of(domain):
        for name, text in queries_of(domain).items():
            ours = truth(domain, name, file, message)
            saxons = by_saxon(text, message, None)
            pairs += 1
            skipped += isinstance(saxons, Skipped)
            if ours is None and isinstance(saxons, tuple):
                # Where nothing is delivered, Saxon gives a frame with nothing in it.
                assert all(EMPTY.fullmatch(result) for result in saxons), (name, file, saxons)
                continue
            assert agree(ours, saxons) is not None, (name, file, ours, saxons)
    assert pairs > 100
    assert skipped <= pairs * 0.05, f"{skipped} of {pairs} pairs have no value by XQuery"


def test_there_are_enough_and_each_says_what_it_is_for() -> None:
    assert len(DOMAINS) >= 6
    for domain in DOMAINS:
        assert len(queries_of(domain)) >= 5
        for name, text in queries_of(domain).items():
            assert re.match(r"\(: [A-Z][^:]+: [^:]*\S.* :\)\n", text, re.DOTALL) or re.match(
                r"\(: [A-Z].* :\)\n", text, re.DOTALL
            ), f"{domain}/{name} does not say what it is for"
            assert compile_subscription(text).kind == "xquery"


def test_they_ask_in_many_ways() -> None:
    """A set that dropped one of these would prove less."""
    texts = "\n".join(text for domain in DOMAINS for text in queries_of(domain).values())
    wanted = ["order by", "descending", "empty least", "distinct-values(", "sum(", "max(", "min("]
    wanted += ["some $", "every $", "if (", " let ", " at $", "string-join(", "let $", "count("]
    wanted += ["declare namespace", "declare default element namespace", 'xmlns=""', "*:"]
    wanted += ["preceding::", "ancestor::", "/..", "parent::", "position()", "last()", "}{", " | "]
    wanted += ["round(", "div ", "lower-case(", "ends-with(", "substring(", "normalize-space("]
    assert [construct for construct in wanted if construct not in texts] == []
