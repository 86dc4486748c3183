"""Wire formats on links: what comes is what was sent, whatever the format and whoever is at fault.

If these fail, a message arrives as another one or never, a hostile neighbour costs more than its
session, or a slow link is sent text that would be there sooner in another form.
"""

from __future__ import annotations

import random
import time
import zlib

import pytest

pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.engine.wire import encode
from pathcast.errors import ConfigError, PeerError, SchemaError
from pathcast.limits import Limits
from pathcast.message.dictionaries import Dictionary
from pathcast.message.wire import WireFormat
from pathcast.overlay.broker_node import NodeSettings
from pathcast.overlay.link_formats import DICTIONARIES_MAX, LinkFormats, check_format
from pathcast.overlay.link_speed import LinkSpeed
from pathcast.overlay.messages import (
    Announce,
    Announcement,
    Formats,
    Forward,
    Published,
    Source,
    decoded,
    encoded,
)
from pathcast.overlay.messages import Frame as LinkFrame
from pathcast.overlay.schemas import check_schema, dictionary_names
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
NAMES = ("order", "item", "no")


def announced(names: tuple[str, ...], source: str = "shop", version: int = 1) -> Announce:
    entry = Source(dictionary=names, dictionary_version=version)
    return Announce((Announcement("a", source, version, 7, entry),))


def forward(bodies: list[bytes], source: str = "shop") -> Forward:
    messages = [
        Published(place + 1, source, f"m{place}", 1, "", False, body)
        for place, body in enumerate(bodies)
    ]
    return Forward("a", 1, 1, 0, len(bodies), tuple(messages))


def link(chosen: str) -> tuple[LinkFormats, LinkFormats]:
    """Two ends with a session; the first one sends."""
    here, there = LinkFormats("b", chosen), LinkFormats("a", "text")
    said, heard = here.began(), there.began()
    here.incoming(heard)
    there.incoming(said)
    return here, there


def carried(payload: Forward) -> Forward:
    """As the other end has it from a frame."""
    frame = decoded(encoded(LinkFrame(1, 2, 1, 0, (payload,))))
    assert isinstance(frame, LinkFrame)
    (came,) = frame.payloads
    assert isinstance(came, Forward)
    return came


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([each.value for each in WireFormat]),
    st.lists(st.sampled_from(BODIES), max_size=6),
    st.booleans(),
)
def test_what_comes_is_what_was_sent(chosen: str, bodies: list[bytes], is_announced: bool) -> None:
    here, there = link(chosen)
    if is_announced:
        there.incoming(here.outgoing(announced(NAMES)))
    told = forward(bodies)
    assert there.incoming(carried(here.outgoing(told))) == told  # type: ignore[arg-type]


def test_a_dictionary_is_used_once_the_other_end_has_it_and_not_before() -> None:
    here, there = link("dictionary")
    told = forward(BODIES[2:3])
    (before,) = here.outgoing(told).messages  # type: ignore[union-attr]
    assert before.format == "stream"
    there.incoming(here.outgoing(announced(NAMES)))
    (after,) = here.outgoing(told).messages  # type: ignore[union-attr]
    assert after.format == "dictionary"
    assert len(after.body) < len(before.body) < len(BODIES[2])
    # Another dictionary of the source; frames of the former are still under way.
    there.incoming(here.outgoing(announced(("item", "order"), version=2)))
    for each in (before, after, here.outgoing(told).messages[0]):  # type: ignore[union-attr]
        assert there.incoming(forward([b""])) == forward([b""])
        came = Forward("a", 1, 1, 0, 1, (each,))
        assert there.incoming(came) == told
    # A new session knows none.
    there.incoming(here.began())
    here.incoming(there.began())
    (anew,) = here.outgoing(told).messages  # type: ignore[union-attr]
    assert anew.format == "stream"


def test_both_ends_keep_the_same_dictionaries_of_a_catalog_that_has_too_many() -> None:
    here, there = link("dictionary")
    for number in range(DICTIONARIES_MAX + 10):
        said = announced((f"n{number}", "item", "order"), f"s{number}")
        there.incoming(here.outgoing(said))
    there.incoming(here.outgoing(announced(("twice", "twice"), "bad")))
    used = []
    for number in range(DICTIONARIES_MAX + 10):
        told = forward(BODIES[2:3], f"s{number}")
        packed = here.outgoing(told)
        used.append(packed.messages[0].format)  # type: ignore[union-attr]
        assert there.incoming(packed) == told
    assert used == ["dictionary"] * DICTIONARIES_MAX + ["stream"] * 10


def test_until_the_other_end_has_said_what_it_reads_it_is_sent_text() -> None:
    here = LinkFormats("b", "dictionary+zlib")
    told = forward(BODIES[:1])
    assert here.outgoing(told) is told
    here.began()
    here.incoming(Formats(("text", "stream", "of the future")))
    assert here.outgoing(told) is told


