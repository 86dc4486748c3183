"""Compression on links: what comes is what was sent, whoever is at fault.

If these fail, a message arrives as another one or never, a hostile neighbour costs more than its
session, or dictionaries take memory without a bound.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import ConfigError, MissingDependencyError, PeerError, SchemaError
from pathcast.overlay import compression
from pathcast.overlay.broker_node import NodeSettings
from pathcast.overlay.compression import (
    RENEW_SECONDS,
    SAMPLE_BYTES,
    SOURCES_MAX,
    LinkCompression,
    SourceDictionaries,
    TrainedDictionary,
    check_format,
)
from pathcast.overlay.messages import (
    DICTIONARY_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    Forward,
    StreamMessage,
    decoded,
    encoded,
)
from pathcast.overlay.messages import SessionFrame as LinkFrame
from pathcast.overlay.schemas import check_schema
from pathcast_lab.sim.broker_scenarios import random_scenario
from pathcast_lab.sim.broker_world import BrokerWorld

BODIES = [
    b"<order><item no='1'>tea</item><item no='2'/></order>",
    b"<?xml version='1.0'?><!-- x --><a:b xmlns:a='urn:a'>&#65;</a:b>\n",
    b"<order>" + b"<item>jam</item>" * 40 + b"</order>",
    b"<unknown><names/></unknown>",
    b"no XML at all",
    b"",
    b"\xff\xfe<\x00a\x00/\x00>\x00",
    b"\x02stream?",
]


def orders(count: int, first: int = 0) -> list[bytes]:
    """Messages that resemble each other."""
    chance = random.Random(first)
    return [
        b"<order no='%d'><customer>%d</customer>%s</order>"
        % (number, chance.randrange(999), b"<item><name>tea</name><price>3</price></item>" * 5)
        for number in range(first, first + count)
    ]


def forward(bodies: Sequence[bytes], source: str = "shop", after: int = 0) -> Forward:
    messages = [
        StreamMessage(after + place + 1, source, f"m{place}", 1, "", False, 0, body)
        for place, body in enumerate(bodies)
    ]
    return Forward("a", 1, 1, after, after + len(bodies), tuple(messages))


def link(format: str = "zstd") -> tuple[LinkCompression, LinkCompression]:
    """Two ends; the first one sends, and is the root of all sources."""
    here = LinkCompression("b", format, SourceDictionaries("a"))
    return here, LinkCompression("a", "text", SourceDictionaries("b"))


def sampled(here: LinkCompression, there: LinkCompression, source: str = "shop") -> int:
    """Send messages of a source until it has a dictionary; how many."""
    sent = 0
    while here._dictionaries.of(source) is None:
        told = forward(orders(100, sent), source, sent)
        assert there.incoming(carried(here.outgoing(told))) == told
        sent += 100
        assert sent * 100 < 4 * SAMPLE_BYTES, "there is never a dictionary"
    return sent


def carried(payload: object) -> Forward:
    """The payload as the other end decodes it from a frame."""
    assert isinstance(payload, Forward)
    frame = decoded(encoded(LinkFrame(1, 2, 1, 0, (payload,))))
    assert isinstance(frame, LinkFrame)
    (came,) = frame.payloads
    assert isinstance(came, Forward)
    return came


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["text", "zstd"]), st.lists(st.sampled_from(BODIES), max_size=6))
def test_what_comes_is_what_was_sent(chosen: str, bodies: list[bytes]) -> None:
    here, there = link(chosen)
    told = forward(bodies)
    assert there.incoming(carried(here.outgoing(told))) == told


def test_a_sampled_dictionary_travels_once_before_its_messages() -> None:
    here, there = link()
    plain = len(carried(here.outgoing(forward(orders(1)))).messages[0].body)
    told: list[Forward] = []
    dictionaries: list[tuple[str, bytes]] = []
    for sent in range(0, 3_000, 100):
        told.append(forward(orders(100, sent), after=sent))
        packed = carried(here.outgoing(told[-1]))
        dictionaries += packed.dictionaries
        assert there.incoming(packed) == told[-1]
    assert [source for source, _ in dictionaries] == ["shop"]
    assert len(dictionaries[0][1]) <= DICTIONARY_BYTES_MAX
    assert len(packed.messages[-1].body) < plain / 2


def test_a_broker_uses_the_dictionary_that_it_was_told() -> None:
    here, there = link()
    sent = sampled(here, there)
    there.incoming(carried(here.outgoing(forward(orders(9, sent), after=sent))))
    onward = LinkCompression("c", "zstd", there._dictionaries)
    packed = carried(onward.outgoing(forward(orders(9, sent))))
    data = [dictionary for _, dictionary in packed.dictionaries]
    found = here._dictionaries.of("shop")
    assert found is not None
    assert data == [found.data]


def test_a_new_session_knows_no_dictionary() -> None:
    here, there = link()
    sent = sampled(here, there)
    told = forward(orders(9, sent), after=sent)
    again = carried(here.outgoing(told))
    there.began()
    with pytest.raises(PeerError, match="was not told"):
        there.incoming(again)
    here.began()
    assert there.incoming(carried(here.outgoing(told))) == told


def test_a_dictionary_is_renewed_by_age_and_not_before() -> None:
    here, there = link()
    sent = sampled(here, there)
    numbers = []
    for now in (1.0, RENEW_SECONDS - 1, RENEW_SECONDS + 1, RENEW_SECONDS + 2):
        here._dictionaries.time_is(now)
        for _ in range(20):
            told = forward(orders(100, sent), after=sent)
            assert there.incoming(carried(here.outgoing(told))) == told
            sent += 100
        found = here._dictionaries.of("shop")
        assert found is not None
        numbers.append(found.number)
    assert numbers[0] == numbers[1] != numbers[2] == numbers[3]


def test_messages_that_many_links_carry_are_sampled_once() -> None:
    dictionaries = SourceDictionaries("a")
    links = [LinkCompression(peer, "zstd", dictionaries) for peer in "bcd"]
    told = forward(orders(10))
    for each in links:
        each.outgoing(told)
    assert len(dictionaries._samples["shop"].messages) == 10


def test_a_message_that_goes_over_several_links_is_compressed_once() -> None:
    """If this fails, each neighbour of a broker costs what one costs."""
    dictionaries = SourceDictionaries("z")
    links = [LinkCompression(peer, "zstd", dictionaries) for peer in "bcd"]
    told = forward(orders(10))
    sent = [carried(each.outgoing(told)).messages for each in links]
    assert sent[0] == sent[1] == sent[2]
    counted = dictionaries.plain.compress.cache_info()  # type: ignore[attr-defined]
    assert (counted.misses, counted.hits) == (10, 20)


def test_other_roots_and_text_links_are_not_sampled() -> None:
    other = LinkCompression("b", "zstd", SourceDictionaries("z"))
    text = LinkCompression("b", "text", SourceDictionaries("a"))
    for each in (other, text):
        each.outgoing(forward(orders(10)))
        assert not each._dictionaries._samples


def test_sources_with_dictionaries_are_bounded_on_both_ends() -> None:
    here, there = link()
    sources = [f"s{number}" for number in range(SOURCES_MAX + 3)]
    for source in sources[:SOURCES_MAX]:
        sampled(here, there, source)
    for source in sources:
        told = forward(orders(5), source, after=10**6)
        assert there.incoming(carried(here.outgoing(told))) == told
    assert len(here._dictionaries._samples) == len(there._heard) == SOURCES_MAX
    # A source that nobody publishes to any more gives its place up.
    here._dictionaries.time_is(RENEW_SECONDS + 1)
    sampled(here, there, "new")
    assert len(here._dictionaries._samples) == SOURCES_MAX
    told = forward(orders(5), "new", after=10**6)
    assert there.incoming(carried(here.outgoing(told))) == told, "without a dictionary, or with"


def frame_of(body: bytes, **options: object) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(body)  # type: ignore[arg-type]


OTHER = TrainedDictionary.of(orders(400))
assert OTHER is not None


@pytest.mark.parametrize(
    ("format", "body", "reason"),
    [
        ("of the future", b"<a/>", "none"),
        ("dictionary+zlib", b"<a/>", "none"),
        ("zstd", b"<a/>", "rame|rror"),
        ("zstd", b"", "rame|rror"),
        ("zstd", b"\x28\xb5\x2f\xfd", "rame|rror"),
        ("zstd", frame_of(b"<a/>" * 99)[:-1], "rame|rror|ncomplete"),
        ("zstd", frame_of(b"<a/>" * 99) + b"x", "extra|unused|trailing|rame"),
        ("zstd", frame_of(b"<a/>" * 99, write_content_size=False), "length"),
        ("zstd", frame_of(b"\0" * (MESSAGE_BYTES_MAX + 1)), "allowed"),
        ("zstd", OTHER.compress(orders(1)[0]), "was not told"),
    ],
)
def test_hostile_messages_are_refused_with_a_reason(format: str, body: bytes, reason: str) -> None:
    _, there = link()
    told = Forward("a", 1, 1, 0, 1, (StreamMessage(1, "s", "m", 0, format, False, 0, body),))
    with pytest.raises(PeerError, match=reason) as refused:
        there.incoming(told)
    assert refused.value.code == "overlay.format"
    assert there.incoming(forward([b"<order/>"])) == forward([b"<order/>"])


def test_messages_of_one_payload_are_bounded_together() -> None:
    bomb = frame_of(b"\0" * (MESSAGE_BYTES_MAX // 2 + 1))
    published = [StreamMessage(place, "s", "m", 0, "zstd", False, 0, bomb) for place in (1, 2)]
    with pytest.raises(PeerError, match="allowed"):
        link()[1].incoming(Forward("a", 1, 1, 0, 2, tuple(published)))


def test_dictionaries_that_lie_are_refused() -> None:
    _, there = link()
    for data in (b"", b"x", b"\x37\xa4\x30\xec" + b"\0" * 60):
        told = Forward("a", 1, 1, 0, 0, (), dictionaries=(("s", data),))
        with pytest.raises(PeerError, match=r"train|ictionary"):
            there.incoming(told)
    assert OTHER is not None
    for number in range(SOURCES_MAX):
        there.incoming(Forward("a", 1, 1, 0, 0, (), dictionaries=((f"s{number}", OTHER.data),)))
    with pytest.raises(PeerError, match="dictionaries"):
        there.incoming(Forward("a", 1, 1, 0, 0, (), dictionaries=(("more", OTHER.data),)))


def test_a_sample_of_noise_gives_no_fault() -> None:
    here, there = link()
    chance = random.Random(1)
    for at in range(0, 60, 10):
        told = forward([chance.randbytes(9_000) for _ in range(10)], after=at)
        assert there.incoming(carried(here.outgoing(told))) == told


def test_names_of_formats_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    check_format("text")
    check_format("zstd")
    for ended in ("auto", "dictionary+zlib", "stream", "text+zstd"):
        with pytest.raises(ConfigError, match="has ended: write 'zstd'"):
            check_format(ended)
    with pytest.raises(ConfigError, match="neither 'text' nor 'zstd'"):
        check_format("lzma")
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MissingDependencyError, match="pathcast"):
        compression.check_format("zstd")


def test_schemas_that_cannot_be_read_are_refused() -> None:
    xsd = (
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a">'
        '<xs:complexType><xs:attribute name="k"/></xs:complexType></xs:element></xs:schema>'
    )
    for text in ("", xsd, "<!ELEMENT a (b*)><!ELEMENT b EMPTY>"):
        check_schema(text)
    included = xsd.replace(
        "<xs:element", '<xs:include schemaLocation="/etc/passwd"/><xs:element', 1
    )
    for text in ("neither", included):
        with pytest.raises(SchemaError):
            check_schema(text)


@pytest.mark.parametrize(
    "seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(4, 400))]
)
def test_networks_deliver_the_same_when_compressed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So small a sample that the few messages of a world fill several.
    monkeypatch.setattr(compression, "SAMPLE_BYTES", 600)
    monkeypatch.setattr(compression, "PACKED_BYTES_MIN", 1)
    monkeypatch.setattr(compression, "RENEW_SECONDS", 2.0)
    scenario = random_scenario(seed)
    BrokerWorld(scenario, seed, settings=NodeSettings(format="zstd")).run()
