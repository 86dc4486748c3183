"""Damaged messages: the verdict of the kernel is that of expat, and never a crash.

If these fail, something is let in that is not XML, or refused that is, or brings a process down.
The seed is fixed, so that a failure repeats itself.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from door_messages import cases, door, is_same, message_of, verdict
from pathcast.message import MessageTree
from pathcast_papers.message import parse_message

PIECES = (
    *(bytes([byte]) for byte in b"<>&;\"'[]!?-%/= \r\n\0x:|,*()"),
    *(b"--", b"xmlns", b"<!--", b"-->", b"]]>", b"<![CDATA[", b"&e;", b"%p;", b"&#", b"<!ENTITY "),
    *(b"SYSTEM", b'"x"', b"<?", b"?>", b"xml", b"<a>", b"</a>", b"#PCDATA", "é".encode(), b"p:"),
    *(b"CDATA", b"NMTOKEN", b"#FIXED ", b'standalone="yes"', b"\xef\xbf\xbe"),
)

DIFFERENCES = {
    "xml.entity.external": "expat does not look into a default after an entity it has not read",
    "xml.entity.unparsed": "as above",
    "xml.entity.recursive": "as above",
    "xml.attribute.less": "as above",
    "xml.dtd.parameter": "expat allows a reference in an entity value of a parameter entity",
}
"""Where the kernel refuses and expat does not."""


def damaged(seed: int, count: int) -> Iterator[bytes]:
    noise = random.Random(seed)
    sound = [message_of(c) for c in cases() if not c.get("limits") and not c.get("encoding")]
    for _ in range(count):
        message = bytearray(noise.choice(sound))
        for _ in range(noise.choice((1, 1, 1, 2, 3))):
            at = noise.randrange(len(message) + 1)
            kind = noise.randrange(6)
            if kind == 0 and at < len(message):
                message[at] ^= 1 << noise.randrange(8)
            elif kind == 1:
                message[at : at + noise.choice((0, 0, 1, 2))] = noise.choice(PIECES)
            elif kind == 2:
                del message[at : at + noise.randrange(1, 5)]
            elif kind == 3:
                message[at:at] = message[: noise.randrange(20)]
            elif kind == 4:
                del message[at:]
            else:
                other = noise.choice(sound)
                start = noise.randrange(len(other) + 1)
                message[at:at] = other[start : start + noise.randrange(1, 25)]
        yield bytes(message)


def has_names_of_the_fifth_edition(message: bytes) -> bool:
    """Expat has the names of the fourth edition, which differ beyond ASCII only."""
    return any(byte >= 0x80 for byte in message)


def compare(seed: int, count: int) -> None:
    kernel = door("kernel")
    good = 0
    for message in damaged(seed, count):
        found, expected = verdict(kernel, message), verdict(parse_message, message)
        if isinstance(found, MessageTree):
            good += 1
            if expected == "xml.syntax" and has_names_of_the_fifth_edition(message):
                continue
            assert is_same(found, expected), (seed, message)
        elif found not in DIFFERENCES:
            assert isinstance(expected, str), (seed, found, message)
    assert good > count // 100, "hardly a message was good: nothing was tested"


def test_damaged_messages() -> None:
    compare(seed=20_010, count=10_000)


@pytest.mark.nightly
def test_many_damaged_messages() -> None:
    seed = int(os.environ.get("PATHCAST_SEED", "1"))
    for offset in range(20):
        compare(seed + offset, 50_000)


def test_every_cut_of_a_message_is_refused() -> None:
    kernel = door("kernel")
    for case in cases():
        # Behind the root element there is only what may be left out.
        message = message_of(case).rstrip()
        if "tree" not in case or len(message) > 500 or case.get("limits") or b"UTF-16" in message:
            continue
        end = message.rfind(b"</") if message.rstrip().endswith(b">") else 0
        for cut in range(max(end, 0)):
            found = verdict(kernel, message[:cut], case.get("encoding"))
            assert isinstance(found, str), (case["name"], message[:cut])


def test_random_bytes() -> None:
    kernel = door("kernel")
    noise = random.Random(20_011)
    for _ in range(5_000):
        message = noise.randbytes(noise.randrange(80))
        for encoding in (None, "utf-16", "latin-1", "shift_jis"):
            found = verdict(kernel, message, encoding)
            # Single bytes may spell a name; everything else must be refused.
            assert isinstance(found, str) or found.name
