"""Wire formats: a message that has travelled is the message that was published.

If these fail, subscribers get other results over a link than at the source, or somebody on the
other end can bring a broker down, or make it believe what is not so.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from broker_engines import broker_engines
from door_messages import cases, message_of
from every_engine import engines
from flwr_cases import flwr_groups
from generators import MessageShape, random_message, random_query_for
from oracles import missing_reason
from oracles.engines import EngineName, made_by
from pathcast import Broker, Query, QueryIndex, Subscription
from pathcast.engine.wire import decode, dictionary_of_schema, encode, unpack
from pathcast.errors import ConfigError, MessageError, MissingDependencyError, WireFormatError
from pathcast.limits import Limits
from pathcast.message import wire
from pathcast.message.dictionaries import Dictionaries, Dictionary
from pathcast.message.wire import FormatCost, WireFormat, best_format, compress, decompress
from pathcast.schema import parse_dtd
from pathcast_papers import parse
from pathcast_papers.onyx.element_stream import decode_stream, encode_stream, is_stream
from shared_data import SHARED_DATA

MESSAGE = b'<order no="7"><item>tea</item><item>jam</item><item>tea</item></order>'
NAMES = Dictionary(("item", "order", "no", "a", "b", "p:a", "x"))

needs_kernel = pytest.mark.skipif(
    missing_reason("kernel") is not None, reason=str(missing_reason("kernel"))
)


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
def test_the_reference_codec_and_the_kernels_write_the_same_bytes(
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
    if missing_reason("kernel") is not None:
        pytest.skip("the kernel is not there: the reference codec alone was looked at")
    format = WireFormat.STREAM if dictionary is None else WireFormat.DICTIONARY
    natively = encode(messages, format, dictionary).to_pylist()
    for message, native, stream in zip(messages, natively, streams, strict=True):
        assert native == (message if stream is None else stream), message


@engines
@pytest.mark.parametrize("format", list(WireFormat), ids=lambda format: format.value)
def test_what_is_decoded_is_what_was_encoded(engine: EngineName, format: WireFormat) -> None:
    messages = [MESSAGE, None, b"<a/>", b"no XML", *generated(20, 2)]
    dictionary = NAMES if format.encoding == "dictionary" else None
    packed = made_by(engine, encode, messages, format, dictionary)
    found = made_by(engine, decode, packed, format, Dictionaries([NAMES]))
    assert found.refusals == []
    assert found.messages.to_pylist() == messages
    again = made_by(engine, encode, found.messages, format, dictionary)
    assert again.to_pylist() == packed.to_pylist(), "encode(decode(x)) is not x"


def answers(
    engine: EngineName, queries: Sequence[Query], messages: Sequence[bytes | None]
) -> list[object]:
    """What a matcher that takes streams says of messages: ids, or the family of the refusal."""
    index = made_by(engine, QueryIndex)
    index.register(queries)
    matcher = index.matcher(streams=Dictionaries([NAMES]))
    return [
        list(result.query_ids) if result.error is None else result.error.family
        for result in matcher.match_batch(messages)
    ]


@engines
def test_a_matcher_answers_for_a_stream_as_for_its_text(engine: EngineName) -> None:
    draw = random.Random(3)
    messages = [message for message in generated(120, 3) if encode_stream(message)]
    queries = [
        random_query_for(draw, parse(message, Limits()), f"{row}/{n}")
        for row, message in enumerate(messages)
        for n in range(3)
    ]
    expected = answers(engine, queries, messages)
    assert sum(map(bool, expected)) > 30
    for format, dictionary in ((WireFormat.STREAM, None), (WireFormat.DICTIONARY, NAMES)):
        streams = made_by(engine, encode, messages, format, dictionary).to_pylist()
        assert sum(map(is_stream, streams)) > len(streams) // 2
        assert answers(engine, queries, streams) == expected


@engines
def test_cases_of_well_formedness_are_refused_as_streams_too(engine: EngineName) -> None:
    messages = [message for message in written() if len(message) < 5_000]
    queries = [Query("all", "//*"), Query("text", "//text()"), Query("id", "id('a')")]
    streams = made_by(engine, encode, messages, WireFormat.STREAM).to_pylist()
    assert sum(map(is_stream, streams)) > 50
    for text, stream in zip(
        answers(engine, queries, messages), answers(engine, queries, streams), strict=True
    ):
        if text in ("IllFormedMessageError", "EncodingError"):
            assert stream in ("IllFormedMessageError", "WireFormatError", "EncodingError")
        else:
            assert stream == text


def deliveries(
    engine: EngineName,
    subscriptions: Sequence[Subscription],
    messages: Sequence[bytes],
    streams: Dictionaries | None,
) -> list[tuple[object, ...]]:
    """All that a broker hands out: to whom, which id, which bytes; and verdicts."""
    broker = made_by(engine, Broker, streams=streams, threads=1)
    # Those of the cases that no engine takes are left out.
    assert broker.subscribe(subscriptions).accepted >= 2
    batch = broker.process_batch(messages)
    found: list[tuple[object, ...]] = []
    for row in range(len(messages)):
        each = batch.deliveries(row)
        found += [(row, *one) for one in each]
        found.append((row, None if each.error is None else each.error.code))
    return found


@broker_engines
def test_a_broker_delivers_for_a_stream_what_it_delivers_for_its_text(engine: EngineName) -> None:
    total = 0
    for group in flwr_groups():
        subscriptions = [
            Subscription(f"s{n}", "ann", case.query, namespaces=dict(group.namespaces))
            for n, case in enumerate(group.cases)
        ]
        subscriptions.append(Subscription("whole", "bob", "/*", deliver="message"))
        subscriptions.append(Subscription("ids", "bob", "/*", deliver="ids"))
        stream = encode_stream(group.message)
        if stream is None:
            continue
        expected = deliveries(engine, subscriptions, [group.message], None)
        assert deliveries(engine, subscriptions, [stream], Dictionaries()) == expected
        total += len(expected)
    assert total > 200


@engines
def test_streams_are_refused_where_they_are_not_asked_for(engine: EngineName) -> None:
    stream = encode_stream(MESSAGE)
    assert stream is not None
    index = made_by(engine, QueryIndex)
    index.register([Query("q", "/order")])
    [result] = index.matcher().match_batch([stream])
    assert result.error is not None
    assert result.error.family == "IllFormedMessageError"
    with pytest.raises(ConfigError, match="streams: bool is not Dictionaries"):
        index.matcher(streams=True)  # type: ignore[arg-type]


@engines
def test_dictionaries_come_and_go_while_a_matcher_lives(engine: EngineName) -> None:
    stream = encode_stream(MESSAGE, NAMES)
    index = made_by(engine, QueryIndex)
    index.register([Query("q", "/order[item = 'jam']")])
    known = Dictionaries()
    matcher = index.matcher(streams=known)
    [before] = matcher.match_batch([stream])
    assert before.error is not None
    assert before.error.code == "wire.dictionary"
    assert NAMES.version.hex() in str(before.error)
    known.add(NAMES)
    assert [list(each.query_ids) for each in matcher.match_batch([stream])] == [["q"]]
    known.remove(NAMES.version)
    known.remove(NAMES.version)
    assert matcher.match_batch([stream])[0].error is not None
    assert len(known) == 0


HOSTILE = {
    b"\x01\x04\x05\x09a": ("wire.end", 5),
    b"\x01\x84\x00\x05\x01a": ("wire.number", 1),
    b"\x01\x04\x00": ("wire.item", 2),
    b"\x01\x04\x0d\x01a": ("wire.name", 2),
    b"\x01\x05\x05\x01a": ("wire.length", 5),
    b"\x02" + bytes(8) + b"\x04\x0d": ("wire.dictionary", 1),
    b"\x01\xff\xff\xff\xff\x0f\x05\x01a": ("limit.message_bytes", 0),
}


@engines
@pytest.mark.parametrize("stream", HOSTILE, ids=[code for code, _ in HOSTILE.values()])
def test_a_refusal_says_which_byte_of_the_stream(engine: EngineName, stream: bytes) -> None:
    code, offset = HOSTILE[stream]
    index = made_by(engine, QueryIndex)
    [result] = index.matcher(streams=Dictionaries()).match_batch([stream])
    assert result.error is not None
    assert (result.error.code, result.error.params["offset"]) == (code, offset)
    [(row, error)] = made_by(engine, decode, [None, stream], WireFormat.STREAM).refusals
    assert (row, error.code, error.params["offset"]) == (1, code, offset)


@needs_kernel
def test_damaged_streams_are_refused_or_are_other_texts() -> None:
    draw = random.Random(4)
    seeds = [encode_stream(message, draw.choice([None, NAMES])) for message in generated(80, 4)]
    streams = []
    for _ in range(3_000):
        stream = bytearray(draw.choice([seed for seed in seeds if seed]))
        for _ in range(draw.randrange(1, 3)):
            stream[draw.randrange(len(stream))] = draw.randrange(256)
        streams.append(bytes(stream))
    index = QueryIndex()
    index.register([Query("q", "//*[@*]"), Query("t", "//text()")])
    known = Dictionaries([NAMES])
    taken = 0
    texts = decode(streams, WireFormat.STREAM, known).messages.to_pylist()
    found = index.matcher(streams=known).match_batch(streams)
    for text, result in zip(texts, found, strict=True):
        if result.error is not None:
            continue
        taken += 1
        assert text is not None, "a stream without a text is read"
        [of_text] = index.matcher().match_batch([text.decode()])
        assert of_text.error is None
        assert list(of_text.query_ids) == list(result.query_ids)
    assert taken > 100


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
            with pytest.raises(WireFormatError, match="not compressed") as caught:
                decompress(bad, format, 1_000)
            assert caught.value.code == "wire.compression"
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
    found = unpack(packed, WireFormat.TEXT_ZLIB)
    assert found.messages.to_pylist() == [MESSAGE, None, None, None, MESSAGE]
    codes = [(row, error.code) for row, error in found.refusals]
    assert codes == [(1, "wire.compression"), (3, "limit.message_bytes")]


def test_without_zstandard_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MissingDependencyError, match=r"pathcast\[net\]"):
        compress(MESSAGE, WireFormat.TEXT_ZSTD)
    assert wire.compress(MESSAGE, WireFormat.TEXT) == MESSAGE


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
        made_by("reference", encode, [MESSAGE], WireFormat.STREAM, NAMES)
    with pytest.raises(ConfigError, match="has dictionary"):
        made_by("reference", encode, [MESSAGE], WireFormat.DICTIONARY)
    with pytest.raises(ConfigError, match=r"messages\[1\]"):
        made_by("reference", encode, [MESSAGE, 3], WireFormat.STREAM)


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
    packed = made_by("reference", encode, chunked, WireFormat.STREAM)
    assert packed.type == pa.large_binary()
    found = made_by("reference", decode, packed, WireFormat.STREAM).messages
    assert found.to_pylist() == chunked.to_pylist()
    sliced = made_by("reference", decode, packed.slice(1), WireFormat.STREAM).messages
    assert sliced.to_pylist() == [None, MESSAGE]


@needs_kernel
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
    queries = [Query("all", "//*"), Query("t", "//text()[. > 5]"), Query("a", "//@*[. = 'en']")]
    index = QueryIndex()
    index.register(queries)
    takes, plain = index.matcher(streams=Dictionaries([names])), index.matcher()
    for stream, text in zip(takes.match_batch(packed), plain.match_batch(messages), strict=True):
        assert list(stream.query_ids) == list(text.query_ids)
        assert (stream.error is None) == (text.error is None)


def _is_small(path: Path) -> bool:
    return path.stat().st_size < 300_000
