"""Messages of any length: the push parser from Python, files, compressed ones, and flat memory."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path
from typing import TypeAlias

import pytest

pytest.importorskip("pathcast_kernel")

import pyarrow as pa

from door_messages import cases
from pathcast.errors import (
    ConfigError,
    IllFormedMessageError,
    LimitExceededError,
    MessageError,
    Param,
    UnreadableMessageError,
)
from pathcast.kernel import PushParser, StreamSummary, check_stream, parse
from pathcast.limits import Limits, StreamBounds

MIB = 1 << 20


Told: TypeAlias = StreamSummary | dict[str, Param]


def outline(message: bytes) -> Told:
    """What the door makes of a message."""
    try:
        tree = parse(message, Limits())
    except MessageError as error:
        return error.to_dict()
    details = tree.details
    assert details is not None
    comments = details.markup_target.count(None)
    return StreamSummary(
        bytes=len(message),
        elements=len(tree),
        depth=max(tree.depth) + 1,
        attributes=len(tree.attribute_name),
        texts=len(tree.text_value),
        text_bytes=sum(len(text.encode()) for text in tree.text_value),
        comments=comments,
        instructions=len(details.markup_target) - comments,
    )


def pushed(message: bytes, size: int) -> Told:
    parser = PushParser()
    try:
        for start in range(0, len(message), size):
            parser.feed(message[start : start + size])
        return parser.finish()
    except MessageError as error:
        return error.to_dict()


def messages() -> list[bytes]:
    """The cases of well-formedness with the usual limits, and damaged ones."""
    rng = random.Random(11)
    found = []
    for case in cases():
        text, limits = case.get("message"), case.get("limits")
        if text is None or limits or case.get("encoding") or len(text) > 400:
            continue
        at = rng.randrange(len(text) + 1)
        piece = rng.choice(["<", "&", "", "/>", "\x01", "<!--c-->", "<?p?>"])
        found += [text.encode(), (text[:at] + piece + text[at + 1 :]).encode()]
    return found


def test_a_message_in_blocks_is_what_it_is_at_the_door() -> None:
    """Fails when counts, errors or places depend on how a message arrives."""
    rng = random.Random(12)
    all_messages = messages()
    refused = 0
    for message in all_messages:
        expected = outline(message)
        refused += isinstance(expected, dict)
        for size in (1, rng.randint(2, 40), len(message) + 1):
            assert pushed(message, size) == expected, (message, size)
    assert len(all_messages) > 500
    assert 100 < refused < len(all_messages) - 100


def test_a_refused_message_stays_refused() -> None:
    parser = PushParser()
    with pytest.raises(IllFormedMessageError) as first:
        parser.feed(b"<a></b>" + b" " * 1000)
    for again in (lambda: parser.feed(b"<a/>"), parser.finish):
        with pytest.raises(IllFormedMessageError) as later:
            again()
        assert later.value.to_dict() == first.value.to_dict()


def test_a_finished_message_takes_no_more() -> None:
    parser = PushParser()
    parser.feed(b"<a/>")
    assert parser.finish() == parser.finish() == parser.summary
    with pytest.raises(ValueError, match="has been finished"):
        parser.feed(b" ")


def test_files_plain_and_compressed(tmp_path: Path) -> None:
    """Fails when a compressed file is not the message that is in it."""
    message = b"<all>" + b"".join(b"<r n='%d'>text</r>\n" % n for n in range(200_000)) + b"</all>"
    expected = pushed(message, 1 << 16)
    assert isinstance(expected, StreamSummary)
    assert expected.elements == 200_001
    zstd = pa.Codec("zstd").compress(message, asbytes=True)
    members = gzip.compress(message[:100]) + gzip.compress(message[100:])
    for name, data in {
        "plain.xml": message,
        "one.xml.gz": gzip.compress(message, 1),
        "two members.gz": members,
        "one.xml.zst": zstd,
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert check_stream(path) == expected, name
        assert check_stream(str(path), block_bytes=999) == expected, name
        with path.open("rb") as stream:
            assert check_stream(stream) == expected, name
    for name, data in {
        "gzip, cut": gzip.compress(message, 1)[:-5000],
        "gzip, damaged": gzip.compress(message, 1)[:5000] + b"\0" * 100,
        "zstd, cut": zstd[:-50],
    }.items():
        with pytest.raises((UnreadableMessageError, IllFormedMessageError)) as refused:
            check_stream(io.BytesIO(data))
        assert refused.type is UnreadableMessageError, name
    with pytest.raises(UnreadableMessageError, match="No such file"):
        check_stream(tmp_path / "absent.xml")


def test_what_is_no_xml_is_refused() -> None:
    with pytest.raises(IllFormedMessageError, match="line 1, column 1"):
        check_stream(io.BytesIO(b""))


def feed_megabytes(parser: PushParser, begin: bytes, block: bytes, megabytes: int) -> int:
    """Feeds a block over and over; the most memory that was held."""
    parser.feed(begin)
    most = 0
    for _ in range(megabytes * MIB // len(block)):
        parser.feed(block)
        most = max(most, parser.memory)
    return most


RECORDS = b"<r xmlns:p='urn:p' p:a='1'>text &amp; more<!-- c --></r>\n" * 20_000
PARTS = {
    "records": (b"<all>", RECORDS, b"</all>"),
    "text": (b"<a>", b"0123456789]]&lt;\r\n" * 60_000, b"</a>"),
    "CDATA": (b"<a><![CDATA[", b"0123456789]]<&\r\n" * 60_000, b"]]></a>"),
}


def check_flat(kind: str, megabytes: int) -> None:
    begin, block, end = PARTS[kind]
    parser = PushParser()
    assert feed_megabytes(parser, begin, block, megabytes) < 2 * MIB
    parser.feed(end)
    assert parser.finish().bytes > (megabytes - 2) * MIB


@pytest.mark.parametrize("kind", PARTS)
def test_memory_is_flat(kind: str) -> None:
    """Fails when something of every record, or of a text, is kept."""
    check_flat(kind, 30)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", PARTS)
def test_memory_is_flat_beyond_two_gigabytes(kind: str) -> None:
    """Fails when an offset or a count is a number of 32 bits."""
    check_flat(kind, 4_500)
    begin, block, _ = PARTS[kind]
    parser = PushParser()
    feed_megabytes(parser, begin, block, 4_500)
    fed = parser.summary.bytes
    end = b"]]></b>" if kind == "CDATA" else b"</b>"
    with pytest.raises(IllFormedMessageError) as refused:
        parser.feed(end + b" " * 1000)
    assert refused.value.params["offset"] == fed + len(end) - 4


@pytest.mark.parametrize(
    ("begin", "block", "offset"),
    [
        (b"<a>\n<b x='", b"x" * MIB, 4),
        (b"<a>\n<!--", b"x" * MIB, 4),
        (b"<!DOCTYPE a [\n", b"<!-- c -->" * 100_000, 0),
        (b"<a>\n<", b"n" * MIB, 4),
    ],
)
def test_what_cannot_be_held_is_refused(begin: bytes, block: bytes, offset: int) -> None:
    """Fails when a gigabyte attribute is collected before anybody asks how long it is."""
    parser = PushParser(bounds=StreamBounds(held_bytes_max=2 * MIB))
    with pytest.raises(LimitExceededError, match="StreamBounds") as refused:
        feed_megabytes(parser, begin, block, 1024)
    assert refused.value.params["offset"] == offset
    assert parser.memory < 12 * MIB
    assert parser.summary.bytes < 6 * MIB


def test_a_million_open_tags_are_refused() -> None:
    with pytest.raises(LimitExceededError) as refused:
        check_stream(io.BytesIO(b"<a>" * 1_000_000))
    assert refused.value.code == "limit.depth"


def test_length_and_elements_can_be_bounded() -> None:
    stream = b"<a><b/><b/></a>"
    with pytest.raises(LimitExceededError, match="message_bytes_max"):
        check_stream(io.BytesIO(stream), bounds=StreamBounds(message_bytes_max=10))
    with pytest.raises(LimitExceededError, match="elements_max"):
        check_stream(io.BytesIO(stream + b" " * 600), bounds=StreamBounds(elements_max=2))
    assert (
        check_stream(io.BytesIO(stream), Limits(message_bytes_max=1, elements_max=1)).elements == 3
    )
    for wrong in ({"message_bytes_max": 0}, {"elements_max": True}, {"held_bytes_max": 10}):
        with pytest.raises(ConfigError):
            StreamBounds(**wrong)


def test_the_encoding_can_be_given() -> None:
    message = "<a>é日本</a>".encode("utf-16-be")
    assert check_stream(io.BytesIO(message), encoding="UTF-16BE").text_bytes == 8
