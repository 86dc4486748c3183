"""Real messages: the doors, expat and lxml find the same ones well-formed and see the same trees.

If these fail, messages of today's services are refused, or read as something that they are not.
"""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

import pytest

from door_messages import door, is_same, lxml_tree, shared_documents, sorted_attributes, verdict
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_papers.message import parse_message

LXML_DIFFERS = {
    "xee.atom": "lxml wants to fetch the external entity it refers to",
    "xee.cap": "lxml wants to fetch the external entity it refers to",
    "PullRequest12.xml": "lxml wants namespace names to be URIs; for namespaces any text is one",
    "SigmodRecord.xml": "lxml takes an entity of the external subset for undeclared",
}


@pytest.fixture(scope="module")
def documents() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in shared_documents()}


def is_well_formed_by_expat(message: bytes) -> bool:
    parser = expat.ParserCreate(namespace_separator="\x1f")
    try:
        parser.Parse(message, True)
    except (expat.ExpatError, ValueError):
        return False
    return True


def test_both_doors_give_the_same(documents: dict[Path, bytes]) -> None:
    kernel = door("kernel")
    refused = 0
    for path, message in documents.items():
        found = verdict(kernel, message)
        assert is_same(found, verdict(parse_message, message)), path
        refused += isinstance(found, str)
    assert refused >= 25, "the messages that are not well-formed are missing"


def test_the_tree_is_that_of_lxml(documents: dict[Path, bytes]) -> None:
    compared = 0
    for path, message in documents.items():
        if path.name in LXML_DIFFERS:
            continue
        found, expected = verdict(parse_message, message), lxml_tree(message)
        assert isinstance(found, MessageTree) == isinstance(expected, MessageTree), path
        if isinstance(found, MessageTree) and isinstance(expected, MessageTree):
            assert sorted_attributes(found) == sorted_attributes(expected), path
            compared += 1
    assert compared > 1000


def test_the_differences_from_lxml_are_still_there(documents: dict[Path, bytes]) -> None:
    seen = {
        path.name
        for path, message in documents.items()
        if isinstance(lxml_tree(message), str)
        and isinstance(verdict(parse_message, message), MessageTree)
    }
    assert seen == LXML_DIFFERS.keys()


def test_the_verdict_is_that_of_expat(documents: dict[Path, bytes]) -> None:
    kernel = door("kernel")
    for path, message in documents.items():
        is_good = isinstance(verdict(kernel, message), MessageTree)
        assert is_good == is_well_formed_by_expat(message), path
    bad = [path for path in documents if path.parent.name == "not-well-formed"]
    assert len(bad) >= 25
    for path in bad:
        assert isinstance(verdict(kernel, documents[path]), str), path


def test_a_real_message_is_read_in_every_encoding(documents: dict[Path, bytes]) -> None:
    kernel = door("kernel")
    chosen = [
        (path, message.decode())
        for path, message in documents.items()
        if len(message) < 20_000 and message.isascii() and not message.startswith(b"<?xml")
    ][:40]
    assert chosen
    for path, text in chosen:
        plain = verdict(kernel, text.encode())
        for encoding in ("utf-8-sig", "utf-16", "latin-1", "cp1252", "ascii"):
            label = {"utf-8-sig": "utf-8", "latin-1": "iso-8859-1"}.get(encoding, encoding)
            assert verdict(kernel, text.encode(encoding), label) == plain, (path, encoding)
        limits = Limits()
        if isinstance(plain, MessageTree):
            assert parse_message(text.encode("utf-16"), limits) == plain, path
