"""The streaming chunker: what the plain one cuts, from blocks of any size, in bounded memory.

If these fail, chunks depend on how a message arrived, or a message can take the service down.
"""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from itertools import repeat
from random import Random

import pytest

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from generators.alphabet import ALPHABET_WITH_NAMESPACES
from generators.chunking_cases import Case
from generators.message_text import MessageShape, in_some_encoding, random_message
from pathcast.chunking import Chunking, Cut, FilteringScheme, StreamingChunker
from pathcast.errors import ConfigError, LimitExceededError, MessageError, PathcastError
from pathcast.limits import MIB, Limits, StreamBounds
from pathcast.schema import ElementPaths, parse_dtd
from pathcast_papers.chunking.plain import cut_plainly
from pathcast_papers.message import parse_message

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(4, 200))]


def in_blocks(random: Random, message: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(message):
        end = start + random.choice((1, 1, 2, 3, 7, 50, len(message)))
        yield message[start:end]
        start = end


def some_scheme(random: Random, case: Case) -> FilteringScheme:
    chunking = Chunking(random.randrange(1, 6), case.paths if random.randrange(4) else None)
    for number in range(random.randrange(1, 12)):
        try:
            chunking.register(str(number), case.query(), case.namespaces)
        except PathcastError:
            continue
    return chunking.scheme()


@pytest.mark.parametrize("seed", SEEDS)
def test_it_cuts_what_the_plain_chunker_cuts(seed: int) -> None:
    chunks = 0
    for number in range(25):
        random = Random(seed * 25 + number)
        case = Case(random, has_namespaces=number % 2 == 0)
        scheme = some_scheme(random, case)
        chunker = StreamingChunker(scheme)
        for _ in range(3):
            message = case.message()
            expected = cut_plainly(scheme, message)
            found = chunker.cut(in_blocks(random, message))
            assert without_prolog_blanks(found) == without_prolog_blanks(expected), message
            chunks += sum(bool(chunk) for chunk in found.chunks)
    assert chunks > 30


def without_prolog_blanks(cut: Cut) -> Cut:
    """White space beside the root element belongs to nothing."""
    return Cut(
        tuple(chunk.replace(b"?>\n<", b"?><") for chunk in cut.chunks), cut.elements, cut.fault
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_messages_of_every_kind_and_encoding(seed: int) -> None:
    """Entities, defaults, CDATA, namespaces anywhere; what is cut is well-formed."""
    chunking = Chunking(3)
    names = {"p": "urn:p", "q": "urn:q"}
    for number, text in enumerate(
        ("/a/b[a]/a", "/a/a[p:b='1']", "/p:a/b", "/a/b/b/text()", "/b/a[@x]")
    ):
        chunking.register(str(number), text, names)
    scheme = chunking.scheme()
    chunker = StreamingChunker(scheme)
    shape = MessageShape(has_markup=True, has_defaults=True)
    cut_ones = 0
    for number in range(400):
        random = Random(seed * 400 + number)
        message = random_message(random, ALPHABET_WITH_NAMESPACES, shape)
        message = in_some_encoding(random, message)
        expected = cut_plainly(scheme, message)
        found = chunker.cut(in_blocks(random, message))
        assert found.fault == expected.fault, message
        if found.fault:
            continue
        assert found.elements == expected.elements, message
        for chunk, other in zip(found.chunks, expected.chunks, strict=True):
            assert bool(chunk) == bool(other)
            if chunk:
                assert parse_message(chunk) == parse_message(other), message
                cut_ones += 1
    assert cut_ones > 20


def test_what_the_door_refuses_is_refused() -> None:
    chunking = Chunking(1)
    chunking.register("q", "/a/b")
    chunker = StreamingChunker(chunking.scheme())
    for message, code in (
        (b"<a><b></a>", "xml.tag.mismatch"),
        (b"<a><c>&nbsp;</c></a>", "xml.entity.undeclared"),
        (b"<a><b/>", "xml.end"),
        (b"", "xml.end"),
        (b"<a><c><p:d/></c></a>", "ns.prefix.undeclared"),
        (b"<a>\xff</a>", "encoding.invalid"),
    ):
        for size in (1, 100):
            blocks = [message[at : at + size] for at in range(0, len(message), size)]
            with pytest.raises(MessageError) as caught:
                chunker.cut(blocks)
            assert caught.value.code == code
        # The next message is not disturbed.
        assert chunker.cut([b"<a><b/><c/></a>"]).chunks == (b"<a><b/></a>",)


def large(record: bytes, count: int) -> Iterator[bytes]:
    yield b"<log>"
    yield from repeat(record * 100, count)
    yield b"</log>"


def test_a_message_larger_than_any_limit_needs_no_memory() -> None:
    chunking = Chunking(2)
    chunking.register("q1", "/log/entry[@level='9']/text")
    chunking.register("q2", "/log/host")
    chunker = StreamingChunker(chunking.scheme())

    class Counted:
        size = 0

        def write(self, data: bytes) -> None:
            self.size += len(data)

    record = (
        b"<entry level='1'><text>" + b"x" * 400 + b"</text><rest>" + b"y" * 200 + b"</rest></entry>"
    )
    sinks = [Counted(), Counted()]
    tracemalloc.start()
    cut = chunker.cut_into(sinks, large(record, 400))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(record) * 40_000 > 3 * Limits().message_bytes_max
    assert cut.elements == (80_001, 0)
    assert sinks[0].size == len(b"<log></log>") + 40_000 * (
        len(record) - len(b"<rest></rest>") - 200
    )
    assert sinks[1].size == 0
    assert peak < 4 * MIB


@pytest.mark.parametrize("depth_max", [256, 2_000_000])
def test_a_million_open_tags(depth_max: int) -> None:
    chunking = Chunking(1)
    chunking.register("q", "/a/a/b")
    chunker = StreamingChunker(chunking.scheme(), Limits(depth_max=depth_max))
    blocks = [b"<a>" * 10_000] * 100
    if depth_max == 256:
        with pytest.raises(LimitExceededError) as caught:
            chunker.cut(blocks)
        assert caught.value.params["limit"] == "depth_max"
    else:
        assert chunker.cut([*blocks, *[b"</a>" * 10_000] * 100]).chunks == (b"",)


def test_a_gigabyte_of_one_attribute_is_refused_early() -> None:
    chunking = Chunking(1)
    chunking.register("q", "/a/b")
    chunker = StreamingChunker(chunking.scheme())
    fed = 0

    def blocks() -> Iterator[bytes]:
        nonlocal fed
        yield b"<a><b x='"
        for _ in range(4_096):
            fed += 1
            yield b"x" * (256 * 1024)

    with pytest.raises(LimitExceededError):
        chunker.cut(blocks())
    assert fed < 64


def test_bounds_that_are_said_count() -> None:
    chunking = Chunking(1)
    chunking.register("q", "/a/b")
    for bounds, limit in (
        (StreamBounds(message_bytes_max=100), "message_bytes_max"),
        (StreamBounds(elements_max=10), "elements_max"),
        (StreamBounds(held_bytes_max=128 * 1024), "held_bytes_max"),
    ):
        chunker = StreamingChunker(chunking.scheme(), bounds=bounds)
        with pytest.raises(LimitExceededError) as caught:
            chunker.cut([b"<a>" + b"<b/>" * 50 + b"<!--" + b"x" * 200_000 + b"--></a>"])
        assert caught.value.params["limit"] == limit


def test_gigabytes_of_text_go_through() -> None:
    chunking = Chunking(2)
    chunking.register("q1", "/a/b")
    chunking.register("q2", "/a/c")
    chunker = StreamingChunker(chunking.scheme())
    text = [b"x" * MIB] * 64
    sinks = [io.BytesIO(), io.BytesIO()]
    chunker.cut_into(sinks, [b"<a>", *text, b"<c/><!--", b"--><d>", *text, b"</d></a>"])
    assert [sink.getvalue() for sink in sinks] == [b"", b"<a><c/></a>"]


def test_schema_and_entities_are_checked_on_the_way() -> None:
    dtd = "<!ELEMENT a (b*)><!ELEMENT b (c*)><!ELEMENT c EMPTY>"
    chunking = Chunking(1, ElementPaths(parse_dtd(dtd), root="a"))
    chunking.register("q", "//c")
    chunker = StreamingChunker(chunking.scheme())
    for message, fault in (
        (b"<a><b><c/></b></a>", ""),
        (b"<a><b/><x/></a>", "the message is not built as the schema says"),
        (b"<a><b><c><c/></c></b></a>", "the message is not built as the schema says"),
        (b"<b/>", "the message is not built as the schema says"),
        (
            b"<!DOCTYPE a [<!ENTITY e '<b/>'>]><a>&e;</a>",
            "an element to be cut at comes from an entity",
        ),
    ):
        assert chunker.cut([message]).fault == fault
        assert cut_plainly(chunking.scheme(), message).fault == fault


def test_a_block_need_not_be_small() -> None:
    chunking = Chunking(1)
    chunking.register("q", "/a/b")
    message = b"<a>" + b"<b>x</b><c>y</c>" * 100_000 + b"</a>"
    cut = StreamingChunker(chunking.scheme()).cut([message])
    assert cut.chunks == (b"<a>" + b"<b>x</b>" * 100_000 + b"</a>",)


def test_more_chunks_than_fit_are_refused() -> None:
    with pytest.raises(ConfigError):
        Chunking(65)
    chunking = Chunking(64)
    for number in range(64):
        chunking.register(str(number), f"/a/b{number}")
    message = b"<a>" + b"".join(b"<b%d/>" % number for number in range(64)) + b"</a>"
    cut = StreamingChunker(chunking.scheme()).cut([message])
    assert sorted(cut.chunks) == sorted(b"<a><b%d/></a>" % number for number in range(64))
