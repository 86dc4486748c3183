"""The paper's wire formats: a message that was written and read is the message that was published.

If these fail, Figures 7 and 8 compare forms that are not forms of the same message.
"""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from door_messages import cases, message_of
from flwr_cases import flwr_groups
from generators import MessageShape, random_message
from pathcast.errors import ConfigError, MessageError, MissingDependencyError
from pathcast.limits import Limits
from pathcast.schema import parse_dtd
from pathcast_papers import parse
from pathcast_papers.onyx.dictionaries import Dictionaries, Dictionary
from pathcast_papers.onyx.element_stream import decode_stream, encode_stream, is_stream
from pathcast_papers.onyx.wire import decode, dictionary_of_schema, encode
from pathcast_papers.onyx.wire_fault import WireFormatError
from pathcast_papers.onyx.wire_formats import (
    FormatCost,
    WireFormat,
    best_format,
    compress,
    decompress,
)
from shared_data import SHARED_DATA

MESSAGE = b'<order no="7"><item>tea</item><item>jam</item><item>tea</item></order>'
NAMES = Dictionary(("item", "order", "no", "a", "b", "p:a", "x"))


def generated(count: int, seed: int) -> list[bytes]:
    """Messages in every notation that the generator has."""
    draw = random.Random(seed)
    shape = MessageShape(has_markup=True, has_defaults=True)
    return [random_message(draw, shape=shape) for _ in range(count)]


def is_well_formed(message: bytes) -> bool:
    """Whether the door takes it."""
    try:
        parse(message, Limits(message_bytes_max=1 << 30))
    except MessageError:
        return False
    return True


def written() -> list[bytes]:
    """Messages of the cases of customised delivery, and those of the door."""
    found = [group.message for group in flwr_groups()]
    return found + [message_of(case) for case in cases() if "encoding" not in case]


@pytest.mark.parametrize("dictionary", [None, NAMES], ids=["in band", "dictionary"])
def test_a_stream_is_shorter_than_its_text_and_stands_for_it(
    dictionary: Dictionary | None,
) -> None:
    messages = [*filter(is_well_formed, written()), *generated(300, 1)]
    known = Dictionaries([NAMES])
    streams = [encode_stream(message, dictionary) for message in messages]
    assert sum(stream is not None for stream in streams) > 100
    for message, stream in zip(messages, streams, strict=True):
        if stream is not None:
            assert is_stream(stream)
            assert len(stream) < len(message)
            assert decode_stream(stream, known, Limits(message_bytes_max=1 << 30)) == message


@pytest.mark.parametrize("format", list(WireFormat), ids=lambda format: format.value)
def test_what_is_decoded_is_what_was_encoded(format: WireFormat) -> None:
    messages = [MESSAGE, None, b"<a/>", b"no XML", *generated(20, 2)]
    dictionary = NAMES if format.encoding == "dictionary" else None
    packed = encode(messages, format, dictionary)
    found = decode(packed, format, Dictionaries([NAMES]))
    assert found.refusals == []
    assert found.messages.to_pylist() == messages
    again = encode(found.messages, format, dictionary)
    assert again.to_pylist() == packed.to_pylist(), "encode(decode(x)) is not x"


HOSTILE = {
    b"\x01\x04\x05\x09a": ("ends 8 bytes before", 5),
    b"\x01\x84\x00\x05\x01a": ("shortest form", 1),
    b"\x01\x04\x00": ("an end, and no element", 2),
    b"\x01\x04\x0d\x01a": ("name number 1 of 0", 2),
    b"\x01\x05\x05\x01a": ("are announced", 5),
    b"\x02" + bytes(8) + b"\x04\x0d": ("no dictionary of version", 1),
    b"\x01\xff\xff\xff\xff\x0f\x05\x01a": ("message_bytes_max", 0),
}


@pytest.mark.parametrize("stream", HOSTILE, ids=[reason for reason, _ in HOSTILE.values()])
def test_a_refusal_says_which_byte_of_the_stream(stream: bytes) -> None:
    reason, offset = HOSTILE[stream]
    [(row, error)] = decode([None, stream], WireFormat.STREAM).refusals
    assert row == 1
    assert reason in str(error)
    if isinstance(error, WireFormatError):
        assert error.args[1] == offset
    else:
        assert error.params["offset"] == offset


def test_damaged_streams_are_refused_or_are_other_texts() -> None:
    draw = random.Random(4)
    seeds = [encode_stream(message, draw.choice([None, NAMES])) for message in generated(80, 4)]
    streams = []
    for _ in range(3_000):
        stream = bytearray(draw.choice([seed for seed in seeds if seed]))
        for _ in range(draw.randrange(1, 3)):
            stream[draw.randrange(len(stream))] = draw.randrange(256)
        streams.append(bytes(stream))
    known = Dictionaries([NAMES])
    found = decode(streams, WireFormat.STREAM, known)
    refused = {row for row, _ in found.refusals}
    assert len(refused) > 100
    for row, text in enumerate(found.messages.to_pylist()):
        assert (text is None) == (row in refused)


def test_compressed_messages_are_bounded_before_they_are_made() -> None:
    for format in (WireFormat.TEXT_ZLIB, WireFormat.TEXT_ZSTD):
        bomb = compress(bytes(64 << 20), format)
        assert len(bomb) < 1 << 17
        with pytest.raises(MessageError, match="message_bytes_max"):
            decompress(bomb, format, 8 << 20)
        good = compress(MESSAGE, format)
        assert decompress(good, format, len(MESSAGE)) == MESSAGE
        with pytest.raises(MessageError, match="message_bytes_max"):
            decompress(good, format, len(MESSAGE) - 1)
        for bad in (good[:-1], good + b"x", b"", b"\x28\xb5\x2f\xfd\x00", b"<a/>"):
            with pytest.raises(WireFormatError, match="not compressed"):
                decompress(bad, format, 1_000)
    with pytest.raises(MessageError, match="message_bytes_max"):
        decompress(MESSAGE, WireFormat.TEXT, 10)


