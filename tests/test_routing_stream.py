"""A message is routed while it arrives as it is routed when it is there.

If one of these fails, a broker sends a message on its way to links that do not want it, or decides
before it can know.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from every_engine import engines
from generators import (
    MessageShape,
    in_some_encoding,
    random_family,
    random_message,
    random_query,
    random_routing_entries,
    random_valued_message,
)
from oracles.engines import EngineName, made_by
from pathcast.engine import RoutingStream, RoutingTable
from pathcast.errors import LimitExceededError, MessageError
from pathcast.limits import Limits, StreamBounds
from pathcast.model import RoutingEntry
from pathcast.query import normalise

SEEDS = [*range(8), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(8, 800))]
TARGETS = (1, 3, 64, 70)


def fed(stream: RoutingStream, message: bytes, cuts: list[int]) -> list[int]:
    """Feeds a message cut at some places; a decision that is final stays, targets never go away."""
    stream.begin()
    before: set[int] = set()
    final: list[int] | None = None
    for start, end in zip([0, *cuts], [*cuts, len(message)], strict=True):
        stream.feed(message[start:end])
        assert before <= set(stream.targets)
        before = set(stream.targets)
        if final is not None:
            assert stream.targets == final
        elif stream.is_final:
            final = stream.targets
            assert stream.decided_at == end
    targets = stream.finish()
    assert stream.is_final
    assert final in (None, targets)
    return targets


@engines
@pytest.mark.parametrize("seed", SEEDS)
def test_however_it_is_cut(engine: EngineName, seed: int) -> None:
    chosen = random.Random(1000 + seed)
    texts = random_family(chosen, 12) + [random_query(chosen) for _ in range(12)]
    targets = chosen.choice(TARGETS)
    entries = random_routing_entries(chosen, texts, chosen.choice((2, 8, 40)), targets=targets)
    table = made_by(engine, RoutingTable, entries, targets)
    router = table.router(threads=1)
    stream = table.stream(cache_bytes_max=chosen.choice((1, 20_000, 1 << 24)))
    shape = MessageShape(depth_max=7, children_max=3, has_defaults=True, has_markup=True)
    checked = 0
    for number in range(10):
        message = (
            random_valued_message(chosen) if number % 2 else random_message(chosen, shape=shape)
        )
        if number % 5 == 4:
            message = in_some_encoding(chosen, message)
        if number % 5 == 3:
            message = message[: chosen.randrange(len(message))]
        routed = router.route(pa.array([message]))
        [whole], [error] = routed.matches.to_pylist(), routed.errors.to_pylist()
        places = range(1, len(message))
        for cuts in (
            [],
            list(places),
            sorted(chosen.sample(places, k=min(len(places), chosen.randint(1, 6)))),
        ):
            if error is None:
                assert fed(stream, message, cuts) == whole, (seed, number, cuts)
                checked += 1
            else:
                with pytest.raises(MessageError) as refusal:
                    fed(stream, message, cuts)
                assert refusal.value.code == error["code"]
    assert checked > 10


def entry(targets: int, *paths: str) -> RoutingEntry:
    return RoutingEntry(tuple(normalise(path).text for path in paths), targets)


def decided(entries: list[RoutingEntry], targets: int, message: bytes) -> tuple[list[int], int]:
    """Targets, and where the decision falls, fed byte by byte."""
    pytest.importorskip("pathcast_kernel")
    stream = RoutingTable(entries, targets).stream()
    found = fed(stream, message, list(range(1, len(message))))
    assert stream.decided_at is not None
    return found, stream.decided_at


@pytest.mark.parametrize(
    ("paths", "message", "decided_by"),
    [
        (["/a/b"], b"<a><x/><b>|<c/></b><d/></a>", [0]),
        (["/a/b[@n=1]"], b"<a><b n='2'/><b n='1'>|<c/></b></a>", [0]),
        (["/a/b[position()=2][@n=1]"], b"<a><b n='1'/><x/><b n='1'>|</b><c/></a>", [0]),
        (["/a/b[.=1]"], b"<a><b>1</b>|<c/></a>", [0]),
        (["/a[b=1]/c"], b"<a><b>1</b><c/><d/></a>|", [0]),
        (["/a/b/c"], b"<x>|<b><c/></b></x>", []),
        (["/a/b", "/a[@n=1]", "/a/c"], b"<a n='1'><c/><b>|<x/></b></a>", [0, 1, 2]),
    ],
)
def test_a_decision_falls_as_soon_as_it_can(
    paths: list[str], message: bytes, decided_by: list[int]
) -> None:
    entries = [entry(1 << at, path) for at, path in enumerate(paths)]
    at = message.index(b"|")
    found, position = decided(entries, len(paths), message.replace(b"|", b""))
    assert found == decided_by
    # An element has ended when what follows has begun.
    assert at <= position <= at + 2


def test_what_leads_to_reached_targets_only_is_not_waited_for() -> None:
    """`/a/b` reaches what the text of the root might reach as well."""
    entries = [entry(0b1, "/a[.='x']"), entry(0b1, "/a/b", "//c")]
    found, position = decided(entries, 1, b"<a><c/><b/>" + b"<d>y</d>" * 50 + b"</a>")
    assert found == [0]
    assert position < 13


def test_memory_does_not_grow_with_the_message() -> None:
    """Conditions on start tags hold nothing, those on the text of an element that element."""
    pytest.importorskip("pathcast_kernel")
    paths = ["/log/entry[@level='fatal']", "/log/entry[code=7]", "/log/entry[position()=70000]"]
    entries = [entry(1 << at, path) for at, path in enumerate(paths)]
    stream = RoutingTable(entries, 3).stream()
    stream.begin()
    stream.feed(b"<log>")
    block = b"<entry level='info'><code>8</code><text>nothing to see here</text></entry>" * 900
    held = []
    for _ in range(70):
        stream.feed(block)
        held.append(stream.memory)
    assert max(held) <= held[2] < 1 << 20
    assert stream.targets == []
    stream.feed(b"<entry level='fatal'/>")
    assert stream.targets == [0]
    for _ in range(8):
        stream.feed(block)
    assert (stream.targets, stream.is_final) == ([0, 2], False)
    stream.feed(b"<entry><code>7</code></entry>")
    assert (stream.targets, stream.is_final) == ([0, 1, 2], True)
    stream.feed(b"</log>")
    assert stream.finish() == [0, 1, 2]


def test_what_has_to_be_held_is_bounded() -> None:
    pytest.importorskip("pathcast_kernel")
    table = RoutingTable(
        [entry(1, "/a[.='x']")],
        1,
        limits=Limits(message_bytes_max=5_000, elements_max=300),
    )
    for block, limit in (
        (b"<b/>", "elements_max"),
        (b"<b>" + b"t" * 99 + b"</b>", "message_bytes_max"),
    ):
        stream = table.stream()
        stream.begin()
        stream.feed(b"<a>\n")
        blocks = [block] * 500
        with pytest.raises(LimitExceededError, match=limit) as refused:
            list(map(stream.feed, blocks))
        assert refused.value.params["limit"] == limit
        with pytest.raises(LimitExceededError):
            stream.feed(block)


@engines
def test_a_stream_is_used_again_and_in_order(engine: EngineName) -> None:
    stream = made_by(engine, RoutingTable, [RoutingEntry(("/a",), 1)], 1).stream(StreamBounds())
    with pytest.raises(ValueError, match="begin comes first"):
        stream.feed(b"<a/>")
    with pytest.raises(ValueError, match="begin comes first"):
        stream.finish()
    stream.begin()
    stream.feed(b"<a")
    with pytest.raises(MessageError):
        stream.finish()
    stream.begin("UTF-8")
    stream.feed(b"<a/>")
    assert stream.finish() == [0]
    with pytest.raises(ValueError, match="begin comes first"):
        stream.feed(b" ")
    stream.begin()
    stream.feed(b"<b/>")
    assert stream.finish() == []