@pytest.mark.parametrize(
    ("format", "body", "reason"),
    [
        ("of the future", b"<a/>", "none"),
        ("text+zlib", b"<a/>", "compressed"),
        ("text+zlib", zlib.compress(b"x" * 10_000), "5"),
        ("text+zlib", zlib.compress(b"<a/>")[:-1], "ends too early"),
        ("text+zstd", b"\x28\xb5\x2f\xfd", "compressed"),
        ("stream", b"\x01\xff\xff\xff\xff\xff", "number"),
        ("dictionary", b"\x02" + b"\x00" * 8 + b"\x04\x1d", "dictionary"),
    ],
)
def test_hostile_formats_are_refused_with_a_reason(format: str, body: bytes, reason: str) -> None:
    there = LinkFormats("a", "text", limits=Limits(message_bytes_max=5_000))
    there.began()
    told = Forward("a", 1, 1, 0, 1, (Published(1, "s", "m", 0, format, False, body),))
    with pytest.raises(PeerError, match=reason) as refused:
        there.incoming(told)
    assert refused.value.code == "overlay.format"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("order", "order", "no"), "dictionary"),
        (("order",), "name"),
        (("orders", "item", "no"), "announced"),
    ],
)
def test_dictionaries_that_lie_are_refused_with_their_messages(
    names: tuple[str, ...], reason: str
) -> None:
    """Names that are twice, too few or others than the message was written with."""
    there = LinkFormats("a", "text")
    there.began()
    there.incoming(announced(names))
    honest, lying = Dictionary(NAMES), _version(names)
    (body,) = encode([b"<order><item no='1'/></order>"], WireFormat.DICTIONARY, honest).to_pylist()
    body = body.replace(honest.version, lying)
    told = Forward("a", 1, 1, 0, 1, (Published(1, "s", "m", 0, "dictionary", False, body),))
    with pytest.raises(PeerError, match=reason) as refused:
        there.incoming(told)
    assert refused.value.code == "overlay.format"
    assert there.incoming(forward([b"<order/>"])) == forward([b"<order/>"])


def _version(names: tuple[str, ...]) -> bytes:
    try:
        return Dictionary(names).version
    except ConfigError:
        return b"no such."


def observed(bandwidth: float, delay: float, chance: random.Random) -> LinkSpeed:
    """A link with a queue: frames of many sizes, some at once, acknowledged in their order."""
    speed, now, free = LinkSpeed(), 0.0, 0.0
    number = 0
    for _ in range(60):
        arrivals = []
        for _ in range(chance.randrange(1, 5)):
            number += 1
            size = chance.randrange(100, 60_000)
            speed.sent(number, size, now)
            free = max(free, now) + size / bandwidth
            # Half of the time the other end is busy, for longer than the link takes.
            busy = chance.choice([0.0, 10 * delay * chance.random()])
            arrivals.append((free + delay * chance.uniform(1.0, 1.1) + busy, number))
        arrivals = [
            (max(at for at, _ in arrivals[: place + 1]), each)
            for place, (_, each) in enumerate(arrivals)
        ]
        for at, each in arrivals:
            speed.acknowledged(each, at)
        now = max(at for at, _ in arrivals) + chance.random()
    return speed


@pytest.mark.parametrize("bandwidth", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("seed", range(3))
def test_the_bandwidth_of_a_link_is_found(bandwidth: float, seed: int) -> None:
    # The jitter is a tenth of what a middling frame takes.
    speed = observed(bandwidth, 3e4 / bandwidth, random.Random(seed))
    assert speed.bandwidth == pytest.approx(bandwidth, rel=0.2)


def test_frames_that_were_lost_and_sent_again_make_no_link_slow() -> None:
    speed, now = LinkSpeed(), 0.0
    for number in range(1, 200):
        size = 1000 * (number % 9 + 1)
        speed.sent(number, size, now)
        if number % 3 == 0:
            now += 0.3
            speed.sent(number, size, now)
        now += 0.02 + size / 1e6
        speed.acknowledged(number, now)
    assert speed.bandwidth == pytest.approx(1e6)
    assert speed.delay == pytest.approx(0.02)


def test_frames_of_one_size_say_nothing_of_a_bandwidth() -> None:
    speed = LinkSpeed()
    for number in range(80):
        speed.sent(number, 1000, number)
        speed.acknowledged(number, number + 0.1)
    assert speed.bandwidth is None


def test_the_format_is_the_one_that_is_there_first() -> None:
    told = forward([BODIES[2]] * 16)
    chosen = {}
    for bandwidth in (1e3, 1e12):
        here = LinkFormats("b", "auto", time.thread_time)
        here.began()
        here.incoming(Formats(tuple(each.value for each in WireFormat)))
        here.outgoing(announced(NAMES))
        assert here.format is WireFormat.TEXT
        here.outgoing(told)
        assert set(here.costs) == set(WireFormat)
        here.speed = observed(bandwidth, 1e-6, random.Random(1))
        chosen[bandwidth] = here.format
        if bandwidth == 1e3:
            sizes = {each: cost.wire_bytes for each, cost in here.costs.items()}
            assert sizes[here.format] == min(sizes.values())
    assert chosen[1e12] is WireFormat.TEXT
    assert chosen[1e3].compression != "none"


def test_names_of_formats_are_checked() -> None:
    check_format("auto")
    with pytest.raises(ConfigError, match="dictionary"):
        check_format("dictionary+lzma")


def test_the_dictionary_of_a_source_is_what_its_schema_declares() -> None:
    xsd = (
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a">'
        '<xs:complexType><xs:attribute name="k"/></xs:complexType></xs:element></xs:schema>'
    )
    assert dictionary_names("<!ELEMENT a (b*)><!ELEMENT b EMPTY>") == ("b", "a")
    assert set(dictionary_names(xsd)) == {"a", "k"}
    included = xsd.replace(
        "<xs:element", '<xs:include schemaLocation="/etc/passwd"/><xs:element', 1
    )
    assert dictionary_names("neither") == dictionary_names(included) == ()
    with pytest.raises(SchemaError):
        check_schema(included)
    assert dictionary_names(f"<!ELEMENT {'n' * 200} EMPTY>") == ()


@pytest.mark.parametrize("format", ["dictionary+zlib", "stream", "auto"])
@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 200))]
)
def test_networks_deliver_the_same_in_any_format(format: str, seed: int) -> None:
    scenario = random_scenario(seed)
    BrokerWorld(scenario, seed, settings=NodeSettings(format=format)).run()