def test_a_zstd_frame_must_say_its_length_and_not_lie() -> None:
    import zstandard

    silent = zstandard.ZstdCompressor(write_content_size=False).compress(MESSAGE)
    with pytest.raises(WireFormatError, match="does not say"):
        decompress(silent, WireFormat.TEXT_ZSTD, 1_000)
    lying = bytearray(compress(MESSAGE, WireFormat.TEXT_ZSTD))
    assert lying[5] == len(MESSAGE)
    lying[5] = 200
    with pytest.raises(WireFormatError, match="zstd"):
        decompress(bytes(lying), WireFormat.TEXT_ZSTD, 1_000)


def test_one_bad_message_disturbs_no_other() -> None:
    good = zlib.compress(MESSAGE)
    packed = [good, b"junk", None, zlib.compress(bytes(9 << 20)), good]
    found = decode(packed, WireFormat.TEXT_ZLIB)
    assert found.messages.to_pylist() == [MESSAGE, None, None, None, MESSAGE]
    assert [row for row, _ in found.refusals] == [1, 3]
    (_, junk), (_, bomb) = found.refusals
    assert "not compressed by zlib" in str(junk)
    assert "message_bytes_max" in str(bomb)


def test_without_zstandard_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MissingDependencyError, match=r"pathcast\[net\]"):
        compress(MESSAGE, WireFormat.TEXT_ZSTD)
    assert compress(MESSAGE, WireFormat.TEXT) == MESSAGE


def test_a_dictionary_is_its_names() -> None:
    one = Dictionary.of_messages([MESSAGE, b"<a xmlns:p='u' xmlns='d'><p:b p:x='1'/></a>"])
    assert one.names[:2] == ("item", "a")
    assert set(one.names) == {"item", "order", "no", "a", "p:b", "p:x", "xmlns", "xmlns:p"}
    again = Dictionary.from_bytes(one.to_bytes())
    assert (again, again.version) == (one, one.version)
    assert Dictionary(one.names[::-1]).version != one.version
    assert Dictionary(("ab", "c")).version != Dictionary(("a", "bc")).version
    for names in [
        ("a", "a"),
        ("",),
        ("x" * 1025,),
        ("\ud800",),
        (3,),
        tuple(map(str, range(65537))),
    ]:
        with pytest.raises(ConfigError, match="dictionary"):
            Dictionary(names)  # type: ignore[arg-type]
    for content in (b"a", b"\xff\n", b"a\na\n"):
        with pytest.raises(ConfigError, match="dictionary"):
            Dictionary.from_bytes(content)
    with pytest.raises(ConfigError, match="has no dictionary"):
        encode([MESSAGE], WireFormat.STREAM, NAMES)
    with pytest.raises(ConfigError, match="has dictionary"):
        encode([MESSAGE], WireFormat.DICTIONARY)
    with pytest.raises(ConfigError, match=r"messages\[1\]"):
        encode([MESSAGE, 3], WireFormat.STREAM)


def test_a_dictionary_of_a_schema_has_its_names_the_commonest_first() -> None:
    graph = parse_dtd(
        "<!ELEMENT r (a+, b?)><!ELEMENT a (b*)><!ELEMENT b EMPTY>"
        "<!ATTLIST r id ID #IMPLIED><!ATTLIST a id ID #IMPLIED x CDATA 'd'>"
        "<!ATTLIST b id ID #IMPLIED>"
    )
    names = dictionary_of_schema(graph).names
    assert names[:3] == ("b", "id", "a")
    assert set(names) == {"r", "a", "b", "id", "x"}


def test_the_quickest_format_depends_on_the_link() -> None:
    costs = {
        WireFormat.TEXT: FormatCost(3000, 10e-6),
        WireFormat.DICTIONARY: FormatCost(1000, 25e-6),
        WireFormat.DICTIONARY_ZSTD: FormatCost(700, 60e-6),
    }
    chosen = [best_format(bandwidth, costs) for bandwidth in (1e5, 2e7, 1e10)]
    assert chosen == [WireFormat.DICTIONARY_ZSTD, WireFormat.DICTIONARY, WireFormat.TEXT]
    for bad in (0, -1.0):
        with pytest.raises(ValueError, match="best_format"):
            best_format(bad, costs)
    with pytest.raises(ValueError, match="best_format"):
        best_format(1.0, {})


def test_arrays_go_in_and_come_out() -> None:
    chunked = pa.chunked_array([[MESSAGE], [], [None, MESSAGE]], pa.binary())
    packed = encode(chunked, WireFormat.STREAM)
    assert packed.type == pa.large_binary()
    found = decode(packed, WireFormat.STREAM).messages
    assert found.to_pylist() == chunked.to_pylist()
    sliced = decode(packed.slice(1), WireFormat.STREAM).messages
    assert sliced.to_pylist() == [None, MESSAGE]


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason=f"shared data is not here: {SHARED_DATA}")
def test_real_messages() -> None:
    paths = sorted((SHARED_DATA / "docs").rglob("*.xml"))
    messages = [
        path.read_bytes() for path in paths[:: max(1, len(paths) // 200)] if _is_small(path)
    ]
    names = Dictionary.of_messages(filter(is_well_formed, messages[::4]))
    packed = encode(messages, WireFormat.DICTIONARY, names)
    found = decode(packed, WireFormat.DICTIONARY, Dictionaries([names]))
    assert found.messages.to_pylist() == messages


def _is_small(path: Path) -> bool:
    return path.stat().st_size < 300_000
